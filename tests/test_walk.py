"""The walk against git as the independent oracle, and each rule by itself."""

from __future__ import annotations

import errno
import os
import shutil
import socket
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, assume, example, given, settings
from hypothesis import strategies as st

from ragcli.corpus.walk import Found, LeftOut, WalkRules, explain, walk
from ragcli.errors import UsageError

SHARED = Path(__file__).resolve().parents[1].parent / "shared"
CACHE_TAG = "Signature: 8a477f597d28d172789f06886806bc55\n# a comment\n"
DEFAULT = WalkRules()
ALL = WalkRules(hidden=True)
FOLLOW = WalkRules(follow=True)


def make(root: Path, files: dict[str, str]) -> Path:
    """Write files by relative path; a path that ends in a slash is an empty folder."""
    for name, text in files.items():
        path = root / name
        if name.endswith("/"):
            path.mkdir(parents=True, exist_ok=True)
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
    return root


def found(root: Path, starts: tuple[str, ...] = ("",), rules: WalkRules = DEFAULT) -> list[str]:
    return [item.path for item in walk(root, starts, rules) if isinstance(item, Found)]


def left_out(
    root: Path, starts: tuple[str, ...] = ("",), rules: WalkRules = DEFAULT
) -> dict[str, LeftOut]:
    items = [item for item in walk(root, starts, rules) if isinstance(item, LeftOut)]
    by_path = {item.path: item for item in items}
    assert len(by_path) == len(items), "a path was left out twice"
    return by_path


def reasons(
    root: Path, starts: tuple[str, ...] = ("",), rules: WalkRules = DEFAULT
) -> dict[str, str]:
    return {path: item.reason for path, item in left_out(root, starts, rules).items()}


def bare_repository(top: Path) -> None:
    """The least that git takes for a repository; much faster than `git init`."""
    for folder in (".git/objects", ".git/refs", ".git/info"):
        (top / folder).mkdir(parents=True)
    (top / ".git/HEAD").write_text("ref: refs/heads/main\n")


# git as the oracle


def git(where: Path, *arguments: str, stdin: bytes = b"") -> list[str]:
    """Run git without any configuration of this machine; its output, split at NUL."""
    environment = {"PATH": os.environ["PATH"], "GIT_CONFIG_NOSYSTEM": "1", "HOME": str(where)}
    done = subprocess.run(
        ["git", "-c", "core.excludesFile=", "-C", str(where), *arguments],
        input=stdin,
        capture_output=True,
        env=environment,
        check=False,
    )
    assert done.returncode in (0, 1), done.stderr
    return os.fsdecode(done.stdout).split("\0")[:-1]


names = st.sampled_from(["a", "b", "ab", "a.b", "ba.b", ".h", "[a]", "a b", "#a", "!b", "c"])
paths = st.lists(names, min_size=1, max_size=4).map("/".join)
globs = st.sampled_from(
    [
        *("a", "b", "ab", "a.b", "c", "*", "?", "*.b", "a*", "*b", "?b", "a?b", ".*", "**"),
        *("a\\ b", "\\[a\\]", "[ab]", "[!a]", "[^b]*", "[a-b].b", "[[]a]", "\\#a", "\\!b"),
    ]
)


@st.composite
def patterns(draw: st.DrawFn) -> str:
    body = "/".join(draw(st.lists(globs, min_size=1, max_size=3)))
    pattern = draw(st.sampled_from(["", "", "!"])) + draw(st.sampled_from(["", "", "/"])) + body
    # Not `a/**/` and `**/*/`, in which pathspec misses that git wants a folder inside; nor
    # `a**/b`, which git itself reads wrongly behind a literal start.
    ends = ["", "", "/", "/**", " "] if body == "*" or body[-1] != "*" else [""]
    return pattern + draw(st.sampled_from(ends))


ignore_files = st.lists(st.one_of(patterns(), patterns(), st.sampled_from(["", "# a", "!", "/"])))
trees = st.tuples(
    st.sets(paths, min_size=1, max_size=14),
    st.dictionaries(st.lists(names, max_size=2).map("/".join), ignore_files, max_size=3),
    ignore_files,
    st.lists(names, max_size=1).map("/".join),
)


