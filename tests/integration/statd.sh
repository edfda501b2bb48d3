#!/bin/bash
# statd.sh -- programs that others wrote, on another host: libtirpc, rpcbind, rpc.statd, sm-notify.
#
# usage: statd.sh WATCHER, the program made of watcher.c; without it the test is skipped
#
# Two hosts with a cable between them, each with network, mount and host name of its own: nodea has
# rpcbind and our server; nodeb has rpcbind, rpc.statd and watcher.c, a lock manager made of
# libtirpc. Everything finds everything through the rpcbind of the other host. Passing proves:
#  (1) the rig is right: nodeb's rpc.statd answers NULL and SM_STAT to our own tool;
#  (2) what registers at our server through libtirpc, over TCP and over UDP, is called back after
#      kill -9 and restart: at the port that nodeb's rpcbind tells, from the address it
#      registered at, with our name, the new state and its own priv, as libtirpc reads them (D3, P3);
#  (3) a reboot of nodeb that the real sm-notify reports, to what rpc.statd wrote down, reaches our
#      server, is believed because nodeb itself watches that name, and is relayed to that
#      registrant only, with the name, the state that sm-notify made, and its priv (D7);
#  (4) the next restart is told to both, and what was relayed is not told again.
# shellcheck disable=SC2317 # expect and wait_until call functions by their names
set -u
. "$(dirname "$0")/statd_hosts.sh"
enter 1 "$@"
. "$(dirname "$0")/lib.sh"
watcher=$1

name_a=nodea.example
name_b=nodeb.example
address_a=10.77.1.1
address_b=10.77.1.2
statd_port=13024
names=$(printf '%s %s\n%s %s' "$address_a" "$name_a" "$address_b" "$name_b")

serve() {
    start "$1" --port 12049 --http off --grace 5 --rpcbind system --name "$name_a" \
        --store "lmdb:$work/store"
}

told() { grep '^told' "$work/watcher.log" | sort; }
is_told() { [ "$(told | wc -l)" -ge "$1" ]; } # so many times

furnish "$name_a" "$names"
if ! start_host 1 "$name_b" "$names"; then
    echo "nodeb did not start"
    exit 1
fi
rpcbind -f 2> "$work/rpcbind-a.log" &
server_pids+=($!)
background 1 rpcbind-b.log rpcbind -f
need "rpcbind of nodea" wait_until quiet rpcinfo
need "rpcbind of nodeb" wait_until quiet on 1 rpcinfo

mkdir -p "$work/nfs/sm" "$work/nfs/sm.bak"
background 1 statd.log rpc.statd -F -L -p "$statd_port" -P "$work/nfs"
statd=$background_pid
background 1 watcher.log "$watcher" serve
need "rpc.statd is registered" wait_until quiet rpcinfo -T tcp "$address_b" 100024 1
need "the watcher is registered" wait_until quiet rpcinfo -T tcp "$address_b" 100021 3

# (1)
statd_state() { od -An -tu4 "$work/nfs/state" | xargs; }
for way in tcp udp; do
    option=
    [ "$way" = tcp ] || option=-u
    expect "rpc.statd answers NULL over $way" same \
        "$("$PEER" $option "$address_b" "$statd_port" null)" ok
    expect "rpc.statd answers SM_STAT over $way" same \
        "$("$PEER" $option "$address_b" "$statd_port" stat "$name_a")" "succ $(statd_state)"
done

# (2) The first start and its end only keep our state number from being rpc.statd's.
serve early || finish
stop TERM
serve first || finish
need "SM_MON over TCP" same \
    "$(on 1 "$watcher" mon "$address_a" tcp "$name_b" "$name_b" priv-of-tcp-1234)" "succ $state"
need "SM_MON over UDP" same \
    "$(on 1 "$watcher" mon "$address_a" udp "$name_a" over-udp priv-of-udp-5678)" "succ $state"
before=$state
stop KILL
serve second || finish
expect "both registrations are there" same "$clients" 2
expect "the state is larger" test "$state" -gt "$before"
need "both are told" wait_until is_told 2
by="told by $address_a over tcp:"
lines=$(printf '%s\n' "$by mon_name=$name_a state=$state priv=priv-of-tcp-1234" \
    "$by mon_name=$name_a state=$state priv=priv-of-udp-5678")
expect "what they are told" same "$(told)" "$lines"

# (3) The lock manager of nodeb asks its rpc.statd to watch us, and nodeb reboots.
need "rpc.statd watches our server" same \
    "$(on 1 "$watcher" mon 127.0.0.1 tcp "$address_a" "$name_b" priv-of-lockd-00)" \
    "succ $(statd_state)"
before=$(statd_state)
end KILL "$statd"
on 1 timeout 60 sm-notify -d -f -P "$work/nfs" > "$work/sm-notify.log" 2>&1
expect "sm-notify ends with 0" same "$?" 0
expect "it was answered" log_has "$work/sm-notify.log" "notified successfully"
expect "and has nobody left to tell" same "$(find "$work/nfs/sm" "$work/nfs/sm.bak" -type f)" ""
expect "it made another state" test "$(statd_state)" -gt "$before"
expect "which is not ours" test "$(statd_state)" -ne "$state"
expect "our server believes it" log_has "$work/second.log" \
    "a client reported its reboot from=$address_b name=\"$name_b\" state=$(statd_state)"
expect "but not of a name that nobody watches" log_has "$work/second.log" \
    "ignored a reboot notification: .* name=\"${name_b%%.*}\""
need "it is relayed" wait_until is_told 3
lines=$(printf '%s\n' "$lines" "$by mon_name=$name_b state=$(statd_state) priv=priv-of-tcp-1234")
expect "what is relayed, to whom" same "$(told)" "$lines"
expect "our state" same "$("$PEER" "$address_a" "$port" stat "$name_b")" "succ $state"

# (4)
stop KILL
serve third || finish
need "both are told again" wait_until is_told 5
lines=$(printf '%s\n' "$lines" "$by mon_name=$name_a state=$state priv=priv-of-tcp-1234" \
    "$by mon_name=$name_a state=$state priv=priv-of-udp-5678" | sort)
expect "of the restart only" same "$(told)" "$lines"
expect "the round is over" log_has "$work/third.log" "2 of 2 reached, 0 failed"
expect "nobody is told more" same "$(told)" "$lines"
stop TERM
expect "it ends with 0" same "$code" 0
finish
