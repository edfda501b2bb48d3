/*
 * recovery_table.c -- what every call is answered in grace and after it: the tables 3.2 and 3.3 of
 * the protocol notes (docs/PROTOCOL.md), column "Ours", over the wire.
 *
 * All rows in NLM versions 3 and 4, over TCP and over UDP, each with clients and files of their
 * own, within one grace. It is lifted by the last byte that is reclaimed, and by nothing before
 * that (R-GRACE-3), so that no row depends on time.
 */
#include "recovery_scene.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>

#define FIRST_ADDRESS UINT32_C(0x7f0e0001) /* 127.14.0.1 */
#define ADDRESSES     16                   /* for each way */
#define FILES         16
#define DENY_WRITE    2
#define ACCESS_BOTH   3

enum who { HOLDER, RIVAL, UNMONITORED, DEPARTED };

enum thing {
    EXACT,    /* reclaimed as it was */
    HALVES,   /* reclaimed in two parts */
    UNLOCKED, /* unlocked, not reclaimed */
    UNDONE,   /* reclaimed, then unlocked */
    SHARED,   /* a shared lock */
    WEAKER,   /* exclusive, reclaimed as shared */
    SHARE,
    UNSHARED,
    NM,
    FREED, /* of one that sends FREE_ALL */
    FREE,  /* nobody's */
    THINGS
};

/* A version and a transport. */
struct way {
    uint32_t vers;
    bool is_udp;
    uint32_t number;
};

static const struct way ways[] = {{4, false, 0}, {4, true, 1}, {3, false, 2}, {3, true, 3}};

#define WAYS (sizeof(ways) / sizeof(ways[0]))

static struct lock_call call_of(const struct way *way, enum who who,
                                enum peer_nlm_procedure procedure, enum thing thing)
{
    static const char *const names[] = {"holder", "rival", "unmonitored", "departed"};
    bool is_share = procedure == PEER_NLM_SHARE || procedure == PEER_NLM_UNSHARE;
    struct lock_call call = recovery_scene_lock(names[who], 1 + (uint32_t)who,
                                                1 + way->number * FILES + (uint32_t)thing, 0, 100);
    call.procedure = procedure;
    call.vers = way->vers;
    call.exclusive = thing != SHARED;
    call.mode = is_share ? DENY_WRITE : 0;
    call.access = is_share ? ACCESS_BOTH : 0;
    if (who == UNMONITORED)
        call.state = 0;
    return call;
}

static void demand_call(const struct way *way, enum who who, const struct lock_call *call,
                        int expected, const char *what)
{
    uint32_t source = FIRST_ADDRESS + way->number * ADDRESSES + (uint32_t)who;
    int status = lock_call_once(recovery_scene_server(), source, way->is_udp, call, NULL);
    HARNESS_EXPECT(status == expected, "version %u over %s: %s: %s: %s and not %s", way->vers,
                   way->is_udp ? "UDP" : "TCP", call->name, what, lock_call_text(status),
                   lock_call_text(expected));
}

static void demand(const struct way *way, enum who who, enum peer_nlm_procedure procedure,
                   enum thing thing, int expected, const char *what)
{
    struct lock_call call = call_of(way, who, procedure, thing);
    demand_call(way, who, &call, expected, what);
}

static void reclaim(const struct way *way, enum who who, enum peer_nlm_procedure procedure,
                    enum thing thing, int expected, const char *what)
{
    struct lock_call call = recovery_scene_reclaim(call_of(way, who, procedure, thing));
    demand_call(way, who, &call, expected, what);
}

/* ---- before ---- */

