"""Read the names that people and programs give to GPUs: find the product, or at least the target of its code.

The target of a GPU is its compute capability (NVIDIA, `9.0`) or gfx target (AMD, `gfx942`). The forms are those of `nvidia-smi`
with and without `-L`, of NVML, GPU feature discovery, AMD's node labeller, `lspci` with and without `-nn`, `rocm-smi` and
`amd-smi`, the vendors' marketing, and the target itself (`sm_90`, `gfx90a`). The products and chips are rows of the matrix;
this module knows the forms only. A name that fits products with different targets is never guessed.
"""

from __future__ import annotations

import re
from functools import cached_property
from itertools import pairwise, takewhile
from typing import TYPE_CHECKING, NamedTuple, Protocol

from msgspec.structs import replace

from provisioner.accelerators import ACCELERATORS, GPU_ACCELERATORS, accelerator_of_target

if TYPE_CHECKING:
    from collections.abc import Iterable

    from provisioner.accelerators import Accelerator
    from provisioner.host.model import HostGpu


class ChipRow(Protocol):
    """A chip in the matrix: its name in the PCI ID repository, its target, and the PCI device ids of boards with it.

    Either `compute_capability` or `gfx` is the target; the other is "".
    """

    @property
    def name(self) -> str: ...
    @property
    def compute_capability(self) -> str: ...
    @property
    def gfx(self) -> str: ...
    @property
    def pci_device_ids(self) -> tuple[str, ...]: ...


class ProductRow(ChipRow, Protocol):
    """A product in the matrix, with the fields of a chip; `aliases` are its other names."""

    @property
    def aliases(self) -> tuple[str, ...]: ...


class NamedGpu(NamedTuple):
    """The target of a named GPU, and its product as the matrix spells it.

    `product` is None if the name is that of a family of products, a chip or a target.
    """

    target: str
    product: str | None


class UnreadName(NamedTuple):
    """A GPU name that does not determine a single target; `text` is the name as given, `vendor` "" if unknown.

    `candidates` are the products that the name fits, whose targets differ. `near` is the product of the same vendor of which
    the name is a slip, otherwise a similar product of the same generation, None if there is none. `is_newer` is whether the
    number in the name is above those of all products of its line, and no slip of one. `is_slice` is whether the name is a MIG
    profile without a GPU, and `is_other` whether it names a device of another vendor than NVIDIA and AMD.
    """

    text: str
    vendor: str = ""
    candidates: tuple[NamedGpu, ...] = ()
    near: str | None = None
    is_newer: bool = False
    is_slice: bool = False
    is_other: bool = False

    @property
    def accelerator(self) -> Accelerator:
        """The accelerator (`cuda`, `rocm`) for which GPUs of `vendor` are programmed; CUDA if the vendor is unknown."""
        return next((row for row in GPU_ACCELERATORS if row.vendor == self.vendor), ACCELERATORS["cuda"])


# Patterns are texts, compiled where they are first used: a name that the matrix spells needs none of them.

_UUID = r"(?i)^GPU \d+:\s*|\s*\(UUID:.*$"
"""The parts of a line of `nvidia-smi -L` around the name: `GPU 0: NVIDIA A100-SXM4-40GB (UUID: GPU-5c1e…)`."""

_FIELD = (
    r"(?i)^(?:GPU\s*\[?\d+\]?\s*:\s*)?"
    r"(?:(?:card|gpu|product|market|marketing|device|asic)[ _]?(?:series|model|name|sku|id)|name)\s*:\s*"
)
"""The field name before the GPU's name in a line of `rocm-smi` or `amd-smi`: `GPU[0] : Card Series: …`, `MARKET_NAME: …`."""

_SLICE = r"(?i)(?:^|[\s/-])MIG[\s-]+(?:\d+c\.)?\d+g\.\d+gb\S*.*$"
"""A MIG profile at the end of a name (`NVIDIA A100-SXM4-40GB MIG 1g.5gb`, `NVIDIA-A100-SXM4-80GB-MIG-1g.10gb`) or alone."""

