#!/bin/bash
# monitor_import.sh -- from rpc.statd to --role monitor and back, while hosts are watched.
#
# usage: monitor_import.sh WATCHER, the program made of watcher.c; without it the test is skipped
#
# Two hosts with a cable between them: see monitor_host.sh. Passing proves:
#  (1) what a real rpc.statd wrote, killed and imported in the same boot: the state stands, nobody that
#      it watched is notified, and the priv that it was given reaches the lock manager; a host of sm.bak
#      is notified, and then gone;
#  (2) exported again the lines are those that rpc.statd wrote; a real rpc.statd on that directory
#      carries on: one upcall, with that priv;
#  (3) imported in another boot than they were written in: state + 2, the host is notified, and its priv
#      is worth nothing any more;
#  (4) a file that is no registration, a directory that is not empty, and a store of a lock server are
#      refused, and nothing is written; an emptied store is still a monitor's;
#  (5) a registration that SM_MON would refuse, what is no file, an empty one, and a number that is no
#      state are refused by name; a file that rpc.statd ignores is ignored, which is said;
#  (6) an export as root follows no link, and gives to the owner of the directory what it made, nothing else.
# shellcheck disable=SC2317 # expect and wait_until call functions by their names
set -u
. "$(dirname "$0")/statd_hosts.sh"
enter 1 "$@"
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/monitor_host.sh"
watcher=$1

# store VERB...: sets code; what it said is in store.log.
store() {
    timeout 60 "$HOLDFAST" store "$@" > "$work/store.out" 2> "$work/store.log" < /dev/null
    code=$?
}

