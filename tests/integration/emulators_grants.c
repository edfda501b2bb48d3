/*
 * emulators_grants.c -- callbacks answered in every way, polling, and places in the queue, where a
 * kind of client does what no story (tests/stories) tells of all of them.
 *
 * Each case is a crossing that real clients produce. Where time passes on the
 * server's side (5 s for an attempt, 10 s after DENIED_GRACE_PERIOD) the cases wait for what must
 * follow, never for the time itself.
 */
#include "emulators_cases.h"
#include "peer/emu_call.h"
#include "stage.h"

#include <errno.h>
#include <string.h>

#define GRANTED PEER_NLM_IS_GRANTED
#define DENIED  PEER_NLM_IS_DENIED
#define BLOCKED PEER_NLM_IS_BLOCKED

/* The holder has the range and `one` waits for it. False: the case makes no sense any more. */
static bool make_wait(struct emu_host *holder, struct emu_host *one, uint32_t *ret_wait)
{
    struct emu_request held = stage_request(3, 0, 100), wanted = stage_request(7, 0, 100);
    return stage_demand(emu_client_lock(holder, &held), GRANTED, "lock of the holder") &&
           stage_demand(emu_client_block(one, &wanted, ret_wait), BLOCKED, "a blocking lock");
}

static void release(struct emu_host *holder)
{
    struct emu_request held = stage_request(3, 0, 100);
    stage_demand(emu_client_unlock(holder, &held), GRANTED, "unlock of the holder");
}

/* R-BLK-12: a client that cancels and locks again keeps its place. */
static void mac_keeps_its_place(void)
{
    uint32_t mac_wait, other_wait;
    stage_case("macOS cancels, locks again and keeps its place");
    struct emu_host *holder = stage_host("linux", "holder");
    struct emu_host *mac = stage_host("macos", "mac"), *other = stage_host("linux", "other");
    struct emu_request wanted = stage_request(7, 0, 100);
    if (!make_wait(holder, mac, &mac_wait) ||
        !stage_demand(emu_client_block(other, &wanted, &other_wait), BLOCKED, "the one behind"))
        return;
    stage_demand(emu_client_poll(mac, mac_wait), BLOCKED, "cancel and lock again");
    emu_net_lock();
    uint32_t at_socket = 0;
    for (uint32_t i = 0; i < mac->record_count; i++)
        at_socket += mac->records[i].call.proc == PEER_NLM_LOCK_RES &&
                     mac->records[i].service == EMU_SERVICE_OWN;
    emu_net_unlock();
    HARNESS_EXPECT(at_socket >= 2, "%u of 2 LOCK_RES came to the connected socket (U30)",
                   at_socket);
    release(holder);
    if (!stage_demand_granted(mac, mac_wait, "the mac"))
        return;
    HARNESS_EXPECT(!emu_client_is_granted(other, other_wait), "the one behind was first");
    stage_demand(emu_client_unlock(mac, &wanted), GRANTED, "unlock of the mac");
    stage_demand_granted(other, other_wait, "the one behind");
}

/* R-OWN-1: the oh of a mac changes with its lockd, its locks do not. */
static void mac_lockd_restarts(void)
{
    stage_case("the lockd of a mac restarts");
    struct emu_host *mac = stage_host("macos", "mac"), *other = stage_host("linux", "other");
    struct emu_request wanted = stage_request(7, 0, 100);
    stage_demand(emu_client_lock(mac, &wanted), GRANTED, "lock");
    emu_host_restart_lockd(mac);
    stage_demand(emu_client_unlock(mac, &wanted), GRANTED, "unlock with another oh");
    stage_demand_free(other, &wanted);
}

/* The poll is granted, which tells the server that the client knows; a late CANCEL is DENIED. */
static void bsd_owns_what_it_cannot_cancel(void)
{
    uint32_t wait;
    bool is_owned = false;
    stage_case("FreeBSD owns what it cannot cancel");
    struct emu_host *holder = stage_host("linux", "holder"), *bsd = stage_host("freebsd", "bsd");
    struct emu_request wanted = stage_request(7, 0, 100);
    if (!make_wait(holder, bsd, &wait))
        return;
    release(holder);
    if (!stage_wait_callbacks(bsd, 1))
        return;
    stage_demand(emu_client_poll(bsd, wait), GRANTED, "a poll for what was granted");
    stage_demand(emu_client_give_up(bsd, wait, &is_owned), DENIED, "cancel of what is held");
    HARNESS_EXPECT(is_owned, "the client does not know that it holds the lock");
    stage_demand_held(holder, &wanted, bsd, 7);
    stage_demand(emu_client_unlock(bsd, &wanted), GRANTED, "unlock");
    stage_demand_free(holder, &wanted);
}

