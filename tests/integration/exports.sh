#!/bin/bash
# exports.sh -- what operators see of files: exports, and files by their names.
#
# Passing proves:
#  (1) `holdfast exports` and /api/v1/exports name directory, clients, options and fsid, and count
#      mounts, open files and locks, each export its own; the status names what is async;
#  (2) a lock is listed by the name its file has now, also after a rename and after kill -9, when
#      nothing is open yet; hundreds of them at once; where there is no name, by its handle;
#      --export lists those of one export;
#  (3) --path finds the locks on a file of an export;
#  (4) explain, waiting requests and events have the names, too;
#  (5) without --export there is nothing to list, and it is said;
#  (6) an export that cannot be served, a right that is missing: exit 2, and a sentence that names what
#      is missing and what to do.
# shellcheck disable=SC2317 # expect and wait_until call functions by their names
set -u
. "$(dirname "$0")/lib.sh"

if [ "$(id -u)" != 0 ]; then
    echo "skipped: --export needs root"
    exit 77
fi
if ! command -v curl > /dev/null || ! command -v jq > /dev/null; then
    echo "skipped: curl and jq are needed"
    exit 77
fi
control=(--control "$work/store/control.sock")
options=(--listen 127.0.0.1 --port 0 --nfs-port 0 --http 127.0.0.1:0 --no-rpcbind
    --store "lmdb:$work/store" --recovery resume --export "$work/one *(rw,no_root_squash)"
    --export "$work/two 127.0.0.1(rw,no_root_squash,async,fsid=7) 10.0.0.0/8(ro)")
mkdir -m 755 "$work/one" "$work/two"
holdfast() { "$HOLDFAST" "$@" "${control[@]}" 2>&1; }
export_row() { holdfast exports --json | jq -c ".exports[] | select(.directory == \"$1\") | $2"; }
files() { "$PEER" 127.0.0.1 "$nfs" files "$@"; }
handle() { files "$1" stat "$2" | sed -n 's/.* handle /hex:/p'; }
lock() { "$PEER" -s 127.0.0.1 -n "$1" 127.0.0.1 "$port" lock "$2" 0 1; }
paths() { holdfast locks --json | jq -r '.locks[].path'; }
begin() {
    start "$1" "${options[@]}" || finish
    nfs=$(sed -n 's/.*serving files port=\([0-9]*\).*/\1/p' "$work/$1.log")
    http=$(sed -n 's/.*serving HTTP port=\([0-9]*\).*/\1/p' "$work/$1.log")
}

begin first
echo content > "$work/one/a file"
echo content > "$work/two/other"

# (1)
expect "no locks yet" same "$(export_row "$work/one" '[.mounts, .locks]')" '[0,0]'
one=$(handle "$work/one" "a file")
two=$(handle "$work/two" other)
expect "a lock in the first" same "$(lock alpha "$one")" granted
expect "two in the second" same "$(lock alpha "$two") $("$PEER" -s 127.0.0.1 -n alpha 127.0.0.1 "$port" lock "$two" 5 1)" "granted granted"
echo content > "$work/one/brief"
brief=$(handle "$work/one" brief)
expect "one that will be gone" same "$(lock alpha "$brief")" granted
rm "$work/one/brief"
expect "none of no export" same "$(lock alpha elsewhere)" 'stale handle'
expect "mounted once, locked once" same "$(export_row "$work/one" '[.mounts, .locks, .async]')" '[1,2,false]'
expect "and twice" same "$(export_row "$work/two" '[.mounts, .locks, .async, .fsid]')" '[1,2,true,7]'
expect "files are open" matches "$(export_row "$work/two" .open_files)" '^[1-9]'
expect "its clients" same "$(export_row "$work/two" '[.clients[] | .client, .options]')" \
    '["127.0.0.1","rw,no_root_squash,async,insecure,fsid=7","10.0.0.0/8","ro,root_squash,sync,insecure"]'
expect "as a table" matches "$(holdfast exports)" \
    "$work/two +7 +1 +[0-9]+ +2 +127.0.0.1\(rw,no_root_squash,async,insecure,fsid=7\)"
