/*
 * list.c -- rows of locks, waiting requests and sets of files, from views of the core to JSON; see
 * list.h.
 *
 * A file of an export is shown by its name, too. A name that is not known yet is waited for
 * (paging.h), also where it decides whether a row is wanted (list_match.h), and with it the names
 * of the rows that follow are asked for.
 */
#include "admin/list.h"

#include "admin/list_match.h"
#include "admin/paging.h"
#include "base/check.h"
#include "base/hex.h"
#include "base/units.h"

enum { NAMES_AHEAD = 256 };

static void add_seconds_since(struct writer *row, const char *key, uint64_t time_ns,
                              uint64_t now_ns)
{
    if (time_ns == 0)
        writer_null(row, key);
    else
        writer_number(row, key, now_ns > time_ns ? (now_ns - time_ns) / SECOND_NS : 0);
}

static enum admin_path path_of(const struct paging *paging, struct bytes fh, struct bytes *ret)
{
    const struct admin *admin = paging->admin;
    *ret = (struct bytes){0};
    return admin->path == NULL ? ADMIN_PATH_NONE : admin->path(admin->context, fh, ret);
}

static void add_owner(struct writer *row, const struct view_owner *owner)
{
    writer_id(row, "client", owner->client);
    writer_bytes(row, "name", owner->name);
    writer_address(row, "address", &owner->address);
    writer_number(row, "svid", owner->svid);
}

/* Length 0: to the end of the file. */
static void add_claim(struct writer *row, const struct view_claim *claim, struct bytes path)
{
    add_owner(row, &claim->owner);
    writer_hex(row, "owner", claim->oh);
    writer_hex(row, "file", claim->fh);
    if (path.len > 0)
        writer_bytes(row, "path", path);
    else
        writer_null(row, "path");
    writer_bytes(row, "share", claim->file_set);
    writer_number(row, "offset", claim->start);
    writer_number(row, "length", claim->end == UINT64_MAX ? 0 : claim->end - claim->start + 1);
    writer_bool(row, "exclusive", claim->is_exclusive);
}

static const char *word_of_answer(enum silent_phase phase)
{
    switch (phase) {
    case SILENT_NOT_ASKED:
        return "not asked";
    case SILENT_ASKING:
        return "being asked";
    case SILENT_ANSWERS:
        return "yes";
    case SILENT_NO_ANSWER:
        return "no";
    }
    UNREACHABLE();
}

/* Who blocks a waiter, how long it has been silent, and whether it answers. */
static void add_blocker(struct writer *row, const struct view_waiter *view, uint64_t now_ns)
{
    writer_object(row, "blocked_by");
    add_owner(row, &view->blocker);
    writer_time(row, "last_seen", view->blocker.seen_ns);
    uint64_t silent_ns = now_ns > view->blocker_heard_ns ? now_ns - view->blocker_heard_ns : 0;
    writer_number(row, "silent_seconds", silent_ns / SECOND_NS);
    writer_text(row, "answers", word_of_answer(view->blocker_phase));
    writer_end_object(row);
}

static const char *word_of_lock(enum view_lock_state state)
{
    switch (state) {
    case VIEW_HELD:
        return "held";
    case VIEW_OFFERED:
        return "offered";
    case VIEW_UNSETTLED:
        return "unsettled";
    case VIEW_OVER:
        return "freeing";
    }
    UNREACHABLE();
}

/* Is this row wanted, and what is its file called? LIST_FITS_LATER: its name must be waited for. */
static enum list_fit look_at(struct paging *paging, const struct view_claim *claim,
                             uint32_t *budget, struct bytes *ret_path)
{
    enum list_fit fit = list_match_claim(paging->admin, &paging->match, claim, budget);
    paging->unnamed_count += fit == LIST_FITS_UNKNOWN;
    if (fit == LIST_FITS && path_of(paging, claim->fh, ret_path) == ADMIN_PATH_LATER)
        return LIST_FITS_LATER;
    return fit;
}

