/*
 * scenario_reboot.c -- stories of clients' restarts, and of runs that are resumed; see story.h.
 *
 * A client reboots without a word (locker_reboot), and the story sends its SM_NOTIFY. The status
 * monitor at its address says the state of its host, nsm_state.
 */
#include "ask.h"
#include "claim_disk.h"
#include "machine.h"
#include "peer/peer_nsm.h"
#include "story.h"
#include "stranger.h"

#include <stdio.h>

#define EXPECT SCENARIO_EXPECT

#define GRANTED PEER_NLM_IS_GRANTED
#define DENIED  PEER_NLM_IS_DENIED
#define BLOCKED PEER_NLM_IS_BLOCKED
#define GRACE   PEER_NLM_IS_GRACE

/* Where alpha and beta are, and where nobody is. */
#define ADDRESS_OF_ALPHA  "192.0.2.11"
#define ADDRESS_OF_BETA   "192.0.2.12"
#define ADDRESS_OF_NOBODY "198.51.100.9"

static uint32_t reboot(struct world *world, enum who who)
{
    locker_reboot(world, story_locker(world, who));
    return story_locker(world, who)->state;
}

static void notify(struct world *world, const char *from, const char *name, uint32_t state)
{
    story_notice(world, from, name, state);
    story_wait_ms(world, 300);
}

static uint16_t stored(struct world *world, enum who who)
{
    return claim_disk_cells(world, story_process(world, who), story_bytes.file, true).any;
}

/* R-SEC-3: reclaimed without a state before it rebooted. A reclaim of another process with the new
 * state frees nothing; the notice with that state frees what is stamped older. */
STORY(stamp_of_a_reclaim, "a reclaim with state 0 has a stamp", 0)
{
    struct locker *delta = story_locker(world, DELTA);
    struct extent second = story_part(1, 0, 1);
    story_take(world, DELTA);
    EXPECT(story_lock(world, DELTA, second) == GRANTED);
    world->lockers->holds_reclaims = true;
    story_restart(world);
    delta->says_state = false;
    EXPECT(story_reclaim(world, DELTA, story_bytes) == GRANTED); /* with state 0 */
    delta->says_state = true;
    delta->state += 2; /* its status monitor started anew, its kernel did not */
    delta->host->nsm_state = delta->state;
    EXPECT(story_reclaim(world, DELTA, second) == GRANTED);
    EXPECT(story_status(world).locks == 2);
    world->is_unjudged = true; /* it says that it rebooted, and did not */
    notify(world, "192.0.2.14", "delta", delta->state);
    EXPECT(story_status(world).locks == 1 && stored(world, DELTA) == 0);
}

/* Two behind one address. The status monitor that answers is the first one's; what it says frees
 * nothing of the other. */
STORY(two_behind_one_address, "what the wrong status monitor says", 0)
{
    struct locker *alpha = story_locker(world, ALPHA), *beta = story_locker(world, BETA);
    struct extent of_beta = story_part(1, 0, 1);
    beta->host = alpha->host;
    story_take(world, ALPHA);
    EXPECT(story_lock(world, BETA, of_beta) == GRANTED);
    uint32_t state = reboot(world, ALPHA);
    notify(world, ADDRESS_OF_ALPHA, "alpha", state);
    EXPECT(story_status(world).locks == 1 && story_holds(world, BETA, of_beta));
    alpha->host->nsm_state = beta->state + 2;
    notify(world, ADDRESS_OF_ALPHA, "unknown", beta->state + 2);
    story_wait_ms(world, 6000);
    EXPECT(story_status(world).locks == 1);
    alpha->host->nsm_state = beta->state + 4;
    notify(world, ADDRESS_OF_ALPHA, "beta", beta->state - 2); /* older: the other one answers */
    story_wait_ms(world, 6000);
    EXPECT(story_status(world).locks == 1);
    alpha->state = alpha->host->nsm_state = beta->state; /* by chance they have the same number */
    EXPECT(story_lock(world, ALPHA, story_bytes) == GRANTED);
    story_wait_ms(world, 3700000);
    EXPECT(story_lock(world, BETA, of_beta) == GRANTED); /* so that both are calibrated */
    (void)reboot(world, ALPHA);
    notify(world, ADDRESS_OF_NOBODY, "beta", alpha->state);
    story_wait_ms(world, 6000);
    EXPECT(story_status(world).locks == 2 && story_holds(world, BETA, of_beta));
}

/* R-SEC-4: the box before alpha answers for it, with numbers that have to do with nobody. */
STORY(box_before_a_client, "a status monitor that is not the client's", 0)
{
    struct locker *alpha = story_locker(world, ALPHA);
    static const uint32_t numbers[] = {3, 90001, 103};
    world->plan.resumes = true;
    alpha->host->has_box = true;
    alpha->host->box_state = numbers[0];
    story_restart(world);
    story_take(world, ALPHA);
    for (uint32_t i = 0; i < 3; i++) {
        alpha->host->box_state = numbers[i];
        notify(world, ADDRESS_OF_NOBODY, "alpha", alpha->state + 2);
        notify(world, ADDRESS_OF_NOBODY, "alpha", numbers[i]);
        notify(world, ADDRESS_OF_ALPHA, "somebody", numbers[i] + 2);
        notify(world, ADDRESS_OF_ALPHA, "alpha.example.org", numbers[i]);
        story_restart(world);
        EXPECT(world->machine.has_resumed);
        story_wait_ms(world, 6000);
        EXPECT(story_status(world).locks == 1 && story_has(world, ALPHA));
    }
    uint32_t state = reboot(world, ALPHA);
    notify(world, ADDRESS_OF_ALPHA, "alpha", state); /* its own word */
    EXPECT(story_status(world).locks == 0);
}

