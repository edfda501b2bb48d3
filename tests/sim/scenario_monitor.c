/*
 * scenario_monitor.c -- a machine with a lock manager in its kernel, and our monitor beside it; see
 * scenario.h.
 *
 * Seeded worlds of their own, on the core alone: what differs from a lock server is who has the
 * locks. Here the kernel has them. They die with the boot of the machine and not with us; our
 * process dies with the boot, and at any other moment, with a batch under way or not. Hosts lock,
 * give back, reboot, and announce it, once or twice, under any name; the network loses calls and
 * answers; strangers announce what they like; a resolver is slow, or knows nothing yet. The machine
 * may mount from itself. A host may be deaf to calls from an address of ours that it does not use,
 * and a host with a name may come back from its reboot with another address, which we do not know.
 * The lock manager may start anew without the machine, which is nobody's reboot, or, with
 * --on-lockd-restart notify, everybody's; so is SM_SIMU_CRASH. In some worlds hosts are asked
 * whether they rebooted (--verify-notify always): who is silent then has said nothing.
 *
 * What must be true, whatever happens:
 *
 *   an upcall has a priv that the kernel knows, and its host did reboot: nothing that a host relies
 *     on is freed ................................................................. LIVE
 *   in one boot every answer and every SM_NOTIFY has one state number, unless somebody simulated a
 *     crash, or the lock manager's was noticed; it grows from boot to boot ........ STATE
 *   in the first boot nobody is told of a reboot, nor ourselves in any .......... VAIN
 *   nor before the lock manager is up, or --notify-after is over ............... EARLY
 *   in the end, when everything is up and nothing is lost, every host that relied on a lock which a
 *     reboot took was told, under the name and from the address that it knows us by ... P3
 *   and every host whose announcement we answered, at once or later, has nothing left in the
 *     kernel, though it said so only once, and whatever crashed meanwhile ............. D7
 */
#include "base/hash.h"
#include "base/prng.h"
#include "scenario.h"

#include <stdio.h>
#include <stdlib.h>

enum { HOSTS = 6, SLOTS = 32, STEPS = 400, WORLDS = 500, CALLS = 64, BOOTS = 64, LEAVING = 64 };

#define SECOND UINT64_C(1000000000)

/* A host that mounts from the machine. */
struct mounter {
    char name[16];          /* what the kernel calls it: mon_name */
    struct address address; /* where it is, and its SM_NOTIFY comes from */
    struct address before;  /* where it was in its last boot */
    bool is_name;           /* mon_name is for the resolver */
    uint32_t state;         /* of its own status monitor */
    uint32_t boot;          /* of the machine, in which it took what it relies on; 0: nothing */
    uint32_t must_hear;     /* a boot that took its locks, and that it was not told of; 0: none */
    bool by_short_name, by_second_address; /* how it knows us */
    bool is_deaf;                          /* to calls from our other address */
    bool is_us;                            /* the machine itself */
    uint32_t announced;                    /* its state that we have answered; 0: none */
    uint64_t silent_ns;                    /* when it was last asked, and did not answer */
    bool is_robbed;                        /* its lock went with the lock manager */
    /* In the kernel of the machine: */
    uint8_t priv;     /* 0: not registered */
    bool is_held;     /* it has a lock there, */
    uint32_t held_by; /* taken in this state of the host */
    uint32_t known;   /* the state of the host that it is clean of: at SM_MON, or by an upcall */
    uint32_t heard;   /* the state of the last upcall; 0: none yet */
};

/* An announcement whose answer waits. */
struct said {
    uint32_t host, state; /* host: from 1; 0: nobody cares */
    uint64_t said_ns;
    uint64_t after_txn; /* it may leave when this is durable */
};

struct outgoing {
    bool is_used;
    struct core_call call;
    uint8_t priv[RECORD_PRIV_LEN];
    char names[CORE_CALL_NAMES_MAX][32], mon_name[32];
};

