#!/bin/bash
# monitor_attack.sh -- what others may try with --role monitor, and what happens then: nothing.
#
# usage: monitor_attack.sh WATCHER, the program made of watcher.c; without it the test is skipped
#
# The hosts are those of monitor.sh: nodea has rpcbind, our monitor and a lock manager made of libtirpc;
# nodeb, which is watched, and the stranger 10.77.1.3 beside it send what they like. Passing proves:
#  (1) SM_MON, SM_UNMON, SM_UNMON_ALL and SM_SIMU_CRASH from outside change nothing; SM_MON for another
#      program than a lock manager's, or of a name that is none, is refused to this machine, too;
#  (2) a stranger's SM_NOTIFY is no upcall: not with a watched address or name, not from our own
#      addresses; neither is state 0, nor what a host says a second time;
#  (3) upcalls come from loopback and a privileged port, and go where rpcbind says and nowhere else:
#      while no lock manager is registered they are owed, also over kill -9, and made when it is back;
#  (4) a full table refuses the next host and loses nobody, neither its notices nor its upcalls;
#  (5) a name that never resolves is answered at once, stays, over kill -9 and a reboot, keeps nobody else
#      from being notified, and is notified itself when it resolves at last;
#  (6) all that was registered is there in the end;
#  (7) it starts with 256 MB of memory, where a lock server says which option to lower.
# shellcheck disable=SC2317 # expect and wait_until call functions by their names
set -u
. "$(dirname "$0")/statd_hosts.sh"
enter 1 "$@"
. "$(dirname "$0")/lib.sh"
watcher=$1

name_a=nodea.example
address_a=10.77.1.1
address_b=10.77.1.2
stranger=10.77.1.3
export HOLDFAST_MACHINE_ROOT=$work/machine
export HOLDFAST_CONTROL=$work/store/control.sock
boot=0

boot_anew() { # the machine of our monitor boots
    boot=$((boot + 1))
    printf '%08d-1111-2222-3333-444444444444\n' "$boot" \
        > "$HOLDFAST_MACHINE_ROOT/proc/sys/kernel/random/boot_id"
}

