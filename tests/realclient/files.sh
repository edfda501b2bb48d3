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
finish_files()
{
    [ "$FILES_BEFORE" = holdfast ] || let_go
    finish
}
