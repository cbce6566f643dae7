"""TensorFlow and JAX as components: the wheels of the chosen build, and a CUDA runtime of their own beside PyTorch's."""

from __future__ import annotations

from typing import Any

import pytest

from provisioner.grounds.bound import Specifier
from provisioner.grounds.conflict import Conflict, Member, Span, Statement, Subjects
from provisioner.grounds.predicate import InstalledAs, NoFile, Predicate, Requires
from provisioner.grounds.relaxation import FrameworkOnCpu
from provisioner.grounds.requirement import Relation
from provisioner.index.model import Environment
from provisioner.resolver.explain.conflict import explain_conflict
from provisioner.resolver.joint import NoStackError, solve_joint, solve_system
from provisioner.resolver.outcome.answer import answer
from provisioner.resolver.problem import join
from provisioner.resolver.python.finder import PackageFinder
from provisioner.resolver.requirement import Key
from provisioner.resolver.search.instance import ProblemInstance
from provisioner.resolver.search.resolve import decide
from provisioner.words.conflict import conflict_lines
from tests import small
from tests.told import unverified
from tests.unit.resolver.test_finder import Shelf

ENVIRONMENT = Environment(platform="linux/amd64", python="3.12", glibc=(2, 36))
CPU = {"accelerator": "cpu", "sass": None}


def build(name: str, cuda: str, **more: Any) -> Any:  # noqa: ANN401 - a build of tests.small
    return small.build(name, {"cuda": cuda}, sass=("sm_80",), **more)


MATRIX = small.matrix(
    ("pytorch", "tensorflow", "jax", "cudnn", "cuda", "python", "driver", "gpu"),
    {
        "python": {"3.12": {}},
        "driver": {"580.65.06": {}, "535.104.05": {}},
        "gpu": {"8.0": {}, "9.0": {}},
        "cudnn": {"9.8": {"cuda": ">=12"}},
    },
    branches={"535": "12.2", "580": "13.0"},
    releases={
        "pytorch": (
            small.release(
                "2.11",
                {},
                builds=(build("cu130", "==13.*"), build("cu126", "==12.6.*", index="pytorch-cu126", local="cu126")),
            ),
        ),
        "tensorflow": (
            small.release(
                "2.21",
                {},
                builds=(build("and-cuda", "==12.5.*", install="tensorflow[and-cuda]"), small.build("cpu", {}, **CPU)),
            ),
        ),
        "jax": tuple(
            small.release(
                version,
                {},
                builds=(
                    build("cuda12", "==12.*", install="jax[cuda12]"),
                    build("cuda13", "==13.*", install="jax[cuda13]"),
                    small.build("cpu", {}, **CPU),
                ),
            )
            for version in ("0.7.2", "0.6.0")
        ),
        "cuda": (
            small.cuda("13.0.1", "580.65.06", "580.65.06"),
            small.cuda("12.6.3", "525.60.13", "560.28"),
            small.cuda("12.5.1", "525.60.13", "555.42"),
        ),
    },
)  # fmt: skip
OLD, NEW = (
    {"driver": {"version": one}, "gpus": [{"compute_capability": "8.0"}], "container_toolkit": "1"}
    for one in ("535.104.05", "580.65.06")
)
SHELF = Shelf({
    "torch": {"2.11": []},
    "jax": {
        one: ["jaxlib", "plugin12; extra == 'cuda12'", "plugin13; extra == 'cuda13'"] for one in ("0.7.2", "0.6.0", "0.5.0")
    },
    "jaxlib": {"1": []},
    "plugin12": {"1": []},
    "plugin13": {"1": []},
    "tensorflow": {"2.21": ["nccl12; extra == 'and-cuda'"]},
    "nccl12": {"1": []},
    "flax": {"2": ["jax>=0.7"], "1": ["jax>=0.5,<0.7"]},
})  # fmt: skip


def instance(
    packages: list[str],
    host: dict[str, Any] = NEW,
    requires: dict[str, str] | None = None,
    **spec: Any,  # noqa: ANN401 - any key of a spec
) -> ProblemInstance:
    problem = join(MATRIX, small.request(requires or {}, host, packages=packages, **spec))
    return ProblemInstance(problem, PackageFinder(problem, SHELF, ENVIRONMENT))


