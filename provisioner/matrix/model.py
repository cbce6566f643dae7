"""Data types of the compatibility matrix, the curated tables of releases, builds and rules that the solver reads.

Each row of the YAML is one frozen struct, whose fields are the keys of the YAML in the order in which generated files write
them. `check` verifies that rows are consistent with each other.
"""

from __future__ import annotations

import re
from typing import Annotated, Literal, get_args

from msgspec import Meta, Struct, field

from provisioner.accelerators import AcceleratorName
from provisioner.matrix.need import GpuKind, WrittenNeed, WrittenNeeds, WrittenRange, WrittenVersion
from provisioner.places import Place
from provisioner.platforms import PlatformName
from provisioner.strict_model import SpelledModel, Spelling
from provisioner.versions import Range, Version, kernel_flavour, series


def like(example: str, pattern: str) -> Spelling:
    """Return the spelling of a text field that must match `pattern` as a whole; the error message shows `example`.

    The spelling is checked when YAML is read, not when a matrix is decoded from its cache.
    """

    def read(text: object) -> object:
        if not isinstance(text, str) or re.fullmatch(pattern, text) is None:
            raise ValueError(f"`{text}` is not spelled like {example}")
        return text

    return Spelling(str, read, str, pattern)


Date = Annotated[str, like("2025-06-04 or 2025-06", r"(\d{4}-\d{2}(-\d{2})?)?")]
Sass = Annotated[str, like("sm_90", r"sm_\d+[af]?")]
Ptx = Annotated[str, like("compute_90", r"compute_\d+[af]?")]
Gfx = Annotated[str, like("gfx942", r"(gfx[0-9a-f]{3,5}(-generic)?|gfx\d+(-\d+)?-generic)")]
MaybeGfx = Annotated[str, like("gfx942", r"(gfx[0-9a-f]{3,5}(-generic)?|gfx\d+(-\d+)?-generic)?")]
Capability = Annotated[str, like("9.0", r"(\d+\.\d+)?")]
Sha256 = Annotated[str, like("a SHA-256 of 64 hexadecimal digits", r"([0-9a-f]{64})?")]
ImageDigest = Annotated[str, like("sha256: and 64 hexadecimal digits", r"(sha256:[0-9a-f]{64})?")]
Soname = Annotated[str, like("libcudart.so.12", r"lib[A-Za-z0-9_+.-]+?\.so(\.\d+)*")]
CudaRelease = Annotated[str, like("12.8", r"(\d+\.\d+)?")]
RecordHash = Annotated[str, like("sha256= and 43 characters, as a wheel's RECORD has it", r"sha256=[A-Za-z0-9_-]{43}")]
Positive = Annotated[float, Meta(gt=0)]
DeviceId = Annotated[str, like("2330", r"[0-9A-F]{4}")]
LinuxDistribution = Annotated[str, like("debian:13", r"[a-z]+:\d+(\.\d+)?")]
ModuleFlavour = Literal["open", "proprietary"]
Compiler = Literal["c-compiler", "c++-compiler", "python-headers", "cuda-compiler"]
Tool = Literal[Compiler, "ffmpeg", "graphviz", "poppler", "tesseract", "tkinter"]
Cited = tuple[str, ...]
"""The keys of the sources that a row cites."""


class Row(SpelledModel, frozen=True, kw_only=True, gc=False, omit_defaults=True):
    """The base of all rows of matrix files; fields that have their default value are not written."""


class Citation(Row, frozen=True, kw_only=True):
    """The source of facts: a document (`title`), the section in it (`where`), and the date on which it was read (`read`).

    `measured` is True when the facts were read from the published artefact itself.
    """

    title: str
    where: str = ""
    url: str = ""
    read: Date = ""
    measured: bool = False

    def __str__(self) -> str:
        return f"{self.title}, {self.where}" if self.where else self.title


class Build(Row, frozen=True, kw_only=True):
    """One variant of a release with requirements of its own (`cu126` on linux/amd64).

    `sass`, `ptx` and `gfx` are the GPU targets it is compiled for (`sm_90`, `compute_90`, `gfx942`); None means not measured,
    an empty tuple means it has none. `cxx11_abi` is True if C++ extensions must use the new ABI of libstdc++, None if unknown.
    `default` is True for the build that is preferred among those of its release. `compiled` is True when no binary is
    published, so that users compile it. `install` is the PEP 508 requirement that installs it (`jax[cuda12]`), "" for the
    component's own distribution. `index` is `pypi` or the index of this variant (`pytorch-cu126`). `local` is the local version
    label of its wheels on that index (`cu126`), "" when they have none. `artefact` is the filename of the measured wheel and
    `sha256` its hash. `expects` are needs beside `requires`, as of a release. An empty `source` means that the sources of the
    release apply.
    """

    name: str
    platforms: tuple[PlatformName, ...] = ()
    default: bool = False
    index: str = ""
    local: str = ""
    accelerator: AcceleratorName | Literal[""] = ""
    requires: WrittenNeeds = ()
    expects: WrittenNeeds = ()
    sass: tuple[Sass, ...] | None = None
    ptx: tuple[Ptx, ...] | None = None
    gfx: tuple[Gfx, ...] | None = None
    cxx11_abi: bool | None = None
    compiled: bool = False
    install: str = ""
    artefact: str = ""
    sha256: Sha256 = ""
    source: Cited = ()