def plant(
    top: Path, files: set[str], ignores: dict[str, list[str]], exclude: list[str], ends: str
) -> None:
    bare_repository(top)
    (top / ".git/info/exclude").write_text("\n".join(exclude))
    for path in sorted(files):
        target = top / path
        if not any(parent.is_file() for parent in target.parents) and not target.exists():
            make(top, {path: "x"})
    for folder, lines in ignores.items():
        if (top / folder).is_dir():
            (top / folder / ".gitignore").write_bytes(ends.join([*lines, ""]).encode())


@pytest.mark.skipif(shutil.which("git") is None, reason="git, the oracle, is not installed")
@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(tree=trees, ends=st.sampled_from(["\n", "\r\n"]))
# A pattern is about the entry itself, not about what lies in a folder that it matches.
@example(({"x/a.b"}, {"": ["*.b", "/x", "!/x"]}, [], ""), "\n")
@example(({"x/y/z"}, {"": ["y", "!/x/"]}, [], ""), "\n")
@example(({"a/b/c"}, {"": ["*/", "!a/"]}, [], ""), "\n")
@example(({"a/b.md", "a/c.md"}, {"": ["a/**", "!a/b.md"]}, [], ""), "\n")
@example(({"n\nl/d/f.b", "a\n", "n\nl/f.b"}, {"": ["**/d/*.b", "a"]}, [], ""), "\n")
@example(({"a/b/c", "a/b/d"}, {"": ["/a/b/c"]}, ["a/b/d"], "a/b"), "\n")
def test_the_same_files_as_git_and_for_the_same_pattern(
    tree: tuple[set[str], dict[str, list[str]], list[str], str], ends: str
) -> None:
    files, ignores, exclude, below = tree
    with tempfile.TemporaryDirectory() as folder:
        top = Path(folder)
        plant(top, files, ignores, exclude, ends)
        root = top / below
        assume(root.is_dir())
        # A root that git ignores is walked all the same, for the user named it.
        assume(not below or not git(top, "check-ignore", "-z", "--stdin", stdin=below.encode()))

        items = list(walk(root, rules=ALL))
        listed = git(root, "ls-files", "-co", "--exclude-standard", "-z")
        assert sorted(i.path for i in items if isinstance(i, Found)) == sorted(listed)

        ignored = [i for i in items if isinstance(i, LeftOut) and i.reason == "ignored"]
        ask = b"\0".join(os.fsencode(i.path) for i in ignored)
        told = git(root, "check-ignore", "-v", "-z", "--stdin", stdin=ask) if ignored else []
        assert told[3::4] == [i.path for i in ignored]
        sources = [os.path.relpath(top / source, root) for source in told[0::4]]
        said = zip(sources, told[1::4], told[2::4], strict=True)
        assert [f"{s}:{line}: {text.strip()}" for s, line, text in said] == [
            i.detail for i in ignored
        ]


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(tree=trees, glob=st.lists(patterns(), max_size=2), exclude=st.lists(patterns(), max_size=2))
def test_explain_gives_the_verdict_of_the_walk(
    tree: tuple[set[str], dict[str, list[str]], list[str], str],
    glob: list[str],
    exclude: list[str],
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        plant(Path(folder), *tree[:3], "\n")
        rules = WalkRules(glob=tuple(glob), exclude=tuple(exclude))
        try:
            items = list(walk(Path(folder), rules=rules))
        except UsageError:
            assume(False)
        assert [explain(Path(folder), item.path, rules) for item in items] == items
        everything = {p.relative_to(folder).as_posix() for p in Path(folder).rglob("*")}
        files = {path for path in everything if (Path(folder) / path).is_file()}
        closed = [item.path for item in items if isinstance(item, LeftOut) and item.folder]
        inside = {f for f in files if any(f.startswith(c + "/") for c in closed)}
        assert {i.path for i in items} - set(closed) == files - inside
        for path in inside:
            verdict = explain(Path(folder), path, rules)
            assert isinstance(verdict, LeftOut)
            assert verdict.folder
            assert path.startswith(verdict.path + "/")


@pytest.mark.filterwarnings("ignore:Possible nested set:FutureWarning")  # pathspec's own
@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(files=st.sets(paths, min_size=1, max_size=14), glob=st.lists(patterns(), max_size=3))
def test_glob_selects_the_files_that_pathspec_matches(files: set[str], glob: list[str]) -> None:
    from pathspec import GitIgnoreSpec

    # Negations are left to the test below: pathspec applies them to files in a folder too.
    wanted = tuple(pattern for pattern in glob if pattern.strip("/ ") and pattern[0] != "!")
    with tempfile.TemporaryDirectory() as folder:
        plant(Path(folder), files, {}, [], "\n")
        everything = found(Path(folder), rules=ALL)
        spec = GitIgnoreSpec.from_lines(wanted)
        expected = [path for path in everything if not wanted or spec.match_file(path)]
        assert found(Path(folder), rules=WalkRules(hidden=True, glob=wanted)) == expected


# ignore files


def test_the_deeper_ignore_file_wins_and_in_one_folder_the_more_special(tmp_path: Path) -> None:
    make(
        tmp_path,
        {
            ".gitignore": "*.a\n*.b\n*.c\n",
            ".ignore": "!x.b\n*.d\n",
            ".ragcliignore": "!x.c\nx.b\n!y.d\n",
            "y.d": "",
            "sub/.gitignore": "!x.a\n!x.b\nx.e\n",
            **{f"{folder}x.{end}": "" for folder in ("", "sub/") for end in "abcde"},
        },
    )
    assert found(tmp_path) == ["sub/x.a", "sub/x.b", "sub/x.c", "x.c", "x.e", "y.d"]
    details = {path: item.detail for path, item in left_out(tmp_path).items() if item.detail}
    assert details == {
        "sub/x.d": ".ignore:2: *.d",
        "sub/x.e": "sub/.gitignore:3: x.e",
        "x.a": ".gitignore:1: *.a",
        "x.b": ".ragcliignore:2: x.b",
        "x.d": ".ignore:2: *.d",
    }
    assert len(found(tmp_path, rules=WalkRules(ignore=False))) == 11


def test_nothing_comes_back_in_a_folder_that_is_left_out(tmp_path: Path) -> None:
    make(tmp_path, {".gitignore": "out/\n!out/a.md\n/in/**\n!/in/a.md\n", "out/a.md": ""})
    make(tmp_path, {"in/a.md": "", "in/b.md": ""})
    assert found(tmp_path) == ["in/a.md"]
    assert left_out(tmp_path)["out"] == LeftOut("out", "ignored", ".gitignore:1: out/", True)


def test_ignore_files_above_the_root_count_up_to_the_repository(tmp_path: Path) -> None:
    make(tmp_path, {".gitignore": "*\n", "repo/.gitignore": "*.log\n/docs/*.tmp\n"})
    make(tmp_path, {"repo/docs/.ignore": "!b.log\n", "repo/docs/sub/.gitignore": "x.md\n"})
    texts = ["a.log", "b.log", "c.tmp", "d.bak", "e.md", "x.md"]
    make(tmp_path, {f"repo/docs/sub/{name}": "" for name in texts} | {"repo/docs/c.tmp": ""})
    docs = tmp_path / "repo/docs"
    # Outside of a repository nothing above the root is looked at.
    assert found(docs) == ["c.tmp", *(f"sub/{n}" for n in texts[:5])]
    make(tmp_path, {"repo/.git/info/exclude": "*.bak\n"})
    assert found(docs) == ["sub/b.log", "sub/c.tmp", "sub/e.md"]
    assert {path: item.detail for path, item in left_out(docs / "sub").items()} == {
        ".gitignore": "",
        "a.log": "../../.gitignore:1: *.log",
        "d.bak": "../../.git/info/exclude:1: *.bak",
        "x.md": ".gitignore:1: x.md",
    }
    # In a worktree .git is a file.
    shutil.rmtree(tmp_path / "repo/.git")
    make(tmp_path, {"repo/.git": "gitdir: elsewhere\n"})
    assert found(docs) == ["sub/b.log", "sub/c.tmp", "sub/d.bak", "sub/e.md"]


def test_lines_that_are_no_pattern_match_nothing(
    tmp_path: Path, recwarn: pytest.WarningsRecorder
) -> None:
    lines = [
        "bom.md",
        "end\\ ",
        "   ",
        "# a",
        "!",
        "/",
        "//",
        "!/",
        "[",
        "[b-a]x",
        "a\\",
        "[[a]x",
        "b.md",
    ]
    make(tmp_path, {".gitignore": "\ufeff" + "\r\n".join(lines), "a": "", "b.md": "", "x": ""})
    make(tmp_path, {"bom.md": "", "end ": "", "end": ""})
    assert found(tmp_path) == ["a", "end", "x"]
    assert left_out(tmp_path)["b.md"].detail == f".gitignore:{len(lines)}: b.md"
    assert not recwarn.list


def test_an_ignore_file_that_cannot_be_read_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make(tmp_path, {"a.md": "", ".gitignore": "a.md\n" + "#" * 1024 * 1024})
    make(tmp_path, {"sub/.ignore/": "", "top/.git/": "", "top/docs/b.md": "", "top/.ignore": ""})
    os.mkfifo(tmp_path / "sub/.gitignore")
    assert found(tmp_path) == ["a.md", "top/docs/b.md"]
    told = left_out(tmp_path)[".gitignore"]
    assert told == LeftOut(".gitignore", "too large", "its patterns do not count")
    assert left_out(tmp_path, rules=ALL)[".gitignore"] == told == explain(tmp_path, ".gitignore")

    def refuse(self: Path, mode: str = "r") -> None:
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(Path, "open", refuse)
    assert reasons(tmp_path)[".gitignore"] == "permission denied"
    assert reasons(tmp_path / "top/docs") == {"../.ignore": "permission denied"}


# hidden names, folders that are never entered, starts


def test_hidden_names_and_what_is_never_entered(tmp_path: Path) -> None:
    files = [".h.md", ".d/a.md", ".git/a.md", "sub/.rag/a.md", "sub/a.md", "sub/.git"]
    make(tmp_path, dict.fromkeys(files, ""))
    assert found(tmp_path) == ["sub/a.md"]
    assert reasons(tmp_path) == {
        ".d": "hidden",
        ".git": "hidden",
        ".h.md": "hidden",
        "sub/.git": "hidden",
        "sub/.rag": "the index itself",
    }
    assert found(tmp_path, rules=ALL) == [".d/a.md", ".h.md", "sub/a.md"]
    named = ("", ".git", ".git/a.md", "sub/.rag", "sub/.rag/a.md")
    assert found(tmp_path, named, WalkRules(hidden=True, ignore=False, follow=True)) == [
        ".d/a.md",
        ".h.md",
        "sub/a.md",
    ]
    assert set(reasons(tmp_path, named, ALL)) == {".git", "sub/.git", "sub/.rag"}


def test_a_cache_folder_is_told_by_its_signature(tmp_path: Path) -> None:
    make(tmp_path, {"c/CACHEDIR.TAG": CACHE_TAG, "c/a.md": "", "d/CACHEDIR.TAG": "other"})
    (tmp_path / "e").mkdir()
    os.mkfifo(tmp_path / "e/CACHEDIR.TAG")
    assert found(tmp_path) == ["d/CACHEDIR.TAG"]
    assert left_out(tmp_path)["c"] == LeftOut("c", "a cache folder", "CACHEDIR.TAG", True)
    assert found(tmp_path / "c") == found(tmp_path / "c", ("a.md", ""))
    assert found(tmp_path, ("c",)) == ["c/CACHEDIR.TAG", "c/a.md"]


def test_a_start_is_walked_whatever_its_name(tmp_path: Path) -> None:
    files = [".h/a.md", ".h/.i.md", "v/b.md", "v/lib/a.md", "v/lib/b.log", "w/a.log", "x.md"]
    make(tmp_path, {".gitignore": "v/\n*.log\n", **dict.fromkeys(files, "")})
    assert found(tmp_path, (".h",)) == [".h/a.md"]
    assert found(tmp_path, ("v/lib",)) == ["v/lib/a.md"]
    assert found(tmp_path, ("w/a.log", ".h/.i.md")) == [".h/.i.md", "w/a.log"]
    # Below another start each file is told once, and what was named is still walked.
    starts = ("v/lib", "", "w/a.log", ".h", "./w/", "x.md", "w/../x.md")
    assert found(tmp_path, starts) == [".h/a.md", "w/a.log", "x.md", "v/lib/a.md"]
    assert reasons(tmp_path, starts)["v"] == "ignored"
    rules = WalkRules(exclude=("lib",), glob=("*.md",))
    assert reasons(tmp_path, ("v/lib", "w/a.log"), rules) == {
        "v/lib": "excluded",
        "w/a.log": "no glob matches",
    }


def test_starts_that_are_not_there_or_outside(tmp_path: Path) -> None:
    make(tmp_path, {"a.md": ""})
    assert reasons(tmp_path, ("gone", "a.md/b", "a.md")) == {
        "gone": "vanished",
        "a.md/b": "vanished",
    }
    for start in ("..", "../x", "/etc", "a/../../x"):
        with pytest.raises(UsageError):
            walk(tmp_path, (start,))


def test_a_root_that_is_no_folder(tmp_path: Path) -> None:
    make(tmp_path, {"a.md": ""})
    for root in (tmp_path / "gone", tmp_path / "a.md", tmp_path / "a.md/b", tmp_path / ("x" * 999)):
        with pytest.raises(UsageError) as caught:
            walk(root)
        assert caught.value.hint


# glob, exclude, size


def test_glob_and_exclude(tmp_path: Path) -> None:
    make(tmp_path, dict.fromkeys(["a.md", "a.txt", "d/a.md", "d/e/a.txt", "d/e/b.md"], ""))
    for glob, expected in [
        (("*.txt",), ["a.txt", "d/e/a.txt"]),
        (("/*.md",), ["a.md"]),
        (("d/**/*.md",), ["d/a.md", "d/e/b.md"]),
        (("d/", "!b.md"), ["d/a.md", "d/e/a.txt"]),
        (("d/", "!e/", "b.md"), ["d/a.md", "d/e/b.md"]),
    ]:
        assert found(tmp_path, rules=WalkRules(glob=glob)) == expected
    assert reasons(tmp_path, rules=WalkRules(glob=("*.md",)))["a.txt"] == "no glob matches"
    rules = WalkRules(exclude=("e/", "*.md", "!/a.md"))
    assert found(tmp_path, rules=rules) == ["a.md", "a.txt"]
    assert left_out(tmp_path, rules=rules)["d/e"] == LeftOut("d/e", "excluded", "e/", True)
    for pattern in ("", "#a", "!", "a\\"):
        for wrong in (WalkRules(glob=("a", pattern)), WalkRules(exclude=(pattern,))):
            with pytest.raises(UsageError, match="pattern"):
                walk(tmp_path, rules=wrong)


def test_found_carries_the_stat_and_the_limit_is_inclusive(tmp_path: Path) -> None:
    make(tmp_path, {"a": "12345", "b": "123456"})
    one, two = walk(tmp_path, rules=WalkRules(max_file_size=5))
    status = (tmp_path / "a").stat()
    assert one == Found("a", 5, status.st_mtime_ns, status.st_ctime_ns)
    assert two == LeftOut("b", "too large", "6 bytes, the limit is 5")


# links and special files


def link(root: Path, links: dict[str, str]) -> None:
    for name, target in links.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).symlink_to(target)


