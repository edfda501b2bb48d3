/*
 * scenario_program.c -- stories of programs on the server's machine (program.h) and of files that
 * are removed (vanish.h); see story.h.
 */
#include "machine.h"
#include "program.h"
#include "story.h"
#include "vanish.h"

#define EXPECT SCENARIO_EXPECT

#define GRANTED PEER_NLM_IS_GRANTED
#define DENIED  PEER_NLM_IS_DENIED

enum { MANY = 17000 }; /* more than LOOSE_MAX of core/mirror.c */

/* Starts the server anew in a world with programs, and ends grace. */
static struct local_program *with_programs(struct world *world)
{
    world->plan.has_programs = true;
    program_init(world);
    world->programs->count = PROGRAM_MAX;
    story_restart(world);
    return world->programs->at;
}

static uint16_t held_cells(const struct world *world)
{
    return world->programs->files[story_bytes.file].server.any;
}

STORY(program_in_the_way, "a program is in the way as a client is: LOCK, TEST, wait", 0)
{
    struct local_program *program = with_programs(world);
    struct extent byte = story_part(story_bytes.file, 3, 1);
    EXPECT(program_takes(world, &program[1], &byte, false));
    EXPECT(story_lock(world, ALPHA, story_bytes) == DENIED);
    story_do(world, ALPHA, PEER_NLM_TEST, false);
    EXPECT(world->lockers->answered == DENIED);
    EXPECT(world->lockers->heard.svid == PROGRAM_PID + 1 && world->lockers->heard.offset == 3);
    story_wait_for(world, BETA);
    EXPECT(story_status(world).local_waiting == 1);
    story_wait_ms(world, 5000);
    EXPECT(!story_has(world, BETA));
    program_gives_back(world, &program[1], &byte);
    story_wait_ms(world, 1000);
    EXPECT(story_has(world, BETA) && story_status(world).local_waiting == 0); /* P4 */
    EXPECT(!program_takes(world, &program[1], &byte, true));
    story_give_back(world, BETA);
    EXPECT(program[1].held[story_bytes.file].any != 0 && held_cells(world) == 0);
}

STORY(program_waits_for_the_disk, "bytes are given back when that is durable", 0)
{
    struct local_program *program = with_programs(world);
    story_take(world, ALPHA);
    EXPECT(!program_takes(world, &program[0], &story_bytes, true));
    world->machine.holds_commits = true;
    story_ask(world, ALPHA, PEER_NLM_UNLOCK, &story_bytes, false);
    story_wait_ms(world, 1000);
    EXPECT(program[0].is_waiting);
    world->machine.holds_commits = false;
    machine_commit(world, world->disk.ticket);
    story_wait_ms(world, 100);
    EXPECT(!program[0].is_waiting);
}

STORY(program_was_faster, "what a program takes while the server is down is no secret", 0)
{
    struct local_program *program = with_programs(world);
    struct program_file *file = &world->programs->files[story_bytes.file];
    struct extent byte = story_part(story_bytes.file, 3, 1);
    story_take(world, ALPHA);
    machine_crash(world, "killed by the story", false);
    EXPECT(held_cells(world) == 0 && program_takes(world, &program[0], &byte, false));
    while (!world->machine.is_ready)
        story_wait_ms(world, 100);
    story_wait_ms(world, 5000);
    EXPECT(file->is_reported && story_status(world).local_refused == 1);
    EXPECT(story_has(world, ALPHA)); /* it has reclaimed that */
    program_gives_back(world, &program[0], &byte);
    story_wait_ms(world, 3000);
    EXPECT(story_status(world).local_refused == 0 && held_cells(world) != 0);
    EXPECT(!program_takes(world, &program[0], &byte, false));
    story_give_back(world, ALPHA);
    EXPECT(!file->is_open && held_cells(world) == 0);
}

STORY(program_and_many_pieces, "a file is held as a whole, and in pieces again", 0)
{
    struct local_program *program = with_programs(world);
    struct extent free_byte = story_part(0, 1, 1);
    world->plan.has_few_pieces = true;
    for (uint32_t i = 0; i < PROGRAM_FEW + 1; i++)
        EXPECT(story_lock(world, ALPHA, story_part(0, 2 * i, 1)) == GRANTED);
    EXPECT(held_cells(world) == UINT16_MAX);
    EXPECT(!program_takes(world, &program[0], &free_byte, false));
    story_ask(world, ALPHA, PEER_NLM_UNLOCK, &(struct extent){.offset = 4, .len = 1}, false);
    story_wait_ms(world, 1000);
    EXPECT(program_takes(world, &program[0], &free_byte, false));
    program_gives_back(world, &program[0], &free_byte);
    story_give_back(world, ALPHA);
    story_ask(world, ALPHA, PEER_NLM_UNLOCK, &(struct extent){0}, false);
    story_wait_ms(world, 1000);
    EXPECT(held_cells(world) == 0);
}

static void request(struct world *world, enum request_kind kind)
{
    const struct process *process = story_process(world, DELTA);
    struct peer_nlm_bytes fh = locker_handle(0);
    const struct request asked = {.kind = kind,
                                  .lock = {.caller_name = bytes_of_text(process->locker->name),
                                           .fh = {fh.at, fh.len},
                                           .offset = 9,
                                           .len = 1,
                                           .start = 9,
                                           .end = 9,
                                           .exclusive = true,
                                           .svid = process->svid,
                                           .version = 4,
                                           .state = process->locker->state}};
    const struct peer from = {.address = process->locker->host->address,
                              .local = process->locker->host->local,
                              .port = 800,
                              .transport = TRANSPORT_UDP};
    const struct core_input input = {.kind = CORE_REQUEST,
                                     .now_ns = machine_now_ns(world),
                                     .wall_ns = world_wall_ns(world),
                                     .from = &from,
                                     .request = &asked};
    struct core_answer answer;
    core_step(world->machine.core, &input, &answer);
}

STORY(more_released_than_noted, "more is released in a batch than can be noted", 0)
{
    world->plan.batch_puts_max = 4 * MANY;
    struct local_program *program = with_programs(world);
    story_take(world, ALPHA);
    for (uint32_t i = 0; i < MANY; i++) {
        request(world, REQUEST_NLM_LOCK);
        request(world, REQUEST_NLM_UNLOCK);
    }
    EXPECT((held_cells(world) & 1U << 9) != 0);
    machine_turn(world);
    story_wait_ms(world, 2000);
    EXPECT(held_cells(world) == locker_cells(story_bytes.offset, story_bytes.len));
    EXPECT(program_takes(world, &program[0], &(struct extent){.offset = 9, .len = 1}, false));
}

STORY(file_vanishes, "a file is removed: what was held goes, who waits is answered", 0)
{
    story_take(world, ALPHA);
    EXPECT(story_lock(world, DELTA, story_part(story_bytes.file, 9, 1)) == GRANTED);
    EXPECT(story_lock(world, DELTA, story_part(1, 9, 1)) == GRANTED);
    story_wait_for(world, BETA);
    EXPECT(vanish_file(world, story_bytes.file));
    story_wait_ms(world, 1000);
    EXPECT(!story_has(world, ALPHA) && story_has(world, BETA));
    EXPECT(story_status(world).locks == 2 && story_holds(world, DELTA, story_part(1, 9, 1)));
    story_restart(world);
    EXPECT(story_status(world).locks == 2);
    story_give_back(world, BETA);
    EXPECT(story_status(world).locks == 1);
}
