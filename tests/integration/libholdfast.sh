#!/bin/bash
# libholdfast.sh -- what `make install` gives to those who write programs with libholdfast.
#
# Passing proves:
#  (1) the library, its header and its pkg-config file are installed, and nothing of the server's
#      own headers is;
#  (2) the example program builds from that alone, with all warnings, and the header alone as C11;
#      the program talks to a server;
#  (3) a program without a server, or with the wrong path, is told so in a sentence.
#
# HOLDFAST_BUILD is the build directory, HOLDFAST_SOURCE the source.
set -u
. "$(dirname "$0")/lib.sh"

if ! command -v pkg-config > /dev/null || ! command -v "${CC:-cc}" > /dev/null; then
    echo "skipped: no pkg-config or no compiler"
    exit 77
fi

# (1)
expect "it installs" meson install --no-rebuild -C "$HOLDFAST_BUILD" --destdir "$work/root" \
    --tags devel --quiet
header=$(cd "$work/root" && find . -name '*.h')
expect "one header" matches "$header" '^\./[^ ]*/include/holdfast/tracker\.h$'
expect "the library" test -n "$(find "$work/root" -name libholdfast.a)"
config=$(find "$work/root" -name libholdfast.pc)
expect "the pkg-config file" test -n "$config"

# (2)
export PKG_CONFIG_PATH=${config%/*} PKG_CONFIG_SYSROOT_DIR="$work/root"
prefix=$(pkg-config --variable=prefix libholdfast)
# jansson is the system's, and not below the root.
flags=("-I$work/root/${prefix#"$work/root"}/include" "-L$(dirname "$(find "$work/root" -name libholdfast.a)")")
libraries=$(PKG_CONFIG_SYSROOT_DIR='' pkg-config --libs-only-l --static libholdfast)
expect "the libraries it needs" matches "$libraries" '-lholdfast.*-ljansson'
# shellcheck disable=SC2086 # a list of words
expect "the example builds" "${CC:-cc}" -std=gnu11 -Wall -Wextra -Wpedantic -Werror "${flags[@]}" \
    "$HOLDFAST_SOURCE/examples/smb_durable.c" -o "$work/smb_durable" $libraries
printf '#include <holdfast/tracker.h>\nint main(void) { return 0; }\n' > "$work/alone.c"
expect "the header stands alone" "${CC:-cc}" -std=c11 -Wall -Wextra -Wpedantic -Werror \
    "${flags[@]}" -fsyntax-only "$work/alone.c"
start server --listen 127.0.0.1 --port 0 --http off --no-rpcbind --store "lmdb:$work/store" || finish
output=$(printf 'setup g\ncreate g 1 /srv/x\nagain g 1\nlogoff g\n' |
    timeout 60 "$work/smb_durable" "$work/store/control.sock" 2>&1)
expect "it works" matches "$output" $'setup g done c1\ncreate g 1 done c2\nagain g 1 done c2 /srv/x\nlogoff g done'
stop TERM

# (3)
cat > "$work/nobody.c" << 'END'
#include <holdfast/tracker.h>
#include <stdio.h>

int main(int argc, char **argv)
{
    struct holdfast *server = holdfast_open(argv[argc - 1], 200);
    struct holdfast_client client;
    bool is_long = !holdfast_client_init(&client, "smb", "", 0);
    bool is_good = holdfast_client_init(&client, "smb", "k", 1);
    enum holdfast_result result = holdfast_register(server, &client);
    printf("%d %d %d %s\n", is_long, is_good, result == HOLDFAST_UNREACHABLE,
           holdfast_error(server));
    holdfast_close(server);
    return 0;
}
END
# shellcheck disable=SC2086
expect "it builds" "${CC:-cc}" -Wall -Wextra -Werror "${flags[@]}" "$work/nobody.c" -o "$work/nobody" $libraries
expect "no such socket" matches "$("$work/nobody" "$work/none")" \
    "^1 1 1 no answer from the server at $work/none: No such file or directory; is it running"
deep="$work/$(printf 'd%.0s' {1..120})"
mkdir "$deep"
expect "nor in a deep directory" matches "$("$work/nobody" "$deep/none")" 'No such file or directory'
finish
