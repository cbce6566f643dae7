"""The script that sets up a host, run in a container: with the real apt-get and dpkg on Debian, with stand-ins of dnf and rpm.

The packages are made in the container and hold next to nothing; `curl` and `uname` are stand-ins, for there are neither
NVIDIA's repositories nor another kernel. A driver of the container says that no GPU is there until it is "booted".
"""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

from provisioner.render import render
from tests.host_setups import LOCKS, ON_HOST, ROCKY, ROCKY_10
from tests.lock_examples import with_setups

if TYPE_CHECKING:
    from collections.abc import Iterator

    from provisioner.lock.format.model import Lock

pytestmark = pytest.mark.docker

KERNEL = "6.1.0-28-amd64"
SHELF = r"""
import hashlib, pathlib, subprocess, sys
shelf = pathlib.Path("/shelf")
smi = '''[ -e /booted ] || { echo "NVIDIA-SMI has failed"; exit 9; }
case $* in *compute_cap*) echo "9.0, 615.71.09" ;; *) echo 615.71.09 ;; esac'''
programs = {
    "nvidia-driver-cuda": ("nvidia-smi", smi),
    "nvidia-container-toolkit": ("nvidia-ctk", "echo NVIDIA Container Toolkit CLI version 1.18.0"),
}
index = ""
for package in sys.argv[1:]:
    name, version = package.split("=")
    root = shelf / name
    (root / "DEBIAN").mkdir(parents=True)
    control = f"Package: {name}\nVersion: {version}\nArchitecture: all\nMaintainer: nobody <a@example.org>\nDescription: none\n"
    (root / "DEBIAN/control").write_text(control)
    if name in programs:
        program, text = programs[name]
        (root / "usr/bin").mkdir(parents=True)
        (root / "usr/bin" / program).write_text(f"#!/bin/sh\n{text}\n")
        (root / "usr/bin" / program).chmod(0o755)
    deb = shelf / f"{name}.deb"
    subprocess.run(["dpkg-deb", "--build", str(root), str(deb)], check=True, stdout=subprocess.DEVNULL)
    data = deb.read_bytes()
    index += f"{control}Filename: ./{deb.name}\nSize: {len(data)}\nSHA256: {hashlib.sha256(data).hexdigest()}\n\n"
(shelf / "Packages").write_text(index)
(shelf / "cuda-keyring_1.1-1_all.deb").write_bytes((shelf / "cuda-keyring.deb").read_bytes())
(shelf / "gpgkey").write_text("a key\n")
"""
CURL = """\
#!/bin/sh
echo "$@" >>/downloads
while [ "$#" -gt 1 ]; do
    [ "$1" != --output ] || to=$2
    shift
done
cp "/shelf/${1##*/}" "$to"
"""
UNAME = f"#!/bin/sh\ncase $1 in -r) echo {KERNEL} ;; *) echo x86_64 ;; esac\n"
PACKAGES = (
    f"linux-headers-{KERNEL}=1",
    "nvidia-driver-pinning-615=615-1",
    "nvidia-driver-cuda=615.71.09-1",
    "nvidia-kernel-open-dkms=615.71.09-1",
    "cuda-keyring=1.1-1",
    "nvidia-container-toolkit=1.18.0-1",
)
RPM = """\
#!/bin/sh
for last in "$@"; do :; done
grep -qx "$last" /installed || exit 1
case $* in *VERSION*) echo 580.95.05 ;; esac
"""
DNF = """\
#!/bin/sh
case $* in *'versionlock list') cat /locked 2>/dev/null; exit ;; esac
echo "$@" >>/commands
case $1-$2 in
install-*) shift 2; printf '%s\\n' "$@" >>/installed ;;
module-enable) printf '[nvidia-driver]\\nstream=580-dkms\\nstate=enabled\\n' >/etc/dnf/modules.d/nvidia-driver.module ;;
versionlock-add) echo 'nvidia-driver-cuda-3:580.95.05-1.el10.*' >/locked ;;
esac
"""


