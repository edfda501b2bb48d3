/*
 * lock_match.h -- is a lock on the file that is looked for?
 */
#ifndef CLI_LOCK_MATCH_H
#define CLI_LOCK_MATCH_H

#include <fcntl.h>
#include <stdbool.h>

enum { LOCK_MATCH_HEX_MAX = 2 * MAX_HANDLE_SZ + 1 };

/* The kernel's handle of a file, in hex: servers that export it put these bytes into theirs. An
 * exit code, after saying why there is none. */
int lock_match_read(const char *path, char ret[static LOCK_MATCH_HEX_MAX]);

/* Is that handle in this one of an NFS server? Both in hex; an empty one is in all. */
bool lock_match_is_in(const char *file, const char *wanted);

/* Digits that a handle can begin with, in any case. */
bool lock_match_is_prefix(const char *text);
/* Does it begin with them? */
bool lock_match_begins(const char *file, const char *prefix);

#endif
