"""What is printed where, with and without a terminal."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from provisioner.cli import display
from provisioner.errors import InvalidDocumentError, Mistake, UsageError
from tests.pseudo_terminal import on_a_terminal


@pytest.fixture(autouse=True)
def _plain(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("FORCE_COLOR", raising=False)
    monkeypatch.delenv("NO_COLOR", raising=False)


def shown_on_a_terminal(code: str, **environment: str) -> str:
    """What code shows on a terminal 60 cells wide."""
    return on_a_terminal(code, variables={"PATH": os.environ["PATH"], "COLUMNS": "60", **environment})


def test_data_goes_to_stdout_and_ends_in_one_newline(capsys: pytest.CaptureFixture[str]) -> None:
    display.data("FROM debian")
    display.data("RUN true\n")
    assert capsys.readouterr() == ("FROM debian\nRUN true\n", "")


def test_json_keeps_the_order_of_keys_and_the_spelling_of_text(capsys: pytest.CaptureFixture[str]) -> None:
    display.json_data({"status": "solved", "because": "≥ 2.6", "a": []})
    assert capsys.readouterr() == ('{\n  "status": "solved",\n  "because": "≥ 2.6",\n  "a": []\n}\n', "")


HOSTILE = "a\x1b[2Jb\x1b]0;title\x07c\x9b1md\re\u202ef"


def test_what_a_terminal_would_obey_is_shown_instead(capsys: pytest.CaptureFixture[str]) -> None:
    display.data(HOSTILE)
    display.talk(HOSTILE)
    display.failure(UsageError(HOSTILE, causes=("kept\tas it is: ≥ é \u4e2d",)))
    display.table(("name",), [(HOSTILE,)])
    shown = r"a\x1b[2Jb\x1b]0;title\x07c\x9b1md\re\u202ef"
    out, err = capsys.readouterr()
    assert out == f"{shown}\nname\n{shown}\n"
    assert err == f"{shown}\nerror: {shown}  [{UsageError.code}]\n  kept\tas it is: ≥ é \u4e2d\n"


def test_json_spells_what_a_terminal_would_obey(capsys: pytest.CaptureFixture[str]) -> None:
    display.json_data({"why": HOSTILE, "≥": 1})
    out = capsys.readouterr().out
    assert json.loads(out) == {"why": HOSTILE, "≥": 1}
    assert out == '{\n  "why": "a\\u001b[2Jb\\u001b]0;title\\u0007c\\u009b1md\\re\\u202ef",\n  "≥": 1\n}\n'


def test_a_job_of_github_actions_obeys_no_text(capsys: pytest.CaptureFixture[str]) -> None:
    """A command stands at the beginning of a row, or, as they were written before, anywhere in it."""
    told = "  ::error::a\n::add-mask::b :: c ##[error]d ###[warning]e"
    escaped = r"\x3a:error::a", r"\x3a:add-mask::b :: c #\x23[error]d ##\x23[warning]e"
    display.data(told)
    display.talk(told)
    display.table(("name",), [("::error::a",), ("##[error]d",)])
    out, err = capsys.readouterr()
    assert out == f"  {escaped[0]}\n{escaped[1]}\nname\n\\x3a:error::a\n#\\x23[error]d\n"
    assert err == f"  {escaped[0]}\n  {escaped[1]}\n", "further lines of a paragraph are indented"
    display.json_data([told])
    out = capsys.readouterr().out
    assert json.loads(out) == [told]
    assert "##[" not in out


def test_our_own_colours_reach_a_terminal(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.delenv("NO_COLOR", raising=False)
    display.warn("a\x1b[8mb")
    assert capsys.readouterr().err == "\x1b[1;33mwarning:\x1b[0m a\\x1b[8mb\n"


def test_talk_and_warnings_go_to_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    display.talk("wrote Dockerfile")
    display.warn("the host's driver is unknown")
    assert capsys.readouterr() == ("", "wrote Dockerfile\nwarning: the host's driver is unknown\n")


def test_an_error_without_causes_and_hints_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    display.failure(UsageError("`--to docker` is not a format"))
    assert capsys.readouterr().err == "error: `--to docker` is not a format  [bad-usage]\n"


def test_every_line_of_a_cause_is_indented(capsys: pytest.CaptureFixture[str]) -> None:
    display.failure(UsageError("pip said no", causes=("line 1\nline 2",)))
    assert capsys.readouterr().err == "error: pip said no  [bad-usage]\n  line 1\n  line 2\n"


def test_the_mistakes_of_a_file_are_its_causes(capsys: pytest.CaptureFixture[str]) -> None:
    mistake = Mistake("provision.yaml", 3, 5, "target.hots", "unknown key `hots`; did you mean `host`?")
    display.failure(InvalidDocumentError("spec", (mistake,)))
    assert capsys.readouterr().err == (
        "error: spec has 1 mistake  [invalid-document]\n"
        "  provision.yaml:3:5: target.hots: unknown key `hots`; did you mean `host`?\n"
    )


def test_a_table_lines_its_columns_up_and_leaves_no_trailing_spaces() -> None:
    lines = display.table_lines(("component", "version", "because"), [("cuda", "12.6.3", "newest"), ("nccl", "2.21.5", "")])
    assert lines == [
        "component  version  because",
        "cuda       12.6.3   newest",
        "nccl       2.21.5",
    ]


def test_a_table_counts_wide_characters_as_two_cells() -> None:
    assert display.table_lines(("名", "x"), [("ab", "1"), ("e\u0301", "2")]) == ["名  x", "ab  1", "e\u0301   2"]


def test_a_table_wraps_its_last_column_below_itself_and_never_breaks_a_word() -> None:
    rows = [("cuda", "a minimum driver of 525.60.13 is documented"), ("x", "https://example.org/a-very-long-address")]
    assert display.table_lines(("name", "because"), rows, width=26) == [
        "name  because",
        "cuda  a minimum driver",
        "      of 525.60.13 is",
        "      documented",
        "x     https://example.org/a-very-long-address",
    ]


def test_a_table_that_is_not_on_a_terminal_keeps_a_row_on_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    display.table(("name", "because"), [("cuda", "word " * 40)])
    assert len(capsys.readouterr().out.splitlines()) == 2


def test_every_column_of_a_table_gives_way_and_numbers_are_aligned_to_the_right() -> None:
    rows = [("8", "535.183.06, 535.104.05", "the host has driver 535.104.05"), ("1,024", "open", "")]
    assert display.table_lines(("hosts", "chosen", "because"), rows, width=40) == [
        "hosts  chosen       because",
        "    8  535.183.06,  the host has",
        "       535.104.05   driver 535.104.05",
        "1,024  open",
    ]


LONG = """
from provisioner.cli.display import Line, Paint, tell
tell([
    Line("pytorch 2.7.1+cu118 instead of `pytorch >=2.9` would do: gives cuda 11.8.0, python 3.11", "hint:", Paint.NEXT),
    Line("below a longer label the text goes on a little way in, and not under it", "trainer/pylock.trainer.toml:"),
    Line("cuda 12.4.1 needs driver >=525.60.13 through minor-version compatibility", indent=2),
    Line("  https://example.org/an-address/that-is-longer/than-the-terminal-is-wide/pytorch_variants.yaml"),
    Line(""),
])
"""


def test_a_terminal_breaks_paragraphs_between_words_and_hangs_what_goes_on_under_the_text() -> None:
    assert shown_on_a_terminal(LONG, NO_COLOR="1") == (
        "hint: pytorch 2.7.1+cu118 instead of `pytorch >=2.9` would\n"
        "      do: gives cuda 11.8.0, python 3.11\n"
        "trainer/pylock.trainer.toml: below a longer label the text\n"
        "  goes on a little way in, and not under it\n"
        "  cuda 12.4.1 needs driver >=525.60.13 through minor-version\n"
        "    compatibility\n"
        "  https://example.org/an-address/that-is-longer/than-the-terminal-is-wide/pytorch_variants.yaml\n"
        "\n"
    )


def test_a_word_too_long_for_the_last_column_begins_further_left_where_it_fits() -> None:
    rows = [("pytorch_build", "cu126", "needs cuda  (matrices/pytorch_variants.yaml:193)")]
    assert display.table_lines(("component", "chosen", "because"), rows, width=40)[1:] == [
        "pytorch_build  cu126   needs cuda",
        "    (matrices/pytorch_variants.yaml:193)",
    ]


def test_elsewhere_a_paragraph_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    display.report([display.Line("word " * 40 + "end", "hint:")])
    assert len(capsys.readouterr().out.splitlines()) == 1


def test_signs_that_a_stream_cannot_encode_have_plainer_ones() -> None:
    code = "from provisioner.cli.display import report, verdict_line; report([verdict_line('yes', 'runs · well')])"
    environment = {"PATH": os.environ["PATH"], "PYTHONIOENCODING": "ascii"}
    process = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert process.stdout == "+ runs | well\n"


def test_a_row_of_the_wrong_length_is_a_bug() -> None:
    with pytest.raises(AssertionError, match=r"a table of 2 columns was given the row \('cuda',\)"):
        display.table_lines(("name", "because"), [("cuda",)])


COLOURED = "from provisioner.cli import display\nfrom provisioner.errors import UsageError\ndisplay.failure(UsageError('no'))"


def test_a_terminal_gets_colour() -> None:
    assert shown_on_a_terminal(COLOURED) == "\x1b[1;31merror:\x1b[0m no  [bad-usage]\n"


@pytest.mark.parametrize("environment", [{"NO_COLOR": "1"}, {"TERM": "dumb"}, {"NO_COLOR": "1", "FORCE_COLOR": "1"}])
def test_colour_can_be_switched_off(environment: dict[str, str]) -> None:
    assert shown_on_a_terminal(COLOURED, **environment) == "error: no  [bad-usage]\n"


def test_colour_can_be_forced_where_there_is_no_terminal(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    display.warn("slow")
    assert capsys.readouterr().err == "\x1b[1;33mwarning:\x1b[0m slow\n"


def test_quick_work_is_not_talked_about(capsys: pytest.CaptureFixture[str]) -> None:
    with display.step("asking the index"):
        pass
    assert capsys.readouterr() == ("", "")


def test_long_work_is_named_once_in_plain_words_where_there_is_no_terminal() -> None:
    code = "import time\nfrom provisioner.cli import display\nwith display.step('asking the index'): time.sleep(1.3)"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert (result.stdout, result.stderr) == ("", "asking the index ...\n")


def test_long_work_spins_on_a_terminal_and_leaves_no_line_behind() -> None:
    code = "import time\nfrom provisioner.cli import display\nwith display.step('asking the index'): time.sleep(1.6)"
    shown = shown_on_a_terminal(code)
    assert "asking the index" in shown
    assert "\n" not in shown.rpartition("asking the index")[2].strip("\n")
    assert shown.endswith(("\x1b[2K", "\x1b[?25h\r\x1b[1A\x1b[2K"))


def test_a_step_ends_when_the_work_fails(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(UsageError), display.step("asking the index"):
        raise UsageError("no")
    assert capsys.readouterr() == ("", "")


PARTS = """
import time
from provisioner.cli import display
display.PROGRESS_DELAY_SECONDS, display._PLAIN_PAUSE_SECONDS = 0.1, 1.7
with display.steps('reading') as tick:
    for part in ('torch: a.whl', 'torch: [b].whl', 'jax: c.whl'):
        tick(part)
        time.sleep(1.2)
