# guests.sh -- machines under QEMU: power on, power off, commands. Sourced by lib.sh.
#
# A guest is a directory $work/guests/NAME: its console, the process id of its QEMU, the two fifos of
# its serial port, its disk if it has one, and nfs/, which is its /var/lib/nfs. c1 and c2 are clients
# with rpc.statd; store runs holdfast as a lock server; nfsd and m1 are machines with the status monitor
# that is on trial (monitor.sh), a kernel NFS server and a client.
# shellcheck shell=bash disable=SC2034,SC2154

OUTSIDE=10.77.0.1 # this machine, as guests see it
declare -A guest_address=([c1]=10.77.0.11 [c2]=10.77.0.12 [store]=10.77.0.13 [nfsd]=10.77.0.14 [m1]=10.77.0.15)
declare -A guest_role=([c1]=client [c2]=client [store]=server [nfsd]=host [m1]=host)
guest_hosts=server:10.77.0.1,c1:10.77.0.11,c2:10.77.0.12,nfsd:10.77.0.14,m1:10.77.0.15
BOOT_SECONDS=${BOOT_SECONDS:-120} # how long a guest may need to come up

# A process whose first thread has ended is shown as a zombie while another one is still in the kernel,
# waiting for the disk: it has its sockets then, and a new server could not bind them.
is_running()
{
    local threads=("/proc/$1/task"/*)
    [ -d "/proc/$1/task" ] && { [ "${#threads[@]}" -gt 1 ] || ! grep -qs '^State:.*zombie' "/proc/$1/status"; }
}

# end PID-FILE [SIGNAL]: ends the process that the file names and waits until it is gone.
end()
{
    local pid
    [ -s "$1" ] || return 0
    pid=$(cat "$1")
    rm -f "$1"
    kill -s "${2:-TERM}" "$pid" 2>/dev/null || return 0
    if ! wait_until 5 gone "$pid"; then
        kill -s KILL "$pid" 2>/dev/null
        wait_until 5 gone "$pid"
    fi
}
gone() { ! is_running "$1" 2>/dev/null; }

is_on()
{
    [ -s "$work/guests/$1/pid" ] && is_running "$(cat "$work/guests/$1/pid")"
}

# new_disk NAME: an empty one. What it has been told to keep outlives a power cut, not what its cache
# held.
new_disk()
{
    mkdir -p "$work/guests/$1"
    truncate -s 0 "$work/guests/$1/disk"
    truncate -s 1G "$work/guests/$1/disk"
    mkfs.ext4 -q -F "$work/guests/$1/disk"
}

# power_on NAME: switches it on and returns; wait_for NAME waits until it obeys.
power_on()
{
    local name=$1 directory=$work/guests/$1 address=${guest_address[$1]} role=${guest_role[$1]} memory=384 extra=()
    if is_on "$name"; then
        echo "$name is on already" >&2
        return 1
    fi
    mkdir -p "$directory/nfs"
    rm -f "$directory"/agent.*
    mkfifo "$directory/agent.in" "$directory/agent.out"
    [ "$role" != host ] || memory=256 # holdfast runs on small machines
    if [ "$role" != client ]; then
        [ -s "$directory/disk" ] || new_disk "$name"
        extra+=(-drive "file=$directory/disk,format=raw,if=virtio,cache=writeback")
    fi
    if [ "$role" != server ]; then
        extra+=(-virtfs "local,path=$directory/nfs,mount_tag=state,security_model=none")
    fi
    # shellcheck disable=SC2086 # the accelerator is several words
    qemu-system-x86_64 -name "$name" -nodefaults -no-reboot -display none $accelerator -smp 1 -m $memory \
        -kernel "$kernel/vmlinux" -initrd "$images/$role.cpio" \
        -append "console=ttyS0 loglevel=4 panic=-1 mitigations=off cryptomgr.notests rig.role=$role rig.name=$name rig.address=$address/16 rig.hosts=$guest_hosts" \
        -serial "file:$directory/console.log" \
        -netdev "tap,id=net,ifname=$name,script=no,downscript=no" \
        -device "virtio-net-pci,netdev=net,mac=52:54:00:77:00:$(printf %02x "${address##*.}"),romfile=" \
        -chardev "pipe,id=agent,path=$directory/agent" -device virtio-serial-pci \
        -device virtserialport,nr=1,chardev=agent,name=agent "${extra[@]}" \
        </dev/null >"$directory/qemu.log" 2>&1 &
    echo $! >"$directory/pid"
    disown
}

# The first command waits in the fifo until there is somebody to read it. The clock is set twice,
# because the first setting is late by what the boot took.
wait_for()
{
    EXEC_SECONDS=$BOOT_SECONDS on "$1" true && on "$1" "date -s @$(date +%s) >/dev/null" &&
        { [ "$1" = store ] || on "$1" "lk clock $(date +%s.%N)"; }
}

power_off() { end "$work/guests/$1/pid" KILL; }

# on NAME COMMAND: runs a shell command inside; its outputs and its status are those of the command.
# 125: there was no answer. EXEC_SECONDS is how long it may take (120).
on()
(
    directory=$work/guests/$1
    limit=${EXEC_SECONDS:-120}
    token=$BASHPID.$RANDOM
    line=
    exec 9>"$directory/lock"
    flock 9
    exec 8<>"$directory/agent.out"
    deadline=$((SECONDS + limit + 10))
    echo "$token $limit $(printf '%s' "$2" | base64 -w 0)" >"$directory/agent.in"
    while :; do
        part=
        if IFS= read -r -t 1 part <&8; then
            line+=$part
            case $line in
            "$token "*) break ;;
            esac
            line= # the late answer to a command that was given up
            continue
        fi
        line+=$part # the time was over in the middle of a line
        if ! is_on "$1" || [ "$SECONDS" -ge "$deadline" ]; then
            echo "$1 does not answer" >&2
            exit 125
        fi
    done
    read -r token status output errors <<<"$line"
    [ "$output" = - ] || base64 -d <<<"$output"
    [ "$errors" = - ] || base64 -d <<<"$errors" >&2
    exit "$status"
)

# Packets from and to this guest are dropped, without a word to anybody.
cut_off() { ip link set "$1" down; }
reconnect() { ip link set "$1" up; }
