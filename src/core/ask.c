/*
 * ask.c -- see ask.h.
 */
#include "core/ask.h"

#include "base/check.h"
#include "core/state.h"

void ask_start(struct core *core, struct ask *ask)
{
    CHECK(!ask->is_calling);
    list_append(&core->asks[ask->asker], &ask->queue);
}

bool ask_is_open(const struct ask *ask)
{
    bool is_waiting = !list_is_empty(&ask->queue);
    CHECK(!is_waiting || !ask->is_calling);
    return is_waiting || ask->is_calling;
}

static void ended(struct core *core, struct ask *ask, const struct core_input *input)
{
    uint32_t client = table_find(&core->clients.table, ask->client);
    struct address to = client != SLOT_NONE ? client_address(core, client) : (struct address){0};
    bool is_there = client != SLOT_NONE && address_equal(&to, &ask->to);
    ask->is_calling = false;
    if (ask->asker == ASK_OF_PROBE)
        probe_answered(core, ask, is_there ? client : SLOT_NONE, input);
    else
        silent_answered(core, ask, is_there ? client : SLOT_NONE, input);
}

static void begin_call(struct core *core, struct ask *ask, uint32_t client, struct core_call *ret)
{
    uint32_t versions = client_at(core, client)->stored.versions;
    enum core_caller caller = ask->asker == ASK_OF_PROBE ? CALL_OF_PROBE : CALL_OF_SILENT;
    *ret = (struct core_call){
        .id = core_call_id(caller, ask->client),
        .kind = ask->of_lock_manager ? CALL_NULL : CALL_STAT,
        .to = client_address(core, client),
        .local = client_at(core, client)->stored.local,
        .version = versions & 1 << 4   ? 4
                   : versions & 1 << 3 ? 3
                                       : 1,
        .deadline_ns = core->now_ns + core->limits.notify_timeout_ns,
        .mon_name = core->limits.server_name,
    };
    ask->to = ret->to;
    ask->is_calling = true;
}

bool ask_next_call(struct core *core, struct core_call *ret)
{
    probe_begin_due(core);
    for (enum asker asker = 0; asker < ASKER_END; asker++) {
        while (!list_is_empty(&core->asks[asker])) {
            struct ask *ask = LIST_ELEMENT(core->asks[asker].next, struct ask, queue);
            uint32_t client = table_find(&core->clients.table, ask->client);
            list_remove(&ask->queue);
            if (client != SLOT_NONE) {
                begin_call(core, ask, client, ret);
                return true;
            }
            ended(core, ask, &(struct core_input){.outcome = CALL_UNDELIVERED});
        }
    }
    return false;
}

void ask_call_done(struct core *core, enum asker asker, uint64_t client,
                   const struct core_input *input)
{
    struct ask *ask = asker == ASK_OF_PROBE ? probe_ask(core, client) : silent_ask(core, client);
    if (ask != NULL && ask->is_calling)
        ended(core, ask, input);
}

uint64_t ask_deadline_ns(const struct core *core)
{
    for (enum asker asker = 0; asker < ASKER_END; asker++)
        if (!list_is_empty(&core->asks[asker]))
            return core->now_ns;
    return probe_deadline_ns(core);
}