static struct monitor_world {
    uint32_t seed;
    bool is_verbose;
    struct prng prng;
    struct core_limits limits;
    struct core *core; /* NULL: our process is not there */
    uint64_t now_ns, started_ns;
    uint32_t boot, states[BOOTS];
    uint8_t next_priv;
    uint32_t priv_boots[256]; /* the boot that each was made in */
    uint32_t raised; /* the state, by a simulated crash that is not on the disk yet; 0: no */
    bool has_raised; /* it was, in this boot, or because the lock manager lost its locks */
    struct said said[CORE_LATE_MAX]; /* by ticket */
    struct said leaving[LEAVING];
    uint32_t leaving_count;
    bool has_upcalls; /* the kernel's lock manager is up: it takes calls */
    struct mounter hosts[HOSTS];
    struct outgoing calls[CALLS];
    struct {
        uint32_t len;
        uint8_t bytes[RECORD_VALUE_MAX];
    } disk[RECORD_KIND_END][SLOTS];
} w;

static void fail(const char *rule, const char *what, const char *whom)
{
    printf("sim: scenario monitored-machines broke %s: seed %u, boot %u, %llu s: %s (%s)\n", rule,
           w.seed, w.boot, (unsigned long long)(w.now_ns / SECOND), what, whom);
    exit(1);
}

static uint32_t roll(uint32_t below)
{
    return (uint32_t)prng_below(&w.prng, below);
}

static void say(const char *what, const char *whom)
{
    if (w.is_verbose)
        printf("%10llu ms  boot %u  %s %s\n", (unsigned long long)(w.now_ns / 1000000), w.boot,
               what, whom);
}

static struct bytes text_of(const char *text)
{
    return (struct bytes){(const uint8_t *)text, (uint32_t)strlen(text)};
}

static struct address address_of(uint8_t last)
{
    const uint8_t bytes[4] = {10, 0, 0, last};
    return address_v4(bytes);
}

static const uint8_t loopback_bytes[4] = {127, 0, 0, 1}, second_bytes[4] = {192, 168, 0, 1};

/* ---- our process ---- */

static void check_state(uint32_t state)
{
    if (w.states[w.boot] == 0) {
        for (uint32_t boot = 0; boot < w.boot; boot++)
            if (w.states[boot] >= state)
                fail("STATE", "does not grow", "us");
        w.states[w.boot] = state;
    }
    if (w.states[w.boot] != state)
        fail("STATE", "another one in the same boot", "us");
}

static void step(struct core_input *input, struct core_answer *ret)
{
    input->now_ns = w.now_ns;
    input->wall_ns = w.now_ns;
    core_step(w.core, input, ret);
    core_check(w.core);
}

/* Answers whose time has come leave, if what they say is durable; some get lost. */
static void answer_late(bool is_good)
{
    struct core_late late;
    while (w.leaving_count < LEAVING && core_next_answer(w.core, &late)) {
        struct said said = w.said[late.ticket];
        said.after_txn = late.after_txn;
        if (!late.is_unknown && said.host != 0)
            w.leaving[w.leaving_count++] = said;
    }
    uint32_t kept = 0;
    for (uint32_t i = 0; i < w.leaving_count; i++) {
        struct said said = w.leaving[i];
        struct mounter *host = &w.hosts[said.host - 1];
        bool was_silent = host->silent_ns >= said.said_ns;
        if (said.after_txn > core_durable_txn(w.core))
            w.leaving[kept++] = said;
        else if (host->state == said.state && !was_silent && (is_good || roll(4) > 0))
            host->announced = said.state;
    }
    w.leaving_count = kept;
}

/* The open batch reaches the disk; true: and we hear of it. A crash between the two is below. */
static void store(bool is_heard)
{
    struct store_batch batch;
    if (!core_take_batch(w.core, &batch))
        return;
    struct record_change change;
    for (uint64_t at = 0; store_batch_next(&batch, &at, &change);) {
        if (change.slot >= SLOTS)
            fail("DISK", "more records than hosts", "us");
        w.disk[change.kind][change.slot].len = change.deleted ? 0 : change.value.len;
        if (!change.deleted)
            memcpy(w.disk[change.kind][change.slot].bytes, change.value.at, change.value.len);
    }
    if (w.raised != 0) {
        w.states[w.boot] = w.raised;
        w.raised = 0;
    }
    struct core_input input = {.kind = CORE_STORED, .txn = batch.txn, .has_room = true};
    if (is_heard)
        step(&input, NULL);
}

