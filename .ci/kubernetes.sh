#!/bin/sh
# Build, start or stop a Kubernetes cluster of one node for the tests of `validate --engine kubernetes`: API server, controllers,
# scheduler and kubelet, built from Debian's source package of Kubernetes 1.20.2 (its last with the servers), with Debian's Go and
# etcd. The kubelet runs pods with the Docker engine of this machine. The build, once, takes five minutes of processor time,
# 0.7 GB of memory a processor, and 2 GB of disk, of which 1.2 GB stay.
#
#   .ci/kubernetes.sh build     download and compile what is missing; needs no engine
#   .ci/kubernetes.sh start     build, start all of it (as root), wait until the node is ready
#   .ci/kubernetes.sh stop      stop what `build` and `start` started
#   .ci/kubernetes.sh status    say where the configuration is (for KUBECONFIG); without an answer `built` or `none`, and exit 1
#
# Settings, all optional:
#   PROVISION_KUBERNETES_STATE   sources, programs, state, logs         (default /var/lib/provision-kubernetes)
#   PROVISION_KUBERNETES_PORT    the first of seven ports, on loopback  (default 26440)
#   PROVISION_DEBIAN_MIRROR      where the packages are from            (default http://deb.debian.org/debian)
set -eu

script=$(realpath "$0")
state=${PROVISION_KUBERNETES_STATE:-/var/lib/provision-kubernetes}
port=${PROVISION_KUBERNETES_PORT:-26440}
pool=${PROVISION_DEBIAN_MIRROR:-http://deb.debian.org/debian}/pool/main
go=$state/debian/usr/lib/go-1.19 source=$state/go/src/k8s.io/kubernetes
export KUBECONFIG="$state/run/config"
PATH=$state/bin:$state/debian/usr/bin:$go/bin:$PATH
kernel_settings="vm.overcommit_memory kernel.panic kernel.panic_on_oops"

fail() { echo "kubernetes.sh: $*" >&2; exit 3; }
say() { echo "kubernetes.sh: $*" >&2; }
answers() { [ -e "$KUBECONFIG" ] && kubectl get --raw /readyz --request-timeout 5s >/dev/null 2>&1; }
node_is_ready() { kubectl get nodes --request-timeout 5s 2>/dev/null | grep -q ' Ready '; }

# A file of Debian's pool, compared with its hash.
fetch() {
    file=$state/$(basename "$1")
    [ -e "$file" ] || curl --fail --silent --show-error --retry 3 --output "$file.part" "$pool/$1" || fail "cannot download $1"
    [ -e "$file" ] || mv "$file.part" "$file"
    echo "$2  $file" | sha256sum --check --quiet || fail "$file is not the file that is wanted"
}

unpack() {
    fetch "g/golang-1.19/golang-1.19-go_1.19.8-2_amd64.deb" 545123039b6c79e75cf2d86528781a825424cf33ce9d3f4513d772d7144cd531
    fetch "g/golang-1.19/golang-1.19-src_1.19.8-2_all.deb" 2dfa82fe4f08f4e0193c532e561af4c91871f5235608f04f2bb8d57bb288df5a
    fetch "e/etcd/etcd-server_3.4.23-4+b4_amd64.deb" 3a9445d4560ad6de1c375756b2a17d97713df44cbd20a658c871fe108af7ef5d
    fetch "k/kubernetes/kubernetes_1.20.5+really1.20.2.orig.tar.gz" b83c0780efb182d928dc63d46488a847f161f04e40a94b96bf5247dd671ecdfc
    if [ ! -e "$state/debian" ]; then
        rm -rf "$state/debian.part"
        for package in "$state"/*.deb; do dpkg-deb --extract "$package" "$state/debian.part"; done
        mv "$state/debian.part" "$state/debian"
    fi
    if [ ! -e "$source" ]; then
        mkdir -p "$source.part"
        tar --extract --strip-components 1 --file "$state/kubernetes_1.20.5+really1.20.2.orig.tar.gz" --directory "$source.part"
        # Only a process with CAP_SYS_RESOURCE may lower this, which a container that runs the tests may lack.
        sed -i 's/defaultSandboxOOMAdj int = -998/defaultSandboxOOMAdj int = 0/' "$source.part/pkg/kubelet/dockershim/docker_sandbox.go"
        mv "$source.part" "$source"
    fi
}

compile() {
    export GOROOT="$go" GOPATH="$state/go" GOCACHE="$state/cache" GOPROXY=off GO111MODULE=off CGO_ENABLED=0
    cd "$source"
    # The one generated file that the sources lack: the schema that the server tells.
    if [ ! -e pkg/generated/openapi/zz_generated.openapi.go ]; then
        go build -o "$state/bin/openapi-gen" ./vendor/k8s.io/kube-openapi/cmd/openapi-gen
        # shellcheck disable=SC2046 # one path a word
        inputs=$(grep -rlE '\+k8s:openapi-gen=' --include='*.go' pkg $(printf 'vendor/k8s.io/%s/ ' api apimachinery apiserver \
            kube-aggregator apiextensions-apiserver component-base kube-controller-manager kube-proxy kube-scheduler kubelet metrics \
            cloud-provider controller-manager) | grep -v testdata | xargs -n 1 dirname | sort -u | sed 's#^#k8s.io/kubernetes/#' | paste -sd,)
        openapi-gen --logtostderr --input-dirs "$inputs" --output-package k8s.io/kubernetes/pkg/generated/openapi \
            --output-file-base zz_generated.openapi --go-header-file hack/boilerplate/boilerplate.generatego.txt \
            --report-filename "$state/violations" >&2
    fi
    version="-X k8s.io/kubernetes/vendor/k8s.io/component-base/version"
    # Without the clients of clouds, optimisation and debugging information the build takes half of its time.
    for program in kube-apiserver kube-controller-manager kube-scheduler kubelet; do
        [ -e "$state/bin/$program" ] && continue
        say "building $program"
        GOGC=400 go build -tags providerless -gcflags "all=-N -l -dwarf=false" \
            -ldflags "-s -w $version.gitVersion=v1.20.2 $version.gitMajor=1 $version.gitMinor=20" \
            -o "$state/bin/$program.part" "./cmd/$program" || fail "$program cannot be built"
        mv "$state/bin/$program.part" "$state/bin/$program"
    done
    cd "$state"
    rm -rf "$state/cache"
}

# Start a program in the background: its name, and its arguments.
launch() {
    name=$1
    shift
    setsid "$name" "$@" >"$state/run/$name.log" 2>&1 </dev/null &
    echo $! >"$state/run/$name.pid"
}

wait_for() {
    attempts=0
    until "$1"; do
        attempts=$((attempts + 1))
        [ "$attempts" -le 240 ] || { tail -n 20 "$state/run/$2.log" >&2; fail "$2 did not answer within two minutes"; }
        sleep 0.5
    done
}

launch_all() {
    mkdir -p "$state/run"
    cd "$state/run"
    rm -rf etcd.data
    [ -e key ] || openssl genrsa -out key 2048 2>/dev/null
    openssl rsa -in key -pubout -out key.public 2>/dev/null
    token=$(openssl rand -hex 16)
    echo "$token,admin,1,system:masters" >tokens
    cat >"$KUBECONFIG" <<YAML
apiVersion: v1
kind: Config
clusters: [{name: tests, cluster: {server: "https://127.0.0.1:$port", insecure-skip-tls-verify: true}}]
users: [{name: admin, user: {token: "$token"}}]
contexts: [{name: tests, context: {cluster: tests, user: admin, namespace: default}}]
current-context: tests
YAML
    etcd_url=http://127.0.0.1:$((port + 1)) peer_url=http://127.0.0.1:$((port + 2))
    launch etcd --data-dir etcd.data --listen-client-urls "$etcd_url" --advertise-client-urls "$etcd_url" \
        --listen-peer-urls "$peer_url" --initial-advertise-peer-urls "$peer_url" --initial-cluster "default=$peer_url"
    launch kube-apiserver --etcd-servers="$etcd_url" --bind-address=127.0.0.1 --secure-port="$port" --insecure-port=0 \
        --cert-dir=certificates --service-account-key-file=key.public --service-account-signing-key-file=key \
        --service-account-issuer=https://kubernetes.default.svc --token-auth-file=tokens --authorization-mode=RBAC \
        --service-cluster-ip-range=10.96.0.0/24 --kubelet-preferred-address-types=InternalIP --feature-gates=TTLAfterFinished=true
    wait_for answers kube-apiserver
    launch kube-controller-manager --kubeconfig=config --service-account-private-key-file=key --leader-elect=false --port=0 \
        --secure-port=$((port + 3)) --bind-address=127.0.0.1 --cert-dir=certificates --feature-gates=TTLAfterFinished=true
    launch kube-scheduler --kubeconfig=config --leader-elect=false --port=0 --secure-port=$((port + 4)) --bind-address=127.0.0.1 \
        --cert-dir=certificates
    # The container that holds a pod's network only has to stay; images, and containers of others, are left alone.
    printf 'FROM provision-test/debian:bookworm\nCMD ["sleep", "infinity"]\n' \
        | DOCKER_BUILDKIT=0 docker build --quiet --tag provision-test/pause:1 - >/dev/null 2>&1 || fail "no Docker engine; run .ci/engine.sh start"
    # The kubelet asks nobody who they are, so it listens where only this machine and its containers are.
    bridge=$(docker network inspect --format '{{(index .IPAM.Config 0).Gateway}}' bridge)
    # shellcheck disable=SC2086 # a list of words
    sysctl $kernel_settings >kernel-settings
    launch kubelet --kubeconfig=config --hostname-override=node-1 --root-dir="$state/kubelet" --cert-dir=certificates \
        --container-runtime=docker --experimental-dockershim-root-directory="$state/dockershim" --cgroup-driver=cgroupfs \
        --cgroups-per-qos=false --enforce-node-allocatable= --fail-swap-on=false --eviction-hard= --image-gc-high-threshold=100 \
        --image-gc-low-threshold=99 --make-iptables-util-chains=false --pod-infra-container-image=provision-test/pause:1 \
        --read-only-port=0 --port=$((port + 5)) --healthz-port=0 --address="$bridge" --node-ip="$bridge" --resolv-conf= \
        --volume-plugin-dir="$state/plugins" --seccomp-profile-root="$state/seccomp"
    wait_for node_is_ready kubelet
    # A kubelet sets these for a machine of its own.
    sysctl --quiet --load=kernel-settings
}

build() {
    [ "$(dpkg --print-architecture)" = amd64 ] || fail "the packages are for amd64"
    command -v curl >/dev/null || fail "there is no curl"
    mkdir -p "$state/bin"
    echo $$ >"$state/build.pid"
    unpack
    compile
    rm -f "$state/build.pid"
}

start() {
    if answers; then say "a cluster already answers"; return 0; fi
    [ "$(id -u)" = 0 ] || exec sudo -n --preserve-env sh "$script" start
    command -v kubectl >/dev/null || fail "there is no kubectl; install kubernetes-client"
    build
    launch_all
}

stop() {
    [ "$(id -u)" = 0 ] || exec sudo -n --preserve-env sh "$script" stop
    # With its compilers, if it leads a group of processes (setsid).
    if [ -s "$state/build.pid" ]; then
        kill -- "-$(cat "$state/build.pid")" 2>/dev/null || kill "$(cat "$state/build.pid")" 2>/dev/null || true
        rm -f "$state/build.pid"
    fi
    for name in kubelet kube-scheduler kube-controller-manager kube-apiserver etcd; do
        if [ -s "$state/run/$name.pid" ]; then kill "$(cat "$state/run/$name.pid")" 2>/dev/null || true; fi
        rm -f "$state/run/$name.pid"
    done
    for container in $(docker ps --all --quiet --filter name=^k8s_ 2>/dev/null); do docker rm --force "$container" >/dev/null; done
}

status() {
    if ! answers; then
        if [ -e "$state/bin/kubelet" ]; then echo "kubernetes built"; else echo "kubernetes none"; fi
        return 1
    fi
    echo "kubernetes $KUBECONFIG"
}

case ${1:-} in
build | start | stop | status) "$1" ;;
*)
    sed -n '2,11p' "$0" | sed 's/^# \{0,1\}//' >&2
    exit 2
    ;;
esac
