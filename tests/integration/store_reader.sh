#!/bin/bash
# store_reader.sh -- who only reads a store changes nothing in it, whoever he is.
#
# Passing proves, of a store that is closed, of a killed server's, of one whose machine lost its power
# in a run with --sync process, of a torn file and of a cut one:
#  (1) `holdfast store export` leaves every file of the directory as it was, with its bytes, owner,
#      mode and times of change, and makes none; as its owner, and as root in another user's (A14);
#  (2) what it says fits: all records, or a sentence and 74; of a store that may have lost changes the
#      lines say that it is incomplete (D16), and so is a store that they are imported into;
#  (3) afterwards the server starts on it, with --user (root only);
#  (4) `holdfast store import` and `clear` by root leave a store that --user can use (root only).
#  (5) `holdfast store export` of a server with --store memory: gives its records, which can be imported;
#      of a store in use, what the server says, through --control; the control socket of another
#      server is refused, and where there is none a sentence says so.
set -u
. "$(dirname "$0")/lib.sh"

chmod 755 "$work"
common=(--listen 127.0.0.1 --port 0 --http off --grace 1 --no-rpcbind)
as_user=()
owner=()
if [ "$(id -u)" -eq 0 ] && id nobody > /dev/null 2>&1 && setpriv --help > /dev/null 2>&1; then
    owner=(--user nobody)
    as_user=(setpriv --reuid nobody --regid "$(id -g nobody)" --clear-groups)
else
    echo "not shown: another user's store needs root and a user called nobody"
fi

# picture DIR: all that is known of it and its files, but when they were read.
picture() { (cd "$1" && find . -printf '%p %u:%g %m %s %i %T@ %C@\n' | sort &&
    find . -type f -exec sha256sum {} + | sort); }

# export_of DIR CODE [WRAPPER...]: it must end so and change nothing. Output in $work/json, .err.
export_of() {
    local before code directory=$1 want=$2
    before=$(picture "$directory")
    timeout 60 "${@:3}" "$HOLDFAST" store export --store "lmdb:$directory" \
        > "$work/json" 2> "$work/export.err" < /dev/null
    code=$?
    expect "export of ${directory##*/} ends with $want" same "$code" "$want"
    expect "nothing in ${directory##*/} has changed" same "$(picture "$directory")" "$before"
}

