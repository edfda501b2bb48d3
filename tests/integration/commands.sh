#!/bin/bash
# commands.sh -- the commands in the documents for administrators, typed as they are written.
#
# Passing proves:
#  (1) each of them is in the list below: typed here, by the test that is named, or an example, with
#      the reason; a new one in a document fails this test until somebody has decided;
#  (2) those of getting-started.md, http.md, install.md, recovery.md, files.md and embedding.md do what
#      the documents say, with the default places and ports, and the log of a restart is the one in
#      install.md;
#  (3) the takeover hook of groups and what its unit does at the end (high-availability.md) move an
#      address, and a process that ends late does not remove it; the configurations there are accepted;
#      the database is made, filled, asked who serves what, and rid of a session as that page says;
#  (4) every command that troubleshooting.md advises, in the middle of a sentence or a table, helps with
#      what it is advised for; the sentences and metrics it names are those of the programs, and the
#      exit codes those of the manual.
#
# (2) to (4) need root: default places are below file systems of the test's own, in a mount, pid and
# network namespace, with a client in another network.
# shellcheck disable=SC2317,SC2016,SC1003 # called by their names; text of documents
set -u
docs=$(cd "$(dirname "$0")/../../docs" && pwd)
contrib=$(cd "$(dirname "$0")/../../contrib" && pwd)
self=$(realpath "$0")
HOLDFAST=$(realpath "$HOLDFAST")
PEER=$(realpath "$PEER")
PATH=$(realpath "$(dirname "$HOLDFAST")/../daemon"):$PATH # as if installed
export HOLDFAST PEER PATH
. "$(dirname "$self")/lib.sh"

# A line is "page|where|command", without the comment behind it; a fenced block is #N.
list() {
    cat << 'END'
getting-started|package|make deb && apt install ./build/deb/holdfast_*.deb
getting-started|here|holdfast serve --check-config
getting-started|here|holdfast serve
getting-started|example: no systemd here|systemctl enable --now holdfastd
getting-started|here|holdfast status
getting-started|here|rpcinfo -p localhost
getting-started|here|holdfast exports
getting-started|here|holdfast check-client web1
http|here|curl -N http://127.0.0.1:12080/api/v1/events
install|package|make deb
install|package|apt install ./build/deb/holdfast_*.deb
install|example: no systemd here|systemctl enable --now holdfastd
install|here|holdfast status
install|here|serving locks port=12049 store="lmdb:/var/lib/holdfast" epoch=3 state=5 clients=1 locks=1 grace_seconds=90
install|here|a client finished reclaiming its locks from=192.0.2.7 name="web1" reclaimed="1 of 1"
install|here|grace period ended: every stored lock was reclaimed or released
install|example: no systemd here|systemctl stop holdfastd
install|here|cp -a /var/lib/holdfast /var/lib/holdfast.before
install|here|rm -r /var/lib/holdfast /var/lib/private/holdfast
containers|package|make deb
containers|example: package does the same without podman|podman build -t holdfast -f contrib/Containerfile build/deb
containers|example: package does the same without podman|podman run -d --name holdfast --network host -v holdfast:/var/lib/holdfast -v /run/rpcbind.sock:/run/rpcbind.sock holdfast
containers|example: package does the same without podman|podman exec holdfast holdfast status
containers|example: package does the same without podman|podman kill --signal HUP holdfast
containers|here|#1
files|here|holdfast serve --export '/srv/files *(rw)'
files|realclient|mount -t nfs -o vers=3 server:/srv/files /mnt
files|here|# directory     clients, each with its own options
files|here|/srv/files      10.0.0.0/8(rw)  backup.example.org(ro,no_root_squash)
files|here|/srv/scratch    *(rw,async)
files|here|"/srv/with space"  2001:db8::/64(rw,fsid=7) \
files|here|holdfast exports
files|here|holdfast locks
files|here|holdfast locks --path /srv/files/mail
files|here|holdfast locks --export /srv/files --sort age --limit 20
files|files_samba|posix locking = yes
files|files_samba|kernel oplocks = yes
files|here|holdfast reload
files|units|[Service]
recovery|example: part of the output of status|grace     84 s left, waiting for 2 locks of 2 clients:
recovery|drawing|#1
recovery|drawing|#2
recovery|drawing|#3
recovery|here|holdfast store export /var/backups/locks.json
recovery|here|holdfast store import /var/backups/locks.json --store lmdb:/var/lib/holdfast
recovery|here|holdfast serve --assume-lost
security|pages|#1
security|pages|#2
security|example: no firewalld here|firewall-cmd --permanent --new-service=holdfast
security|example: no firewalld here|firewall-cmd --permanent --service=holdfast --add-port=12049/tcp --add-port=12049/udp
security|example: no firewalld here|firewall-cmd --permanent --zone=internal --add-service=holdfast --add-service=rpc-bind --add-service=nfs3
security|example: no firewalld here|firewall-cmd --reload
sizing|pages|grep -E 'VmSize|VmRSS' /proc/$(cat /var/lib/holdfast/lock)/status
sizing|pages|du -sh /var/lib/holdfast
sizing|pages|ls /proc/$(cat /var/lib/holdfast/lock)/fd | wc -l
embedding|here|holdfast serve --control /run/holdfast/control.sock --tracker-group smbd --window smb=300
embedding|units|[Service]
embedding|libholdfast|cc server.c $(pkg-config --cflags --libs --static libholdfast)
embedding|libholdfast|#1
high-availability|here|#1
high-availability|here|#2
high-availability|here|#3
high-availability|units|#4
high-availability|example: no keepalived here|#5
high-availability|example: no Pacemaker here|#6
high-availability|here|#7
high-availability|here|#8
high-availability|units|#9
high-availability|here|#10
high-availability|here|#11
high-availability|here|#12
high-availability|promotion|#13
high-availability|here|#14
END
}