static void die(void)
{
    if (w.core == NULL)
        return;
    if (roll(2) == 0)
        store(false); /* in the middle of a commit */
    core_free(w.core);
    w.core = NULL;
    w.raised = 0;
    w.leaving_count = 0;
    memset(w.calls, 0, sizeof w.calls);
    say("our process ends", "");
}

static void live(void)
{
    if (w.core != NULL)
        return;
    for (uint32_t kind = 1; kind < RECORD_KIND_END; kind++) {
        w.limits.slots_used[kind] = 0;
        for (uint32_t slot = 0; slot < SLOTS; slot++)
            if (w.disk[kind][slot].len > 0)
                w.limits.slots_used[kind] = slot + 1;
    }
    w.core = core_new(&w.limits, w.seed);
    for (uint32_t kind = 1; kind < RECORD_KIND_END; kind++)
        for (uint32_t slot = 0; slot < SLOTS; slot++) {
            struct bytes value = {w.disk[kind][slot].bytes, w.disk[kind][slot].len};
            if (value.len > 0 &&
                core_load(w.core, (enum record_kind)kind, slot, value) != RECORD_GOOD)
                fail("DISK", "a record is refused", "us");
        }
    struct core_boot boot = {
        .now_ns = w.now_ns, .wall_ns = w.now_ns, .boot = {(uint8_t)w.boot}, .netns = 1};
    core_start(w.core, &boot);
    say("our process starts", "");
    store(true);
    struct address locals[] = {address_v4(loopback_bytes), address_of(1), address_v4(second_bytes)};
    core_set_locals(w.core, locals, 3);
    struct core_input input = {.kind = CORE_READY};
    step(&input, NULL);
    w.started_ns = w.now_ns;
    struct core_input served = {.kind = CORE_SERVED};
    if (w.has_upcalls)
        step(&served, NULL);
    struct core_status status;
    core_status(w.core, &status);
    check_state(status.state);
}

/* ---- the kernel ---- */

/* The lock manager registers a host that it did not give up: it has lost its locks, or an answer of
 * ours got lost, and everybody is told. */
static void note_raise(void)
{
    struct core_status status;
    core_status(w.core, &status);
    if (status.state == (w.raised != 0 ? w.raised : w.states[w.boot]))
        return;
    w.raised = status.state;
    w.has_raised = true;
    for (uint32_t i = 0; i < HOSTS; i++) {
        if (w.hosts[i].is_robbed)
            w.hosts[i].must_hear = w.boot;
        w.hosts[i].is_robbed = false;
    }
    say("the lock manager is found to have lost its locks", "");
}

static struct core_answer ask(enum request_kind kind, const struct mounter *host, uint8_t priv)
{
    uint8_t bytes[RECORD_PRIV_LEN];
    memset(bytes, priv, sizeof bytes);
    struct request request = {.kind = kind,
                              .mon_name = text_of(host->name),
                              .my_name = text_of("us.example"),
                              .my_prog = 100021,
                              .my_vers = 3,
                              .my_proc = 16,
                              .priv = {bytes, sizeof bytes}};
    struct peer from = {
        .address = address_v4(loopback_bytes), .port = 900, .transport = TRANSPORT_TCP};
    struct core_input input = {.kind = CORE_REQUEST, .from = &from, .request = &request};
    struct core_answer answer;
    step(&input, &answer);
    if (w.limits.lockd_restart_notifies)
        note_raise();
    return answer;
}

/* The host locks; the kernel has it watched first, and refuses where it cannot. A host that
 * rebooted announces that, and locks when it has arrived: what it locks before would be freed with
 * the rest, as with any status monitor. */
static void lock(struct mounter *host)
{
    bool is_announced = host->state == 1 || host->announced == host->state;
    bool is_clean = is_announced && (host->priv == 0 || host->known == host->state);
    if (w.core == NULL || !w.has_upcalls || !is_clean)
        return;
    if (host->priv == 0) {
        uint8_t priv = ++w.next_priv == 0 ? ++w.next_priv : w.next_priv;
        struct core_answer answer = ask(REQUEST_NSM_MON, host, priv);
        w.priv_boots[priv] = w.boot;
        if (answer.response.refused || roll(8) == 0) {
            if (roll(2) == 0)
                store(true);
            return; /* the answer is lost: the kernel knows nothing of it */
        }
        store(true);
        check_state(answer.response.state);
        host->priv = priv;
        host->known = host->state;
        host->heard = 0;
    }
    host->is_held = true;
    host->held_by = host->state;
    host->boot = w.boot;
    say("locks:", host->name);
}

