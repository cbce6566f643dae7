"""What stated facts of a host prove, and which of them make no difference."""

from __future__ import annotations

from typing import Any

from provisioner.resolver.joint import solve_system
from provisioner.resolver.problem import join
from provisioner.words.choice import shown_words, unread_words
from tests import small
from tests.shipped import shipped

HOST: dict[str, Any] = {"driver": {"version": "570.124.06", "module": "open"}, "gpus": [{"compute_capability": "9.0"}]}


def told(host: dict[str, Any], spec: dict[str, Any] | None = None) -> tuple[list[str], list[str]]:
    stack = solve_system(join(shipped(), small.request({"pytorch": "==2.7.1"}, {**HOST, **host}, **(spec or {}))))
    return [shown_words(one) for one in stack.shown], [unread_words(one) for one in stack.unread]


def test_a_running_driver_shows_what_the_host_does_not_state() -> None:
    (shown,), unread = told({})
    assert shown == (
        "host0 runs driver 570.124.06, so its user-mode driver libraries, loaded modules, kernel headers, GCC of the kernel, "
        "GCC of the host, Secure Boot and kernel are as that driver needs"
    )
    assert unread == []


def test_a_stated_fact_takes_the_place_of_what_the_driver_shows() -> None:
    (shown,), _ = told({"kernel": "6.8.0-45-generic", "kernel_headers": "6.8.0-45-generic"})
    assert "kernel headers" not in shown
    assert " and kernel are" not in shown


def test_a_host_without_a_driver_shows_nothing() -> None:
    shown, _ = told({"driver": None})
    assert shown == []


def test_a_fact_that_a_container_brings_itself_is_not_read() -> None:
    _, unread = told({"glibc": "2.35", "gcc": "12.3"}, {"outputs": ["dockerfile"]})
    assert unread == ["host0 states gcc and glibc, and nothing in this stack depends on them"]


def test_on_the_host_itself_its_glibc_is_read() -> None:
    _, unread = told({"glibc": "2.35"}, {"runs": "host", "outputs": ["requirements"]})
    assert unread == []


def test_a_fact_that_only_people_read_is_told() -> None:
    _, unread = told({"jetson": {"jetpack": "6.2"}})
    assert unread == ["host0 states jetson.jetpack, and nothing in this stack depends on it"]


def test_an_nvswitch_is_read() -> None:
    _, unread = told({"nvswitch": "present", "fabric_manager": "570.124.06"})
    assert unread == []


def test_the_libraries_of_a_host_are_read_where_wheels_run_on_it() -> None:
    """There its loader may find them before those of the wheels; a container has none of them."""
    stated = {"libraries": {"cudnn": "9.1.0", "on_path": ["LD_LIBRARY_PATH"]}}
    assert told(stated, {"runs": "host", "outputs": ["requirements"]})[1] == []
    assert told(stated)[1] == ["host0 states libraries, and nothing in this stack depends on it"]