# found PAGE: what the document has. Of an indented block of a unit the heading stands for all.
found() {
    awk -v page="$1" '
        /^```/ { inside = !inside; if (inside) print page "|#" ++count; next }
        inside { next }
        in_unit && /^    / { next }
        { in_unit = 0 }
        /^    [^ ]/ {
            sub(/^    /, ""); if (!/^#/) sub(/ +# .*$/, ""); print page "|" $0
            in_unit = $0 == "[Service]"
        }' "$docs/$1.md"
}

# ---- inside the namespaces ----

# typed PAGE COMMAND: prints it, and notes that it was; it must be in the list and in the document.
typed() {
    grep -qxF "$1|here|$2" <(list) || { echo "FAILED: $1 has no '$2'" >&2; return 1; }
    echo "$1|$2" >> "$work/typed"
    printf '%s\n' "$2"
}

# run PAGE COMMAND: as typed. Sets output and code.
run() {
    local words
    words=$(typed "$@") || exit 1
    output=$(eval "$words" 2>&1 < /dev/null)
    code=$?
}
works() { run "$1" "$2"; expect "$1: $2" same "$code" 0; }
holdfast() { "$HOLDFAST" "$@"; }

# serve PAGE COMMAND NAME: the same in the background, until it is ready. Sets pid.
serve() {
    local words
    words=$(typed "$1" "$2") || exit 1
    : > "$work/$3.out"
    eval "exec \"\$HOLDFAST\" ${words#holdfast }" > "$work/$3.out" 2> "$work/$3.log" < /dev/null &
    pid=$!
    server_pids+=("$pid")
    expect "$1: $2 is ready" wait_until is_ready_or_gone "$work/$3.out" "$pid"
    expect "$1: $2 serves" grep -q "$ready_line" "$work/$3.out" || cat "$work/$3.log"
}
client() { nsenter --target "$network" --net "$PEER" -s 192.0.2.7 -n web1 192.0.2.1 "$@"; }
block() { awk -v wanted="$2" '/^```/ { inside = !inside; count += inside; next } inside && count == wanted' "$docs/$1.md"; }

make_places() {
    mount -t tmpfs tmpfs /var/lib && mount -t tmpfs tmpfs /var/backups && mount -t tmpfs tmpfs /srv &&
        mount -t tmpfs tmpfs /run || return
    printf '127.0.0.1 localhost\n192.0.2.7 web1\n192.0.2.8 backup.example.org\n127.0.0.1 db\n' > "$work/hosts"
    { cat /etc/group; echo 'smbd:x:61999:'; } > "$work/group"
    printf 'hosts: files\ngroup: files\npasswd: files\n' > "$work/nsswitch"
    mount --bind "$work/hosts" /etc/hosts && mount --bind "$work/group" /etc/group &&
        mount --bind "$work/nsswitch" /etc/nsswitch.conf || return
    unshare --net tail -f /dev/null &
    server_pids+=($!)
    network=$!
    other_network() { [ "$(readlink /proc/self/ns/net)" != "$(readlink "/proc/$network/ns/net")" ]; }
    wait_until other_network || return
    ip link set lo up && ip link add eth0 type veth peer name eth1 netns "$network" &&
        ip addr add 192.0.2.1/24 dev eth0 && ip link set eth0 up || return
    nsenter --target "$network" --net sh -c 'ip link set lo up && ip addr add 192.0.2.7/24 dev eth1 && ip link set eth1 up'
}

try_first_steps() {
    works getting-started 'holdfast serve --check-config'
    expect "the default store" matches "$output" 'store = lmdb:/var/lib/holdfast'
    serve getting-started 'holdfast serve' first
    works getting-started 'holdfast status'
    nsenter --target "$network" --net "$PEER" -s 192.0.2.7 -n web1 192.0.2.1 12049 keep mail 0 100 > "$work/web1.out" 2>&1 &
    web1=$!
    server_pids+=("$web1")
    expect "a lock" log_has "$work/web1.out" '^granted'
    works getting-started 'rpcinfo -p localhost'
    expect "the lock manager" matches "$output" '100021 +4 +tcp +12049 +nlockmgr'
    expect "the status monitor" matches "$output" '100024 +1 +tcp +12049 +status'
    works getting-started 'holdfast check-client web1'
    expect "the client can be called" matches "$output" 'OK: notifications and callbacks work'
    works install 'holdfast status'
    eval "$(typed http 'curl -N http://127.0.0.1:12080/api/v1/events')" > "$work/events" 2> /dev/null &
    server_pids+=($!)
    expect "events" log_has "$work/events" '^event: status'
    typed containers '#1' > /dev/null
    for at in $(block containers 1 | sed -n 's|.*path: \(/[a-z]*\),.*|\1|p'); do
        expect "containers: the probe $at" curl -fsS -o /dev/null "http://127.0.0.1:12080$at"
    done
    read -r -a arguments < <(block containers 1 | sed -n 's/.*args: \[\(.*\)\]$/\1/p' | tr -d '",')
    expect "containers: the options" [ "${#arguments[@]}" -eq 4 ]
    expect "containers: are options" "$HOLDFAST" serve "${arguments[@]//\/etc/$contrib}" --check-config > /dev/null
    works recovery 'holdfast store export /var/backups/locks.json'
    stop TERM
    expect "it ends well" same "$code" 0
    works install 'cp -a /var/lib/holdfast /var/lib/holdfast.before'
    # With the client there, and with the log that the page promises.
    serve getting-started 'holdfast serve' second
    expect "the client comes back" log_has "$work/web1.out" 'reclaimed'
    while read -r line; do
        line=$(typed install "$line" | sed 's/epoch=[0-9]* state=[0-9]*/epoch=[0-9]* state=[0-9]*/')
        expect "install: the log" log_has "$work/second.log" "$line"
    done << 'END'
serving locks port=12049 store="lmdb:/var/lib/holdfast" epoch=3 state=5 clients=1 locks=1 grace_seconds=90
a client finished reclaiming its locks from=192.0.2.7 name="web1" reclaimed="1 of 1"
grace period ended: every stored lock was reclaimed or released
END
    stop TERM
}

try_backup() {
    mkdir -p /var/lib/private/holdfast
    works install 'rm -r /var/lib/holdfast /var/lib/private/holdfast'
    works recovery 'holdfast store import /var/backups/locks.json --store lmdb:/var/lib/holdfast'
    serve recovery 'holdfast serve --assume-lost' restored
    expect "with the lock" matches "$(cat "$work/restored.out")" '1 client, 1 lock, '
    expect "it knows that more may be missing" log_has "$work/restored.log" 'may have lost records'
    stop TERM
}

# advised COMMAND [AS]: a command of troubleshooting.md, typed with names of ours in place of the page's.
advised() {
    grep -qF "\`$1\`" "$docs/troubleshooting.md" || { echo "FAILED: troubleshooting has no '$1'" >&2; exit 1; }
    echo "$1" >> "$work/advised"
    output=$(eval "${2-$1}" 2>&1 < /dev/null)
    code=$?
}
helps() { expect "troubleshooting: $1: $output" same "$code" "$2" && expect "troubleshooting: $1" matches "$output" "$3"; }
neighbour() { "$PEER" -s 192.0.2.1 -n db1 192.0.2.1 12049 "$@"; }

try_troubleshooting() {
    rm -rf /var/lib/holdfast
    kill -KILL "$web1" # its host is up, and nothing answers there
    serve getting-started 'holdfast serve' trouble
    expect "a lock of a client that goes" same "$(client 12049 lock mail 0 100)" granted
    stop KILL
    serve getting-started 'holdfast serve' recovering
    advised 'holdfast status' # whether that needs attention is known when the client could not be reached
    expect "troubleshooting: status" matches "$output" 'clients   1 lock client,.*waiting for 1 lock of 1 client'
    advised 'holdfast drill' && helps drill 1 'web1 +192\.0\.2\.7'
    advised 'holdfast check-client ADDRESS' 'holdfast check-client 192.0.2.7' && helps check-client 1 'rpcbind|port 111|portmapper'
    advised 'holdfast end-grace' 'holdfast end-grace --yes' && helps end-grace 0 'Grace period ended'
    expect "a lock whose holder is dead" same "$(client 12049 lock mail 0 100)" granted
    neighbour wait mail 50 10 > "$work/neighbour" 2>&1 &
    server_pids+=($!)
    expect "a client waits for it" log_has "$work/neighbour" '^waiting'
    advised 'holdfast locks --waiting' && helps 'locks --waiting' 0 'db1 .* c[0-9]+ '
    advised 'holdfast release CLIENT' 'holdfast release web1 --yes' && helps release 0 'released 1 lock'
    expect "it has the lock" log_has "$work/neighbour" '^granted'
    advised 'holdfast move' 'holdfast move --help' && helps move 0 'move CLIENT ADDRESS'
    advised 'holdfast exports' && helps exports 0 'export'
    advised 'holdfast reload' && helps reload 0 'Nothing to change'
    advised 'rpcinfo -p localhost' && helps 'rpcinfo -p' 0 '100021 +4 +tcp +12049'
    advised 'rpcinfo -T tcp server 100021 4' "nsenter --target $network --net rpcinfo -T tcp 192.0.2.1 100021 4" &&
        helps 'rpcinfo -T' 0 'ready and waiting'
    advised 'ss -tulpn' && helps ss 0 ':12049 .*holdfastd'
    expect "troubleshooting: each command was tried" diff <(grep -oE '`(holdfast [a-z]|rpcinfo |ss )[^`]*`' \
        "$docs/troubleshooting.md" | tr -d '`' | sort -u) <(sort -u "$work/advised")
    curl -s http://127.0.0.1:12080/metrics > "$work/metrics"
    for name in $(grep -oE '`(holdfast|nlm)_[a-z_]+`' "$docs/troubleshooting.md" | tr -d '`' | sort -u); do
        expect "troubleshooting: $name is a metric" grep -q "^# TYPE $name " "$work/metrics"
    done
    stop TERM
    "$HOLDFAST" serve --help > "$work/manual"
    holdfastd --manual >> "$work/manual"
    while read -r number; do
        expect "troubleshooting: $number is an exit code" grep -qw "$number" "$work/manual"
    done < <(sed -n 's/^| \([0-9]*\) | .*/\1/p' "$docs/troubleshooting.md")
}

# What others say: kernels of clients, their mount command and C library.
is_of_others() {
    case $1 in
    lockd:* | 'No locks available' | 'Permission denied' | 'Stale file handle' | 'spurious grace period reject' | \
        'access denied by server while mounting' | 'kernel oplocks = yes') ;;
    *) return 1 ;;
    esac
}
# Sentences in back quotes; the programs have them word by word, up to what is not always the same.
try_sentences() {
    while read -r sentence; do
        is_of_others "$sentence" && continue
        expect "troubleshooting: '$sentence' is a sentence of ours" grep -qaF -- "$(sed 's/^not registered: //; s/ DIR:.*//; s/CAP_.*//; s/ \.\.\.$//' <<< "$sentence")" \
            "$(command -v holdfastd)" "$HOLDFAST"
    done < <(awk -F '`' '{ for (i = 2; i <= NF; i += 2) if ($i ~ / .* / && $i !~ /^(holdfast [a-z]|rpcinfo )/) print $i }' \
        <(tr '\n' ' ' < "$docs/troubleshooting.md"))
}

