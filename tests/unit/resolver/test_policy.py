"""The policy side of a problem: dates, words, what is refused, and in which order candidates are tried."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from msgspec import convert
from msgspec.structs import replace

from provisioner.matrix.model import Citation, DriverBranch, ImageFacts, PatchedKernels, Release
from provisioner.resolver.joint import NoStackError, solve_system
from provisioner.resolver.problem import join
from provisioner.resolver.requirement import Key
from provisioner.resolver.rules.lifecycle import SupportStatus, day_of, last_day
from provisioner.resolver.rules.policy import arranged, uploads_until
from provisioner.spec.model import Policy
from provisioner.versions import Range, Version
from provisioner.words.conflict import member_words
from provisioner.words.notation import source_words
from provisioner.words.relaxation import relaxation_words
from tests import small
from tests.told import unverified

if TYPE_CHECKING:
    from provisioner.matrix.model import Matrix
    from provisioner.request import Request
    from provisioner.resolver.stack import Stack

READ = "2026-06-15"


def dated(matrix: Matrix, read: str = READ, **more: Any) -> Matrix:  # noqa: ANN401 - any field of a matrix
    return replace(matrix, citations={"invented": Citation(title="an invented table", read=read)}, **more)


def branch(name: str, cuda: str, designation: str = "Production Branch", end_of_life: str = "") -> DriverBranch:
    return DriverBranch(branch=name, native_cuda=Version.parse(cuda), designation=designation, end_of_life=end_of_life)


def drivers(*versions: str, **fields: Any) -> tuple[Release, ...]:  # noqa: ANN401 - any field of a release
    needs = small.needs({"kernel": ">=4.15,<7"})
    return tuple(Release(version=Version.parse(one), requires=needs, source=("invented",), **fields) for one in versions)


def with_drivers(*branches: DriverBranch, releases: tuple[Release, ...]) -> Matrix:
    order = ("cuda", "driver", "kernel", "gpu")
    kernels = (small.release("6.8", {}), small.release("6.1", {}))
    cuda = (small.cuda("12.6.3", "525.60.13", "560.35.05"), small.cuda("12.2.2", "525.60.13", "535.104.05"))
    made = small.matrix(order, {}, releases={"cuda": cuda, "driver": releases, "kernel": kernels})
    return dated(made, branches=branches)


def answer(matrix: Matrix, request: Request) -> Stack:
    return solve_system(join(matrix, request))


def told(stack: Stack) -> list[str]:
    return [f"{one.name} {one.component}: {relaxation_words(one)}" for one in stack.relaxations]


def refusal(matrix: Matrix, request: Request) -> tuple[str, ...]:
    with pytest.raises(NoStackError) as caught:
        answer(matrix, request)
    return tuple(f"{one.kind} {one.component}: {member_words(one)}" for one in caught.value.conflict.members)


HOST = {"driver": {"version": "535.10"}, "gpus": [{"compute_capability": "9.0"}], "kernel": "6.8.0-45-generic"}


@pytest.mark.parametrize(("text", "day"), [("2026-06", "2026-06-30"), ("2024-02", "2024-02-29"), ("2026-06-03", "2026-06-03")])
def test_a_month_lasts_until_its_last_day(text: str, day: str) -> None:
    assert str(last_day(text)) == day


@pytest.mark.parametrize(
    ("text", "day"),
    [
        ("2026-09-01", "2026-09-01"),
        ("20260901", "2026-09-01"),
        ("2026-09-01T23:30:00-02:00", "2026-09-02"),
        ("2026-09-01T12:00:00", "2026-09-01"),
    ],
)
def test_the_day_of_a_policy_is_read_in_every_way_its_check_accepts(text: str, day: str) -> None:
    assert str(day_of(text)) == day


def test_the_day_is_the_policys_and_otherwise_that_of_the_newest_reading() -> None:
    matrix = dated(small.matrix(("cuda",), {"cuda": {"12.6": {}}}))
    assert str(SupportStatus(matrix, None).day) == READ
    assert str(SupportStatus(matrix, "2025-01-02").day) == "2025-01-02"
    assert SupportStatus(dated(matrix, ""), None).day is None


def test_a_compact_date_leaves_out_what_is_newer() -> None:
    releases = tuple(
        Release(version=Version.parse(one), released=day) for one, day in (("2", "2026-10-28"), ("1", "2026-01-01"))
    )
    matrix = small.matrix(("cuda",), {}, releases={"cuda": releases}, virtual=())
    assert answer(matrix, small.request({"cuda": "*"}, policy={"exclude-newer": "20260901"})).components["cuda"] == "1"


@pytest.mark.parametrize(
    ("end", "is_refused"), [("2026-06-15", False), ("2026-06-14", True), ("2026-06", False), ("2026-05", True)]
)
def test_what_ends_on_the_day_has_not_ended(end: str, *, is_refused: bool) -> None:
    releases = {"python": (Release(version=Version.parse("3.9"), end_of_life=end, source=("invented",)),)}
    matrix = dated(small.matrix(("python",), {}, releases=releases))
    request = small.request({"python": "*"}, policy={"forbid": ["end-of-life"]}, runs="host")
    if is_refused:
        assert refusal(matrix, request) == (
            "request policy: you forbid end-of-life: nothing past its end of life",
            "request python: you require python *",
            f"rule python: python 3.9 ended {end}",
        )
    else:
        assert told(answer(matrix, request)) == []


def test_stable_passes_over_feature_branches_and_unnamed_ones_and_betas() -> None:
    matrix = with_drivers(
        branch("620", "13.5", ""),
        branch("615", "13.4", "New Feature Branch"),
        branch("595", "13.2"),
        branch("570", "12.8", end_of_life="2026-01-27"),
        releases=(
            *drivers("620.1", "615.1"),
            *drivers("595.50", prerelease="beta"),
            *drivers("595.40", "570.9", released="2026-01-01"),
        ),
    )
    stable = small.request({"cuda": "*"}, {"gpus": [{"compute_capability": "9.0"}]}, policy={"strategy": "stable"})
    newest = small.request({"cuda": "*"}, {"gpus": [{"compute_capability": "9.0"}]})
    assert answer(matrix, stable).components["driver"] == "595.40"
    assert answer(matrix, newest).components["driver"] == "620.1"


def test_a_feature_branch_that_a_host_states_is_a_conflict_under_stable() -> None:
    matrix = with_drivers(branch("535", "12.6", "New Feature Branch"), releases=drivers("535.10"))
    assert refusal(matrix, small.request({"cuda": "*"}, HOST, policy={"strategy": "stable"})) == (
        "request policy: you ask for strategy stable: drivers of production and long-term branches only",
        "rule driver: driver 535.10 is of branch 535, a New Feature Branch",
        "fact driver: the host has driver 535.10",
    )


def test_a_branch_nobody_calls_anything_is_unverified_where_a_host_has_it() -> None:
    matrix = with_drivers(branch("535", "12.6", ""), releases=drivers("535.10", released="2026-01-01"))
    stack = answer(matrix, small.request({"cuda": "*"}, HOST, policy={"strategy": "stable"}))
    assert "driver: no source says whether branch 535 is a production branch or a feature branch" in unverified(stack)


def test_an_ended_branch_is_named_and_under_stable_refused_unless_it_is_allowed() -> None:
    matrix = with_drivers(branch("535", "12.6", end_of_life="2026-05"), releases=drivers("535.10", released="2024-01-01"))
    named = ["end-of-life driver: driver 535.10 is of branch 535, which ended 2026-05"]
    assert told(answer(matrix, small.request({"cuda": "*"}, HOST))) == named
    allowed = {"strategy": "stable", "allow": ["minor-version", "end-of-life"]}
    assert told(answer(matrix, small.request({"cuda": "*"}, HOST, policy=allowed))) == named
    assert refusal(matrix, small.request({"cuda": "*"}, HOST, policy={"strategy": "stable"}))[1:] == (
        "rule driver: driver 535.10 is of branch 535, which ended 2026-05",
        "fact driver: the host has driver 535.10",
    )


def test_a_kernel_with_a_suffix_is_its_distributions_and_one_without_is_of_its_listed_series() -> None:
    matrix = with_drivers(branch("535", "12.6"), releases=drivers("535.10", released="2024-01-01"))
    ended = Release(version=Version.parse("6.8"), end_of_life="2024-05-30", source=("invented",))
    matrix = replace(
        matrix, components={**matrix.components, "kernel": replace(matrix.components["kernel"], releases=(ended,))}
    )
    assert told(answer(matrix, small.request({"cuda": "*"}, HOST))) == []
    assert told(answer(matrix, small.request({"cuda": "*"}, {**HOST, "kernel": "6.8.12"}))) == [
        "end-of-life kernel: kernel 6.8.12 ended 2024-05-30"
    ]


def test_minor_version_compatibility_is_named_and_can_be_forbidden() -> None:
    matrix = with_drivers(branch("535", "12.2"), releases=drivers("535.10", released="2024-01-01"))
    assert told(answer(matrix, small.request({"cuda": "12.6"}, HOST))) == [
        "minor-version cuda: driver 535.10 knows CUDA 12.2 itself; cuda 12.6.3 runs on it by minor-version compatibility"
    ]
    native = answer(matrix, small.request({"cuda": "*"}, HOST, policy={"forbid": ["minor-version"]}))
    assert (native.components["cuda"], native.basis, told(native)) == ("12.2.2", "native", [])
    assert refusal(matrix, small.request({"cuda": "12.6"}, HOST, policy={"forbid": ["minor-version"]}))[1].endswith(
        "for the spec does not allow minor-version compatibility"
    )


def test_ptx_is_outside_minor_version_compatibility() -> None:
    """A GPU that only PTX reaches needs a driver that knows the CUDA which made the PTX."""
    order = ("pytorch", "cuda", "driver", "kernel", "gpu")
    made = small.build("cu126", {"cuda": "==12.6.*"}, sass=("sm_80",), ptx=("compute_80",))
    releases = {
        "pytorch": (Release(version=Version.parse("2.6.0"), builds=(made,), source=("invented",)),),
        "cuda": (small.cuda("12.6.3", "525.60.13", "560.35.05"),),
        "driver": drivers("570.9", "535.10"),
        "kernel": (small.release("6.8", {}),),
        "gpu": (small.release("9.0", {}), small.release("8.0", {})),
    }
    matrix = dated(small.matrix(order, {}, releases=releases), branches=(branch("570", "12.8"), branch("535", "12.2")))
    policy = {"allow": ["minor-version", "ptx-jit"]}
    newer = {**HOST, "driver": {"version": "570.9"}}
    assert told(answer(matrix, small.request({"pytorch": "*"}, newer, policy=policy))) == [
        "ptx-jit pytorch: gpu 9.0 runs pytorch 2.6.0+cu126 through its compute_80 PTX, which the driver compiles at start"
    ]
    assert any(
        "only through PTX, so the driver must know CUDA" in line
        for line in refusal(matrix, small.request({"pytorch": "*"}, HOST, policy=policy))
    )
    assert any("compiled for sm_80" in line for line in refusal(matrix, small.request({"pytorch": "*"}, newer)))
    forbidden = {"allow": ["minor-version"], "forbid": ["ptx-jit"]}
    assert any(
        "compiled for sm_80" in line for line in refusal(matrix, small.request({"pytorch": "*"}, newer, policy=forbidden))
    )


PATCHED = (PatchedKernels(kernel=Range.parse("==7.0.*"), by="somebody", source=("invented",)),)


@pytest.mark.parametrize("allow", [[], ["patched-kernel"]])
def test_a_driver_on_a_patched_kernel_is_for_who_allows_it(allow: list[str]) -> None:
    matrix = with_drivers(branch("535", "12.6"), releases=drivers("535.10", patched=PATCHED, released="2024-01-01"))
    host = {"gpus": [{"compute_capability": "9.0"}], "kernel": "7.0.3"}
    request = small.request({"cuda": "*"}, host, policy={"allow": ["minor-version", *allow]})
    if allow:
        stack = answer(matrix, request)
        (only,) = stack.relaxations
        assert relaxation_words(only) == "driver 535.10 builds on kernel 7.0.3 only with the patches of somebody"
        assert (only.name, only.component, source_words(only.source)) == ("patched-kernel", "driver", "an invented table")
    else:
        assert refusal(matrix, request)[-1] == "fact kernel: the host has kernel 7.0.3"


def test_a_patched_driver_that_runs_already_is_refused_only_where_that_is_forbidden() -> None:
    matrix = with_drivers(branch("535", "12.6"), releases=drivers("535.10", patched=PATCHED, released="2024-01-01"))
    host = {**HOST, "kernel": "7.0.3"}
    assert refusal(matrix, small.request({"cuda": "*"}, host, policy={"forbid": ["patched-kernel"]})) == (
        "request policy: you forbid patched-kernel: no driver that builds on its kernel only with patches",
        "rule driver: driver 535.10 builds on kernel 7.0.3 only with the patches of somebody",
        "fact driver: the host has driver 535.10",
    )
    assert answer(matrix, small.request({"cuda": "*"}, host)).components["kernel"] == "7.0.3"


def test_prereleases_are_for_who_allows_names_or_has_them() -> None:
    beta = Release(version=Version.parse("3"), prerelease="beta", source=("invented",))
    candidate = Release(version=Version.parse("4rc1"), source=("invented",))
    matrix = dated(small.matrix(("cuda",), {"cuda": {"2": {}}}, releases={"cuda": (candidate, beta)}, virtual=()))

    def chosen(requires: str, **policy: Any) -> tuple[str, list[str]]:  # noqa: ANN401 - any key of a policy
        stack = answer(matrix, small.request({"cuda": requires}, policy=policy))
        return stack.components["cuda"], told(stack)

    assert chosen("*") == ("2", [])
    assert chosen("==3") == ("3", ["prerelease cuda: cuda 3 is a beta"])
    assert chosen("*", allow=["prerelease"]) == ("4rc1", ["prerelease cuda: cuda 4rc1 is a prerelease"])
    assert refusal(matrix, small.request({"cuda": "==3"}, policy={"forbid": ["prerelease"]})) == (
        "request policy: you forbid prerelease: no alphas, betas and release candidates",
        "request cuda: you require cuda ==3",
        "rule cuda: cuda 3 is a beta",
    )


def test_an_image_that_ended_is_passed_over_where_that_is_forbidden() -> None:
    images = tuple(
        ImageFacts(reference=name, glibc="2.36", kind="slim", end_of_life=end, source=("invented",))
        for name, end in (("old", "2026-01-01"), ("new", "2030-01"))
    )
    order = ("image", "glibc")
    matrix = dated(small.matrix(order, {"glibc": {"2.36": {}}}), images=images)
    assert answer(matrix, small.request({}, accelerator="cpu")).components["image"] == "old"
    forbidding = small.request({}, accelerator="cpu", policy={"forbid": ["end-of-life"]})
    assert answer(matrix, forbidding).components["image"] == "new"


def versions_in_order(policy: dict[str, Any], preferred: dict[str, str] | None = None) -> list[str]:
    matrix = small.matrix(("cuda",), {"cuda": {str(number): {} for number in range(1, 6)}}, virtual=())
    request = replace(small.request({"cuda": "*"}, policy=policy), preferred=preferred or {})
    return [one.label for one in join(matrix, request).domains[Key("cuda")]]


def test_the_order_is_what_is_not_avoided_then_what_is_preferred_then_what_is_locked_then_the_strategy() -> None:
    assert versions_in_order({}) == ["5", "4", "3", "2", "1"]
    assert versions_in_order({}, {"cuda": "2"}) == ["2", "5", "4", "3", "1"]
    assert versions_in_order({"prefer": {"cuda": "<4"}, "avoid": {"cuda": "3"}}) == ["2", "1", "5", "4", "3"]
    assert versions_in_order({"prefer": {"cuda": "<4"}, "avoid": {"cuda": "3"}}, {"cuda": "1"}) == ["1", "2", "5", "4", "3"]
    assert versions_in_order({"avoid": {"cuda": "3"}}, {"cuda": "3"}) == ["5", "4", "2", "1", "3"]
    assert versions_in_order({"strategy": "oldest", "avoid": {"cuda": "1"}}) == ["2", "3", "4", "5", "1"]


def test_names_are_preferred_by_name() -> None:
    order = ("cuda", "driver", "driver_module", "kernel", "gpu")
    releases = {
        "cuda": (small.cuda("12.6.3", "525.60.13", "560.35.05"),),
        "driver": drivers("570.9"),
        "driver_module": small.names("open", "proprietary"),
        "kernel": (small.release("6.8", {}),),
    }
    rules = (small.rule("a driver has a module", {"driver": ">=1"}, {"driver_module": ["open", "proprietary"]}),)
    matrix = dated(small.matrix(order, {}, releases=releases, rules=rules), branches=(branch("570", "12.8"),))
    host = {"gpus": [{"compute_capability": "9.0"}]}
    assert answer(matrix, small.request({"cuda": "*"}, host)).components["driver_module"] == "open"
    request = small.request({"cuda": "*"}, host, policy={"prefer": {"driver_module": "proprietary"}})
    assert answer(matrix, request).components["driver_module"] == "proprietary"


def test_a_lock_does_not_hold_a_build_whose_cuda_the_spec_avoids() -> None:
    builds = (
        small.build("cu130", {"cuda": "==13"}, default=True),
        small.build("cu126", {"cuda": "==12"}),
    )
    release = Release(version=Version.parse("2.9.0"), builds=builds, source=("invented",))
    matrix = small.matrix(("pytorch", "cuda"), {"cuda": {"13": {}, "12": {}}}, releases={"pytorch": (release,)})

    def order(policy: dict[str, Any]) -> list[str]:
        request = replace(small.request({"pytorch": "*"}, policy=policy), preferred={"pytorch": "2.9.0+cu130"})
        return [one.label for one in join(matrix, request).domains[Key("pytorch")]]

    assert order({}) == ["2.9.0+cu130", "2.9.0+cu126"]
    assert order({"avoid": {"cuda": "13"}}) == ["2.9.0+cu126", "2.9.0+cu130"]
    assert order({"prefer": {"pytorch_build": "cu126"}}) == ["2.9.0+cu126", "2.9.0+cu130"]
    assert order({"prefer": {"cuda": "12"}}) == ["2.9.0+cu126", "2.9.0+cu130"]


def test_arranging_keeps_the_given_order_where_the_policy_names_nothing() -> None:
    request = small.request({})
    matrix = small.matrix(("cuda",), {"cuda": {"2": {}, "1": {}}}, virtual=())
    given = join(matrix, request).domains[Key("cuda")]
    assert arranged(tuple(reversed(given)), request, "cuda") == tuple(reversed(given))


def test_packages_of_a_stable_environment_are_a_week_old() -> None:
    matrix = dated(small.matrix(("cuda",), {}))
    assert uploads_until(matrix, Policy()) is None
    assert uploads_until(matrix, Policy(strategy="stable")) == "2026-06-08"
    day = convert({"strategy": "stable", "exclude-newer": "2026-01-10"}, Policy)
    assert uploads_until(matrix, day) == "2026-01-03"
    assert uploads_until(dated(matrix, ""), Policy(strategy="stable")) is None


def test_what_nobody_dates_is_unverified_unless_a_newer_one_of_its_series_is_old_enough() -> None:
    stable = small.request({"cuda": "*"}, HOST, policy={"strategy": "stable"})
    followed = (*drivers("535.20", released="2026-01-01"), *drivers("535.10"))
    matrix = with_drivers(branch("535", "12.6"), releases=followed)
    assert not any("535.10" in text for text in unverified(answer(matrix, stable)))
    stack = answer(with_drivers(branch("535", "12.6"), releases=drivers("535.10")), stable)
    assert "driver: no source says when 535.10 was released, so it may be of this week" in unverified(stack)
    assert stack.verdict == "unverified"


@pytest.mark.parametrize(
    ("released", "said"),
    [("2026-06-08", ""), ("2026-06-09", "less than a week before 2026-06-15"), ("2026-07-01", "after 2026-06-15")],
)
def test_stable_takes_nothing_released_in_the_week_before_its_day(released: str, said: str) -> None:
    release = Release(version=Version.parse("12"), released=released, source=("invented",))
    matrix = dated(small.matrix(("cuda",), {}, releases={"cuda": (release,)}, virtual=()))
    request = small.request({"cuda": "*"}, policy={"strategy": "stable"})
    if said:
        assert refusal(matrix, request) == (
            "request policy: you ask for strategy stable: nothing released in the week before 2026-06-15",
            "request cuda: you require cuda *",
            f"rule cuda: cuda 12 was released {released}, {said}",
        )
    else:
        assert answer(matrix, request).components["cuda"] == "12"


def test_a_prerelease_of_a_framework_may_be_named_under_packages() -> None:
    builds = (small.build("cu130", {}, default=True),)
    releases = tuple(
        Release(version=Version.parse(one), builds=builds, source=("invented",)) for one in ("2.16.0rc1", "2.15.0")
    )
    matrix = dated(small.matrix(("pytorch",), {}, releases={"pytorch": releases}))

    def offered(*packages: str) -> list[str]:
        return [one.label for one in join(matrix, small.request({}, packages=packages)).domains[Key("pytorch")]]

    assert offered("torch>=2.15", "numpy==2.16.0rc1") == ["2.15.0+cu130"]
    assert offered("torch==2.16.0rc1") == ["2.16.0rc1+cu130", "2.15.0+cu130"]


def of_branches() -> Matrix:
    """Two branches: 590 began in March of 2026, and its last release nobody dates; of 535 an older one nobody dates either."""
    dates = {
        "590.30": "",
        "590.20": "2026-05-02",
        "590.10": "2026-03-05",
        "535.30": "2024-02-01",
        "535.20": "",
        "535.10": "2023-05-30",
    }
    releases = tuple(one for version, day in dates.items() for one in drivers(version, released=day))
    return with_drivers(branch("590", "13.1"), branch("535", "12.2"), releases=releases)


@pytest.mark.parametrize(
    ("until", "driver"),
    [
        ("2026-06-01", "590.30"),  # may have been out, nothing says otherwise
        ("2026-04-01", "590.30"),  # its branch had begun
        ("2026-03-01", "535.30"),  # its branch had not
        ("2023-12-01", "535.20"),
        ("2023-06-01", "535.20"),
    ],
)
def test_an_undated_release_is_not_older_than_where_its_series_began(until: str, driver: str) -> None:
    problem = join(
        of_branches(),
        small.request({"cuda": "==12.2.2"}, {"gpus": [{"compute_capability": "8.0"}]}, policy={"exclude-newer": until}),
    )
    assert problem.domains[Key("driver", "host0")][0].label == driver


def test_how_old_a_container_toolkit_is_that_is_there_nobody_asks() -> None:
    toolkits = tuple(
        Release(version=Version.parse(one), released=day, source=("invented",)) for one, day in (("1.17.4", "2026-06-14"),)
    )
    order = ("cuda", "container_toolkit", "gpu")
    cuda = (small.cuda("12.2.2", "525.60.13", "535.104.05"),)
    made = small.matrix(
        order, {}, releases={"cuda": cuda, "container_toolkit": toolkits}, virtual=(*small.VIRTUAL, "container_toolkit")
    )
    host = {"gpus": [{"compute_capability": "8.0"}], "container_toolkit": "1.17.4"}
    found = answer(dated(made), small.request({"cuda": "==12.2.2"}, host, policy={"strategy": "stable"}))
    assert found.components["container_toolkit"] == "1.17.4"