def packages(found: ProblemInstance) -> dict[str, str]:
    pins = decide(found)
    assert pins is not None, conflict_lines(explain_conflict(found))
    return {key.name: one.label for key, one in pins.items() if key.is_package}


def test_the_build_the_driver_runs_is_installed_by_its_own_extra() -> None:
    new, old = instance([], requires={"jax": "*"}), instance([], OLD, requires={"jax": "*"})
    assert packages(new) == {"jax[cuda13]": "0.7.2", "jax": "0.7.2", "jaxlib": "1", "plugin13": "1"}
    assert packages(old) == {"jax[cuda12]": "0.7.2", "jax": "0.7.2", "jaxlib": "1", "plugin12": "1"}


@pytest.mark.parametrize(
    "asks", [{"accelerator": "cuda"}, {"requires": {"jax": "*"}}, {"requires": {"cuda": "*"}}, {"requires": {"cudnn": "*"}}]
)
def test_who_asks_for_cuda_in_any_way_has_the_build_for_it(asks: dict[str, Any]) -> None:
    assert packages(instance(["jax"], **asks))["plugin13"] == "1"


def test_who_names_a_plugin_for_gpus_has_a_build_for_them() -> None:
    shelf = Shelf({"jax": {"0.7.2": ["jax-cuda12-plugin; extra == 'cuda12'"]}, "jax-cuda12-plugin": {"1": []}})
    problem = join(MATRIX, small.request({}, NEW, packages=["jax", "jax-cuda12-plugin"]))
    pins = decide(ProblemInstance(problem, PackageFinder(problem, shelf, ENVIRONMENT)))
    assert pins is not None
    assert pins[Key("jax")].version.text == "0.7.2+cuda13"


@pytest.mark.parametrize("name", ["jax", "tensorflow"])
def test_a_framework_is_installed_as_the_packages_name_it_and_what_a_gpu_needs_is_told(name: str) -> None:
    found = instance([name])
    pins = decide(found)
    assert pins is not None
    assert not any(key.extras for key in pins if key.is_package)
    stack = answer(found, pins)
    assert "cuda" not in stack.components
    assert (stack.doubts, stack.installed_for_gpu) == ((), ())
    told = [one for one in stack.relaxations if isinstance(one, FrameworkOnCpu)]
    assert [(one.component, one.install) for one in told] == [
        (name, {"jax": "jax[cuda13]", "tensorflow": "tensorflow[and-cuda]"}[name])
    ]


@pytest.mark.parametrize(
    ("needs", "version"), [([], "2.21"), (["nccl12>=2; extra == 'and-cuda'"], ""), (["absent; extra == 'and-cuda'"], "")]
)
def test_whether_the_build_for_gpus_goes_with_the_rest_is_told(needs: list[str], version: str) -> None:
    shelf = Shelf({"tensorflow": {"2.21": needs}, "nccl12": {"1": []}})
    problem = join(MATRIX, small.request({}, NEW, packages=["tensorflow"]))
    stack = solve_joint(problem, lambda _: shelf)
    assert [one.version for one in stack.relaxations if isinstance(one, FrameworkOnCpu)] == [version]


def test_a_release_whose_distribution_uses_gpus_is_not_one_for_the_cpu() -> None:
    """As TensorFlow up to 2.13: its wheel opens the CUDA of the system."""
    old, new = small.build("system-cuda", {}, sass=("sm_80",)), MATRIX.components["tensorflow"].releases[0]
    builds = (old, small.build("cpu", {}, **CPU))
    matrix = small.matrix(
        ("tensorflow", "cuda", "python", "driver", "gpu"),
        {"python": {"3.12": {}}, "driver": {"580.65.06": {}}, "gpu": {"8.0": {}, "9.0": {}}},
        releases={
            "tensorflow": (new, small.release("2.13", {}, builds=builds)),
            "cuda": (small.cuda("12.5.1", "525.60.13", "555.42"),),
        },
    )

    def candidates(line: str) -> list[str]:
        return [one.version.text for one in join(matrix, small.request({}, NEW, packages=[line])).domains[Key("tensorflow")]]

    assert candidates("tensorflow") == ["2.21+cpu", "2.13+system-cuda"]
    assert candidates("tensorflow<2.20") == ["2.21+and-cuda", "2.13+system-cuda"]


