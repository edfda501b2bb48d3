# files_load.sh -- what a guest does under files-kill9: makes files, syncs, renames and removes them,
# and notes in /run/acked what the kernel said is done. It is sent to the guest behind lines that
# set `directory` and `seconds`.
#
# Each line of /run/acked is "FILE SUM", or "FILE gone". An error of any command is printed as
# "error ..."; one that says that a rename, remove or mkdir was done before is printed as "twice ...":
# the server was killed between doing it and saying so.
# shellcheck shell=sh disable=SC2154
rm -f /run/acked
: >/run/acked
mkdir -p "$directory" && cd "$directory" || exit 1
i=0
end=$(($(date +%s) + seconds))
while [ "$(date +%s)" -lt "$end" ]; do
    i=$((i + 1))
    place=d$((i % 7))
    if [ ! -d "$place" ]; then
        mkdir "$place" 2>/run/said || { [ -d "$place" ] && echo "twice mkdir $place" || echo "error mkdir $place: $(cat /run/said)"; }
    fi
    dd if=/dev/urandom of=/run/data bs=1024 count=$((i % 40 + 1)) 2>/dev/null
    sum=$(md5sum </run/data)
    dd if=/run/data of="$place/new$i" bs=64k conv=fsync 2>/run/said || echo "error write $i: $(cat /run/said)"
    if ! mv "$place/new$i" "$place/file$i" 2>/run/said; then
        [ -f "$place/file$i" ] && echo "twice mv $i" || echo "error mv $i: $(cat /run/said)"
    fi
    echo "$place/file$i $sum" >>/run/acked
    if [ $((i % 3)) -eq 0 ] && [ "$i" -gt 10 ]; then
        old=d$(((i - 8) % 7))/file$((i - 8))
        if [ -f "$old" ]; then
            rm "$old" 2>/run/said || { [ ! -f "$old" ] && echo "twice rm $old" || echo "error rm $old: $(cat /run/said)"; }
            echo "$old gone" >>/run/acked
        fi
    fi
done
cp /run/acked ../acked."$(basename "$directory")"
echo "rounds $i"
