"""The configuration that an image gets from the Dockerfile of its lock: user, entry point, variables, labels."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct, field

from provisioner.render.instruction import Entrypoint, Env, From, Label, User
from provisioner.render.stages import all_stages

if TYPE_CHECKING:
    from collections.abc import Mapping

    from provisioner.lock.format.model import Lock
    from provisioner.render.instruction import Instruction


class ImageConfig(Struct, frozen=True, kw_only=True):
    """The configuration of an image, as far as a Dockerfile states it; the base image may have more variables and labels.

    `prefixes` are the beginnings of variables that go on with the base image's value (`PATH`). `entrypoint` is () if it is left
    to the base image.
    """

    user: str = ""
    entrypoint: tuple[str, ...] = ()
    variables: Mapping[str, str] = field(default_factory=dict)
    prefixes: Mapping[str, str] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)


def image_config(lock: Lock, lock_file_name: str, platform: str) -> ImageConfig:
    """Return the configuration of the image of a lock on one platform, without labels that build arguments give a value.

    Raises `UnrenderableError` when the lock is not for containers.
    """
    architecture = platform.partition("/")[2]
    stages: dict[str, tuple[Instruction, ...]] = {}
    stage = ""
    for instruction in (one for part in all_stages(lock, lock_file_name) for one in part):
        if isinstance(instruction, From):
            stage = instruction.stage
            stages[stage] = stages.get(instruction.image.replace("${TARGETARCH}", architecture), ())
        elif stage:
            stages[stage] += (instruction,)
    return _configured(stages[stage])


def _configured(instructions: tuple[Instruction, ...]) -> ImageConfig:
    user = ""
    entrypoint: tuple[str, ...] = ()
    variables: dict[str, str] = {}
    prefixes: dict[str, str] = {}
    labels: dict[str, str] = {}
    for instruction in instructions:
        match instruction:
            case User(user=name):
                user = name
            case Entrypoint(arguments=arguments):
                entrypoint = arguments
            case Label(labels=pairs, expands=False):
                labels |= dict(pairs)
            case Env(variables=pairs):
                for name, value in pairs:
                    before, is_continued, _ = value.partition(f"${name}") if instruction.expands else (value, "", "")
                    (prefixes if is_continued else variables)[name] = before
    return ImageConfig(user=user, entrypoint=entrypoint, variables=variables, prefixes=prefixes, labels=labels)
