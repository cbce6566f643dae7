"""What changed between two locks: which hosts fall out, what moved, and why, as far as the locks say."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from msgspec.structs import replace

from provisioner.errors import InvalidDocumentError
from provisioner.lock.create import reason_of
from provisioner.lock.diff.compare import compare, compare_texts
from provisioner.lock.format.file import write_lock
from provisioner.lock.format.model import LockedFile, LockedPackage, LockedPin, LockedStack, LockedSystemPackage, Reason
from provisioner.resolver.stack import BaseImage
from provisioner.words.change import cause_source, cause_words, change_words, comparison_lines, note_words, summary
from tests.lock_examples import IMAGE_DIGEST, PACKAGES, UBUNTU_HOST, cpu_stack, cuda_stack, lock_of
from tests.told import asks

if TYPE_CHECKING:
    from collections.abc import Sequence

    from provisioner.grounds.change import Change, Comparison
from provisioner.lock.format.model import Lock

PLATFORM = "linux/amd64"
IMAGE = BaseImage(reference="a:1")
PINNED = replace(IMAGE, digest=IMAGE_DIGEST)


def lock(*packages: LockedPackage, **changes: Any) -> Lock:  # noqa: ANN401 - fields of a stack or of a lock
    """A CUDA lock with these packages only, some fields of the lock or of its one stack replaced."""
    made = replace(lock_of(cuda_stack()), packages=packages)
    of_lock = {name: value for name, value in changes.items() if name in {"asked", "spec_digest", "matrix_digest", "name"}}
    of_stack = {name: value for name, value in changes.items() if name not in of_lock}
    return replace(made, stacks=(replace(made.stacks[0], **of_stack),), **of_lock)


def package(name: str, version: str = "1.0", **fields: Any) -> LockedPackage:  # noqa: ANN401 - fields of a package
    """A package with one wheel, whose hash is made of its name and version."""
    sha256 = f"{name}{version}".encode().hex().ljust(64, "0")[:64]
    wheel = LockedFile(
        filename=f"{name}-{version}-py3-none-any.whl", sha256=sha256, url=f"https://example.org/{name}-{version}"
    )
    return LockedPackage(**{"name": name, "version": version, "platforms": (PLATFORM,), "wheels": (wheel,), **fields})


def components(**changes: str) -> dict[str, str]:
    """The components of the usual stack with some replaced; "" leaves one out."""
    merged = {**lock_of(cuda_stack()).stack.components, **changes}
    return {name: value for name, value in merged.items() if value}


def only(comparison: Comparison, subject: str) -> Change:
    """The one change of a subject."""
    (found,) = [change for change in comparison.changes if change.subject == subject]
    return found


def causes(change: Change) -> Sequence[tuple[str, str, str]]:
    return [(cause.kind, cause.subject, cause_words(cause)) for cause in change.causes]


def test_a_lock_and_itself() -> None:
    for one in (lock_of(cpu_stack()), lock_of(cuda_stack()), lock_of(cuda_stack(), cuda_stack("linux/arm64"))):
        same = compare(one, one)
        assert same.changes == ()
        assert comparison_lines(same, old="a", new="b") == ["## a -> b", "", "Nothing changed."]


class TestHosts:
    @pytest.mark.parametrize(
        ("old", "new", "change", "words", "is_breaking"),
        [
            (">=525.60.13", ">=580.65.06", "tightened", "hosts with driver below 580.65.06 fall out", True),
            (">=580.65.06", ">=525.60.13", "loosened", "more hosts fit now", False),
            (">=525", ">=525,<590", "tightened", "hosts with driver from 590 on fall out", True),
            (">=525,<590", ">=525,<=580", "tightened", "hosts with driver above 580 fall out", True),
            (">=525,<590", ">=550,<600", "changed", "hosts with driver below 550 fall out", True),
            ("of branch 12.6", ">=570", "changed", "hosts with driver outside `>=570` fall out", True),
            ("==535.*", ">=535", "changed", "hosts with driver outside `>=535` fall out", True),
        ],
    )
    def test_a_range_names_the_hosts_that_fall_out(
        self, old: str, new: str, change: str, words: str, *, is_breaking: bool
    ) -> None:
        found = only(compare(*(lock(host_requirements={"driver": one}) for one in (old, new))), "driver")
        assert (found.change, found.is_breaking, found.old, found.new) == (change, is_breaking, old, new)
        assert change_words(found) == f"driver `{old}` became `{new}`: {words}"

    def test_a_requirement_that_comes_or_goes(self) -> None:
        without, with_one = lock(host_requirements={"gpu": "9.0"}), lock(host_requirements={"gpu": "9.0", "driver": ">=525"})
        came, went = only(compare(without, with_one), "driver"), only(compare(with_one, without), "driver")
        assert (came.change, came.is_breaking) == ("tightened", True)
        assert change_words(came) == "driver `>=525` is required now, where nothing was: hosts with driver below 525 fall out"
        assert (went.change, went.is_breaking, change_words(went)) == (
            "loosened",
            False,
            "driver `>=525` is no longer required",
        )

    def test_systems_are_sets_of_names(self) -> None:
        old, new = (lock(host_requirements={"os": one}) for one in ("rhel 8 or rhel 9", "rhel 9"))
        assert only(compare(old, new), "os").change == "tightened"
        assert only(compare(new, old), "os").change == "loosened"

    def test_gpus_that_fall_out_and_gpus_that_fit_now(self) -> None:
        old, new = (lock(host_requirements={"gpu": one}) for one in ("5.0, 6.1, 7.0, 8.0", "7.0, 8.0, 12.0"))
        found = only(compare(old, new), "gpu")
        assert change_words(found) == "GPUs of compute capability 5.0 and 6.1 fall out; 12.0 fit now"
        assert (found.lost, found.gained, found.change, found.is_breaking) == (("5.0", "6.1"), ("12.0",), "changed", True)
        assert change_words(only(compare(new, old), "gpu")) == "GPUs of compute capability 12.0 fall out; 5.0 and 6.1 fit now"
        more = compare(lock(host_requirements={"gpu": "7.0"}), lock(host_requirements={"gpu": "7.0, 8.0"}))
        assert change_words(only(more, "gpu")) == "GPUs of compute capability 8.0 fit now"
        assert not more.is_breaking

    @pytest.mark.parametrize(
        ("type_", "text"),
        [("compiled-for", "is compiled for sm_80"), ("bundles-compiler", "has the GPU compiler of CUDA 12.4")],
    )
    def test_a_package_that_runs_on_fewer_gpus_is_why(self, type_: str, text: str) -> None:
        build = Reason(component="pytorch", kind="rule", text="pytorch 2.7.1+cu126 is compiled", where="", type="compiled-for")
        build = replace(build, gpus=("7.0", "8.0", "9.0"))
        words = f"xformers 0.0.31 {text}"
        wheel = Reason(component="xformers", kind="rule", text=words, where="", type=type_, gpus=("8.0", "9.0"))
        floor = Reason(component="cudnn", kind="rule", text="cudnn 9 needs gpu >=5.0", where="", type="needs")
        without = lock(host_requirements={"gpu": "7.0, 8.0, 9.0"}, host_reasons={"gpu": (build,)})
        beside = lock(
            package("xformers", "0.0.31"), host_requirements={"gpu": "8.0, 9.0"}, host_reasons={"gpu": (build, floor, wheel)}
        )
        assert causes(only(compare(without, beside), "gpu")) == [("follows", "xformers", words)]
        assert causes(only(compare(beside, without), "gpu")) == [("follows", "xformers", f"{words}, and xformers is gone")]

    def test_a_new_version_of_a_package_that_runs_on_more_gpus_is_why(self) -> None:
        def xformers(version: str, *gpus: str) -> Lock:
            text = f"xformers {version} is compiled for something"
            reason = Reason(component="xformers", kind="rule", text=text, where="", type="compiled-for", gpus=gpus)
            wanted = {"gpu": ", ".join(gpus)}
            return lock(package("xformers", version), host_requirements=wanted, host_reasons={"gpu": (reason,)})

        found = only(compare(xformers("1.0", "8.0"), xformers("2.0", "8.0", "9.0")), "gpu")
        assert causes(found) == [("follows", "xformers", "xformers 2.0 is compiled for something")]

    def test_a_lock_that_does_not_record_which_gpus_a_rule_allows_is_read_as_before(self) -> None:
        old, new = (
            Reason(component="pytorch", kind="rule", text=f"pytorch {one} is compiled", where="", type="compiled-for")
            for one in ("1", "2")
        )
        before = lock(host_requirements={"gpu": "7.0, 8.0"}, host_reasons={"gpu": (old,)})
        after = lock(host_requirements={"gpu": "8.0"}, host_reasons={"gpu": (replace(new, gpus=("8.0",)),)})
        words = "the matrix says now: pytorch 2 is compiled"
        assert causes(only(compare(before, after), "gpu")) == [("matrix", "", words)]

    def test_gpus_of_amd(self) -> None:
        old, new = (lock(accelerator="rocm", host_requirements={"gpu": one}) for one in ("gfx906, gfx942", "gfx942"))
        assert change_words(only(compare(old, new), "gpu")) == "GPUs gfx906 fall out"

    def test_a_lock_that_lists_no_gpus_is_judged_by_its_compiled_targets(self) -> None:
        old = lock(host_requirements={"gpu": "6.1, 7.0, 8.6, 9.0"}, arch_list=("sm_60", "sm_70", "sm_80", "sm_90"))
        new = lock(host_requirements={}, arch_list=("sm_80", "sm_90a", "sm_120", "compute_120"))
        found = only(compare(old, new), "gpu")
        assert (found.lost, found.gained) == (("6.0", "6.1", "7.0"), ("12.0",))
        assert change_words(found) == (
            "GPUs of compute capability 6.0, 6.1 and 7.0 fall out; 12.0 fit now, going by the compiled targets: "
            "no host of one of the locks stated its GPUs"
        )

    def test_targets_nobody_knows_are_no_reason_to_stop(self) -> None:
        old, new = (lock(host_requirements={}, arch_list=targets) for targets in (("sm_80", "sm_banana"), ("sm_90",)))
        assert only(compare(old, new), "gpu").lost == ("8.0",)

    def test_compiled_targets(self) -> None:
        old, new = (lock(host_requirements={"gpu": "9.0"}, arch_list=one) for one in (("sm_80", "sm_90"), ("sm_90", "sm_100")))
        assert change_words(only(compare(old, new), "arch_list")) == "compiled targets: sm_80 went; sm_100 came"

    def test_how_the_driver_requirement_is_met(self) -> None:
        found = only(compare(lock(basis="native"), lock(basis="minor-version")), "basis")
        assert change_words(found) == "the driver requirement is met by minor-version compatibility now, natively before"
        assert change_words(only(compare(lock(basis="native"), lock(basis="")), "basis")) == (
            "there is no driver requirement any more, it was met natively"
        )

    def test_an_accelerator_that_goes_is_said_first(self) -> None:
        comparison = compare(lock_of(cuda_stack()), lock_of(cpu_stack()))
        first = comparison.changes[0]
        assert change_words(first) == "accelerator cuda -> cpu: no GPU is used any more"
        assert first.is_breaking
        assert change_words(only(comparison, "gpu")) == "no GPU is required any more"
        back = compare(lock_of(cpu_stack()), lock_of(cuda_stack()))
        assert change_words(only(back, "gpu")) == "a GPU is required now: 7.5, 8.0 and 9.0"
        assert only(back, "gpu").is_breaking

    def test_a_platform_that_goes_takes_its_hosts_along(self) -> None:
        both, one = lock_of(cuda_stack(), cuda_stack("linux/arm64")), lock_of(cuda_stack())
        gone = compare(both, one)
        assert [(change_words(change), change.is_breaking) for change in gone.of("hosts")] == [
            ("platform linux/arm64 is gone: its hosts fall out", True)
        ]
        assert [change_words(change) for change in compare(one, both).of("hosts")] == ["platform linux/arm64 is new"]
        assert gone.of("packages") == ()

    def test_the_recorded_rule_is_the_cause(self) -> None:
        def needing(cuda: str, driver: str) -> Lock:
            reason = Reason(
                component="cuda", kind="rule", text=f"cuda {cuda} needs driver {driver}", where="matrices/cuda.yaml"
            )
            return lock(
                components=components(cuda=cuda), host_requirements={"driver": driver}, host_reasons={"driver": (reason,)}
            )

        found = only(compare(needing("12.6.3", ">=525.60.13"), needing("13.0.2", ">=580.65.06")), "driver")
        assert causes(found) == [("follows", "cuda", "cuda 13.0.2 needs driver >=580.65.06")]
        same = only(compare(needing("12.6.3", ">=525.60.13"), needing("12.6.3", ">=530")), "driver")
        assert causes(same) == [("matrix", "", "the matrix says now: cuda 12.6.3 needs driver >=530")]

    def test_without_records_the_part_behind_it_is_named(self) -> None:
        old = lock(host_requirements={"driver": ">=525.60.13"})
        new = lock(host_requirements={"driver": ">=580.65.06"}, components=components(cuda="13.0.2"))
        assert causes(only(compare(old, new), "driver")) == [
            ("follows", "cuda", "it comes with cuda: 12.6.3 before, 13.0.2 now")
        ]


class TestSystem:
    def test_components_in_the_order_of_a_review(self) -> None:
        old = lock(
            components={"pytorch": "2.6.0", "pytorch_build": "cu124", "cuda": "12.4.1", "cudnn": "9.1.0.70", "python": "3.12"}
        )
        new = lock(
            components={"pytorch": "2.7.1", "pytorch_build": "cu126", "cuda": "12.6.3", "nccl": "2.26.2", "python": "3.11"}
        )
        assert [(change_words(change), change.change) for change in compare(old, new).of("system")] == [
            ("pytorch 2.6.0+cu124 -> 2.7.1+cu126", "upgraded"),
            ("cuda 12.4.1 -> 12.6.3", "upgraded"),
            ("python 3.12 -> 3.11, a downgrade", "downgraded"),
            ("cudnn 9.1.0.70 is gone", "removed"),
            ("nccl 2.26.2 is new", "added"),
        ]

    def test_another_build_of_the_same_release_is_neither_up_nor_down(self) -> None:
        old, new = lock(), lock(components=components(pytorch_build="cu128"))
        assert only(compare(old, new), "pytorch").change == "changed"

    @pytest.mark.parametrize(
        ("old", "new", "text"),
        [
            (IMAGE, BaseImage(reference="b:2"), "image a:1 -> b:2"),
            (IMAGE, PINNED, f"image a:1 is pinned by digest now: {IMAGE_DIGEST}"),
            (PINNED, IMAGE, f"image a:1 is no longer pinned by digest, which was {IMAGE_DIGEST}"),
            (replace(PINNED, digest="sha256:0"), PINNED, f"image a:1 has other content: sha256:0 -> {IMAGE_DIGEST}"),
            (IMAGE, None, "image a:1 is gone"),
        ],
    )
    def test_the_image(self, old: BaseImage, new: BaseImage | None, text: str) -> None:
        assert change_words(only(compare(lock(image=old), lock(image=new)), "image")) == text

    @pytest.mark.parametrize(
        ("old", "new", "cause"),
        [
            ("12.6.3", "12.8.1", "image nvidia/cuda:b is chosen for cuda 12.8.1"),
            ("", "12.8.1", "image nvidia/cuda:b is chosen for cuda 12.8.1"),
            ("12.6.3", "", "image nvidia/cuda:b is chosen for a stack without cuda, where the old one had cuda 12.6.3"),
        ],
    )
    def test_an_image_that_follows_the_cuda_of_the_stack(self, old: str, new: str, cause: str) -> None:
        before = lock(components=components(cuda=old), image=BaseImage(reference="nvidia/cuda:a"))
        after = lock(components=components(cuda=new), image=BaseImage(reference="nvidia/cuda:b"))
        assert causes(only(compare(before, after), "image")) == [("follows", "cuda", cause)]

    def test_variables_sentences_and_the_installer(self) -> None:
        old = lock(environment={"A": "1", "B": "2"}, unverified=("glibc: not stated",), relaxations=("minor-version (cuda)",))
        new = lock(environment={"B": "3", "C": "4"}, relaxations=("ptx-jit (gpu)",))
        new = replace(new, stacks=(replace(new.stacks[0], installer=None),))
        assert [change_words(change) for change in compare(old, new).of("system")] == [
            "`A=1` is not set any more",
            "`B` is `3` now, it was `2`",
            "`C=4` is set now",
            "relaxed now: ptx-jit (gpu)",
            "no longer relaxed: minor-version (cuda)",
            "no longer unverified: glibc: not stated",
            "installer uv 0.9.11 is gone",
        ]

    def test_what_is_taken_for_granted_is_compared_sentence_by_sentence(self) -> None:
        old = lock(unverified=("glibc: not stated",), assumes=("a: x",), accepts=("b: y",))
        new = lock(unverified=("glibc: not known",), assumes=("a: z",))
        assert [change_words(change) for change in compare(old, new).of("system")] == [
            "unverified now: glibc: not known",
            "no longer unverified: glibc: not stated",
            "assumed now: a: z",
            "no longer assumed: a: x",
            "no longer accepted: b: y",
        ]

    @pytest.mark.parametrize(
        ("before", "after", "text", "is_breaking"),
        [
            (
                "",
                "cuda>=12.6 brand=tesla,driver>=470,driver<471",
                "`cuda>=12.6` or `brand=tesla,driver>=470,driver<471` is required by the base image itself now",
                True,
            ),
            (
                "cuda>=12.6 arch=9.0 arch=8.0",
                "",
                "`cuda>=12.6` or one of 2 other alternatives is no longer required by the base image itself",
                False,
            ),
            ("cuda>=12.6", "cuda>=12.4", "the base image itself requires `cuda>=12.4`, it required `cuda>=12.6`", False),
            ("cuda>=12.4", "cuda>=12.6", "the base image itself requires `cuda>=12.6`, it required `cuda>=12.4`", True),
            ("", "driver>=450", "`driver>=450` is required by the base image itself now", False),
        ],
    )
    def test_the_gate_of_the_base_is_a_requirement_of_hosts(
        self, before: str, after: str, text: str, *, is_breaking: bool
    ) -> None:
        """And breaks where a host may meet all old requirements but not the new one; a driver from 525 on is from 450 on."""
        old, new = (
            lock(environment={"NVIDIA_REQUIRE_BASE": one} if one else {}, require_cuda="driver>=525.60.13")
            for one in (before, after)
        )
        (change,) = compare(old, new).changes
        assert (change.section, change_words(change), change.is_breaking) == (
            "hosts",
            f"{text} (NVIDIA_REQUIRE_BASE)",
            is_breaking,
        )

    def test_an_installer_exchanged_under_its_name_is_breaking(self) -> None:
        old = lock()
        installer = old.stack.installer
        assert installer is not None
        new = lock(installer=replace(installer, file=replace(installer.file, sha256="0" * 64)))
        assert only(compare(old, new), "installer").is_breaking

    def test_a_request_is_the_cause_where_it_rules_the_other_version_out(self) -> None:
        old = lock(asked={"requires.pytorch": ">=2.7,<2.8"}, pins=())
        new = lock(asked={"requires.pytorch": ">=2.8"}, components=components(pytorch="2.8.0", pytorch_build="cu126"), pins=())
        assert causes(only(compare(old, new), "pytorch")) == [
            ("spec", "", "the spec asks for `pytorch >=2.8`, it asked for `pytorch >=2.7,<2.8`")
        ]
        assert causes(only(compare(new, old), "pytorch")) == [
            ("spec", "", "the spec asks for `pytorch >=2.7,<2.8`, it asked for `pytorch >=2.8`")
        ]

    @pytest.mark.parametrize("key", ["packages.torch", "constraints.torch"])
    def test_a_framework_moves_for_what_the_spec_says_of_its_distribution(self, key: str) -> None:
        old = lock(asked={key: "==2.7.1"}, pins=())
        new = lock(asked={key: "==2.8.0"}, components=components(pytorch="2.8.0", pytorch_build="cu128"), pins=())
        words = {
            "packages.torch": "the spec asks for `torch==2.8.0`, it asked for `torch==2.7.1`",
            "constraints.torch": "the spec constrains it to `torch==2.8.0`, before `torch==2.7.1`",
        }
        assert causes(only(compare(old, new), "pytorch")) == [("spec", "", words[key])]

    def test_a_framework_asked_for_as_a_component_before_and_as_a_distribution_now(self) -> None:
        old = lock(asked={"requires.pytorch": "<2.8"}, pins=())
        new = lock(asked={"packages.torch": "==2.8.0"}, components=components(pytorch="2.8.0"), pins=())
        assert causes(only(compare(old, new), "pytorch")) == [
            ("spec", "", "the spec asked for `pytorch <2.8` and does no longer"),
            ("spec", "", "the spec asks for `torch==2.8.0` now"),
        ]

    @pytest.mark.parametrize(
        ("key", "before", "after"),
        [("packages.jax", "jax==0.6.0", "jax==0.7.2"), ("requires.jax", "jax ==0.6.0", "jax ==0.7.2")],
    )
    def test_a_framework_with_the_name_of_its_distribution_is_quoted_as_it_was_asked_for(
        self, key: str, before: str, after: str
    ) -> None:
        old = lock(asked={key: "==0.6.0"}, components={"jax": "0.6.0"}, pins=())
        new = lock(asked={key: "==0.7.2"}, components={"jax": "0.7.2"}, pins=())
        assert causes(only(compare(old, new), "jax")) == [("spec", "", f"the spec asks for `{after}`, it asked for `{before}`")]

    def test_a_request_that_allows_both_versions_is_no_cause(self) -> None:
        old = lock(asked={"requires.pytorch": ">=2.6"}, pins=(), spec_digest="sha256:1")
        new = lock(asked={"requires.pytorch": ">=2.5"}, components=components(pytorch="2.8.0"), pins=(), spec_digest="sha256:2")
        assert causes(only(compare(old, new), "pytorch")) == [
            ("unknown", "", "unknown: no recorded request or rule explains it; the spec (requires.pytorch) changed too")
        ]

    def test_nothing_recorded_and_nothing_else_different_is_said(self) -> None:
        old, new = lock(pins=()), lock(pins=(), components=components(cudnn="9.9"))
        assert causes(only(compare(old, new), "cudnn")) == [
            ("unknown", "", "unknown: spec, matrix and program are the same; hosts, indexes and `--upgrade` are not recorded")
        ]

    def test_a_request_recorded_with_a_pin_is_read_by_locks_without_a_record_of_the_spec(self) -> None:
        def asking(words: str) -> tuple[LockedPin, ...]:
            reason = reason_of(asks("pytorch", words))
            return (LockedPin(component="pytorch", version="2.7.1", reasons=(reason,)),)

        old = lock(pins=asking(">=2.6,<2.8"))
        new = lock(components=components(pytorch="2.8.0"), pins=asking(">=2.8"))
        found = only(compare(old, new), "pytorch")
        assert causes(found) == [("spec", "", "the spec asks for `pytorch >=2.8`, it asked for `pytorch >=2.6,<2.8`")]
        assert cause_source(found.causes[0]) == "provision.yaml:7"

    def test_a_rule_that_went_is_the_cause_where_none_came(self) -> None:
        reason = Reason(component="pytorch", kind="rule", text="pytorch 2.7.1+cu126 needs cuda 12.6", where="")
        old = lock(pins=(LockedPin(component="cuda", version="12.6.3", reasons=(reason,)),))
        new = lock(components=components(cuda="12.9.1", pytorch="2.8.0"), pins=())
        assert causes(only(compare(old, new), "cuda")) == [
            ("follows", "pytorch", "pytorch 2.7.1+cu126 needs cuda 12.6, and pytorch is 2.8.0+cu126 now")
        ]

    def test_the_key_of_the_spec_that_names_the_image_is_its_cause(self) -> None:
        old = lock(asked={"name": "x"}, image=BaseImage(reference="a:1"))
        new = lock(asked={"name": "x", "image.base": "b:2"}, image=BaseImage(reference="b:2"))
        assert causes(only(compare(old, new), "image")) == [
            ("spec", "", "the spec says `image.base: b:2`, it said nothing of it")
        ]


EARLIER_DAY = (
    "the spec, or `--exclude-newer`, says `policy.exclude-newer: 2026-01-10`, it said nothing of it; "
    "the version before was uploaded 2026-02-01"
)


class TestPackages:
    @pytest.mark.parametrize(
        ("old", "new", "change", "text"),
        [
            ("1.0", "1.1", "upgraded", "alpha 1.0 -> 1.1"),
            ("1.0", "2.0", "upgraded", "alpha 1.0 -> 2.0, a new major version"),
            ("2.0", "1.9", "downgraded", "alpha 2.0 -> 1.9, a downgrade to an older major version"),
            ("1.10", "1.9", "downgraded", "alpha 1.10 -> 1.9, a downgrade"),
            ("2025.1", "2026.1", "upgraded", "alpha 2025.1 -> 2026.1"),
            ("1!1.0", "2.0", "downgraded", "alpha 1!1.0 -> 2.0, a downgrade to an older major version"),
            ("1.0+cu124", "1.0+cu126", "changed", "alpha 1.0+cu124 -> 1.0+cu126, another build"),
        ],
    )
    def test_a_version_that_moved(self, old: str, new: str, change: str, text: str) -> None:
        found = only(compare(lock(package("alpha", old)), lock(package("alpha", new))), "alpha")
        assert (found.change, change_words(found), found.aspect) == (change, text, "version")

    def test_what_came_and_what_went(self) -> None:
        comparison = compare(lock(package("alpha"), package("beta")), lock(package("beta"), package("gamma")))
        assert [(change.subject, change.change, change_words(change)) for change in comparison.of("packages")] == [
            ("alpha", "removed", "alpha 1.0 is gone"),
            ("gamma", "added", "gamma 1.0 is new"),
        ]
        assert comparison.unchanged == 1

    def test_other_content_under_the_same_name_is_told_above_all_else(self) -> None:
        good = package("alpha")
        bad = replace(good, wheels=(replace(good.wheels[0], sha256="f" * 64),))
        comparison = compare(lock(good), lock(bad))
        found = only(comparison, "alpha")
        assert (found.aspect, found.is_breaking, found.new) == ("content", True, "f" * 64)
        lines = comparison_lines(comparison, old="a", new="b")
        assert lines[2] == "**1 change breaks what ran before**; packages: 1 otherwise changed, 0 unchanged."
        assert lines[4] == "### Breaks what ran before"
        assert lines[6].startswith("- alpha 1.0: `alpha-1.0-py3-none-any.whl` has other content under the same name: sha256 ")

    def test_another_wheel_of_the_same_version(self) -> None:
        old = package("alpha", wheels=(LockedFile(filename="alpha-1.0-cp311-cp311-any.whl", sha256="1" * 64),))
        new = package("alpha", wheels=(LockedFile(filename="alpha-1.0-cp312-cp312-any.whl", sha256="2" * 64),))
        sides = lock(old, components=components(python="3.11")), lock(new)
        found = only(compare(*sides), "alpha")
        assert (found.aspect, change_words(found)) == ("file", "alpha 1.0 from another wheel: cp311-cp311 -> cp312-cp312")
        assert causes(found) == [("follows", "python", "python 3.12 takes another file")]

    def test_a_rebuilt_wheel_names_its_build(self) -> None:
        old, new = (
            package("alpha", wheels=(LockedFile(filename=f"alpha-1.0-{build}py3-none-any.whl", sha256=sha * 64),))
            for build, sha in (("", "1"), ("2-", "2"))
        )
        assert change_words(only(compare(lock(old), lock(new)), "alpha")) == (
            "alpha 1.0 from another wheel: py3-none-any -> 2-py3-none-any"
        )

    def test_another_index_another_place_and_other_requirements(self) -> None:
        old = package("alpha", index="pypi", requires=("beta>=1",))
        assert only(compare(lock(old), lock(replace(old, index="mirror"))), "alpha").aspect == "index"
        moved = replace(old, wheels=(replace(old.wheels[0], url="https://mirror.example.org/alpha"),))
        assert change_words(only(compare(lock(old), lock(moved)), "alpha")) == (
            "alpha 1.0: the same file from another place: https://example.org/alpha-1.0 -> https://mirror.example.org/alpha"
        )
        found = only(compare(lock(old), lock(replace(old, requires=("gamma",)))), "alpha")
        assert (found.aspect, change_words(found)) == (
            "requires",
            "alpha 1.0 no longer requires `beta>=1` and requires `gamma` now",
        )

    def test_a_requirement_that_rules_the_old_version_out_is_the_cause(self) -> None:
        old = lock(package("top", "1.0", requires=("low==1.0",), dependencies=("low",)), package("low", "1.0"))
        new = lock(package("top", "2.0", requires=("low==2.0",), dependencies=("low",)), package("low", "2.0"))
        assert causes(only(compare(old, new), "low")) == [("follows", "top", "top 2.0 requires `low==2.0`, which 1.0 is not")]

    def test_a_requirement_that_ruled_the_new_version_out_and_is_gone(self) -> None:
        old = lock(package("holder", requires=("low<2",), dependencies=("low",)), package("low", "1.0"))
        assert causes(only(compare(old, lock(package("low", "2.0"))), "low")) == [
            ("follows", "holder", "holder 1.0 required `low<2` before and is gone")
        ]

    def test_two_that_moved_at_once_and_have_nothing_to_do_with_each_other(self) -> None:
        old = lock(package("top", "1.0", requires=("low",), dependencies=("low",)), package("low", "1.0"))
        new = lock(package("top", "2.0", requires=("low",), dependencies=("low",)), package("low", "2.0"))
        assert causes(only(compare(old, new), "low"))[0][0] == "unknown"

    def test_dates_tell_what_the_old_lock_could_not_have(self) -> None:
        def of(version: str, day: str) -> LockedPackage:
            from datetime import UTC, datetime

            made = package("alpha", version)
            return replace(made, wheels=(replace(made.wheels[0], upload_time=datetime.fromisoformat(day).replace(tzinfo=UTC)),))

        old = lock(of("1.0", "2026-01-05"))
        assert causes(only(compare(old, lock(of("1.1", "2026-02-01"))), "alpha")) == [
            ("index", "", "released since: uploaded 2026-02-01, the newest file of the old lock 2026-01-05")
        ]
        assert causes(only(compare(old, lock(of("1.1", "2026-01-02"))), "alpha"))[0][0] == "unknown"
        capped = replace(old, asked={"policy.exclude-newer": "2026-01-10"})
        freed = lock(of("1.1", "2026-02-01"), asked={"requires.python": "3.12"})
        assert causes(only(compare(capped, freed), "alpha")) == [
            ("spec", "", "the spec says nothing of `policy.exclude-newer`, it said `2026-01-10`; it was uploaded 2026-02-01")
        ]

        earlier = lock(of("1.0", "2026-01-05"), asked={"policy.exclude-newer": "2026-01-10"})
        assert causes(only(compare(freed, earlier), "alpha")) == [("spec", "", EARLIER_DAY)]
        same = lock(of("1.0", "2026-01-05"), asked={"policy.exclude-newer": "2026-03-01"})
        assert causes(only(compare(freed, same), "alpha"))[0][0] == "unknown"

    def test_a_framework_that_the_day_excludes(self) -> None:
        def of(version: str, day: str, **asked: str) -> Lock:
            from datetime import UTC, datetime

            made = package("torch", version)
            when = datetime.fromisoformat(day).replace(tzinfo=UTC)
            torch = replace(made, wheels=(replace(made.wheels[0], upload_time=when),))
            return lock(torch, components=components(pytorch=version), asked={"requires.python": "3.12", **asked})

        old, new = of("2.8.0", "2026-02-01"), of("2.7.1", "2026-01-05", **{"policy.exclude-newer": "2026-01-10"})
        assert causes(only(compare(old, new), "pytorch")) == [("spec", "", EARLIER_DAY)]

    def test_torch_is_the_component_pytorch(self) -> None:
        old = lock(package("torch", "2.7.1"))
        new = lock(package("torch", "2.8.0"), components=components(pytorch="2.8.0"))
        assert causes(only(compare(old, new), "torch")) == [("follows", "pytorch", "torch is the component pytorch")]

    def test_what_the_spec_names_and_nothing_requires(self) -> None:
        old, new = lock(), lock(package("alpha"), asked={"packages.alpha": "any version"})
        assert causes(only(compare(old, new), "alpha")) == [("spec", "", "the spec asks for `alpha` now")]
        assert causes(only(compare(new, old), "alpha")) == [("spec", "", "the spec asked for `alpha` and does no longer")]
        assert causes(only(compare(lock(), lock(package("alpha"))), "alpha")) == [
            ("spec", "", "no package of the lock requires it, so the spec does")
        ]

    def test_what_a_new_package_brings_along(self) -> None:
        new = lock(package("top", requires=("low>=1",), dependencies=("low",)), package("low"))
        assert causes(only(compare(lock(), new), "low")) == [("follows", "top", "top 1.0 requires it now (`low>=1`)")]
        assert causes(only(compare(new, lock()), "low")) == [("follows", "top", "top 1.0 required it before (`low>=1`)")]

    def test_what_only_another_python_needs(self) -> None:
        old = lock(
            package("top", requires=("low",), dependencies=("low",)), package("low"), components=components(python="3.10")
        )
        new = lock(package("top"))
        assert causes(only(compare(old, new), "low")) == [("follows", "python", "top requires it on python 3.10")]

    def test_groups_are_led_by_the_end_of_the_chain(self) -> None:
        old = lock(
            package("top", "1.0", requires=("mid==1.0",)),
            package("mid", "1.0", requires=("low==1.0",)),
            package("low", "1.0"),
            asked={"packages.top": "==1.0"},
        )
        new = lock(
            package("top", "1.1", requires=("mid==1.1",)),
            package("mid", "1.1", requires=("low==1.1",)),
            package("low", "1.1"),
            asked={"packages.top": "==1.1"},
        )
        lines = comparison_lines(compare(old, new), old="a", new="b")
        assert lines[2:] == [
            "No host falls out; packages: 3 upgraded, 0 unchanged.",
            "",
            "### Packages",
            "",
            "- 1 package as the spec asks:",
            "  - top 1.0 -> 1.1: the spec asks for `top==1.1`, it asked for `top==1.0`",
            "- 2 packages following top 1.0 -> 1.1:",
            "  - low 1.0 -> 1.1 (through mid)",
            "  - mid 1.0 -> 1.1",
        ]

    def test_packages_that_require_each_other_do_not_go_round_in_circles(self) -> None:
        old = lock(package("a", "1.0", requires=("b==1.0",)), package("b", "1.0", requires=("a==1.0",)))
        new = lock(package("a", "2.0", requires=("b==2.0",)), package("b", "2.0", requires=("a==2.0",)))
        lines = comparison_lines(compare(old, new), old="x", new="y")
        assert len([line for line in lines if line.startswith("  - ")]) == 2


class TestSeveralPlatforms:
    def test_a_change_on_both_is_told_once_and_one_on_one_names_it(self) -> None:
        def two(version: str, arm: str) -> Lock:
            made = lock_of(cuda_stack(), cuda_stack("linux/arm64"))
            packages = (
                replace(package("alpha", version), platforms=("linux/amd64", "linux/arm64")),
                replace(package("beta", arm), platforms=("linux/arm64",)),
            )
            return replace(made, packages=packages)

        comparison = compare(two("1.0", "1.0"), two("1.1", "1.1"))
        assert [(change.subject, change.platforms) for change in comparison.changes] == [
            ("alpha", ("linux/amd64", "linux/arm64")),
            ("beta", ("linux/arm64",)),
        ]
        lines = comparison_lines(comparison, old="a", new="b")
        assert "  - alpha 1.0 -> 1.1" in lines
        assert "  - beta 1.0 -> 1.1 (linux/arm64)" in lines

    def test_wheels_of_one_entry_belong_to_their_platforms(self) -> None:
        old = lock_of(cuda_stack(), cuda_stack("linux/arm64"))
        packages = tuple(
            replace(
                one, wheels=tuple(replace(file, sha256="e" * 64) if "aarch64" in file.filename else file for file in one.wheels)
            )
            for one in old.packages
        )
        comparison = compare(old, replace(old, packages=packages))
        assert {change.platforms for change in comparison.changes} == {("linux/arm64",)}


class TestInputs:
    def test_the_spec_key_by_key(self) -> None:
        old = lock(asked={"requires.cuda": "12.*", "policy.strategy": "oldest"}, spec_digest="sha256:1")
        new = lock(asked={"requires.cuda": "13.*", "packages.numpy": "<2"}, spec_digest="sha256:2")
        assert [change_words(change) for change in compare(old, new).of("inputs")] == [
            "the spec says `packages.numpy: <2` now",
            "the spec no longer says `policy.strategy: oldest`",
            "the spec says `requires.cuda: 13.*`, it said `12.*`",
        ]

    def test_a_spec_whose_change_is_not_recorded(self) -> None:
        old, new = lock(spec_digest="sha256:1"), lock(spec_digest="sha256:2")
        assert [change_words(change) for change in compare(old, new).of("inputs")] == [
            "the spec changed (an earlier version kept no record of what)"
        ]
        asked = {"requires.cuda": "12.*"}
        assert [
            change_words(change) for change in compare(replace(old, asked=asked), replace(new, asked=asked)).of("inputs")
        ] == ["the spec changed (keys that decide no version, or its hosts)"]

    def test_matrix_program_and_name(self) -> None:
        old = lock(matrix_digest="a" * 64)
        new = replace(lock(matrix_digest="b" * 64, name="other"), tool_version="0.2.0")
        assert [change_words(change) for change in compare(old, new).of("inputs")] == [
            "the locks have different names: trainer and other",
            "the matrix changed: aaaaaaaaaaaa -> bbbbbbbbbbbb",
            "the program changed: 0.1.0 -> 0.2.0",
        ]
        assert summary(compare(old, new)) == "No host falls out."


FOREIGN = """\
lock-version = "1.0"
created-by = "another-program"

