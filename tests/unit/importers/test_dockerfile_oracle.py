"""Our parser of Dockerfiles against BuildKit's own, which the package `dockerfile` wraps (dev dependency, x86-64 alone)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from provisioner.importers.dockerfile_syntax import parse_dockerfile
from tests.strategies import examples

buildkit = pytest.importorskip("dockerfile", reason="no wheel of `dockerfile` for this machine")

Parsed = list[tuple[str, int, tuple[str, ...], str, tuple[str, ...]]]


def ours(text: str) -> Parsed:
    """Word, line, flags, value and here-documents of each instruction; blanks are not compared."""
    return [
        (
            one.word,
            one.position.line,
            tuple(f"--{name}={value}" if value else f"--{name}" for name, value in one.flags),
            "".join(one.value.split()),
            tuple("".join(doc.split()) for doc in one.heredocs),
        )
        for one in parse_dockerfile(text, file="Dockerfile")
    ]


def theirs(text: str) -> Parsed:
    found = []
    for one in buildkit.parse_string(text):
        original = one.original.split("\n", 1)[0] if one.heredocs else one.original
        value = "".join(original.split())[len(one.cmd) :]
        for flag in one.flags:
            value = value.replace("".join(flag.split()), "", 1)
        docs = tuple("".join(doc.content.split()) for doc in one.heredocs)
        found.append((one.cmd.upper(), one.start_line, tuple(one.flags), value, docs))
    return found


SAMPLES = (
    "FROM a",
    'from a as b\nRUN pip install \\\n  x \\\n\n  # why\n  y\nCMD ["x"]',
    "# escape=`\nFROM a\nRUN x `\n  y \\\nRUN z",
    "#syntax=docker/dockerfile:1\n# escape=`\nFROM a\nRUN a `\n b",
    "# a comment\n# escape=`\nFROM a\nRUN a \\\n b",
    "FROM a\nRUN <<EOF\npip install x\n# no comment\nEOF\nRUN y",
    "FROM a\nRUN <<-'END' bash\n\tpip install x\n\tEND\nUSER u",
    "FROM a\nCOPY <<one <<two /d/\n1\none\n2\ntwo\nRUN y",
    "FROM a\nRUN --mount=type=cache,target=/c --network=none pip install x",
    "FROM --platform=linux/amd64 a:1 AS b\nCOPY --from=b --chown=1:1 x y",
    "FROM a\r\nRUN x \\\r\n  y\r\n",
    "FROM a\n\tRUN x \\\t\n  y \\",
    "FROM a\nENV A=b C='d e' \\\n  F=g\nARG X",
)


@pytest.mark.parametrize("text", SAMPLES)
def test_an_instruction_is_what_buildkit_takes_it_for(text: str) -> None:
    assert ours(text) == theirs(text)


LINES = st.sampled_from(
    [
        "RUN pip install x \\",
        "  y \\",
        "  && z",
        "",
        "# comment",
        "  # indented comment",
        "RUN <<EOF",
        "EOF",
        "pip install q",
        "COPY --from=b /a /b",
        "ENV A=b \\",
        "RUN --mount=type=bind,source=r.txt,target=/r.txt pip install -r /r.txt",
        "run echo \\ a",
        'CMD ["a", \\',
        '"b"]',
    ]
)


@examples(300)
@given(lines=st.lists(LINES, max_size=9))
def test_any_lines_are_what_buildkit_takes_them_for(lines: list[str]) -> None:
    text = "\n".join(["FROM a AS b", *lines])
    try:
        expected = theirs(text)
    except buildkit.GoParseError:
        return  # an unknown instruction, or a here-document without an end
    assert ours(text) == expected
