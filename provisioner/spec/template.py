"""The text of a new `provision.yaml`: short, commented, and a valid spec without any edit."""

from __future__ import annotations

import json
import re
from textwrap import indent
from typing import TYPE_CHECKING

from msgspec import Struct

from provisioner.document import NO_TEXTS
from provisioner.outputs import OUTPUTS
from provisioner.spellings import environment_name

if TYPE_CHECKING:
    from collections.abc import Sequence

    from provisioner.places import Place
    from provisioner.spec.content import Content, Entry, ProjectEntry

_SCHEMA = "# yaml-language-server: $schema={file}\n"
_TEMPLATE = """\
# What this environment needs{origin}. `provision solve` turns it into pylock.{name}.toml and the outputs at the end.
name: {spelled}

target:
  platform: {platform}
  # {subject}.
  # Instead of the facts themselves: a path to a host profile, a list of paths, or `auto` for the machine that solves.
  # A fact that is left out is unknown; a driver or kernel that is left out is chosen.
  host:
{host}
# cuda, rocm, mps or cpu. Left out, it is what the target's GPUs call for.
{accelerator}

# Components of the matrix and the versions you accept.
{requires}

# Ordinary Python requirements, solved together with the components above.
{packages}

{policy}

{image}

outputs: {outputs} # also: {others}
{notes}"""

_REQUIRES = """\
requires:
  pytorch: "*"
  # python: ">=3.11,<3.14"
  # cuda: "12.*"
  # driver: ">=550\""""

_PACKAGES = """\
packages: []
  # - transformers>=4.50"""

_POLICY = """\
# policy:
#   strategy: newest             # or oldest, or stable: supported driver branches, nothing ended, nothing of the last week
#   allow: [minor-version]       # also: forward-compat, ptx-jit, prerelease, sdist, end-of-life, patched-kernel, image-gate
#   forbid: [end-of-life]        # the same words: never, not even where a host or a request says so
#   prefer: {python: "3.12"}     # components or packages to take first where they work
#   avoid: {numpy: ">=2.4"}      # and those to take only where nothing else works
#   exclude-newer: 2026-09-01    # ignore what was uploaded later"""

_IMAGE = """\
# image:
#   base: auto                   # or slim, cuda-runtime, cuda-devel, any reference"""

_PLAIN = re.compile(r"[A-Za-z][A-Za-z0-9._~=<>!,+-]*(?:\[[A-Za-z0-9._,-]+\])?[A-Za-z0-9._~=<>!,*+-]*")
"""Texts that YAML reads as such without quotes, behind a `- `."""


class Machine(Struct, frozen=True, kw_only=True):
    """The machine for which a spec is written: its platform, its host profile as YAML text, and what the profile is of."""

    platform: str
    host: str
    subject: str


def spec_template(
    *, name: str, machine: Machine, content: Content | None = None, notes: Sequence[str] = (), schema: str = ""
) -> str:
    """Return the text of a new spec.

    `content` is what was read from other files; None for a spec that asks for PyTorch, to be edited. `notes` are comments at
    the end, under the words that they are about what was not carried over. `schema` is the JSON Schema beside the spec, for
    editors; "" for none.
    """
    return (_SCHEMA.format(file=schema) if schema else "") + _TEMPLATE.format(
        origin=_origin(content),
        name=name,
        spelled=name if name[:1].isalpha() and name.lower() not in NO_TEXTS else f'"{name}"',
        platform=machine.platform,
        subject=machine.subject,
        host=indent(machine.host, "    "),
        accelerator=_accelerator(content),
        requires=_REQUIRES if content is None else _requires(content),
        packages=_PACKAGES if content is None else _packages(content),
        policy=_policy(content),
        image=_image(content),
        notes="".join(["\n# Not carried over:\n", *(f"#   {comment(note)}\n" for note in notes)]) if notes else "",
        **_outputs(machine.platform, content),
    )


