#!/bin/bash
# control.sh -- the control socket, and the commands that use it.
#
# Passing proves:
#  (1) the socket is in the store's directory, mode 0600, and gone after a stop; a dead server's is
#      replaced, a living server's and a file that is no socket are left alone and refused with a
#      sentence; a path longer than the name of a socket works; a directory that somebody locks keeps
#      nobody from starting, and a start that cannot go on says what it waits for, and ends;
#  (2) `status` says in words and as JSON what is there, and who is missing in a recovery;
#  (3) `release` frees everything a client holds, or what it holds in one file, and `end-grace` ends
#      the grace; each is logged with who asked, and nothing is done without --yes or a terminal;
#  (4) the answer to a change is not given before the change is durable (P1), while what is only
#      read is answered;
#  (5) over TCP nothing can be changed, nor the store be copied; bad input changes nothing and is answered with a sentence;
#  (6) others than root and the server's user are refused (root only);
#  (8) who is refused by its own name at another address is in `status`, with both addresses and the
#      command; `move` does it, durably, and says why not; `end-grace` says what it gives up, and asks;
#  (7) without a server, or with one that does not answer, the commands end with 75, with wrong words
#      with 2.
set -u
. "$(dirname "$0")/lib.sh"

store="$work/store"
socket="$store/control.sock"
http=$("$PEER" free-port)
options=(--listen 127.0.0.1 --port 0 --http "127.0.0.1:$http" --store "lmdb:$store" --grace 300
    --no-rpcbind)
export HOLDFAST_CONTROL="$socket"

# ask CODE WORDS...: the command must end so, or with one that this matches; sets output, with both of its outputs.
ask() {
    local want=$1
    shift
    output=$(timeout 60 "$HOLDFAST" "$@" 2>&1 < /dev/null)
    expect "holdfast $*" matches $? "^$want\$"
}

# says TEXT: the last output has it.
says() { expect "it says $1" matches "$output" "$1"; }

# is_free FILE, is_granted FILE: as gamma sees it.
# shellcheck disable=SC2317 # called by wait_until
is_free() { [ "$("$PEER" -n gamma 127.0.0.1 "$port" test "$1")" = free ]; }
# shellcheck disable=SC2317
is_granted() { [ "$("$PEER" -n gamma 127.0.0.1 "$port" lock "$1")" = granted ]; }
lock() { "$PEER" -s 127.1.0.1 -n "$1" 127.0.0.1 "$port" lock "${@:2}"; }

# (7)
ask 75 status
says "cannot reach the server"
says "$socket: No such file"
ask 2 status now
says 'takes no arguments: "now"'
ask 2 statsu
says "did you mean status"
ask 2 status --jsn
says "did you mean --json"
ask 2 release
says "CLIENT"
ask 2 release --file
says "needs a value: --file"
ask 2 release c1 --yes --file 0g
says "not a file handle"
ask 0 release --help
says "Usage: holdfast release CLIENT"
ask 0 help release
says "Usage: holdfast release CLIENT"
ask 0 help store
says "Usage: holdfast store"
ask 2 help rlease
says "did you mean release"
ask 2 release -y c1
says "unknown option -y"
ask 2 check-client 127.0.0.1 --control x
says "unknown option --control"

# (1)
start first "${options[@]}" || finish
expect "mode 0600" same "$(stat -c '%F %a' "$socket")" "socket 600"
run_to_end second --listen 127.0.0.1 --port 0 --http off --no-rpcbind --store "lmdb:$work/other" \
    --control "$socket"
expect "exit 69 for a socket in use" same "$code" 69
expect "a sentence about it" log_has "$work/second.log" "$socket: another server is using it"
expect "its socket is still the first one's" test -S "$socket"
expect "where the page is" log_has "$work/first.log" "page=\"http://127.0.0.1:$http/\""
: > "$work/file"
run_to_end file --listen 127.0.0.1 --port 0 --http off --no-rpcbind --store "lmdb:$work/other" \
    --control "$work/file"
