#!/bin/bash
# monitor.sh -- --role monitor between a lock manager and status monitors that others wrote.
#
# usage: monitor.sh WATCHER, the program made of watcher.c; without it the test is skipped
#
# Two hosts with a cable between them: see monitor_host.sh. Passing proves:
#  (1) registered with the rpcbind of its machine, 100024 only, over both transports; options that mean
#      nothing in this role are refused by name; a store has one role;
#  (2) SM_MON is of this machine and of lock managers; a name is answered at once and resolved behind;
#  (3) a reboot of nodeb that the real sm-notify reports, under another name than it is watched by, is
#      one upcall, from loopback, with the registered mon_name and priv; strangers cause none;
#  (4) kill -9 and restart, again and again, under registrations: the state stands, no upcall, nobody is
#      notified, nothing that was answered is lost;
#  (5) it never leaves rpcbind: not at a stop, not when killed; when rpcbind starts anew, or somebody
#      removes the entry, it is back at once;
#  (6) after a reboot of nodea the state is two more, nodeb's rpc.statd is notified under both names
#      once its NFS server is registered and not before, with no upcall; then the record goes;
#  (7) the kernel is told the state number; nobody to notify: its grace period is ended;
#  (8) restart-notice tells everybody, in the same boot, and the upcalls go on; hosts lists what is owed;
#  (9) --verify-notify always: what nodeb's own rpc.statd does not confirm is no upcall, what it does is;
#      while it is asked there is no answer, so kill -9 loses nothing; a silent one is asked for 3 s;
# (10) --callout: what rpc.statd -H would run, in order; programs that hang or fail delay no answer, and
#      are killed with all that they started, sessions of their own among it, also when we are killed; of
#      what they print little is kept; one that cannot be executed is refused;
# (11) after a reboot hosts are told when the NFS server is registered with rpcbind, and not before.
# shellcheck disable=SC2317 # expect and wait_until call functions by their names
set -u
. "$(dirname "$0")/statd_hosts.sh"
enter 1 "$@"
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/monitor_host.sh"
watcher=$1

peer() { "$PEER" -s 127.0.0.1 127.0.0.1 12049 "$@"; }

start_hosts

# (1)
monitor first || finish
expect "only the status monitor is registered" same \
    "$(rpcinfo -p 127.0.0.1 | awk '$4 == 12049 {print $1 "/" $2 "/" $3}' | sort | xargs)" \
    "100024/1/tcp 100024/1/udp"
run_to_end grace --role monitor --grace 5
expect "an option of locks is refused" same "$code" 2
expect "by its name" log_has "$work/grace.log" '--grace: means nothing with --role monitor: a status monitor'
run_to_end after --notify-after 5
expect "so is one of monitors, elsewhere" log_has "$work/after.log" '--notify-after: only with'
serve_locks

# (2)
expect "from elsewhere it is refused" same \
    "$(on 1 "$PEER" -s "$address_b" "$address_a" 12049 mon x us 100021 3 16)" "fail $state"
expect "so is another program" same "$(peer mon "$address_b" us 100003 3 16)" "fail $state"
expect "a name that nobody knows is answered" same "$(mon nobody.example priv-of-nobody-1)" "succ $state"
expect "and reported" log_has "$work/first.log" 'does not resolve'
expect "SM_MON by address" same "$(mon "$address_b" priv-of-address1)" "succ $state"

# (3)
echo "0100007f 000186b5 00000003 00000010 00000000000000000000000000000000 $address_a $name_b" > "$work/nfs/sm/$address_a"
on 1 sm-notify -d -f -P "$work/nfs" -v "$name_b" > "$work/sm-notify.log" 2>&1 < /dev/null &
server_pids+=($!)
need "the reboot of nodeb reaches the lock manager" wait_until has_upcalls 1
expect "as it was registered, from loopback" matches "$(grep '^told' "$work/lockd.log")" \
    "^told by 127.0.0.1 over udp: mon_name=$address_b state=[0-9]+ priv=priv-of-address1$"
nodeb_notifies "$name_b" 9999
need "the next one, too" wait_until has_upcalls 2
nodeb_notifies "$name_b" 9999
"$PEER" -s "$address_a" "$address_a" 12049 notify "$address_b" 77 > /dev/null
peer notify "$address_b" 77 > /dev/null
expect "a stranger is not believed" log_has "$work/first.log" 'ignored a reboot notification'

