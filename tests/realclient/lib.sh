# lib.sh -- what every scenario sources first: checks, locks, set-up and end.
#
# A scenario runs inside the namespaces that `run` has made, where $work is. It switches guests on
# and starts the server as it needs them, and leaves them on for the next one. Before it sources this
# file it may set
#   GRACE      the server's grace period in seconds (20)
#   RECOVERY   reclaim or resume (reclaim)
#   OPTIONS    more options of holdfast (none)
#   MOUNT      options of the mount (vers=3,hard)
#
# Guests' clocks agree with each other and with ours to about a tenth of a second.
# shellcheck shell=bash disable=SC2034,SC2154
set -u
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
: "${work:?is set by tests/realclient/run}" "${holdfastd:?}" "${holdfast:?}" "${tools:?}" "${kernel:?}" "${images:?}" "${accelerator:?}"
GRACE=${GRACE:-20}
RECOVERY=${RECOVERY:-reclaim}
OPTIONS=${OPTIONS:-}
MOUNT=${MOUNT:-vers=3,hard}
GRANT_SECONDS=5   # from an unlock to the grant of who waits
REBOOT_SECONDS=15 # from a client that is up again to the grant of who waited for it
scenario=$(basename "$0")
file=/mnt/$scenario # as clients see it
passed=0
failed=0

clock() { date +%s.%3N; }
minus() { awk -v a="$1" -v b="$2" 'BEGIN { printf "%.2f", a - b }'; }
is_less() { awk -v a="$1" -v b="$2" 'BEGIN { exit !(a < b) }'; }

# wait_until SECONDS COMMAND...: tries again and again; fails when the time is over.
wait_until()
{
    local deadline=$((SECONDS + $1))
    shift
    until "$@"; do
        [ "$SECONDS" -le "$deadline" ] || return 1
        sleep 0.02
    done
}

# shellcheck source=../guests.sh
. "$here/guests.sh"
# shellcheck source=../servers.sh
. "$here/servers.sh"

# ---- checks ----

say() { echo "    $*"; }
pass()
{
    passed=$((passed + 1))
    echo "  passed  $*"
}
fail()
{
    failed=$((failed + 1))
    echo "  FAILED  $*"
}
# check TEXT EXPECTED ACTUAL
check() { if [ "$2" = "$3" ]; then pass "$1"; else fail "$1: '$3', expected '$2'"; fi; }
# holds TEXT COMMAND...: the command must succeed.
holds()
{
    local text=$1
    shift
    if "$@"; then pass "$text"; else fail "$text"; fi
}
# within TEXT LIMIT SECONDS: an event that did not happen has a time of 0, long ago.
within()
{
    if is_less "$3" "$2" && is_less -60 "$3"; then
        pass "$1 ($3 s, at most $2 s)"
    else
        fail "$1: $3 s, at most $2 s"
    fi
}

# ---- locks ----

# What came of an operation: the result, the moment it ended, how many milliseconds it took.
outcome()
{
    read -r when ms result <<<"$1" || true
    if [ "$when" = pending ] || [ -z "$when" ]; then
        result=${when:-nothing}
        when=0
        ms=0
    fi
}
# session GUEST NAME [FLAG]: a process there that has the file open; see lk.c.
session() { on "$1" "lk open ${3:-} $2 $file"; }
# op GUEST SESSION OPERATION...
op() { outcome "$(on "$1" "lk do ${*:2}")"; }
# post GUEST SESSION OPERATION...: begins it; the ticket is for `reply`.
post() { ticket=$(on "$1" "lk post ${*:2}"); }
# reply GUEST SESSION TICKET SECONDS
reply() { outcome "$(EXEC_SECONDS=$(($4 + 30)) on "$1" "lk reply $2 $3 $4")"; }
# expect RESULT TEXT GUEST SESSION OPERATION...
expect()
{
    local wanted=$1 text=$2
    shift 2
    op "$@"
    check "$text" "$wanted" "$result"
}
# pending TEXT GUEST SESSION TICKET: it has no outcome yet.
pending()
{
    reply "$2" "$3" "$4" 0
    check "$1" pending "$result"
}