def test_a_file_in_the_folder_is_found_once_whatever_links_to_it(tmp_path: Path) -> None:
    make(tmp_path, {"a/b/f.md": "", "a/g.md": "", ".h/i.md": ""})
    link(tmp_path, {"a/b/back": "../../a", "self": ".", "to_file.md": "a/g.md", "to_dir": "a/b"})
    link(tmp_path, {"z.md": str(tmp_path / ".h/i.md"), "round": "round", "chain": "to_dir"})
    for rules in (WalkRules(), FOLLOW):
        assert found(tmp_path, rules=rules) == ["a/b/f.md", "a/g.md"]
        told = {p: (i.reason, i.detail) for p, i in left_out(tmp_path, rules=rules).items()}
        assert told.pop("round")[0] == "symlink loop"
        assert told == {
            ".h": ("hidden", ""),
            "a/b/back": ("symlink loop", "a"),
            "chain": ("linked twice", "a/b"),
            "self": ("symlink loop", "."),
            "to_dir": ("linked twice", "a/b"),
            "to_file.md": ("linked twice", "a/g.md"),
            "z.md": ("linked twice", ".h/i.md"),
        }


def test_links_out_of_the_folder_are_not_followed_unless_asked(tmp_path: Path) -> None:
    make(tmp_path, {"out/x.md": "", "out/sub/y.md": "", "out/build/z.md": "", "root/a.md": ""})
    make(tmp_path, {"root/.gitignore": "build/\n", "rooted/q.md": "", "other/.rag/q.md": ""})
    root = tmp_path / "root"
    link(root, {"l1": "../out/sub", "l2": "../out", "l3": "../out/sub", "f.md": "../out/x.md"})
    link(root, {"gone": "../gone", "proc": "/proc", "up": "..", "null": "/dev/null"})
    link(root, {"build": "../out/sub", "beside": "../rooted", "rag": "../other/.rag"})
    outside = "symlink out of the folder"
    assert found(root) == ["a.md"]
    assert reasons(root) == {
        ".gitignore": "hidden",
        "build": "ignored",
        "gone": "dangling symlink",
        "null": "not a regular file",
        "rag": "the index itself",
        **dict.fromkeys(["beside", "f.md", "l1", "l2", "l3", "proc", "up"], outside),
    }
    assert left_out(root)["l2"] == LeftOut("l2", outside, str(tmp_path / "out"), folder=True)

    make(tmp_path, {"new.md": ""})
    rules = WalkRules(follow=True, exclude=("/proc",))
    assert found(root, rules=rules) == ["a.md", "beside/q.md", "f.md", "l1/y.md", "up/new.md"]
    told = {p: (i.reason, i.detail) for p, i in left_out(root, rules=rules).items()}
    assert told.pop("gone")[0] == "dangling symlink"
    assert told == {
        ".gitignore": ("hidden", ""),
        "build": ("ignored", ".gitignore:1: build/"),
        "l2/build": ("ignored", ".gitignore:1: build/"),
        "l2/sub": ("linked twice", "l1"),
        "l2/x.md": ("linked twice", "f.md"),
        "l3": ("linked twice", "l1"),
        "null": ("not a regular file", "a device"),
        "proc": ("excluded", "/proc"),
        "rag": ("the index itself", "never entered"),
        "up/other/.rag": ("the index itself", "never entered"),
        "up/out": ("linked twice", "l2"),
        "up/root": ("linked twice", "."),
        "up/rooted": ("linked twice", "beside"),
    }
    items = list(walk(root, rules=rules))
    assert [explain(root, item.path, rules) for item in items] == items


