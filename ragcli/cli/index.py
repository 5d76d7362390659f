"""`ragcli index`: the options, what is shown on the way, and the closing summary.

Owns no part of indexing: `ragcli.indexing` does it and gives back a report.
"""

import os
import sys
import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, fields
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ragcli.cli import options
from ragcli.cli.output import Output, counted, print_json, print_result
from ragcli.errors import FilesFailed, IndexNotFound, UsageError
from ragcli.generation.visible import visible
from ragcli.records import IndexReport, Problem, Progress, Settings

if TYPE_CHECKING:
    from ragcli.cli.render import ProgressBar

PROBLEMS_SHOWN = 10
_PATIENCE = 0.4
"""Seconds before a progress bar appears: most runs are over by then."""
_LINE_EVERY = 3.0
"""Seconds between lines of progress where there is no terminal."""

_DESCRIPTION = """\
Read a folder into the index, or bring the index up to date.

Each PATH is a folder or file to index into ./.rag; without any, what was
indexed before. Settings are remembered: plain `ragcli index` makes the index
true again."""


_remembered = partial(typer.Option, rich_help_panel="Remembered settings [as they begin]")
_this_run = partial(typer.Option, rich_help_panel="This run")

app = options.command_app()


@app.command(cls=options.Command, add_help_option=False, help=_DESCRIPTION)
@dataclass(frozen=True, kw_only=True)
class IndexFolder(options.CommandLine):
    """The command line of `ragcli index`; the fields of Settings are None where not given."""

    paths: Annotated[
        list[Path] | None,
        typer.Argument(parser=Path, metavar="PATH…", help="folders and files to index into ./.rag"),
    ] = None
    encoder: Annotated[
        str | None,
        _remembered(
            metavar="NAME",
            help="what makes vectors: minilm, hash, none, onnx:DIR or st:NAME [minilm]",
        ),
    ] = None
    query_model: Annotated[
        str | None, _remembered(metavar="NAME", help="st: the question's own model (DPR)")
    ] = None
    device: Annotated[str | None, _remembered(metavar="NAME", help="st: cpu, cuda, mps …")] = None
    chunk: Annotated[
        str | None,
        _remembered(
            metavar="SPEC", help="passages by auto, words:100, sentences:1 or tokens:200/20 [auto]"
        ),
    ] = None
    glob: Annotated[
        list[str] | None,
        # Named, because typer 0.27 would take the metavar for the name and offer --GLOB.
        _remembered("--glob", metavar="GLOB", help="only files that match; '' forgets the globs"),
    ] = None
    exclude: Annotated[
        list[str] | None,
        _remembered(metavar="GLOB", help="no files that match; '' forgets the globs"),
    ] = None
    hidden: Annotated[bool | None, _remembered(help="hidden files too [no]")] = None
    ignore: Annotated[
        bool | None, _remembered(help="obey .gitignore, .ignore, .ragcliignore [yes]")
    ] = None
    follow: Annotated[
        bool | None, _remembered(help="follow links that leave the folder too [no]")
    ] = None
    max_file_size: Annotated[
        int | None,
        _remembered(
            parser=options.size_in_bytes,
            metavar="SIZE",
            help="skip larger files: 500k, 64M, 2G [64M]",
        ),
    ] = None
    ocr: Annotated[
        str | None,
        _remembered(
            metavar="LANGS",
            help="read PDF pages without text by tesseract: eng, deu+eng; '' stops it [no]",
        ),
    ] = None
    dim: Annotated[
        int | None,
        _remembered(parser=options.whole_number(1), metavar="N", help="hash: dimensions [1024]"),
    ] = None
    normalise: Annotated[bool | None, _remembered(help="hash: vectors of length 1 [yes]")] = None
    lazy: Annotated[bool, _this_run("--lazy", help="no vectors now")] = False
    full: Annotated[bool, _this_run("--full", help="read every file anew")] = False
    watch: Annotated[
        bool, _this_run("--watch", help="go on, and take in each change; needs ragcli[watch]")
    ] = False
    dry_run: Annotated[
        bool, _this_run("--dry-run", help="say what would be done, write nothing")
    ] = False
    strict: Annotated[bool, _this_run("--strict", help="exit with 5 where a file failed")] = False
    workers: Annotated[
        int | None,
        _this_run(parser=options.whole_number(1), metavar="N", help="processes that read files"),
    ] = None
    yes: Annotated[bool, _this_run("--yes", help="also index / or the home folder")] = False

    def run(self) -> None:
        """Index, showing how far it is, and print the report."""
        paths = self.paths or []
        if self.watch:
            self._check_watching()
        if not self.yes:
            _refuse_everything(paths)

        from ragcli.indexing import index_folder

        with closing(ProgressDisplay(self.output)) as display:
            report = index_folder(
                _location(self.index, paths),
                paths,
                self._changes(),
                lazy=self.lazy,
                full=self.full,
                dry_run=self.dry_run,
                workers=self.workers,
                progress=display.show,
            )
        _finish(report, self.output, strict=self.strict)
        if self.watch:
            from ragcli.cli.watching import watch

            watch(report, self.output, lazy=self.lazy, workers=self.workers)

    def _check_watching(self) -> None:
        """Raises UsageError for what says something of a run that ends, ModelUnavailable."""
        for name, given in (("--dry-run", self.dry_run), ("--strict", self.strict)):
            if given:
                raise UsageError(f"--watch does not end, and {name} is of a run that does",
                                 "give one of them")  # fmt: skip
        from ragcli.cli.watching import require_watcher

        require_watcher()

    def _changes(self) -> dict[str, object]:
        """The settings that were given, and only those; `--glob ''` gives an empty list."""
        values = {field.name: getattr(self, field.name) for field in fields(Settings)}
        return {
            name: tuple(filter(None, value)) if isinstance(value, list) else value
            for name, value in values.items()
            if value is not None
        }


