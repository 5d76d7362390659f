"""Where a generator's spec comes from, and that a project's files are no such place."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ragcli.errors import UsageError
from ragcli.generation.generators import open_generator
from ragcli.generation.settings import SILENCE, config_file, generator_spec, time_limit


def configured(home: Path, text: str) -> dict[str, str]:
    """An environment whose user has this config.toml."""
    file = home / ".config" / "ragcli" / "config.toml"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")
    return {"HOME": str(home)}


def test_the_option_wins_over_the_environment_over_the_config(tmp_path: Path) -> None:
    environment = configured(tmp_path, 'generator = "cmd:c"\nother = 1\n')
    assert generator_spec(None, environment) == "cmd:c"
    environment["RAGCLI_GENERATOR"] = "cmd:b"
    assert generator_spec(None, environment) == "cmd:b"
    assert generator_spec("cmd:a", environment) == "cmd:a"


def test_an_empty_option_is_not_passed_over(tmp_path: Path) -> None:
    spec = generator_spec("", {"RAGCLI_GENERATOR": "cmd:b"})
    assert spec == ""
    with pytest.raises(UsageError):
        open_generator(spec)


def test_nobody_names_one(tmp_path: Path) -> None:
    assert generator_spec(None, {}) is None
    assert generator_spec(None, {"HOME": str(tmp_path), "RAGCLI_GENERATOR": ""}) is None
    assert generator_spec(None, configured(tmp_path, "# nothing\n")) is None
    file = tmp_path / "a-file"
    file.touch()
    assert generator_spec(None, {"HOME": str(file)}) is None


def test_xdg_config_home(tmp_path: Path) -> None:
    environment = configured(tmp_path / "home", 'generator = "cmd:home"')
    folder = tmp_path / "xdg" / "ragcli"
    folder.mkdir(parents=True)
    (folder / "config.toml").write_text('generator = "cmd:xdg"')
    environment["XDG_CONFIG_HOME"] = str(tmp_path / "xdg")
    assert generator_spec(None, environment) == "cmd:xdg"
    assert config_file(environment) == folder / "config.toml"


def test_a_project_s_files_never_name_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    project = tmp_path / "project"
    for place in (".", ".rag", ".config/ragcli", "ragcli", "xdg/ragcli"):
        (project / place).mkdir(parents=True, exist_ok=True)
        for name in ("config.toml", "ragcli.toml", ".ragcli.toml", "pyproject.toml"):
            (project / place / name).write_text(
                'generator = "cmd:evil"\n[tool.ragcli]\ngenerator = "cmd:evil"\n'
            )
        (project / place / ".env").write_text("RAGCLI_GENERATOR=cmd:evil\n")
    monkeypatch.chdir(project)
    home = str(tmp_path)
    for environment in (
        {"HOME": home},
        {},
        {"HOME": ""},
        {"HOME": "."},
        {"HOME": home, "XDG_CONFIG_HOME": ""},
        {"HOME": home, "XDG_CONFIG_HOME": "xdg"},
        {"HOME": home, "XDG_CONFIG_HOME": "."},
    ):
        assert generator_spec(None, environment) is None, environment


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("generator = ", "is not TOML"),
        ("generator = " + "[" * 100_000, "is not TOML: too many brackets"),
        ("generator = 3", "is no text"),
        ('generator = ""', "is no text"),
        ('generator = ["cmd:a"]', "is no text"),
        ('[generator]\nname = "x"', "is no text"),
    ],
)
def test_a_config_that_cannot_be_used(tmp_path: Path, text: str, told: str) -> None:
    with pytest.raises(UsageError, match=told) as caught:
        generator_spec(None, configured(tmp_path, text))
    assert "config.toml" in caught.value.message
    assert "\n" not in caught.value.message
    assert caught.value.hint


def test_a_config_that_is_no_text_or_no_file(tmp_path: Path) -> None:
    environment = configured(tmp_path, "")
    file = config_file(environment)
    assert file
    file.write_bytes(b"\xff\xfe")
    with pytest.raises(UsageError, match="is not TOML"):
        generator_spec(None, environment)
    file.unlink()
    file.mkdir()
    with pytest.raises(UsageError, match="cannot be read"):
        generator_spec(None, environment)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_config_that_may_not_be_read(tmp_path: Path) -> None:
    environment = configured(tmp_path, "")
    file = config_file(environment)
    assert file
    file.chmod(0)
    with pytest.raises(UsageError, match="cannot be read"):
        generator_spec(None, environment)


def test_the_time_limit() -> None:
    assert time_limit({}) == time_limit({"RAGCLI_TIMEOUT": ""}) == SILENCE == 300
    assert time_limit({"RAGCLI_TIMEOUT": "2.5"}) == 2.5


@pytest.mark.parametrize("given", ["soon", "0", "-1", "nan", "inf", "1e9", "\x1b[2J"])
def test_a_time_limit_that_is_none(given: str) -> None:
    with pytest.raises(UsageError, match="RAGCLI_TIMEOUT") as caught:
        time_limit({"RAGCLI_TIMEOUT": given})
    assert "\x1b" not in caught.value.message


@pytest.mark.parametrize(
    "spec",
    ["", " ", "llama3", "cmd", "ollama:", "openai:", "hf:", "gguf: ", "shell:rm", "OLLAMA:x", ":x"],
)
def test_a_spec_that_is_none(spec: str) -> None:
    with pytest.raises(UsageError) as caught:
        open_generator(spec, {})
    assert "\n" not in caught.value.message
    assert caught.value.hint
