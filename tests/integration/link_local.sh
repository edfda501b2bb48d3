#!/bin/bash
# link_local.sh -- clients with link-local IPv6 addresses, on interfaces whose numbers change.
#
# Runs in a network namespace of its own. Two hosts, each in a namespace, are linked to it by hf0 and
# hf1; both have the address fe80::2 and the same name. Passing proves (A15):
#  (1) a link-local client is known by its address and the name of our interface; the same address and
#      name on another link is another client;
#  (2) an interface that is made anew, with another number, has the same clients: what they hold stays
#      theirs, over TCP and UDP;
#  (3) after kill -9 and a start without the interface the client is called as soon as that is there,
#      under whatever number; it reclaims, and the one on the other link cannot;
#  (4) `move` knows interfaces by name, too, and refuses a link-local address without one, or with one
#      that is not there; --listen takes a link-local address with a name or a number, and so does
#      check-client;
#  (5) who is behind an interface whose name cannot be kept is not served, and the log says why.
set -u
if [ -z "${HOLDFAST_IN_NAMESPACE:-}" ]; then
    if ! unshare -n true 2> /dev/null || ! command -v ip > /dev/null || ! command -v nsenter > /dev/null ||
        ! unshare -n sh -c 'ip link add hf0 type veth peer name hf1' 2> /dev/null; then
        echo "SKIP link_local.sh: it needs root (for unshare -n), ip (Debian: iproute2), nsenter and veth"
        exit 77
    fi
    HOLDFAST_IN_NAMESPACE=1 exec unshare -n "$0"
fi
. "$(dirname "$0")/lib.sh"

ip link set lo up
hosts=()
for index in 0 1; do
    unshare -n sleep 600 &
    hosts[index]=$!
    server_pids+=("$!")
done
own=$(readlink /proc/self/ns/net)
# shellcheck disable=SC2317 # wait_until runs it
is_apart() { [ "$(readlink "/proc/$1/ns/net")" != "$own" ]; }
wait_until is_apart "${hosts[0]}"
wait_until is_apart "${hosts[1]}"

# inside INDEX COMMAND...: in the namespace of that host.
inside() { nsenter -n -t "${hosts[$1]}" "${@:2}"; }

# link INDEX: the interface hfINDEX to that host, made anew.
# shellcheck disable=SC2317 # expect runs it
link() {
    ip link del "hf$1" 2> /dev/null
    ip link add "hf$1" type veth peer name nic netns "${hosts[$1]}" || return 1
    ip link set "hf$1" addrgenmode none
    inside "$1" ip link set nic addrgenmode none
    ip address add fe80::1/64 dev "hf$1" nodad
    inside "$1" ip address add fe80::2/64 dev nic nodad
    ip link set "hf$1" up
    inside "$1" ip link set nic up
}
number() { ip -o link show "$1" | cut -d: -f1; }
# as INDEX WORDS...: the command of that host, which is called alpha.
as() { inside "$1" "$PEER" -s fe80::2%nic -n alpha fe80::1%nic "$port" "${@:2}"; }

expect "a link" link 0
expect "another" link 1
store="$work/store"
export HOLDFAST_CONTROL="$store/control.sock"
options=(--port 0 --http off --grace 300 --no-rpcbind --store "lmdb:$store")
start first "${options[@]}" || finish

# ask CODE WORDS...: sets output.
ask() {
    output=$(timeout 60 "$HOLDFAST" "${@:2}" 2>&1 < /dev/null)
    expect "holdfast ${*:2}" matches $? "^$1\$"
}

# (1)
expect "a lock" same "$(as 0 lock one)" granted
expect "not of the one on the other link" same "$(as 1 lock one)" denied
expect "which is another client" same "$(as 1 lock two)" granted
expect "a registration" same "$(as 0 mon alpha me)" "succ $state"
ask 0 clients --name alpha
expect "known by the name of the interface" matches "$output" 'c1 +nlm +alpha +fe80::2%hf0 '
expect "both are" matches "$output" 'c2 +nlm +alpha +fe80::2%hf1 '
ask 1 status
expect "a conflict of names says which" matches "$output" 'at fe80::2%hf1, .*fe80::2%hf0 \(c1\)'

# (2)
before=$(number hf0)
expect "the interface is made anew" link 0
expect "with another number" test "$(number hf0)" != "$before"
expect "its lock is its own" same "$(as 0 lock one)" granted
expect "over UDP, too" same "$(inside 0 "$PEER" -u -s fe80::2%nic -n alpha fe80::1%nic "$port" lock one)" \
    granted
