"""Symptoms of failures: templates of messages in logs, such as `is too old (found version {cuda_of_driver:cuda})`.

A template is the text of a message as its program prints it, without regard to upper and lower case or to how much white space
is between two words. `{fact:notation}` stands for a value in the message: what it states, and how it is written; `{*}` stands
for any text. The notations decode values, because many programs print a version as one number: 11040 is CUDA 11.4.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from provisioner.accelerators import ACCELERATORS
from provisioner.names import nearest
from provisioner.platforms import PLATFORMS

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator

ROLES = ("", "_wanted", "_other")
"""What follows the name of a component in the name of a fact.

Nothing for the version that is there, `_wanted` for one that something needs or was built for, `_other` for the second of two
that should be the same.
"""

OTHER_FACTS = frozenset(
    {
        *("cuda_of_driver", "cuda_of_pytorch", "gpus_of_build", "gpu_name", "package", "requirement", "library", "symbol"),
        *(
            "error",
            "xid",
            "device",
            "path",
            "header",
            "program",
            "module",
            "libstdcxx_wanted",
            "numpy",
            "numpy_wanted",
            "torchvision",
            "user",
            "image",
        ),
        *("gcc_ceiling", "xformers_wanted", "platform", "platform_wanted", "virtualization", "accelerator"),
    }
)
"""Facts that a message may state and that are no component in a role."""


def cuda_of_integer(text: str) -> str:
    """Return the CUDA release in an integer: 11040 is 11.4, and 1201, as xFormers writes it, is 12.1; "" for another number.

    Source: CUDART_VERSION of cuda_runtime_api.h is major * 1000 + minor * 10; xFormers writes major * 100 + minor.
    """
    number = int(text)
    if 1000 <= number < 2000 and len(text) == 4:
        return f"{number // 100}.{number % 100}"
    return f"{number // 1000}.{number % 1000 // 10}" if 2000 <= number < 100_000 and number % 10 == 0 else ""


def cudnn_of_integer(text: str) -> str:
    """Return the cuDNN release in an integer: 8907 is 8.9.7, 90100 is 9.1.0; "" for another number.

    Source: CUDNN_VERSION of cudnn_version.h is major * 10000 + minor * 100 + patch from 9.0 on, major * 1000 + … before.
    """
    number = int(text)
    if 90_000 <= number < 1_000_000:
        return f"{number // 10_000}.{number % 10_000 // 100}.{number % 100}"
    return f"{number // 1000}.{number % 1000 // 100}.{number % 100}" if 1000 <= number < 10_000 else ""


def nccl_of_integer(text: str) -> str:
    """Return the NCCL release in an integer: 2708 is 2.7.8, 22005 is 2.20.5; "" for another number.

    Source: NCCL_VERSION of nccl.h is major * 10000 + minor * 100 + patch from 2.9 on, major * 1000 + … before.
    """
    number = int(text)
    if 20_900 <= number < 100_000:
        return f"{number // 10_000}.{number % 10_000 // 100}.{number % 100}"
    return f"{number // 1000}.{number % 1000 // 100}.{number % 100}" if 2000 <= number < 2900 else ""


def capability_of_sm(text: str) -> str:
    """Return the compute capability of a target of nvcc: sm_61 and compute_61 are 6.1, sm_120 is 12.0, sm_90a is 9.0."""
    digits = re.sub(r"\D", "", text)
    return f"{digits[:-1]}.{digits[-1]}"


def capabilities_of_list(text: str) -> str:
    """Return the compute capabilities in a list of targets: `sm_50 sm_61 compute_90` gives `5.0, 6.1, 9.0`."""
    found = dict.fromkeys(map(capability_of_sm, re.findall(r"(?:sm|compute)_\d{2,3}", text, re.IGNORECASE)))
    return ", ".join(found)


def release_of_tuple(text: str) -> str:
    """Return the release in a tuple of Python: `9, 1, 0` is 9.1.0."""
    return ".".join(re.findall(r"\d+", text))


def release_of_tag(text: str) -> str:
    """Return the release in a tag of a wheel or an index: cu126 is 12.6, cp312 is 3.12."""
    digits = re.sub(r"\D", "", text)
    major = 1 if text.lower().startswith("cp") else len(digits) - 1
    return f"{digits[:major]}.{digits[major:]}"


def platform_of(text: str) -> str:
    """Return the platform in a name of a container engine: linux/arm64/v8 is linux/arm64; "" for one that is not supported."""
    platform = "/".join(text.split("/")[:2]).lower()
    return platform if platform in PLATFORMS else ""


def _same(text: str) -> str:
    return text


class Notation(NamedTuple):
    """The way in which a value is written in messages.

    `pattern` is a regular expression without groups; `decode` returns the value of a text that it matches, "" for a number that
    is none; `example` is such a text.
    """

    pattern: str
    decode: Callable[[str], str]
    example: str


_ANYTHING = r"[^\n]{0,400}?"
_TARGET = r"(?:sm|compute)_\d{2,3}[af]?"

NOTATIONS: dict[str, Notation] = {
    "version": Notation(r"\d+(?:\.\d+)+", _same, "535.104.05"),
    "release": Notation(r"\d+(?:\.[0-9A-Za-z]+)*(?:[+-][0-9A-Za-z.]+)?", _same, "2.1.0+cu121"),
    "number": Notation(r"\d+", _same, "79"),
    "integer": Notation(r"-?\d+", _same, "-34"),
    "cuda": Notation(r"\d{4,5}", cuda_of_integer, "11040"),
    "cudnn": Notation(r"\d{4,6}", cudnn_of_integer, "90100"),
    "nccl": Notation(r"\d{4,5}", nccl_of_integer, "22005"),
    "sm": Notation(_TARGET, capability_of_sm, "sm_61"),
    "sms": Notation(rf"{_TARGET}(?:[ ,]+{_TARGET})*", capabilities_of_list, "sm_50 sm_61"),
    "capability": Notation(r"\d{1,2}\.\d", _same, "6.1"),
    "gfx": Notation(ACCELERATORS["rocm"].target, _same, "gfx1031"),
    "tuple": Notation(r"\d+(?:, ?\d+)+", release_of_tuple, "9, 1, 0"),
    "tag": Notation(r"(?:cu|cp)\d{2,4}", release_of_tag, "cu126"),
    "kernel": Notation(r"\d+\.\d+[\w.+~-]*", lambda text: text.rstrip(".,)"), "6.8.0-40-generic"),
    "status": Notation(r"(?!success\b)\w+", _same, "INTERNAL_ERROR"),
    "libcuda": Notation(r"cuda(?!\w)", lambda _: "libcuda.so", "cuda"),
    "call": Notation(r"(?-i:[A-Z])\w*", _same, "MemCreate"),
    "word": Notation(r"[^\s'\"`,;]+", _same, "torch"),
    "text": Notation(r"[^\n]{1,120}?", lambda text: text.strip(), "NVIDIA A100"),
    "platform": Notation(r"[a-z]+/[a-z0-9]+(?:/v\d)?", platform_of, "linux/arm64/v8"),
    "build": Notation(r"\d{2}[A-Z]\d{1,5}[a-z]?", _same, "17G65"),
}
"""The notations by the names that templates use."""

_BLANKS = re.compile(r"\s+")
_ESCAPED_QUOTE = re.compile(r"\\+(?=[\"'])")
_QUOTES = str.maketrans({"`": "'", "\u00b4": "'", "\u2018": "'", "\u2019": "'", "\u201c": '"', "\u201d": '"', "\u0130": "I"})
"""The shapes of quotation marks; and U+0130, the one character whose lower case is longer than itself."""

_PLACEHOLDER = re.compile(r"\{(?:(?P<any>\*)|(?P<fact>[a-z_]+):(?P<notation>[a-z]+))\}")
_LEAST_TEXT = 6


class Capture(NamedTuple):
    """A value that a template captures: the fact that it states, and its notation."""

    fact: str
    notation: str


class Symptom(NamedTuple):
    """A template that was read: its pattern, the longest of its fixed texts in lower case, and what its groups capture.

    The fixed text is in every message that the pattern matches, so only lines with it need to be tried.
    """

    pattern: re.Pattern[str]
    anchor: str
    captures: tuple[Capture, ...]


def plain(text: str) -> str:
    """Return a line of a log or of a template in the form in which both are compared: one shape of quotes, single blanks."""
    text = text.translate(_QUOTES)
    if "\\" in text:
        text = _ESCAPED_QUOTE.sub("", text)
    return _BLANKS.sub(" ", text)


@lru_cache(maxsize=4096)
def read_symptom(template: str) -> Symptom:
    """Return a template that was read; raises `ValueError` for an unknown notation or a template that is too general."""
    template = plain(template)
    parts: list[str] = []
    captures: list[Capture] = []
    fixed: list[str] = []
    end = 0
    for found in _PLACEHOLDER.finditer(template):
        fixed.append(template[end : found.start()])
        parts.append(re.escape(fixed[-1]))
        end = found.end()
        if found["any"]:
            parts.append(_ANYTHING)
            continue
        notation = NOTATIONS.get(found["notation"])
        if notation is None:
            near = nearest(found["notation"], NOTATIONS)
            advice = f"did you mean `{near}`?" if near else f"known are {', '.join(NOTATIONS)}"
            raise ValueError(f"`{found['notation']}` is no notation; {advice}")
        captures.append(Capture(found["fact"], found["notation"]))
        parts.append(f"({notation.pattern})")
    fixed.append(template[end:])
    parts.append(re.escape(fixed[-1]))
    if any(brace in text for text in fixed for brace in "{}"):
        raise ValueError(f"`{template}` has a brace that is no placeholder, such as {{driver:version}} or {{*}}")
    anchor = max((text.strip() for text in fixed), key=len)
    if len(anchor) < _LEAST_TEXT:
        raise ValueError(f"`{template}` has no fixed text of {_LEAST_TEXT} characters, so it would match too much")
    if not fixed[0] and captures and captures[0].notation == "text":
        raise ValueError(f"`{template}` begins with free text, of which nothing tells the beginning")
    return Symptom(re.compile("".join(parts), re.IGNORECASE), anchor.lower(), tuple(captures))


def unknown_facts(template: str, components: Collection[str]) -> Iterator[str]:
    """Yield a message for each fact of a template that is neither one of `OTHER_FACTS` nor a component in a role."""
    known = {*OTHER_FACTS, *(f"{name}{role}" for name in components for role in ROLES)}
    for found in _PLACEHOLDER.finditer(template):
        fact = found["fact"]
        if fact and fact not in known:
            near = nearest(fact, known)
            yield f"`{fact}` is no fact that a message states; {f'did you mean `{near}`?' if near else 'add it to OTHER_FACTS'}"


def decoded(notation: str, text: str) -> str:
    """Return the value that a text states in a notation; "" when it states none."""
    return NOTATIONS[notation].decode(text)