def _refuse_everything(folders: Sequence[Path]) -> None:
    """Raise UsageError for a folder that is the home folder or holds it, as `/` does."""
    home = Path.home().resolve()
    for folder in folders:
        if home.is_relative_to(folder.resolve()):
            raise UsageError(
                f"{folder} is the home folder or holds it: that is a lot to index",
                f"name a folder inside it, or give --yes: ragcli index {folder} --yes",
            )


def _location(explicit: Path | None, folders: Sequence[Path]) -> Path:
    """The index to write: one that is there, or with folders to read, the place for a new one."""
    from ragcli.store.folder import FOLDER
    from ragcli.store.index import locate

    inherited = os.environ.get("RAGCLI_INDEX")
    named = explicit or (Path(inherited) if inherited else None)
    if named is None and folders:
        return Path(FOLDER)
    try:
        return locate(explicit)
    except IndexNotFound:
        if named is None or not folders:
            raise
        return named


class ProgressDisplay:
    """Progress on stderr: a bar on a terminal, else under `--verbose` a line now and then.

    That passages can be searched already is said in any case but `--quiet` and `--json`.
    """

    def __init__(self, output: Output) -> None:
        self._output = output
        self._began = self._since = time.monotonic()
        self._stage: str | None = None
        self._terminal = sys.stderr is not None and sys.stderr.isatty()
        self._due = time.monotonic() + (_PATIENCE if self._terminal else _LINE_EVERY)
        self._bar: ProgressBar | None = None

    def show(self, progress: Progress) -> None:
        """Called by indexing as often as it likes."""
        if progress.stage != self._stage:
            self._stage, self._since = progress.stage, time.monotonic()
        if progress.stage == "searchable":
            self._say_searchable(progress.chunks)
        elif self._bar is not None:
            self._bar.show(progress)
        elif time.monotonic() >= self._due and not self._output.quiet:
            if self._terminal:
                self._start_bar(progress)
            else:
                self._due = time.monotonic() + _LINE_EVERY
                self._output.remark(self._line(progress))

    def _say_searchable(self, passages: int) -> None:
        if not self._output.as_json:
            self.close()
            self._bar = None
            self._output.warn(
                f"{counted(passages, 'passage')} can be searched now "
                f"({self._since - self._began:.1f} s); vectors follow"
            )

    def _line(self, progress: Progress) -> str:
        if progress.stage == "embed":
            spent = time.monotonic() - self._since
            return embedding(progress.chunks, progress.chunks_total, spent)
        total = f" of {progress.files_total:,}" if progress.files_total else ""
        return f"{progress.stage}: {progress.files_done:,}{total} files"

    def _start_bar(self, progress: Progress) -> None:
        from ragcli.cli.render import ProgressBar, console

        self._bar = ProgressBar(console(sys.stderr, color=self._output.color))
        self._bar.show(progress)

    def close(self) -> None:
        """Nothing is shown after this."""
        if self._bar is not None:
            self._bar.close()


