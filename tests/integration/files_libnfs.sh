#!/bin/bash
# files_libnfs.sh -- a second client: the tools of libnfs, which others wrote.
#
# In a network namespace of its own. Passing shows: nfs-ls lists, nfs-cp copies in and out, nfs-cat
# reads; small, empty and larger than one READ; also over kill -9 of the server in between, and each is
# the same byte for byte; a directory of many entries is listed whole; what is not exported is refused.
# Without libnfs-utils the test is skipped.
set -u
if [ -z "${HOLDFAST_IN_NAMESPACE:-}" ]; then
    for command in nfs-ls nfs-cp nfs-cat; do
        command -v "$command" > /dev/null || {
            echo "SKIP files_libnfs.sh: no $command (Debian: libnfs-utils)"
            exit 77
        }
    done
    if [ "$(id -u)" -ne 0 ] || ! unshare -n true 2> /dev/null; then
        echo "SKIP files_libnfs.sh: it needs root, to export files and for a network of its own"
        exit 77
    fi
    HOLDFAST_IN_NAMESPACE=1 exec unshare -n "$0"
fi
. "$(dirname "$0")/lib.sh"

ip link set lo up
umask 022
files=$work/files
mkdir -p "$files/many" "$work/local"
common=(--port 0 --http off --no-rpcbind --store "lmdb:$work/store" --nfs-port 2049
    --export "$files *(rw,no_root_squash)")
url() { echo "nfs://127.0.0.1$1?nfsport=2049&mountport=2049&version=3"; }
# shellcheck disable=SC2317 # expect calls it
copy() { timeout 60 nfs-cp "$@" > "$work/said" 2>&1 || { cat "$work/said"; false; }; }
show() { timeout 60 nfs-cat "$(url "$1")"; }
list() { timeout 60 nfs-ls "$(url "$1")" 2>&1; }

start server "${common[@]}" || finish
: > "$work/local/empty"
echo "one line" > "$work/local/small"
head -c 3500001 /dev/urandom > "$work/local/large"
for name in empty small large; do
    expect "copy $name in" copy "$work/local/$name" "$(url "$files/$name")"
    expect "$name on the disk" cmp "$work/local/$name" "$files/$name"
done
stop KILL
start again "${common[@]}" || finish
for name in empty small large; do
    expect "copy $name out" copy "$(url "$files/$name")" "$work/local/$name.back"
    expect "$name as it was" cmp "$work/local/$name" "$work/local/$name.back"
done
expect "nfs-cat" same "$(show "$files/small")" "one line"

for i in $(seq 3000); do
    echo > "$files/many/entry-with-a-rather-long-name-$i"
done
expect "every entry once" same "$(list "$files/many" | grep -c 'entry-with-a-rather-long-name-')" 3000
expect "and no other twice" same "$(list "$files/many" | awk '{ print $NF }' | sort | uniq -d)" ""
expect "sizes" matches "$(list "$files" | grep 'large$')" '3500001'
expect "links count" matches "$(list "$files" | grep 'many$')" '^drwxr-xr-x +2 '
expect "what is not exported" matches "$(list /etc)" 'MNT3ERR_(ACCES|NOENT)|[Ff]ailed'
stop TERM
expect "a clean end" same "$code" 0
finish
