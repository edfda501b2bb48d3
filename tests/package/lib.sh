# lib.sh -- what the tests of the package share: verdicts, fresh Debians, servers in them. Sourced.
#
# Everything is below $work; mounts are in namespaces of their own, and processes end with the test.
# shellcheck shell=bash

failed=0
pids=()
clean_up()
{
    local pid
    exec 2>/dev/null # the shell reports who was killed
    for pid in "${pids[@]}"; do
        kill -KILL "$pid"
    done
    wait
    rm -rf "$work/root" "$work/container" "$work/installed" "$work/unpacked"
}

# verdict NAME COMMAND...: what it prints is shown if it fails.
verdict()
{
    local name=$1
    shift
    if "$@" >"$work/output" 2>&1 </dev/null; then
        echo "ok $name"
    else
        echo "not ok $name   ($*)"
        tail -n 40 "$work/output" | sed 's/^/    /'
        failed=1
        return 1
    fi
}

# skip WHY: of everything that is left.
skip()
{
    echo "skip package: $1"
    exit "$failed"
}

wait_until()
{
    local deadline=$((SECONDS + 120))
    until "$@"; do
        [ "$SECONDS" -lt "$deadline" ] || return 1
        sleep 0.05
    done
}
has() { grep -qs -- "$2" "$1"; }
soon_has() { wait_until has "$@" || { echo "no '$2' in:" && cat "$1" && false; }; }
same() { [ "$1" = "$2" ] || { echo "is '$1', not '$2'" && false; }; }

# The archive that this machine installs from.
mirror()
{
    # shellcheck disable=SC2016 # apt's variables
    apt-get indextargets --format '$(CODENAME) $(REPO_URI)' 'Identifier: Packages' | awk '$1 == "bookworm" { print $2; exit }'
}

# make_base: one Debian 12 for all, as debootstrap leaves it; $work/base.tar is kept for the next run.
make_base()
{
    [ ! -s "$work/base.tar" ] || return 0
    rm -rf "$work/base"
    unshare --mount debootstrap --variant=minbase bookworm "$work/base" "$(mirror)" || return
    rm -f "$work/base/var/cache/apt/archives/"*.deb
    tar -C "$work/base" -cf "$work/base.tar.new" . && mv "$work/base.tar.new" "$work/base.tar"
    rm -rf "$work/base"
}

# fresh ROOT: unpacks it. Names are resolved as here.
fresh()
{
    rm -rf "$1"
    mkdir "$1"
    tar -C "$1" -xf "$work/base.tar"
    cat /etc/resolv.conf >"$1/etc/resolv.conf"
}

# in_root ROOT COMMAND...: as root of it, with the network of this machine.
in_root()
{
    local root=$1
    shift
    # shellcheck disable=SC2016 # a shell inside
    DEBIAN_FRONTEND=noninteractive LC_ALL=C unshare --mount --pid --fork --kill-child sh -c \
        'mount -t proc proc "$0/proc" && exec chroot "$0" "$@"' "$root" "$@"
}

# make_network: one without the outside, kept by a process; ports below 1024 are for everybody, as
# in containers. Sets network.
make_network()
{
    unshare --net --fork --kill-child sh -c 'ip link set lo up && echo 0 >/proc/sys/net/ipv4/ip_unprivileged_port_start &&
        exec tail -f /dev/null' &
    pids+=($!)
    wait_until pgrep -P $! tail >/dev/null
    network=$(pgrep -P $! tail)
}
in_network() { nsenter --target "$network" --net "$@"; }

# serve NAME ROOT USER COMMAND...: as process 1 in that root and the network. Sets runtime and server.
serve()
{
    local name=$1 root=$2 user=$3
    shift 3
    # shellcheck disable=SC2016 # a shell inside
    nsenter --target "$network" --net unshare --mount --pid --fork --kill-child sh -c \
        'mount -t proc proc "$0/proc" && root=$0 user=$1 && shift && exec chroot "$root" setpriv --reuid "$user" --regid "$user" --clear-groups "$@"' \
        "$root" "$user" "$@" >"$work/$name.out" 2>"$work/$name.log" </dev/null &
    runtime=$!
    pids+=("$runtime")
    soon_has "$work/$name.out" 'ready on port' || { cat "$work/$name.log" && return 1; }
    server=$(pgrep -P "$runtime" holdfastd)
}

# stop: SIGTERM, as systemd and container runtimes send it.
stop()
{
    kill -TERM "$server"
    wait "$runtime"
}
