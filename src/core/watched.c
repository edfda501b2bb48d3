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
 * From which address: SM_MON does not say by which of our addresses the host knows us, and status
 * monitors look at the sender. So a host is called from each of our addresses of its family, the
 * one that has most leading bits in common with its own first. It is told when all of them were
 * answered; an address that its host never answers is one that it does not use, so at the end of
 * the ladder a single answered one will do.
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

_Static_assert(CORE_LOCALS_MAX <= 32, "a bit for each of our addresses");

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
    return err == 0 ? timers_init(&watching->lookups, slots_max) : err;
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
    drop_hosts(core, slot);
    timers_clear(&core->watching.lookups, slot);
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

static bool is_ours(const struct core *core, const struct address *address)
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
        if (is_ours(core, &host))
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

uint32_t watched_owed_count(const struct core *core)
{
    const struct table *table = &core->registrants.table;
    uint32_t count = 0, slot = is_monitor(core) ? table_next(table, SLOT_NONE) : SLOT_NONE;
    for (; slot != SLOT_NONE; slot = table_next(table, slot))
        count += watched_is_owed(core, slot);
    return count;
}

bool watched_is_callable(const struct core *core, uint32_t slot)
{
    return core->watching.is_served && watched_is_owed(core, slot) &&
           watched_at(core, slot)->host_count > 0 && !is_ourselves(core, slot);
}

uint32_t watched_hear(struct core *core, const struct address *from, uint32_t state, bool *ret_news)
{
    struct watching *watching = &core->watching;
    uint32_t host = intern_find(&watching->addresses, bytes_of(from)), count = 0;
    *ret_news = false;
    if (is_ours(core, from))
        return 0;
    for (uint32_t i = 0; i < RECORD_HOSTS_MAX && host != SLOT_NONE; i++) {
        uint32_t slot = chains_first(&watching->by_host[i], host);
        for (; slot != SLOT_NONE; slot = chains_next(&watching->by_host[i], slot)) {
            struct bytes name = intern_bytes(&core->names, registrant_at(core, slot)->mon_name);
            *ret_news |= notice_hear(core, from, name, state, NOTICE_TRUE) == NOTICE_NEW;
            count++;
        }
    }
    return count;
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
    struct registrant *r = registrant_at(core, slot);
    r->server_epoch = 0;
    r->told_state = 0;
    dirty_put(&core->dirty, RECORD_REGISTRANT, slot);
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
    for (uint32_t slot = 0; slot < core->watching.slots_max; slot++)
        core->watching.at[slot].told_from = core->watching.at[slot].tried_from = 0;
    watched_settle_ourselves(core);
    notify_restarted(core, &before);
    event_add(&core->events, EVENT_RESTART_NOTICE, NULL, (struct bytes){0}, core->server.state);
}

/* Every priv of before is worthless then: as after a reboot, those who register again begin anew,
 * and are no second restart. */
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
    core->server.boot_epoch = ++core->server.epoch;
    watched_restart_notice(core);
}

/* ---- SM_NOTIFY ---- */

void core_set_locals(struct core *core, const struct address *locals, uint32_t count)
{
    struct watching *watching = &core->watching;
    CHECK(count <= CORE_LOCALS_MAX);
    bool is_same = count == watching->local_count;
    for (uint32_t i = 0; i < count && is_same; i++)
        is_same = address_equal(&watching->locals[i], &locals[i]);
    if (is_same)
        return;
    for (uint32_t i = 0; i < count; i++)
        watching->locals[i] = locals[i];
    watching->local_count = count;
    for (uint32_t slot = 0; slot < watching->slots_max; slot++) {
        watching->at[slot].told_from = watching->at[slot].tried_from = 0;
        watching->at[slot].from = SLOT_NONE;
    }
}

/* Leading bits that both have; a link-local host is reached over its link only. */
static uint32_t bits_in_common(const struct address *local, const struct address *host)
{
    uint32_t bits = 0, max = host->family == 4 ? 32 : 128;
    while (bits < max && !((local->bytes[bits / 8] ^ host->bytes[bits / 8]) & (0x80U >> bits % 8)))
        bits++;
    return bits;
}

static bool is_usable(const struct address *local, const struct address *host)
{
    return local->family == host->family && !address_is_loopback(local) &&
           !address_is_loopback(host) &&
           address_is_link_local(local) == address_is_link_local(host) &&
           memcmp(local->zone, host->zone, sizeof local->zone) == 0;
}

/* Bits of the addresses that this host may know us by. */
static uint32_t ways_to(const struct core *core, const struct address *host)
{
    const struct watching *watching = &core->watching;
    uint32_t ways = 0;
    for (uint32_t i = 0; i < watching->local_count; i++)
        ways |= (uint32_t)is_usable(&watching->locals[i], host) << i;
    return ways;
}

/* The nearest of these; SLOT_NONE: there is none. */
static uint32_t nearest(const struct core *core, uint32_t ways, const struct address *host)
{
    const struct watching *watching = &core->watching;
    uint32_t best = SLOT_NONE, best_bits = 0;
    for (uint32_t i = 0; i < watching->local_count; i++) {
        uint32_t bits = bits_in_common(&watching->locals[i], host);
        if (!(ways >> i & 1) || (best != SLOT_NONE && bits <= best_bits))
            continue;
        best = i;
        best_bits = bits;
    }
    return best;
}

/* Those that it was not yet told from. */
static uint32_t ways_left(const struct core *core, uint32_t slot)
{
    struct address host = watched_address(core, slot);
    return ways_to(core, &host) & ~watched_at(core, slot)->told_from;
}