_VIRTUAL = r"(?i)-\d{1,3}(?:-\d{1,3})?[QCAB](?:ME)?$"
"""The profile of a virtual GPU at the end of a name: `NVIDIA A40-48Q`, `GRID A100-3-20C`."""

_GFX = r"(?i)(?<![0-9a-z])gfx[0-9a-f]{3,5}(?![0-9a-z])"
_SM = r"(?i)(?:sm|compute(?:[ _]capability)?|cc)[ _]?(\d{1,2})\.?(\d)[af]?|(\d{1,2})\.(\d)"
_PCI = r"(?i)(?<![0-9a-f:])(10de|1002):([0-9a-f]{4})(?![0-9a-f])"
_HEX = r"(?i)0x([0-9a-f]{4})(10de|1002)?"
"""A PCI device id alone (`0x740c`, the card model of `rocm-smi`) or before the vendor id, as NVML writes it (`0x233010DE`)."""

_BRACKETS = r"\[([^\[\]]+)\]"
_NO_NAME = r"(?i)(?:0[0-9a-f]|12)[0-9a-f]{2}|[0-9a-f]{4}:[0-9a-f]{4}|AMD/ATI"
"""Texts in brackets in the output of `lspci` that are no product name: the class, the ids, the vendor's short name.

Classes begin with numbers of their own (`0302`, `1200`): a `B200` is a product.
"""

_UNNAMED = r"(?i)\bDevice ([0-9a-f]{4})\b"
"""The PCI device id that `lspci` prints in place of a name that its list of ids lacks: `NVIDIA Corporation Device 2b85`."""

_JOINED = r"(rtx|gtx|gts|gt|rx|mx|titan|jetson|quadro|tesla|geforce|radeon|instinct)(a?\d.*)"
_SUFFIXED = r"(\d{3,4})(ti|super|xtx|xt|gre|d)"
_SAME_WORDS = {"mobile": "laptop", "notebook": "laptop", "geforcertx": "rtx"}
_SILENT = frozenset(
    {
        *(
            "nvidia",
            "corporation",
            "corp",
            "amd",
            "ati",
            "advanced",
            "micro",
            "devices",
            "inc",
            "r",
            "tm",
            "grid",
            "vgpu",
            "nvgpu",
        ),
        *("gpu", "graphics", "generation", "edition", "design", "with"),
    }
)
"""Words in names that do not identify the product; they are dropped."""

_BRANDS = frozenset({"geforce", "tesla", "quadro", "instinct", "radeon"})
"""Brands, which people leave out or confuse: a T4 is a Tesla, an RTX A6000 is no Quadro."""

_OTHERS = frozenset(
    {
        *("intel", "apple", "arc", "habana", "gaudi", "ascend", "huawei", "qualcomm", "adreno", "mali", "tpu", "inferentia"),
        *("trainium", "matrox", "aspeed", "virtio", "qxl", "vmware"),
    }
)
"""Words in the names of devices of other vendors than NVIDIA and AMD."""

_PORTABLE = frozenset({"laptop", "maxq", "embedded"})
"""Words that distinguish a product from a desktop one with the same number but another chip; people never leave them out."""

_DETAIL = (
    r"\d+(?:gb|mb)|sxm\d*|pcie|oam|hbm\d?e?|nvl\d*|lc|ac|vf|hf|fhhl|mcm|mba|dgxs|hgx|dgx|ls|mega|mxgpu|accelerator|adapter|superchip|tensor"
    r"|core|card|series|lite|hash|rate|lhr|oem|rev|developer|kit|module|memory"
    r"|grace|hopper|ampere|turing|volta|lovelace|blackwell|rubin"
)
"""Words about memory, form factor and generation, which the matrix may lack in the name of a product."""

_MODEL = r"([a-z]*?)(\d+)([a-z]*)"