"""


def test_work_of_many_parts_says_now_and_then_where_it_is() -> None:
    result = subprocess.run([sys.executable, "-c", PARTS], capture_output=True, text=True, check=True)
    first, *later = result.stderr.splitlines()
    assert (result.stdout, first) == ("", "reading ...")
    assert later[0] == "reading: 2, torch: [b].whl"


def test_a_terminal_shows_the_part_in_one_line_that_is_overwritten() -> None:
    shown = shown_on_a_terminal(PARTS)
    assert "reading: 3, jax: c.whl" in shown
    assert "torch: [b].whl" in shown
    assert "\n" not in shown.rpartition("jax: c.whl")[2].strip("\n")


BAR = """
from provisioner.cli import display
with display.bar('deciding [all]') as told:
    for done in range(1, 4):
        told(done, 3)
"""


def test_a_terminal_shows_how_much_is_done_and_nothing_remains() -> None:
    shown = shown_on_a_terminal(BAR)
    assert "deciding [all]" in shown
    assert "3/3" in shown
    assert shown.rstrip("\r\n").endswith("\x1b[2K")


def test_a_bar_is_nothing_where_there_is_no_terminal_and_the_work_is_short() -> None:
    result = subprocess.run([sys.executable, "-c", BAR], capture_output=True, text=True, check=True)
    assert (result.stdout, result.stderr) == ("", "")
