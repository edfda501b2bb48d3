#!/bin/bash
# monitor_view.sh -- what operators see of --role monitor, and can do with it.
#
# usage: monitor_view.sh WATCHER, the program made of watcher.c; without it the test is skipped
#
# The hosts are those of monitor.sh: nodea has rpcbind, our monitor and a lock manager made of libtirpc,
# nodeb rpcbind and rpc.statd; 10.77.1.9 is nobody, and nobody.example has no address. Passing proves:
#  (1) hosts and clients list name, address, since when, what is owed, the last notice, and so does a
#      host in full; status counts them, and names those for whom something is left to be done;
#  (2) what a monitor has none of is refused in words, not shown as empty: locks, waiters, sets of
#      files, grace; options of locks are not in the configuration;
#  (3) /metrics is clean, has what docs/metrics.md says of this role and nothing else, and the alert
#      rules of the role name nothing that is not there;
#  (4) an upcall that the lock manager misses is owed in every one of these, and settled when it is back;
#  (5) the drill says who could be notified, by names that do not resolve, too; check-client works;
#  (6) after a reboot the hosts are owed a notice until their turn comes, and then not any more;
#  (7) events say what happens; release forgets a host;
#  (8) holdfast hosts of a lock server is refused.
# shellcheck disable=SC2317 # expect and wait_until call functions by their names
set -u
root=$(cd "$(dirname "$0")/../.." && pwd)
. "$(dirname "$0")/statd_hosts.sh"
enter 1 "$@"
. "$(dirname "$0")/lib.sh"
watcher=$1

name_a=nodea.example
name_b=nodeb.example
address_a=10.77.1.1
address_b=10.77.1.2
silent=10.77.1.9
export HOLDFAST_MACHINE_ROOT=$work/machine
export HOLDFAST_CONTROL=$work/store/control.sock
http=127.0.0.1:12080
boot=0

boot_anew() { # the machine of our monitor boots
    boot=$((boot + 1))
    printf '%08d-1111-2222-3333-444444444444\n' "$boot" \
        > "$HOLDFAST_MACHINE_ROOT/proc/sys/kernel/random/boot_id"
}

# monitor NAME OPTIONS...: sets pid.
monitor() {
    local name=$1
    shift
    "$HOLDFAST" serve --role monitor --http "$http" --store "lmdb:$work/store" "$@" \
        2> "$work/$name.log" > "$work/$name.out" < /dev/null &
    pid=$!
    server_pids+=("$pid")
    need "$name is ready" wait_until grep -q '^holdfast: monitoring on port' "$work/$name.out"
}

lock_manager() { # sets lockd
    "$watcher" serve > "$work/lockd.log" 2>&1 < /dev/null &
    lockd=$!
    server_pids+=("$lockd")
    need "the lock manager is registered" wait_until quiet rpcinfo -T udp 127.0.0.1 100021 3
}

mon() { "$watcher" mon 127.0.0.1 tcp "$1" "$name_a" "$2"; }
reboots() { on 1 "$PEER" -s "$address_b" "$address_a" 12049 notify "$name_b" "$1" > /dev/null; }
get() { curl -s -m 60 "http://$http$1"; }
code_of() { curl -s -m 60 -o "$work/body" -w '%{http_code}' "http://$http$1"; }
scrape() { get /metrics > "$work/metrics"; }
value() { awk -v name="$1" '$1 == name { print $2 }' "$work/metrics"; }
metric_is() { scrape && [ "$(value "$1")" = "$2" ]; }
has_failed() { scrape && [ "$(value 'holdfast_monitor_upcalls_total{result="failed"}')" -ge 1 ]; }
# row HOST: its line of `holdfast hosts`, with single spaces.
row() { "$HOLDFAST" hosts | awk -v host="$1" '$2 == host { $1 = $1; print }'; }
row_has() { matches "$(row "$1")" "$2" > /dev/null; }
status_has() { matches "$("$HOLDFAST" status)" "$1" > /dev/null; }

mkdir -p "$HOLDFAST_MACHINE_ROOT/proc/sys/kernel/random" "$HOLDFAST_MACHINE_ROOT/etc"
boot_anew
names=$(printf '%s %s\n%s %s' "$address_a" "$name_a" "$address_b" "$name_b")
furnish "$name_a" "$names"
start_host 1 "$name_b" "$names" || { echo "nodeb did not start"; exit 1; }
rpcbind -f -w 2> "$work/rpcbind-a.log" &
server_pids+=($!)
background 1 rpcbind-b.log rpcbind -f
need "rpcbind of nodea" wait_until quiet rpcinfo
need "rpcbind of nodeb" wait_until quiet on 1 rpcinfo
mkdir -p "$work/nfs/sm" "$work/nfs/sm.bak"
background 1 statd.log rpc.statd -F -d -L -p 13024 -P "$work/nfs"
need "rpc.statd is registered" wait_until quiet rpcinfo -T tcp "$address_b" 100024 1
monitor first
lock_manager
curl -sN -m 300 "http://$http/api/v1/events" > "$work/events" &
server_pids+=($!)
need "the stream is open" wait_until grep -q 'event: status' "$work/events"

