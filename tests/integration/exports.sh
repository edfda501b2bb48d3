#!/bin/bash
# exports.sh -- what operators see of files: exports, and files by their names.
#
# Passing proves:
#  (1) `holdfast exports` and /api/v1/exports name directory, clients, options and fsid, and count
#      mounts, open files and locks, each export its own; the status names what is async;
#  (2) a lock is listed by the name its file has now, also after a rename and after kill -9, when
#      nothing is open yet; hundreds of them at once; where there is no name, by its handle;
#  (3) --path finds the locks on a file of an export;
#  (4) explain, waiting requests and events have the names, too;
#  (5) without --export there is nothing to list, and it is said.
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
expect "one of no export" same "$(lock alpha elsewhere)" granted
expect "mounted once, locked once" same "$(export_row "$work/one" '[.mounts, .locks, .async]')" '[1,1,false]'
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
expect "by name" matches "$(holdfast locks)" " $work/one/a file"
expect "and by handle" matches "$(holdfast locks)" ' 656c73657768657265'
expect "the API has both" same \
    "$(curl -s -m 60 "http://127.0.0.1:$http/api/v1/locks?file=${one#hex:}" | jq -r '.locks[] | .path + " " + .file')" \
    "$work/one/a file ${one#hex:}"
mv "$work/one/a file" "$work/one/renamed"
expect "by its new name" matches "$(paths)" "$work/one/renamed"
stop KILL
begin second
expect "after kill -9" matches "$(holdfast locks)" " $work/one/renamed"
expect "in both" matches "$(holdfast locks)" " $work/two/other"
for i in {1..300}; do echo content > "$work/one/f$i"; done
for i in {1..300}; do
    [ "$(lock beta "$(handle "$work/one" "f$i")")" = granted ] || echo "  f$i is not locked"
done
stop KILL
begin third
wanted=$({ for i in {1..300}; do echo "$work/one/f$i"; done; echo "$work/one/renamed"
    echo "$work/two/other"; echo "$work/two/other"; echo null; } | sort)
expect "hundreds that are not open" same "$(paths | sort)" "$wanted"
rm "$work/one/f1"
gone() { [ "$(paths | grep -c "/f1$")" = 0 ]; }
expect "one that is gone has none" wait_until gone
expect "and is listed" same "$(paths | grep -c null)" 2

# (3)
expect "--path" matches "$(holdfast locks --path "$work/one/renamed")" "$work/one/renamed"
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
expect "explain" matches "$(holdfast explain name:alpha)" "$work/one/renamed"
expect "an order is logged with the name" matches "$(holdfast release name:alpha --file "${one#hex:}" --yes)" released
expect "in the log" log_has "$work/third.log" "order=\"release a client's locks\".*path=\"$work/one/renamed\""
stop TERM

# (5)
start alone --listen 127.0.0.1 --port 0 --http off --no-rpcbind --store memory: --control "$work/alone.sock" || finish
expect "nothing is exported" matches "$("$HOLDFAST" exports --control "$work/alone.sock")" '^No exports'
expect "as JSON" same "$("$HOLDFAST" exports --json --control "$work/alone.sock" | jq -c .exports)" '[]'
expect "nor in the status" same "$("$HOLDFAST" status --json --control "$work/alone.sock" | jq -c .files)" null
finish
