/*
 * emulators_identity.c -- who is who: two clients behind one address, a client without a status
 * monitor, repeats, and one that answers callbacks in another's name. The rest of what one that
 * pretends can do, and two clients with one name, is told by tests/stories.
 *
 * A client is an address and a name (R-ID-1), an owner is that and an svid (R-OWN-1). From a wrong
 * address nothing changes (P5, U32): what the spoofer sends is answered as if nothing had been
 * there, and the victim's locks, waits and offers stand.
 */
#include "emulators_cases.h"
#include "peer/emu_call.h"
#include "peer/peer_nsm.h"
#include "stage.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define GRANTED PEER_NLM_IS_GRANTED
#define DENIED  PEER_NLM_IS_DENIED
#define BLOCKED PEER_NLM_IS_BLOCKED

/* Two names, one address, the same svid; nobody can call them back. */
static void behind_one_address(void)
{
    struct emu_host *pair[EMU_TABLE_HOSTS_MAX];
    uint32_t wait;
    stage_case("two clients behind one address");
    stage_pair("nat", pair);
    struct emu_host *judge = stage_host("linux", "judge");
    struct emu_request wanted = stage_request(7, 0, 100), other = stage_request(7, 500, 5);
    stage_demand(emu_client_lock(pair[0], &wanted), GRANTED, "lock of the first");
    stage_demand(emu_client_lock(pair[1], &wanted), DENIED, "the same svid of the second");
    stage_demand(emu_client_unlock(pair[1], &wanted), GRANTED, "unlock of the second");
    stage_demand_held(judge, &wanted, pair[0], 7);
    stage_demand(emu_client_lock(pair[1], &other), GRANTED, "lock of the second elsewhere");
    if (!stage_demand(emu_client_block(pair[1], &wanted, &wait), BLOCKED, "the second one waits"))
        return;
    pair[1]->poll_ms = 50;
    stage_demand(emu_client_unlock(pair[0], &wanted), GRANTED, "unlock of the first");
    stage_demand_granted(pair[1], wait, "the second one, by its poll");
    stage_demand_held(judge, &wanted, pair[1], 7);
    stage_demand(emu_client_free_all(pair[0], pair[0]->name), 0, "FREE_ALL of the first");
    stage_demand_held(judge, &wanted, pair[1], 7);
    stage_demand(emu_client_free_all(pair[1], pair[1]->name), 0, "FREE_ALL of the second");
    stage_demand_free(judge, &wanted);
    stage_demand_free(judge, &other);
}

/* No status monitor: NM_LOCK, SHARE, FREE_ALL (R-NM-1, R-SH-1, R-NLM-8). */
static void without_monitor(bool is_udp)
{
    uint32_t wait;
    stage_case(is_udp ? "PC-NFS over UDP" : "PC-NFS over TCP");
    struct emu_host *pc = stage_host("pcnfs", "pc"), *other = stage_host("pcnfs", "other");
    struct emu_host *judge = stage_host("linux", "judge");
    struct emu_request wanted = stage_request(7, 0, 100), theirs = stage_request(3, 50, 1);
    pc->is_udp = other->is_udp = is_udp;
    stage_demand(emu_client_lock(pc, &wanted), GRANTED, "NM_LOCK");
    stage_demand(emu_client_block(other, &theirs, &wait), DENIED, "NM_LOCK that would block");
    stage_demand_held(judge, &wanted, pc, 7);
    stage_demand(emu_client_share(pc, &wanted, 2, 1), GRANTED, "SHARE read, deny write");
    stage_demand(emu_client_share(pc, &wanted, 2, 1), GRANTED, "the same again");
    stage_demand(emu_client_share(other, &theirs, 0, 2), DENIED, "SHARE write");
    stage_demand(emu_client_share(other, &theirs, 1, 1), DENIED, "SHARE read, deny read");
    stage_demand(emu_client_share(other, &theirs, 0, 1), GRANTED, "SHARE read");
    stage_demand(emu_client_unshare(pc, &wanted), GRANTED, "UNSHARE");
    stage_demand(emu_client_unshare(pc, &wanted), GRANTED, "UNSHARE of nothing");
    stage_demand(emu_client_share(other, &theirs, 3, 3), GRANTED, "SHARE of everything");
    stage_demand(emu_client_share(pc, &wanted, 0, 1), DENIED, "SHARE beside it");
    stage_demand(emu_client_free_all(other, "pc"), 0, "FREE_ALL with another's name");
    stage_demand(emu_client_free_all(other, ""), 0, "FREE_ALL without a name");
    stage_demand_held(judge, &wanted, pc, 7);
    stage_demand(emu_client_free_all(other, "other"), 0, "FREE_ALL");
    stage_demand(emu_client_share(pc, &wanted, 0, 1), GRANTED, "SHARE after it");
    stage_demand(emu_client_free_all(pc, "PC"), 0, "FREE_ALL, the name in other letters");
    stage_demand_free(judge, &wanted);
}