def test_folders_that_link_to_each_other_end(tmp_path: Path) -> None:
    """Followed path by path, eight folders that all link to each other would be 8! walks."""
    for i in range(8):
        make(tmp_path, {f"{i}/f.md": ""})
        link(tmp_path, {f"{i}/to{j}": f"../{j}" for j in range(8)})
    assert len(found(tmp_path / "0", rules=FOLLOW)) == 8
    assert len(found(tmp_path, rules=FOLLOW)) == 8


def test_a_start_that_is_a_link_is_followed_but_nothing_is_told_twice(tmp_path: Path) -> None:
    make(tmp_path, {"root/a.md": "", "root/.h/b.md": "", "root/d/c.md": "", "out/sub/d.md": ""})
    root = tmp_path / "root"
    link(root, {"b.md": ".h/b.md", "b2.md": ".h/b.md", "0": "../out", "1": "d", "2": "../out/sub"})
    assert found(root, ("b.md",)) == ["b.md"]
    assert found(root, ("b2.md", "b.md")) == ["b.md"]
    assert found(root, ("0", "1")) == ["0/sub/d.md", "1/c.md"]
    assert found(root, ("0/sub",)) == ["0/sub/d.md"]
    assert found(root, ("0/sub", "2")) == ["0/sub/d.md"]
    assert found(root, ("", "0", "1", "d", "2", "0/sub")) == ["0/sub/d.md", "a.md", "d/c.md"]
    assert reasons(root, ("1", "d")) == {"1": "linked twice"}
    link(root, {"0d": "d/e"})
    make(root, {"d/e/f.md": ""})
    assert found(root, ("0d", "d")) == ["d/c.md", "d/e/f.md"]
    # A link beside the starts leads out of what was named.
    link(root, {"d/up.md": "../a.md"})
    assert reasons(root, ("d",)) == {"d/up.md": "symlink out of the folder"}


