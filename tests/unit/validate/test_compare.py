from __future__ import annotations

import pytest
from msgspec.structs import replace

from provisioner.evidence.report import FieldReport, overall
from provisioner.render.image_config import ImageConfig
from provisioner.validate.compare import compare, library_version
from provisioner.validate.compare_files import compare_config
from provisioner.validate.engine import Image
from provisioner.validate.measurement import Device, DriverInterface, Management, Measurement, Torch
from tests.unit.validate.locks import CPU, CUDA, cpu_lock, cuda_lock, failed, lock_of, measured

H100 = Device(
    device="cuda:0",
    name="NVIDIA H100 80GB HBM3",
    compute_capability="9.0",
    gfx="",
    memory=80 << 30,
    matmul=True,
    float16=True,
    bfloat16=True,
    convolution=True,
    attention=True,
)
ON_DEVICES = ("compute", "convolution", "collective")
NVRTC = "nvidia-cuda-nvrtc-cu12"


def with_torch(name: str, **changes: object) -> Measurement:
    measurement = measured(name)
    assert measurement.torch is not None
    return replace(measurement, torch=replace(measurement.torch, **changes))


def with_gpu(device: Device = H100, **changes: object) -> Measurement:
    """The recorded measurement as it would be with a device: only what a GPU answers for is changed."""
    frameworks = measured(CUDA).frameworks
    compiles = replace(
        frameworks[NVRTC], devices=("cuda:0",), on_devices={"cuda:0 kernel": True, "cuda:0 PTX": True}, errors={}
    )
    gpu = {
        "nvml": Management(driver="550.54.15", names=(device.name,)),
        "cuda_driver": DriverInterface(level=12040, count=1),
        "devices": (device,),
        "frameworks": {**frameworks, NVRTC: compiles},
        "all_reduce": True,
        "errors": {},
    }
    return replace(measured(CUDA), **gpu | changes)


def only_failure(fields: tuple[FieldReport, ...]) -> FieldReport:
    (field,) = failed(fields)
    return field


def test_a_cpu_stack_that_is_as_locked_is_a_yes() -> None:
    fields = compare(cpu_lock(), measured(CPU))
    assert failed(fields) == ()
    assert overall(fields) == "yes"
    assert [(field.level, field.name) for field in fields] == [
        *((2, name) for name in ("python", "architecture", "packages", "files", "other files", "linked libraries")),
        *((3, name) for name in ("pytorch", "pytorch_build", "libraries", "cpu compute")),
    ]


def test_a_cuda_stack_without_a_gpu_agrees_in_software_and_stays_unverified() -> None:
    frameworks = measured(CUDA).frameworks
    fields = compare(cuda_lock(), measured(CUDA), no_device='could not select device driver ""')
    assert [(field.name, field.verdict, field.note) for field in failed(fields)] == [
        ("driver", "unverified", 'could not select device driver ""'),
        ("devices", "unverified", 'could not select device driver ""'),
        *((name, "unverified", "no device to run it on") for name in ON_DEVICES),
        (f"{NVRTC} on devices", "unverified", frameworks[NVRTC].errors["devices"]),
    ]
    assert overall(fields) == "unverified"


def test_without_an_engines_reason_the_loaders_own_words_say_why_there_is_no_gpu() -> None:
    notes = {field.name: field.note for field in compare(cuda_lock(), measured(CUDA))}
    assert notes["driver"].startswith("OSError: libnvidia-ml.so.1: cannot open shared object file")
    assert notes["devices"].startswith("OSError: libcuda.so.1: cannot open shared object file")


def test_imports_ask_for_no_gpu() -> None:
    measurement = replace(measured(CUDA), level=3)
    assert overall(compare(cuda_lock(), measurement)) == "yes"


def test_a_gpu_that_computes_makes_it_a_yes() -> None:
    fields = compare(cuda_lock(), with_gpu())
    assert failed(fields) == ()
    shown = {field.name: field.measured for field in fields}
    assert shown["devices"] == "NVIDIA H100 80GB HBM3 (9.0)"
    assert shown["driver"] == "550.54.15"


