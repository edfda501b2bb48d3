/*
 * reload.c -- `holdfast reload`: the server reads its options and exports again.
 */
#include "cli/http_client.h"
#include "cli/print.h"

#include <stdio.h>

/* log-level: info -> debug; of exports one is the whole line. */
static void print_change(const json_t *change)
{
    const char *from = json_string_value(json_object_get(change, "from"));
    const char *to = json_string_value(json_object_get(change, "to"));
    (void)printf("%s: ", print_string(change, "option"));
    if (from == NULL) {
        (void)fputs("added ", stdout);
        print_safe(stdout, to != NULL ? to : "");
    } else if (to == NULL) {
        (void)fputs("removed ", stdout);
        print_safe(stdout, from);
    } else {
        print_safe(stdout, from);
        (void)fputs(" -> ", stdout);
        print_safe(stdout, to);
    }
    (void)puts("");
}

static void print_report(const json_t *report)
{
    const json_t *changed = json_object_get(report, "changed");
    const json_t *needs_restart = json_object_get(report, "needs_restart");
    size_t index;
    const json_t *row;
    json_array_foreach(changed, index, row) print_change(row);
    json_array_foreach(needs_restart, index, row)
    {
        print_safe(stdout, json_string_value(row));
        (void)puts(": stays as it is until a restart");
    }
    if (json_array_size(changed) == 0 && json_array_size(needs_restart) == 0)
        (void)puts("Nothing to change: the server already runs with these options.");
}

int reload_run(struct http_client *http, const struct arguments *arguments)
{
    struct http_client_reply reply = {0};
    int exit_code = http_client_ask(http, "POST", "/api/v1/reload", &reply);
    if (exit_code == EXIT_OK && reply.status != 200)
        exit_code = http_client_print_error(http, &reply);
    else if (exit_code == EXIT_OK && arguments_has(arguments, "json"))
        print_json(reply.body);
    else if (exit_code == EXIT_OK)
        print_report(reply.body);
    http_client_reply_done(&reply);
    return exit_code;
}
