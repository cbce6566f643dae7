"""Read the report that `nvidia-smi -q -x` prints: the driver and the GPUs of a machine, captured as XML.

The elements were read in reports of drivers 390 to 595 (nvsmi_device_v9.dtd to v13.dtd). No report has the compute capability,
which the matrix knows by the PCI device id. A report names its machine by the serial numbers and UUIDs of its GPUs, none of
which is read.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from xml.etree.ElementTree import ParseError
from xml.parsers.expat import ErrorString

from defusedxml.common import DefusedXmlException
from defusedxml.ElementTree import fromstring

from provisioner.document import LARGEST_DOCUMENT, TOO_LARGE
from provisioner.errors import InvalidDocumentError, Mistake
from provisioner.host.graphics import divided, grouped, memory, mig_of
from provisioner.host.inspect import Inspection
from provisioner.host.model import Driver, Host
from provisioner.host.parse import SeenGpu, smi_device_id
from provisioner.host.remark import GpuSilent, GpusNotListed, Remark, UnknownGpus, VirtualGpu, WindowsDriver

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from xml.etree.ElementTree import Element

    from provisioner.host.model import HostGpu
    from provisioner.host.parse import Flavour

KIND = "report of nvidia-smi"

_VERSION = re.compile(r"[0-9]{1,9}(?:\.[0-9]{1,9}){1,2}")
_MEBIBYTES = re.compile(r"([0-9]{1,9}) MiB")
_COUNT = re.compile(r"[0-9]{1,4}")
_FAILURES = {"GPU is lost": 15, "Unknown Error": 999}
"""What nvidia-smi prints in place of every value of a GPU that does not answer, and the codes of nvmlReturn_t that mean it."""

_UNNAMED = "Graphics Device"
"""The name that a driver gives to a GPU that is newer than the driver."""

_WINDOWS = frozenset({"WDDM", "TCC", "MCDM"})
"""The driver models of Windows; on Linux it is `N/A`."""


def inspect_smi_report(text: str, *, file: str, gpu_names: Mapping[str, tuple[str, str]]) -> Inspection:
    """Return the facts in a report of `nvidia-smi -q -x`; `gpu_names` is as for `inspect_host`.

    Everything but the driver, the GPUs and whether the machine is virtual stays unknown. Raises `InvalidDocumentError`, with
    line and column, for text that is not such a report, or that declares entities.
    """
    root = _root(text, file)
    gpus = root.findall("gpu")
    seen = tuple(_seen(gpu) for gpu in gpus)
    version = _value(root, "driver_version")
    driver = Driver(version=version, module=_flavour(gpus)) if version and _VERSION.fullmatch(version) else None
    known = grouped(seen, gpu_names)
    modes = {_value(gpu, "gpu_virtualization_mode/virtualization_mode") for gpu in gpus}
    remarks = (*_remarks(root, gpus, driver, modes), *_unknown(known), *divided(seen))
    # `None` is printed in a container and on a machine without a hypervisor alike.
    is_virtual = bool({"Pass-Through", "VGPU"} & modes) and not _is_of_windows(gpus)
    # A report without GPUs says only that the driver runs none.
    host = Host(driver=driver, gpus=known or None, mig=mig_of(seen), virtualization="vm" if is_virtual else None)
    return Inspection(host=host, remarks=remarks, unread=memory(seen))


def is_smi_report(text: str) -> bool:
    """Return whether text is XML, as of a report of `nvidia-smi -q -x`, and no profile or list of nodes."""
    return text.lstrip("\ufeff \t\r\n").startswith("<")


def _root(text: str, file: str) -> Element:
    """Return the root of a report.

    Its document type is allowed, because each report has one, but nothing outside of the file is read, and no entity expanded.
    """
    if len(text) > LARGEST_DOCUMENT:
        raise _invalid(file, TOO_LARGE)
    try:
        root: Element = fromstring(text.lstrip("\ufeff \t\r\n"), forbid_dtd=False, forbid_entities=True, forbid_external=True)
    except ParseError as error:
        line, column = error.position
        raise _invalid(file, f"is not XML: {ErrorString(error.code)}", line=line, column=column + 1) from None
    except UnicodeEncodeError:
        raise _invalid(file, "is no text: half a character of UTF-16 stands in it alone") from None
    except DefusedXmlException:
        raise _invalid(file, "declares an entity, which no report of nvidia-smi does") from None
    if root.tag != "nvidia_smi_log":
        raise _invalid(file, f"the root is `{root.tag}`, not `nvidia_smi_log`")
    return root


def _invalid(file: str, text: str, *, line: int = 1, column: int = 1) -> InvalidDocumentError:
    return InvalidDocumentError(
        KIND, (Mistake(file, line, column, "", text),), hints=("save what `nvidia-smi -q -x` prints on the machine",)
    )


def _value(element: Element, path: str) -> str | None:
    """Return the text of an element below; None if there is none, or if it says that the value is not known."""
    text = (element.findtext(path) or "").strip()
    is_unknown = not text or text in {"N/A", "Not Found", "Insufficient Permissions", *_FAILURES} or text[0] == "["
    return None if is_unknown else text


def _seen(gpu: Element) -> SeenGpu:
    name = _value(gpu, "product_name")
    size = _MEBIBYTES.fullmatch(_value(gpu, "fb_memory_usage/total") or "")
    mig = _value(gpu, "mig_mode/current_mig")
    slices = gpu.find("mig_devices")  # `None` as text where there are no instances
    return SeenGpu(
        name=None if name == _UNNAMED else name,
        pci_device_id=smi_device_id(_value(gpu, "pci/pci_device_id") or ""),
        memory=int(size[1]) if size is not None else None,
        is_divided=mig == "Enabled" if mig is not None else None,
        has_slices=slices.find("mig_device") is not None if mig == "Enabled" and slices is not None else None,
    )


def _flavour(gpus: list[Element]) -> Flavour | None:
    """Return `open` if a GPU reads the memory of its machine by HMM, which only the open kernel modules can do; else None.

    Source: NVIDIA, "Simplifying GPU Application Development with Heterogeneous Memory Management": HMM needs the open modules.
    """
    return "open" if any(_value(gpu, "addressing_mode") == "HMM" for gpu in gpus) else None


def _is_of_windows(gpus: list[Element]) -> bool:
    places = ("driver_model/current_dm", "current_driver_model")
    return any(_value(gpu, place) in _WINDOWS for gpu in gpus for place in places)


def _remarks(root: Element, gpus: list[Element], driver: Driver | None, modes: set[str | None]) -> Iterator[Remark]:
    attached = _value(root, "attached_gpus") or ""
    if _COUNT.fullmatch(attached) and int(attached) > len(gpus):
        yield GpusNotListed(listed=len(gpus), attached=int(attached))
    for index, gpu in enumerate(gpus):
        code = _FAILURES.get((gpu.findtext("product_name") or "").strip())
        if code is not None:
            yield GpuSilent(index=index, count=len(gpus), code=code)
    if driver is not None and driver.version is not None and _is_of_windows(gpus):
        yield WindowsDriver(driver.version)
    if "VGPU" in modes:
        yield VirtualGpu("")


def _unknown(gpus: tuple[HostGpu, ...]) -> Iterator[Remark]:
    """Yield the remark on GPUs whose product neither the report nor the matrix names."""
    unknown = sorted({gpu.pci_device_id for gpu in gpus if gpu.name is None and gpu.pci_device_id})
    if unknown:
        yield UnknownGpus(tuple(unknown))