# made KIND: a store in $work/KIND with a lock and a registration, of a server that was killed.
made() {
    if [ ${#owner[@]} -gt 0 ]; then
        install -d -o nobody -g "$(id -g nobody)" -m 700 "$work/$1"
    else
        install -d -m 700 "$work/$1"
    fi
    start "$1-made" "${common[@]}" "${owner[@]}" --store "lmdb:$work/$1" --sync process || finish
    expect "a lock" same "$("$PEER" -n alpha 127.0.0.1 "$port" lock one)" granted
    expect "a registration" same "$("$PEER" 127.0.0.1 "$port" mon beta me)" "succ $state"
}

# starts KIND: the server starts on it, as the same user.
starts() {
    if start "$1-after" "${common[@]}" "${owner[@]}" --store "lmdb:$work/$1" --sync process; then
        stop TERM
        expect "it ends well" same "$code" 0
    else
        expect "the server starts on $1" false
    fi
}

# shellcheck disable=SC2317 # expect runs it
has_records() { [ "$(grep -c '"lock"\|"registrant"' "$work/json")" -ge 2 ]; }

for kind in closed killed lost torn cut; do
    made "$kind"
    # A file that is cut has lost pages in use: all records are in it once the server has ended.
    if [ "$kind" = closed ] || [ "$kind" = cut ]; then stop TERM; else stop KILL; fi
    [ "$kind" = lost ] || [ "$kind" = torn ] &&
        printf '00000000-0000-0000-0000-000000000000\n' > "$work/$kind/unsynced"
    [ "$kind" = torn ] &&
        dd if=/dev/zero of="$work/torn/data.mdb" bs=4096 seek=2 count=60 conv=notrunc status=none
    [ "$kind" = cut ] && truncate -s 20480 "$work/cut/data.mdb"
    want=0
    if [ "$kind" = torn ] || [ "$kind" = cut ]; then want=74; fi
    export_of "$work/$kind" "$want" "${as_user[@]}"
    export_of "$work/$kind" "$want"
    if [ "$want" = 0 ]; then
        expect "every record" has_records
    else
        expect "no line" test ! -s "$work/json"
        expect "a sentence" log_has "$work/export.err" \
            "lmdb:$work/$kind: data.mdb is damaged and cannot be read; nothing was changed"
    fi
    [ "$kind" = killed ] && cp "$work/json" "$work/json.kept"
    if [ "$kind" = lost ]; then
        expect "it says that changes may be missing" log_has "$work/export.err" "may be missing"
        expect "the lines say so, too" log_has "$work/json" '"incomplete": *1'
        expect "they can be imported" "$HOLDFAST" store import --store "lmdb:$work/moved" "$work/json"
        if start moved "${common[@]}" --store "lmdb:$work/moved"; then
            expect "an incomplete start" log_has "$work/moved.log" 'the store may have lost records'
            stop TERM
        fi
    else
        expect "no line says that it is incomplete" test -z "$(grep '"incomplete": *1' "$work/json")"
    fi
    if [ "$kind" = cut ]; then # no run lost its power: only a backup helps, and the server says so
        run_to_end cut-after "${common[@]}" "${owner[@]}" --store "lmdb:$work/cut"
        expect "exit 74 for a cut file" same "$code" 74
    else
        starts "$kind"
    fi
done

output=$("$HOLDFAST" store export --store "lmdb:$work/nowhere" 2>&1 < /dev/null)
expect "exit 74 where there is no store" same $? 74
expect "a sentence" matches "$output" "no such directory"
expect "no directory is made" test ! -e "$work/nowhere"

# (5)
if start memory "${common[@]}" --store memory: --control "$work/memory.sock"; then
    expect "a lock" same "$("$PEER" -n alpha 127.0.0.1 "$port" lock one)" granted
    expect "an export" "$HOLDFAST" store export --store memory: --control "$work/memory.sock" "$work/memory.json"
    expect "its mode" same "$(stat -c %a "$work/memory.json")" 600
    expect "an import" "$HOLDFAST" store import --store "lmdb:$work/kept" "$work/memory.json"
    output=$("$HOLDFAST" store export --store "lmdb:$work/kept" 2>&1 < /dev/null)
    expect "with the lock" matches "$output" '"kind": "lock"'
    memory_pid=$pid
    if start kept "${common[@]}" --store "lmdb:$work/kept" --control "$work/kept.sock"; then
        output=$("$HOLDFAST" store export --store "lmdb:$work/kept" --control "$work/memory.sock" 2>&1 < /dev/null)
        expect "not of another server" same $? 74
        expect "a sentence" matches "$output" "has another store than lmdb:$work/kept"
        output=$("$HOLDFAST" store export --store "lmdb:$work/kept" 2>&1 < /dev/null)
        expect "not without the socket" same $? 74
        expect "a sentence" matches "$output" "$work/kept/control.sock: no server has its control socket there; name"
        expect "who has it" matches "$output" "in use by process"
        (cd "$work" && "$HOLDFAST" store export --store "lmdb:kept/../kept" --control kept.sock > kept.json)
        expect "however it is written" same $? 0
        expect "by the environment" env HOLDFAST_CONTROL="$work/kept.sock" \
            "$HOLDFAST" store export --store "lmdb:$work/kept" "$work/kept.json"
        stop KILL
    fi
    kill -KILL "$memory_pid"
fi

# (4)
if [ ${#owner[@]} -gt 0 ]; then
    install -d -o nobody -g "$(id -g nobody)" -m 700 "$work/filled"
    expect "an import by root" "$HOLDFAST" store import --store "lmdb:$work/filled" "$work/json.kept"
    starts filled
    made cleared
    stop KILL
    printf '00000000-0000-0000-0000-000000000000\n' > "$work/cleared/unsynced"
    expect "a clear by root" "$HOLDFAST" store clear --store "lmdb:$work/cleared" --yes
    starts cleared
fi
finish
