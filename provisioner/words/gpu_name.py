"""Explain why the name of a GPU gives no target (compute capability or gfx), and what to write instead."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from provisioner.host.gpu_names import UnreadName

_MOST_CANDIDATES = 6
_EXAMPLES = {"compute_capability": '"9.0"', "gfx": "gfx942"}


def unread_name_words(read: UnreadName) -> str:
    """Return why the name of a GPU gives no target, as the end of a sentence whose subject is the name."""
    if read.is_slice:
        return "is a slice of a GPU and does not name the GPU"
    if read.is_other:
        return "is not a GPU of NVIDIA or AMD, and runs neither CUDA nor ROCm"
    if read.candidates:
        return "is the name of several GPUs, which run different code"
    known = "newer than the GPUs the matrix knows" if read.is_newer else "not a GPU the matrix knows"
    return f"is {known}, and its {read.accelerator.target_key} is not stated"


def name_hints(read: UnreadName) -> tuple[str, ...]:
    """Return the changes that name the GPU, the nearest first; () when no similar name is known."""
    if read.is_other:
        return ("leave it out of `gpus`; a machine without other GPUs states `gpus: []`",)
    if read.is_slice:
        return ("name the GPU it is cut from, such as `NVIDIA A100-SXM4-40GB MIG 1g.5gb`",)
    if read.candidates:
        listed = ", ".join(f"{one.product} ({one.target})" for one in read.candidates[:_MOST_CANDIDATES])
        more = len(read.candidates) - _MOST_CANDIDATES
        return (f"write the whole name: {listed}{f' and {more} more' if more > 0 else ''}",)
    return (f"did you mean `{read.near}`?",) if read.near else ()


def target_hints(read: UnreadName) -> tuple[str, ...]:
    """Return the change that states the target of a GPU, whatever its name is; () for a device without a target."""
    key = read.accelerator.target_key
    return () if read.is_other else (f"state its {key}, such as {_EXAMPLES[key]}",)