class Kernels(Row, frozen=True, kw_only=True):
    """What it means that a library, a component, has no kernels for a GPU; its releases list their targets in a build's `gfx`.

    `of` is the runtime whose releases contain the library. `lack` is `refused` if nothing runs on such a GPU, `several-gpus` if
    only programs on several GPUs need the kernels, and `slower` if something else does the same work. `because` says what
    then happens, as text for users.
    """

    of: str
    lack: Literal["refused", "several-gpus", "slower"]
    because: str
    source: Cited = ()


class Sonames(Row, frozen=True, kw_only=True):
    """The names by which libraries in some releases of a runtime are linked, if these names change between its releases."""

    releases: WrittenRange
    libraries: tuple[str, ...]
    source: Cited = ()


class DriverMinimum(Row, frozen=True, kw_only=True):
    """The three minimum driver versions that NVIDIA documents for one CUDA release.

    `toolkit` is the driver that the release notes list for the toolkit; older drivers may still run programs. `minor_version`
    is the oldest driver that runs programs of this CUDA major under minor-version compatibility, None before CUDA 11, which
    lacks it. `forward_compat` are the driver branches that the release's forward-compatibility package (cuda-compat) supports,
    on data-centre GPUs only.
    """

    toolkit: WrittenVersion | None = None
    minor_version: WrittenVersion | None = None
    forward_compat: tuple[str, ...] = ()


class PatchedKernels(Row, frozen=True, kw_only=True):
    """Linux kernel versions on which a driver release builds only with the patches of the Linux distribution named in `by`."""

    kernel: WrittenRange
    by: str
    source: Cited = ()


class Release(Row, frozen=True, kw_only=True):
    """One published version of a component, spelled as its vendor spells it; it or each of its builds cites a source.

    `platforms` are the platforms of a release without builds; empty means all platforms. `prerelease` is the kind of
    pre-release (`Vulkan beta`) when the version does not show it, "" otherwise. `ptx_isa` is the PTX ISA version of a CUDA
    release. `module` is what the kernel module of a driver calls itself, where that is another number. `expects` are needs that
    the sources of the row suggest and do not state: a stack that violates one is unverified.
    When several files of a component have the same release, the later ones only add builds to it.
    """

    version: WrittenVersion
    released: Date = ""
    end_of_life: Date = ""
    prerelease: str = ""
    platforms: tuple[PlatformName, ...] = ()
    ptx_isa: str = ""
    module: str = ""
    requires: WrittenNeeds = ()
    expects: WrittenNeeds = ()
    driver: DriverMinimum | None = None
    patched: tuple[PatchedKernels, ...] = ()
    builds: tuple[Build, ...] = ()
    source: Cited = ()


class Rule(Row, frozen=True, kw_only=True):
    """A compatibility rule: if a component's version meets `when` and the host meets all of `on`, `require` must be met.

    `expect` are requirements that no source states: a stack that violates one is not refused but unverified. `because` is the
    reason for the rule, as text for users.
    """

    name: str
    when: WrittenNeed
    on: WrittenNeeds = ()
    require: WrittenNeeds = ()
    expect: WrittenNeeds = ()
    because: str
    source: Cited = ()


class Family(Row, frozen=True, kw_only=True):
    """A pair of components of which rows must state, for each release of `subject`, which releases of `object` work with it.

    If no row is about a release of `subject`, it is unknown which releases of `object` work with that release. For any other
    pair, rows state limits, and a release without a row has no limit. `releases` are the releases of `subject` that the family
    covers, and `on` restricts the family to platforms, accelerators, or ways to run. With `is_ceiling` a row only counts if it
    bounds `object` from above, and a release without such a row has the bound of the nearest older release of its series. With
    `is_by_series` a row of one release counts for its whole series. `because` is the reason why the absence of a row does not
    mean that everything works.
    """

    subject: str
    object: str
    releases: WrittenRange = Range()
    on: WrittenNeeds = ()
    is_ceiling: bool = field(default=False, name="ceiling")
    is_by_series: bool = field(default=False, name="by_series")
    because: str


class DriverBranch(Row, frozen=True, kw_only=True):
    """One NVIDIA driver branch (`535`): the newest CUDA that it runs natively, whose PTX it compiles, and its end of life.

    `windows` are the numbers with which its drivers for Windows begin, where they differ (`572` of branch 570): they are what
    `nvidia-smi` shows in WSL. `designation` is what NVIDIA calls the branch, such as `Production Branch`; "" when unknown.
    """

    branch: str
    windows: tuple[str, ...] = ()
    native_cuda: WrittenVersion
    designation: str = ""
    end_of_life: Date = ""
    source: Cited = ()


class Gpu(Row, frozen=True, kw_only=True):
    """One GPU product: NVIDIA's has a `compute_capability`, AMD's a `gfx` target; the other field is "".

    `kind` decides whether CUDA forward compatibility is supported. `first_driver` is the oldest driver that supports the GPU,
    and `modules` are the flavours of kernel module that support it, empty if all do. `aliases` are other names under which the
    product is sold or reported. `platform` is that of every machine with the GPU, where it is on one module with a CPU.
    """

    name: str
    aliases: tuple[str, ...] = ()
    compute_capability: Capability = ""
    gfx: MaybeGfx = ""
    architecture: str
    kind: GpuKind | Literal[""] = ""
    platform: PlatformName | Literal[""] = ""
    pci_device_ids: tuple[DeviceId, ...] = ()
    first_driver: WrittenVersion | None = None
    modules: tuple[ModuleFlavour, ...] = ()
    source: Cited = ()

    @property
    def target(self) -> str:
        """The target of the GPU's code: its compute capability or gfx target."""
        return self.compute_capability or self.gfx


