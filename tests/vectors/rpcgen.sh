#!/bin/sh
# rpcgen.sh RPCGEN -h|-c INPUT.x OUTPUT -- run rpcgen on a copy in a directory of its own.
#
# rpcgen writes the path it was given into the #include of its output and refuses to overwrite
# files; this way the include is the plain name and the output is always made anew.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp "$3" "$work/"
(cd "$work" && "$1" "$2" "$(basename "$3")") > "$4"
