"""Names of GPUs as people and programs write them, read with the shipped matrix: the target, and the product that is named.

The forms are those of `nvidia-smi` and `nvidia-smi -L`, GPU feature discovery (docs/gpu-feature-discovery/README.md), GKE,
AMD's node labeller, `rocm-smi`, `amd-smi`, `lspci` with the names of pci.ids, and the vendors' marketing.
"""

from __future__ import annotations

import pytest

from provisioner.host.gpu_names import GpuNames, NamedGpu, UnreadName
from provisioner.host.instance_types import instance_file, instance_type
from provisioner.host.kubernetes import product_label
from provisioner.host.model import HostGpu
from provisioner.matrix.cache import cached_matrix
from provisioner.words.gpu_name import name_hints, unread_name_words

MATRIX = cached_matrix(None)
NAMES = GpuNames(MATRIX.gpus, MATRIX.chips)

READ: list[tuple[str, str, str | None]] = [
    # nvidia-smi, NVML
    ("NVIDIA A100-SXM4-80GB", "8.0", "NVIDIA A100-SXM4-80GB"),
    ("NVIDIA A100-SXM4-40GB", "8.0", "NVIDIA A100-SXM4-40GB"),
    ("NVIDIA A100-PCIE-40GB", "8.0", "NVIDIA A100-PCIE-40GB"),
    ("NVIDIA A100 80GB PCIe", "8.0", "NVIDIA A100 80GB PCIe"),
    ("NVIDIA A30", "8.0", "NVIDIA A30"),
    ("NVIDIA A10", "8.6", "NVIDIA A10"),
    ("NVIDIA A10G", "8.6", "NVIDIA A10G"),
    ("NVIDIA A16", "8.6", "NVIDIA A16"),
    ("NVIDIA A2", "8.6", "NVIDIA A2"),
    ("NVIDIA A40", "8.6", "NVIDIA A40"),
    ("NVIDIA L4", "8.9", "NVIDIA L4"),
    ("NVIDIA L40", "8.9", "NVIDIA L40"),
    ("NVIDIA L40S", "8.9", "NVIDIA L40S"),
    ("NVIDIA L20", "8.9", "NVIDIA L20"),
    ("NVIDIA H100 80GB HBM3", "9.0", "NVIDIA H100 80GB HBM3"),
    ("NVIDIA H100 PCIe", "9.0", "NVIDIA H100 PCIe"),
    ("NVIDIA H100 NVL", "9.0", "NVIDIA H100 NVL"),
    ("NVIDIA H200", "9.0", "NVIDIA H200"),
    ("NVIDIA H200 NVL", "9.0", "NVIDIA H200 NVL"),
    ("NVIDIA H20", "9.0", "NVIDIA H20"),
    ("NVIDIA H800", "9.0", "NVIDIA H800"),
    ("NVIDIA GH200 480GB", "9.0", "NVIDIA GH200 480GB"),
    ("NVIDIA B200", "10.0", "NVIDIA B200"),
    ("NVIDIA B300 SXM6 AC", "10.3", "NVIDIA B300 SXM6 AC"),
    ("NVIDIA GB200", "10.0", "NVIDIA GB200"),
    ("NVIDIA GB300", "10.3", "NVIDIA GB300"),
    ("NVIDIA GB10", "12.1", "NVIDIA GB10"),
    ("Tesla T4", "7.5", "Tesla T4"),
    ("Tesla V100-SXM2-32GB", "7.0", "Tesla V100-SXM2-32GB"),
    ("Tesla V100-SXM2-32GB-LS", "7.0", "Tesla V100-SXM2-32GB"),
    ("Tesla V100S-PCIE-32GB", "7.0", "Tesla V100S-PCIE-32GB"),
    ("Tesla P100-PCIE-16GB", "6.0", "Tesla P100-PCIE-16GB"),
    ("Tesla P40", "6.1", "Tesla P40"),
    ("Tesla P4", "6.1", "Tesla P4"),
    ("Tesla K80", "3.7", "Tesla K80"),
    ("Tesla M60", "5.2", "Tesla M60"),
    ("Quadro RTX 6000", "7.5", "Quadro RTX 6000"),
    ("Quadro RTX 8000", "7.5", "Quadro RTX 8000"),
    ("Quadro P6000", "6.1", "Quadro P6000"),
    ("Quadro GV100", "7.0", "Quadro GV100"),
    ("NVIDIA RTX A6000", "8.6", "NVIDIA RTX A6000"),
    ("NVIDIA RTX 6000 Ada Generation", "8.9", "NVIDIA RTX 6000 Ada Generation"),
    ("NVIDIA RTX PRO 6000 Blackwell Workstation Edition", "12.0", "NVIDIA RTX PRO 6000 Blackwell Workstation Edition"),
    (
        "NVIDIA RTX PRO 6000 Blackwell Max-Q Workstation Edition",
        "12.0",
        "NVIDIA RTX PRO 6000 Blackwell Max-Q Workstation Edition",
    ),
    ("NVIDIA RTX PRO 6000 Blackwell Server Edition", "12.0", "NVIDIA RTX PRO 6000 Blackwell Server Edition"),
    ("NVIDIA GeForce RTX 5090", "12.0", "NVIDIA GeForce RTX 5090"),
    ("NVIDIA GeForce RTX 4090", "8.9", "NVIDIA GeForce RTX 4090"),
    ("NVIDIA GeForce RTX 4090 D", "8.9", "NVIDIA GeForce RTX 4090 D"),
    ("NVIDIA GeForce RTX 4070 Ti SUPER", "8.9", "NVIDIA GeForce RTX 4070 Ti SUPER"),
    ("NVIDIA GeForce RTX 3090", "8.6", "NVIDIA GeForce RTX 3090"),
    ("NVIDIA GeForce RTX 2080 Ti", "7.5", "NVIDIA GeForce RTX 2080 Ti"),
    ("NVIDIA GeForce GTX 1660 SUPER", "7.5", "NVIDIA GeForce GTX 1660 SUPER"),
    ("GeForce GTX 1080 Ti", "6.1", "GeForce GTX 1080 Ti"),
    ("NVIDIA GeForce GTX 1050 Ti", "6.1", "NVIDIA GeForce GTX 1050 Ti"),
    ("NVIDIA TITAN RTX", "7.5", "NVIDIA TITAN RTX"),
    ("NVIDIA TITAN V", "7.0", "NVIDIA TITAN V"),
    ("NVIDIA TITAN X (Pascal)", "6.1", "NVIDIA TITAN X (Pascal)"),
    ("NVIDIA TITAN Xp", "6.1", "NVIDIA TITAN Xp"),
    ("NVIDIA GeForce RTX 4090 Laptop GPU", "8.9", "NVIDIA GeForce RTX 4090 Laptop GPU"),
    ("NVIDIA GeForce RTX 3070 Ti Laptop GPU", "8.6", "NVIDIA GeForce RTX 3070 Ti Laptop GPU"),
    ("NVIDIA GeForce RTX 3050 A Laptop GPU", "8.9", "NVIDIA GeForce RTX 3050 A Laptop GPU"),
    ("NVIDIA GeForce RTX 2080 Super with Max-Q Design", "7.5", "NVIDIA GeForce RTX 2080 Super with Max-Q Design"),
    ("GeForce GTX 1070 with Max-Q Design", "6.1", "NVIDIA GeForce GTX 1070 with Max-Q Design"),
    ("Quadro T2000 with Max-Q Design", "7.5", "Quadro T2000 with Max-Q Design"),
    ("NVIDIA RTX A2000 8GB Laptop GPU", "8.6", "NVIDIA RTX A2000 8GB Laptop GPU"),
    ("NVIDIA GeForce MX450", "7.5", "NVIDIA GeForce MX450"),
    ("NVIDIA GeForce MX250", "6.1", "NVIDIA GeForce MX250"),
    ("NVIDIA A40-48Q", "8.6", "NVIDIA A40"),
    ("GRID T4-16Q", "7.5", "Tesla T4"),
    ("GRID A100-3-20C", "8.0", "NVIDIA A100"),
    ("Orin (nvgpu)", "8.7", None),
    ("NVIDIA Thor", "11.0", "Jetson T5000"),
    # nvidia-smi -L, MIG
    ("GPU 0: NVIDIA A100-SXM4-40GB (UUID: GPU-5c1e8a40-2f5b-4c1e-9d8a-000000000000)", "8.0", "NVIDIA A100-SXM4-40GB"),
    ("GPU 7: NVIDIA H100 80GB HBM3 (UUID: GPU-00000000-0000-0000-0000-000000000000)", "9.0", "NVIDIA H100 80GB HBM3"),
    ("GPU 1: Tesla T4 (UUID: GPU-1)", "7.5", "Tesla T4"),
    ("NVIDIA A100-SXM4-40GB MIG 1g.5gb", "8.0", "NVIDIA A100-SXM4-40GB"),
    ("NVIDIA H100 80GB HBM3 MIG 1g.10gb+me", "9.0", "NVIDIA H100 80GB HBM3"),
    ("NVIDIA A30 MIG 2g.12gb", "8.0", "NVIDIA A30"),
    # feature discovery, GKE
    ("NVIDIA-A100-SXM4-80GB", "8.0", "NVIDIA A100-SXM4-80GB"),
    ("NVIDIA-A100-SXM4-80GB-MIG-1g.10gb", "8.0", "NVIDIA A100-SXM4-80GB"),
    ("NVIDIA-A100-SXM4-40GB-MIG-1g.5gb-SHARED", "8.0", "NVIDIA A100-SXM4-40GB"),
    ("Tesla-T4", "7.5", "Tesla T4"),
    ("Tesla-T4-SHARED", "7.5", "Tesla T4"),
    ("NVIDIA-GeForce-RTX-4090", "8.9", "NVIDIA GeForce RTX 4090"),
    ("NVIDIA-H100-80GB-HBM3", "9.0", "NVIDIA H100 80GB HBM3"),
    ("NVIDIA-RTX-6000-Ada-Generation", "8.9", "NVIDIA RTX 6000 Ada Generation"),
    ("A100-SXM4-40GB", "8.0", "NVIDIA A100-SXM4-40GB"),
    ("NVIDIA-A10G-SHARED", "8.6", "NVIDIA A10G"),
    ("NVIDIA-L4", "8.9", "NVIDIA L4"),
    ("NVIDIA-GH200-480GB", "9.0", "NVIDIA GH200 480GB"),
    ("NVIDIA-A40-48Q", "8.6", "NVIDIA A40"),
    ("nvidia-tesla-t4", "7.5", "Tesla T4"),
    ("nvidia-tesla-v100", "7.0", "NVIDIA V100"),
    ("nvidia-tesla-a100", "8.0", "NVIDIA A100"),
    ("nvidia-a100-80gb", "8.0", "NVIDIA A100"),
    ("nvidia-l4", "8.9", "NVIDIA L4"),
    ("nvidia-h100-80gb", "9.0", "NVIDIA H100"),
    ("nvidia-h100-mega-80gb", "9.0", "NVIDIA H100"),
    ("nvidia-h200-141gb", "9.0", "NVIDIA H200"),
    ("nvidia-b200", "10.0", "NVIDIA B200"),
    ("nvidia-gb200", "10.0", "NVIDIA GB200"),
    # AMD: node labeller, rocm-smi, amd-smi
    ("AMD_Instinct_MI300X_OAM", "gfx942", "AMD Instinct MI300X"),
    ("AMD_Instinct_MI300X_VF", "gfx942", "AMD Instinct MI300X"),
    ("AMD-Instinct-MI250X", "gfx90a", "AMD Instinct MI250X"),
    ("AMD_Radeon_RX_7900_XTX", "gfx1100", "AMD Radeon RX 7900 XTX"),
    ("AMD Instinct MI250X", "gfx90a", "AMD Instinct MI250X"),
    ("Instinct MI300X OAM", "gfx942", "AMD Instinct MI300X"),
    ("AMD Instinct MI355X", "gfx950", "AMD Instinct MI355X"),
    ("AMD Instinct MI100", "gfx908", "AMD Instinct MI100"),
    ("GPU[0]\t\t: Card Series: \t\tAMD Instinct MI300X OAM", "gfx942", "AMD Instinct MI300X"),
    ("GPU[3]\t\t: Card series: \t\tAMD INSTINCT MI250 (MCM) OAM AC MBA", "gfx90a", "AMD Instinct MI250"),
    ("GPU[0]\t\t: Card Model: \t\t0x740f", "gfx90a", "AMD Instinct MI210"),
    ("Card model: 0x74a1", "gfx942", "AMD Instinct MI300X"),
    ("MARKET_NAME: AMD Instinct MI300X OAM", "gfx942", "AMD Instinct MI300X"),
    ("Market Name: AMD Radeon RX 7900 XTX", "gfx1100", "AMD Radeon RX 7900 XTX"),
    ("DEVICE_ID: 0x74a1", "gfx942", "AMD Instinct MI300X"),
    ("AMD Radeon PRO W7900", "gfx1100", "AMD Radeon PRO W7900"),
    ("AMD Radeon Graphics gfx1103", "gfx1103", None),
    # lspci
    ("NVIDIA Corporation GA100 [A100 SXM4 80GB] (rev a1)", "8.0", "NVIDIA A100-SXM4-80GB"),
    (
        "17:00.0 3D controller [0302]: NVIDIA Corporation GA100 [A100 SXM4 80GB] [10de:20b2] (rev a1)",
        "8.0",
        "NVIDIA A100-SXM4-80GB",
    ),
    (
        "0000:01:00.0 VGA compatible controller: NVIDIA Corporation AD102 [GeForce RTX 4090] (rev a1)",
        "8.9",
        "NVIDIA GeForce RTX 4090",
    ),
    ("NVIDIA Corporation GH100 [H100 SXM5 80GB] (rev a1)", "9.0", "NVIDIA H100"),
    ("NVIDIA Corporation TU104GL [Tesla T4] (rev a1)", "7.5", "Tesla T4"),
    ("NVIDIA Corporation GV100GL [Tesla V100 SXM2 16GB] (rev a1)", "7.0", "Tesla V100-SXM2-16GB"),
    ("NVIDIA Corporation TU102GL [Quadro RTX 6000/8000] (rev a1)", "7.5", None),
    ("NVIDIA Corporation GP104M [GeForce GTX 1070 Mobile] (rev a1)", "6.1", "NVIDIA GeForce GTX 1070"),
    ("NVIDIA Corporation GP106 [GeForce GTX 1060 6GB] (rev a1)", "6.1", "NVIDIA GeForce GTX 1060"),
    ("NVIDIA Corporation GK106 [GeForce GTX 750 Ti]", "3.0", None),
    ("NVIDIA Corporation GB202 [GeForce RTX 5090] (rev a1)", "12.0", "NVIDIA GeForce RTX 5090"),
    ("NVIDIA Corporation Device 2330 [10de:2330]", "9.0", "NVIDIA H100 80GB HBM3"),
    ("10de:20b2", "8.0", "NVIDIA A100"),
    ("10de:1b06", "6.1", "NVIDIA GeForce GTX 1080 Ti"),
    ("10DE:2204", "8.6", "NVIDIA GeForce RTX 3090"),
    ("1002:74a1", "gfx942", "AMD Instinct MI300X"),
    ("1002:744c", "gfx1100", None),
    ("0x233010DE", "9.0", "NVIDIA H100 80GB HBM3"),
    ("AMD/ATI] Aldebaran/MI200 [Instinct MI250X/MI250]", "gfx90a", None),
    ("Advanced Micro Devices, Inc. [AMD/ATI] Aldebaran/MI200 [Instinct MI250X/MI250] (rev 01)", "gfx90a", None),
    ("Advanced Micro Devices, Inc. [AMD/ATI] Navi 31 [Radeon RX 7900 XT/7900 XTX/7900 GRE/7900M] (rev c8)", "gfx1100", None),
    ("Advanced Micro Devices, Inc. [AMD/ATI] Navi 21 [Radeon RX 6800/6800 XT / 6900 XT]", "gfx1030", None),
    ("Advanced Micro Devices, Inc. [AMD/ATI] Navi 48 [Radeon RX 9070/9070 XT/9070 GRE]", "gfx1201", None),
    ("Advanced Micro Devices, Inc. [AMD/ATI] Aqua Vanjaram [Instinct MI300X]", "gfx942", "AMD Instinct MI300X"),
    ("Advanced Micro Devices, Inc. [AMD/ATI] Vega 20 [Radeon VII]", "gfx906", "AMD Radeon VII"),
    ("Advanced Micro Devices, Inc. [AMD/ATI] Arcturus GL-XL [Instinct MI100] (rev 01)", "gfx908", "AMD Instinct MI100"),
    # marketing
    ("A100", "8.0", "NVIDIA A100"),
    ("a100", "8.0", "NVIDIA A100"),
    ("A100 80GB", "8.0", "NVIDIA A100"),
    ("A100 SXM", "8.0", "NVIDIA A100"),
    ("A100 PCIe 40GB", "8.0", "NVIDIA A100-PCIE-40GB"),
    ("H100", "9.0", "NVIDIA H100"),
    ("H100 SXM5 80GB", "9.0", "NVIDIA H100"),
    ("H100 PCIe", "9.0", "NVIDIA H100 PCIe"),
    ("H200", "9.0", "NVIDIA H200"),
    ("H200 141GB HBM3e", "9.0", "NVIDIA H200"),
    ("GH200 Grace Hopper Superchip", "9.0", "NVIDIA GH200"),
    ("GB200", "10.0", "NVIDIA GB200"),
    ("GB200 NVL72", "10.0", "NVIDIA GB200"),
    ("GB300", "10.3", "NVIDIA GB300"),
    ("B200", "10.0", "NVIDIA B200"),
    ("B300", "10.3", "NVIDIA B300"),
    ("DGX Spark", "12.1", "NVIDIA GB10"),
    ("GB10", "12.1", "NVIDIA GB10"),
    ("L4", "8.9", "NVIDIA L4"),
    ("L40", "8.9", "NVIDIA L40"),
    ("L40S", "8.9", "NVIDIA L40S"),
    ("T4", "7.5", "Tesla T4"),
    ("V100", "7.0", "NVIDIA V100"),
    ("V100 32GB", "7.0", "NVIDIA V100"),
    ("P100", "6.0", "Tesla P100"),
    ("P40", "6.1", "Tesla P40"),
    ("K80", "3.7", "Tesla K80"),
    ("M60", "5.2", "Tesla M60"),
    ("A10", "8.6", "NVIDIA A10"),
    ("A10G", "8.6", "NVIDIA A10G"),
    ("A16", "8.6", "NVIDIA A16"),
    ("A2", "8.6", "NVIDIA A2"),
    ("A30", "8.0", "NVIDIA A30"),
    ("A40", "8.6", "NVIDIA A40"),
    ("A800", "8.0", "NVIDIA A800"),
    ("A6000", "8.6", "NVIDIA RTX A6000"),
    ("RTX A6000", "8.6", "NVIDIA RTX A6000"),
    ("Quadro RTX A6000", "8.6", "NVIDIA RTX A6000"),
    ("RTX 6000 Ada", "8.9", "NVIDIA RTX 6000 Ada Generation"),
    ("RTX PRO 6000", "12.0", None),
    ("RTX PRO 6000 Blackwell", "12.0", None),
    ("RTX 5090", "12.0", "NVIDIA GeForce RTX 5090"),
    ("RTX 4090", "8.9", "NVIDIA GeForce RTX 4090"),
    ("RTX4090", "8.9", "NVIDIA GeForce RTX 4090"),
    ("rtx-4090", "8.9", "NVIDIA GeForce RTX 4090"),
    ("4090", "8.9", "NVIDIA GeForce RTX 4090"),
    ("RTX 4070 Ti Super", "8.9", "NVIDIA GeForce RTX 4070 Ti SUPER"),
    ("RTX 3090 Ti", "8.6", "NVIDIA GeForce RTX 3090 Ti"),
    ("RTX 3060", "8.6", "NVIDIA GeForce RTX 3060"),
    ("RTX 3050", "8.6", "NVIDIA GeForce RTX 3050"),
    ("RTX 2080Ti", "7.5", "NVIDIA GeForce RTX 2080 Ti"),
    ("GTX 1660 Ti", "7.5", "NVIDIA GeForce GTX 1660 Ti"),
    ("GTX 1080 Ti", "6.1", "NVIDIA GeForce GTX 1080 Ti"),
    ("GTX1080Ti", "6.1", "NVIDIA GeForce GTX 1080 Ti"),
    ("GTX 1070 Mobile", "6.1", "NVIDIA GeForce GTX 1070"),
    ("GTX 1060 6GB", "6.1", "NVIDIA GeForce GTX 1060"),
    ("Titan V", "7.0", "NVIDIA TITAN V"),
    ("Titan RTX", "7.5", "NVIDIA TITAN RTX"),
    ("MX450", "7.5", "NVIDIA GeForce MX450"),
    ("Tesla A100", "8.0", "NVIDIA A100"),
    ("MI100", "gfx908", "AMD Instinct MI100"),
    ("MI210", "gfx90a", "AMD Instinct MI210"),
    ("MI250", "gfx90a", "AMD Instinct MI250"),
    ("MI250X", "gfx90a", "AMD Instinct MI250X"),
    ("MI300A", "gfx942", "AMD Instinct MI300A"),
    ("MI300X", "gfx942", "AMD Instinct MI300X"),
    ("MI325X", "gfx942", "AMD Instinct MI325X"),
    ("MI350X", "gfx950", "AMD Instinct MI350X"),
    ("MI355X", "gfx950", "AMD Instinct MI355X"),
    ("Radeon Instinct MI50", "gfx906", "AMD Instinct MI50"),
    ("RX 7900 XTX", "gfx1100", "AMD Radeon RX 7900 XTX"),
    ("RX7900XTX", "gfx1100", "AMD Radeon RX 7900 XTX"),
    ("RX 7900 XT", "gfx1100", "AMD Radeon RX 7900 XT"),
    ("RX 6800 XT", "gfx1030", "AMD Radeon RX 6800 XT"),
    ("RX 9070 XT", "gfx1201", "AMD Radeon RX 9070 XT"),
    ("W7900", "gfx1100", "AMD Radeon PRO W7900"),
    ("Radeon PRO W7800 48GB", "gfx1100", "AMD Radeon PRO W7800 48GB"),
    ("R9700", "gfx1201", "AMD Radeon AI PRO R9700"),
    ("Radeon VII", "gfx906", "AMD Radeon VII"),
    ("Radeon 8060S Graphics", "gfx1151", "AMD Radeon 8060S"),
    ("Ryzen AI Max+ 395", "gfx1151", "AMD Radeon 8060S"),
    ("Radeon 890M", "gfx1150", "AMD Radeon 890M"),
    ("Jetson Orin", "8.7", None),
    ("Orin", "8.7", None),
    ("Jetson AGX Orin 64GB", "8.7", "Jetson AGX Orin"),
    ("Jetson AGX Orin Developer Kit", "8.7", "Jetson AGX Orin"),
    ("Jetson Orin Nano", "8.7", "Jetson Orin Nano"),
    ("Jetson Nano", "5.3", "Jetson Nano"),
    ("Jetson AGX Xavier", "7.2", "Jetson AGX Xavier"),
    ("Xavier", "7.2", None),
    ("Jetson TX2", "6.2", "Jetson TX2"),
    ("Jetson AGX Thor", "11.0", "Jetson T5000"),
    ("Jetson T5000", "11.0", "Jetson T5000"),
    # targets and chips
    ("gfx90a", "gfx90a", None),
    ("gfx942", "gfx942", None),
    ("gfx942:sramecc+:xnack-", "gfx942", None),
    ("GFX1100", "gfx1100", None),
    ("sm_90", "9.0", None),
    ("sm_90a", "9.0", None),
    ("sm_120", "12.0", None),
    ("SM 8.9", "8.9", None),
    ("compute_75", "7.5", None),
    ("9.0", "9.0", None),
    ("12.1", "12.1", None),
    ("GA102", "8.6", None),
    ("Navi 31", "gfx1100", None),
    ("AD102", "8.9", None),
    # bracketed names that look like a class of devices, and devices that a list of ids lacks
    ("NVIDIA Corporation GB100 [B200] (rev a1)", "10.0", "NVIDIA B200"),
    ("19:00.0 3D controller [0302]: NVIDIA Corporation GB110 [B300] [10de:3182] (rev a1)", "10.3", "NVIDIA B300"),
    ("01:00.0 VGA compatible controller: NVIDIA Corporation Device 2b85 (rev a1)", "12.0", "NVIDIA GeForce RTX 5090"),
    ("Advanced Micro Devices, Inc. [AMD/ATI] Device 74a1", "gfx942", "AMD Instinct MI300X"),
    # boards of which people ask more seldom: pci.ids, and libdrm's amdgpu.ids as `rocm-smi` prints it
    ("NVIDIA A100X", "8.0", "NVIDIA A100X"),
    ("NVIDIA A30X", "8.0", "NVIDIA A30X"),
    ("NVIDIA CMP 170HX", "8.0", "NVIDIA CMP 170HX"),
    ("NVIDIA PG506-232", "8.0", "NVIDIA PG506-232"),
    ("NVIDIA T4G", "7.5", "NVIDIA T4G"),
    ("P106-100", "6.1", "NVIDIA P106-100"),
    ("Tesla K20Xm", "3.5", "Tesla K20Xm"),
    ("Quadro 6000", "2.0", "Quadro 6000"),
    ("Jetson Orin Nano Super", "8.7", "Jetson Orin Nano"),
    ("AMD Instinct MI325 OAM", "gfx942", "AMD Instinct MI325X"),
    ("AMD_Instinct_MI308X", "gfx942", "AMD Instinct MI308X"),
    ("AMD Radeon 8050S Graphics", "gfx1151", "AMD Radeon 8050S"),
    ("AMD Radeon RX 6750 GRE 12GB", "gfx1031", "AMD Radeon RX 6750 GRE 12GB"),
    ("AMD Radeon Pro V340", "gfx900", "AMD Radeon Pro V340"),
]