def words_of(name: str) -> frozenset[str]:
    """Return the words of a name that identify a product: `NVIDIA-GeForce-RTX-4090` -> geforce, rtx, 4090."""
    text = re.sub(r"\((?:r|tm)\)|[®™]", " ", name.lower())
    text = re.sub(r"(\d+)\s*(?:gib|gb|g)(?![a-z0-9])", r"\1gb", re.sub(r"(\d)\s*mi?b\b", r"\1mb", text))
    text = re.sub(r"max-?q", "maxq", text)
    found: list[str] = []
    for part in re.split(r"[^a-z0-9.+]+", text):
        word = part.strip(".")
        joined = re.fullmatch(_JOINED, word)
        for one in joined.groups() if joined else (word,):
            suffixed = re.fullmatch(_SUFFIXED, one)
            found += suffixed.groups() if suffixed else (one,)
    return frozenset(_SAME_WORDS.get(word, word) for word in found if word and word not in _SILENT)


class _Listed(NamedTuple):
    """A product of the matrix under one of its names, with the words of that name."""

    product: str
    target: str
    vendor: str
    words: frozenset[str]

    @property
    def named(self) -> NamedGpu:
        return NamedGpu(self.target, self.product)


class GpuNames:
    """Finds the GPU of a matrix that a name or a PCI device id stands for.

    Names spelled as in the matrix are looked up directly; the tables for other spellings are built on first use.
    """

    def __init__(self, products: Iterable[ProductRow] = (), chips: Iterable[ChipRow] = ()) -> None:
        self._products = tuple(products)
        self._chip_rows = tuple(chips)
        self._read: dict[str, NamedGpu | UnreadName] = {
            name: NamedGpu(_target(row)[0], row.name) for row in reversed(self._products) for name in (*row.aliases, row.name)
        }

    @cached_property
    def _by_words(self) -> dict[tuple[str, frozenset[str]], _Listed]:
        """Every product of the matrix, under its target and the words of each of its names.

        If two products with one target have names of the same words, the product whose name begins with the vendor is used.
        """
        found: dict[tuple[str, frozenset[str]], _Listed] = {}
        for row in self._products:
            target, vendor = _target(row)
            for name in (row.name, *row.aliases):
                words = words_of(name)
                own = found.setdefault((target, words), _Listed(row.name, target, vendor, words))
                if row.name.startswith(vendor) and not own.product.startswith(vendor):
                    # Drivers before R470 leave the vendor out: `GeForce GTX 1080` is the same board.
                    found[target, words] = own._replace(product=row.name)
        return found

    @cached_property
    def _listed(self) -> tuple[_Listed, ...]:
        return tuple(self._by_words.values())

    @cached_property
    def _words(self) -> dict[str, frozenset[str]]:
        """The words that identify each product, by the product's name."""
        return {row.name: words_of(row.name) for row in self._products}

    @cached_property
    def _by_id(self) -> dict[tuple[str, str], list[NamedGpu]]:
        """The products of each pair of vendor and PCI device id; for an id of no product, the target of the chip with it."""
        found: dict[tuple[str, str], list[NamedGpu]] = {}
        for row in self._products:
            target, vendor = _target(row)
            for identity in row.pci_device_ids:
                found.setdefault((vendor, identity.upper()), []).append(self._by_words[target, self._words[row.name]].named)
        for chip in self._chip_rows:
            target, vendor = _target(chip)
            for identity in chip.pci_device_ids:
                found.setdefault((vendor, identity.upper()), [NamedGpu(target, None)])
        return found

    @cached_property
    def _chips(self) -> tuple[re.Pattern[str], dict[str, str]]:
        """A pattern that finds the name of a chip, and the target of each chip by its name in lower case.

        The pattern also matches names of NVIDIA's chips with the letters that pci.ids appends to them.
        """
        targets = {row.name.lower(): _target(row)[0] for row in self._chip_rows}
        names = "|".join(re.escape(name) for name in sorted(targets, key=len, reverse=True))
        return re.compile(rf"(?<![0-9a-z])({names or '(?!)'})[bglm]*(?![0-9a-z])"), targets

    def read(self, text: str) -> NamedGpu | UnreadName:
        """Return the GPU that a text names, or an `UnreadName` if it determines no single target; results are cached."""
        if text not in self._read:
            self._read[text] = self._parsed(text)
        return self._read[text]

    def by_device(self, identity: str, *, vendor: str | None = None) -> NamedGpu | None:
        """Return the GPU with a PCI device id such as `20B2`; None if the id is unknown or belongs to GPUs of several targets.

        Without `vendor`, the ids of all vendors are searched. If several products have the id, the result is the one whose
        words the names of all others contain (`NVIDIA A100`); if there is no such product, its `product` is None.
        """
        vendors = [row.vendor for row in GPU_ACCELERATORS if vendor is None or row.vendor == vendor]
        return self._one([one for name in vendors for one in self._by_id.get((name, identity.upper()), ())])

    def identify(self, gpu: HostGpu) -> HostGpu:
        """Return a GPU of a profile with the name and target that the matrix has for it.

        The GPU is returned unchanged if the matrix lacks it, or if the profile states another target for it than the matrix.
        """
        if gpu.name is not None:
            read = self.read(gpu.name)
            found = read if isinstance(read, NamedGpu) else None
        else:
            vendor = next((row.vendor for row in GPU_ACCELERATORS if row.name == gpu.accelerator), None)
            found = self.by_device(gpu.pci_device_id, vendor=vendor) if gpu.pci_device_id else None
        if found is None or gpu.target not in {None, found.target}:
            return gpu
        accelerator = accelerator_of_target(found.target)
        assert accelerator is not None, "the matrix and the forms have targets only"
        return replace(gpu, name=found.product, **{accelerator.target_key: found.target})

    def _parsed(self, text: str) -> NamedGpu | UnreadName:
        """Find the GPU in a text, trying the most specific part first.

        The parts are a target, a PCI id, a product name beside the name of its chip, and a product name alone.
        """
        plain = re.sub(_FIELD, "", re.sub(_UUID, "", text.strip())).strip().removesuffix("-SHARED")
        target = _target_itself(plain)
        if target is not None:
            return NamedGpu(target, None)
        whole = re.sub(_SLICE, "", plain).strip()
        if not whole.removeprefix("nvidia.com"):
            return UnreadName(text, vendor="NVIDIA", is_slice=True)
        known = self._of_identity(whole)
        brackets = [part for part in re.findall(_BRACKETS, whole) if not re.fullmatch(_NO_NAME, part)]
        name = re.sub(r"\(rev [0-9a-f]+\)", "", brackets[-1] if brackets else whole)
        name = re.sub(_VIRTUAL, "", name.strip())
        vendor = _vendor(whole, words_of(whole))
        candidates = [one for one in self._fitting(name) if vendor in {"", _vendor_of_target(one.target)}]
        chip = known.target if known is not None else None
        if chip is None and (brackets or not candidates):
            chip = self._of_chip(re.sub(_BRACKETS, " ", whole))
        if chip is not None:
            return self._one([one for one in candidates if one.target == chip]) or known or NamedGpu(chip, None)
        return self._one(candidates) or self._unread(text, name, candidates)

    def _of_chip(self, text: str) -> str | None:
        pattern, targets = self._chips
        match = pattern.search(text.lower())
        return targets[match[1]] if match is not None else None

    def _of_identity(self, text: str) -> NamedGpu | None:
        pci = re.search(_PCI, text)
        if pci is not None:
            return self.by_device(pci[2], vendor=_VENDOR_OF[pci[1].upper()])
        unnamed, vendor = re.search(_UNNAMED, text), _vendor(text, words_of(text))
        if unnamed is not None and vendor:
            return self.by_device(unnamed[1], vendor=vendor)
        number = re.fullmatch(_HEX, text)
        return self.by_device(number[1], vendor=_VENDOR_OF.get((number[2] or "").upper())) if number is not None else None

    def _one(self, found: Iterable[NamedGpu]) -> NamedGpu | None:
        """Return the one GPU that represents all in `found`; None if they have several targets, or `found` is empty.

        Of several products with one target, the result is the product whose words all others contain; if there is no such
        product, the result has the target alone, with None as its `product`.
        """
        distinct = set(found)
        if len(distinct) == 1:
            return distinct.pop()
        if len({one.target for one in distinct}) != 1:
            return None
        words = {one: self._words[one.product] - _BRANDS for one in distinct if one.product}
        general = [one for one, own in words.items() if all(own <= other for other in words.values())]
        return min(general or [NamedGpu(next(iter(distinct)).target, None)])

    def _fitting(self, name: str) -> list[NamedGpu]:
        """Return the products that a name fits; for alternatives (`Instinct MI250X/MI250`), those that each of them fits."""
        if "/" not in name:
            return self._of_words(words_of(name))
        first, *others = (part.strip() for part in name.split("/"))
        found = self._of_words(words_of(first))
        leading = first.split()
        for part in others:
            # An alternative leaves out words that it shares with the first: `Radeon RX 7900 XT/7900 XTX`.
            tried = [" ".join((*leading[:count], part)) for count in range(len(leading) - 1, -1, -1)]
            found += next((fits for one in tried if (fits := self._of_words(words_of(one)))), [])
        # Several products, of which the text names none alone.
        return found if len({one.target for one in found}) > 1 else [NamedGpu(one.target, None) for one in found[:1]]

    def _of_words(self, words: frozenset[str]) -> list[NamedGpu]:
        """Return the products that a name of `words` fits; empty if there are none.

        If no product has all the words, those about memory and form are left out, then also those for laptops and embedded
        boards.
        """
        exact = [one.named for one in self._listed if one.words == words]
        if exact:
            return exact
        details = {word for word in words if re.fullmatch(_DETAIL, word)}
        for asked, has_portable in ((words, False), (words - details, False), (words - details - _PORTABLE, True)):
            family = self._family(asked, has_portable=has_portable)
            if family:
                wide = self._family(words - details - _BRANDS, has_portable=has_portable)
                return _narrowed(family, wide, words)
        return []

    def _family(self, words: frozenset[str], *, has_portable: bool) -> list[_Listed]:
        """Return the products whose words include all of `words` except brands.

        If some of these products have the brands as well, only they are returned. Unless `has_portable` is set, a product with
        a word of `_PORTABLE` is left out if `words` lack that word. The result is empty if `words` are only brands and lines.
        """
        needed = words - _BRANDS
        if needed <= _LINES:
            return []
        found = [one for one in self._listed if needed <= one.words and (has_portable or one.words & _PORTABLE <= needed)]
        branded = [one for one in found if words <= one.words]
        return branded if words & _BRANDS and branded else found

    def _unread(self, text: str, name: str, candidates: list[NamedGpu]) -> UnreadName:
        words = words_of(name)
        if candidates:
            vendor = next(one.vendor for one in self._listed if one.target == candidates[0].target)
            # First one product of each target, the one with the shortest name, then the others.
            shortest = sorted(set(candidates), key=lambda one: (len(one.product or ""), one))
            first = {one.target: one for one in reversed(shortest)}.values()
            listed = (*(one for one in shortest if one in first), *(one for one in shortest if one not in first))
            return UnreadName(text, vendor=vendor, candidates=listed)
        if words & _OTHERS:
            return UnreadName(text, is_other=True)
        vendor = _vendor(text, words)
        line, number = _generation(words)
        siblings: list[tuple[_Listed, int]] = []
        for one in self._listed:
            own, other = _generation(one.words)
            if line and own == line and vendor in {"", one.vendor} and other is not None:
                siblings.append((one, other))
        same = [one for one, other in siblings if other == number]
        newest = max((other for _, other in siblings), default=None)
        longest = max((len(_model(one.words)) for one, _ in siblings), default=0)
        is_newer = number is not None and newest is not None and number > newest and len(_model(words)) <= longest
        own_vendor = vendor or next((one.vendor for one, _ in siblings), "")
        slips = {} if is_newer else self._slips(name, words, vendor)
        one_slip = slips.get(0) or slips.get(1)
        alike = one_slip or same or slips.get(2) or self._of_other_lines(words, vendor)
        near = _most_similar(words, alike)
        found = next((one.vendor for one in alike if one.product == near), "")
        return UnreadName(text, vendor=own_vendor or found, near=near, is_newer=is_newer and near is None)

    def _slips(self, name: str, words: frozenset[str], vendor: str) -> dict[int, list[_Listed]]:
        """Return the products of a vendor whose model number a name has with a slip of the pen, by the size of the slip.

        The products are of the line that the name has, if it has one. `vendor` is "" if the name reveals none. Nothing is
        returned if a product of that line has the number as it is: then other words of the name are wrong.
        """
        typed, lines = _models(name), words & _LINES
        found: dict[int, list[_Listed]] = {}
        for one in self._listed:
            if vendor in {"", one.vendor} and lines <= one.words and (own := _model(one.words)):
                if lines and own in words:
                    return {}
                # The letter before a number is the generation, and left out by nobody: a V200 is no slip of a PG509-200.
                numbers = [text for text in typed if text[1:] != own]
                sizes = [size for text in numbers if (size := _slip(text, own)) is not None]
                if sizes:
                    found.setdefault(min(sizes), []).append(one)
        return found

    def _of_other_lines(self, words: frozenset[str], vendor: str) -> list[_Listed]:
        """Return the products of a vendor with the model number of a name and another line, such as GTX 1080 for `RTX 1080`."""
        model = _model(words)
        return [one for one in self._listed if model and vendor in {"", one.vendor} and _model(one.words) == model]


