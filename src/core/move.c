/*
 * move.c -- asking two addresses who they are; see move.h.
 *
 * One client is asked about once at a time, and not again within five minutes: every refused
 * request would begin it anew. At most MOVES_MAX are under way; whoever comes later is looked at
 * when it is refused again.
 *
 * Invariant: a move has a timer exactly while no call of it is under way.
 */
#include "core/move.h"

#include "base/check.h"
#include "core/state.h"

#define SECOND_NS  UINT64_C(1000000000)
#define SILENCE_NS (60 * SECOND_NS)
#define AGAIN_NS   (300 * SECOND_NS)

enum { MOVES_MAX = 64, NLM_PROGRAM = 100021, NSM_PROGRAM = 100024 };

int move_init(struct core *core)
{
    int err = table_init(&core->moves.table, MOVES_MAX, sizeof(struct move));
    return err == 0 ? timers_init(&core->moves.timers, MOVES_MAX) : err;
}

void move_done(struct core *core)
{
    table_done(&core->moves.table);
    timers_done(&core->moves.timers);
}

static struct move *move_at(const struct core *core, uint32_t slot)
{
    return table_at(&core->moves.table, slot);
}

void move_begin(struct core *core, uint32_t slot, const struct peer *to)
{
    struct client *client = client_at(core, slot);
    if (client->move_next_ns > core->now_ns)
        return;
    uint32_t at = table_add(&core->moves.table);
    if (at == SLOT_NONE)
        return;
    MARK("move_begins");
    client->move_next_ns = core->now_ns + AGAIN_NS;
    *move_at(core, at) = (struct move){
        .client = table_handle(&core->clients.table, slot),
        .to = to->address,
        .to_local = to->local,
        .from_local = client->local,
        .started_ns = core->now_ns,
    };
    timers_set(&core->moves.timers, at, core->now_ns);
}

static void end(struct core *core, uint32_t at)
{
    timers_clear(&core->moves.timers, at);
    table_remove(&core->moves.table, at);
}

static void begin_call(struct core *core, uint32_t at, uint32_t client, struct core_call *ret)
{
    struct move *move = move_at(core, at);
    bool is_new = move->phase == MOVE_ASK_NEW, asks_locks = move->phase == MOVE_ASK_LOCKS;
    uint32_t versions = client_at(core, client)->versions;
    *ret = (struct core_call){
        .id = core_call_id(CALL_OF_MOVE, table_handle(&core->moves.table, at)),
        .kind = asks_locks ? CALL_NULL : CALL_STAT,
        .to = is_new ? move->to : client_address(core, client),
        .local = is_new ? move->to_local : move->from_local,
        .prog = asks_locks ? NLM_PROGRAM : NSM_PROGRAM,
        .vers = !asks_locks         ? 1
                : versions & 1 << 4 ? 4
                : versions & 1 << 3 ? 3
                                    : 1,
        .proc = asks_locks ? 0 : 1,
        .deadline_ns = core->now_ns + core->limits.notify_timeout_ns,
        .mon_name = core->limits.server_name,
    };
    move->is_calling = true;
}

bool move_next_call(struct core *core, struct core_call *ret)
{
    uint32_t at;
    while ((at = timers_take(&core->moves.timers, core->now_ns)) != SLOT_NONE) {
        uint32_t client = table_find(&core->clients.table, move_at(core, at)->client);
        if (client == SLOT_NONE) {
            end(core, at); /* it was freed meanwhile */
            continue;
        }
        begin_call(core, at, client, ret);
        return true;
    }
    return false;
}

/* The new address answered with this state of its own. */
static void decide(struct core *core, const struct move *move, uint32_t state)
{
    uint32_t client = table_find(&core->clients.table, move->client);
    if (client == SLOT_NONE || state == 0 || state != client_at(core, client)->state_seen) {
        MARK("move_other_host");
        return;
    }
    if (client_relocate(core, client, &move->to, &move->to_local)) {
        MARK("move_done");
        core->moves.moved++;
    }
}

void move_call_done(struct core *core, uint64_t handle, const struct core_input *input)
{
    uint32_t at = table_find(&core->moves.table, handle);
    CHECK(at != SLOT_NONE && move_at(core, at)->is_calling);
    struct move *move = move_at(core, at);
    bool is_silent = input->outcome == CALL_UNDELIVERED || input->outcome == CALL_UNKNOWN;
    move->is_calling = false;
    if (move->phase == MOVE_ASK_NEW) {
        if (input->outcome == CALL_ANSWERED)
            decide(core, move, input->state);
        end(core, at);
    } else if (!is_silent) {
        MARK("move_old_address_answers");
        end(core, at);
    } else {
        bool is_over = core->now_ns - move->started_ns >= SILENCE_NS;
        bool was_status = move->phase == MOVE_ASK_STATUS;
        move->phase = !was_status ? MOVE_ASK_STATUS : is_over ? MOVE_ASK_NEW : MOVE_ASK_LOCKS;
        timers_set(&core->moves.timers, at, core->now_ns);
    }
}

uint64_t move_deadline_ns(const struct core *core)
{
    return timers_next_ns(&core->moves.timers);
}