[[packages]]
name = "six"
version = "1.16.0"
wheels = [{ url = "https://example.org/six-1.16.0-py2.py3-none-any.whl", hashes = { sha512 = "ab", sha256 = "cd" } }]

[[packages]]
name = "checkout"
vcs = { type = "git", url = "https://example.org/checkout.git", commit-id = "0123" }

[[packages]]
name = "twice"
version = "1.0"
marker = "python_version < '3.12'"
wheels = [{ name = "twice-1.0-py3-none-any.whl", url = "https://example.org/1", hashes = { sha256 = "01" } }]

[[packages]]
name = "twice"
version = "2.0"
marker = "python_version >= '3.12'"
wheels = [{ name = "twice-2.0-py3-none-any.whl", url = "https://example.org/2", hashes = { sha256 = "02" } }]
"""


class TestAnyLock:
    def test_a_lock_of_another_program_is_compared_by_its_packages(self) -> None:
        text = write_lock(lock_of(cpu_stack()))
        comparison = compare_texts(("theirs.toml", FOREIGN), ("ours.toml", text))
        assert tuple(map(note_words, comparison.notes)) == (
            "`theirs.toml` was not written by provision: only packages are compared, and nothing says why they moved.",
        )
        assert [change_words(change) for change in comparison.changes] == [
            "checkout without a version is gone",
            "python-dateutil 2.9.0.post0 is new",
            "six 1.16.0 -> 1.17.0",
            "twice 1.0 and 2.0 is gone",
        ]
        assert causes(only(comparison, "six")) == [
            ("unknown", "", "unknown: a lock that another program wrote records no reasons")
        ]

    def test_two_of_another_program(self) -> None:
        other = FOREIGN.replace('commit-id = "0123"', 'commit-id = "4567"')
        comparison = compare_texts(("a", FOREIGN), ("b", other))
        assert note_words(comparison.notes[0]).startswith("`a` and `b` were not written by provision")
        assert [(change.subject, change.aspect, change.old, change.new) for change in comparison.changes] == [
            ("checkout", "content", "commit:0123", "commit:4567")
        ]
        assert compare_texts(("a", FOREIGN), ("b", FOREIGN)).changes == ()

    def test_a_lock_edited_by_hand_is_noted(self) -> None:
        text = write_lock(lock_of(cpu_stack()))
        edited = text.replace('name = "trainer"', 'name = "trainee"')
        assert tuple(map(note_words, compare_texts(("a", text), ("b", edited)).notes)) == (
            "`b` was edited by hand: its digest does not fit its content.",
        )

    def test_the_mistakes_of_both_files_are_told(self) -> None:
        with pytest.raises(InvalidDocumentError) as caught:
            compare_texts(("a.toml", "x = ["), ("b.toml", "y = 1\n"))
        assert [str(mistake) for mistake in caught.value.mistakes] == [
            "a.toml:1:6: invalid value at the end of the file",
            "b.toml:1:1: there is no `lock-version`, so this is not a lock file of PEP 751",
        ]


def test_every_package_is_accounted_for() -> None:
    comparison = compare(lock_of(cpu_stack()), lock_of(cuda_stack()))
    assert comparison.unchanged + len({change.subject for change in comparison.of("packages")}) == len(PACKAGES) + 1


OTHER: dict[str, Any] = {
    "accelerator": "rocm",
    "components": {"cuda": "99"},
    "runs": "host",
    "basis": "native",
    "host_requirements": {"driver": ">=999"},
    "require_cuda": "driver>=999",
    "arch_list": ("sm_75",),
    "environment": {"OTHER": "1"},
    "unverified": ("something",),
    "assumes": ("something",),
    "accepts": ("something",),
    "relaxations": ("ptx-jit (gpu)",),
    "image": None,
    "installer": None,
    "apt": (LockedSystemPackage(name="libgomp1"),),
    "host_setups": (UBUNTU_HOST,),
}
"""Another value for every field of a stack that a comparison must see."""


@pytest.mark.parametrize("name", LockedStack.__struct_fields__)
def test_every_field_of_a_stack_is_compared(name: str) -> None:
    """But for the platform, by which stacks are paired, and the reasons, which are what causes are read from."""
    if name in {"platform", "pins", "host_reasons"}:
        assert name not in OTHER
    else:
        assert compare(lock(), lock(**{name: OTHER[name]})).changes


def test_a_package_that_a_host_gets_in_another_version_is_told() -> None:
    steps = (replace(UBUNTU_HOST.steps[0], packages=("nvidia-headless-580",)), UBUNTU_HOST.steps[1])
    old, new = lock(host_setups=(UBUNTU_HOST,)), lock(host_setups=(replace(UBUNTU_HOST, steps=steps),))
    (change,) = compare(old, new).changes
    assert (change.subject, change.change) == ("host-setups.ubuntu 24.04.driver", "changed")
    assert change.new == "580.95.05 nvidia-headless-580 6.8.*-generic"


@pytest.mark.parametrize(
    ("field", "other"),
    [
        ("version", "2.0"),
        ("index", "mirror"),
        ("archive", LockedFile(filename="alpha-1.0.zip", sha256="0" * 64)),
        ("wheels", ()),
        ("sdist", LockedFile(filename="alpha-1.0.tar.gz", sha256="0" * 64)),
        ("requires", ("beta",)),
    ],
)
def test_every_field_of_a_package_is_compared(field: str, other: Any) -> None:  # noqa: ANN401 - fields of a package
    """But for its name and platforms, by which packages are paired, and the marker and dependencies, which repeat others."""
    compared = {"version", "index", "index_url", "wheels", "sdist", "archive", "requires"}
    compared |= set(RECORDED)
    assert set(LockedPackage.__struct_fields__) - compared == {"name", "platforms", "marker", "dependencies"}
    assert compare(lock(package("alpha")), lock(package("alpha", **{field: other}))).of("packages")


RECORDED: dict[str, tuple[Any, Any, str]] = {
    "index_url": (
        "https://pypi.org/simple",
        "https://mirror.example.org/simple",
        "alpha 1.0: index pypi is at https://mirror.example.org/simple, it was at https://pypi.org/simple",
    ),
    "requires_python": (">=3.8", ">=3.9", "alpha 1.0 needs python >=3.9, it needed >=3.8"),
    "attestations": (
        ({"kind": "GitHub", "repository": "ada/alpha", "claims": {"ref": "main"}},),
        ({"kind": "GitHub", "repository": "mallory/alpha"},),
        "alpha 1.0 is attested by GitHub repository=mallory/alpha, it was by GitHub repository=ada/alpha",
    ),
    "licenses": (
        ("MIT",),
        ("BSD License", "LicenseRef-Own"),
        "alpha 1.0 has the licence BSD License, LicenseRef-Own, it had MIT",
    ),
    "variants": (
        LockedFile(filename="alpha-1.0-variants.json", sha256="0" * 64),
        LockedFile(filename="alpha-1.0-variants.json", sha256="1" * 64),
        f"alpha 1.0 has another list of wheel variants: sha256 {'0' * 64} -> {'1' * 64}",
    ),
}
"""Fields that locks of earlier versions do not have: two values, and what their difference is told as."""


@pytest.mark.parametrize("field", RECORDED)
def test_what_an_index_said_is_compared_where_both_locks_record_it(field: str) -> None:
    before, after, text = RECORDED[field]
    bare, old, new = (package("alpha", index="pypi", **changes) for changes in ({}, {field: before}, {field: after}))
    assert [change_words(change) for change in compare(lock(old), lock(new)).of("packages")] == [text]
    assert compare(lock(bare), lock(new)).of("packages") == ()


def test_a_release_under_another_licence_is_told() -> None:
    old, new = (package("alpha", version=version, licenses=(one,)) for version, one in (("1.0", "MIT"), ("2.0", "BUSL-1.1")))
    told = [change_words(change) for change in compare(lock(old), lock(new)).of("packages")]
    assert "alpha 2.0 has the licence BUSL-1.1, it had MIT" in told, told


def test_an_attestation_that_went_is_told() -> None:
    old = package("alpha", attestations=({"kind": "GitHub", "repository": "ada/alpha"},))
    (change,) = compare(lock(old), lock(package("alpha"))).of("packages")
    assert change_words(change) == "alpha 1.0 is attested by nobody that is recorded, it was by GitHub repository=ada/alpha"
