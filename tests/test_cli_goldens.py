"""What people and pipes see: the real program, its exit code, stdout and stderr in one file a case.

A case is a shell line, run in a folder with a small corpus. `pytest --update-goldens` writes
the files under `goldens/` anew; read the difference before you commit it.
"""

from __future__ import annotations

import fcntl
import os
import pty
import re
import shutil
import struct
import subprocess
import sys
import termios
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[1]
GOLDENS = Path(__file__).resolve().parent / "goldens"

CORPUS = {
    "docs/setup.md": """\
# Lantern

## Install

Run the installer as root. It starts four workers.

## Ports

The dashboard listens on port 8443. Set `max_workers` in `lantern.toml`.
""",
    "docs/[brackets].tsx": 'export const Grid = "[bold]workers[/bold] of the grid";\n',
    "docs/🚀 launch 清单.txt": "The 🚀 launch list: start the workers, then open the dashboard.\n",
    "docs/escape.txt": "Red \x1b[31mworkers\x1b[0m and \x1b]0;a title\x07 escapes\u202e.\n",
    "docs/zh.txt": "仪表板在端口 8443 上监听。重新启动之前请停止工作进程。\n",
    "docs/long/a-folder-with-a-long-name/and-another-one-inside-of-it/runbook.md": (
        "# Runbook of the night shift\n\n"
        "When the queue grows, look at the dashboard first. " + "Nothing else is worth a look. " * 8
        + "Then add workers, one at a time, and wait for the queue to shrink.\n"
    ),
    "questions.jsonl": '{"id": "a", "question": "Which port?"}\n\n{"question": "Who starts?"}\n',
    "gold.jsonl": (
        '{"id": "a", "kind": "plain", "question": "Which port?", "relevant": ["setup.md:9"]}\n'
        '{"id": "b", "kind": "hard", "question": "open", "relevant": ["zh.txt"]}\n'
        '{"id": "c", "question": "Who leads?", "answerable": false}\n'
    ),
    "bad.jsonl": '{"id": "a", "question": "Which port?"}\n{"id": "b", "question": " "}\n',
    "short.txt": "{context}\n\nQ: {question}\n",
    "wrong.txt": "{question}\n",
}  # fmt: skip

UNTIMED = "| sed -E 's/[0-9.]+ ms/<n> ms/g; s/^[0-9.]+ s;/<n> s;/'; exit ${PIPESTATUS[0]}"