class Chip(Row, frozen=True, kw_only=True):
    """One GPU chip, named as the PCI ID repository spells it (`GA100`, `Navi 31`), and the PCI ids of all boards with it.

    It gives the target of a board without a row of its own in `gpus`: `compute_capability` for NVIDIA's, `gfx` for AMD's.
    """

    name: str
    compute_capability: Capability = ""
    gfx: MaybeGfx = ""
    pci_device_ids: tuple[DeviceId, ...] = ()
    source: Cited = ()


class GfxOverride(Row, frozen=True, kw_only=True):
    """AMD targets (`gfx`) that run code of another target (`runs_as`) if the variables of `set` are set; unsupported by AMD.

    `when` is the range of ROCm releases with whose builds the override works; empty means all.
    """

    name: str
    when: WrittenNeeds = ()
    gfx: tuple[Gfx, ...]
    runs_as: Gfx
    set: dict[str, str]
    because: str
    source: Cited = ()


class SeenToRun(Row, frozen=True, kw_only=True):
    """A GPU that was seen to run code compiled for others (`runs`), which NVIDIA's documentation does not promise.

    `on` are the facts of the hosts on which it was seen. `gpu` and `runs` are compute capabilities.
    """

    name: str
    gpu: str
    runs: tuple[str, ...]
    on: WrittenNeeds
    because: str
    source: Cited = ()


class Performance(Row, frozen=True, kw_only=True):
    """The least that the boards with a PCI device id reach when they are healthy; None for a figure that nobody published.

    `memory_bandwidth` is in GB/s (10^9 bytes, read and written), `float32` in TFLOP/s of matrix products without tensor cores.
    """

    pci_device_id: DeviceId
    memory_bandwidth: Positive | None = None
    float32: Positive | None = None
    source: Cited = ()


class ImageFacts(Row, frozen=True, kw_only=True):
    """One base image, identified by its full tag (`reference`), and the versions of the software in it.

    `python` is the Python in the image, `apt_python` the one that its Linux distribution packages. `require_cuda` is the value
    of the image's variable NVIDIA_REQUIRE_CUDA, with which the container runtime refuses too old drivers. In the YAML, the key
    `gate` has a name from the file's `gates` instead, because many images share one long value. `requires` are further needs of
    the image: an image of kind `l4t` is for one series of Jetson Linux. `brings` are the versions of other components in the
    image: an image of kind `ngc`, of NVIDIA's catalogue, brings a framework of its own. `digest` is that of the image that was
    read, "" if the row was not read from a registry.
    """

    reference: str
    kind: Literal["slim", "distribution", "cuda-base", "cuda-runtime", "cuda-devel", "l4t", "ngc", ""]
    distribution: str = ""
    glibc: str
    python: str = ""
    apt_python: str = ""
    cuda: str = ""
    cudnn: str = ""
    require_cuda: str = field(default="", name="gate")
    requires: WrittenNeeds = ()
    brings: dict[str, str] = field(default_factory=dict)
    end_of_life: Date = ""
    platforms: tuple[PlatformName, ...] = ()
    digest: ImageDigest = ""
    source: Cited = ()


class PythonBuild(Row, frozen=True, kw_only=True):
    """A relocatable archive of a CPython release (`3.12.16`) for Linux, for base images that have another Python."""

    version: WrittenVersion
    platforms: tuple[PlatformName, ...]
    url: Annotated[str, like("an https address", r"https://\S+")]
    sha256: Sha256
    source: Cited = ()


class Variables(Row, frozen=True, kw_only=True):
    """Environment variables (`set`) to set if a component's version meets `when` and the host meets all of `on`.

    `because` is the reason for setting them.
    """

    name: str
    when: WrittenNeed
    on: WrittenNeeds = ()
    set: dict[str, str]
    because: str
    source: Cited = ()


class RemedyStep(Row, frozen=True, kw_only=True):
    """One step of a remedy: exactly one of a shell command (`run`), an instruction in words (`say`), and a question (`solve`).

    `run`, `say` and `note` may name facts of the log: `{kernel}`, or `{kernel|$(uname -r)}` with the text for a log without it.
    `solve` is a question that the matrix and the solver answer for the machine of the log: which `stack` runs there, which
    `driver` is needed, which builds have code for the `gpu`, which drivers build on the `kernel`, what brings a `library`.
    `note` says what a command is for.
    """

    run: str = ""
    say: str = ""
    solve: Literal["", "stack", "driver", "gpu", "kernel", "library"] = ""
    note: str = ""