static void set_up(const struct way *way)
{
    for (enum thing thing = EXACT; thing <= WEAKER; thing++)
        demand(way, HOLDER, PEER_NLM_LOCK, thing, PEER_NLM_IS_GRANTED, "LOCK");
    demand(way, HOLDER, PEER_NLM_SHARE, SHARE, PEER_NLM_IS_GRANTED, "SHARE");
    demand(way, HOLDER, PEER_NLM_SHARE, UNSHARED, PEER_NLM_IS_GRANTED, "SHARE");
    demand(way, UNMONITORED, PEER_NLM_NM_LOCK, NM, PEER_NLM_IS_GRANTED, "NM_LOCK");
    demand(way, DEPARTED, PEER_NLM_LOCK, FREED, PEER_NLM_IS_GRANTED, "LOCK");
}

/* ---- in grace ---- */

/* One that holds nothing gets nothing, and may give up what it has not. */
static void rival_in_grace(const struct way *way)
{
    struct lock_call blocking = call_of(way, RIVAL, PEER_NLM_LOCK, EXACT);
    struct lock_call cancel = call_of(way, RIVAL, PEER_NLM_CANCEL, EXACT);
    blocking.block = cancel.block = true;
    demand(way, RIVAL, PEER_NLM_LOCK, EXACT, PEER_NLM_IS_GRACE, "LOCK of another's");
    demand(way, RIVAL, PEER_NLM_LOCK, FREE, PEER_NLM_IS_GRACE, "LOCK of nobody's");
    demand_call(way, RIVAL, &blocking, PEER_NLM_IS_GRACE, "LOCK(block)");
    demand_call(way, RIVAL, &cancel, PEER_NLM_IS_GRANTED, "CANCEL");
    demand(way, RIVAL, PEER_NLM_TEST, EXACT, PEER_NLM_IS_GRACE, "TEST of another's");
    demand(way, RIVAL, PEER_NLM_TEST, FREE, PEER_NLM_IS_GRACE, "TEST of nobody's");
    demand(way, RIVAL, PEER_NLM_UNLOCK, EXACT, PEER_NLM_IS_GRANTED, "UNLOCK of another's");
    demand(way, RIVAL, PEER_NLM_NM_LOCK, FREE, PEER_NLM_IS_GRACE, "NM_LOCK");
    demand(way, RIVAL, PEER_NLM_SHARE, FREE, PEER_NLM_IS_GRACE, "SHARE");
    demand(way, RIVAL, PEER_NLM_UNSHARE, FREE, PEER_NLM_IS_GRANTED, "UNSHARE");
    reclaim(way, RIVAL, PEER_NLM_LOCK, EXACT, PEER_NLM_IS_DENIED, "reclaim of another's");
    reclaim(way, RIVAL, PEER_NLM_LOCK, FREE, PEER_NLM_IS_DENIED, "reclaim of nobody's");
    reclaim(way, RIVAL, PEER_NLM_SHARE, SHARE, PEER_NLM_IS_DENIED, "SHARE reclaim of another's");
    reclaim(way, RIVAL, PEER_NLM_SHARE, FREE, PEER_NLM_IS_DENIED, "SHARE reclaim of nobody's");
    blocking.reclaim = true;
    demand_call(way, RIVAL, &blocking, PEER_NLM_IS_DENIED, "reclaim(block) of another's");
}