CASES = {
    "help": "ragcli",
    "index_help": "ragcli index --help",
    "query_help": "ragcli query --help",
    "prompt_through_a_pipe": "ragcli query 'Which port does the dashboard use?' -k 2 | cat",
    "head_ends_quietly": "ragcli query 'workers' | head -1; echo ${PIPESTATUS[@]}",
    "table_head_ends_quietly": (
        "ragcli query 'workers' --show table | head -1; echo ${PIPESTATUS[@]}"
    ),
    "table_alone": "ragcli query 'how many workers?' --show table",
    "table_and_prompt": "ragcli query 'how many workers?' -k 1 --show table,prompt",
    "table_quietly": "ragcli query 'how many workers?' -k 1 --show table,prompt --quiet",
    "explain": "ragcli query 'dashboard port 8443' -k 2 --explain --show table",
    "json": "ragcli query 'max_workers' -k 1 --json",
    "json_explained": "ragcli query '端口' -k 1 --json --explain",
    "closed_book": "cd / && ragcli query 'Which port?' -k 0",
    "closed_book_json": "cd / && ragcli query 'Which port?' -k 0 --json",
    "question_from_stdin": "echo 'Which port?' | ragcli query - -k 1",
    "budget": "ragcli query 'workers dashboard' -k 4 --budget 320",
    "budget_too_small": "ragcli query 'workers' --budget 10",
    "template": "ragcli query 'Which {context} port?' -k 1 --template short.txt",
    "template_wrong": "ragcli query 'port' --template wrong.txt",
    "template_missing": "ragcli query 'port' --template none.txt",
    "path": "ragcli query 'workers' --path '*.md' --show table",
    "max_per_file": "ragcli query 'workers dashboard' --max-per-file 1 --show table",
    "batch": "ragcli query --batch questions.jsonl -k 1 --json",
    "batch_from_stdin": "ragcli query --batch - -k 0 --json < questions.jsonl",
    "batch_with_a_bad_line": "ragcli query --batch bad.jsonl --json",
    "batch_without_json": "ragcli query --batch questions.jsonl",
    "batch_and_question": "ragcli query port --batch questions.jsonl --json",
    "nothing_found": "ragcli query 'xylophone'",
    "nothing_found_json": "ragcli query 'xylophone' --json",
    "nothing_in_path": "ragcli query 'xylophone port' --path 'runbook.md'",
    "only_stop_words": "ragcli query 'what is the of'",
    "empty_question": "ragcli query ' '",
    "no_question": "ragcli query",
    "operators_are_text": """ragcli query 'NOT "port" * OR (8443' -k 1 --show table""",
    "dense_without_vectors": "ragcli query port --mode dense",
    "alpha_of_rrf": "ragcli query port --fusion rrf --alpha .5",
    "stale": (
        "echo more >> docs/setup.md && rm docs/zh.txt "
        "&& ragcli query 'port 8443 端口' -k 2 --show table --refresh never"
    ),
    "refreshed": (
        "ragcli index --quiet && echo 'the port is open' >> docs/setup.md && rm docs/zh.txt "
        "&& echo 'a port' > docs/new.md && ragcli query 'port 8443 端口' -k 2 --show table"
    ),
    "no_index": "cd / && ragcli query 'port'",
    "no_index_json": "cd / && ragcli query 'port' --json",
    "not_an_index": "ragcli query 'port' --index docs",
    "eval_help": "ragcli eval --help",
    "eval": f"ragcli eval gold.jsonl -k 1,5 {UNTIMED}",
    "eval_gates": f"ragcli eval gold.jsonl --fail-under recall@5=.9 {UNTIMED}",
    "eval_grid": f"ragcli eval gold.jsonl -k 1 --path '*.md' --mode lexical {UNTIMED}",
    "eval_missing": (
        "sed s/zh.txt/ZH.txt/ gold.jsonl > missing.jsonl; ragcli eval missing.jsonl"
    ),
    "eval_of_a_bad_file": "ragcli eval bad.jsonl",
    "eval_of_nothing": "ragcli eval",
    "eval_sweep_of_a_bad_name": "ragcli eval gold.jsonl --sweep size=3",
    "inspect_help": "ragcli inspect --help",
    "inspect_card": (
        "ragcli inspect | sed -E 's/[0-9-]{10} [0-9:]{5}/<date>/g; s/[0-9.]+ k?B/<size>/g'"
    ),
    "inspect_file": "ragcli inspect docs/setup.md | sed -E 's/[0-9-]{10} [0-9:]{5}/<date>/'",
    "inspect_line": "ragcli inspect setup.md:7 --json | sed -E 's/\"read\": [0-9.]+/<read>/'",
    "inspect_vectors": (
        "ragcli index docs --index new.rag --encoder hash --chunk sentences:1 --quiet && "
        "ragcli inspect setup.md:9 --vectors --index new.rag "
        "| sed -E 's/[0-9-]{10} [0-9:]{5}/<date>/'"
    ),
    "inspect_nowhere": "ragcli inspect docs/setpu.md",
    "inspect_why_found": "ragcli inspect --why 'Which port?' setup.md:9",
    "inspect_why_missed": "ragcli inspect --why 'open the dashboard' -k 1 --text 'on port'",
    "inspect_why_json": "ragcli inspect --why 'Which port?' zh.txt --json",
    "inspect_why_of_nothing": "ragcli inspect --why 'Which port?'",
    "inspect_problems": (
        "echo x > docs/old.ppt && ragcli index --quiet; "
        "ragcli inspect --problems | sed -E 's/[0-9-]{10} [0-9:]{5}/<date>/'"
    ),
    "inspect_check": "ragcli inspect --check | sed -E 's/[0-9.]+ k?B/<size>/'",
    "inspect_check_damaged": (
        "for f in .rag/segments/p-*/counts.npy; do printf 'x' | "
        "dd of=$f bs=1 seek=130 conv=notrunc 2> /dev/null; done; ragcli inspect --check "
        "| sed -E 's/p-[0-9a-f]{12}/p-<name>/'; echo ${PIPESTATUS[@]}"
    ),
    "inspect_collisions": (
        "ragcli index docs --index new.rag --encoder hash --dim 16 --quiet && "
        "ragcli inspect --collisions --index new.rag"
    ),
    "inspect_collisions_of_none": "ragcli inspect --collisions",
    "inspect_duplicates": (
        "cp docs/setup.md docs/copy.md && ragcli index --quiet && ragcli inspect --duplicates"
    ),
    "inspect_hubs_without_vectors": "ragcli inspect --hubs",
    "inspect_two_views": "ragcli inspect --hubs --check",
    "inspect_plot_of_no_kind": "ragcli inspect --plot map.txt",
    "index_first": "ragcli index docs --index new.rag --encoder none",
    "index_by_default": (
        "ragcli index docs --index new.rag > /dev/null && "
        "ragcli query 'who may look at it' --index new.rag -k 2 --show table --explain"
    ),
    "index_lazily": (
        "ragcli index docs --index new.rag --lazy > /dev/null && "
        "ragcli query 'port' --index new.rag -k 1 --show table && "
        "ragcli query 'port' --index new.rag -k 1 --show table"
    ),
    "index_of_a_lost_model": "ragcli index docs --index new.rag --encoder onnx:nowhere",
    "query_model_of_minilm": "ragcli index docs --index new.rag --query-model dpr",
    "index_unchanged": "ragcli index",
    "index_json": "ragcli index --json",
    "index_quiet": "ragcli index --quiet",
    "index_changes": (
        "echo more >> docs/setup.md && mv docs/zh.txt docs/cn.txt && rm docs/escape.txt "
        "&& printf 'a\\0b' > docs/binary && ragcli index && ragcli index"
    ),
    "index_dry_run": (
        "ragcli index --quiet && rm docs/zh.txt && ragcli index --dry-run && ragcli index --dry-run"
    ),
    "index_home": "ragcli index ~",
    "index_root": "ragcli index docs /",
    "index_nothing_remembered": "cd / && ragcli index",
    "index_missing_folder": "ragcli index nowhere",
    "index_of_a_bad_encoder": "ragcli index docs --index new.rag --encoder nope",
    "index_of_a_bad_chunking": "ragcli index docs --index new.rag --chunk words:none",
}  # fmt: skip