/* R-DRC-3: the repeat of an accepted callback is refused by the client, which holds the lock. */
static void accepts_and_answers_late(void)
{
    uint32_t wait;
    stage_case("a callback is accepted, the answer is late, the repeat is refused");
    struct emu_host *holder = stage_host("linux", "holder"), *one = stage_host("linux", "one");
    struct emu_request wanted = stage_request(7, 0, 100), again = stage_request(3, 0, 100);
    if (!make_wait(holder, one, &wait))
        return;
    EMU_NET_LOCKED(one->answer = EMU_ANSWER_LATE);
    release(holder);
    if (!stage_wait_callbacks(one, 1))
        return;
    HARNESS_EXPECT(emu_client_is_granted(one, wait), "the client did not accept");
    if (!stage_wait_callbacks(one, 2))
        return;
    const struct emu_record *repeat = stage_last_callback(one);
    HARNESS_EXPECT(repeat->status == DENIED, "the client accepted twice");
    emu_host_release_answers(one);
    /* The holder polls with a new request each time; it must never get it. */
    for (uint32_t i = 0; i < 20; i++)
        if (!stage_demand(emu_client_lock(holder, &again), DENIED, "a lock of what is relied on"))
            return;
    stage_demand_held(holder, &wanted, one, 7);
    stage_demand(emu_client_unlock(one, &wanted), GRANTED, "unlock");
    stage_demand_free(holder, &wanted);
}

/* A Solaris client in its own grace is asked again later. */
static void solaris_is_in_grace(void)
{
    uint32_t wait;
    stage_case("Solaris is in grace itself");
    struct emu_host *holder = stage_host("linux", "holder"), *sun = stage_host("solaris", "sun");
    struct emu_request wanted = stage_request(7, 0, 100);
    if (!make_wait(holder, sun, &wait))
        return;
    EMU_NET_LOCKED(sun->is_in_grace = true);
    release(holder);
    if (!stage_wait_callbacks(sun, 1))
        return;
    stage_demand_held(holder, &wanted, sun, 7);
    EMU_NET_LOCKED(sun->is_in_grace = false);
    stage_demand_granted(sun, wait, "after its grace");
    stage_demand_held(holder, &wanted, sun, 7);
    stage_demand(emu_client_unlock(sun, &wanted), GRANTED, "unlock");
}

/* R-BLK-2: GRANTED_MSG is answered SYSTEM_ERR, GRANTED works. */
static void falls_back_to_granted(void)
{
    static struct emu_kind kind;
    uint32_t wait;
    stage_case("GRANTED_MSG is answered SYSTEM_ERR");
    kind = emu_table_get("linux-2026")->kind;
    kind.is_async = true; /* LOCK_MSG makes the server begin with GRANTED_MSG */
    struct emu_host *holder = stage_host("linux", "holder");
    struct emu_host *one = stage_host_of(&kind, "one");
    struct emu_request wanted = stage_request(7, 0, 100);
    if (!make_wait(holder, one, &wait))
        return;
    release(holder);
    stage_demand_granted(one, wait, "the one that cannot GRANTED_MSG");
    emu_net_lock();
    uint32_t messages = emu_host_count(one, PEER_NLM_PROGRAM, PEER_NLM_GRANTED_MSG);
    emu_net_unlock();
    const struct emu_record *last = stage_last_callback(one);
    if (!HARNESS_EXPECT(messages >= 1 && last && last->call.proc == PEER_NLM_GRANTED,
                        "GRANTED did not follow a GRANTED_MSG"))
        stage_print_callbacks(one);
    stage_demand_held(holder, &wanted, one, 7);
    stage_demand(emu_client_unlock(one, &wanted), GRANTED, "unlock");
}

/* R-BLK-2: it asks over TCP and is registered for UDP only, and the other way round. */
static void falls_back_to_the_other_transport(bool is_udp)
{
    uint32_t wait;
    stage_case(is_udp ? "asks over UDP, listens on TCP" : "asks over TCP, listens on UDP");
    struct emu_host *holder = stage_host("linux", "holder"), *one = stage_host("linux", "one");
    one->is_udp = is_udp;
    EMU_NET_LOCKED(one->is_hidden[is_udp] = true);
    if (!make_wait(holder, one, &wait))
        return;
    release(holder);
    stage_demand_granted(one, wait, "the one that is called over the other transport");
    const struct emu_record *got = stage_last_callback(one);
    HARNESS_EXPECT(got && got->is_udp != is_udp, "it was called over the hidden transport");
}

void emulators_grants_run(void)
{
    mac_keeps_its_place();
    mac_lockd_restarts();
    bsd_owns_what_it_cannot_cancel();
    accepts_and_answers_late();
    solaris_is_in_grace();
    falls_back_to_granted();
    falls_back_to_the_other_transport(false);
    falls_back_to_the_other_transport(true);
}
