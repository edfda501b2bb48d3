/*
 * reboot.c -- whom a notice means, what a state number says, and what follows; see reboot.h.
 *
 * Two mistakes are possible, and they are not equal. A restart that is not believed leaves locks of
 * the dead for a while: the client's next LOCK, its next notice or an operator frees them. One that
 * is believed wrongly takes locks from the living, which never learn of it. So whatever is in doubt
 * is asked at the recorded address, and what stays in doubt is not believed (P2, P5).
 *
 * A status monitor speaks for a host, not for a client. What answers at an address may be the box
 * that hides the client, or another host behind it. So an answer counts only of one that is
 * calibrated: it has said the very number that this client itself sent us (client.h). Whatever one
 * says that is not calibrated is as if it had not answered; with one exception, which is
 * calibration itself: exactly the older number that the client's own LOCK has just told. And unless
 * it is the number that the client's own notice or LOCK says, an answer is believed only of the
 * single client of an address: two hosts behind it may have the same number.
 *
 * Names are compared whole. A host that has its domain in one name and not in the other ("web3" and
 * "web3.example.org") tells us both, and one of them is what it calls itself here. A short name, or
 * the full name of a client that is known by the short one, is looked into only where exactly one
 * client of that address can be meant: web3.prod and web3.test may be behind it, with and without
 * records here.
 *
 * Budgets are kept by who sends: strangers use up neither a client's own nor each other's slots.
 */
#include "core/reboot.h"

#include "base/check.h"
#include "base/units.h"
#include "core/state.h"

#define REQUEST_AGAIN_NS (60 * SECOND_NS)
#define DOUBT_NS         (10 * SECOND_NS)

enum { LOOKED_AT_MAX = 1024, ELSEWHERE_MAX = 4, DOUBTS_MAX = 16 };

/* ---- what follows ---- */

static void report(struct core *core, enum event_kind kind, uint32_t slot, uint32_t state)
{
    struct address address = client_address(core, slot);
    struct bytes name = intern_bytes(&core->names, client_at(core, slot)->stored.name);
    event_add(&core->events, kind, &address, name, state);
}

/* It rebooted, as we find out now; of very much, whether anything is older is found out later
 * (client_drain), and a living client's answers are worth more than a guess. */
static void note_restart(struct core *core, uint32_t slot)
{
    struct address address = client_address(core, slot);
    client_at(core, slot)->stored.rebooted_ns = core->wall_ns;
    if (!client_at(core, slot)->life.drain_is_search)
        core_host_restarted(core, &address);
}

/* It is in this state now, a newer one than before: everything it has is stamped older. */
static void renew(struct core *core, uint32_t slot, uint32_t state)
{
    client_saw_state(core, slot, state);
    note_restart(core, slot);
    report(core, EVENT_CLIENT_REBOOTED, slot, state);
    client_start_over(core, slot);
}