# (1)
expect "nothing is watched" status_has 'hosts +0 watched'
for host in "$address_b" "$silent" nobody.example; do
    expect "SM_MON of $host" matches "$(mon "$host" priv-of-the-host)" '^succ'
done
expect "a host" matches "$(row "$address_b")" "^c1 $address_b $address_b [0-9]+ s ago - - 0 -$"
expect "one that has no address" wait_until row_has nobody.example '^c3 nobody\.example not resolved '
expect "clients shows the same" same "$("$HOLDFAST" clients | awk '{ print $1, $2, $3 }')" \
    "$("$HOLDFAST" hosts | awk '{ print $1, $2, $3 }')"
expect "with a title for each" matches "$("$HOLDFAST" clients | head -n 1)" \
    'HOST +ADDRESS +WATCHED +OWED +NOTIFIED +TRIES +LAST NOTICE'
"$HOLDFAST" clients "$address_b" > "$work/one"
expect "a host in full" log_has "$work/one" "^  monitors  *$address_b$"
expect "who registered it" log_has "$work/one" "^  calls back  *$name_a$"
expect "and no locks" same "$(grep -cE '^(Holds|  (locks|waits for|reclaimed) )' "$work/one")" 0
expect "explained" matches "$("$HOLDFAST" explain "$address_b")" 'watched for the lock manager'
expect "status" status_has "$(printf 'hosts +3 watched\nnotices +every host knows')"
expect "names that do not resolve" status_has 'names +1 name unresolved'
expect "by name" status_has 'c3 nobody\.example \(name does not resolve\)'
get /api/v1/status > "$work/status"
expect "its role" log_has "$work/status" '"role": *"monitor"'
expect "counts" log_has "$work/status" \
    '"hosts": *{"watched": *3, *"owed": *0, *"upcalls_owed": *0, *"unresolved": *1, *"notifying": *true'
expect "nothing of locks" same "$(grep -cE '"(locks|waiters|grace|clients|nlm_requests)"' "$work/status")" 0

# (2)
for path in locks waiters shares "locks?client=c1"; do
    expect "/api/v1/$path" same "$(code_of "/api/v1/$path")" 404
    expect "says why" log_has "$work/body" 'a status monitor keeps no locks'
done
"$HOLDFAST" locks > "$work/locks" 2>&1
expect "holdfast locks" same "$?" 1
expect "says why" log_has "$work/locks" 'a status monitor keeps no locks; the lock manager of this'
"$HOLDFAST" end-grace --yes > "$work/grace" 2>&1
expect "holdfast end-grace" same "$?" 1
expect "says whose it is" log_has "$work/grace" 'a status monitor has no grace period; .*nlm_end_grace'
expect "no option of locks" same "$(get /api/v1/config | grep -cE '"(grace|max-locks|share|export)"')" 0
expect "but those of the role" same "$(get /api/v1/config | grep -c '"notify-after"')" 1

# (3)
others='^(nlm|nfs|mount)_|^nsm_(crash|locks)|^holdfast_(grace|group|reclaims|released|tracked|address_limit|addresses_near|client_lock_limit|clients_near|evicted)'
# shellcheck disable=SC2016 # back quotes of Markdown
sed -n 's/^| `\([a-z_]*\)` | \([a-z]*\) |.*/\1 \2/p' "$root/docs/metrics.md" | grep -vE "$others" |
    sort > "$work/promised"
scrape
sed -n 's/^# TYPE //p' "$work/metrics" | sort > "$work/served"
expect "the metrics of this role" diff "$work/promised" "$work/served"
if command -v promtool > /dev/null; then
    expect "are clean" promtool check metrics < "$work/metrics"
fi
names=$(grep -ohE '\bholdfast_monitor_[a-z_]+' "$root/contrib/holdfast-alerts.yml" \
    "$root/contrib/holdfast-dashboard.json" | sort -u)
for name in $names; do
    expect "the rules' $name is served" grep -q "^# TYPE $name " "$work/metrics"
