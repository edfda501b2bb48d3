#!/bin/bash
# shells.sh -- what the build makes from the tables of commands and options: completions for three
# shells, and manual pages.
#
# Passing proves:
#  (1) fish and zsh complete commands, options, their values, words and the server's options, by their
#      own completion, and bash reads the completions for it; each names every command;
#  (2) holdfast.conf(5) has every key of the configuration file, and no option that is not one;
#  (3) every page has the sections that administrators look for, mandoc finds no fault, and neither it
#      nor groff prints "BSD" above or below.
# shellcheck disable=SC2317 # called by names that are made
set -u
. "$(dirname "$0")/lib.sh"

# Both programs, as they are installed: completions ask the command, and that the server.
mkdir "$work/bin" "$work/zsh"
ln -s "$HOLDFAST" "$work/bin/holdfast"
ln -s "$(realpath "$(dirname "$HOLDFAST")/../daemon/holdfastd")" "$work/bin/holdfastd"
export PATH="$work/bin:$PATH"

for shell in bash zsh fish; do
    holdfast completion "$shell" > "$work/$shell.completion"
done
expect "bash is what is meant without a word" same "$(holdfast completion)" "$(cat "$work/bash.completion")"
output=$(holdfast completion csh 2>&1)
expect "exit 2 for another shell" same $? 2
expect "it is named" matches "$output" '"csh"; there are bash, zsh, fish'
for name in $(holdfast help | sed -n 's/^  \([a-z-]*\) .*/\1/p'); do
    expect "bash knows $name" grep -q "^        $name)" "$work/bash.completion"
    expect "zsh knows $name" grep -q "^        $name)" "$work/zsh.completion"
    expect "fish knows $name" grep -q "__fish_use_subcommand -a $name " "$work/fish.completion"
done

# complete SHELL LINE: the line after a TAB. zsh has no command for that, so it is typed on a terminal.
complete_fish() {
    fish --no-config -c "source $work/fish.completion; complete -C '$1'" | cut -f 1 | xargs
}
cat > "$work/tab.zsh" << 'END'
zmodload zsh/zpty
zpty shell "PS1= zsh -f -i"
zpty -w shell "fpath=($1 \$fpath); autoload -Uz compinit; compinit -u -D"
zpty -w shell "show() { print -r -- \"<\$BUFFER>\"; BUFFER=; zle accept-line }; zle -N show; bindkey '^X' show; echo SET''UP"
while zpty -r shell line && [[ $line != *SETUP* ]]; do :; done
zpty -w -n shell "$2"$'\t\x18'
while zpty -r shell line; do
    [[ $line == *'<'*'>'* ]] && { print -r -- ${${line##*<}%%>*}; break }
done
zpty -d shell
END
complete_zsh() { timeout 60 zsh -f "$work/tab.zsh" "$work/zsh" "$1" | sed 's/.* \([^ ][^ ]*\) *$/\1/'; }
cp "$work/zsh.completion" "$work/zsh/_holdfast"

for shell in zsh fish; do
    if ! command -v "$shell" > /dev/null; then
        echo "not shown: $shell is not installed"
        continue
    fi
    while read -r line expected; do
        expect "$shell: ${line//_/ }" same "$("complete_$shell" "${line//_/ }")" "$expected"
    done << 'END'
holdfast_expl explain
holdfast_locks_--wai --waiting
holdfast_store_mig migrate
holdfast_clients_--state_rec recovering
holdfast_serve_--takeov --takeover-hook
holdfast_help_dri drill
holdfast_completion_zs zsh
END
done

# (2)
holdfast manual > "$work/holdfast.1"
holdfastd --manual > "$work/holdfastd.8"
holdfastd --manual-conf > "$work/holdfast.conf.5"
sed -n 's/^\.It Cm \([a-z-]*\) No =.*/\1/p' "$work/holdfast.conf.5" | sort > "$work/keys"
sed -n 's/^#*\([a-z-]*\) = .*/\1/p' "$(dirname "$0")/../../contrib/holdfast.conf" | sort -u > "$work/example"
expect "the page has the keys of the example" diff "$work/example" "$work/keys"

# (3)
for page in holdfast.1 holdfastd.8 holdfast.conf.5; do
    for section in NAME DESCRIPTION FILES "EXIT STATUS" EXAMPLES "SEE ALSO"; do
        expect "$page has $section" grep -qx "\.Sh $section" "$work/$page"
    done
done
for page in holdfast.1 holdfastd.8; do
    expect "$page has SIGNALS" grep -qx '\.Sh SIGNALS' "$work/$page"
done
if command -v mandoc > /dev/null; then
    # Each refers to the others, which are not installed here, and names holdfast as what it is of.
    complaints=$(mandoc -Tlint "$work"/*.[158] 2> /dev/null | grep -v -e 'referenced manual' -e 'explicitly specified')
    expect "mandoc has nothing to say" same "$complaints" ""
else
    echo "not shown: mandoc is not installed"
fi
for page in holdfast.1 holdfastd.8 holdfast.conf.5; do
    for formatter in "groff -mandoc -Tutf8" "mandoc -Tutf8"; do
        command -v "${formatter%% *}" > /dev/null || continue
        text=$($formatter "$work/$page" 2> /dev/null | sed -n '1,3p;$p')
        expect "$formatter heads $page with its name" matches "$text" "HOLDFAST"
        expect "no BSD around $page ($formatter)" same "$(grep -c BSD <<< "$text")" 0
    done
done
finish
