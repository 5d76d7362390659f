"""Text that plays the prompt's structure from inside a passage, made harmless and kept readable.

Owns what counts as a marker and where the one blank goes that breaks it. Knows no prompt and no
hits; what a terminal would obey is `visible`'s.

A marker is, whatever stands around it:
- one of our own fences, three dashes or more, with whatever mark: `--- passage 2f8225b4 ---` →
  `-- - passage 2f8225b4 ---`, `--- end of [1] …` → `-- - end of [1] …`;
- a special token of a model, of these kinds: anything between bars, as `<|name|>`, `<|name>` or
  `<name|>` (ChatML, Llama 3, Phi, Command-R, gpt-oss, Gemma 4, DeepSeek with its wide bars), with
  blanks too where the name is a role or has an underscore; without bars what begins, ends, fills,
  masks or separates, a tool's or a thought's, a picture's place, one of a numbered reserve:
  `<s>` `</s>` `<bos>` `<EOT>` `<mask>` `<start_of_turn>` `<BOS_TOKEN>` `<think>` `<reserved_7>` →
  `< s>`, `<<SYS>>` → `< <SYS>>`; in square brackets `[INST]` `[/INST]` `[CLS]` `[gMASK]` and
  Mistral's others → `[ INST]`;
- a role at the start of a line: `Human:`, `Assistant:`, `User:`, `System:` → `Human :`, and
  `### Instruction:`, `### Response:` and the like → `### Instruction :`.

The look-alikes of these are markers too: with zero-width characters inside, in full-width or
mathematical letters, with Cyrillic or Greek letters among them, with other bars, brackets, dashes.
So one blank is added per marker, nothing is taken away or replaced, and what the file says can be
told by leaving the blanks out. Of ordinary text this touches the HTML tags `<s>`, `</s>`, and
`<audio>` or `<video>` without attributes, prose about such tokens, and transcripts with these
roles. Markdown rules, headings, links, other tags, placeholders such as `<file_name>`, operators
(`<|`, `|>`, `<|>`), `[1]`, and `user:` in lower case stay.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import chain, pairwise

_INVISIBLE = (
    (0xAD, 0xAD), (0x34F, 0x34F), (0x61C, 0x61C), (0x115F, 0x1160), (0x17B4, 0x17B5),
    (0x180B, 0x180F), (0x200B, 0x200F), (0x202A, 0x202E), (0x2060, 0x206F), (0x3164, 0x3164),
    (0xFE00, 0xFE0F), (0xFEFF, 0xFEFF), (0xFFA0, 0xFFA0), (0x1BCA0, 0x1BCA3), (0xE0000, 0xE0FFF),
)  # fmt: skip
"""Characters that take no room: the first and the last of each range."""

_LOOK_ALIKES = {
    "|": "¦ǀ∣│┃❘❙⏐ꟾ︱︳￨",
    "_": "▁＿﹍﹎﹏",
    "<": "‹〈⟨⧼❮❬˂ᐸ﹤",
    ">": "›〉⟩⧽❯❭˃ᐳ﹥",
    "-": "‐‑‒–—―−﹘﹣➖─━⸺⸻",
    "[": "⁅⟦〚",
    "]": "⁆⟧〛",
    ":": "︰﹕ː∶꞉׃",
    "/": "⁄∕⧸╱",
    "#": "﹟♯",
}
_COMPATIBLE = ((0xFF01, 0xFF5E), (0x1D400, 0x1D7FF))
"""Full-width ASCII, and the letters and digits for mathematics."""

_LETTERS = {
    "a": "аɑα", "c": "сϲ", "d": "ԁ", "e": "еҽ", "g": "ɡ", "h": "һ", "i": "іι", "j": "ј", "k": "кκ",
    "l": "ӏ", "m": "м", "n": "ոп", "o": "оοօ", "p": "рρ", "q": "ԛ", "r": "г", "s": "ѕ", "t": "тτ",
    "u": "υս", "v": "νѵ", "w": "ԝ", "x": "хχ", "y": "уγ", "A": "АΑ", "B": "ВΒ", "C": "СϹ",
    "E": "ЕΕ", "G": "Ԍ", "H": "НΗ", "I": "ІΙӀ", "J": "Ј", "K": "КΚ", "M": "МΜ", "N": "Ν",
    "O": "ОΟ", "P": "РΡ", "S": "Ѕ", "T": "ТΤ", "U": "Ս", "V": "Ѵ", "X": "ХΧ", "Y": "ҮΥ", "Z": "Ζ",
}  # fmt: skip
"""Letters of other scripts that pass for Latin ones. Among markers alone: as what is cited, quoted
or counted, Russian is Russian."""
_AS_LATIN = {ord(c): plain for plain, characters in _LETTERS.items() for c in characters}

_LINE = "\n\r\v\f\x1c-\x1e\x85\u2028\u2029"
_SHORT = "bos eos bot eot eom sot sop eop eod pad unk mask sep cls end image audio video".split()
_SPECIAL = (
    f"/?(?:s|{'|'.join(_SHORT)}|{'|'.join(_SHORT).upper()}|[gs]MASK|think|tool_calls?"
    "|tool_response|tool_code|function_call|(?:start|end|begin)_of_[a-z]+|[a-z]+_soft_token"
    "|(?:extra|reserved|unused)(?:_id|_token|_special_token)?_?[0-9]+|[A-Z_]+_TOKEN)"
)
_BRACKETED = (
    f"/?(?:{'|'.join(_SHORT).upper()}|[gs]MASK|INST|SYS|SYSTEM|SYSTEM_PROMPT|AVAILABLE_TOOLS"
    "|TOOL_CALLS|TOOL_RESULTS|TOOL_CONTENT|ARGS|CALL_ID|THINK|MODEL_SETTINGS|IMG|IMG_BREAK|IMG_END"
    "|unused[0-9]+)"
)
_SPACED = r"[ \t]+(?:\w+_\w+|user|assistant|system|tool|end)[ \t]+"
_ROLE = "(?:Human|HUMAN|Assistant|ASSISTANT|User|USER|System|SYSTEM)"
_HEADED = "(?:Instructions?|Input|Response|Human|Assistant|User|System)"

# The blank goes behind the group that matched; what follows it is only looked at.
_MARKER = re.compile(
    rf"(<)(?=\|[\w.\-:/]+\|?>|\|{_SPACED}\|>|[\w.\-:/]+\|>|{_SPECIAL}>|<{_BRACKETED}>>)"
    rf"|(\[)(?={_BRACKETED}\])"
    r"|(?<=-)(-)(?=-[^\S\n]*(?:passage\b|end[^\S\n]+of[^\S\n]*\[))"
    rf"|(?:^|(?<=[{_LINE}]))([ \t>*]*{_ROLE})(?=:)"
    rf"|(\#\#\#[ \t\xa0]*(?i:{_HEADED}))(?=:)"
)


def neutralised(text: str) -> str:
    """`text` with a blank inside each marker, so that nothing in it is one any more.

    Ordinary text comes back as it is; doing it twice changes nothing more. Linear in the text.
    """
    plain = skeleton(text)
    cuts = [match.end() for match in _MARKER.finditer(plain.translate(_AS_LATIN))]
    if not cuts:
        return text
    if len(plain) != len(text):
        look = _look()
        kept = [i for i, character in enumerate(text) if look.get(ord(character)) != ""]
        cuts = [kept[cut] for cut in cuts]
    return " ".join(text[a:b] for a, b in pairwise([0, *cuts, len(text)]))


def skeleton(text: str) -> str:
    """`text` as it looks: without characters that take no room, look-alikes of ASCII as ASCII.

    Each other character stays, and none becomes two.
    """
    return text if text.isascii() else text.translate(_look())


@lru_cache(maxsize=1)
def _look() -> dict[int, str]:
    """What `str.translate` makes of a character beyond ASCII."""
    table = {
        ord(character): plain
        for plain, characters in _LOOK_ALIKES.items()
        for character in characters
    }
    for code in _codes(_COMPATIBLE):
        table[code] = unicodedata.normalize("NFKC", chr(code))
    table.update(dict.fromkeys(_codes(_INVISIBLE), ""))
    return table


def _codes(ranges: Iterable[tuple[int, int]]) -> Iterator[int]:
    return chain.from_iterable(range(first, last + 1) for first, last in ranges)
