#!/bin/sh
# Make the base image of the container tests from Debian packages, with no image registry: base_image.sh TAG [SUITE]
# Needs root (or sudo), debootstrap and a Docker engine; takes about half a minute, once. Where TAG exists already, nothing is done.
# The packages come from PROVISION_DEBIAN_MIRROR, else from where this machine has that suite from, else from Debian.
set -eu
tag=$1
suite=${2:-bookworm}
docker image inspect "$tag" >/dev/null 2>&1 && exit 0
[ "$(id -u)" = 0 ] || exec sudo -n --preserve-env=DOCKER_HOST,PROVISION_DEBIAN_MIRROR "$0" "$@"
PATH=$PATH:/usr/sbin:/sbin

own_mirror() {
    apt-get indextargets --format '$(REPO_URI)' 'Origin: Debian' "Codename: $suite" 'Component: main' 2>/dev/null | grep '^https\{0,1\}://' | head -n 1
}
mirror=${PROVISION_DEBIAN_MIRROR:-$(own_mirror)}
mirror=${mirror:-http://deb.debian.org/debian}

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
# A suite that is newer than this debootstrap has no script yet; since stretch all are the one of sid.
script=/usr/share/debootstrap/scripts/$suite
[ -e "$script" ] || script=/usr/share/debootstrap/scripts/sid
debootstrap --variant=minbase --include=python3,python3-venv,ca-certificates "$suite" "$scratch/root" "$mirror" "$script" >"$scratch/log" 2>&1 \
    || { tail -n 20 "$scratch/log" >&2; exit 1; }
# The official Python images call their interpreter `python`.
ln -s python3 "$scratch/root/usr/bin/python"
rm -rf "$scratch"/root/var/cache/apt/* "$scratch"/root/var/lib/apt/lists/* "$scratch"/root/usr/share/doc/* "$scratch"/root/usr/share/locale/*
tar -C "$scratch/root" --sort=name --numeric-owner --exclude=./dev/* --exclude=./proc/* --exclude=./sys/* -c . \
    | docker import --change 'CMD ["python3"]' - "$tag" >/dev/null