class Host:
    """A running container that stands for a host."""

    def __init__(self, name: str) -> None:
        self.name = name

    def run(self, *command: str, text: str = "") -> subprocess.CompletedProcess[str]:
        line = ["docker", "exec", "--interactive", self.name, *command]
        return subprocess.run(line, input=text, capture_output=True, text=True, check=False, timeout=120)

    def write(self, path: str, text: str) -> None:
        done = self.run("sh", "-c", f"mkdir -p {path.rpartition('/')[0] or '/'} && cat >{path} && chmod +x {path}", text=text)
        assert done.returncode == 0, done.stderr

    def set_up(self, lock: Lock, *options: str) -> subprocess.CompletedProcess[str]:
        self.write("/root/host.sh", render(lock, "host-script"))
        return self.run("sh", "/root/host.sh", *options)

    def state(self) -> str:
        """The installed packages and the files of apt's configuration."""
        done = self.run("sh", "-c", "dpkg-query --show; find /etc/apt -type f -exec cksum {} + | sort")
        return done.stdout


@pytest.fixture
def host(base_image: str) -> Iterator[Host]:
    command = ["docker", "run", "--detach", "--rm", "--network=none", base_image, "sleep", "600"]
    name = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    yield Host(name)
    subprocess.run(["docker", "rm", "--force", name], capture_output=True, check=True)


@pytest.fixture
def debian(host: Host) -> Host:
    made = host.run("python3", "-c", SHELF, *PACKAGES)
    assert made.returncode == 0, made.stderr
    host.run("sh", "-c", "rm -rf /etc/apt/sources.list.d/*")
    host.write("/etc/apt/sources.list", "deb [trusted=yes] file:/shelf ./\n")
    host.write("/usr/local/bin/curl", CURL)
    host.write("/usr/local/bin/uname", UNAME)
    return host


def commands(said: str) -> list[str]:
    return [line for line in said.splitlines() if line.startswith("+ ")]


def test_a_debian_host_is_set_up_once_and_a_second_run_does_nothing(debian: Host) -> None:
    lock, before = LOCKS["debian-12"], debian.state()
    dry = debian.set_up(lock, "--dry-run")
    assert (dry.returncode, dry.stderr) == (0, "")
    assert debian.state() == before
    first = debian.set_up(lock)
    assert first.returncode == 3, first.stdout + first.stderr
    assert [line for line in commands(first.stdout) if "apt-get install" in line] == [
        f"+ env DEBIAN_FRONTEND=noninteractive apt-get install --yes linux-headers-{KERNEL}",
        "+ env DEBIAN_FRONTEND=noninteractive apt-get install --yes nvidia-driver-pinning-615",
        "+ env DEBIAN_FRONTEND=noninteractive apt-get install --yes nvidia-driver-cuda nvidia-kernel-open-dkms",
        "+ env DEBIAN_FRONTEND=noninteractive apt-get install --yes nvidia-container-toolkit",
    ]
    assert "TO DO: reboot, so that the driver that was installed is loaded" in first.stdout
    after = debian.state()
    assert all(package.partition("=")[0] in after for package in PACKAGES)
    assert debian.run("cat", "/etc/apt/sources.list.d/provision-nvidia-container-toolkit.list").stdout == (
        "deb [signed-by=/etc/apt/keyrings/provision-nvidia-container-toolkit.asc] "
        "https://nvidia.github.io/libnvidia-container/stable/deb/$(ARCH) /\n"
    )
    # A dry run says what a run does, but for what it would find installed by then.
    assert next(line for line in commands(dry.stdout) if "apt-get install" in line) in first.stdout
    second = debian.set_up(lock)
    assert (second.returncode, commands(second.stdout)) == (3, [])
    assert debian.state() == after
    debian.write("/booted", "")
    third = debian.set_up(lock)
    assert (third.returncode, commands(third.stdout)) == (0, []), third.stdout + third.stderr
    assert "the driver that runs will do: 615.71.09" in third.stdout
    assert third.stdout.endswith("this host meets pylock.trainer.toml\n")
    assert debian.state() == after


