#!/bin/sh
# Write the root of a small Debian with Python as a tar, without an image registry: debian_root.sh SUITE ARCHITECTURE FILE
# Needs root and debootstrap; takes about half a minute. Of another architecture than this machine's, packages are unpacked and not
# configured: no program of the root runs, so none needs to be emulated.
# The packages come from PROVISION_DEBIAN_MIRROR, else from where this machine has that suite from, else from Debian.
set -eu
suite=$1 architecture=$2 file=$3
PATH=$PATH:/usr/sbin:/sbin

own_mirror() {
    apt-get indextargets --format '$(REPO_URI)' 'Origin: Debian' "Codename: $suite" 'Component: main' 2>/dev/null | grep '^https\{0,1\}://' | head -n 1
}
mirror=${PROVISION_DEBIAN_MIRROR:-$(own_mirror)}
mirror=${mirror:-http://deb.debian.org/debian}

foreign=
[ "$architecture" = "$(dpkg --print-architecture)" ] || foreign=--foreign
scratch=$(mktemp -d)
root=$scratch/root
trap 'rm -rf "$scratch"' EXIT
# A suite that is newer than this debootstrap has no script yet; since stretch all are the one of sid.
script=/usr/share/debootstrap/scripts/$suite
[ -e "$script" ] || script=/usr/share/debootstrap/scripts/sid
# shellcheck disable=SC2086 # one word or none
debootstrap $foreign --arch="$architecture" --variant=minbase --include=python3,python3-venv,ca-certificates "$suite" "$root" "$mirror" "$script" \
    >"$scratch/log" 2>&1 || { tail -n 20 "$scratch/log" >&2; exit 1; }
if [ -n "$foreign" ]; then
    for package in "$root"/var/cache/apt/archives/*.deb; do
        dpkg-deb --fsys-tarfile "$package" | tar -C "$root" -x --keep-directory-symlink
    done
    # What the packages' scripts would have made of their own files, as far as a build needs it.
    for name in passwd group; do cp "$root/usr/share/base-passwd/$name.master" "$root/etc/$name"; done
    cat "$root"/usr/share/ca-certificates/mozilla/*.crt >"$root/etc/ssl/certs/ca-certificates.crt"
    rm -rf "$root/debootstrap" "$root/proc"
    mkdir "$root/proc"
fi
# The official Python images call their interpreter `python`.
ln -s python3 "$root/usr/bin/python"
rm -rf "$root"/var/cache/apt/* "$root"/var/lib/apt/lists/* "$root"/usr/share/doc/* "$root"/usr/share/locale/*
tar -C "$root" --sort=name --numeric-owner --exclude=./dev/* --exclude=./proc/* --exclude=./sys/* -c . >"$file"
