/*
 * recovery_again.c -- starts that follow on something else than one clean crash.
 *
 * Passing proves:
 *  (1) SIGTERM keeps every record, and the next start recovers as after a crash: the state grows,
 *      clients are told, grace stands (R-GRACE-7);
 *  (2) a crash inside grace starts over: everything is still stored, the state grows again, clients
 *      are told again, and what was reclaimed before must be reclaimed once more (R-GRACE-6);
 *  (3) crashes at any moment of a start lose nothing, and no state is ever said twice (R-PER-6);
 *  (4) a damaged record is reported by name and makes the store incomplete (R-PER-5, D16): resume
 *      is refused and the reason said, the state jumps to the clock, a lock that the store has lost
 *      is given back to the client that reclaims it, and grace lasts to its end although everything
 *      that is stored was reclaimed at once;
 *  (5) then the store is complete again: the next start resumes.
 */
#include "lock_dump.h"
#include "recovery_scene.h"

#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define FIRST_ADDRESS UINT32_C(0x7f0f0001) /* 127.15.0.1 */
#define CLIENTS       4
#define LOCKS         3 /* of each */
#define ALL           (CLIENTS * LOCKS)
#define SPAWNS        8
#define LONG_GRACE    "60"
#define SHORT_GRACE   "8"
#define SHORT_MS      8000

static uint32_t hosts[CLIENTS];
static uint32_t highest; /* state that anybody was told */

static struct lock_call lock_of(uint32_t client, uint32_t lock)
{
    static const char *const names[CLIENTS] = {"a", "b", "c", "unlucky"};
    return recovery_scene_lock(names[client], 4711 + lock, 1 + client, lock * UINT64_C(10), 5);
}

static void demand_reclaims(uint32_t client, uint32_t first, uint32_t end)
{
    for (uint32_t i = first; i < end; i++)
        recovery_scene_demand(FIRST_ADDRESS + client, recovery_scene_reclaim(lock_of(client, i)),
                              PEER_NLM_IS_GRANTED, "a reclaim");
}

static void demand_stored(const char *when)
{
    struct lock_dump dump = {0};
    if (lock_dump_read(recovery_scene_server()->store, NULL, NULL, &dump))
        HARNESS_EXPECT(dump.locks == ALL && dump.clients == CLIENTS, "%s: %u locks of %u clients",
                       when, dump.locks, dump.clients);
}

/* What a start says, and that everybody hears of it. */
static void demand_recovery(const char *when)
{
    const struct harness_server *server = recovery_scene_server();
    HARNESS_EXPECT(server->state > highest && server->state % 2 == 1, "%s: state %u after %u", when,
                   server->state, highest);
    HARNESS_EXPECT(server->locks == ALL && server->grace_s == 60, "%s: %u locks, grace %u s", when,
                   server->locks, server->grace_s);
    highest = server->state;
    for (uint32_t i = 0; i < CLIENTS; i++)
        recovery_scene_await_told(hosts[i]);
}

static void demand_lifted(const char *when)
{
    uint64_t end_ms = recovery_scene_await_end();
    HARNESS_EXPECT(end_ms < 60000, "%s: grace was not lifted: %" PRIu64 " ms", when, end_ms);
}

/* ---- (1), (2) ---- */

static bool stop_and_crash(void)
{
    int code = harness_stop(recovery_scene_server(), SIGTERM);
    HARNESS_EXPECT(code == 0, "SIGTERM: the server ended with %d", code);
    demand_stored("after SIGTERM");
    if (!recovery_scene_start())
        return false;
    demand_recovery("after SIGTERM");
    demand_reclaims(0, 0, LOCKS);
    demand_reclaims(1, 0, 1);
    HARNESS_EXPECT(recovery_scene_is_in_grace(), "grace is over before all was reclaimed");
    (void)harness_stop(recovery_scene_server(), SIGKILL);
    demand_stored("after a crash in grace");
    if (!recovery_scene_start())
        return false;
    demand_recovery("after a crash in grace");
    demand_reclaims(1, 1, LOCKS);
    demand_reclaims(2, 0, LOCKS);
    demand_reclaims(3, 0, LOCKS);
    HARNESS_EXPECT(recovery_scene_is_in_grace(), "what the run before was told counts in this one");
    demand_reclaims(0, 0, LOCKS);
    demand_reclaims(1, 0, 1);
    demand_lifted("after a crash in grace");
    return true;
}

/* ---- (3) ---- */

static void note_told(void)
{
    for (uint32_t i = 0; i < CLIENTS; i++) {
        uint32_t told = recovery_hosts_look(hosts[i]).told_state;
        highest = told > highest ? told : highest;
    }
}

