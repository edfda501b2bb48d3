/*
 * reboot.c -- whom a notice means, what a state number says, and what follows; see reboot.h.
 *
 * Two mistakes are possible, and they are not equal. A restart that is not believed leaves locks of
 * the dead for a while: the client's next LOCK, its next notice or an operator frees them. One that
 * is believed wrongly takes locks from the living, who are not told. So whatever is in doubt is
 * asked at the recorded address, and what stays in doubt is not believed (P2, P5).
 *
 * A status monitor speaks for a host, not for a client. Behind one address there may be several
 * hosts (NAT), and the one that answers need not be the one that is meant: unless it is the very
 * number that the client itself told us, an answer is believed only of the single client of an
 * address.
 *
 * A name without its domain is the same host as with it ("web3" and "web3.example.org"): a status
 * monitor that knows us by two names sends both. Two names with different domains are two hosts.
 *
 * A notice changes one record per client that is meant, and a request may change only so many:
 * hence the bounds. Who is beyond them is found by its next LOCK.
 */
#include "core/reboot.h"

#include "base/check.h"
#include "core/state.h"

#define REQUEST_AGAIN_NS (60 * UINT64_C(1000000000))
#define DOUBT_NS         (10 * UINT64_C(1000000000))

enum { SAME_HOST_MAX = 32, LOOKED_AT_MAX = 1024, ELSEWHERE_MAX = 4, DOUBTS_MAX = 16 };

/* ---- what follows ---- */

static void report(struct core *core, enum event_kind kind, uint32_t slot, uint32_t state)
{
    struct address address = client_address(core, slot);
    struct bytes name = intern_bytes(&core->names, client_at(core, slot)->name);
    event_add(&core->events, kind, &address, name, state);
}

/* It started anew, as we find out now; of very much, only whether anything is older is found out
 * later, and a living client's answers are worth more than a guess. */
static void note_restart(struct core *core, uint32_t slot)
{
    struct address address = client_address(core, slot);
    client_at(core, slot)->rebooted_ns = core->wall_ns;
    if (!client_at(core, slot)->drain_is_search)
        core_host_restarted(core, &address);
}

/* It is in this state now, a newer one than before: everything it has is stamped older. */
static void renew(struct core *core, uint32_t slot, uint32_t state)
{
    client_at(core, slot)->state_seen = state;
    note_restart(core, slot);
    report(core, EVENT_CLIENT_REBOOTED, slot, state);
    client_renew(core, slot);
}

/* The same, and its counter has begun anew. */
static void recount(struct core *core, uint32_t slot, uint32_t state)
{
    MARK("reboot_counter_began_anew");
    note_restart(core, slot);
    report(core, EVENT_CLIENT_REBOOTED, slot, state);
    client_recount(core, slot, state);
}

/* A state that is believed and not older than the one we know. */
static enum reboot_heard accept(struct core *core, uint32_t slot, uint32_t state)
{
    grace_reached(core, slot);
    if (client_is_newer_state(state, client_at(core, slot)->state_seen)) {
        renew(core, slot, state);
        return REBOOT_NEWS;
    }
    if (client_free_older(core, slot))
        note_restart(core, slot);
    else
        MARK("reboot_repeated");
    return REBOOT_REPEATED;
}

/* ---- notices ---- */

static enum reboot_heard max_heard(enum reboot_heard a, enum reboot_heard b)
{
    return a > b ? a : b;
}

/* A notice can be sent by anybody, and each would cost the client a question: hence the limit. */
static bool may_doubt(struct core *core, struct client *client)
{
    if (core->now_ns - client->doubt_since_ns >= DOUBT_NS) {
        client->doubt_since_ns = core->now_ns;
        client->doubt_count = 0;
    }
    return client->doubt_count < DOUBTS_MAX;
}

static enum reboot_heard ask(struct core *core, uint32_t slot, enum probe_reason reason,
                             struct probe_question question)
{
    struct client *client = client_at(core, slot);
    if (reason != PROBE_VERIFY && !may_doubt(core, client)) {
        MARK("reboot_asked_too_often");
        return REBOOT_UNHEARD;
    }
    question.reason = reason;
    client->doubt_count++;
    return probe_begin(core, slot, &question) ? REBOOT_ASKING : REBOOT_UNHEARD;
}

