"""Laws of diagnoses: how a log was carried does not change what is recognised; two logs hold what each of them holds."""

from __future__ import annotations

import io
from unicodedata import category

import pytest
from hypothesis import given
from hypothesis import strategies as st

from provisioner.diagnose.diagnosis import diagnose
from provisioner.diagnose.log import UnreadableLogError, log_of, read_log
from provisioner.diagnose.recognise import recognise
from tests.shipped import shipped
from tests.strategies import examples

pytestmark = pytest.mark.property

PREFIXES = (
    "",
    "[   23.991660] ",
    "Jun 30 11:07:05 gpu-0 kernel: ",
    "2026-11-23T10:00:00.123456789Z stderr F ",
    "trainer-1  | ",
    "[rank0]: ",
    '{"log":"',
    "\x1b[31m",
)


def samples() -> list[tuple[str, str]]:
    found = [(one.name, sample) for one in shipped().failures if one.kind != "silent" for sample in one.samples]
    return [(name, sample) for name, sample in found if "\n" not in sample]


def names_in(text: str) -> set[str]:
    return {one.failure.name for one in recognise(log_of(text), shipped()).failures}


@examples(150)
@given(data=st.data())
def test_prefixes_colours_and_line_ends_do_not_change_what_is_recognised(data: st.DataObject) -> None:
    _, sample = data.draw(st.sampled_from(samples()))
    prefix = data.draw(st.sampled_from(PREFIXES))
    end = data.draw(st.sampled_from(["", "\x1b[0m", "\r", " ", '\\n","stream":"stderr"}']))
    noise = data.draw(st.sampled_from(["", "all is well\n", "progress 1%\rprogress 2%\n"]))
    assert names_in(f"{noise}{prefix}{sample}{end}\n{noise}") == names_in(sample)


@examples(150)
@given(data=st.data())
def test_two_logs_together_hold_the_findings_of_both(data: st.DataObject) -> None:
    (_, one), (_, other) = (data.draw(st.sampled_from(samples())) for _ in range(2))
    # failures that only several messages together tell may come in addition
    together = {failure.name for failure in shipped().failures if failure.together}
    assert names_in(f"{one}\n{other}") - together == (names_in(one) | names_in(other)) - together


@examples(150)
@given(data=st.data(), encoding=st.sampled_from(["utf-8", "utf-16", "utf-16-le", "utf-16-be", "utf-8-sig"]))
def test_encodings_do_not_change_what_is_recognised(data: st.DataObject, encoding: str) -> None:
    _, sample = data.draw(st.sampled_from(samples()))
    log = read_log(io.BytesIO(f"{sample}\n".encode(encoding)))
    assert {one.failure.name for one in recognise(log, shipped()).failures} == names_in(sample)


@examples(150)
@given(content=st.binary(max_size=3000), data=st.data())
def test_no_log_makes_a_diagnosis_fail(content: bytes, data: st.DataObject) -> None:
    _, sample = data.draw(st.sampled_from(samples()))
    try:
        log = read_log(io.BytesIO(content + b"\n" + sample.encode() + content[:100]))
    except UnreadableLogError:
        assert content.startswith(b"\x1f\x8b"), "only what begins like an archive, and is none, cannot be read"
        return
    found = diagnose(log, shipped())
    assert found.verdict in {"cause", "harmless", "unknown"}
    shown = [quote.text for one in found.findings for quote in one.recognised.quotes]
    assert not [one for text in shown for one in text if category(one) == "Cc" and one != "\t"]
