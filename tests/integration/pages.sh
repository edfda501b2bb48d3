#!/bin/bash
# pages.sh -- commands and configurations in the documents for administrators work as they are written.
#
# Passing proves:
#  (1) the commands of docs/sizing.md show what that page says of an empty server;
#  (2) the firewall of docs/security.md lets clients call the server's ports, and nobody else;
#  (3) its configuration is one;
#  (4) the options and commands that a document for administrators names are there, and its links lead
#      somewhere.
#
# What is said to be an example there is not run.
# shellcheck disable=SC2317,SC2016 # called by their names; back quotes of Markdown
set -u
docs=$(cd "$(dirname "$0")/../../docs" && pwd)
. "$(dirname "$0")/lib.sh"
holdfastd=$(realpath "$(dirname "$HOLDFAST")/../daemon/holdfastd")

# (1)
start sized --listen 127.0.0.1 --port 0 --http off --no-rpcbind --store "lmdb:$work/store" || finish
sed -n 's/^    //p' "$docs/sizing.md" | sed "s|/var/lib/holdfast|$work/store|g" > "$work/commands"
expect "three commands" same "$(wc -l < "$work/commands")" 3
output=$(bash -e "$work/commands" 2>&1)
expect "they work" same $? 0
# Debug builds and sanitizers need more; nothing here is exact.
size_kb=$(awk '/VmSize/ { print $2 }' <<< "$output")
resident_kb=$(awk '/VmRSS/ { print $2 }' <<< "$output")
if [ -z "${HOLDFAST_SANITIZED-}" ]; then
    expect "69 GB of address space" [ $((size_kb / 1000000)) -ge 68 -a $((size_kb / 1000000)) -le 72 ]
    expect "21 MB in memory" [ "$resident_kb" -lt 42000 ]
fi
expect "up to 66 MiB of store" matches "$output" $'\n''[1-6][0-9]M'
expect "few descriptors" [ "$(tail -n 1 <<< "$output")" -lt 100 ]
stop TERM

# block FILE N: its n-th fenced one.
block() { awk -v wanted="$2" '/^```/ { inside = !inside; count += inside; next } inside && count == wanted' "$docs/$1"; }

# (2) A client's address and another, on the loopback of a network of our own.
try_firewall() {
    unshare --net bash -s "$holdfastd" "$PEER" "$work" << 'END'
    ip link set lo up && ip addr add 192.0.2.1/24 dev lo && ip addr add 198.51.100.1/24 dev lo || exit 3
    "$1" --port 12049 --http off --no-rpcbind --store "lmdb:$3/walled" > "$3/walled.out" 2> "$3/walled.log" &
    server=$!
    until grep -q 'ready on port' "$3/walled.out" || ! kill -0 $server 2> /dev/null; do sleep 0.02; done
    # What comes from this machine passes anyway: here the other addresses are other machines.
    sed 's/iif lo accept/ip saddr 127.0.0.1 accept/' "$3/recipe" | nft -f - || exit 4
    echo "client $("$2" -t 2000 -s 192.0.2.1 192.0.2.1 12049 null) $("$2" -u -t 2000 -s 192.0.2.1 192.0.2.1 12049 null)"
    echo "other $("$2" -t 500 -s 198.51.100.1 192.0.2.1 12049 null 2> /dev/null) $("$2" -u -t 500 -s 198.51.100.1 192.0.2.1 12049 null 2> /dev/null)"
    kill -KILL $server
END
}
block security.md 2 > "$work/recipe"
expect "the recipe was found" grep -q '^table inet holdfast' "$work/recipe"
if command -v nft > /dev/null && [ "$(id -u)" -eq 0 ] && unshare --net true 2> /dev/null; then
    expect "the recipe can be loaded" unshare --net nft -f "$work/recipe"
    output=$(try_firewall)
    expect "clients pass, others do not" matches "$output" $'^client ok ok\nother failed .*timed out failed .*timed out$'
else
    echo "not shown: the firewall needs root and nft (package nftables)"
fi

# (3)
block security.md 1 > "$work/ports.conf"
output=$("$holdfastd" --config "$work/ports.conf" --store memory: --check-config)
expect "the fixed ports" same $? 0
expect "are in force" matches "$output" 'source-ports = 800-899'

# (4)
PATH=$(dirname "$holdfastd"):$PATH # as if installed: holdfast starts it
commands=$("$HOLDFAST" --help | sed -n 's/^  \([a-z-]*\) .*/\1/p')
expect "commands" [ "$(wc -l <<< "$commands")" -gt 15 ]
known=$(for command in $commands; do "$HOLDFAST" "$command" --help; done | grep -o -- '--[a-z-]*' | sort -u)
for page in $(cd "$docs" && ls -- [a-z]*.md); do
    page=${page%.md}
    for option in $(grep -oE -- '`--[a-z-]+' "$docs/$page.md" | tr -d '`' | sort -u); do
        expect "$page.md: $option is an option" grep -qx -- "$option" <<< "$known"
    done
    while read -r _ command; do
        expect "$page.md: holdfast $command is a command" grep -qx -- "$command" <<< "$commands"
    done < <(grep -oE '`holdfast [a-z-]+' "$docs/$page.md" | sort -u)
    for link in $(grep -oE '\]\([^)]+\)' "$docs/$page.md" | tr -d '])(' | grep -v '^https\?:'); do
        link=${link/#\#/$page.md#}
        expect "$page.md: $link is there" [ -e "$docs/${link%%#*}" ]
        case $link in
        *'#'*)
            section=${link#*#}
            expect "$page.md: $link has that section" grep -qiE "^#+ ${section//-/[ -]}\$" "$docs/${link%%#*}"
            ;;
        esac
    done
done
finish