expect "exit 2 for a file that is no socket" same "$code" 2
expect "a sentence about it" log_has "$work/file.log" "$work/file: the path exists but is not a server"
expect "the file is left alone" test -f "$work/file"

# (2)
ask 0 status
says "holdfast  [0-9.]+ on $(uname -n), up [0-9]+ s, state $state, start 1"
says "locks     0 held, 0 requests waiting"
says "grace     over"
ask 0 status --json
says '"version"'
says '"waiting_for": \[\]'

# (3)
expect "a lock" same "$(lock alpha one 0 10)" granted
expect "another" same "$(lock alpha two 0 10)" granted
expect "and of another client" same "$(lock beta three)" granted
ask 0 status
says "clients   2 lock clients, "
says "locks     3 held"
alpha=c1 # ids are given out in order
ask 2 release "$alpha"
says "use --yes"
ask 0 status
says "locks     3 held"
ask 1 release "$alpha" --file ffff --yes
says "holds no locks on that file"
expect "it is still held" matches "$("$PEER" -n gamma 127.0.0.1 "$port" test two)" '^held'
ask 0 release "$alpha" --yes
says "$alpha: released 2 locks; notifying the client"
expect "it is free" wait_until is_free one
expect "that too" wait_until is_free two
expect "the other's is not" matches "$("$PEER" -n gamma 127.0.0.1 "$port" test three)" '^held'
# It is still to be told, and does not answer; the second order gives that up, too.
ask 0 release "$alpha" --yes
says "c1: forgotten"
ask 1 release "$alpha" --yes
says 'no client has the id, address or name "c1"'
# A registration of SM_MON is forgotten by its id; nobody holds a lock less for it.
expect "a registration" same "$("$PEER" 127.0.0.1 "$port" mon delta me)" "succ $((state + 2))"
ask 0 clients --protocol nsm --mon-name delta
expect "its id" matches "$output" '(c[0-9]+) +nsm +me '
registration=${BASH_REMATCH[1]}
ask 2 release "$registration"
says "use --yes"
ask 1 release "$registration" --file ffff --yes
says "$registration is an SM_MON registration and holds no locks"
ask 0 release "$registration" --yes
says "$registration: forgotten"
ask 0 clients --protocol nsm --json
expect "nobody is registered" same "$output" $'{"clients": [\n]}'
ask 1 release c999 --yes
says 'no client has the id, address or name "c999"'
ask 1 release "c1/../grace" --yes
says "no client has the id, address or name"
expect "logged with who asked" log_has "$work/first.log" \
    "operator command .*release.* result=\"done\" uid=$(id -u) pid=[0-9]* client=\"c1\"$"
ask 1 end-grace
says "no grace period is active"

