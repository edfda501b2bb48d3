#!/bin/bash
# metrics.sh -- what Prometheus sees.
#
# Passing proves:
#  (1) promtool finds nothing to say about /metrics, empty or after traffic, nor about the alert
#      rules; they and the dashboard name only metrics that are there;
#  (2) every metric of docs/metrics.md is served with the type it says, and no other;
#  (3) calls, locks, waits and notifications are counted where they belong;
#  (4) --metrics off serves none and says so;
#  (5) every limit has its use beside it, and the options set the limits; who comes near the limit of
#      one address or one client is counted; the process is measured; the rules fire as they should.
set -u
root=$(cd "$(dirname "$0")/../.." && pwd)
. "$(dirname "$0")/lib.sh"

if ! command -v curl > /dev/null || ! command -v promtool > /dev/null; then
    echo "skipped: curl and promtool (package prometheus) are needed"
    exit 77
fi
options=(--listen 127.0.0.1 --port 0 --http "127.0.0.1:0" --store "lmdb:$work/store" --no-rpcbind
    --notify-timeout 2)
# --export needs root; without it there are no metrics of files.
files='^(nfs|mount)_'
if [ "$(id -u)" = 0 ]; then
    install -d -m 777 "$work/exported"
    options+=(--export "$work/exported *(rw)" --nfs-port 0)
    files='^$'
fi

scrape() { curl -s -m 60 "http://127.0.0.1:$http/metrics" > "$work/metrics"; }
# value SAMPLE: its value in the last scrape.
value() { awk -v name="$1" '$1 == name { print $2 }' "$work/metrics"; }
start_metered() {
    start "$@" || finish
    expect "HTTP is served" log_has "$work/$1.log" 'serving HTTP port='
    http=$(sed -n 's/.*serving HTTP port=\([0-9]*\).*/\1/p' "$work/$1.log")
}

start_metered first "${options[@]}"
scrape
expect "an idle server's metrics" promtool check metrics < "$work/metrics"

# (2)
# shellcheck disable=SC2016 # back quotes of Markdown
sed -n 's/^| `\([a-z_]*\)` | \([a-z]*\) |.*/\1 \2/p' "$root/docs/metrics.md" | grep -vE "$files|^holdfast_(monitor_|group_info)" |
    sort > "$work/promised"
sed -n 's/^# TYPE //p' "$work/metrics" | sort > "$work/served"
expect "what is served is what is promised" diff "$work/promised" "$work/served"
expect "every one has help" same "$(grep -c '^# HELP' "$work/metrics")" \
    "$(grep -c '^# TYPE' "$work/metrics")"

# (1) names in the rules, without the functions and labels
names=$(grep -oE '\b(nlm|nsm|holdfast|process)_[a-z_]+' "$root/contrib/holdfast-alerts.yml" |
    sed 's/_bucket$//' | grep -v '^holdfast_monitor_' | sort -u) # those are in monitor_view.sh
for name in $names; do
    expect "the rules' $name is served" grep -q "^# TYPE $name " "$work/metrics"
done
# The dashboard has one expression a line. Counters of histograms have the name of the histogram;
# metrics of files are there only for root.
names=$(grep -E '"(expr|query)":' "$root/contrib/holdfast-dashboard.json" |
    grep -oE '\b(nlm|nsm|nfs|mount|holdfast|process)_[a-z_]+' | grep -vE '^holdfast_monitor_' | grep -vE "$files" | sort -u)
for name in $names; do
    expect "the dashboard's $name is served" \
        grep -qE "^# TYPE (${name}|${name%_bucket} histogram|${name%_count} histogram|${name%_sum} histogram)( |$)" "$work/metrics"
done
expect "the dashboard was read" [ "$(wc -w <<< "$names")" -gt 20 ]
# Its expressions as rules, so that promtool reads them; Grafana's variables have a value then.
{
    echo 'groups: [{name: dashboard, rules: ['
    # shellcheck disable=SC2016 # Grafana's variables
    sed -n 's/^ *"expr": \(".*"\),*$/{record: a:b, expr: \1},/p' "$root/contrib/holdfast-dashboard.json" |
        sed 's/\$__rate_interval/5m/g; s/\$instance/.*/g' | awk '{ sub(/a:b/, "dashboard:" NR); print }'
    echo ']}]'
} > "$work/dashboard.yml"
expect "its expressions" promtool check rules "$work/dashboard.yml"
if command -v jq > /dev/null; then
    expect "the dashboard is JSON" jq -e '.panels | length > 20' "$root/contrib/holdfast-dashboard.json"
else
    echo "not shown: jq is not installed"
fi
expect "the alert rules" promtool check rules "$root/contrib/holdfast-alerts.yml"

# (3)
peer() { "$PEER" -s 127.1.0.1 -n alpha 127.0.0.1 "$port" "$@"; }
one=one two=two
if [ "$(id -u)" = 0 ]; then # what is locked must be there
    nfs=$(sed -n 's/.*serving files port=\([0-9]*\).*/\1/p' "$work/first.log")
    files() { "$PEER" 127.0.0.1 "$nfs" files "$work/exported" "$@"; }
    touch "$work/exported/one" "$work/exported/two"
    one=$(files stat one | sed -n 's/.* handle /hex:/p')
    two=$(files stat two | sed -n 's/.* handle /hex:/p')
