#!/bin/bash
# files_samba.sh -- a real Samba on an exported directory, and NFS clients: each respects the locks
# of the other (F-MIRROR).
#
# Passing shows, with Debian's smbd, with smbclient, which locks bytes over the UNIX extensions of
# SMB1, and with `posix locking` as it is by default:
#  (1) what an NFS client has locked Samba refuses, where it overlaps only; both may read; after
#      UNLOCK Samba has it, also a client of Samba that waits;
#  (2) what Samba has locked is DENIED to NFS clients, TEST says so, a LOCK that waits is granted
#      when Samba unlocks, and when a client of Samba is killed;
#  (3) kill -9 of the server: Samba stays locked out while no server runs, in grace, and when the
#      client has reclaimed, until UNLOCK; what Samba holds is DENIED before and after;
#  (4) without `posix locking` Samba sees none of it: it was the kernel that told it;
#  (5) over SMB3 bytes that an NFS client has locked cannot be read;
#  (6) an SMB3 client with an oplock, which would keep its locks to itself, loses it to an NFS LOCK
#      if Samba has `kernel oplocks = yes` (with smbtorture; this part is skipped without).
#
# Everything is in namespaces of its own, so ports are free, and every process ends with the test.
# Without samba and smbclient the test is skipped.
# shellcheck disable=SC2317 # expect and wait_until call functions by their names
set -u
PATH=$PATH:/usr/sbin:/sbin
if [ -z "${HOLDFAST_IN_NAMESPACE:-}" ]; then
    skip() {
        echo "SKIP files_samba.sh: $1"
        exit 77
    }
    for command in smbd smbclient; do
        command -v "$command" > /dev/null || skip "no $command (Debian: samba, smbclient)"
    done
    unshare -m -n -p -f --mount-proc true 2> /dev/null ||
        skip "it needs root, to export files and for namespaces of its own"
    # The first process of a process namespace takes everything with it when it ends.
    HOLDFAST_IN_NAMESPACE=1 exec unshare -m -n -p -f --mount-proc --kill-child=TERM "$0"
fi
. "$(dirname "$0")/lib.sh"
ip link set lo up
umask 022

# ---- NFS clients ----

files=$work/files
file=$files/ledger
mkdir "$files"
echo text > "$file"
common=(--listen 127.0.0.1 --port 2050 --nfs-port 2049 --http off --no-rpcbind
    --store "lmdb:$work/store" --export "$files *(rw,no_root_squash)")
start first "${common[@]}" || finish
handle_of() { "$PEER" 127.0.0.1 2049 files "$files" stat "$1" | sed -n 's/.* handle /hex:/p'; }
handle=$(handle_of ledger)

# nfs COMMAND OFFSET LEN [shared]: a lock call of web1.
web1=("$PEER" -s 127.0.0.2 -n web1 127.0.0.1 2050)
nfs() { "${web1[@]}" "$1" "$handle" "${@:2}"; }
# nfs_stays NAME COMMAND OFFSET LEN: one that waits or keeps; what it says is in $work/NAME.
nfs_stays() {
    "${web1[@]}" "$2" "$handle" "${@:3}" > "$work/$1" 2>&1 &
    nfs_pid=$!
    server_pids+=("$nfs_pid")
}

# end PID: a client that vanishes.
end() {
    kill -KILL "$1"
    wait "$1" 2> /dev/null
}

# ---- Samba ----

# What an administrator adds stands last; the rest keeps it away from the machine's own Samba.
mkdir -p "$work/smb/private"
cat > "$work/smb.conf" <<TEXT
[global]
    server role = standalone server
    interfaces = lo
    bind interfaces only = yes
    smb ports = 4450
    disable netbios = yes
    private dir = $work/smb/private
    lock directory = $work/smb
    state directory = $work/smb
    cache directory = $work/smb
    pid directory = $work/smb
    ncalrpc dir = $work/smb/rpc
    log file = $work/smb/log
    load printers = no
    printing = bsd
    disable spoolss = yes
    rpc start on demand helpers = no
    map to guest = bad user
    guest account = root
    server min protocol = NT1
    client min protocol = NT1
    smb1 unix extensions = yes

[refuses]
    path = $files
    guest ok = yes
    read only = no
    oplocks = no
    blocking locks = no

[waits]
    copy = refuses
    blocking locks = yes

[alone]
    copy = refuses
    posix locking = no

[caches]
    copy = refuses
    oplocks = yes
    kernel oplocks = yes
TEXT
smbd --foreground --no-process-group --configfile="$work/smb.conf" \
    > "$work/smbd.out" 2>&1 < /dev/null &
smbd_pid=$!
server_pids+=("$smbd_pid")
samba_listens() { is_gone "$smbd_pid" || (: <> /dev/tcp/127.0.0.1/4450) 2> /dev/null; }
wait_until samba_listens
is_gone "$smbd_pid" && {
    cat "$work/smbd.out" "$work/smb/log"
    echo "FAILED smbd did not start"
    exit 1
}