static void holder_in_grace(const struct way *way)
{
    struct lock_call half = recovery_scene_reclaim(call_of(way, HOLDER, PEER_NLM_LOCK, HALVES));
    struct lock_call stronger = recovery_scene_reclaim(call_of(way, HOLDER, PEER_NLM_LOCK, SHARED));
    struct lock_call weaker = recovery_scene_reclaim(call_of(way, HOLDER, PEER_NLM_LOCK, WEAKER));
    struct lock_call blocking = recovery_scene_reclaim(call_of(way, HOLDER, PEER_NLM_LOCK, EXACT));
    struct lock_call wider = blocking;
    blocking.block = true;
    wider.len = 200;
    half.len = 50;
    stronger.exclusive = true;
    weaker.exclusive = false;
    demand(way, HOLDER, PEER_NLM_LOCK, EXACT, PEER_NLM_IS_GRACE, "LOCK of its own");
    demand_call(way, HOLDER, &wider, PEER_NLM_IS_DENIED, "reclaim of more than it had");
    demand_call(way, HOLDER, &blocking, PEER_NLM_IS_GRANTED, "reclaim(block)");
    reclaim(way, HOLDER, PEER_NLM_LOCK, EXACT, PEER_NLM_IS_GRANTED, "the same reclaim again");
    demand(way, HOLDER, PEER_NLM_LOCK, EXACT, PEER_NLM_IS_GRACE, "LOCK of what it reclaimed");
    demand_call(way, HOLDER, &half, PEER_NLM_IS_GRANTED, "reclaim of one half");
    demand(way, HOLDER, PEER_NLM_UNLOCK, UNLOCKED, PEER_NLM_IS_GRANTED, "UNLOCK, not reclaimed");
    reclaim(way, HOLDER, PEER_NLM_LOCK, UNLOCKED, PEER_NLM_IS_DENIED, "reclaim after UNLOCK");
    reclaim(way, HOLDER, PEER_NLM_LOCK, UNDONE, PEER_NLM_IS_GRANTED, "reclaim before UNLOCK");
    demand(way, HOLDER, PEER_NLM_UNLOCK, UNDONE, PEER_NLM_IS_GRANTED, "UNLOCK after reclaim");
    demand_call(way, HOLDER, &stronger, PEER_NLM_IS_DENIED, "exclusive reclaim of a shared lock");
    reclaim(way, HOLDER, PEER_NLM_LOCK, SHARED, PEER_NLM_IS_GRANTED, "reclaim of a shared lock");
    demand_call(way, HOLDER, &weaker, PEER_NLM_IS_GRANTED, "shared reclaim of an exclusive lock");
}

static void others_in_grace(const struct way *way)
{
    demand(way, HOLDER, PEER_NLM_SHARE, SHARE, PEER_NLM_IS_GRACE, "SHARE of its own");
    reclaim(way, HOLDER, PEER_NLM_SHARE, SHARE, PEER_NLM_IS_GRANTED, "SHARE reclaim");
    reclaim(way, HOLDER, PEER_NLM_SHARE, SHARE, PEER_NLM_IS_GRANTED, "SHARE reclaim again");
    demand(way, HOLDER, PEER_NLM_UNSHARE, UNSHARED, PEER_NLM_IS_GRANTED, "UNSHARE");
    reclaim(way, HOLDER, PEER_NLM_SHARE, UNSHARED, PEER_NLM_IS_DENIED,
            "SHARE reclaim after UNSHARE");
    demand(way, UNMONITORED, PEER_NLM_NM_LOCK, NM, PEER_NLM_IS_GRACE, "NM_LOCK of its own");
    demand(way, DEPARTED, PEER_NLM_FREE_ALL, FREED, 0, "FREE_ALL");
    reclaim(way, DEPARTED, PEER_NLM_LOCK, FREED, PEER_NLM_IS_DENIED, "reclaim after FREE_ALL");
    reclaim(way, RIVAL, PEER_NLM_LOCK, EXACT, PEER_NLM_IS_DENIED,
            "reclaim of what another has reclaimed");
}

/* ---- the end of it ---- */

static void reclaim_rests(void)
{
    for (uint32_t i = 0; i < WAYS; i++) {
        struct lock_call rest =
            recovery_scene_reclaim(call_of(&ways[i], HOLDER, PEER_NLM_LOCK, HALVES));
        rest.offset = 50;
        rest.len = 50;
        HARNESS_EXPECT(recovery_scene_is_in_grace(), "grace is over before the last bytes");
        demand_call(&ways[i], HOLDER, &rest, PEER_NLM_IS_GRANTED, "reclaim of the other half");
    }
    uint64_t end_ms = recovery_scene_await_end();
    printf("grace of %u s: over after %" PRIu64 " ms\n", recovery_scene_server()->grace_s, end_ms);
    HARNESS_EXPECT(end_ms < recovery_scene_server()->grace_s * 1000, "grace was not lifted");
}

