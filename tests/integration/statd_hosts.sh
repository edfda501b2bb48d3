# statd_hosts.sh -- client hosts for statd.sh and statd_locks.sh, in which programs that others wrote
# run: rpcbind, rpc.statd, sm-notify. Sourced, not run.
#
# Host N has network, mount and host name of its own, and a cable to the host of the server: our end
# is 10.77.N.1 and fd77:N::1, its end is 10.77.N.2 and fd77:N::2. Everything finds everything
# through the rpcbind of the other host. The server's host is the namespace that the test itself
# runs in; nothing of it is left when the first process in there ends. lib.sh is sourced after
# `enter`, before anything else is called.
# shellcheck shell=bash disable=SC2154

# enter NEEDED "$@": the test begins again in namespaces of its own, or is skipped with the reason.
# NEEDED is the number of arguments it has when everything it is made of could be built.
enter() {
    local needed=$1 tool
    shift
    [ -z "${HOLDFAST_IN_NAMESPACE:-}" ] || return 0
    skip() {
        echo "SKIP ${0##*/}: $1"
        exit 77
    }
    PATH=$PATH:/usr/sbin:/sbin
    for tool in ip nsenter rpcbind rpcinfo rpc.statd sm-notify unshare; do
        command -v "$tool" > /dev/null ||
            skip "it needs $tool (Debian: iproute2 nfs-common rpcbind util-linux)"
    done
    [ $# -eq "$needed" ] ||
        skip "it needs rpcgen and libtirpc at build time (Debian: rpcsvc-proto libtirpc-dev)"
    unshare -m -n -p -u -f --mount-proc true 2> /dev/null ||
        skip "it needs root, for namespaces of its own"
    unshare -n ip link add cable type veth peer name other 2> /dev/null ||
        skip "this kernel has no veth, the cable between two network namespaces"
    # The first process of a process namespace takes everything with it when it ends.
    HOLDFAST_IN_NAMESPACE=1 exec unshare -m -n -p -u -f --mount-proc --kill-child=TERM "$0" "$@"
}

# furnish NAME LINES: this host gets that name, a /run of its own, the LINES as its only source of
# names, and nothing of the machine's configuration or of its kernel's NSM state.
furnish() {
    hostname "$1"
    mount -t tmpfs tmpfs /run
    mkdir -m 777 /run/rpcbind # rpcbind gives up root before it writes there
    printf '127.0.0.1 localhost\n%s\n' "$2" > /run/hosts
    echo 'hosts: files' > /run/nsswitch.conf
    : > /run/nfs.conf
    for file in hosts nsswitch.conf nfs.conf; do
        [ ! -e "/etc/$file" ] || mount --bind "/run/$file" "/etc/$file"
    done
    for directory in /etc/nfs.conf.d /proc/sys/fs/nfs; do
        [ ! -d "$directory" ] || mount -t tmpfs -o ro tmpfs "$directory"
    done
    ip link set lo up
}
export -f furnish

declare -A host_pid # of a process that sleeps in the namespaces of host N

# start_host N NAME LINES: furnished and cabled. False: it did not come up.
start_host() {
    local n=$1 mark=$work/host-$1-is-up
    # shellcheck disable=SC2016 # for the shell inside
    unshare -m -n -u bash -c 'furnish "$1" "$2" && : > "$3" && exec sleep infinity' \
        host "$2" "$3" "$mark" &
    host_pid[$n]=$!
    server_pids+=("${host_pid[$n]}")
    wait_until test -e "$mark" || return
    ip link add "cable$n" type veth peer name cable netns "${host_pid[$n]}"
    ip address add "10.77.$n.1/24" dev "cable$n"
    ip link set "cable$n" up
    on "$n" ip address add "10.77.$n.2/24" dev cable
    on "$n" ip link set cable up
}

# add_ipv6 N: to both ends of its cable. False: this kernel has none.
add_ipv6() {
    ip address add "fd77:$1::1/64" dev "cable$1" nodad 2> /dev/null &&
        on "$1" ip address add "fd77:$1::2/64" dev cable nodad 2> /dev/null
}

on() { # on N COMMAND...
    local pid=${host_pid[$1]}
    shift
    nsenter -t "$pid" -m -n -u "$@"
}

# background N LOG COMMAND...: on host N, ended with the test. Sets background_pid, which is the
# command's own: a function in the background would be a shell with a child. The log is empty when
# this returns: what the last one wrote there must not be taken for its own.
background() {
    local pid=${host_pid[$1]} log=$2
    shift 2
    : > "$work/$log"
    nsenter -t "$pid" -m -n -u "$@" > "$work/$log" 2>&1 < /dev/null &
    background_pid=$!
    server_pids+=("$background_pid")
}

# end SIGNAL PID: of something that the test started, and it is gone.
end() {
    kill "-$1" "$2"
    wait "$2" 2> /dev/null
}

quiet() { "$@" > /dev/null 2>&1; }

# need WHAT COMMAND...: without it nothing else can be shown.
need() {
    local failures_before=$failures log
    expect "$@"
    [ "$failures" -eq "$failures_before" ] && return
    for log in "$work"/*.log; do
        echo "    ${log##*/}:"
        sed "s/^/        /" "$log"
    done
    finish
}