def comment(text: str) -> str:
    """Return a text that can stand in a YAML comment: on one line, with characters that are not printable escaped."""
    return "".join(one if one.isprintable() else one.encode("unicode_escape").decode("ascii") for one in text)


def _origin(content: Content | None) -> str:
    return f", read from {comment(', '.join(content.sources))}" if content is not None and content.sources else ""


def _outputs(platform: str, content: Content | None) -> dict[str, str]:
    """Return the list of outputs, and the names of the others; an output never has the name of a file that was read."""
    is_mac = platform.startswith("macos/")  # no container runs on it
    own = "requirements" if is_mac else "dockerfile"
    others = ", ".join(name for name, output in OUTPUTS.items() if name != own and not (is_mac and output.is_for_containers))
    file_name = OUTPUTS[own].file_name
    listed = f"[{own}]"
    if content is not None and file_name in content.sources:
        listed = f"[{{format: {own}, path: provision.{file_name}}}]"
    return {"outputs": listed.ljust(23), "others": others}


def _accelerator(content: Content | None) -> str:
    if content is None or content.accelerator is None:
        return "# accelerator: cuda"
    return f"accelerator: {content.accelerator.value}{_place(content.accelerator.place)}"


def _requires(content: Content) -> str:
    rows = [f"  {name}: {_quoted(one.value)}{_place(one.place)}" for name, one in content.requires.items()]
    return "\n".join(["requires:", *rows]) if rows else "requires: {}"


def _packages(content: Content) -> str:
    rows = ["packages:" if content.packages else "packages: []", *_items(content.packages)]
    if content.packages_from:
        rows += ["", "# Files whose requirements join them.", "packages-from:"]
        rows += [f"  - {_project(one)}" for one in content.packages_from]
    if content.constraints:
        rows += ["", "# Bounds for what anything requires.", "constraints:", *_items(content.constraints)]
    if content.indexes:
        rows += ["", "# The indexes that are asked, in this order, and no others.", "indexes:"]
        rows += [f"  - {{name: {_quoted(one.name)}, url: {_quoted(one.url)}}}{_place(one.place)}" for one in content.indexes]
    return "\n".join(rows)


def _items(entries: Sequence[Entry]) -> list[str]:
    return [f"  - {_plain(one.value)}{_place(one.place)}" for one in entries]


def _project(entry: ProjectEntry) -> str:
    extras = ", ".join(_quoted(extra) for extra in entry.extras)
    return f"{{file: {_quoted(entry.file)}, extras: [{extras}]}}" if extras else _quoted(entry.file)


def _policy(content: Content | None) -> str:
    if content is None or not content.allow:
        return _POLICY
    places = ", ".join(str(one.place) for one in content.allow)
    words = ", ".join(("minor-version", *(one.value for one in content.allow)))
    return f"policy:\n  allow: [{words}]  # {comment(places)}"


def _image(content: Content | None) -> str:
    if content is None or not (content.image or content.apt):
        return _IMAGE
    rows = ["image:", *(f"  {key}: {_quoted(one.value)}{_place(one.place)}" for key, one in content.image.items())]
    if content.apt:
        rows += ["  apt:", *(f"    - {_quoted(one.value)}{_place(one.place)}" for one in content.apt)]
    return "\n".join(rows)


def _place(place: Place) -> str:
    return f"  # {comment(str(place))}"


def _plain(text: str) -> str:
    return text if _PLAIN.fullmatch(text) and text.lower() not in NO_TEXTS else _quoted(text)


def _quoted(text: str) -> str:
    """Return a text as a YAML scalar in double quotes, which has the escapes of JSON."""
    return json.dumps(text, ensure_ascii=not text.isprintable())


def spec_name(folder: str) -> str:
    """Return a name for the spec in a folder of the given name, using only characters that specs allow in names.

    The result is `environment` if the folder's name has none of these.
    """
    return environment_name(folder) or "environment"