_LINES = frozenset({"rtx", "gtx", "gts", "gt", "rx", "mx", "pro", "titan", "jetson", "quadro"})
"""Words for a line of products, which identify a product only together with a number."""

_VENDOR_OF = {row.pci_vendor: row.vendor for row in GPU_ACCELERATORS}


def _target(row: ChipRow) -> tuple[str, str]:
    """Return the target of a product or chip, and its vendor."""
    accelerator = ACCELERATORS["cuda"] if row.compute_capability else ACCELERATORS["rocm"]
    return row.compute_capability or row.gfx, accelerator.vendor


def _vendor_of_target(target: str) -> str:
    accelerator = accelerator_of_target(target)
    return accelerator.vendor if accelerator is not None else ""


def _target_itself(text: str) -> str | None:
    """Return the target in a text, None if there is none: `sm_90a` -> `9.0`, `gfx90a:sramecc+:xnack-` -> `gfx90a`.

    A gfx target may be anywhere in the text, a compute capability must be the whole text.
    """
    gfx = re.search(_GFX, text)
    if gfx is not None:
        return gfx[0].lower()
    match = re.fullmatch(_SM, text)
    return ".".join(part for part in match.groups() if part) if match is not None else None


def _narrowed(family: list[_Listed], wide: list[_Listed], words: frozenset[str]) -> list[NamedGpu]:
    """Return the products that a name with `words` can mean among `family`, the products that fit it.

    If the targets of `family` differ, every product of it is returned. Otherwise the result is a single GPU: the product with
    most of `words` and no other words or, if there are several such products, the target alone. `wide` are the products that
    fit without the words about memory and form; they are considered, too: `A100 80GB` fits two boards, which are both an A100.
    """
    targets = {one.target for one in family}
    if len(targets) > 1:
        return list(dict.fromkeys(one.named for one in family))
    loose = _BRANDS | _LINES
    described = [one for one in (*family, *wide) if one.target in targets and one.words - loose <= words]
    most = max((len(one.words - loose) for one in described), default=0)
    best = {one.named for one in described if len(one.words - loose) == most} or {one.named for one in family}
    return list(best) if len(best) == 1 else [NamedGpu(family[0].target, None)]


