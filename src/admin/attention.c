/*
 * attention.c -- see attention.h.
 */
#include "admin/attention.h"

#include "admin/limit.h"
#include "base/units.h"
#include "core/view.h"

#define SYNC_ERROR_NS (3600 * SECOND_NS) /* so long somebody should look at it */

enum { PERCENT = 100 };

static void add_store(struct writer *out, const struct admin_facts *facts,
                      const struct core_status *status)
{
    if (!status->has_room)
        writer_text(out, NULL,
                    status->is_monitor ? "the store is full: new hosts are refused"
                                       : "the store is full: new locks are refused");
    if (status->incomplete)
        writer_text(out, NULL, "the store may have lost records");
    if (facts->commit_age_ns >= ADMIN_STALLED_NS)
        writer_text(out, NULL, "the store does not commit: every reply waits for it");
    if (!facts->is_found)
        writer_text(out, NULL,
                    status->is_monitor ? "the lock manager and other hosts cannot find this monitor"
                                       : "clients cannot find this server through rpcbind");
}

static void add_locks(struct writer *out, const struct core_status *status)
{
    if (status->silent.waits_on_silent > 0)
        writer_text(out, NULL, "requests are blocked by a client that does not answer");
    if (status->namesakes > 0)
        writer_text(out, NULL, "a client is refused what its own name holds at another address");
    if (status->grace.unsettled > 0 && status->missed > 0)
        writer_text(out, NULL,
                    "a client that has locks to reclaim is unreachable: they are released when its "
                    "time is over");
}

static void add_files(struct writer *out, const struct admin_files *files)
{
    if (files->sync_errors > 0 && files->sync_error_age_ns < SYNC_ERROR_NS)
        writer_text(out, NULL, "a disk failed to write in the last hour: see the log");
    if (files->local_conflicts > 0)
        writer_text(out, NULL, "programs on this machine are not kept from locks of clients");
}

static void add_hosts(struct writer *out, const struct core_status *status)
{
    if (status->unresolved > 0)
        writer_text(out, NULL, "names of watched hosts do not resolve");
    if (status->upcalls.owed > 0)
        writer_text(out, NULL, "the lock manager has not been told of a reboot");
    if (status->notify.tried > 0)
        writer_text(out, NULL, "a host cannot be notified of the last reboot of this machine");
}

static void add_limits(struct writer *out, const struct admin *admin)
{
    struct admin_limit limit;
    for (uint32_t i = 0; limit_get(admin, i, &limit); i++) {
        char buffer[128];
        struct text sentence;
        bool is_near = limit.used * PERCENT > limit.max * VIEW_NEAR_PERCENT;
        if (!is_near || limit.may_be_full)
            continue;
        text_init(&sentence, buffer, sizeof buffer);
        text_add_count(&sentence, limit.used);
        text_add(&sentence, " of ");
        text_add_count(&sentence, limit.max);
        text_add_char(&sentence, ' ');
        for (const char *at = limit.name; *at != '\0'; at++)
            text_add_char(&sentence, *at == '_' ? ' ' : *at);
        if (limit.option != NULL) {
            text_add(&sentence, " are used; raise ");
            text_add(&sentence, limit.option);
        } else {
            text_add(&sentence, " are used");
        }
        writer_text(out, NULL, buffer);
    }
}

void attention_add_status(struct writer *out, const struct admin *admin,
                          const struct core_status *status, const struct admin_facts *facts)
{
    writer_list(out, "attention");
    if (status->is_monitor)
        add_hosts(out, status);
    else
        add_locks(out, status);
    add_store(out, facts, status);
    add_files(out, &facts->files);
    add_limits(out, admin);
    writer_end_list(out);
}
