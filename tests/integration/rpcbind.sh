#!/bin/bash
# rpcbind.sh -- how clients find the server: a real rpcbind, and our own portmapper.
#
# Runs in network and mount namespaces of its own, with a /run of its own. Passing proves:
#  (1) programs 100021, in versions 1, 3 and 4, and 100024 are registered on tcp, udp, tcp6 and
#      udp6, and rpcinfo reaches them there; with --nlm-port and --nsm-port each at its own port;
#  (2) an rpcbind that is killed is noticed and reported by /readyz; one that is started anew, also
#      with a delay, gets the registration again; an rpcbind that comes late is used, and a silent
#      one delays nothing;
#  (3) a foreign registration ends the start with 71 before the store is touched, and the message
#      names program, protocol, port and owner (U11, U12): another server, a real rpc.statd, also
#      one that died and left its entries; --force takes them over;
#  (4) a server whose registration was taken over says so and does not fight; when the other one
#      stops, the registration is restored by the check that is made every 30 s;
#  (5) SIGTERM removes our entries and nobody else's (U31);
#  (6) without its unix socket rpcbind is used over loopback; --rpcbind system without an rpcbind
#      ends with 69, and so does --rpcbind embedded beside one;
#  (7) without an rpcbind we answer on port 111 in versions 2, 3 and 4; other hosts can ask, but
#      not register;
#  (8) all of this works without a single file in /etc (U10).
# shellcheck disable=SC2317 # expect and wait_until call functions by their names
set -u
if [ -z "${HOLDFAST_IN_NAMESPACE:-}" ]; then
    for tool in ip rpcbind rpcinfo setpriv; do
        if ! unshare -n -m true 2> /dev/null || ! command -v "$tool" > /dev/null; then
            echo "SKIP rpcbind.sh: it needs root (for unshare) and $tool" \
                "(Debian: iproute2 rpcbind util-linux)"
            exit 77
        fi
    done
    HOLDFAST_IN_NAMESPACE=1 exec unshare -n -m "$0"
fi
. "$(dirname "$0")/lib.sh"

ip link set lo up
ip address add 10.77.0.1/32 dev lo
mount -t tmpfs tmpfs /run
mkdir -m 777 /run/rpcbind # rpcbind gives up root before it writes there what -w reads
common=(--http 127.0.0.1:12080 --grace 5)
other=(--http off --grace 5)
rpcbind_pid=

start_rpcbind() {
    rm -f /run/rpcbind.sock # a leftover would look as if it were there
    rpcbind -f "$@" 2> "$work/rpcbind.log" &
    rpcbind_pid=$!
    server_pids+=("$rpcbind_pid")
    wait_until rpcinfo > /dev/null 2>&1
}

stop_rpcbind() {
    kill "-$1" "$rpcbind_pid"
    wait "$rpcbind_pid" 2> /dev/null
}

# program/version/netid:address of every entry of our programs, in one line.
entries() {
    rpcinfo 2> /dev/null | awk '$1 == 100021 || $1 == 100024 { print $1 "/" $2 "/" $3 ":" $4 }' |
        sort | xargs
}
others() { rpcinfo | awk '$1 != 100021 && $1 != 100024' | sort; }
entries_of() { # PROGRAM/VERSION PORT
    local tail=$(($2 / 256)).$(($2 % 256))
    echo "$1/tcp6:::.$tail $1/tcp:0.0.0.0.$tail $1/udp6:::.$tail $1/udp:0.0.0.0.$tail"
}
expected() { # PORT [PORT_OF_NSM]
    local version
    for version in 1 3 4; do
        entries_of "100021/$version" "$1"
    done | xargs
    entries_of 100024/1 "${2:-$1}"
}
is_registered() { [ "$(entries)" = "$(expected "$1" | xargs)" ]; }
ready() { # the answer of /readyz
    exec 9<> /dev/tcp/127.0.0.1/12080 || return
    printf 'GET /readyz HTTP/1.0\r\nHost: 127.0.0.1:12080\r\n\r\n' >&9
    cat <&9
    exec 9>&-
}
quiet() { "$@" > /dev/null; }
ready_says() { ready 2> /dev/null | grep -q -- "$1"; }

# (1)
start_rpcbind
before=$(others)
start first "${common[@]}" --port 12049 --store "lmdb:$work/first" || finish
expect "registered" wait_until is_registered 12049
expect "rpcinfo -p shows it" matches "$(rpcinfo -p | xargs)" \
    "100024 1 tcp 12049 .*100024 1 udp 12049"
