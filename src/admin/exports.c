/*
 * exports.c -- see exports.h.
 *
 * The core does not know exports, so their locks are counted one by one, in pieces, before the
 * first row is written: a list of a million locks delays nobody. Exports that a reload brings
 * meanwhile have no locks yet.
 */
#include "admin/exports.h"

#include "admin/paging.h"

#include <stdlib.h>

enum { ASYNC_SHOWN = 20, EXPORTS_COUNTED = 1024 };

/* Locks by export. */
struct tally {
    uint64_t walk; /* the lock to look at next */
    uint32_t count;
    struct {
        uint32_t id;
        uint64_t locks;
    } at[EXPORTS_COUNTED];
};

static void begin(struct tally *tally, const struct admin *admin)
{
    struct admin_export export;
    while (tally->count < EXPORTS_COUNTED && admin->export(admin->context, tally->count, &export))
        tally->at[tally->count++].id = export.id;
}

static uint64_t *find(struct tally *tally, uint32_t id)
{
    for (uint32_t i = 0; i < tally->count; i++)
        if (tally->at[i].id == id)
            return &tally->at[i].locks;
    return NULL;
}

/* False: the budget is used up. */
static bool count_locks(struct tally *tally, const struct admin *admin, uint32_t *budget)
{
    static const struct view_filter all;
    struct view_lock view;
    uint32_t id;
    while (tally->walk != VIEW_END &&
           view_next_lock(admin->core, &all, &tally->walk, budget, &view)) {
        uint64_t *locks =
            admin->export_of(admin->context, view.claim.fh, &id) ? find(tally, id) : NULL;
        if (locks != NULL)
            ++*locks;
    }
    return tally->walk == VIEW_END;
}

/* True: one of its clients is told of what is not durable yet. */
static bool is_async(const struct admin *admin, uint32_t index, const struct admin_export *export)
{
    struct admin_export_client client;
    bool is_found = false;
    for (uint32_t i = 0; i < export->client_count && !is_found; i++)
        is_found = admin->export_client(admin->context, index, i, &client) && client.is_async;
    return is_found;
}

static void add_clients(struct writer *row, const struct admin *admin, uint32_t index)
{
    struct admin_export_client client;
    writer_list(row, "clients");
    for (uint32_t i = 0; admin->export_client(admin->context, index, i, &client); i++) {
        writer_object(row, NULL);
        writer_text(row, "client", client.name);
        writer_text(row, "options", client.options);
        writer_bool(row, "async", client.is_async);
        writer_end_object(row);
    }
    writer_end_list(row);
}

static bool next_export(struct paging *paging, uint64_t *cursor, uint32_t *budget)
{
    const struct admin *admin = paging->admin;
    struct writer *row = &paging->writer;
    struct tally *tally = paging->own;
    struct admin_export export;
    if (!count_locks(tally, admin, budget))
        return false;
    if (*cursor > UINT32_MAX || !admin->export(admin->context, (uint32_t)*cursor, &export)) {
        *cursor = VIEW_END;
        return false;
    }
    uint32_t index = (uint32_t)(*cursor)++;
    const uint64_t *locks = find(tally, export.id);
    writer_line(row);
    writer_object(row, NULL);
    writer_text(row, "directory", export.directory);
    writer_number(row, "fsid", export.id);
    add_clients(row, admin, index);
    writer_bool(row, "async", is_async(admin, index, &export));
    writer_bool(row, "hangs", export.is_stuck);
    writer_number(row, "mounts", export.mounts);
    writer_number(row, "open_files", export.open_files);
    writer_number(row, "locks", locks != NULL ? *locks : 0);
    writer_end_object(row);
    return true;
}

void exports_answer(struct exchange *exchange)
{
    struct tally *tally = calloc(1, sizeof *tally);
    if (tally == NULL)
        return;
    begin(tally, exchange->admin);
    paging_answer(exchange, &(struct paging){.name = "exports", .next = next_export, .own = tally});
}

void exports_add_status(struct writer *out, const struct admin *admin,
                        const struct admin_files *files)
{
    struct admin_export export;
    uint32_t count = 0;
    if (!files->is_served) {
        writer_null(out, "files");
        return;
    }
    writer_object(out, "files");
    writer_number(out, "exports", files->exports);
    writer_number(out, "open_files", files->open_files);
    writer_number(out, "calls", files->calls);
    writer_number(out, "refused", files->refused);
    writer_number(out, "sync_errors", files->sync_errors);
    writer_object(out, "local_locks");
    writer_bool(out, "on", files->has_local_locks);
    writer_number(out, "files", files->local_files);
    writer_number(out, "waiting", files->local_waiting);
    writer_number(out, "conflicts", files->local_conflicts);
    writer_end_object(out);
    writer_list(out, "async");
    for (uint32_t i = 0; admin->export(admin->context, i, &export); i++)
        if (is_async(admin, i, &export) && count++ < ASYNC_SHOWN)
            writer_text(out, NULL, export.directory);
    writer_end_list(out);
    writer_number(out, "async_exports", count);
    writer_end_object(out);
}
