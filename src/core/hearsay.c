/*
 * hearsay.c -- see hearsay.h.
 *
 * Always true, and asserted by hearsay_check():
 *  (1) Of each address with notices here exactly one is ready or being asked, the others wait on
 *      the list of that address.
 *  (2) No address has two notices of one name: the later one is decided by the same look-up.
 *
 * A look-up that fails is no permission: a relay that nobody had the right to order could not be
 * taken back.
 *
 * What the cache knows of the sender's calls is not forgotten when its notice is believed late: it
 * may have called since it rebooted, and those answers are worth keeping (R-DRC-1).
 */
#include "core/hearsay.h"

#include "base/check.h"
#include "base/units.h"
#include "core/state.h"

#define PACE_NS  (SECOND_NS / 50)
#define BURST_NS (50 * PACE_NS)

int hearsay_init(struct core *core, const uint32_t slots[])
{
    (void)slots;
    list_init(&core->hearsays.ready);
    return table_init(&core->hearsays.table, HEARSAY_MAX, sizeof(struct hearsay));
}

void hearsay_done(struct core *core)
{
    table_done(&core->hearsays.table);
}

static struct hearsay *hearsay_at(const struct core *core, uint32_t slot)
{
    return table_at(&core->hearsays.table, slot);
}

static bool is_of_name(const struct core *core, const struct hearsay *notice, struct bytes name)
{
    return bytes_equal_fold(intern_bytes(&core->names, notice->mon_name), name);
}

/* The notice of this name from this sender, if there is one. */
static struct hearsay *find(const struct core *core, const struct quota *quota, struct bytes name)
{
    if (quota->said_count == 0)
        return NULL;
    struct hearsay *first = hearsay_at(core, quota->saying);
    if (is_of_name(core, first, name))
        return first;
    for (const struct list *at = quota->said.next; at != &quota->said; at = at->next) {
        struct hearsay *notice = LIST_ELEMENT(at, struct hearsay, queue);
        if (is_of_name(core, notice, name))
            return notice;
    }
    return NULL;
}

uint32_t hearsay_find(const struct core *core, const struct address *from, struct bytes mon_name)
{
    uint32_t quota = quota_find(core, from);
    const struct hearsay *known =
        quota != SLOT_NONE ? find(core, quota_at(core, quota), mon_name) : NULL;
    return known != NULL ? table_slot(&core->hearsays.table, known) : SLOT_NONE;
}

struct bytes hearsay_name(const struct core *core, uint32_t slot)
{
    return intern_bytes(&core->names, hearsay_at(core, slot)->mon_name);
}

/* It is this one's turn among the notices of its sender. */
static void make_ready(struct core *core, uint32_t slot)
{
    struct hearsay *notice = hearsay_at(core, slot);
    quota_at(core, notice->quota)->saying = slot;
    list_append(&core->hearsays.ready, &notice->queue);
}

bool hearsay_add(struct core *core, const struct address *from, struct bytes mon_name,
                 uint32_t state, bool is_minor)
{
    uint32_t quota = quota_find(core, from);
    struct hearsay *known = quota == SLOT_NONE ? NULL : find(core, quota_at(core, quota), mon_name);
    if (known != NULL) {
        MARK("hearsay_again");
        known->state = state;
        known->is_minor &= is_minor;
        return true;
    }
    if (quota != SLOT_NONE && quota_at(core, quota)->said_count >= HEARSAY_SHARE)
        return false;
    uint32_t slot = table_add(&core->hearsays.table);
    uint32_t name = slot == SLOT_NONE ? SLOT_NONE : intern_add(&core->names, mon_name);
    if (name == SLOT_NONE) {
        if (slot != SLOT_NONE)
            table_remove(&core->hearsays.table, slot);
        return false;
    }
    quota = quota_keep(core, from);
    struct hearsay *notice = hearsay_at(core, slot);
    *notice =
        (struct hearsay){.mon_name = name, .quota = quota, .state = state, .is_minor = is_minor};
    list_init(&notice->queue);
    struct quota *sender = quota_at(core, quota);
    sender->keepers++;
    if (sender->said_count++ == 0)
        make_ready(core, slot);
    else
        list_append(&sender->said, &notice->queue);
    return true;
}