class Failure(Row, frozen=True, kw_only=True):
    """A known failure: the messages that it leaves in logs (`symptoms`), the component at fault (`layer`), cause and remedy.

    `symptoms` are templates of `provisioner.matrix.symptom`; any of them tells the failure, with `together` only all of them.
    `samples` are real messages, each of which is recognised as this failure; `also` names failures whose messages they have,
    too. `when` and `on` restrict the failure to the versions and hosts with which it occurs; empty for all. `kind` is
    `consequence` for a message that says nothing of its cause, `benign` for one that looks like an error and harms nothing, and
    `silent` for a failure without a message of its own, whose `symptoms` are words for people. `follows` names failures that
    this one follows from if they are in the same log. `general` is for templates of a whole kind of messages, such as any
    library that is not found: they speak only in lines that no other failure explains, a general one before them included.
    `alike` names groups of failures with the same message, which facts of the host tell apart. `steps` are the remedy in order;
    without them it is `remedy` alone.
    """

    name: str
    layer: str
    kind: Literal["cause", "consequence", "benign", "silent"] = "cause"
    when: WrittenNeeds = ()
    on: WrittenNeeds = ()
    symptoms: tuple[str, ...]
    together: bool = False
    general: bool = False
    samples: tuple[str, ...] = ()
    also: tuple[str, ...] = ()
    follows: tuple[str, ...] = ()
    alike: tuple[str, ...] = ()
    cause: str
    remedy: str = ""
    steps: tuple[RemedyStep, ...] = ()
    source: Cited = ()


class Statement(Row, frozen=True, kw_only=True):
    """A message that is no failure and states facts of the machine, such as the head of `nvidia-smi`.

    `symptoms` and `samples` are as in `Failure`; `states` are facts that the message itself proves, such as the platform.
    """

    name: str
    symptoms: tuple[str, ...]
    states: dict[str, str] = field(default_factory=dict)
    samples: tuple[str, ...] = ()
    source: Cited = ()


class DriverPackage(Row, frozen=True, kw_only=True):
    """One package with which an operating system ships the NVIDIA driver, and its driver branches and kernels.

    `kind`: `precompiled` modules are built for certain kernels; `dkms` and `akmod` build on the host, which needs headers (the
    package `headers`), a compiler and, under Secure Boot, an enrolled key; `runfile` is NVIDIA's installer. `signed` is True
    when the kernel modules are signed for Secure Boot, None when undocumented. `note` is a remark for readers of the row.
    `flavours` are the kernel flavours that it is built for, such as `generic` for `6.8.0-60-generic`, and `platforms` its
    platforms; () when it is for all, or nobody listed them.
    """

    name: str
    os: str
    kind: Literal["precompiled", "dkms", "akmod", "runfile", "host-provided"]
    branches: tuple[str, ...] = ()
    modules: tuple[ModuleFlavour, ...] = ()
    kernel: str = ""
    flavours: tuple[str, ...] = ()
    platforms: tuple[str, ...] = ()
    signed: bool | None = None
    headers: str = ""
    note: str = ""
    source: Cited = ()

    @property
    def is_built_on_host(self) -> bool:
        """Whether the kernel modules are built on the host."""
        return self.kind in {"dkms", "akmod", "runfile"}

    def is_for_kernel(self, kernel: str) -> bool:
        """Return whether the package is for a kernel as `uname -r` prints it, by its series and its flavour."""
        if self.kernel and not Range.parse(self.kernel).allows(Version.parse(kernel)):
            return False
        return not self.flavours or kernel_flavour(kernel) in self.flavours


class HostRepository(Row, frozen=True, kw_only=True):
    """A repository of packages for hosts that run one of the systems `os` (`ubuntu 24.04`, or `ubuntu` for all its releases).

    `kind` says how it is registered: `keyring` by a package with its key and its line, from the address of the platform in
    `urls`; `package` by a package, from such an address or, without one, from the system's own repositories; `repo-file` by a
    file for dnf, from such an address; `apt-line` and `yum` by `line`, an address with, for apt, the suite and components.
    `key` is the address or the path of the key of an `apt-line` or `yum`. `package` is the name of the package. `pin` is what
    apt prefers the packages of, "" for no preference. `sha256` are the hashes of `urls`, where one was read.
    """

    name: str
    os: tuple[str, ...]
    kind: Literal["keyring", "package", "repo-file", "apt-line", "yum"]
    package: str = ""
    urls: dict[str, str] = field(default_factory=dict)
    sha256: dict[str, Sha256] = field(default_factory=dict)
    line: str = ""
    key: str = ""
    pin: str = ""
    source: Cited = ()


class HostPackage(Row, frozen=True, kw_only=True):
    """The packages that bring a component to hosts that run one of the systems `os`.

    `versions` are those of the component, and `cuda` those of the stack's CUDA, that the row is for; "" for all. For a driver,
    `of` is how the name of the driver package (`DriverPackage.name`) begins, and `modules` are the flavours of kernel modules.
    `repositories` are to be registered, the dnf module stream `stream` to be enabled, and the packages `first` to be installed
    before `packages`, of which `lock` is the pattern that dnf keeps to the driver's branch. Of a component that is downloaded,
    `url` is the address, `file` the name where there is no address for everybody, and `sha256` the hash, "" if none was read.
    Names and addresses have placeholders, such as `<branch>`.
    """

    component: str
    os: tuple[str, ...]
    versions: str = ""
    cuda: str = ""
    of: str = ""
    modules: tuple[ModuleFlavour, ...] = ()
    repositories: tuple[str, ...] = ()
    stream: str = ""
    first: tuple[str, ...] = ()
    lock: str = ""
    packages: tuple[str, ...] = ()
    url: str = ""
    file: str = ""
    sha256: Sha256 = ""
    source: Cited = ()


