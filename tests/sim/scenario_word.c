/*
 * scenario_word.c -- stories of who may say that a host has rebooted (R-SEC-3, R-SEC-4, D7); see
 * story.h.
 */
#include "machine.h"
#include "story.h"

#include <stdio.h>

#define EXPECT SCENARIO_EXPECT

#define ADDRESS_OF_ALPHA "192.0.2.11"
#define ADDRESS_OF_GAMMA "192.0.2.13"

/* The n-th name of a host that has very many: it locks in state 1001, and gives it back. */
static void call_as(struct world *world, const char *address, uint32_t n)
{
    char name[16];
    (void)snprintf(name, sizeof name, "n%u", n);
    struct story_raw call = {.procedure = PEER_NLM_LOCK,
                             .name = name,
                             .from = address,
                             .file = 3,
                             .svid = 1,
                             .len = 1,
                             .state = 1001};
    story_raw(world, &call);
    call.procedure = PEER_NLM_UNLOCK;
    call.wait_ms = 10; /* its lock never reaches the disk, where nobody would know it */
    story_raw(world, &call);
}

/* Its names say one after another that they are in an older state: its host is asked. */
static void ask_about_names(struct world *world, const char *address, uint32_t count)
{
    world->plan.clients_max = 1000;
    world->plan.limits_vary = true;
    world->plan.verifies = true;
    story_restart(world);
    for (uint32_t n = 0; n < count; n++)
        call_as(world, address, n);
    EXPECT(story_status(world).clients >= count && story_status(world).locks == 0);
    for (uint32_t n = 0; n < count; n++) {
        char name[16];
        (void)snprintf(name, sizeof name, "n%u", n);
        story_notice(world, address, name, 999);
        story_wait_ms(world, 10);
    }
}

/* A17: one host with very many names, and another one whose reboot is to be looked into. */
STORY(names_of_one_host, "questions about very many names of one host", 0)
{
    story_be(world, GAMMA, CALLEE_SILENT);
    ask_about_names(world, ADDRESS_OF_GAMMA, 300);
    story_take(world, ALPHA);
    story_wait_for(world, BETA);
    locker_reboot(world, story_locker(world, ALPHA));
    story_notice(world, ADDRESS_OF_ALPHA, "alpha", story_locker(world, ALPHA)->state);
    story_wait_ms(world, 300);
    EXPECT(story_has(world, BETA));
}

/* R-SEC-4: under --verify-notify always nothing is believed because nobody could be asked. */
STORY(no_room_to_verify, "what cannot be verified is not believed", 0)
{
    story_be(world, ALPHA, CALLEE_SILENT);
    ask_about_names(world, ADDRESS_OF_ALPHA, 20);
    story_take(world, ALPHA);
    story_notice(world, ADDRESS_OF_ALPHA, "alpha", story_locker(world, ALPHA)->state + 2);
    story_wait_ms(world, 300);
    EXPECT(story_status(world).locks == 1);
    EXPECT(story_lock(world, BETA, story_bytes) == PEER_NLM_IS_DENIED);
}