/* It is over: the next one of its sender comes. */
static void end(struct core *core, uint32_t slot)
{
    struct hearsay notice = *hearsay_at(core, slot);
    struct quota *sender = quota_at(core, notice.quota);
    CHECK(sender->saying == slot && list_is_empty(&hearsay_at(core, slot)->queue));
    table_remove(&core->hearsays.table, slot);
    (void)intern_release(&core->names, notice.mon_name);
    sender->said_count--;
    if (sender->said_count > 0) {
        MARK("hearsay_next_of_sender");
        struct hearsay *next = LIST_ELEMENT(sender->said.next, struct hearsay, queue);
        list_remove(&next->queue);
        make_ready(core, table_slot(&core->hearsays.table, next));
    }
    sender->keepers--;
    quota_release(core, notice.quota);
}

uint64_t hearsay_deadline_ns(const struct core *core)
{
    const struct hearsays *all = &core->hearsays;
    if (list_is_empty(&all->ready))
        return UINT64_MAX;
    return all->paced_ns > core->now_ns + BURST_NS ? all->paced_ns - BURST_NS : core->now_ns;
}

bool hearsay_next_lookup(struct core *core, struct core_lookup *ret)
{
    struct hearsays *all = &core->hearsays;
    if (hearsay_deadline_ns(core) > core->now_ns)
        return false;
    struct hearsay *notice = LIST_ELEMENT(all->ready.next, struct hearsay, queue);
    list_remove(&notice->queue);
    notice->is_asking = true;
    all->paced_ns = (all->paced_ns > core->now_ns ? all->paced_ns : core->now_ns) + PACE_NS;
    *ret = (struct core_lookup){.id = table_handle(&all->table, table_slot(&all->table, notice)),
                                .name = intern_bytes(&core->names, notice->mon_name)};
    return true;
}

/* The sender is who it says. */
static void believe(struct core *core, const struct hearsay *notice, const struct address *from,
                    struct bytes name)
{
    if (core->limits.is_monitor && core->limits.verify_notices) {
        watched_doubt_name(core, name, notice->state);
        return;
    }
    switch (notice_hear(core, from, name, notice->state, NOTICE_TRUE)) {
    case NOTICE_NEW:
        MARK("hearsay_believed");
        event_add(&core->events, EVENT_NOTICE, from, name, notice->state);
        callout_notice(core, name, from, notice->state);
        return;
    case NOTICE_BYTES:
        event_add(&core->events, EVENT_NO_BYTES, from, name, core->limits.bytes_max);
        return;
    case NOTICE_KNOWN:
    case NOTICE_ASKING:
    case NOTICE_CROWDED:
    case NOTICE_UNHEARD: /* nobody watches it any more */
        return;
    }
}

void hearsay_resolved(struct core *core, uint64_t handle, const struct address *addresses,
                      uint32_t address_count)
{
    uint32_t slot = table_find(&core->hearsays.table, handle);
    CHECK(slot != SLOT_NONE && hearsay_at(core, slot)->is_asking);
    const struct hearsay *notice = hearsay_at(core, slot);
    struct address from = quota_at(core, notice->quota)->address;
    struct bytes name = intern_bytes(&core->names, notice->mon_name);
    bool is_its_name = false;
    for (uint32_t i = 0; i < address_count; i++)
        is_its_name |= address_equal(&addresses[i], &from);
    if (is_its_name && core->limits.is_monitor)
        watched_resolved_name(core, name, addresses, address_count);
    if (is_its_name)
        believe(core, notice, &from, name);
    else if (!notice->is_minor) {
        MARK("hearsay_refused");
        event_add(&core->events, EVENT_NOTICE_FOREIGN, &from, name, notice->state);
    }
    withheld_resolved(core, slot, address_count == 0);
    end(core, slot);
}

void hearsay_check(const struct core *core)
{
    const struct hearsays *all = &core->hearsays;
    uint32_t ready = 0, saying = 0, said = 0;
    table_check(&all->table);
    uint32_t slot = table_next(&all->table, SLOT_NONE);
    for (; slot != SLOT_NONE; slot = table_next(&all->table, slot)) {
        const struct hearsay *notice = hearsay_at(core, slot);
        const struct quota *sender = quota_at(core, notice->quota);
        bool is_first = sender->saying == slot;
        CHECK(find(core, sender, intern_bytes(&core->names, notice->mon_name)) == notice);
        CHECK(sender->said_count > 0 && sender->said_count <= HEARSAY_SHARE);
        CHECK(list_is_empty(&notice->queue) == notice->is_asking &&
              (is_first || !notice->is_asking));
        saying += is_first;
        said += is_first ? sender->said_count : 0;
    }
    for (const struct list *at = all->ready.next; at != &all->ready; at = at->next)
        ready++;
    CHECK(ready <= saying && said == all->table.count);
}