def embedding(done: int, total: int, spent: float) -> str:
    """`embedding 640/12,345 · 98/s · 2 min left`, after `spent` seconds."""
    rate = done / max(spent, 0.1)
    left = (total - done) / max(rate, 0.1)
    time_left = f"{left / 60:.0f} min" if left >= 60 else f"{left:.0f} s"
    return f"embedding {done:,}/{total:,} · {rate:,.0f}/s · {time_left} left"


def _finish(report: IndexReport, output: Output, *, strict: bool) -> None:
    """Print the report; raise what decides the exit code."""
    if output.as_json:
        from ragcli.cli.jsonout import index_report

        print_json(index_report(report))
    elif not output.quiet:
        print_result("\n".join(summary(report)))
    if report.interrupted:
        raise KeyboardInterrupt("what was done is kept; ragcli index goes on from there")
    if strict and report.counts.failed:
        raise FilesFailed(
            f"{counted(report.counts.failed, 'file')} failed",
            "they are tried again by the next ragcli index; "
            "--exclude GLOB leaves out what cannot be read",
        )


def summary(report: IndexReport) -> list[str]:
    """The closing lines for people. The files seen are the sum of the five counts behind them."""
    counts = report.counts
    seen = counts.indexed + counts.unchanged + counts.moved + counts.skipped + counts.failed
    lines = [
        f"{counted(seen, 'file')} seen: {counts.indexed:,} indexed, "
        f"{counts.unchanged:,} unchanged, {counts.moved:,} moved, {counts.skipped:,} skipped, "
        f"{counts.failed:,} failed"
    ]
    if counts.removed:
        lines.append(f"{counted(counts.removed, 'file')} removed")
    if report.skipped:
        reasons = sorted(report.skipped.items(), key=lambda item: (-item[1], item[0]))
        lines.append("skipped: " + ", ".join(f"{number:,} {why}" for why, number in reasons))
    if report.dry_run:
        return [*lines, *_problems(report.problems), "dry run: nothing was written"]
    lines += _problems(report.problems)
    lines.append(
        f"{visible(_near(report.index))}: {counted(report.chunks, 'passage')} of "
        f"{counted(report.documents, 'document')}, {report.embedded:,} with vectors "
        f"({report.encoder}, {report.chunking}), {report.seconds:.1f} s"
    )
    missing = report.chunks - report.embedded
    if missing and report.encoder != "none":
        lines.append(f"{counted(missing, 'passage')} without a vector: ragcli index makes them")
    return lines


def _problems(problems: Sequence[Problem]) -> list[str]:
    """The first problems by file, a line for each kind in a file, and how many more there are."""
    if not problems:
        return []
    alike: dict[tuple[str, str], list[Problem]] = {}
    for problem in sorted(problems, key=lambda problem: problem.path):
        alike.setdefault((problem.path, problem.kind), []).append(problem)
    lines = [f"{counted(len(problems), 'problem')}:"]
    for (path, kind), found in islice(alike.items(), PROBLEMS_SHOWN):
        page = "" if found[0].page is None else f" p. {found[0].page}"
        others = f" and {len(found) - 1:,} more" if len(found) > 1 else ""
        lines.append(visible(f"  {path}{page}{others}: {found[0].message} ({kind})"))
    left = sum(map(len, islice(alike.values(), PROBLEMS_SHOWN, None)))
    if left:
        lines.append(f"  … and {left:,} more: ragcli inspect --problems")
    return lines


def _near(path: str) -> str:
    """`path` as seen from here, where it lies below."""
    relative = os.path.relpath(path)
    return path if relative.startswith(os.pardir) else relative