@pytest.mark.parametrize(
    ("component", "locked", "found"),
    [
        ("python", "3.12", "3.11.7"),
        ("pytorch", "2.5.1", "2.4.1+cu121"),
        ("pytorch_build", "cu124", "cu121"),
        ("cuda", "12.4.1", "12.1"),
        ("cudnn", "9.0.0.312", "9.1.0"),
        ("nccl", "2.21.5", "2.20.5"),
    ],
)
def test_a_component_that_differs_from_the_lock_is_a_no(component: str, locked: str, found: str) -> None:
    field = only_failure(compare(cuda_lock(**{component: locked}), with_gpu()))
    assert (field.name, field.locked, field.measured, field.verdict) == (component, locked, found, "no")


def test_a_newer_nccl_swapped_in_is_seen_in_the_loaded_library() -> None:
    measurement = replace(with_torch(CUDA, nccl=22105), level=3)
    field = only_failure(compare(cuda_lock(), measurement))
    assert (field.name, field.locked, field.measured) == ("nccl", "2.20.5", "2.21.5")


def test_an_nccl_that_cannot_be_asked_is_unverified_and_not_a_no() -> None:
    measurement = replace(with_torch(CUDA, nccl=None), level=3)
    field = only_failure(compare(cuda_lock(), measurement))
    assert (field.name, field.verdict) == ("nccl", "unverified")
    assert field.note == "libnccl.so is not loaded by this build, so its version cannot be read"


def test_a_cudnn_that_refuses_to_load_is_a_no_in_its_own_words() -> None:
    error = "RuntimeError: cuDNN version incompatibility: PyTorch was compiled against (9, 1, 0) but found runtime (9, 0, 0)"
    measurement = replace(with_torch(CUDA, cudnn=None), level=3, errors={"cudnn": error})
    field = only_failure(compare(cuda_lock(), measurement))
    assert (field.name, field.measured, field.verdict, field.note) == ("cudnn", "", "no", error)


def test_a_framework_that_does_not_import_is_a_no_and_says_why() -> None:
    error = "ImportError: libcudnn.so.9: cannot open shared object file: No such file or directory"
    measurement = replace(measured(CUDA), torch=None, level=3, errors={"import torch": error})
    field = only_failure(compare(cuda_lock(), measurement))
    assert (field.name, field.verdict, field.note) == ("pytorch", "no", error)


def test_a_library_the_loader_cannot_find_is_named() -> None:
    missing = ("libtorch_cuda.so needs libcupti.so.12",)
    measurement = replace(with_torch(CUDA, unresolved=missing), level=3)
    field = only_failure(compare(cuda_lock(), measurement))
    assert (field.name, field.locked, field.measured) == ("libraries", "all found", "libtorch_cuda.so needs libcupti.so.12")


def test_a_target_that_was_not_compiled_in_is_named() -> None:
    measurement = replace(with_torch(CUDA, arch_flags=("sm_50", "sm_60", "sm_70")), level=3)
    field = only_failure(compare(cuda_lock(), measurement))
    assert (field.name, field.note) == ("arch_list", "not compiled in: sm_75, sm_80, sm_86, sm_90")


def test_a_suffixed_target_is_covered_by_the_flag_without_its_suffix() -> None:
    lock = lock_of({"torch": "2.4.1"}, components={"pytorch": "2.4.1"}, arch_list=("sm_90a", "compute_90"))
    arch_list = next(field for field in compare(lock, measured(CUDA)) if field.name == "arch_list")
    assert arch_list.verdict == "yes"


def test_a_gpu_that_refuses_the_kernels_is_a_no() -> None:
    error = "RuntimeError: CUDA error: no kernel image is available for execution on the device"
    device = replace(H100, matmul=None)
    field = only_failure(compare(cuda_lock(), with_gpu(device, errors={"cuda:0 matmul": error})))
    assert (field.name, field.measured, field.verdict, field.note) == ("compute cuda:0", "failed", "no", error)


def test_a_gpu_that_computes_wrong_numbers_is_a_no() -> None:
    field = only_failure(compare(cuda_lock(), with_gpu(replace(H100, matmul=False))))
    assert (field.name, field.measured, field.verdict) == ("compute cuda:0", "wrong", "no")