@pytest.mark.parametrize(
    ("cudnn", "doubts"),
    [
        (
            "==9.1",
            ("tensorflow: tensorflow 2.21 finds cudnn 9.1 beside it and uses it on a GPU, but was built for cudnn >=9.3",),
        ),
        ("==9.10", ()),
    ],
)
def test_a_cudnn_that_tensorflow_finds_and_refuses_is_unverified(cudnn: str, doubts: tuple[str, ...]) -> None:
    """As tensorflow 2.18 beside torch 2.5: both know the directory of nvidia-cudnn-cu12."""
    on = {"accelerator": "cuda"}
    rules = [small.rule("tensorflow-2.18-cuda-12.5", {"tensorflow": ">=2.18"}, {"cuda": ">=12.5,<13", "cudnn": ">=9.3"}, on=on)]
    torch = small.build("cu124", {"cuda": "==12.4.*", "cudnn": cudnn}, sass=("sm_80",))
    matrix = small.matrix(
        ("pytorch", "tensorflow", "cudnn", "cuda", "python", "driver", "gpu"),
        {"python": {"3.12": {}}, "driver": {"580.65.06": {}}, "gpu": {"8.0": {}, "9.0": {}}, "cudnn": {"9.1": {}, "9.10": {}}},
        rules=rules,
        releases={
            "pytorch": (small.release("2.5", {}, builds=(torch,)),),
            "tensorflow": MATRIX.components["tensorflow"].releases,
            "cuda": (small.cuda("12.5.1", "525.60.13", "555.42"), small.cuda("12.4.1", "525.60.13", "550.54")),
        },
    )
    problem = join(matrix, small.request({}, NEW, packages=["tensorflow", "torch"]))
    found = ProblemInstance(
        problem, PackageFinder(problem, Shelf({"tensorflow": {"2.21": []}, "torch": {"2.5": []}}), ENVIRONMENT)
    )
    pins = decide(found)
    assert pins is not None
    assert unverified(answer(found, pins)) == doubts


def test_a_requirement_on_the_distribution_is_one_on_the_component() -> None:
    assert packages(instance(["jax<0.7"]))["jax"] == "0.6.0"
    assert packages(instance([], requires={"jax": "==0.6.0"}))["jax"] == "0.6.0"
    assert packages(instance(["jax[cuda12]"]))["plugin12"] == "1"


def test_the_cpu_build_is_for_those_who_ask_for_the_cpu() -> None:
    assert packages(instance([], requires={"tensorflow": "*"}))["nccl12"] == "1"
    assert "nccl12" not in packages(instance([], requires={"tensorflow": "*"}, accelerator="cpu"))
    with pytest.raises(NoStackError):
        solve_system(
            join(
                MATRIX,
                small.request({"tensorflow": "*"}, {"gpus": [{"compute_capability": "9.0"}], "driver": {"version": "470.1"}}),
            )
        )


def test_what_needs_the_framework_agrees_with_the_component() -> None:
    assert packages(instance(["flax", "jax[cuda13]"])) == {
        "flax": "2",
        "jax[cuda13]": "0.7.2",
        "jax": "0.7.2",
        "jaxlib": "1",
        "plugin13": "1",
    }
    assert packages(instance(["flax", "jax<0.7"]))["flax"] == "1"


def test_a_framework_only_a_package_brings_is_an_ordinary_distribution_and_said_to_be_without_its_gpu_build() -> None:
    found = instance(["flax"])
    pins = decide(found)
    assert pins is not None
    assert packages(found) == {"flax": "2", "jax": "0.7.2", "jaxlib": "1"}
    assert (
        "jax: jax 0.7.2 comes along with other packages, without its GPU build; name `jax[cuda13]` to have that"
        in unverified(answer(found, pins))
    )


def test_two_frameworks_have_a_cuda_each_and_pytorchs_is_shown() -> None:
    stack = solve_system(join(MATRIX, small.request({"pytorch": "*", "tensorflow": "*"}, NEW)))
    assert (stack.components["pytorch_build"], stack.components["cuda"], stack.components["tensorflow"]) == (
        "cu130",
        "13.0.1",
        "2.21",
    )
    assert sorted(str(pin.version) for pin in stack.pins if pin.component == "cuda") == ["12.5.1", "13.0.1"]
    assert stack.host_requirements["driver"] == ">=580.65.06", "the driver must run both"
    assert "driver>=580.65.06" in stack.require_cuda


