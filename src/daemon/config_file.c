/*
 * config_file.c -- reads the configuration file with libinih; see config_file.h.
 *
 * libinih tells the handler neither the line nor why it skips a line, and cuts lines that are
 * longer than its buffer. So the lines go through our own reader, which counts them and refuses
 * those that would be cut; the number that ini_parse_stream returns then tells a syntax error from
 * an error that the handler has described already. Only the first error is reported.
 */
#include "daemon/config_file.h"

#include <errno.h>
#include <fcntl.h>
#include <ini.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#define SECTION "holdfast"

struct reading {
    FILE *file;
    struct config *config;
    const char *group; /* whose section is wanted; NULL: [holdfast] */
    const char *path;
    uint32_t line;  /* of the line that was read last */
    bool is_failed; /* described in *ret_why: no more lines are handed out */
    int result;
    struct text *ret_why;
};

static void add_place(struct reading *reading)
{
    text_add(reading->ret_why, reading->path);
    text_add(reading->ret_why, ", line ");
    text_add_u64(reading->ret_why, reading->line);
    text_add(reading->ret_why, ": ");
}

static void fail(struct reading *reading, int result)
{
    reading->is_failed = true;
    reading->result = result;
}

static void add_cause(struct text *text, const char *what, const char *path, const char *cause)
{
    text_add(text, what);
    text_add(text, path);
    text_add(text, ": ");
    text_add(text, cause);
}

/* Of /dev/null, which stands for no options at all. */
enum { NULL_MAJOR = 1, NULL_MINOR = 3 };

static bool never_waits(const struct stat *st)
{
    return S_ISREG(st->st_mode) ||
           (S_ISCHR(st->st_mode) && st->st_rdev == makedev(NULL_MAJOR, NULL_MINOR));
}

/* Nobody may have the other end of a pipe: a reload would never end. */
int config_file_open(const char *path, FILE **ret, const char **ret_cause)
{
    struct stat st;
    int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    int err = fd < 0 || fstat(fd, &st) != 0 ? -errno : never_waits(&st) ? 0 : -EINVAL;
    *ret_cause = err == -EINVAL ? "is not a regular file" : strerror(-err);
    FILE *file = err == 0 ? fdopen(fd, "r") : NULL;
    if (file != NULL) {
        *ret = file;
        return 0;
    }
    if (err == 0) {
        err = -errno;
        *ret_cause = strerror(-err);
    }
    if (fd >= 0)
        (void)close(fd);
    return err;
}

/* fgets for libinih. After an error the file ends here, so that nothing is reported twice. */
static char *read_line(char *buffer, int size, void *stream)
{
    struct reading *reading = stream;
    if (reading->is_failed)
        return NULL;
    char *line = fgets(buffer, size, reading->file);
    if (line == NULL) {
        int error = errno;
        if (ferror(reading->file)) {
            add_cause(reading->ret_why, "cannot read ", reading->path, strerror(error));
            fail(reading, -error);
        }
        return NULL;
    }
    reading->line++;
    size_t len = strlen(line);
    if ((len > 0 && line[len - 1] == '\n') || feof(reading->file))
        return line;
    add_place(reading);
    text_add(reading->ret_why, "longer than ");
    text_add_u64(reading->ret_why, (uint64_t)(size - 2));
    text_add(reading->ret_why, " characters, or contains a zero byte; use the command line for it");
    fail(reading, -EINVAL);
    return NULL;
}

static void refuse_section(struct text *why, const char *section, const char *name)
{
    if (section[0] != '\0') {
        text_add(why, "unknown section [");
        text_add_escaped(why, bytes_of_text(section), 50);
        text_add(why, "]; only [" SECTION "] and [" CONFIG_GROUP_SECTION "NAME] are read");
    } else {
        text_add(why, "the key ");
        text_add_escaped(why, bytes_of_text(name), 50);
        text_add(why, " comes before any section; add [" SECTION "] on a line above it");
    }
}

/* The group that a section is of; NULL: of none. The name is to be looked at. */
static const char *group_of(const char *section)
{
    size_t len = sizeof CONFIG_GROUP_SECTION - 1;
    return strncmp(section, CONFIG_GROUP_SECTION, len) == 0 ? section + len : NULL;
}

/* What is wrong with a key that may be good elsewhere; NULL: nothing. */
static const char *refusal_of(const struct config_option *option, const char *group)
{
    if (option == NULL)
        return "unknown key ";
    if ((option->flags & CONFIG_NO_KEY) != 0)
        return "not a key, only a command-line option: ";
    if (group != NULL && !config_group_has_key(option->name))
        return "needed before the group is known, so it belongs into [" SECTION "]: ";
    return NULL;
}

/* libinih's convention: non-zero means the pair was good. Every section is looked at, and only the
 * wanted one counts. */
static int take_pair(void *user, const char *section, const char *name, const char *value)
{
    struct reading *reading = user;
    struct text *why = reading->ret_why;
    if (reading->is_failed)
        return 0;
    struct text before = *why;
    add_place(reading);
    const char *group = group_of(section);
    if (group != NULL ? !store_group_is_name(group) : strcmp(section, SECTION) != 0) {
        refuse_section(why, section, name);
        fail(reading, -EINVAL);
        return 0;
    }
    const struct config_option *option = config_find(name);
    const char *refusal = refusal_of(option, group);
    if (refusal != NULL) {
        text_add(why, refusal);
        text_add_escaped(why, bytes_of_text(name), 50);
        if (option == NULL)
            config_add_suggestion(why, name, true);
        fail(reading, -EINVAL);
        return 0;
    }
    text_add(why, name);
    text_add(why, " = ");
    config_add_value(why, option, value);
    text_add(why, ": ");
    bool is_wanted = reading->group == NULL || group == NULL ? reading->group == group
                                                             : strcmp(reading->group, group) == 0;
    int result = !is_wanted ? 0
                            : config_set(reading->config, option, value,
                                         group == NULL ? CONFIG_FROM_FILE : CONFIG_FROM_GROUP,
                                         reading->line, why);
    if (result != 0) {
        fail(reading, result);
        return 0;
    }
    *why = before;
    why->start[why->len] = '\0';
    return 1;
}

int config_file_read(struct config *config, const char *path, const char *group,
                     struct text *ret_why)
{
    struct reading reading = {.config = config, .path = path, .group = group, .ret_why = ret_why};
    const char *cause;
    int err = config_file_open(path, &reading.file, &cause);
    if (err != 0) {
        add_cause(ret_why, "cannot open ", path, cause);
        return err;
    }
    struct text before = *ret_why;
    int line = ini_parse_stream(read_line, &reading, take_pair, &reading);
    (void)fclose(reading.file); /* it was only read */
    if (line < 0) {
        text_add(ret_why, "out of memory");
        return -ENOMEM;
    }
    /* libinih continues after a syntax error: then its line comes before the failure of ours. */
    if (line > 0 && (!reading.is_failed || (uint32_t)line < reading.line)) {
        *ret_why = before;
        ret_why->start[ret_why->len] = '\0';
        reading.line = (uint32_t)line;
        add_place(&reading);
        text_add(ret_why, "neither a section like [" SECTION "], nor key = value, nor a comment");
        return -EINVAL;
    }
    return reading.is_failed ? reading.result : 0;
}
