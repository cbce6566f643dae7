"""Logs as lines: encodings, colours, progress bars, archives, limits, and what may be shown of them."""

from __future__ import annotations

import gzip
import io

import pytest

from provisioner.diagnose.log import UnreadableLogError, log_of, quoted, read_log, without_secrets

TEXT = "first line\nsecond line, ünïcode\nthird\n"


def lines_of(content: bytes, **limits: int) -> list[tuple[int, str]]:
    log = read_log(io.BytesIO(content), **limits)
    return list(zip(log.numbers, log.shown, strict=True))


EXPECTED = [(1, "first line"), (2, "second line, ünïcode"), (3, "third")]


@pytest.mark.parametrize(
    "content",
    [
        TEXT.encode(),
        TEXT.replace("\n", "\r\n").encode(),
        TEXT.encode("utf-8-sig"),
        TEXT.encode("utf-16"),
        TEXT.encode("utf-16-le"),
        TEXT.encode("utf-16-be"),
        gzip.compress(TEXT.encode(), mtime=0),
        gzip.compress(TEXT.encode("utf-16"), mtime=0),
        gzip.compress(TEXT[:11].encode(), mtime=0) + gzip.compress(TEXT[11:].encode(), mtime=0),
        TEXT.replace("second", "\x1b[1;31msecond\x1b[0m\x1b]0;title\x07").encode(),
        TEXT.replace("second", "\x00\x07se\u202econd").encode(),
    ],
)
def test_a_log_is_the_same_lines_however_it_is_written(content: bytes) -> None:
    assert lines_of(content) == EXPECTED


def test_bytes_that_are_no_text_do_not_stop_the_reading() -> None:
    assert lines_of(b"\xff\xfebad\x80\n"[2:] + b"good\n")[-1] == (2, "good")


def test_each_state_of_a_progress_bar_is_a_line_of_one_number() -> None:
    assert lines_of(b"a\n10%\r50%\rerror: x\nb\n") == [(1, "a"), (2, "10%"), (2, "50%"), (2, "error: x"), (3, "b")]


def test_only_the_end_of_a_long_log_is_read_and_lines_keep_their_numbers() -> None:
    content = b"".join(b"line %07d\n" % number for number in range(400_000))
    log = read_log(io.BytesIO(content), last=1000)
    assert log.skipped > 3_000_000
    assert log.skipped_lines == log.numbers[0] - 1
    assert log.shown[-1] == "line 0399999"
    assert log.numbers[-1] == 400_000


def test_an_empty_log_has_no_line() -> None:
    assert lines_of(b"") == []


def test_a_damaged_archive_is_told() -> None:
    with pytest.raises(UnreadableLogError, match="gzip archive that cannot be unpacked"):
        read_log(io.BytesIO(b"\x1f\x8b\x08\x00damaged and so on"))


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("Looking in indexes: https://ada:secret@host/simple", "Looking in indexes: https://…@host/simple"),
        ("HF_TOKEN=hf_abcdefghijklmnop", "HF_TOKEN=***"),
        ("Authorization: Bearer abcdefgh.ijkl", "Authorization: Bearer ***"),
        ('{"password": "pass word"}', '{"password": "*** word"}'),
        ("login ghp_0123456789abcdefghij failed", "login *** failed"),
        ("no secret here", "no secret here"),
    ],
)
def test_logins_and_tokens_are_masked(text: str, shown: str) -> None:
    assert without_secrets(text) == shown


def test_a_long_line_is_cut_around_its_message() -> None:
    line = f"{'x' * 5000} here {'y' * 5000}"
    text = quoted(line, 5001, 5005)
    assert len(text) < 300
    assert "here" in text
    assert text.startswith("…")
    assert text.endswith("…")


@pytest.mark.parametrize("prefix", ["", "(Worker pid=7) ERROR 05-22 10:26:17 [x.py:1] "])
def test_the_last_error_of_nccl_is_compared_as_the_warning_that_it_was(prefix: str) -> None:
    """PyTorch tells it without `NCCL WARN`."""
    told = ("Last error:", "Error while creating shared memory segment /dev/shm/nccl-EoOvZr (size 7340384)", "the next line")
    log = log_of("\n".join(prefix + line for line in told))
    assert log.lines == (f"{prefix}{told[0]}", f"{prefix}NCCL WARN {told[1]}", f"{prefix}{told[2]}")
    assert log.shown == tuple(prefix + line for line in told)


def test_letters_of_another_language_are_seen() -> None:
    assert log_of("x.c:1:2: 错误 隐式声明函数 [-Wimplicit-function-declaration]").has_other_letters
    assert not log_of("error: implicit declaration of function … ✗").has_other_letters


def test_lines_are_compared_without_quotes_of_their_own() -> None:
    assert log_of("version `GLIBC_2.34'  not found").lines == ("version 'GLIBC_2.34' not found",)
