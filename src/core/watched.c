/*
 * watched.c -- see watched.h.
 *
 * Always true in the monitor role, and asserted by watched_check():
 *  (1) A registrant is on the chain of each address of its host, and holds a reference to it.
 *  (2) A registrant that is not CURRENT is OWED: one that is neither has no record.
 *  (3) A name is asked, or waits to be asked, or has an address.
 *
 * In the server role there are no watched hosts, and every function here is a few tests.
 *
 * Ourselves: a mount of our own export makes the kernel watch this machine. It knows that it
 * rebooted, and our own SM_NOTIFY would free what it has locked since: never sent, never owed.
 */
#include "core/watched.h"

#include "base/check.h"
#include "base/units.h"
#include "core/state.h"

#include <stdlib.h>

#define LOCKD_AGAIN_NS (60 * SECOND_NS)

static bool is_monitor(const struct core *core)
{
    return core->watching.at != NULL;
}

int watched_init(struct core *core, const uint32_t slots[])
{
    struct watching *watching = &core->watching;
    uint32_t slots_max = slots[RECORD_REGISTRANT];
    watching->served_ns = UINT64_MAX;
    if (!core->limits.is_monitor)
        return 0;
    watching->at = calloc(slots_max, sizeof *watching->at);
    watching->slots_max = slots_max;
    int err = watching->at == NULL ? -1 : 0;
    if (err == 0)
        err = intern_init(&watching->addresses, core->arena, slots_max * RECORD_HOSTS_MAX,
                          core->seed);
    for (uint32_t i = 0; i < RECORD_HOSTS_MAX && err == 0; i++)
        err = chains_init(&watching->by_host[i], watching->addresses.table.max, slots_max);
    if (err == 0)
        err = timers_init(&watching->lookups, slots_max);
    return err == 0 ? timers_init(&watching->doubts, slots_max) : err;
}

void watched_done(struct core *core)
{
    struct watching *watching = &core->watching;
    if (!core->limits.is_monitor)
        return;
    free(watching->at);
    intern_done(&watching->addresses);
    for (uint32_t i = 0; i < RECORD_HOSTS_MAX; i++)
        chains_done(&watching->by_host[i]);
    timers_done(&watching->lookups);
    timers_done(&watching->doubts);
}

struct watched *watched_at(const struct core *core, uint32_t slot)
{
    CHECK(slot < core->watching.slots_max);
    return &core->watching.at[slot];
}

/* ---- where it is ---- */

static struct bytes bytes_of(const struct address *address)
{
    return (struct bytes){(const uint8_t *)address, sizeof *address};
}

static struct address host_of(const struct core *core, const struct watched *w, uint32_t i)
{
    struct address address;
    memcpy(&address, intern_bytes(&core->watching.addresses, w->hosts[i]).at, sizeof address);
    return address;
}

static void drop_hosts(struct core *core, uint32_t slot)
{
    struct watching *watching = &core->watching;
    struct watched *w = watched_at(core, slot);
    for (uint32_t i = 0; i < w->host_count; i++) {
        chains_remove(&watching->by_host[i], w->hosts[i], slot);
        (void)intern_release(&watching->addresses, w->hosts[i]);
    }
    w->host_count = 0;
}

void watched_set_hosts(struct core *core, uint32_t slot, const struct address *hosts,
                       uint32_t count)
{
    struct watching *watching = &core->watching;
    struct watched *w = watched_at(core, slot);
    drop_hosts(core, slot);
    for (uint32_t i = 0; i < count && w->host_count < RECORD_HOSTS_MAX; i++) {
        uint32_t host = address_is_host(&hosts[i])
                            ? intern_add(&watching->addresses, bytes_of(&hosts[i]))
                            : SLOT_NONE;
        if (host == SLOT_NONE)
            continue;
        w->hosts[w->host_count] = host;
        chains_add(&watching->by_host[w->host_count++], host, slot);
    }
}

/* A literal that means the same on every boot: not one whose link is a number, which only the
 * resolver of this boot can tell the name of. */
static bool is_literal(struct bytes mon_name, struct address *ret)
{
    return address_parse(mon_name, ret) && (ret->zone[0] < '0' || ret->zone[0] > '9');
}

void watched_add(struct core *core, uint32_t slot, const struct address *hosts)
{
    if (!is_monitor(core))
        return;
    struct watched *w = watched_at(core, slot);
    struct address literal;
    struct bytes mon_name = intern_bytes(&core->names, registrant_at(core, slot)->mon_name);
    uint32_t count = 0;
    *w = (struct watched){.from = SLOT_NONE};
    w->is_name = !is_literal(mon_name, &literal);
    while (hosts != NULL && count < RECORD_HOSTS_MAX && hosts[count].family != 0)
        count++;
    if (w->is_name)
        watched_set_hosts(core, slot, hosts, count);
    else
        watched_set_hosts(core, slot, &literal, 1);
    if (w->is_name && w->host_count == 0) {
        core->watching.unresolved++;
        watched_want_lookup(core, slot, core->now_ns);
    }
}