for netid in tcp udp; do
    for program in "100024 1" "100021 1" "100021 3" "100021 4"; do
        # shellcheck disable=SC2086 # program and version are two words
        expect "$program reached over $netid" quiet rpcinfo -T "$netid" 127.0.0.1 $program
        # shellcheck disable=SC2086
        expect "$program reached over ${netid}6" quiet rpcinfo -T "${netid}6" ::1 $program
    done
done
expect "version 2 is not offered" matches "$(rpcinfo -T tcp 127.0.0.1 100021 2 2>&1)" \
    "low version = 1, high version = 4"
expect "/readyz" wait_until ready_says "200 OK"
first_pid=$pid

# (3) Nothing is changed in rpcbind, and no state number is used.
run_to_end second "${other[@]}" --port 12050 --store "lmdb:$work/second"
expect "exit 71" same "$code" 71
expect "the message names what was found" log_has "$work/second.log" \
    'program 100024 version 1 on tcp port 12049 (owner superuser), on udp port 12049'
expect "and what to do" log_has "$work/second.log" "--force"
expect "nothing was changed" is_registered 12049
expect "the store was not touched" test ! -e "$work/second"

# (2)
stop_rpcbind KILL
expect "the loss is noticed" log_has "$work/first.log" "registration lost"
expect "/readyz says so" wait_until ready_says "not ready: registration lost: no rpcbind is running"
expect "clients that know the port are served" same "$("$PEER" 127.0.0.1 12049 stat x)" \
    "succ $state"
start_rpcbind
expect "registered again" wait_until is_registered 12049
expect "/readyz" wait_until ready_says "200 OK"
expect "the log says so" log_has "$work/first.log" "registered with rpcbind again: 16 entries"

# (4) rpcbind keeps what it knows over this restart (-w); closing makes the first server look.
stop_rpcbind TERM
start_rpcbind -w
expect "registered" wait_until is_registered 12049
start taker "${other[@]}" --port 12050 --store memory: --force || finish
expect "--force took it over" wait_until is_registered 12050
taker_pid=$pid
stop_rpcbind TERM
start_rpcbind -w
expect "the first one notices" log_has "$work/first.log" \
    "another server took over our registration: .* on tcp port 12050"
expect "/readyz names it" wait_until ready_says "another server took over our registration"
expect "and does not fight" is_registered 12050
pid=$taker_pid
stop TERM
expect "the other one ends with 0" same "$code" 0
expect "and takes its entries along" same "$(entries)" ""
expect "the periodic check restores ours" wait_until is_registered 12049

# (5)
pid=$first_pid
stop TERM
expect "it ends with 0" same "$code" 0
expect "our entries are gone" same "$(entries)" ""
expect "the others are there" same "$(others)" "$before"

# (3) with the program that has this number on most machines
if command -v rpc.statd > /dev/null; then
    mount -t tmpfs tmpfs /var/lib/nfs
    mkdir -p /var/lib/nfs/sm /var/lib/nfs/sm.bak
    statd_is_registered() { [ "$(entries)" = "$(entries_of 100024/1 662)" ]; }
    statd_has_tried() { statd_is_registered || [[ $(entries) = *100024/1/tcp6:* ]]; } # the last of them
    # It takes a reserved port at random for its own calls: if that is 662 it goes on with three entries.
    for _ in 1 2 3; do
        rpc.statd --no-notify -F -p 662 > "$work/statd.log" 2>&1 &
        statd_pid=$!
        server_pids+=("$statd_pid")
        wait_until statd_has_tried
        ! statd_is_registered || break
        kill -KILL "$statd_pid"
        wait "$statd_pid" 2> /dev/null
        rpcinfo -d 100024 1
    done
    expect "rpc.statd is registered" statd_is_registered
    run_to_end statd "${other[@]}" --port 12049 --store memory:
    expect "exit 71 beside rpc.statd" same "$code" 71
    expect "its port is named" log_has "$work/statd.log" "on udp port 662"
    kill -KILL "$statd_pid"
    wait "$statd_pid" 2> /dev/null
    run_to_end dead "${other[@]}" --port 12049 --store memory:
    expect "exit 71 also when it left its entries" same "$code" 71
    start heir "${other[@]}" --port 12049 --store memory: --force || finish
    expect "--force takes them" wait_until is_registered 12049
    stop TERM
    expect "our entries are gone" same "$(entries)" ""
else
    echo "not shown: rpc.statd is not installed"
fi

