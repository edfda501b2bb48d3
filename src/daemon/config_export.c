/*
 * config_export.c -- see config_export.h.
 *
 * In the file a line that ends in a backslash continues in the next one, and # begins a comment, as
 * in exports(5).
 */
#include "daemon/config_export.h"

#include "daemon/config_file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int config_export_parse(struct config_exports *exports, const char *value, struct text *ret_why)
{
    struct export_line line;
    if (exports->count == CONFIG_EXPORT_MAX) {
        text_add(ret_why, "too many; allowed: ");
        text_add_u64(ret_why, CONFIG_EXPORT_MAX);
        text_add(ret_why, ", and more in the file of --exports");
        return -EINVAL;
    }
    int err = export_line_parse(value, &line, ret_why);
    if (err == -ENOENT) {
        text_add(ret_why, "nothing to export; write a directory, and who may use it, such as "
                          "'/srv/files *(rw)'");
        return -EINVAL;
    }
    if (err != 0)
        return err;
    export_line_done(&line);
    char *copy = strdup(value);
    if (copy == NULL) {
        text_add(ret_why, "out of memory");
        return -ENOMEM;
    }
    exports->at[exports->count++] = copy;
    return 0;
}

void config_export_clear(struct config_exports *exports)
{
    while (exports->count > 0)
        free(exports->at[--exports->count]);
}

void config_export_lines_done(struct config_export_lines *lines)
{
    while (lines->count > 0)
        export_line_done(&lines->at[--lines->count]);
    free(lines->at);
    lines->at = NULL;
}

/* Parses one more line; one that says nothing is no line. */
static int add_line(struct config_export_lines *lines, const char *text, struct text *ret_why)
{
    struct export_line line;
    int err = export_line_parse(text, &line, ret_why);
    if (err == -ENOENT)
        return 0;
    if (err != 0)
        return err;
    struct export_line *at = realloc(lines->at, (lines->count + 1) * sizeof *at);
    if (at == NULL) {
        export_line_done(&line);
        text_add(ret_why, "out of memory");
        return -ENOMEM;
    }
    lines->at = at;
    lines->at[lines->count++] = line;
    return 0;
}

/* Where in the file, in front of the cause that follows. */
static void add_place(struct text *text, const char *path, uint32_t number)
{
    text_add(text, path);
    if (number > 0) {
        text_add(text, ", line ");
        text_add_u64(text, number);
    }
    text_add(text, ": ");
}

/* A line without its end, and with the ones that it continues in. False: there are no more. */
static bool next_line(FILE *file, char **buffer, size_t *size, uint32_t *number)
{
    char *more = NULL;
    size_t more_size = 0;
    ssize_t len = getline(buffer, size, file);
    if (len < 0)
        return false;
    ++*number;
    for (;;) {
        if (len > 0 && (*buffer)[len - 1] == '\n')
            (*buffer)[--len] = '\0';
        if (len == 0 || (*buffer)[len - 1] != '\\')
            break;
        (*buffer)[--len] = '\0';
        ssize_t more_len = getline(&more, &more_size, file);
        char *joined = more_len > 0 ? realloc(*buffer, (size_t)len + (size_t)more_len + 1) : NULL;
        if (joined == NULL)
            break;
        ++*number;
        memcpy(joined + len, more, (size_t)more_len + 1);
        *buffer = joined;
        *size = (size_t)len + (size_t)more_len + 1;
        len += more_len;
    }
    free(more);
    return true;
}

static int read_file(const char *path, struct config_export_lines *lines, struct text *ret_why)
{
    FILE *file;
    const char *cause;
    int open_err = config_file_open(path, &file, &cause);
    if (open_err != 0) {
        add_place(ret_why, path, 0);
        text_add(ret_why, cause);
        return open_err;
    }
    char *buffer = NULL;
    size_t size = 0;
    uint32_t number = 0;
    int err = 0;
    for (uint32_t first = 1; err == 0 && next_line(file, &buffer, &size, &number);
         first = number + 1) {
        struct text before = *ret_why;
        add_place(ret_why, path, first);
        err = add_line(lines, buffer, ret_why);
        if (err == 0) {
            *ret_why = before;
            ret_why->start[ret_why->len] = '\0';
        }
    }
    free(buffer);
    (void)fclose(file);
    return err;
}

int config_export_read(const struct config_exports *exports, const char *path,
                       struct config_export_lines *ret, struct text *ret_why)
{
    struct config_export_lines lines = {0};
    int err = 0;
    for (uint32_t i = 0; err == 0 && i < exports->count; i++)
        err = add_line(&lines, exports->at[i], ret_why);
    if (err == 0 && path != NULL)
        err = read_file(path, &lines, ret_why);
    if (err != 0) {
        config_export_lines_done(&lines);
        return err;
    }
    *ret = lines;
    return 0;
}
