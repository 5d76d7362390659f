"""Where sentences end, by punctuation and the words around it; no model, no language setting.

Owns the rules and the lists of abbreviations (English, German, French, Spanish). Knows no
blocks, pages or sizes: `chunking` says in which stretch of text to look.

Every rule looks at a bounded number of characters, so the time is linear in the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

_ALWAYS = "。！？｡।॥۔።។။"
"""Full stops of scripts that use them for nothing else; no space need follow."""

_BLANK_LINE = re.compile(r"\n[^\S\n]*\n|\r[^\S\r\n]*\r")

# The stops, the quotes and brackets that close over them (in French after a space), footnote
# marks, and the gap; or a blank line. No look-ahead: a run that is rejected is not read again.
_CANDIDATE = re.compile(
    rf"[.!?…‽⁇⁈⁉؟։{_ALWAYS}]+"
    r"((?:[ \xa0\u202f]?[»›]|[\"'”’)\]}）」』】》〉*_`])*(?:\[\w{1,4}\])*)(\s*)"
    r"|" + _BLANK_LINE.pattern
)
_NEXT_WORD = re.compile(r"[\"'“”‘’«‹„¿¡(\[{*_`]{0,8}([^\W_]{0,16})")
_INITIALISM = re.compile(r"[^\W\d_]{1,2}(?:\.-?[^\W\d_]{1,2})+")
_LONGEST = 16
"""The most characters of a word that could be an abbreviation."""

_OPENING = "([{\"'“‘«‹„¿¡*_`"

# In lower case, without the last full stop.
_NEVER_LAST = frozenset(
    "mr mrs ms dr prof rev hon messrs mt gen col capt lt sgt maj cmdr gov sen rep pres st "
    "e.g i.e eg ie viz cf vs approx ca resp incl excl "
    "hr fr frl dipl ing bzw z.b d.h u.a z.t u.u o.ä vgl evtl ggf inkl zzgl bspw sog geb gest mio "
    "mrd tel mme mmes mlle mlles p.ex env av sra srta dra ud uds vd vds dña p.ej aprox".split()
)
_BEFORE_NUMBER = frozenset(
    "no nos nr nrn fig figs eq eqs sec secs sect ch chap chaps vol vols p pp pg pgs art arts abs "
    "bd tab abb kap ziff s ex ref refs app jan feb mar apr jun jul aug sep sept oct nov dec okt "
    "dez núm núms pág págs cap caps n rfc ver v".split()
)
_MAY_BE_LAST = frozenset("inc ltd co corp jr sr al bros dept univ est usw etc usf ed eds".split())
_ORDINAL_BEFORE = frozenset(
    "Januar Februar März April Mai Juni Juli August September Oktober November Dezember "
    "Jahrhundert Jahrhunderts Jahrtausend Auflage Weltkrieg Kapitel Klasse Platz Mal".split()
)
_STARTERS = frozenset(
    "A After All Also An And Any As At Because Before But By Each Even Every Finally For From He "
    "Her Here His How However I If In It Its Many Most Next No Now On Once One Only Or Our She "
    "Since So Some Such That The Their Then There These They This Those Thus To Under Until We "
    "What When Where Which While Who Why With You Your "
    "Das Dem Den Der Des Die Ein Eine Er Es Ich Im Sie Wir Und Aber Auch Bei Für Mit Nach Wenn "
    "Ce Cette Ces Elle Elles Il Ils Je La Le Les Nous Un Une Vous Dans Pour Mais Et "
    "El Los Las Este Esta En Con Pero Por Para Si Su Sus No Se Y".split()
)


def sentence_ends(text: str, start: int, end: int) -> Iterator[int]:
    """Offsets in [start, end], ascending, each right after a sentence of `text[start:end]`.

    An end lies behind the closing quotes and brackets and before the white space; `end` itself
    is given only where punctuation ends there.
    """
    begin = start
    for match in _CANDIDATE.finditer(text, start, end):
        closing = match[1]
        if closing is None:
            yield match.start()
        elif _is_end(text, begin, match, end):
            yield match.start(2)
        else:
            continue
        begin = match.end()


def _is_end(text: str, begin: int, match: re.Match[str], end: int) -> bool:
    """Whether the candidate ends the sentence that begins at `begin`."""
    stop, closing, gap = text[match.start()], match[1], match[2]
    if match.end() == end or stop in _ALWAYS or _BLANK_LINE.search(gap):
        return True
    if not gap:
        return stop in "!?" and _runs_on(text, match.start(), match.end())
    if text.startswith(". ", match.end()):
        return False  # an ellipsis with spaces, not yet at its end
    following = _NEXT_WORD.match(text, match.end(), end)
    word = following[1] if following else ""
    if word[:1].islower() and closing.strip("*_`"):
        return False
    if stop == "…" or text.startswith("..", match.start()):
        return not word[:1].islower()
    at_line_end = "\n" in gap or "\r" in gap
    return stop != "." or _full_stop_ends(text, begin, match.start(), word, at_line_end)


def _runs_on(text: str, stop: int, after: int) -> bool:
    """Whether sentences were pasted together, as in `Is it so?It is`."""
    capitalised = text[after].isupper() and text[after + 1 : after + 2].islower()
    return after == stop + 1 and capitalised and text[stop - 1 : stop].islower()


def _full_stop_ends(text: str, begin: int, stop: int, word: str, at_line_end: bool) -> bool:
    """Whether one full stop, with white space behind it and then `word`, ends a sentence."""
    lead = text[max(begin, stop - _LONGEST) : stop]
    token = lead.rsplit(None, 1)[-1].lstrip(_OPENING) if lead.strip() else ""
    lower = token.lower()
    if not token.strip("."):
        return word[:1].isupper()  # an ellipsis with spaces, at its end
    if (
        lower in _NEVER_LAST
        or (lower in _BEFORE_NUMBER and word[:1].isdigit())
        or (word in _ORDINAL_BEFORE and token.isdigit() and len(token) <= 2)
        or _is_list_number(token, lead[: -len(token)])
    ):
        return False
    initial = len(token) == 1 and token.isalpha()
    if initial or lower in _MAY_BE_LAST or _INITIALISM.fullmatch(token):
        new = at_line_end or word in _STARTERS or lower in ("etc", "usw")
        return new and not word[:1].islower()
    return True


def _is_list_number(token: str, lead: str) -> bool:
    """Whether `token` numbers an item: short, and at the beginning of a sentence or line."""
    if len(token) > 3 or not (token.isdigit() or len(token) == 1):
        return False
    return lead.endswith(("\n", "\r")) or not lead.strip(_OPENING + " \t\xa0")