expect "and not the other's" same "$(as 1 lock one)" denied
ask 0 clients --name alpha --json
expect "no client was added" same "$(grep -c '"id":' <<< "$output")" 2

# (3)
stop KILL
ip link del hf0
ip link del hf1
start again "${options[@]}" || finish
ask "[01]" status # their addresses are unreachable, which is known soon
expect "both are waited for" matches "$output" 'waiting for 2 locks of 2 clients'
expect "a link" link 1
expect "another, the other way round" link 0
# What asks the client's portmapper finds none, which its kernel counts.
# shellcheck disable=SC2016,SC2317 # for awk; wait_until runs it
asked() { inside "$1" awk '$1 == "Udp6NoPorts" { print $2 }' /proc/net/snmp6; }
# shellcheck disable=SC2317 # wait_until runs it
is_called() { [ "$(asked "$1")" -gt 0 ]; }
expect "it is called" wait_until is_called 0
expect "the other one, too" wait_until is_called 1
expect "the other cannot reclaim it" same "$(as 1 reclaim one)" denied
expect "it can" same "$(as 0 reclaim one)" granted
expect "the other reclaims its own" same "$(as 1 reclaim two)" granted
# shellcheck disable=SC2317
is_over() { "$HOLDFAST" status | grep -q '^grace     over'; }
expect "all is settled" wait_until is_over

# (4)
expect "the second gives up" same "$(as 1 unlock two)" granted
ask 1 move c1 fe80::2 --yes
expect "without an interface it is nobody's" matches "$output" 'needs an interface.*%eth0'
ask 1 move c1 fe80::2%nosuch --yes
expect "nor behind one that is not there" matches "$output" 'this machine has no interface nosuch'
expect "it has not moved" same "$(as 0 lock one)" granted
ask 0 move c1 fe80::2%hf1 --yes
expect "it says where it is" matches "$output" 'c1: now at fe80::2%hf1, with 1 lock'
expect "it is its own there" same "$(as 1 lock one)" granted
expect "and not where it was" same "$(as 0 lock one)" denied
ask 0 clients fe80::2%hf1
expect "it is found by that" matches "$output" 'id +c1'
stop TERM
start listen "${options[@]}" --listen fe80::1%hf1 || finish
expect "one link is listened on" same "$(as 1 reclaim one)" granted
expect "not the other" matches "$(as 0 lock three)" '^failed'
stop TERM
start number "${options[@]}" --listen "fe80::1%$(number hf1)" || finish
expect "by its number, too" same "$(as 1 reclaim one)" granted
stop TERM
for name in hf1 "$(number hf1)"; do
    ask 1 check-client "fe80::2%$name" --timeout 1
    expect "it is asked" matches "$output" 'nothing listens on port 111'
done
ask 2 check-client fe80::2%hf9
expect "a link that is not there" matches "$output" 'this machine has no interface hf9'
run_to_end missing "${options[@]}" --listen fe80::1%hf9
expect "a link that is not there is refused" test "$code" -ne 0
expect "by its name" log_has "$work/missing.log" 'fe80::1%hf9'

# (5)
start odd "${options[@]}" || finish
inside 1 ip link del nic
odd=$'hf\xfc'
if ip link add "$odd" type veth peer name nic netns "${hosts[1]}" 2> /dev/null; then
    ip link set "$odd" addrgenmode none
    inside 1 ip link set nic addrgenmode none
    ip address add fe80::1/64 dev "$odd" nodad
    inside 1 ip address add fe80::2/64 dev nic nodad
    ip link set "$odd" up
    inside 1 ip link set nic up
    expect "nobody is behind it" matches "$(as 1 lock four)" '^failed'
    expect "the log says so" log_has "$work/odd.log" 'its name is not printable ASCII.*fe80::2'
    inside 1 timeout 3 "$PEER" -u -s fe80::2%nic -n alpha fe80::1%nic "$port" lock four > /dev/null
    # shellcheck disable=SC2317 # wait_until runs it
    is_said_again() { [ "$(grep -c 'not printable ASCII' "$work/odd.log")" -ge 2 ]; }
    expect "also of datagrams" wait_until is_said_again
else
    echo "not shown: an interface whose name is not ASCII; this kernel has none"
fi
stop TERM
finish
