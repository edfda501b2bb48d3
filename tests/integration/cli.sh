#!/bin/bash
# cli.sh -- the commands that look: clients, locks, explain, check-client, drill, status, and what is
# made from their table.
#
# Passing proves, on a loopback device of its own with the server's own portmapper on port 111, so
# that every address of it looks like a client with everything in place:
#  (1) tables and JSON of clients, locks and waiters; locks are sorted, limited and counted, and one
#      client is shown in words; clients are found by id, address and name, an ambiguous name is
#      refused with the list, also where it is a name and an id; control characters of a name never
#      reach a terminal; tables fit a terminal, and the ends of handles are seen;
#  (2) --path finds the locks on a file by its kernel handle, which ends the NFS handle but for
#      padding; one that has the same bytes elsewhere is another file;
#  (3) check-client says in one sentence that all is OK, or what is missing; drill counts who would be
#      told, and lists first who would not; explain says what becomes of each lock, also with other
#      options;
#  (4) status --watch goes on over a restart and shows the progress of the recovery, in locks, not in
#      requests; who reclaims is told of in the words of design and page; on a terminal it is not
#      higher than that, and names are cut;
#  (6) --state given_up lists lock clients and registrants that could not be notified within
#      --give-up, and none before that, or who has called since;
#  (7) status says first who waits for whom, then where the server is, and what it does; what needs
#      attention makes its exit code 1, and a server that is not there 75; --watch has a clock;
#  (5) manual pages without a complaint of mandoc, completions without one of bash, both naming every
#      command and option.
set -u
if [ "${1:-}" != inside ]; then
    if [ "$(id -u)" -ne 0 ] || ! unshare -n true 2> /dev/null; then
        echo "skipped: a network namespace needs root"
        exit 77
    fi
    exec unshare -n "$0" inside
fi
. "$(dirname "$0")/lib.sh"
ip link set lo up

store="$work/store"
export HOLDFAST_CONTROL="$store/control.sock"
options=(--port 0 --http off --store "lmdb:$store" --rpcbind embedded --grace 300)

# ask CODE WORDS...: the command must end so; sets output, with both of its outputs.
ask() {
    local want=$1
    shift
    output=$(timeout 60 "$HOLDFAST" "$@" 2>&1 < /dev/null)
    expect "holdfast $*" same $? "$want"
}
says() { expect "it says $1" matches "$output" "$1"; }
# shellcheck disable=SC2317 # called by expect
has_no() { ! matches "$output" "$1" > /dev/null; }
never_says() { expect "it does not say $1" has_no "$1"; }
# shellcheck disable=SC2317 # called by wait_until
is_free() { [ "$(peer 127.1.0.8 other test "$1")" = free ]; }
peer() { "$PEER" -s "$1" -n "$2" 127.0.0.1 "$port" "${@:3}"; }

start first "${options[@]}" || finish
expect "a lock" same "$(peer 127.1.0.1 alpha lock one 0 10)" granted
expect "another" same "$(peer 127.1.0.1 alpha lock two 5)" granted
expect "of another alpha" same "$(peer 127.1.0.3 alpha lock three 5 7 shared)" granted
expect "a registrant" matches "$(peer 127.0.0.1 me mon alpha me)" '^succ'
"$PEER" -s 127.1.0.2 -n $'be\033[31mta' 127.0.0.1 "$port" wait one > "$work/waiter" &
waiter=$!
expect "a waiter" wait_until grep -q waiting "$work/waiter"

# (7) The rate is known a second after the start.
# shellcheck disable=SC2317 # called by wait_until
has_rate() { "$HOLDFAST" status < /dev/null | grep -q '^load '; }
expect "the rate is measured" wait_until has_rate
ask 0 status
says "^holdfast +[0-9.]+ on $(uname -n), up [0-9]+ s, state $state, start 1"
says 'waiting +1 request for alpha \(c1, 127\.1\.0\.1\), the first for [0-9]+ s'
says 'recovery +reclaim: after a restart clients are notified and reclaim'
says "address +\*:$port; no page"
says 'load +[0-9]+ requests/s'
never_says ATTENTION
expect "who waits comes before what is there" same \
    "$(grep -n -o -E '^(waiting|clients) ' <<< "$output" | tr '\n' ' ')" '2:waiting  3:clients  '
ask 0 status --json
says '"attention": \[\]'
says '"blockers": \['
says '"waiters": 1,'
says '"blockers_more": false'
says '"requests_per_second": [0-9]+'
says "\"\*:$port\""
says '"resource": "connections",'