def _vendor(text: str, words: frozenset[str]) -> str:
    """Return the vendor that the words of a name reveal, `NVIDIA` or `AMD`; "" if they reveal none."""
    lower = text.lower()
    if re.search(r"\b(?:amd|ati|radeon|instinct|ryzen|firepro|rx|1002:)", lower) or any(
        re.match(r"mi\d{2}", one) for one in words
    ):
        return "AMD"
    if re.search(r"\b(?:nvidia|geforce|rtx|gtx|quadro|tesla|jetson|titan|10de:)", lower):
        return "NVIDIA"
    return ""


def may_be_made_by(vendor: str, name: str) -> bool:
    """Return whether a GPU of this name may be made by `vendor`: no word of the name belongs to another vendor."""
    words = words_of(name)
    return _vendor(name, words) in {"", vendor} and not words & _OTHERS


def _generation(words: frozenset[str]) -> tuple[str, int | None]:
    """Return the line of a product and the number of its generation within the line; ("", None) for a name without a number.

    `RTX 4090` -> rtx, 40. `Quadro RTX 6000` -> rtx 00, 60, because workstation cards have round numbers. `Instinct MI300X` ->
    mi, 3. `H100` -> h, 0, because a letter before the number is itself the generation.
    """
    for word in sorted(words):
        model = re.fullmatch(_MODEL, word)
        if model is None or re.fullmatch(_DETAIL, word):
            continue
        letters, digits, _ = model.groups()
        if letters == "mi":
            return "mi", int(digits) // 100
        if letters:
            return letters, 0
        line = next((one for one in sorted(words) if one in _LINES), "")
        round_number = " 00" if line == "rtx" and digits.endswith("00") else ""
        return (line or "".join(sorted(words & _BRANDS))) + round_number, int(digits) // 100
    return "", None


