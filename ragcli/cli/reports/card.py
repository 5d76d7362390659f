"""The index card as lines."""

from __future__ import annotations

from ragcli.cli.output import counted
from ragcli.cli.reports.ledger import moment
from ragcli.cli.reports.tables import aligned, cell, file_size, histogram
from ragcli.inspection.card import Card, Pending
from ragcli.inspection.spread import Bin, Spread

REASONS = 4
"""So many reasons why files are left out are told, the commonest: the ledger has them all."""


def lines(card: Card) -> list[str]:
    """The facts, then what there is of each kind, then how long the passages are."""
    facts = [
        ("index", f"{cell(card.index)}, {_history(card)}"),
        ("root", "not there" if card.root is None else cell(card.root)),
        ("encoder", _encoder(card)),
        ("chunking", cell(card.chunking)),
        ("settings", ", ".join(f"{each.name} {_value(each.value)}" for each in card.settings)),
        ("files", _files(card)),
        ("documents", _documents(card)),
        ("passages", _passages(card)),
        ("problems", _problems(card)),
        ("to do", _pending(card.pending, card.pending_missing)),
        ("on disk", _disk(card)),
    ]
    found = aligned(["", ""], [fact for fact in facts if fact[1]], left=(0,))
    if len(card.kinds) > 1:
        kinds = [(kind.kind, kind.files, kind.documents, kind.chunks) for kind in card.kinds]
        heads = ["kind", "files", "documents", "passages"]
        found += ["", *aligned(heads, kinds, left=(0,), ragged=False)]
    return found + _sizes(card)


def _history(card: Card) -> str:
    made = "made at a time unknown" if card.made is None else f"made {moment(card.made)}"
    by = "" if card.made_by is None else f" by ragcli {cell(card.made_by)}"
    changed = "" if card.changed is None else f", changed {moment(card.changed)}"
    number = "unknown" if card.generation is None else f"{card.generation:,}"
    return f"{made}{by}{changed}, generation {number}"


def _encoder(card: Card) -> str:
    name = cell(card.encoder)
    if card.encoder == "none":
        return "none: questions are answered by words alone"
    size = "" if card.dimensions is None else f", {counted(card.dimensions, 'dimension')}"
    print_ = "no vectors yet" if card.fingerprint is None else f"fingerprint {card.fingerprint}"
    return f"{name}{size}, {cell(print_)}"


def _value(value: object) -> str:
    if isinstance(value, tuple):
        return " ".join(map(cell, value))
    if isinstance(value, bool):
        return "yes" if value else "no"
    return cell(value)


def _files(card: Card) -> str:
    parts = []
    for state, number in card.files.items():
        reasons = [row for row in card.states if row.state == state and row.reason]
        told = [f"{cell(row.reason)} {row.files:,}" for row in reasons[:REASONS]]
        if len(reasons) > REASONS:
            told.append(f"for {len(reasons) - REASONS:,} other reasons more")
        why = ", ".join(told)
        if number or state == "indexed":
            parts.append(f"{number:,} {state}" + (f" ({why})" if why else ""))
    return ", ".join(parts)


def _documents(card: Card) -> str:
    if not card.documents:
        return "0"
    told = ", ".join(
        f"{each.language or 'language not told'} {each.documents:,}" for each in card.languages
    )
    only = card.kinds[0].kind if len(card.kinds) == 1 else None
    return f"{card.documents:,}" + (f" {cell(only)}" if only else "") + f" ({told})"


def _passages(card: Card) -> str:
    if not card.chunks or card.encoder == "none":
        return f"{card.chunks:,}"
    if card.embedded == card.chunks:
        return f"{card.chunks:,}, all with vectors"
    # Rounded down: 100 % is said of all alone.
    share = int(1000 * card.embedded_share) / 10
    return f"{card.chunks:,}, {card.embedded:,} with vectors ({share:.1f} %)"


def _problems(card: Card) -> str:
    if not card.problems:
        return "none"
    kinds = ", ".join(f"{cell(each.kind)} {each.count:,}" for each in card.problems_by_kind)
    return f"{card.problems:,} ({kinds}): ragcli inspect --problems"


def _pending(pending: Pending | None, missing: str | None) -> str:
    if pending is None:
        return f"cannot be told: {cell(missing)}"
    parts = [
        f"{number:,} {name}"
        for name, number in (
            ("new", pending.new),
            ("changed", pending.changed),
            ("failed before", pending.retried),
            ("moved", pending.moved),
            ("gone", pending.gone),
        )
        if number
    ]
    return f"ragcli index   ({', '.join(parts)})" if parts else "nothing, the files are as indexed"


def _disk(card: Card) -> str:
    size = card.bytes
    parts = {
        "catalogue": size.catalogue,
        "postings": size.postings,
        "vectors": size.vectors,
        "encoder": size.encoder,
        "other": size.other,
    }
    told = ", ".join(f"{name} {file_size(number)}" for name, number in parts.items() if number)
    return f"{file_size(size.total)} ({told})"


def _sizes(card: Card) -> list[str]:
    if card.words is None:
        return []
    sample = f" of {card.sampled:,} passages, evenly spread" if card.sampled else ""
    rows = [("words", *_numbers(card.words))]
    if card.tokens is not None:
        rows.append(("tokens", *_numbers(card.tokens)))
    heads = [f"size{sample}", "least", "10 %", "median", "90 %", "largest", "mean"]
    table = aligned(heads, rows, left=(0,), ragged=False)
    if card.tokens is None and card.encoder != "none":
        table.append(f"tokens cannot be counted: {cell(card.tokens_missing)}")
    bars = histogram([(_label(each), each.count) for each in card.words_histogram])
    return ["", *table, "", "words", *bars]


def _numbers(spread: Spread) -> list[str]:
    quantiles = (spread.least, spread.tenth, spread.median, spread.ninetieth, spread.largest)
    return [*(f"{value:,.0f}" for value in quantiles), f"{spread.mean:,.1f}"]


def _label(each: Bin) -> str:
    return f"{each.low:,}+" if each.high is None else f"{each.low:,}–{each.high - 1:,}"
