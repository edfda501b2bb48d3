/*
 * silent.c -- who waits for whom, looked at in pieces; see silent.h.
 *
 * Always true, and asserted by silent_check():
 *  (1) A holder on `holders` is not NOT_ASKED, and no other is on it.
 *  (2) A holder is ASKING exactly while it is being asked.
 */
#include "core/silent.h"

#include "base/check.h"
#include "base/units.h"
#include "core/state.h"

#include <stdlib.h>

#define WAIT_NS   (30 * SECOND_NS)
#define SILENT_NS (300 * SECOND_NS)
#define PASS_NS   (5 * SECOND_NS)

enum {
    WAITERS_PER_TURN = 256,
    AHEAD_MAX = 8, /* waiters that are followed to the lock they all wait for */
    ASKED_MAX = 64,
};

int silent_init(struct core *core, const uint32_t slots[])
{
    uint32_t clients_max = slots[RECORD_CLIENT], waiters_max = slots[RECORD_WAITER];
    struct silent *silent = &core->silent;
    list_init(&silent->holders);
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
        list_remove(&holder->ask.queue);
    }
    *holder = (struct silent_holder){0};
}

/* What is known of the client in this slot, if it is still that client. */
static struct silent_holder *find(const struct core *core, uint32_t client)
{
    struct silent_holder *holder = holder_at(core, client);
    bool is_same = holder->ask.client == table_handle(&core->clients.table, client);
    return is_same && holder->phase != SILENT_NOT_ASKED ? holder : NULL;
}

enum silent_phase silent_phase_of(const struct core *core, uint32_t client)
{
    const struct silent_holder *holder = find(core, client);
    return holder == NULL ? SILENT_NOT_ASKED : holder->phase;
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
    *holder = (struct silent_holder){.ask = {.client = table_handle(&core->clients.table, client),
                                             .asker = ASK_OF_SILENT,
                                             .of_lock_manager = true},
                                     .phase = SILENT_ASKING,
                                     .asked_ns = core->now_ns};
    list_init(&holder->ask.queue);
    list_append(&silent->holders, &holder->listed);
    ask_start(core, &holder->ask);
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
    if (client == SLOT_NONE || core->now_ns - client_at(core, client)->life.seen_ns < SILENT_NS)
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
        uint32_t client = table_find(&core->clients.table, holder->ask.client);
        bool is_heard =
            client != SLOT_NONE && client_at(core, client)->life.seen_ns > holder->asked_ns;
        holder->wait_count = holder->next_count;
        holder->oldest_ns = holder->next_oldest_ns;
        holder->next_count = 0;
        holder->next_oldest_ns = 0;
        if (holder->phase == SILENT_NO_ANSWER)
            silent->counters.waits_on_silent += holder->wait_count;
        if (!holder->ask.is_calling && (client == SLOT_NONE || is_heard || holder->wait_count == 0))
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

uint64_t silent_deadline_ns(const struct core *core)
{
    const struct silent *silent = &core->silent;
    if (silent->is_passing)
        return core->now_ns;
    bool is_needed = core->waiters.table.count > 0 || !list_is_empty(&silent->holders) ||
                     silent->counters.oldest_since_ns != 0;
    return !is_needed ? UINT64_MAX : silent->pass_ns;
}

struct ask *silent_ask(const struct core *core, uint64_t client)
{
    struct silent_holder *holder = holder_at(core, (uint32_t)client);
    return holder->ask.client == client ? &holder->ask
                                        : NULL; /* the slot may be another's by now */
}

void silent_answered(struct core *core, struct ask *ask, uint32_t client,
                     const struct core_input *input)
{
    struct silent_holder *holder = LIST_ELEMENT(ask, struct silent_holder, ask);
    if (client == SLOT_NONE) {
        forget(holder);
        return;
    }
    bool is_silent = input->outcome == CALL_UNDELIVERED || input->outcome == CALL_UNKNOWN;
    holder->has_answered |= !is_silent;
    if (ask->of_lock_manager) {
        ask->of_lock_manager = false;
        ask_start(core, ask);
        return;
    }
    holder->phase = holder->has_answered ? SILENT_ANSWERS : SILENT_NO_ANSWER;
    bool says_state = input->outcome == CALL_ANSWERED && input->state != UINT32_MAX;
    if (holder->phase == SILENT_NO_ANSWER) {
        const struct client *at = client_at(core, client);
        struct address address = client_address(core, client);
        event_add(&core->events, EVENT_HOLDER_SILENT, &address,
                  intern_bytes(&core->names, at->stored.name), at->stored.id);
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
        CHECK((holder->phase == SILENT_ASKING) == ask_is_open(&holder->ask));
    }
}
