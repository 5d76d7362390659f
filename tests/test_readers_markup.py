"""Readers that assemble a text: HTML, XML, e-mail, notebooks."""

from __future__ import annotations

import json
from email.message import EmailMessage

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragcli.corpus.readers import read_document
from ragcli.corpus.source import Source
from ragcli.errors import UnreadableFile
from ragcli.records import Document


def read(content: str | bytes, name: str) -> Document:
    data = content.encode("utf-8") if isinstance(content, str) else content
    (document,) = read_document(Source(name, data))
    check(document)
    return document


def check(document: Document) -> None:
    end = 0
    for block in document.blocks:
        assert end <= block.start < block.end <= len(document.text)
        assert document.text[end : block.start].strip() == ""
        end = block.end
    assert document.text[end:].strip() == ""
    starts = [start for start, _ in document.line_anchors or ()]
    lines = [line for _, line in document.line_anchors or ()]
    assert starts == sorted(set(starts))
    assert lines == sorted(set(lines))


def shown(document: Document) -> list[tuple[str, tuple[str, ...], str]]:
    return [(b.kind, b.headings, document.text[b.start : b.end]) for b in document.blocks]


PAGE = """\
<!DOCTYPE html>
<html><head><title>The  Page</title><style>p { color: red }</style>
<script>var hidden = "never";</script></head>
<body>
<header>Site name</header>
<nav><ul><li>Home</li></ul></nav>
<main>
<h1>Bread<a href="#bread">¶</a></h1>
<p>Flour, water
   and <b>sa</b>lt.<br>Time &amp; heat.</p>
<ul>
  <li>knead</li>
  <li><p>rest</p></li>
</ul>
<h2>Tools</h2>
<pre>
  bake --hot
    now
</pre>
<table>
<tr><th>Tool</th><th>Use</th></tr>
<tr><td><p>Oven</p></td><td>heat</td></tr>
</table>
<p hidden>secret</p><div style="display: none">secret</div><noscript>secret</noscript>
<dl><dt>crumb</dt><dd>the inside</dd></dl>
<blockquote>Good bread is half a meal.</blockquote>
loose end
</main>
<aside>Related</aside><footer>Imprint</footer>
</body></html>
"""


def test_html() -> None:
    document = read(PAGE, "page.html")
    bread, tools = ("Bread",), ("Bread", "Tools")
    assert document.title == "The Page"
    assert shown(document) == [
        ("heading", bread, "Bread"),
        ("paragraph", bread, "Flour, water and salt.\nTime & heat."),
        ("item", bread, "knead"),
        ("item", bread, "rest"),
        ("heading", tools, "Tools"),
        ("code", tools, "  bake --hot\n    now"),
        ("table", tools, "Tool | Use"),
        ("table", tools, "Oven | heat"),
        ("item", tools, "crumb"),
        ("item", tools, "the inside"),
        ("paragraph", tools, "Good bread is half a meal."),
        ("paragraph", tools, "loose end"),
    ]
    lines = PAGE.splitlines()
    for offset, line in document.line_anchors or ():
        words = document.text[offset:].split()
        assert any(words[0] in source for source in lines[line - 1 : line + 1]), (offset, line)


def test_html_of_nothing_but_navigation_is_still_read() -> None:
    document = read("<title>Map</title><nav><ul><li>Home<li>About</ul></nav>", "map.html")
    assert document.text == "Home\nAbout"


def test_tables_for_layout_are_text() -> None:
    document = read(
        "<table><tr><td><h1>Left</h1><p>one</p></td><td><ul><li>two</ul></td></tr></table>",
        "old.html",
    )
    assert [kind for kind, _, _ in shown(document)] == ["heading", "paragraph", "item"]


def test_xhtml_may_close_its_empty_elements() -> None:
    document = read(
        '<?xml version="1.0"?><html xmlns="http://www.w3.org/1999/xhtml"><head><title/></head>'
        '<body><a id="x"/><p>caf&eacute; &amp; <i/>tea</p></body></html>',
        "page.xhtml",
    )
    assert document.text == "café & tea"


@pytest.mark.parametrize(
    "data",
    [
        '<meta charset="koi8-r"><p>Привет, мир</p>'.encode("koi8-r"),
        "\ufeff<p>Привет, мир</p>".encode("utf-16"),
        '<meta charset="iso-8859-1"><p>Привет, мир</p>'.encode(),
        "<p>Привет, мир</p>".encode("utf-8-sig"),
    ],
)
def test_html_encodings(data: bytes) -> None:
    assert read(data, "page.html").text.strip("\ufeff") == "Привет, мир"


def test_html_survives_zero_bytes_and_depth() -> None:
    assert read(b"<p>one\0two</p>", "a.html").text == "one\ufffdtwo"
    assert read("<div>" * 5000 + "deep", "a.html").text in ("deep", "")


TAGS = "p div b li ul tr td th table h1 h2 pre br main nav dl dt section title body a !--".split()
HTML = st.lists(
    st.one_of(
        st.sampled_from([f"<{tag}>" for tag in TAGS] + [f"</{tag}>" for tag in TAGS]),
        st.sampled_from(["word ", "two words", " ", "\n", "&amp;", "&#0;", "&#xD800;", "<", "-->"]),
        st.text(max_size=3),
    ),
    max_size=40,
).map("".join)


@given(HTML)
@settings(max_examples=200)
def test_any_html_gives_sound_blocks(content: str) -> None:
    for name in ("a.html", "a.xml"):
        try:
            document = read(content, name)
        except UnreadableFile as error:
            assert error.kind in ("binary", "corrupt")
            assert error.__cause__ is None or "Xml" in type(error.__cause__).__name__
        else:
            document.text.encode("utf-8")


