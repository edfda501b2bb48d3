#!/bin/bash
# reload.sh -- options that change while the server runs: `holdfast reload` and SIGHUP.
#
# Passing proves:
#  (1) what may change does, at once, and the reply, the log and /api/v1/config say so; a limit that
#      refused a lock grants it;
#  (2) what cannot is named and stays; a limit does not go down;
#  (3) a wrong file changes nothing, the sentence names file, line and cause, and the exit code is 1;
#  (4) SIGHUP does the same, also several at once, and also without a file; it ends nothing, whether
#      the server serves or waits for its store;
#  (5) only the control socket can ask for it.
# shellcheck disable=SC2317 # expect and wait_until call functions by their names
set -u
. "$(dirname "$0")/lib.sh"

config=$work/conf
write() { printf '%s\n' '[holdfast]' "$@" > "$config"; }
control=(--control "$work/store/control.sock")
reload() { "$HOLDFAST" reload "${control[@]}" "$@" 2>&1; }
option() { curl -s -m 60 "http://127.0.0.1:$http/api/v1/config" | jq -r ".options[] | select(.name == \"$1\") | .values[]" | xargs; }
lock() { "$PEER" -s 127.0.0.1 127.0.0.1 "$port" lock "$@"; }
reloads() { grep -c ' reloaded ' "$work/first.log"; }
reloaded_more_than() { [ "$(reloads)" -gt "$1" ]; }

if ! command -v curl > /dev/null || ! command -v jq > /dev/null; then
    echo "skipped: curl and jq are needed"
    exit 77
fi
write 'max-locks-per-client = 1' 'max-per-address = 100' 'log-level = info'
start first --listen 127.0.0.1 --port 0 --http 127.0.0.1:0 --no-rpcbind --store "lmdb:$work/store" \
    --config "$config" || finish
http=$(sed -n 's/.*serving HTTP port=\([0-9]*\).*/\1/p' "$work/first.log")

expect "nothing differs" matches "$(reload)" '^Nothing to change'
expect "one lock" same "$(lock one 0 1)" granted
expect "one is the limit" same "$(lock two 0 1)" "no resources"

# (1)
write 'max-locks-per-client = 2' 'max-per-address = 100' 'log-level = debug' 'name = alias.example'
output=$(reload)
expect "exit 0" same "$?" 0
expect "the limit" matches "$output" 'max-locks-per-client: 1 -> 2'
expect "the name" matches "$output" 'name: added alias.example'
expect "the level" matches "$output" 'log-level: info -> debug'
expect "a second lock" same "$(lock two 0 1)" granted
expect "a third is too many" same "$(lock three 0 1)" "no resources"
expect "the option in force" same "$(option max-locks-per-client)" 2
expect "the name in force" same "$(option name)" alias.example
expect "the log" log_has "$work/first.log" 'option changed option="log-level" from="info" to="debug"'
expect "who said so" log_has "$work/first.log" 'operator command order="reload the options" uid='
write 'max-locks-per-client = 3' 'max-per-address = 100' 'log-level = debug'
expect "as JSON" same "$(reload --json | jq -c .)" \
    '{"result":"done","changed":[{"option":"name","from":"alias.example","to":null},{"option":"max-locks-per-client","from":"2","to":"3"}],"needs_restart":[]}'

# (2)
write 'max-locks-per-client = 1' 'max-per-address = 100' 'log-level = debug' 'grace = 7' \
    "export = $work *(ro)"
output=$(reload)
expect "exit 0" same "$?" 0
expect "a limit does not go down" matches "$output" 'max-locks-per-client: stays as it is until a restart'
expect "nor does another option" matches "$output" 'grace: stays as it is until a restart'
expect "files need ports and threads" matches "$output" 'export: stays as it is until a restart'
expect "the limit in force" same "$(option max-locks-per-client)" 3

# (3)
write 'log-level = info' 'max-locks-per-client = many'
output=$(reload)
expect "exit 1" same "$?" 1
expect "file, line and cause" matches "$output" "not reloaded: $config, line 3: max-locks-per-client"
expect "and that nothing has changed" matches "$output" 'nothing has changed'
expect "nothing has" same "$(option log-level)" debug
expect "the log" log_has "$work/first.log" 'cannot reload; nothing has changed cause='
rm "$config"
output=$(reload)
expect "a file that is gone: exit 1" same "$?" 1
expect "it is named" matches "$output" "$config"

# (4)
write 'max-locks-per-client = 4' 'max-per-address = 100' 'log-level = info'
before=$(reloads)
kill -HUP "$pid"
expect "SIGHUP reloads" wait_until reloaded_more_than "$before"
expect "the limit in force" same "$(option max-locks-per-client)" 4
for _ in {1..20}; do kill -HUP "$pid"; done
expect "who comes after them is served" matches "$(reload)" '^Nothing to change'
expect "it still holds its locks" same "$(lock one 0 1)" granted
stop TERM
expect "it ends with 0" same "$code" 0
start second --listen 127.0.0.1 --port 0 --http off --no-rpcbind --store memory: \
    --control "$work/second.sock" || finish
kill -HUP "$pid"
expect "without a file, too" log_has "$work/second.log" ' reloaded changes=0'
stop TERM
if "$HOLDFAST" serve --standby --store 'postgres:host=127.0.0.1 port=1' --check-config > /dev/null 2>&1; then
    "$HOLDFAST" serve --standby --store 'postgres:host=127.0.0.1 port=1' --http off --no-rpcbind \
        --control "$work/standby.sock" 2> "$work/standby.log" > /dev/null < /dev/null &
    pid=$!
    server_pids+=("$pid")
    wait_until test -S "$work/standby.sock"
    kill -HUP "$pid"
    expect "a standby says that it cannot" log_has "$work/standby.log" 'cannot reload: this server does not serve yet'
    expect "and goes on" kill -0 "$pid"
    expect "also over its socket" matches "$("$HOLDFAST" reload --control "$work/standby.sock" 2>&1)" 'starting'
    stop TERM
else
    echo "not shown: SIGHUP of a standby; needs PostgreSQL's library"
fi

# (5)
start third --listen 127.0.0.1 --port 0 --http 127.0.0.1:0 --no-rpcbind --store memory: \
    --control "$work/third.sock" || finish
http=$(sed -n 's/.*serving HTTP port=\([0-9]*\).*/\1/p' "$work/third.log")
expect "not over TCP" same \
    "$(curl -s -m 60 -o /dev/null -w '%{http_code}' -X POST "http://127.0.0.1:$http/api/v1/reload")" 403
expect "and not by reading" same \
    "$(curl -s -m 60 -o /dev/null -w '%{http_code}' --unix-socket "$work/third.sock" http://localhost/api/v1/reload)" 405
finish