/* Asks for the names of the rows from here on. */
static void ask_ahead_locks(struct paging *paging, uint64_t cursor)
{
    struct view_lock view;
    struct bytes path;
    uint32_t budget = VIEW_DIRECT_MAX;
    for (uint32_t i = 0; i < NAMES_AHEAD && view_next_lock(paging->admin->core, &paging->filter,
                                                           &cursor, &budget, &view);
         i++)
        (void)path_of(paging, view.claim.fh, &path);
}

static bool next_lock(struct paging *paging, uint64_t *cursor, uint32_t *budget)
{
    struct writer *row = &paging->writer;
    struct view_lock view;
    struct bytes path = {0};
    uint64_t before;
    enum list_fit fit;
    do {
        before = *cursor;
        if (!view_next_lock(paging->admin->core, &paging->filter, cursor, budget, &view))
            return false;
        fit = look_at(paging, &view.claim, budget, &path);
    } while (fit == LIST_FITS_NOT || fit == LIST_FITS_UNKNOWN);
    paging->waits_for_name = fit == LIST_FITS_LATER;
    if (paging->waits_for_name) {
        ask_ahead_locks(paging, *cursor);
        *cursor = before;
        return false;
    }
    writer_line(row);
    writer_object(row, NULL);
    add_claim(row, &view.claim, path);
    writer_text(row, "state", word_of_lock(view.state));
    writer_bool(row, "monitored", view.is_monitored);
    writer_time(row, "granted_at", view.granted_ns);
    add_seconds_since(row, "held_seconds", view.granted_ns, paging->wall_ns);
    writer_number(row, "waiters", view.waiter_count);
    writer_end_object(row);
    return true;
}

static void ask_ahead_waiters(struct paging *paging, uint64_t cursor)
{
    struct view_waiter view;
    struct bytes path;
    uint32_t budget = VIEW_DIRECT_MAX;
    for (uint32_t i = 0; i < NAMES_AHEAD && view_next_waiter(paging->admin->core, &paging->filter,
                                                             &cursor, &budget, &view);
         i++)
        (void)path_of(paging, view.claim.fh, &path);
}

/* Who blocks it is found by walking past those ahead of it. */
static bool is_blocked_as_wanted(const struct paging *paging, const struct view_waiter *view,
                                 uint32_t *budget)
{
    if (paging->blocked_by == 0)
        return true;
    *budget -= view->ahead_count < *budget ? view->ahead_count : *budget;
    return view->is_blocked && view->blocker.client == paging->blocked_by;
}

static bool next_waiter(struct paging *paging, uint64_t *cursor, uint32_t *budget)
{
    struct writer *row = &paging->writer;
    struct view_waiter view;
    struct bytes path = {0};
    uint64_t before;
    enum list_fit fit;
    do {
        before = *cursor;
        if (!view_next_waiter(paging->admin->core, &paging->filter, cursor, budget, &view))
            return false;
        fit = is_blocked_as_wanted(paging, &view, budget)
                  ? look_at(paging, &view.claim, budget, &path)
                  : LIST_FITS_NOT;
    } while (fit == LIST_FITS_NOT || fit == LIST_FITS_UNKNOWN);
    paging->waits_for_name = fit == LIST_FITS_LATER;
    if (paging->waits_for_name) {
        ask_ahead_waiters(paging, *cursor);
        *cursor = before;
        return false;
    }
    writer_line(row);
    writer_object(row, NULL);
    add_claim(row, &view.claim, path);
    writer_text(row, "state", view.phase);
    writer_time(row, "queued_at", view.queued_ns);
    add_seconds_since(row, "waiting_seconds", view.queued_ns, paging->wall_ns);
    writer_number(row, "ahead", view.ahead_count);
    if (view.is_blocked)
        add_blocker(row, &view, paging->now_ns);
    else
        writer_null(row, "blocked_by");
    writer_end_object(row);
    return true;
}