def test_one_bad_device_among_good_ones_is_a_no() -> None:
    second = replace(H100, device="cuda:1", float16=False)
    measurement = replace(with_gpu(), devices=(H100, second), peers=True)
    assert only_failure(compare(cuda_lock(), measurement)).name == "float16 cuda:1"


def test_a_device_that_nvml_lists_and_the_framework_cannot_open_is_a_no() -> None:
    measurement = with_gpu(devices=(), errors={"cuda_driver": "RuntimeError: cuInit returned 36"})
    fields = {field.name: field for field in failed(compare(cuda_lock(), measurement))}
    assert fields["devices"].verdict == "no"
    assert fields["devices"].measured == "NVIDIA H100 80GB HBM3 (listed by NVML, not usable)"
    assert fields["devices"].note == "RuntimeError: cuInit returned 36"


def test_a_driver_below_the_locked_range_is_a_no() -> None:
    field = only_failure(compare(cuda_lock(), with_gpu(nvml=Management(driver="470.256.02", names=(H100.name,)))))
    assert (field.name, field.locked, field.measured, field.verdict) == ("driver", ">=525.60.13", "470.256.02", "no")


def test_devices_are_asked_for_a_convolution_and_a_collective() -> None:
    fields = {field.name: field.verdict for field in compare(cuda_lock(), with_gpu())}
    assert (fields["convolution cuda:0"], fields["collective"]) == ("yes", "yes")
    measurement = replace(with_gpu(replace(H100, convolution=None)), all_reduce=None)
    fields = {field.name: field.verdict for field in compare(cuda_lock(), measurement)}
    assert (fields["convolution cuda:0"], fields["collective"]) == ("no", "no")


def test_attention_is_compared_where_pytorch_has_one() -> None:
    field = only_failure(compare(cuda_lock(), with_gpu(replace(H100, attention=False))))
    assert (field.name, field.measured, field.level) == ("attention cuda:0", "wrong", 4)
    names = {field.name for field in compare(cuda_lock(), with_gpu(replace(H100, attention=None)))}
    assert "attention cuda:0" not in names
    field = only_failure(
        compare(cuda_lock(), with_gpu(replace(H100, attention=None), errors={"cuda:0 attention": "RuntimeError: no kernel"}))
    )
    assert (field.measured, field.note) == ("failed", "RuntimeError: no kernel")


def test_copies_between_devices_are_compared_where_there_are_several() -> None:
    second = replace(H100, device="cuda:1")
    assert only_failure(compare(cuda_lock(), with_gpu(devices=(H100, second), peers=False))).name == "copies between devices"
    assert "copies between devices" not in {field.name for field in compare(cuda_lock(), with_gpu())}


def test_levels_without_a_device_name_everything_they_could_not_ask() -> None:
    names = [field.name for field in failed(compare(cuda_lock(), measured(CUDA)))]
    assert names == ["driver", "devices", *ON_DEVICES, f"{NVRTC} on devices"]


def test_packages_that_are_missing_different_or_extra_are_named() -> None:
    lock = lock_of({"numpy": "2.2.6", "idna": "3.10", "gone": "1.0"})
    measurement = replace(
        measured(CPU), level=2, torch=None, distributions={"numpy": "2.3.0", "idna": "3.10", "stray": "0.1", "pip": "24.0"}
    )
    assert [(field.name, field.locked, field.measured, field.note) for field in failed(compare(lock, measurement))] == [
        ("packages", "3 packages", "1 as locked, 1 more", ""),
        ("package gone", "1.0", "", "not installed"),
        ("package numpy", "2.2.6", "2.3.0", ""),
        ("package stray", "", "0.1", "not in the lock"),
    ]


def test_one_of_a_thing_is_in_the_singular() -> None:
    measurement = measured(CPU)
    assert measurement.files is not None
    assert measurement.files.libraries is not None
    one = replace(measurement.files, libraries=replace(measurement.files.libraries, modules=1))
    fields = compare(lock_of({"idna": "3.10"}), replace(measurement, torch=None, distributions={"idna": "3.10"}, files=one))
    told = {field.name: (field.locked, field.measured) for field in fields}
    assert told["packages"] == ("1 package", "1 as locked")
    assert told["linked libraries"] == ("all found", "1 module")


