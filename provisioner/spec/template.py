"""The text of a new `provision.yaml`: short, commented, and a valid spec without any edit."""

from __future__ import annotations

import re
from textwrap import indent

from provisioner.outputs import OUTPUTS

_NOT_WORDS = frozenset({"y", "n", "yes", "no", "on", "off", "true", "false", "null"})
"""Words that YAML 1.1 or 1.2 reads as a boolean or null."""

_TEMPLATE = """\
# What this environment needs. `provision solve` turns it into pylock.{name}.toml and the outputs at the end.
name: {spelled}

target:
  platform: {platform}
  # {subject}.
  # Instead of the facts themselves: a path to a host profile, a list of paths, or `auto` for the machine that solves.
  # A fact that is left out is unknown; a driver or kernel that is left out is chosen.
  host:
{host}
# cuda, rocm, mps or cpu. Left out, it is what the target's GPUs call for.
# accelerator: cuda

# Components of the matrix and the versions you accept.
requires:
  python: ">=3.10"
  pytorch: "*"
  # cuda: "12.*"
  # driver: ">=550"

# Ordinary Python requirements, solved together with the components above.
packages: []
  # - transformers>=4.50

# policy:
#   strategy: newest             # or oldest, or stable: supported driver branches, nothing ended, nothing of the last week
#   allow: [minor-version]       # also: forward-compat, ptx-jit, prerelease, sdist, end-of-life, patched-kernel, image-gate
#   forbid: [end-of-life]        # the same words: never, not even where a host or a request says so
#   prefer: {{python: "3.12"}}     # components or packages to take first where they work
#   avoid: {{numpy: ">=2.4"}}      # and those to take only where nothing else works
#   exclude-newer: 2026-09-01    # ignore what was uploaded later

# image:
#   base: auto                   # or slim, cuda-runtime, cuda-devel, any reference

outputs: {outputs} # also: {others}
"""


def spec_template(*, name: str, platform: str, subject: str, host: str) -> str:
    """Return the text of a new spec.

    `host` is a host profile as YAML text, and `subject` names that host in the comment above.
    """
    is_word = name[:1].isalpha() and name.lower() not in _NOT_WORDS
    spelled = name if is_word else f'"{name}"'
    is_mac = platform.startswith("macos/")  # no container runs on it
    own = "requirements" if is_mac else "dockerfile"
    others = ", ".join(name for name, output in OUTPUTS.items() if name != own and not (is_mac and output.is_for_containers))
    return _TEMPLATE.format(
        name=name,
        spelled=spelled,
        platform=platform,
        subject=subject,
        host=indent(host, "    "),
        outputs=f"[{own}]".ljust(23),
        others=others,
    )


def spec_name(folder: str) -> str:
    """Return a name for the spec in a folder of the given name, using only characters that specs allow in names.

    The result is `environment` if the folder's name has none of these.
    """
    name = re.sub(r"[^A-Za-z0-9_-]+", "-", folder).strip("-_")
    return name or "environment"
