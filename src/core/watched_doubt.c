/*
 * watched_doubt.c -- --verify-notify always: a host is asked whether it rebooted; see watched.h.
 *
 *              SM_NOTIFY            its time has come, there is room       SM_STAT says that
 *   (nothing) ----------> WAITING ----------------------------> VERIFYING ---------------> upcall
 *                            ^                                      |        state
 *                            |   silent: after 0.1 s, up to 0.5 s   |  another state, or silent
 *                            +--------------------------------------+  for 3 s: reported
 *
 * The sender of a datagram can be forged; an answer from the address that is recorded cannot, by
 * somebody who does not hear what goes there. So SM_STAT is asked there, and nowhere else. It is
 * asked again while nobody answers, because sm-notify often speaks before rpc.statd does; but not
 * for long, because the kernel frees everything of the host at the upcall, also what it locked
 * since it is up.
 *
 * A state is believed when the host says exactly that one. Others may claim what they like
 * meanwhile: the last WATCHED_DOUBTS_MAX states are kept, and if there were more, any that the host
 * says counts as claimed. What a host says to a question that left before the newest claim is not
 * its last word: it is asked again.
 *
 * The void answer to SM_NOTIFY waits for the end of this (withheld.h): its sender repeats what a
 * crash has us forget.
 */
#include "base/check.h"
#include "base/minmax.h"
#include "base/units.h"
#include "core/state.h"

#define AGAIN_FIRST_NS (SECOND_NS / 10)
#define AGAIN_LAST_NS  (SECOND_NS / 2)
#define ASKED_NS       (3 * SECOND_NS)

static bool is_claimed(const struct watched *w, uint32_t state)
{
    bool is_found = false;
    for (uint32_t i = 0; i < w->doubt_count; i++)
        is_found |= w->doubts[i] == state;
    return is_found;
}

void watched_doubt(struct core *core, uint32_t slot, uint32_t state)
{
    struct watched *w = watched_at(core, slot);
    if (state == 0 || notice_state(core, registrant_at(core, slot)->mon_fold) == state)
        return; /* it says nothing, or nothing new */
    if (is_claimed(w, state))
        return;
    if (w->doubt_count == WATCHED_DOUBTS_MAX) {
        MARK("watched_doubt_lost");
        w->is_doubt_lost = true;
        memmove(w->doubts, w->doubts + 1, --w->doubt_count * sizeof w->doubts[0]);
    }
    w->doubts[w->doubt_count++] = state;
    w->doubt_attempts = 0;
    w->doubt_until_ns = 0;
    w->is_doubt_newer = w->is_verifying;
    if (!w->is_verifying)
        timers_set(&core->watching.doubts, slot, core->now_ns);
}

void watched_doubt_name(struct core *core, struct bytes mon_name, uint32_t state)
{
    const struct chains *by_name = &core->registrants.index.by_name;
    uint32_t fold = core_find_fold(core, mon_name);
    uint32_t slot = fold != SLOT_NONE ? chains_first(by_name, fold) : SLOT_NONE;
    for (; slot != SLOT_NONE; slot = chains_next(by_name, slot))
        watched_doubt(core, slot, state);
}

uint32_t watched_find_doubt(const struct core *core, const struct address *from, uint32_t fold,
                            uint32_t state)
{
    const struct watching *watching = &core->watching;
    const struct chains *by_name = &core->registrants.index.by_name;
    uint32_t slot = SLOT_NONE;
    if (watching->at == NULL)
        return SLOT_NONE;
    if (fold != SLOT_NONE)
        slot = chains_first(by_name, fold);
    while (slot != SLOT_NONE && !is_claimed(watched_at(core, slot), state))
        slot = chains_next(by_name, slot);
    uint32_t host =
        intern_find(&watching->addresses, (struct bytes){(const uint8_t *)from, sizeof *from});
    for (uint32_t i = 0; i < RECORD_HOSTS_MAX && host != SLOT_NONE && slot == SLOT_NONE; i++) {
        slot = chains_first(&watching->by_host[i], host);
        while (slot != SLOT_NONE && !is_claimed(watched_at(core, slot), state))
            slot = chains_next(&watching->by_host[i], slot);
    }
    return slot;
}

void watched_registered_again(struct core *core, uint32_t slot)
{
    if (core->watching.at != NULL && watched_at(core, slot)->doubt_count > 0)
        watched_at(core, slot)->is_heard = true;
}