# monitor NAME OPTIONS...: sets pid, state, hosts.
monitor() {
    local name=$1 line
    shift
    "$HOLDFAST" serve --role monitor --http off --store "lmdb:$work/store" "$@" \
        2> "$work/$name.log" > "$work/$name.out" < /dev/null &
    pid=$!
    server_pids+=("$pid")
    need "$name is ready" wait_until grep -q '^holdfast: monitoring on port' "$work/$name.out"
    line=$(grep '^holdfast: monitoring on port' "$work/$name.out")
    matches "$line" 'on port 12049 \(state ([0-9]+), ([0-9,]+) hosts?\)$' || finish
    state=${BASH_REMATCH[1]}
    hosts=${BASH_REMATCH[2]//,/}
}

lock_manager() { # sets lockd
    "$watcher" serve >> "$work/lockd.log" 2>&1 < /dev/null &
    lockd=$!
    server_pids+=("$lockd")
    need "the lock manager is registered" wait_until quiet rpcinfo -T udp 127.0.0.1 100021 3
}

mon() { "$watcher" mon 127.0.0.1 tcp "$1" "$name_a" priv-of-the-host; }
# said ADDRESS COMMAND...: of a host on the other end of the cable.
said() {
    local from=$1
    shift
    on 1 "$PEER" -s "$from" "$address_a" 12049 "$@"
}
upcalls() { grep -c '^told' "$work/lockd.log"; }
has_upcalls() { [ "$(upcalls)" -ge "$1" ]; }
ignored() { cat "$work"/*.log | grep -cE '(ignored|did not believe) a reboot notification'; }
has_ignored() { [ "$(ignored)" -ge "$1" ]; }
count_of() { "$HOLDFAST" status --json | grep -oE "\"$1\": *[0-9]+" | grep -oE '[0-9]+$'; }
count_is() { [ "$(count_of "$1")" = "$2" ]; }
notices() { grep -c 'SM_NOTIFY from' "$work/statd.log"; }
has_notices() { [ "$(notices)" -ge "$1" ]; }

mkdir -p "$HOLDFAST_MACHINE_ROOT/proc/sys/kernel/random" "$HOLDFAST_MACHINE_ROOT/etc"
boot_anew
names=$(printf '%s %s\n%s nodeb.example\n10.77.1.50 victim.example' "$address_a" "$name_a" "$address_b")
furnish "$name_a" "$names"
start_host 1 nodeb.example "$names" || { echo "nodeb did not start"; exit 1; }
on 1 ip address add "$stranger/24" dev cable
rpcbind -f -w 2> "$work/rpcbind-a.log" &
server_pids+=($!)
background 1 rpcbind-b.log rpcbind -f
need "rpcbind of nodea" wait_until quiet rpcinfo
need "rpcbind of nodeb" wait_until quiet on 1 rpcinfo
mkdir -p "$work/nfs/sm" "$work/nfs/sm.bak"
background 1 statd.log rpc.statd -F -d -L -p 13024 -P "$work/nfs"
need "rpc.statd is registered" wait_until quiet rpcinfo -T tcp "$address_b" 100024 1
: > "$work/lockd.log"
monitor first --max-clients 5
lock_manager
for host in "$address_b" 10.77.1.50 victim.example; do
    expect "SM_MON of $host" same "$(mon "$host")" "succ $state"
done

# (1)
expect "SM_MON from outside" same "$(said "$stranger" mon x us 100021 3 16)" "fail $state"
said "$stranger" unmon "$address_b" "$name_a" 100021 3 16 > /dev/null
said "$stranger" unmon-all "$name_a" 100021 3 16 > /dev/null
said "$address_b" unmon "$address_b" "$name_a" 100021 3 16 > /dev/null
said "$stranger" simu-crash > /dev/null
for id in "100003 3 16" "100021 3 1" "100000 2 3" "200000 1 16"; do
    # shellcheck disable=SC2086 # three words
    expect "SM_MON for $id" same \
        "$("$PEER" -s 127.0.0.1 127.0.0.1 12049 mon x us $id)" "fail $state"
done
for bad in .x a/b $'x\ny'; do
    expect "a name that is none" same \
        "$("$PEER" -s 127.0.0.1 127.0.0.1 12049 mon "$bad" us 100021 3 16)" "fail $state"
done
expect "nothing was registered, nothing removed" count_is watched 3
expect "the state stands" same "$("$HOLDFAST" status --json | grep -oE '"state": *[0-9]+')" \
    "\"state\": $state"

# (2)
said "$stranger" notify "$address_b" 41 > /dev/null # a watched address
said "$stranger" notify victim.example 41 > /dev/null # a watched name that resolves elsewhere
said "$stranger" notify "$stranger" 41 > /dev/null    # itself, and nobody watches it
"$PEER" -s "$address_a" "$address_a" 12049 notify "$address_b" 41 > /dev/null
"$PEER" -s 127.0.0.1 127.0.0.1 12049 notify "$address_b" 41 > /dev/null
said "$address_b" notify "$address_b" 0 > /dev/null
expect "all of them are ignored, and said so" wait_until has_ignored 5
said "$address_b" notify anything 43 > /dev/null
expect "the host itself is believed" wait_until has_upcalls 1
said "$address_b" notify anything 43 > /dev/null
said "$address_b" notify "$address_b" 43 > /dev/null
said "$address_b" notify anything 45 > /dev/null
expect "and again" wait_until has_upcalls 2
expect "once for each state" same "$(upcalls)" 2
expect "nobody else is" same "$(grep -c "^told.*mon_name=$address_b" "$work/lockd.log")" 2

# (3)
expect "from loopback" same "$(grep -c '^told by 127.0.0.1 ' "$work/lockd.log")" 2
expect "from a privileged port" same "$(grep -c '^from a privileged port' "$work/lockd.log")" 2
end KILL "$lockd"
for version in 1 3 4; do
    rpcinfo -d 100021 "$version" 2> /dev/null
done
said "$address_b" notify anything 47 > /dev/null
expect "an upcall is owed" wait_until count_is upcalls_owed 1
stop KILL
monitor again --max-clients 5
expect "over kill -9" count_is upcalls_owed 1
expect "nobody took it" same "$(upcalls)" 2
lock_manager
expect "made when the lock manager is back" wait_until has_upcalls 3
expect "as it was" matches "$(tail -n 1 "$work/lockd.log")" \
    "^told by 127.0.0.1 .*mon_name=$address_b state=47 priv=priv-of-the-host$"

# (4)
expect "the fourth" same "$(mon 10.77.1.51)" "succ $state"
expect "a name that never resolves" same "$(mon never.example)" "succ $state"
expect "is the last" same "$(mon 10.77.1.52)" "fail $state"
expect "it is said" log_has "$work/again.log" 'limit reached; raise --max-clients'
expect "who is there may come again" same "$(mon "$address_b")" "succ $state"
expect "nobody is lost" count_is watched 5
said "$address_b" notify anything 49 > /dev/null
expect "nor an upcall" wait_until has_upcalls 4
# Known, and on disk with what is answered next: a kill before that would have it made again.
expect "which is known" wait_until count_is upcalls_owed 0
expect "and stored" same "$(mon "$address_b")" "succ $state"

# (5)
expect "reported" log_has "$work/again.log" 'does not resolve.*never.example'
stop KILL
monitor third --max-clients 5
expect "it stays" count_is unresolved 1
stop KILL
boot_anew
: > "$work/statd.log"
monitor rebooted --max-clients 5 --notify-timeout 2
expect "after a reboot nodeb is notified" wait_until has_notices 2
expect "the others are owed" wait_until count_is owed 4
expect "and never.example is one of them" count_is unresolved 1
expect "no upcall by a reboot" same "$(upcalls)" 4
: > "$work/statd.log"
echo "$address_b never.example" >> /etc/hosts
expect "it resolves at last, and is notified" wait_until has_notices 2
expect "nothing is owed to it" wait_until count_is owed 3

# (6)
stop KILL
monitor last --max-clients 5
expect "who was not notified is kept" same "$hosts" 3
stop TERM

# (7)
limit=$((256 * 1024 * 1024))
prlimit "--data=$limit" "$HOLDFAST" serve --role monitor --no-rpcbind --port 0 --http off \
    --store "lmdb:$work/small" 2> "$work/small.log" > "$work/small.out" < /dev/null &
pid=$!
server_pids+=("$pid")
expect "a monitor in 256 MB" wait_until grep -q '^holdfast: monitoring on port' "$work/small.out"
stop TERM
timeout 60 prlimit "--data=$limit" "$HOLDFAST" serve --no-rpcbind --port 0 --http off \
    --store "lmdb:$work/large" > /dev/null 2> "$work/large.log" < /dev/null
expect "no lock server" same "$?" 2
expect "says what to lower" log_has "$work/large.log" 'cannot reserve memory for the tables; lower'
finish