def test_special_files_are_never_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    os.mkfifo(tmp_path / "a.md")
    monkeypatch.chdir(tmp_path)  # a socket's path may have 100 bytes only
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("b.md")
        told = {item.path: (item.reason, item.detail) for item in left_out(tmp_path).values()}
    kind = "not a regular file"
    assert told == {"a.md": (kind, "a FIFO"), "b.md": (kind, "a socket")}


# names, order, depth, what changes meanwhile


def test_names_of_all_kinds(tmp_path: Path) -> None:
    names = ["new\nline", "[brackets]", "🦄 notes", 'it\'s "so"', "-rf", "*", "é", "tab\t", "end "]
    names += ["back\\slash", "x" * 240]
    if sys.platform == "linux":  # where a name may be any bytes
        names.append(os.fsdecode(b"latin1-\xe9t\xe9"))
    make(tmp_path, {f"{name}/{name}.{end}": "" for name in names for end in ("md", "log")})
    for folder in ("", "new\nline/"):
        lines = [b"*.log", b"/latin1-\xe9t\xe9/*.md", b"/\\*/", "é/?.md".encode(), b"new*e"]
        (tmp_path / folder / ".gitignore").write_bytes(b"\n".join(lines))
    kept = sorted(
        (n for n in names if n[0] not in "*é" and n[:6] != "latin1" and n[:3] != "new"),
        key=os.fsencode,
    )
    assert found(tmp_path) == [f"{name}/{name}.md" for name in kept]
    assert found(tmp_path, ("new\nline",)) == ["new\nline/new\nline.md"]
    by_bytes = sorted(names, key=os.fsencode)
    plain = WalkRules(ignore=False, glob=("*.md",))
    assert found(tmp_path, rules=plain) == [f"{name}/{name}.md" for name in by_bytes]


