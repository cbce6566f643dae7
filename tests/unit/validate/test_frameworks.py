"""Checks of frameworks whose wheels are too large for a test, on stand-ins that have what the checks look at.

Each check was run once with real wheels, on a machine without a GPU: vLLM 0.33.0, cuDF 26.10.2, CuPy 14.2.0, JAX 0.12.0.1.
"""

from __future__ import annotations

import ctypes
import json
import shutil
import subprocess
import sys
import venv
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest
from msgspec.structs import replace

from provisioner.validate.compare_frameworks import compare_frameworks
from provisioner.validate.measurement import check_source, parse_measurement, script
from provisioner.validate.programs import programs_for
from tests.unit.validate.locks import lock_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    Compile = Callable[..., Path]

EXTENSION = """
extern void *PyModule_Create2(void *, int);
static void *definition[13] = {(void *)1, 0, 0, 0, 0, "NAME", 0, (void *)-1};
void *PyInit_NAME(void) { return PyModule_Create2(definition, 3); }
"""
"""An empty extension module of the stable ABI, without Python's headers: the fields of PyModuleDef (moduleobject.h)."""


@pytest.fixture
def compiled(tmp_path: Path) -> Compile:
    """Compile a library, which may need others by name that are not there when it is loaded."""
    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is None or not sys.platform.startswith("linux") or sys.maxsize < 1 << 32:
        pytest.skip("needs a C compiler on Linux")

    def compile_library(path: Path, source: str, *needs: str) -> Path:
        path.parent.mkdir(parents=True, exist_ok=True)
        scratch = tmp_path / "scratch"
        scratch.mkdir(exist_ok=True)
        (scratch / "source.c").write_text(source)
        common = [str(compiler), "-shared", "-fPIC"]
        for name in needs:
            subprocess.run([*common, f"-Wl,-soname,{name}", "-o", scratch / name, "-x", "c", "/dev/null"], check=True)
        others = [str(scratch / name) for name in needs]
        subprocess.run([*common, "-Wl,--no-as-needed", "-o", path, scratch / "source.c", *others], check=True)
        return path

    return compile_library


def verdicts(folder: Path, name: str, version: str, files: Mapping[str, str], *, is_asked: bool = True) -> dict[str, Any]:
    """The fields of a package that is installed as these modules say: verdict and note by name."""
    venv.create(folder / "env", with_pip=False, symlinks=True)
    site = next((folder / "env").glob("lib/python*/site-packages"))
    for path, text in files.items():
        (site / path).parent.mkdir(parents=True, exist_ok=True)
        (site / path).write_text(text, encoding="utf-8")
    if (folder / "site").exists():
        shutil.copytree(folder / "site", site, dirs_exist_ok=True)
    lock = lock_of({name: version})
    lock = replace(lock, asked={f"packages.{name}": "any version"} if is_asked else {"requires.python": "3.11"})
    command = [str(folder / "env/bin/python"), "-c", script(), "3", str(programs_for(lock, 3, has_entry_point=False))]
    finished = subprocess.run(command, capture_output=True, text=True, check=True, cwd=folder)
    fields = compare_frameworks(lock, parse_measurement(finished.stdout))
    return {field.name.removeprefix(name).strip() or "import": (field.verdict, field.note) for field in fields}


VLLM = {
    "vllm/__init__.py": ('__version__ = "0.33.0"\n\ndef __getattr__(name):\n    from vllm.engine import LLM\n    return LLM\n'),
    "vllm/engine.py": "class LLM:\n    pass\n",
}
GOOD = ("yes", "")


