/*
 * notify_round.c -- the first attempts after a restart: who is still to be tried; see notify.h.
 */
#include "base/check.h"
#include "base/text.h"
#include "base/units.h"
#include "core/state.h"

/* Everybody was tried once: what an operator waits for after a restart. */
static void report_round(struct core *core)
{
    const struct notify_round *round = &core->notify.round;
    char buffer[EVENT_NAME_MAX];
    struct text text;
    MARK("notify_round_over");
    text_init(&text, buffer, sizeof buffer);
    text_add_count(&text, round->reached);
    text_add(&text, " of ");
    text_add_count(&text, round->count);
    text_add(&text, " reached, ");
    text_add_count(&text, round->failed);
    text_add(&text, " failed");
    event_add_summary(&core->events, EVENT_ROUND_OVER, bytes_of_text(buffer),
                      (core->now_ns - round->start_ns) / MS_NS);
}

void notify_round_leave(struct core *core, uint32_t target, bool is_heard)
{
    struct notify_job *job = notify_job(core, target);
    job->is_in_round = false;
    unreached_leave(core, job->host, is_heard);
    if (--core->notify.round.left == 0)
        report_round(core);
}

/* An attempt has ended. One that began before our state changed said nothing of it. */
void notify_round_tried(struct core *core, uint32_t target, bool is_reached)
{
    const struct notify_job *job = notify_job(core, target);
    if (!job->is_in_round || !target_knows(&core->server, job->sent.state))
        return;
    *(is_reached ? &core->notify.round.reached : &core->notify.round.failed) += 1;
    notify_round_leave(core, target, is_reached);
}

/* Targets left in a round before are in the next one. */
static void end_round(struct core *core)
{
    if (core->notify.round.left == 0)
        return;
    MARK("notify_round_begins_anew");
    uint32_t target = target_next(core, SLOT_NONE);
    for (; target != SLOT_NONE; target = target_next(core, target))
        if (notify_job(core, target)->is_in_round)
            unreached_leave(core, notify_job(core, target)->host, true);
}

void notify_round_begin(struct core *core)
{
    struct notify_round *round = &core->notify.round;
    end_round(core);
    unreached_begin(core);
    *round = (struct notify_round){.start_ns = core->now_ns};
    uint32_t target = target_next(core, SLOT_NONE);
    for (; target != SLOT_NONE; target = target_next(core, target)) {
        struct notify_job *job = notify_job(core, target);
        job->is_marked = false;
        job->is_in_round = target_owed(core, target).state != 0;
        if (!job->is_in_round)
            continue;
        job->host = unreached_join(core, target);
        round->count++;
    }
    round->left = round->count;
}
