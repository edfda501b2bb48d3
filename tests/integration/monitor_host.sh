# monitor_host.sh -- a machine with a status monitor of ours, for monitor.sh and its like. Sourced
# behind statd_hosts.sh and lib.sh, not run.
#
# nodea has rpcbind, our monitor and watcher.c, a lock manager made of libtirpc that prints every
# upcall; nodeb has rpcbind, rpc.statd and sm-notify. Reboots of nodea are another boot id in a
# /proc of the test's own. $watcher is the program made of watcher.c.
# shellcheck shell=bash disable=SC2034,SC2154

name_a=nodea.example
name_b=nodeb.example
address_a=10.77.1.1
address_b=10.77.1.2
names=$(printf '%s %s\n%s %s' "$address_a" "$name_a" "$address_b" "$name_b")
export HOLDFAST_MACHINE_ROOT=$work/machine
boot=0

boot_anew() { # the machine of our server boots
    boot=$((boot + 1))
    printf '%08d-1111-2222-3333-444444444444\n' "$boot" \
        > "$HOLDFAST_MACHINE_ROOT/proc/sys/kernel/random/boot_id"
    rm -f "$HOLDFAST_MACHINE_ROOT/run/sm-notify.pid"
}

is_monitoring_or_gone() { grep -q '^holdfast: monitoring on port' "$1" || is_gone "$2"; }

# monitor NAME OPTIONS...: as start of lib.sh. Sets pid, state, hosts.
monitor() {
    local name=$1 line
    shift
    : > "$work/$name.out"
    "$HOLDFAST" serve --role monitor --http off --store "lmdb:$work/store" "$@" \
        2> "$work/$name.log" > "$work/$name.out" < /dev/null &
    pid=$!
    server_pids+=("$pid")
    wait_until is_monitoring_or_gone "$work/$name.out" "$pid"
    line=$(grep '^holdfast: monitoring on port' "$work/$name.out") || {
        sed 's/^/    /' "$work/$name.log"
        return 1
    }
    matches "$line" 'on port 12049 \(state ([0-9]+), ([0-9,]+) hosts?\)$' || return 1
    state=${BASH_REMATCH[1]}
    hosts=${BASH_REMATCH[2]//,/}
}

# serve_locks: the lock manager, whose upcalls are in lockd.log, which may be emptied.
serve_locks() {
    : > "$work/lockd.log"
    "$watcher" serve >> "$work/lockd.log" 2>&1 < /dev/null &
    server_pids+=($!)
    need "the lock manager is registered" wait_until quiet rpcinfo -T udp 127.0.0.1 100021 3
}

mon() { "$watcher" mon 127.0.0.1 tcp "$1" "$name_a" "$2"; }
upcalls() { grep -c '^told' "$work/lockd.log"; }
has_upcalls() { [ "$(upcalls)" -ge "$1" ]; }
# nodeb_notifies NAME STATE: SM_NOTIFY as nodeb's status monitor sends it.
nodeb_notifies() { on 1 "$PEER" -s "$address_b" "$address_a" 12049 notify "$1" "$2" > /dev/null; }
is_registered() { rpcinfo -p 127.0.0.1 2> /dev/null | grep -q '100024  *1  *udp  *12049'; }
notices() { grep -c 'SM_NOTIFY from' "$work/statd.log"; }
has_notices() { [ "$(notices)" -ge "$1" ]; }
owed() { "$HOLDFAST" hosts --control "$work/store/control.sock" --json; }
is_owed() { owed | grep -q "\"owed\": *true"; }

# start_hosts: both of them, and what runs there but our monitor. Sets rpcbind_pid, of nodea.
start_hosts() {
    mkdir -p "$HOLDFAST_MACHINE_ROOT/proc/sys/kernel/random" \
        "$HOLDFAST_MACHINE_ROOT/proc/sys/fs/nfs" "$HOLDFAST_MACHINE_ROOT/proc/fs/lockd" \
        "$HOLDFAST_MACHINE_ROOT/etc" "$HOLDFAST_MACHINE_ROOT/run"
    boot_anew
    furnish "$name_a" "$names"
    start_host 1 "$name_b" "$names" || { echo "nodeb did not start"; exit 1; }
    rpcbind -f -w 2> "$work/rpcbind-a.log" &
    rpcbind_pid=$!
    server_pids+=("$rpcbind_pid")
    background 1 rpcbind-b.log rpcbind -f
    need "rpcbind of nodea" wait_until quiet rpcinfo
    need "rpcbind of nodeb" wait_until quiet on 1 rpcinfo
    mkdir -p "$work/nfs/sm" "$work/nfs/sm.bak"
    background 1 statd.log rpc.statd -F -d -L -p 13024 -P "$work/nfs"
    need "rpc.statd is registered" wait_until quiet rpcinfo -T tcp "$address_b" 100024 1
}
