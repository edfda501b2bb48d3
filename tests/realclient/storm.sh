# storm.sh -- begins and ends a storm; sourced by the scenarios that have one. See storm.c, referee.c.
# shellcheck shell=bash disable=SC2034,SC2154

STORM_PORT=9999
STORM_PROCESSES=25 # in each of two guests

# begin_storm SECONDS SEED
begin_storm()
{
    local guest
    storm_log=$work/$scenario
    "$tools/referee" "$OUTSIDE" "$STORM_PORT" $((2 * STORM_PROCESSES)) >"$storm_log.referee" 2>&1 &
    referee=$!
    echo "$referee" >"$work/referee.pid"
    wait_until 10 grep -q '^ready' "$storm_log.referee"
    storms=()
    for guest in c1 c2; do
        EXEC_SECONDS=$(($1 + 120)) on "$guest" \
            "storm $OUTSIDE $STORM_PORT $file $STORM_PROCESSES $1 $2${guest#c}" >"$storm_log.$guest" 2>&1 &
        storms+=($!)
    done
}

# end_storm GRANTS: waits for it and judges; so many locks must have been granted.
end_storm()
{
    local granted
    wait "${storms[0]}"
    check "every process on c1 has ended well" 0 $?
    wait "${storms[1]}"
    check "every process on c2 has ended well" 0 $?
    # A referee that still waits for somebody has seen a process vanish.
    wait_until 20 gone "$referee" || kill -KILL "$referee"
    wait "$referee"
    check "the referee has seen no conflict" 0 $?
    rm -f "$work/referee.pid"
    say "referee: $(tail -n 1 "$storm_log.referee")"
    say "c1: $(tail -n 1 "$storm_log.c1")"
    say "c2: $(tail -n 1 "$storm_log.c2")"
    granted=$(awk '$1 == "granted" { n += $2 + $4 } END { print n + 0 }' "$storm_log.c1" "$storm_log.c2")
    holds "they have locked: $granted grants" [ "$granted" -ge "$1" ]
    outcome "$(on c1 "lk try $file get w 0 0")"
    check "nothing is left, seen from c1" free "$result"
    outcome "$(on c2 "lk try $file get w 0 0")"
    check "nothing is left, seen from c2" free "$result"
}
