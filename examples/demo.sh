#!/bin/sh
# What `make demo` shows: solve a stack, lock it, write a Dockerfile, check it, and explain a request that cannot be met.
set -eu
provision=${PROVISION:-provision}
demo=${DEMO:-build/demo}

show() {
    printf '\n\033[1m$ %s\033[0m\n' "$*" | { [ -t 1 ] && cat || sed 's/\x1b\[[01]*m//g'; }
    command=$1
    shift
    [ "$command" = provision ] && command=$provision
    "$command" "$@"
}

meaning() {
    case $1 in
    0) echo "yes" ;;
    1) echo "the answer is no" ;;
    2) echo "bad input" ;;
    3) echo "cannot tell: something is unverified" ;;
    *) echo "not one of the exit codes there are" ;;
    esac
}

rm -rf "$demo"
mkdir -p "$demo"
cp -R examples/. "$demo"
cd "$demo"

show provision --version
show cat trainer/provision.yaml
show cat hosts/h100.yaml
show provision solve trainer/provision.yaml
show sed -n 1,40p trainer/pylock.trainer.toml
show cat trainer/Dockerfile
# Where no image registry can be asked, the base image has no digest, and the verdict is not yes but `unverified`.
code=0
show provision check trainer || code=$?
printf '\nexit code %s: %s\n' "$code" "$(meaning "$code")"
[ "$code" = 0 ] || [ "$code" = 3 ]

show provision solve mixed-gpus/provision.yaml --stack-only

# The answer to this one is no, and its exit code says so.
code=0
show provision explain old-driver/provision.yaml || code=$?
printf '\nexit code %s: %s\n' "$code" "$(meaning "$code")"
[ "$code" = 1 ]
printf '\nWhat was written is in %s.\n' "$demo"