class SourceBuild(Row, frozen=True, kw_only=True):
    """How a component is compiled from source on the systems `os`: variables of its build (`set`), and patches of others.

    `versions` are those of the component, "" for all; `builds` are the names of its builds, () for all.
    """

    component: str
    os: tuple[str, ...]
    versions: str = ""
    builds: tuple[str, ...] = ()
    repository: str
    set: dict[str, str] = field(default_factory=dict)
    patches: tuple[str, ...] = ()
    because: str
    source: Cited = ()


class ImpliedNeed(Row, frozen=True, kw_only=True):
    """Requirements (one row) of some versions of a distribution that their metadata does not declare.

    `versions` is a PEP 440 specifier, "" for every version. `require` are requirements on components (those on `gpu` are about
    the compute capability of NVIDIA's GPUs), `packages` on other distributions (name -> PEP 440 specifier). `brings` is the
    CUDA runtime that the wheels bundle for their own use, which the driver and GPUs must support too. `cxx11_abi` is the C++
    ABI of its Linux wheels on the default index if they pass `std::string` or `std::list` to PyTorch, whose build must then
    have the same ABI; None when unknown or irrelevant. A file of a variant index has the ABI of its PyTorch build. `served_by`
    restricts the row to files of the `default` or `variant-index`, "" for all files, and `accelerator` to targets of that one:
    a wheel with libraries for each of several accelerators needs of the others nothing. `unserved_by` restricts it to targets
    with a GPU of AMD's on which code for these does not run: a wheel with a library for each ROCm has code for some GPUs in the
    libraries for newer ones alone.
    """

    versions: str
    require: WrittenNeeds = ()
    packages: dict[str, str] = field(default_factory=dict)
    brings: WrittenNeeds = ()
    cxx11_abi: bool | None = None
    because: str
    served_by: Literal["default", "variant-index", ""] = ""
    accelerator: Literal["cuda", "rocm", ""] = ""
    unserved_by: tuple[Gfx, ...] = ()
    source: Cited = ()


class LibraryLoading(Row, frozen=True, kw_only=True):
    """Versions of a distribution (a PEP 440 specifier, "" for all) whose Python code loads CUDA libraries before its own do.

    The libraries are those of NVIDIA's wheels, or of PyTorch, which it imports. So it finds them without a run path. With
    `call`, it does so only in a program that calls this function of it.
    """

    versions: str
    call: str = ""
    because: str
    source: Cited = ()


class OpenedFiles(Row, frozen=True, kw_only=True):
    """Files of a CUDA toolkit or of cuDNN that code of some versions of a distribution opens whenever it uses a GPU.

    `versions` is a PEP 440 specifier, "" for every version. `files` are libraries by soname, or names of `ToolkitFile`; of
    several versions of one library it needs any one. Nothing in its wheels links to them.
    """

    versions: str
    files: tuple[str, ...]
    because: str
    source: Cited = ()


class OptionalLibraries(Row, frozen=True, kw_only=True):
    """Libraries by soname that the wheels of some versions (a PEP 440 specifier, "" for all) use, and can do without.

    `gives` is what only works with them. They are told where nothing contains them, and not required.
    """

    versions: str
    libraries: tuple[str, ...]
    gives: str
    source: Cited = ()


class ToolkitFile(Row, frozen=True, kw_only=True):
    """A file of a CUDA toolkit or of cuDNN that code opens by its name and no wheel links to: a compiler's library, headers.

    `wheels` are the distributions that contain it, `images` the kinds of NVIDIA's images that do, or in which it is not needed,
    each with the CUDA releases of these images (a PEP 440 specifier, "" for all); with `cudnn`, those with such a cuDNN alone.
    """

    name: str
    wheels: tuple[str, ...]
    images: dict[str, str]
    cudnn: str = ""
    source: Cited = ()


class NeededToUse(Row, frozen=True, kw_only=True):
    """What a distribution needs of a host in order to be used, and not only installed: GPUs of NVIDIA's, by compute capability.

    It is asked of a distribution that the spec names. What requires it, as PyTorch requires Triton, may run without using it.
    """

    require: WrittenNeeds
    because: str
    source: Cited = ()


class Distribution(Row, frozen=True, kw_only=True):
    """Facts about a Python distribution that its metadata does not declare.

    `compiled_against` is a component such as `pytorch`: each wheel of the releases in `versions` (a PEP 440 specifier, "" for
    all) is compiled against one build of that component. `served_by` is `variant-index` when the framework's indexes have
    wheels of the distribution, else `default`. `gpu_twin` is the distribution with the same modules that uses a GPU, which this
    one never does. `gpu_wheels` is the page where the project publishes wheels of this distribution that use a GPU, which those
    of the package index, and what its source distribution is compiled to as it stands, do not. `implies` are its undeclared
    requirements; `loads` are the versions that load CUDA libraries themselves; `opens` are the files of a CUDA toolkit or of
    cuDNN that its code opens, `optional` the libraries that its wheels can do without; `used` is what it needs where the spec
    names it.
    """

    name: str
    compiled_against: str = ""
    versions: str = ""
    served_by: Literal["default", "variant-index"] = "default"
    gpu_twin: str = ""
    gpu_wheels: str = ""
    implies: tuple[ImpliedNeed, ...] = ()
    loads: tuple[LibraryLoading, ...] = ()
    opens: tuple[OpenedFiles, ...] = ()
    optional: tuple[OptionalLibraries, ...] = ()
    used: NeededToUse | None = None
    source: Cited = ()