try_files() {
    rm -r /var/lib/holdfast # else there is a grace period
    mkdir /srv/files /srv/scratch '/srv/with space' && echo text > /srv/files/mail || return
    serve files "holdfast serve --export '/srv/files *(rw)'" files
    handle=$(client 2049 files /srv/files stat mail | sed -n 's/.* handle \([0-9a-f]*\).*/\1/p')
    expect "a lock" same "$(client 12049 lock "hex:$handle" 0 100)" granted
    works getting-started 'holdfast exports'
    works files 'holdfast exports'
    expect "the directory" matches "$output" '/srv/files'
    for command in 'holdfast locks' 'holdfast locks --path /srv/files/mail' \
        'holdfast locks --export /srv/files --sort age --limit 20'; do
        works files "$command"
        expect "$command: the lock" matches "$output" 'web1.*/srv/files/mail|/srv/files/mail.*web1'
    done
    works files 'holdfast reload'
    stop TERM
    # The lines of exports(5), the one that continues with all of it.
    sed -n '/^    # directory /,/^$/s/^    //p' "$docs/files.md" > "$work/exports"
    for line in '# directory     clients, each with its own options' \
        '/srv/files      10.0.0.0/8(rw)  backup.example.org(ro,no_root_squash)' '/srv/scratch    *(rw,async)' \
        '"/srv/with space"  2001:db8::/64(rw,fsid=7) \'; do
        expect "files: $line" grep -qxF "$(typed files "$line")" "$work/exports"
    done
    start lines --exports "$work/exports" --port 0 --nfs-port 0 --http off --no-rpcbind --store "lmdb:$work/lines"
    expect "all of them are served" same "$(HOLDFAST_CONTROL=$work/lines/control.sock holdfast exports | grep -c '^/srv/')" 3
    stop TERM
}