# (5)
# code_of CURL-WORDS...: the status, and the body in $work/body.
code_of() { curl -s -m 60 -o "$work/body" -w '%{http_code}' "$@"; }
if command -v curl > /dev/null; then
    tcp="http://127.0.0.1:$http/api/v1"
    unix="http://x/api/v1"
    expect "no DELETE over TCP" same "$(code_of -X DELETE "$tcp/clients/c2")" 403
    expect "with a hint" log_has "$work/body" '"hint": "use the holdfast command'
    expect "no POST over TCP" same "$(code_of -X POST "$tcp/clients/c2/notify")" 403
    expect "no copy of the store over TCP" same "$(code_of "$tcp/store")" 403
    expect "it says so" log_has "$work/body" '"error": "not over TCP: /api/v1/store", "hint": "use the holdfast'
    expect "but here" same "$(code_of --unix-socket "$socket" "$unix/store")" 200
    expect "a whole one" matches "$(tail -n 1 "$work/body")" '^\{"kind": "end", "records": [0-9]+, "digest": "[0-9a-f]{16}"\}$'
    expect "HEAD begins none" same "$(code_of --unix-socket "$socket" -I "$unix/store")" 200
    expect "logged with who asked" log_has "$work/first.log" \
        "operator command .*export the store.* result=\"begun\" uid=$(id -u) pid=[0-9]*$"
    expect "GET of what can only be deleted" same "$(code_of "$tcp/grace")" 405
    expect "Allow" same \
        "$(curl -s -m 60 -o /dev/null -D - "$tcp/grace" | tr -d '\r' | grep -i '^allow:')" "Allow: DELETE"
    for bad in "clients/c1?file=0" "clients/c1?file=zz" "clients/c1?file=" \
        "clients/c1?flie=00" "clients/c2?file" "clients/c2?file=00&file=00" \
        "clients/c1?file=$(printf '%0130d' 0)"; do
        expect "DELETE $bad" same \
            "$(code_of --unix-socket "$socket" -X DELETE "$unix/$bad")" 400
        expect "an error in JSON" log_has "$work/body" '{"error": ".*", "hint": ".*"}'
    done
    for bad in "clients/c" "clients/x1" "clients/c1x" "clients/-1" \
        "clients/c99999999999999999999999" "clients/" "clients//notify" "clients/c1/notify/" "clients/c1/x" "Grace" "grace/"; do
        expect "DELETE $bad" same \
            "$(code_of --unix-socket "$socket" -X DELETE "$unix/$bad")" 404
    done
    expect "PUT" same "$(code_of --unix-socket "$socket" -X PUT "$unix/clients/c2")" 405
    expect "a body is not read" same \
        "$(code_of --unix-socket "$socket" -X POST -d "$(printf '%01000d' 0)" "$unix/clients/c2/notify")" 000
    expect "notify" same "$(code_of --unix-socket "$socket" -X POST "$unix/clients/c2/notify")" 200
    if [ "$(id -u)" -eq 0 ] && setpriv --help > /dev/null 2>&1; then
        # (6) whoever opens the way to the socket does not open the socket
        chmod 755 "$work" "$store"
        chmod 666 "$socket"
        code=$(setpriv --reuid 12345 --regid 12345 --clear-groups curl -s -m 60 \
            --unix-socket "$socket" -w '%{http_code}' -o /dev/null "$unix/status")
        expect "another user is refused" same "$code" 403
        chmod 600 "$socket"
    else
        echo "not shown: that others are refused needs root"
    fi
else
    echo "not shown: bad requests need curl"
fi
ask 0 status
says "locks     1 held"

# (1) a dead server's socket
stop KILL
expect "a killed server leaves its socket" test -S "$socket"
ask 75 status
says "no server is running there"
start again "${options[@]}" || finish

# (2), (3) who is missing, and the end of grace
ask "[01]" status
says "grace     [0-9]+ s left, waiting for 1 lock of 1 client:"
says "c2 beta \("
expect "no new lock in grace" matches "$("$PEER" -n gamma 127.0.0.1 "$port" lock nine)" 'grace'
ask 0 end-grace --yes
says "Grace period ended"
expect "logged without a client" log_has "$work/again.log" \
    "operator command order=\"end the grace period\" result=\"done\" uid=$(id -u) pid=[0-9]*$"
expect "a new lock" same "$("$PEER" -n gamma 127.0.0.1 "$port" lock nine)" granted
expect "what nobody reclaimed is free" wait_until is_granted three
stop TERM
expect "a clean stop removes the socket" test ! -e "$socket"

# (1) a long path
long="$work/$(printf 'd%.0s' {1..80})/$(printf 'e%.0s' {1..80})"
mkdir -p "$long"
start long "${options[@]}" --control "$long/control.sock" || finish
ask 0 status --control "$long/control.sock"
stop TERM