@pytest.mark.parametrize(
    ("needs", "changes", "expected"),
    [
        ((), {}, {"import": GOOD, "engine": GOOD, "kernels": GOOD}),
        (
            *(("libcuda.so.99",), {}),
            {"import": ("yes", "kernels that need the driver 1"), "engine": GOOD, "kernels": GOOD},
        ),
        (
            *(("libcublas.so.99",), {}),
            {
                "import": GOOD,
                "engine": GOOD,
                "kernels": (
                    "no",
                    "ImportError: libcublas.so.99: cannot open shared object file: No such file or directory",
                ),
            },
        ),
        (
            (),
            {"vllm/engine.py": "import transformers_of_no_version\n"},
            {
                "import": GOOD,
                "engine": ("no", "ModuleNotFoundError: No module named 'transformers_of_no_version'"),
                "kernels": GOOD,
            },
        ),
        (
            (),
            {"vllm/__init__.py": '__version__ = "0.32.0"\nLLM = dict\n'},
            {"import": ("no", ""), "engine": GOOD, "kernels": GOOD},
        ),
    ],
)
def test_vllm_is_its_engine_and_its_kernels(
    tmp_path: Path, compiled: Compile, needs: tuple[str, ...], changes: dict[str, str], expected: dict[str, Any]
) -> None:
    compiled(tmp_path / "site/vllm/_C.abi3.so", EXTENSION.replace("NAME", "_C"), *needs)
    assert verdicts(tmp_path, "vllm", "0.33.0", VLLM | changes) == expected


def test_a_vllm_lacks_a_kernel_that_its_platform_imports(tmp_path: Path, compiled: Compile) -> None:
    compiled(tmp_path / "site/vllm/_C.abi3.so", EXTENSION.replace("NAME", "_C"))
    text = "import vllm._C\nimport vllm._C_stable_libtorch  # noqa\nwith suppress(ImportError):\n    import vllm._other_C\n"
    found = verdicts(tmp_path, "vllm", "0.33.0", VLLM | {"vllm/platforms/cpu.py": text})
    assert found["kernels"] == ("no", "ImportError: vllm._C_stable_libtorch is not there, and vllm/platforms/cpu.py imports it")


def test_a_vllm_without_any_kernel_is_a_no(tmp_path: Path) -> None:
    assert verdicts(tmp_path, "vllm", "0.33.0", VLLM)["kernels"] == ("no", "")


RMM = """\
import ctypes, os
__version__ = "26.10.00"
ctypes.CDLL(os.path.join(os.path.dirname(__file__), "librmm.so"))
"""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (RMM, {"import": GOOD, "library": GOOD}),
        (RMM.replace("26.10.00", "26.08.00"), {"import": ("no", ""), "library": GOOD}),
        ('__version__ = "26.10.00"\n', {"import": GOOD, "library": ("no", "")}),
    ],
)
def test_a_package_of_rapids_is_its_library(tmp_path: Path, compiled: Compile, text: str, expected: dict[str, Any]) -> None:
    compiled(tmp_path / "site/rmm/librmm.so", "int x;")
    assert verdicts(tmp_path, "rmm-cu12", "26.10.0", {"rmm/__init__.py": text}) == expected


CUPY = {
    "cupy/__init__.py": '__version__ = "14.2.0"\n',
    "cupy/cuda/__init__.py": "from cupy_backends.cuda.libs import nvrtc\n",
    "cupy/cuda/cufft.py": "",
    **{f"cupy_backends/cuda/libs/{name}.py": "" for name in ("cublas", "curand", "cusolver", "cusparse")},
    "cupy_backends/cuda/libs/nvrtc.py": """\
getVersion = lambda: (12, 9)
createProgram = lambda *_: None
compileProgram = lambda *_: None
getPTX = lambda _: b".visible .entry twice("
""",
}
WITHOUT = {"cupy_backends/cuda/libs/cublas.py": "raise ImportError('libcublas.so.12: cannot open shared object file')\n"}


