/*
 * store_file.h -- a file that is whole or not there.
 *
 * It is written under another name beside it (NAME.XXXXXX), mode 0600, and gets its own name when
 * it is complete and on the disk. What was there before stays until then. A pipe, a device and
 * standard output are written to as they are.
 */
#ifndef DAEMON_STORE_FILE_H
#define DAEMON_STORE_FILE_H

#include <stdbool.h>
#include <stdio.h>

struct store_file {
    FILE *out;
    char *path, *temporary; /* NULL: none, it is written to as it is */
};

/* `path` NULL: standard output. 0 or an errno. */
__attribute__((warn_unused_result)) int store_file_open(struct store_file *ret, const char *path);
/* Gives it its name. 0; an errno: it is not there, and what was there before is; or a negative one:
 * it is there, but a power failure may bring back what was there before. */
__attribute__((warn_unused_result)) int store_file_keep(struct store_file *file);
/* Instead: nothing is left of it. */
void store_file_drop(struct store_file *file);

#endif