/* P5: somebody watches ALPHA. A notice from elsewhere is only a reason to ask ALPHA, and what it
 * confirms is stored as its own word: after a restart that is who may go on speaking for it. */
STORY(news_of_a_messenger, "P5: who confirms a restart is who said so", 0)
{
    static struct packet packet;
    static const uint8_t priv[PEER_NSM_PRIV_LEN] = "a stranger's";
    struct peer_nsm_id id = {"alpha", "stranger-0", 200048, 1, 1};
    struct record_notice notice;
    struct bytes record;
    char address[ADDRESS_TEXT_MAX];
    stranger_add(world, 1, (struct prng){1});
    world->strangers->keys = 1;
    peer_nsm_put_mon(&packet, 1, &id, priv);
    address_text(&world->strangers->hosts[0].address, address);
    story_send(world, address, 800, &packet);
    machine_turn(world);
    story_take(world, ALPHA);
    story_wait_ms(world, 3700000);
    EXPECT(story_lock(world, ALPHA, story_bytes) == GRANTED); /* so that it is calibrated */
    notify(world, ADDRESS_OF_NOBODY, "alpha", reboot(world, ALPHA));
    EXPECT(story_status(world).locks == 0);
    record = disk_at(&world->disk, RECORD_NOTICE, 0);
    EXPECT(record.len > 0 && record_get_notice(record, 0, &notice) == RECORD_GOOD);
    address_text(&notice.address, address);
    EXPECT(strcmp(address, ADDRESS_OF_ALPHA) == 0);
}

/* The same when others wait, and it was silent for long. */
STORY(box_and_a_waiter, "the same, asked because somebody waits", 0)
{
    struct locker *alpha = story_locker(world, ALPHA);
    alpha->host->has_box = true;
    alpha->host->box_state = 90001;
    story_take(world, ALPHA);
    story_wait_ms(world, 301000);
    story_wait_for(world, BETA);
    for (uint32_t i = 0; i < 6; i++) {
        story_wait_ms(world, 10000);
        EXPECT(story_has(world, ALPHA) && story_status(world).locks == 1);
    }
    EXPECT(story_is_waiting(world, BETA));
}

static void send_raw(struct world *world, enum peer_nlm_procedure procedure, uint32_t xid,
                     uint32_t state)
{
    story_raw(world, &(struct story_raw){.procedure = procedure,
                                         .name = "alpha",
                                         .from = ADDRESS_OF_ALPHA,
                                         .file = 2,
                                         .svid = 77,
                                         .len = 1,
                                         .xid = xid,
                                         .state = state,
                                         .wait_ms = 100});
}

/* R-DRC-1: a reboot that only its status monitor confirmed: an UNLOCK of the new life that looks
 * like one of the old life is executed. */
STORY(confirmed_reboot_forgets, "answers of the old life", 0)
{
    struct locker *alpha = story_locker(world, ALPHA);
    uint32_t state = alpha->state;
    world->is_unjudged = true;
    send_raw(world, PEER_NLM_LOCK, 1, state);
    send_raw(world, PEER_NLM_UNLOCK, 2, 0);
    send_raw(world, PEER_NLM_LOCK, 3, state);
    EXPECT(story_status(world).locks == 1);
    alpha->host->nsm_state = state + 2;
    notify(world, ADDRESS_OF_NOBODY, "alpha", state + 2);
    story_wait_ms(world, 1000);
    EXPECT(story_status(world).locks == 0);
    send_raw(world, PEER_NLM_LOCK, 1, state + 2);
    EXPECT(story_status(world).locks == 1);
    send_raw(world, PEER_NLM_UNLOCK, 2, 0);
    EXPECT(story_status(world).locks == 0);
}

/* ---- runs that are resumed ---- */

/* ---- many questions ---- */

static void lock_as(struct world *world, uint32_t number)
{
    char name[16];
    (void)snprintf(name, sizeof name, "n%u", number);
    story_raw(world, &(struct story_raw){.procedure = PEER_NLM_LOCK,
                                         .name = name,
                                         .from = ADDRESS_OF_ALPHA,
                                         .svid = 1,
                                         .offset = 100 + number,
                                         .len = 1,
                                         .state = 1001,
                                         .wait_ms = 10});
}

/* More clients than may be asked at a time, and nobody answers: nothing changes for it. */
STORY(many_questions, "more than can be asked at a time", 0)
{
    enum { MANY = 300 };
    world->is_unjudged = true;
    world->plan.clients_max = 1000;
    world->plan.limits_vary = true;
    world->plan.resumes = true;
    story_restart(world);
    for (uint32_t i = 0; i < MANY; i++)
        lock_as(world, i);
    EXPECT(story_status(world).locks == MANY);
    story_be(world, ALPHA, CALLEE_SILENT);
    for (uint32_t i = 0; i < MANY; i++) {
        char name[16];
        (void)snprintf(name, sizeof name, "n%u", i);
        story_notice(world, ADDRESS_OF_ALPHA, name, 999); /* older: its host is asked */
        story_wait_ms(world, 10);
    }
    for (uint32_t i = 0; i < 40; i++) /* the same one, again and again: not each time */
        story_notice(world, ADDRESS_OF_ALPHA, "n0", 901 + 2 * i);
    story_restart(world);
    EXPECT(world->machine.has_resumed);
    for (uint32_t i = 0; i < MANY; i++) {
        char name[16];
        (void)snprintf(name, sizeof name, "n%u", i);
        story_notice(world, ADDRESS_OF_NOBODY, name, 1003); /* its own host is asked */
        story_wait_ms(world, 1);
    }
    story_wait_ms(world, 30000);
    EXPECT(story_status(world).locks == MANY);
}
