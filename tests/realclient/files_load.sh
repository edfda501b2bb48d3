# files_load.sh -- what a guest does under files-kill9: makes files, syncs, renames, links and removes
# them, and notes in /run/acked what the kernel said is done. It is sent to the guest behind lines that
# set `directory` and `seconds`.
#
# Each line of /run/acked is "FILE SUM", or "FILE gone". A command that fails is printed as "error ...".
# Nobody else works in this directory, so each of them has to succeed: a server that was killed
# between doing something and saying so knows the repeat.
# shellcheck shell=sh disable=SC2154
rm -f /run/acked
: >/run/acked
mkdir -p "$directory" && cd "$directory" || exit 1
try() { "$@" 2>/run/said || echo "error $*: $(cat /run/said)"; }
create() (set -C && : >"$1")
i=0
end=$(($(date +%s) + seconds))
while [ "$(date +%s)" -lt "$end" ]; do
    i=$((i + 1))
    place=d$((i % 7))
    [ -d "$place" ] || try mkdir "$place"
    dd if=/dev/urandom of=/run/data bs=1024 count=$((i % 40 + 1)) 2>/dev/null
    sum=$(md5sum </run/data)
    try create "$place/new$i"
    try dd if=/run/data of="$place/new$i" bs=64k conv=fsync
    try mv "$place/new$i" "$place/file$i"
    echo "$place/file$i $sum" >>/run/acked
    case $((i % 4)) in
    0) try mkdir "once$i" && try rmdir "once$i" ;;
    1) try ln "$place/file$i" "once$i" && try rm "once$i" ;;
    2) try ln -s "$place/file$i" "once$i" && try rm "once$i" ;;
    esac
    if [ $((i % 3)) -eq 0 ] && [ "$i" -gt 10 ]; then
        old=d$(((i - 8) % 7))/file$((i - 8))
        try rm "$old"
        echo "$old gone" >>/run/acked
    fi
done
cp /run/acked ../acked."$(basename "$directory")"
echo "rounds $i"