def test_a_stack_without_the_framework_is_compared_by_python_and_packages_alone() -> None:
    lock = lock_of({"idna": "3.10"})
    measurement = replace(measured(CPU), torch=None, cpu_matmul=None, distributions={"idna": "3.10"})
    fields = compare(lock, measurement)
    assert {field.verdict for field in fields} == {"yes"}
    assert {field.level for field in fields} == {2}


def test_a_gpu_lock_without_a_framework_is_never_a_yes_beyond_its_devices() -> None:
    lock = lock_of({"idna": "3.10"}, accelerator="cuda")
    measurement = replace(with_gpu(), torch=None, cpu_matmul=None, devices=(), distributions={"idna": "3.10"})
    assert [(field.name, field.verdict, field.note) for field in compare(lock, measurement) if field.level > 2] == [
        ("devices", "yes", "as the driver counts them"),
        ("compute", "unverified", "no check of the lock's packages computes on a device"),
    ]


def test_versions_are_compared_as_versions_and_not_as_text() -> None:
    measurement = replace(measured(CPU), torch=None, distributions={"idna": "3.10.0"})
    assert overall(compare(lock_of({"idna": "3.10"}), measurement)) == "yes"


def test_a_list_of_packages_that_could_not_be_read_is_unverified() -> None:
    measurement = replace(measured(CPU), torch=None, distributions=None)
    assert only_failure(compare(lock_of({"idna": "3.10"}), measurement)).verdict == "unverified"


def test_nothing_compared_proves_nothing() -> None:
    assert overall(()) == "unverified"


@pytest.mark.parametrize(
    ("number", "version"), [(90100, "9.1.0"), (92000, "9.20.0"), (91002, "9.10.2"), (8902, "8.9.2"), (7605, "7.6.5")]
)
def test_cudnn_numbers_are_read_as_its_header_writes_them(number: int, version: str) -> None:
    assert library_version(number) == version


@pytest.mark.parametrize(("number", "version"), [(22005, "2.20.5"), (22907, "2.29.7"), (21403, "2.14.3"), (2708, "2.7.8")])
def test_nccl_numbers_are_read_as_its_header_writes_them(number: int, version: str) -> None:
    assert library_version(number) == version


def test_a_wheel_without_a_local_label_is_known_by_its_cuda() -> None:
    measurement = replace(with_torch(CUDA, version="2.4.1"), level=3)
    assert overall(compare(cuda_lock(), measurement)) == "yes"


def test_an_amd_stack_is_compared_by_its_hip() -> None:
    torch = Torch(
        version="2.5.1+rocm6.2",
        cuda=None,
        hip="6.2.41133-dd7f95766",
        cudnn=3002000,
        nccl=22005,
        arch_flags=("gfx90a", "gfx942"),
        compiled_cuda=None,
        unresolved=(),
    )
    lock = lock_of(
        {"torch": "2.5.1+rocm6.2"},
        components={"pytorch": "2.5.1", "pytorch_build": "rocm6.2", "rocm": "6.2.4"},
        accelerator="rocm",
        arch_list=("gfx90a", "gfx942"),
    )
    measurement = replace(measured(CUDA), torch=torch, distributions={"torch": "2.5.1+rocm6.2"})
    assert [(field.name, field.verdict) for field in failed(compare(lock, measurement))] == [
        ("devices", "unverified"),
        *((name, "unverified") for name in ON_DEVICES),
    ]


@pytest.mark.parametrize(
    ("labels", "note"),
    [
        ({}, "the image does not say of which lock it was built"),
        ({"dev.provision.lock.digest": "sha256:0"}, "the image was built from another lock"),
    ],
)
def test_an_image_of_another_lock_is_told_as_such(labels: dict[str, str], note: str) -> None:
    expected = ImageConfig(labels={"dev.provision.lock.digest": "sha256:1"})
    image = Image(identity="sha256:2", platform="linux/amd64", labels=labels)
    (field,) = (one for one in compare_config(expected, "linux/amd64", image, is_built_here=False) if "label" in one.name)
    assert (field.verdict, field.note) == ("no", note)
