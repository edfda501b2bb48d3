/*
 * scenario_rare.c -- stories of what seeds meet rarely or never; see story.h.
 */
#include "ask.h"
#include "mail.h"
#include "story.h"

#define EXPECT SCENARIO_EXPECT

#define GRANTED PEER_NLM_IS_GRANTED

/* A client without a status monitor, which says FREE_ALL when it boots, and counts its calls from 1
 * then: its second FREE_ALL looks like a late copy of the first one. */
static void play_free_all_of_two_boots(struct world *world)
{
    struct locker *beta = story_locker(world, BETA);
    struct process *process = story_process(world, BETA);
    beta->kind = LOCKER_PCNFS;
    beta->version = 3;
    beta->frees_all = true;
    EXPECT(story_lock(world, BETA, story_bytes) == GRANTED);
    locker_reboot(world, beta);
    struct ask *first = process->ask;
    story_wait_ms(world, 100);
    EXPECT(process->ask == NULL && story_status(world).locks == 0);
    mail_arrive_late(world, first, beta->port); /* nothing that it says is untrue */
    EXPECT(story_lock(world, BETA, story_bytes) == GRANTED);
    mail_arrive_late(world, first, beta->port);
    mail_arrive_late(world, first, beta->port + 1);
    story_wait_ms(world, 100);
    EXPECT(story_status(world).locks == 1 && story_has(world, BETA)); /* P2 */
    beta->xid_count = first->cookie[3] - 1U;
    locker_reboot(world, beta);
    EXPECT(process->ask != NULL && process->ask->xid == first->xid);
    story_wait_ms(world, 60000);
    EXPECT(process->ask != NULL && story_status(world).locks == 1); /* nor is it answered */
    story_wait_ms(world, 65000);
    EXPECT(process->ask == NULL && story_status(world).locks == 0); /* P4 */
}

const struct scenario scenario_rare_all[] = {
    {"free-all-of-two-boots", "a FREE_ALL looks like a late copy of the one before",
     play_free_all_of_two_boots, 0},
};
const uint32_t scenario_rare_count = sizeof scenario_rare_all / sizeof scenario_rare_all[0];