@pytest.mark.parametrize(("text", "target", "product"), READ, ids=[text for text, _, _ in READ])
def test_a_name_is_read(text: str, target: str, product: str | None) -> None:
    assert NAMES.read(text) == NamedGpu(target, product)


def test_every_product_of_the_matrix_is_read_as_itself() -> None:
    for gpu in MATRIX.gpus:
        for name in (gpu.name, *gpu.aliases):
            assert NAMES.read(name) == NamedGpu(gpu.compute_capability or gpu.gfx, gpu.name)


def test_every_label_of_feature_discovery_is_read_as_the_target_of_its_product() -> None:
    # The label of the row that stands for two products, `Tesla C2050/C2070`, joins their names.
    for gpu in (gpu for gpu in MATRIX.gpus if "/" not in gpu.name):
        for suffix in ("", "-SHARED"):
            read = NAMES.read(product_label(gpu.name) + suffix)
            assert isinstance(read, NamedGpu), gpu.name
            assert read.target == (gpu.compute_capability or gpu.gfx), gpu.name


@pytest.mark.parametrize(
    ("text", "targets"),
    [
        ("RTX 6000", {"7.5", "8.9", "12.0"}),
        ("RTX 5000", {"7.5", "8.9", "12.0"}),
        ("RTX 4000", {"7.5", "8.9", "12.0"}),
        ("NVIDIA RTX 4000", {"7.5", "8.9", "12.0"}),
        ("TITAN X", {"5.2", "6.1"}),
        ("Nano", {"5.3", "8.7"}),
    ],
)
def test_a_name_of_several_generations_is_not_guessed(text: str, targets: set[str]) -> None:
    read = NAMES.read(text)
    assert isinstance(read, UnreadName)
    assert {one.target for one in read.candidates} == targets
    assert unread_name_words(read) == "is the name of several GPUs, which run different code"
    assert name_hints(read)[0].startswith("write the whole name: ")
    assert all(f"({target})" in name_hints(read)[0] for target in targets)


