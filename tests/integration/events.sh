#!/bin/bash
# events.sh -- the stream of events.
#
# Passing proves:
#  (1) a stream begins with the status, repeats it, and tells of registrations, new clients, waits,
#      grants and crashes as they happen; a name full of line breaks and HTML stays inside its event;
#  (2) a reader that comes back with the id it got last misses nothing, also when the server was
#      started anew in between;
#  (3) fifty streams, readers that are gone and one that does not read keep nobody else from being
#      answered, and go away; the server stops at once while streams are open;
#  (4) an id that makes no sense is as good as none; ?after= says the same as the header;
#  (5) HEAD of a stream is its headers and the end of the connection.
set -u
. "$(dirname "$0")/lib.sh"

if ! command -v curl > /dev/null; then
    echo "skipped: curl is needed"
    exit 77
fi
start first --listen 127.0.0.1 --port 0 --http "127.0.0.1:0" --store "lmdb:$work/store" \
    --no-rpcbind || finish
expect "HTTP is served" log_has "$work/first.log" 'serving HTTP port='
http=$(sed -n 's/.*serving HTTP port=\([0-9]*\).*/\1/p' "$work/first.log")
url="http://127.0.0.1:$http/api/v1/events"
readers=()
# listen NAME [CURL-WORDS...]: a stream into $work/NAME.
listen() {
    local name=$1
    shift
    curl -sN -m 600 "$@" "$url" > "$work/$name" &
    readers+=($!)
    expect "$name begins with the status" wait_until grep -q '^event: status' "$work/$name"
}
has() { expect "$1 has $2" wait_until grep -q "$2" "$work/$1"; }
# shellcheck disable=SC2317 # called by wait_until
is_locked() { [ "$("$PEER" -s 127.1.0.5 -n epsilon 127.0.0.1 "$port" lock "$1")" = granted ]; }
# shellcheck disable=SC2317 # called by wait_until
has_descriptors() { test "$(find "/proc/$pid/fd" -mindepth 1 | wc -l)" "$1" "$2"; }

# (1)
listen main
expect "how soon to come back" grep -q '^retry: ' "$work/main"
# shellcheck disable=SC2317
is_repeated() { [ "$(grep -c '^event: status' "$work/$1")" -ge 2 ]; }
expect "the status comes again" wait_until is_repeated main
evil=$'<script>\n\nevent: forged'
"$PEER" -s 127.1.0.1 -n alpha 127.0.0.1 "$port" lock one > /dev/null
has main '^event: client_added'
"$PEER" 127.0.0.1 "$port" mon alpha me > /dev/null
has main '^event: registered'
"$PEER" -s 127.1.0.2 -n "$evil" 127.0.0.1 "$port" wait one > "$work/waiter" &
has main '^event: blocked'
expect "the name is escaped" grep -q '"name":"<script>\\n\\nevent: forged"' "$work/main"
expect "nothing is forged" same "$(grep -c '^event: forged' "$work/main")" 0
"$PEER" -s 127.1.0.1 -n alpha 127.0.0.1 "$port" notify alpha 5 > /dev/null
has main '^event: client_renewed'

# (2), (4)
id=$(sed -n 's/^id: //p' "$work/main" | head -n 1)
listen back -H "Last-Event-ID: $id"
expect "what came after it" wait_until grep -q '^event: registered' "$work/back"
expect "from the next one on" same "$(sed -n 's/^id: //p' "$work/back" | head -n 1)" \
    "${id%-*}-$((${id#*-} + 1))"
url="$url?after=0" listen all
has all '^event: client_renewed'
expect "all that is kept" same "$(sed -n 's/^id: //p' "$work/all" | head -n 1)" "$id"
url="$url?after=$id" listen after_id
has after_id '^event: client_renewed'
expect "what came after an id" same "$(sed -n 's/^id: //p' "$work/after_id" | head -n 1)" "${id%-*}-$((${id#*-} + 1))"
# The ring is for what happens: a reader that watches for an hour does not push that out.
expect "a status has no id" same "$(grep -B 1 '^event: status' "$work/main" | grep -c '^id:')" 0
count=0
for strange in 99999999999999999999999 -1 x "1;2" "" "$id;" "${id%-*}-"; do
    count=$((count + 1))
    listen "strange$count" -H "Last-Event-ID: $strange"
    # What is old would come before the status of the next second.
    expect "another status" wait_until is_repeated "strange$count"
    expect "nothing old for '$strange'" same \
        "$(grep -c '^event: client_added' "$work/strange$count")" 0
done

# (5) the headers, and nothing behind them
exec 5<> "/dev/tcp/127.0.0.1/$http"
printf 'HEAD %s HTTP/1.1\r\nHost: localhost\r\n\r\n' /api/v1/events >&5
expect "HEAD of a stream has no body" same "$(timeout 10 cat <&5 | sed -n '/^\r$/,$p')" $'\r'
exec 5>&-

# (3)
for _ in {1..50}; do
    curl -sN -m 600 "$url" > /dev/null &
    readers+=($!)
done
exec 5<> "/dev/tcp/127.0.0.1/$http"
printf 'GET /api/v1/events HTTP/1.1\r\nHost: localhost\r\n\r\n' >&5
expect "all are there" wait_until has_descriptors -gt 60
expect "others are answered" same \
    "$(curl -s -m 60 -o /dev/null -w '%{http_code}' "http://127.0.0.1:$http/api/v1/status")" 200
expect "and served" same "$("$PEER" -s 127.1.0.3 -n gamma 127.0.0.1 "$port" lock two)" granted
kill "${readers[@]}" 2> /dev/null
expect "who is gone is found out" wait_until has_descriptors -lt 40
listen last
stop TERM
expect "the stop" same "$code" 0
# Streams last for minutes; a stop that waited for them would be seen.
expect "is quick" [ "$took_ms" -lt 30000 ]
exec 5>&-
kill "${readers[@]}" 2> /dev/null

# (2) The last reader comes back after the restart: it gets what happened before it was back.
last=$(sed -n 's/^id: //p' "$work/main" | tail -n 1)
start again --listen 127.0.0.1 --port 0 --http "127.0.0.1:$http" --store "lmdb:$work/store" \
    --no-rpcbind --grace 0 || finish
expect "a first lock" wait_until is_locked five
listen after -H "Last-Event-ID: $last"
has after '^event: client_added'
expect "ids are of another run" [ "$(sed -n 's/^id: //p' "$work/after" | head -n 1)" != \
    "${last%-*}-1" ]
expect "from the first one on" matches "$(sed -n 's/^id: //p' "$work/after" | head -n 1)" '-1$'
stop TERM
kill "${readers[@]}" 2> /dev/null
finish
