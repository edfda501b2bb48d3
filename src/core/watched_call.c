/*
 * watched_call.c -- the SM_NOTIFY that a watched host is owed; see watched.h.
 *
 * From which address: SM_MON does not say by which of our addresses the host knows us, and status
 * monitors look at the sender. So a host is called from each of our addresses of its family, the
 * one that has most leading bits in common with its own first. It is told when all of them were
 * answered; an address that its host never answers is one that it does not use, so at the end of
 * the ladder a single answered one will do.
 */
#include "core/watched.h"

#include "base/check.h"
#include "core/state.h"

_Static_assert(CORE_LOCALS_MAX <= 32, "a bit for each of our addresses");

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
        .transport = watched_transport(attempt),
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

void watched_note_told(struct core *core, uint32_t slot, uint32_t state)
{
    struct watched *w = watched_at(core, slot);
    w->told_from = w->tried_from = 0;
    watched_set_told(core, slot, state);
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
    if (state != core->server.state) {
        MARK("watched_told_an_older_state");
        return; /* our state went up meanwhile */
    }
    if (w->from != SLOT_NONE)
        w->told_from |= UINT32_C(1) << w->from;
    if (ways_left(core, slot) == 0)
        watched_note_told(core, slot, state);
}

bool watched_has_other_way(const struct core *core, uint32_t slot)
{
    return (ways_left(core, slot) & ~watched_at(core, slot)->tried_from) != 0;
}

void watched_given_up(struct core *core, uint32_t slot)
{
    if (watched_at(core, slot)->told_from == 0)
        return;
    MARK("watched_told_from_one_address");
    watched_note_told(core, slot, core->server.state);
}
