#!/bin/bash
# remote.sh -- callers that are not this machine, and callers that are not the owner.
#
# Runs in a network namespace of its own, whose loopback interface has two more addresses: calls
# from them come from hosts that are not loopback. /etc/hosts is the test's own. Passing proves:
#  (1) SM_MON is served from any address, and the record carries that address (D1, R-SEC-2);
#  (2) SM_UNMON and SM_UNMON_ALL remove registrations of the caller's own address only (P5, D1);
#  (3) SM_SIMU_CRASH from another host does nothing, even from a privileged port (R-NSM-4);
#  (4) SM_NOTIFY is recorded when the name is the sender's address, or when the resolver knows it
#      under that address; it is ignored and logged otherwise, also if somebody at that address
#      watches the name (D7, A8); the answer is the same;
#  (5) --mon-from loopback refuses the SM_MON family to other hosts, and nothing else;
#  (6) --require-privileged-port refuses calls from other ports with AUTH_ERROR, but not NULL.
set -u
if [ -z "${HOLDFAST_IN_NAMESPACE:-}" ]; then
    if ! unshare -nm true 2> /dev/null || ! command -v ip > /dev/null; then
        echo "SKIP remote.sh: it needs root (for unshare -nm) and ip (Debian: iproute2)"
        exit 77
    fi
    HOLDFAST_IN_NAMESPACE=1 exec unshare -nm "$0"
fi
. "$(dirname "$0")/lib.sh"

ip link set lo up
ip address add 10.77.0.1/32 dev lo
ip address add 10.77.0.2/32 dev lo
printf '%s\n' '127.0.0.1 localhost' '10.77.0.9 named.example' '10.77.0.2 Named.example named' \
    '10.77.0.9 udp' > "$work/hosts"
mount --bind "$work/hosts" /etc/hosts
common=(--port 0 --http off --grace 5 --no-rpcbind)
far=(-s 10.77.0.1 10.77.0.2)
near=(127.0.0.1)
stored() { "$STORE_DUMP" "lmdb:$work/$1"; }

start open "${common[@]}" --store "lmdb:$work/open" || finish

# (1)
expect "SM_MON from another host" same "$("$PEER" "${far[@]}" "$port" mon watched me)" "succ $state"
expect "the same over UDP" same "$("$PEER" -u "${far[@]}" "$port" mon udp me)" "succ $state"
expect "SM_MON from here" same "$("$PEER" "${near[@]}" "$port" mon watched me)" "succ $state"

# (2) Everybody names the registration of 10.77.0.1; nobody else can remove it.
expect "SM_UNMON from elsewhere is answered" same \
    "$("$PEER" -s 10.77.0.2 10.77.0.2 "$port" unmon watched me)" "state $state"
expect "SM_UNMON_ALL from elsewhere is answered" same \
    "$("$PEER" -s 10.77.0.2 10.77.0.2 "$port" unmon-all me)" "state $state"
expect "SM_UNMON_ALL from here" same "$("$PEER" "${near[@]}" "$port" unmon-all me)" "state $state"

# (3)
expect "SM_SIMU_CRASH from another host is answered" same \
    "$("$PEER" "${far[@]}" "$port" simu-crash)" ok
expect "and does nothing" same "$("$PEER" "${near[@]}" "$port" stat x)" "succ $state"

# (4)
foreign='ignored a reboot notification: that name does not resolve'
expect "SM_NOTIFY by a watcher's host" same "$("$PEER" -u "${far[@]}" "$port" notify watched 5)" \
    "error SYSTEM_ERR" # nobody knows whose name that is: to be said again
expect "is ignored" log_has "$work/open.log" "$foreign .* from=10.77.0.1 name=\"watched\" state=5"
expect "SM_NOTIFY by a stranger" same \
    "$("$PEER" -u -s 10.77.0.2 10.77.0.2 "$port" notify udp 7)" ok
expect "is ignored, too" log_has "$work/open.log" "$foreign .* from=10.77.0.2 name=\"udp\" state=7"
for name in NAMED.example localhost; do
    expect "SM_MON of $name" same "$("$PEER" "${far[@]}" "$port" mon "$name" me)" "succ $state"
done
expect "SM_NOTIFY by a host of that name" same \
    "$("$PEER" -s 10.77.0.2 10.77.0.2 "$port" notify named.EXAMPLE 11)" ok
expect "is believed" log_has "$work/open.log" \
    'a client reported its reboot from=10.77.0.2 name="named.EXAMPLE" state=11'
expect "SM_NOTIFY by localhost" same "$("$PEER" "${near[@]}" "$port" notify localhost 13)" ok
expect "is believed, too" log_has "$work/open.log" 'a client reported its reboot from=127.0.0.1 name="localhost"'
expect "each was logged once" same "$(grep -c "$foreign" "$work/open.log")" 2
expect "SM_MON of an address" same "$("$PEER" "${far[@]}" "$port" mon 10.77.0.2 me)" "succ $state"
expect "SM_NOTIFY by that address" same \
    "$("$PEER" -s 10.77.0.2 10.77.0.2 "$port" notify 10.77.0.2 9)" ok
stop TERM
expect "it ends with 0" same "$code" 0
expect "five registrations of that host are stored, none of ours" same \
    "$(stored open | sed -n 's/^registrant .* address=\([^ ]*\) .* mon_name=\([^ ]*\) .*/\1:\2/p' |
        sort | xargs)" "10.77.0.1:10.77.0.2 10.77.0.1:NAMED.example 10.77.0.1:localhost 10.77.0.1:udp 10.77.0.1:watched"
expect "the believable notices are stored" same \
    "$(stored open | sed -n 's/^notice .* state=\([0-9]*\) mon_name=\(.*\)/\2:\1/p' | sort |
        xargs)" \
    "10.77.0.2:9 localhost:13 named.EXAMPLE:11"

# (5)
start closed "${common[@]}" --store "lmdb:$work/closed" --mon-from loopback || finish
expect "SM_MON from here" same "$("$PEER" "${near[@]}" "$port" mon watched me)" "succ $state"
expect "SM_MON from another host is refused" matches \
    "$("$PEER" "${far[@]}" "$port" mon watched me)" '^fail'
expect "SM_UNMON from another host is answered" same \
    "$("$PEER" "${far[@]}" "$port" unmon watched me)" "state $state"
expect "SM_STAT from another host" same "$("$PEER" "${far[@]}" "$port" stat x)" "succ $state"
expect "NULL from another host" same "$("$PEER" "${far[@]}" "$port" null)" ok
stop TERM
expect "ours is stored" same "$(stored closed | grep -c '^registrant .* address=127.0.0.1 ')" 1
expect "and no other" same "$(stored closed | grep -c '^registrant ')" 1

# (6)
start ports "${common[@]}" --store "lmdb:$work/ports" --require-privileged-port || finish
expect "NULL from any port" same "$("$PEER" "${near[@]}" "$port" null)" ok
expect "SM_STAT from an unprivileged port" same \
    "$("$PEER" "${near[@]}" "$port" stat x)" "error AUTH_ERROR"
expect "SM_STAT from a privileged port" same \
    "$("$PEER" -p 901 "${near[@]}" "$port" stat x)" "succ $state"
expect "the same over UDP" same "$("$PEER" -u -p 902 "${near[@]}" "$port" stat x)" "succ $state"
stop TERM
expect "it ends with 0" same "$code" 0
finish
