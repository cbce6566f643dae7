"""From inputs to written files: solve each platform, pin the image and the installer, lock, render, write together."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from msgspec.structs import replace
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from provisioner.cli.direct import direct_urls, locations, require_files
from provisioner.cli.elsewhere import elsewhere
from provisioner.cli.inputs import require_available_outputs, require_other_outputs
from provisioner.cli.outputs import earlier_lock, require_own_files
from provisioner.cli.upgrades import read_upgrades
from provisioner.errors import UnavailableError
from provisioner.lock.another_index import as_before, moved_to_another
from provisioner.lock.describing import Describing

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from provisioner.cli.inputs import Inputs
    from provisioner.index.client import PackageIndex
    from provisioner.index.http.settings import IndexSettings
    from provisioner.index.model import Environment, IndexFile, PackageRelease
    from provisioner.lock.model import Installer, Lock
    from provisioner.solve.problem import Problem
    from provisioner.solve.stack import BaseImage, Stack

INSTALLER = "uv"


class Locking:
    """One run of `solve` that locks. `keep` names what may move away from an earlier lock; None: everything may.

    The earlier lock is the one this run would replace, unless another is given as `earlier`.
    """

    def __init__(
        self, inputs: Inputs, folder: Path, *, offline: bool, keep: set[str] | None, earlier: Lock | None = None
    ) -> None:
        from provisioner.lock.file import lock_path

        self._inputs = inputs
        self._folder = folder
        self._lock_file = folder / lock_path(inputs.spec.name)
        require_available_outputs(inputs)
        require_other_outputs(inputs, folder)
        require_files(inputs)
        self._earlier = earlier if earlier is not None else earlier_lock(self._lock_file)
        self._upgrades = read_upgrades(sorted(keep or ()))
        self._moving = None if keep is None else self._upgrades.moving
        self._settings = index_settings(inputs, is_offline=offline)
        self._elsewhere = elsewhere(inputs, self._settings.indexes)
        self._describing = Describing(self._earlier, is_offline=offline, is_refreshed=keep is None)
        self._sources: list[PackageIndex] = []
        self._answering: dict[str, PackageIndex] = {}
        self.warned: set[str] = set()

    def require_own_files(self, *, is_dry_run: bool) -> None:
        """Raise `UsageError` where `write` would take a file from another spec, or somebody's own; a dry run warns of these."""
        require_own_files(self._inputs, self._folder, self._earlier, is_dry_run=is_dry_run)

    def solve(self) -> list[Stack]:
        """Solve every platform; raises `NoStackError` or `UnavailableError`."""
        from provisioner.solve.joint import NoStackError, solve_joint

        stacks = []
        for platform in self._inputs.platforms:
            try:
                stack = solve_joint(self.problem(platform), self.source)
            except NoStackError:
                for line in self._elsewhere:  # with an answer they are among its warnings
                    self._warn(line)
                for error in (error for source in self._sources for error in source.passed_over):
                    raise error from None  # what it has might have been the answer
                raise
            self._answering[platform] = self._sources[-1]
            stacks.append(self._with_digest(self._with_doubts(self._described(stack))))
        self._mention_strangers(stacks)
        return stacks

    def problem(self, platform: str) -> Problem:
        """What is to be solved on one platform: what an earlier lock chose is tried first."""
        from provisioner.solve.problem import join

        request = self._inputs.request(platform, preferred=self._preferred(platform))
        return join(self._inputs.matrix, self._upgrades.applied(request, self._chosen_earlier(platform)))

    def _mention_strangers(self, stacks: Sequence[Stack]) -> None:
        """A name given to --upgrade-package that nothing has is most likely a typo, and would pass without a trace."""
        from provisioner.cli.display import warn
        from provisioner.names import nearest

        known = {name for stack in stacks for name in (*stack.components, *(package.name for package in stack.packages))}
        for name in self._upgrades.names:
            if not {name, canonicalize_name(name)} & {*known, INSTALLER, "torch"}:
                near = nearest(name, known)
                warn(f"--upgrade-package `{name}` is in no stack{f'; did you mean `{near}`?' if near else ''}")
        self._mention_unused(known)

    def _mention_unused(self, known: set[str]) -> None:
        """A package that the policy prefers or avoids, and that nothing brings along, may be a typo as well."""
        from provisioner.cli.display import warn
        from provisioner.solve.rules.policy import resolved

        have = {resolved(name) for name in known} | {resolved(name) for name in self._inputs.matrix.components}
        for table, names in (("prefer", self._inputs.spec.policy.prefer), ("avoid", self._inputs.spec.policy.avoid)):
            for name in names:
                if resolved(name) not in have:
                    place = self._inputs.document.where(("policy", table, name))
                    warn(f"policy.{table} `{name}` ({place}) is in no stack, so it changes nothing")

    def _described(self, stack: Stack) -> Stack:
        """Pages may leave out hashes and sizes, and never say who attests a file: what a lock states is read here."""
        files = self._describing.files([package.file for package in stack.packages], self._sources[-1])
        packages = (replace(package, file=file) for package, file in zip(stack.packages, files, strict=True))
        return replace(stack, packages=tuple(packages))

    def _with_doubts(self, stack: Stack) -> Stack:
        """Say which packages are where they are by the order of the indexes alone, and which have another index than before."""
        source = self._sources[-1]
        files = {canonicalize_name(package.name): package.file for package in stack.packages}
        chosen = source.unclaimed(files)
        told = as_before(chosen, self._earlier, stack.platform)
        lines = (*self._elsewhere, *moved_to_another(chosen, self._earlier, stack.platform), *source.doubts(chosen, told=told))
        return replace(stack, warnings=(*stack.warnings, *lines))

    def source(self, environment: Environment) -> PackageIndex:
        """Open the indexes for one environment; `close` closes them."""
        from provisioner.index.client import PackageIndex

        source = PackageIndex(self._settings, environment)
        source.expect(Requirement(text) for text in (*self._inputs.spec.packages, *self._inputs.spec.constraints))
        self._sources.append(source)
        return source

    def progress(self) -> str:
        """What was read from the indexes so far, and what is waited for; "" before anything is read."""
        from provisioner.index.activity import in_words

        return in_words(source.activity for source in self._sources) if self._sources else ""

    def close(self) -> None:
        """Say what the indexes have to say, and give up what was only read ahead."""
        from provisioner.cli.display import warn

        for note in dict.fromkeys(note for source in self._sources for note in source.notes):
            warn(note)
        for note in self._describing.notes():
            warn(note)
        for source in self._sources:
            source.close()

    def _preferred(self, platform: str) -> Mapping[str, str]:
        """What an earlier lock chose and need not move."""
        chosen = self._chosen_earlier(platform)
        return {name: value for name, value in chosen.items() if name not in (self._moving or ())}

    def _chosen_earlier(self, platform: str) -> Mapping[str, str]:
        """What an earlier lock chose, nothing where everything may move."""
        if self._earlier is None or self._moving is None or platform not in self._earlier.platforms:
            return {}
        lock = self._earlier.on(platform)
        chosen = {name: value for name, value in lock.stack.items() if name != "pytorch_build"}
        if "pytorch" in chosen:
            chosen["pytorch"] = f"{chosen['pytorch']}+{lock.stack['pytorch_build']}"
        chosen.update({package.name: package.version for package in lock.packages})
        return chosen

    def _with_digest(self, stack: Stack) -> Stack:
        """Pin the base image by digest; a registry out of reach leaves it unverified, never guessed."""
        image = stack.image
        if image is None:
            return stack
        if image.digest:
            from provisioner.index.reference import ImageReference

            ImageReference.parse(f"{image.reference}@{image.digest}")
            return stack
        known = self._earlier_image(stack)
        if known is not None and known.digest and known.reference == image.reference:
            return replace(stack, image=replace(image, digest=known.digest))
        if self._settings.offline:
            self._warn(f"image {image.reference}: offline, so its registry was not asked for its digest")
            return _unpinned(stack, image)
        from provisioner.index.registry import resolve_digest

        try:
            # One retry: without the digest the lock is still written, and says that it is unverified.
            digest = resolve_digest(image.reference, settings=replace(self._settings, retries=1))
        except UnavailableError as error:
            # What is locked says that there is no digest; why is talk, for it may be otherwise the next minute.
            self._warn(f"image {image.reference}: {error.message}")
            return _unpinned(stack, image)
        return replace(stack, image=replace(image, digest=digest))

    def _warn(self, text: str) -> None:
        """Warn of what several platforms, or several lockings of one run that share `warned`, meet alike: once."""
        from provisioner.cli.display import warn

        if text not in self.warned:
            self.warned.add(text)
            warn(text)

    def _earlier_image(self, stack: Stack) -> BaseImage | None:
        if self._earlier is None or self._moving is None or stack.platform not in self._earlier.platforms:
            return None
        return self._earlier.on(stack.platform).image

    def answering(self, platform: str) -> PackageIndex:
        """The indexes as they were read for the answer of a platform, until `close`."""
        return self._answering[platform]

    def lock(self, stacks: Sequence[Stack], *, installer: Mapping[str, IndexFile] | None = None) -> Lock:
        """The lock that `write` writes, for who only wants to read it; without index where the installers are given."""
        return self._locked(stacks, self._installers(stacks) if installer is None else installer)

    def _installers(self, stacks: Sequence[Stack]) -> dict[str, IndexFile]:
        return {stack.platform: self._installer(stack) for stack in stacks if stack.runs == "container"}

    def _locked(self, stacks: Sequence[Stack], installer: Mapping[str, IndexFile]) -> Lock:
        from provisioner.lock.asked import asked
        from provisioner.lock.create import create_lock
        from provisioner.lock.origin import with_origins

        lock = create_lock(
            list(stacks),
            name=self._inputs.spec.name,
            matrix_digest=self._inputs.matrix.digest,
            spec_digest=spec_digest(self._inputs),
            installer=installer,
            spec_file=os.path.relpath(self._inputs.path, self._folder),
        )
        described = with_origins(lock, self._describing.origins)
        return replace(described, asked=asked(self._inputs.spec), target=self._inputs.target)

    def write(self, stacks: Sequence[Stack], *, is_dry_run: bool) -> list[str]:
        """Write lock, rendered files and local wheels, all or none; return their names in that order."""
        from provisioner.document import write_together
        from provisioner.lock.create import local_files
        from provisioner.lock.file import write_lock
        from provisioner.render import render
        from provisioner.render.formats import FORMATS

        spec = self._inputs.spec
        installer = self._installers(stacks)
        lock = self._locked(stacks, installer)
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
        from provisioner.index.address import public_url
        from provisioner.index.model import Environment

        python = stack.components["python"]
        glibc = _pair(stack.components.get("glibc")) or (2, 28)
        source = self.source(Environment(platform=stack.platform, python=python, glibc=glibc))
        usable = [release for release in source.releases(canonicalize_name(INSTALLER)) if release.is_usable]
        if not usable:
            raise UnavailableError(
                f"no index offers `{INSTALLER}` for {stack.platform}, which installs the lock inside the image",
                hints=("serve it from your index, or set `runs: host` and outputs without an image",),
            )
        earlier = self._earlier_installer(stack)
        is_kept = earlier is not None and self._moving is not None and INSTALLER not in self._moving
        locked = earlier.version if earlier is not None and is_kept else ""
        release: PackageRelease = next((one for one in usable if str(one.version) == locked), usable[0])
        assert release.file is not None
        told = {INSTALLER} if earlier is not None and earlier.file.url == public_url(release.file.url) else ()
        for doubt in source.doubts(source.unclaimed({release.name: release.file}), told=told):
            self._warn(doubt)
        return self._describing.files([release.file], source)[0]

    def _earlier_installer(self, stack: Stack) -> Installer | None:
        if self._earlier is None or stack.platform not in self._earlier.platforms:
            return None
        return self._earlier.on(stack.platform).installer