static void unlock(struct mounter *host)
{
    if (host->held_by != host->state)
        return; /* it knows nothing of what it had before its reboot */
    host->is_held = false;
    host->boot = 0;
}

static void unmonitor(struct mounter *host)
{
    if (w.core == NULL || host->priv == 0 || host->is_held)
        return;
    (void)ask(REQUEST_NSM_UNMON, host, 0);
    if (roll(4) > 0)
        store(true);
    host->priv = 0;
    say("no longer watched:", host->name);
}

/* The kernel is told that this host rebooted: it frees what the priv stands for. */
static void take_upcall(const struct outgoing *call)
{
    struct mounter *host = NULL;
    for (uint32_t i = 0; i < HOSTS; i++)
        if (w.hosts[i].priv != 0 && w.hosts[i].priv == call->priv[0])
            host = &w.hosts[i];
    if (w.priv_boots[call->priv[0]] != w.boot)
        fail("LIVE", "an upcall with a priv that is not of this boot", call->mon_name);
    if (host == NULL)
        return; /* it was unregistered, or the answer to its SM_MON was lost: nothing happens */
    if (host->heard == call->call.status[0].state)
        return; /* once per state */
    if (strcmp(host->name, call->mon_name) != 0)
        fail("LIVE", "an upcall under another name", call->mon_name);
    if (host->is_held && host->held_by == host->state && host->boot == w.boot)
        fail("LIVE", "is freed by an upcall", host->name);
    host->is_held = false;
    host->known = host->heard = call->call.status[0].state;
    say("is freed:", host->name);
}

/* ---- the machine ---- */

/* The lock manager alone: what it had is gone, and it knows no priv any more. */
static void restart_lockd(void)
{
    for (uint32_t i = 0; i < HOSTS; i++) {
        struct mounter *host = &w.hosts[i];
        host->is_robbed =
            host->boot != 0 && host->is_held && host->held_by == host->state && !host->is_us;
        host->priv = 0;
        host->is_held = false;
        host->boot = 0;
    }
    say("the lock manager starts anew", "");
}

/* Whoever is watched is told as if the machine had rebooted. */
static void simulate_crash(void)
{
    if (w.core == NULL)
        return;
    struct request request = {.kind = REQUEST_NSM_SIMU_CRASH};
    struct peer from = {
        .address = address_v4(loopback_bytes), .port = 900, .transport = TRANSPORT_UDP};
    struct core_input input = {.kind = CORE_REQUEST, .from = &from, .request = &request};
    struct core_answer answer;
    struct core_status status;
    step(&input, &answer);
    core_status(w.core, &status);
    w.raised = status.state;
    w.has_raised = true;
    say("a crash is simulated", "");
}

static void reboot_machine(void)
{
    die();
    if (w.boot + 1 == BOOTS)
        return;
    w.boot++;
    w.has_upcalls = w.has_raised = false;
    for (uint32_t i = 0; i < HOSTS; i++) {
        struct mounter *host = &w.hosts[i];
        if (host->boot != 0 && host->is_held && host->held_by == host->state && !host->is_us)
            host->must_hear = w.boot;
        host->is_robbed = false;
        host->priv = 0;
        host->is_held = false;
        host->boot = 0;
    }
    say("the machine reboots", "");
}

/* ---- hosts ---- */

static bool announce(struct mounter *host, const struct address *from, const char *name,
                     uint32_t state)
{
    if (w.core == NULL)
        return false;
    struct request request = {
        .kind = REQUEST_NSM_NOTIFY, .mon_name = text_of(name), .state = state};
    struct peer peer = {.address = *from, .port = 900, .transport = TRANSPORT_UDP};
    struct core_input input = {.kind = CORE_REQUEST, .from = &peer, .request = &request};
    struct core_answer answer;
    say("announces a reboot:", host->name);
    step(&input, &answer);
    if (answer.response.when == ANSWER_LATER)
        w.said[answer.response.ticket] =
            (struct said){.host = state == host->state ? (uint32_t)(host - w.hosts) + 1 : 0,
                          .state = state,
                          .said_ns = w.now_ns};
    if (answer.response.when != ANSWER_NOW || roll(4) == 0)
        return false; /* not yet, or the answer is lost: it is said again */
    store(true);
    return true;
}

