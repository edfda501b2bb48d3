/*
 * probe.c -- questions to clients' status monitors; see probe.h.
 *
 * Always true, and asserted by probe_check():
 *  (1) No two questions are about the same client, and each is being asked.
 *  (2) An address counts the questions about its clients, apart from those of strangers.
 *
 * Who may cause a question matters. A notice from elsewhere can be sent by anybody, for any client
 * whose name it knows; questions of that kind may use only a quarter of the room, and our own
 * another one, so that they keep neither each other nor a client's own notice from being looked
 * into. A host has as many names as it likes, hence the share of its address in what its own
 * notices and locks cause. The weightier question also replaces the lighter one about the same
 * client, and is asked again: the answer to the first may be older than what it is about. The other
 * way round nothing is to be done, because the answer is the host's own word, whatever it was asked
 * for.
 */
#include "core/probe.h"

#include "base/check.h"
#include "base/units.h"
#include "core/state.h"

#define PACE_NS      UINT64_C(10000000)
#define CALIBRATE_NS (3600 * SECOND_NS) /* before one that did not fit is asked again */

enum { OURS_MAX = PROBE_MAX / 4, STRANGERS_MAX = PROBE_MAX / 4 };

int probe_init(struct core *core, const uint32_t slots[])
{
    (void)slots;
    list_init(&core->probes.calibrate);
    core->probes.resume_at = SLOT_NONE;
    return table_init(&core->probes.table, PROBE_MAX, sizeof(struct probe));
}

void probe_done(struct core *core)
{
    table_done(&core->probes.table);
}

static struct probe *probe_at(const struct core *core, uint32_t slot)
{
    return table_at(&core->probes.table, slot);
}

static uint32_t find(const struct core *core, uint64_t client)
{
    const struct table *table = &core->probes.table;
    uint32_t slot = table_next(table, SLOT_NONE);
    while (slot != SLOT_NONE && probe_at(core, slot)->ask.client != client)
        slot = table_next(table, slot);
    return slot;
}

static bool is_ours(enum probe_reason reason)
{
    return reason <= PROBE_RESUME;
}

static bool is_background(enum probe_reason reason)
{
    return reason <= PROBE_ELSEWHERE;
}

/* What an address has in flight of this kind; NULL: it is not its doing. */
static uint32_t *count_of(struct quota *quota, enum probe_reason reason)
{
    return reason == PROBE_CALIBRATE ? &quota->calibrations
           : is_background(reason)   ? NULL
                                     : &quota->questions;
}

/* Has this address room for one more? */
static bool is_within_share(const struct core *core, uint32_t quota, enum probe_reason reason)
{
    const uint32_t *count = count_of(quota_at(core, quota), reason);
    return count == NULL || *count < PROBE_SHARE;
}

/* Is there room for one more of this kind? */
static bool has_room(const struct core *core, enum probe_reason reason)
{
    const struct table *table = &core->probes.table;
    uint32_t ours = 0, strangers = 0;
    if (!is_background(reason))
        return true; /* if there is a slot */
    uint32_t slot = table_next(table, SLOT_NONE);
    for (; slot != SLOT_NONE; slot = table_next(table, slot)) {
        enum probe_reason other = probe_at(core, slot)->question.reason;
        ours += is_ours(other);
        strangers += other == PROBE_ELSEWHERE;
    }
    return is_ours(reason) ? ours < OURS_MAX : strangers < STRANGERS_MAX;
}

static void drop_question(struct core *core, struct probe *probe)
{
    uint32_t *count = count_of(quota_at(core, probe->quota), probe->question.reason);
    if (count != NULL)
        --*count;
    if (probe->mon_name != SLOT_NONE)
        (void)intern_release(&core->names, probe->mon_name);
    probe->mon_name = SLOT_NONE;
}

static void set_question(struct core *core, struct probe *probe,
                         const struct probe_question *question)
{
    uint32_t *count = count_of(quota_at(core, probe->quota), question->reason);
    if (count != NULL)
        ++*count;
    probe->question = *question;
    probe->question.mon_name = (struct bytes){0};
    probe->mon_name = SLOT_NONE;
    if (question->mon_name.len > 0)
        probe->mon_name = intern_add(&core->names, question->mon_name);
}

static void end(struct core *core, struct probe *probe)
{
    drop_question(core, probe);
    quota_at(core, probe->quota)->keepers--;
    quota_release(core, probe->quota);
    table_remove(&core->probes.table, table_slot(&core->probes.table, probe));
}

/* Does the answer to the one that is being asked do for this one, too? */
static bool is_lighter(const struct probe_question *question, const struct probe_question *asked)
{
    if (is_background(question->reason))
        return is_ours(question->reason) || !is_ours(asked->reason);
    return question->reason < asked->reason ||
           (question->reason == asked->reason && question->notified == asked->notified);
}

/* One is being asked about this client. True: its answer will do, or this one is asked as well. */
static bool join(struct core *core, struct probe *probe, const struct probe_question *question)
{
    const struct probe_question *asked = &probe->question;
    if (is_lighter(question, asked))
        return true;
    bool is_other_kind = is_background(question->reason) || is_background(asked->reason);
    if (is_other_kind && (!has_room(core, question->reason) ||
                          !is_within_share(core, probe->quota, question->reason)))
        return false;
    MARK("probe_asked_again");
    drop_question(core, probe);
    set_question(core, probe, question);
    probe->must_ask_again = probe->ask.is_calling;
    return true;
}

