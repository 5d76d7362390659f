"""Readers whose text is the file itself: plain text, Markdown, reStructuredText, code."""

from __future__ import annotations

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from ragcli.corpus.readers import read_document
from ragcli.corpus.source import Source
from ragcli.errors import UnreadableFile
from ragcli.records import Block, Document

SUFFIXES = [".txt", ".org", ".mediawiki", ".man", ".toml", ".md", ".rst", ".py", ".go", ".json", ""]

PIECES = (
    "# ## #### === --- ``` ~~~ > - * + 1. 10) | |---| :-- :: .. >>> ... word Word. über 漢字 <!--"
    " --> <div> </div> <pre> </pre> <script> def class fn func [section] @decorator {#id} {} __ **"
    " \\ title: :field: =====  === \x00 \x0b \u2028 \ufeff !!! +--+ .SH * *** [a](b)"
).split(" ")
MARKUP = st.lists(
    st.one_of(
        st.sampled_from([*PIECES, " ", "    ", "\t", "\n", "\n\n", "\r\n", "\r"]),
        st.text(max_size=3),
    ),
    max_size=60,
).map("".join)


def read(text: str, suffix: str) -> Document:
    (document,) = read_document(Source(f"file{suffix}", text.encode("utf-8")))
    return document


def shown(document: Document) -> list[tuple[str, tuple[str, ...], str]]:
    return [(b.kind, b.headings, document.text[b.start : b.end]) for b in document.blocks]


def check_blocks(text: str, blocks: tuple[Block, ...]) -> None:
    """Blocks are in order, do not overlap, are not blank and cover all that is not blank."""
    end = 0
    for block in blocks:
        assert end <= block.start < block.end <= len(text)
        assert text[end : block.start].strip() == ""
        assert text[block.start : block.end].strip() != ""
        end = block.end
    assert text[end:].strip() == ""


@pytest.mark.parametrize("suffix", SUFFIXES)
@given(text=MARKUP)
@example("\n\n    indented\n")
@example("a\n=\n- b\n\n      c\n")
@example("#######:field:\x00\n")
@example("####:field:\u0800\x00\n")
@settings(max_examples=150)
def test_blocks_cover_any_text(suffix: str, text: str) -> None:
    try:
        document = read(text, suffix)
    except UnreadableFile as error:
        assert error.kind in ("binary", "minified")
        return
    assert document.text == text.removeprefix("\ufeff")
    assert document.line_anchors is None
    check_blocks(document.text, document.blocks)
    assert (("empty", "no text in this file", None) in document.problems) == (
        not document.text.strip()
    )


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_plain_text(end: str) -> None:
    lines = ["", "First paragraph", "goes on.", "", "", "  - one", "    more", "  - two", "", "End"]
    document = read(end.join(lines), ".txt")
    texts = [document.text[b.start : b.end].split(end) for b in document.blocks]
    if end != "\r":  # lists are told in files of this century
        assert [b.kind for b in document.blocks] == ["paragraph", "item", "item", "paragraph"]
        assert texts[1] == ["- one", "    more"]
    assert texts[0] == ["First paragraph", "goes on."]
    assert texts[-1] == ["End"]


@pytest.mark.parametrize(
    ("suffix", "text"),
    [
        (".org", "* One\ntext\n** Two\nmore\n* Three\n"),
        (".mediawiki", "= One =\ntext\n== Two ==\nmore\n= Three =\n"),
        (".adoc", "= One\ntext\n== Two\nmore\n= Three\n"),
        (".man", '.SH One\ntext\n.SS "Two"\nmore\n.SH Three\n'),
    ],
)
def test_light_markup_has_headings(suffix: str, text: str) -> None:
    document = read(text, suffix)
    assert [(b.kind, b.headings) for b in document.blocks] == [
        ("heading", ("One",)),
        ("paragraph", ("One",)),
        ("heading", ("One", "Two")),
        ("paragraph", ("One", "Two")),
        ("heading", ("Three",)),
    ]


MARKDOWN = """\
---
title: "The Manual"
---

Intro *text*
goes on.

# First `code` {#first}

- one
- two
  goes on

  a paragraph of two

      code of two

1. first
2. second

Second & [link](http://x)
-------------------------

```python
# not a heading

x = 1
```

| a | b |
|---|---|
| 1 | 2 |

> # quoted
> text

<!-- a comment

# not a heading
-->

### Third ###

    indented code

    more

***
"""