@pytest.mark.parametrize(
    ("text", "near"),
    [
        ("NVIDIA H10O", "NVIDIA H100"),
        ("NVIDIA H1000", "NVIDIA H100"),
        ("RTX 4095", "NVIDIA GeForce RTX 4090"),
        ("GeForce RTX 4090 Ti", "NVIDIA GeForce RTX 4090"),
        ("GeForce RTX 3095", "NVIDIA GeForce RTX 3090"),
        ("B100", "NVIDIA B200"),
        ("AMD Instinct MI345X", "AMD Instinct MI350X"),
        ("MI301X", "AMD Instinct MI300X"),
        ("H300", "NVIDIA H200"),
        ("V200", "NVIDIA V100"),
        ("RX 9080 XT", "AMD Radeon RX 9070 XT"),
        ("RTX A7000", "NVIDIA RTX A6000"),
        ("RX 7950 XTX", "AMD Radeon RX 7900 XTX"),
        ("Radeon RX 6850 XT", "AMD Radeon RX 6800 XT"),
    ],
)
def test_an_unknown_name_is_told_with_the_nearest_of_its_vendor_and_generation(text: str, near: str) -> None:
    read = NAMES.read(text)
    assert isinstance(read, UnreadName)
    assert (read.near, read.is_newer) == (near, False)
    assert name_hints(read)[0] == f"did you mean `{near}`?"


