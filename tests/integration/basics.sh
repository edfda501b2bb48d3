#!/bin/bash
# basics.sh -- the commands that a newcomer types.
#
# Passing proves:
#  (1) the server of the first page is ready in under a second, says so in the agreed line, answers
#      on TCP and UDP (also to rpcinfo, when it is installed) and on /healthz;
#  (2) SIGTERM and SIGINT end it with 0 within a second, also with calls in flight and connections
#      that stopped in the middle of a call;
#  (3) a restart keeps registrations and raises the state number to the next odd one; SM_SIMU_CRASH
#      from a privileged port raises it, too (root only);
#  (4) what cannot work ends with the agreed exit code and a sentence that names the thing: 74 for a
#      store in use, 69 for a port in use, 2 for a wrong option; --check-config starts nothing.
#  (5) the tour of the README, typed line by line, prints what the README says.
set -u
readme=$(cd "$(dirname "$0")/../.." && pwd)/README.md
. "$(dirname "$0")/lib.sh"

store="$work/store"
port_wanted=$("$PEER" free-port)
http=$("$PEER" free-port)
until [ "$http" != "$port_wanted" ]; do
    http=$("$PEER" free-port)
done
options=(--listen 127.0.0.1 --port "$port_wanted" --http "127.0.0.1:$http" --store "lmdb:$store"
    --grace 5 --no-rpcbind)

# (1) A busy machine may be slow once, but not ten times.
for attempt in {1..10}; do
    start first "${options[@]}" || finish
    echo "ready in $took_ms ms"
    if [ "$took_ms" -lt 1000 ] || [ "$attempt" -eq 10 ]; then
        break
    fi
    stop KILL
    rm -rf "$store"
done
expect "ready in under 1 s" [ "$took_ms" -lt 1000 ]
expect "the port that was asked for" same "$port" "$port_wanted"
expect "no clients yet" same "$clients" 0
expect "an odd state" same $((state % 2)) 1
expect "NULL over TCP" same "$("$PEER" 127.0.0.1 "$port" null)" ok
expect "NULL over UDP" same "$("$PEER" -u 127.0.0.1 "$port" null)" ok
expect "STAT says our state" same "$("$PEER" 127.0.0.1 "$port" stat name)" "succ $state"
expect "readiness is said once" same "$(cat "$work/first.out" "$work/first.log" | grep -c 'ready')" 1
if rpcinfo=$(command -v rpcinfo || command -v /usr/sbin/rpcinfo); then
    # With -n PORT some versions ask rpcbind all the same; a universal address needs nobody else.
    universal="127.0.0.1.$((port / 256)).$((port % 256))"
    expect "rpcinfo over TCP" "$rpcinfo" -a "$universal" -T tcp 100024 1
    expect "rpcinfo over UDP" "$rpcinfo" -a "$universal" -T udp 100024 1
else
    echo "not shown: rpcinfo is not installed"
fi
if command -v curl > /dev/null; then
    expect "/healthz" same \
        "$(curl -s -o /dev/null -w '%{http_code}' "http://127.0.0.1:$http/healthz")" 200
else
    echo "not shown: curl is not installed"
fi

# (3) registrations and state over a restart
expect "SM_MON" same "$("$PEER" 127.0.0.1 "$port" mon alpha me)" "succ $state"
expect "SM_MON over UDP" same "$("$PEER" -u 127.0.0.1 "$port" mon beta me)" "succ $state"
expect "SM_MON once more" same "$("$PEER" 127.0.0.1 "$port" mon gamma me)" "succ $state"
expect "SM_UNMON" same "$("$PEER" 127.0.0.1 "$port" unmon beta me)" "state $state"
state_before=$state

# (4) while it runs
run_to_end second --listen 127.0.0.1 --port 0 --http off --store "lmdb:$store" --no-rpcbind
expect "exit 74 for a store in use" same "$code" 74
expect "a sentence about it" log_has "$work/second.log" "$store.*in use"
run_to_end third --listen 127.0.0.1 --port "$port" --http off --store "lmdb:$work/other" \
    --no-rpcbind
expect "exit 69 for a port in use" same "$code" 69
expect "a sentence about it" log_has "$work/third.log" "$port"
expect "the first one still serves" same "$("$PEER" 127.0.0.1 "$port" null)" ok

# (2) SIGTERM with unfinished calls on open connections and a registration storm in flight
mkfifo "$work/hold.in"
stop_under_load() {
    local holder storm
    exec 9<> "$work/hold.in" # keeps the holder's standard input open
    : > "$work/hold.out"
    "$PEER" 127.0.0.1 "$port" hold 20 < "$work/hold.in" > "$work/hold.out" 9>&- &
    holder=$!
    expect "connections are held" wait_until grep -q holding "$work/hold.out"
    (while "$PEER" -t 500 127.0.0.1 "$port" mon delta me > /dev/null; do :; done) 9>&- &
    storm=$!
    stop TERM
    echo "stopped in $took_ms ms"
    expect "SIGTERM ends it with 0" same "$code" 0
    expect "its connections are closed" wait_until is_gone "$holder"
    exec 9>&-
    wait "$storm"
}
stop_under_load
for _ in {1..9}; do # a busy machine may be slow once, but not ten times
    [ "$took_ms" -ge 1000 ] || break
    start more "${options[@]}" || finish
    state_before=$state
    stop_under_load
