/*
 * store.c -- finds the back end that a store URL names and passes calls on to it.
 *
 * The table below is the whole list of back ends. What they share is here (the URL, the summary,
 * failures as sentences); everything else is theirs.
 */
#include "store/store.h"

#include "store/backend.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

static const struct store_backend *const backends[] = {
    &store_memory,
    &store_lmdb,
#if HOLDFAST_POSTGRES
    &store_postgres,
#endif
};

enum { BACKEND_COUNT = sizeof backends / sizeof backends[0] };

struct store {
    const struct store_backend *backend;
    void *self; /* owned; the back end's own object */
    struct store_summary summary;
};

void store_fail(struct store_failure *failure, int exit_code, const char *format, ...)
{
    va_list arguments;
    *failure = (struct store_failure){.exit_code = exit_code};
    va_start(arguments, format);
    (void)vsnprintf(failure->text, sizeof failure->text, format, arguments); /* may be cut */
    va_end(arguments);
}

/* The back end of a URL, and what follows its colon; or NULL. */
static const struct store_backend *find_backend(const char *url, const char **ret_rest)
{
    for (size_t i = 0; i < BACKEND_COUNT; i++) {
        size_t len = strlen(backends[i]->scheme);
        if (strncmp(url, backends[i]->scheme, len) == 0 && url[len] == ':') {
            *ret_rest = url + len + 1;
            return backends[i];
        }
    }
    return NULL;
}

static void fail_unknown(const char *url, struct store_failure *ret_failure)
{
    char list[128] = "", shown[200]; /* it may be a scheme with one letter wrong */
    size_t at = 0;
    for (size_t i = 0; i < BACKEND_COUNT && at < sizeof list; i++) {
        const char *between = i == 0 ? "" : i + 1 == BACKEND_COUNT ? " or " : ", ";
        at += (size_t)snprintf(list + at, sizeof list - at, "%s%s", between, backends[i]->usage);
    }
    store_show_url(url, shown, sizeof shown);
    store_fail(ret_failure, STORE_EXIT_USAGE, "store \"%s\": unknown kind of store; use %s", shown,
               list);
}

static void fail_no_groups(const struct store_backend *backend, struct store_failure *ret_failure)
{
    store_fail(ret_failure, STORE_EXIT_USAGE,
               "store \"%s:\": only a store that several servers share has groups; use "
               "postgres:CONNINFO",
               backend->scheme);
}

struct store *store_open(const char *url, const struct store_options *options,
                         struct store_failure *ret_failure)
{
    const char *rest = NULL;
    const struct store_backend *backend = find_backend(url, &rest);
    if (backend == NULL) {
        fail_unknown(url, ret_failure);
        return NULL;
    }
    if (options->group_count > 0 && !backend->is_shared) {
        fail_no_groups(backend, ret_failure);
        return NULL;
    }
    struct store *store = calloc(1, sizeof *store);
    if (store == NULL) {
        store_fail(ret_failure, STORE_EXIT_STORE, "store \"%s:\": out of memory", backend->scheme);
        return NULL;
    }
    store->backend = backend;
    store->self = backend->open(rest, options, &store->summary, ret_failure);
    if (store->self == NULL) {
        free(store);
        return NULL;
    }
    return store;
}

void store_summarize(const struct store *store, struct store_summary *ret)
{
    *ret = store->summary;
}

int store_load(struct store *store, store_visit_fn visit, void *context,
               struct store_failure *ret_failure)
{
    return store->backend->load(store->self, visit, context, ret_failure);
}

int store_commit(struct store *store, const struct store_batch *batch,
                 struct store_failure *ret_failure)
{
    return store->backend->commit(store->self, batch, ret_failure);
}

bool store_can_walk(const struct store *store)
{
    return store->backend->walk != NULL;
}

int store_fold(struct store *store, struct store_failure *ret_failure)
{
    return store->backend->fold == NULL ? 0 : store->backend->fold(store->self, ret_failure);
}

int store_walk(struct store *store, struct store_slots slots, store_visit_fn visit, void *context,
               struct store_failure *ret_failure)
{
    return store->backend->walk(store->self, slots, visit, context, ret_failure);
}

bool store_tend(struct store *store)
{
    return store->backend->tend(store->self);
}

bool store_has_room(const struct store *store)
{
    return store->backend->has_room(store->self);
}

uint64_t store_checked_ns(const struct store *store)
{
    return store->backend->is_shared ? store->backend->checked_ns(store->self) : 0;
}

int store_confirm(struct store *store, struct store_failure *ret_failure)
{
    return store->backend->is_shared ? store->backend->confirm(store->self, ret_failure) : 0;
}

