#!/bin/bash
# monitor_switch.sh -- docs/monitor.md, "Switching over": its commands, typed as they are written.
#
# usage: monitor_switch.sh WATCHER, the program made of watcher.c; without it the test is skipped
#
# Two hosts with a cable between them: see monitor_host.sh. nodea has a /var/lib and an /etc/systemd of
# its own, and rpc.statd is its monitor. There is no systemd in there: `systemctl` is a function that
# starts what the installed unit says, kills rpc.statd, and remembers what is masked. Passing proves:
#  (1) after the first block our monitor carries on: the same state, nobody is notified, and the reboot
#      of a host that was registered with rpc.statd reaches the lock manager with its priv;
#  (2) after the second rpc.statd does, the same way.
# shellcheck disable=SC2317 # expect and wait_until call functions by their names
set -u
. "$(dirname "$0")/statd_hosts.sh"
enter 1 "$@"
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/monitor_host.sh"
watcher=$1
root=$(cd "$(dirname "$0")/../.." && pwd)

# block N: the Nth block of commands of that section.
block() {
    awk -v wanted="$1" '
        /^## / { inside = $0 == "## Switching over" }
        !inside { next }
        /^    / { if (!in_block) count++; in_block = 1; if (count == wanted) print substr($0, 5); next }
        { in_block = 0 }' "$root/docs/monitor.md"
}

start_statd() {
    rpc.statd -F -d -L -p 13025 > "$work/statd-a.log" 2>&1 < /dev/null &
    statd_pid=$!
    server_pids+=("$statd_pid")
    need "rpc.statd of nodea" wait_until log_is_serving
}
log_is_serving() { rpcinfo -p 127.0.0.1 | grep -q '100024  *1  *tcp  *13025'; }

# start_unit: what its ExecStart says, with the options that a test needs.
start_unit() {
    local command
    command=$(sed -n 's/^ExecStart=[^ ]*holdfastd //p' /etc/systemd/system/holdfast-monitor.service)
    : > "$work/unit.out"
    # shellcheck disable=SC2086 # words
    "$(dirname "$HOLDFAST")/../daemon/holdfastd" $command --http off \
        2> "$work/unit.log" > "$work/unit.out" < /dev/null &
    pid=$!
    server_pids+=("$pid")
    wait_until is_monitoring_or_gone "$work/unit.out" "$pid"
    need "it is ready" grep -q '^holdfast: monitoring' "$work/unit.out"
}

systemctl() {
    echo "$*" >> "$work/systemctl"
    case $* in
    "kill --signal=KILL rpc-statd.service") end KILL "$statd_pid" || true ;;
    "enable --now holdfast-monitor") start_unit ;;
    "disable --now holdfast-monitor") stop TERM ;;
    "start rpc-statd.service") start_statd ;;
    "daemon-reload" | "disable rpc-statd.service") ;;
    "mask rpc-statd-notify.service" | "unmask rpc-statd-notify.service") ;;
    *) false ;;
    esac || expect "systemctl $*" false
}
holdfast() { "$HOLDFAST" "$@" 2>> "$work/store.log"; }
# touch of the document, in the /run that our programs of this test see.
touch() { command touch "$@" && command touch "$HOLDFAST_MACHINE_ROOT$1"; }

start_hosts
mount -t tmpfs tmpfs /var/lib
mkdir -p /var/lib/nfs/sm /var/lib/nfs/sm.bak /etc/systemd/system
mount -t tmpfs tmpfs /etc/systemd/system
serve_locks
start_statd
expect "rpc.statd watches" matches "$(mon "$address_b" priv-of-address1)" "^succ [0-9]+$"
before=$(od -An -tu4 /var/lib/nfs/state | xargs)
watched=$(cat /var/lib/nfs/sm/*)

# (1)
cd "$root" || exit 1
eval "$(block 1)"
expect "it says that it monitors" log_has "$work/unit.out" "monitoring on port 12049 (state $before, 1 host)"
nodeb_notifies "$name_b" 9001
expect "the priv counts" wait_until has_upcalls 1
expect "as it was registered" matches "$(tail -n 1 "$work/lockd.log")" \
    "mon_name=$address_b state=9001 priv=priv-of-address1$"
expect "nobody was notified" same "$(notices)" 0
expect "rpc-statd-notify is masked" grep -qx 'mask rpc-statd-notify.service' "$work/systemctl"

# (2)
eval "$(block 2)"
expect "rpc.statd has what it had" same "$(cat /var/lib/nfs/sm/*)" "$watched"
expect "and its number" same "$(od -An -tu4 /var/lib/nfs/state | xargs)" "$before"
expect "sm-notify takes it that it has run" test -e /run/sm-notify.pid
on 1 "$PEER" -s "$address_b" "$address_a" 13025 notify "$name_b" 9003 > /dev/null
expect "and the priv counts" wait_until has_upcalls 2
expect "nobody was notified" same "$(notices)" 0
expect "rpc-statd-notify is there again" grep -qx 'unmask rpc-statd-notify.service' "$work/systemctl"
finish