# (1)
ask 0 clients
says 'ID +PROTOCOL +NAME +ADDRESS +STATE +LOCKS +WAITING +TOLD'
says 'c1 +nlm +alpha +127\.1\.0\.1 +active +2 +0 +- +[0-9]+ s ago'
says 'c[0-9] +nsm +me +127\.0\.0\.1'
says 'be\?\[31mta'
never_says $'\033'
ask 0 clients c1
says 'Client.  id +c1.  name +alpha.  protocol +nlm.  address +127\.1\.0\.1'
says '  last seen +[0-9]+ s ago \(20[0-9]{2}-'
says 'Holds.  locks +2.  shares +0 reservations.  waits for +0 locks'
says 'Restarts.  monitored +yes: it is notified when the server restarts.  notified +no need'
never_says '_|SM_MON|Tracked'
ask 0 clients 127.1.0.3
says 'id +c2'
ask 0 clients ME
says 'Registration \(SM_MON\).  monitors +alpha.  calls back +me.  procedure +program [0-9]+, version'
never_says Holds
ask 2 clients alpha
says 'more than one client matches'
says 'c1 +nlm +127\.1\.0\.1'
ask 1 clients nobody
says 'no client has the id, address or name "nobody"'
ask 1 clients c99
says 'no client has the id, address or name "c99"'
ask 1 clients id:c99
ask 2 clients --state odd
says 'allowed: freeing\|given_up\|crashed\|recovering'
ask 2 clients --state 'crashed|recovering'
says 'no such state'
ask 2 clients --state active c1
ask 2 clients --name alpha c1
says '--name filters the list'
ask 0 clients --name ALPHA
says 'c1 +nlm +alpha'
never_says ' nsm '
ask 0 clients --protocol nsm --mon-name alpha
says 'c[0-9] +nsm +me '
never_says ' nlm '
ask 0 clients --name alpha --protocol nsm --json
expect "nobody is both" same "$output" $'{"clients": [\n]}'
ask 1 clients --protocol 'n s'
says 'not a protocol name: n s; nlm for lock clients'
ask 0 clients --name $'be\033[31mta' --json
says '"id":"c[0-9]"'
ask 2 clients -j
says 'unknown option -j'
ask 0 clients --state crashed --json
expect "an empty list" same "$output" $'{"clients": [\n]}'
ask 1 locks --client me --json
never_says '\['
ask 0 clients --json
says '"clients": \['
says '"be\\u001[bB]\[31mta"'
ask 0 locks
says 'c1 +alpha +1 +write +0 +10 +[0-9]+ s +held +1 +default +6f6e65'
says 'c2 +alpha +1 +read +5 +7 +[0-9]+ s +held'
says '5 +to end'
says '

3 locks$'
ask 0 locks --limit 2
says '

2 of 3 locks$'
expect "no more are shown" same "$(grep -c '^c[0-9]' <<< "$output")" 2
ask 0 locks --limit 1 --client c1
says '

