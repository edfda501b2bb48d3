/*
 * reload_report.c -- see reload_report.h.
 *
 * Exports are compared as they are in force, not as they were written: the lines of options and
 * file add up, and a file may change while its name stays. So may a directory: another one that was
 * moved or mounted there is a change.
 */
#include "daemon/reload_report.h"

#include "daemon/config_change.h"

#include <stdlib.h>
#include <sys/sysmacros.h>

enum { VALUES_MAX = 8192, RIGHTS_MAX = 160, PLACE_MAX = 80 };

void reload_report_begin(struct reload_report *report)
{
    reload_report_done(report);
    report->told.why = report->why;
    report->told.needs_restart = report->needs_restart;
}

void reload_report_done(struct reload_report *report)
{
    for (uint32_t i = 0; i < report->told.change_count; i++) {
        free(report->changes[i].from);
        free(report->changes[i].to);
    }
    free(report->changes);
    *report = (struct reload_report){0};
}

/* Takes the texts over; NULL: there was, or will be, none. */
static bool add_change(struct reload_report *report, const char *option, char *from, char *to)
{
    if (report->told.change_count == report->change_max) {
        uint32_t more = report->change_max == 0 ? 16 : 2 * report->change_max;
        struct admin_change *grown = realloc(report->changes, more * sizeof *grown);
        if (grown == NULL) {
            free(from);
            free(to);
            return false;
        }
        report->changes = grown;
        report->change_max = more;
        report->told.changes = grown;
    }
    report->changes[report->told.change_count++] =
        (struct admin_change){.option = option, .from = from, .to = to};
    return true;
}

/* ---- options ---- */

/* NULL: no memory. */
static char *values_of(const struct config *config, const struct config_option *option)
{
    char buffer[VALUES_MAX];
    struct text text;
    text_init(&text, buffer, sizeof buffer);
    config_change_add(&text, config, option);
    return strdup(buffer);
}

/* A text of nothing is no text. */
static char *or_null(char *text)
{
    if (text[0] != '\0')
        return text;
    free(text);
    return NULL;
}

static bool add_option(struct reload_report *report, const struct config *now,
                       const struct config *fresh, const struct config_option *option)
{
    char *from = values_of(now, option), *to = values_of(fresh, option);
    if (from != NULL && to != NULL)
        return add_change(report, option->name, or_null(from), or_null(to));
    free(from);
    free(to);
    return false;
}

static bool compare_option(struct reload_report *report, const struct config *now,
                           const struct config *fresh, const struct config_option *option)
{
    switch (config_change_of(now, fresh, option)) {
    case CONFIG_UNCHANGED:
        return true;
    case CONFIG_NEEDS_RESTART:
        report->needs_restart[report->told.restart_count++] = option->name;
        return true;
    case CONFIG_CHANGED: /* the exports follow one by one */
        return option->type == CONFIG_EXPORTS || add_option(report, now, fresh, option);
    }
    return true;
}

/* ---- exports ---- */

/* Which directory that is, if its name does not say it. */
static void add_place(struct text *text, const struct export *export)
{
    text_add(text, " [device ");
    text_add_u64(text, major(export->device));
    text_add_char(text, ':');
    text_add_u64(text, minor(export->device));
    text_add(text, ", inode ");
    text_add_u64(text, export->root_inode);
    text_add_char(text, ']');
}

/* As a line of exports(5). NULL: no memory. */
static char *line_of(const struct export *export, bool with_place)
{
    size_t size = sizeof export->directory + PLACE_MAX;
    for (uint32_t i = 0; i < export->rule_count; i++)
        size += strlen(export->rules[i].client.name) + RIGHTS_MAX;
    char *line = malloc(size);
    if (line == NULL)
        return NULL;
    struct text text;
    text_init(&text, line, (uint32_t)size);
    text_add(&text, export->directory);
    for (uint32_t i = 0; i < export->rule_count; i++) {
        const struct export_client *client = &export->rules[i].client;
        text_add_char(&text, ' ');
        text_add(&text, client->name);
        text_add_char(&text, '(');
        export_line_add_rights(&text, &client->rights);
        text_add_char(&text, ')');
    }
    if (with_place)
        add_place(&text, export);
    return line;
}

static const struct export *find(const struct export_table *table, const char *directory)
{
    for (uint32_t i = 0; i < table->count; i++)
        if (strcmp(table->exports[i].directory, directory) == 0)
            return &table->exports[i];
    return NULL;
}

/* One of the two may be NULL. */
static bool compare_export(struct reload_report *report, const struct export *now,
                           const struct export *fresh)
{
    bool is_moved = now != NULL && fresh != NULL &&
                    (now->device != fresh->device || now->root_inode != fresh->root_inode);
    char *from = now == NULL ? NULL : line_of(now, is_moved);
    char *to = fresh == NULL ? NULL : line_of(fresh, is_moved);
    bool has_memory = (from != NULL) == (now != NULL) && (to != NULL) == (fresh != NULL);
    if (has_memory && (from == NULL || to == NULL || strcmp(from, to) != 0))
        return add_change(report, "export", from, to);
    free(from);
    free(to);
    return has_memory;
}

static bool compare_exports(struct reload_report *report, const struct export_table *now,
                            const struct export_table *fresh)
{
    bool is_good = true;
    for (uint32_t i = 0; is_good && i < fresh->count; i++)
        is_good =
            compare_export(report, find(now, fresh->exports[i].directory), &fresh->exports[i]);
    for (uint32_t i = 0; is_good && i < now->count; i++)
        if (find(fresh, now->exports[i].directory) == NULL)
            is_good = compare_export(report, &now->exports[i], NULL);
    return is_good;
}

bool reload_report_compare(struct reload_report *report, const struct config *now,
                           const struct config *fresh, const struct export_table *exports_now,
                           const struct export_table *exports)
{
    bool is_good = true;
    for (uint32_t i = 0; is_good && i < config_option_count; i++)
        is_good = compare_option(report, now, fresh, &config_options[i]);
    if (is_good && exports != NULL)
        is_good = compare_exports(report, exports_now, exports);
    return is_good;
}
