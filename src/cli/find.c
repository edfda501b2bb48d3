/*
 * find.c -- see find.h.
 */
#include "cli/find.h"

#include "cli/print.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { PATH_LENGTH = 1024, PAGE = 1000, MATCHES_MAX = 20 };

int find_rows(struct server *server, const char *path, const char *name, find_row_fn visit,
              find_page_fn page, void *context)
{
    char cursor[64] = "0", full[PATH_LENGTH];
    bool has_parameters = strchr(path, '?') != NULL, goes_on = true;
    while (goes_on) {
        int exit_code;
        int len = snprintf(full, sizeof full, "%s%climit=%d&cursor=%s", path,
                           has_parameters ? '&' : '?', PAGE, cursor);
        if (len < 0 || (size_t)len >= sizeof full)
            return EXIT_USAGE;
        json_t *answer = server_get(server, full, &exit_code), *row;
        if (answer == NULL)
            return exit_code;
        size_t index;
        json_array_foreach(json_object_get(answer, name), index, row)
        {
            goes_on = visit(context, row);
            if (!goes_on)
                break;
        }
        const char *next = json_string_value(json_object_get(answer, "next"));
        goes_on = goes_on && next != NULL;
        (void)snprintf(cursor, sizeof cursor, "%s", next != NULL ? next : "");
        json_decref(answer);
        if (page != NULL)
            page(context);
    }
    return EXIT_OK;
}

bool find_is_id(const char *text)
{
    if (*text == 'c')
        text++;
    return *text != '\0' && strlen(text) < FIND_ID_MAX - 8 &&
           strspn(text, "0123456789") == strlen(text);
}

struct search {
    const char *word;
    json_t *found[MATCHES_MAX];
    size_t count;
};

static bool match(void *context, const json_t *row)
{
    struct search *search = context;
    if (strcasecmp(print_string(row, "name"), search->word) == 0 ||
        strcasecmp(print_string(row, "address"), search->word) == 0)
        search->found[search->count++] = json_incref((json_t *)(uintptr_t)row);
    return search->count < MATCHES_MAX;
}

static int by_id(struct server *server, const char *id, json_t **ret)
{
    char path[PATH_LENGTH];
    int exit_code;
    (void)snprintf(path, sizeof path, "/api/v1/clients/%s", id);
    *ret = server_get(server, path, &exit_code);
    return exit_code;
}

int find_client(struct server *server, const char *word, json_t **ret)
{
    *ret = NULL;
    if (find_is_id(word))
        return by_id(server, word, ret);
    struct search search = {.word = word};
    int exit_code = find_rows(server, "/api/v1/clients", "clients", match, NULL, &search);
    if (exit_code == EXIT_OK && search.count == 1)
        *ret = json_incref(search.found[0]);
    if (exit_code == EXIT_OK && search.count == 0) {
        (void)fprintf(stderr, "holdfast: no client has the id, address or name \"");
        print_safe(stderr, word);
        (void)fputs("\"; holdfast clients lists them\n", stderr);
        exit_code = EXIT_NO;
    }
    if (exit_code == EXIT_OK && search.count > 1) {
        (void)fputs("holdfast: there are several of them; say which by its id:\n", stderr);
        for (size_t i = 0; i < search.count; i++) {
            (void)fprintf(stderr, "  %s  %s  %s  ", print_string(search.found[i], "id"),
                          print_string(search.found[i], "protocol"),
                          print_string(search.found[i], "address"));
            print_safe(stderr, print_string(search.found[i], "name"));
            (void)fputc('\n', stderr);
        }
        exit_code = EXIT_USAGE;
    }
    for (size_t i = 0; i < search.count; i++)
        json_decref(search.found[i]);
    return exit_code;
}

static bool print_row(void *context, const json_t *row)
{
    bool *is_first = context;
    char *text = json_dumps(row, JSON_COMPACT | JSON_REAL_PRECISION(12));
    if (text != NULL)
        (void)printf("%s\n  %s", *is_first ? "" : ",", text);
    free(text);
    *is_first = false;
    return true;
}

int find_print_json(struct server *server, const char *path, const char *name)
{
    bool is_first = true;
    (void)printf("{\"%s\": [", name);
    int exit_code = find_rows(server, path, name, print_row, NULL, &is_first);
    (void)puts("\n]}");
    return exit_code;
}