import() { store import --from rpc.statd "$1" --role monitor --store "lmdb:$work/store"; }
lines() { sort "$1"/* 2> /dev/null; }
# The monitor of nodea, for once: rpc.statd in that directory. Sets statd_pid.
start_statd() {
    rpc.statd -F -d -L -p 13025 -P "$1" > "$work/statd-a.log" 2>&1 < /dev/null &
    statd_pid=$!
    server_pids+=("$statd_pid")
    need "rpc.statd of nodea" wait_until quiet rpcinfo -T tcp 127.0.0.1 100024 1
}
is_told_of() { ! owed | grep -q "$1"; }

start_hosts
serve_locks

# (1)
mkdir -p "$work/home/sm" "$work/home/sm.bak"
start_statd "$work/home"
expect "rpc.statd watches" matches "$(mon "$address_b" priv-of-address1)" "^succ [0-9]+$"
expect "and another" matches "$(mon 10.77.1.77 priv-of-address2)" "^succ [0-9]+$"
end KILL "$statd_pid"
before=$(od -An -tu4 "$work/home/state" | xargs)
echo "0100007f 000186b5 00000003 00000010 00000000000000000000000000000000 $name_b $name_a" > "$work/home/sm.bak/$name_b"
import "$work/home"
expect "imported" same "$code" 0
expect "all of them" log_has "$work/store.log" '4 records'
monitor first --force || finish
expect "the state stands" same "$state" "$before"
expect "everybody is known" same "$hosts" 3
expect "the host of sm.bak is told" wait_until has_notices 2
expect "and gone" wait_until is_told_of "$name_b"
expect "nobody else is owed" same "$(owed | grep -c '"owed": *true')" 0
nodeb_notifies "$name_b" 9999
expect "the priv of before counts" wait_until has_upcalls 1
expect "as it was registered" matches "$(grep '^told' "$work/lockd.log")" \
    "^told by 127.0.0.1 over udp: mon_name=$address_b state=9999 priv=priv-of-address1$"
expect "a first SM_MON of it changes nothing" same "$(mon "$address_b" priv-of-address1)" "succ $state"
expect "it is the same one" same "$(owed | grep -c '"mon_name"')" 2

# (2)
stop TERM
mkdir "$work/back"
store export --to rpc.statd "$work/back" --role monitor --store "lmdb:$work/store"
expect "exported" same "$code" 0
expect "the lines are rpc.statd's" same "$(lines "$work/back/sm")" "$(lines "$work/home/sm")"
expect "nobody is to be notified" same "$(lines "$work/back/sm.bak")" ""
expect "the state is the same" same "$(od -An -tu4 "$work/back/state" | xargs)" "$before"
expect "sm-notify is named" log_has "$work/store.log" 'touch /run/sm-notify.pid'
store export --to rpc.statd "$work/back" --role monitor --store "lmdb:$work/store"
expect "not on top of others" same "$code" 1
expect "that are named" log_has "$work/store.log" 'back/sm: is not empty'
rpcinfo -d 100024 1
: > "$work/lockd.log"
start_statd "$work/back"
on 1 "$PEER" -s "$address_b" "$address_a" 13025 notify "$name_b" 10001 > /dev/null
expect "rpc.statd carries on" wait_until has_upcalls 1
expect "with the priv" matches "$(grep '^told' "$work/lockd.log")" "state=10001 priv=priv-of-address1$"
end KILL "$statd_pid"
rpcinfo -d 100024 1

# (3)
rm -rf "$work/store"
touch -d 2000-01-01 "$work/home/sm"/*
rm "$work/home/sm.bak"/*
: > "$work/statd.log"
: > "$work/lockd.log"
import "$work/home"
expect "of another boot" same "$code" 0
monitor second || finish
expect "the state is two more" same "$state" $((before + 2))
expect "nodeb is told" wait_until has_notices 2
nodeb_notifies "$name_b" 10003
expect "it is not watched any more" wait_until is_told_of "$address_b"
expect "no upcall" same "$(upcalls)" 0
stop TERM
rm -rf "$work/store"
: > "$HOLDFAST_MACHINE_ROOT/run/sm-notify.pid"
import "$work/home"
monitor third || finish
expect "of this one, sm-notify says" same "$state" "$before"
stop TERM

# (4)
store clear --yes --store "lmdb:$work/store"
expect "emptied" same "$code" 0
monitor emptied || finish
expect "nobody is known" same "$hosts" 0
stop TERM
rm -rf "$work/store"
echo "nonsense" > "$work/home/sm/strange"
import "$work/home"
expect "no registration" same "$code" 2
expect "by its file" log_has "$work/store.log" 'home/sm/strange: not a registration'
expect "nothing was made" test ! -e "$work/store/data.mdb"
store import --from rpc.statd "$work/home" --skip-unresolved --role monitor --store "lmdb:$work/store"
expect "what means nothing is refused" log_has "$work/store.log" 'skip-unresolved: a status monitor'
start locks --no-rpcbind --store "lmdb:$work/locks" --http off || finish
stop TERM
mkdir "$work/other"
store export --to rpc.statd "$work/other" --store "lmdb:$work/locks"
expect "a lock server's store" same "$code" 2
expect "is named" log_has "$work/store.log" 'the store is of a lock server'

# (5)
rm "$work/home/sm"/*
# refuses WHAT PATTERN: the import of home, and it says so; nothing is made.
refuses() {
    rm -rf "$work/store"
    import "$work/home"
    expect "$1 is refused" same "$code" 2
    expect "by its name" log_has "$work/store.log" "$2"
    expect "and nothing is made" test ! -e "$work/store/data.mdb"
}
# line PROGRAM PROCEDURE NAME
line() { echo "0100007f $1 00000003 $2 00000000000000000000000000000000 $3 $name_a"; }
line 000186a3 00000010 10.77.1.9 > "$work/home/sm/other"
refuses "another program" 'home/sm/other: not a registration'
line 000186b5 00000011 10.77.1.9 > "$work/home/sm/other"
refuses "another procedure" 'home/sm/other: not a registration'
line 000186b5 00000010 .hidden > "$work/home/sm/other"
refuses "a name that is none" 'home/sm/other: not a registration'
line 000186b5 00000010 a/b > "$work/home/sm/other"
refuses "a name that is a path" 'home/sm/other: not a registration'
: > "$work/home/sm/other"
refuses "an empty file" 'home/sm/other: not a registration'
rm "$work/home/sm/other"
mkdir "$work/home/sm/directory"
refuses "a directory" 'home/sm/directory: not a file'
rmdir "$work/home/sm/directory"
line 000186b5 00000010 10.77.1.9 > "$work/elsewhere"
ln -s "$work/elsewhere" "$work/home/sm.bak/link"
refuses "a link" 'home/sm.bak/link: not a file'
rm "$work/home/sm.bak/link"
mv "$work/home/state" "$work/state"
printf '\377\377\377\377' > "$work/home/state"
refuses "a number that is no state" 'home/state: not four bytes with a state number'
printf '\001\000\000\000\000' > "$work/home/state"
refuses "one byte too many" 'home/state: not four bytes with a state number'
mv "$work/state" "$work/home/state"
: > "$work/home/sm/.keep"
line 000186b5 00000018 10.77.1.9 > "$work/home/sm/10.77.1.9"
import "$work/home"
expect "a registration as the kernel's" same "$code" 0
expect "what rpc.statd ignores is named" log_has "$work/store.log" '.keep: ignored'

# (6)
export_to() { store export --to rpc.statd "$1" --role monitor --store "lmdb:$work/store"; }
owner() { stat -c %u:%g "$1"; }
mkdir -p "$work/statds" "$work/root-only"
chown 4711:4712 "$work/statds"
ln -s "$work/root-only" "$work/statds/sm"
export_to "$work/statds"
expect "a link is refused" same "$code" 1
expect "by its name" log_has "$work/store.log" 'statds/sm: is not a directory, or a link'
expect "its target belongs to whom it did" same "$(owner "$work/root-only")" 0:0
rm "$work/statds/sm"
mkdir "$work/statds/sm"
export_to "$work/statds"
expect "so is what belongs to somebody else" log_has "$work/store.log" 'statds/sm: belongs to another user'
expect "and stays so" same "$(owner "$work/statds/sm")" 0:0
rmdir "$work/statds/sm"
export_to "$work/statds"
expect "exported" same "$code" 0
for made in sm sm.bak sm/10.77.1.9 state; do
    expect "$made belongs to the user of rpc.statd" same "$(owner "$work/statds/$made")" 4711:4712
done
finish
