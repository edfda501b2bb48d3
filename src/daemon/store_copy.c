/*
 * store_copy.c -- see store_copy.h.
 *
 * The worker may be gone before a reader is: a stop ends the store first. A copy that is over never
 * touches the driver again.
 */
#include "daemon/store_copy.h"

#include "base/units.h"
#include "daemon/admin_hooks.h"
#include "store/copy.h"

#include <stdlib.h>

struct store_copy {
    struct admin_hooks *hooks;
    struct copy *copy;
    uint64_t began_ns, bytes;
    ssize_t end; /* COPY_WHOLE, COPY_CUT; 0: not known */
};

_Static_assert((int)ADMIN_COPY_WHOLE == (int)COPY_WHOLE && (int)ADMIN_COPY_CUT == (int)COPY_CUT,
               "they are passed on as they are");

static void log_begin(struct admin_hooks *hooks, const struct admin_caller *who, const char *result)
{
    const struct log_field fields[] = {LOG_MESSAGE("operator command"),
                                       LOG_TEXT("order", "export the store"),
                                       LOG_TEXT("result", result), LOG_NUMBER("uid", who->uid),
                                       LOG_NUMBER("pid", (uint64_t)who->pid)};
    log_fields(hooks->log, LOG_LEVEL_WARNING, clock_wall_ns(hooks->clock), fields,
               sizeof fields / sizeof fields[0]);
}

static void refuse(struct admin_copy *ret, const char *error, const char *hint)
{
    ret->copy = NULL;
    ret->error = error;
    ret->hint = hint;
}

void store_copy_begin(void *context, const struct admin_caller *who, struct admin_copy *ret)
{
    struct admin_hooks *hooks = context;
    *ret = (struct admin_copy){0};
    if (store_url_is_shared(hooks->config->store)) {
        refuse(ret, "a shared store is exported without its server",
               "holdfast store export --store postgres:CONNINFO reads it, also while it is in use");
        return;
    }
    struct store_copy *made = calloc(1, sizeof *made);
    struct copy *copy = made == NULL ? NULL : copy_new();
    if (copy == NULL) {
        free(made);
        refuse(ret, "out of memory for an export", "try again later");
        return;
    }
    if (hooks->driver == NULL || !driver_copy(hooks->driver, copy)) {
        (void)copy_cancel(copy);
        free(made);
        refuse(ret, "another export is running, or the server is stopping",
               "try again when it has ended; the log says who began it");
        return;
    }
    *made =
        (struct store_copy){.hooks = hooks, .copy = copy, .began_ns = clock_now_ns(hooks->clock)};
    ret->store = hooks->store_id;
    ret->copy = made;
    log_begin(hooks, who, "begun");
}

ssize_t store_copy_read(void *copy, char *buffer, size_t max)
{
    struct store_copy *made = copy;
    ssize_t len = copy_take(made->copy, buffer, max);
    if (len > 0)
        made->bytes += (uint64_t)len;
    else
        made->end = len;
    if (copy_is_wanting(made->copy))
        driver_copy_on(made->hooks->driver);
    return len;
}

void store_copy_end(void *copy, bool is_too_slow)
{
    struct store_copy *made = copy;
    struct admin_hooks *hooks = made->hooks;
    char why[COPY_WHY_MAX] = "the reader has gone, or took nothing for 30 s";
    bool is_whole = made->end == COPY_WHOLE;
    if (made->end == COPY_CUT)
        copy_get_why(made->copy, why);
    uint64_t count = copy_count(made->copy);
    if (copy_cancel(made->copy))
        driver_copy_on(hooks->driver);
    const struct log_field fields[] = {
        LOG_MESSAGE(is_whole ? "the store was exported"
                             : "an export of the store broke off; its reader has no whole copy"),
        LOG_NUMBER("records", count),
        LOG_NUMBER("bytes", made->bytes),
        LOG_NUMBER("ms", (clock_now_ns(hooks->clock) - made->began_ns) / MS_NS),
        LOG_TEXT("cause", is_too_slow ? "the reader took less than 1 MiB in a minute" : why),
    };
    log_fields(hooks->log, is_whole ? LOG_LEVEL_INFO : LOG_LEVEL_WARNING,
               clock_wall_ns(hooks->clock), fields,
               sizeof fields / sizeof fields[0] - (is_whole ? 1 : 0));
    free(made);
}