def test_what_a_distribution_installed_is_kept_from_the_drivers_of_the_toolkits_repository(debian: Host) -> None:
    debian.write("/etc/os-release", 'ID=ubuntu\nVERSION_ID="22.04"\n')
    debian.write("/usr/bin/nvidia-smi", '#!/bin/sh\necho "9.0, 580.95.05"\n')
    lock = LOCKS["ubuntu-22.04"]
    setup = lock.stack.host_setups[0]
    steps = tuple(replace(one, packages=("nvidia-container-toolkit",)) for one in setup.steps if one.component == "nvcc")
    driver = replace(setup.steps[1], packages=("nvidia-kernel-open-dkms",))
    lock = with_setups(lock, replace(setup, repositories=(replace(setup.repositories[0], sha256=""),), steps=(driver, *steps)))
    pin = "/etc/apt/preferences.d/provision-driver"
    assert pin not in debian.set_up(lock).stdout  # the driver that runs is not of the distribution
    debian.run("dpkg", "--purge", "cuda-keyring")
    debian.run("apt-get", "install", "--yes", "nvidia-kernel-open-dkms")
    assert f"+ write {pin}:" in commands(debian.set_up(lock).stdout)
    assert "Pin-Priority: -1\n" in debian.run("cat", pin).stdout


def test_a_driver_that_is_not_loaded_yet_is_none_that_runs(debian: Host) -> None:
    """nvidia-smi says so on stdout; here the stack would take any driver, so no number of it is compared."""
    debian.write("/usr/bin/nvidia-smi", "#!/bin/sh\necho NVIDIA-SMI has failed because it could not communicate\nexit 9\n")
    lock = LOCKS["debian-12"]
    done = debian.set_up(replace(lock, stacks=(replace(lock.stack, host_requirements={}, require_cuda=""),)), "--dry-run")
    assert done.stdout.startswith("a driver is needed: nvidia-smi lists no GPU\n"), done.stdout + done.stderr


def test_a_driver_of_another_branch_is_not_taken_for_the_one_of_the_lock(debian: Host) -> None:
    assert debian.run("apt-get", "update").returncode == 0
    assert debian.run("apt-get", "install", "--yes", "nvidia-driver-cuda", "nvidia-kernel-open-dkms").returncode == 0
    lock = LOCKS["debian-12"]
    stack = lock.stack
    setup = stack.host_setups[0]
    steps = tuple(replace(one, version="616.1") if one.component == "driver" else one for one in setup.steps)
    lock = with_setups(lock, replace(setup, steps=steps))
    done = debian.set_up(lock, "--dry-run")
    assert any(line.endswith("nvidia-driver-cuda nvidia-kernel-open-dkms") for line in commands(done.stdout))
    done = debian.set_up(lock)
    stays = "nvidia-driver-cuda 615.71.09-1 stays, which is of another branch than 616"
    last = f"TO DO: {stays}: remove that driver, and run this script again"
    assert (done.returncode, done.stdout.splitlines()[-1]) == (3, last)


def test_a_gpu_that_no_driver_helps_is_refused_before_anything_is_done(debian: Host) -> None:
    debian.write("/usr/bin/nvidia-smi", '#!/bin/sh\necho "3.5, 470.256.02"\n')
    before = debian.state()
    done = debian.set_up(LOCKS["debian-12"])
    assert (done.returncode, commands(done.stdout)) == (78, [])
    assert done.stderr == "pylock.trainer.toml: it needs compute capability 7.5, 8.0, 9.0, and a GPU has 3.5\n"
    assert debian.state() == before


