#!/bin/bash
# statd_locks.sh -- lock clients with the real rpc.statd and sm-notify, through both crashes.
#
# usage: statd_locks.sh LOCKD, the program made of statd_lockd.c; without it the test is skipped
#
# nodea has our server. Three client hosts have rpcbind, rpc.statd and statd_lockd.c, which does what
# a kernel does; each knows our server in another way:
#     1  nodeb.example   by host name, over IPv4; its own name has a domain
#     2  nodec           by an IPv4 address of which it knows no name; its own name is short
#     3  noded.example   by an IPv6 address of which it knows no name
# and a fourth, nodee, waits for their locks. Passing proves:
#  (1) kill -9 of our server: each rpc.statd takes our SM_NOTIFY for its own server's and calls its
#      lock manager, once, with the name, the new state and the priv that were registered there;
#      all locks are reclaimed and grace is over before its time (D3, D4, R-NOTIFY-1, R-NOTIFY-2);
#  (2) an rpc.statd that runs only later, inside grace, is told then; grace waits for it, and its
#      host keeps its locks (D5, R-NOTIFY-6);
#  (3) an SM_NOTIFY about nodeb from another address is not believed, because nodeb's rpc.statd
#      says another state (R-ID-3, R-SEC-4);
#  (4) a client host reboots: the real sm-notify frees all it held and the waiter gets its lock; the
#      notices with and without domain are one reboot; the same state again frees nothing, not
#      even what the host locked since; the next state with nothing held frees nothing (D7, R-SEC-3);
#  (5) --verify-notify always: a notice from nodeb's own address with a state that its rpc.statd does
#      not confirm frees nothing; that of sm-notify frees, beside a running rpc.statd and before
#      there is one (R-SEC-4).
# shellcheck disable=SC2317 # expect and wait_until call functions by their names
set -u
. "$(dirname "$0")/statd_hosts.sh"
enter 1 "$@"
. "$(dirname "$0")/lib.sh"
lockd=$1

server_name=nodea.example
declare -A name=([1]=nodeb.example [2]=nodec [3]=noded.example [4]=nodee)
declare -A server=([1]=nodea.example [2]=10.77.2.1 [3]=fd77:3::1) # as the host knows us
declare -A files=([1]="b1 b2 b3" [2]="c1 c2" [3]="d1 d2")
declare -A statd_pid lockd_pid
clients_here=(1 2 3)

serve() { # serve LOG OPTIONS...
    local log=$1
    shift
    run=$work/$log.log
    start "$log" --port 12049 --http off --grace 60 --rpcbind system --name "$server_name" \
        --store "lmdb:$work/store" "$@"
}

priv() { printf 'priv-of-host-%03d' "$1"; }

# rpc.statd of host N: the state that it and sm-notify keep, its port, whether it is registered.
state_of() { od -An -tu4 "$work/nfs-$1/state" | xargs; }
is_after() { [ "$(state_of "$1")" -gt "$2" ]; }
statd_port() { on "$1" rpcinfo -p 127.0.0.1 | awk '$1 == 100024 && $3 == "tcp" { print $4 }'; }
is_registered() { quiet on "$1" rpcinfo -T tcp 127.0.0.1 100024 1; }
is_unregistered() { ! on "$1" rpcinfo -p 127.0.0.1 | grep -q ' 100024 '; }

# It does not run sm-notify: that is the test's to do.
start_statd() { # start_statd N
    mkdir -p "$work/nfs-$1/sm" "$work/nfs-$1/sm.bak"
    background "$1" "statd-$1.log" rpc.statd -F -L -P "$work/nfs-$1"
    statd_pid[$1]=$background_pid
    need "rpc.statd of ${name[$1]}" wait_until is_registered "$1"
}

start_lockd() { # start_lockd N FILE...
    local n=$1
    shift
    background "$n" "lockd-$n.log" "$lockd" "${server[$n]}" "${server[$n]}" "${name[$n]}" \
        "$(priv "$n")" "$@"
    lockd_pid[$n]=$background_pid
    need "${name[$n]} holds its locks" log_has "$work/lockd-$n.log" "^serving"
}

upcalls() { grep '^upcall' "$work/lockd-$1.log"; }
has_reclaimed() { # has_reclaimed N COUNT: so many times, everything
    [ "$(grep -c '^reclaim is over: all granted' "$work/lockd-$1.log")" -eq "$2" ]
}
count_of() { grep -c -- "$1" "$run"; } # lines of the log
is_over() { grep -q 'grace period ended: every stored lock was reclaimed or released' "$run"; }

