/*
 * recovery_frozen.c -- a server that stands still inside grace, as under SIGSTOP, docker pause or a
 * busy hypervisor.
 *
 * Clients hold locks, the server is killed and started, and stopped in its grace for longer than
 * what is left of it. Meanwhile the clients reclaim: their calls wait in its sockets. Passing
 * shows:
 *  (1) all of them are granted when it goes on, over TCP and UDP;
 *  (2) one that begins to reclaim only then is in time as well, because time in which the server
 *      stood still does not count;
 *  (3) grace ends all the same, and what nobody reclaimed is free then;
 *  (4) the log says that it stood still.
 */
#include "recovery_scene.h"

#include "peer/dial.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define FIRST UINT32_C(0x7f0a0001) /* 127.10.0.1 */

enum {
    CLIENTS = 12,
    GRACE_S = 6,
    GRACE_MS = 1000 * GRACE_S,
    FROZEN_MS = 2 * GRACE_MS,
    NO_ANSWER = 255
};

static struct client {
    char name[16];
    uint32_t host;
    struct lock_call call;
    pid_t pid; /* who reclaims for it */
} clients[CLIENTS];

static uint32_t address_of(const struct client *client)
{
    return FIRST + (uint32_t)(client - clients);
}

/* In a process of its own, because it waits for the answer. Ends with the status. */
static void reclaim(struct client *client)
{
    fflush(NULL);
    client->pid = fork();
    if (client->pid != 0)
        return;
    struct lock_call call = recovery_scene_reclaim(client->call);
    bool is_udp = (client - clients) % 2 == 1;
    int status = lock_call_once(recovery_scene_server(), address_of(client), is_udp, &call, NULL);
    _exit(status >= 0 ? status : NO_ANSWER);
}

static int await_status(const struct client *client)
{
    int status = 0;
    if (client->pid <= 0 || waitpid(client->pid, &status, 0) != client->pid || !WIFEXITED(status))
        return -1;
    return WEXITSTATUS(status) == NO_ANSWER ? -1 : WEXITSTATUS(status);
}

static bool take_locks(void)
{
    bool is_good = true;
    for (uint32_t i = 0; i < CLIENTS; i++) {
        struct client *client = &clients[i];
        snprintf(client->name, sizeof(client->name), "client%u", i);
        client->host = recovery_scene_host(address_of(client), client->name);
        client->call = recovery_scene_lock(client->name, 4711, 1, 100 * i, 10);
        is_good =
            recovery_scene_demand(address_of(client), client->call, PEER_NLM_IS_GRANTED, "LOCK") &&
            is_good;
    }
    return is_good;
}

/* The last two do not reclaim meanwhile. */
static void freeze(void)
{
    pid_t pid = recovery_scene_server()->pid;
    HARNESS_EXPECT(recovery_scene_is_in_grace(), "there is no grace to stand still in");
    (void)kill(pid, SIGSTOP);
    for (uint32_t i = 0; i < CLIENTS - 2; i++)
        reclaim(&clients[i]);
    while (recovery_scene_since_ready_ms() < FROZEN_MS)
        (void)nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL);
    (void)kill(pid, SIGCONT);
    for (uint32_t i = 0; i < CLIENTS - 2; i++) {
        int status = await_status(&clients[i]);
        HARNESS_EXPECT(status == PEER_NLM_IS_GRANTED,
                       "%s reclaimed while the server stood still: %s", clients[i].name,
                       lock_call_text(status));
    }
}

static void go_on(void)
{
    struct client *late = &clients[CLIENTS - 2], *lost = &clients[CLIENTS - 1];
    HARNESS_EXPECT(recovery_scene_is_in_grace(), "the standstill counted as grace");
    recovery_scene_demand(address_of(late), recovery_scene_reclaim(late->call), PEER_NLM_IS_GRANTED,
                          "a reclaim after the standstill");
    uint64_t end_ms = recovery_scene_await_end();
    printf("grace of %d s, stopped until %d ms: over after %" PRIu64 " ms\n", GRACE_S, FROZEN_MS,
           end_ms);
    HARNESS_EXPECT(end_ms < FROZEN_MS + 2 * GRACE_MS, "grace does not end");
    struct lock_call other = lost->call;
    other.name = "other";
    recovery_scene_await(RECOVERY_SCENE_BYSTANDER, other, PEER_NLM_IS_GRANTED,
                         "what nobody reclaimed");
    other = late->call;
    other.name = "other";
    recovery_scene_demand(RECOVERY_SCENE_BYSTANDER, other, PEER_NLM_IS_DENIED,
                          "what was reclaimed late");
    recovery_scene_await_log("this process was not scheduled");
}

int main(void)
{
    static char seconds[16];
    if (!recovery_scene_open("recovery_frozen", CLIENTS))
        return HARNESS_SKIPPED;
    snprintf(seconds, sizeof(seconds), "%d", GRACE_S);
    recovery_scene_options((const char *[]){"--grace", seconds, "--name", "nas", NULL});
    if (recovery_scene_start() && take_locks() && recovery_scene_restart(SIGKILL)) {
        freeze();
        go_on();
    }
    return recovery_scene_close();
}
