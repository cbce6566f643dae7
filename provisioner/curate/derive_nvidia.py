"""Derivers of the matrix files of NVIDIA's libraries and compiler, from their wheels.

cuDNN, NCCL, cuSPARSELt, NVSHMEM and TensorRT have their own version numbers and one wheel for each CUDA major. The others are
parts of the CUDA toolkit; the metapackage cuda-toolkit (11.8 and newer) pins their versions. A wheel that it never pins is
assigned by its version if the library is numbered like the toolkit (NVRTC 12.1.66 is of CUDA 12.1), otherwise to the CUDA major
in its name. The compiler nvcc has a release for each toolkit.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

from provisioner.curate.derive import Deriver, Session, Source, by_platform, by_version, for_platform, joined, needs, release
from provisioner.curate.readings import CUDNN_TARGETS, NCCL_TARGETS, PTXAS_TARGETS, glibc_of
from provisioner.curate.wheel_facts import glibc, minors, newest_minor, pythons, released
from provisioner.matrix.model import Release
from provisioner.platforms import LINUX_PLATFORMS
from provisioner.versions import Version as MatrixVersion
from provisioner.versions import dotted

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from packaging.version import Version

    from provisioner.curate.derive import Reading
    from provisioner.curate.wheel_index import WheelIndex
    from provisioner.matrix.model import Build

MAJORS = ("13", "12", "11")
METAPACKAGE = "cuda-toolkit"
BESIDE = "facts that no wheel holds belong in a file beside this one."

LIBRARIES = {
    "cublas": ("cublas", "NVIDIA cuBLAS", False),
    "cufft": ("cufft", "NVIDIA cuFFT", False),
    "curand": ("curand", "NVIDIA cuRAND", False),
    "cusolver": ("cusolver", "NVIDIA cuSOLVER", False),
    "cusparse": ("cusparse", "NVIDIA cuSPARSE", False),
    "cufile": ("cufile", "NVIDIA cuFile (GPUDirect Storage)", False),
    "nvjitlink": ("nvjitlink", "NVIDIA nvJitLink", True),
    "nvrtc": ("cuda-nvrtc", "NVIDIA NVRTC", True),
    "cupti": ("cuda-cupti", "NVIDIA CUPTI", True),
    "nvtx": ("nvtx", "NVIDIA NVTX", True),
}
"""Component -> the middle of its wheels' names, its title, and whether its releases are numbered like the toolkit's."""

ENDINGS = {"": "13", "-cu12": "12", "-cu11": "11"}
"""Ending of the wheel's name -> CUDA major. From CUDA 13 on there is no ending, and the version begins with the major."""


def _per_major(
    component: str, about: str, edit: str = BESIDE, readings: tuple[Reading, ...] = (), *, wheels: str = ""
) -> Deriver:
    """Return the deriver of wheels that exist for each CUDA major, with a build for each major and platform.

    `wheels` is the name of their projects, with `{}` for the major; "" for `nvidia-<component>-cu{}`.
    """
    named = wheels or f"nvidia-{component}-cu{{}}"
    projects = {major: named.format(major) for major in MAJORS}
    key = f"{component}-wheels"

    def releases(session: Session) -> Iterator[Release]:
        """Yield a release with a build for each platform: the wheels of one release differ between platforms.

        NCCL 2.26.2 for arm64 was built with a newer CUDA, and cuDNN for arm64 has code for Thor.
        """
        tables = {major: by_version(session.index.wheels(project)) for major, project in projects.items()}
        for version in sorted({version for table in tables.values() for version in table}, reverse=True):
            builds = [
                session.build(
                    f"cu{major}",
                    found,
                    platforms=(platform,),
                    requires=needs(
                        cuda=f"=={major}.*",
                        python=pythons(found, newest=newest_minor(found)) if any(map(minors, found)) else "",
                        glibc=glibc([session.representative(found)]),
                    ),
                    source=(key,),
                )
                for major, table in tables.items()
                for platform, found in by_platform(table.get(version, ()), LINUX_PLATFORMS)
            ]
            yield release([wheel for table in tables.values() for wheel in table.get(version, ())], builds)

    source = Source(
        title=f"{named.format('11, -cu12 and -cu13')} wheels on the package index",
        where="versions, platform tags and upload days of the wheels, whose names say the CUDA major",
        project=projects["12"],
    )
    return Deriver(
        component=component,
        about=about,
        edit=edit,
        sources={key: source},
        releases=releases,
        projects=tuple(projects.values()),
        readings=(*readings, glibc_of(component, projects["12"])),
    )


def _of_toolkit(component: str) -> Deriver:
    """Return the deriver of a toolkit library; each release needs the CUDA toolkits that contain it."""
    stem, title, is_numbered = LIBRARIES[component]
    key = f"{component}-wheels"
    source = Source(
        title=f"nvidia-{stem} and cuda-toolkit wheels on the package index",
        where="versions and platform tags of the wheels; pins of the toolkits' libraries in the METADATA of cuda-toolkit",
        project=METAPACKAGE,
    )

    def releases(session: Session) -> Iterator[Release]:
        toolkits = _toolkits(session.index)
        found: dict[Version, Release] = {}
        for ending, major in ENDINGS.items():
            project = f"nvidia-{stem}{ending}"
            for version, wheels in by_version(session.index.wheels(project)).items():
                numbers = version.release
                level = f"{numbers[0]}.{numbers[1]}" if is_numbered else str(numbers[0] if not ending else major)
                cuda = _pinning(toolkits[project], version) or f"=={level}.*"
                builds = [
                    session.build(
                        "wheel",
                        some,
                        platforms=(platform,),
                        requires=needs(cuda=cuda, glibc=glibc([session.representative(some)])),
                        source=(key,),
                    )
                    for platform, some in by_platform(wheels, LINUX_PLATFORMS)
                ]
                if builds:
                    found[version] = release(wheels, joined(builds))
        return (found[version] for version in sorted(found, reverse=True))

    return Deriver(
        component=component,
        about=f"{title}: the releases that have wheels, and the CUDA toolkits each belongs to.",
        edit=BESIDE,
        sources={key: source},
        releases=releases,
    )