# (1) with two ports
start split "${other[@]}" --nlm-port 4045 --nsm-port 662 --store memory: || finish
expect "each at its own port" same "$(entries)" "$(expected 4045 662 | xargs)"
expect "the line says where locks are" same "$port" 4045
expect "the log says where the other is" log_has "$work/split.log" "has its own port port=662"
expect "the lock manager is reached" quiet rpcinfo -T tcp 127.0.0.1 100021 4
expect "the status monitor is reached" quiet rpcinfo -T udp 127.0.0.1 100024 1
stop TERM
expect "our entries are gone" same "$(entries)" ""

# A server that was killed leaves entries of its own port: the next one finds them and goes on.
start killed "${other[@]}" --port 12049 --store memory: || finish
stop KILL
expect "entries are left" wait_until is_registered 12049

# (8) with rpcbind; (6) over loopback
bare=$work/bare
cat > "$bare" << BARE
#!/bin/sh
exec unshare -m sh -c 'mount -t tmpfs tmpfs /etc && exec "\$0" "\$@"' "$HOLDFAST" "\$@"
BARE
chmod 755 "$bare"
holdfast=$HOLDFAST
HOLDFAST=$bare
start bare "${other[@]}" --port 12049 --store memory: --rpcbind system || finish
HOLDFAST=$holdfast
expect "registered without /etc" wait_until is_registered 12049
stop TERM
expect "and unregistered" same "$(entries)" ""

mv /run/rpcbind.sock /run/hidden.sock
start loopback "${other[@]}" --port 12049 --store memory: || finish
mv /run/hidden.sock /run/rpcbind.sock
expect "registered over loopback" wait_until is_registered 12049
expect "the log says how" log_has "$work/loopback.log" "rpcbind at 127.0.0.1 port 111"
run_to_end taken "${other[@]}" --port 0 --store memory: --rpcbind embedded
expect "exit 69: port 111 is taken" same "$code" 69
expect "the message says by whom" log_has "$work/taken.log" "stop the rpcbind that uses it"
stop TERM
expect "and unregistered" same "$(entries)" ""

start off "${other[@]}" --port 12049 --store memory: --rpcbind off || finish
expect "off registers nothing" same "$(entries)" ""
stop TERM

# launch NAME OPTION...: a server that is not ready, because no client could find it.
launch() {
    local name=$1
    shift
    "$HOLDFAST" serve "$@" 2> "$work/$name.log" > "$work/$name.out" < /dev/null &
    pid=$!
    server_pids+=("$pid")
    wait_until log_has "$work/$name.log" "not registered"
}
not() { ! "$@"; }
has_line() { grep -q '^holdfast: ready on port' "$1"; }

# (2) A server waits for an rpcbind that is there and silent, and says so; it can be stopped.
kill -STOP "$rpcbind_pid"
launch silent "${common[@]}" --port 12049 --store memory:
expect "the log says so" log_has "$work/silent.log" "not registered: rpcbind does not answer"
expect "and what waits for it" log_has "$work/silent.log" "the grace period and notifications do not start"
expect "/readyz says so" wait_until ready_says "not ready: not registered"
expect "it is not ready" not has_line "$work/silent.out"
stop TERM
expect "the stop does not wait for it" test "$took_ms" -lt 20000
expect "which ends with 0" same "$code" 0
launch silent "${common[@]}" --port 12049 --store memory:
kill -CONT "$rpcbind_pid"
expect "registered when it answers" wait_until is_registered 12049
expect "and ready" wait_until has_line "$work/silent.out"
expect "/readyz" wait_until ready_says "200 OK"
stop TERM
expect "our entries are gone" same "$(entries)" ""

# (6) none at all
stop_rpcbind TERM
run_to_end none "${other[@]}" --port 0 --store memory: --rpcbind system
expect "exit 69: there is no rpcbind" same "$code" 69
expect "the message says so" log_has "$work/none.log" "no rpcbind is running"

# (2) A server that may not serve port 111 waits, says so, and uses an rpcbind that comes late. No
# time of its grace passes before.
cp "$holdfast" "$(command -v holdfastd)" "$work"
chmod 755 "$work" "$work/holdfast" "$work/holdfastd"
cat > "$work/nobody" << NOBODY
#!/bin/sh
exec setpriv --reuid=65534 --regid=65534 --clear-groups --bounding-set=-all --no-new-privs \
    "$work/holdfast" "\$@"