# What nodee and, if it must, host N itself ask the server.
nodee() { on 4 "$PEER" -s 10.77.4.2 -n "${name[4]}" 10.77.4.1 "$port" "$@"; }
itself() {
    local n=$1
    shift
    on "$n" "$PEER" -s "10.77.$n.2" -n "${name[$n]}" "10.77.$n.1" "$port" "$@"
}
is_held() { # is_held FILE NAME
    same "$(nodee test "$1")" "held by 1@$2 (svid 1), exclusive, offset 0, to the end"
}
wait_for() { # wait_for FILE: nodee does, in the background
    background 4 "wait-$1.log" "$PEER" -s 10.77.4.2 -n "${name[4]}" 10.77.4.1 "$port" wait "$1"
    need "nodee waits for $1" log_has "$work/wait-$1.log" "^waiting"
}
is_called_back() {
    log_has "$work/wait-$1.log" "^granted, the server called back"
}
# Each time its lock manager is at another port, which the server notices by calling the old one:
# after the first time its own question may come before the callback.
is_granted() { log_has "$work/wait-$1.log" "^granted"; }

# die N: nothing of the host's lock manager and status monitor is left.
die() {
    end KILL "${lockd_pid[$1]}"
    end KILL "${statd_pid[$1]}"
}
notify() { # notify N OPTIONS...
    local n=$1
    shift
    on "$n" timeout 60 sm-notify -d -f "$@" -P "$work/nfs-$n" > "$work/sm-notify-$n.log" 2>&1
    expect "sm-notify of ${name[$n]} ends with 0" same "$?" 0
    expect "it was answered" log_has "$work/sm-notify-$n.log" "notified successfully"
}

furnish "$server_name" "$(printf '10.77.%d.1 nodea.example\n' 1 2 3 4)"
rpcbind -f 2> "$work/rpcbind-a.log" &
server_pids+=($!)
need "rpcbind of nodea" wait_until quiet rpcinfo
for n in 1 2 3 4; do
    known="10.77.$n.2 ${name[$n]}"
    [ "$n" != 1 ] || known+=$'\n10.77.1.1 nodea.example'
    [ "$n" != 3 ] || known="fd77:3::2 ${name[3]}"
    need "${name[$n]} is there" start_host "$n" "${name[$n]}" "$known"
    if [ "$n" = 3 ] && ! add_ipv6 3; then
        echo "noded is left out: this kernel has no IPv6"
        clients_here=(1 2)
    fi
done
for n in "${clients_here[@]}"; do
    background "$n" "rpcbind-$n.log" rpcbind -f
    need "rpcbind of ${name[$n]}" wait_until quiet on "$n" rpcinfo
    start_statd "$n"
done
if [ "${#clients_here[@]}" -eq 3 ] && ! quiet rpcinfo -T tcp6 fd77:3::2 100024 1; then
    echo "noded is left out: this rpc.statd does not serve IPv6"
    clients_here=(1 2)
fi
serve early || finish # only to have another state number than the rpc.statds
stop TERM
serve first || finish
for n in "${clients_here[@]}"; do
    # shellcheck disable=SC2086 # one word per file
    start_lockd "$n" ${files[$n]}
done

# (1)
stop KILL
serve second || finish
for n in "${clients_here[@]}"; do
    need "${name[$n]} reclaims" wait_until has_reclaimed "$n" 1
    expect "what its rpc.statd was told" same "$(upcalls "$n")" \
        "upcall: mon_name=${server[$n]} state=$state priv=$(priv "$n")"
done
expect "grace ends before its time" wait_until is_over
expect "all were reached" log_has "$run" "${#clients_here[@]} of ${#clients_here[@]} reached"
expect "b1 is still held" is_held b1 nodeb.example
expect "c1 is still held" is_held c1 nodec
expect "others are served" same "$(nodee lock new)" granted
expect "and can unlock" same "$(nodee unlock new)" granted

# (2) It ends in good order: its rpcbind says "not registered".
end TERM "${statd_pid[2]}"
need "nodec's rpc.statd is gone" wait_until is_unregistered 2
stop KILL
serve third --notify-timeout 2 || finish
for n in "${clients_here[@]}"; do
    [ "$n" = 2 ] || need "${name[$n]} reclaims" wait_until has_reclaimed "$n" 2
