/*
 * config_file.h -- the configuration file: INI with the section [holdfast] (like nfs.conf, where
 * each program has its own), and one for each group that differs from it (config_group.h).
 */
#ifndef DAEMON_CONFIG_FILE_H
#define DAEMON_CONFIG_FILE_H

#include "daemon/config.h"

#include <stdio.h>

/*
 * Sets every option that the section of this group names; NULL: that [holdfast] names. 0, or a
 * negative errno with a sentence in *ret_why that names file, line, key and cause. Unknown keys,
 * unknown sections, keys outside a section and keys given twice are errors, in every section: a
 * setting that is silently not in force is worse than no start.
 */
__attribute__((warn_unused_result)) int config_file_read(struct config *config, const char *path,
                                                         const char *group, struct text *ret_why);

/* Opens a regular file; anything else could keep the reader waiting. 0, or a negative errno with
 * what is wrong in *ret_cause. */
__attribute__((warn_unused_result)) int config_file_open(const char *path, FILE **ret,
                                                         const char **ret_cause);

#endif