@pytest.mark.parametrize(
    ("text", "near"),
    [
        # a character moved, exchanged, left out or typed twice, a letter for a digit: also where that is another generation
        ("RTX 4909", "NVIDIA GeForce RTX 4090"),
        ("GeForce RTX 3900", "NVIDIA GeForce RTX 3090"),
        ("RTX 490", "NVIDIA GeForce RTX 4090"),
        ("RTX 4009", "NVIDIA GeForce RTX 4090"),
        ("GTX 10080", "NVIDIA GeForce GTX 1080"),
        ("H10", "NVIDIA H100"),
        ("A10O", "NVIDIA A100"),
        ("A1OO", "NVIDIA A100"),
        ("4O90", "NVIDIA GeForce RTX 4090"),
        ("Quadro P600O", "Quadro P6000"),
        ("MI30X", "AMD Instinct MI300X"),
        ("RX 790 XTX", "AMD Radeon RX 7900 XTX"),
        # a word too many, or of another line
        ("A 100", "NVIDIA A100"),
        ("L 40S", "NVIDIA L40S"),
        ("RTX 1080", "NVIDIA GeForce GTX 1080"),
        ("GTX 4090", "NVIDIA GeForce RTX 4090"),
    ],
)
def test_a_mistyped_number_is_told_with_the_product_that_it_is_a_slip_of(text: str, near: str) -> None:
    read = NAMES.read(text)
    assert isinstance(read, UnreadName)
    assert (read.near, read.is_newer) == (near, False)