# (1) whoever can open the directory can lock it, which is nothing to the server
if command -v flock > /dev/null; then
    mkdir "$work/open"
    chmod 755 "$work" "$work/open"
    as_stranger=()
    [ "$(id -u)" -eq 0 ] && setpriv --help > /dev/null 2>&1 &&
        as_stranger=(setpriv --reuid 12345 --regid 12345 --clear-groups)
    # hold COMMAND...: somebody takes a lock, says so, and has it until $holder is ended.
    # shellcheck disable=SC2317 # expect runs it
    hold() {
        exec {said}< <(exec "$@" 2> /dev/null)
        holder=$!
        server_pids+=("$holder")
        read -r -t 60 -u "$said" && exec {said}<&-
    }
    expect "somebody locks the directory" hold "${as_stranger[@]}" flock -F -x "$work/open" \
        sh -c 'echo held; exec sleep 600'
    start locked "${options[@]}" --control "$work/open/control.sock" || finish
    expect "nothing was waited for" test -z "$(grep waiting "$work/locked.log")"
    expect "nothing is left but the socket" same "$(ls "$work/open")" control.sock
    ask 0 status --control "$work/open/control.sock"
    stop TERM
    kill "$holder"
    # A second server that hangs while it starts.
    install -m 600 /dev/null "$work/open/control.sock.lock"
    expect "a start hangs" hold flock -F -x "$work/open/control.sock.lock" \
        sh -c 'echo held; exec sleep 600'
    run_to_end hangs "${options[@]}" --control "$work/open/control.sock"
    expect "exit 69 when it goes on hanging" same "$code" 69
    expect "it said what it waits for, and how long" log_has "$work/hangs.log" \
        "waiting for the lock of $work/open/control.sock.lock.* at most 5 s"
    expect "and why it ended" log_has "$work/hangs.log" "another server has been starting there for 5 s"
    kill "$holder"
    rm "$work/open/control.sock.lock"
else
    echo "not shown: locks of others need flock"
fi

# (8)
moving=("${options[@]}" --store "lmdb:$work/moving" --control "$socket")
# lock_from ADDRESS WORDS...: of a host that is called alpha everywhere.
lock_from() { "$PEER" -s "$1" -n alpha 127.0.0.1 "$port" lock "${@:2}"; }
start moving "${moving[@]}" || finish
ask 0 status
expect "no conflict" [ "$(grep -c '^conflict\|^ATTENTION' <<< "$output")" = 0 ]
expect "a lock" same "$(lock_from 127.1.0.1 one)" granted
expect "and one elsewhere" same "$(lock_from 127.1.0.1 two)" granted
expect "the same name at another address is another client" same "$(lock_from 127.1.0.2 one)" denied
expect "logged" log_has "$work/moving.log" \
    'refused: a client of the same name holds it at another address.*from=127.1.0.2.* client=1'
ask 1 status
says "ATTENTION a client is refused what its own name holds at another address"
says "conflict  alpha at 127.1.0.2, heard from [0-9]+ s ago, is refused what alpha holds at"
says "  127.1.0.1 \(c1\), heard from [0-9]+ s ago; if both are the same host:"
says "  holdfast move c1 127.1.0.2"
ask 1 status --json
says '"refused_address": "127.1.0.2"'
says '"can_move": true'
ask 2 move c1
says "missing"
ask 2 move c1 127.1.0.2
says "holdfast move: needs confirmation.* use --yes"
ask 2 move c1 nowhere --yes
says '"nowhere" is not an IP address'
ask 1 move c1 224.0.0.1 --yes
says "no host can have that address"
ask 1 move c1 127.1.0.1 --yes
says "already at that address"
ask 1 move c99 127.1.0.2 --yes
says 'no client has the id, address or name "c99"'
if command -v curl > /dev/null; then
    unix="http://x/api/v1/clients"
    expect "a move needs an address" same "$(code_of --unix-socket "$socket" -X POST "$unix/c1/move")" 400
    expect "a good one" same \
        "$(code_of --unix-socket "$socket" -X POST "$unix/c1/move?address=alpha")" 400
    expect "and a client" same \
        "$(code_of --unix-socket "$socket" -X POST "$unix/c99/move?address=127.1.0.2")" 404
    expect "not over TCP" same \
        "$(code_of -X POST "http://127.0.0.1:$http/api/v1/clients/c1/move?address=127.1.0.2")" 403