fi
expect "a lock" same "$(peer lock "$one")" granted
expect "another" same "$(peer lock "$two")" granted
expect "its end" same "$(peer unlock "$two")" granted
expect "a conflict" same "$("$PEER" -n beta 127.0.0.1 "$port" lock "$one")" denied
expect "NULL" same "$("$PEER" 127.0.0.1 "$port" null)" ok
expect "SM_MON" matches "$("$PEER" 127.0.0.1 "$port" mon alpha me)" '^succ'
expect "SM_MON of a bad name" matches "$("$PEER" 127.0.0.1 "$port" mon .x me)" '^fail'
scrape
expect "metrics after traffic" promtool check metrics < "$work/metrics"
expect "LOCK" same "$(value 'nlm_requests_total{procedure="LOCK",result="success"}')" 3
expect "UNLOCK" same "$(value 'nlm_requests_total{procedure="UNLOCK",result="success"}')" 1
expect "MON" same "$(value 'nsm_requests_total{procedure="MON",result="success"}')" 1
expect "MON that failed" same "$(value 'nsm_requests_total{procedure="MON",result="error"}')" 1
expect "durations of LOCK" same "$(value 'nlm_request_duration_seconds_count{procedure="LOCK"}')" 3
expect "in the last bucket" same \
    "$(value 'nlm_request_duration_seconds_bucket{procedure="LOCK",le="+Inf"}')" 3
expect "a lock is held" same "$(value 'nlm_locks_held{share="default"}')" 1
expect "two are registered" same "$(value nsm_clients_registered)" 2
expect "commits are timed" same "$(value holdfast_store_commit_duration_seconds_count)" \
    "$(value holdfast_store_batch_records_count)"
for part in write sync; do
    expect "commits have a time to $part" same "$(value "holdfast_store_commit_${part}_seconds_count")" \
        "$(value holdfast_store_batch_records_count)"
done
if [ "$(id -u)" = 0 ]; then
    head -c 5000 /dev/zero | files put zeros > /dev/null
    expect "it is read" same "$(files cat zeros | wc -c)" 5000
    expect "and again" same "$(files cat zeros | wc -c)" 5000
    expect "a name that is not there" matches "$(files rm nothing 2>&1)" NOENT
    scrape
    expect "bytes written" same "$(value 'nfs_bytes_total{direction="write"}')" 5000
    expect "bytes read" same "$(value 'nfs_bytes_total{direction="read"}')" 10000
    expect "CREATE" same "$(value 'nfs_requests_total{procedure="CREATE",result="success"}')" 1
    expect "REMOVE that failed" matches \
        "$(value 'nfs_requests_total{procedure="REMOVE",result="error"}')" '^[1-9]'
    expect "MNT" matches "$(value 'mount_requests_total{procedure="MNT",result="success"}')" '^[1-9]'
    expect "an export" same "$(value nfs_exports)" 1
    expect "open files" matches "$(value nfs_open_files)" '^[1-9]'
    expect "nobody waits" same "$(value nfs_queue_length)" 0
fi
# (5)
names=$(sed -n 's/^holdfast_limit{resource="\([a-z_]*\)"} .*/\1/p' "$work/metrics")
for name in lock_clients registrations tracked_clients locks share_reservations waiters name_bytes \
    connections outgoing_calls; do
    expect "there is a limit of $name" grep -qx "$name" <<< "$names"
done
for name in $names; do
    used=$(value "holdfast_limit_used{resource=\"$name\"}")
    limit=$(value "holdfast_limit{resource=\"$name\"}")
    expect "$used of $limit $name" [ "$used" -le "$limit" ]
    if [ "$files" = '^$' ] && [ "$name" = locked_files ]; then
        expect "a file is locked" same "$used" 1
    fi
done
expect "a use for each" same "$(grep -c '^holdfast_limit{' "$work/metrics")" \
    "$(grep -c '^holdfast_limit_used{' "$work/metrics")"
expect "--max-locks" same "$(value 'holdfast_limit{resource="locks"}')" 1000000
expect "a lock of it" same "$(value 'holdfast_limit_used{resource="locks"}')" 1
expect "a tenth for one address" same "$(value 'holdfast_address_limit{resource="locks"}')" 100000
expect "nobody is near it" same "$(value 'holdfast_addresses_near_limit{resource="locks"}')" 0
expect "memory" [ "$(value process_resident_memory_bytes)" -gt 1000000 ]
expect "of the kernel's measure" [ "$(value process_resident_memory_bytes)" -lt \
    $(($(awk '/^VmHWM/ { print $2 }' "/proc/$pid/status") * 1024 + 4194304)) ]
