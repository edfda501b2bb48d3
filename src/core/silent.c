/*
 * silent.c -- who waits for whom, looked at in pieces; see silent.h.
 *
 * Always true, and asserted by silent_check():
 *  (1) A holder on `holders` is not NOT_ASKED, and no other is on it.
 *  (2) A holder on `to_call` is ASKING and not calling; an ASKING one is on it or calling.
 */
#include "core/silent.h"

#include "base/check.h"
#include "core/state.h"

#include <stdlib.h>

#define SECOND_NS UINT64_C(1000000000)
#define WAIT_NS   (30 * SECOND_NS)
#define SILENT_NS (300 * SECOND_NS)
#define PASS_NS   (5 * SECOND_NS)

enum {
    WAITERS_PER_TURN = 256,
    AHEAD_MAX = 8, /* waiters that are followed to the lock they all wait for */
    ASKED_MAX = 64,
};

int silent_init(struct core *core, uint32_t clients_max, uint32_t waiters_max)
{
    struct silent *silent = &core->silent;
    list_init(&silent->holders);
    list_init(&silent->to_call);
    silent->client_max = clients_max;
    silent->waiter_max = waiters_max;
    silent->holders_at = calloc(clients_max > 0 ? clients_max : 1, sizeof *silent->holders_at);
    silent->waits_at = calloc(waiters_max > 0 ? waiters_max : 1, sizeof *silent->waits_at);
    return silent->holders_at == NULL || silent->waits_at == NULL ? -1 : 0;
}

void silent_done(struct core *core)
{
    free(core->silent.holders_at);
    free(core->silent.waits_at);
}

static struct silent_holder *holder_at(const struct core *core, uint32_t client)
{
    CHECK(client < core->silent.client_max);
    return &core->silent.holders_at[client];
}

static void forget(struct silent_holder *holder)
{
    if (holder->phase != SILENT_NOT_ASKED) {
        list_remove(&holder->listed);
        list_remove(&holder->calls);
    }
    *holder = (struct silent_holder){0};
}

/* What is known of the client in this slot, if it is still that client. */
static struct silent_holder *find(const struct core *core, uint32_t client)
{
    struct silent_holder *holder = holder_at(core, client);
    bool is_same = holder->client == table_handle(&core->clients.table, client);
    return is_same && holder->phase != SILENT_NOT_ASKED ? holder : NULL;
}

enum silent_phase silent_phase_of(const struct core *core, uint32_t client)
{
    const struct silent_holder *holder = find(core, client);
    return holder == NULL ? SILENT_NOT_ASKED : holder->phase;
}

uint64_t silent_wait_since_ns(const struct core *core, uint32_t waiter)
{
    const struct silent_wait *wait = &core->silent.waits_at[waiter];
    return wait->waiter == table_handle(&core->waiters.table, waiter) ? wait->since_ns : 0;
}

/* Whose lock it waits for, directly or behind a few others; SLOT_NONE: it is about to be served, or
 * far behind. */
static uint32_t blocker_of(const struct core *core, const struct waiter *waiter)
{
    for (uint32_t i = 0; i < AHEAD_MAX && waiter->hangs_on != SLOT_NONE; i++) {
        if (!waiter->on_waiter)
            return owner_at(core, lock_at(core, waiter->hangs_on)->claim.owner)->client;
        waiter = waiter_at(core, waiter->hangs_on);
        if (waiter_is_offered(waiter))
            return owner_at(core, waiter->claim.owner)->client;
    }
    return SLOT_NONE;
}

static void begin_asking(struct core *core, uint32_t client)
{
    struct silent *silent = &core->silent;
    struct silent_holder *holder = holder_at(core, client);
    uint32_t count = 0;
    for (const struct list *at = silent->holders.next; at != &silent->holders; at = at->next)
        count++;
    if (count >= ASKED_MAX)
        return; /* the next pass may find room */
    forget(holder);
    *holder = (struct silent_holder){.client = table_handle(&core->clients.table, client),
                                     .phase = SILENT_ASKING,
                                     .asked_ns = core->now_ns};
    list_init(&holder->listed);
    list_init(&holder->calls);
    list_append(&silent->holders, &holder->listed);
    list_append(&silent->to_call, &holder->calls);
}

static void look(struct core *core, uint32_t slot)
{
    struct silent *silent = &core->silent;
    const struct waiter *waiter = waiter_at(core, slot);
    struct silent_wait *wait = &silent->waits_at[slot];
    uint64_t handle = table_handle(&core->waiters.table, slot);
    if (wait->waiter != handle)
        *wait = (struct silent_wait){.waiter = handle, .since_ns = core->now_ns};
    if (waiter->phase != WAITER_QUEUED)
        return;
    if (silent->pass_oldest_ns == 0 || wait->since_ns < silent->pass_oldest_ns)
        silent->pass_oldest_ns = wait->since_ns > 0 ? wait->since_ns : 1;
    if (core->now_ns - wait->since_ns < WAIT_NS)
        return;
    uint32_t client = blocker_of(core, waiter);
    if (client == SLOT_NONE || core->now_ns - client_at(core, client)->seen_ns < SILENT_NS)
        return;
    if (find(core, client) == NULL)
        begin_asking(core, client);
    struct silent_holder *holder = find(core, client);
    if (holder == NULL)
        return;
    holder->next_count++;
    if (holder->next_oldest_ns == 0 || wait->since_ns < holder->next_oldest_ns)
        holder->next_oldest_ns = wait->since_ns > 0 ? wait->since_ns : 1;
}

