"""Files made to cost whoever reads them: bombs, depths, widths, texts that patterns choke on.

`FILES` has a builder for each name. All are small on disk, or sparse, but for the long cells.
"""
# ruff: noqa: PLW0108 - a bound method would build its text at once

from __future__ import annotations

import io
import json
import struct
import zipfile
import zlib
from collections.abc import Callable, Mapping

MB = 1 << 20
LAUGHS = (
    '<?xml version="1.0"?><!DOCTYPE z [<!ENTITY a0 "ha">'
    + "".join(f'<!ENTITY a{n} "{f"&a{n - 1};" * 10}">' for n in range(1, 12))
    + "]>"
)
SECRET = "root:x:0:0"


def archive(members: Mapping[str, str | bytes]) -> bytes:
    """A ZIP file of these members."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as packed:
        for name, content in members.items():
            packed.writestr(name, content)
    return stream.getvalue()


def zeros(size: int) -> bytes:
    """Blanks: what deflates best and is sound inside any XML."""
    return b" " * size


def odt(body: str, declaration: str = "") -> bytes:
    """An OpenDocument text with this body."""
    text = f"<o:body><o:text><o:p>{body}</o:p></o:text></o:body>"
    return archive({"content.xml": f'{declaration}<o:d xmlns:o="urn:o">{text}</o:d>'})


def lying(data: bytes, size: int = 10) -> bytes:
    """The same archive, whose directory and headers say `size` for each unpacked member."""
    changed = bytearray(data)
    for mark, at in ((b"PK\x01\x02", 24), (b"PK\x03\x04", 22)):
        place = changed.find(mark)
        while place >= 0:
            struct.pack_into("<I", changed, place + at, size)
            place = changed.find(mark, place + 4)
    return bytes(changed)


def overlapping(names: int, size: int) -> bytes:
    """Many members in the directory that all are the same compressed bytes (Fifield 2019)."""
    content = zeros(size)
    packed = zlib.compress(content, 9)[2:-4]
    facts = (zlib.crc32(content), len(packed), size)
    name = b"content.xml"
    local = struct.pack("<4s5H3I2H", b"PK\x03\x04", 20, 0, 8, 0, 0, *facts, len(name), 0) + name
    entries = b""
    for number in range(names):
        inner = name if not number else b"m%010d" % number
        entries += struct.pack(
            "<4s6H3I5H2I", b"PK\x01\x02", 20, 20, 0, 8, 0, 0, *facts, len(inner), 0, 0, 0, 0, 0, 0
        )
        entries += inner
    start = len(local) + len(packed)
    end = struct.pack("<4s4H2IH", b"PK\x05\x06", 0, 0, names, names, len(entries), start, 0)
    return local + packed + entries + end


def mail_in_mail(depth: int) -> bytes:
    """Multiparts inside multiparts."""
    opening = "".join(
        f'Content-Type: multipart/mixed; boundary="b{n}"\n\n--b{n}\n' for n in range(depth)
    )
    return f"Subject: deep\nMIME-Version: 1.0\n{opening}\nneedle\n".encode()


def mail_of_parts(parts: int) -> bytes:
    """A flat message of very many parts."""
    part = "--b\nContent-Type: text/plain\n\nword\n"
    head = 'Subject: wide\nContent-Type: multipart/mixed; boundary="b"\n\n'
    return f"{head}{part * parts}--b--".encode()


def nested_zip(depth: int) -> bytes:
    """A ZIP in a ZIP in a ZIP."""
    data = archive({"content.xml": zeros(10 * MB)})
    for _ in range(depth):
        data = archive({"inner.zip": data, "content.xml": "<a/>"})
    return data


def external(body: str) -> str:
    """XML whose entities are files of the machine and addresses of the network."""
    return (
        '<?xml version="1.0"?><!DOCTYPE z SYSTEM "http://127.0.0.1:9/z.dtd" ['
        '<!ENTITY f SYSTEM "file:///etc/passwd"><!ENTITY n SYSTEM "http://127.0.0.1:9/x">'
        '<!ENTITY % p SYSTEM "http://127.0.0.1:9/p.dtd">%p;]>'
        f"{body}"
    )


FILES: dict[str, Callable[[], bytes]] = {
    "nested.odt": lambda: nested_zip(5),
    "big_member.odt": lambda: archive({"content.xml": zeros(250 * MB)}),
    "lying.odt": lambda: lying(archive({"content.xml": b"<a>" + zeros(300 * MB) + b"</a>"})),
    "overlap.odt": lambda: overlapping(3000, 20 * MB),
    "lying.epub": lambda: lying(archive({
        "META-INF/container.xml": '<c><rootfile full-path="p"/></c>', "p": zeros(300 * MB),
    })),
    "same_chapter.epub": lambda: archive({
        "META-INF/container.xml": '<c><rootfile full-path="p"/></c>',
        "p": '<p><item id="a" href="a" media-type="text/html"/>' + '<itemref idref="a"/>' * 20000
        + "</p>",
        "a": "<p>" + "word " * 20000,
    }),
    "lying.docx": lambda: lying(archive({
        "[Content_Types].xml": "<Types/>", "word/document.xml": zeros(300 * MB),
    })),
    "lying.pptx": lambda: lying(archive({"ppt/presentation.xml": zeros(300 * MB)})),
    "lying.xlsx": lambda: lying(archive({"xl/workbook.xml": zeros(300 * MB)})),
    "laughs.xml": lambda: f"{LAUGHS}<z>kept &a11;</z>".encode(),
    "laughs.odt": lambda: odt("kept &a11;", LAUGHS),
    "laughs.html": lambda: f"{LAUGHS}<html><body><p>kept &a11;</p></body></html>".encode(),
    "laughs.xhtml": lambda: (
        f'{LAUGHS}<html xmlns="http://www.w3.org/1999/xhtml"><body><p>kept &a11;</p></body></html>'
    ).encode(),
    "quadratic.xml": lambda: (
        f'<!DOCTYPE z [<!ENTITY a "{"a" * 100_000}">]><z>kept {"&a;" * 100_000}</z>'
    ).encode(),
    "external.xml": lambda: external("<z>kept &f; &n;</z>").encode(),
    "external.odt": lambda: odt("kept &f;", external("")),
    "external.xhtml": lambda: external(
        '<html xmlns="http://www.w3.org/1999/xhtml"><body><p>kept &f;</p></body></html>'
    ).encode(),
    "deep.html": lambda: b"<div>" * 100_000 + b"kept" + b"</div>" * 100_000,
    "deep_inline.html": lambda: b"<b><a>" * 50_000 + b"kept",
    "deep_list.html": lambda: b"<ul><li>" * 50_000 + b"kept",
    "deep_table.html": lambda: b"<table><tr><td>" * 20_000 + b"kept",
    "wide.html": lambda: b"<p>kept<br>" + b"<i>a</i>" * 1_000_000,
    "tables.html": lambda: b"<table><tr><td>kept</td></tr></table>" * 100_000,
    "headers.html": lambda: b"<header><div>" * 30_000 + b"kept",
    "attributes.html": lambda: b"<p " + b" ".join(b"a%d=1" % n for n in range(300_000)) + b">kept",
    "deep.xml": lambda: b"<a>" * 100_000 + b"kept" + b"</a>" * 100_000,
    "mixed.xml": lambda: b"<r>kept" + b"<a>x</a>" * 1_000_000 + b"</r>",
    "escaped.xml": lambda: b"<r>kept " + b"&lt;b&gt;" * 500_000 + b"</r>",
    "many_escaped.xml": lambda: b"<r>" + b"<p>kept &lt;b&gt;</p>" * 200_000 + b"</r>",
    "deep.json": lambda: b"[" * 100_000 + b"]" * 100_000,
    "deep.jsonl": lambda: b'{"text":' + b"[" * 100_000 + b"]" * 100_000 + b'}\n{"text": "kept"}\n',
    "deep.ipynb": lambda: b'{"cells":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    "many_lines.jsonl": lambda: b'{"a":1}\n' * 1_000_000,
    "bad_lines.jsonl": lambda: b"x\n" * 5_000_000,
    "cells.ipynb": lambda: json.dumps(
        {"cells": [{"cell_type": "markdown", "source": "# kept\n\n- x\n"}] * 200_000}
    ).encode(),
    "number.jsonl": lambda: b'{"id": ' + b"9" * 5_000_000 + b', "text": "kept"}\n',
    "million_columns.csv": lambda: b",".join(b"c%d" % n for n in range(1_000_000)) + b"\n1,2,3\n",
    "million_columns_filled.csv": lambda: (b",".join([b"kept"] * 1_000_000) + b"\n") * 5,
    "one_cell.csv": lambda: b'id,text\n1,"' + b"kept word " * (6 * MB) + b'"\n',
    "open_quote.csv": lambda: b'id,text\n1,"' + b"kept,\n" * MB,
    "quotes.csv": lambda: b"id,text\n" + b'1,"""""""""""""\n' * MB,
    "deep.eml": lambda: mail_in_mail(10_000),
    "wide.eml": lambda: mail_of_parts(100_000),
    "boundary.eml": lambda: (
        b'Content-Type: multipart/mixed; boundary="b"\n\n' + b"--b\n" * 500_000
    ),
    "headers.eml": lambda: b"".join(b"X-%d: a\n" % n for n in range(300_000)) + b"\nkept\n",
    "words.eml": lambda: b"Subject: " + b"=?utf-8?q?a?= " * 200_000 + b"\n\nkept\n",
    "long_header.eml": lambda: b"To: " + b"a@b.example, " * 300_000 + b"\n\nkept\n",
    "quotes.md": lambda: b">" * MB + b" kept\n",
    "brackets.md": lambda: b"[" * MB + b" kept\n",
    "bracket_heading.md": lambda: b"# " + b"[" * MB + b"\nkept\n",
    "link_heading.md": lambda: b"# " + b"[a](" * (MB // 4) + b"\nkept\n",
    "tag_heading.md": lambda: b"# " + b"<a " * (MB // 3) + b"\nkept\n",
    "brace_heading.md": lambda: b"# " + b"{.a " * (MB // 4) + b"\nkept\n",
    "blank_brace_heading.md": lambda: b"# x" + b" \t" * (MB // 2) + b"{\nkept\n",
    "hashes.md": lambda: b"# " + b"# " * (MB // 2) + b"x\nkept\n",
    "nested_items.md": lambda: b"- " * (MB // 2) + b"kept\n",
    "indents.md": lambda: b"".join(b" " * (2 * n) + b"- a\n" for n in range(3000)) + b"kept\n",
    "rules.md": lambda: b"- " * (MB // 2) + b"x\n",
    "rule_spaces.md": lambda: (b"*" + b" " * 1000) * 1000 + b"x\n",
    "table_rule.md": lambda: b"|a|\n|" + b" :-" * (MB // 3) + b"x\n",
    "table_spaces.md": lambda: b"a|\n|" + b"-" + b" " * MB + b"x\n",
    "fences.md": lambda: b"`" * MB + b"\n" + b"kept\n",
    "fence_body.md": lambda: b"```\n" + b"``` x\n" * (MB // 6),
    "front.md": lambda: b"---\na: 1\n" + b"---x\n" * (MB // 5),
    "html_heading.md": lambda: b"<h1 " + b"a" * MB + b"\n<h1>" + b"</h1" * (MB // 5),
    "tabs.md": lambda: b"\t" * MB + b"kept\n",
    "adornments.rst": lambda: b"=" * MB + b"\nkept\n",
    "borders.rst": lambda: b"=== " * (MB // 4) + b"x\n",
    "many_borders.rst": lambda: b"=== ===\na b\n\n" * (MB // 13),
    "roles.rst": lambda: b":a" * (MB // 2) + b"\n" + b"=" * MB + b"\n",
    "targets.rst": lambda: b"`a" * (MB // 2) + b"\n" + b"=" * (MB + 9) + b"\n",
    "target_blanks.rst": lambda: b"`a" + b" " * MB + b"\n" + b"=" * (MB + 9) + b"\n",
    "directives.rst": lambda: b".. " + b"|" * MB + b"\n",
    "literals.rst": lambda: b"a::\n\n" * (MB // 5),
    "fields.rst": lambda: b":" + b"a " * (MB // 2) + b"\n",
    "decorators.py": lambda: b"@x\n" * (MB // 3) + b"kept\n",
    "modifiers.py": lambda: b"public " * (MB // 7) + b"\n",
    "modifier_blanks.py": lambda: b"public" + b" \t" * (MB // 2) + b"\n",
    "receiver.go": lambda: b"func (" + b"(" * MB + b"\n",
    "many_receivers.go": lambda: b"func (a) " * (MB // 9) + b"\n",
    "dots.py": lambda: b"class " + b"a." * (MB // 2) + b"\n",
    "stanzas.py": lambda: b"\n\n".join([b"  x"] * (MB // 5)),
    "blanks.txt": lambda: b" \n" * (MB // 2) + b"kept",
    "spaces.txt": lambda: b" " * MB + b"kept" + b" " * MB,
    "one_word.txt": lambda: b"a" * (8 * MB),
    "stops.txt": lambda: b"." * MB + b"kept" + b". " * MB,
    "quotes.txt": lambda: b'."' * MB,
    "footnotes.txt": lambda: b".[1]" * (MB // 4),
    "initials.txt": lambda: b"A." * MB,
    "newlines.txt": lambda: b"a\n" * MB,
    "marks.txt": lambda: ("a" + "\u0301" * MB).encode(),
    "joiners.txt": lambda: "\u200d".join(["👩"] * (MB // 7)).encode(),
    "han.txt": lambda: ("漢" * (2 * MB)).encode(),
    "thai.txt": lambda: ("ก" * (2 * MB)).encode(),
    "underscores.txt": lambda: b"a_" * (2 * MB),
    "camel.txt": lambda: b"aB" * (2 * MB),
    "section.ini": lambda: b"[" * MB + b"\n" + b"[a" * (MB // 2) + b"\n",
    "stars.org": lambda: b"* " * (MB // 2) + b"\n",
    "equals.mediawiki": lambda: b"= a" + b" =" * (MB // 2) + b"x\n",
    "equals_many.mediawiki": lambda: b"=a" + b"=" * MB + b"x\n",
    "high_bytes.txt": lambda: b"\xe9" * (4 * MB),
    "latin_words.txt": lambda: b"caf\xe9 " * MB,
    "mixed_bytes.txt": lambda: bytes(range(32, 127)) * 9000 + b"\xe9\xff\xfe<" * 100_000,
    "lone_lt.txt": lambda: b"\xe9<" * MB,
    "iso2022.txt": lambda: b"\x1b$B" * MB,
    "charset.html": lambda: b"<meta " * 200_000 + b"kept",
    "references.html": lambda: b"<p>kept " + b"&#" * MB,
    "reference_digits.html": lambda: b"<p>kept &#" + b"9" * MB + b";",
    "entity.xhtml": lambda: (
        b'<html xmlns="http://www.w3.org/1999/xhtml"><body>kept ' + b"&a" * MB + b"</body></html>"
    ),
    "declaration.xml": lambda: b"<?xml" * (MB // 5) + b"<a>kept</a>",
    "style.html": lambda: b"<p style='" + b"display" + b" " * MB + b"x'>kept",
    "permalinks.html": lambda: b"<h1>kept " + " ¶".encode() * (MB // 3) + b"x</h1>",
    "permalink_blanks.html": lambda: b"<h1><pre>kept" + b" " * MB + b"x</pre></h1>",
}  # fmt: skip