def _model(words: frozenset[str]) -> str:
    """Return the word of a name that is its model number, such as `4090` or `mi300x`; "" if it has none."""
    return next((word for word in sorted(words) if re.fullmatch(_MODEL, word) and not re.fullmatch(_DETAIL, word)), "")


def _number(model: str) -> int:
    """Return the number in a model number, 325 for `mi325x`; 0 if it has none."""
    digits = re.search(r"\d+", model)
    return int(digits[0]) if digits is not None else 0


def _models(name: str) -> set[str]:
    """Return the texts in a name that may be a mistyped model number: words with a digit, with the letters before it, if any.

    `L 40S` -> l40s. The word for a line, as in `RTX 4909`, belongs to no number.
    """
    words = [word for word in re.split(r"[^a-z0-9]+", name.lower()) if word]
    no_letters = _LINES | _BRANDS | _SILENT | _PORTABLE
    joined = {word: before + word for before, word in pairwise(words) if before.isalpha() and before not in no_letters}
    found = {word for word in words_of(name) if any(map(str.isdigit, word))}
    return {joined.get(word, word) for word in found if not re.fullmatch(_DETAIL, word)}


_LOOK_ALIKE = str.maketrans("oil", "011")


_SHORTEST_SLIP = 2
"""The length of the shortest word of which a longer one may be a slip."""


