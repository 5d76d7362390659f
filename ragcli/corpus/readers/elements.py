"""XML elements and their attributes by name alone, whatever namespace they are in."""

from __future__ import annotations

from typing import Any


def local_name(element: Any) -> str:
    """Return an element's name without its namespace, "" for what is no element."""
    return element.tag.rpartition("}")[2] if isinstance(element.tag, str) else ""


def attribute(element: Any, name: str) -> str:
    """Return an attribute of any namespace, "" if it is not there."""
    found = element.get(name)
    if found is None:
        found = next((v for k, v in element.items() if k.rpartition("}")[2] == name), "")
    return str(found)