done
expect "hosts" same "$(value nsm_clients_registered)" 3
expect "unresolved ones" same "$(value holdfast_monitor_unresolved_names)" 1
expect "SM_MON" same "$(value 'nsm_requests_total{procedure="MON",result="success"}')" 3

# (4)
reboots 71
expect "the lock manager is told" wait_until metric_is 'holdfast_monitor_upcalls_total{result="success"}' 1
expect "and that is not a notification" same \
    "$(value 'nsm_notifications_total{result="started"}')" 0
expect "the notice is seen" wait_until row_has "$address_b" ' - - 0 ([0-9]+ s ago|now|just now)$'
end KILL "$lockd"
reboots 73
expect "an upcall is owed" wait_until metric_is holdfast_monitor_upcalls_owed 1
expect "its first attempt fails" wait_until has_failed
expect "in the list" row_has "$address_b" "^c1 $address_b $address_b .* upcall - "
expect "in the status" status_has 'upcalls +1 reboot not yet reported to the lock manager'
expect "with its host" status_has "c1 $address_b \\(upcall\\)"
expect "to be read by programs" matches "$(get /api/v1/clients/c1)" '"upcall_owed": *true'
lock_manager
expect "told when it is back" wait_until metric_is holdfast_monitor_upcalls_owed 0
expect "once" same "$(grep -c "^told.*mon_name=$address_b state=73" "$work/lockd.log")" 1
expect "nothing is owed" status_has 'upcalls +the lock manager knows of every reboot'

# (5)
"$HOLDFAST" drill --timeout 1 --all > "$work/drill"
expect "somebody would be missed" same "$?" 1
expect "nodeb would be" log_has "$work/drill" "^c1 .* yes  *OK: notifications work$"
expect "nobody there" log_has "$work/drill" "^c2  *$silent .* no  *no answer on port 111"
expect "no address" log_has "$work/drill" "^c3  *nobody.example .* no  *its name does not resolve"
expect "in one sentence" log_has "$work/drill" \
    'After a reboot of this machine now 1 of 3 hosts would be notified; the locks of the others are at risk'
expect "no column of locks" same "$(grep -c LOCKS "$work/drill")" 0
"$HOLDFAST" drill --timeout 1 --json > "$work/drill.json"
expect "as JSON" same "$(grep -c '"can_be_told": *false' "$work/drill.json")" 2
expect "check-client" matches "$("$HOLDFAST" check-client "$address_b")" 'status monitor +TCP port 13024'

# (6)
stop KILL
boot_anew
echo '/srv *(rw)' > "$HOLDFAST_MACHINE_ROOT/etc/exports"
monitor rebooted --notify-after 600
expect "hosts are owed a notice" row_has "$address_b" "^c1 .* notice waiting 0 "
expect "when the NFS server is up" status_has \
    'notices +3 hosts to be notified when the NFS server of this machine is up'
expect "gauges" metric_is holdfast_monitor_hosts_owed 3
expect "that alone needs no attention" same "$(get /api/v1/status | grep -c 'cannot be notified')" 0
stop KILL
echo '# none' > "$HOLDFAST_MACHINE_ROOT/etc/exports"
monitor clientonly --notify-timeout 2
expect "who answers is gone" wait_until metric_is holdfast_monitor_hosts_owed 2
expect "it was of the last boot" same "$(row "$address_b")" ""
expect "who does not is tried again" wait_until row_has "$silent" '^c2 .* notice waiting [1-9]'
expect "which needs attention" matches "$(get /api/v1/status)" \
    '"attention": *\[.*"a host cannot be notified of the last reboot of this machine"'
expect "and named" status_has "c2 $silent \\(notice, unreachable, attempt [1-9]"
expect "counted" same "$(value 'nsm_notifications_total{result="success"}')" 1
get /api/v1/notifications > "$work/notifications"
expect "with the name it was told" log_has "$work/notifications" \
    "\"name\": *\"$silent\", *\"name_used\": *\"$name_a\""

# (7)
for kind in registered unresolved notice upcall upcall_failed; do
    expect "an event $kind" log_has "$work/events" "^event: $kind$"
done
expect "release" same "$("$HOLDFAST" release c3 --yes)" "c3: forgotten"
expect "it is gone" wait_until metric_is holdfast_monitor_unresolved_names 0
stop TERM

# (8)
start server --port 0 --no-rpcbind --http off --store "lmdb:$work/server" || finish
HOLDFAST_CONTROL=$work/server/control.sock "$HOLDFAST" hosts > "$work/hosts" 2>&1
expect "hosts of a lock server" same "$?" 1
expect "says what to use" log_has "$work/hosts" 'no status monitor (--role monitor); holdfast clients'
stop TERM
finish