bool probe_begin(struct core *core, uint32_t client, const struct probe_question *question)
{
    struct probes *all = &core->probes;
    uint64_t handle = table_handle(&core->clients.table, client);
    uint32_t slot = find(core, handle);
    if (slot != SLOT_NONE)
        return join(core, probe_at(core, slot), question);
    if (!is_within_share(core, client_at(core, client)->quota, question->reason)) {
        MARK("probe_no_share");
        return false;
    }
    if (!has_room(core, question->reason)) {
        MARK("probe_no_background_room");
        return false;
    }
    slot = table_add(&all->table);
    if (slot == SLOT_NONE)
        return false;
    struct probe *probe = probe_at(core, slot);
    struct address address = client_address(core, client);
    *probe = (struct probe){.ask = {.client = handle, .asker = ASK_OF_PROBE},
                            .quota = quota_keep(core, &address)};
    quota_at(core, probe->quota)->keepers++;
    set_question(core, probe, question);
    list_init(&probe->ask.queue);
    ask_start(core, &probe->ask);
    return true;
}

void probe_begin_all(struct core *core)
{
    core->probes.resume_at = table_next(&core->clients.table, SLOT_NONE);
    core->probes.next_ns = core->now_ns;
}

/* The next of those that are asked after a resume, when its time has come. */
static void begin_resumed(struct core *core)
{
    struct probes *all = &core->probes;
    const struct table *clients = &core->clients.table;
    while (all->resume_at != SLOT_NONE && core->now_ns >= all->next_ns) {
        uint32_t slot = all->resume_at;
        bool is_live = table_is_live(clients, slot);
        const struct client *client = is_live ? client_at(core, slot) : NULL;
        if (is_live && client->life.lock_count + client->life.share_count > 0) {
            all->next_ns = core->now_ns + PACE_NS;
            if (!probe_begin(core, slot, &(struct probe_question){.reason = PROBE_RESUME}))
                return; /* no room: the same one again, later */
        }
        all->resume_at = table_next(clients, slot);
    }
}

void probe_want_calibration(struct core *core, uint32_t slot)
{
    struct client *client = client_at(core, slot);
    if (client_is_calibrated(client) || core->now_ns < client->asked.calibrate_next_ns ||
        !list_is_empty(&client->asked.calibrating))
        return;
    client->asked.calibrate_next_ns = core->now_ns + CALIBRATE_NS;
    list_append(&core->probes.calibrate, &client->asked.calibrating);
}

/* The next of those whose status monitors are asked whether they are theirs. */
static void begin_calibration(struct core *core)
{
    struct probes *all = &core->probes;
    while (!list_is_empty(&all->calibrate) && core->now_ns >= all->calibrate_next_ns) {
        struct client *client = LIST_ELEMENT(all->calibrate.next, struct client, asked.calibrating);
        uint32_t slot = client_slot(core, client);
        all->calibrate_next_ns = core->now_ns + PACE_NS;
        bool is_asked =
            client_is_calibrated(client) ||
            probe_begin(core, slot, &(struct probe_question){.reason = PROBE_CALIBRATE});
        list_remove(&client->asked.calibrating);
        if (!is_asked) /* no room: later; others' addresses may have some */
            list_append(&all->calibrate, &client->asked.calibrating);
    }
}

void probe_begin_due(struct core *core)
{
    begin_resumed(core);
    begin_calibration(core);
}

struct ask *probe_ask(const struct core *core, uint64_t client)
{
    uint32_t slot = find(core, client);
    CHECK(slot != SLOT_NONE);
    return &probe_at(core, slot)->ask;
}

/* The host's own state; 0: it did not say. Some say -1, "unspecified", when they know nothing of
 * the name that was asked for. */
static uint32_t state_of(const struct core_input *input)
{
    bool says_nothing = input->outcome != CALL_ANSWERED || input->state == UINT32_MAX;
    return says_nothing ? 0 : input->state;
}

void probe_answered(struct core *core, struct ask *ask, uint32_t client,
                    const struct core_input *input)
{
    struct probe *probe = LIST_ELEMENT(ask, struct probe, ask);
    if (probe->must_ask_again) {
        probe->must_ask_again = false;
        ask_start(core, ask);
        return;
    }
    struct probe_question question = probe->question;
    if (probe->mon_name != SLOT_NONE)
        question.mon_name = intern_bytes(&core->names, probe->mon_name);
    if (client != SLOT_NONE)
        reboot_probed(core, client, &question, state_of(input));
    end(core, probe);
}

uint64_t probe_deadline_ns(const struct core *core)
{
    const struct probes *all = &core->probes;
    uint64_t resume_ns = all->resume_at == SLOT_NONE ? UINT64_MAX : all->next_ns;
    uint64_t calibrate_ns = list_is_empty(&all->calibrate) ? UINT64_MAX : all->calibrate_next_ns;
    return resume_ns < calibrate_ns ? resume_ns : calibrate_ns;
}

void probe_check(const struct core *core)
{
    const struct probes *all = &core->probes;
    table_check(&all->table);
    uint32_t counted = 0, questions = 0;
    uint32_t slot = table_next(&all->table, SLOT_NONE);
    for (; slot != SLOT_NONE; slot = table_next(&all->table, slot)) {
        const struct probe *probe = probe_at(core, slot);
        CHECK(find(core, probe->ask.client) == slot);
        CHECK(ask_is_open(&probe->ask));
        CHECK(probe->ask.is_calling || !probe->must_ask_again);
        counted += count_of(quota_at(core, probe->quota), probe->question.reason) != NULL;
    }
    const struct table *quotas = &core->quotas.table;
    for (slot = table_next(quotas, SLOT_NONE); slot != SLOT_NONE; slot = table_next(quotas, slot))
        questions += quota_at(core, slot)->questions + quota_at(core, slot)->calibrations;
    CHECK(questions == counted);
}