expect "over TCP" same \
    "$(curl -s -m 60 "http://127.0.0.1:$http/api/v1/exports?limit=1" | jq -c '[.exports[].directory, .next]')" \
    "[\"$work/one\",\"1\"]"
expect "the status names what is async" matches "$(holdfast status)" "async +$work/two: answers before"
expect "and only that" same "$(holdfast status --json | jq -c .files.async)" "[\"$work/two\"]"

# (2)
of_export() { holdfast locks --export "$1" --json | jq '[.total, (.locks | length)]' -c; }
expect "of one export" same "$(of_export "$work/one")" '[2,2]'
expect "of the other" same "$(of_export "$work/two")" '[2,2]'
expect "of none that is called so" matches "$(holdfast locks --export "$work/three")" \
    "no such export: $work/three; /api/v1/exports, or holdfast exports, lists them"
expect "nobody waits there" same "$(holdfast locks --waiting --export "$work/one" --json | jq .total)" 0
expect "the API has the filter" same \
    "$(curl -s -m 60 -G --data-urlencode "export=$work/two" "http://127.0.0.1:$http/api/v1/locks" | jq '.locks | length')" 2
expect "by name" matches "$(holdfast locks)" " $work/one/a file"
by_handle() { holdfast locks --json | jq -e ".locks[] | select(.file == \"${brief#hex:}\") | .path == null" > /dev/null; }
expect "and by handle" wait_until by_handle
expect "the API has both" same \
    "$(curl -s -m 60 "http://127.0.0.1:$http/api/v1/locks?file=${one#hex:}" | jq -r '.locks[] | .path + " " + .file')" \
    "$work/one/a file ${one#hex:}"
mv "$work/one/a file" "$work/one/renamed"
expect "by its new name" matches "$(paths)" "$work/one/renamed"
stop KILL
begin second
# On a busy machine a name may take longer than a list waits for it.
lists() { [[ $(holdfast locks) == *" $1"* ]]; }
expect "after kill -9" wait_until lists "$work/one/renamed"
expect "in both" wait_until lists "$work/two/other"
for i in {1..300}; do echo content > "$work/one/f$i"; done
for i in {1..300}; do
    [ "$(lock beta "$(handle "$work/one" "f$i")")" = granted ] || echo "  f$i is not locked"
done
stop KILL
begin third
wanted=$({ for i in {1..300}; do echo "$work/one/f$i"; done; echo "$work/one/renamed"
    echo "$work/two/other"; echo "$work/two/other"; } | sort) # and the one that is gone has no lock
all_named() { [ "$(paths | sort)" = "$wanted" ]; }
expect "hundreds that are not open" wait_until all_named
rm "$work/one/f1"
gone() { [ "$(paths | grep -c "/f1$")" = 0 ]; }
expect "one that is gone has none" wait_until gone
one_without() { [ "$(paths | grep -c null)" = 1 ]; }
expect "and is listed" wait_until one_without

# (3)
found() { [[ $(holdfast locks --path "$work/one/renamed") == *"$work/one/renamed"* ]]; }
expect "--path" wait_until found
expect "one only" same "$(holdfast locks --path "$work/one/renamed" --json | jq '.locks | length')" 1
echo content > "$work/one/unlocked"
expect "no lock" matches "$(holdfast locks --path "$work/one/unlocked")" 'no lock on'