class DistributionLimit(Row, frozen=True, kw_only=True):
    """A limit on a distribution: if `when` holds on a platform in `on`, only versions in `allow` may be installed.

    `when` is a component with a range of versions; an empty `on` means all platforms. `allow` has one entry (name -> PEP 440
    specifier). The limit does not require the distribution to be installed.
    """

    name: str
    when: WrittenNeed
    on: WrittenNeeds = ()
    allow: dict[str, str]
    because: str
    source: Cited = ()

    @property
    def distribution(self) -> str:
        """The distribution that is limited."""
        return next(iter(self.allow))

    @property
    def specifier(self) -> str:
        """The PEP 440 specifier of the allowed versions."""
        return self.allow[self.distribution]


class FileOwner(Row, frozen=True, kw_only=True):
    """A distribution whose wheels contain a shared file, in `versions` (a PEP 440 specifier, "" for all).

    `artefact` is the wheel that was measured and `sha256` its hash; `content` is the hash of the shared file in the wheel's
    RECORD.
    """

    distribution: str
    versions: str = ""
    artefact: str
    sha256: Sha256
    content: RecordHash


class SharedFile(Row, frozen=True, kw_only=True):
    """A path that wheels of several distributions (`owners`) write with different content; the last one installed wins.

    With `refused`, no two owners may be in one environment; otherwise an answer with two owners reports the shared file, and
    the policy may forbid such answers.
    """

    name: str
    path: str
    refused: bool = True
    because: str
    owners: tuple[FileOwner, ...]
    source: Cited = ()


class PublishedWheels(Row, frozen=True, kw_only=True):
    """Wheels of distributions that their project publishes outside package indexes, one for each of several PyTorch builds.

    `address` is the URL of a wheel of the release `version`, or, with `version` "", that of a page with links to wheels. It has
    the places `{pytorch}` (the series, `2.8`), `{build}` (`cu128`), `{abi}` (`TRUE` for the new C++ ABI, `FALSE` for the old
    one) and `{python}` (`cp313`). `builds` maps the series of PyTorch to names of builds; `cu12` stands for each of CUDA 12.
    `python` are the series of Python that have wheels. A row with `is_index` has neither builds nor Pythons: `address` is that
    of a package index of the vendor, which has the wheels of any version.
    """

    name: str
    distributions: tuple[str, ...]
    version: str = ""
    address: str
    is_index: bool = False
    builds: dict[str, tuple[str, ...]] = field(default_factory=dict)
    python: tuple[str, ...] = ()
    platforms: tuple[PlatformName, ...] = ()
    source: Cited = ()


class DeclaredCode(Row, frozen=True, kw_only=True):
    """The GPU targets for which the recipe of a wheel compiles it: machine code for `sass`, and PTX for `ptx`."""

    sass: tuple[Sass, ...] = ()
    ptx: tuple[Ptx, ...] = ()


class DeclaredTargets(Row, frozen=True, kw_only=True):
    """The GPUs for which a project says that it compiles wheels of distributions, which nobody has read.

    They are what the files that build the wheels say, such as a `setup.py` or a workflow. `versions` is a PEP 440 specifier.
    `builds` has the targets by the CUDA that the name or the address of a wheel tells: `cu128`, or `cu12` for each of CUDA 12
    that is not listed.
    """

    name: str
    distributions: tuple[str, ...]
    versions: str
    builds: dict[str, DeclaredCode]
    source: Cited = ()


class ImageSurvey(Row, frozen=True, kw_only=True):
    """A repository whose new tags `provision matrix refresh images` proposes as rows: those that `tags` matches as a whole.

    `tags` is a regular expression with the groups `version` and `system`, and `flavour` if the repository has images of several
    kinds. A tag is new if its `version` is not older than that of every row. Its distribution, C library and Python of the
    distribution are those of a row with the same `system`, its kind is that of a row with the same `flavour`.
    """

    repository: str
    tags: str


class WheelSurvey(Row, frozen=True, kw_only=True):
    """A distribution whose wheels `provision matrix refresh wheels --measure` measures: its newest release and older ones.

    `versions` is the PEP 440 specifier of the releases to choose from, "" for all. `most` is the largest number of wheels for
    amd64 that one run measures; a third of it, at least one, is measured for arm64. `also` are releases that are measured in
    any case. With `of_any_platform`, a release whose only wheel is tagged for any platform is measured, too: its libraries are
    for amd64.
    """

    distribution: str
    versions: str = ""
    most: int = 4
    also: tuple[str, ...] = ()
    of_any_platform: bool = False


