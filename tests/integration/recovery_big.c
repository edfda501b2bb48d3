/*
 * recovery_big.c -- a start with as many locks stored as there may be.
 *
 * Passing proves that a server that was killed with so many locks starts with all of them, in both
 * ways: resuming, and with grace. The time from the start of the process to readiness is printed
 * beside its goal, with the processor time in it: on a busy machine the second says more. Only a
 * start of more than a minute fails.
 */
#include "lock_bulk.h"
#include "recovery_scene.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define FIRST_ADDRESS UINT32_C(0x7f110001) /* 127.17.0.1 */
#define PER_CLIENT    100000
#define PER_FILE      1000

static uint32_t lock_count;

static struct lock_call hold(uint32_t number)
{
    static char name[32];
    snprintf(name, sizeof(name), "big%u", number / PER_CLIENT);
    return recovery_scene_lock(name, 1 + number % 500, 1 + number / PER_FILE,
                               (uint64_t)(number % PER_FILE) * 4, 2);
}

static void fill(void)
{
    uint64_t start_ns = dial_now_ns();
    for (uint32_t first = 0; first < lock_count; first += PER_CLIENT) {
        uint32_t left = lock_count - first;
        struct lock_bulk bulk = {.what = "LOCK",
                                 .source = FIRST_ADDRESS + first / PER_CLIENT,
                                 .first = first,
                                 .count = left < PER_CLIENT ? left : PER_CLIENT,
                                 .call = hold};
        (void)lock_bulk_run(recovery_scene_server(), &bulk);
        HARNESS_EXPECT(bulk.by_status[PEER_NLM_IS_GRANTED] == bulk.count, "%u of %u locks granted",
                       bulk.by_status[PEER_NLM_IS_GRANTED], bulk.count);
    }
    printf("%u locks taken in %" PRIu64 " ms\n", lock_count,
           (dial_now_ns() - start_ns) / RECOVERY_SCENE_MS);
}

/* The processor time that the server has used by now, in ms; 0: unknown. */
static uint64_t used_ms(pid_t pid)
{
    char path[64], line[512] = "";
    unsigned long user = 0, kernel = 0;
    snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    FILE *file = fopen(path, "re");
    if (!file)
        return 0;
    bool is_read = fgets(line, sizeof(line), file) != NULL;
    fclose(file);
    const char *at = is_read ? strrchr(line, ')') : NULL; /* the end of the program's name */
    if (!at ||
        sscanf(at, ") %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", &user, &kernel) != 2)
        return 0;
    return (user + kernel) * 1000 / (unsigned long)sysconf(_SC_CLK_TCK);
}

static void start(const char *how, uint32_t grace_s)
{
    struct harness_server *server = recovery_scene_server();
    struct lock_call new = recovery_scene_lock("other", 1, 1, PER_FILE * 4, 1);
    uint64_t start_ns = dial_now_ns();
    harness_spawn(server);
    if (!recovery_scene_await_log("holdfast: ready on port"))
        return;
    uint64_t took_ms = (dial_now_ns() - start_ns) / RECOVERY_SCENE_MS;
    uint64_t cpu_ms = used_ms(server->pid);
    if (!harness_wait_ready(server))
        return;
    printf("%u stored locks, %s: ready after %" PRIu64
           " ms (the goal for 1,000,000: under 5,000), %" PRIu64
           " ms of them on a processor, %" PRIu64 " MiB\n",
           server->locks, how, took_ms, cpu_ms, harness_rss_kib(server) / 1024);
    HARNESS_EXPECT(server->locks == lock_count && server->grace_s == grace_s,
                   "%s: %u locks of %u, grace %u s", how, server->locks, lock_count,
                   server->grace_s);
    recovery_scene_demand(RECOVERY_SCENE_BYSTANDER, new,
                          grace_s > 0 ? PEER_NLM_IS_GRACE : PEER_NLM_IS_GRANTED, "a new lock");
    new.procedure = PEER_NLM_UNLOCK;
    recovery_scene_demand(RECOVERY_SCENE_BYSTANDER, new, PEER_NLM_IS_GRANTED, "UNLOCK");
    recovery_scene_demand(FIRST_ADDRESS, recovery_scene_reclaim(hold(0)), PEER_NLM_IS_GRANTED,
                          "a reclaim");
    (void)harness_stop(recovery_scene_server(), SIGKILL);
}

int main(void)
{
    static const char *const resuming[] = {
        "--grace", "60", "--max-locks", "1000100", "--recovery", "resume", "--name", "nas", NULL};
    static const char *const reclaiming[] = {"--grace", "60",  "--max-locks", "1000100",
                                             "--name",  "nas", NULL};
    lock_count = harness_number("HOLDFAST_BIG_LOCKS", 50000);
    if (!recovery_scene_open("recovery_big", 1))
        return HARNESS_SKIPPED;
    recovery_scene_options(resuming);
    if (recovery_scene_start()) {
        fill();
        (void)harness_stop(recovery_scene_server(), SIGKILL);
        start("resume", 0);
        recovery_scene_options(reclaiming);
        start("reclaim", 60);
    }
    return recovery_scene_close();
}