@pytest.mark.parametrize(
    ("changes", "is_asked", "expected"),
    [
        ({}, True, {"import": ("yes", "nvrtc 12.9"), "compile": GOOD, "libraries": GOOD}),
        (
            *(WITHOUT, True),
            {
                "import": ("yes", "nvrtc 12.9"),
                "compile": GOOD,
                "libraries": ("no", "ImportError: libcublas.so.12: cannot open shared object file"),
            },
        ),
        (WITHOUT, False, {"import": ("yes", "nvrtc 12.9, without cublas"), "compile": GOOD}),
    ],
)
def test_the_libraries_of_cupy_are_asked_for_where_the_spec_names_it(
    tmp_path: Path,
    changes: dict[str, str],
    is_asked: bool,  # noqa: FBT001 - a parameter of the test
    expected: dict[str, Any],
) -> None:
    assert verdicts(tmp_path, "cupy-cuda12x", "14.2.0", CUPY | changes, is_asked=is_asked) == expected


VERSIONS = """
def cupti_get_version():
    raise RuntimeError("Unknown CUPTI error 999. This probably means that JAX was unable to load cupti.")

def cublas_get_version():
    return 131000
"""


@pytest.mark.parametrize("is_loaded", [True, False])
def test_a_cupti_that_asks_for_the_driver_is_a_library_that_is_loaded(
    tmp_path: Path,
    compiled: Compile,
    monkeypatch: pytest.MonkeyPatch,
    is_loaded: bool,  # noqa: FBT001 - a parameter of the test
) -> None:
    with suppress(OSError):
        ctypes.CDLL("libcuda.so.1")
        pytest.skip("this machine has a driver")
    library = compiled(tmp_path / "libcupti.so.13", "int x;")
    before = f"import ctypes\nctypes.CDLL({str(library)!r})\n" if is_loaded else ""
    (tmp_path / "plugin").mkdir()
    (tmp_path / "plugin/_versions.py").write_text(before + VERSIONS)
    # A process of its own, because what is loaded stays loaded.
    checked = check_source("framework") + check_source("frameworks/jax")
    program = f"{checked}\nprobe = Probe(3, ['jax', 'asked'])\nprobe.outcome('libraries', are_loaded, probe, 'plugin')\n"
    program += "print(json.dumps(probe.found))\n"
    finished = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=tmp_path)
    found = json.loads(finished.stdout)
    assert found["facts"] == ({"cublas": "131000", "cupti": "loaded"} if is_loaded else {"cublas": "131000"})
    assert found["outcomes"] == {"libraries": True if is_loaded else None}


@pytest.mark.parametrize("needs", [(), ("libamdhip64.so.99",)])
def test_a_plug_in_of_jax_for_rocm_is_its_modules(tmp_path: Path, compiled: Compile, needs: tuple[str, ...]) -> None:
    (tmp_path / "jax_rocm7_plugin").mkdir()
    (tmp_path / "jax_rocm7_plugin/__init__.py").touch()
    compiled(tmp_path / "jax_rocm7_plugin/_solver.so", EXTENSION.replace("NAME", "_solver"), *needs)
    program = check_source("frameworks/jax") + "\nprint(are_importable('jax_rocm7_plugin'))\n"
    finished = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, cwd=tmp_path)
    if needs:
        assert finished.stderr.splitlines()[-1].startswith("ImportError: libamdhip64.so.99: cannot open shared object file")
    else:
        assert finished.stdout == "True\n", finished.stderr


@pytest.mark.parametrize(
    ("version", "number", "verdict"),
    [("2.26.2.post1", 22602, "yes"), ("2.32.3", 23203, "yes"), ("2.7.8", 2708, "yes"), ("2.32.3", 23202, "no")],
)
def test_an_nccl_is_the_release_that_its_library_states(
    tmp_path: Path, compiled: Compile, version: str, number: int, verdict: str
) -> None:
    library = "nvidia/nccl/lib/libnccl.so.2"
    compiled(tmp_path / "site" / library, f"int ncclGetVersion(int *version) {{ *version = {number}; return 0; }}")
    metadata = f"nvidia_nccl_cu12-{version}.dist-info"
    files = {
        f"{metadata}/METADATA": f"Metadata-Version: 2.1\nName: nvidia-nccl-cu12\nVersion: {version}\n",
        f"{metadata}/RECORD": f"{library},,\n{metadata}/METADATA,,\n{metadata}/RECORD,,\n",
    }
    found = verdicts(tmp_path, "nvidia-nccl-cu12", version, files)
    assert (found["import"][0], found["release"][0]) == ("yes", verdict)