def test_depth_first_by_the_bytes_of_the_names(tmp_path: Path) -> None:
    expected = ["B.md", "a.md", "b/a/z.md", "b/a.md", "b-c.md", "b.md", "é.md", "～.md", "🦄.md"]
    if sys.platform == "linux":  # as characters, this one would come before "～"
        expected.append(os.fsdecode(b"\xf5.md"))
    make(tmp_path, dict.fromkeys(expected, ""))
    assert found(tmp_path) == expected
    assert found(tmp_path, tuple(reversed(expected))) == sorted(expected, key=os.fsencode)


@pytest.fixture
def deep(tmp_path: Path) -> Iterator[Path]:
    """1,020 folders in each other, then fifteen of long names, so that the path gets too long.

    Made and removed from the inside, since nothing else reaches them.
    """
    names = ["d"] * 1020 + ["e" * 200] * 15
    here = Path.cwd()
    os.chdir(tmp_path)
    for name in names:
        Path(name).mkdir()
        os.chdir(name)
    (tmp_path / ("d/" * 1020) / "f.md").write_text("")
    yield tmp_path
    (tmp_path / ("d/" * 1020) / "f.md").unlink()
    for name in reversed(names):
        os.chdir("..")
        Path(name).rmdir()
    os.chdir(here)


