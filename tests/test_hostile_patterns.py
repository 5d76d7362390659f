"""Ignore patterns with many stars: the same files as ever, in time that stars do not multiply."""

from __future__ import annotations

import re
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragcli.corpus.patterns import Patterns, Rule, _compile, without_retrying

PIECES = ["*", "*", "*", "**/", "/**/", "/**", "/", "a", "b", "?", "[ab]", "\\*", "(", ".", "|"]
patterns = st.lists(st.sampled_from(PIECES), min_size=2, max_size=12).map("".join)
names = st.lists(st.text("aab*(.", min_size=1, max_size=5), min_size=1, max_size=6)


def plainly(rule: Rule, source: str) -> Rule:
    return rule._replace(regex=re.compile(source))


@settings(max_examples=1500, deadline=None)
@given(patterns, st.lists(names, min_size=1, max_size=8), st.booleans())
def test_the_same_entries_match(pattern: str, paths: list[list[str]], is_dir: bool) -> None:
    from pathspec.patterns.gitignore.spec import GitIgnoreSpecPattern

    rule = _compile(pattern, 1)
    if rule is None:
        return
    body = f"/{pattern}" if rule.by_name else pattern
    before = plainly(rule, GitIgnoreSpecPattern(body).regex.pattern)
    for path in paths:
        full, name = "/".join(path), path[-1]
        assert rule.matches(full, name, is_dir) == before.matches(full, name, is_dir)


@pytest.mark.parametrize("source", ["^[^/]*a(?:(?P<ps_d>/)|$)", "^(?:.+/)?a/", "^(?:.+/)?[^/]*b$"])
def test_what_people_write_stays_as_it_is(source: str) -> None:
    assert without_retrying(source) == source


@pytest.mark.parametrize(
    ("pattern", "path"),
    [
        ("*a" * 30 + "b", "a" * 255),
        ("**/a/" * 20 + "b", "a/" * 2000 + "a"),
        ("*/" * 50 + "b", "a/" * 2000 + "a"),
        ("*a*/" * 20 + "b", ("a" * 30 + "/") * 60 + "a"),
        ("**/*a*a*a*/" * 6 + "b", ("a" * 30 + "/") * 100 + "a"),
        ("x**" * 20 + "y", "x" * 255),
        ("*[ab]" * 20 + "c", "ab" * 120),
        ("a/**/" * 30 + "b", "a/" * 2000 + "c"),
    ],
)
def test_many_stars_are_quick(pattern: str, path: str) -> None:
    compiled = Patterns(["*.log", pattern, "!keep"])
    began = time.process_time()
    assert compiled.deciding(path, path.rpartition("/")[2], is_dir=True) is None
    assert compiled.deciding("a/x.log", "x.log", is_dir=False) is not None
    assert time.process_time() - began < 1