static void add_name(struct core_call *call, struct bytes name)
{
    bool is_there = name.len == 0;
    for (uint32_t i = 0; i < call->our_name_count && !is_there; i++)
        is_there = bytes_equal(call->our_names[i], name);
    if (!is_there && call->our_name_count < CORE_CALL_NAMES_MAX)
        call->our_names[call->our_name_count++] = name;
}

/* The name that the lock manager gave, as its clients know it; the same without its domain, as most
 * of them do; and --name. */
static void put_names(const struct core *core, uint32_t slot, struct core_call *call)
{
    struct bytes name = intern_bytes(&core->names, registrant_at(core, slot)->my_name);
    struct address literal;
    add_name(call, name);
    const uint8_t *dot = name.len > 0 ? memchr(name.at, '.', name.len) : NULL;
    if (dot != NULL && !address_parse(name, &literal))
        add_name(call, (struct bytes){name.at, (uint32_t)(dot - name.at)});
    for (uint32_t i = 0; i < core->limits.name_count; i++)
        add_name(call, core->limits.names[i]);
    add_name(call, call->our_name_count == 0 ? core->limits.server_name : (struct bytes){0});
}

void watched_put_call(struct core *core, uint32_t slot, struct core_call *ret)
{
    struct watched *w = watched_at(core, slot);
    uint32_t left = ways_left(core, slot);
    uint32_t attempt = notify_job(core, target_of_watched(core, slot))->attempt_count;
    *ret = (struct core_call){
        .id = core_call_id(CALL_OF_WATCHED, table_handle(&core->registrants.table, slot)),
        .kind = CALL_NOTIFY,
        .to = watched_address(core, slot),
        .our_state = core->server.state,
        .transport = attempt % 2 == 0 ? RECORD_UDP : RECORD_TCP, /* what a firewall lets through */
    };
    if ((left & ~w->tried_from) == 0)
        w->tried_from = 0; /* all of them once more */
    w->from = nearest(core, left & ~w->tried_from, &ret->to);
    if (w->from != SLOT_NONE) {
        ret->local = core->watching.locals[w->from];
        w->tried_from |= UINT32_C(1) << w->from;
    }
    put_names(core, slot, ret);
}

static void note_told(struct core *core, uint32_t slot, uint32_t state)
{
    struct watched *w = watched_at(core, slot);
    w->told_from = w->tried_from = 0;
    registrant_at(core, slot)->told_state = state;
    dirty_put(&core->dirty, RECORD_REGISTRANT, slot);
}

void watched_answered(struct core *core, uint32_t slot, uint32_t state, bool is_answered)
{
    struct watched *w = watched_at(core, slot);
    if (!is_answered) {
        if (w->is_name && !w->is_asking)
            watched_want_lookup(core, slot, core->now_ns); /* it may have moved */
        return;
    }
    registrant_alive(core, slot);
    if (state != core->server.state)
        return; /* our state went up meanwhile */
    if (w->from != SLOT_NONE)
        w->told_from |= UINT32_C(1) << w->from;
    if (ways_left(core, slot) == 0)
        note_told(core, slot, state);
}

bool watched_has_other_way(const struct core *core, uint32_t slot)
{
    return (ways_left(core, slot) & ~watched_at(core, slot)->tried_from) != 0;
}

void watched_given_up(struct core *core, uint32_t slot)
{
    if (watched_at(core, slot)->told_from == 0)
        return;
    note_told(core, slot, core->server.state);
}

bool watched_settle(struct core *core, uint32_t slot)
{
    if (watched_is_current(core, slot) || watched_is_owed(core, slot))
        return false;
    MARK("watched_told_and_gone");
    registrant_forget(core, slot);
    return true;
}

/* ---- when ---- */

void watched_ready(struct core *core)
{
    uint64_t after_ns = core->limits.notify_after_ns;
    if (!is_monitor(core))
        return;
    core->watching.served_ns = core->now_ns + after_ns;
    if (after_ns == 0)
        watched_served(core);
}

void watched_settle_ourselves(struct core *core)
{
    const struct table *table = &core->registrants.table;
    uint32_t next, slot = table_next(table, SLOT_NONE);
    for (; slot != SLOT_NONE; slot = next) {
        next = table_next(table, slot);
        if (!watched_is_owed(core, slot) || !is_ourselves(core, slot) || core_is_full(core))
            continue;
        note_told(core, slot, core->server.state);
        (void)watched_settle(core, slot);
    }
}

void watched_served(struct core *core)
{
    if (!is_monitor(core) || core->watching.is_served)
        return;
    core->watching.is_served = true;
    core->watching.served_ns = UINT64_MAX;
    watched_settle_ourselves(core);
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
    uint32_t unresolved = 0;
    if (!is_monitor(core))
        return;
    table_check(&core->watching.addresses.table);
    timers_check(&core->watching.lookups);
    uint32_t slot = table_next(table, SLOT_NONE);
    for (; slot != SLOT_NONE; slot = table_next(table, slot)) {
        const struct watched *w = watched_at(core, slot);
        for (uint32_t i = 0; i < w->host_count; i++)
            CHECK(chains_has(&core->watching.by_host[i], w->hosts[i], slot));
        CHECK(w->host_count > 0 || w->is_name);
        CHECK(w->host_count > 0 || w->is_asking || timers_is_set(&core->watching.lookups, slot));
        CHECK(!core->started || watched_is_current(core, slot) || watched_is_owed(core, slot));
        unresolved += w->host_count == 0;
    }
    CHECK(unresolved == core->watching.unresolved);
}
