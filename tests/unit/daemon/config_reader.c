/*
 * config_reader.c -- see config_reader.h.
 */
#include "config_reader.h"

#include "unit/test.h"

#include <unistd.h>

enum { WORDS_MAX = 64 };

char config_reader_directory[] = "/tmp/holdfast-test-config-XXXXXX";
char config_reader_file[64];

int config_reader_set_up(void **state)
{
    (void)state;
    assert_non_null(mkdtemp(config_reader_directory));
    (void)snprintf(config_reader_file, sizeof config_reader_file, "%s/file",
                   config_reader_directory);
    return 0;
}

int config_reader_tear_down(void **state)
{
    (void)state;
    (void)unlink(config_reader_file);
    assert_int_equal(rmdir(config_reader_directory), 0);
    return 0;
}

void config_reader_write(const char *content)
{
    FILE *file = fopen(config_reader_file, "w");
    assert_non_null(file);
    assert_true(fputs(content, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

void config_reader_read(struct outcome *ret, const char *group, const char *const *words)
{
    char *argv[WORDS_MAX] = {strdup("holdfastd")};
    int argc = 1;
    struct text why;
    for (; words[argc - 1] != NULL; argc++)
        argv[argc] = strdup(words[argc - 1]);
    text_init(&why, ret->why, sizeof ret->why);
    ret->result = config_read_group(argc, argv, group, &ret->config, &why);
    /* Whatever the configuration keeps must be its own copy. */
    for (int i = 0; i < argc; i++)
        free(argv[i]);
}

void config_reader_assert_read(const struct outcome *outcome)
{
    if (outcome->result != 0)
        fail_msg("refused: %s", outcome->why);
    assert_string_equal(outcome->why, "");
}

void config_reader_assert_refused(const struct outcome *outcome, const char *part)
{
    if (outcome->result == 0 || strstr(outcome->why, part) == NULL)
        fail_msg("\"%s\" does not contain \"%s\"", outcome->why, part);
}