def test_markdown() -> None:
    document = read(MARKDOWN, ".md")
    first = ("First code",)
    second = (*first, "Second & link")
    third = (*second, "Third")
    assert document.title == "The Manual"
    assert shown(document) == [
        ("other", (), '---\ntitle: "The Manual"\n---'),
        ("paragraph", (), "Intro *text*\ngoes on."),
        ("heading", first, "# First `code` {#first}"),
        ("item", first, "- one"),
        ("item", first, "- two\n  goes on"),
        ("paragraph", first, "a paragraph of two"),
        ("code", first, "      code of two"),
        ("item", first, "1. first"),
        ("item", first, "2. second"),
        ("heading", second, "Second & [link](http://x)\n-------------------------"),
        ("code", second, "```python\n# not a heading\n\nx = 1\n```"),
        ("table", second, "| a | b |\n|---|---|\n| 1 | 2 |"),
        ("paragraph", second, "> # quoted\n> text"),
        ("paragraph", second, "<!-- a comment\n\n# not a heading\n-->"),
        ("heading", third, "### Third ###"),
        ("code", third, "    indented code\n\n    more"),
        ("other", third, "***"),
    ]


def test_the_title_of_markdown_is_its_first_h1() -> None:
    assert read("## Small\n\n# Big\n\n# Bigger\n", ".md").title == "Big"
    assert read('<h1 align="center">The <em>Tool</em></h1>\n\ntext\n', ".md").title == "The Tool"
    assert read("text\n", ".md").title is None


def test_markdown_admonitions_are_text() -> None:
    document = read("!!! note\n    Mind the gap.\n\n    # Inside\n\nafter\n", ".md")
    assert [b.kind for b in document.blocks] == ["paragraph", "heading", "paragraph"]


ORACLE = MarkdownIt("commonmark").enable("table")
ORACLE.core.ruler.enableOnly(["normalize", "block"])


def structure(text: str) -> list[tuple[str, int]]:
    """Return kind and first line of headings, code, tables and rules outside of quotations."""
    found, depth = [], 0
    kinds = {"heading_open": "heading", "fence": "code", "code_block": "code"}
    kinds |= {"table_open": "table", "hr": "other"}
    for token in ORACLE.parse(text):
        depth += (token.type == "blockquote_open") - (token.type == "blockquote_close")
        if token.type in kinds and not depth and token.map:
            found.append((kinds[token.type], token.map[0]))
    return found


@pytest.mark.parametrize("seed", range(4))
def test_markdown_agrees_with_markdown_it(seed: int) -> None:
    """On documents put together of sound blocks, in lists and out of them."""
    import random

    rng = random.Random(seed)
    blocks = [
        "Some text\nof two lines",
        "# Heading {n}",
        "Setext\n======",
        "Setext *two*\n---",
        "```sh\n# comment\n\nls\n```",
        "~~~\n```\n~~~",
        "- item\n- item\n\n  # inside an item\n\n  ```\n  # code\n  ```\n- last",
        "1. one\n   more\n2. two\n   - nested\n     text\n   - nested",
        "> quote\n> # not ours\nlazy",
        "a | b\n--|--\n1 | 2\n3 | 4",
        "text first\n\n| h |\n|---|\n| c |",
        "    code\n\n    # code",
        "<div>\n# not a heading\n</div>",
        "<!-- comment\n\n# no\n-->",
        "<pre>\n# no\n\n# no\n</pre>",
        "***",
        "text\n# interrupts",
        "text\n- interrupts",
        "text\n2. does not",
        "* item\n\n      code in it\n\n  text",
    ]
    for _ in range(60):
        text = "\n\n".join(rng.choice(blocks) for _ in range(rng.randrange(1, 7))) + "\n"
        document = read(text, ".md")
        ours = [
            (block.kind, text.count("\n", 0, block.start))
            for block in document.blocks
            if block.kind in ("heading", "code", "table", "other")
        ]
        assert ours == structure(text), text


RST = """\
=======
 Title
=======

Intro with :mod:`re`, which ends in a literal::

   # a comment
   x = 1

   y = 2

Section one
===========

* one
  more
* two

.. code-block:: python

   print("hi")

.. note:: Mind the gap.

   And the step.

:func:`sub` and `more <x>`_
---------------------------
Text right below.

>>> 1 + 1
2

=====  =====
A      B
=====  =====
1      2

3      4
=====  =====

+---+---+
| a | b |
+---+---+

.. _target:

Section two
===========

----

:param x: the x
:param y: the y
"""