# ---- what is on the wire ----

# calls CAPTURE PROGRAM PROCEDURE [FILTER]: when these RPC calls were sent, one on each line. They are
# found over UDP, and behind a record mark of TCP.
calls()
{
    local in_udp="udp[20:4] == $2 and udp[28:4] == $3" at='((tcp[12] & 0xf0) >> 2)'
    tcpdump -r "$1" -nn -tt "(($in_udp) or (tcp[$at+16:4] == $2 and tcp[$at+24:4] == $3)) ${4:+and ($4)}" \
        2>/dev/null | cut -d' ' -f1
}
# notifications FILTER: how many SM_NOTIFY calls are in the capture.
notifications() { calls "$capture" 100024 6 "$1" | wc -l; }

# is_told FILTER: it is in the capture, which may be a moment behind.
is_told() { [ "$(notifications "$1")" -gt 0 ]; }

# ---- beginning and end ----

# is_mounted GUEST [HOST], mount_on GUEST [HOST]: what it has mounted from elsewhere it gives up.
is_mounted() { on "$1" "grep -q '^${2:-$SERVER}:$EXPORT /mnt nfs ' /proc/mounts"; }
mount_on()
{
    is_mounted "$@" || on "$1" "while umount /mnt 2>/dev/null; do :; done
        mount -t nfs -o $MOUNT ${2:-$SERVER}:$EXPORT /mnt"
}
# come_back GUEST: it is switched on again, and mounts.
come_back()
{
    if ! power_on "$1" || ! wait_for "$1" || ! mount_on "$1"; then
        fail "$1 does not come back"
    fi
}
# The first lock that is granted says that there is no grace any more.
after_grace()
{
    EXEC_SECONDS=$((GRACE + 60)) on "$1" "lk try /mnt/.grace set w 0 1 && rm -f /mnt/.grace" >/dev/null
}

start_capture()
{
    capture=$work/captures/$scenario.pcap
    mkdir -p "$work/captures"
    : >"$work/captures/tcpdump.log"
    tcpdump -i br0 --immediate-mode -U -Z root -w "$capture" >>"$work/captures/tcpdump.log" 2>&1 &
    echo $! >"$work/captures/pid"
    disown
    wait_until 10 grep -q 'listening on' "$work/captures/tcpdump.log"
}

setup()
{
    local guest
    echo "== $scenario"
    began=$(clock)
    trap 'end "$work/captures/pid"' EXIT
    serve || give_up "the server does not start"
    for guest in "$@"; do
        is_on "$guest" || power_on "$guest" || give_up "$guest cannot be switched on"
    done
    for guest in "$@"; do
        wait_for "$guest" || give_up "$guest does not come up"
        mount_on "$guest" || give_up "$guest cannot mount"
        on "$guest" 'dmesg -c >/dev/null'
    done
    after_grace "$1" || give_up "no lock is granted"
    mark_log
    start_capture || give_up "tcpdump does not start"
}

give_up()
{
    fail "$*"
    echo "$passed passed, $failed failed"
    exit 1
}

# shellcheck disable=SC2016 # for the guest
end_sessions() { on "$1" 'for f in /run/lk/*.pid; do [ ! -s $f ] || kill -9 $(cat $f) 2>/dev/null; rm -f $f; done; true'; }
# leave GUEST: it ends its sessions and unmounts; the server is still there.
leave() { end_sessions "$1" && on "$1" 'until umount /mnt 2>/dev/null; do usleep 50000; done'; }

# Every session ends, and its locks with it.
finish()
{
    local guest
    for guest in c1 c2 m1; do
        if is_on "$guest"; then
            end_sessions "$guest"
        fi
    done
    if is_on c1 && is_mounted c1; then
        on c1 "rm -f $file"
    fi
    end "$work/captures/pid"
    say "took $(minus "$(clock)" "$began") s"
    echo "$passed passed, $failed failed"
    [ "$failed" -eq 0 ]
    exit
}
