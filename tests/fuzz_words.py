"""What the readers act on, by kind, to be put where nobody expects it."""

from __future__ import annotations

WORDS: dict[str, str] = {
    "a.md": "# ## > - * + 1. ``` ~~~ --- === | |-|- [x](y) ![ <!-- --> <pre> </pre> <script> <h1>"
    " </h1> :---: {#a} +++ ??? !!! \\ & \t",
    "a.rst": ".. :: ==== ---- ++++ +--+ |x| `_ <x> :role:` * - (a) #. >>> .. code:: ..|x| \t",
    "a.py": "def class fn impl export pub(crate) @x # // ( ) { } [ ] async CREATE TABLE \t ' \"",
    "a.html": "<div> </div> <table> </table> <tr> <td> <pre> </pre> <li> <ul> <br> <svg> <math>"
    " <template> <select> <noscript> <main> </main> <nav> <p hidden> <!-- --> <![CDATA[ ]]> &#0;"
    " &#xD800; &#xffffffff; &#99999999999; &bogus; <?xml?> <html> </html> <body> <frameset>"
    " <plaintext> <a><a> <h1> </h1> <title> </title> <base> <iframe> <style>*{</style>"
    " charset=utf-7 xmlns=\"http://www.w3.org/1999/xhtml\"",
    "a.xml": "<a> </a> <title> </title> <![CDATA[ ]]> <!-- --> <?x?> &e; &#0; &#xD800; &lt;"
    " &lt;p&gt; <!DOCTYPE <!ENTITY [ ]> xmlns:x=\"\" <x:y/> encoding=\"utf-16\" <title/>"
    " &lt;!DOCTYPE",
    "a.eml": "--b1 --b2 --b1-- --b2-- Content-Type: multipart/mixed; boundary=b1"
    " charset=\"x\" charset=utf-16 charset=idna charset=rot13 charset=unicode_escape"
    " charset=punycode"
    " =?utf-8?q?=FF?= =?x?b?A?= =?utf-8?b?A?= base64 quoted-printable"
    " x-uuencode text/html text/plain message/rfc822 message/delivery-status message/partial"
    " filename*=utf-8''%FF filename*0=a filename*=x'y'z ; = \" \t",
    "a.pdf": "<< >> [ ] obj endobj stream endstream /Kids /Parent /Count /Length /Filter"
    " /FlateDecode /LZWDecode /ASCII85Decode /DecodeParms /Predictor 15 /Font /ToUnicode /Encrypt"
    " /XRef /ObjStm /N -1 999999999 1 0 R 2 0 R 3 0 R 9 0 R BT ET Tj TJ ( ) < > null true xref"
    " startxref trailer /Prev 0 /Root /Type /Pages /Contents /Resources /XObject Do",
    "a.odt": "<t:p> </t:p> <t:h> </t:h> <t:s/> <t:note> t:outline-level=\"x\" &x; <!DOCTYPE",
    "a.epub": "<itemref/> <item/> idref=\"a\" href=\"../../x\" href=\"\" full-path=\"\" &x; <p>"
    " <nav>",
    "a.rtf": "{ } \\ \\par \\u-1? \\u99999? \\'ff \\'zz \\bin99999999 \\bin-1 \\uc9 \\*"
    " \\cell \\row"
    " \\ansicpg0 \\ansicpg99999 \\pict \\fonttbl \\f9 \\fcharset128 \\rtf1 \\intbl \\s9",
    "a.docx": "<w:p> </w:p> <w:tbl> </w:tbl> <w:tr> <w:tc> <w:t> <w:del> <w:pStyle/> w:val=\"-1\"",
    "a.pptx": "<a:t> </a:t> <p:sp> </p:sp> <p:grpSp> <a:tbl> r:id=\"rId99\" idx=\"99999\"",
    "a.xlsx": "<c> </c> <v> </v> r=\"ZZZZ9999999\" r=\"A0\" t=\"s\" t=\"d\" t=\"e\" 1e999 -1"
    " 99999999999 <row> </row> <f> nan",
    "a.csv": ", ; | \t \" \"\" ' \r",
    **dict.fromkeys(
        ("a.ods", "a.odp"),
        "<t:p> </t:p> t:number-rows-repeated=\"99999999999\""
        " t:number-columns-repeated=\"999999999\""
        " t:number-rows-repeated=\"x\" t:number-columns-repeated=\"-1\" <t:table>"
        " <t:page> <t:frame>",
    ),
    ".gitignore": "* ** *** ? [ ] [! [^ [a-z] [z-a] [[:alpha:]] [:x:] \\ ! # / // **/ /** a b",
    "qrels": "1 0 -1 1.0 1e9 \t query-id nan",
}  # fmt: skip
"""JSON kinds are grown by `fuzz_mutations` instead."""