FEED = """\
<?xml version="1.0" encoding="ISO-8859-1"?>
<!DOCTYPE rss [<!ENTITY boom "bang"><!ENTITY file SYSTEM "file:///etc/hostname">]>
<rss><channel>
  <title>News</title>
  <item>
    <title>Caf\u00e9 opens</title>
    <link>https://example.org/1</link>
    <description>&lt;p&gt;All &lt;b&gt;are&lt;/b&gt; welcome.&lt;/p&gt;</description>
    <note>&boom; &file;</note>
  </item>
</channel></rss>
"""


def test_xml() -> None:
    document = read(FEED.encode("iso-8859-1"), "feed.xml")
    path = ("News", "Café opens")
    assert document.title == "News"
    assert shown(document)[:4] == [
        ("heading", ("News",), "News"),
        ("heading", path, "Café opens"),
        ("paragraph", path, "https://example.org/1"),
        ("paragraph", path, "All are welcome."),
    ]
    assert dict(document.line_anchors or ())[0] == 4
    assert "bang" not in document.text


def test_xml_keeps_mixed_content_together() -> None:
    document = read("<book><p>One <i>two</i> three.</p><p>Four.</p></book>", "book.xml")
    assert [text for _, _, text in shown(document)] == ["One two three.", "Four."]


def test_damaged_xml_is_read_as_far_as_it_goes() -> None:
    document = read("<a><b>kept</b><c>open", "a.xml")
    assert document.text.startswith("kept")
    assert document.problems[0][0] == "corrupt"
    with pytest.raises(UnreadableFile) as caught:
        read("no markup at all", "a.xml")
    assert caught.value.kind == "corrupt"


def message() -> EmailMessage:
    mail = EmailMessage()
    mail["Subject"] = "Grüße aus Köln"
    mail["From"] = "Ann <ann@example.org>"
    mail["To"] = "bo@example.org"
    mail["X-Spam"] = "no"
    mail.set_content("Dear Bo,\n\nthe bread is ready.\n")
    return mail


def test_mail() -> None:
    mail = message()
    mail.add_alternative("<p>the <b>HTML</b> bread</p>", subtype="html")
    mail.add_attachment(b"\x89PNG", maintype="image", subtype="png", filename="bread.png")
    document = read(mail.as_bytes(), "a.eml")
    assert document.title == "Grüße aus Köln"
    assert shown(document) == [
        ("other", (), "Subject: Grüße aus Köln\nFrom: Ann <ann@example.org>\nTo: bo@example.org"),
        ("paragraph", (), "Dear Bo,"),
        ("paragraph", (), "the bread is ready."),
    ]
    assert document.problems == (("attachment", "attachment 'bread.png' was not read", None),)


def test_mail_of_html_only() -> None:
    mail = EmailMessage()
    mail.set_content("<h1>Bread</h1><p>is ready</p>", subtype="html")
    assert read(mail.as_bytes(), "a.eml").text == "Bread\n\nis ready"


def test_a_part_of_a_mail_that_is_not_text_is_a_problem() -> None:
    mail = message()
    mail.add_attachment(bytes(range(256)), maintype="text", subtype="plain", disposition="inline")
    document = read(mail.as_bytes(), "a.eml")
    assert "bread is ready" in document.text
    assert [kind for kind, _, _ in document.problems] == ["binary"]


def notebook(cells: list[dict[str, object]], **more: object) -> str:
    return json.dumps({"nbformat": 4, "cells": cells, **more})


def test_notebook() -> None:
    document = read(
        notebook(
            [
                {"cell_type": "markdown", "source": ["# Trial\n", "\n", "- one\n", "- two\n"]},
                {
                    "cell_type": "code",
                    "source": "# not a heading\nprint(1)",
                    "outputs": [
                        {"output_type": "stream", "text": ["1\n"]},
                        {"output_type": "error", "ename": "KeyError", "evalue": "'x'"},
                        {"output_type": "display_data", "data": {"image/png": "iVBORw0KGgo="}},
                        {"output_type": "execute_result", "data": {"text/plain": "y" * 9000}},
                    ],
                },
                {"cell_type": "markdown", "source": "## Result\n\ntext"},
                {"cell_type": "raw", "source": "raw"},
            ]
        ),
        "a.ipynb",
    )
    trial, result = ("Trial",), ("Trial", "Result")
    assert document.title == "Trial"
    assert document.line_anchors == ()
    assert shown(document) == [
        ("heading", trial, "# Trial"),
        ("item", trial, "- one"),
        ("item", trial, "- two"),
        ("code", trial, "# not a heading\nprint(1)"),
        ("other", trial, "1"),
        ("other", trial, "KeyError: 'x'"),
        ("other", trial, "y" * 2000),
        ("heading", result, "## Result"),
        ("paragraph", result, "text"),
        ("other", result, "raw"),
    ]


def test_notebook_of_format_3() -> None:
    cells = [
        {"cell_type": "heading", "level": 1, "source": "Old"},
        {"cell_type": "code", "input": ["x = 1"], "outputs": [{"text": "1"}]},
    ]
    document = read(json.dumps({"nbformat": 3, "worksheets": [{"cells": cells}]}), "a.ipynb")
    assert document.text == "Old\n\nx = 1\n\n1"


@given(
    st.recursive(
        st.none() | st.integers() | st.text(),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(
                    ["cells", "cell_type", "source", "outputs", "data", "text", "level"]
                ),
                inner,
                max_size=4,
            )
        ),
        max_leaves=20,
    )
)
def test_any_json_is_a_notebook_or_an_error(value: object) -> None:
    try:
        read(json.dumps(value), "a.ipynb")
    except UnreadableFile as error:
        assert error.kind == "corrupt"
        assert error.message.startswith("not a notebook")