@pytest.mark.parametrize("text", ["Radeon RX 4090", "AMD H100", "NVIDIA MI300X", "AMD Instinct A100", "MI 300"])
def test_a_name_with_its_vendor_is_likened_to_no_product_of_another(text: str) -> None:
    read = NAMES.read(text)
    near = read.near if isinstance(read, UnreadName) else None
    assert near is None or near.startswith("AMD") == (text[:6] != "NVIDIA")


def test_a_number_of_another_vendors_product_is_no_name_of_it() -> None:
    read = NAMES.read("GeForce 840M")  # there is a Radeon 840M
    assert isinstance(read, UnreadName)
    assert read.vendor == "NVIDIA"


@pytest.mark.parametrize(
    "text",
    [
        "RTX 6090",
        "GeForce RTX 7080 Ti",
        "MI400",
        "MI500",
        "MI430X",
        "AMD Instinct MI455X",
        "Radeon RX 9990 XT",
        "Radeon RX 9170",
    ],
)
def test_a_number_above_all_of_its_line_is_newer_than_the_matrix(text: str) -> None:
    read = NAMES.read(text)
    assert isinstance(read, UnreadName)
    assert unread_name_words(read).startswith("is newer than the GPUs the matrix knows")
    assert read.near is None


@pytest.mark.parametrize("text", ["MIG 1g.10gb", "MIG 1g.5gb     Device  0: (UUID: MIG-0)", "nvidia.com/mig-1g.5gb"])
def test_a_slice_alone_does_not_name_its_gpu(text: str) -> None:
    read = NAMES.read(text)
    assert isinstance(read, UnreadName)
    assert read.is_slice


