"""Requirement files as pip reads them, and every mistake in them at its line."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from provisioner.document import Position
from provisioner.spec.requirement_file import read_requirement_file

if TYPE_CHECKING:
    from pathlib import Path

NAMED = Position(4, 5, "provision.yaml")
ONE, TWO = "1" * 64, "2" * 64


def read(folder: Path, text: str, **others: str) -> tuple[list[str], list[str]]:
    """The lines of `r.txt`, each `line:column text`, a constraint marked; and the mistakes."""
    for name, content in {"r": text, **others}.items():
        (folder / f"{name}.txt").write_text(content)
    reading = read_requirement_file(folder / "r.txt", named_at=NAMED)
    found = [
        f"{line.position.file.removeprefix(f'{folder}/')}:{line.position.line}:{line.position.column} "
        f"{'constraint ' if line.is_constraint else ''}{line.text}{' '.join(['', *line.hashes])}"
        for line in reading.lines
    ]
    return found, [str(mistake).replace(f"{folder}/", "") for mistake in reading.mistakes]


def test_comments_continuations_and_blank_lines(tmp_path: Path) -> None:
    text = (
        "# numpy\n"
        "\n"
        "  numpy>=2  # the newest\n"
        "requests [security] >= 2.8.1, \\\n"
        "    == 2.8.* ; python_version < '2.7'\n"
        "foo#bar\n"
        "pandas \\\n"
        "# a comment ends what is continued\n"
        "scipy\\\n"
    )
    assert read(tmp_path, text)[0] == [
        "r.txt:3:3 numpy>=2",
        "r.txt:4:1 requests [security] >= 2.8.1,     == 2.8.* ; python_version < '2.7'",
        "r.txt:6:1 foo#bar",
        "r.txt:7:1 pandas",
        "r.txt:9:1 scipy",
    ]


def test_files_name_each_other_from_where_they_stand(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "more.txt").write_text("pandas\n-c ../bounds.txt\n")
    found = read(tmp_path, "-r sub/more.txt\n--constraint=bounds.txt\nnumpy\n-rlast.txt\n", bounds="scipy<2\n", last="six\n")
    assert found == (
        ["sub/more.txt:1:1 pandas", "sub/../bounds.txt:1:1 constraint scipy<2", "r.txt:3:1 numpy", "last.txt:1:1 six"],
        [],
    )


def test_a_constraints_file_requires_what_it_names_with_r(tmp_path: Path) -> None:
    found = read(tmp_path, "-c c.txt\n", c="numpy<2\n-r d.txt\n", d="pandas\n")
    assert found[0] == ["c.txt:1:1 constraint numpy<2", "d.txt:1:1 pandas"]


def test_files_in_a_circle_and_files_that_are_not_there(tmp_path: Path) -> None:
    found = read(tmp_path, "-r a.txt\n-r gone.txt\n-r https://x.test/r.txt\n-r\n", a="six\n-r r.txt\n")
    assert found == (
        ["a.txt:1:1 six"],
        [
            "a.txt:2:1: `r.txt` names itself: r.txt -> a.txt -> r.txt",
            "r.txt:2:1: requirement file `gone.txt` does not exist",
            "r.txt:3:1: `https://x.test/r.txt` is not read over the network; save it beside this file",
            "r.txt:4:1: `--requirement` names no file",
        ],
    )
    mistakes = read_requirement_file(tmp_path / "none.txt", named_at=NAMED).mistakes
    assert [str(one) for one in mistakes] == [f"provision.yaml:4:5: requirement file `{tmp_path}/none.txt` does not exist"]


def test_variables_are_those_of_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SERIES", "2.6")
    monkeypatch.delenv("MISSING", raising=False)
    assert read(tmp_path, "torch==${SERIES}.*\nnumpy # ${MISSING}\nx==${lower}\ny==${MISSING}\n") == (
        ["r.txt:1:1 torch==2.6.*", "r.txt:2:1 numpy", "r.txt:3:1 x==${lower}"],
        ["r.txt:4:1: the environment variable MISSING is not set"],
    )


def test_a_commit_of_a_repository_is_a_requirement(tmp_path: Path) -> None:
    address = f"git+https://github.com/x/six@{'a' * 40}"
    named = f"six @ {address}\nfour @ {address} ; python_version < '4'\n"
    others = f"{address}#egg=seven\n-e {address}#egg=eight\nnine[x]@{address}\n"
    nameless = f"{address}\n-e git+https://gitlab.com/a/x/ten.git@{'b' * 40}\n"
    assert read(tmp_path, named + others + nameless) == (
        [
            f"r.txt:1:1 six @ {address}",
            f"r.txt:2:1 four @ {address} ; python_version < '4'",
            f"r.txt:3:1 seven @ {address}#egg=seven",
            f"r.txt:4:1 eight @ {address}#egg=eight",
            f"r.txt:5:1 nine[x]@{address}",
            f"r.txt:6:1 six @ {address}",
            f"r.txt:7:1 ten @ git+https://gitlab.com/a/x/ten.git@{'b' * 40}",
        ],
        [],
    )


def test_hashes_are_kept(tmp_path: Path) -> None:
    text = f"six==1.16.0 \\\n  --hash=sha256:{ONE} \\\n  --hash sha256:{TWO} --hash=sha512:{'a' * 128}\n"
    assert read(tmp_path, text) == ([f"r.txt:1:1 six==1.16.0 {ONE} {TWO}"], [])


@pytest.mark.parametrize(
    ("line", "mistake"),
    [
        ("six --hash=md5:00", "`--hash=md5:00` is not a hash that protects anything; it is sha256: and 64 hexadecimal digits"),
        (f"six --hash=sha512:{'a' * 128}", "of its files only sha256 is known; give `--hash=sha256:…` as well"),
        (
            "six --global-option=x",
            "`--global-option` is not read from requirement files: nothing is built with options; build a wheel",
        ),
        (
            "--index-url https://me:secret@x.test/simple",
            (
                "the address of `--index-url` carries a login, "
                "and this file is shared; write it as ${VARIABLE}, or put it into ~/.netrc or the keyring"
            ),
        ),
        ("-f", "`--find-links` names nothing"),
        ("-e ./gone[x]", "`./gone[x]` is not read: there is no folder `./gone`"),
        ("-e six", "`six` is not read: there is no folder `six`"),
        (
            "-e git+https://github.com/x/six@main#egg=six",
            (
                "a repository is not a file that can be locked, and `main` may move: write "
                "`six @ https://github.com/x/six/archive/COMMIT.tar.gz` with the commit that `git ls-remote` tells"
            ),
        ),
        (
            "git+https://gitlab.com/a/x/six.git@v1",
            (
                "a repository is not a file that can be locked, and `v1` may move: write "
                "`six @ https://gitlab.com/a/x/six/-/archive/COMMIT/six-COMMIT.tar.gz` with the commit that "
                "`git ls-remote` tells"
            ),
        ),
        (
            "git+ssh://git@host.test/x/six@v1",
            (
                "a repository is not a file that can be locked: "
                "build a wheel of it (`pip wheel --no-deps`), and write `name @ file:…` or `name @ https://…`"
            ),
        ),
        ("--pre", "`--pre` is not read from requirement files: say so in the spec: `policy: {allow: [prerelease]}`"),
        (
            "--only-binary=six",
            (
                "`--only-binary` is not read from requirement files: wheels are taken wherever there are any, of everything; "
                "leave it out"
            ),
        ),
        ("--upgrade", "`--upgrade` is not an option of requirement files"),
        (
            "six @ git+https://github.com/x/six",
            (
                "a repository is not a file that can be locked, and its default branch moves: write "
                "`six @ https://github.com/x/six/archive/COMMIT.tar.gz` with the commit that `git ls-remote` tells"
            ),
        ),
        ("./six", "a file needs its name before it: write `name @ file:…` or `name @ https://…`"),
        ("https://x.test/six-1.tar.gz", "a file needs its name before it: write `name @ file:…` or `name @ https://…`"),
    ],
)
def test_what_is_not_read_is_refused_with_what_to_do(tmp_path: Path, line: str, mistake: str) -> None:
    assert read(tmp_path, f"numpy\n  {line}\n") == (["r.txt:1:1 numpy"], [f"r.txt:2:3: {mistake}"])


def test_options_that_change_nothing_are_passed_over(tmp_path: Path) -> None:
    assert read(tmp_path, "--only-binary :all:\n--prefer-binary\nsix\n") == (["r.txt:3:1 six"], [])


def test_options_that_say_how_pip_works_are_passed_over_and_kept_to_be_told(tmp_path: Path) -> None:
    (tmp_path / "r.txt").write_text(
        "--trusted-host pypi.test\n--use-feature=fast-deps\nsix\n--trusted-host\n", encoding="utf-8"
    )
    reading = read_requirement_file(tmp_path / "r.txt", named_at=NAMED)
    assert [(one.name, one.value, one.position.line) for one in reading.passed_over] == [
        ("--trusted-host", "pypi.test", 1),
        ("--use-feature", "fast-deps", 2),
    ]
    assert [(one.line, one.text) for one in reading.mistakes] == [(4, "`--trusted-host` names nothing")]


def test_a_file_that_requires_hashes_has_them(tmp_path: Path) -> None:
    text = f"--require-hashes\nsix==1 --hash=sha256:{ONE}\nidna==3\n"
    mistake = "r.txt:3:1: `idna==3` has no `--hash`, though the file says --require-hashes"
    assert read(tmp_path, text) == ([f"r.txt:2:1 six==1 {ONE}"], [mistake])


def test_a_wheel_names_itself(tmp_path: Path) -> None:
    text = "./down loads/x.whl\n./w/my_lib-1.0-py3-none-any.whl ; python_version > '3'\nhttps://x.test/lib-2-py3-none-any.whl#sha256=0\n"
    assert read(tmp_path, text)[0] == [
        "r.txt:2:1 my_lib @ file:./w/my_lib-1.0-py3-none-any.whl ; python_version > '3'",
        "r.txt:3:1 lib @ https://x.test/lib-2-py3-none-any.whl#sha256=0",
    ]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_a_byte_order_mark_says_how_a_file_is_written(tmp_path: Path, encoding: str) -> None:
    (tmp_path / "r.txt").write_bytes("numpy # é\n".encode(encoding))
    reading = read_requirement_file(tmp_path / "r.txt", named_at=NAMED)
    assert ([line.text for line in reading.lines], reading.mistakes) == (["numpy"], [])


def test_a_file_that_is_not_text_is_a_mistake_where_it_is_named(tmp_path: Path) -> None:
    for content, reason in (
        (b"\xff\xfea", "is not UTF-16 text, though it begins like it"),
        (b"a\xff", "is not UTF-8 text (byte 1)"),
    ):
        (tmp_path / "r.txt").write_bytes(content)
        mistakes = read_requirement_file(tmp_path / "r.txt", named_at=NAMED).mistakes
        assert [str(one) for one in mistakes] == [f"provision.yaml:4:5: requirement file `{tmp_path}/r.txt` {reason}"]


def test_lines_that_name_indexes_and_projects_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOKEN", "secret")
    (tmp_path / "core").mkdir()
    (tmp_path / "wheels").mkdir()
    text = (
        "-i https://${TOKEN}@x.test/simple\n--extra-index-url https://y.test/simple\n-f wheels\n-f gone\n"
        "-e .\n-e ./core[a,b]\n./core\ncore\n"
    )
    (tmp_path / "r.txt").write_text(text, encoding="utf-8")
    reading = read_requirement_file(tmp_path / "r.txt", named_at=NAMED)
    assert reading.mistakes == []
    assert [(one.option, one.url, one.position.line) for one in reading.indexes] == [
        ("index-url", "https://secret@x.test/simple", 1),
        ("extra-index-url", "https://y.test/simple", 2),
        ("find-links", (tmp_path / "wheels").as_uri(), 3),
        ("find-links", "gone", 4),
    ]
    assert [(one.text, one.folder, one.extras) for one in reading.projects] == [
        ("-e .", tmp_path, ()),
        ("-e ./core[a,b]", tmp_path / "core", ("a", "b")),
        ("./core", tmp_path / "core", ()),
    ]
    assert [line.text for line in reading.lines] == ["core"]