def test_a_tree_deeper_than_the_stack(deep: Path) -> None:
    last, file = walk(deep)
    assert isinstance(last, LeftOut)
    assert (last.reason, last.folder) == ("path too long", True)
    assert len(os.fsencode(deep.resolve() / last.path)) > 4000
    assert file.path == "d/" * 1020 + "f.md"
    assert [explain(deep, last.path), explain(deep, file.path)] == [last, file]


def test_what_vanishes_during_the_walk_is_told(tmp_path: Path) -> None:
    make(tmp_path, dict.fromkeys(["a.md", "b.md", "c/d.md", "e/f.md"], ""))
    items = walk(tmp_path)
    assert isinstance(next(items), Found)
    (tmp_path / "b.md").unlink()
    shutil.rmtree(tmp_path / "c")
    assert [(i.path, getattr(i, "reason", None), getattr(i, "folder", None)) for i in items] == [
        ("b.md", "vanished", False),
        ("c", "vanished", True),
        ("e/f.md", None, None),
    ]


def test_a_folder_that_may_not_be_read_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make(tmp_path, dict.fromkeys(["a.md", "b/c.md", "d.md"], ""))
    (tmp_path / "b").chmod(0)
    if os.access(tmp_path / "b", os.R_OK):  # as root, whom nothing is refused
        listing = os.scandir

        def refuse(path: str) -> object:
            if not stat.S_IMODE(Path(path).stat().st_mode):
                raise PermissionError(errno.EACCES, "Permission denied", path)
            return listing(path)

        monkeypatch.setattr(os, "scandir", refuse)
    told = LeftOut("b", "permission denied", "Permission denied", folder=True)
    assert left_out(tmp_path) == {"b": told}
    assert found(tmp_path) == ["a.md", "d.md"]
    assert explain(tmp_path, "b/c.md") == told
    (tmp_path / "b").chmod(0o700)