static void reboot_host(struct mounter *host)
{
    if (host->is_us)
        return; /* with the machine */
    host->state += 2;
    host->boot = 0;
    host->must_hear = 0;
    host->is_robbed = false;
    if (host->is_name && roll(2) == 0) {
        struct address other = host->before;
        host->before = host->address;
        host->address = other;
    }
    say("reboots:", host->name);
}

static void announce_itself(struct mounter *host)
{
    bool is_known = !host->is_name || host->before.family != 0 || roll(2) == 0;
    struct core_status status = {.unresolved = 1};
    if (w.core != NULL)
        core_status(w.core, &status);
    if (status.unresolved > 0 || host->state == 1)
        return; /* nobody can tell that it is its host; that is reported */
    if (announce(host, &host->address, is_known ? host->name : "itself", host->state))
        host->announced = host->state;
}

/* Somebody else says so, once or more often than there is room for, perhaps in the host's name. */
static void pretend(struct mounter *host)
{
    bool is_forged = w.limits.verify_notices && roll(2) == 0;
    struct address from = is_forged ? host->address : address_of(roll(2) == 0 ? 99 : 1);
    for (uint32_t left = roll(8) == 0 ? 20 : 1; left > 0; left--)
        (void)announce(host, &from, host->name, host->state + 2 * (left + roll(3)));
}

static void hear_notify(const struct outgoing *call)
{
    struct mounter *host = NULL;
    for (uint32_t i = 0; i < HOSTS; i++)
        if (address_equal(&w.hosts[i].address, &call->call.to))
            host = &w.hosts[i];
    if (host == NULL)
        fail("VAIN", "nobody was ever there", "a host");
    if (host->is_us)
        fail("VAIN", "we are told ourselves", host->name);
    if (!w.has_raised || call->call.our_state > w.states[w.boot])
        check_state(call->call.our_state);
    if (!w.has_upcalls && w.now_ns < w.started_ns + w.limits.notify_after_ns)
        fail("EARLY", "the lock manager is not up yet", host->name);
    if (host->boot == w.boot && host->is_held && host->must_hear == 0 && w.boot == 1 &&
        !w.has_raised)
        fail("VAIN", "though the machine did not reboot", host->name);
    const char *mine = host->by_short_name ? "us" : "us.example";
    struct address near = address_of(1), far = address_v4(second_bytes);
    bool is_mine = address_equal(&call->call.local, host->by_second_address ? &far : &near);
    bool is_named = false;
    for (uint32_t i = 0; i < call->call.our_name_count; i++)
        is_named |= strcmp(call->names[i], mine) == 0;
    if (is_mine && is_named && call->call.our_state == w.states[w.boot])
        host->must_hear = 0;
    say("is told:", host->name);
}

/* ---- calls ---- */

static void keep_text(char ret[static 32], struct bytes text)
{
    uint32_t len = text.len < 31 ? text.len : 31;
    memcpy(ret, text.at, len);
    ret[len] = '\0';
}

static void begin_calls(void)
{
    struct core_call call;
    for (uint32_t i = 0; i < CALLS && w.core != NULL; i++) {
        struct outgoing *at = &w.calls[i];
        if (at->is_used)
            continue;
        if (!core_next_call(w.core, w.now_ns, &call))
            return;
        *at = (struct outgoing){.is_used = true, .call = call};
        if (call.kind == CALL_STATUS) {
            memcpy(at->priv, call.priv.at, RECORD_PRIV_LEN);
            keep_text(at->mon_name, call.status[0].mon_name);
        }
        for (uint32_t j = 0; call.kind == CALL_NOTIFY && j < call.our_name_count; j++)
            keep_text(at->names[j], call.our_names[j]);
    }
}

/* SM_NOTIFY from an address of ours that its host does not let through. */
static bool is_unheard(const struct core_call *call)
{
    struct address near = address_of(1), far = address_v4(second_bytes);
    bool is_deaf = false;
    for (const struct mounter *host = w.hosts; host < w.hosts + HOSTS; host++) {
        is_deaf |= host->is_deaf && address_equal(&host->address, &call->to) &&
                   address_equal(&call->local, host->by_second_address ? &near : &far);
        is_deaf |= address_equal(&host->before, &call->to); /* it has moved */
    }
    return is_deaf && call->kind == CALL_NOTIFY;
}