TERMINAL_CASES = {
    "terminal": "ragcli query 'workers escapes' -k 5",
    "terminal_no_color": "NO_COLOR=1 ragcli query 'how many workers?' -k 4 --show table",
    "terminal_no_color_option": "ragcli query 'how many workers?' -k 1 --show table --no-color",
    "terminal_dumb": "TERM=dumb ragcli query 'how many workers?' -k 1 --show table",
    "terminal_table_for_a_pipe": "ragcli query 'workers' -k 1 --show table,prompt | cat",
    "terminal_json": "ragcli query 'escapes' -k 1 --json",
    "terminal_index": "ragcli index",
}

RAGCLI = f'#!/bin/sh\nexec "{sys.executable}" -m ragcli "$@"\n'


def environment(folder: Path) -> dict[str, str]:
    return {
        "PATH": f"{folder.parent / 'bin'}:{os.environ['PATH']}",
        "PYTHONPATH": str(REPOSITORY),
        "HOME": str(folder.parent / "home"),
        "LANG": "C.UTF-8",
        "TERM": "xterm-256color",
    }


@pytest.fixture(scope="module")
def indexed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the corpus and its index, which a test copies."""
    folder = tmp_path_factory.mktemp("goldens") / "work"
    for name, text in CORPUS.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    write_program(folder)
    subprocess.run(
        ["ragcli", "index", "docs", "--encoder", "none", "--quiet"],
        cwd=folder, env=environment(folder), check=True,
    )  # fmt: skip
    return folder


def write_program(folder: Path) -> None:
    for name in ("bin", "home"):
        (folder.parent / name).mkdir()
    program = folder.parent / "bin" / "ragcli"
    program.write_text(RAGCLI)
    program.chmod(0o755)


@pytest.fixture
def work(indexed: Path, tmp_path: Path) -> Path:
    shutil.copytree(indexed, tmp_path / "work")
    write_program(tmp_path / "work")
    return tmp_path / "work"


def in_terminal(line: str, folder: Path) -> tuple[int, str]:
    """Run a shell line on a terminal of 80 columns: (exit code, what the screen was sent)."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    process = subprocess.Popen(
        ["bash", "-c", line], cwd=folder, env=environment(folder),
        stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True,
    )  # fmt: skip
    os.close(theirs)
    seen = b""
    while True:
        try:
            part = os.read(ours, 65536)
        except OSError:  # Linux's way to say that the other end is closed
            break
        if not part:
            break
        seen += part
    os.close(ours)
    return process.wait(), seen.decode().replace("\r\n", "\n")


