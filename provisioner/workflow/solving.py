"""Solve and lock in steps: resolve, complete (hashes, digest, installer, provenance), lock, render, write."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct, field
from msgspec.structs import replace
from packaging.utils import canonicalize_name
from packaging.version import Version

from provisioner.components import COMPONENTS
from provisioner.document import write_together
from provisioner.errors import UnavailableError, UsageError
from provisioner.grounds.doubt import UndatedPackages, UnpinnedImage
from provisioner.grounds.notice import MissingDetails, NoDigest, UnknownUpgrade, UnusedPreference
from provisioner.index.address import public_url
from provisioner.index.model import DIRECT_PATH, DIRECT_URL, FIND_LINKS, Environment
from provisioner.lock.create import create_lock, local_files, locked_stack
from provisioner.lock.format.file import lock_path, write_lock
from provisioner.lock.format.model import INSTALLER
from provisioner.lock.provenance import Origins, as_before, earlier_details, moved_packages, with_origins
from provisioner.lock.requested import requested
from provisioner.names import nearest
from provisioner.render import render
from provisioner.render.base_image import undated_packages
from provisioner.render.helper import helper_files
from provisioner.resolver.for_gpus import told_of_gpus
from provisioner.resolver.joint import NoStackError, choose, solve_system
from provisioner.resolver.outcome.answer import answer
from provisioner.resolver.outcome.unverified import weighed
from provisioner.resolver.problem import join
from provisioner.resolver.rules.policy import resolved as resolved_name
from provisioner.spec.load import WITH
from provisioner.workflow.earlier import Earlier, Upgrades
from provisioner.workflow.indexes import index_settings, line_notices, other_sources, require_files
from provisioner.workflow.ownership import earlier_lock, require_other_outputs, require_own_files

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from provisioner.grounds.doubt import Doubt
    from provisioner.grounds.notice import Notice, SourceNotice
    from provisioner.index.client import PackageIndex
    from provisioner.index.model import IndexFile
    from provisioner.index.settings import IndexSettings
    from provisioner.lock.format.model import Lock
    from provisioner.lock.provenance import Identities
    from provisioner.resolver.problem import Problem
    from provisioner.resolver.stack import Stack
    from provisioner.workflow.inputs import Inputs
    from provisioner.workflow.session import Session

GLIBC_OF_INSTALLER = (2, 28)
"""The glibc assumed for an image of unknown glibc: the newest that the installer's wheel may then require."""

OLDEST_PYTHON = "3.7"
"""The oldest Python that runs the program which installs a lock inside an image, provisioner/render/scripts/install.py."""

PYTHON_OF_INSTALLER = "3.14"
"""The Python that the installer's wheel is chosen for: it holds one program for every Python, tagged `py3-none`, and what it
requires of Python is for its module, which nobody imports. uv 0.9 requires 3.8 and installs into environments of Python 3.7.
"""


class Job(Struct, frozen=True, kw_only=True):
    """Everything that one target is solved and locked from: inputs, earlier lock, index settings, and the output folder.

    `notices` are those of preparing the job.
    """

    inputs: Inputs
    earlier: Earlier
    settings: IndexSettings
    folder: Path
    notices: tuple[Notice, ...] = ()

    @property
    def lock_file(self) -> Path:
        """The path of the lock."""
        return self.folder / lock_path(self.inputs.spec.name)


class Resolved(Struct, frozen=True, kw_only=True):
    """The stack that the solver chose for one platform, and the environment that its packages are installed in."""

    stack: Stack
    environment: Environment


class Completed(Struct, frozen=True, kw_only=True):
    """The stack of one platform with everything that a lock adds: hashes, the image's digest, the installer, provenance.

    `missing` has the number of files for which a detail of the lock is unknown, by the detail: `size` or `attestations`.
    """

    stack: Stack
    installer: IndexFile | None = None
    provenance: Origins = Origins()
    missing: Mapping[str, int] = field(default_factory=dict)


class Solution(Struct, frozen=True, kw_only=True):
    """A locked target: its stacks, one per platform, the lock, and the files to write.

    `texts` are the lock and the files rendered from it; `wheels` maps the path of each local wheel that the lock refers to, to
    where it is now. Paths are relative to the folder of the job. `notices` are warnings that did not stop the job.
    """

    job: Job
    stacks: tuple[Stack, ...]
    lock: Lock
    texts: Mapping[Path, bytes]
    wheels: Mapping[Path, Path]
    notices: tuple[Notice, ...] = ()

    @property
    def target(self) -> str:
        """The name of the target; "" for a spec without `targets`."""
        return self.job.inputs.target

    @property
    def verdict(self) -> str:
        """`unverified` if the stack of any platform has doubts, else `yes`."""
        return "unverified" if any(stack.doubts for stack in self.stacks) else "yes"

    @property
    def names(self) -> tuple[str, ...]:
        """The paths of the files relative to the folder of the run, where a named target has a subfolder of its name."""
        paths = (path.as_posix() for path in (*self.texts, *self.wheels))
        return tuple(f"{self.target}/{path}" if self.target else path for path in paths)

    def write(self) -> tuple[Path, ...]:
        """Write all files, or none, and return their paths.

        Raises `FileError` when a file cannot be written, and `UsageError` when a file of somebody else would be overwritten, or
        where packages joined those of a spec: the lock of the spec has what the spec asks for, and nothing else.
        """
        require_same_request(self.job.inputs)
        require_place(self.job)
        folder = self.job.folder
        wheels = {folder / path: source.read_bytes() for path, source in self.wheels.items()}
        contents = {**wheels, **{folder / path: text for path, text in self.texts.items()}}
        write_together(contents)
        return tuple(contents)