void watched_remove(struct core *core, uint32_t slot)
{
    if (!is_monitor(core))
        return;
    struct watched *w = watched_at(core, slot);
    core->watching.unresolved -= w->is_name && w->host_count == 0;
    core->watching.owed -= core->started && watched_is_owed(core, slot);
    drop_hosts(core, slot);
    timers_clear(&core->watching.lookups, slot);
    watched_forget_doubts(core, slot);
    *w = (struct watched){0};
}

void watched_put_hosts(const struct core *core, uint32_t slot,
                       struct address ret[static RECORD_HOSTS_MAX])
{
    memset(ret, 0, RECORD_HOSTS_MAX * sizeof *ret);
    if (!is_monitor(core) || !watched_at(core, slot)->is_name)
        return;
    const struct watched *w = watched_at(core, slot);
    for (uint32_t i = 0; i < w->host_count; i++)
        ret[i] = host_of(core, w, i);
}

struct address watched_address(const struct core *core, uint32_t slot)
{
    const struct watched *w = watched_at(core, slot);
    if (w->host_count == 0)
        return (struct address){0};
    uint32_t attempt = notify_job(core, target_of_watched(core, slot))->attempt_count;
    return host_of(core, w, attempt % w->host_count);
}

bool watched_is_ours(const struct core *core, const struct address *address)
{
    const struct watching *watching = &core->watching;
    bool is_found = false;
    for (uint32_t i = 0; i < watching->local_count && !is_found; i++)
        is_found = address_equal(&watching->locals[i], address);
    return is_found;
}

static bool is_ourselves(const struct core *core, uint32_t slot)
{
    const struct watched *w = watched_at(core, slot);
    for (uint32_t i = 0; i < w->host_count; i++) {
        struct address host = host_of(core, w, i);
        if (watched_is_ours(core, &host))
            return true;
    }
    return false;
}

/* ---- the two duties ---- */

bool watched_is_current(const struct core *core, uint32_t slot)
{
    return registrant_at(core, slot)->server_epoch >= core->server.boot_epoch;
}

bool watched_is_owed(const struct core *core, uint32_t slot)
{
    return !target_knows(&core->server, registrant_at(core, slot)->told_state);
}

void watched_count_owed(struct core *core)
{
    const struct table *table = &core->registrants.table;
    uint32_t slot = is_monitor(core) ? table_next(table, SLOT_NONE) : SLOT_NONE;
    core->watching.owed = 0;
    for (; slot != SLOT_NONE; slot = table_next(table, slot))
        core->watching.owed += watched_is_owed(core, slot);
}

void watched_set_told(struct core *core, uint32_t slot, uint32_t state)
{
    core->watching.owed -= watched_is_owed(core, slot);
    registrant_at(core, slot)->told_state = state;
    core->watching.owed += watched_is_owed(core, slot);
    dirty_put(&core->dirty, RECORD_REGISTRANT, slot);
}

uint32_t watched_upcall(const struct core *core, uint32_t slot)
{
    return target_owed(core, target_of_registrant(slot)).notice;
}

bool watched_has_duty(const struct core *core, uint32_t slot)
{
    return is_monitor(core) && (watched_is_owed(core, slot) || watched_upcall(core, slot) != 0 ||
                                watched_at(core, slot)->host_count == 0);
}

bool watched_is_callable(const struct core *core, uint32_t slot)
{
    return core->watching.is_served && watched_is_owed(core, slot) &&
           watched_at(core, slot)->host_count > 0 && !is_ourselves(core, slot);
}

enum notice_result watched_hear(struct core *core, const struct address *from, uint32_t state)
{
    struct watching *watching = &core->watching;
    uint32_t host = intern_find(&watching->addresses, bytes_of(from));
    enum notice_result heard = NOTICE_UNHEARD;
    for (uint32_t i = 0; i < RECORD_HOSTS_MAX && host != SLOT_NONE; i++) {
        uint32_t slot = chains_first(&watching->by_host[i], host);
        for (; slot != SLOT_NONE; slot = chains_next(&watching->by_host[i], slot)) {
            struct bytes name = intern_bytes(&core->names, registrant_at(core, slot)->mon_name);
            enum notice_result result = NOTICE_ASKING;
            if (core->limits.verify_notices)
                watched_doubt(core, slot, state);
            else
                result = notice_hear(core, from, name, state, NOTICE_TRUE);
            if (heard != NOTICE_NEW)
                heard = result;
        }
    }
    return heard;
}

bool watched_unregister(struct core *core, uint32_t slot)
{
    if (!is_monitor(core) || !watched_is_owed(core, slot)) {
        registrant_forget(core, slot);
        return true;
    }
    MARK("watched_unregistered_and_owed");
    registrant_at(core, slot)->server_epoch = 0;
    dirty_put(&core->dirty, RECORD_REGISTRANT, slot);
    notify_dismiss(core, target_of_registrant(slot));
    return false;
}

