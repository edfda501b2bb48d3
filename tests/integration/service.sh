#!/bin/bash
# service.sh -- the server under a service manager, and as the first process of a container.
#
# usage: service.sh MANAGER      (a program that prints the notifications it gets)
#
# Passing proves:
#  (1) the manager is notified that the server is ready, then again and again that it is responsive,
#      and that it stops; a process that was not asked to keeps quiet;
#  (2) as process 1 of a container without root (a user, pid and network namespace of its own) the
#      server keeps a lock, reads its configuration again on SIGHUP, and ends on SIGTERM with code 0
#      within the ten seconds that container runtimes wait.
# shellcheck disable=SC2317,SC2016 # wait_until calls functions by their names; a shell inside
set -u
. "$(dirname "$0")/lib.sh"
manager=$1
holdfastd=$(realpath "$(dirname "$HOLDFAST")/../daemon/holdfastd")

# (1)
"$manager" "$work/notify" > "$work/manager.out" &
server_pids+=($!)
expect "the manager listens" wait_until grep -q listening "$work/manager.out"
options=(--listen 127.0.0.1 --port 0 --http off --no-rpcbind)
NOTIFY_SOCKET=$work/notify WATCHDOG_USEC=200000 start watched "${options[@]}" --store "lmdb:$work/store" || finish
expect "ready" log_has "$work/manager.out" '^READY=1 STATUS=ready on port'
# Steps of the start say so, too; only what comes after it is of the loop.
is_fed() { [ "$(sed '1,/^READY=1/d' "$work/manager.out" | grep -c '^WATCHDOG=1$')" -ge 5 ]; }
expect "and responsive" wait_until is_fed
stop TERM
expect "stopping" log_has "$work/manager.out" '^STOPPING=1'
fed=$(grep -c '^WATCHDOG=1$' "$work/manager.out")
NOTIFY_SOCKET=$work/notify WATCHDOG_USEC=200000 WATCHDOG_PID=1 start other "${options[@]}" --store "lmdb:$work/store" || finish
stop TERM
is_told_twice() { [ "$(grep -c '^STOPPING=1' "$work/manager.out")" -eq 2 ]; }
expect "stopping again" wait_until is_told_twice
expect "another process was asked" same "$(grep -c '^WATCHDOG=1$' "$work/manager.out")" "$fed"

# (2)
if ! unshare --user --map-root-user --pid --fork --net true 2> /dev/null; then
    echo "not shown: process 1 of a container: user namespaces are not allowed here"
    finish
fi
printf '[holdfast]\nlisten = 127.0.0.1\nport = 0\nhttp = off\nrpcbind = off\nstore = lmdb:%s\nlog-level = info\n' \
    "$work/contained" > "$work/container.conf"
: > "$work/contained.out"
unshare --user --map-root-user --pid --fork --kill-child --net --mount-proc sh -c \
    'ip link set lo up 2> /dev/null; exec "$0" --config "$1"' "$holdfastd" "$work/container.conf" \
    > "$work/contained.out" 2> "$work/contained.log" < /dev/null &
runtime=$!
server_pids+=("$runtime")
expect "ready" wait_until is_ready_or_gone "$work/contained.out" "$runtime"
first=$(ps -o pid= --ppid "$runtime" | xargs)
expect "it is process 1" same "$(awk '/^NSpid/ { print $NF }' "/proc/$first/status")" 1
port=$(sed -n 's/.*ready on port \([0-9]*\) .*/\1/p' "$work/contained.out")
inside() { nsenter --target "$first" --user --net --preserve-credentials "$PEER" -n web1 127.0.0.1 "$port" "$@"; }
expect "a lock" same "$(inside lock mail)" granted
sed -i 's/^log-level = .*/log-level = debug/' "$work/container.conf"
kill -HUP "$first"
expect "SIGHUP reads the file again" log_has "$work/contained.log" 'log-level'
expect "and it still serves" same "$(inside lock mail)" granted
began=$SECONDS
kill -TERM "$first"
wait "$runtime"
expect "SIGTERM ends it with 0" same $? 0
expect "in time" [ $((SECONDS - began)) -lt 10 ]
expect "the lock is stored" matches "$("$STORE_DUMP" "lmdb:$work/contained" | grep -c '^lock')" '^[1-9]'
finish