/* Everybody was looked at: what was counted is what is known now. */
static void end_pass(struct core *core)
{
    struct silent *silent = &core->silent;
    silent->is_passing = false;
    silent->at = 0;
    silent->pass_ns = core->now_ns + PASS_NS;
    silent->counters.oldest_since_ns = silent->pass_oldest_ns;
    silent->counters.waits_on_silent = 0;
    struct list *next;
    for (struct list *at = silent->holders.next; at != &silent->holders; at = next) {
        struct silent_holder *holder = LIST_ELEMENT(at, struct silent_holder, listed);
        next = at->next;
        uint32_t client = table_find(&core->clients.table, holder->client);
        bool is_heard = client != SLOT_NONE && client_at(core, client)->seen_ns > holder->asked_ns;
        holder->wait_count = holder->next_count;
        holder->oldest_ns = holder->next_oldest_ns;
        holder->next_count = 0;
        holder->next_oldest_ns = 0;
        if (holder->phase == SILENT_NO_ANSWER)
            silent->counters.waits_on_silent += holder->wait_count;
        if (!holder->is_calling && (client == SLOT_NONE || is_heard || holder->wait_count == 0))
            forget(holder);
    }
}

void silent_work(struct core *core)
{
    struct silent *silent = &core->silent;
    const struct table *table = &core->waiters.table;
    if (!silent->is_passing) {
        if (core->now_ns < silent->pass_ns)
            return;
        if (table->count == 0 && list_is_empty(&silent->holders)) {
            silent->counters = (struct silent_counters){0};
            return;
        }
        silent->is_passing = true;
        silent->pass_oldest_ns = 0;
        silent->at = 0;
    }
    for (uint32_t i = 0; i < WAITERS_PER_TURN && silent->at < table->used; i++, silent->at++)
        if (table_is_live(table, silent->at))
            look(core, silent->at);
    if (silent->at >= table->used)
        end_pass(core);
}

uint64_t silent_work_deadline_ns(const struct core *core)
{
    const struct silent *silent = &core->silent;
    if (silent->is_passing)
        return core->now_ns;
    bool is_needed = core->waiters.table.count > 0 || !list_is_empty(&silent->holders) ||
                     silent->counters.oldest_since_ns != 0;
    return !is_needed ? UINT64_MAX : silent->pass_ns;
}

uint64_t silent_deadline_ns(const struct core *core)
{
    return list_is_empty(&core->silent.to_call) ? UINT64_MAX : core->now_ns;
}

bool silent_next_call(struct core *core, struct core_call *ret)
{
    struct silent *silent = &core->silent;
    while (!list_is_empty(&silent->to_call)) {
        struct silent_holder *holder =
            LIST_ELEMENT(silent->to_call.next, struct silent_holder, calls);
        CHECK(holder->phase == SILENT_ASKING);
        uint32_t client = table_find(&core->clients.table, holder->client);
        if (client == SLOT_NONE) {
            forget(holder);
            continue;
        }
        bool asks_locks = !holder->was_null_asked;
        uint32_t versions = client_at(core, client)->versions;
        *ret = (struct core_call){
            .id = core_call_id(CALL_OF_SILENT, holder->client),
            .kind = asks_locks ? CALL_NULL : CALL_STAT,
            .to = client_address(core, client),
            .local = client_at(core, client)->local,
            .version = versions & 1 << 4   ? 4
                       : versions & 1 << 3 ? 3
                                           : 1,
            .deadline_ns = core->now_ns + core->limits.notify_timeout_ns,
            .mon_name = core->limits.server_name,
        };
        list_remove(&holder->calls);
        holder->to = ret->to;
        holder->is_calling = true;
        return true;
    }
    return false;
}

void silent_call_done(struct core *core, uint64_t handle, const struct core_input *input)
{
    uint32_t client = table_find(&core->clients.table, handle);
    struct silent_holder *holder = holder_at(core, (uint32_t)handle);
    if (holder->client != handle || !holder->is_calling)
        return; /* the slot is another client's by now */
    holder->is_calling = false;
    struct address to = client != SLOT_NONE ? client_address(core, client) : (struct address){0};
    if (client == SLOT_NONE || !address_equal(&to, &holder->to)) { /* gone, or moved meanwhile */
        forget(holder);
        return;
    }
    bool is_silent = input->outcome == CALL_UNDELIVERED || input->outcome == CALL_UNKNOWN;
    holder->has_answered |= !is_silent;
    if (!holder->was_null_asked) {
        holder->was_null_asked = true;
        list_append(&core->silent.to_call, &holder->calls);
        return;
    }
    holder->phase = holder->has_answered ? SILENT_ANSWERS : SILENT_NO_ANSWER;
    bool says_state = input->outcome == CALL_ANSWERED && input->state != UINT32_MAX;
    if (holder->phase == SILENT_NO_ANSWER) {
        const struct client *at = client_at(core, client);
        struct address address = client_address(core, client);
        event_add(&core->events, EVENT_HOLDER_SILENT, &address,
                  intern_bytes(&core->names, at->name), at->id);
    } else if (says_state && input->state != 0) {
        struct probe_question question = {.reason = PROBE_RESUME};
        reboot_probed(core, client, &question, input->state);
    }
}

void silent_check(const struct core *core)
{
    const struct silent *silent = &core->silent;
    for (const struct list *at = silent->holders.next; at != &silent->holders; at = at->next) {
        const struct silent_holder *holder = LIST_ELEMENT(at, struct silent_holder, listed);
        CHECK(holder->phase != SILENT_NOT_ASKED);
        bool is_queued = !list_is_empty(&holder->calls);
        CHECK(holder->phase != SILENT_ASKING || is_queued != holder->is_calling);
        CHECK(holder->phase == SILENT_ASKING || (!is_queued && !holder->is_calling));
    }
}
