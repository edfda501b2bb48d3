#!/bin/bash
# cli.sh -- the commands that look: clients, locks, explain, check-client, drill, status, and what is
# made from their table.
#
# Passing proves, on a loopback device of its own with the server's own portmapper on port 111, so
# that every address of it looks like a client with everything in place:
#  (1) tables and JSON of clients, locks and waiters; clients are found by id, address and name, an
#      ambiguous name is refused with the list; control characters of a name never reach a terminal;
#  (2) --path finds the locks on a file by its kernel handle inside the NFS handle;
#  (3) check-client says in one sentence that nothing is missing, or what is; drill counts who would
#      be told; explain says what becomes of each lock, also with other options;
#  (4) status --watch shows the progress of a recovery;
#  (5) manual pages without a complaint of mandoc, completions without one of bash, both naming every
#      command and option.
set -u
if [ "${1:-}" != inside ]; then
    if [ "$(id -u)" -ne 0 ] || ! unshare -n true 2> /dev/null; then
        echo "skipped: a network namespace needs root"
        exit 77
    fi
    exec unshare -n "$0" inside
fi
. "$(dirname "$0")/lib.sh"
ip link set lo up

store="$work/store"
export HOLDFAST_CONTROL="$store/control.sock"
options=(--port 0 --http off --store "lmdb:$store" --rpcbind embedded --grace 300)

# ask CODE WORDS...: the command must end so; sets output, with both of its outputs.
ask() {
    local want=$1
    shift
    output=$(timeout 60 "$HOLDFAST" "$@" 2>&1 < /dev/null)
    expect "holdfast $*" same $? "$want"
}
says() { expect "it says $1" matches "$output" "$1"; }
# shellcheck disable=SC2317 # called by expect
has_no() { ! matches "$output" "$1" > /dev/null; }
never_says() { expect "it does not say $1" has_no "$1"; }
peer() { "$PEER" -s "$1" -n "$2" 127.0.0.1 "$port" "${@:3}"; }

start first "${options[@]}" || finish
expect "a lock" same "$(peer 127.1.0.1 alpha lock one 0 10)" granted
expect "another" same "$(peer 127.1.0.1 alpha lock two 5)" granted
expect "of another alpha" same "$(peer 127.1.0.3 alpha lock three 5 7 shared)" granted
expect "a registrant" matches "$(peer 127.0.0.1 me mon alpha me)" '^succ'
"$PEER" -s 127.1.0.2 -n $'be\033[31mta' 127.0.0.1 "$port" wait one > "$work/waiter" &
waiter=$!
expect "a waiter" wait_until grep -q waiting "$work/waiter"

# (1)
ask 0 clients
says 'ID +PROTOCOL +NAME +ADDRESS +STATE +LOCKS +WAITING +TOLD'
says 'c1 +nlm +alpha +127\.1\.0\.1 +active +2 +0 +none'
says 'c[0-9] +nsm +me +127\.0\.0\.1'
says 'be\?\[31mta'
never_says $'\033'
ask 0 clients c1
says 'address +127\.1\.0\.1'
ask 0 clients 127.1.0.3
says 'id +c2'
ask 0 clients ME
says 'mon_name +alpha'
ask 2 clients alpha
says 'there are several'
says 'c1 +nlm +127\.1\.0\.1'
ask 1 clients nobody
says 'no client has the id, address or name "nobody"'
ask 1 clients c99
says 'there is no client c99'
ask 1 clients --state odd
says 'allowed: crashed, recovering'
ask 0 clients --json
says '"clients": \['
says '"be\\u001[bB]\[31mta"'
ask 0 locks
says 'c1 +alpha +1 +write +0 +10 +held +1 +default +6f6e65'
says 'c2 +alpha +1 +read +5 +7 +held'
says '5 +to end'
ask 0 locks --client 127.1.0.3
says 'c2'
never_says 'c1 '
ask 2 locks --client alpha
ask 0 locks --waiting
says 'be\?\[31mta +1 +write +0 +to end +[0-9]+ s +c1 +0'
ask 0 locks --file 6f6e650000000000000000000000000000000000000000000000000000000000
says 'c1'
never_says '74776f'
ask 2 locks --file 0g
ask 0 locks --json --waiting
says '"blocked_by":\{"client":"c1"'

