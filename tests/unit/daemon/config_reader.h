/*
 * config_reader.h -- a configuration read from words and from a file of the test's own, for the
 * tests of config*.c.
 *
 * Both have a path; config_reader_tear_down removes the file and its directory.
 */
#ifndef UNIT_DAEMON_CONFIG_READER_H
#define UNIT_DAEMON_CONFIG_READER_H

#include "daemon/config.h"

extern char config_reader_directory[], config_reader_file[64];

struct outcome {
    int result;
    struct config config;
    char why[1024];
};

/* Fixtures of a group of tests. */
int config_reader_set_up(void **state);
int config_reader_tear_down(void **state);

void config_reader_write(const char *content);
/* As config_read_group; the words end with NULL. */
void config_reader_read(struct outcome *ret, const char *group, const char *const *words);

void config_reader_assert_read(const struct outcome *outcome);
void config_reader_assert_refused(const struct outcome *outcome, const char *part);

#define READ_GROUP(outcome, group, ...)                                                            \
    config_reader_read((outcome), (group), (const char *const[]){__VA_ARGS__, NULL})
#define READ(outcome, ...) READ_GROUP((outcome), NULL, __VA_ARGS__)

#endif