/* SM_STAT: where it is now, a host says the state that it is in. */
static void end_question(struct outgoing *at, bool is_good)
{
    struct core_input input = {
        .kind = CORE_CALL_DONE, .call = at->call.id, .outcome = CALL_UNKNOWN};
    for (uint32_t i = 0; i < HOSTS; i++) {
        struct mounter *host = &w.hosts[i];
        bool is_there = address_equal(&host->address, &at->call.to);
        if (is_there && (is_good || roll(4) > 0)) {
            input.outcome = CALL_ANSWERED;
            input.state = host->state;
        }
        if (input.outcome == CALL_UNKNOWN &&
            (is_there || address_equal(&host->before, &at->call.to)))
            host->silent_ns = w.now_ns;
    }
    at->is_used = false;
    step(&input, NULL);
}

static void end_call(struct outgoing *at, bool is_good)
{
    if (at->call.kind == CALL_STAT) {
        end_question(at, is_good);
        return;
    }
    bool is_upcall = at->call.kind == CALL_STATUS;
    bool is_there = (!is_upcall || w.has_upcalls) && (is_good || roll(4) > 0);
    is_there &= !is_unheard(&at->call);
    bool is_answered = is_there && (is_good || roll(4) > 0);
    uint32_t heard = 8;
    if (is_there && is_upcall)
        take_upcall(at);
    if (is_there && !is_upcall) {
        /* one name after another: the connection may end between them */
        if (!is_good && roll(3) == 0) {
            heard = at->call.our_name_count > 1 ? 1 : 0;
            at->call.our_name_count = heard;
            is_answered = false;
        }
        hear_notify(at);
    }
    at->is_used = false;
    struct core_input input = {.kind = CORE_CALL_DONE,
                               .call = at->call.id,
                               .outcome = is_answered ? CALL_ANSWERED : CALL_UNKNOWN,
                               .answered_count = is_answered || is_there ? heard : 0};
    step(&input, NULL);
}

static void end_some_calls(bool is_good)
{
    for (uint32_t i = 0; i < CALLS && w.core != NULL; i++)
        if (w.calls[i].is_used && (is_good || roll(3) == 0))
            end_call(&w.calls[i], is_good);
}

static void resolve(bool is_good)
{
    struct core_lookup lookup;
    while (w.core != NULL && core_next_lookup(w.core, w.now_ns, &lookup)) {
        struct address found = {0};
        for (uint32_t i = 0; i < HOSTS; i++)
            if (bytes_equal(lookup.name, text_of(w.hosts[i].name)))
                found = w.hosts[i].address;
        bool is_known = found.family != 0 && (is_good || roll(3) > 0);
        struct core_input input = {.kind = CORE_RESOLVED,
                                   .lookup = lookup.id,
                                   .addresses = &found,
                                   .address_count = is_known ? 1 : 0};
        step(&input, NULL);
    }
}

static void pass(uint64_t ns, bool is_good)
{
    w.now_ns += ns;
    if (w.core == NULL)
        return;
    core_work(w.core, w.now_ns, w.now_ns);
    resolve(is_good);
    if (is_good || roll(3) > 0)
        store(true);
    begin_calls();
    end_some_calls(is_good);
    answer_late(is_good);
    core_check(w.core);
}

static void serve(void)
{
    w.has_upcalls = true;
    struct core_input input = {.kind = CORE_SERVED};
    if (w.core != NULL)
        step(&input, NULL);
}

/* ---- a world ---- */

