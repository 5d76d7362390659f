"""How many texts in legacy encodings are decoded right, refused, or taken for something else.

    python benchmarks/decoding.py FOLDER… [--messages /usr/share/locale] [--list]

FOLDER holds files whose encoding is the name of their folder or their own: the `tests` of
chardet 5.2's sdist, the `test` of uchardet's sources. `--messages` adds texts made of the .mo
files of a Linux system (translations of programs) in the encodings of each language, 60 to 6,000
bytes long, which no detector was made with. Both are reported in two halves by a hash of the
name; the rules were written with the first half, and some lists of both, in view. A text is right
if it is, white space collapsed, what Python makes of it with the true codec, near if at most one
character in 200 is another; refused and replaced are in the ledger, mojibake is not.
"""

from __future__ import annotations

import argparse
import gettext
import hashlib
import random
import re
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from ragcli.corpus.source import Source
from ragcli.errors import UnreadableFile

CODECS = {
    **{"mac-centraleurope": "mac_latin2", "maccyrillic": "mac_cyrillic", "macroman": "mac_roman"},
    **{"mac-cyrillic": "mac_cyrillic", "uhc": "cp949", "tis-620": "cp874", "iso-8859-11": "cp874"},
    **{"ibm852": "cp852", "ibm855": "cp855", "ibm866": "cp866", "gb2312": "gb18030"},
    **{"iso-2022-jp": "iso2022_jp_2", "euc-kr": "cp949", "utf-8": "utf-8-sig"},
}
EQUALS = {
    **dict.fromkeys(("iso-8859-1", "ascii"), ("cp1252",)),
    **{"iso-8859-9": ("cp1254",), "big5": ("big5hkscs", "cp950"), "shift_jis": ("cp932",)},
    **{"gb18030": ("gbk",), "cp932": ("shift_jis",), "cp949": ("johab",)},
}
"""Codecs that differ in signs no reader would miss, or that the folder's name stands for."""

LANGUAGES = {
    "de fr es it pt pt_BR nl sv da nb fi ca": "cp1252 iso8859-15 mac_roman",
    "pl cs hu sk sl hr": "cp1250 iso8859-2 cp852 mac_latin2",
    "ro": "cp1250 iso8859-16 iso8859-2",
    "sq": "cp1252",
    "et": "cp1257 cp1252 iso8859-15",
    "lv lt": "cp1257 iso8859-13",
    "tr": "cp1254 iso8859-9",
    "ru uk bg": "cp1251 koi8-u iso8859-5 cp866 mac_cyrillic utf-16-le",
    "sr be mk": "cp1251",
    "el": "cp1253 iso8859-7",
    "he": "cp1255 iso8859-8",
    "ar fa": "cp1256 iso8859-6",
    "th": "cp874",
    "vi": "cp1258",
    "ja": "cp932 euc_jp iso2022_jp utf-16-le utf-16-be",
    "ko": "cp949 iso2022_kr johab utf-16-le",
    "zh_CN": "gb18030 gbk hz utf-16-le utf-16-be",
    "zh_TW zh_HK": "big5 big5hkscs",
    "eo mt": "iso8859-3",
    "hi ka": "utf-16-le utf-16-be",
    "ga cy": "iso8859-14",
}
SIZES = (60, 150, 400, 1500, 6000)

Case = tuple[str, bytes, list[str]]
"""Name, bytes, and the texts that are right."""


def from_folder(folder: Path) -> Iterator[Case]:
    for path in sorted(folder.glob("*/*")):
        named = [re.sub(r"(\d)-[a-z]+$", r"\1", path.parent.name.lower()), path.stem.lower()]
        for name in named:
            codecs = [CODECS.get(name, name), *EQUALS.get(name, ())]
            try:
                data = path.read_bytes()
                yield (
                    f"{path.parent.name}/{path.name}",
                    data,
                    [data.decode(codec, "replace") for codec in codecs],
                )
                break
            except (LookupError, IsADirectoryError):
                continue


def from_messages(root: Path) -> Iterator[Case]:
    for languages, encodings in LANGUAGES.items():
        for language in languages.split():
            messages = [*messages_of(root / language / "LC_MESSAGES")]
            if len(messages) < 40:
                continue
            for encoding in encodings.split():
                for size in SIZES:
                    name = f"{language}-{encoding}-{size}"
                    chosen = random.Random(name)
                    text = "# Notes\n\nThis project is about `code`.\n\n" * chosen.randrange(2)
                    while len(text) < size:
                        text += chosen.choice(messages) + "\n"
                    data = text.encode(encoding, "ignore")
                    text = data.decode(encoding)
                    if sum(map(str.isalpha, text)) * 2 >= size:
                        yield name, data, [text]


def messages_of(folder: Path) -> Iterator[str]:
    for path in sorted(folder.glob("*.mo")):
        with path.open("rb") as file:
            try:
                catalog = gettext.GNUTranslations(file)._catalog
            except (UnicodeDecodeError, OSError):  # a broken catalogue
                continue
        for original, message in catalog.items():
            if original and isinstance(message, str) and message != original:
                text = re.sub(r"%[-\d.$*]*[a-zA-Z]|[\u200e\u200f]", "", message).strip()
                if len(text) > 25 and not text.isascii():
                    yield text


def outcome(data: bytes, right: list[str]) -> str:
    source = Source("a.txt", data)
    try:
        text = collapsed(source.text())
    except UnreadableFile:
        return "refused"
    if any(text == collapsed(other) for other in right):
        return "right"
    other = collapsed(right[0])
    if len(other) == len(text):
        wrong = sum(a != b for a, b in zip(text, other, strict=True))
        if wrong <= max(2, len(text) // 200):
            return "near"
    return "replaced" if source.problems else "mojibake"


def collapsed(text: str) -> str:
    return " ".join(text.replace("\ufeff", "").split())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folders", type=Path, nargs="*")
    parser.add_argument("--messages", type=Path)
    parser.add_argument("--list", action="store_true", help="name what is not right")
    given = parser.parse_args()
    sets = [(str(folder), from_folder(folder)) for folder in given.folders]
    if given.messages:
        sets.append((str(given.messages), from_messages(given.messages)))
    print(
        "| set | half | texts | right | near | refused | replaced | mojibake | ms a text |\n"
        + "|---" * 9
        + "|"
    )
    for title, cases in sets:
        found: list[Counter[str]] = [Counter(), Counter()]
        spent = [0.0, 0.0]
        for name, data, right in cases:
            half = hashlib.sha1(name.encode()).digest()[0] & 1
            began = time.process_time()
            result = outcome(data, right)
            spent[half] += time.process_time() - began
            found[half][result] += 1
            if given.list and result != "right":
                print(f"{result}: {name}")
        for half, counts in enumerate(found):
            total = counts.total()
            cells = [counts[key] for key in ("right", "near", "refused", "replaced", "mojibake")]
            pace = 1000 * spent[half] / max(total, 1)
            print("|", " | ".join(map(str, (title, half, total, *cells, f"{pace:.1f}"))), "|")


if __name__ == "__main__":
    main()
