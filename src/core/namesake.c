/*
 * namesake.c -- see namesake.h.
 *
 * A pair is an event when it is new and then at most once an hour: a client that polls would fill
 * the log.
 *
 * A lock in the way says whose it is. What else refuses somebody does not: then clients of that
 * name elsewhere are looked at, a few of them.
 */
#include "core/namesake.h"

#include "base/check.h"
#include "base/units.h"
#include "core/state.h"

#define AGAIN_NS (3600 * SECOND_NS)
#define KEEP_NS  (86400 * SECOND_NS)

enum { ELSEWHERE_MAX = 8 }; /* looked at for one request */

static bool is_over(const struct core *core, const struct namesake *pair)
{
    uint32_t slot = pair->client == 0 ? SLOT_NONE : table_find(&core->clients.table, pair->client);
    if (slot == SLOT_NONE || core->now_ns - pair->heard_ns >= KEEP_NS)
        return true;
    struct address address = client_address(core, slot);
    const struct client *client = client_at(core, slot);
    return address_equal(&address, &pair->from) ||
           client->life.lock_count + client->life.share_count == 0;
}

const struct namesake *namesake_at(const struct core *core, uint32_t index)
{
    CHECK(index < NAMESAKES_MAX);
    const struct namesake *pair = &core->namesakes.at[index];
    return is_over(core, pair) ? NULL : pair;
}

uint32_t namesake_count(const struct core *core)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < NAMESAKES_MAX; i++)
        count += namesake_at(core, i) != NULL;
    return count;
}

static uint32_t find(const struct core *core, uint64_t client, const struct address *from)
{
    const struct namesake *at = core->namesakes.at;
    for (uint32_t i = 0; i < NAMESAKES_MAX; i++)
        if (at[i].client == client && address_equal(&at[i].from, from))
            return i;
    return SLOT_NONE;
}

const struct namesake *namesake_find(const struct core *core, uint32_t client,
                                     const struct address *from)
{
    uint32_t index = find(core, table_handle(&core->clients.table, client), from);
    return index == SLOT_NONE ? NULL : &core->namesakes.at[index];
}

bool namesake_is_met(const struct core *core, uint32_t client)
{
    uint64_t handle = table_handle(&core->clients.table, client);
    for (uint32_t i = 0; i < NAMESAKES_MAX; i++)
        if (core->namesakes.at[i].client == handle && namesake_at(core, i) != NULL)
            return true;
    return false;
}

/* A place for a new pair: one that is over, else the one that was heard from longest ago. */
static uint32_t make_place(const struct core *core)
{
    uint32_t oldest = 0;
    for (uint32_t i = 0; i < NAMESAKES_MAX; i++) {
        if (namesake_at(core, i) == NULL)
            return i;
        if (core->namesakes.at[i].heard_ns < core->namesakes.at[oldest].heard_ns)
            oldest = i;
    }
    MARK("namesake_no_place");
    return oldest;
}

/* A request of this client's name from elsewhere met a lock of it. */
static void note_refusal(struct core *core, uint32_t client, const struct peer *from)
{
    const struct client *holder = client_at(core, client);
    uint64_t handle = table_handle(&core->clients.table, client);
    uint32_t index = find(core, handle, &from->address);
    bool is_new = index == SLOT_NONE;
    core->namesakes.refused++;
    if (is_new) {
        index = make_place(core);
        core->namesakes.at[index] = (struct namesake){.client = handle, .from = from->address};
    }
    struct namesake *pair = &core->namesakes.at[index];
    pair->local = from->local;
    pair->heard_ns = core->now_ns;
    pair->heard_wall_ns = core->wall_ns; /* for people; after a standstill the other says less */
    pair->count++;
    if (!is_new && core->now_ns - pair->logged_ns < AGAIN_NS)
        return;
    MARK("namesake_refused");
    pair->logged_ns = core->now_ns;
    event_add(&core->events, EVENT_NAMESAKE_REFUSED, &from->address,
              intern_bytes(&core->names, holder->stored.name), holder->stored.id);
}

void namesake_of_lock(struct core *core, const struct peer *from, const struct lock_request *r,
                      uint32_t lock)
{
    uint32_t holder = owner_at(core, lock_at(core, lock)->claim.owner)->client;
    struct address address = client_address(core, holder);
    struct bytes name = intern_bytes(&core->names, client_at(core, holder)->stored.name);
    if (!address_equal(&address, &from->address) && bytes_equal_fold(name, r->caller_name))
        note_refusal(core, holder, from);
}

static bool has_lock(const struct core *core, uint32_t client, const struct lock_request *r)
{
    struct claim claim = {.start = r->start,
                          .end = r->end,
                          .owner = owner_find(core, client, r->svid),
                          .file = file_find(core, r->fh),
                          .exclusive = r->exclusive};
    return claim.owner != SLOT_NONE && claim.file != SLOT_NONE &&
           (lock_covers(core, &claim) || leftover_covers(core, &claim));
}

/* The first client of that name elsewhere of which this is true. */
static void look(struct core *core, const struct peer *from, const struct lock_request *r,
                 bool (*has)(const struct core *, uint32_t, const struct lock_request *))
{
    const struct chains *by_name = &core->clients.index.by_name;
    uint32_t fold = core_find_fold(core, r->caller_name), left = ELSEWHERE_MAX;
    uint32_t slot = fold == SLOT_NONE ? SLOT_NONE : chains_first(by_name, fold);
    for (; slot != SLOT_NONE && left-- > 0; slot = chains_next(by_name, slot)) {
        struct address address = client_address(core, slot);
        if (address_equal(&address, &from->address) || !has(core, slot, r))
            continue;
        MARK("namesake_of_another_refusal");
        note_refusal(core, slot, from);
        return;
    }
}

void namesake_of_share(struct core *core, const struct peer *from, const struct lock_request *r)
{
    look(core, from, r, share_is_denied_by);
}

void namesake_of_reclaim(struct core *core, const struct peer *from, const struct lock_request *r)
{
    look(core, from, r, has_lock);
}

void namesake_of_share_reclaim(struct core *core, const struct peer *from,
                               const struct lock_request *r)
{
    look(core, from, r, share_matches);
}