static void anything(void)
{
    struct mounter *host = &w.hosts[roll(HOSTS)];
    switch (roll(21)) {
    case 0:
        die();
        return;
    case 1:
        if (roll(4) == 0)
            reboot_machine();
        return;
    case 2:
    case 3:
        live();
        return;
    case 4:
        serve();
        return;
    case 5:
    case 6:
    case 7:
    case 8:
        lock(host);
        return;
    case 9:
        unlock(host);
        return;
    case 10:
        if (roll(2) == 0) { /* a short visit, perhaps before it is told what it is owed */
            lock(host);
            unlock(host);
        }
        unmonitor(host);
        return;
    case 11:
        reboot_host(host);
        if (roll(3) > 0)
            announce_itself(host);
        return;
    case 12:
        if (host->announced != host->state) /* what is answered is not said again */
            announce_itself(host);
        return;
    case 13:
        pretend(host);
        return;
    case 14:
        if (roll(4) == 0) {
            bool is_first = roll(2) == 0; /* a host that the new one has watched before others */
            if (is_first) {
                unlock(host);
                unmonitor(host);
            }
            restart_lockd();
            if (is_first)
                lock(host);
        } else if (roll(6) == 0)
            simulate_crash();
        return;
    default:
        pass(SECOND * roll(8), false);
        return;
    }
}

static void announce_at_last(struct mounter *host)
{
    for (uint32_t i = 0; host->announced != host->state && host->state > 1; i++) {
        if (i == 100)
            fail("D7", "its announcement is not answered", host->name);
        announce_itself(host);
        pass(SECOND, true);
    }
}

static void settle(void)
{
    live();
    serve();
    for (uint32_t i = 0; i < 600; i++)
        pass(2 * SECOND, true); /* who is deaf is given up by then */
    for (uint32_t i = 0; i < HOSTS; i++)
        announce_at_last(&w.hosts[i]);
    for (uint32_t i = 0; i < 600; i++)
        pass(SECOND, true);
    for (const struct mounter *host = w.hosts; host < w.hosts + HOSTS; host++) {
        if (host->must_hear != 0)
            fail("P3", "it lost its lock by a reboot", host->name);
        if (host->is_held && host->held_by != host->state && host->priv != 0)
            fail("D7", "it rebooted, and said so", host->name);
    }
}

static void begin(uint32_t seed, bool is_verbose)
{
    memset(&w, 0, sizeof w);
    w.seed = seed;
    w.is_verbose = is_verbose;
    w.prng.state = hash_mix(UINT64_C(0x9e3779b97f4a7c15), seed); /* no part of another one's row */
    w.boot = 1;
    static const struct file_set share = {{(const uint8_t *)"default", 7}, {NULL, 0}};
    w.limits = (struct core_limits){.clients_max = SLOTS - 2,
                                    .bytes_max = 1 << 20,
                                    .batch_puts_max = 64,
                                    .mon_from_loopback = true,
                                    .server_name = {(const uint8_t *)"us", 2},
                                    .file_sets = &share,
                                    .file_set_count = 1,
                                    .notify_timeout_ns = 5 * SECOND,
                                    .window_ns = 90 * SECOND,
                                    .give_up_ns = 900 * SECOND,
                                    .is_monitor = true,
                                    .notify_after_ns = 30 * SECOND,
                                    .verify_notices = seed % 3 == 0,
                                    .lockd_restart_notifies = seed % 5 == 0};
    for (uint8_t i = 0; i < HOSTS; i++) {
        struct mounter *host = &w.hosts[i];
        host->address = address_of((uint8_t)(i + 2));
        host->is_name = roll(4) < 1 + seed / 3 % 3;
        snprintf(host->name, sizeof host->name, host->is_name ? "c%d.example" : "10.0.0.%d", i + 2);
        if (host->is_name)
            host->before = address_of((uint8_t)(i + 52)); /* will be */
        host->state = 1;
        host->by_short_name = roll(2) == 0;
        host->by_second_address = roll(2) == 0;
        host->is_deaf = roll(4) == 0;
    }
    if (seed % 4 == 0) {
        w.hosts[0].is_us = true;
        w.hosts[0].address = address_of(1);
        w.hosts[0].before = (struct address){0};
        snprintf(w.hosts[0].name, sizeof w.hosts[0].name,
                 w.hosts[0].is_name ? "us.example" : "10.0.0.1");
    }
    live();
    serve();
}

static void run(const struct scenario *scenario, bool is_verbose)
{
    (void)scenario;
    for (uint32_t seed = 1; seed <= WORLDS; seed++) {
        begin(seed, is_verbose);
        for (uint32_t i = 0; i < STEPS; i++)
            anything();
        settle();
        core_free(w.core);
    }
}

SCENARIO_RUN(monitored_machines, "a monitor beside a kernel that locks: 500 worlds of their own", 0,
             run)
{
    (void)world;
}
