"""Whether every file of the zoo, a folder of real files that break ingestion, is met as expected.

    python benchmarks/zoo.py [ZOO] [--encoder none] [--list]

ZOO holds `files/`, `manifest.jsonl` and `make_special.sh` (default: ../shared/zoo beside the
checkout). One `ragcli index` over the files, one over what the script makes, each a whole process
whose children count; the verdicts come from its report and ledger, the needles from one `ragcli
query --batch`. As root, the permission to read everything is given up where `setpriv` is there.
Nothing of the zoo is changed.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from importlib.metadata import version
from pathlib import Path
from typing import Any

from indexing import timed

RAGCLI = [sys.executable, "-m", "ragcli"]
BESIDE = Path(__file__).resolve().parents[1].parent / "shared" / "zoo"
NOT_ROOT = ["setpriv", "--bounding-set=-dac_override,-dac_read_search"]

ALLOWED = {
    "text": {"text"},
    "text_if_supported": {"text", "unsupported", "missing_extra"},
    "text_or_error": {"text", "corrupt", "no_text", "password", "unsupported"},
    "password": {"password"},
    "no_text": {"no_text"},
    "error": {"corrupt", "no_text", "decode", "unsupported"},
    "skip": {"skipped"},
    "text_or_skip": {"text", "skipped"},
}
"""What a file may come to, by what the manifest expects."""

UNFOUND = ("anise",)
"""Needles of the special files that nobody may read."""


def collapsed(text: str) -> str:
    return " ".join(text.split())


class Indexed:
    """One index: its report, and by path what became of each file and its text."""

    def __init__(self, folder: Path, index: Path, encoder: str, *, special: bool = False) -> None:
        command = [*RAGCLI, "index", str(folder), "--index", str(index), "--json"]
        command += ["--encoder", encoder, *(["--hidden"] if special else [])]
        if os.geteuid() == 0 and shutil.which("setpriv"):
            command = [*NOT_ROOT, *command]
        self.index = index
        self.seconds, self.peak, out = timed(command)
        self.report: dict[str, Any] = json.loads(out)
        self.problems: dict[str, list[str]] = defaultdict(list)
        for problem in self.report["problems"]:
            self.problems[problem["path"]].append(problem["kind"])
        with sqlite3.connect(index / "catalog.sqlite") as catalog:
            rows = catalog.execute("SELECT path, state, reason FROM files").fetchall()
            self.state = {os.fsdecode(path): (state, reason) for path, state, reason in rows}
            self.text = defaultdict(str)
            chunks = catalog.execute(
                "SELECT f.path, c.text FROM chunks c JOIN documents d ON d.id = c.document"
                " JOIN files f ON f.id = d.file ORDER BY c.document, c.start"
            )
            for path, text in chunks:
                self.text[os.fsdecode(path)] += f" {text}"

    def outcome(self, path: str) -> str:
        """`text`, `skipped`, `unseen` or the kind of the problem that ended the file."""
        state, _ = self.state.get(path, ("unseen", None))
        if state == "indexed":
            return (
                "text" if self.text[path].strip() or "empty" in self.problems[path] else "silence"
            )
        return self.problems[path][0] if state == "failed" and self.problems[path] else state

    def found_by_query(self, needles: list[str]) -> set[str]:
        """Those needles that are in the text of one of the first five hits for them."""
        batch = self.index / "needles.jsonl"
        batch.write_text("".join(json.dumps({"id": n, "question": n}) + "\n" for n in needles))
        command = [*RAGCLI, "query", "--batch", str(batch), "--index", str(self.index)]
        out = timed([*command, "--json", "-k", "5", "--show", "table"])[2]
        answers = [json.loads(line) for line in out.splitlines()]
        return {
            answer["id"]
            for answer in answers
            if any(collapsed(answer["id"]) in collapsed(hit["text"]) for hit in answer["hits"])
        }


def verdict(row: dict[str, Any], indexed: Indexed) -> str:
    """`met`, or in a few words what is wrong."""
    path = row["path"]
    outcome = indexed.outcome(path)
    if outcome == "unseen":
        hidden = any(part.startswith(".") for part in Path(path).parts)
        left_out = "hidden, which --hidden would read" if hidden else "not seen by the walk"
        return "met" if row["expect"] == "skip" else left_out
    hard = {"skipped"} if row.get("hard") else set()
    if outcome not in ALLOWED[row["expect"]] | hard:
        return f"{outcome} where {row['expect']} is expected"
    if outcome == "text":
        text = collapsed(indexed.text[path])
        lost = [needle for needle in row.get("must_contain") or () if collapsed(needle) not in text]
        if lost:
            return f"not in its text: {lost}"
    return "met"


def report_zoo(zoo: Path, work: Path, encoder: str) -> None:
    rows = [json.loads(line) for line in (zoo / "manifest.jsonl").read_text().splitlines()]
    rows = [row for row in rows if (zoo / "files" / row["path"]).exists()]
    indexed = Indexed(zoo / "files", work / "zoo", encoder)
    kinds: dict[str, Counter[str]] = defaultdict(Counter)
    exceptions = []
    needles: list[str] = []
    contained = 0
    unsaid = []
    for row in rows:
        found = verdict(row, indexed)
        kind = row["path"].partition("/")[0]
        kinds[kind]["files"] += 1
        kinds[kind]["met"] += found == "met"
        kinds[kind][row["expect"]] += 1
        if found != "met":
            exceptions.append(f"{row['path']}: {found}")
        text = collapsed(indexed.text[row["path"]])
        wanted = row.get("must_contain") or []
        contained += sum(collapsed(needle) in text for needle in wanted)
        needles += wanted
        named = indexed.problems[row["path"]] or indexed.state.get(row["path"], ("unseen",))[0] in (
            ("skipped", "failed")
        )
        if row["expect"] in ("error", "no_text", "password") and not named:
            unsaid.append(row["path"])
    queried = indexed.found_by_query(needles)
    counts = indexed.report["counts"]
    files = sum(len(names) for _, _, names in os.walk(zoo / "files"))
    total = counts["indexed"] + counts["skipped"] + counts["failed"]
    print("| kind | files | met | expected |\n|---|---|---|---|")
    for kind, count in sorted(kinds.items()):
        expected = ", ".join(
            f"{n} {e}" for e, n in sorted(count.items()) if e not in ("files", "met")
        )
        print(f"| {kind} | {count['files']} | {count['met']} | {expected} |")
    print(f"\nExceptions: {'; '.join(exceptions) or 'none'}.")
    hits = sum(needle in queried for needle in needles)
    print(f"Needles: {contained} of {len(needles)} in the indexed text, {hits} in a top-5 hit.")
    missed = sorted({needle for needle in needles if needle not in queried})
    if missed:
        print(f"Not in a top-5 hit: {missed}.")
    print(
        f"Files in the folder: {files}; counted: {counts['indexed']} indexed + {counts['skipped']}"
        f" skipped + {counts['failed']} failed = {total}."
    )
    print(f"Unsaid: {', '.join(unsaid) or 'nothing'}.")
    print(f"{indexed.seconds:.1f} s, peak {indexed.peak / 1e6:.0f} MB of all processes.\n")


def report_special(zoo: Path, work: Path, encoder: str) -> None:
    folder = work / "special"
    made = zoo / "make_special.sh"
    subprocess.run(["bash", str(made), str(folder)], check=True, stdout=subprocess.DEVNULL)
    indexed = Indexed(folder, work / "special-index", encoder, special=True)
    needles = sorted(
        {word for line in made.read_text().splitlines() for word in NEEDLES if f"{word}" in line}
    )
    queried = indexed.found_by_query(needles)
    counts = indexed.report["counts"]
    print(f"Special files: {counts}; skipped: {indexed.report['skipped']}.")
    for path in sorted(indexed.problems):
        if not path.startswith("many/"):
            print(f"- {path[:60]!a}: {', '.join(indexed.problems[path])}")
    lost = [n for n in needles if n not in queried and n not in UNFOUND]
    print(f"Needles: {len(queried)} of {len(needles)} in a top-5 hit; not: {lost or 'none'}")
    print(f"(of {', '.join(UNFOUND)} nobody may read).")
    print(f"{indexed.seconds:.1f} s, peak {indexed.peak / 1e6:.0f} MB of all processes.")


NEEDLES = (
    "marmalade paprika saffron turmeric cardamom juniper rhododendron hazelnut coriander lavender"
    " rosemary oregano tarragon chervil fenugreek basil thyme nutmeg anise"
).split()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("zoo", type=Path, nargs="?", default=BESIDE)
    parser.add_argument("--encoder", default="none")
    given = parser.parse_args()
    packages = ("ragcli", "pypdf", "lxml", "chardet")
    print(f"{os.cpu_count()} cores, {platform.machine()}, Python {platform.python_version()},")
    print(", ".join(f"{name} {version(name)}" for name in packages), end="; ")
    print(f"--encoder {given.encoder}\n")
    with tempfile.TemporaryDirectory() as work:
        report_zoo(given.zoo, Path(work), given.encoder)
        report_special(given.zoo, Path(work), given.encoder)
        subprocess.run(["chmod", "-R", "u+rwx", work], check=True)


if __name__ == "__main__":
    main()