def job_of(
    inputs: Inputs,
    folder: Path,
    *,
    upgrades: Upgrades | None = Upgrades(),  # noqa: B008 - a frozen value
    is_offline: bool = False,
    earlier: Lock | None = None,
) -> Job:
    """Return the job of one target; `upgrades` are the packages that may differ from the earlier lock, None for all.

    The earlier lock is the one in `folder`, unless `earlier` is given. Raises `InvalidDocumentError` when a package given by
    URL or path cannot be locked.
    """
    require_files(inputs)
    found, notices = (earlier, ()) if earlier is not None else earlier_lock(folder / lock_path(inputs.spec.name))
    settings = index_settings(inputs, is_offline=is_offline)
    notices = (*notices, *line_notices(inputs))
    return Job(inputs=inputs, earlier=Earlier(lock=found, upgrades=upgrades), settings=settings, folder=folder, notices=notices)


def require_place(job: Job, *, is_dry_run: bool = False) -> tuple[Notice, ...]:
    """Check that a job may overwrite the existing files in its folder; raises `UsageError` or `FileError`.

    A dry run returns the errors about files that this program did not write as notices.
    """
    require_other_outputs(job.inputs, job.folder)
    return require_own_files(job.inputs, job.folder, job.earlier.lock, is_dry_run=is_dry_run)


def require_same_request(inputs: Inputs) -> None:
    """Raise `UsageError` if packages of the command line joined those of a spec, which asks for less than a lock would have."""
    if inputs.is_trial:
        raise UsageError(
            f"{WITH} {', '.join(inputs.with_packages)} is more than {inputs.document.file} asks for, so no lock is written",
            hints=(f"write them into {inputs.document.file}, or leave the file out: its answer and theirs are then apart",),
        )


def solve_job(job: Job, session: Session) -> Solution:
    """Solve every platform of a job and return the files to write; raises `NoStackError` or `UnavailableError`.

    Nothing is written.
    """
    completed = [complete(job, one, session) for one in resolve(job, session)]
    stacks = tuple(one.stack for one in completed)
    session.tell(*_unused_names(job, stacks), *_missing_details(completed, session))
    lock = assemble(job, completed)
    wheels = {Path(path): source for path, source in local_files(list(stacks), installer=_installers(completed)).items()}
    return Solution(
        job=job,
        stacks=stacks,
        lock=lock,
        texts=_texts(job, lock),
        wheels=wheels,
        notices=(*job.notices, *session.notices),
    )


def solve_system_job(job: Job) -> Solution:
    """Solve the system of every platform of a job without packages and indexes, and return the files to write.

    Raises `NoStackError`, and `UsageError` if the earlier lock has packages, which this one would lose. Nothing is written.
    """
    if job.earlier.lock is not None and job.earlier.lock.packages:
        raise UsageError(
            f"{job.lock_file} has packages, which a lock of the stack alone would lose",
            hints=("solve without --stack-only, or give another folder with --out",),
        )
    completed = [Completed(stack=solve_system(problem_of(job, platform))) for platform in job.inputs.platforms]
    lock = assemble(job, completed)
    stacks = tuple(one.stack for one in completed)
    return Solution(job=job, stacks=stacks, lock=lock, texts=_texts(job, lock), wheels={}, notices=job.notices)


def problem_of(job: Job, platform: str) -> Problem:
    """Return the solver's problem for one platform, in which the versions of the earlier lock are tried first."""
    return join(job.inputs.matrix, job.earlier.request(job.inputs, platform))


def resolve(job: Job, session: Session) -> list[Resolved]:
    """Solve the system and the packages of each platform as one problem, and return one result for each.

    Raises `NoStackError` if no solution exists, but `UnavailableError` if an unreachable index might have offered one.
    """
    found = []
    for platform in job.inputs.platforms:
        problem = problem_of(job, platform)
        try:
            instance, pins = choose(problem, session.open, when_refuted=session.progress.refuse)
        except NoStackError:
            # A solved stack has these notices among its warnings.
            session.tell(*other_sources(job.inputs, job.settings.indexes))
            for error in session.passed_over:
                raise error from None  # this index might have had a solution
            raise
        assert instance.finder is not None, "a problem that was solved with indexes has packages"
        stack = told_of_gpus(answer(instance, pins), problem, session.open)
        found.append(Resolved(stack=stack, environment=instance.finder.environment))
    return found