1 of 2 locks$'
ask 0 locks --limit 1 --json
expect "nor as JSON" same "$(grep -c '"client"' <<< "$output")" 1
says '"total": 3'
ask 2 locks --limit 0
says 'limit 0: not a number above 0'
ask 2 locks --limit x
# order NAMES: the files of the rows, by the first byte of their handles (one, two, three).
order() { expect "in order" same "$(awk '/^c/ { printf "%s ", substr($NF, 1, 4) }' <<< "$output")" "$1"; }
ask 0 locks
titles=${output%%AGE*}
ask 0 locks --sort age
order '6f6e 7477 7468 '
expect "titles are above their columns" same "${output%%AGE*}" "$titles"
ask 0 locks --sort file
order '6f6e 7468 7477 '
ask 0 locks --sort client
order '6f6e 7477 7468 '
ask 0 locks --sort waiting --limit 1
order '6f6e '
says '1 of 3 locks'
ask 0 locks --sort file --json --limit 2
expect "JSON is sorted, too" same "$(grep -o '"file":"....' <<< "$output" | tr '\n' ' ')" '"file":"6f6e "file":"7468 '
ask 2 locks --sort size
says 'no such order; allowed: age\|client\|file\|waiting'
ask 0 locks --file 7468
says 'c2 +alpha'
says '1 lock$'
ask 0 locks --file 6F6 # of a byte and a half
says 'c1 +alpha'
never_says 7477
ask 1 locks --file 00
says 'no lock on a file whose handle is, or begins with, 00'
ask 2 locks --file mail
says '--file mail: not a file handle, nor the beginning of one; use hex digits'
ask 1 locks --export /srv/none
says 'no such export: /srv/none'
ask 0 locks --client 127.1.0.3
says 'c2'
never_says 'c1 '
ask 2 locks --client alpha
ask 0 locks --waiting
says 'be\?\[31mta +1 +write +0 +to end +[0-9]+ s +c1 +0'
says '1 waiting request$'
ask 0 locks --waiting --limit 5 --sort age
says '1 waiting request$'
ask 0 locks --file 6f6e650000000000000000000000000000000000000000000000000000000000
says 'c1'
never_says '74776f'
ask 2 locks --file 0g
ask 0 locks --json --waiting
says '"blocked_by":\{"client":"c1"'
expect "a lock behind 2^53" same "$(peer 127.1.0.1 alpha lock far 9007199254740993 7)" granted
ask 0 locks --client c1
says ' 9007199254740993 +7 '
expect "its end" same "$(peer 127.1.0.1 alpha unlock far)" granted
if command -v script > /dev/null; then
    # at COLUMNS WORDS...: the command on a terminal of that width; sets output.
    at() {
        output=$(script -qec "stty cols $1; $HOLDFAST ${*:2}" /dev/null < /dev/null | tr -d '\r')
        local widest
        widest=$(LC_ALL=C.UTF-8 awk '{ gsub(/\033\[[0-9;]*m/, ""); gsub(/…/, ".") }
            length($0) > max { max = length($0) } END { print max }' <<< "$output")
        expect "${*:2} is not wider than $1" [ "$widest" -le "$1" ]
    }
    for width in 120 80 60; do
        at $width clients
        says 'c1 +.*alpha.* +active +2'
        at $width locks
        says 'c1 +alpha +.*write +0 +10'
        at $width locks --waiting
        says 'c1'
    done
    at 80 locks
    says '6f6e65[0-9a-f]*…[0-9a-f]*00'
else
    echo "not shown: tables on a terminal, without script"
fi

# (2) a handle like that of a kernel server: some bytes of its own, then the kernel's
if kernel=$("$HANDLE_OF" "$work" 2> /dev/null); then
    expect "a lock on a real file" same "$(peer 127.1.0.1 alpha lock "hex:01000101$kernel")" granted
    ask 0 locks --path "$work"
    says "01000101$kernel"
    never_says '6f6e65'
    ask 0 locks --path "$work" --json
    says "\"file\":\"01000101$kernel"
    never_says '6f6e65'
    # The root's handle is short and mostly zeros: it is found in the middle of many others.
    root=$("$HANDLE_OF" /) || root=0200000000000000
    expect "one that has these bytes" same \
        "$(peer 127.1.0.1 alpha lock "hex:01000101${root}0000000000000000")" granted
    expect "and another" same "$(peer 127.1.0.1 alpha lock "hex:01000101${root}ff")" granted
    ask 1 locks --path /
    says 'no lock on /'
    expect "a padded one" same "$(peer 127.1.0.1 alpha lock "hex:0100010101${root}000000")" granted
    ask 0 locks --path /
    says "0100010101${root}000000"
    never_says 'ff( |$)'
    expect "they go" same "$(peer 127.1.0.1 alpha unlock "hex:0100010101${root}000000")" granted
    expect "all" same "$(peer 127.1.0.1 alpha unlock "hex:01000101${root}ff")" granted
    expect "of them" same \
        "$(peer 127.1.0.1 alpha unlock "hex:01000101${root}0000000000000000")" granted
else
    echo "not shown: --path; this file system has no handles"
fi
ask 2 locks --path /nowhere
says '/nowhere: No such file'

# (3)
ask 0 check-client 127.0.0.1
says 'status monitor +TCP port [0-9]+ +UDP port [0-9]+ +answers'
says 'OK: notifications and callbacks work'
ask 0 check-client ::1 --json
says '"can_be_told": true'
ask 0 drill
expect "there is nothing to say of them" same "$(wc -l <<< "$output")" 1
says 'After a crash now 4 of 4 clients would be notified'
ask 0 drill --all
says 'c1 +alpha +127\.1\.0\.1 +[23] +yes'
says 'c[0-9] +me +127\.0\.0\.1 +0 +yes +OK: the service it registered answers'
says 'After a crash now 4 of 4 clients would be notified'
ask 0 drill --json
says '"can_be_told": true'
expect "a registrant nobody can call" matches "$(peer 127.1.0.7 deaf mon alpha deaf:9 200000 1 1)" '^succ'
ask 1 drill
says 'deaf:9 +127\.1\.0\.7 +0 +no +the service it registered does not answer'
says '4 of 5 clients would be notified'
never_says 'alpha'
ask 1 drill --all
expect "failures come first" same "$(awk '/^c/ { print $2; exit }' <<< "$output")" deaf:9
says 'c1 +alpha'
ask 1 drill --json
expect "everybody is there" same "$(grep -c '"can_be_told"' <<< "$output")" 5
expect "failures first" matches "$(grep '"can_be_told"' <<< "$output" | head -n 1)" false
expect "it goes" matches "$(peer 127.1.0.7 deaf unmon alpha deaf:9 200000 1 1)" '^state'
ask 0 explain c1
says 'kept if reclaimed in grace +released when it reboots'
says 'notifies it \(SM_NOTIFY\) at 127\.1\.0\.1, and it has a grace period.*of 300 s'
ask 0 explain c1 --json
says '"server_crashes": "kept if reclaimed in grace"'
ask 0 explain me
says 'holds no locks'
ask 0 explain me --json
says '"locks": \[\]'
ask 1 explain nobody
ask 2 explain
ask 2 check-client 127.0.0.1 --timeout 0
says 'not a number of seconds'

# (4) Nobody reclaims here: their locks are missing.
"$HOLDFAST" status --watch > "$work/watched" 2>&1 &
watcher=$!
expect "it watches" wait_until grep -q 'locks  ' "$work/watched"
stop KILL
expect "it says so" wait_until grep -q 'no reply' "$work/watched"
start again "${options[@]}" || finish
expect "who is missing" log_has "$work/watched" 'waiting for [34] locks of 2 clients'
expect "a bar" log_has "$work/watched" 'c1 *\[--------------------\] alpha ([a-z]* .*0 of [23] reclaimed)'
kill "$watcher"
wait "$watcher" 2> /dev/null
"$HOLDFAST" status --watch --json > "$work/lines" &
watcher=$!
# shellcheck disable=SC2317 # called by wait_until
has_lines() { [ "$(grep -c '^{"role":"active",.*}$' "$work/lines")" -ge 2 ]; }
expect "a line of JSON, and another" wait_until has_lines
kill "$watcher"
wait "$watcher" 2> /dev/null
ask 0 clients --state recovering
says 'c1 +nlm'
ask 0 end-grace --yes
stop TERM

start resumed "${options[@]}" --rpcbind off --recovery resume --sync process || finish
expect "a lock" same "$(peer 127.1.0.1 alpha lock one 0 10)" granted
ask 0 explain 127.1.0.1
says 'still held'
says 'not a power failure'
ask 1 check-client 127.0.0.1 --timeout 1
says 'nothing listens on port 111'
ask 1 drill --timeout 1
says '0 of 4 clients would be notified; 1 lock of the others'
# (1) A machine that is called as another client is numbered.
id=$("$HOLDFAST" clients 127.1.0.1 | sed -n 's/^ *id *//p')
expect "a lock of a machine called $id" same "$(peer 127.1.0.9 "$id" lock nine)" granted
ask 2 release "$id" --yes
says 'more than one client matches'
says "name one by its id, like id:$id"
expect "nothing was released" matches "$(peer 127.1.0.8 other test nine)" '^held'
expect "nor of the other" matches "$(peer 127.1.0.8 other test one)" '^held'
ask 0 clients "id:$id"
says 'address +127\.1\.0\.1'
ask 0 release "name:$id" --yes
expect "that one was meant" wait_until is_free nine
expect "not the other" matches "$(peer 127.1.0.8 other test one)" '^held'
stop TERM

# (4) Two requests for what is one lock, and another lock that nobody reclaims.
options=("${options[@]/lmdb:$store/lmdb:$work/second}")
export HOLDFAST_CONTROL="$work/second/control.sock"
start reclaim "${options[@]}" --port "$port" || finish
keepers=()
for offset in 0 10; do
    # Not the function: a kill would end the shell around it, and leave it.
    "$PEER" -s 127.1.0.1 -n alpha 127.0.0.1 "$port" keep one $offset 10 > "$work/keeper$offset" &
    keepers+=($!)
    expect "a lock" wait_until grep -q granted "$work/keeper$offset"
done
expect "another" same "$(peer 127.1.0.1 alpha lock two)" granted
long=$(printf 'n%.0s' {1..100})
expect "of one with a long name" same "$(peer 127.1.0.4 "$long" lock four)" granted
stop KILL
start reclaimed "${options[@]}" --port "$port" || finish
for offset in 0 10; do
    expect "it is reclaimed" wait_until grep -q reclaimed "$work/keeper$offset"
done
ask 0 status
says 'waiting for 2 locks of 2 clients:'
says 'c1 alpha \(notified [0-9]+ s ago, 2 of 3 reclaimed\)'
says "$long"
if command -v script > /dev/null; then
    # watched ROWS COLUMNS: the first picture of --watch on such a terminal; sets output.
    watched() {
        script -qfec "stty rows $1 cols $2; exec $HOLDFAST status --watch" /dev/null < /dev/null \
            > "$work/picture$1" 2>&1 &
        local watcher=$!
        expect "a picture" wait_until grep -qs '^rpcbind ' "$work/picture$1"
        kill "$watcher"
        wait "$watcher" 2> /dev/null
        output=$(tr -d '\r' < "$work/picture$1" | sed '/^rpcbind /q')
    }
    # Six lines, one of each client, and the one that the cursor is in.
    watched 11 120
    says 'c1 +\[#{13}-{7}\] alpha'
    says 'c2 +\[-{20}\] n+… \('
    never_says "$long"
    never_says 'lists them'
    watched 8 120
    never_says '\[#'
    says ' holdfast clients lists them'
    expect "no more lines than there are" [ "$(wc -l <<< "$output")" -le 7 ]
else
    echo "not shown: --watch on a small terminal, without script"
fi
kill "${keepers[@]}"
ask 0 end-grace --yes
expect "what was reclaimed, and what was not" log_has "$work/reclaimed.log" \
    '^[^ ]* warning a client did not reclaim all of its locks.* name="alpha" reclaimed="2 of 3"$'
expect "nobody has lost nothing" same "$(grep -c 'locks=0$' "$work/reclaimed.log")" 0
stop TERM

# (7) The first of these needs attention, and so does the second: nobody can find that server.
export HOLDFAST_CONTROL="$work/full/control.sock"
start full --listen 127.0.0.1 --port 0 --http 127.0.0.1:0 --store "lmdb:$work/full" --rpcbind off --max-locks 4 \
    --max-per-address 100 || finish
for name in one two three; do
    expect "a lock" same "$(peer 127.1.0.1 alpha lock $name)" granted
done
ask 0 status
says "address +127\.0\.0\.1:$port; page http://127\.0\.0\.1:[0-9]+/"
expect "one more" same "$(peer 127.1.0.1 alpha lock four)" granted
ask 1 status
says 'ATTENTION 4 of 4 locks are used; raise --max-locks'
ask 1 status --json
says '"4 of 4 locks are used; raise --max-locks"'
"$HOLDFAST" status --watch > "$work/clock" &
watcher=$!
expect "a clock" wait_until grep -qE ', start 1, at [0-2][0-9]:[0-5][0-9]:[0-5][0-9]$' "$work/clock"
# shellcheck disable=SC2317 # called by wait_until
ticks() { [ "$(grep -o ', at .*' "$work/clock" | sort -u | wc -l)" -ge 2 ]; }
expect "that goes" wait_until ticks
stop TERM
expect "also without a server" wait_until grep -qE '^holdfast  no reply at [0-9:]{8}; trying' "$work/clock"
kill "$watcher"
wait "$watcher" 2> /dev/null
ask 75 status

# (6) Nobody listens on port 111 of these hosts, so nobody can be notified.
export HOLDFAST_CONTROL="$work/third/control.sock"
hasty=(--port 0 --http off --store "lmdb:$work/third" --rpcbind off --recovery-window 1 --notify-timeout 2)
start deaf "${hasty[@]}" || finish
expect "a lock" same "$(peer 127.1.0.5 gone lock one)" granted
expect "a registrant" matches "$(peer 127.1.0.7 deaf mon alpha deaf:9 200000 1 1)" '^succ'
stop KILL
start patient "${hasty[@]}" --grace 600 || finish
# shellcheck disable=SC2317 # wait_until runs it
is_crashed() { "$HOLDFAST" clients --state crashed | grep -q '^c1 '; }
expect "who does not answer counts as crashed" wait_until is_crashed
ask 0 clients --state given_up --json
expect "nobody is given up before his time" same "$output" $'{"clients": [\n]}'
stop KILL
start hasty "${hasty[@]}" --grace 1 --give-up 1 || finish
# shellcheck disable=SC2317 # wait_until runs it
are_given_up() { [ "$("$HOLDFAST" clients --state given_up --json | grep -c '"state":"given_up"')" -eq 2 ]; }
expect "both are given up" wait_until are_given_up
ask 0 clients --state given_up
says 'c1 +nlm +gone +127\.1\.0\.5 +given_up'
says 'c[0-9] +nsm +deaf:9 +127\.1\.0\.7 +given_up +0 +0 +given_up'
ask 0 clients --state given_up --protocol nsm --json
expect "with the others" same "$(grep -c '"id":' <<< "$output")" 1
ask 0 clients --state crashed --json
expect "one word for each" same "$output" $'{"clients": [\n]}'
ask 0 clients 127.1.0.7
says 'state +given_up'
expect "it calls" matches "$(peer 127.1.0.7 deaf mon alpha deaf:9 200000 1 1)" '^succ'
ask 0 clients --state given_up --protocol nsm --json
expect "and is tried again" same "$output" $'{"clients": [\n]}'
stop TERM

# (5)
"$HOLDFAST" manual > "$work/holdfast.1"
"$HOLDFAST" serve --manual > "$work/holdfastd.8"
"$HOLDFAST" completion > "$work/completion"
expect "bash reads the completions" bash -n "$work/completion"
if command -v mandoc > /dev/null; then
    # Each refers to the other, which is not installed here, and names holdfast as the system it is of.
    complaints=$(mandoc -Tlint "$work/holdfast.1" "$work/holdfastd.8" 2> /dev/null |
        grep -v -e 'referenced manual' -e 'system explicitly specified')
    expect "mandoc has nothing to say" same "$complaints" ""
else
    echo "not shown: manual pages without mandoc"
fi
for name in $("$HOLDFAST" help | sed -n 's/^  \([a-z-]*\) .*/\1/p'); do
    expect "the manual has $name" grep -q "^\.It Cm $name" "$work/holdfast.1"
    expect "the completions have $name" grep -q "\b$name\b" "$work/completion"
done
for name in $("$HOLDFAST" serve --help | sed -n 's/^  --\([a-z-]*\).*/\1/p'); do
    expect "the manual has --$name" grep -q "^\.It Fl Fl $name\b" "$work/holdfastd.8"
done
# shellcheck disable=SC1091
. "$work/completion"
COMP_WORDS=(holdfast locks --w) COMP_CWORD=2 COMPREPLY=()
_holdfast
expect "--w is completed" same "${COMPREPLY[*]}" --waiting
COMP_WORDS=(holdfast ex) COMP_CWORD=1 COMPREPLY=()
_holdfast
expect "ex is completed" same "${COMPREPLY[*]}" "exports explain"
COMP_WORDS=(holdfast store ex) COMP_CWORD=2 COMPREPLY=()
_holdfast
expect "words are completed" same "${COMPREPLY[*]}" export
COMP_WORDS=(holdfast clients --state re) COMP_CWORD=3 COMPREPLY=()
_holdfast
expect "values are completed" same "${COMPREPLY[*]}" recovering
COMP_WORDS=(holdfast locks --sort w) COMP_CWORD=3 COMPREPLY=()
_holdfast
expect "orders are completed" same "${COMPREPLY[*]}" waiting
COMP_WORDS=(holdfast drill --a) COMP_CWORD=2 COMPREPLY=()
_holdfast
expect "--a is completed" same "${COMPREPLY[*]}" --all
COMP_WORDS=(holdfast clients --m) COMP_CWORD=2 COMPREPLY=()
_holdfast
expect "--m is completed" same "${COMPREPLY[*]}" --mon-name
COMP_WORDS=(holdfast end-grace --y) COMP_CWORD=2 COMPREPLY=()
_holdfast
expect "--y is completed" same "${COMPREPLY[*]}" --yes
COMP_WORDS=(holdfast locks --path --) COMP_CWORD=3 COMPREPLY=()
_holdfast
expect "a path is bash's" same "${COMPREPLY[*]}" ""
kill "$waiter" 2> /dev/null
finish