CUDNN = """
unsigned long cudnnGetVersion(void) { return NUMBER; }
int cudnnOpsVersionCheck(void) { return STATUS; }
const char *names[] = {"libcudnn_ops.so", "cudnnOpsVersionCheck"};
"""


@pytest.mark.parametrize(
    ("version", "number", "status", "part", "expected"),
    [
        ("9.10.2.21", 91002, 0, "there", {"parts": "yes", "release": "yes"}),
        ("8.9.2.26", 8902, 0, "there", {"parts": "yes", "release": "yes"}),
        ("9.10.2.21", 91001, 0, "there", {"parts": "yes", "release": "no"}),
        ("9.10.2.21", 91002, 1, "there", {"parts": "yes", "release": "no"}),
        ("9.10.2.21", 91002, 0, "gone", {"parts": "no"}),
        ("9.10.2.21", 91002, 1, "waiting", {"parts": "yes", "release": "yes"}),  # nothing says that it is of another release
    ],
)
def test_a_cudnn_is_of_one_release_with_all_of_its_parts(
    tmp_path: Path, compiled: Compile, *, version: str, number: int, status: int, part: str, expected: dict[str, str]
) -> None:
    major, folder = version[0], "nvidia/cudnn/lib"
    library = f"{folder}/libcudnn.so.{major}"
    compiled(tmp_path / "site" / library, CUDNN.replace("NUMBER", str(number)).replace("STATUS", str(status)))
    needs = ("libcublas.so.99",) if part == "waiting" else ()
    if part != "gone":
        compiled(tmp_path / "site" / folder / f"libcudnn_ops.so.{major}", "int some;", *needs)
    metadata = f"nvidia_cudnn_cu12-{version}.dist-info"
    files = {
        f"{metadata}/METADATA": f"Metadata-Version: 2.1\nName: nvidia-cudnn-cu12\nVersion: {version}\n",
        f"{metadata}/RECORD": f"{library},,\n{metadata}/METADATA,,\n{metadata}/RECORD,,\n",
    }
    found = verdicts(tmp_path, "nvidia-cudnn-cu12", version, files)
    assert {name: verdict for name, (verdict, _) in found.items()} == {"import": "yes", **expected}
    assert part != "gone" or f"libcudnn_ops.so.{major}: cannot open shared object file" in found["parts"][1]


@pytest.mark.parametrize(("version", "compiles"), [("2.0.0", None), ("3.5.1", "no")])
def test_a_triton_before_its_backends_is_not_asked_to_compile(version: str, compiles: str | None, tmp_path: Path) -> None:
    """Triton 2 compiles through an interface that wants libcuda; from 3 on, backends that are missing are a fault."""
    found = verdicts(tmp_path, "triton", version, {"triton/__init__.py": f'__version__ = "{version}"\n'})
    assert found["import"] == ("yes", "")
    assert found.get("compile", (None,))[0] == compiles


@pytest.mark.parametrize(
    ("stated", "note"), [("3.20", "modules plain"), ("3.10", "modules plain, it calls itself 3.10"), ("", "modules plain")]
)
def test_another_version_that_a_package_without_a_check_states_is_told_beside_its_import(
    tmp_path: Path, stated: str, note: str
) -> None:
    files = {
        "plain/__init__.py": f"__version__ = {stated!r}\n" if stated else "",
        "plain-3.20.dist-info/METADATA": "Metadata-Version: 2.1\nName: plain\nVersion: 3.20\n",
        "plain-3.20.dist-info/RECORD": "plain/__init__.py,,\nplain-3.20.dist-info/METADATA,,\nplain-3.20.dist-info/RECORD,,\n",
    }
    assert verdicts(tmp_path, "plain", "3.20", files) == {"import": ("yes", note)}
