# servers.sh -- the server's side: nfs-ganesha for the files, holdfast for the locks. Sourced by
# lib.sh.
#
# They know nothing of each other and share one rpcbind. A crash takes both. holdfast gets
# --grace $GRACE --recovery $RECOVERY and what is in $OPTIONS; its store outlives the scenarios.
#
# With FILES=holdfast there is no nfs-ganesha: holdfast serves the files as well (--export).
#
# After use_ganesha nfs-ganesha serves the locks as well, and what is on trial is its status monitor.
# shellcheck shell=bash disable=SC2034,SC2154

FILES=${FILES:-ganesha}
CONTROL=/run/holdfast.sock # a path below $work may be too long for a socket

write_ganesha_conf()
{
    mkdir -p "$EXPORT" "$work/server/recovery" "$work/server/store"
    chmod 777 "$EXPORT"
    cat >"$work/server/ganesha.conf" <<END
NFS_CORE_PARAM {
    Protocols = 3;
    Enable_NLM = ${1:-false};
    Enable_RQUOTA = false;
    RPC_Ioq_ThrdMax = 2000;
}
NFSV4 {
    RecoveryRoot = "$work/server/recovery";
    Grace_Period = $GRACE;
    Lease_Lifetime = $GRACE;
}
EXPORT {
    Export_Id = 1;
    Path = "$EXPORT";
    Pseudo = /export;
    Protocols = 3;
    Access_Type = RW;
    Squash = no_root_squash;
    FSAL { Name = VFS; }
}
END
}

answers() { rpcinfo -t "$SERVER" "$1" "$2" >/dev/null 2>&1; }

# launch NAME COMMAND...: a daemon, with its log and its process id.
launch()
{
    local name=$1
    shift
    "$@" </dev/null >>"$work/server/$name.log" 2>&1 &
    echo $! >"$work/server/$name.pid"
    disown
}

start_files()
{
    [ "$FILES" = ganesha ] || return 0
    launch ganesha ganesha.nfsd -F -f "$work/server/ganesha.conf" -L "$work/server/ganesha.log" \
        -p /run/ganesha/ganesha.pid
}

start_locks()
{
    local files=()
    [ "$FILES" = ganesha ] || files=(--export "$EXPORT *(rw,no_root_squash)")
    # shellcheck disable=SC2086 # several options
    launch holdfast "$holdfastd" --store "lmdb:$work/server/store" --grace "$GRACE" \
        --recovery "$RECOVERY" --http off --control "$CONTROL" --log-level debug "${files[@]}" $OPTIONS
    echo "$FILES $GRACE $RECOVERY $OPTIONS" >"$work/server/started"
}

# Returns when both answer.
start_server()
{
    start_files
    start_locks
    wait_until 30 answers 100021 4 && wait_until 30 answers 100024 1 && wait_until 30 answers 100003 3
}

crash_server()
{
    end "$work/server/holdfast.pid" KILL
    end "$work/server/ganesha.pid" KILL
}

crash_locks() { end "$work/server/holdfast.pid" KILL; }

# operate COMMAND...: what an operator types on the server.
operate()
{
    local said status
    said=$("$holdfast" "$@" --control "$CONTROL" 2>&1)
    status=$?
    say "$said"
    return "$status"
}

# Whose locks the scenario is about: holdfast's beside nfs-ganesha, or the kernel's (monitor.sh).
use_sidecar()
{
    served_by=sidecar
    SERVER=$OUTSIDE
    EXPORT=$work/server/export
    log=$work/server/holdfast.log
}
use_sidecar

# The server with these options: it goes on if it has them, and is started anew if not.
serve() { "serve_$served_by"; }
serve_sidecar()
{
    local wanted="$FILES $GRACE $RECOVERY $OPTIONS"
    if [ -s "$work/server/holdfast.pid" ] && is_running "$(cat "$work/server/holdfast.pid")" &&
        [ "$(cat "$work/server/started")" = "$wanted" ]; then
        return
    fi
    end "$work/server/holdfast.pid" TERM
    [ "$FILES" = ganesha ] || end "$work/server/ganesha.pid" KILL
    if [ -s "$work/server/ganesha.pid" ] && is_running "$(cat "$work/server/ganesha.pid")"; then
        start_locks
        wait_until 30 answers 100021 4
    else
        write_ganesha_conf
        start_server
    fi
}

# nfs-ganesha with its own locks, on this machine, which has one boot for all scenarios.
use_ganesha()
{
    use_sidecar
    served_by=ganesha
    log=$work/server/monitor.log
}
serve_ganesha()
{
    end "$work/server/holdfast.pid" TERM
    end "$work/server/ganesha.pid" KILL
    end "$work/server/monitor.pid" KILL
    write_ganesha_conf true
    if [ "$MONITOR" = statd ]; then
        launch monitor rpc.statd -F --no-notify
    else
        # shellcheck disable=SC2086 # several options
        launch monitor "$holdfastd" --role monitor --store "lmdb:$work/server/monitor" --http off \
            --control "$CONTROL" --log-level debug $OPTIONS
    fi
    wait_until 30 answers 100024 1 && start_files && wait_until 60 answers 100021 4
}

# It and its monitor end, and what they had registered, which they would leave to their next start.
end_ganesha()
{
    local program
    end "$work/server/monitor.pid" KILL
    end "$work/server/ganesha.pid" KILL
    for program in '100021 1' '100021 3' '100021 4' '100024 1'; do
        # shellcheck disable=SC2086 # program and version
        rpcinfo -d $program
    done
}

# How many lines of holdfast's log since `mark_log` contain this text.
mark_log() { log_mark=$(wc -l <"$log"); }
logged() { tail -n "+$((log_mark + 1))" "$log" | grep -c -- "$1"; }
# How many locks were given up when grace ended, since `mark_log`.
given_up()
{
    tail -n "+$((log_mark + 1))" "$log" | awk '
        /grace period ended/ { ended = 1 }
        /grace period ended/ && match($0, /locks=[0-9]+/) { count += substr($0, RSTART + 6, RLENGTH - 6) }
        END { print ended ? count + 0 : "grace has not ended" }'
}
log_says() { [ "$(logged "$1")" -gt 0 ]; }
