#!/bin/sh
# Start or stop a Docker engine, an image registry and the emulation of arm64 for the container tests, on any Debian machine, with
# or without systemd.
#
#   .ci/engine.sh start     install what is missing (as root), start all of it, wait until engine and registry answer
#   .ci/engine.sh stop      stop what `start` started; an engine that was already there is left alone
#   .ci/engine.sh status    say what answers; exit 1 when the engine does not
#
# An engine that already answers is used as it is. Settings, all optional:
#   PROVISION_ENGINE_DATA     where images are kept              (default /var/lib/docker)
#   PROVISION_ENGINE_STATE    logs, registry storage             (default /var/lib/provision-engine)
#   PROVISION_ENGINE_RUNTIME  pid files                          (default /run/provision-engine)
#   PROVISION_ENGINE_SOCKET   where the engine listens           (default /var/run/docker.sock)
#   PROVISION_REGISTRY_PORT   where the registry listens         (default 5000, on loopback only)
set -eu

data=${PROVISION_ENGINE_DATA:-/var/lib/docker}
state=${PROVISION_ENGINE_STATE:-/var/lib/provision-engine}
socket=${PROVISION_ENGINE_SOCKET:-/var/run/docker.sock}
port=${PROVISION_REGISTRY_PORT:-5000}
runtime=${PROVISION_ENGINE_RUNTIME:-/run/provision-engine}

fail() { echo "engine.sh: $*" >&2; exit 3; }
say() { echo "engine.sh: $*" >&2; }

engine_version() {
    curl --silent --fail --max-time 5 --unix-socket "$socket" http://localhost/version 2>/dev/null \
        | sed -n 's/.*"Version":"\([0-9][^"]*\)","ApiVersion".*/\1/p;t;s/.*"ApiVersion":"[^"]*".*"Version":"\([0-9][^"]*\)".*/\1/p' | head -n 1
}
engine_answers() { curl --silent --fail --max-time 5 --output /dev/null --unix-socket "$socket" http://localhost/_ping 2>/dev/null; }
registry_answers() { curl --silent --fail --max-time 5 --noproxy '*' --output /dev/null "http://127.0.0.1:$port/v2/" 2>/dev/null; }
is_running() { [ -s "$1" ] && kill -0 "$(cat "$1")" 2>/dev/null; }

install_missing() {
    packages=
    command -v curl >/dev/null || packages="$packages curl"
    engine_answers || command -v dockerd >/dev/null || packages="$packages docker.io iptables"
    command -v debootstrap >/dev/null || packages="$packages debootstrap"
    command -v docker-registry >/dev/null || packages="$packages docker-registry"
    command -v tinyproxy >/dev/null || packages="$packages tinyproxy"
    command -v qemu-aarch64-static >/dev/null || packages="$packages qemu-user-static"
    [ -n "$packages" ] || return 0
    [ "$(id -u)" = 0 ] || fail "needs$packages; install them, or run this as root"
    command -v apt-get >/dev/null || fail "needs$packages, and this is not a Debian machine"
    say "installing$packages"
    # A package that starts its service on installation would race with the engine started below.
    blocked=/usr/sbin/policy-rc.d
    if [ ! -e "$blocked" ]; then
        trap 'rm -f "$blocked"' EXIT
        printf '#!/bin/sh\nexit 101\n' >"$blocked"; chmod 755 "$blocked"
    fi
    apt-get -q -o Acquire::Retries=3 update >&2 || fail "apt-get update failed"
    # From Debian 13 on the client and its BuildKit plug-in are packages of their own.
    case $packages in
    *docker.io*)
        for extra in docker-cli docker-buildx; do
            if apt-cache show "$extra" >/dev/null 2>&1; then packages="$packages $extra"; fi
        done
        ;;
    esac
    # shellcheck disable=SC2086 # a list of words
    DEBIAN_FRONTEND=noninteractive apt-get -q -y -o Acquire::Retries=3 --no-install-recommends install $packages >&2 \
        || fail "cannot install$packages"
}

# Debian's default unit files are not used: without systemd they cannot be, and with it the settings would be the machine's.
start_engine() {
    if engine_answers; then say "a Docker engine already answers on $socket"; return 0; fi
    [ "$(id -u)" = 0 ] || fail "no engine answers on $socket, and starting one needs root"
    mount_cgroups
    rm -f "$socket"
    # `--group`: whoever started this through sudo may use the engine. `docker` is the group that Debian's package makes.
    # `--config-file`: by default BuildKit keeps up to a tenth of the disk; no container test needs more than 2 GB of it.
    printf '{"builder": {"gc": {"enabled": true, "defaultKeepStorage": "2GB"}}}\n' >"$state/daemon.json"
    # `--registry-mirror`: `FROM nvidia/cuda:…@sha256:…`, exactly what is emitted, is looked up on the loopback registry first.
    PATH=/usr/local/sbin:/usr/sbin:/sbin:$PATH setsid dockerd --config-file "$state/daemon.json" \
        --host "unix://$socket" --group "${SUDO_GID:-docker}" --data-root "$data" --exec-root "$runtime/exec" --pidfile "$runtime/dockerd.pid" \
        --registry-mirror "http://127.0.0.1:$port" >"$state/dockerd.log" 2>&1 </dev/null &
    wait_for engine_answers "$state/dockerd.log" "the Docker engine" $!
}

