"""What an answer admits it does not know: which fact would settle it, on which host, and where to state it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from msgspec.structs import replace

from provisioner.matrix.model import Gpu
from provisioner.resolver.joint import NoStackError, solve_system
from provisioner.resolver.problem import join
from provisioner.words.conflict import member_words
from provisioner.words.notation import sources_words
from tests import small
from tests.told import assumed, unverified

if TYPE_CHECKING:
    from provisioner.resolver.stack import Stack

ORDER = ("pytorch", "nsight_compute", "cuda", "driver", "driver_module", "os", "kernel", "gpu", "python_arch", "python")
MATRIX = small.matrix(
    ORDER,
    {
        "nsight_compute": {"2024.1": {}},
        "driver": {
            "580.65.06": {"kernel": ">=4,<7"},
            "535.104.05": {"kernel": ">=4,<7"},
            "470.256.02": {"kernel": ">=4,<7"},
            "450.80.02": {"kernel": ">=4,<7"},
        },
        "kernel": {"6.8": {}, "5.15": {}},
        "gpu": {"9.0": {}, "7.0": {}, "10.0": {}},
        "python": {"3.12": {}},
    },
    rules=(
        small.rule("nsight-on-wsl", {"nsight_compute": "*"}, {"driver": ">=545"}, on={"virtualization": "wsl2"}),
        small.rule("wsl-1-has-no-kernel", {"driver": "*"}, {"kernel": "<0"}, on={"virtualization": "wsl1"}),
        small.rule("no-470.200-on-12.1", {"cuda": "*"}, {"driver": ">=470.250"}, on={"driver": ">=470,<470.250"}),
        small.rule("open-needs-turing", {"driver_module": "open"}, {"gpu": ">=7.5"}),
        small.rule("proprietary-ends", {"driver_module": "proprietary"}, {"gpu": "<10.0"}),
        small.rule("open-begins-with-515", {"driver": "<515"}, {"driver_module": "proprietary"}),
        small.rule(
            "python-is-native",
            {"python": "*"},
            {"python_arch": "arm64"},
            on={"platform": "macos/arm64", "python_arch": "x86_64"},
        ),
        small.rule("580-on-rhel", {"driver": ">=580"}, {"os": ["rhel 8", "rhel 9"]}, on={"os": "rhel"}),
    ),
    branches={"450": "11.0", "470": "11.4", "535": "12.2", "580": "13.0"},
    releases={
        "pytorch": (
            small.release(
                "2.0.0",
                {},
                builds=(
                    small.build("cu121", {"cuda": "==12.1.*"}, sass=("sm_70", "sm_90", "sm_100")),
                    small.build("mps", {}, platforms=("macos/arm64",), accelerator="mps", sass=None),
                ),
            ),
        ),
        "cuda": (small.cuda("12.1.1", "525.60.13", "530.30.02", forward=("470",)),),
        "driver_module": small.names("open", "proprietary"),
        "python_arch": small.names("arm64", "x86_64"),
        "os": small.names("ubuntu 22.04", "rhel 9", "rhel 10"),
    },
    virtual=(*small.VIRTUAL, "python_arch"),
    gpus=(
        Gpu(name="H100", architecture="", compute_capability="9.0", kind="datacenter"),
        Gpu(name="RTX 4090", architecture="", compute_capability="8.9", kind="geforce"),
    ),
)
KNOWN = {
    "gpus": [{"name": "H100"}],
    "kernel": "6.8",
    "container_toolkit": "1.17",
    "os": {"id": "ubuntu", "version": "22.04"},
    "driver": {"version": "535.104.05", "module": "open"},
}
FORWARD: dict[str, Any] = {"policy": {"allow": ["minor-version", "forward-compat"]}, "image": {"base": "cuda-runtime"}}


def solved(*changes: dict[str, Any], requires: dict[str, str] | None = None, **spec: Any) -> Stack:  # noqa: ANN401 - any key
    hosts = ({name: value for name, value in {**KNOWN, **change}.items() if value is not ...} for change in changes)
    wanted = {"pytorch": "2.0.0", **(requires or {})}
    return solve_system(join(MATRIX, small.request(wanted, *hosts, **spec)))


def test_a_host_that_states_everything_leaves_nothing_open() -> None:
    assert unverified(solved({})) == ()
    assert solved({}).verdict == "yes"


def test_gpus_nobody_stated_are_cuda_and_never_cpu() -> None:
    stack = solved({"gpus": ...})
    assert stack.accelerator == "cuda"
    assert unverified(stack) == (
        (
            "gpu: host0 does not state its GPUs, so no compiled target was compared; "
            "state `gpus` in its profile (`provision inspect` writes one)"
        ),
    )


def test_a_gpu_of_which_nothing_is_known_is_named_by_its_place() -> None:
    (text,) = unverified(solved({"gpus": [{"name": "H100"}, {"count": 2}]}))
    assert text == (
        "gpu: a GPU of host0 states neither name nor compute_capability; "
        "state one in `gpus[1]` of its profile (`provision inspect` writes one)"
    )


def test_of_several_hosts_the_one_that_lacks_the_fact_is_named() -> None:
    stack = solved({}, {"container_toolkit": ...})
    assert (stack.verdict, unverified(stack)) == ("yes", ())
    assert assumed(stack) == ("container_toolkit: host1 does not state it, and is taken to have what the stack needs",)
    strict = solved({}, {"container_toolkit": ...}, policy={"strict": True})
    assert (strict.verdict, assumed(strict)) == ("unverified", ())
    (text,) = unverified(strict)
    assert text.startswith("container_toolkit: host1 does not state it; state `container_toolkit`")
    accepted = solved({}, {"container_toolkit": ...}, policy={"strict": True, "accept": ["container_toolkit"]})
    assert (accepted.verdict, assumed(accepted), unverified(accepted)) == ("yes", (), ())
    assert [doubt.component for doubt in accepted.accepts] == ["container_toolkit"]


def test_a_host_without_a_gpu_among_others_is_no_place_for_what_would_fall_back_to_its_cpu() -> None:
    with pytest.raises(NoStackError) as caught:
        solved({}, {"gpus": [], "driver": ...})
    assert "host1 has no GPU" in [member_words(member) for member in caught.value.conflict.members]


def test_what_runs_on_the_host_has_no_use_for_a_container_toolkit() -> None:
    assert not any(text.startswith("container_toolkit") for text in unverified(solved({"container_toolkit": ...}, runs="host")))


def test_a_driver_that_is_there_without_a_version_is_not_one_to_be_installed() -> None:
    (text,) = unverified(solved({"driver": {"module": "open"}}))
    assert text == (
        "driver: host0 has a driver and does not state its version; 580.65.06 was assumed; "
        "state `driver.version` in its profile (`provision inspect` writes one)"
    )


@pytest.mark.parametrize(("capability", "wrong"), [("10.0", "proprietary"), ("7.0", "open")])
def test_the_flavour_of_a_running_module_is_the_one_that_serves_the_gpu(capability: str, wrong: str) -> None:
    host: dict[str, Any] = {"driver": {"version": "535.104.05"}, "gpus": [{"compute_capability": capability}]}
    assert unverified(solved(host)) == ()
    with pytest.raises(NoStackError):
        solved({**host, "driver": {"version": "535.104.05", "module": wrong}})


def test_a_running_driver_shows_that_the_rest_of_the_host_was_good_enough_for_it() -> None:
    """Each of these is asked for where the driver is still to be installed, and decides nothing where it runs."""
    asked = {"driver": {"version": "580.65.06"}, "os": ..., "kernel": ...}
    assert unverified(solved(asked)) == ()
    assert "kernel" not in solved(asked).components
    to_install = solved({**asked, "driver": ...}, requires={"driver": ">=580"})
    assert ([doubt.component for doubt in to_install.doubts], [one.component for one in to_install.assumes]) == ([], ["os"])
    with pytest.raises(NoStackError):
        solved({**asked, "os": {"id": "rhel", "version": "10"}})


def test_a_driver_older_than_the_open_modules_can_only_be_proprietary() -> None:
    host = {"driver": {"version": "470.256.02"}, "gpus": [{"name": "H100"}]}
    assert unverified(solved(host, **FORWARD)) == ()


def test_a_driver_still_to_be_installed_is_installed_with_the_flavour_that_was_chosen() -> None:
    stack = solved({"driver": ..., "gpus": [{"compute_capability": "10.0"}]})
    assert not any(text.startswith("driver_module") for text in unverified(stack))


def test_forward_compatibility_of_gpus_nobody_named_is_neither_yes_nor_no() -> None:
    host = {"driver": {"version": "470.256.02", "module": "proprietary"}}
    assert solved({**host, "gpus": [{"name": "H100"}]}, **FORWARD).verdict == "yes"
    (text,) = unverified(solved({**host, "gpus": [{"compute_capability": "9.0"}]}, **FORWARD))
    assert text == (
        "gpu_kind: host0 does not name its GPUs, and forward compatibility is for data-centre GPUs only; "
        "state `gpus[].name` in its profile (`provision inspect` writes one)"
    )
    with pytest.raises(NoStackError):
        solved({**host, "gpus": [{"name": "H100"}, {"name": "RTX 4090", "compute_capability": "9.0"}]}, **FORWARD)


def test_virtualization_is_named_where_a_rule_of_the_stack_turns_on_it() -> None:
    """Nobody documents a kernel for a driver of branch 520, so that nothing tells whether this is WSL."""
    host = {**KNOWN, "driver": {"version": "520.61.05"}}
    del host["kernel"]
    wanted = {"nsight_compute": "*"}
    (text,) = unverified(solve_system(join(MATRIX, small.request(wanted, host))))
    assert text == (
        "virtualization: host0 does not state it, so whether rule nsight-on-wsl holds is unknown: nsight-on-wsl says so; "
        "state `virtualization` in its profile (`provision inspect` writes one)"
    )
    for settled in ({"kernel": "6.8.0-45-generic"}, {"virtualization": "vm"}):
        lines = unverified(solve_system(join(MATRIX, small.request(wanted, {**host, **settled}))))
        assert not any(line.startswith("virtualization") for line in lines)
    with pytest.raises(NoStackError):
        solve_system(join(MATRIX, small.request(wanted, {**host, "kernel": "5.15.153.1-microsoft-standard-WSL2"})))


def test_a_kernel_that_was_chosen_is_no_kernel_of_wsl() -> None:
    host = {"driver": ..., "kernel": ...}
    assert unverified(solved(host, requires={"nsight_compute": "*", "driver": "535.104.05", "kernel": "6.8"})) == ()


def test_the_interpreter_of_an_apple_chip_may_be_one_for_intel() -> None:
    host = {"platform": "macos/arm64", "os": {"id": "macos", "version": "14.5"}, "driver": ..., "kernel": ..., "gpus": ...}
    spec: dict[str, Any] = {"platform": "macos/arm64", "accelerator": "mps", "requires": {"python": "3.12"}}
    (text,) = assumed(solved(host, **spec))
    assert text == (
        "python_arch: host0 does not state it, and is taken to have what the stack needs, "
        "so whether rule python-is-native holds is unknown: python-is-native says so"
    )
    assert unverified(solved({**host, "python_arch": "arm64"}, **spec)) == ()
    with pytest.raises(NoStackError):
        solved({**host, "python_arch": "x86_64"}, **spec)


def test_a_rule_whose_guard_and_need_are_the_same_unstated_fact_is_named() -> None:
    wanted = {"driver": ">=580"}
    (text,) = (one for one in assumed(solved({"driver": ..., "os": ...}, requires=wanted)) if one.startswith("os: "))
    assert ", so whether rule 580-on-rhel holds is unknown" in text
    assert unverified(solved({"driver": ...}, requires=wanted)) == ()


def test_a_rule_guarded_by_a_driver_binds_the_driver_that_is_chosen() -> None:
    """A host that states no driver leaves the guard open until one is chosen; the choice must then obey the rule."""
    matrix = small.matrix(
        ("cuda", "driver", "kernel"),
        {"driver": {"410.40": {"kernel": "<7"}, "410.48": {"kernel": "<7"}}, "kernel": {"4.15": {}}},
        rules=(small.rule("cuda-10.0-floor", {"cuda": "*"}, {"driver": ">=410.48"}, on={"driver": ">=410,<410.48"}),),
        releases={"cuda": (small.release("10.0.130", {}),)},
    )
    host = {"gpus": [{"compute_capability": "7.0"}], "container_toolkit": "1.17"}
    old = small.request({"cuda": "*", "driver": "==410.40"}, host)
    with pytest.raises(NoStackError) as caught:
        solve_system(join(matrix, old))
    assert any("cuda-10.0-floor" in sources_words(member.sources) for member in caught.value.conflict.members)
    oldest = small.request({"cuda": "*", "driver": "*"}, host, policy={"strategy": "oldest"})
    assert solve_system(join(matrix, oldest)).components["driver"] == "410.48"


def test_a_key_that_may_or_may_not_be_enrolled_is_named_by_its_own_key() -> None:
    matrix = small.matrix(
        ("cuda", "driver", "secure_boot", "kernel"),
        {"driver": {"410.48": {"kernel": "<7"}}, "kernel": {"4.15": {}}},
        rules=(small.rule("signed", {"driver": "*"}, {"secure_boot": ["disabled", "enrolled"]}, on={"driver": "none"}),),
        releases={"cuda": (small.release("10.0.130", {}),), "secure_boot": small.names("disabled", "enrolled", "enforced")},
    )
    host = {"gpus": [{"compute_capability": "7.0"}], "container_toolkit": "1.17", "secure_boot": {"enabled": True}}
    request = replace(small.request({"cuda": "*"}, host), has_strict_option=True)
    (text,) = unverified(solve_system(join(matrix, request)))
    assert text.endswith("; state `secure_boot.mok_enrolled` in its profile (`provision inspect` writes one)")
