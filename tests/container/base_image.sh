#!/bin/sh
# Make the base image of the container tests from Debian packages, with no image registry: base_image.sh TAG [SUITE]
# Needs root (or sudo), debootstrap and a Docker engine; takes about half a minute, once. Where TAG exists already, nothing is done.
set -eu
tag=$1
suite=${2:-bookworm}
docker image inspect "$tag" >/dev/null 2>&1 && exit 0
[ "$(id -u)" = 0 ] || exec sudo -n --preserve-env=DOCKER_HOST,PROVISION_DEBIAN_MIRROR "$0" "$@"

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
"$(dirname "$0")/debian_root.sh" "$suite" "$(dpkg --print-architecture)" "$scratch/root.tar"
docker import --change 'CMD ["python3"]' "$scratch/root.tar" "$tag" >/dev/null