@pytest.mark.parametrize("text", ["Intel Arc A770", "Apple M2 Max", "TPU v5e", "Habana Gaudi2", "ASPEED Graphics Family"])
def test_a_device_of_another_vendor_is_likened_to_no_gpu(text: str) -> None:
    read = NAMES.read(text)
    assert isinstance(read, UnreadName)
    assert (read.is_other, read.near, read.candidates) == (True, None, ())


@pytest.mark.parametrize("text", ["", "NVIDIA", "RTX", "GeForce", "GPU", "Card SKU: D65201", "Voodoo 5", "10de:ffff"])
def test_a_text_that_names_nothing_is_likened_to_nothing(text: str) -> None:
    read = NAMES.read(text)
    assert isinstance(read, UnreadName)
    assert (read.near, read.candidates) == (None, ())


def test_products_with_the_id_of_a_chip_have_its_target() -> None:
    chips = {(bool(chip.gfx), identity): chip for chip in MATRIX.chips for identity in chip.pci_device_ids}
    joined = 0
    for gpu in MATRIX.gpus:
        for identity in gpu.pci_device_ids:
            chip = chips.get((bool(gpu.gfx), identity))
            if chip is not None:
                joined += 1
                assert (gpu.compute_capability, gpu.gfx) == (chip.compute_capability, chip.gfx), (gpu.name, chip.name)
    assert joined > 450


