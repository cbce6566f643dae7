#!/bin/sh
# Start or stop a Slurm cluster of one machine for the tests of `validate --engine slurm`: a controller and five node daemons,
# from Debian's packages, with or without systemd.
#
#   .ci/slurm.sh start     install what is missing and start all of it (as root), wait until the nodes are idle
#   .ci/slurm.sh stop      stop what `start` started
#   .ci/slurm.sh status    say where the configuration is (for SLURM_CONF); exit 1 when the controller does not answer
#
# Settings, all optional:
#   PROVISION_SLURM_RUNTIME   configuration, pid files, logs, state   (default /run/provision-slurm)
#   PROVISION_SLURM_PORT      the first of seven ports, on loopback   (default 17000)
set -eu

runtime=${PROVISION_SLURM_RUNTIME:-/run/provision-slurm}
port=${PROVISION_SLURM_PORT:-17000}
nodes="cpu-0 cpu-1 a100-0 h100-0 h100-1"
export SLURM_CONF="$runtime/slurm.conf"
PATH=/usr/local/sbin:/usr/sbin:/sbin:$PATH

fail() { echo "slurm.sh: $*" >&2; exit 3; }
say() { echo "slurm.sh: $*" >&2; }
answers() { [ -e "$SLURM_CONF" ] && timeout 10 scontrol ping 2>/dev/null | grep -q 'is UP'; }
munge_answers() { munge --no-input 2>/dev/null | unmunge >/dev/null 2>&1; }
nodes_are_idle() { [ "$(timeout 10 sinfo --noheader --Node --states=idle --format=%N 2>/dev/null | sort -u | wc -l)" = 5 ]; }

install_missing() {
    packages=
    command -v slurmctld >/dev/null || packages="$packages slurmctld"
    command -v slurmd >/dev/null || packages="$packages slurmd"
    command -v sbatch >/dev/null || packages="$packages slurm-client"
    command -v munged >/dev/null || packages="$packages munge"
    [ -n "$packages" ] || return 0
    command -v apt-get >/dev/null || fail "needs$packages, and this is not a Debian machine"
    say "installing$packages"
    # Packages that start their services on installation would take the ports and fail for want of a configuration.
    blocked=/usr/sbin/policy-rc.d
    if [ ! -e "$blocked" ]; then
        trap 'rm -f "$blocked"' EXIT
        printf '#!/bin/sh\nexit 101\n' >"$blocked"; chmod 755 "$blocked"
    fi
    apt-get -q -o Acquire::Retries=3 update >&2 || fail "apt-get update failed"
    # shellcheck disable=SC2086 # a list of words
    DEBIAN_FRONTEND=noninteractive apt-get -q -y -o Acquire::Retries=3 --no-install-recommends install $packages >&2 \
        || fail "cannot install$packages"
}

start_munge() {
    munge_answers && return 0
    [ -e /etc/munge/munge.key ] || mungekey --create --keyfile /etc/munge/munge.key
    chown munge:munge /etc/munge/munge.key
    mkdir -p /run/munge /var/log/munge /var/lib/munge
    chown munge:munge /run/munge /var/log/munge /var/lib/munge
    chmod 755 /run/munge
    setpriv --reuid munge --regid munge --init-groups munged --pid-file /run/munge/munged.pid || fail "munged does not start"
    cp /run/munge/munged.pid "$runtime/munged.pid"
    wait_for munge_answers "munge"
}

# One processor a node, so that a second job waits for the first. `gone-0` has no daemon. A daemon wants one device file for each
# GPU: any will do, and containers have these. What the configuration says of a node holds, whatever it has (config_overrides).
configure() {
    host=$(hostname -s)
    here="NodeHostname=$host NodeAddr=127.0.0.1"
    cat >"$SLURM_CONF" <<CONF
ClusterName=provision
SlurmctldHost=$host(127.0.0.1)
SlurmctldPort=$port
SlurmUser=root
AuthType=auth/munge
CryptoType=crypto/munge
MpiDefault=none
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SchedulerParameters=batch_sched_delay=1,sched_interval=2,bf_interval=2
SlurmdParameters=config_overrides
GresTypes=gpu
ReturnToService=2
SlurmdTimeout=30
InactiveLimit=0
KillWait=2
MinJobAge=120
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
StateSaveLocation=$runtime/state
SlurmctldPidFile=$runtime/slurmctld.pid
SlurmctldLogFile=$runtime/slurmctld.log
SlurmdSpoolDir=$runtime/spool-%n
SlurmdPidFile=$runtime/slurmd-%n.pid
SlurmdLogFile=$runtime/slurmd-%n.log
NodeName=DEFAULT CPUs=1 RealMemory=500
NodeName=cpu-[0-1] $here Port=[$((port + 1))-$((port + 2))] Feature=cpu
NodeName=a100-0 $here Port=$((port + 3)) Gres=gpu:a100:2 Feature=sm_80,driver_535
NodeName=h100-[0-1] $here Port=[$((port + 4))-$((port + 5))] Gres=gpu:h100:2 Feature=sm_90,driver_550
NodeName=gone-0 $here Port=$((port + 6)) Feature=sm_100 State=DOWN Reason=maintenance
PartitionName=main Nodes=cpu-[0-1],a100-0,h100-[0-1] Default=YES MaxTime=60 State=UP
PartitionName=gone Nodes=gone-0 MaxTime=60 State=UP
PartitionName=closed Nodes=cpu-0 MaxTime=60 State=DOWN
CONF
    cat >"$runtime/gres.conf" <<CONF
AutoDetect=off
NodeName=a100-0 Name=gpu Type=a100 File=/dev/null,/dev/zero
NodeName=h100-0 Name=gpu Type=h100 File=/dev/full,/dev/random
NodeName=h100-1 Name=gpu Type=h100 File=/dev/urandom,/dev/tty
CONF
}

wait_for() {
    attempts=0
    until "$1"; do
        attempts=$((attempts + 1))
        [ "$attempts" -le 200 ] || { tail -n 20 "$runtime"/*.log >&2; fail "$2 did not answer within 60 s"; }
        sleep 0.3
    done
}

stop_one() {
    [ -s "$1" ] || return 0
    process=$(cat "$1")
    kill "$process" 2>/dev/null || { rm -f "$1"; return 0; }
    attempts=0
    while kill -0 "$process" 2>/dev/null; do
        attempts=$((attempts + 1))
        [ "$attempts" -le 100 ] || fail "process $process did not end within 20 s"
        sleep 0.2
    done
    rm -f "$1"
}

status() {
    answers || { echo "slurm none"; return 1; }
    echo "slurm $SLURM_CONF"
}

case ${1:-} in
start)
    if answers && nodes_are_idle; then say "it runs already"; status; exit 0; fi
    [ "$(id -u)" = 0 ] || fail "no cluster answers, and starting one needs root"
    install_missing
    mkdir -p "$runtime/state"
    start_munge
    configure
    slurmctld -f "$SLURM_CONF" -c || fail "slurmctld does not start"
    wait_for answers "the controller"
    for node in $nodes; do slurmd -f "$SLURM_CONF" -N "$node" || fail "slurmd of $node does not start"; done
    wait_for nodes_are_idle "a node"
    status
    ;;
stop)
    for node in $nodes; do stop_one "$runtime/slurmd-$node.pid"; done
    stop_one "$runtime/slurmctld.pid"
    stop_one "$runtime/munged.pid"
    rm -rf "$runtime"
    ;;
status) status ;;
*)
    sed -n '2,7p' "$0" | sed 's/^# \{0,1\}//' >&2
    exit 2
    ;;
esac
