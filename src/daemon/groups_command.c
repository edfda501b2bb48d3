/*
 * groups_command.c -- see groups_command.h.
 *
 * The command `holdfast` links no store: it runs holdfastd with these words. Options other than
 * --json are the server's, so --store and --config mean what they mean to it.
 */
#include "daemon/groups_command.h"

#include "admin/writer.h"
#include "base/units.h"
#include "daemon/config.h"
#include "store/store.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    ARGUMENTS_MAX = 32,
    COLUMNS = 7,
    CELL_MAX = 224,
    EXIT_UNSERVED = 1, /* and nothing else ends with it: a monitor must not mistake it */
    EXIT_FAILED = 74,
};

static const char usage[] =
    "Usage: holdfast groups [--store URL] [--config FILE] [--json]\n\n"
    "Lists the groups of a postgres: store and of the configuration. STATE is active, or nobody:\n"
    "then HOST, ADDRESS and SINCE are those of the last server. STANDBYS: how many wait for it,\n"
    "and where. A store whose servers have no --group is listed as \"-\".\n\n"
    "Exit codes: 0 ok, 1 a group has no active server, 2 usage, 74 the store failed, memory is "
    "short\n"
    "or the output cannot be written: nothing is known about the groups.\n";

struct row {
    char cells[COLUMNS][CELL_MAX];
};

struct list {
    struct row *rows; /* owned */
    uint32_t count;
    uint32_t unserved;
    struct writer json;
};

static int fail(int exit_code, const char *sentence)
{
    (void)fprintf(stderr, "holdfast groups: %s\n", sentence);
    return exit_code;
}

/* ---- rows ---- */

static void put_cell(struct row *row, uint32_t column, const char *text)
{
    (void)snprintf(row->cells[column], CELL_MAX, "%s", text != NULL && *text != '\0' ? text : "-");
}

static void add_json(struct writer *out, const struct store_group *group)
{
    writer_object(out, NULL);
    writer_text(out, "group", group->name);
    writer_text(out, "state", group->is_served ? "active" : "nobody");
    writer_text(out, "host", group->host);
    writer_text(out, "address", group->address);
    writer_text(out, "since", group->since);
    writer_number(out, "epoch", group->epoch);
    writer_number(out, "standbys", group->waiting);
    writer_text(out, "standbys_at", group->waiting_from);
    writer_end_object(out);
}

static int add_group(void *context, const struct store_group *group)
{
    struct list *list = context;
    struct row *rows = realloc(list->rows, (list->count + 1) * sizeof *rows);
    if (rows == NULL)
        return -ENOMEM;
    list->rows = rows;
    struct row *row = &rows[list->count++];
    char number[32], waiting[CELL_MAX];
    list->unserved += !group->is_served;
    add_json(&list->json, group);
    put_cell(row, 0, group->name);
    put_cell(row, 1, group->is_served ? "active" : "nobody");
    put_cell(row, 2, group->host);
    put_cell(row, 3, group->address);
    put_cell(row, 4, group->since);
    (void)snprintf(number, sizeof number, "%llu", (unsigned long long)group->epoch);
    put_cell(row, 5, number);
    (void)snprintf(waiting, sizeof waiting, "%u%s%.180s%s", group->waiting,
                   group->waiting > 0 ? " (" : "", group->waiting > 0 ? group->waiting_from : "",
                   group->waiting > 0 ? ")" : "");
    put_cell(row, 6, waiting);
    return 0;
}

/* One that is configured, and that no server has served yet: the store does not know it. */
static int add_unused(struct list *list, const char *name)
{
    for (uint32_t i = 0; i < list->count; i++)
        if (strcmp(list->rows[i].cells[0], name) == 0)
            return 0;
    return add_group(list, &(struct store_group){.name = name});
}

static void print_row(const struct row *row, const int widths[static COLUMNS])
{
    for (uint32_t i = 0; i + 1 < COLUMNS; i++)
        (void)printf("%-*s  ", widths[i], row->cells[i]);
    (void)printf("%s\n", row->cells[COLUMNS - 1]);
}

static void print_rows(const struct list *list)
{
    static const struct row titles = {
        {"GROUP", "STATE", "HOST", "ADDRESS", "SINCE", "EPOCH", "STANDBYS"}};
    int widths[COLUMNS];
    for (uint32_t column = 0; column < COLUMNS; column++) {
        widths[column] = (int)strlen(titles.cells[column]);
        for (uint32_t i = 0; i < list->count; i++) {
            int len = (int)strlen(list->rows[i].cells[column]);
            widths[column] = len > widths[column] ? len : widths[column];
        }
    }
    if (list->count == 0) {
        (void)printf("no server has used this store yet\n");
        return;
    }
    print_row(&titles, widths);
    for (uint32_t i = 0; i < list->count; i++)
        print_row(&list->rows[i], widths);
}

/* ---- the command ---- */

static int list_groups(const struct config *config, struct list *list, bool is_json)
{
    struct store_failure failure = {0};
    writer_list(&list->json, NULL);
    int result = store_list_groups(config->store, config->store_timeout_s * SECOND_NS, add_group,
                                   list, &failure);
    for (uint32_t i = 0; result == 0 && i < config->group_names.count; i++)
        result = add_unused(list, config->group_names.at[i]);
    writer_end_list(&list->json);
    if (result == -EIO)
        return fail(failure.exit_code, failure.text);
    size_t len;
    char *json = writer_take(&list->json, &len);
    if (result != 0 || json == NULL) {
        free(json);
        return fail(EXIT_FAILED, "out of memory; free some and try again");
    }
    if (is_json)
        (void)printf("%s\n", json);
    else
        print_rows(list);
    free(json);
    if (fflush(stdout) != 0)
        return fail(EXIT_FAILED, "cannot write to standard output; is its disk full?");
    return list->unserved > 0 ? EXIT_UNSERVED : 0;
}

int groups_command_run(int argc, char **argv)
{
    char *rest[ARGUMENTS_MAX] = {argv[0]}, buffer[1024];
    int rest_count = 1;
    bool is_json = false;
    struct config config;
    struct list list = {0};
    struct text why;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
            (void)fputs(usage, stdout);
            return fflush(stdout) == 0 ? 0 : EXIT_FAILED;
        }
        if (strcmp(argv[i], "--json") == 0)
            is_json = true;
        else if (rest_count + 1 >= ARGUMENTS_MAX)
            return fail(CONFIG_EXIT, "too many arguments");
        else
            rest[rest_count++] = argv[i];
    }
    text_init(&why, buffer, sizeof buffer);
    if (config_read(rest_count, rest, &config, &why) != 0)
        return fail(CONFIG_EXIT, buffer);
    int result = list_groups(&config, &list, is_json);
    free(list.rows);
    config_done(&config);
    return result;
}
