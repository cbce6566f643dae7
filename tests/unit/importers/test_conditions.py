"""Commands that run on a condition alone: what they install is carried over, and told."""

from __future__ import annotations

import pytest

from provisioner.importers.shell import commands


@pytest.mark.parametrize(
    ("script", "conditions"),
    [
        ("pip install a && pip install b; pip install c", {"a": "", "b": "", "c": ""}),
        (
            "if pip install a; then pip install b; else pip install c; fi; pip install d",
            {"a": "", "b": "if", "c": "if", "d": ""},
        ),
        ("if true; then if false; then pip install a; fi; pip install b; fi && pip install c", {"a": "if", "b": "if", "c": ""}),
        ('case "$A" in x|y) pip install a ;; z) pip install b ;; esac; pip install c', {"a": "case", "b": "case", "c": ""}),
        ('case "$A" in\nx)\n  pip install a\n  ;;\nesac\npip install b', {"a": "case", "b": ""}),
        ("pip install a || pip install b; pip install c", {"a": "", "b": "||", "c": ""}),
        ("pip install a || pip install b && pip install c", {"a": "", "b": "||", "c": "||"}),
        ('[ -n "$A" ] && pip install a && pip install b; pip install c', {"a": "&&", "b": "&&", "c": ""}),
        ("while false; do pip install a; done; pip install b", {"a": "while", "b": ""}),
        ("for x in 1 2; do pip install a; done; pip install b", {"a": "", "b": ""}),
        ("echo if then; pip install a", {"a": ""}),
        ("if true\nthen\n  pip install 'a\n  '\nfi\npip install b", {"a\n  ": "if", "b": ""}),
    ],
)
def test_each_command_says_what_it_depends_on(script: str, conditions: dict[str, str]) -> None:
    found = {one.words[2]: one.condition for one in commands(script) if one.words[:2] == ("pip", "install")}
    assert found == conditions


def test_patterns_and_words_of_case_and_for_are_no_commands() -> None:
    script = 'case "$A" in x|y) pip install a ;; *) pip install b ;; esac; for x in 1; do pip install c; done'
    assert {one.words[0] for one in commands(script)} == {"pip"}