def test_restructuredtext() -> None:
    document = read(RST, ".rst")
    title = ("Title",)
    one = (*title, "Section one")
    sub = (*one, "sub and more")
    two = (*title, "Section two")
    assert document.title == "Title"
    assert shown(document) == [
        ("heading", title, "=======\n Title\n======="),
        ("paragraph", title, "Intro with :mod:`re`, which ends in a literal::"),
        ("code", title, "   # a comment\n   x = 1\n\n   y = 2"),
        ("heading", one, "Section one\n==========="),
        ("item", one, "* one\n  more"),
        ("item", one, "* two"),
        ("code", one, '.. code-block:: python\n\n   print("hi")'),
        ("paragraph", one, ".. note:: Mind the gap."),
        ("paragraph", one, "And the step."),
        ("heading", sub, ":func:`sub` and `more <x>`_\n---------------------------"),
        ("paragraph", sub, "Text right below."),
        ("code", sub, ">>> 1 + 1\n2"),
        ("table", sub, RST[RST.index("=====  =") : RST.index("+---+")].rstrip()),
        ("table", sub, "+---+---+\n| a | b |\n+---+---+"),
        ("other", sub, ".. _target:"),
        ("heading", two, "Section two\n==========="),
        ("other", two, "----"),
        ("item", two, ":param x: the x"),
        ("item", two, ":param y: the y"),
    ]


@given(st.lists(st.integers(0, 4), min_size=1, max_size=12))
def test_rst_levels_follow_the_order_of_adornments(picks: list[int]) -> None:
    marks = "=-~^'"
    order: list[str] = []
    levels = []
    for pick in picks:
        if marks[pick] not in order:
            order.append(marks[pick])
        levels.append(order.index(marks[pick]) + 1)
    text = "\n".join(f"Part {i}\n{marks[pick] * 8}\n\nText {i}.\n" for i, pick in enumerate(picks))
    expected: list[tuple[str, ...]] = []
    stack: list[tuple[int, str]] = []
    for i, level in enumerate(levels):
        stack = [entry for entry in stack if entry[0] < level]
        stack.append((level, f"Part {i}"))
        expected.append(tuple(name for _, name in stack))
    blocks = read(text, ".rst").blocks
    assert [b.headings for b in blocks if b.kind == "heading"] == expected
    assert [b.headings for b in blocks if b.kind == "paragraph"] == expected


def test_python_blocks_are_definitions() -> None:
    text = (
        '"""Module."""\n\nimport os\n\n\nclass Box:\n    """A box."""\n\n    size = 1\n\n'
        "    @property\n    def width(self):\n        a = 1\n\n        return a\n\n"
        "    async def open(self):\n        def inner():\n            pass\n\n"
        "        return inner\n\n\n"
        "# above\ndef main():\n    pass\n\n\nmain()\n"
    )
    assert [(b[1], b[2].splitlines()[0]) for b in shown(read(text, ".py"))] == [
        ((), '"""Module."""'),
        ((), "import os"),
        (("Box",), "class Box:"),
        (("Box", "width"), "    @property"),
        (("Box", "open"), "    async def open(self):"),
        (("main",), "# above"),
        ((), "main()"),
    ]


@pytest.mark.parametrize(
    ("suffix", "text", "names"),
    [
        (".go", "func (s *Server) Run(x int) error {\n\treturn nil\n}\n", ("Run",)),
        (".rs", "#[derive(Debug)]\npub struct Point {\n    x: i32,\n}\n", ("Point",)),
        (".ts", "export default class App extends Base {\n}\n", ("App",)),
        (".sql", "CREATE OR REPLACE VIEW totals (a) AS SELECT 1;\n", ("totals",)),
        (".java", "/** Doc. */\npublic final class Main {\n}\n", ("Main",)),
        (".py", "class of things are not named here\n", ()),
    ],
)
def test_definitions_of_other_languages(suffix: str, text: str, names: tuple[str, ...]) -> None:
    assert read(text, suffix).blocks[0].headings == names


def test_generated_files_are_skipped() -> None:
    for path, text in (("a/package-lock.json", '{\n"a": 1\n}\n'), ("dist/app.js", "f(1);" * 2000)):
        with pytest.raises(UnreadableFile) as caught:
            read_document(Source(path, text.encode()))
        assert caught.value.skip
    assert read("x = 1;\n" * 2000, ".js").kind == "code"