/* The same, and its counter has started over. */
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
    client_alive(core, slot);
    if (client_is_newer_state(state, client_at(core, slot)->stored.state_seen)) {
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

/* Every doubtful notice would cost the client a question: hence the limit, one for each kind of
 * sender. */
static bool may_doubt(struct core *core, struct client_doubts *doubts)
{
    if (core->now_ns - doubts->since_ns >= DOUBT_NS)
        *doubts = (struct client_doubts){.since_ns = core->now_ns};
    return doubts->count < DOUBTS_MAX;
}

static enum client_doubt doubt_of(enum probe_reason reason)
{
    return reason == PROBE_ELSEWHERE    ? CLIENT_DOUBT_ELSEWHERE
           : reason == PROBE_OTHER_NAME ? CLIENT_DOUBT_OTHER_NAME
                                        : CLIENT_DOUBT_OWN;
}

static enum reboot_heard ask(struct core *core, uint32_t slot, enum probe_reason reason,
                             struct probe_question question)
{
    struct client_doubts *doubts = &client_at(core, slot)->asked.doubts[doubt_of(reason)];
    if (reason != PROBE_VERIFY && !may_doubt(core, doubts)) {
        MARK("reboot_asked_too_often");
        return REBOOT_UNHEARD;
    }
    question.reason = reason;
    if (reason != PROBE_VERIFY)
        doubts->count++;
    return probe_begin(core, slot, &question) ? REBOOT_ASKING : REBOOT_UNHEARD;
}

static struct bytes client_name(const struct core *core, uint32_t slot)
{
    return intern_bytes(&core->names, client_at(core, slot)->stored.name);
}

static bool is_address(struct bytes name)
{
    struct address address;
    return address_parse(name, &address);
}

/* `longer` is `shorter` with a domain. An address in dots has none. */
static bool adds_domain(struct bytes longer, struct bytes shorter)
{
    if (longer.len <= shorter.len || longer.at[shorter.len] != '.' ||
        memchr(shorter.at, '.', shorter.len) != NULL || is_address(longer))
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
    uint32_t seen = client_at(core, slot)->stored.state_seen, state = notice->notified;
    bool is_older = state != seen && !client_is_newer_state(state, seen);
    if (core->limits.verify_notices) /* or there is no room, and it is not believed unasked */
        return ask(core, slot, PROBE_VERIFY, *notice);
    if (is_older)
        return ask(core, slot, PROBE_OLDER, *notice);
    return accept(core, slot, state);
}

/* The chain of the clients of this address; SLOT_NONE: there are none. */
static uint32_t chain_of(const struct core *core, const struct address *address)
{
    struct bytes bytes = {(const uint8_t *)address, sizeof *address};
    return intern_find(&core->clients.index.addresses, bytes);
}

/* A newer state in a notice that need not be this client's, from its address. */
static enum reboot_heard ask_whether_meant(struct core *core, uint32_t slot,
                                           const struct probe_question *notice)
{
    uint32_t seen = client_at(core, slot)->stored.state_seen;
    if (seen == 0)
        return REBOOT_UNHEARD;
    if (!client_is_newer_state(notice->notified, seen)) {
        MARK("reboot_other_name_not_new");
        return REBOOT_NOT_NEW;
    }
    return ask(core, slot, PROBE_OTHER_NAME, *notice);
}

static bool has_domain(struct bytes name)
{
    return memchr(name.at, '.', name.len) != NULL;
}

/* Clients of that address which can be the host that the notice names. */
struct meant {
    uint32_t slot;   /* of one of them; SLOT_NONE: none was found */
    bool is_several; /* there are more: nobody knows which */
    bool is_cut;     /* there may be more: too many are there to look at all of them */
};

/* `exact` is the one with that very name, if there is one. */
static struct meant find_meant(const struct core *core, const struct probe_question *notice,
                               uint32_t exact)
{
    const struct chains *by_address = &core->clients.index.by_address;
    struct meant meant = {.slot = exact};
    uint32_t chain = chain_of(core, &notice->from), looked_at = 0;
    uint32_t slot = chain == SLOT_NONE ? SLOT_NONE : chains_first(by_address, chain);
    struct bytes named = notice->mon_name;
    struct bytes host = {named.at, named.len};
    const uint8_t *dot = memchr(named.at, '.', named.len);
    if (dot != NULL && !is_address(named))
        host.len = (uint32_t)(dot - named.at);
    for (; slot != SLOT_NONE && !meant.is_several; slot = chains_next(by_address, slot)) {
        if (++looked_at > LOOKED_AT_MAX) {
            meant.is_cut = true;
            break;
        }
        if (slot == exact || !is_same_host(client_name(core, slot), host))
            continue;
        meant.is_several = meant.slot != SLOT_NONE;
        meant.slot = slot;
    }
    return meant;
}

/* (a): the client of that address and name; its short name only where no other can be meant. */
static enum reboot_heard hear_of_names(struct core *core, const struct probe_question *notice)
{
    uint32_t exact = client_find(core, &notice->from, notice->mon_name);
    if (exact != SLOT_NONE && has_domain(notice->mon_name))
        return hear_of_itself(core, exact, notice);
    struct meant meant = find_meant(core, notice, exact);
    /* Who has that very name is meant unless another one is found. */
    if (meant.is_several || (meant.is_cut && exact == SLOT_NONE)) {
        MARK("reboot_ambiguous_name");
        event_add(&core->events, EVENT_NOTICE_AMBIGUOUS, &notice->from, notice->mon_name,
                  notice->notified);
        return REBOOT_AMBIGUOUS;
    }
    if (exact != SLOT_NONE)
        return hear_of_itself(core, exact, notice);
    if (meant.slot == SLOT_NONE || !is_same_host(client_name(core, meant.slot), notice->mon_name))
        return REBOOT_UNHEARD;
    MARK("reboot_by_short_name");
    return ask_whether_meant(core, meant.slot, notice);
}

static bool is_alone(const struct core *core, uint32_t slot)
{
    const struct chains *by_address = &core->clients.index.by_address;
    uint32_t first = chains_first(by_address, client_at(core, slot)->stored.address);
    return chains_next(by_address, first) == SLOT_NONE;
}

/* (b): the only client of that address. */
static enum reboot_heard hear_of_only(struct core *core, const struct probe_question *notice)
{
    uint32_t chain = chain_of(core, &notice->from);
    if (chain == SLOT_NONE)
        return REBOOT_UNHEARD;
    uint32_t slot = chains_first(&core->clients.index.by_address, chain);
    if (!is_alone(core, slot))
        return REBOOT_UNHEARD;
    MARK("reboot_under_another_name");
    return ask_whether_meant(core, slot, notice);
}

/* (c): clients of that name at other addresses. A repeat says nothing new of them. */
static enum reboot_heard hear_of_elsewhere(struct core *core, struct bytes mon_name,
                                           const struct probe_question *notice)
{
    const struct chains *by_name = &core->clients.index.by_name;
    enum reboot_heard heard = REBOOT_UNHEARD;
    uint32_t fold = core_find_fold(core, mon_name), count = 0;
    uint32_t slot = fold == SLOT_NONE ? SLOT_NONE : chains_first(by_name, fold);
    for (; slot != SLOT_NONE && count < ELSEWHERE_MAX; slot = chains_next(by_name, slot)) {
        struct address address = client_address(core, slot);
        uint32_t seen = client_at(core, slot)->stored.state_seen;
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
    if (heard == REBOOT_UNHEARD && client_find(core, from, mon_name) == SLOT_NONE)
        heard = hear_of_only(core, &notice);
    if (heard == REBOOT_AMBIGUOUS)
        return heard;
    /* Once the sender itself is believed, others of its name are asked in passing: that they did
     * not restart is no reason to say anything. */
    if (heard != REBOOT_UNHEARD)
        notice.mon_name = (struct bytes){0};
    return max_heard(heard, hear_of_elsewhere(core, mon_name, &notice));
}

/* ---- answers ---- */

/* Its status monitor says nothing: what is known of it still counts, and so does a notice of its
 * own. */
static bool decide_without(struct core *core, uint32_t slot, const struct probe_question *question)
{
    uint32_t seen = client_at(core, slot)->stored.state_seen, notified = question->notified;
    if (question->reason != PROBE_VERIFY ||
        (notified != seen && !client_is_newer_state(notified, seen)))
        return false;
    (void)accept(core, slot, notified);
    return true;
}

/* One that is not calibrated has answered: that says nothing, except that the number in the
 * client's own LOCK is calibration. True: as decide(). */
static bool decide_uncalibrated(struct core *core, uint32_t slot,
                                const struct probe_question *question, uint32_t state)
{
    if (question->reason == PROBE_REQUEST && state == question->notified) {
        recount(core, slot, state);
        return true;
    }
    MARK("reboot_uncalibrated");
    return decide_without(core, slot, question);
}

/* True: the client is believed to have rebooted, now or before. */
static bool decide(struct core *core, uint32_t slot, const struct probe_question *question,
                   uint32_t state)
{
    uint32_t seen = client_at(core, slot)->stored.state_seen;
    bool is_notified = state == question->notified;
    bool is_of_itself = question->reason >= PROBE_REQUEST;
    if (state == 0)
        return decide_without(core, slot, question);
    if (!client_is_calibrated(client_at(core, slot)))
        return decide_uncalibrated(core, slot, question, state);
    if (!(is_notified && is_of_itself) && !is_alone(core, slot)) {
        MARK("reboot_answer_of_somebody"); /* of whichever host is behind that address */
        return decide_without(core, slot, question);
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
    client_calibrate(core, slot, state);
    if (state != 0 && client_is_calibrated(client_at(core, slot)))
        client_alive(core, slot); /* another one's answer says nothing of this client */
    bool is_believed = decide(core, slot, question, state);
    client_calibrate(core, slot, state); /* it says what is known by now */
    struct bytes name = question->mon_name;
    if (name.len == 0)
        return; /* not about a notice */
    if (!is_believed) {
        MARK("reboot_not_confirmed");
        event_add(&core->events, EVENT_NOTICE_UNCONFIRMED, &question->from, name,
                  question->notified);
        return;
    }
    /* From elsewhere anybody may say any number: what its own status monitor says is relayed, as
     * the word of that host. */
    struct address host = client_address(core, slot);
    enum notice_trust trust =
        question->reason != PROBE_OTHER_NAME ? NOTICE_TRUE : NOTICE_MINOR_CLAIM;
    if (notice_hear(core, &host, name, state != 0 ? state : question->notified, trust) ==
        NOTICE_NEW) {
        core_host_restarted(core, &host);
        event_add(&core->events, EVENT_NOTICE, &question->from, name, question->notified);
    }
}

/* ---- requests ---- */

static void ask_for_request(struct core *core, uint32_t slot, uint32_t state)
{
    struct client *client = client_at(core, slot);
    if (client->asked.probe_next_ns > core->now_ns)
        return;
    MARK("reboot_older_request");
    client->asked.probe_next_ns = core->now_ns + REQUEST_AGAIN_NS;
    struct probe_question question = {.reason = PROBE_REQUEST, .notified = state};
    (void)probe_begin(core, slot, &question);
}

void reboot_of_request(struct core *core, uint32_t slot, uint32_t state)
{
    uint32_t seen = client_at(core, slot)->stored.state_seen;
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