try_tracker() {
    mkdir -m 711 /run/holdfast
    serve embedding 'holdfast serve --control /run/holdfast/control.sock --tracker-group smbd --window smb=300' tracker
    expect "the socket is the group's" same "$(stat -c '%a %g' /run/holdfast/control.sock)" '660 61999'
    stop TERM
}

has_address() { ip -o addr show dev eth0 | grep -q " $1/24 "; }
# hook INSTANCE GROUP, and the end of the unit's process.
hook() { INSTANCE=$1 HOLDFAST_GROUP=$2 PATH=$work/bin:$PATH sh "$work/hook"; }
unit_ends() { sed -n 's/^ExecStopPost=-//p' "$work/template" | sed "s/%i/$1/g" > "$work/end" && sh "$work/end"; }

try_hooks() {
    mkdir -p "$work/bin" /run/holdfast
    # It announces an address to a network that is not there.
    command -v arping > /dev/null || printf '#!/bin/sh\necho "$*" >>%s/arping\n' "$work" > "$work/bin/arping"
    [ ! -e "$work/bin/arping" ] || chmod 755 "$work/bin/arping"
    typed high-availability '#3' > /dev/null
    block high-availability 3 > "$work/hook"
    expect "the hook of a pair" hook 1 ''
    expect "moves the address" has_address 192.0.2.10
    ip addr del 192.0.2.10/24 dev eth0
    typed high-availability '#8' > /dev/null
    block high-availability 8 > "$work/hook"
    block high-availability 9 > "$work/template"
    expect "the hook of groups" hook 1 web
    expect "moves the address of its group" has_address 192.0.2.10
    expect "another group" hook 2 home
    expect "has another address" has_address 192.0.2.20
    expect "the next process of the first group" hook 3 web
    unit_ends 1
    expect "one that ends late leaves the address to it" has_address 192.0.2.10
    unit_ends 3
    expect "its own end removes it" eval '! has_address 192.0.2.10'
    expect "and no other" has_address 192.0.2.20
    expect "an unknown group is refused" eval '! hook 1 nobody'
}