def _pair(text: str | None) -> tuple[int, int] | None:
    if text is None:
        return None
    major, _, minor = text.partition(".")
    return int(major), int(minor or 0)


def _unpinned(stack: Stack, image: BaseImage) -> Stack:
    return replace(stack, unverified=(*stack.unverified, f"image: {image.reference} is not pinned by digest"))


def index_settings(inputs: Inputs, *, is_offline: bool) -> IndexSettings:
    """The indexes of the spec, else the installer's own configuration; policy of the spec on top."""
    from provisioner.index.http.settings import settings_from_pip
    from provisioner.solve.rules.policy import uploads_until

    policy = inputs.spec.policy
    allowed = set(policy.allow).difference(policy.forbid)
    settings = settings_from_pip(os.environ)
    spec = inputs.spec
    wanted = [Requirement(text) for text in (*spec.packages, *spec.constraints, *spec.overrides)]
    early = frozenset(canonicalize_name(one.name) for one in wanted if one.specifier.prereleases)
    own = locations(inputs)
    return replace(
        settings,
        indexes=own or settings.indexes,
        main_index="" if own else settings.main_index,
        offline=is_offline,
        exclude_newer=uploads_until(inputs.matrix, policy),
        accepts_undated=policy.exclude_newer is None,
        allow_prerelease="prerelease" in allowed,
        prerelease_names=early,
        allow_sdist=bool(allowed & {"sdist", "build"}),
        allow_build="build" in allowed,
        direct_urls=direct_urls(inputs),
        direct_folder=inputs.path.parent,
    )


def spec_digest(inputs: Inputs) -> str:
    """`sha256:` and the hash of what the spec says, whatever its layout and comments."""
    import hashlib

    from provisioner.spec.model import canonical_text

    canonical = canonical_text(inputs.spec)
    return f"sha256:{hashlib.sha256(canonical.encode()).hexdigest()}"
