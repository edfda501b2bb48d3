#!/bin/bash
# tracked.sh -- tracked clients over the control socket, as scripts and programs use them.
#
# Passing proves:
#  (1) register, look, change, disconnect, reconnect, remove by the paths of docs/http.md, with the
#      status and the members that it names; bytes are not shown over TCP;
#  (2) bad input is a 400, 413 or 404 in JSON and changes nothing; a key may be any bytes;
#  (3) an expired client is an event, is taken, is handed out again after a restart until it is
#      removed, and its key is refused until then;
#  (4) --window is the window of its protocol; `holdfast clients` shows state, window and deadline;
#      metrics count by protocol and state;
#  (5) limits are said: --max-clients, --max-per-address;
#  (6) members of --tracker-group may track clients and nothing else, others nothing; so also when
#      the server is not root any more (root only);
#  (7) the answer waits for the store: none while commits hang;
#  (8) examples/smb_durable.c: durable handles survive kill -9 of the server and of the program.
#
# HOLDFAST_SMB_DURABLE is the program.
set -u
. "$(dirname "$0")/lib.sh"

if ! command -v curl > /dev/null; then
    echo "skipped: no curl"
    exit 77
fi
store="$work/store"
socket="$work/run/control.sock"
http=$("$PEER" free-port)
mkdir -m 711 "$work/run"
chmod 711 "$work"
options=(--listen 127.0.0.1 --port 0 --http "127.0.0.1:$http" --store "lmdb:$store" --no-rpcbind
    --control "$socket" --window smb=120 --max-clients 20)
unix="http://x/api/v1/tracked"

