"""`ragcli index`: the options, and how it ends.

Owns no part of indexing: `ragcli.indexing` does it and gives back a report. What is shown on the
way is `progress`'s, the closing lines are `reports.indexing`'s.
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from ragcli.cli import options
from ragcli.cli.output import Output, counted, print_json, print_result
from ragcli.cli.progress import IndexDisplay
from ragcli.errors import FilesFailed, IndexNotFound, UsageError
from ragcli.records import IndexReport, Settings

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

        with IndexDisplay(self.output) as display:
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
        from ragcli.indexing.watching import require_watcher

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
    from ragcli.store.origin import holds_home

    for folder in folders:
        if holds_home(folder):
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


def _finish(report: IndexReport, output: Output, *, strict: bool) -> None:
    """Print the report; raise what decides the exit code."""
    if output.as_json:
        from ragcli.cli.jsonout import index_report

        print_json(index_report(report))
    elif not output.quiet:
        from ragcli.cli.reports.indexing import summary

        print_result("\n".join(summary(report)))
    if report.interrupted:
        raise KeyboardInterrupt("what was done is kept; ragcli index goes on from there")
    if strict and report.counts.failed:
        raise FilesFailed(
            f"{counted(report.counts.failed, 'file')} failed",
            "they are tried again by the next ragcli index; "
            "--exclude GLOB leaves out what cannot be read",
        )