static void after_grace(const struct way *way)
{
    struct lock_call blocking = call_of(way, RIVAL, PEER_NLM_LOCK, EXACT);
    struct lock_call shared = call_of(way, RIVAL, PEER_NLM_LOCK, WEAKER);
    shared.exclusive = false;
    blocking.block = true;
    reclaim(way, HOLDER, PEER_NLM_LOCK, EXACT, PEER_NLM_IS_GRANTED, "late reclaim of its own");
    reclaim(way, HOLDER, PEER_NLM_LOCK, UNLOCKED, PEER_NLM_IS_GRACE, "late reclaim after UNLOCK");
    reclaim(way, RIVAL, PEER_NLM_LOCK, EXACT, PEER_NLM_IS_GRACE, "late reclaim of another's");
    reclaim(way, RIVAL, PEER_NLM_LOCK, FREE, PEER_NLM_IS_GRACE, "late reclaim of nobody's");
    reclaim(way, HOLDER, PEER_NLM_SHARE, SHARE, PEER_NLM_IS_GRANTED, "late SHARE reclaim");
    reclaim(way, HOLDER, PEER_NLM_SHARE, UNSHARED, PEER_NLM_IS_GRACE, "late SHARE of nothing");
    demand(way, RIVAL, PEER_NLM_TEST, HALVES, PEER_NLM_IS_DENIED, "TEST of two halves");
    demand(way, RIVAL, PEER_NLM_TEST, NM, PEER_NLM_IS_DENIED, "TEST of an NM lock (R-NM-1)");
    demand(way, RIVAL, PEER_NLM_SHARE, SHARE, PEER_NLM_IS_DENIED, "SHARE against a share");
    demand(way, RIVAL, PEER_NLM_SHARE, UNSHARED, PEER_NLM_IS_GRANTED, "SHARE after UNSHARE");
    demand(way, RIVAL, PEER_NLM_LOCK, UNLOCKED, PEER_NLM_IS_GRANTED, "LOCK of what is free");
    demand(way, RIVAL, PEER_NLM_LOCK, UNDONE, PEER_NLM_IS_GRANTED, "LOCK of what is free again");
    demand(way, RIVAL, PEER_NLM_LOCK, FREED, PEER_NLM_IS_GRANTED, "LOCK of what was freed");
    demand(way, RIVAL, PEER_NLM_LOCK, FREE, PEER_NLM_IS_GRANTED, "LOCK of nobody's");
    demand_call(way, RIVAL, &shared, PEER_NLM_IS_GRANTED, "a second shared LOCK");
    demand_call(way, RIVAL, &blocking, PEER_NLM_IS_BLOCKED, "LOCK(block)");
    blocking.procedure = PEER_NLM_CANCEL;
    demand_call(way, RIVAL, &blocking, PEER_NLM_IS_GRANTED, "CANCEL");
}

int main(void)
{
    if (!recovery_scene_open("recovery_table", 1))
        return HARNESS_SKIPPED;
    recovery_scene_options(
        (const char *[]){"--grace", "90", "--notify-timeout", "2", "--name", "nas", NULL});
    _Static_assert(THINGS <= FILES, "a file for each");
    if (!recovery_scene_start())
        return recovery_scene_close();
    for (uint32_t i = 0; i < WAYS; i++)
        set_up(&ways[i]);
    if (recovery_scene_restart(SIGKILL)) {
        for (uint32_t i = 0; i < WAYS; i++) {
            rival_in_grace(&ways[i]);
            holder_in_grace(&ways[i]);
            others_in_grace(&ways[i]);
        }
        recovery_scene_await_log("refused a reclaim");
        reclaim_rests();
        for (uint32_t i = 0; i < WAYS; i++)
            after_grace(&ways[i]);
    }
    return recovery_scene_close();
}
