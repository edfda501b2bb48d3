# files.sh -- for scenarios in which holdfast serves the files, whatever serves them in others.
# Sourced behind lib.sh.
#
# A guest that is on has the files of another server mounted, with handles that are not holdfast's:
# it lets go of them before and after.
# shellcheck shell=bash disable=SC2034,SC2154

FILES_BEFORE=$FILES
FILES=holdfast

let_go()
{
    local guest
    for guest in c1 c2; do
        is_on "$guest" && on "$guest" 'umount -l /mnt 2>/dev/null; true'
    done
    return 0
}

# setup and finish of lib.sh, on holdfast's own files.
begin_files()
{
    grep -qs '^holdfast ' "$work/server/started" || let_go
    mkdir -p "$EXPORT" "$work/server/store"
    chmod 777 "$EXPORT"
    setup "$@"
}
# kill_for SECONDS: kills the server every few of them, or every KILL_EVERY, and starts it again. How often
# is in kills; before each one before_kill is called, which a scenario may define anew.
before_kill() { :; }
kill_for()
{
    local stop=$((SECONDS + $1))
    kills=0
    while [ "$SECONDS" -lt "$stop" ]; do
        sleep "${KILL_EVERY:-$((2 + RANDOM % 5))}" # a kernel waits for three seconds before it connects again
        before_kill
        crash_locks
        start_locks
        kills=$((kills + 1))
    done
}
finish_files()
{
    [ "$FILES_BEFORE" = holdfast ] || let_go
    finish
}
