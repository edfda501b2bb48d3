#!/bin/bash
# contradictions.sh -- a store with more locks that contradict each other than the log has lines for.
#
# usage: contradictions.sh STORE_REPEAT
#
# Passing proves: of locks that contradict others the first stays; the rest is removed, in the store as
# well; the log says how many they were, although each has a line only as far as lines are kept, and
# that the store may have lost records; the next start finds nothing any more.
set -u
. "$(dirname "$0")/lib.sh"
repeat=$1
count=300
options=(--listen 127.0.0.1 --port 0 --http off --no-rpcbind --grace 1 --store "lmdb:$work/store")

start first "${options[@]}" || finish
expect "a lock" same "$("$PEER" -s 127.0.0.2 -n web1 127.0.0.1 "$port" lock mail 0 100)" granted
stop KILL
expect "more of it" "$repeat" "lmdb:$work/store" "$count"
expect "they are there" same "$("$STORE_DUMP" "lmdb:$work/store" | grep -c '^lock ')" $((count + 1))

start damaged "${options[@]}" || finish
expect "one is left" matches "$(cat "$work/damaged.out")" '1 client, 1 lock, '
expect "the log has their number" log_has "$work/damaged.log" "removed locks that contradict others locks=$count\$"
lines=$(grep -c 'skipped a damaged record' "$work/damaged.log")
expect "and $lines of them one by one" [ "$lines" -ge 1 -a "$lines" -lt "$count" ]
expect "more may be missing" log_has "$work/damaged.log" 'the store may have lost records'
stop TERM
expect "the store has one, too" same "$("$STORE_DUMP" "lmdb:$work/store" | grep -c '^lock ')" 1

start repaired "${options[@]}" || finish
expect "no contradiction is left" same "$(grep -c contradict "$work/repaired.log")" 0
stop TERM
finish