try_configurations() {
    for number in 2 7; do
        typed high-availability "#$number" > /dev/null
        block high-availability "$number" > "$work/ha.conf"
        output=$("$HOLDFAST" serve --config "$work/ha.conf" --check-config 2>&1)
        code=$?
        if [[ $output == *'built without'* ]]; then
            echo "not shown: configurations of a shared store, without PostgreSQL"
            continue
        fi
        expect "high-availability: configuration $number: $output" same "$code" 0
    done
}

# as_nobody COMMAND...: PostgreSQL does not run as root.
as_nobody() { setpriv --reuid 65534 --regid 65534 --clear-groups "$@"; }
make_database() {
    local bin
    bin=$(dirname "$(find /usr/lib/postgresql -name initdb 2> /dev/null | sort -V | tail -n 1)")
    chmod 711 "$work"
    install -d -o 65534 -g 65534 "$work/database" /run/postgresql || return
    (cd / && as_nobody "$bin/initdb" --no-sync -A trust -U root -D "$work/database") > "$work/initdb" 2>&1 || return
    (cd / && as_nobody "$bin/postgres" -D "$work/database" -k /run/postgresql -c fsync=off) > "$work/postgres" 2>&1 &
    server_pids+=($!)
    wait_until psql -d postgres -qc 'SELECT 1' > /dev/null 2>&1
}
# typed_block N: each line of a fenced block is a command.
typed_block() {
    typed high-availability "#$1" > /dev/null
    while read -r line; do
        # Without a terminal the password is read from here, and asked for twice.
        printf 'secret\nsecret\n' | setsid -w bash -c "holdfast() { \"\$HOLDFAST\" \"\$@\"; }; $line" > "$work/block" 2>&1
        expect "high-availability: $line" same $? 0 || cat "$work/block"
    done < <(block high-availability "$1")
}
# ends_session N: the SQL of that block ends one.
ends_session() {
    typed high-availability "#$1" > /dev/null
    expect "high-availability: block $1 ends the session" same "$(block high-availability "$1" | psql -d holdfast -At)" t
}

