"""The solver's rules on small invented matrices: drivers, GPUs, kernels, module flavours."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from provisioner.matrix.model import Release, Rule
from provisioner.resolver.joint import NoStackError, solve_system
from provisioner.resolver.problem import UnknownGpuError, join
from provisioner.versions import Version
from provisioner.words.conflict import member_words
from tests import small
from tests.told import assumed, changes, unverified

if TYPE_CHECKING:
    from provisioner.grounds.conflict import Conflict
    from provisioner.matrix.model import Matrix
    from provisioner.resolver.stack import Stack

ORDER = ("pytorch", "cuda", "python", "driver", "driver_module", "kernel", "gpu")
BRANCHES = {"450": "11.0", "470": "11.4", "525": "12.0", "535": "12.2", "560": "12.6", "570": "12.8", "580": "13.0"}


def pytorch(version: str, *builds: Any) -> Release:  # noqa: ANN401 - builds of tests.small
    return Release(version=Version.parse(version), builds=tuple(builds), source=("invented",))


def made(**more: Any) -> Matrix:  # noqa: ANN401 - arguments of small.matrix
    """Two PyTorch releases: 2.0 for CUDA 11.8 and 12.1, 2.8 for CUDA 12.8 with PTX in one build."""
    older = pytorch(
        "2.0.0",
        small.build("cu118", {"cuda": "==11.8.*"}, sass=("sm_70", "sm_80"), index="pytorch-cu118"),
        small.build("cu121", {"cuda": "==12.1.*"}, sass=("sm_70", "sm_80", "sm_90"), default=True),
    )
    newer = pytorch(
        "2.8.0",
        small.build("cu128", {"cuda": "==12.8.*"}, sass=("sm_80", "sm_90", "sm_100"), ptx=("compute_100",), default=True),
    )
    cuda = (
        small.cuda("11.8.0", "450.80.02", "520.61.05"),
        small.cuda("12.1.1", "525.60.13", "530.30.02", ["470"]),
        small.cuda("12.8.1", "525.60.13", "570.124.06", ["535"]),
    )
    drivers = {
        "470.256.02": {"kernel": ">=3.10,<6.10"},
        "535.104.05": {"kernel": ">=3.10,<6.6"},
        "570.124.06": {"kernel": ">=4.15,<6.14"},
        "580.65.06": {"kernel": ">=4.15,<6.17"},
    }
    kernels: dict[str, dict[str, Any]] = {one: {} for one in ("5.15", "6.1", "6.8", "6.12", "6.17", "7.2")}
    gpus: dict[str, dict[str, Any]] = {one: {} for one in ("6.1", "7.0", "7.5", "8.0", "9.0", "10.0", "12.0")}
    table: dict[str, dict[str, Any]] = {"python": {"3.11": {}}, "driver": drivers, "kernel": kernels, "gpu": gpus}
    flavours = tuple(Release(version=Version.named(name), source=("invented",)) for name in ("open", "proprietary"))
    releases = {"pytorch": (older, newer), "cuda": cuda, "driver_module": flavours, **more.pop("releases", {})}
    return small.matrix(ORDER, table, branches=BRANCHES, releases=releases, **more)


def flavour_rules() -> tuple[Rule, ...]:
    """Open modules from Turing on; proprietary ones up to Hopper."""
    flavours = {"open": ">=7.5", "proprietary": "<10.0"}
    return (
        Rule(
            name="driver-has-a-flavour",
            when=small.need("driver", "*"),
            require=small.needs({"driver_module": ["open", "proprietary"]}),
            because="a driver is loaded as one of two kernel modules",
            source=("invented",),
        ),
        *(
            Rule(
                name=f"{name}-module",
                when=small.need("driver_module", name),
                require=small.needs({"gpu": gpus}),
                because=f"the {name} module drives these GPUs only",
                source=("invented",),
            )
            for name, gpus in flavours.items()
        ),
    )


def host(driver: str | None, *gpus: str, **more: Any) -> dict[str, Any]:  # noqa: ANN401 - any fact
    facts: dict[str, Any] = {"gpus": [{"compute_capability": gpu} for gpu in gpus], "container_toolkit": "1.17.4", **more}
    return {**facts, "driver": {"version": driver}} if driver else facts


def solved(matrix: Matrix, requires: dict[str, str], *hosts: dict[str, Any], **spec: Any) -> Stack:  # noqa: ANN401 - any key
    return solve_system(join(matrix, small.request(requires, *hosts, **spec)))


def refused(matrix: Matrix, requires: dict[str, str], *hosts: dict[str, Any], **spec: Any) -> Conflict:  # noqa: ANN401 - any key
    with pytest.raises(NoStackError) as caught:
        solved(matrix, requires, *hosts, **spec)
    return caught.value.conflict


def test_a_driver_of_the_family_runs_a_newer_toolkit_by_minor_version_compatibility() -> None:
    stack = solved(made(), {"pytorch": ">=2"}, host("535.104.05", "9.0"))
    assert (stack.components["pytorch"], stack.components["cuda"], stack.basis) == ("2.8.0", "12.8.1", "minor-version")
    assert stack.verdict == "yes"


def test_a_driver_that_knows_the_toolkit_itself_is_native() -> None:
    assert solved(made(), {"pytorch": ">=2"}, host("570.124.06", "9.0")).basis == "native"


def test_without_minor_version_compatibility_an_older_build_is_taken() -> None:
    stack = solved(made(), {"pytorch": ">=2"}, host("535.104.05", "9.0"), policy={"allow": ()})
    assert (stack.components["pytorch"], stack.components["pytorch_build"], stack.basis) == ("2.0.0", "cu121", "native")


def test_the_index_default_gives_way_to_a_variant_the_driver_can_run() -> None:
    stack = solved(made(), {"pytorch": ">=2"}, host("470.256.02", "7.0"))
    assert (stack.components["pytorch_build"], stack.basis) == ("cu118", "minor-version")


def test_a_conflict_names_request_rules_and_fact_and_hints_at_driver_and_release() -> None:
    conflict = refused(made(), {"pytorch": ">=2.8"}, host("470.256.02", "8.0"))
    assert [(member.kind, member.component) for member in conflict.members] == [
        ("request", "pytorch"),
        ("rule", "pytorch"),
        ("rule", "cuda"),
        ("fact", "driver"),
    ]
    assert [changes(hint) for hint in conflict.fixes] == [(("pytorch", "==2.0.0+cu118"),), (("driver", ">=535.104.05"),)]


def test_a_gpu_newer_than_every_target_is_never_served() -> None:
    conflict = refused(made(), {"pytorch": ">=2"}, host("580.65.06", "12.0"))
    assert {member.component for member in conflict.members} >= {"pytorch", "gpu"}


def test_ptx_serves_a_newer_gpu_only_when_allowed_and_only_with_a_driver_as_new_as_the_ptx() -> None:
    requires = {"pytorch": ">=2"}
    allowed = {"policy": {"allow": ("minor-version", "ptx-jit")}}
    assert solved(made(), requires, host("570.124.06", "12.0"), **allowed).components["pytorch"] == "2.8.0"
    conflict = refused(made(), requires, host("535.104.05", "12.0"), **allowed)
    assert "only through PTX" in " ".join(member_words(member) for member in conflict.members)


def test_every_gpu_of_every_host_must_be_served() -> None:
    requires = {"pytorch": ">=2"}
    assert solved(made(), requires, host("580.65.06", "8.0"), host("580.65.06", "10.0")).components["pytorch"] == "2.8.0"
    conflict = refused(made(), requires, host("580.65.06", "7.0"), host("580.65.06", "10.0"))
    assert [member_words(member) for member in conflict.members if member.kind == "fact"] == [
        "the host has gpu 10.0",
        "the host has gpu 7.0",
    ]


def test_forward_compatibility_needs_permission_and_a_data_centre_gpu() -> None:
    requires = {"pytorch": ">=2", "cuda": "12.*"}
    allowed = {"policy": {"allow": ("forward-compat",)}}
    refused(made(), requires, host("470.256.02", "7.0"))
    refused(made(), requires, host("470.256.02", "7.0"), **allowed)


def test_an_open_driver_is_chosen_among_those_documented_on_the_kernel() -> None:
    stack = solved(made(), {"pytorch": ">=2"}, host(None, "9.0", kernel="6.12.5-generic"))
    assert stack.components["driver"] == "580.65.06"
    assert stack.components["kernel"] == "6.12.5-generic"


def test_an_open_kernel_is_chosen_for_a_driver_to_be_installed_and_no_matter_where_one_runs() -> None:
    assert solved(made(), {"pytorch": ">=2", "driver": "535.104.05"}, host(None, "9.0")).components["kernel"] == "6.1"
    assert "kernel" not in solved(made(), {"pytorch": ">=2"}, host("535.104.05", "9.0")).components


def test_no_driver_is_documented_on_the_kernel() -> None:
    conflict = refused(made(), {"pytorch": ">=2"}, host(None, "9.0", kernel="7.2.0"))
    assert [(member.kind, member.component) for member in conflict.members] == [
        ("rule", "driver"),
        ("fact", "driver"),
        ("fact", "kernel"),
    ]
    assert (("kernel", "<=6.12"),) in [changes(hint) for hint in conflict.fixes]


def test_a_host_that_states_driver_and_kernel_runs_both_and_what_is_undocumented_is_assumed() -> None:
    stack = solved(made(), {"pytorch": ">=2"}, host("535.104.05", "9.0", kernel="6.12.1"))
    assert (stack.verdict, unverified(stack)) == ("yes", ())
    assert assumed(stack) == (
        "kernel: driver 535.104.05 is documented on kernel >=3.10,<6.6; host0 states 6.12.1, and is taken to run it there",
    )


def test_one_host_cannot_load_two_module_flavours() -> None:
    matrix = made(
        rules=flavour_rules(),
        releases={
            "pytorch": (
                pytorch("2.8.0", small.build("cu128", {"cuda": "==12.8.*"}, sass=("sm_70", "sm_80", "sm_90", "sm_100"))),
            )
        },
    )
    stack = solved(matrix, {"pytorch": ">=2", "driver": "580.65.06"}, host(None, "7.0"), host(None, "10.0"))
    assert stack.components["driver_module"] == "proprietary, open"
    assert "driver_module" not in solved(matrix, {"pytorch": ">=2"}, host("580.65.06", "7.0")).components
    conflict = refused(matrix, {"pytorch": ">=2"}, host("580.65.06", "7.0", "10.0"))
    assert {member.component for member in conflict.members} == {"driver", "driver_module", "gpu"}


def test_unknown_gpus_make_the_verdict_unverified_and_never_cpu() -> None:
    stack = solved(made(), {"pytorch": ">=2"}, {"driver": {"version": "580.65.06"}, "container_toolkit": "1.17.4"})
    assert stack.accelerator == "cuda"
    (text,) = unverified(stack)
    assert text == (
        "gpu: host0 does not state its GPUs, so no compiled target was compared; "
        "state `gpus` in its profile (`provision inspect` writes one)"
    )


def test_a_gpu_nobody_knows_is_a_mistake_that_names_it() -> None:
    with pytest.raises(UnknownGpuError) as caught:
        solved(made(), {"pytorch": ">=2"}, {"gpus": [{"name": "NVIDIA H1000"}]})
    assert (
        caught.value.message == "`NVIDIA H1000` (host0) is not a GPU the matrix knows, and its compute_capability is not stated"
    )
    assert caught.value.hints == ('state its compute_capability, such as "9.0"',)


def test_a_build_nobody_measured_is_not_taken_for_a_known_gpu_unless_it_is_asked_for_by_name() -> None:
    unknown = pytorch("2.9.0", small.build("cu129", {"cuda": "==12.8.*"}, sass=None))
    matrix = made(releases={"pytorch": (unknown,)})
    conflict = refused(matrix, {"pytorch": ">=2"}, host("580.65.06", "9.0"))
    assert any("was measured by nobody" in member_words(member) for member in conflict.members)
    stack = solved(matrix, {"pytorch": "==2.9.0+cu129"}, host("580.65.06", "9.0"))
    assert unverified(stack) == ("gpu: nobody has measured which GPUs pytorch 2.9.0+cu129 is compiled for",)


def test_the_gate_says_driver_and_gpu_ranges() -> None:
    stack = solved(made(), {"pytorch": ">=2"}, host("535.104.05", "9.0"))
    assert stack.require_cuda == "driver>=525.60.13,arch>=8.0,arch<11.0,arch!=8.7"
    assert stack.host_requirements == {"driver": ">=525.60.13", "gpu": "8.0, 9.0, 10.0"}


def test_what_the_spec_requires_of_hosts_is_required_of_them() -> None:
    stack = solved(made(), {"pytorch": ">=2", "driver": "535.*", "kernel": ">=5"}, host("535.104.05", "9.0", kernel="6.1"))
    assert stack.require_cuda == "driver>=535,driver<536,arch>=8.0,arch<11.0,arch!=8.7"
    assert stack.host_requirements == {"driver": ">=525.60.13,==535.*", "gpu": "8.0, 9.0, 10.0", "kernel": ">=5"}


def test_the_gpus_that_the_spec_requires_are_required_of_hosts() -> None:
    stack = solved(made(), {"pytorch": ">=2", "gpu": ">=8.0,<9.1"}, host("535.104.05", "9.0"))
    assert stack.require_cuda == "driver>=525.60.13,arch>=8.0,arch<9.1,arch!=8.7"
    assert stack.host_requirements == {"driver": ">=525.60.13", "gpu": "8.0, 9.0"}


def test_a_cpu_target_asks_nothing_of_driver_and_gpu() -> None:
    cpu = pytorch("2.8.0", small.build("cpu", {}, accelerator="cpu", sass=None))
    matrix = made(releases={"pytorch": (cpu,)})
    stack = solved(matrix, {"pytorch": ">=2"}, accelerator="cpu")
    assert (stack.components["pytorch_build"], stack.basis, stack.require_cuda, stack.verdict) == ("cpu", "", "", "yes")
    assert solved(matrix, {"pytorch": ">=2"}, {"gpus": []}).accelerator == "cpu"


def test_asking_for_cuda_where_the_target_has_no_gpu_is_a_conflict() -> None:
    conflict = refused(made(), {"pytorch": ">=2"}, {"gpus": []}, accelerator="cuda")
    assert [(member.kind, member.component) for member in conflict.members] == [("request", "pytorch_build"), ("fact", "gpu")]