/* R-DRC-1: the repeat of a call has the first one's answer and no effect of its own. */
static void repeats(bool is_udp)
{
    static struct packet unlock, answer;
    struct packet_reply reply;
    stage_case(is_udp ? "repeats over UDP" : "repeats over TCP");
    struct emu_host *one = stage_host("linux", "one"), *judge = stage_host("linux", "judge");
    struct emu_request wanted = stage_request(7, 0, 100), theirs = stage_request(3, 0, 100);
    one->is_udp = is_udp;
    stage_demand(emu_client_lock(one, &wanted), GRANTED, "lock");
    stage_demand(emu_call_repeat(one, NULL), GRANTED, "its repeat");
    stage_demand(emu_client_unlock(one, &wanted), GRANTED, "unlock");
    unlock = *one->last_call;
    stage_demand(emu_client_lock(one, &wanted), GRANTED, "lock again");
    int result =
        dial_exchange(one->fd[is_udp], is_udp, &unlock, STAGE_PATIENCE_MS, &answer, &reply);
    HARNESS_EXPECT(result == 0 && reply.accepted && reply.status == PACKET_SUCCESS,
                   "the repeated unlock: %s", strerror(-result));
    stage_demand_held(judge, &wanted, one, 7);
    stage_demand(emu_client_unlock(one, &wanted), GRANTED, "unlock");
    /* A refusal that is repeated stays one, also when the range is free by then. */
    stage_demand(emu_client_lock(judge, &theirs), GRANTED, "lock of the other");
    stage_demand(emu_client_lock(one, &wanted), DENIED, "lock");
    stage_demand(emu_client_unlock(judge, &theirs), GRANTED, "unlock of the other");
    stage_demand(emu_call_repeat(one, NULL), DENIED, "its repeat");
    stage_demand_free(judge, &wanted);
}

/* ---- one that pretends ---- */

/* The spoofer knows the cookie of a callback and answers it, both ways. */
static void spoof_answer(uint32_t status, const char *name)
{
    uint32_t wait;
    bool is_owned;
    stage_case(name);
    struct emu_host *victim = stage_host("macos", "victim"),
                    *holder = stage_host("linux", "holder");
    struct emu_host *spoofer = stage_host("spoofer", "victim");
    struct emu_request held = stage_request(3, 0, 100), wanted = stage_request(7, 0, 100);
    stage_demand(emu_client_lock(holder, &held), GRANTED, "lock of the holder");
    if (!stage_demand(emu_client_block(victim, &wanted, &wait), BLOCKED, "the victim waits"))
        return;
    EMU_NET_LOCKED(victim->answer = EMU_ANSWER_NEVER);
    stage_demand(emu_client_unlock(holder, &held), GRANTED, "unlock of the holder");
    if (!stage_wait_callbacks(victim, 1))
        return;
    struct peer_nlm_res res = {.cookie = stage_last_callback(victim)->args.cookie,
                               .status = status};
    stage_demand(emu_call_res(spoofer, PEER_NLM_GRANTED_RES, &res), 0,
                 "GRANTED_RES of the spoofer");
    stage_demand_held(holder, &wanted, victim, 7); /* DENIED would have released it */
    /* GRANTED would have made it a lock, whose CANCEL is DENIED. */
    stage_demand(emu_client_give_up(victim, wait, &is_owned), GRANTED, "CANCEL of the victim");
    stage_wait_free(holder, &wanted);
}

/* R-NLM-1, R-NLM-4: too long, out of range, and answers to nothing. */
static void sends_nonsense(bool is_udp)
{
    static struct peer_nlm_args args;
    static struct peer_nlm_res res;
    stage_case(is_udp ? "nonsense over UDP" : "nonsense over TCP");
    struct emu_host *spoofer = stage_host("spoofer", "victim");
    spoofer->is_udp = is_udp;
    struct emu_request wanted = stage_request(7, 900, 1);
    for (uint32_t i = 0; i < 3; i++) {
        emu_client_fill(spoofer, &wanted, &args);
        struct peer_nlm_bytes *longer[] = {&args.cookie, &args.lock.oh, &args.lock.caller_name};
        longer[i]->len = PEER_NLM_NETOBJ_MAX + 1;
        stage_demand(emu_call(spoofer, PEER_NLM_LOCK, &args, NULL), -EPROTO, "a netobj too long");
    }
    emu_client_fill(spoofer, &wanted, &args);
    args.lock.fh.len = 65;
    stage_demand(emu_call(spoofer, PEER_NLM_LOCK, &args, NULL), PEER_NLM_IS_STALE_FH,
                 "a handle of 65 bytes");
    stage_demand(emu_call(spoofer, PEER_NLM_UNLOCK, &args, NULL), GRANTED,
                 "and its unlock (R-NLM-7)");
    for (uint32_t procedure = PEER_NLM_TEST_RES; procedure <= PEER_NLM_GRANTED_RES; procedure++)
        stage_demand(emu_call_res(spoofer, (enum peer_nlm_procedure)procedure, &res), 0,
                     "an answer to nothing");
    for (uint32_t procedure = 17; procedure <= 24; procedure++) {
        if (procedure >= PEER_NLM_SHARE && procedure <= PEER_NLM_FREE_ALL)
            continue;
        stage_demand(emu_call(spoofer, (enum peer_nlm_procedure)procedure, &args, NULL), -EPROTO,
                     "a procedure that there is not");
    }
}

void emulators_identity_run(void)
{
    behind_one_address();
    for (int is_udp = 0; is_udp <= 1; is_udp++) {
        without_monitor(is_udp == 1);
        repeats(is_udp == 1);
        sends_nonsense(is_udp == 1);
    }
    spoof_answer(DENIED, "a spoofer refuses in the victim's name");
    spoof_answer(GRANTED, "a spoofer accepts in the victim's name");
}