/* `longer` is `shorter` with a domain. An address in dots has none. */
static bool adds_domain(struct bytes longer, struct bytes shorter)
{
    struct address address;
    if (longer.len <= shorter.len || longer.at[shorter.len] != '.' ||
        memchr(shorter.at, '.', shorter.len) != NULL || address_parse(longer, &address))
        return false;
    return bytes_equal_fold((struct bytes){longer.at, shorter.len}, shorter);
}

static bool is_same_host(struct bytes a, struct bytes b)
{
    return bytes_equal_fold(a, b) || adds_domain(a, b) || adds_domain(b, a);
}

/* (a): its own word. */
static enum reboot_heard hear_of_itself(struct core *core, uint32_t slot,
                                        const struct probe_question *notice)
{
    uint32_t seen = client_at(core, slot)->state_seen, state = notice->notified;
    bool is_older = state != seen && !client_is_newer_state(state, seen);
    if (core->limits.verify_notices && ask(core, slot, PROBE_VERIFY, *notice) == REBOOT_ASKING)
        return REBOOT_ASKING;
    if (is_older)
        return ask(core, slot, PROBE_OLDER, *notice);
    return accept(core, slot, state);
}

/* The chain of the clients of this address; SLOT_NONE: there are none. */
static uint32_t chain_of(const struct core *core, const struct address *address)
{
    struct bytes bytes = {(const uint8_t *)address, sizeof *address};
    return intern_find(&core->clients.addresses, bytes);
}

/* (a): the clients of that address and host name. */
static enum reboot_heard hear_of_names(struct core *core, const struct probe_question *notice)
{
    const struct chains *by_address = &core->clients.by_address;
    enum reboot_heard heard = REBOOT_UNHEARD;
    uint32_t exact = client_find(core, &notice->from, notice->mon_name), count = 0, looked_at = 0;
    uint32_t chain = chain_of(core, &notice->from);
    if (exact != SLOT_NONE)
        heard = hear_of_itself(core, exact, notice);
    uint32_t slot = chain == SLOT_NONE ? SLOT_NONE : chains_first(by_address, chain);
    for (; slot != SLOT_NONE && count < SAME_HOST_MAX && looked_at < LOOKED_AT_MAX;
         slot = chains_next(by_address, slot), looked_at++) {
        struct bytes name = intern_bytes(&core->names, client_at(core, slot)->name);
        if (slot == exact || !is_same_host(name, notice->mon_name))
            continue;
        MARK("reboot_by_short_name");
        heard = max_heard(heard, hear_of_itself(core, slot, notice));
        count++;
    }
    return heard;
}

static bool is_alone(const struct core *core, uint32_t slot)
{
    const struct chains *by_address = &core->clients.by_address;
    uint32_t first = chains_first(by_address, client_at(core, slot)->address);
    return chains_next(by_address, first) == SLOT_NONE;
}

/* (b): the only client of that address. */
static enum reboot_heard hear_of_only(struct core *core, const struct probe_question *notice)
{
    uint32_t chain = chain_of(core, &notice->from);
    if (chain == SLOT_NONE)
        return REBOOT_UNHEARD;
    uint32_t slot = chains_first(&core->clients.by_address, chain);
    uint32_t seen = client_at(core, slot)->state_seen;
    if (!is_alone(core, slot) || seen == 0 || !client_is_newer_state(notice->notified, seen))
        return REBOOT_UNHEARD;
    MARK("reboot_under_another_name");
    return ask(core, slot, PROBE_OTHER_NAME, *notice);
}

/* (c): clients of that name at other addresses. A repeat says nothing new of them. */
static enum reboot_heard hear_of_elsewhere(struct core *core, struct bytes mon_name,
                                           const struct probe_question *notice)
{
    const struct chains *by_name = &core->clients.by_name;
    enum reboot_heard heard = REBOOT_UNHEARD;
    uint32_t fold = core_find_fold(core, mon_name), count = 0;
    uint32_t slot = fold == SLOT_NONE ? SLOT_NONE : chains_first(by_name, fold);
    for (; slot != SLOT_NONE && count < ELSEWHERE_MAX; slot = chains_next(by_name, slot)) {
        struct address address = client_address(core, slot);
        uint32_t seen = client_at(core, slot)->state_seen;
        if (address_equal(&address, &notice->from) || seen == 0 ||
            !client_is_newer_state(notice->notified, seen))
            continue;
        MARK("reboot_from_elsewhere");
        heard = max_heard(heard, ask(core, slot, PROBE_ELSEWHERE, *notice));
        count++;
    }
    return heard;
}

