"""The shipped profiles are valid, described, and state only what is true of every such machine."""

from __future__ import annotations

import pytest

from provisioner.errors import UsageError
from provisioner.host.profile import load_profile, profile_names


@pytest.mark.parametrize("name", profile_names())
def test_a_shipped_profile_states_platform_and_gpus_and_leaves_the_rest_open(name: str) -> None:
    profile = load_profile(name)
    assert profile.description
    assert profile.host.platform is not None
    assert profile.host.gpus is not None
    assert profile.host.kernel is None
    assert profile.host.driver is None or profile.host.driver.version is None


def test_the_named_ones_are_there() -> None:
    assert {"a100", "cpu", "h100", "rtx5090", "t4", "v100"} <= set(profile_names())


def test_a_machine_without_a_gpu_says_so() -> None:
    assert load_profile("cpu").host.gpus == ()


def test_an_unknown_profile_is_answered_with_the_nearest_and_all() -> None:
    with pytest.raises(UsageError) as caught:
        load_profile("H10")
    assert caught.value.message == "there is no profile `H10`"
    assert caught.value.hints[0] == "did you mean `h100`?"
    assert caught.value.hints[1].startswith("profiles: a10, a100, ")