fi
expect "the other one has a lock, too" same "$(lock_from 127.1.0.2 three)" granted
ask 1 status
says "both hold locks; if both are the same host:.* +holdfast release c1"
ask 1 move c1 127.1.0.2 --yes
says "a client of that name holds locks at that address"
"$PEER" -s 127.1.0.2 -n alpha 127.0.0.1 "$port" unlock three > /dev/null
if command -v script > /dev/null; then
    # answer WORD WORDS...: the command on a terminal, and what is typed there.
    answer() {
        output=$(printf '%s\n' "$1" |
            script -qec "stty cols 80; timeout --foreground 60 $HOLDFAST ${*:2}" /dev/null | tr -d '\r')
    }
    answer n move c1 127.1.0.2
    says "This moves c1 alpha at 127.1.0.1, last heard from [0-9]+ s ago, to 127.1.0.2, with"
    says "otherwise guarantees that this never happens"
    says "Nothing was changed"
    expect "it was not" same "$(lock_from 127.1.0.2 one)" denied
    answer y move c1 127.1.0.2
    says "c1: now at 127.1.0.2, with 2 locks"
else
    ask 0 move c1 127.1.0.2 --yes
    says "c1: now at 127.1.0.2, with 2 locks"
fi
expect "logged with who asked" log_has "$work/moving.log" \
    "move a client.* result=\"done\" uid=$(id -u) pid=[0-9]* client=\"c1\" to=\"127.1.0.2\"$"
expect "it is its own now" same "$(lock_from 127.1.0.2 one)" granted
expect "and not the other's" same "$(lock_from 127.1.0.1 one)" denied
stop KILL
start moved "${moving[@]}" || finish
ask 0 clients --name alpha --protocol nlm
says "c1 +nlm +alpha +127.1.0.2 +recovering +2"
ask 2 end-grace
says "holdfast end-grace: needs confirmation.* use --yes"
ask "[01]" status
says "waiting for 2 locks of 1 client"
if command -v script > /dev/null; then
    answer n end-grace
    says "This ends the recovery [0-9]+ min early. It releases 2 locks of c1 alpha"
    says "Nothing was changed"
    ask "[01]" status
    says "waiting for 2 locks of 1 client"
    answer y end-grace
    says "Grace period ended"
else
    ask 0 end-grace --yes
fi
ask 1 end-grace
says "no grace period is active"
stop TERM

# (4)
if [ -n "${HOLDFAST_SLOW_SYNC_LIBRARY:-}" ]; then
    export HOLDFAST_SLOW_SYNC="$work/gate"
    export LD_PRELOAD="$HOLDFAST_SLOW_SYNC_LIBRARY"
    start slow "${options[@]}" --store "lmdb:$work/slow" --control "$socket" || finish
    unset LD_PRELOAD
    expect "a lock" same "$(lock alpha one 0 10)" granted
    : > "$work/gate"
    "$HOLDFAST" release c1 --yes > "$work/released" 2>&1 &
    waiting=$!
    expect "the order has arrived" wait_until grep -q 'operator command' "$work/slow.log"
    ask 0 status
    says "locks     [01] held"
    expect "no answer while it is not durable" kill -0 "$waiting"
    expect "nothing was printed" test ! -s "$work/released"
    rm "$work/gate"
    wait "$waiting"
    expect "then it is answered" same $? 0
    kill -STOP "$pid" # it is there, and says nothing
    ask 75 status
    says "no reply from the server at .* for 10 s"
    kill -CONT "$pid"
    stop TERM
else
    echo "not shown: a stalled store; sanitizers must be loaded first"
fi
finish