done
need "nodec cannot be told" log_has "$run" "could not notify a client yet.*nodec"
expect "so it counts as crashed" log_has "$run" "a client is unreachable.*nodec"
expect "but grace stands" same "$(nodee lock new)" "in grace"
start_statd 2
need "nodec reclaims" wait_until has_reclaimed 2 2
expect "grace is over then" wait_until is_over
expect "c1 is still held" is_held c1 nodec
for n in "${clients_here[@]}"; do
    expect "every rpc.statd called once for each restart" same "$(upcalls "$n")" "$(
        for s in $((state - 2)) "$state"; do
            echo "upcall: mon_name=${server[$n]} state=$s priv=$(priv "$n")"
        done
    )"
done

# (3)
refused="ignored a reboot notification: the client's own status monitor .*name=\"nodeb.example\""
expect "a notice about another" same "$(nodee notify nodeb.example 4711)" ok
expect "is not believed" log_has "$run" "$refused state=4711"
expect "and logged once" same "$(count_of "$refused")" 1
expect "b1 is still held" is_held b1 nodeb.example

# (4)
rebooted() { # rebooted NAME: how often it did, and what was freed each time that something was
    echo "$(count_of "a client rebooted from=.*name=\"$1\"")" \
        "$(sed -n "s/.*released a client.s old locks.*name=\"$1\".* freed=//p" "$run" | xargs)"
}
is_rebooted() { [ "$(rebooted "$1")" = "$2" ]; }
comes_to() { # comes_to NAME VALUE: soon
    wait_until is_rebooted "$1" "$2" || same "$(rebooted "$1")" "$2"
}
wait_for b1
before=$(state_of 1)
die 1
notify 1
expect "it made another state" is_after 1 "$before"
expect "nodee gets b1" is_called_back b1
expect "with and without domain" same \
    "$(sed -n 's/.*Sending SM_NOTIFY for //p' "$work/sm-notify-1.log" | xargs)" "nodeb.example nodeb"
expect "it is one reboot" comes_to nodeb.example "1 3"
expect "the notices are not refused" same "$(count_of 'ignored a reboot notification')" 1 # that of (3)
expect "c1 is still held" is_held c1 nodec

start_statd 1
start_lockd 1 b2 b3
notify 1 -n
expect "b2 is held by the new nodeb" is_held b2 nodeb.example
expect "the same state again frees nothing" same "$(rebooted nodeb.example)" "1 3"

# sm-notify forgets whom it has told, and a running rpc.statd does not write it down again.
die 1
start_statd 1
start_lockd 1 b2 b3
for file in b2 b3; do
    expect "nodeb unlocks $file" same "$(itself 1 unlock "$file")" granted
done
before=$(state_of 1)
die 1
notify 1
expect "the next state" same "$(state_of 1)" $((before + 2))
expect "frees nothing where nothing is held" comes_to nodeb.example "2 3"
expect "b1 is nodee's" matches "$(itself 1 test b1)" "^held by 1@nodee "
expect "nodee unlocks b1" same "$(nodee unlock b1)" granted

if [ "${#clients_here[@]}" -eq 3 ]; then
    wait_for d2
    die 3
    notify 3
    expect "nodee gets d2" is_granted d2
    expect "all of noded went" comes_to noded.example "1 2"
    expect "nodee unlocks d2" same "$(nodee unlock d2)" granted
fi

# (5)
start_statd 1
start_lockd 1 b1 b2 b3
stop KILL
serve fourth --verify-notify always || finish
need "nodeb reclaims" wait_until has_reclaimed 1 1
need "nodec reclaims" wait_until has_reclaimed 2 3
need "grace is over" wait_until is_over
expect "a notice of its own" same "$(itself 1 notify nodeb.example 4711)" ok
expect "is not believed" log_has "$run" "$refused state=4711"
expect "b1 is still held" is_held b1 nodeb.example
wait_for c1
die 2
notify 2 # nobody is there to confirm it
expect "nodee gets c1" is_called_back c1
expect "all of nodec went" comes_to nodec "1 2"
wait_for b1
# rpc.statd takes the number that sm-notify makes, and runs before we hear of it: the cable is off.
before=$(state_of 1)
die 1
on 1 ip link set cable down
background 1 sm-notify-1.log timeout 60 sm-notify -d -f -P "$work/nfs-1"
sm_notify=$background_pid
need "sm-notify makes a state" wait_until is_after 1 "$before"
start_statd 1
expect "rpc.statd has it" same "$(on 1 "$PEER" 127.0.0.1 "$(statd_port 1)" stat localhost)" \
    "succ $(state_of 1)"
on 1 ip link set cable up
wait "$sm_notify"
expect "sm-notify ends with 0" same "$?" 0
expect "nodee gets b1" is_granted b1
expect "all of nodeb went" comes_to nodeb.example "1 3"
stop TERM
expect "the server ends with 0" same "$code" 0
finish
