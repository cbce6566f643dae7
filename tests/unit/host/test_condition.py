"""What is installed and reachable on a machine beside its facts."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from provisioner.host.condition import CdiSpec, Condition, DkmsModule, read_condition
from provisioner.host.machine import Machine
from provisioner.host.model import Driver, Host, HostGpu

MI300X = Host(platform="linux/amd64", gpus=(HostGpu(gfx="gfx942"),), driver=Driver(kind="amdgpu", version="6.8.5"))
H100 = Host(platform="linux/amd64", gpus=(HostGpu(compute_capability="9.0"),), driver=Driver(version="535.104.05"))


def write(root: Path, path: str, content: str = "") -> None:
    place = root / path
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(content)


def condition(root: Path, host: Host = H100) -> Condition:
    return read_condition(Machine(root), host)


def test_an_empty_tree_tells_nothing(tmp_path: Path) -> None:
    assert condition(tmp_path) == Condition()


def test_dkms_has_each_driver_with_the_kernels_it_was_built_for(tmp_path: Path) -> None:
    write(tmp_path, "var/lib/dkms/nvidia/535.104.05/6.2.0-1018-aws/x86_64/module/nvidia.ko.xz")
    write(tmp_path, "var/lib/dkms/nvidia/535.104.05/6.5.0-1017-aws/x86_64/log/make.log")
    write(tmp_path, "var/lib/dkms/nvidia/535.104.05/source/dkms.conf")
    (tmp_path / "var/lib/dkms/nvidia/kernel-6.2.0-1018-aws-x86_64").symlink_to("535.104.05/6.2.0-1018-aws/x86_64")
    write(tmp_path, "var/lib/dkms/nvidia-fs/2.17.5/6.2.0-1018-aws/x86_64/module/nvidia-fs.ko")
    assert condition(tmp_path).dkms == (DkmsModule(name="nvidia", version="535.104.05", kernels=("6.2.0-1018-aws",)),)


@pytest.mark.parametrize(
    "text",
    [
        'cdiVersion: 0.5.0\nkind: nvidia.com/gpu\nmounts: [{hostPath: "/usr/lib64/libcuda.so.550.54.15"}]\n',
        '{"cdiVersion": "0.5.0",\n "kind": "nvidia.com/gpu",\n "x": "/usr/lib64/libcuda.so.550.54.15"}',
    ],
)
def test_a_cdi_specification_tells_the_driver_it_mounts(tmp_path: Path, text: str) -> None:
    write(tmp_path, "run/cdi/nvidia.yaml", text)
    write(tmp_path, "etc/cdi/other.yaml", "kind: example.com/device\n")
    write(tmp_path, "etc/cdi/README", text)
    assert condition(tmp_path).cdi == (CdiSpec(file="/run/cdi/nvidia.yaml", driver="550.54.15"),)


def test_a_device_that_is_not_there_is_missing_only_where_devices_are_listed(tmp_path: Path) -> None:
    assert condition(tmp_path, MI300X).missing_devices == ()
    write(tmp_path, "dev/dri/renderD128")
    assert condition(tmp_path, MI300X).missing_devices == ("/dev/kfd",)
    write(tmp_path, "dev/kfd")
    assert condition(tmp_path, MI300X).missing_devices == ()


def test_nvidia_s_devices_may_come_later(tmp_path: Path) -> None:
    write(tmp_path, "dev/null")
    assert condition(tmp_path).missing_devices == ()


def test_a_device_that_this_user_may_not_open_is_told_with_its_group(monkeypatch: pytest.MonkeyPatch) -> None:
    # /dev/null stands for /dev/kfd, and a refusing `access` for a user who is not in its group.
    monkeypatch.setattr("provisioner.host.condition._CUDA_DEVICES", ("dev/null",))
    assert read_condition(Machine(Path("/")), H100).forbidden_devices == ()
    monkeypatch.setattr(os, "access", lambda *_: False)
    monkeypatch.setattr(Machine, "text", lambda *_: "root:x:0:\nrender:x:993:ann\nvideo:x:44:\n")
    monkeypatch.setattr(Path, "stat", lambda *_, **__: os.stat_result((0o20660, 0, 0, 1, 0, 993, 0, 0, 0, 0)))
    found = read_condition(Machine(Path("/")), H100)
    assert found.forbidden_devices == ("/dev/null",)
    assert found.device_groups == ("render",)


def test_container_engines_are_found_by_their_programs(tmp_path: Path) -> None:
    write(tmp_path, "usr/bin/podman")
    write(tmp_path, "usr/local/bin/docker")
    assert condition(tmp_path).engines == ("docker", "podman")


def test_a_folder_that_was_seen_without_any_is_none_and_one_that_a_tree_leaves_out_is_unknown(tmp_path: Path) -> None:
    write(tmp_path, "var/lib/dpkg/status")
    write(tmp_path, "usr/bin/env")
    found = condition(tmp_path)
    assert (found.dkms, found.cdi, found.engines) == (None, None, None)
    for folder in ("var/lib/dkms", "etc/cdi", "run/cdi", "usr/local/bin", "usr/sbin"):
        (tmp_path / folder).mkdir(parents=True)
    found = condition(tmp_path)
    assert (found.dkms, found.cdi, found.engines) == ((), (), ())


def test_the_library_of_windows_is_asked_for_in_wsl_2_alone(tmp_path: Path) -> None:
    assert condition(tmp_path).wsl_library is None
    in_wsl = Host(platform="linux/amd64", virtualization="wsl2")
    assert condition(tmp_path, in_wsl).wsl_library is False
    write(tmp_path, "usr/lib/wsl/lib/libcuda.so.1")
    assert condition(tmp_path, in_wsl).wsl_library is True