def test_a_download_with_another_hash_is_not_installed(debian: Host) -> None:
    lock = LOCKS["debian-12"]
    setup = lock.stack.host_setups[0]
    repositories = tuple(replace(one, sha256="0" * 64) if one.name == "cuda" else one for one in setup.repositories)
    done = debian.set_up(with_setups(lock, replace(setup, repositories=repositories)))
    assert done.returncode == 78
    assert "has another SHA-256 than" in done.stderr
    assert "cuda-keyring" not in debian.run("dpkg-query", "--show").stdout


def test_a_download_that_breaks_off_is_made_again(debian: Host) -> None:
    debian.write("/usr/local/bin/curl", "#!/bin/sh\nexit 56\n")
    broken = debian.set_up(LOCKS["debian-12"])
    assert broken.returncode == 56
    debian.write("/usr/local/bin/curl", CURL)
    assert debian.set_up(LOCKS["debian-12"]).returncode == 3
    assert debian.run("cat", "/etc/apt/keyrings/provision-nvidia-container-toolkit.asc").stdout == "a key\n"


def test_another_distribution_is_refused_with_what_was_found(debian: Host) -> None:
    done = debian.set_up(LOCKS["ubuntu-24.04"])
    message = "pylock.trainer.toml: it is for ubuntu 24.04 on x86_64; this host runs debian 12 on x86_64\n"
    assert (done.returncode, done.stdout, done.stderr) == (78, "", message)


def test_a_kernel_without_prebuilt_modules_is_refused(debian: Host) -> None:
    debian.write("/etc/os-release", 'ID=ubuntu\nVERSION_ID="24.04"\n')
    done = debian.set_up(LOCKS["ubuntu-24.04"])
    assert done.returncode == 78
    assert done.stderr.startswith(
        "pylock.trainer.toml: the modules of the driver are for kernels 6.8.*-generic, and 6.1.0-28-amd64"
    )


def test_a_kernel_whose_headers_are_not_published_any_more_is_for_a_person(debian: Host) -> None:
    """Debian and Ubuntu remove the headers of a kernel once a newer one is out, and the host still runs it."""
    debian.write("/usr/local/bin/uname", UNAME.replace(KERNEL, "6.1.0-9-amd64"))
    before = debian.state()
    done = debian.set_up(LOCKS["debian-12"])
    assert (done.returncode, commands(done.stdout)) == (3, ["+ apt-get update"]), done.stdout + done.stderr
    message = "no repository has linux-headers-6.1.0-9-amd64, for the kernel that runs: update the kernel, reboot, and run this"
    assert done.stdout.endswith(f"TO DO: {message} script again\n")
    assert debian.state() == before


def test_a_person_without_rights_may_only_look(debian: Host) -> None:
    debian.write("/tmp/host.sh", render(LOCKS["debian-12"], "host-script"))
    line = ["docker", "exec", "--user", "nobody", debian.name, "sh", "/tmp/host.sh"]
    refused = subprocess.run(line, capture_output=True, text=True, check=False)
    assert (refused.returncode, refused.stderr) == (78, "pylock.trainer.toml: run it as root, or with --dry-run\n")
    assert subprocess.run([*line, "--dry-run"], capture_output=True, check=False).returncode == 0