try_database() {
    if ! find /usr/lib/postgresql -name initdb 2> /dev/null | grep -q . || [[ $output == *'built without'* ]]; then
        echo "not shown: the commands about PostgreSQL, which is not here"
        for number in 1 10 11 12 14; do
            typed high-availability "#$number" > /dev/null
        done
        return
    fi
    make_database || { cat "$work/initdb" "$work/postgres"; return 1; }
    typed_block 1
    cd "$work" || return
    typed_block 14
    cd / || return
    local conninfo='postgres:host=db dbname=holdfast user=holdfast'
    start shared --port 0 --http off --no-rpcbind --store "$conninfo"
    expect "with the locks" matches "$(cat "$work/shared.out")" '1 client, '
    ends_session 11
    stop KILL # with nobody to take over it may connect again
    # Groups, with the files of that page in their places.
    block high-availability 7 | sed "s|/usr/local/sbin/holdfast-takeover|$work/hook|" > "$work/ha.conf"
    chmod 755 "$work/hook"
    INSTANCE=1 PATH=$work/bin:$PATH "$HOLDFAST" serve --config "$work/ha.conf" --control /run/holdfast/1.sock \
        --http 127.0.0.1:12081 > "$work/group.out" 2> "$work/group.log" < /dev/null &
    pid=$!
    server_pids+=("$pid")
    expect "a server of the first group" log_has "$work/group.out" 'ready on port'
    typed high-availability '#10' > /dev/null
    output=$(eval "$(block high-availability 10 | sed -n "s|^# ||p" | sed "s|/etc/holdfast.conf|$work/ha.conf|")")
    code=$?
    expect "groups: not all are served" same "$code" 1
    expect "groups: the head" same "$(head -n 1 <<< "$output" | xargs)" "$(block high-availability 10 | sed -n 2p | xargs)"
    expect "groups: one that nobody has served yet" matches "$output" 'home +nobody +- +- +- +0 +0'
    expect "groups: who serves" matches "$output" 'web +active +[^ ]+ +192\.0\.2\.10 '
    ends_session 12
}

if [ -n "${COMMANDS_INSIDE-}" ]; then
    make_places || { echo "cannot make the places of the test"; exit 1; }
    try_first_steps
    try_backup
    try_troubleshooting
    try_sentences
    try_files
    try_tracker
    try_hooks
    try_configurations
    try_database
    expect "each was typed" diff <(list | awk -F '|' '$2 == "here"' | cut -d '|' -f 1,3- | sort -u) \
        <(sort -u "$work/typed")
    finish
fi

# ---- outside ----

# (1)
for page in $(cd "$docs" && ls -- *.md); do
    case ${page%.md} in
    ARCHITECTURE | PROMISES | STYLE | TESTING | monitor) ;; # for engineers; tests/integration/monitor_switch.sh
    *) found "${page%.md}" ;;
    esac
done > "$work/found"
expect "every command is in the list, and the list has no other" \
    diff <(sort -u "$work/found") <(list | cut -d '|' -f 1,3- | sort -u)
while IFS='|' read -r page where _; do
    case $where in
    here | drawing | example:* | package | realclient) ;;
    *) expect "$page: the test $where" test -n "$(find "$(dirname "$self")" -name "$where.*")" ;;
    esac
done < <(list)

# (2), (3)
if [ "$(id -u)" -ne 0 ] || ! unshare --mount --net --pid --fork true 2> /dev/null; then
    echo "not shown: the commands typed, without root"
    finish
fi
case $HOLDFAST in
/srv/* | /run/* | /var/lib/*)
    echo "not shown: the commands typed, because this tree is in a place that they use"
    finish
    ;;
esac
COMMANDS_INSIDE=1 unshare --mount --net --pid --fork --kill-child --mount-proc bash "$self"
expect "all commands" same $? 0
finish