# (4)
first_state=$state
rounds=${HOLDFAST_KILL_ROUNDS:-5}
for round in $(seq "$rounds"); do
    expect "registered" same "$(mon "10.77.9.$round" priv-of-rounds-1)" "succ $first_state"
    stop KILL
    monitor "again-$round" || finish
    expect "the state stands" same "$state" "$first_state"
    expect "nothing is lost" same "$hosts" $((round + 2))
done
expect "no upcall by a restart" same "$(upcalls)" 2
expect "nobody is notified by one" same "$(notices)" 0

# (5)
stop TERM
expect "a stop ends it" same "$code" 0
expect "and leaves it registered" is_registered
monitor back || finish
end TERM "$rpcbind_pid"
rpcbind -f 2> "$work/rpcbind-a2.log" &
rpcbind_pid=$!
server_pids+=("$rpcbind_pid")
expect "registered with the next rpcbind" wait_until is_registered
rpcinfo -d 100024 1
expect "and again when it was removed" wait_until is_registered

# (6)
stop KILL
boot_anew
: > "$HOLDFAST_MACHINE_ROOT/etc/exports"
echo "/srv *(rw)" > "$HOLDFAST_MACHINE_ROOT/etc/exports"
: > "$work/lockd.log"
monitor rebooted || finish
expect "two more" same "$state" $((first_state + 2))
expect "it waits for the NFS server" same "$(notices)" 0
expect "hosts are owed" wait_until is_owed
stop KILL
echo "# nothing" > "$HOLDFAST_MACHINE_ROOT/etc/exports"
monitor clientonly --name other.example || finish
expect "nodeb is notified under three names" wait_until has_notices 3
expect "its record goes" log_has "$work/clientonly.log" 'first round of notifications finished'
sleep 0.2
expect "no upcall by a reboot" same "$(upcalls)" 0

# (7)
stop KILL
rm -rf "$work/store"
boot_anew
: > "$HOLDFAST_MACHINE_ROOT/proc/fs/lockd/nlm_end_grace"
: > "$HOLDFAST_MACHINE_ROOT/proc/sys/fs/nfs/nsm_local_state"
monitor nobody || finish
expect "the kernel knows our state" wait_until grep -qx "$state" \
    "$HOLDFAST_MACHINE_ROOT/proc/sys/fs/nfs/nsm_local_state"
serve_locks
expect "the kernel's grace is over" wait_until grep -q Y \
    "$HOLDFAST_MACHINE_ROOT/proc/fs/lockd/nlm_end_grace"

# (8)
expect "SM_MON" same "$(mon "$address_b" priv-of-address2)" "succ $state"
: > "$work/statd.log"
expect "restart-notice" quiet "$HOLDFAST" restart-notice --control "$work/store/control.sock" --yes
expect "tells nodeb" wait_until has_notices 2
nodeb_notifies "$name_b" 4711
expect "and upcalls go on" wait_until has_upcalls 1
expect "hosts shows it" matches "$(owed)" "$address_b"
stop TERM

# (9)
state_b=$("$PEER" -s "$address_a" "$address_b" 13024 stat x | awk '{ print $2 }')
: > "$work/lockd.log"
monitor verify --verify-notify always || finish
nodeb_notifies "$name_b" 4713
expect "nodeb says something else" log_has "$work/verify.log" 'does not confirm it'
expect "no upcall" same "$(upcalls)" 0
nodeb_notifies "$name_b" "$state_b"
expect "what it says itself is believed" wait_until has_upcalls 1
expect "it is watched by name, too" same "$(mon "$name_b" priv-of-verified)" "succ $state"
statd_b=$(pgrep -x rpc.statd)
kill -STOP "$statd_b"
nodeb_notifies "$name_b" "$state_b" &
notifier=$!
sleep 0.5
expect "while nodeb is asked there is no answer" quiet kill -0 "$notifier"
stop KILL
end TERM "$notifier"
monitor verify-again --verify-notify always || finish
kill -CONT "$statd_b"
nodeb_notifies "$name_b" "$state_b"
expect "said again it is believed" wait_until has_upcalls 2
expect "as it was registered" matches "$(tail -n 1 "$work/lockd.log")" "mon_name=$name_b state=$state_b priv=priv-of-verified$"
kill -STOP "$statd_b"
asked_ms=$(date +%s%3N)
nodeb_notifies "$name_b" 4717
took_ms=$(($(date +%s%3N) - asked_ms))
kill -CONT "$statd_b"
expect "a silent host is asked for three seconds, not $took_ms ms" test "$took_ms" -ge 2000 -a "$took_ms" -lt 6000
expect "and not believed" log_has "$work/verify-again.log" 'does not confirm it'
stop TERM

