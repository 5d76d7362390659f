"""The rooms: imports go downwards, only the command line prints, the start is light."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parents[1] / "ragcli"

FLOORS = (
    {"cli"},
    {"evaluation", "inspection", "generation"},
    {"indexing", "retrieval"},
    {"store"},
    {"encoders", "corpus"},
    {"records", "errors"},
)
"""The house from the top; a room may use its own modules and every floor below its own."""

HEAVY = {
    "chardet", "docx", "faiss", "jinja2", "llama_cpp", "lxml", "markdown_it",
    "matplotlib", "numpy", "onnxruntime", "openpyxl", "pathspec", "plotly", "pptx", "pydantic",
    "pypdf", "rich", "sqlite3", "Stemmer", "tokenizers", "torch", "transformers",
}  # fmt: skip

SOURCES = sorted(PACKAGE.rglob("*.py"))


def room_of(module: str) -> str | None:
    """`ragcli.store.index` lies in `store`; the package itself and `__main__` in no room."""
    parts = module.split(".")
    return parts[1] if len(parts) > 1 and parts[1] != "__main__" else None


def floor_of(room: str) -> int:
    return next(i for i, rooms in enumerate(FLOORS) if room in rooms)


def module_of(file: Path) -> str:
    parts = ["ragcli", *file.relative_to(PACKAGE).with_suffix("").parts]
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imports(file: Path) -> Iterator[tuple[str, int]]:
    """Every module that a file imports anywhere in it, with the line."""
    package = module_of(file) if file.name == "__init__.py" else module_of(file).rpartition(".")[0]
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from ((alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                anchor = package.split(".")[: len(package.split(".")) - node.level + 1]
                base = ".".join([*anchor, *filter(None, [node.module])])
            yield base, node.lineno
            # `from ragcli import records` names a module too
            yield from ((f"{base}.{alias.name}", node.lineno) for alias in node.names)


def rising(file: Path) -> list[str]:
    """The imports of a file that go upwards or sideways into another room."""
    own = room_of(module_of(file))
    if own is None:
        return []
    wrong = []
    for module, line in imports(file):
        other = room_of(module) if module.split(".")[0] == "ragcli" else None
        if other is None or other == own or other.startswith("__"):
            continue
        if floor_of(other) <= floor_of(own):
            wrong.append(f"{file.name}:{line} imports {module}")
    return wrong


def test_every_module_lies_in_a_room() -> None:
    rooms = {room_of(module_of(file)) for file in SOURCES} - {None}
    assert rooms
    assert rooms <= set().union(*FLOORS)


@pytest.mark.parametrize("file", SOURCES, ids=module_of)
def test_imports_go_downwards(file: Path) -> None:
    assert rising(file) == []


@pytest.mark.parametrize(
    "line",
    [
        "from ragcli.retrieval import fusion",
        "from ragcli import retrieval",
        "def f():\n    import ragcli.cli.app",
        "from ..indexing import run",
    ],
)
def test_an_import_that_goes_upwards_is_seen(
    line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.modules[__name__], "PACKAGE", tmp_path)
    file = tmp_path / "store" / "new.py"
    file.parent.mkdir()
    file.write_text(line)
    assert len(rising(file)) >= 1


def test_only_render_imports_rich() -> None:
    users = {
        file.relative_to(PACKAGE).as_posix()
        for file in SOURCES
        for module, _ in imports(file)
        if module.split(".")[0] == "rich"
    }
    assert users == {"cli/render.py"}


def test_only_the_command_line_prints() -> None:
    printing = {
        f"{file.relative_to(PACKAGE)}:{node.lineno}"
        for file in SOURCES
        if room_of(module_of(file)) != "cli"
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.Name) and node.id == "print"
    }
    assert printing == set()


@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param(["--help"], id="help"),
        pytest.param(["--version"], id="version"),
        pytest.param(["index", "--help"], id="index help"),
        pytest.param(["query", "--help"], id="query help"),
        pytest.param(["inspect", "--help"], id="inspect help"),
        pytest.param(["eval", "--help"], id="eval help"),
        pytest.param(["query", "q", "-k", "0"], id="closed book"),
    ],
)
def test_the_start_loads_nothing_heavy(arguments: list[str]) -> None:
    program = (
        "import sys; from ragcli.cli.app import run; code = run(sys.argv[1:]);"
        "print('loaded:', *sys.modules, file=sys.stderr); sys.exit(code)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, *arguments], capture_output=True, text=True, check=True
    )
    loaded = {name.split(".")[0] for name in done.stderr.rpartition("loaded:")[2].split()}
    assert "ragcli" in loaded
    assert loaded & HEAVY == set()


def test_help_loads_no_command() -> None:
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "ragcli", "--help"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert "ragcli.cli.app" in done.stderr
    assert "ragcli.cli.query" not in done.stderr
    assert "ragcli.cli.index" not in done.stderr
