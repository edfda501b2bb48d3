# files_check.sh -- what a guest says afterwards of the files that another one was told it has. It is
# sent behind lines that set `directory` and `list`. The last line about a file counts.
# shellcheck shell=sh disable=SC2154
echo 3 >/proc/sys/vm/drop_caches
cd "$directory" || exit 1
awk '{ last[$1] = $0 } END { for (name in last) print last[name] }' "$list" | while read -r name sum _; do
    if [ "$sum" = gone ]; then
        [ ! -e "$name" ] || echo "back $name"
    elif [ ! -f "$name" ]; then
        echo "missing $name"
    else
        read -r found _ <<END
$(md5sum <"$name")
END
        [ "$found" = "$sum" ] || echo "changed $name"
    fi
done
find . -name 'new*' -o -name 'once*' | sed 's/^/left over /'
echo "looked at $(sort -u -k1,1 "$list" | wc -l)"