# What systemd does at boot, and Debian's cgroupfs-mount elsewhere: version 2 where it is there, else each controller of version 1.
mount_cgroups() {
    root=/sys/fs/cgroup
    [ ! -e "$root/cgroup.controllers" ] || return 0
    mountpoint -q "$root" || mount -t tmpfs -o uid=0,gid=0,mode=0755 cgroup "$root" || fail "cannot mount $root"
    for controller in $(awk '!/^#/ && $4 == 1 { print $1 }' /proc/cgroups); do
        mountpoint -q "$root/$controller" && continue
        mkdir -p "$root/$controller" && mount -t cgroup -o "$controller" cgroup "$root/$controller" 2>/dev/null \
            || rmdir "$root/$controller" 2>/dev/null || true
    done
}

start_registry() {
    if registry_answers; then say "a registry already answers on port $port"; return 0; fi
    mkdir -p "$state/registry"
    cat >"$state/registry.yml" <<YAML
version: 0.1
log: {level: warn}
storage: {filesystem: {rootdirectory: $state/registry}, delete: {enabled: true}}
http: {addr: "127.0.0.1:$port"}
YAML
    setsid docker-registry serve "$state/registry.yml" >"$state/registry.log" 2>&1 </dev/null &
    echo $! >"$runtime/registry.pid"
    wait_for registry_answers "$state/registry.log" "the registry" $!
}

# What Debian's binfmt-support or systemd do at boot: the kernel runs programs for arm64 through qemu, in containers, too.
emulate_arm64() {
    formats=/proc/sys/fs/binfmt_misc
    [ "$(uname -m)" = x86_64 ] && [ ! -e "$formats/qemu-aarch64" ] || return 0
    [ "$(id -u)" = 0 ] || { say "arm64 is not emulated: that needs root"; return 0; }
    [ -e "$formats/register" ] || mount -t binfmt_misc binfmt_misc "$formats" || { say "arm64 is not emulated"; return 0; }
    cat /usr/lib/binfmt.d/qemu-aarch64.conf >"$formats/register" && : >"$runtime/emulates-arm64" || say "arm64 is not emulated"
}

stop_emulating() {
    [ -e "$runtime/emulates-arm64" ] || return 0
    [ ! -e /proc/sys/fs/binfmt_misc/qemu-aarch64 ] || echo -1 >/proc/sys/fs/binfmt_misc/qemu-aarch64
    rm -f "$runtime/emulates-arm64"
}

wait_for() {
    attempts=0
    until "$1"; do
        attempts=$((attempts + 1))
        kill -0 "$4" 2>/dev/null || { tail -n 20 "$2" >&2; fail "$3 ended instead of answering; its log is $2"; }
        [ "$attempts" -le 300 ] || { tail -n 20 "$2" >&2; fail "$3 did not answer within 60 s; its log is $2"; }
        sleep 0.2
    done
}

stop_one() {
    is_running "$1" || { rm -f "$1"; return 0; }
    process=$(cat "$1")
    kill "$process"
    attempts=0
    while kill -0 "$process" 2>/dev/null; do
        attempts=$((attempts + 1))
        [ "$attempts" -le 150 ] || fail "process $process did not end within 30 s"
        sleep 0.2
    done
    rm -f "$1"
}

status() {
    if registry_answers; then echo "registry 127.0.0.1:$port"; else echo "registry none"; fi
    engine_answers || { echo "engine none"; return 1; }
    echo "engine $(engine_version) $socket"
}

# The engine can be built with by hand too: `docker` may be a client of 23 or newer that lacks its BuildKit plug-in.
advise_client() {
    docker buildx version >/dev/null 2>&1 && return 0
    for client in /usr/bin/docker /usr/local/bin/docker; do
        case $("$client" --version 2>/dev/null) in
        *" 1"[0-9].* | *" 2"[0-2].*)
            [ "$(command -v docker)" = "$client" ] || say "to build by hand: DOCKER_BUILDKIT=1 $client build"
            return 0
            ;;
        esac
    done
    say "no docker client here can use BuildKit; install docker-buildx"
}

case ${1:-} in
start)
    install_missing
    mkdir -p "$state" "$runtime"
    start_registry
    start_engine
    emulate_arm64
    advise_client
    status
    ;;
stop)
    stop_one "$runtime/dockerd.pid"
    stop_one "$runtime/registry.pid"
    stop_emulating
    ;;
status) status ;;
*)
    sed -n '2,8p' "$0" | sed 's/^# \{0,1\}//' >&2
    exit 2
    ;;
esac