def _slip(typed: str, meant: str) -> int | None:
    """Return the size of the slip that makes a typed word of the one that is meant; None if it is no slip.

    0: letters for digits that look like them, or no slip at all. 1: besides, a character is left out or too many, or two
    neighbours are exchanged. 2: besides, one character is left out and another one is too many. Another character in the place
    of one is no slip: it names another product.
    """
    one, other = typed.translate(_LOOK_ALIKE), meant.translate(_LOOK_ALIKE)
    if one == other:
        return 0
    shorter, longer = sorted((one, other), key=len)
    if len(shorter) < _SHORTEST_SLIP or len(longer) - len(shorter) > 1:
        return None
    if len(shorter) < len(longer):
        return 1 if shorter in _with_one_less(longer) else None
    first, *others = (index for index, pair in enumerate(zip(one, other, strict=True)) if pair[0] != pair[1])
    if others == [first + 1] and one[first] == other[first + 1] and one[first + 1] == other[first]:
        return 1
    return 2 if others and _with_one_less(one) & _with_one_less(other) else None


def _with_one_less(word: str) -> set[str]:
    """Return a word without one of its characters, once for each character."""
    return {word[:index] + word[index + 1 :] for index in range(len(word))}


def _most_similar(words: frozenset[str], rows: list[_Listed]) -> str | None:
    """Return the product in `rows` with the most similar model number, then the most similar words, then the nearest number.

    Of products that are alike in all of that it is the one with the shortest name.

    None if `rows` is empty.
    """
    from difflib import SequenceMatcher

    wanted = " ".join(sorted(words - _BRANDS))

    def likeness(one: _Listed) -> tuple[int, float, int, int, str]:
        ratio = SequenceMatcher(None, wanted, " ".join(sorted(one.words - _BRANDS))).ratio()
        shared = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(_model(words), _model(one.words), strict=False)))
        apart = abs(_number(_model(words)) - _number(_model(one.words)))
        return -shared, -ratio, apart, len(one.product), one.product

    return min(rows, key=likeness).product if rows else None