done
expect "SIGTERM ends it within 1 s" [ "$took_ms" -lt 1000 ]

start again "${options[@]}" || finish
expect "the next odd state" same "$state" $((state_before + 2))
expect "what was registered is there" matches "$clients" '^[23]$'
stop TERM
names=$("$STORE_DUMP" "lmdb:$store" | sed -n 's/.* mon_name=\([^ ]*\) .*/\1/p' | sort | xargs)
expect "alpha and gamma are stored, beta is not" matches "$names" '^alpha( delta)? gamma$'

start interrupted "${options[@]}" || finish
expect "a free port again after each stop" same "$port" "$port_wanted"
if [ "$(id -u)" -eq 0 ]; then
    expect "SM_SIMU_CRASH" same "$("$PEER" 127.0.0.1 "$port" simu-crash)" ok
    expect "it raises the state" same "$("$PEER" 127.0.0.1 "$port" stat x)" "succ $((state + 2))"
else
    echo "not shown: SM_SIMU_CRASH needs a privileged port, hence root"
fi
stop INT
expect "SIGINT ends it with 0" same "$code" 0

# (4) without a server
run_to_end option --no-such-option
expect "exit 2 for an unknown option" same "$code" 2
expect "the option is named" log_has "$work/option.log" "no-such-option"
run_to_end value --port 70000
expect "exit 2 for a port that is none" same "$code" 2
expect "the option is named" log_has "$work/value.log" "port"
run_to_end store --store "nonsense:x"
expect "exit 2 for an unknown store" same "$code" 2
run_to_end nowhere --listen 127.0.0.1 --port 0 --http off --no-rpcbind --store "lmdb:$work/a/b/c"
expect "exit 74 for a store that cannot be made" same "$code" 74
expect "its path is named" log_has "$work/nowhere.log" "$work/a/b/c"
run_to_end check "${options[@]}" --check-config
expect "--check-config accepts" same "$code" 0
run_to_end check --check-config --max-clients many
expect "--check-config refuses" same "$code" 2
"$HOLDFAST" serve --help > "$work/help" 2>&1
expect "--help ends with 0" same $? 0
expect "--help knows --store" log_has "$work/help" "--store"

# (5) Indented lines of the tour are commands; what is behind "# " is how their output begins. Ports
# and the store are ours, the fake client is built already.
cd "$work" || finish
store="$work/tour"
tour=$(sed -n '/^## Two minutes/,/^## [^T]/p' "$readme" | sed -e "s|12049|$port_wanted|g" \
    -e "s|12080|$http|g" -e "s|build/peer|$PEER|g" -e "s|holdfast-data|$store|g" \
    -e "s|build/holdfast|$HOLDFAST|g")
export HOLDFAST_CONTROL="$store/control.sock"
jobs=() # background commands in the order of the tour: "%1" is the first
type_line() {
    local command=${1%%  # *} promised=${1#*  # } output
    case $command in
    "make peer"*) ;;
    "./run "*)
        # shellcheck disable=SC2086 # the words of a command line
        start tour --port "$port_wanted" --http "127.0.0.1:$http" ${command#./run} || finish
        ;;
    "kill "*"%1") # what a terminal does to the job, a function that runs the fake client
        output=$(ps -o pid= --ppid "${jobs[0]}")
        # shellcheck disable=SC2086 # one pid, and perhaps an option
        eval "${command%%%1}" $output
        case $command in
        "kill %1") wait "${jobs[0]}" 2> /dev/null ;;
        *-CONT*)
            expect "the lock is reclaimed" wait_until grep -q "(state 5): reclaimed" "$work/job.1"
            expect "grace is over" wait_until grep -q "grace period ended" "$work/tour.log"
            ;;
        esac
        ;;
    "kill "*)
        eval "$command"
        wait "$pid" 2> /dev/null
        ;;
    "curl "*) command -v curl > /dev/null || return ;;&
    *"&"*)
        eval "${command%&*}" > "$work/job.$((${#jobs[@]} + 1))" &
        jobs+=($!)
        expect "$command" wait_until grep -q "^${promised}" "$work/job.${#jobs[@]}"
        ;;
    *"() {"*) eval "$command" ;;
    *)
        output=$(eval "$command")
        expect "$command" same "${output:0:${#promised}}" "$promised"
        if [ "$command" != "${command#web1 notify}" ]; then
            expect "who waited is granted" wait_until grep -q ^granted "$work/job.2"
        fi
        ;;
    esac
}
lines=0
while IFS= read -r line; do
    type_line "$line"
    lines=$((lines + 1))
done < <(sed -n 's/^    \([^ ]\)/\1/p' <<< "$tour")
expect "the tour was found" [ "$lines" -gt 10 ]
expect "the server says what the README says" log_has "$work/tour.out" \
    "$(grep -o 'ready on port [0-9]* ([^)]*)' <<< "$tour")"
stop TERM
finish
