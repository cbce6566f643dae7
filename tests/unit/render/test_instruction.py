from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from provisioner.render.instruction import (
    Arg,
    Cmd,
    Comment,
    CopyContext,
    CopyStage,
    Env,
    From,
    Instruction,
    Label,
    Mount,
    Run,
    UnwritableValueError,
    User,
    Workdir,
    quote,
)


@pytest.mark.parametrize(
    ("instruction", "text"),
    [
        (Comment("one\n\ntwo"), "# one\n#\n# two"),
        (From("debian:13", "base"), "FROM debian:13 AS base"),
        (From("debian:13", "base", "sha256:ab"), "FROM debian:13@sha256:ab AS base"),
        (Env((("A", "1"),)), 'ENV A="1"'),
        (Env((("A", "1"), ("B", "2"))), 'ENV A="1" B="2"'),
        (Env((("PATH", "/a:$PATH"),), expands=True), 'ENV PATH="/a:$PATH"'),
        (Env((("A", 'say "$HOME" \\ done'),)), 'ENV A="say \\"\\$HOME\\" \\\\ done"'),
        (Label((("a.b", "cuda>=12.6 brand=tesla,driver>=535"),)), 'LABEL a.b="cuda>=12.6 brand=tesla,driver>=535"'),
        (Run(("one", "two")), "RUN one \\\n    && two"),
        (
            Run(("one",), (Mount("cache", (("target", "/c"),)), Mount("secret", (("id", "ca"),)))),
            "RUN --mount=type=cache,target=/c --mount=type=secret,id=ca \\\n    one",
        ),
        (
            Run(("one",), (Mount("bind", (("source", "x" * 80),)), Mount("secret", (("id", "ca"),)))),
            f"RUN --mount=type=bind,source={'x' * 80} \\\n    --mount=type=secret,id=ca \\\n    one",
        ),
        (CopyContext(("a", "b*/*.whl"), "/"), "COPY a b*/*.whl /"),
        (CopyStage("built", "/opt/root/", "/"), "COPY --from=built /opt/root/ /"),
        (Arg(("A", "B")), 'ARG A="" B=""'),
        (Label((("a", "$A"), ("b", '"')), expands=True), 'LABEL a="$A" b="\\""'),
        (User("10001:10001"), "USER 10001:10001"),
        (Workdir("/home/provision"), "WORKDIR /home/provision"),
        (Cmd(("python", "-c", 'print("x")')), 'CMD ["python", "-c", "print(\\"x\\")"]'),
    ],
)
def test_an_instruction_is_its_line(instruction: Instruction, text: str) -> None:
    assert str(instruction) == text


@pytest.mark.parametrize("value", ["a\nRUN x", "a\rb", "\0", "\x7f"])
def test_a_value_that_would_break_out_of_its_line_is_refused(value: str) -> None:
    with pytest.raises(UnwritableValueError, match=r"holds a control character, which a Dockerfile cannot$"):
        quote(value)


@given(st.text(st.characters(exclude_categories=["Cc", "Cs"])))
def test_a_quoted_value_reads_back_as_it_was(value: str) -> None:
    """In double quotes a Dockerfile knows a backslash before a quote, a dollar or another one, and nothing else special."""
    quoted = quote(value)
    assert quoted[0] == quoted[-1] == '"'
    read, escaped = "", False
    for character in quoted[1:-1]:
        if character == "\\" and not escaped:
            escaped = True
            continue
        assert escaped or character not in '"$'
        read += character
        escaped = False
    assert read == value