# (4)
has_event() { grep -q "$1" "$work/events"; }
expect "its file is open" matches "$(files "$work/one" stat renamed)" handle
curl -s -N -m 60 "http://127.0.0.1:$http/api/v1/events" > "$work/events" &
server_pids+=("$!")
wait_until grep -q 'event: status' "$work/events"
"$PEER" -s 127.0.0.1 -n gamma 127.0.0.1 "$port" wait "$one" 0 1 > "$work/waiter" &
server_pids+=("$!")
waits() { [[ $(holdfast locks --waiting) == *"$work/one/renamed"* ]]; }
expect "who waits is listed by name" wait_until waits
expect "the event, too" wait_until has_event "\"kind\":\"blocked\".*\"path\":\"$work/one/renamed\""
explains() { [[ $(holdfast explain name:alpha) == *"$work/one/renamed"* ]]; }
expect "explain" wait_until explains
expect "an order is logged with the name" matches "$(holdfast release name:alpha --file "${one#hex:}" --yes)" released
expect "in the log" log_has "$work/third.log" "order=\"release a client's locks\".*path=\"$work/one/renamed\""
mv "$work/one" "$work/before"
mkdir "$work/one"
expect "another directory is a change" matches "$(holdfast reload)" \
    "$work/one .*inode $(stat -c %i "$work/before")\].*$work/one .*inode $(stat -c %i "$work/one")\]"
expect "once" matches "$(holdfast reload)" '^Nothing to change'
rmdir "$work/one"
mv "$work/before" "$work/one"
stop TERM

# (5)
start alone --listen 127.0.0.1 --port 0 --http off --no-rpcbind --store memory: --control "$work/alone.sock" || finish
expect "nothing is exported" matches "$("$HOLDFAST" exports --control "$work/alone.sock")" '^No exports'
expect "as JSON" same "$("$HOLDFAST" exports --json --control "$work/alone.sock" | jq -c .exports)" '[]'
expect "nor in the status" same "$("$HOLDFAST" status --json --control "$work/alone.sock" | jq -c .files)" null

# (6)
# refused NAME PATTERN COMMAND...: serving with these options ends with 2 and a sentence.
refused() {
    local name=$1 pattern=$2
    shift 2
    timeout 60 "$@" --listen 127.0.0.1 --port 0 --nfs-port 0 --http off --no-rpcbind \
        > "$work/refused" 2>&1 < /dev/null
    code=$?
    expect "$name: exit 2" same "$code" 2
    expect "$name: the sentence" matches "$(cat "$work/refused")" "$pattern"
}
serve=("$HOLDFAST" serve --store "lmdb:$work/refusing")
refused "not there" "cannot export $work/nothing: cannot be opened: No such file" \
    "${serve[@]}" --export "$work/nothing *(rw)"
refused "a file" "cannot export $work/one/renamed: cannot be opened: Not a directory" \
    "${serve[@]}" --export "$work/one/renamed *(rw)"
refused "no file handles" 'cannot export /proc: this file system has no file handles' \
    "${serve[@]}" --export "/proc *"
refused "a file of exports that is not there" "$work/nothing: No such file" \
    "${serve[@]}" --exports "$work/nothing"
mkfifo "$work/pipe"
refused "one that is a pipe" "$work/pipe: is not a regular file" "${serve[@]}" --exports "$work/pipe"
: > "$work/empty"
refused "one with nothing in it" 'the file has no line in it' "${serve[@]}" --exports "$work/empty"
refused "--user" '--export needs root for as long as it serves.*leave --user out' \
    "${serve[@]}" --export "$work/one *(rw)" --user nobody
refused "a shared store" '--export: .*use --store lmdb:DIR' \
    "$HOLDFAST" serve --store postgres:host=127.0.0.1 --export "$work/one *(rw)"
if command -v setpriv > /dev/null; then
    refused "a capability" '--export needs CAP_MKNOD, which was taken.*docker run --cap-add MKNOD' \
        setpriv --bounding-set=-mknod --inh-caps=-mknod "${serve[@]}" --export "$work/one *(rw)"
    chmod 755 "$work"
    refused "not root" '--export needs root.*CAP_[A-Z_]+ is missing; start it as root: sudo' \
        setpriv --reuid 65534 --regid 65534 --clear-groups "$HOLDFAST" serve --store memory: \
        --control "$work/nobody.sock" --export "$work/one *(rw)"
    if unshare -Ur true 2> /dev/null; then
        refused "nobody is not there" '--export needs user 65534 \(nobody\).*user namespace' \
            unshare -Ur "${serve[@]}" --export "$work/one *(rw)"
    fi
else
    echo "not shown: missing capabilities, without setpriv (util-linux)"
fi
finish