class GpuWheel(Row, frozen=True, kw_only=True):
    """The measured GPU code in wheels of a Python distribution, and the libraries for GPUs that they need and contain.

    `versions` is the PEP 440 specifier of the releases covered: the oldest and the newest were measured and agree. The wheels
    are those of the default index, without a local version label, for `platforms`. `sass`, `ptx` and `gfx` are the GPU targets
    as in `Build`, without those for which a library has less than half as many kernels as for its most frequent target; None
    means not measured, an empty tuple means none. `ptx_isa` is the newest PTX ISA version of the PTX listed in `ptx`, ""
    without PTX.

    `runtime` is the CUDA release of the runtime that the wheel contains, linked statically or as a library, which needs a
    driver for its major version; "" when it contains none. `compiler` is the CUDA release of the GPU compiler (ptxas, NVRTC)
    that the wheel contains and runs, and that must support the GPU; "" when it contains none.

    `links` are the shared libraries of CUDA, ROCm and PyTorch that the wheel's libraries need to load (DT_NEEDED) and that it
    does not contain; of several versions of one library it needs any one, because it has a library of its own for each. `opens`
    are the libraries of these kinds that the wheel loads only on use (dlopen), found by their names in its libraries.
    `provides` are those that the wheel itself contains, under the names with which other libraries link to them, and `folders`
    the folders with them. `runpath` are the folders outside of the wheel where its libraries have the loader look for those
    that they need (DT_RPATH, DT_RUNPATH), None when not measured, as in a wheel that links to PyTorch, which loads them before.
    Folders are relative to that of the packages (`site-packages`). `numpy` is the
    specifier of the NumPy releases with which its compiled modules can be imported, "" when no limit was found. `artefacts` are
    the measured wheels of the oldest and newest release in `versions`, newest first, with their SHA-256.
    """

    distribution: str
    versions: str
    platforms: tuple[PlatformName, ...] = ()
    sass: tuple[Sass, ...] | None = None
    ptx: tuple[Ptx, ...] | None = None
    gfx: tuple[Gfx, ...] | None = None
    ptx_isa: CudaRelease = ""
    runtime: CudaRelease = ""
    compiler: CudaRelease = ""
    links: tuple[Soname, ...] = ()
    opens: tuple[Soname, ...] = ()
    provides: tuple[Soname, ...] = ()
    runpath: tuple[str, ...] | None = None
    folders: tuple[str, ...] = ()
    numpy: str = ""
    artefacts: dict[str, Sha256]
    source: Cited = ()


class SystemLibrary(Row, frozen=True, kw_only=True):
    """A shared library by its soname, and the packages of Linux distributions that contain it.

    `packages` maps the name of a package to distributions, spelled as those of images (`debian:13`). With `everywhere`, every
    base image has the library, and no package is named.
    """

    soname: Soname
    packages: dict[str, tuple[LinuxDistribution, ...]] = field(default_factory=dict)
    everywhere: bool = False
    source: Cited = ()

    def package_in(self, distribution: str) -> str:
        """Return the package with the library in a Linux distribution; "" when the matrix knows none."""
        return next((name for name, some in self.packages.items() if distribution in some), "")


class SystemTool(Row, frozen=True, kw_only=True):
    """Programs that Python code starts, or headers with which it compiles, and the packages of Debian and Ubuntu with them.

    In a name of `packages`, `{python}` stands for the series of a Python that the distribution packages; another Python brings
    its headers and tkinter itself; `pythons` has that series by distribution, spelled as those of images (`debian:13`).
    `packages` is () when no distribution has them. `kinds` are the kinds of base images that contain them. `title` is the name
    for messages.
    """

    name: Tool
    title: str
    packages: tuple[str, ...] = ()
    pythons: dict[LinuxDistribution, str] = field(default_factory=dict)
    kinds: tuple[str, ...] = ()
    source: Cited = ()

    @property
    def is_compiler(self) -> bool:
        """Whether it compiles code, which `image: {compiler: none}` is about."""
        return self.name in get_args(Compiler)


class SystemNeed(Row, frozen=True, kw_only=True):
    """What some `versions` of a distribution (a PEP 440 specifier, "" for all) take from the system, and no wheel shows.

    `libraries` are shared libraries by soname that Python code opens; of several versions of one library it needs any one.
    `tools` are programs that it starts, by their name in the matrix (`c-compiler`). With `optional`, only a part of the
    distribution needs them, and the rest works without. `accelerators` restricts the row, () for all.
    """

    distribution: str
    versions: str = ""
    libraries: tuple[Soname, ...] = ()
    tools: tuple[Tool, ...] = ()
    optional: bool = False
    accelerators: tuple[AcceleratorName, ...] = ()
    because: str
    source: Cited = ()


class SystemSurvey(Row, frozen=True, kw_only=True):
    """A distribution whose wheels `provision matrix refresh system-wheels --measure` measures.

    `versions` and `most` are as in `WheelSurvey`. `on_use` are parts of the paths of libraries that only some uses of the
    distribution load, with the reason in `because`.
    """

    distribution: str
    versions: str = ""
    most: int = 2
    on_use: tuple[str, ...] = ()
    because: str = ""


class SystemWheel(Row, frozen=True, kw_only=True):
    """The libraries of the system that the wheels of a Python distribution link to and do not contain.

    `versions`, `platforms` and `artefacts` are as in `GpuWheel`. `links` has the libraries that not every base image has,
    whether a package with them is known or not; of several versions of one library a wheel needs any one. It is () when a wheel
    needs none.
    """

    distribution: str
    versions: str
    platforms: tuple[PlatformName, ...] = ()
    links: tuple[Soname, ...] = ()
    artefacts: dict[str, Sha256]
    source: Cited = ()


