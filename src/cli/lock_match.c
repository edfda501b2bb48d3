/*
 * lock_match.c -- see lock_match.h.
 */
#include "cli/lock_match.h"

#include "base/text.h"
#include "cli/command.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

enum {
    PADDING_DIGITS = 6, /* three bytes in hex are the most that pad a handle */
    HANDLE_DIGITS = 128,
};

/* holdfast's own handles: version, type, length of the kernel's handle, a zero, four bytes, that
 * handle, padded, and eight bytes. */
static bool is_own_handle_of(const char *file, const char *wanted)
{
    enum { HEAD = 16, TAIL = 16, QUAD = 8 }; /* in digits */
    size_t wanted_len = strlen(wanted), padded = (wanted_len + QUAD - 1) / QUAD * QUAD;
    char length[3];
    (void)snprintf(length, sizeof length, "%02x", (unsigned)(wanted_len / 2) & 0xff);
    return strlen(file) == HEAD + padded + TAIL && strncmp(file, "01", 2) == 0 &&
           strncmp(file + 4, length, 2) == 0 && strncmp(file + HEAD, wanted, wanted_len) == 0;
}

/* File servers put the kernel's handle at the end of theirs, and some pad it to a multiple of four
 * bytes. The same bytes anywhere else belong to another file: handles are short, and full of
 * zeros. */
bool lock_match_is_in(const char *file, const char *wanted)
{
    size_t len = strlen(file), wanted_len = strlen(wanted), end = len;
    bool is_found = wanted_len > 0 && is_own_handle_of(file, wanted);
    for (; !is_found && end >= wanted_len && len - end <= PADDING_DIGITS; end -= 2) {
        is_found = memcmp(file + end - wanted_len, wanted, wanted_len) == 0;
        if (end < 2 || memcmp(file + end - 2, "00", 2) != 0)
            break;
    }
    return is_found;
}

int lock_match_read(const char *path, char ret[static LOCK_MATCH_HEX_MAX])
{
    union {
        struct file_handle handle;
        char room[sizeof(struct file_handle) + MAX_HANDLE_SZ];
    } at;
    int mount_id;
    at.handle.handle_bytes = MAX_HANDLE_SZ;
    if (name_to_handle_at(AT_FDCWD, path, &at.handle, &mount_id, AT_SYMLINK_FOLLOW) != 0) {
        (void)fprintf(stderr, "holdfast locks: --path %s: %s%s\n", path, strerror(errno),
                      errno == EOPNOTSUPP
                          ? "; its file system has no file handles, so it cannot be exported"
                          : "");
        return EXIT_USAGE;
    }
    struct text text;
    text_init(&text, ret, LOCK_MATCH_HEX_MAX);
    text_add_hex(&text, (struct bytes){at.handle.f_handle, at.handle.handle_bytes});
    return EXIT_OK;
}

bool lock_match_is_prefix(const char *text)
{
    size_t len = strlen(text);
    return len > 0 && len <= HANDLE_DIGITS && strspn(text, "0123456789abcdefABCDEF") == len;
}

bool lock_match_begins(const char *file, const char *prefix)
{
    return strncasecmp(file, prefix, strlen(prefix)) == 0;
}