declare -A smb_in smb_pid smb_fnum smb_read smb_marked
marks=0

# smb_begin NAME SHARE: a client of Samba with the file open, an smbclient that reads its commands
# from a pipe. -i0: one that buffers its input would find a command there only when another follows.
smb_begin() {
    local fifo=$work/$1.commands fd
    mkfifo "$fifo"
    exec {fd}<> "$fifo"
    smb_in[$1]=$fd
    smb_read[$1]=0
    stdbuf -i0 -oL smbclient --configfile="$work/smb.conf" -p 4450 -N -m NT1 -t 60 \
        "//127.0.0.1/$2" < "$fifo" > "$work/$1.said" 2>&1 &
    smb_pid[$1]=$!
    server_pids+=("$!")
    smb_ask "$1" posix
    smb_ask "$1" "posix_open ledger 0666"
    [[ $said =~ fnum\ ([0-9]+) ]] || {
        cat "$work/$1.said" "$work/smb/log"
        echo "FAILED smbclient cannot open the file"
        exit 1
    }
    smb_fnum[$1]=${BASH_REMATCH[1]}
}
smb_send() { echo "$2" >&"${smb_in[$1]}"; }
# A word that is no command is answered when the command before it is done.
smb_mark() {
    smb_marked[$1]=mark-$((++marks))
    smb_send "$1" "${smb_marked[$1]}"
}
smb_answered() {
    grep -qs "^${smb_marked[$1]}: command not found" "$work/$1.said" || is_gone "${smb_pid[$1]}"
}
# smb_hear NAME: waits for that, and sets said to what was printed before it.
smb_hear() {
    wait_until smb_answered "$1"
    said=$(tail -n "+$((smb_read[$1] + 1))" "$work/$1.said" | grep -v '^mark-')
    grep -q "^${smb_marked[$1]}:" "$work/$1.said" || said+=': no answer'
    smb_read[$1]=$(wc -l < "$work/$1.said")
}
smb_ask() {
    smb_send "$1" "$2"
    smb_mark "$1"
    smb_hear "$1"
}
# smb NAME lock r|w START LEN, or unlock START LEN, in hex: sets said to ok, or to the status.
smb_line() { echo "$1 ${smb_fnum[$2]} ${*:3}"; }
smb_verdict() { if [ -z "$said" ]; then said=ok; else said=${said##*: }; fi; }
smb() {
    smb_ask "$1" "$(smb_line "$2" "$1" "${@:3}")"
    smb_verdict
}
# smb_is WANTED NAME ...: the same, and what is expected.
smb_is() {
    smb "${@:2}"
    same "$said" "$1"
}
refused=NT_STATUS_FILE_LOCK_CONFLICT
# smb_gets NAME ...: now or soon. What an NFS client unlocks is free as soon as that is durable.
smb_gets() {
    wait_until smb_is ok "$@" > "$work/tries" || {
        tail -n 1 "$work/tries"
        false
    }
}
# smb_wait NAME ...: asks, and does not wait for the answer.
smb_wait() {
    smb_send "$1" "$(smb_line "$2" "$1" "${@:3}")"
    smb_mark "$1"
}
smb_still_waits() { ! smb_answered "$1" && ! is_gone "${smb_pid[$1]}"; }
smb_got_it() {
    smb_hear "$1"
    smb_verdict
    same "$said" ok
}
# stays_out WHY NAME: Samba is refused again and again, and NAME still waits.
stays_out() {
    local try
    for try in 1 2 3 4; do
        expect "$1: try $try" smb_is "$refused" bob lock w 9 1
    done
    expect "$1: who waits still does" smb_still_waits "$2"
}

smb_begin bob refuses
smb_begin ann refuses
smb_begin eve waits
smb_begin sam alone
program='held by a.x20program.x20on.x20the.x20server'

# (1)
expect "an NFS client locks" same "$(nfs lock 0 10)" granted
expect "the last byte of it" smb_is "$refused" bob lock w 9 1
expect "all of it and more" smb_is "$refused" bob lock w 0 ffff
expect "to read it" smb_is "$refused" bob lock r 5 1
expect "the byte after it" smb_is ok bob lock w a 1
expect "a byte far away" smb_is ok bob lock w 100000000 1
smb_wait eve lock w 0 a
stays_out "an NFS client holds" eve
expect "UNLOCK" same "$(nfs unlock 0 10)" granted
expect "Samba has what it waited for" smb_got_it eve
expect "and gives it up" smb_is ok eve unlock 0 a
expect "the other one has it" smb_gets bob lock w 5 a
expect "and gives it up" smb_is ok bob unlock 0 10
expect "an NFS client reads" same "$(nfs lock 0 10 shared)" granted
expect "Samba reads, too" smb_is ok bob lock r 0 a
expect "and must not write" smb_is "$refused" ann lock w 0 a
expect "nor may the NFS client" same "$(nfs lock 0 10)" denied
expect "Samba is done" smb_is ok bob unlock 0 a
expect "now it may" same "$(nfs lock 0 10)" granted
expect "UNLOCK" same "$(nfs unlock 0 10)" granted

# (2)
expect "Samba locks" smb_gets bob lock w 0 a
expect "DENIED" same "$(nfs lock 5 10)" denied
expect "DENIED to read" same "$(nfs lock 9 1 shared)" denied
expect "TEST" matches "$(nfs test 5 10)" "^$program .*exclusive, offset 0, 10 bytes"
expect "TEST beside it" same "$(nfs test 10 1)" free
expect "beside it" same "$(nfs lock 10 1)" granted
expect "UNLOCK" same "$(nfs unlock 10 1)" granted
nfs_stays waiter wait 0 10
expect "a LOCK that waits" log_has "$work/waiter" '^waiting'
expect "and is not in the way" matches "$(nfs test 5 10)" "^$program"
expect "Samba unlocks" smb_is ok bob unlock 0 a
expect "the LOCK is granted" log_has "$work/waiter" '^granted'
expect "Samba is refused" smb_is "$refused" bob lock w 0 1
expect "UNLOCK" same "$(nfs unlock 0 10)" granted
expect "Samba locks" smb_gets eve lock w 0 a
nfs_stays heir wait 0 10
expect "a LOCK that waits" log_has "$work/heir" '^waiting'
end "${smb_pid[eve]}"
expect "its client is killed, and the LOCK is granted" log_has "$work/heir" '^granted'
expect "UNLOCK" same "$(nfs unlock 0 10)" granted

# (3)
smb_begin eva waits
nfs_stays keeper keep 0 10
expect "an NFS client locks" log_has "$work/keeper" '^granted'
smb_wait eva lock w 0 a
stays_out "before the crash" eva
stop KILL
stays_out "no server runs" eva
kill -STOP "$nfs_pid" # so that grace stands
start again "${common[@]}" || finish
expect "the server waits for its client" matches "$(cat "$work/again.out")" '1 lock, grace [1-9]'
stays_out "in grace" eva
kill -CONT "$nfs_pid"
expect "the client reclaims" log_has "$work/keeper" 'reclaimed$'
stays_out "after the reclaim" eva
end "$nfs_pid"
expect "UNLOCK" same "$(nfs unlock 0 10)" granted
expect "Samba has what it waited for" smb_got_it eva
expect "DENIED" same "$(nfs lock 0 10)" denied
stop KILL
expect "no server runs, and Samba reads" smb_is ok bob lock r a 1
start third "${common[@]}" || finish
expect "still DENIED" same "$(nfs lock 0 10)" denied
expect "and may not write what Samba reads" same "$(nfs lock 10 1)" denied
expect "Samba unlocks" smb_is ok eva unlock 0 a
expect "granted" same "$(nfs lock 0 10)" granted
expect "nobody had what another had" same "$(grep -h 'has locked bytes' "$work"/*.log)" ""

# (4)
expect "without posix locking" smb_is ok sam lock w 0 a
expect "and given up" smb_is ok sam unlock 0 a

# (5)
smb3_read() {
    timeout 60 smbclient --configfile="$work/smb.conf" -p 4450 -N -m SMB3 "//127.0.0.1/$1" \
        -c 'get ledger -' 2>&1
}
expect "over SMB3" matches "$(smb3_read refuses)" "$refused"
expect "over SMB3, without posix locking" matches "$(smb3_read alone)" '^text'
expect "UNLOCK" same "$(nfs unlock 0 10)" granted
expect "shared" same "$(nfs lock 0 10 shared)" granted
expect "over SMB3, both read" matches "$(smb3_read refuses)" '^text'

# (6)
lock_is_granted() { [ "$(nfs lock 0 10)" = granted ]; }
if command -v smbtorture > /dev/null; then
    smbtorture --configfile="$work/smb.conf" -p 4450 -U% --option=torture:timeout=3600 \
        //127.0.0.1/caches smb2.hold-oplock > "$work/torture" 2>&1 < /dev/null &
    server_pids+=("$!")
    expect "an SMB3 client has oplocks" log_has "$work/torture" 'Waiting for oplock events'
    for name in shared_close shared_noclose; do
        expect "and keeps $name" same "$(grep -c "oplock break on .*$name" "$work/torture")" 0
        handle=$(handle_of "oplock_test/$name")
        expect "an NFS LOCK" wait_until lock_is_granted
        expect "has broken it" log_has "$work/torture" "oplock break on .*$name"
    done
else
    echo "ok 1 # SKIP no smbtorture, to hold oplocks (Debian: samba-testsuite)"
fi
stop TERM
expect "a clean end" same "$code" 0
finish