expect "descriptors" same "$(value process_max_fds)" "$(awk '/^Max open files/ { print $4 }' "/proc/$pid/limits")"
expect "some are open" [ "$(value process_open_fds)" -ge 10 ]
now=$(date +%s) began=$(value process_start_time_seconds)
expect "it started a moment ago" [ "${began%.*}" -le "$now" ]
expect "not long ago" [ "${began%.*}" -gt $((now - 600)) ]
expect "processor time" matches "$(value process_cpu_seconds_total)" '^[0-9]+\.[0-9]{9}$'
stop KILL

# Two to be told, and nobody there. Later attempts are counted apart, so that the first ones stay as
# they are however late somebody looks.
start_metered second "${options[@]}" --grace 5
first_counts() {
    echo "$(value 'nsm_notifications_total{result="started"}') started," \
        "$(value 'nsm_notifications_total{result="success"}') reached," \
        "$(value 'nsm_notifications_total{result="failed"}') not," \
        "$(value nsm_notification_duration_seconds_count) timed"
}
# shellcheck disable=SC2317 # called by wait_until
has_failed() { scrape && [ "$(value "$1{result=\"failed\"}")" -ge 2 ]; }
expect "both attempts fail" wait_until has_failed nsm_notifications_total
expect "first attempts" same "$(first_counts)" "2 started, 0 reached, 2 not, 2 timed"
expect "metrics in a recovery" promtool check metrics < "$work/metrics"
expect "later attempts fail" wait_until has_failed holdfast_notify_retries_total
expect "first attempts stay" same "$(first_counts)" "2 started, 0 reached, 2 not, 2 timed"
expect "no later one reached them" same \
    "$(value 'holdfast_notify_retries_total{result="success"}')" 0
stop TERM

# (5) Of 5 locks that a client may hold, 5 are more than 80 %, and so of 10 that an address may.
start_metered small --listen 127.0.0.1 --port 0 --http 127.0.0.1:0 --store memory: --no-rpcbind \
    --max-locks 20 --max-per-address 50 --max-locks-per-client 5 --max-clients 40
for name in 1 2 3 4 5; do
    expect "lock $name" same "$("$PEER" -s 127.1.0.1 -n alpha 127.0.0.1 "$port" lock "file$name")" granted
done
scrape
expect "one is near its limit" same "$(value holdfast_clients_near_lock_limit)" 1
expect "which is" same "$(value holdfast_client_lock_limit)" 5
expect "its address is not" same "$(value 'holdfast_addresses_near_limit{resource="locks"}')" 0
for name in 6 7 8 9; do
    expect "lock $name" same "$("$PEER" -s 127.1.0.1 -n beta 127.0.0.1 "$port" lock "file$name")" granted
done
scrape
expect "now it is" same "$(value 'holdfast_addresses_near_limit{resource="locks"}')" 1
expect "an unlock" same "$("$PEER" -s 127.1.0.1 -n alpha 127.0.0.1 "$port" unlock file1)" granted
scrape
expect "not any more" same "$(value 'holdfast_addresses_near_limit{resource="locks"}')" 0
expect "nor the client" same "$(value holdfast_clients_near_lock_limit)" 0
stop TERM
busy_series=$(for resource in outgoing_calls nfs_calls nfs_call_bytes; do
    for series in holdfast_limit holdfast_limit_used; do
        echo "      - {series: '$series{instance=\"a\",resource=\"$resource\"}', values: '100x20'}"
    done
done)
cat > "$work/rules.yml" << END
rule_files: ["$root/contrib/holdfast-alerts.yml"]
evaluation_interval: 1m
tests:
  - interval: 1m
    input_series:
      - {series: 'holdfast_limit{instance="a",resource="locks"}', values: '100x20'}
      - {series: 'holdfast_limit_used{instance="a",resource="locks"}', values: '80x5 81x15'}
      - {series: 'holdfast_limit{instance="a",resource="open_files"}', values: '100x20'}
      - {series: 'holdfast_limit_used{instance="a",resource="open_files"}', values: '100x20'}
$busy_series
      - {series: 'holdfast_grace_active{instance="a"}', values: '1x4 0x2 1x14'}
    alert_rule_test:
      - {eval_time: 5m, alertname: HoldfastLimitNear}
      - {eval_time: 2m, alertname: HoldfastGraceLong}
      - eval_time: 15m
        alertname: HoldfastLimitNear
        exp_alerts:
          - exp_labels: {severity: warning, instance: a, resource: locks}
            exp_annotations:
              summary: "holdfast on a uses more than 80 % of its locks"
              description: "At the limit new ones are refused: holdfast status shows the limits and the options that raise them."
      - eval_time: 12m
        alertname: HoldfastGraceLong
        exp_alerts:
          - exp_labels: {severity: warning, instance: a}
            exp_annotations:
              summary: "the grace period of holdfast on a lasts"
              description: "No new locks are granted until it ends: holdfast status names the clients it waits for, holdfast end-grace ends it."
END
expect "the rules fire at 80 %, and when a grace period lasts" promtool test rules "$work/rules.yml"

# (4)
start_metered off "${options[@]}" --metrics off
expect "no metrics" same \
    "$(curl -s -m 60 -o "$work/metrics" -w '%{http_code}' "http://127.0.0.1:$http/metrics")" 404
expect "and why" log_has "$work/metrics" 'started with --metrics off'
stop TERM
finish