def test_explain_of_what_has_no_verdict_of_its_own(tmp_path: Path) -> None:
    make(tmp_path, {"a/b.md": "", ".h/c/d.md": ""})
    assert explain(tmp_path, "./a//b.md").path == "a/b.md"
    assert explain(tmp_path, ".h/c/d.md") == LeftOut(".h", "hidden", folder=True)
    for path in ("gone", "a/gone", "a/b.md/c"):
        assert explain(tmp_path, path) == LeftOut(path, "vanished", "there is no such file")
    for path in ("", "a", "../x"):
        with pytest.raises(UsageError):
            explain(tmp_path, path)


def test_pathspec_is_imported_only_for_a_pattern(tmp_path: Path) -> None:
    script = """
import sys
from pathlib import Path
from ragcli.corpus.walk import WalkRules, walk
root = Path(sys.argv[1])
assert len(list(walk(root))) == 2
assert "pathspec" not in sys.modules
list(walk(root, rules=WalkRules(exclude=("a",))))
assert "pathspec" in sys.modules
"""
    make(tmp_path, {"a.md": "", ".gitignore": "# nothing\n\n"})
    checkout = Path(__file__).resolve().parents[1]
    subprocess.run([sys.executable, "-c", script, str(tmp_path)], check=True, cwd=checkout)


@pytest.mark.shared
@pytest.mark.skipif(not (SHARED / "zoo/make_special.sh").exists(), reason="needs ../shared")
@pytest.mark.skipif(sys.platform != "linux", reason="the script is for Linux")
def test_the_zoo_of_special_files(tmp_path: Path) -> None:
    subprocess.run(
        ["bash", SHARED / "zoo/make_special.sh", tmp_path], check=True, capture_output=True
    )
    told = {path: (i.reason, i.folder) for path, i in left_out(tmp_path).items()}
    told.pop("unreadable_dir", None)  # root may read it, and it is empty
    assert told == {
        ".git": ("hidden", True),
        ".hidden.md": ("hidden", False),
        "dangling.md": ("dangling symlink", False),
        "link_to_file.txt": ("linked twice", False),
        "link_to_proc": ("symlink out of the folder", True),
        "loop/a/b/back": ("symlink loop", True),
        "loop/self": ("symlink loop", True),
        "pipe.txt": ("not a regular file", False),
        "sparse_2GB.bin": ("too large", False),
        "sparse_2GB.txt": ("too large", False),
    }
    kept = found(tmp_path)
    assert len(kept) == 5021
    assert {"names/new\nline.md", "names/🦄 notes.md", "names/-rf.md", "empty.txt"} < set(kept)
    assert os.fsdecode(b"names/latin1-\xe9t\xe9.md") in kept
    (tmp_path / "unreadable_dir").chmod(0o700)