NOBODY
chmod 755 "$work/nobody"
HOLDFAST=$work/nobody
began=$(milliseconds)
launch nobody "${common[@]}" --port 12049 --store memory: --assume-lost --grace 2
HOLDFAST=$holdfast
expect "the log says so" log_has "$work/nobody.log" "not registered: no rpcbind is running"
expect "/readyz says so" wait_until ready_says "not ready: not registered"
grace_is_over() { grep -q "grace period ended" "$work/nobody.log"; }
is_later_than() { [ $(($(milliseconds) - began)) -gt "$1" ]; }
wait_until is_later_than 5000
expect "it is not ready" not has_line "$work/nobody.out"
expect "grace is not over though its time would be" not grace_is_over
start_rpcbind
expect "registered" wait_until is_registered 12049
expect "ready, with all of its grace" wait_until grep -q 'grace 2 s)$' "$work/nobody.out"
expect "which ends" wait_until grace_is_over
expect "/readyz" wait_until ready_says "200 OK"
stop TERM
expect "our entries are gone" same "$(entries)" ""
stop_rpcbind TERM
rm -f /run/rpcbind.sock

# A version 2 call of the portmapper's procedure $2 at address $1; prints the word it returns.
pmap() { # ADDRESS PROCEDURE PROGRAM VERSION PROTOCOL PORT
    local word call='\x80\x00\x00\x38'
    for word in 1 0 2 100000 2 "$2" 0 0 0 0 "$3" "$4" "$5" "$6"; do
        call+=$(printf '\\x%02x\\x%02x\\x%02x\\x%02x' $((word >> 24 & 255)) $((word >> 16 & 255)) \
            $((word >> 8 & 255)) $((word & 255)))
    done
    exec 9<> "/dev/tcp/$1/111" || return
    printf '%b' "$call" >&9
    timeout 60 head -c 32 <&9 | tail -c 4 | od -An -t d4 --endian=big | xargs
    exec 9>&-
}

# (7), (8)
HOLDFAST=$bare
start embedded "${other[@]}" --port 12049 --store memory: || finish
HOLDFAST=$holdfast
expect "the log says so" log_has "$work/embedded.log" "serving port 111 ourselves"
expect "rpcinfo -p" matches "$(rpcinfo -p 127.0.0.1 | xargs)" \
    "100000 2 tcp 111 .*100024 1 tcp 12049 status 100024 1 udp 12049"
expect "rpcinfo -s" matches "$(rpcinfo -s 127.0.0.1 | xargs)" "100024 1 udp6,tcp6,udp,tcp"
expect "and the lock manager" matches "$(rpcinfo -s 127.0.0.1 | xargs)" \
    "100021 4,3,1 udp6,tcp6,udp,tcp"
expect "rpcinfo -t" rpcinfo -t 127.0.0.1 100024 1
expect "rpcinfo -u" rpcinfo -u 127.0.0.1 100024 1
expect "reached over tcp6" rpcinfo -T tcp6 ::1 100024 1
expect "reached over udp6" rpcinfo -T udp6 ::1 100024 1
expect "version 4 at another address" rpcinfo -a 10.77.0.1.0.111 -T tcp 100000 4
expect "another version is not registered" matches \
    "$(rpcinfo -t 127.0.0.1 100024 2 2>&1)" "not registered"

expect "another host asks" same "$(pmap 10.77.0.1 3 100024 1 6 0)" 12049
expect "another host cannot register" same "$(pmap 10.77.0.1 1 100005 3 6 2000)" 0
expect "the log says so" log_has "$work/embedded.log" "for another host"
expect "nothing was registered" same "$(pmap 127.0.0.1 3 100005 3 6 0)" 0
expect "this machine registers" same "$(pmap 127.0.0.1 1 100005 3 6 2000)" 1
expect "and finds it" same "$(pmap 10.77.0.1 3 100005 3 6 0)" 2000
expect "not for another protocol" same "$(pmap 10.77.0.1 3 100005 3 17 0)" 0
expect "nor another version" same "$(pmap 10.77.0.1 3 100005 2 6 0)" 0
expect "another host cannot remove it" same "$(pmap 10.77.0.1 2 100005 3 6 0)" 0
expect "this machine can" same "$(pmap 127.0.0.1 2 100005 3 6 0)" 1
expect "but not ours" same "$(pmap 127.0.0.1 2 100024 1 6 0)" 0
expect "ours is there" same "$(pmap 127.0.0.1 3 100024 1 17 0)" 12049

# A second server finds the first one's portmapper as if it were the system's.
run_to_end beside "${other[@]}" --port 0 --store memory:
expect "exit 71 beside another holdfast" same "$code" 71
expect "which is named" log_has "$work/beside.log" "on tcp port 12049 (owner holdfast)"
stop TERM
expect "it ends with 0" same "$code" 0
start again "${other[@]}" --port 12049 --store memory: --rpcbind embedded || finish
expect "port 111 is served again" same "$(pmap 127.0.0.1 3 100024 1 6 0)" 12049
stop TERM
finish
