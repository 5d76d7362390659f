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


def texts(document: Document) -> list[str]:
    return [text for _, _, text in shown(document)]


def test_footers_and_asides_of_the_text_are_text() -> None:
    document = read(
        "<header>Site</header><aside>Related</aside>"
        "<section><header>By Ann</header><p>one</p><aside>note</aside>"
        "<aside role=complementary>box</aside><nav>contents</nav><footer>Filed</footer></section>"
        "<blockquote>Bread.<footer>Cato</footer></blockquote>"
        '<aside epub:type="footnote">a footnote</aside>'
        "<footer>Imprint</footer><div role=contentinfo>Terms</div>",
        "a.html",
    )
    assert texts(document) == [
        *("By Ann", "one", "note", "box", "Filed", "Bread.", "Cato", "a footnote"),
    ]


@pytest.mark.parametrize("head", ["", '<?xml version="1.0"?>'])
def test_what_is_drawn_or_filled_in_is_read_by_its_words(head: str) -> None:
    namespace = ' xmlns="http://www.w3.org/1999/xhtml"' if head else ""
    document = read(
        f"{head}<html{namespace}><head><title>Page</title></head><body>"
        '<h1>Bread <img src="a.png" alt="and salt"/></h1>'
        '<p>See <svg xmlns="http://www.w3.org/2000/svg"><style>a {}</style><title>Oven</title>'
        "<g><text>top<tspan>heat</tspan></text></g></svg>, <img src='x' alt=''/>then <math><mi>x"
        "</mi><mo>=</mo><mn>2</mn></math>.</p>"
        "<svg aria-hidden='true'><text>icon</text></svg>"
        "<textarea>filled in</textarea><button>Send</button><select><option>no</option></select>"
        "<object data='a.pdf'><p>instead</p></object><canvas>a curve</canvas></body></html>",
        "a.html",
    )
    assert document.title == "Page"
    assert texts(document) == [
        *("Bread and salt", "See Oven top heat , then x = 2 .", "filled in", "instead", "a curve"),
    ]


def test_a_page_within_a_frame() -> None:
    inner = "<h1>Inner</h1>\n\n\n<p>&quot;text&quot;</p><script>no</script>"
    page = f'<p>before</p>\n<iframe srcdoc="{inner}">no frames</iframe>\n<p>after</p>'
    document = read(page, "a.html")
    assert texts(document) == ["before", "Inner", '"text"', "after"]
    assert (document.text.index("after"), 6) in (document.line_anchors or ())
    assert document.problems == ()
    nested = page.replace("no</script>", "</script><iframe srcdoc='deep'></iframe>")
    assert read(nested, "a.html").problems == (
        ("truncated", "a frame within a frame was not read", None),
    )


def test_what_is_not_shown_is_read_where_nothing_else_is() -> None:
    page = "<noscript><p>without scripts</p></noscript><p hidden>secret</p>"
    assert texts(read(page, "a.html")) == ["without scripts", "secret"]
    assert texts(read(f"{page}<p>shown</p>", "a.html")) == ["shown"]


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
    assert shown(document)[4:] == [("paragraph", path, "bang &file;")]
    assert document.problems == (("truncated", "not of this file: entity 'file'", None),)


def test_entities_of_xml() -> None:
    document = read(
        "<!DOCTYPE r [<!-- <!ENTITY a 'no'> -->\n"
        "<!ENTITY a \"<b>bold</b> &in;\"><!ENTITY in 'and\n&#x22;&in2;&#34;'><!ENTITY in2 'so'>"
        "<!ENTITY a 'second'>]>\n<r><p>&a;</p><p x='&in2;'>caf&eacute; &amp;in2; &LT;</p>\n"
        "<q><![CDATA[&in2;]]></q></r>",
        "a.xml",
    )
    assert texts(document) == ['bold and "so"', "café &in2; <", "&in2;"]
    assert document.problems == ()
    assert document.line_anchors == ((0, 4), (document.text.rindex("&in2;"), 5))


def test_entities_that_grow_are_all_left_out() -> None:
    grown = "<!DOCTYPE r [<!ENTITY a '{}'>]><r><p>kept</p>{}</r>"
    document = read(grown.format("x" * 1000, "<p>&a;</p>" * 1000), "a.xml")
    assert document.text.count("x") == 1_000_000 and document.problems == ()
    for bomb in (grown.format("x" * 1000, "<p>&a;</p>" * 1100), grown.format("&a;", "<p>&a;</p>")):
        document = read(bomb, "a.xml")
        assert document.text == "kept"
        message = "entities that grow beyond 1,048,576 characters were left out"
        assert ("truncated", message, None) in document.problems


def test_entities_from_elsewhere_are_told_in_one_line() -> None:
    references = "".join(f"&n{number};" for number in range(1000))
    document = read(f'<!DOCTYPE r SYSTEM "r.dtd"><r>kept{references}</r>', "a.xml")
    message = "not of this file: entity 'n0' and 999 others"
    assert document.problems == (("truncated", message, None),)


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


def test_html_is_read_where_the_plain_text_is_a_stub() -> None:
    for times, read_text in ((5, "the bread is ready"), (6, "bread is of HTML")):
        mail = message()
        mail.set_content("the bread is ready")
        mail.add_alternative(f"<p>{'bread is of HTML ' * times}</p>", subtype="html")
        mail.add_alternative("SUMMARY:Breakfast", subtype="calendar")
        text = read(mail.as_bytes(), "a.eml").text
        assert read_text in text and "SUMMARY:Breakfast" in text
        assert ("the bread" in text) != ("of HTML" in text)


def test_what_is_attached_to_the_alternative_not_read_is_told() -> None:
    mail = message()
    mail.add_alternative("<p>the bread</p>", subtype="html")
    mail.get_payload()[1].add_related(b"\x89PNG", "image", "png", filename="a.png")
    document = read(mail.as_bytes(), "a.eml")
    assert document.text.count("bread") == 1
    assert document.problems == (("attachment", "attachment 'a.png' was not read", None),)


def test_forwarded_messages_and_reports_of_delivery() -> None:
    report = (
        "Content-Type: multipart/report; boundary=X\nSubject: Undelivered\n\n"
        "--X\n\nIt failed.\n--X\nContent-Type: message/delivery-status\n\n"
        "Reporting-MTA: dns; mail.example.org\n\nAction: failed\nStatus: 5.1.1\n\n"
        "--X\nContent-Type: message/rfc822\n\nSubject: Bread\nX-Spam: no\n\nis ready\n--X--\n"
    )
    assert texts(read(report, "a.eml")) == [
        *("Subject: Undelivered", "It failed.", "Reporting-MTA: dns; mail.example.org"),
        *("Action: failed\nStatus: 5.1.1", "Subject: Bread", "is ready"),
    ]


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
    message = "output beyond 2,000 characters was left out in cell 2"
    assert document.problems == (("truncated", message, None),)
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


def test_cut_outputs_of_a_notebook_are_counted() -> None:
    lengths = [2000, 2001, 5, 9000]
    cells = [{"cell_type": "code", "outputs": [{"text": "y" * n + "\n"}]} for n in lengths]
    document = read(notebook(cells), "a.ipynb")
    message = "output beyond 2,000 characters was left out in 2 cells, first cell 2"
    assert document.problems == (("truncated", message, None),)


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