def test_a_stated_target_beats_the_name() -> None:
    stated = HostGpu(name="A100", compute_capability="9.0")
    assert NAMES.identify(stated) == stated
    assert NAMES.identify(HostGpu(name="A100", count=8)) == HostGpu(name="NVIDIA A100", compute_capability="8.0", count=8)
    assert NAMES.identify(HostGpu(name="gfx90a")) == HostGpu(gfx="gfx90a")
    assert NAMES.identify(HostGpu(pci_device_id="20B5")) == HostGpu(
        name="NVIDIA A100 80GB PCIe", compute_capability="8.0", pci_device_id="20B5"
    )


def test_the_gpus_of_instance_types_are_products_of_the_matrix() -> None:
    table = instance_file()
    for family in table.families:
        assert NAMES.read(family.gpu.name or "") == NamedGpu(family.gpu.target or "", family.gpu.name)
        assert set(family.source) <= table.sources.keys()
        assert all(count >= 1 for count in family.sizes.values())


@pytest.mark.parametrize(
    ("name", "product", "count"),
    [
        ("p3.16xlarge", "Tesla V100-SXM2-16GB", 8),
        ("p4d.24xlarge", "NVIDIA A100-SXM4-40GB", 8),
        ("p5.48xlarge", "NVIDIA H100 80GB HBM3", 8),
        ("p6-b200", "NVIDIA B200", 8),
        ("g4dn.xlarge", "Tesla T4", 1),
        ("g6e.12xlarge", "NVIDIA L40S", 4),
        ("a2-ultragpu-2g", "NVIDIA A100-SXM4-80GB", 2),
        ("g2-standard-96", "NVIDIA L4", 8),
        ("g4-standard-96", "NVIDIA RTX PRO 6000 Blackwell Server Edition", 2),
        ("a3-edgegpu-8g", "NVIDIA H100 80GB HBM3", 8),
        ("NDv2", "Tesla V100-SXM2-32GB", 8),
        ("ND_GB300_v6", "NVIDIA GB300", 4),
        ("Standard_NC24ads_A100_v4", "NVIDIA A100 80GB PCIe", 1),
        ("nd96isr_mi300x_v5", "AMD Instinct MI300X", 8),
        ("ND_H100_v5", "NVIDIA H100 80GB HBM3", 8),
    ],
)
def test_an_instance_type_has_its_gpus(name: str, product: str, count: int) -> None:
    found = instance_type(name)
    assert found is not None
    assert found.host.gpus is not None
    ((gpu),) = found.host.gpus
    assert (gpu.name, gpu.count) == (product, count)


@pytest.mark.parametrize(
    ("name", "virtualization"),
    [("g4dn.xlarge", "vm"), ("a4x-highgpu-4g", "vm"), ("g4dn.metal", None), ("a4x-maxgpu-4g-metal", None)],
)
def test_an_instance_type_of_bare_metal_is_no_virtual_machine(name: str, virtualization: str | None) -> None:
    found = instance_type(name)
    assert found is not None
    assert found.host.virtualization == virtualization


def test_every_source_of_the_instance_types_is_cited_by_a_family() -> None:
    table = instance_file()
    assert {key for family in table.families for key in family.source} == table.sources.keys()


def test_an_instance_type_without_gpus_is_not_listed() -> None:
    assert instance_type("m5.xlarge") is None
