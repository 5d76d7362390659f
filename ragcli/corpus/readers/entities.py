"""References in markup, made sound before a parser sees them: to characters and to entities.

Owns the bound on what entities may grow to. Fetches nothing: what the text itself declares and
the names of HTML are put in, no more.
"""

from __future__ import annotations

import re

_EXPANDED = 1 << 20
"""How many characters the entities of a text may put in, with those inside entities."""

_DEPTH = 20
"""How deep entities may lie inside one another."""

_CHARACTER = re.compile(r"&#(?:[xX]([0-9a-fA-F]+)|([0-9]+));?")
_NAMED = r"&(?!(?:lt|gt|amp|quot|apos);)([A-Za-z_][\w.-]*);"
_REFERENCE = re.compile(_NAMED)
# What is no text is matched so that references in it are passed by; a declaration is among it.
_TOKEN = re.compile(
    r"<!--.*?(?:-->|\Z)|<!\[CDATA\[.*?(?:\]\]>|\Z)"
    r"|<!ENTITY\s+([\w.-]+)\s+(?:\"([^\"]*)\"|'([^']*)')\s*>"
    rf"|<[^<>]*>?|{_NAMED}",
    re.DOTALL,
)


def sound_references(text: str) -> str:
    """Return markup in which each reference to half a surrogate pair means U+FFFD."""

    def sound(found: re.Match[str]) -> str:
        return "\ufffd" if 0xD800 <= _code(found) <= 0xDFFF else found[0]

    return _CHARACTER.sub(sound, text) if "&#" in text else text


def with_entities(text: str) -> tuple[str, str]:
    """Return XML with the text of its entities put in, its lines as before; and what was not.

    All are left as they are where together they would grow beyond the bound.
    """
    if _REFERENCE.search(text) is None:
        return text, ""
    entities = _Entities()
    expanded = _TOKEN.sub(entities.replace, text)
    if entities.excessive:
        return text, f"entities that grow beyond {_EXPANDED:,} characters were left out"
    unknown = entities.unknown
    if not unknown:
        return expanded, ""
    more = f" and {len(unknown) - 1} others" if len(unknown) > 1 else ""
    return expanded, f"not of this file: entity {min(unknown)!r}{more}"


class _Entities:
    """What has been declared so far, and how much may still be put in."""

    def __init__(self) -> None:
        from html.entities import html5

        self._known = html5
        self.declared: dict[str, str] = {}
        self.unknown: set[str] = set()
        self.excessive = False
        self._left = _EXPANDED

    def replace(self, token: re.Match[str]) -> str:
        """Take in a declaration, the first of its name; put in what a reference means."""
        name, double, single, reference = token.groups()
        if name is not None:
            value = single if double is None else double
            value = _CHARACTER.sub(_character, value)
            # Spaces for line ends: what follows is to keep its line.
            self.declared.setdefault(name, value.translate({0x0A: " ", 0x0D: " "}))
        return token[0] if reference is None else self._expanded(token[0], reference, 0)

    def _expanded(self, reference: str, name: str, depth: int) -> str:
        value = self.declared.get(name)
        if value is None:
            known = self._known.get(f"{name};")
            if known is None:
                self.unknown.add(name)
                return reference
            return "".join(f"&#{ord(character)};" for character in known)
        self._left -= len(value) + 1
        self.excessive = self.excessive or self._left < 0 or depth == _DEPTH
        if self.excessive:
            return ""
        return _REFERENCE.sub(lambda inner: self._expanded(inner[0], inner[1], depth + 1), value)


def _code(found: re.Match[str]) -> int:
    return int(found[1], 16) if found[1] else int(found[2][:9])


def _character(found: re.Match[str]) -> str:
    code = _code(found)
    return chr(code) if code <= 0x10FFFF else found[0]