# (2) a handle like that of a kernel server: some bytes of its own, then the kernel's
if kernel=$("$HANDLE_OF" "$work" 2> /dev/null); then
    expect "a lock on a real file" same "$(peer 127.1.0.1 alpha lock "hex:01000101$kernel")" granted
    ask 0 locks --path "$work"
    says "01000101$kernel"
    never_says '6f6e65'
    ask 1 locks --path /
    says 'nothing is on /'
else
    echo "not shown: --path; this file system has no handles"
fi
ask 2 locks --path /nowhere
says '/nowhere: No such file'

# (3)
ask 0 check-client 127.0.0.1
says 'status monitor +TCP port [0-9]+ +UDP port [0-9]+ +answers'
says 'nothing is missing'
ask 0 check-client ::1 --json
says '"can_be_told": true'
ask 0 drill
says 'c1 +alpha +127\.1\.0\.1 +[23] +yes'
says 'After a crash now 3 of 3 clients would be told'
ask 0 drill --json
says '"can_be_told": true'
ask 0 explain c1
says 'kept if reclaimed in grace +freed when it restarts'
says 'tells it by SM_NOTIFY at 127\.1\.0\.1, and it has 300 s of grace'
ask 0 explain c1 --json
says '"server_crashes": "kept if reclaimed in grace"'
ask 0 explain me
says 'holds no locks'
ask 1 explain nobody
ask 2 explain
ask 2 check-client 127.0.0.1 --timeout 0
says 'not a number of seconds'

# (4) Nobody reclaims here: their locks are missing.
stop KILL
start again "${options[@]}" || finish
"$HOLDFAST" status --watch > "$work/watched" 2>&1 &
watcher=$!
server_pids+=("$watcher")
expect "who is missing" log_has "$work/watched" 'waiting for [34] locks of 2 clients'
expect "a bar" log_has "$work/watched" 'c1 *\[------------------------------\] 0 of [23]  alpha'
kill "$watcher"
wait "$watcher" 2> /dev/null
ask 0 clients --state recovering
says 'c1 +nlm'
ask 0 end-grace
stop TERM

start resumed "${options[@]}" --rpcbind off --recovery resume --sync process || finish
expect "a lock" same "$(peer 127.1.0.1 alpha lock one 0 10)" granted
ask 0 explain 127.1.0.1
says 'stays held'
says 'not a power cut'
ask 1 check-client 127.0.0.1 --timeout 1
says 'nothing listens on port 111'
ask 1 drill --timeout 1
says '0 of 3 clients would be told; 1 lock of the others'
stop TERM

# (5)
"$HOLDFAST" manual > "$work/holdfast.1"
"$HOLDFAST" serve --manual > "$work/holdfastd.8"
"$HOLDFAST" completion > "$work/completion"
expect "bash reads the completions" bash -n "$work/completion"
if command -v mandoc > /dev/null; then
    # Each refers to the other, which is not installed here.
    complaints=$(mandoc -Tlint "$work/holdfast.1" "$work/holdfastd.8" | grep -v 'referenced manual')
    expect "mandoc has nothing to say" same "$complaints" ""
else
    echo "not shown: manual pages without mandoc"
fi
for name in $("$HOLDFAST" help | sed -n 's/^  \([a-z-]*\) .*/\1/p'); do
    expect "the manual has $name" grep -q "^\.It Cm $name" "$work/holdfast.1"
    expect "the completions have $name" grep -q "\b$name\b" "$work/completion"
done
for name in $("$HOLDFAST" serve --help | sed -n 's/^  --\([a-z-]*\).*/\1/p'); do
    expect "the manual has --$name" grep -q "^\.It Fl Fl $name\b" "$work/holdfastd.8"
done
# shellcheck disable=SC1091
. "$work/completion"
COMP_WORDS=(holdfast locks --w) COMP_CWORD=2 COMPREPLY=()
_holdfast
expect "--w is completed" same "${COMPREPLY[*]}" --waiting
COMP_WORDS=(holdfast ex) COMP_CWORD=1 COMPREPLY=()
_holdfast
expect "ex is completed" same "${COMPREPLY[*]}" explain
kill "$waiter" 2> /dev/null
finish
