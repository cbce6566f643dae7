#!/bin/sh
# Install packages as the archive of Debian or Ubuntu had them at one time:
#
#     snapshot.sh 20260901T000000Z gcc libc6-dev
#
# The sources of the image stay as they are, and are not read: what others publish there has no times. The archives sign what they
# serve, and apt-get verifies that, so http is enough, which works before an image has certificates. What a signature says of its own
# end is not looked at, because old states are asked for. Both services answer for any time with the newest state before it.
# Sources: snapshot.debian.org, "Usage"; snapshot.ubuntu.com and documentation.ubuntu.com/server/how-to/software/snapshot-service
# (from 2023-03-01 on), read 2026-11-24.
set -eu
time=$1
shift
. /etc/os-release
: "${VERSION_CODENAME:=}"
case ${ID:-}:$VERSION_CODENAME in
debian:?* | ubuntu:?*) ;;
*)
    echo "error: ${PRETTY_NAME:-this image} is no release of Debian or Ubuntu, of which alone there are snapshots; solve without image.snapshot" >&2
    exit 1
    ;;
esac
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
chmod 755 "$folder"
mkdir "$folder/sources"

archive() { # URL COMPONENTS SUITE...
    url=$1 components=$2
    shift 2
    printf '%s\n' 'Types: deb' "URIs: $url" "Suites: $*" "Components: $components" \
        "Signed-By: /usr/share/keyrings/$ID-archive-keyring.gpg" 'Check-Valid-Until: no' ''
}

case $ID in
debian)
    security=$VERSION_CODENAME-security
    [ "$VERSION_CODENAME" != buster ] || security=buster/updates
    archive "http://snapshot.debian.org/archive/debian/$time" main "$VERSION_CODENAME" "$VERSION_CODENAME-updates"
    archive "http://snapshot.debian.org/archive/debian-security/$time" main "$security"
    ;;
ubuntu)
    archive "http://snapshot.ubuntu.com/ubuntu/$time" 'main restricted universe multiverse' \
        "$VERSION_CODENAME" "$VERSION_CODENAME-updates" "$VERSION_CODENAME-security"
    ;;
esac >"$folder/sources/snapshot.sources"
cat >"$folder/apt.conf" <<END
Dir::Etc::sourcelist "/dev/null";
Dir::Etc::sourceparts "$folder/sources";
Acquire::Retries "3";
END
export APT_CONFIG="$folder/apt.conf" DEBIAN_FRONTEND=noninteractive
apt-get update
apt-get install --yes --no-install-recommends "$@"
