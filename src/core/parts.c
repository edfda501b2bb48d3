/*
 * parts.c -- see parts.h.
 *
 * The order of the rows is the order of work in a turn, and that in which room is reserved: some
 * ask earlier ones how large they are.
 */
#include "core/parts.h"

#include "core/state.h"

struct part {
    int (*init)(struct core *core, const uint32_t slots[]);
    void (*done)(struct core *core);
    void (*check)(const struct core *core);
    void (*work)(struct core *core);
    uint64_t (*deadline_ns)(const struct core *core);
};

/* Whether there is more their deadlines say. */
static void drain_clients(struct core *core)
{
    (void)client_drain(core);
}

static void serve_waiters(struct core *core)
{
    (void)waiter_work(core);
}

static const struct part parts[] = {
    {grace_init, grace_done, grace_check, grace_work, grace_deadline_ns},
    {.work = recover_work, .deadline_ns = recover_deadline_ns},
    {.check = echo_check, .work = echo_work, .deadline_ns = echo_deadline_ns},
    {quota_init, quota_done, quota_check, NULL, NULL},
    {registrant_init, registrant_done, registrant_check, NULL, NULL},
    {notice_init, notice_done, notice_check, NULL, NULL},
    {watched_init, watched_done, watched_check, watched_work, watched_deadline_ns},
    {notify_init, notify_done, notify_check, notify_work, NULL}, /* due like its calls */
    {client_init, client_done, client_check, drain_clients, NULL},
    {owner_init, owner_done, owner_check, NULL, NULL},
    {file_init, file_done, file_check, NULL, NULL},
    {lock_init, lock_done, lock_check, NULL, NULL},
    {gone_init, NULL, NULL, gone_work, gone_deadline_ns},
    {mirror_init, mirror_done, mirror_check, mirror_work, mirror_deadline_ns},
    {share_init, share_done, share_check, NULL, NULL},
    {waiter_init, waiter_done, waiter_check, serve_waiters, waiter_deadline_ns},
    {grant_init, grant_done, turn_check, NULL, NULL},
    {callback_init, callback_done, callback_check, NULL, NULL},
    {probe_init, probe_done, probe_check, NULL, NULL},
    {callout_init, callout_done, callout_check, NULL, NULL},
    {hearsay_init, hearsay_done, hearsay_check, NULL, NULL},
    {withheld_init, withheld_done, withheld_check, NULL, NULL},
    {silent_init, silent_done, silent_check, silent_work, silent_deadline_ns},
    {unsettled_init, unsettled_done, unsettled_check, NULL, NULL},
    {.work = client_expire, .deadline_ns = client_deadline_ns},
    {tracker_init, tracker_done, tracker_check, tracker_work, tracker_deadline_ns},
};

enum { PART_COUNT = sizeof parts / sizeof parts[0] };

int parts_init(struct core *core, const uint32_t slots[])
{
    int err = 0;
    for (const struct part *part = parts; part < parts + PART_COUNT; part++)
        if (err == 0 && part->init != NULL)
            err = part->init(core, slots);
    return err;
}

void parts_done(struct core *core)
{
    for (const struct part *part = parts; part < parts + PART_COUNT; part++)
        if (part->done != NULL)
            part->done(core);
}

void parts_work(struct core *core)
{
    for (const struct part *part = parts; part < parts + PART_COUNT; part++)
        if (part->work != NULL)
            part->work(core);
}

uint64_t parts_deadline_ns(const struct core *core)
{
    uint64_t next_ns = UINT64_MAX;
    for (const struct part *part = parts; part < parts + PART_COUNT; part++) {
        uint64_t part_ns = part->deadline_ns != NULL ? part->deadline_ns(core) : UINT64_MAX;
        next_ns = part_ns < next_ns ? part_ns : next_ns;
    }
    return next_ns;
}

void parts_check(const struct core *core)
{
    for (const struct part *part = parts; part < parts + PART_COUNT; part++)
        if (part->check != NULL)
            part->check(core);
}