# (10)
cat > "$work/callout" << 'END'
#!/bin/sh
echo "$*" >> "${0%/*}/callouts"
case $2 in
*.81) exec sleep 1000 ;;
*.82) echo "on fire" && exit 3 ;;
*.84) setsid sleep 1001 > /dev/null 2>&1 & ;;
*.85) exec yes "and more" ;;
*.86) setsid sleep 1002 & exec sleep 1003 ;;
esac
END
chmod +x "$work/callout"
is_told() { [ "$(cat "$work/callouts" 2> /dev/null)" = "$1" ]; }
# has_told LINE: among others, which may overtake it.
has_told() { grep -qxF "$1" "$work/callouts"; }
is_none_left() { ! pgrep -f "^$1" > /dev/null; }
monitor callout --callout "$work/callout" || finish
mon 10.77.9.80 priv-of-callout1 > /dev/null
expect "add-client" wait_until is_told "add-client 10.77.9.80 $name_a"
nodeb_notifies "$name_b" 4715
expect "sm-notify" wait_until has_told "sm-notify $name_b $address_b 4715"
: > "$work/callouts"
for host in 81 82 83 84 85; do
    expect "SM_MON does not wait" same "$(mon "10.77.9.$host" priv-of-callout1)" "succ $state"
done
expect "nor do others" wait_until has_told "add-client 10.77.9.83 $name_a"
expect "who fails is named" log_has "$work/callout.log" 'a callout failed.*10.77.9.82.*on fire'
"$PEER" -s 127.0.0.1 127.0.0.1 12049 unmon 10.77.9.83 "$name_a" 100021 3 16 > /dev/null
expect "del-client" wait_until has_told "del-client 10.77.9.83 $name_a"
"$PEER" -s 127.0.0.1 127.0.0.1 12049 unmon 10.77.9.81 "$name_a" 100021 3 16 > /dev/null
expect "who hangs is killed, and then the next about that host is run" \
    wait_until has_told "del-client 10.77.9.81 $name_a"
expect "and named" log_has "$work/callout.log" 'took longer than 10 s and was killed'
expect "with what made itself a session" wait_until is_none_left 'sleep 100[01]'
expect "and what prints without end" wait_until is_none_left 'yes and more'
expect "of which little is kept" test "$(wc -c < "$work/callout.log")" -lt 20000
mon 10.77.9.86 priv-of-callout1 > /dev/null
expect "another one" wait_until has_told "add-client 10.77.9.86 $name_a"
expect "and its child" wait_until quiet pgrep -f '^sleep 1002'
stop KILL
expect "end with us" wait_until is_none_left 'sleep 100[23]'
run_to_end no-callout --role monitor --callout "$work/nothing" --store "lmdb:$work/store" --http off
expect "what is no program" same "$code" 2
expect "is named" log_has "$work/no-callout.log" 'callout: .*/nothing: No such file'

# (11)
boot_anew
echo "/srv *(rw)" > "$HOLDFAST_MACHINE_ROOT/etc/exports"
: > "$work/statd.log"
monitor gate --notify-after 300 || finish
expect "hosts are owed" wait_until is_owed
sleep 0.5
expect "nobody is told while no NFS server is registered" same "$(notices)" 0
expect "it registers" "$watcher" enter 100003 3
expect "and they are told" wait_until has_notices 2
stop TERM
run_to_end server --store "lmdb:$work/store" --no-rpcbind
expect "the store is a monitor's" log_has "$work/server.log" 'the store is of a status monitor'
finish