def normal(text: str, folder: Path) -> str:
    """`text` without what differs from run to run."""
    text = text.replace(str(folder.parent), "<tmp>")
    text = re.sub(r"\d+ ms", "<n> ms", text)
    text = re.sub(r"\d+\.\d s(?=$|\))", "<n> s", text, flags=re.MULTILINE)
    text = re.sub(r'"seconds": [\d.e-]+', '"seconds": <n>', text)
    text = re.sub(r'"timings_ms": \{[^}]+\}', '"timings_ms": {<n>}', text)
    text = re.sub(r"\x1b]8;id=\d+;", "\x1b]8;id=<n>;", text)
    text = re.sub(r"\d+\.\d{5,}", lambda number: f"{float(number[0]):.5f}", text)
    # Real control characters as pictures (␛), apart from the `\\x1b` that the program writes.
    return re.sub(r"[\x00-\x09\x0b-\x1f]", lambda found: chr(0x2400 + ord(found[0])), text)


def check(name: str, seen: str, request: pytest.FixtureRequest) -> None:
    golden = GOLDENS / f"{name}.txt"
    if request.config.getoption("--update-goldens"):
        golden.parent.mkdir(exist_ok=True)
        golden.write_text(seen, encoding="utf-8")
    assert seen == golden.read_text(encoding="utf-8")


@pytest.mark.parametrize("name", CASES)
def test_off_a_terminal(name: str, work: Path, request: pytest.FixtureRequest) -> None:
    line = CASES[name]
    done = subprocess.run(
        ["bash", "-c", line], cwd=work, env=environment(work), check=False,
        stdin=subprocess.DEVNULL, capture_output=True, encoding="utf-8",
    )  # fmt: skip
    out, err = normal(done.stdout, work), normal(done.stderr, work)
    check(name, f"$ {line}\nexit {done.returncode}\n--- stdout\n{out}--- stderr\n{err}", request)


@pytest.mark.parametrize("name", TERMINAL_CASES)
def test_on_a_terminal(name: str, work: Path, request: pytest.FixtureRequest) -> None:
    line = TERMINAL_CASES[name]
    code, seen = in_terminal(line, work)
    check(name, f"$ {line}\nexit {code}\n--- terminal\n{normal(seen, work)}", request)


def test_no_golden_is_left_over(request: pytest.FixtureRequest) -> None:
    if request.config.getoption("--update-goldens"):
        pytest.skip("they are being written")
    assert {file.stem for file in GOLDENS.iterdir()} == {*CASES, *TERMINAL_CASES}