int store_migrate(const char *url, const struct store_migration *how,
                  struct store_failure *ret_failure)
{
    const char *rest;
    const struct store_backend *backend = find_backend(url, &rest);
    if (backend == NULL) {
        fail_unknown(url, ret_failure);
        return -EIO;
    }
    if (how->group != NULL && !backend->is_shared) {
        fail_no_groups(backend, ret_failure);
        return -EIO;
    }
    return backend->migrate == NULL ? 0 : backend->migrate(rest, how, ret_failure);
}

int store_list_groups(const char *url, uint64_t timeout_ns, store_group_fn visit, void *context,
                      struct store_failure *ret_failure)
{
    const char *rest;
    const struct store_backend *backend = find_backend(url, &rest);
    if (backend == NULL)
        fail_unknown(url, ret_failure);
    else if (!backend->is_shared)
        fail_no_groups(backend, ret_failure);
    else
        return backend->list_groups(rest, timeout_ns, visit, context, ret_failure);
    return -EIO;
}

bool store_url_is_shared(const char *url)
{
    const char *rest;
    const struct store_backend *backend = find_backend(url, &rest);
    return backend != NULL && backend->is_shared;
}

bool store_url_keeps_nothing(const char *url)
{
    const char *rest;
    const struct store_backend *backend = find_backend(url, &rest);
    return backend != NULL && backend->keeps_nothing;
}

void store_url_identify(const char *url, char *ret_text, size_t size)
{
    const char *rest;
    struct stat status;
    const struct store_backend *backend = find_backend(url, &rest);
    if (backend != NULL && backend->is_directory && stat(rest, &status) == 0)
        (void)snprintf(ret_text, size, "%s %llu:%llu", backend->scheme,
                       (unsigned long long)status.st_dev, (unsigned long long)status.st_ino);
    else
        (void)snprintf(ret_text, size, "%s", backend != NULL ? backend->scheme : "");
}

void store_close(struct store *store)
{
    if (store == NULL)
        return;
    store->backend->close(store->self);
    free(store);
}

/*
 * A password may be written in three places: behind "password" and an equals sign, which may have
 * blanks around it, up to a blank that is neither quoted nor escaped; in a URL behind "password="
 * up to the next &; and in a URL between user and host. A password that breaks the rules of the
 * place it is in (an unescaped @, / or ? in a URL) is still one, so there the last @ counts. A URL
 * may stand behind another scheme, or where none belongs. When in doubt, more is hidden.
 */
static const char *keyword_end(const char *at)
{
    bool is_quoted = *at == '\'';
    for (at += is_quoted; *at != '\0'; at++) {
        if (is_quoted ? *at == '\'' : *at == ' ')
            return at + is_quoted;
        if (*at == '\\' && at[1] != '\0')
            at++;
    }
    return at;
}

/* Behind "password=", or NULL: `at` is no such word. */
static const char *password_value(const char *at)
{
    static const char word[] = "password";
    if (strncmp(at, word, sizeof word - 1) != 0)
        return NULL;
    at += sizeof word - 1;
    at += strspn(at, " ");
    return *at == '=' ? at + 1 + strspn(at + 1, " ") : NULL;
}

/* One or more schemes and then "//"; otherwise they are keywords and values. */
static bool has_schemes_only(const char *at)
{
    while (strncmp(at, "//", 2) != 0) {
        at += strcspn(at, ":= /'");
        if (*at++ != ':')
            return false;
    }
    return true;
}

static const char *password_end(const char *value, bool is_url)
{
    return is_url ? value + strcspn(value, "&") : keyword_end(value);
}

/* Behind "://user:" when an @ follows, and that in *ret_end; or NULL. The @ may belong to another
 * password, whose end it is then. */
static const char *password_in_authority(const char *at, bool is_url, const char **ret_end)
{
    if (strncmp(at, "://", 3) != 0 || (*ret_end = strrchr(at, '@')) == NULL)
        return NULL;
    const char *colon = memchr(at + 3, ':', (size_t)(*ret_end - at - 3));
    for (const char *other = at; other < *ret_end; other++) {
        const char *value = password_value(other);
        const char *end = value == NULL ? NULL : password_end(value, is_url);
        if (end != NULL && end > *ret_end)
            *ret_end = end;
    }
    return colon == NULL ? NULL : colon + 1;
}

void store_show_url(const char *url, char *ret_text, size_t size)
{
    bool is_url = has_schemes_only(url);
    size_t len = 0;
    for (const char *at = url; *at != '\0' && len + 4 < size;) {
        const char *end = NULL, *secret = password_in_authority(at, is_url, &end);
        if (secret == NULL && (secret = password_value(at)) != NULL)
            end = password_end(secret, is_url);
        if (secret == NULL) {
            ret_text[len++] = *at++;
            continue;
        }
        size_t shown = (size_t)(secret - at) < size - len - 4 ? (size_t)(secret - at) : 0;
        memcpy(ret_text + len, at, shown);
        memcpy(ret_text + len + shown, "...", 3);
        len += shown + 3;
        at = end;
    }
    ret_text[len] = '\0';
}