/* Reads the id of a client that locks, and its handle. False: already responded. */
static bool read_locker(struct exchange *exchange, const char *text, uint64_t *ret_id,
                        uint64_t *ret_handle)
{
    if (!list_read_id(exchange, bytes_of_text(text), ret_id))
        return false;
    if (view_handle(exchange->admin->core, *ret_id, ret_handle))
        return true;
    exchange_error(exchange, MHD_HTTP_NOT_FOUND, "no such lock client: ", bytes_of_text(text),
                   "/api/v1/clients lists the clients");
    return false;
}

/* Reads client, blocked_by, file, share, match and export. False: already responded; a client that
 * never locked, an unknown share and an unknown export are not found. */
static bool read_filter(struct exchange *exchange, struct paging *paging)
{
    const char *client = exchange_parameter(exchange, "client");
    const char *file = exchange_parameter(exchange, "file");
    const char *share = exchange_parameter(exchange, "share");
    const char *blocked_by = exchange_parameter(exchange, "blocked_by");
    struct core *core = exchange->admin->core;
    uint64_t id, handle;
    if ((client != NULL && !read_locker(exchange, client, &id, &paging->filter.client)) ||
        (blocked_by != NULL && !read_locker(exchange, blocked_by, &paging->blocked_by, &handle)))
        return false;
    if (file != NULL && !hex_parse(file, paging->handle, RECORD_FH_MAX, &paging->filter.fh.len)) {
        exchange_error(exchange, MHD_HTTP_BAD_REQUEST, "not a file handle: ", bytes_of_text(file),
                       "a handle is up to 64 pairs of hex digits");
        return false;
    }
    if (share != NULL) {
        paging->filter.has_file_set = true;
        if (!view_find_file_set(core, bytes_of_text(share), &paging->filter.file_set)) {
            exchange_error(exchange, MHD_HTTP_NOT_FOUND, "no such share: ", bytes_of_text(share),
                           "/api/v1/shares lists them");
            return false;
        }
    }
    return list_match_read(exchange, &paging->match);
}

/* True: already responded. A monitor keeps no locks; an empty list would say that nobody has
 * any. */
static bool refuse_of_monitor(struct exchange *exchange)
{
    struct core_status status;
    core_status(exchange->admin->core, &status);
    if (status.is_monitor)
        exchange_error(exchange, MHD_HTTP_NOT_FOUND, "a status monitor keeps no locks",
                       (struct bytes){0},
                       "the lock manager of this machine has them; holdfast hosts, or "
                       "/api/v1/clients, lists the hosts it watches");
    return status.is_monitor;
}

void list_locks(struct exchange *exchange)
{
    struct paging paging = {.name = "locks", .next = next_lock};
    if (!refuse_of_monitor(exchange) && read_filter(exchange, &paging))
        paging_answer(exchange, &paging);
}

void list_waiters(struct exchange *exchange)
{
    struct paging paging = {.name = "waiters", .next = next_waiter};
    if (!refuse_of_monitor(exchange) && read_filter(exchange, &paging))
        paging_answer(exchange, &paging);
}

/* ---- sets of files ---- */

static bool next_share(struct paging *paging, uint64_t *cursor, uint32_t *budget)
{
    struct writer *row = &paging->writer;
    struct view_file_set view;
    (void)budget;
    if (*cursor > UINT32_MAX || !view_file_set(paging->admin->core, (uint32_t)*cursor, &view)) {
        *cursor = VIEW_END;
        return false;
    }
    ++*cursor;
    writer_line(row);
    writer_object(row, NULL);
    writer_bytes(row, "name", view.name);
    writer_hex(row, "prefix", view.prefix);
    writer_number(row, "locks", view.lock_count);
    writer_end_object(row);
    return true;
}

void list_shares(struct exchange *exchange)
{
    if (!refuse_of_monitor(exchange))
        paging_answer(exchange, &(struct paging){.name = "shares", .next = next_share});
}
