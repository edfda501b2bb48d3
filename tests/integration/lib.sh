# lib.sh -- what the shell tests share: servers, checks, clean-up. Sourced, not run.
#
# HOLDFAST, PEER and STORE_DUMP come from meson. Everything a test makes is in $work; every server
# it starts is ended by its pid when the test ends, however it ends.
# shellcheck shell=bash disable=SC2034

work=$(mktemp -d "${TMPDIR:-/tmp}/holdfast-it-XXXXXX")
checks=0
failures=0
server_pids=()

clean_up() {
    local pid
    exec 2>/dev/null # the shell reports who was killed
    for pid in "${server_pids[@]}"; do
        kill -KILL "$pid"
    done
    wait
    rm -rf "$work"
}
trap clean_up EXIT
trap 'exit 1' INT TERM HUP

# expect WHAT COMMAND...: the command must succeed.
expect() {
    local what=$1
    shift
    checks=$((checks + 1))
    if ! "$@"; then
        failures=$((failures + 1))
        echo "FAILED $what: $*"
    fi
}

same() { [ "$1" = "$2" ] || { echo "  is '$1', not '$2'"; false; }; }
matches() { [[ $1 =~ $2 ]] || { echo "  '$1' does not match '$2'"; false; }; }
# log_has FILE PATTERN: now or soon; whoever writes the file may be behind what can be seen of it.
log_has() {
    wait_until grep -qs -- "$2" "$1" || { echo "  no '$2' in:"; sed 's/^/    /' "$1"; false; }
}

milliseconds() { echo $((${EPOCHREALTIME//[!0-9]/} / 1000)); }

# wait_until COMMAND...: tries again and again; fails after a minute. Nothing is proved by how long it
# takes: on a busy machine everything takes longer.
wait_until() {
    local deadline=$((SECONDS + 60))
    until "$@"; do
        [ "$SECONDS" -lt "$deadline" ] || return 1
        sleep 0.02
    done
}

is_gone() { ! kill -0 "$1" 2>/dev/null; }

# In words, or in JSON as the log is.
ready_line='^\(holdfast: \|{.*"message":"holdfast: \)ready on port'

is_ready_or_gone() {
    grep -q "$ready_line" "$1" || is_gone "$2"
}

# start NAME OPTIONS...: a server with its log in $work/NAME.log, its output in $work/NAME.out. Sets
# pid, port, state, clients, took_ms; false when it did not become ready.
start() {
    local name=$1 line began
    shift
    : > "$work/$name.out"
    began=$(milliseconds)
    "$HOLDFAST" serve "$@" 2> "$work/$name.log" > "$work/$name.out" < /dev/null &
    pid=$!
    server_pids+=("$pid")
    wait_until is_ready_or_gone "$work/$name.out" "$pid"
    took_ms=$(($(milliseconds) - began))
    line=$(grep "$ready_line" "$work/$name.out") || {
        echo "not ready: $*"
        sed 's/^/    /' "$work/$name.log"
        return 1
    }
    local form='ready on port ([0-9]+) \(state ([0-9]+), ([0-9,]+) clients?, '
    form+='([0-9,]+) locks?, grace ([0-9]+) s\)("|$)'
    matches "$line" "$form" || return 1
    port=${BASH_REMATCH[1]}
    state=${BASH_REMATCH[2]}
    clients=${BASH_REMATCH[3]//,/}
}

# stop SIGNAL: ends the last server. Sets code and took_ms.
stop() {
    local began
    began=$(milliseconds)
    kill "-$1" "$pid"
    wait "$pid" 2>/dev/null
    code=$?
    took_ms=$(($(milliseconds) - began))
}

# run_to_end NAME OPTIONS...: a server that is expected to refuse. Sets code.
run_to_end() {
    local name=$1
    shift
    timeout 60 "$HOLDFAST" serve "$@" > "$work/$name.out" 2> "$work/$name.log" < /dev/null
    code=$?
}

finish() {
    echo "${0##*/}: $checks checks, $failures failed"
    [ "$failures" -eq 0 ] && [ "$checks" -gt 0 ]
    exit
}