void watched_tell_lost(struct core *core, uint32_t slot)
{
    registrant_at(core, slot)->server_epoch = 0;
    watched_set_told(core, slot, 0);
    watched_at(core, slot)->told_from = 0;
    notify_dismiss(core, target_of_registrant(slot));
    if (watched_is_callable(core, slot))
        notify_news(core, target_of_watched(core, slot));
}

void watched_restart_notice(struct core *core)
{
    struct record_server before = core->server;
    core_raise_state(core);
    core->server.restart_state = core->server.state;
    watched_count_owed(core);
    for (uint32_t slot = 0; slot < core->watching.slots_max; slot++)
        core->watching.at[slot].told_from = core->watching.at[slot].tried_from = 0;
    watched_clear_our_debt(core);
    notify_restarted(core, &before);
    event_add(&core->events, EVENT_RESTART_NOTICE, NULL, (struct bytes){0}, core->server.state);
}

/* Who registers again with another priv starts over, and is no second restart. But nobody's priv is
 * given up: hosts may have registered with the lock manager as it is now before that was noticed,
 * and to one of before the kernel finds nobody, because it gives none out twice in a boot. */
void watched_lockd_restarted(struct core *core, uint32_t slot)
{
    struct watching *watching = &core->watching;
    const struct registrant *r = registrant_at(core, slot);
    if (core->limits.lockd_restart_notifies || core->now_ns >= watching->lockd_reported_ns) {
        event_add(&core->events, EVENT_LOCKD_RESTARTED, NULL,
                  intern_bytes(&core->names, r->mon_name), core->limits.lockd_restart_notifies);
        watching->lockd_reported_ns = core->now_ns + LOCKD_AGAIN_NS;
    }
    if (!core->limits.lockd_restart_notifies)
        return;
    core->server.lockd_epoch = ++core->server.epoch;
    registrant_at(core, slot)->server_epoch = core->server.epoch; /* it is of the new life */
    watched_restart_notice(core);
}

bool watched_clear_debt(struct core *core, uint32_t slot)
{
    if (watched_is_current(core, slot) || watched_is_owed(core, slot))
        return false;
    MARK("watched_told_and_gone");
    registrant_forget(core, slot);
    return true;
}

void watched_ready(struct core *core)
{
    uint64_t after_ns = core->limits.notify_after_ns;
    if (!is_monitor(core))
        return;
    core->watching.served_ns = core->now_ns + after_ns;
    if (after_ns == 0)
        watched_served(core);
}

void watched_clear_if_ours(struct core *core, uint32_t slot)
{
    if (!watched_is_owed(core, slot) || !is_ourselves(core, slot) || core_is_full(core))
        return;
    MARK("watched_is_ourselves");
    watched_note_told(core, slot, core->server.state);
    (void)watched_clear_debt(core, slot);
}

void watched_clear_our_debt(struct core *core)
{
    const struct table *table = &core->registrants.table;
    uint32_t next, slot = table_next(table, SLOT_NONE);
    for (; slot != SLOT_NONE; slot = next) {
        next = table_next(table, slot);
        watched_clear_if_ours(core, slot);
    }
}

void watched_served(struct core *core)
{
    if (!is_monitor(core) || core->watching.is_served)
        return;
    core->watching.is_served = true;
    core->watching.served_ns = UINT64_MAX;
    watched_clear_our_debt(core);
    notify_begin(core);
}

void watched_work(struct core *core)
{
    if (core->watching.served_ns > core->now_ns || core_is_full(core))
        return;
    MARK("watched_waited_long_enough");
    watched_served(core);
}

uint64_t watched_deadline_ns(const struct core *core)
{
    return core_is_full(core) ? UINT64_MAX : core->watching.served_ns;
}

void watched_check(const struct core *core)
{
    const struct table *table = &core->registrants.table;
    uint32_t unresolved = 0, owed = 0, verifying = 0;
    if (!is_monitor(core))
        return;
    table_check(&core->watching.addresses.table);
    timers_check(&core->watching.lookups);
    timers_check(&core->watching.doubts);
    uint32_t slot = table_next(table, SLOT_NONE);
    for (; slot != SLOT_NONE; slot = table_next(table, slot)) {
        const struct watched *w = watched_at(core, slot);
        for (uint32_t i = 0; i < w->host_count; i++)
            CHECK(chains_has(&core->watching.by_host[i], w->hosts[i], slot));
        CHECK(w->host_count > 0 || w->is_name);
        CHECK(w->host_count > 0 || w->is_asking || timers_is_set(&core->watching.lookups, slot));
        CHECK(!core->started || watched_is_current(core, slot) || watched_is_owed(core, slot));
        CHECK((w->doubt_count > 0) ==
              (w->is_verifying || timers_is_set(&core->watching.doubts, slot)));
        unresolved += w->host_count == 0;
        owed += watched_is_owed(core, slot);
        verifying += w->is_verifying;
    }
    CHECK(unresolved == core->watching.unresolved);
    CHECK(owed == core->watching.owed || !core->started);
    CHECK(verifying == core->watching.verifying);
}
