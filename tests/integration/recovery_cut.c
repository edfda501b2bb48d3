/*
 * recovery_cut.c -- clients that the server cannot reach after its restart.
 *
 * The cut is complete: nothing arrives at the host, not even the SYN of a connection. Passing
 * proves, for --unreachable release (the default):
 *  (1) a cut that outlasts the first attempt and heals 10 s before the end of grace: both clients
 *      behind it count as crashed meanwhile, are told all the same (D5 (4)), and the one that
 *      reclaims at once keeps its locks;
 *  (2) the other one, which was first reached in the second half of grace, still gets its lock
 *      after the end, while others are served and do not get it (D5 (5));
 * and for --unreachable hold (R-GRACE-5):
 *  (3) what a client that was not reached holds excludes others after the end of grace, who are
 *      otherwise served, and queue for it;
 *  (4) a client that is heard of then gets its reclaim, and what it does not reclaim goes soon;
 *  (5) one that is never heard of loses its locks when --give-up is over, not before, and whoever
 *      waits for them is granted. It stays marked: the next start tells it (P3).
 */
#include "recovery_scene.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <time.h>

#define PROMPT   UINT32_C(0x7f0c0001) /* 127.12.0.1 */
#define DAWDLER  UINT32_C(0x7f0c0002)
#define RETURNER UINT32_C(0x7f0c0003)
#define GONE     UINT32_C(0x7f0c0004)
#define OTHER    UINT32_C(0x7f0c0005)
#define FILE_IT  1
#define FILE_NEW 2
#define HEAL_MS  10000 /* before the end of grace */

#define HOLD_GRACE_S   3
#define HOLD_GIVE_UP_S 5

static struct lock_call prompt_lock(uint64_t offset)
{
    return recovery_scene_lock("prompt", 1, FILE_IT, offset, 2);
}

static struct lock_call dawdler_lock(void)
{
    return recovery_scene_lock("dawdler", 1, FILE_IT, 100, 2);
}

static struct lock_call others(struct lock_call of, bool block)
{
    struct lock_call call = recovery_scene_lock("other", 9, of.file, of.offset, of.len);
    call.block = block;
    return call;
}

static void sleep_until_ms(uint64_t since_ready_ms)
{
    while (recovery_scene_since_ready_ms() < since_ready_ms)
        (void)nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
}

/* ---- release ---- */

static void demand_told_in_time(uint32_t host, uint32_t grace_s)
{
    if (!recovery_scene_await_told(host))
        return;
    struct recovery_host seen = recovery_hosts_look(host);
    uint64_t told_ms = (seen.told_ns - recovery_scene_ready_ns()) / RECOVERY_SCENE_MS;
    printf("%s: told %" PRIu64 " ms after readiness, %" PRIu64 " ms after the cut was healed\n",
           seen.name, told_ms, told_ms - (grace_s * UINT64_C(1000) - HEAL_MS));
    HARNESS_EXPECT(told_ms < grace_s * UINT64_C(1000), "%s was told too late", seen.name);
}

static void cut_until_late(uint32_t prompt, uint32_t dawdler)
{
    uint32_t grace_s = recovery_scene_server()->grace_s;
    uint64_t heal_ms = grace_s * UINT64_C(1000) - HEAL_MS;
    recovery_scene_await_log("first round of notifications finished");
    HARNESS_EXPECT(recovery_scene_since_ready_ms() < heal_ms, "the first attempt takes too long");
    recovery_scene_await_lines("a client is unreachable", 2);
    sleep_until_ms(heal_ms);
    HARNESS_EXPECT(recovery_hosts_look(prompt).notices + recovery_hosts_look(dawdler).notices == 0,
                   "the cut lets something through");
    recovery_hosts_cut(prompt, false);
    recovery_hosts_cut(dawdler, false);
    demand_told_in_time(prompt, grace_s);
    for (uint64_t offset = 0; offset < 8; offset += 4)
        recovery_scene_demand(PROMPT, recovery_scene_reclaim(prompt_lock(offset)),
                              PEER_NLM_IS_GRANTED, "its reclaim");
    demand_told_in_time(dawdler, grace_s);
    uint64_t end_ms = recovery_scene_await_end();
    HARNESS_EXPECT(end_ms + recovery_scene_slack_ms() >= grace_s * UINT64_C(1000),
                   "grace of %u s ended after %" PRIu64 " ms with a lock unsettled", grace_s,
                   end_ms);
    for (uint64_t offset = 0; offset < 8; offset += 4)
        recovery_scene_demand(OTHER, others(prompt_lock(offset), false), PEER_NLM_IS_DENIED,
                              "what was reclaimed, for another client");
    recovery_scene_demand(OTHER, others(dawdler_lock(), false), PEER_NLM_IS_DENIED,
                          "what one reached late has not reclaimed yet (D5 (5))");
    recovery_scene_demand(OTHER, recovery_scene_lock("other", 9, FILE_NEW, 0, 1),
                          PEER_NLM_IS_GRANTED, "a new lock of another client");
    recovery_scene_demand(DAWDLER, recovery_scene_reclaim(dawdler_lock()), PEER_NLM_IS_GRANTED,
                          "the reclaim of one that was reached late, after grace");
}

