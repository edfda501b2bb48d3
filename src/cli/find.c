/*
 * find.c -- see find.h.
 */
#include "cli/find.h"

#include "cli/print.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PATH_LENGTH = FIND_PATH_MAX + 128, PAGE = 1000, MATCHES_MAX = 20, NAME_LENGTH = 1024 };

int find_rows(struct http_client *http, const char *path, const char *name, find_row_fn visit,
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
        json_t *answer = http_client_get(http, full, &exit_code), *row;
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

bool find_add_parameter(char *path, size_t size, const char *key, const char *value)
{
    static const char plain[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~:";
    size_t at = strlen(path);
    if (value == NULL)
        return true;
    int len = snprintf(path + at, size - at, "%c%s=", strchr(path, '?') == NULL ? '?' : '&', key);
    at += (size_t)len;
    for (; at + 4 < size && *value != '\0'; value++) {
        unsigned char c = (unsigned char)*value;
        len = strchr(plain, c) != NULL ? snprintf(path + at, size - at, "%c", c)
                                       : snprintf(path + at, size - at, "%%%02X", c);
        at += (size_t)len;
    }
    return *value == '\0' && at < size;
}

/* ---- clients ---- */

struct search {
    bool prefers_lockers, has_locker;
    json_t *found[MATCHES_MAX];
    size_t count;
};

/* The number of "c17" or "17"; 0: it is neither. */
static uint64_t number_of(const char *text)
{
    uint64_t id = 0;
    for (text += *text == 'c'; *text != '\0'; text++)
        if (*text < '0' || *text > '9' || __builtin_mul_overflow(id, 10, &id) ||
            __builtin_add_overflow(id, (uint64_t)(*text - '0'), &id))
            return 0;
    return id;
}

static void forget(struct search *search)
{
    while (search->count > 0)
        json_decref(search->found[--search->count]);
}

static bool visit(void *context, const json_t *row)
{
    struct search *search = context;
    bool is_locker = strcmp(print_string(row, "protocol"), "nlm") == 0;
    if (search->prefers_lockers && search->has_locker && !is_locker)
        return true;
    if (search->prefers_lockers && is_locker && !search->has_locker)
        forget(search);
    search->has_locker |= is_locker;
    if (search->count < MATCHES_MAX)
        search->found[search->count++] = json_incref((json_t *)(uintptr_t)row);
    return true;
}

/* Returns an exit code, after saying why there is not exactly one match. */
static int judge(const struct search *search, const char *word, bool is_id)
{
    if (search->count == 1)
        return EXIT_OK;
    if (search->count == 0) {
        (void)fprintf(stderr, "holdfast: no client has the id, address or name \"");
        print_safe(stderr, word);
        (void)fputs("\"; holdfast clients lists them\n", stderr);
        return EXIT_NO;
    }
    (void)fputs("holdfast: more than one client matches:\n", stderr);
    for (size_t i = 0; i < search->count; i++) {
        const json_t *row = search->found[i];
        (void)fprintf(stderr, "  %s  %s  %s  ", print_string(row, "id"),
                      print_string(row, "protocol"), print_string(row, "address"));
        print_safe(stderr, print_string(row, "name"));
        (void)fputc('\n', stderr);
    }
    (void)fprintf(stderr, "name one by its id, like %s%s\n", is_id ? "id:" : "",
                  print_string(search->found[0], "id"));
    return EXIT_USAGE;
}

static int find(struct http_client *http, const char *word, bool wants_locker, json_t **ret)
{
    /* A word that may be an id means whatever client has it. */
    bool is_id = number_of(strncmp(word, "id:", 3) == 0 ? word + 3 : word) != 0;
    struct search search = {.prefers_lockers = wants_locker && !is_id};
    char path[FIND_PATH_MAX] = "/api/v1/clients";
    const char *called = strncmp(word, "name:", 5) == 0 ? word + 5 : word;
    int exit_code = EXIT_OK;
    *ret = NULL;
    if (called[0] != '\0' && strlen(called) <= NAME_LENGTH &&
        find_add_parameter(path, sizeof path, "client", word))
        exit_code = find_rows(http, path, "clients", visit, NULL, &search);
    if (exit_code == EXIT_OK)
        exit_code = judge(&search, word, is_id);
    if (exit_code == EXIT_OK)
        *ret = json_incref(search.found[0]);
    forget(&search);
    return exit_code;
}

int find_client(struct http_client *http, const char *word, json_t **ret)
{
    return find(http, word, false, ret);
}

int find_locker(struct http_client *http, const char *word, json_t **ret)
{
    return find(http, word, true, ret);
}

/* ---- JSON ---- */

static void begin(struct find_json *list)
{
    if (!list->has_begun)
        (void)printf("{\"%s\": [", list->name);
    list->has_begun = true;
}

bool find_json_row(struct find_json *list, const json_t *row)
{
    char *text = json_dumps(row, JSON_COMPACT | JSON_REAL_PRECISION(PRINT_DIGITS));
    list->has_failed |= text == NULL;
    if (text == NULL)
        return false;
    begin(list);
    (void)printf("%s\n  %s", list->row_count++ == 0 ? "" : ",", text);
    free(text);
    return true;
}

int find_json_end(struct find_json *list, long long total)
{
    if (list->has_failed) {
        (void)fputs("holdfast: out of memory; the list is incomplete\n", stderr);
        return EXIT_NO;
    }
    begin(list);
    (void)fputs("\n]", stdout);
    if (total >= 0)
        (void)printf(", \"total\": %lld", total);
    (void)puts("}");
    return EXIT_OK;
}

static bool print_row(void *context, const json_t *row)
{
    return find_json_row(context, row);
}

int find_print_json(struct http_client *http, const char *path, const char *name)
{
    struct find_json list = {.name = name};
    int exit_code = find_rows(http, path, name, print_row, NULL, &list);
    return exit_code == EXIT_OK ? find_json_end(&list, -1) : exit_code;
}