class Component(Struct, frozen=True, kw_only=True):
    """A part of the software or hardware stack (`cuda`, `pytorch`, `gpu`) and its releases.

    `virtual` is True when the host provides it; `named` is True when its values are names instead of versions. `series` is the
    number of leading numbers of a version that name its series (1 for a driver, whose branch is `580`); what a version of a
    series without any release can do is unknown. `series` is 0 when rows apply to future versions, too, as a newer C library
    runs what older ones ran.
    """

    name: str
    title: str
    releases: tuple[Release, ...] = ()
    virtual: bool = False
    named: bool = False
    series: int = 0

    def has_series_of(self, version: Version) -> bool:
        """Return whether some release is of the series of a version; True for a component without series."""
        wanted = version.release[: self.series]
        return not self.series or any((*release.version.release, 0, 0)[: len(wanted)] == wanted for release in self.releases)

    def newest_before(self, version: Version) -> Version | None:
        """Return the version of the newest release if `version` is newer and of a series without any release.

        None otherwise, and when the component has no releases.
        """
        newest = max((release.version for release in self.releases if release.version.release), default=None)
        if newest is None or not version.release or self.has_series_of(version) or version < newest:
            return None
        return newest


WHOLE = Place("the matrix")
"""The `Place` returned for rows whose file and line are unknown."""


class Matrix(Struct, frozen=True, kw_only=True):
    """A validated compatibility matrix: the rows of one directory of YAML files.

    `order` are the names of the components; each may only require later ones. `digest` is the hash of the files. `positions`
    has the file and line of every rule (`rule:NAME`), release (`pytorch==2.7.1`), build (`pytorch==2.7.1+cu126`), limit
    (`limit:NAME`), shared file (`shared-file:NAME`), published wheels (`published:NAME`), declared targets (`declared:NAME`),
    row of variables (`variables:NAME`), failure (`failure:NAME`), statement in a log (`statement:NAME`), distribution
    (`distribution:NAME`, `distribution:NAME VERSIONS` for what some versions imply, `opens:NAME VERSIONS` for what they open),
    GPU wheel (`wheel:DISTRIBUTION VERSIONS`), and row on what wheels need of the system (`system-wheel:`, `system-need:`
    likewise).
    """

    order: tuple[str, ...]
    components: dict[str, Component]
    rules: tuple[Rule, ...]
    branches: tuple[DriverBranch, ...]
    gpus: tuple[Gpu, ...]
    images: tuple[ImageFacts, ...]
    citations: dict[str, Citation]
    digest: str
    positions: dict[str, Place] = field(default_factory=dict)
    distributions: tuple[Distribution, ...] = ()
    limits: tuple[DistributionLimit, ...] = ()
    toolkit_files: tuple[ToolkitFile, ...] = ()
    shared_files: tuple[SharedFile, ...] = ()
    published: tuple[PublishedWheels, ...] = ()
    declared: tuple[DeclaredTargets, ...] = ()
    overrides: tuple[GfxOverride, ...] = ()
    seen_to_run: tuple[SeenToRun, ...] = ()
    performance: tuple[Performance, ...] = ()
    chips: tuple[Chip, ...] = ()
    variables: tuple[Variables, ...] = ()
    failures: tuple[Failure, ...] = ()
    statements: tuple[Statement, ...] = ()
    driver_packages: tuple[DriverPackage, ...] = ()
    host_repositories: tuple[HostRepository, ...] = ()
    host_packages: tuple[HostPackage, ...] = ()
    source_builds: tuple[SourceBuild, ...] = ()
    wheels: tuple[GpuWheel, ...] = ()
    system_wheels: tuple[SystemWheel, ...] = ()
    system_libraries: tuple[SystemLibrary, ...] = ()
    system_tools: tuple[SystemTool, ...] = ()
    system_needs: tuple[SystemNeed, ...] = ()
    families: tuple[Family, ...] = ()
    python_builds: tuple[PythonBuild, ...] = ()
    kernels: dict[str, Kernels] = field(default_factory=dict)
    sonames: dict[str, tuple[Sonames, ...]] = field(default_factory=dict)

    def python_build(self, python: str, platform: str) -> PythonBuild | None:
        """Return the archive of a Python series (`3.12`) for a platform; None when there is none."""
        found = (one for one in self.python_builds if platform in one.platforms)
        return next((one for one in found if series(str(one.version)) == series(python)), None)

    def place_of(self, name: str) -> Place:
        """Return the file and line of a row by its key in `positions`; `WHOLE` when there is no such key."""
        return self.positions.get(name, WHOLE)

    def native_cuda(self, driver: Version) -> Version | None:
        """Return the newest CUDA that a driver runs natively; None when its branch is not in the matrix."""
        branch = self.branch_of(str(driver.release[0])) if driver.release else None
        return branch.native_cuda if branch is not None else None

    def branch_of(self, driver: str) -> DriverBranch | None:
        """Return the branch of an NVIDIA driver such as `535.104.05`, or `537.13` on Windows; None when it is not listed."""
        number = driver.partition(".")[0]
        return next((branch for branch in self.branches if number in {branch.branch, *branch.windows}), None)