static void release(void)
{
    static char seconds[16];
    snprintf(seconds, sizeof(seconds), "%u", harness_number("HOLDFAST_CUT_GRACE", 22));
    recovery_scene_options(
        (const char *[]){"--grace", seconds, "--notify-timeout", "2", "--name", "nas", NULL});
    uint32_t prompt = recovery_scene_host(PROMPT, "prompt");
    uint32_t dawdler = recovery_scene_host(DAWDLER, "dawdler");
    printf("a cut heals 10 s before the end of a grace of %s s\n", seconds);
    if (!recovery_scene_start())
        return;
    recovery_scene_demand(PROMPT, prompt_lock(0), PEER_NLM_IS_GRANTED, "a lock");
    recovery_scene_demand(PROMPT, prompt_lock(4), PEER_NLM_IS_GRANTED, "a lock");
    recovery_scene_demand(DAWDLER, dawdler_lock(), PEER_NLM_IS_GRANTED, "a lock");
    recovery_hosts_cut(prompt, true);
    recovery_hosts_cut(dawdler, true);
    if (recovery_scene_restart(SIGKILL))
        cut_until_late(prompt, dawdler);
    (void)harness_stop(recovery_scene_server(), SIGKILL);
}

/* ---- hold ---- */

static struct lock_call returner_lock(uint64_t offset)
{
    return recovery_scene_lock("returner", 1, FILE_IT, 200 + offset, 2);
}

static struct lock_call gone_lock(void)
{
    return recovery_scene_lock("gone", 1, FILE_IT, 300, 2);
}

static void return_late(void)
{
    recovery_scene_demand(RETURNER, recovery_scene_reclaim(returner_lock(0)), PEER_NLM_IS_GRANTED,
                          "a reclaim of one that was held, after grace");
    recovery_scene_demand(OTHER, others(returner_lock(0), false), PEER_NLM_IS_DENIED,
                          "what it has reclaimed");
    recovery_scene_await(OTHER, others(returner_lock(4), false), PEER_NLM_IS_GRANTED,
                         "what it does not reclaim");
    recovery_scene_demand(OTHER, others(returner_lock(0), false), PEER_NLM_IS_DENIED,
                          "what it has reclaimed, later");
}

static void hold_until_given_up(uint32_t other)
{
    uint64_t least_ms = (HOLD_GRACE_S + HOLD_GIVE_UP_S) * UINT64_C(1000);
    uint64_t end_ms = recovery_scene_await_end();
    uint64_t slack_ms = recovery_scene_slack_ms();
    HARNESS_EXPECT(end_ms + slack_ms >= HOLD_GRACE_S * 1000, "grace ended after %" PRIu64 " ms",
                   end_ms);
    recovery_scene_demand(OTHER, recovery_scene_lock("other", 9, FILE_NEW, 0, 1),
                          PEER_NLM_IS_GRANTED, "a new lock after grace");
    recovery_scene_demand(OTHER, others(returner_lock(0), false), PEER_NLM_IS_DENIED,
                          "what is held for one that was not reached");
    recovery_scene_demand(OTHER, others(gone_lock(), true), PEER_NLM_IS_BLOCKED,
                          "LOCK(block) of what is held for another one");
    return_late();
    uint32_t grants = recovery_hosts_look(other).grants; /* first this, then the clock */
    HARNESS_EXPECT(grants == 0 || recovery_scene_since_ready_ms() + slack_ms >= least_ms,
                   "granted before --give-up was over");
    if (!recovery_scene_await_grants(other, 1))
        return;
    uint64_t granted_ms =
        (recovery_hosts_look(other).granted_ns - recovery_scene_ready_ns()) / RECOVERY_SCENE_MS;
    printf("what the gone one held was granted to the waiter %" PRIu64
           " ms after readiness (grace and --give-up: %" PRIu64 ")\n",
           granted_ms, least_ms);
    HARNESS_EXPECT(granted_ms + slack_ms >= least_ms, "after %" PRIu64 " ms", granted_ms);
    recovery_scene_await_log("could not notify a client within --give-up");
}

static void hold(void)
{
    recovery_scene_options((const char *[]){"--grace", "3", "--recovery-window", "3", "--give-up",
                                            "5", "--notify-timeout", "2", "--unreachable", "hold",
                                            "--name", "nas", NULL});
    recovery_scene_store("hold");
    uint32_t returner = recovery_scene_host(RETURNER, "returner");
    uint32_t gone = recovery_scene_host(GONE, "gone");
    uint32_t other = recovery_scene_host(OTHER, "other");
    printf("--unreachable hold, grace 3 s, --give-up 5 s\n");
    if (!recovery_scene_start())
        return;
    recovery_scene_demand(RETURNER, returner_lock(0), PEER_NLM_IS_GRANTED, "a lock");
    recovery_scene_demand(RETURNER, returner_lock(4), PEER_NLM_IS_GRANTED, "a lock");
    recovery_scene_demand(GONE, gone_lock(), PEER_NLM_IS_GRANTED, "a lock");
    recovery_hosts_cut(returner, true);
    recovery_hosts_cut(gone, true);
    if (!recovery_scene_restart(SIGKILL))
        return;
    hold_until_given_up(other);
    recovery_hosts_cut(gone, false);
    recovery_hosts_cut(returner, false);
    if (recovery_scene_restart(SIGKILL))
        recovery_scene_await_told(gone);
}

int main(void)
{
    if (!recovery_scene_open("recovery_cut", 8))
        return HARNESS_SKIPPED;
    release();
    hold();
    return recovery_scene_close();
}