def complete(job: Job, resolved: Resolved, session: Session) -> Completed:
    """Return a stack with everything that a lock adds to it; raises `UnavailableError` when a hash is unavailable.

    Project pages may lack hashes and sizes, and never name who attests a file: these details are fetched, or taken from the
    earlier lock if the index is out of reach. If the registry is out of reach, the image has no digest, which makes the stack
    unverified if the request is strict.
    """
    stack, source = resolved.stack, session.open(resolved.environment)
    installer = _installer(job, stack, session) if stack.runs == "container" else None
    files = [package.file for package in stack.packages] + ([installer] if installer is not None else [])
    indexes = {file.index for file in files} - {"", FIND_LINKS, DIRECT_PATH, DIRECT_URL}
    known = earlier_details(job.earlier.lock)
    identities: dict[str, Identities] = {}
    licenses: dict[str, tuple[str, ...]] = {}
    missing: Counter[str] = Counter()
    described = []
    for file, found in zip(files, source.details(files, is_refreshed=job.earlier.is_refreshed), strict=True):
        size, attested = known.get(found.sha256, (None, ()))
        size = size if "size" in found.missing else found.size
        identities[found.sha256] = found.identities or (attested if "attestations" in found.missing else ())
        licenses[found.sha256] = found.licenses
        missing["size"] += "size" in found.missing and size is None
        missing["attestations"] += "attestations" in found.missing and not identities[found.sha256]
        described.append(replace(file, sha256=found.sha256, size=size, requires_python=found.requires_python))
    pairs = zip(stack.packages, described[: len(stack.packages)], strict=True)  # without the installer, which is last
    packages = tuple(replace(package, file=file) for package, file in pairs)
    warnings = (*stack.warnings, *_source_notices(job, stack, source))
    return Completed(
        stack=_with_digest(job, replace(stack, packages=packages, warnings=warnings), session),
        installer=described[-1] if installer is not None else None,
        provenance=Origins(
            urls={name: source.url_of(name) for name in sorted(indexes)}, identities=identities, licenses=licenses
        ),
        missing=missing,
    )


def assemble(job: Job, completed: Sequence[Completed]) -> Lock:
    """Return the lock of completed stacks, one per platform."""
    lock = create_lock(
        [one.stack for one in completed],
        name=job.inputs.spec.name,
        matrix_digest=job.inputs.matrix.digest,
        spec_digest=job.inputs.digest,
        installer=_installers(completed),
        spec_file="" if job.inputs.is_without_spec else Path(os.path.relpath(job.inputs.path, job.folder)).as_posix(),
    )
    urls = {name: url for one in completed for name, url in one.provenance.urls.items()}
    identities = {sha256: found for one in completed for sha256, found in one.provenance.identities.items()}
    licenses = {sha256: found for one in completed for sha256, found in one.provenance.licenses.items()}
    described = with_origins(lock, Origins(urls=urls, identities=identities, licenses=licenses))
    return replace(described, asked=requested(job.inputs.spec), target=job.inputs.target)


def _texts(job: Job, lock: Lock) -> dict[Path, bytes]:
    """Return the lock, the files rendered from it and their helper files, by their paths relative to the folder of the job."""
    name = lock_path(job.inputs.spec.name)
    files = {Path(name): write_lock(lock).encode()}
    for output in job.inputs.spec.files:
        text = render(lock, output.format, lock_file_name=name)
        files[Path(output.path)] = text.encode()
        files |= {Path(path): helper.encode() for path, helper in helper_files(output.format, text).items()}
    return files


def _installers(completed: Sequence[Completed]) -> dict[str, IndexFile]:
    return {one.stack.platform: one.installer for one in completed if one.installer is not None}


