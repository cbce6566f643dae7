"""Cells are shared only where their verdicts are the same: a shape has what a verdict depends on, and nothing else."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from provisioner.browse.grid import INSTALLED, devices, make_grid, request_for
from provisioner.browse.shapes import Numbers, Shapes
from provisioner.browse.stacks import LABEL
from provisioner.resolver.problem import join
from provisioner.resolver.requirement import Key, ReleaseCandidate
from provisioner.resolver.search.instance import ProblemInstance
from tests.unit.browse.test_stacks import small

if TYPE_CHECKING:
    from provisioner.matrix.model import Matrix
    from provisioner.resolver.requirement import Requirement
    from provisioner.resolver.search.instance import AllowedOf

DRIVER = Key("driver", LABEL)
PYTORCH = Key("pytorch")


def shapes_on(matrix: Matrix, target: str, numbers: Numbers) -> tuple[Shapes, ProblemInstance]:
    device = next(one for one in devices(matrix) if one.target == target)
    instance = ProblemInstance(join(matrix, request_for(matrix, device, "linux/amd64")))
    return Shapes(instance, numbers, driver=DRIVER, subject=[PYTORCH], ignored=INSTALLED), instance


def build(instance: ProblemInstance, release: str, name: str) -> ReleaseCandidate:
    of = (one for one in instance.problem.domains[PYTORCH] if isinstance(one, ReleaseCandidate))
    return next(one for one in of if str(one.release.version) == release and one.build is not None and one.build.name == name)


def test_builds_with_the_same_needs_share_a_shape_and_others_do_not() -> None:
    shapes, instance = shapes_on(small(), "8.0", Numbers())
    newest, older = build(instance, "2.2.0", "cu121"), build(instance, "2.1.0", "cu121")
    other = build(instance, "2.1.0", "cu118")
    assert shapes.reach(newest).shapes == shapes.reach(older).shapes
    assert shapes.reach(newest).shapes != shapes.reach(other).shapes


def test_a_gpu_that_meets_the_needs_is_no_part_of_a_shape_and_one_that_does_not_is() -> None:
    """PyTorch 2.0.0 is compiled for 8.0 alone, 2.1.0 for 7.0 too."""
    numbers = Numbers()
    found = {target: shapes_on(small(), target, numbers) for target in ("7.0", "8.0")}

    def reach(target: str, release: str) -> int:
        shapes, instance = found[target]
        return shapes.reach(build(instance, release, "cu118")).shapes

    assert reach("7.0", "2.1.0") == reach("8.0", "2.1.0")
    assert reach("7.0", "2.0.0") != reach("8.0", "2.0.0")


def test_the_effect_of_a_driver_is_what_it_refuses_and_relaxes() -> None:
    shapes, instance = shapes_on(small(), "8.0", Numbers())
    builds = [build(instance, "2.1.0", "cu118"), build(instance, "2.1.0", "cu121")]
    reaches = [shapes.reach(one) for one in builds]
    drivers = {one.label: one for one in instance.problem.domains[DRIVER]}
    for one in drivers.values():
        shapes.reach(one)
    effects = {label: shapes.effect(one) for label, one in drivers.items()}
    old, new = reaches
    seen = shapes.effects_on(old.on_drivers)
    assert effects["590.1"] == effects["530.1"] == 0  # both run CUDA 11.8 and 12.1 natively
    assert effects["470.1"] & seen  # 11.8 by minor-version compatibility
    assert effects["470.1"] & seen != effects["470.1"] & shapes.effects_on(new.on_drivers)  # and 12.1 not at all


def test_sharing_changes_no_verdict() -> None:
    """The grid of each GPU alone has the same verdicts as that of all GPUs."""
    matrix = small()
    together = make_grid(matrix, ("linux/amd64",))
    for index, device in enumerate(together.devices):
        gpu = matrix.components["gpu"]
        only = replace(gpu, releases=tuple(one for one in gpu.releases if str(one.version) == device.target))
        alone = make_grid(replace(matrix, components={**matrix.components, "gpu": only}), ("linux/amd64",))
        for build_number in range(len(together.builds)):
            row = together.rows[together.table["linux/amd64"][index][build_number]]
            other = alone.rows[alone.table["linux/amd64"][0][build_number]]
            assert [together.codes[cell] for cell in row] == [alone.codes[cell] for cell in other], (device, build_number)


def test_progress_is_told_by_kinds_of_gpus() -> None:
    told: list[tuple[int, int]] = []
    make_grid(small(), ("linux/amd64",), told=lambda done, of: told.append((done, of)))
    assert told == [(1, 3), (2, 3), (3, 3)]


def test_kinds_of_gpus_share_candidates_and_what_tests_allow_and_their_requirements_stay_their_own() -> None:
    matrix = small()
    volta, ampere = (
        join(matrix, request_for(matrix, one, "linux/amd64")) for one in devices(matrix) if one.target in {"7.0", "8.0"}
    )
    shared = ampere.sharing(volta)
    allowed: AllowedOf = {}
    instances = [ProblemInstance(problem, allowed=allowed) for problem in (volta, shared)]
    assert all(shared.domains[key] is volta.domains[key] for key in shared.domains if key in volta.domains)
    alone = ProblemInstance(ampere)
    for instance in instances:
        for key, candidates in instance.problem.domains.items():
            fresh = alone if instance is instances[1] else ProblemInstance(volta)
            own = fresh.problem.domains[key]
            assert [one.label for one in candidates] == [one.label for one in own]
            for one, other in zip(candidates, own, strict=True):
                seen = [found(instance, need) for need in instance.requirements(one)]
                assert seen == [found(fresh, need) for need in fresh.requirements(other)], one


def found(instance: ProblemInstance, need: Requirement) -> tuple[Key, str, list[str]]:
    return need.key, str(need.ground.group), sorted(one.label for one in instance.allowed(need))
