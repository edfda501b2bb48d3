#!/bin/bash
# messages.sh -- sentences that name the thing, the cause and the next step.
#
# Passing proves:
#  (1) `holdfast store` names a command that it does not know, and a file that it cannot open; it
#      does not say that an export failed that is there, only that it may not stay;
#  (2) with --log-format json every line is JSON, the one on standard output too;
#  (3) a server with memory: does not say that the next start recovers anything;
#  (4) --check-config finds a mistake in the section of any group that a standby waits for;
#  (5) who may not connect is told who may, and not to start a server that may be running.
set -u
. "$(dirname "$0")/lib.sh"

# says WANT CODE COMMAND...: the command ends so, and that is in what it writes.
says() {
    local output code want=$1
    output=$("${@:3}" 2>&1 < /dev/null)
    code=$?
    expect "${*:4} ends with $2" same "$code" "$2"
    expect "${*:4} says why" matches "$output" "$want"
}
says '^holdfast store: unknown command "bogus"; use migrate, export, import or clear' 2 "$HOLDFAST" store bogus
says '^Usage: holdfast store COMMAND' 2 "$HOLDFAST" store
says '^Usage: holdfast store COMMAND' 0 "$HOLDFAST" store --help
says "^holdfast store import: $work/none: No such file or directory" 1 \
    "$HOLDFAST" store import --store "lmdb:$work/store" "$work/none"
expect "nothing was made of it" test ! -e "$work/store"

sections() { printf '%s\n' '[holdfast]' 'store = postgres:dbname=x' 'standby = on' 'group = web' 'group = home' \
    '[group web]' 'listen = 192.0.2.10' '[group home]' "$1" > "$work/groups.conf"; }
sections 'listen = 192.0.2.20'
if "$HOLDFAST" serve --config "$work/groups.conf" --check-config > /dev/null 2>&1; then
    sections 'listen = nonsense'
    says "^holdfastd: $work/groups.conf, line 9: listen = .*nonsense" 2 \
        "$HOLDFAST" serve --config "$work/groups.conf" --check-config
else
    echo "not shown: the sections of groups, without PostgreSQL"
fi

if [ "$(id -u)" = 0 ] && command -v setpriv > /dev/null; then
    start private --listen 127.0.0.1 --port 0 --http off --no-rpcbind --store "lmdb:$work/private" || finish
    chmod 711 "$work" "$work/private"
    nobody() { HOLDFAST_CONTROL="$work/private/control.sock" setpriv --reuid 65534 --regid 65534 --clear-groups "$@"; }
    says "$work/private/control.sock: only root and the server's user may connect.*as the server's user: sudo holdfast status$" 75 \
        nobody "$HOLDFAST" status
    expect "nor is the server to be started" same "$(nobody "$HOLDFAST" status 2>&1 | grep -c 'holdfast serve')" 0
    stop TERM
    chown -R 65534:65534 "$work/private"
    mkdir -m 300 "$work/blind" && chown 65534:65534 "$work/blind"
    says "the export is written, but not known to be durable: cannot sync the directory of $work/blind/out.json: Permission denied; " 1 \
        nobody "$HOLDFAST" store export --store "lmdb:$work/private" "$work/blind/out.json"
    expect "it is there, and whole" same "$(tail -n 1 "$work/blind/out.json" | cut -c 1-14)" '{"kind": "end"'
else
    echo "not shown: a user who may not connect, without root and setpriv"
fi
says 'To start it: holdfast serve' 75 "$HOLDFAST" status --control "$work/nowhere.sock"

start json --listen 127.0.0.1 --port 0 --http off --no-rpcbind --store memory: --log-format json || finish
expect "the line of readiness is JSON" log_has "$work/json.out" '^{"time":"[^"]*","level":"info","message":"holdfast: ready on port [0-9]* .*"port":[0-9]*}$'
expect "and nothing else is there" same "$(wc -l < "$work/json.out")" 1
stop TERM
expect "it ends well" same "$code" 0
expect "the log says what the end means" log_has "$work/json.log" '"message":"stopping; memory: keeps nothing'
expect "all of the log is JSON" same "$(grep -cv '^{"time":.*}$' "$work/json.log")" 0
finish
