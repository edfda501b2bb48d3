#!/bin/bash
# user.sh -- who the server is, where its options come from, and what it writes into the log.
#
# Passing proves:
#  (1) --user nobody gives up root after binding, and the store still works (root only);
#  (2) options come from a file, the command line wins, and a mistake in the file ends with 2 and
#      names file and key;
#  (3) names from the network are escaped in both log formats: no line of the log is forged, no
#      control byte gets through, and every JSON line parses (R-SEC-8);
#  (4) bad input is in the log, and ten thousand times the same is not ten thousand lines (P6);
#  (5) a standby can be asked while it waits, where nobody has made a directory for its socket (root
#      only);
#  (6) when the line comes that scripts wait for, the log of the start is complete.
set -u
. "$(dirname "$0")/lib.sh"

common=(--listen 127.0.0.1 --port 0 --http off --grace 5 --no-rpcbind)

# (1)
if [ "$(id -u)" -eq 0 ] && id nobody > /dev/null 2>&1; then
    chmod 755 "$work"
    install -d -o nobody -m 700 "$work/nobody"
    if start user "${common[@]}" --store "lmdb:$work/nobody" --user nobody; then
        uids=$(sed -n 's/^Uid:[[:space:]]*//p' "/proc/$pid/status" | tr '\t' ' ')
        number=$(id -u nobody)
        expect "all its user ids are nobody's" same "$uids" "$number $number $number $number"
        groups=$(sed -n 's/^Groups:[[:space:]]*//p' "/proc/$pid/status" | xargs)
        expect "root's groups are gone" matches " $groups " "^ (($(id -G nobody | tr ' ' '|')) )*$"
        expect "it cannot be root again" matches \
            "$(sed -n 's/^CapPrm:[[:space:]]*//p' "/proc/$pid/status")" '^0000000000000?[04]00$'
        expect "SM_MON works" same "$("$PEER" 127.0.0.1 "$port" mon alpha me)" "succ $state"
        stop TERM
        expect "it ends with 0" same "$code" 0
    else
        expect "--user nobody starts" false
    fi
    run_to_end nouser "${common[@]}" --store "lmdb:$work/x" --user no-such-user
    expect "exit 2 for an unknown user" same "$code" 2
    expect "the user is named" log_has "$work/nouser.log" "no-such-user"
else
    echo "not shown: --user needs root and a user called nobody"
fi

# (5)
standby=(serve --standby --store 'postgres:host=127.0.0.1 port=1' --http off --no-rpcbind)
if [ "$(id -u)" -eq 0 ] && unshare -m true 2> /dev/null &&
    "$HOLDFAST" "${standby[@]}" --check-config > /dev/null 2>&1; then
    # shellcheck disable=SC2016 # for the shell inside
    output=$(timeout 90 unshare -m bash -c 'mount -t tmpfs none /run || exit 1
        "$HOLDFAST" "$@" 2> /dev/null &
        for _ in {1..5000}; do
            [ -S /run/holdfast/control.sock ] && break
            sleep 0.01
        done
        "$HOLDFAST" status --control /run/holdfast/control.sock
        kill $!
        wait' inside "${standby[@]}" 2>&1)
    expect "it stands by" matches "$output" 'standby +(starting|store postgres:)'
else
    echo "not shown: a standby without a directory for its socket; needs root and PostgreSQL's library"
fi

# (2)
cat > "$work/holdfast.conf" << CONF
# a comment
[holdfast]
listen = 127.0.0.1
port = 0
http = off
store = lmdb:$work/configured
recovery-window = 7
rpcbind = off
max-clients = 1
CONF
if start file --config "$work/holdfast.conf"; then
    expect "the first is taken" same "$("$PEER" 127.0.0.1 "$port" mon alpha me)" "succ $state"
    expect "max-clients is from the file" matches "$("$PEER" 127.0.0.1 "$port" mon beta me)" '^fail'
    stop TERM
    expect "it ends with 0" same "$code" 0
else
    expect "--config starts" false
fi
if start wins --config "$work/holdfast.conf" --max-clients 2 --max-per-address 100; then
    expect "the command line wins: two are taken now" same \
        "$("$PEER" 127.0.0.1 "$port" mon beta me)" "succ $state"
    stop TERM
else
    expect "--config with more options starts" false
fi
sed -i 's/max-clients = 1/max-cleints = 1/' "$work/holdfast.conf"
run_to_end typo --config "$work/holdfast.conf"
expect "exit 2 for an unknown key" same "$code" 2
expect "the key is named" log_has "$work/typo.log" "max-cleints"
expect "the file is named" log_has "$work/typo.log" "holdfast.conf"
run_to_end missing --config "$work/no-such-file"
expect "exit 2 for a missing file" same "$code" 2
expect "the file is named" log_has "$work/missing.log" "no-such-file"

# (6)
"$HOLDFAST" serve "${common[@]}" --http 127.0.0.1:0 --store "lmdb:$work/ready" > "$work/both" 2>&1 < /dev/null &
pid=$!
server_pids+=("$pid")
expect "it is ready" wait_until grep -q '^holdfast: ready' "$work/both"
expect "where HTTP is was said before" same \
    "$(sed '/^holdfast: ready/q' "$work/both" | grep -c 'serving HTTP')" 1
stop TERM

# (3), (4)
forged='x\x0aholdfast: ready on port 1\x0a{"level":"error"}\x1b[31m"\x5c%s%n'
expect_one_refusal() {
    expect "a bad name is refused" matches \
        "$("$PEER" 127.0.0.1 "$port" mon "$forged" me)" '^fail'
}
# shellcheck disable=SC2317 # expect runs it
is_json() { jq -e -s 'length > 1' "$1" > /dev/null; }
for format in text json; do
    if ! start "log-$format" "${common[@]}" --store "lmdb:$work/log-$format" \
        --log-format "$format"; then
        expect "--log-format $format starts" false
        continue
    fi
    log="$work/log-$format.log"
    expect_one_refusal
    "$PEER" 127.0.0.1 "$port" notify "$forged" 7 > /dev/null
    expect "the refusal is logged" wait_until grep -q 'holdfast: ready on port 1' "$log"
    expect "no control byte in the log" same "$(LC_ALL=C tr -d '\n\40-\176' < "$log" | wc -c)" 0
    expect "no forged line" same \
        "$(grep -c '^holdfast: ready on port 1$\|^{"level":"error"}' "$log")" 0
    before=$(wc -l < "$log")
    for _ in $(seq 150); do
        "$PEER" -u -t 100 127.0.0.1 "$port" mon "$forged" me > /dev/null
    done
    after=$(wc -l < "$log")
    echo "$format: 150 bad names, $((after - before)) lines"
    expect "the log is rate-limited" [ $((after - before)) -lt 75 ]
    if [ $format = json ] && command -v jq > /dev/null; then
        expect "every line is JSON" is_json "$log"
        expect "the name survives in it" test "$(jq -r 'select(.name != null) | .name' "$log" |
            head -c 30 | head -1)" != ""
    elif [ $format = json ]; then
        expect "every line is an object" same "$(grep -vc '^{.*}$' "$log")" 0
    fi
    stop TERM
    expect "it ends with 0" same "$code" 0
done
finish