def test_a_host_of_the_family_of_rhel_is_set_up_once(host: Host) -> None:
    host.write("/etc/os-release", 'ID="rocky"\nVERSION_ID="9.4"\n')
    host.write("/usr/local/bin/uname", UNAME)
    host.write("/usr/local/bin/curl", '#!/bin/sh\necho "curl $*" >>/commands\nfor last in "$@"; do :; done\necho repo >"$6"\n')
    host.write("/usr/local/bin/rpm", RPM)
    host.write("/usr/local/bin/dnf", DNF)
    host.run("mkdir", "-p", "/etc/dnf/modules.d", "/etc/yum.repos.d")
    lock = with_setups(ON_HOST, ROCKY)
    first = host.set_up(lock)
    assert first.returncode == 1, first.stdout + first.stderr  # nobody made an nvcc
    assert "WRONG: /usr/local/cuda-12.6/bin/nvcc is not of CUDA 12.6" in first.stdout
    repository = "https://developer.download.nvidia.com/compute/cuda/repos/rhel9/x86_64/cuda-rhel9.repo"
    done = host.run("cat", "/commands").stdout
    assert done.splitlines() == [
        "install --assumeyes kernel-devel-matched kernel-headers",
        "install --assumeyes epel-release",
        f"curl --fail --silent --show-error --location --output /etc/yum.repos.d/cuda-rhel9.repo.part {repository}",
        "module enable --assumeyes nvidia-driver:580-dkms",
        "install --assumeyes nvidia-driver-cuda kmod-nvidia-latest-dkms",
        "install --assumeyes cuda-toolkit-12-6",
    ]
    host.write("/usr/local/cuda-12.6/bin/nvcc", "#!/bin/sh\necho 'Cuda compilation tools, release 12.6, V12.6.85'\n")
    second = host.set_up(lock)
    assert (second.returncode, commands(second.stdout)) == (3, [])
    host.write("/usr/local/bin/nvidia-smi", '#!/bin/sh\ncase $* in *cap*) echo "7.5, 580.95.05" ;; *) echo 580.95.05 ;; esac\n')
    third = host.set_up(lock)
    assert (third.returncode, commands(third.stdout)) == (0, []), third.stdout + third.stderr
    assert host.run("cat", "/commands").stdout == done


def test_release_10_has_no_streams_and_its_packages_are_locked_to_a_branch(host: Host) -> None:
    host.write("/etc/os-release", 'ID="rocky"\nVERSION_ID="10.1"\n')
    host.write("/usr/local/bin/uname", UNAME)
    host.write("/usr/local/bin/curl", '#!/bin/sh\nfor last in "$@"; do :; done\necho repo >"$6"\n')
    host.write("/usr/local/bin/rpm", RPM)
    host.write("/usr/local/bin/dnf", DNF)
    host.run("mkdir", "-p", "/etc/yum.repos.d")
    lock = with_setups(ON_HOST, ROCKY_10)
    first = host.set_up(lock)
    assert first.returncode == 3, first.stdout + first.stderr
    done = host.run("cat", "/commands").stdout
    assert done.splitlines() == [
        "install --assumeyes kernel-devel-matched kernel-headers",
        "install --assumeyes epel-release",
        "install --assumeyes python3-dnf-plugin-versionlock",
        "versionlock add *nvidia*580*",
        "install --assumeyes nvidia-driver-cuda kmod-nvidia-open-dkms",
    ]
    second = host.set_up(lock)
    assert (second.returncode, commands(second.stdout)) == (3, [])
    assert "is locked: *nvidia*580*" in second.stdout
    assert host.run("cat", "/commands").stdout == done


def test_another_branch_of_release_10_is_unlocked_before_its_driver_is_installed(host: Host) -> None:
    host.write("/etc/os-release", 'ID="rocky"\nVERSION_ID="10.1"\n')
    host.write("/usr/local/bin/uname", UNAME)
    host.write("/usr/local/bin/curl", '#!/bin/sh\nfor last in "$@"; do :; done\necho repo >"$6"\n')
    host.write("/usr/local/bin/rpm", RPM)
    host.write("/usr/local/bin/dnf", DNF)
    kept = ("nvidia-container-toolkit-0:1.18.0-1.*", "bash-0:5.2.26-6.el10.*")
    host.write("/locked", "".join(f"{one}\n" for one in ("nvidia-driver-cuda-3:575.57.08-1.el10.*", *kept)))
    host.run("mkdir", "-p", "/etc/yum.repos.d")
    first = host.set_up(with_setups(ON_HOST, ROCKY_10))
    assert first.returncode == 3, first.stdout + first.stderr
    done = host.run("cat", "/commands").stdout.splitlines()
    assert done[3:5] == ["versionlock delete *nvidia*-575.*", "versionlock add *nvidia*580*"]
    assert not [line for line in done if "1.18" in line or "5.2" in line], "what else is locked stays"
