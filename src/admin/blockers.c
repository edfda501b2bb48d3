/*
 * blockers.c -- see blockers.h.
 *
 * Every status looks at all waiters, up to SLOTS_LOOKED_AT of them and at each once, and tells
 * apart up to CLIENTS_TOLD_APART of those that block them; `blockers_more` says that there were
 * others. So it costs no more however many wait, and however long a queue is.
 */
#include "admin/blockers.h"

#include "base/units.h"
#include "core/view.h"

#include <stdlib.h>

enum {
    SHOWN = 10,
    SLOTS_LOOKED_AT = 20000,
    CLIENTS_TOLD_APART = 1024,
    CHAINS = 2048, /* a power of two, above that */
};

struct blocker {
    uint64_t client; /* id; 0: free */
    uint64_t oldest_ns;
    uint32_t count;
};

struct tally {
    struct blocker at[CHAINS];
    uint32_t count;
    bool is_more;
};

/* Its place in the table; NULL: there is none left. */
static struct blocker *place_of(struct tally *tally, uint64_t client)
{
    for (uint64_t i = client * UINT64_C(0x9e3779b97f4a7c15) >> 32;; i++) {
        struct blocker *at = &tally->at[i % CHAINS];
        if (at->client == client)
            return at;
        if (at->client != 0)
            continue;
        if (tally->count == CLIENTS_TOLD_APART)
            return NULL;
        tally->count++;
        at->client = client;
        return at;
    }
}

static void count_one(struct tally *tally, const struct view_wait *wait)
{
    struct blocker *at = place_of(tally, wait->client);
    tally->is_more |= at == NULL;
    if (at == NULL)
        return;
    at->count++;
    if (at->oldest_ns == 0 || wait->queued_ns < at->oldest_ns)
        at->oldest_ns = wait->queued_ns;
}

/* False: no memory. */
static bool count_all(struct tally *tally, const struct core *core)
{
    struct view_waits waits = {.notes = calloc(view_wait_slots(core), sizeof *waits.notes),
                               .budget = SLOTS_LOOKED_AT};
    struct view_wait wait;
    if (waits.notes == NULL)
        return false;
    while (view_next_wait(core, &waits, &wait))
        if (wait.client != 0)
            count_one(tally, &wait);
    tally->is_more |= waits.cursor != VIEW_END;
    free(waits.notes);
    return true;
}

/* Most requests first, then oldest client; no two are the same. */
static int compare(const void *left, const void *right)
{
    const struct blocker *a = left, *b = right;
    if (a->count != b->count)
        return a->count < b->count ? 1 : -1;
    return (a->client > b->client) - (a->client < b->client);
}

/* The worst first; then it is a table no more. */
static void sort(struct tally *tally)
{
    uint32_t used = 0;
    for (uint32_t i = 0; i < CHAINS; i++)
        if (tally->at[i].client != 0)
            tally->at[used++] = tally->at[i];
    qsort(tally->at, used, sizeof tally->at[0], compare);
}

static void add_blocker(struct writer *out, const struct core *core, const struct blocker *blocker,
                        uint64_t wall_ns)
{
    struct view_client client;
    if (!view_find_client(core, blocker->client, &client))
        return;
    writer_object(out, NULL);
    writer_id(out, "id", blocker->client);
    writer_bytes(out, "name", client.name);
    writer_address(out, "address", &client.address);
    writer_number(out, "waiters", blocker->count);
    writer_number(out, "oldest_wait_seconds",
                  wall_ns > blocker->oldest_ns ? (wall_ns - blocker->oldest_ns) / SECOND_NS : 0);
    writer_time(out, "last_seen", client.seen_ns);
    writer_end_object(out);
}

void blockers_add_status(struct writer *out, const struct admin *admin,
                         const struct core_status *status, const struct admin_facts *facts)
{
    struct tally *tally = status->waiters > 0 ? calloc(1, sizeof *tally) : NULL;
    bool is_counted = tally != NULL && count_all(tally, admin->core);
    uint32_t shown = 0;
    writer_list(out, "blockers");
    if (is_counted) {
        sort(tally);
        for (; shown < SHOWN && shown < tally->count; shown++)
            add_blocker(out, admin->core, &tally->at[shown], facts->wall_ns);
    }
    writer_end_list(out);
    bool is_more = is_counted ? tally->is_more || tally->count > shown : status->waiters > 0;
    writer_bool(out, "blockers_more", is_more);
    free(tally);
}