void watched_forget_doubts(struct core *core, uint32_t slot)
{
    struct watched *w = watched_at(core, slot);
    timers_clear(&core->watching.doubts, slot);
    core->watching.verifying -= w->is_verifying;
    w->is_verifying = w->is_heard = w->is_doubt_newer = w->is_doubt_lost = false;
    w->doubt_count = w->doubt_attempts = 0;
    w->doubt_until_ns = 0;
    withheld_decided(core, slot);
}

uint64_t watched_question_deadline_ns(const struct core *core)
{
    const struct watching *watching = &core->watching;
    bool has_room = watching->at != NULL && watching->verifying < WATCHED_VERIFYING_MAX;
    return has_room ? timers_next_ns(&watching->doubts) : UINT64_MAX;
}

static void not_confirmed(struct core *core, uint32_t slot)
{
    struct watched *w = watched_at(core, slot);
    struct address host = watched_address(core, slot);
    event_add(&core->events, EVENT_NOTICE_UNCONFIRMED, host.family != 0 ? &host : NULL,
              intern_bytes(&core->names, registrant_at(core, slot)->mon_name),
              w->doubts[w->doubt_count - 1]);
    watched_forget_doubts(core, slot);
}

/* It could not be asked, or did not answer. */
static void again(struct core *core, uint32_t slot)
{
    struct watched *w = watched_at(core, slot);
    uint64_t pause_ns = min_u64(AGAIN_FIRST_NS << w->doubt_attempts, AGAIN_LAST_NS);
    w->doubt_attempts += pause_ns < AGAIN_LAST_NS;
    if (w->doubt_until_ns != 0 && core->now_ns + pause_ns >= w->doubt_until_ns)
        not_confirmed(core, slot);
    else
        timers_set(&core->watching.doubts, slot, core->now_ns + pause_ns);
}

bool watched_next_question(struct core *core, struct core_call *ret)
{
    while (watched_question_deadline_ns(core) <= core->now_ns) {
        uint32_t slot = timers_take(&core->watching.doubts, core->now_ns);
        struct watched *w = watched_at(core, slot);
        if (w->doubt_until_ns == 0)
            w->doubt_until_ns = core->now_ns + ASKED_NS;
        if (w->host_count == 0) { /* its name does not resolve yet */
            again(core, slot);
            continue;
        }
        uint64_t handle = table_handle(&core->registrants.table, slot);
        *ret = (struct core_call){
            .id = core_call_id(CALL_OF_DOUBT, handle),
            .kind = CALL_STAT,
            .to = watched_address(core, slot),
            .deadline_ns =
                min_u64(core->now_ns + core->limits.notify_timeout_ns, w->doubt_until_ns),
            .mon_name = core->limits.server_name,
        };
        w->is_verifying = true;
        core->watching.verifying++;
        return true;
    }
    return false;
}

/* Its lock manager need not hear of that one. */
static void note_heard(struct core *core, uint32_t slot, uint32_t state)
{
    registrant_at(core, slot)->relayed_state = state;
    dirty_put(&core->dirty, RECORD_REGISTRANT, slot);
}

static void confirm(struct core *core, uint32_t slot, uint32_t state)
{
    struct address host = watched_address(core, slot);
    struct bytes name = intern_bytes(&core->names, registrant_at(core, slot)->mon_name);
    if (watched_at(core, slot)->is_heard)
        note_heard(core, slot, state);
    watched_forget_doubts(core, slot);
    if (notice_hear(core, &host, name, state, NOTICE_TRUE) != NOTICE_NEW)
        return;
    core_host_restarted(core, &host);
    event_add(&core->events, EVENT_NOTICE, &host, name, state);
    callout_notice(core, name, &host, state);
}

void watched_question_done(struct core *core, uint64_t handle, const struct core_input *input)
{
    uint32_t slot = table_find(&core->registrants.table, handle);
    struct watched *w = slot != SLOT_NONE ? watched_at(core, slot) : NULL;
    if (w == NULL || !w->is_verifying)
        return; /* it went, or its doubts did */
    bool is_newer = w->is_doubt_newer;
    w->is_verifying = w->is_doubt_newer = false;
    core->watching.verifying--;
    bool is_answered = input->outcome == CALL_ANSWERED && input->state != 0;
    if (is_answered && (w->is_doubt_lost || is_claimed(w, input->state)))
        confirm(core, slot, input->state);
    else if (is_answered && !is_newer)
        not_confirmed(core, slot);
    else
        again(core, slot);
}
