"""What goes with a release is what one of the two sides states, in either direction."""

from __future__ import annotations

from provisioner.browse.companions import companions, rules_about
from provisioner.matrix.model import Matrix, Rule
from provisioner.versions import Range, Version
from tests.small import build, cuda, matrix, need, needs, release


def small() -> Matrix:
    floor = Rule(
        name="cuda-12-gpu-floor",
        when=need("cuda", ">=12"),
        require=needs({"gpu": ">=5.0"}),
        because="dropped",
        source=("invented",),
    )
    guarded = Rule(
        name="guarded",
        when=need("cuda", ">=11"),
        on=needs({"gpu": ">=9"}),
        require=needs({"driver": ">=999"}),
        because="on some hosts",
        source=("invented",),
    )
    return matrix(
        ["pytorch", "cudnn", "cuda", "python", "driver", "gpu"],
        {
            "cudnn": {"9.1.0": {"cuda": ">=12"}, "8.9.0": {"cuda": ["11.8.0", "12.1.0"]}},
            "python": {"3.12": {}},
            "driver": {"580.1": {}, "530.1": {}, "470.1": {}, "390.1": {}},
            "gpu": {"9.0": {}, "3.5": {}},
        },
        rules=(floor, guarded),
        branches={"580": "13.0", "530": "12.1", "470": "11.4", "390": "9.1"},
        releases={
            "pytorch": [
                release("2.1.0", {}, builds=(build("cu121", {"cuda": "==12.1.*"}), build("cu118", {"cuda": "==11.8.*"}))),
                release("2.0.0", {}, builds=(build("cu118", {"cuda": "==11.8.*"}),)),
            ],
            "cuda": [cuda("12.1.0", "525.60.13", "530.30.02", ["470"]), cuda("11.8.0", "450.80.02", "520.61.05")],
        },
    )


def asked(component: str, version: str) -> dict[str, list[str]]:
    made = small()
    wanted = [one for one in made.components[component].releases if Range.parse(f"=={version}").allows(one.version)]
    found: dict[str, list[str]] = {}
    for one in companions(made, made.components[component], wanted):
        builds = "".join(f"+{two.name}" for two in one.builds)
        found.setdefault(one.component, []).append(f"{one.release.version}{builds}{' ' if one.basis else ''}{one.basis}")
    return found


def test_from_cuda_upwards_and_downwards() -> None:
    assert asked("cuda", "12.1") == {
        "pytorch": ["2.1.0+cu121"],
        "cudnn": ["9.1.0", "8.9.0"],
        "driver": ["580.1 native", "530.1 native", "470.1 forward-compat"],
        "gpu": ["9.0"],
    }


def test_from_a_driver_upwards() -> None:
    assert asked("driver", "530.1") == {"cuda": ["12.1.0 native", "11.8.0 native"]}
    assert asked("driver", "470.1") == {"cuda": ["12.1.0 forward-compat", "11.8.0 minor-version"]}


def test_what_nobody_speaks_of_is_not_listed() -> None:
    assert asked("python", "3.12") == {}


def test_a_release_with_several_builds_goes_with_what_any_of_them_needs() -> None:
    assert asked("pytorch", "2.1.0") == {"cuda": ["12.1.0", "11.8.0"]}


def test_a_guarded_rule_excludes_nothing_but_is_told() -> None:
    made = small()
    component = made.components["cuda"]
    wanted = [one for one in component.releases if one.version == Version.parse("11.8.0")]
    assert [rule.name for rule in rules_about(made, component, wanted)] == ["guarded"]
    assert [rule.name for rule in rules_about(made, made.components["gpu"], [])] == ["cuda-12-gpu-floor"]