static bool crash_while_starting(void)
{
    uint64_t seed = harness_seed();
    (void)harness_stop(recovery_scene_server(), SIGKILL);
    for (uint32_t i = 0; i < SPAWNS; i++) {
        long wait_ns = (long)(harness_random(&seed) % 60000000); /* about as long as a start */
        harness_spawn(recovery_scene_server());
        (void)nanosleep(&(struct timespec){.tv_nsec = wait_ns}, NULL);
        (void)harness_stop(recovery_scene_server(), SIGKILL);
        note_told();
        demand_stored("after a crash while starting");
    }
    if (!recovery_scene_start())
        return false;
    demand_recovery("after crashes while starting");
    for (uint32_t i = 0; i < CLIENTS; i++)
        demand_reclaims(i, 0, LOCKS);
    demand_lifted("after crashes while starting");
    return true;
}

/* ---- (4), (5) ---- */

/* Changes one byte of the lock with this oh, wherever it lies in the file: LMDB leaves old pages
 * behind, which nobody reads. */
static bool damage(const char *oh)
{
    char path[256];
    struct stat status;
    uint32_t found = 0;
    size_t len = strlen(oh);
    snprintf(path, sizeof(path), "%s/data.mdb", recovery_scene_server()->store);
    int fd = open(path, O_RDWR | O_CLOEXEC);
    if (!HARNESS_EXPECT(fd >= 0 && fstat(fd, &status) == 0, "%s cannot be opened", path))
        return false;
    size_t size = (size_t)status.st_size;
    uint8_t *bytes = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    if (!HARNESS_EXPECT(bytes != MAP_FAILED, "%s cannot be mapped", path))
        return false;
    for (uint8_t *at = bytes; (at = memmem(at, size - (size_t)(at - bytes), oh, len)); found++)
        *at ^= 1;
    munmap(bytes, size);
    return HARNESS_EXPECT(found > 0, "no lock of %s in %s", oh, path);
}

static void demand_incomplete(uint64_t wall_s)
{
    const struct harness_server *server = recovery_scene_server();
    HARNESS_EXPECT(server->state >= wall_s && server->state % 2 == 1,
                   "state %u is not beyond the clock, %" PRIu64, server->state, wall_s);
    HARNESS_EXPECT(server->grace_s == SHORT_MS / 1000 && server->locks == ALL - 1,
                   "%u locks, grace %u s", server->locks, server->grace_s);
    recovery_scene_await_log("skipped a damaged record; the store counts as incomplete");
    HARNESS_EXPECT(harness_log_contains(server, "kind=\"lock\""),
                   "the log does not name the damaged record");
    recovery_scene_await_log("--recovery resume is not possible this time");
    recovery_scene_await_log("the store may have lost records");
}

static void incomplete(void)
{
    static const char *const options[] = {"--grace", SHORT_GRACE, "--recovery", "resume",
                                          "--name",  "nas",       NULL};
    uint64_t wall_s = (uint64_t)time(NULL);
    (void)harness_stop(recovery_scene_server(), SIGKILL);
    recovery_scene_options(options);
    if (!damage(lock_call_oh(&(struct lock_call){.svid = 4712, .name = "unlucky"})) ||
        !recovery_scene_start())
        return;
    demand_incomplete(wall_s);
    for (uint32_t i = 0; i < CLIENTS; i++) {
        recovery_scene_await_told(hosts[i]);
        demand_reclaims(i, 0, LOCKS);
    }
    uint64_t end_ms = recovery_scene_await_end();
    printf("incomplete store, grace %s s: over after %" PRIu64 " ms\n", SHORT_GRACE, end_ms);
    HARNESS_EXPECT(end_ms + recovery_scene_slack_ms() >= SHORT_MS,
                   "the grace of an incomplete store was lifted");
    uint32_t before = recovery_scene_server()->state;
    if (!recovery_scene_restart(SIGKILL))
        return;
    const struct harness_server *server = recovery_scene_server();
    HARNESS_EXPECT(server->state == before && server->grace_s == 0 && server->locks == ALL,
                   "not resumed: state %u after %u, grace %u s, %u locks", server->state, before,
                   server->grace_s, server->locks);
    struct lock_call test = lock_of(3, 1);
    test.procedure = PEER_NLM_TEST;
    recovery_scene_demand(RECOVERY_SCENE_BYSTANDER, test, PEER_NLM_IS_DENIED,
                          "TEST of the lock that was lost and reclaimed");
}

int main(void)
{
    static const char *const options[] = {"--grace", LONG_GRACE, "--name", "nas", NULL};
    if (!recovery_scene_open("recovery_again", CLIENTS))
        return HARNESS_SKIPPED;
    recovery_scene_options(options);
    for (uint32_t i = 0; i < CLIENTS; i++)
        hosts[i] = recovery_scene_host(FIRST_ADDRESS + i, lock_of(i, 0).name);
    if (recovery_scene_start()) {
        for (uint32_t i = 0; i < ALL; i++)
            recovery_scene_demand(FIRST_ADDRESS + i / LOCKS, lock_of(i / LOCKS, i % LOCKS),
                                  PEER_NLM_IS_GRANTED, "a lock");
        highest = recovery_scene_server()->state;
        if (stop_and_crash() && crash_while_starting())
            incomplete();
    }
    return recovery_scene_close();
}