# ask METHOD PATH [BODY]: sets status and body, over the control socket.
ask() {
    local data=()
    [ $# -lt 3 ] || data=(-d "$3")
    status=$(curl -s -m 60 --unix-socket "$socket" -X "$1" "${data[@]}" -o "$work/body" \
        -w '%{http_code}' "$unix$2")
    body=$(cat "$work/body")
    : > "$work/body"
}
# gives STATUS METHOD PATH [BODY]
gives() {
    local want=$1
    shift
    ask "$@"
    expect "$1 $2 ${3:-}" same "$status" "$want"
}
says() { expect "it says $1" matches "$body" "$1"; }
# member NAME: of the last body, a string or a number.
member() { sed -n "s/.*\"$1\":\"\{0,1\}\([^\",}]*\).*/\1/p" <<< "$body"; }

start first "${options[@]}" || finish

# (1)
gives 201 PUT /smb/guid-1 '{"name": "laptop", "address": "192.0.2.4", "bytes": "0A0b", "window_s": 30}'
says '"result":"added"'
says '"key":"guid-1","name":"laptop","address":"192.0.2.4","state":"connected","connection":1,"window_s":30,"deadline":null'
says '"bytes":"0a0b"'
id=$(member id)
gives 200 PUT /smb/guid-1 '{"name": "laptop", "bytes": "0c"}'
says "\"result\":\"updated\",\"id\":\"$id\""
says '"address":null,"state":"connected","connection":2,"window_s":120'
gives 200 PATCH /smb/guid-1 '{"bytes": "0d"}'
says '"bytes":"0d"'
gives 409 POST '/smb/guid-1/disconnect?connection=1'
gives 200 GET /smb/guid-1
says '"state":"connected","connection":2'
gives 200 POST "/smb/guid-1/disconnect?id=$id&connection=2" '{"timeout_s": 60}'
says '"result":"disconnected".*"state":"disconnected".*"deadline":"20'
gives 200 POST /smb/guid-1/reconnect '{"address": "192.0.2.5"}'
says "\"result\":\"reconnected\",\"id\":\"$id\".*\"address\":\"192.0.2.5\".*\"connection\":3.*\"bytes\":\"0d\""
gives 404 DELETE '/smb/guid-1?id=c99'
tcp=$(curl -s -m 60 "http://127.0.0.1:$http/api/v1/tracked/smb/guid-1")
expect "no bytes over TCP" matches "$tcp" '"bytes":null'
code=$(curl -s -m 60 -o /dev/null -w '%{http_code}' -X PUT "http://127.0.0.1:$http/api/v1/tracked/smb/x")
expect "no changes over TCP" same "$code" 403
stop KILL
start second "${options[@]}" || finish
gives 200 GET /smb/guid-1
says "\"id\":\"$id\".*\"state\":\"disconnected\",\"connection\":3.*\"bytes\":\"0d\""
gives 200 DELETE "/smb/guid-1?id=$id"
gives 404 DELETE "/smb/guid-1?id=$id"
gives 404 GET /smb/guid-1
gives 404 POST /smb/guid-1/reconnect
gives 201 PUT /smb/guid-1
expect "another id" test "$(member id)" != "$id"

# (2)
long=$(printf '%02050d' 0)
for bad in '{' '[]' '7' '{"window_s": -1}' '{"window_s": 86401}' '{"window_s": "5"}' \
    '{"name": 5}' '{"name": "a\u0001"}' "{\"name\": \"$(printf '%0256d' 0)\"}" '{"address": "host"}' \
    '{"bytes": "0"}' '{"bytes": "xx"}' "{\"bytes\": \"$long\"}" '{"byte": "00"}' '{"timeout_s": 5}' \
    '{"bytes": "00", "bytes": "01"}'; do
    gives 400 PUT /smb/guid-1 "$bad"
    expect "an error in JSON" matches "$body" '^\{"error": ".*", "hint": ".*"\}'
done
gives 400 PATCH /smb/guid-1
gives 400 PATCH /smb/guid-1 '{"name": "x"}'
gives 400 POST /smb/guid-1/disconnect '{"window_s": 5}'
gives 400 POST '/smb/guid-1/disconnect?connection=0'
gives 400 POST '/smb/guid-1/disconnect?connection=c1'
gives 400 DELETE '/smb/guid-1?id=17x'
gives 400 DELETE '/smb/guid-1?name=x'
gives 400 PUT /nlm/a
gives 400 PUT /SMB/a
gives 400 PUT /smb/a%00b
gives 400 PUT /smb/a%0ab
gives 400 PUT /smb/hex:0
gives 400 PUT /smb/hex:
gives 400 PUT "/smb/$(printf '%065d' 0)"
gives 404 PUT /smb
gives 404 PUT /smb/a/b
gives 405 POST /smb/guid-1
gives 405 GET /smb/guid-1/reconnect
gives 413 PUT /smb/guid-1 "$(printf '%09000d' 0)"
gives 400 GET '?state=away'
gives 400 GET '?protocol=nlm'
gives 200 GET /smb/guid-1
says '"connection":1,"window_s":120'
gives 201 PUT /smb/hex:00ff2f
says '"key":"hex:00ff2f"'
gives 201 PUT '/smb/a%20b'
says '"key":"a b"'
gives 200 GET /smb/hex:612062
says '"key":"a b"'
gives 201 PUT /smb/expired
gives 200 GET '?protocol=smb&limit=2'
says '"next":"[0-9]'
for key in guid-1 hex:00ff2f a%20b expired; do
    gives 200 DELETE "/smb/$key"
done
gives 200 GET ''
says '^\{"tracked":\[\],"next":null\}'

# (3), (4)
curl -sN -m 120 "http://127.0.0.1:$http/api/v1/events" > "$work/events" &
server_pids+=("$!")
expect "a stream" log_has "$work/events" 'event: status'
gives 204 POST /smb/expired
gives 201 PUT /smb/short '{"window_s": 1, "name": "pad"}'
id=$(member id)
gives 200 POST /smb/short/disconnect
# shellcheck disable=SC2317 # called by wait_until
is_expired() { ask GET /smb/short && [ "$(member state)" = expired ]; }
expect "its time runs out" wait_until is_expired
expect "an event" log_has "$work/events" '"kind":"tracked_expired".*"name":"smb/short"'
gives 410 PUT /smb/short
gives 410 POST /smb/short/reconnect
gives 410 POST /smb/short/disconnect
gives 200 POST /smb/expired
says "\"result\":\"expired\",\"id\":\"$id\""
gives 204 POST /smb/expired
stop KILL # whoever took it is gone, too
start third "${options[@]}" || finish
gives 410 PUT /smb/short
gives 200 POST /smb/expired
says "\"result\":\"expired\",\"id\":\"$id\""
gives 201 PUT /smb/here '{"address": "192.0.2.7"}'
gives 200 POST /smb/here/disconnect '{"timeout_s": 50}'
gives 201 PUT /afp/there
output=$("$HOLDFAST" clients --control "$socket")
expect "expired" matches "$output" "$id +smb +pad +- +expired .* 1 s +over"
expect "disconnected" matches "$output" 'smb +here +192.0.2.7 +disconnected .* 120 s +[45][0-9] s left'
expect "connected" matches "$output" 'afp +there +- +connected .* 90 s +-'
output=$("$HOLDFAST" clients --control "$socket" --state disconnected --json)
expect "as JSON" matches "$output" '"tracked": ?\{"window_s": ?120'
curl -s -m 60 "http://127.0.0.1:$http/metrics" > "$work/metrics"
expect "counted" log_has "$work/metrics" '^holdfast_tracked_clients{protocol="smb",state="expired"} 1'
expect "counted" log_has "$work/metrics" '^holdfast_tracked_clients{protocol="smb",state="disconnected"} 1'
expect "counted" log_has "$work/metrics" '^holdfast_tracked_clients{protocol="afp",state="connected"} 1'
gives 200 DELETE "/smb/short?id=$id"
gives 201 PUT /smb/short

# (5) a tenth of 20 for one address, and 20 in all
gives 201 PUT /smb/two '{"address": "192.0.2.7"}'
gives 507 PUT /smb/three '{"address": "192.0.2.7"}'
says 'max-per-address'
for i in $(seq 16); do
    gives 201 PUT "/smb/n$i"
done
gives 507 PUT /smb/one-more
says 'max-clients'
gives 200 PUT /smb/n3 '{"bytes": "00"}'
stop TERM

# (6)
if [ "$(id -u)" -eq 0 ] && setpriv --help > /dev/null 2>&1; then
    # as GROUPS WORDS...: curl as a user that is nobody, with these groups; prints the status.
    as() {
        local groups=(--clear-groups)
        [ "$1" = none ] || groups=(--groups "$1")
        setpriv --reuid 12345 --regid 12345 "${groups[@]}" curl -s -m 60 --unix-socket "$socket" \
            -o /dev/null -w '%{http_code}' "${@:2}"
    }
    for user in root nobody; do
        chown "$user" "$work/run"
        start "group-$user" "${options[@]}" --store "lmdb:$work/$user" --tracker-group 23456 \
            --user "$user" || finish
        expect "mode 0660, of the group" same "$(stat -c '%a %g' "$socket")" "660 23456"
        expect "a member registers" same "$(as 23456 -X PUT "$unix/smb/a")" 201
        expect "one of many groups" same \
            "$(as "$(seq -s, 30000 30100),23456" "$unix/smb/a")" 200
        expect "lists" same "$(as 23456 "$unix")" 200
        expect "takes" same "$(as 23456 -X POST "$unix/smb/expired")" 204
        expect "removes" same "$(as 23456 -X DELETE "$unix/smb/a")" 200
        for other in status clients locks config events; do
            expect "but not $other" same "$(as 23456 "http://x/api/v1/$other")" 403
        done
        expect "and no metrics" same "$(as 23456 http://x/metrics)" 403
        expect "nor end the grace period" same "$(as 23456 -X DELETE http://x/api/v1/grace)" 403
        expect "whether it is ready, yes" same "$(as 23456 http://x/readyz)" 200
        expect "another group cannot connect" same "$(as 23457 "$unix")" 000
        chmod 666 "$socket"
        expect "nor is it served" same "$(as 23457 "$unix")" 403
        expect "nor one of no group" same "$(as none "$unix")" 403
        chmod 660 "$socket"
        gives 200 GET ''
        stop TERM
    done
    chown root "$work/run"
    run_to_end nogroup "${options[@]}" --tracker-group no-such-group
    expect "an unknown group is refused" same "$code" 2
    expect "with a sentence" log_has "$work/nogroup.log" 'tracker-group no-such-group: no such group'
    start closed "${options[@]}" --store "lmdb:$work/closed" --control "$work/closed/control.sock" \
        --tracker-group 23456 || finish
    expect "a directory that lets nobody in is said" log_has "$work/closed.log" \
        'members of --tracker-group cannot reach the control socket'
    stop TERM
else
    echo "not shown: groups need root and setpriv"
fi

# (7)
if [ -n "${HOLDFAST_SLOW_SYNC_LIBRARY:-}" ]; then
    export HOLDFAST_SLOW_SYNC="$work/gate"
    export LD_PRELOAD="$HOLDFAST_SLOW_SYNC_LIBRARY"
    start slow "${options[@]}" --store "lmdb:$work/slow" || finish
    unset LD_PRELOAD
    gives 201 PUT /smb/a
    gives 201 PUT /smb/b
    : > "$work/gate"
    # hang NAME WORDS...: a request that is not answered; its output is $work/NAME.
    hang() {
        curl -s -m 60 --unix-socket "$socket" -o /dev/null -w '%{http_code}' "${@:2}" \
            > "$work/$1" &
        hanging+=("$!")
    }
    hanging=()
    hang put -X PUT "$unix/smb/new"
    # shellcheck disable=SC2317 # called by wait_until
    is_listed() { ask GET '?protocol=smb' && [[ $body == *'"key":"new"'* ]]; }
    expect "lists do not wait" wait_until is_listed
    hang disconnect -X POST "$unix/smb/a/disconnect"
    hang reconnect -X POST "$unix/smb/a/reconnect"
    hang patch -X PATCH "$unix/smb/a" -d '{"bytes": "00"}'
    hang expired -X POST "$unix/smb/expired"
    hang get "$unix/smb/a"
    hang delete -X DELETE "$unix/smb/b"
    # shellcheck disable=SC2317 # called by wait_until
    is_removed() { ask GET '?protocol=smb' && [[ $body != *'"key":"b"'* ]]; }
    expect "they have arrived" wait_until is_removed
    for name in put disconnect reconnect patch delete expired get; do
        expect "$name is not answered" test ! -s "$work/$name"
    done
    rm "$work/gate"
    wait "${hanging[@]}"
    expect "then all are" same "$(cat "$work"/{put,disconnect,reconnect,patch,delete,expired,get})" \
        201200200200200204200
    stop TERM
else
    echo "not shown: a stalled store; sanitizers must be loaded first"
fi

# (8)
program=${HOLDFAST_SMB_DURABLE:?}
start smb "${options[@]}" --store "lmdb:$work/smb" --max-clients 100 || finish
coproc SMB { exec "$program" "$socket" 2> "$work/smb.err"; }
program_pid=$SMB_PID # bash forgets it when the program ends
server_pids+=("$program_pid")
# smb WORDS...: one line in, one line out, in reply.
smb() {
    echo "$*" >&"${SMB[1]}"
    IFS= read -r -t 60 reply <&"${SMB[0]}"
}
smb_says() {
    smb "${@:2}"
    expect "${*:2}" matches "$reply" "$1"
}
hear() {
    IFS= read -r -t 60 reply <&"${SMB[0]}"
    expect "it says $1" matches "$reply" "$1"
}
hear 'recovered smb-open 0'
hear 'recovered smb 0'
smb_says '^setup g1 done c1$' setup g1
smb_says '^create g1 1 done c2$' create g1 1 /srv/a
smb_says '^create g1 2 done c3$' create g1 2 /srv/b
smb_says '^setup g2 done c4$' setup g2
smb_says '^create g2 1 done c5$' create g2 1 /srv/c
# The server dies; the program does not notice.
stop KILL
start smb2 "${options[@]}" --store "lmdb:$work/smb" --max-clients 100 || finish
smb_says '^again g1 1 done c2 /srv/a$' again g1 1
smb_says '^create g1 3 done c[0-9]+$' create g1 3 /srv/d
smb_says '^close g1 2 done$' close g1 2
smb_says '^lost g2 done$' lost g2 1
# The program dies: it finds what it had, and its clients come back.
kill -KILL "$program_pid"
wait "$program_pid" 2> /dev/null
coproc SMB { exec "$program" "$socket" 2>> "$work/smb.err"; }
program_pid=$SMB_PID
server_pids+=("$program_pid")
hear 'recovered smb-open 2' # of g1; those of g2 are away already
hear 'recovered smb 1'
smb_says '^again g1 3 done c[0-9]+ /srv/d$' again g1 3
smb_says '^again g1 2 unknown' again g1 2
# The server dies with the last second of g2, and after it is over.
stop KILL
start smb3 "${options[@]}" --store "lmdb:$work/smb" --window smb=1 --window smb-open=1 \
    --max-clients 100 || finish
# shellcheck disable=SC2317 # called by wait_until
session_is_expired() { ask GET /smb/g2 && [ "$(member state)" = expired ]; }
expect "its time runs out" wait_until session_is_expired
smb clean
while [[ $reply == expired* ]]; do
    replies+="$reply;"
    IFS= read -r -t 60 reply <&"${SMB[0]}" || break
done
expect "the session is over" matches "${replies:-}" 'expired session g2 c4;'
gives 404 GET /smb/g2
gives 404 GET /smb-open/g2:1
smb_says '^again g2 1 unknown' again g2 1
eval "exec ${SMB[1]}>&-"
wait "$program_pid"
stop TERM
finish
