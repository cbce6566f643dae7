"""How each host is brought to a stack: the packages, repositories and downloads of what the stack takes from its host.

They are chosen only if an output of the spec sets up hosts, for a lock otherwise has no facts of a machine. What Python wheels
contain is no part of them: beside a framework from wheels, a host needs neither CUDA's toolkit nor cuDNN.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from provisioner.components import FRAMEWORKS
from provisioner.host.facts import stated
from provisioner.outputs import OUTPUTS
from provisioner.resolver.requirement import Key, ReleaseCandidate, build_of, is_of_system
from provisioner.resolver.rules.host_packages import Wanted, allows, driver_packages_for, host_package_for, knows_gpus
from provisioner.setups import INSTALLED, BuildFromSource, HostSetup, Repository, SetupStep
from provisioner.versions import kernel_flavour

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from provisioner.matrix.model import DriverPackage, HostPackage, HostRepository, ModuleFlavour
    from provisioner.request import TargetHost
    from provisioner.resolver.problem import Problem
    from provisioner.resolver.requirement import Candidate

_FIRST_WITH_TWO_FLAVOURS = 515
"""The driver branch from which on there are open kernel modules; see the rule driver-515-module-flavours of the matrix."""

_OF_MACOS = ("webdriver", "cuda_driver", "xcode")
_DRIVERS = ("driver", "amdgpu")
_FROM_WHEELS = ("cudnn", "nccl")
"""The libraries that frameworks from wheels bring."""


def host_setups(problem: Problem, pins: Mapping[Key, Candidate]) -> tuple[HostSetup, ...]:
    """Return the setups of the hosts, each once; () if no output of the spec sets up hosts.

    A host that does not state its operating system has none.
    """
    if not any(OUTPUTS[output.format].sets_up_hosts for output in problem.request.spec.files):
        return ()
    found: list[HostSetup] = []
    for target in problem.request.hosts:
        setup = _Chooser(problem, pins, target).setup()
        if setup is not None and setup not in found:
            found.append(setup)
    return tuple(sorted(found, key=lambda setup: setup.os))


class _Chooser:
    """Chooses the setup of one host."""

    def __init__(self, problem: Problem, pins: Mapping[Key, Candidate], target: TargetHost) -> None:
        self._problem, self._matrix, self._request = problem, problem.matrix, problem.request
        self._host, self._pins = target.host, pins
        self._facts = {key.component: one.label for key, one in pins.items() if key.scope in {"", target.label}}
        for fact in ("os", "kernel", "secure_boot"):
            if (value := stated(self._host, fact)) is not None:
                self._facts[fact] = value
        self._os = f"macos {self._facts.get('macos', '')}" if self._request.system == "macos" else self._facts.get("os", "")
        builds = [build_of(pins.get(Key(name))) for name in FRAMEWORKS]
        spec_build = self._request.spec.build
        self._is_compiled = any(one is not None and one.compiled for one in builds) or (
            spec_build is not None and spec_build.kind == "pytorch"
        )
        self._has_wheels = any(Key(name) in pins for name in FRAMEWORKS) and not self._is_compiled

    def setup(self) -> HostSetup | None:
        """Return the setup of the host; None if its operating system, or on macOS its build, is unknown."""
        if not self._os.partition(" ")[2]:
            return None
        steps = tuple(self._steps())
        names = dict.fromkeys(name for step in steps for name in step.repositories)
        return HostSetup(
            os=self._release_of_system(),
            driver_module=self._module if "driver" in {step.component for step in steps} else "",
            repositories=tuple(self._repository(name, steps) for name in names),
            steps=steps,
            build=self._build() if self._is_compiled else None,
        )

    def _release_of_system(self) -> str:
        """Return the host's system as far as packages depend on it: `rocky 9` for a host with `rocky 9.4`."""
        known = self._matrix.components["os"].releases if "os" in self._matrix.components else ()
        return next((one.version.text for one in known if is_of_system(self._os, [one.version.text])), self._os)

    @property
    def _module(self) -> ModuleFlavour | Literal[""]:
        """The flavour of the kernel modules of NVIDIA's driver; "" if it depends on GPUs that are unknown."""
        branch = self._facts.get("driver", "").partition(".")[0]
        if branch.isdecimal() and int(branch) < _FIRST_WITH_TWO_FLAVOURS:
            return "proprietary"
        if stated(self._host, "driver_module") is None and not knows_gpus(self._matrix, self._host):
            return ""
        return "open" if self._facts.get("driver_module") == "open" else "proprietary"

    def _steps(self) -> Iterator[SetupStep]:
        accelerator = self._request.accelerator
        # The driver of a WSL is the one of Windows, and that of a Jetson is a part of Jetson Linux.
        is_given = self._host.virtualization in {"wsl1", "wsl2"} or self._host.jetson is not None
        if accelerator == "cuda" and self._request.system == "linux" and not is_given:
            yield from self._driver()
        if accelerator == "rocm" and "amdgpu" in self._facts and not is_given:
            step = self._step("amdgpu", self._facts["amdgpu"])
            if step.packages:
                yield self._step("kernel_headers", "")
            yield step
        if accelerator == "cuda" and self._request.system == "macos":
            yield from (self._step(name, self._facts[name]) for name in _OF_MACOS if name in self._facts)
        if self._request.runs == "host":
            yield from self._toolkits()
        elif accelerator == "cuda":
            yield self._step("container_toolkit", "")

    def _driver(self) -> Iterator[SetupStep]:
        driver = self._facts.get("driver")
        if driver is None:
            return
        packages = driver_packages_for(self._matrix, self._facts, module=self._module, platform=self._host.platform)
        pairs = ((one, host_package_for(self._matrix, one)) for one in (self._wanted("driver", driver, of) for of in packages))
        found = next(((wanted, row) for wanted, row in pairs if row is not None), None)
        if found is None or not self._module:
            yield self._without_packages("driver", driver)
            return
        wanted, row = found
        if wanted.driver_package is not None and wanted.driver_package.kind != "precompiled":
            yield self._step("kernel_headers", "")
        yield self._of_row(row, wanted)

    def _toolkits(self) -> Iterator[SetupStep]:
        """Yield the toolkit and libraries that the host provides to what runs without a container."""
        if self._request.accelerator == "cuda":
            toolkit = self._facts.get("nvcc") or ("" if self._has_wheels else self._facts.get("cuda", ""))
            if toolkit:
                yield self._step("nvcc", toolkit)
            if not self._has_wheels:
                yield from (self._step(name, self._facts[name]) for name in _FROM_WHEELS if name in self._facts)
        if self._request.accelerator == "rocm" and not self._has_wheels and "rocm" in self._facts:
            yield self._step("rocm", self._facts["rocm"])

    def _wanted(self, component: str, version: str, package: DriverPackage | None = None) -> Wanted:
        return Wanted(
            component=component,
            version=version,
            os=self._os,
            cuda=self._facts.get("cuda", ""),
            kernel=self._facts.get("kernel", ""),
            module=self._module,
            driver_package=package,
        )

    def _step(self, component: str, version: str) -> SetupStep:
        wanted = self._wanted(component, version)
        row = host_package_for(self._matrix, wanted)
        return self._without_packages(component, version) if row is None else self._of_row(row, wanted)

    def _without_packages(self, component: str, version: str) -> SetupStep:
        """Return the step of a component that no row says how to install; of a driver that the host has, it compares."""
        is_there = component in _DRIVERS and stated(self._host, component) == version
        return SetupStep(component=component, version=version, kind=INSTALLED if is_there else "")

    def _of_row(self, row: HostPackage, wanted: Wanted) -> SetupStep:
        package = wanted.driver_package
        return SetupStep(
            component=row.component,
            version=wanted.version,
            repositories=row.repositories,
            stream=wanted.filled(row.stream),
            first=tuple(map(wanted.filled, row.first)),
            lock=wanted.filled(row.lock),
            packages=tuple(map(wanted.filled, row.packages)),
            kind=package.kind if package is not None else "",
            kernel=self._kernels(package) if package is not None else "",
            url=wanted.filled(row.url),
            file=wanted.filled(row.file),
            sha256=row.sha256,
            sources=self._sources((*(package.source if package is not None else ()), *row.source)),
        )

    def _kernels(self, package: DriverPackage) -> str:
        """Return the pattern of the kernels of a driver package with prebuilt modules (`6.8.*-generic`); "" for any other."""
        flavour = kernel_flavour(self._facts.get("kernel", ""))
        if not package.flavours or flavour not in package.flavours:
            return ""
        return f"{package.kernel.removeprefix('==')}-{flavour}"

    def _repository(self, name: str, steps: Iterable[SetupStep]) -> Repository:
        """Return a repository for the host's system and platform, without an address if the matrix has none for it."""
        version = next(step.version for step in steps if name in step.repositories)
        row = next((one for one in self._matrix.host_repositories if one.name == name and self._is_usable(one)), None)
        if row is None:
            return Repository(name=name, kind="package")
        return Repository(
            name=name,
            kind=row.kind,
            package=row.package,
            url=row.urls.get(self._request.platform, ""),
            sha256=row.sha256.get(self._request.platform, ""),
            line=self._wanted(name, version).filled(row.line),
            key=row.key,
            pin=row.pin,
            sources=self._sources(row.source),
        )

    def _is_usable(self, row: HostRepository) -> bool:
        return is_of_system(self._os, row.os) and (not row.urls or self._request.platform in row.urls)

    def _build(self) -> BuildFromSource | None:
        for row in self._matrix.source_builds:
            candidate = self._pins.get(Key(row.component))
            build = build_of(candidate)
            if not isinstance(candidate, ReleaseCandidate) or not is_of_system(self._os, row.os):
                continue
            version = str(candidate.release.version)
            if not allows(row.versions, version):
                continue
            if row.builds and (build is None or build.name not in row.builds):
                continue
            return BuildFromSource(
                component=row.component,
                version=version,
                repository=row.repository,
                environment=dict(sorted(row.set.items())),
                patches=row.patches,
                because=row.because,
                sources=self._sources(row.source),
            )
        return None

    def _sources(self, keys: Iterable[str]) -> tuple[str, ...]:
        citations = self._matrix.citations
        return tuple(dict.fromkeys(citations[key].title for key in keys if key in citations))
