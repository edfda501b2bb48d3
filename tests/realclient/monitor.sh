# monitor.sh -- kernel NFS servers and clients whose status monitor is on trial; sourced behind lib.sh.
#
# The server is guest nfsd: the kernel's NFS server and lock manager, on ext4. Its monitor, and that of
# the client m1, is holdfast; or rpc.statd with sm-notify when MONITOR=statd, what holdfast is compared
# with; or nobody when MONITOR=none, how these scenarios are seen to fail. c1 and c2 are clients with
# rpc.statd.
#
# What the two do at boot are commands of the script `host`, in NFSD_BOOT and M1_BOOT. Whoever needs
# something else changes these before `setup`.
# shellcheck shell=bash disable=SC2034,SC2154

MONITOR=${MONITOR:-holdfast}
RECOVER_SECONDS=1 # from a server that answers, or a notice, to the last reclaim or the grant
case $accelerator in
*tcg*) RECOVER_SECONDS=3 ;; # emulated, most of it is the first work of rpc.mountd; a client that was told too early needs more
esac
NFSD_BOOT="host rpcbind; host watch; host monitor $OPTIONS; host nfsd $GRACE; host notify"
M1_BOOT="host rpcbind; host watch; host monitor $OPTIONS; host notify"

use_kernel()
{
    served_by=kernel
    SERVER=${guest_address[nfsd]}
    EXPORT=/disk/export
    log=$work/guests/nfsd/nfs/monitor.log
}
use_kernel

# boots GUEST COMMANDS: what it does at every boot from now on. A guest that did something else at its
# last boot, or is off, is switched on anew.
boots()
{
    local directory=$work/guests/$1/nfs
    mkdir -p "$directory"
    if is_on "$1" && [ "$(cat "$directory/kind" "$directory/boot")" = "$MONITOR"$'\n'"$2" ]; then
        return
    fi
    power_off "$1"
    echo "$MONITOR" >"$directory/kind"
    echo "$2" >"$directory/boot"
    touch "$directory/monitor.log"
    power_on "$1"
}

serve_kernel() { boots nfsd "$NFSD_BOOT" && wait_for nfsd; }

# An attempt that began while the guest was off would be repeated ever more seldom: each has its time.
serves_files() { timeout 0.3 bash -c ": </dev/tcp/$SERVER/2049" 2>/dev/null; }

# reboot_nfsd: its power is cut, at $cut, and comes back. $start is when the kernel's NFS server answers
# again: the first connection that it accepts, by the capture.
reboot_nfsd()
{
    cut=$(clock)
    power_off nfsd
    power_on nfsd
    wait_until "$BOOT_SECONDS" serves_files || give_up "the kernel's NFS server does not come back"
    start=$(tcpdump -r "$capture" -nn -tt "src host $SERVER and tcp src port 2049 and tcp[tcpflags] & (tcp-syn|tcp-ack) == (tcp-syn|tcp-ack)" \
        2>/dev/null | awk -v cut="$cut" '$1 > cut { print $1; exit }')
    wait_for nfsd || give_up "nfsd does not come back"
}

# newcomers VERB COUNT SECONDS: new clients of the server: see `lockers`. They have addresses of
# this machine that nobody else has. They lock in 1000 files, which there are then.
newcomers()
{
    # shellcheck disable=SC2016 # for a shell
    local port files='for i in $(seq 0 999); do : >f$i; done'
    if [ "$served_by" = kernel ]; then
        on nfsd "cd $EXPORT; $files"
    else
        (cd "$EXPORT" && eval "$files")
    fi
    ip route replace local 10.77.16.0/20 dev lo
    port=$(rpcinfo -p "$SERVER" | awk '$1 == 100005 && $2 == 3 && $3 == "tcp" { print $4 }')
    "$tools/../bench/handles" "$SERVER:$port" "$SERVER:2049" "$EXPORT" 1000 "$work/handles" || return
    port=$(rpcinfo -p "$SERVER" | awk '$1 == 100021 && $2 == 4 && $3 == "tcp" { print $4 }')
    "$tools/../bench/lockers" "$1" "$SERVER:$port" 10.77.16.1 "$2" $(($3 * 1000)) "$work/handles"
}

# upcalls GUEST: how often its kernel was told that a host has rebooted, as far as `host watch` saw.
upcalls() { calls "$work/guests/$1/nfs/loopback.pcap" 100021 16 | wc -l; }

# By the capture: when a guest first told somebody of its own reboot; and since the server was cut off,
# when the guest was first told, and when it asked for its last lock. 0: never.
notified() { calls "$capture" 100024 6 "src host ${guest_address[$1]}" | first_after 0; }
told() { calls "$capture" 100024 6 "dst host ${guest_address[$1]}" | first_after "$cut"; }
locked() { calls "$capture" 100021 2 "src host ${guest_address[$1]}" | tac | first_after "$cut"; }
first_after() { awk -v OFMT=%.6f -v after="$1" '$1 > after && !found { found = $1 } END { print found + 0 }'; }

# reclaims TEXT GUEST: its last lock was asked for soon after the server answered.
reclaims() { within "$1" "$RECOVER_SECONDS" "$(minus "$(locked "$2")" "$start")"; }
# frees TEXT GUEST: the last operation ended soon after the guest had told of its reboot.
frees() { within "$1" "$RECOVER_SECONDS" "$(minus "$when" "$(notified "$2")")"; }

# figure NAME TEXT: the number behind NAME= in it.
figure() { grep -o "$1=[0-9]*" <<<"$2" | cut -d= -f2; }

# The kernel's locks on the server, as POSIX ranges.
kernel_locks() { on nfsd "awk '/POSIX/ { print \$4, \$7, \$8 }' /proc/locks" | sort; }
# has_locks LOCKS: it has these, as kernel_locks printed them.
has_locks() { [ "$(kernel_locks)" = "$1" ]; }