def _installer(job: Job, stack: Stack, session: Session) -> IndexFile:
    """Return the wheel of the installer for an image: that of the earlier lock if an index still offers it, else the newest.

    An upgrade of the installer always takes the newest. Raises `UnavailableError` when no index offers a usable wheel, and when
    the image's Python is too old to install a lock.
    """
    python = stack.components["python"]
    if Version(python) < Version(OLDEST_PYTHON):
        raise UnavailableError(
            f"a lock is installed inside an image with Python {OLDEST_PYTHON} or newer, and python {python} was chosen "
            f"for {stack.platform}",
            hints=("set `runs: host` and outputs without an image",),
        )
    major, _, minor = stack.components.get("glibc", "").partition(".")
    glibc = (int(major), int(minor or 0)) if major else GLIBC_OF_INSTALLER
    source = session.open(Environment(platform=stack.platform, python=PYTHON_OF_INSTALLER, glibc=glibc))
    usable = [release for release in source.releases(canonicalize_name(INSTALLER)) if release.is_usable]
    if not usable:
        raise UnavailableError(
            f"no index offers `{INSTALLER}` for {stack.platform}, which installs the lock inside the image",
            hints=("serve it from your index, or set `runs: host` and outputs without an image",),
        )
    earlier = job.earlier.installer(stack.platform)
    locked = earlier.version if earlier is not None and not job.earlier.may_move(INSTALLER) else ""
    release = next((one for one in usable if str(one.version) == locked), usable[0])
    assert release.file is not None, "a usable release has a file"
    reported = {INSTALLER} if earlier is not None and earlier.file.url == public_url(release.file.url) else ()
    chosen = source.unpinned({release.name: release.file})
    session.tell(*source.confusion_notices(chosen, reported=reported))
    return release.file


def _source_notices(job: Job, stack: Stack, source: PackageIndex) -> Iterator[SourceNotice]:
    """Yield notices on package sources: sources of other tools, a changed index, a possible dependency confusion."""
    files = {canonicalize_name(package.name): package.file for package in stack.packages}
    chosen = source.unpinned(files)
    yield from other_sources(job.inputs, job.settings.indexes)
    yield from moved_packages(chosen, job.earlier.lock, stack.platform)
    yield from source.confusion_notices(chosen, reported=as_before(chosen, job.earlier.lock, stack.platform))


def _with_digest(job: Job, stack: Stack, session: Session) -> Stack:
    """Return a stack with the digests of its base images: their own, those of the earlier lock, or the registry's.

    If a digest is not available, the session gets a notice. If the request is strict, the stack gets a doubt for each image
    without one, and for packages of the distribution without a time, unless the spec accepts that.
    """
    if stack.image is None:
        return stack
    from provisioner.index.image_registry import ImageReference

    known = job.earlier.image(stack.platform)
    image = stack.image.with_digests({one.reference: one.digest for one in known.images} if known is not None else {})
    if stack.image.digest:
        ImageReference.parse(f"{image.reference}@{image.digest}")
    image = image.with_digests(
        {one.reference: _registry_digest(one.reference, session) for one in image.images if not one.digest}
    )
    found = replace(stack, image=image)
    request = job.inputs.request(stack.platform)
    if not request.is_strict:
        return found
    undated = undated_packages(locked_stack(found))
    doubts: tuple[Doubt, ...] = tuple(UnpinnedImage(reference=one.reference) for one in image.images if not one.digest)
    doubts += (UndatedPackages(names=undated),) if undated else ()
    judged = weighed(doubts, request)
    return replace(found, doubts=(*stack.doubts, *judged.doubts), accepts=(*stack.accepts, *judged.accepts))


def _registry_digest(reference: str, session: Session) -> str:
    """Return the digest that a registry has for an image; "", with a notice, when none is available."""
    from provisioner.index.image_registry import resolve_digest

    problem = ""
    if not session.settings.offline:
        try:
            # Only one retry, because the lock can be written without the digest.
            return resolve_digest(reference, settings=replace(session.settings, retries=1))
        except UnavailableError as error:
            problem = error.message
    session.tell(NoDigest(reference, problem))
    return ""


def _unused_names(job: Job, stacks: Sequence[Stack]) -> Iterator[Notice]:
    """Yield a notice for each name of `--upgrade-package`, or under `prefer`, `avoid` or `accept`, that no stack contains."""
    known = {name for stack in stacks for name in (*stack.components, *(package.name for package in stack.packages))}
    upgrades = job.earlier.upgrades
    for name in upgrades.names if upgrades is not None else ():
        if not {name, canonicalize_name(name)} & {*known, INSTALLER, "torch"}:
            yield UnknownUpgrade(name, nearest(name, known) or "")
    have = {resolved_name(name) for name in (*known, *job.inputs.matrix.components)}
    policy = job.inputs.spec.policy
    for table, names in (("prefer", policy.prefer), ("avoid", policy.avoid)):
        for name in names:
            if resolved_name(name) not in have:
                yield UnusedPreference(table, name, job.inputs.document.place(("policy", table, name)))
    for index, name in enumerate(policy.accept):
        if resolved_name(name) not in have and name not in COMPONENTS:
            yield UnusedPreference("accept", name, job.inputs.document.place(("policy", "accept", index)))


def _missing_details(completed: Sequence[Completed], session: Session) -> Iterator[Notice]:
    for detail in ("size", "attestations"):
        if files := sum(one.missing.get(detail, 0) for one in completed):
            yield MissingDetails(detail=detail, files=files, is_offline=session.settings.offline)