enum reboot_heard reboot_hear(struct core *core, const struct address *from, struct bytes mon_name,
                              uint32_t state)
{
    if (state == 0)
        return REBOOT_UNHEARD;
    struct probe_question notice = {.notified = state, .from = *from, .mon_name = mon_name};
    enum reboot_heard heard = hear_of_names(core, &notice);
    if (heard == REBOOT_UNHEARD)
        heard = hear_of_only(core, &notice);
    /* Once the sender itself is believed, others of its name are asked in passing: that they did
     * not restart is no reason to say anything. */
    if (heard != REBOOT_UNHEARD)
        notice.mon_name = (struct bytes){0};
    return max_heard(heard, hear_of_elsewhere(core, mon_name, &notice));
}

/* ---- answers ---- */

/* Its status monitor says nothing: what is known of it stands, and a notice of its own counts. */
static bool decide_without(struct core *core, uint32_t slot, const struct probe_question *question)
{
    uint32_t seen = client_at(core, slot)->state_seen, notified = question->notified;
    if (question->reason != PROBE_VERIFY ||
        (notified != seen && !client_is_newer_state(notified, seen)))
        return false;
    (void)accept(core, slot, notified);
    return true;
}

/* True: the client is believed to have started anew, now or before. */
static bool decide(struct core *core, uint32_t slot, const struct probe_question *question,
                   uint32_t state)
{
    uint32_t seen = client_at(core, slot)->state_seen;
    bool is_notified = state == question->notified;
    bool is_of_itself = question->reason >= PROBE_REQUEST;
    if (state == 0)
        return decide_without(core, slot, question);
    if (!(is_notified && is_of_itself) && !is_alone(core, slot)) {
        MARK("reboot_answer_of_somebody"); /* of whichever host is behind that address */
        return decide_without(core, slot, question);
    }
    if (seen == 0 && question->reason != PROBE_VERIFY) {
        client_saw_state(core, slot, state);
        return false;
    }
    if (state == seen)
        return is_notified && accept(core, slot, state) != REBOOT_UNHEARD;
    if (client_is_newer_state(state, seen)) {
        if (question->reason == PROBE_OTHER_NAME && !is_notified)
            return false;
        renew(core, slot, state);
        return true;
    }
    if (!is_notified || !is_of_itself)
        return false;
    recount(core, slot, state);
    return true;
}

void reboot_probed(struct core *core, uint32_t slot, const struct probe_question *question,
                   uint32_t state)
{
    if (state != 0)
        grace_reached(core, slot);
    bool is_believed = decide(core, slot, question, state);
    struct bytes name = question->mon_name;
    if (name.len == 0)
        return; /* not about a notice */
    if (!is_believed) {
        MARK("reboot_not_confirmed");
        event_add(&core->events, EVENT_NOTICE_UNCONFIRMED, &question->from, name,
                  question->notified);
    } else if (notice_hear(core, &question->from, name, question->notified, true) == NOTICE_NEW) {
        core_host_restarted(core, &question->from);
        event_add(&core->events, EVENT_NOTICE, &question->from, name, question->notified);
    }
}

/* ---- requests ---- */

static void ask_for_request(struct core *core, uint32_t slot, uint32_t state)
{
    struct client *client = client_at(core, slot);
    if (client->probe_next_ns > core->now_ns)
        return;
    MARK("reboot_older_request");
    client->probe_next_ns = core->now_ns + REQUEST_AGAIN_NS;
    struct probe_question question = {.reason = PROBE_REQUEST, .notified = state};
    (void)probe_begin(core, slot, &question);
}

void reboot_of_request(struct core *core, uint32_t slot, uint32_t state)
{
    uint32_t seen = client_at(core, slot)->state_seen;
    if (core->limits.distrust_state)
        return;
    /* Its first state says nothing about what it took before: it was not asked for one then. */
    if (seen != 0 && client_is_newer_state(state, seen)) {
        MARK("reboot_by_request");
        renew(core, slot, state);
    } else if (seen != 0 && state != 0 && state != seen) {
        ask_for_request(core, slot, state);
    }
}

void reboot_of_reclaim(struct core *core, uint32_t slot, uint32_t state)
{
    client_saw_state(core, slot, state);
}
