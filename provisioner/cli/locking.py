"""From inputs to written files: solve each platform, pin the image and the installer, lock, render, write together."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING

from provisioner.errors import UnavailableError, UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from provisioner.cli.inputs import Inputs
    from provisioner.index.client import PackageIndex
    from provisioner.index.model import Environment, IndexFile, PackageRelease
    from provisioner.index.settings import IndexSettings
    from provisioner.lock.model import Lock
    from provisioner.solve.stack import BaseImage, Stack

RENDERED = ("dockerfile", "requirements")
"""The outputs this version writes."""

INSTALLER = "uv"


class Locking:
    """One run of `solve` that locks. `keep` names what may move away from an earlier lock; None: everything may."""

    def __init__(self, inputs: Inputs, folder: Path, *, offline: bool, keep: set[str] | None) -> None:
        from provisioner.lock.file import lock_path

        self._inputs = inputs
        self._folder = folder
        self._lock_file = folder / lock_path(inputs.spec.name)
        self._refuse_outputs()
        self._earlier = self._read_earlier()
        self._moving = keep
        self._settings = index_settings(inputs, is_offline=offline)
        self._sources: list[PackageIndex] = []

    def _refuse_outputs(self) -> None:
        unknown = [output for output in self._inputs.spec.outputs if output not in RENDERED]
        if unknown:
            place = self._inputs.document.where(("outputs",))
            raise UsageError(
                f"output `{unknown[0]}` ({place}) is not available in this version",
                hints=(f"available: {', '.join(RENDERED)}",),
            )

    def _read_earlier(self) -> Lock | None:
        """The lock this run replaces; one that cannot be read is replaced without a word of its content."""
        from provisioner.cli.display import warn
        from provisioner.errors import ProvisionError
        from provisioner.lock.file import read_lock

        if not self._lock_file.exists():
            return None
        try:
            return read_lock(self._lock_file)
        except ProvisionError as error:
            warn(f"the earlier lock is not used: {error.message}")
            return None

    def solve(self) -> list[Stack]:
        """Solve every platform; raises `NoStackError` or `UnavailableError`."""
        from provisioner.solve.joint import solve_joint
        from provisioner.solve.problem import join

        stacks = []
        for platform in self._inputs.platforms:
            wish = self._inputs.wish(platform, preferred=self._preferred(platform))
            stack = solve_joint(join(self._inputs.matrix, wish), self._source)
            stacks.append(self._with_digest(self._hashed(stack)))
        return stacks

    def _hashed(self, stack: Stack) -> Stack:
        """Some indexes list files without a hash; a lock needs one, so those files are read once."""
        packages = []
        for package in stack.packages:
            file = package.file
            if not file.sha256 and not file.path:
                sha256, size = self._sources[-1].hash_and_size(file)
                file = replace(file, sha256=sha256, size=size)
            packages.append(replace(package, file=file))
        return replace(stack, packages=tuple(packages))

    def _source(self, environment: Environment) -> PackageIndex:
        from provisioner.index.client import PackageIndex

        source = PackageIndex(self._settings, environment)
        self._sources.append(source)
        return source

    def close(self) -> None:
        """Say what the indexes have to say, and give up what was only read ahead."""
        from provisioner.cli.display import warn

        for note in dict.fromkeys(note for source in self._sources for note in source.notes):
            warn(note)
        for source in self._sources:
            source.close()

    def _preferred(self, platform: str) -> Mapping[str, str]:
        """What an earlier lock chose and need not move."""
        if self._earlier is None or self._moving is None or platform not in self._earlier.platforms:
            return {}
        lock = self._earlier.on(platform)
        chosen = {name: value for name, value in lock.stack.items() if name != "pytorch_build"}
        if "pytorch" in chosen:
            chosen["pytorch"] = f"{chosen['pytorch']}+{lock.stack['pytorch_build']}"
        chosen.update({package.name: package.version for package in lock.packages})
        moving = {"pytorch" if name == "torch" else name for name in self._moving} | self._moving
        return {name: value for name, value in chosen.items() if name not in moving}

    def _with_digest(self, stack: Stack) -> Stack:
        """Pin the base image by digest; a registry out of reach leaves it unverified, never guessed."""
        image = stack.image
        if image is None or image.digest:
            return stack
        known = self._earlier_image(stack)
        if known is not None and known.digest and known.reference == image.reference:
            return replace(stack, image=replace(image, digest=known.digest))
        if self._settings.offline:
            return _unpinned(stack, image, "offline")
        from provisioner.index.registry import resolve_digest

        try:
            # One retry: without the digest the lock is still written, and says that it is unverified.
            digest = resolve_digest(image.reference, settings=replace(self._settings, retries=1))
        except UnavailableError as error:
            return _unpinned(stack, image, error.message)
        return replace(stack, image=replace(image, digest=digest))

    def _earlier_image(self, stack: Stack) -> BaseImage | None:
        if self._earlier is None or self._moving is None or stack.platform not in self._earlier.platforms:
            return None
        return self._earlier.on(stack.platform).image

    def write(self, stacks: Sequence[Stack], *, is_dry_run: bool) -> list[str]:
        """Write lock, rendered files and local wheels, all or none; return their names in that order."""
        from provisioner.document import write_together
        from provisioner.lock.create import create_lock, local_files
        from provisioner.lock.file import write_lock
        from provisioner.render import render
        from provisioner.render.formats import FORMATS

        spec = self._inputs.spec
        installer = {stack.platform: self._installer(stack) for stack in stacks if stack.runs == "container"}
        lock = create_lock(
            list(stacks),
            name=spec.name,
            matrix_digest=self._inputs.matrix.digest,
            spec_digest=spec_digest(self._inputs),
            installer=installer,
            spec_file=os.path.relpath(self._inputs.path, self._folder),
        )
        texts = {self._lock_file: write_lock(lock).encode()}
        for output in spec.outputs:
            texts[self._folder / FORMATS[output]] = render(lock, output, lock_file_name=self._lock_file.name).encode()
        names = [str(path.relative_to(self._folder)) for path in texts]
        local = local_files(list(stacks), installer=installer)
        if not is_dry_run:
            write_together({**{self._folder / place: source.read_bytes() for place, source in local.items()}, **texts})
        return [*names, *local]

    def _installer(self, stack: Stack) -> IndexFile:
        """The wheel of the installer for an image: the one locked before while it is served, the newest otherwise."""
        from packaging.utils import canonicalize_name

        from provisioner.index.model import Environment

        python = stack.components["python"]
        glibc = _pair(stack.components.get("glibc")) or (2, 28)
        source = self._source(Environment(platform=stack.platform, python=python, glibc=glibc))
        usable = [release for release in source.releases(canonicalize_name(INSTALLER)) if release.is_usable]
        if not usable:
            raise UnavailableError(
                f"no index offers `{INSTALLER}` for {stack.platform}, which installs the lock inside the image",
                hints=("serve it from your index, or set `runs: host` and outputs without an image",),
            )
        locked = self._locked_installer(stack)
        release: PackageRelease = next((one for one in usable if str(one.version) == locked), usable[0])
        assert release.file is not None
        return release.file

    def _locked_installer(self, stack: Stack) -> str:
        if self._earlier is None or self._moving is None or stack.platform not in self._earlier.platforms:
            return ""
        installer = self._earlier.on(stack.platform).installer
        return installer.version if installer is not None and INSTALLER not in self._moving else ""


def _pair(text: str | None) -> tuple[int, int] | None:
    if text is None:
        return None
    major, _, minor = text.partition(".")
    return int(major), int(minor or 0)


def _unpinned(stack: Stack, image: BaseImage, why: str) -> Stack:
    text = f"image: {image.reference} is not pinned by digest: {why}"
    return replace(stack, unverified=(*stack.unverified, text))


def index_settings(inputs: Inputs, *, is_offline: bool) -> IndexSettings:
    """The indexes of the spec, else the installer's own configuration; policy of the spec on top."""
    from packaging.requirements import Requirement
    from packaging.utils import canonicalize_name

    from provisioner.index.settings import IndexLocation, settings_from_pip

    policy = inputs.spec.policy
    settings = settings_from_pip(os.environ)
    wanted = [Requirement(text) for text in inputs.spec.packages]
    early = frozenset(canonicalize_name(one.name) for one in wanted if one.specifier.prereleases)
    return replace(
        settings,
        indexes=tuple(IndexLocation(name=index.name, url=index.url) for index in inputs.spec.indexes) or settings.indexes,
        offline=is_offline,
        exclude_newer=policy.exclude_newer,
        allow_prerelease="prerelease" in policy.allow,
        prerelease_names=early,
        allow_sdist="sdist" in policy.allow,
    )


def spec_digest(inputs: Inputs) -> str:
    """`sha256:` and the hash of what the spec says, whatever its layout and comments."""
    import hashlib

    canonical = inputs.spec.model_dump_json(by_alias=True)
    return f"sha256:{hashlib.sha256(canonical.encode()).hexdigest()}"
