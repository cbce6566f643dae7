"""Notices as sentences."""

from __future__ import annotations

from typing import TYPE_CHECKING

from provisioner.grounds import notice as of
from provisioner.index.notice import IndexSkipped, NotCompared, NotFromDefault, OtherFilesElsewhere
from provisioner.words.notation import counted
from provisioner.words.remark import remark_words

if TYPE_CHECKING:
    from collections.abc import Sequence

    from provisioner.grounds.notice import Notice, SourceNotice
    from provisioner.index.notice import IndexName

MOST_PACKAGES = 8
"""The number of packages that a notice names."""

_INSTEAD_OF_OPTION = {
    "--trusted-host": (
        "; to ask this host without a certificate is this machine's to say: `pip config set global.trusted-host {value}`"
    )
}
"""What to do instead of an option of pip that is passed over, by its name."""

_DETAILS = {"size": "size", "attestations": "attestation identities"}


def notice_words(notice: Notice) -> str:
    """Return a notice as one line."""
    match notice:
        case of.UnusedEarlierLock(problem=problem):
            return f"the earlier lock is not used: {problem}"
        case of.EndsHere(problem=problem):
            return f"without --dry-run this ends here: {problem}"
        case of.UnknownUpgrade(name=name, nearest=nearest):
            return f"--upgrade-package `{name}` is in no stack{f'; did you mean `{nearest}`?' if nearest else ''}"
        case of.UnusedPreference(table=table, name=name, place=place):
            return f"policy.{table} `{name}` ({place}) is in no stack, so it changes nothing"
        case of.NoDigest(reference=reference, problem=problem):
            return f"image {reference}: {problem or 'offline, so its registry was not asked for its digest'}"
        case of.MissingDetails(detail=detail, files=files, is_offline=is_offline):
            why = "offline, and not in the cache" if is_offline else "their server does not tell"
            return f"the lock goes without the {_DETAILS[detail]} of {counted(files, 'file')}: {why}"
        case IndexSkipped(package=package, problem=problem):
            return f"{problem}; `{package}` is taken from find-links alone"
        case of.IndexOfFile():
            return _index_line_words(notice)
        case of.OptionOfPip(name=name, value=value, place=place):
            line = f"`{name} {value}` ({place}) is for pip alone, and is not read"
            return f"{line}{_INSTEAD_OF_OPTION.get(name, '').format(value=value)}"
        case of.SettingOfTool():
            return _setting_words(notice)
        case of.ProjectNotLocked(line=line, place=place):
            also = f"install it beside the lock: pip install --no-deps {line}"
            return f"`{line}` ({place}): what the project requires is locked, and the project itself is not; {also}"
    return source_notice_words(notice) if isinstance(notice, of.SourceNotice) else remark_words(notice)


_KEYS_OF_SPEC = {"override": "overrides", "constraint": "constraints", "index": "indexes"}


def _setting_words(notice: of.SettingOfTool) -> str:
    """Return what is not read of another tool's table, and where a spec has it."""
    what = f": {', '.join(f'`{text}`' for text in notice.texts)}" if notice.texts else ""
    them = "it" if len(notice.texts) < 2 else "them"
    key = _KEYS_OF_SPEC.get(notice.kind)
    instead = f"write {them} under `{key}:`" if key else "a spec says so under `policy:`, if it can"
    return f"`{notice.key}` ({notice.place}) is for {notice.tool} alone, and is not read{what}; {instead}"


def _index_line_words(notice: of.IndexOfFile) -> str:
    line = f"`--{notice.option} {notice.url}` ({notice.place})"
    if notice.use == "needless":
        build = f"; `torch==VERSION+{notice.variant}` asks for a build" if notice.variant else ""
        return f"{line} is not needed: the build of PyTorch is chosen for the target, and taken from where it is{build}"
    if notice.use == "other":
        return f"{line} is not asked, since the spec lists the indexes to ask under `indexes:`"
    return f"{line} is asked, as pip would; a spec says under `indexes:` whose names belong to it, by `packages:`"


def source_notice_words(notice: SourceNotice) -> str:
    """Return a notice on the source of packages as one line."""
    match notice:
        case OtherFilesElsewhere(packages=packages, index=index, others=others):
            where = " and ".join(map(_index_words, others))
            entry = f"`packages: [{', '.join(packages)}]`" if len(packages) <= MOST_PACKAGES else "`packages:`"
            have = "has" if len(others) == 1 else "have"
            these, whose = ("this name", "whose it is") if len(packages) == 1 else ("these names", "whose they are")
            taken = f"{_packages_words(packages)}: taken from index {_index_words(index)}"
            return f"{taken}, and {where} {have} other files under {these}, too; say {whose} under `indexes:`, by {entry}"
        case NotFromDefault(packages=packages, index=index, default=default):
            instead = f"and not from {_index_words(default)}, which is the default"
            return f"from index {_index_words(index)} {instead}: {_packages_words(packages)}"
        case NotCompared(packages=packages, index=index, problem=problem):
            which = f"other files under {_packages_words(packages)}"
            why = problem or "offline, and not in the cache"
            return f"whether index {_index_words(index)} has {which} is not known: {why}"
        case of.MovedIndex(packages=packages, index=index, before=before):
            moved = f"{_packages_words(packages)} from {_index_words(index)}, before from {_index_words(before)}"
            return f"from another index than in the earlier lock: {moved}"
        case of.TakenElsewhere(tool=tool, packages=packages, lines=lines):
            names = ", ".join(f"`{name}` ({line})" for name, line in zip(packages, lines, strict=True))
            them = "it" if len(packages) == 1 else "them"
            taken = f"{tool} takes {names} from {_source(notice)}, and here the indexes are asked for {them}"
            return f"{taken}; {_instead(notice)}"


def _packages_words(packages: Sequence[str]) -> str:
    """Return names separated by commas; beyond `MOST_PACKAGES`, the rest is only counted (`and 5 more`)."""
    rest = len(packages) - MOST_PACKAGES
    return ", ".join(packages) if rest <= 1 else f"{', '.join(packages[:MOST_PACKAGES])} and {rest} more"


def _index_words(index: IndexName) -> str:
    return f"`{index.name}` ({index.url})" if index.url else f"`{index.name}`"


def _source(notice: of.TakenElsewhere) -> str:
    match notice.kind:
        case "index":
            return f"the index `{notice.index}`{f', {notice.address}' if notice.address else ''}"
        case "git":
            return f"the repository {notice.address}"
        case "workspace":
            return "its workspace"
        case "path":
            return f"the path {notice.address}"
    return notice.address


def _instead(notice: of.TakenElsewhere) -> str:
    """Return the line to write in the spec so that it takes the packages from the same source."""
    packages = notice.packages
    match notice.instead:
        case of.AddIndex(name=name, url=url, with_default=with_default):
            entry = f'{{name: {name}, url: "{url or "URL"}", packages: [{", ".join(packages)}]}}'
            default = '{name: pypi, url: "https://pypi.org/simple"}'
            return f"write `indexes: [{default}, {entry}]`" if with_default else f"write `{entry}` under `indexes:`"
        case of.NameFile(url=url):
            return f"write `{packages[0]} @ {url}` under `packages:`"
        case of.BuildWheels():
            wheels = "a wheel" if len(packages) == 1 else "wheels"
            lines = " and ".join(f"`{name} @ URL`" for name in packages[:2]) + (" and so on" if len(packages) > 2 else "")
            return f"build {wheels} (`pip wheel --no-deps`) and write {lines} under `packages:`"
