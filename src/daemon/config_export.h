/*
 * config_export.h -- the values of --export and the lines of the file that --exports names.
 */
#ifndef DAEMON_CONFIG_EXPORT_H
#define DAEMON_CONFIG_EXPORT_H

#include "base/text.h"
#include "file/export_line.h"

#define CONFIG_EXPORT_MAX 256 /* --export on one command line or in one file of options */

struct config_exports {
    uint32_t count;
    char *at[CONFIG_EXPORT_MAX]; /* owned; each parses */
};

/* Lines, parsed. */
struct config_export_lines {
    uint32_t count;
    struct export_line *at; /* owned */
};

/* Adds a line. 0, or -EINVAL (-ENOMEM) with the cause and what is allowed in *ret_why; nothing is
 * then added. */
__attribute__((warn_unused_result)) int
config_export_parse(struct config_exports *exports, const char *value, struct text *ret_why);
void config_export_clear(struct config_exports *exports);

/*
 * All lines, of the options and then of the file; NULL: there is no file. 0 or -errno with a
 * sentence in *ret_why, which names the file and the line; nothing is then owned.
 */
__attribute__((warn_unused_result)) int config_export_read(const struct config_exports *exports,
                                                           const char *path,
                                                           struct config_export_lines *ret,
                                                           struct text *ret_why);
void config_export_lines_done(struct config_export_lines *lines);

#endif