def test_the_driver_must_run_the_cuda_of_every_framework() -> None:
    stack = solve_system(join(MATRIX, small.request({"pytorch": "*", "jax": "*"}, OLD)))
    assert (stack.components["pytorch_build"], stack.components["jax"]) == ("cu126", "0.7.2")
    builds = {pin.component: pin.build for pin in stack.pins}
    assert builds["jax"] == "cuda12"


def test_one_framework_alone_shares_the_stacks_cuda() -> None:
    stack = solve_system(join(MATRIX, small.request({"jax": "*", "cuda": "12.5.*"}, NEW)))
    assert stack.components["cuda"] == "12.5.1"
    assert [str(pin.version) for pin in stack.pins if pin.component == "cuda"] == ["12.5.1"]


def test_a_build_nobody_publishes_cannot_be_locked_and_says_why() -> None:
    own = small.build("own", {}, compiled=True)
    matrix = small.matrix(
        ("pytorch", "python"), {"python": {"3.12": {}}}, releases={"pytorch": (small.release("2.11", {}, builds=(own,)),)}
    )
    problem = join(matrix, small.request({"pytorch": "*"}))
    assert unverified(solve_system(problem)) == (
        "pytorch_build: pytorch 2.11+own is compiled from source: no binary is published",
    )
    found = ProblemInstance(problem, PackageFinder(problem, SHELF, ENVIRONMENT))
    assert decide(found) is None
    assert "pytorch 2.11+own cannot be locked: it is compiled from source, no binary is published" in conflict_lines(
        explain_conflict(found)
    )


def test_a_conflict_over_the_distribution_of_a_framework_is_told() -> None:
    """As of `tensorflow==2.15.*` with `numpy>=2`: the distribution has the component's name, and is no build of the matrix."""
    shelf = Shelf({"tensorflow": {"2.21": ["numpy<2"]}, "numpy": {"2": [], "1": []}})
    problem = join(MATRIX, small.request({}, NEW, packages=["tensorflow", "numpy>=2"], accelerator="cpu"))
    found = ProblemInstance(problem, PackageFinder(problem, shelf, ENVIRONMENT))
    assert conflict_lines(explain_conflict(found)) == (
        "you require tensorflow  (the spec)",
        "you require numpy>=2  (the spec)",
        "tensorflow 2.21 needs numpy<2  (metadata of tensorflow 2.21)",
        "so no tensorflow is left that goes with numpy>=2",
    )


def test_what_only_repeats_a_name_and_version_is_left_out_where_others_tell_of_it() -> None:
    def statement(label: str, predicate: Predicate) -> Statement:
        return Statement(name="tensorflow", subjects=(Subjects(spans=(Span(label, label),)),), predicate=predicate)

    def installed(label: str, name: str = "tensorflow") -> Statement:
        return statement(label, InstalledAs(name, (Specifier(f"=={label}"),)))

    def lines(*members: tuple[Statement, ...]) -> tuple[str, ...]:
        group = Relation("tensorflow", "it")
        told = (Member(kind="rule", component="tensorflow", group=group, clauses=one, sources=()) for one in members)
        return conflict_lines(Conflict(members=tuple(told)))

    itself, extra = (installed("2.21"),), (installed("2.21", "tensorflow[and-cuda]"),)
    other = (statement("2.21", Requires("numpy", (Specifier("<2"),))),)
    said = "tensorflow 2.21 needs numpy<2"
    assert lines(itself, other) == (said,)
    assert lines((*itself, installed("2.20")), other) == (said,)
    assert lines(itself) == ("tensorflow 2.21 is installed as tensorflow==2.21",), "alone it says what is asked for"
    assert lines(extra, other) == ("tensorflow 2.21 is installed as tensorflow[and-cuda]==2.21", said)
    assert lines((statement("2.21", NoFile("no index offers it")),), other) == ("tensorflow 2.21: no index offers it", said)