COMPILER = "cuda-nvcc"
OF_A_MANIFEST = {"12.5.1": "12.5.82"}
"""Toolkit -> its nvcc as NVIDIA's redistributable manifest has it, where the metapackage pins that of the toolkit before."""


def _compilers(session: Session) -> Iterator[Release]:
    """Yield a release of nvcc for each toolkit; of a toolkit that the file has already, the day of release remains."""
    days = {str(known.version): known.released for known in session.old.releases}
    toolkits = {dotted(wheel.version.release[:3]): wheel for wheel in session.index.wheels(METAPACKAGE)}
    found: dict[str, Build] = {}
    pins = _toolkits(session.index)
    for ending in ENDINGS:
        project = f"nvidia-{COMPILER}{ending}"
        for version, wheels in by_version(for_platform(session.index.wheels(project), LINUX_PLATFORMS[0])).items():
            of_manifests = [toolkit for toolkit, named in OF_A_MANIFEST.items() if named == str(version)]
            for toolkit in (*of_manifests, *_pinning(pins[project], version)):
                found.setdefault(toolkit, session.build("toolkit", wheels, source=("nvcc-toolkit-pins",)))
    for toolkit, wheel in reversed(toolkits.items()):
        if toolkit in found:
            yield Release(
                version=MatrixVersion.parse(toolkit),
                released=days.get(toolkit) or released([wheel]),
                builds=(found[toolkit],),
            )


NVCC = Deriver(
    component="nvcc",
    about="The CUDA compiler, a release for each toolkit: what its ptxas compiles for (`sass` machine code, `ptx`).",
    edit="older toolkits belong in nvcc_legacy.yaml, host compilers and C libraries in nvcc_rules.yaml.",
    sources={
        "nvcc-toolkit-pins": Source(
            title="cuda-toolkit metapackage wheels; NVIDIA redistributable manifests (nixos-cuda/cuda-legacy @9856d70)",
            where=(
                "the nvcc of each toolkit: METADATA and cuda_nvcc; "
                "for 12.5.1 the manifest says 12.5.82, the metapackage 12.5.40"
            ),
            project=METAPACKAGE,
        )
    },
    releases=_compilers,
    projects=tuple(f"nvidia-{COMPILER}{ending}" for ending in ENDINGS),
    readings=(PTXAS_TARGETS,),
)


Pins = dict[str, list[tuple[str, SpecifierSet]]]
"""Project -> each cuda-toolkit release that requires the project, oldest first, with the specifier of this requirement."""


def _toolkits(index: WheelIndex) -> Pins:
    """Return what each cuda-toolkit release requires: an exact release of a library (`==13.1.1.3.*`), of nvJitLink a range.

    The range (`>=13.0.88,<14`) covers all later releases of the major.
    """
    metapackages = index.wheels(METAPACKAGE)
    index.read_ahead(metapackages)
    found: Pins = defaultdict(list)
    for wheel in metapackages:
        toolkit = dotted(wheel.version.release[:3])
        for requirement in index.requires(wheel):
            if len(requirement.specifier):
                found[canonicalize_name(requirement.name)].append((toolkit, requirement.specifier))
    return found


def _pinning(pins: Iterable[tuple[str, SpecifierSet]], version: Version) -> tuple[str, ...]:
    """Return the cuda-toolkit releases in `pins` whose specifiers allow `version`, each once."""
    return tuple(dict.fromkeys(toolkit for toolkit, allowed in pins if version in allowed))


NVIDIA = (
    _per_major(
        "cudnn",
        "cuDNN: one build for each CUDA major, which serves the whole major when linked dynamically.",
        "what no wheel says belongs in cudnn_support.yaml and cudnn_legacy.yaml.",
        (CUDNN_TARGETS,),
    ),
    _per_major(
        "nccl",
        "NCCL: one build for each CUDA major. `sass` is what it holds kernels for; a single GPU never calls it.",
        "releases that no wheel holds belong in nccl_legacy.yaml.",
        (NCCL_TARGETS,),
    ),
    _per_major("cusparselt", "cuSPARSELt: one build for each CUDA major."),
    _per_major("nvshmem", "NVSHMEM: one build for each CUDA major."),
    _per_major(
        "tensorrt",
        # The projects tensorrt-cuNN-libs have no wheels: they fetch the libraries from NVIDIA's own index when installed.
        "TensorRT from 10 on: one build for each CUDA major. No index has its libraries, so no row tells their targets.",
        "what no wheel says belongs in tensorrt_rules.yaml, older releases in tensorrt_legacy.yaml.",
        wheels="tensorrt-cu{}-bindings",
    ),
    *(_of_toolkit(component) for component in LIBRARIES),
    NVCC,
)
