"""What fuzzing begins with: a small sound file of each kind."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Callable, Mapping

MARKDOWN = """---
title: Ovens
---
# Care {#care}

Clean *it* [weekly](http://x/y "t").

- one
  1. two
     ```py
     x = 1
     ```

> quoted
> more

| a | b |
|---|:-:|
| 1 | 2 |

Setext
------
<details><summary>more</summary>
text
</details>
"""
RST = """=====
Ovens
=====

Care
----

.. code-block:: python

   x = 1

Literal::

    y = 2

1. one
2. `two <http://x>`_

+---+---+
| a | b |
+---+---+

=== ===
a   b
=== ===
1   2
=== ===
"""
PYTHON = '''"""Ovens."""

@dec(1)
class Oven(Base):
    """Hot."""

    async def heat(self, x: int) -> None:
        return x


function f(a) { return a }
'''
HTML = """<!DOCTYPE html><html><head><meta charset="utf-8"><title>Ovens</title></head><body>
<nav><a href="/">home</a></nav><main><h1>Care &amp; use</h1><p>Clean<br>it.</p>
<ul><li>one<ul><li>two</li></ul></li></ul><pre>a
 b</pre><table><tr><th>a</th><td>b</td></tr></table><p hidden>x</p>
<svg><text>s</text></svg></main><footer>end</footer></body></html>"""
XML = """<?xml version="1.0" encoding="utf-8"?>
<!DOCTYPE r [<!ENTITY e "x">]>
<r xmlns:a="urn:a"><head><title>Ovens</title></head><a:p>Clean &e; it <b>now</b>.</a:p>
<![CDATA[<p>raw</p>]]><item>&lt;p&gt;in &lt;a href="x"&gt;feed&lt;/a&gt;&lt;/p&gt;</item></r>"""
MAIL = """From: a@x.example
To: b@x.example
Subject: =?utf-8?q?Ov=C3=A9ns?=
Date: Mon, 1 Jan 2024 00:00:00 +0000
MIME-Version: 1.0
Content-Type: multipart/mixed; boundary="b1"

--b1
Content-Type: multipart/alternative; boundary="b2"

--b2
Content-Type: text/plain; charset=iso-8859-1
Content-Transfer-Encoding: quoted-printable

Clean=E9 it.
--b2
Content-Type: text/html; charset=utf-8
Content-Transfer-Encoding: base64

PHA+Q2xlYW4gaXQ8L3A+
--b2--
--b1
Content-Type: application/pdf; name="a.pdf"
Content-Disposition: attachment; filename="a.pdf"

xxxx
--b1
Content-Type: message/rfc822

Subject: inner

body
--b1--
"""
NOTEBOOK = json.dumps({
    "nbformat": 4, "metadata": {"kernelspec": {"language": "python"}},
    "cells": [
        {"cell_type": "markdown", "source": ["# Ovens\n", "Clean it."]},
        {"cell_type": "code", "source": "x = 1", "outputs": [
            {"output_type": "stream", "text": ["1\n"]},
            {"output_type": "execute_result", "data": {"text/plain": "2", "image/png": "iVBO"}},
            {"output_type": "error", "ename": "E", "evalue": "bad", "traceback": []},
        ]},
        {"cell_type": "heading", "level": 2, "source": "Care"},
        {"cell_type": "raw", "source": "raw"},
    ],
})  # fmt: skip
JSONL = """{"_id": "1", "title": "Ovens", "text": "Clean it.\\n\\nWeekly."}
{"id": 2, "body": ["a", {"b": "c"}], "metadata": {}}
{"key": "3", "contents": "\\ud83d\\ude00"}
"""
CSV = 'id,title,note\n1,Ovens,"clean\n""it"""\n2;Care;\n\n3,"x",y\n'
PDF = b"""%PDF-1.4
1 0 obj
<</Type/Catalog/Pages 2 0 R/PageLabels<</Nums[0<</S/D>>]>>>>
endobj
2 0 obj
<</Type/Pages/Kids[3 0 R]/Count 1>>
endobj
3 0 obj
<</Type/Page/Parent 2 0 R/MediaBox[0 0 200 200]/Contents 4 0 R/Resources<</Font<</F 5 0 R>>>>>>
endobj
4 0 obj
<</Length 62>>
stream
BT /F 12 Tf 20 100 Td (Clean the oven) Tj 0 -14 Td [(w) 9 (eekly)] TJ ET
endstream
endobj
5 0 obj
<</Type/Font/Subtype/Type1/BaseFont/Helvetica/Encoding/WinAnsiEncoding>>
endobj
trailer
<</Root 1 0 R/Size 6/Info<</Title(Ovens)>>>>
startxref
0
%%EOF
"""
PLAIN = (
    "Ovens\n\n* one\n  - two\n\n1) three\n\n[section]\nkey = value\n== Care ==\n.SH NAME\nend.\n"
)
RTF = r"""{\rtf1\ansi\ansicpg1252{\fonttbl{\f0 Arial;}}{\stylesheet{\s1 heading 1;}}
{\info{\title Ovens}}\s1 Care\par\pard Clean\'e9 it \u8364?\tab now.\line{\*\x y}\par
\trowd\intbl a\cell b\cell\row{\pict 89504e47}{\footnote n}\bin3 abc}"""
MBOX = f"From a@x.example Mon Jan  1 00:00:00 2024\n{MAIL}\n\nFrom b\nSubject: two\n\n>From x\n"
QUESTIONS = """{"id": "a", "question": "How?", "relevant": ["guide.md:10-24", "a.pdf#page=3"]}
{"question": "Why?", "answers": {"text": ["because"]}, "kind": "why"}
{"question": "What?", "answerable": false}
{"_id": 4, "text": "Who?", "relevant": [{"path": "a.md", "lines": [1, 2]}]}
"""
QRELS = "query-id\tcorpus-id\tscore\n1\ta\t1\n1\tb\t0\n2 0 c 2.0\n"
IGNORE = "*.log\n!keep.log\n/build/\ndocs/**/x\n[a-c]?.txt\n\\#x\n**/y/\nz \\ \n"


def _zipped(members: Mapping[str, str]) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as packed:
        for name, text in members.items():
            packed.writestr(name, text)
    return stream.getvalue()


def odt() -> bytes:
    """An OpenDocument text."""
    return _opendocument(
        '<t:h t:outline-level="1">Ovens</t:h><t:p>Clean<t:s/>it<t:line-break/>now<t:note><t:p>n'
        "</t:p></t:note></t:p><t:list><t:list-item><t:p>one</t:p></t:list-item></t:list>"
        "<t:table><t:table-row><t:table-cell><t:p>a</t:p></t:table-cell></t:table-row></t:table>",
        "text",
    )


def ods() -> bytes:
    """An OpenDocument spreadsheet."""
    return _opendocument(
        '<t:table t:name="Costs"><t:table-row><t:table-cell><t:p>a</t:p></t:table-cell>'
        '<t:table-cell t:number-columns-repeated="3"><t:p>b</t:p></t:table-cell></t:table-row>'
        '<t:table-row t:number-rows-repeated="2"><t:table-cell t:value="1"><t:p>1</t:p>'
        "</t:table-cell></t:table-row></t:table>",
        "spreadsheet",
    )


def odp() -> bytes:
    """An OpenDocument presentation."""
    return _opendocument(
        '<t:page t:name="One"><t:frame t:class="title"><t:text-box><t:p>Ovens</t:p></t:text-box>'
        "</t:frame><t:notes><t:p>say it</t:p></t:notes></t:page>",
        "presentation",
    )


def _opendocument(body: str, kind: str) -> bytes:
    return _zipped({
        "content.xml": f'<o:d xmlns:o="urn:o" xmlns:t="urn:t"><o:body><o:{kind}>{body}</o:{kind}>'
        "</o:body></o:d>",
        "meta.xml": '<m xmlns:dc="http://purl.org/dc/elements/1.1/"><dc:title>Ovens</dc:title></m>',
    })  # fmt: skip


def epub() -> bytes:
    """A book of two chapters."""
    return _zipped({
        "META-INF/container.xml": '<c><rootfile full-path="O/p.opf"/></c>',
        "O/p.opf": '<package><title>Ovens</title><item id="a" href="a.xhtml"'
        ' media-type="application/xhtml+xml"/><item id="b" href="b%20b.html" properties="x"'
        ' media-type="text/html"/><spine><itemref idref="a"/><itemref idref="b"/></spine>'
        "</package>",
        "O/a.xhtml": f'<html xmlns="http://www.w3.org/1999/xhtml"><body>{HTML[40:]}</body></html>',
        "O/b b.html": HTML,
    })  # fmt: skip


def docx() -> bytes:
    """A Word document with headings, a list, a table."""
    import docx

    document = docx.Document()
    document.add_heading("Ovens", 1)
    document.add_paragraph("Clean it.", style="List Bullet")
    document.add_table(rows=2, cols=2).cell(0, 0).text = "part"
    stream = io.BytesIO()
    document.save(stream)
    return stream.getvalue()


def pptx() -> bytes:
    """A slide with a title, a text and notes."""
    import pptx

    presentation = pptx.Presentation()
    slide = presentation.slides.add_slide(presentation.slide_layouts[1])
    slide.shapes.title.text = "Ovens"
    slide.placeholders[1].text = "Clean\nit"
    slide.notes_slide.notes_text_frame.text = "say it"
    stream = io.BytesIO()
    presentation.save(stream)
    return stream.getvalue()


def xlsx() -> bytes:
    """A sheet with texts, a number, a formula and a date."""
    import datetime

    import openpyxl

    workbook = openpyxl.Workbook()
    for row in (["a", "b"], ["Clean", 2], ["=A2", datetime.date(2024, 1, 1)]):
        workbook.active.append(row)
    stream = io.BytesIO()
    workbook.save(stream)
    return stream.getvalue()


SEEDS: dict[str, Callable[[], bytes]] = {
    **{
        name: (lambda text=text: text.encode())  # type: ignore[misc]
        for name, text in {
            "a.md": MARKDOWN, "a.rst": RST, "a.py": PYTHON, "a.html": HTML, "a.xml": XML,
            "a.eml": MAIL, "a.ipynb": NOTEBOOK, "a.jsonl": JSONL, "a.csv": CSV, "a.txt": PLAIN,
            "a.json": NOTEBOOK, "a.rtf": RTF, "a.mbox": MBOX, "questions": QUESTIONS,
            "qrels": QRELS, ".gitignore": IGNORE,
        }.items()
    },
    "a.pdf": lambda: PDF, "a.odt": odt, "a.ods": ods, "a.odp": odp, "a.epub": epub,
    "a.docx": docx, "a.pptx": pptx, "a.xlsx": xlsx,
}  # fmt: skip
"""The kinds, each under a file name of it; the last three need the office extra."""
