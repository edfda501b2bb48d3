/*
 * pair.c -- see pair.h.
 */
#include "pair.h"

#include "postgres/cluster.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define CLIENT_STATE 3
#define OWNER_SVID   1
#define OTHER_SVID   2

struct harness_server pair_servers[NODES_COUNT];
bool pair_resumes;
bool pair_is_hasty;

void pair_pause_briefly(void)
{
    struct timespec pause = {.tv_nsec = 20000000};
    nanosleep(&pause, NULL);
}

struct lock_call pair_call_of(uint32_t client, uint32_t file, enum peer_nlm_procedure procedure)
{
    static const char *const names[] = {"client0", "client1", "client2", "client3"};
    return (struct lock_call){.procedure = procedure,
                              .name = names[client],
                              .svid = client == 0 ? OWNER_SVID : OTHER_SVID,
                              .file = file,
                              .offset = 100,
                              .len = 10,
                              .exclusive = true,
                              .state = CLIENT_STATE};
}

/* One call of a client to an address; the status, or a negative errno. */
int pair_ask(uint32_t client, uint32_t address, uint16_t port, const struct lock_call *call)
{
    static struct packet packet, answer;
    struct packet_reply reply;
    struct dial_route route = {.is_udp = false, .server = dial_endpoint_v4(address, port)};
    route.source = dial_endpoint_v4(NODES_CLIENT + client, 0);
    lock_call_put(&packet, call);
    int result = dial_call(&route, &packet, PAIR_PATIENCE_MS, &answer, &reply);
    return result < 0 ? result : lock_call_status(call, &reply, NULL);
}

void pair_demand(uint32_t client, uint32_t node, const struct lock_call *call, int expected)
{
    int status = pair_ask(client, nodes_address(node), pair_servers[node].port, call);
    HARNESS_EXPECT(status == expected, "client %u, file %u at node %u: %s, expected %s", client,
                   call->file, node, status < 0 ? strerror(-status) : lock_call_text(status),
                   lock_call_text(expected));
}

/* The same, as long as the answer is another one: until grace is over, or a lock is given up. */
void pair_demand_after(uint32_t client, uint32_t node, const struct lock_call *call, int other,
                       int expected)
{
    uint64_t deadline_ns = dial_now_ns() + PAIR_PATIENCE_NS;
    while (pair_ask(client, nodes_address(node), pair_servers[node].port, call) == other &&
           dial_now_ns() < deadline_ns)
        pair_pause_briefly();
    pair_demand(client, node, call, expected);
}

static const char *control_of(uint32_t node)
{
    static const char *const names[NODES_COUNT] = {"control.0", "control.1", "control.2"};
    return harness_path(names[node]);
}

static void prepare(uint32_t node, const char *store, bool is_standby, const char *hook)
{
    struct harness_server *server = &pair_servers[node];
    uint32_t count = 0;
    *server = (struct harness_server){.store = store};
    server->extra[count++] = "--notify-timeout";
    server->extra[count++] = "2";
    server->extra[count++] = "--grace";
    server->extra[count++] = "15";
    server->extra[count++] = "--control";
    server->extra[count++] = control_of(node);
    if (is_standby)
        server->extra[count++] = "--standby";
    if (pair_resumes) {
        server->extra[count++] = "--recovery";
        server->extra[count++] = "resume";
    }
    if (pair_is_hasty) {
        server->extra[count++] = "--store-timeout";
        server->extra[count++] = "1";
    }
    if (hook) {
        server->extra[count++] = "--takeover-hook";
        server->extra[count++] = hook;
    }
}

/* A command of the operator: its output. */
FILE *pair_command_at(uint32_t node, const char *words)
{
    char command[1024];
    (void)snprintf(command, sizeof(command), "\"$HOLDFAST\" %s --control '%s'", words,
                   control_of(node));
    return popen(command, "r");
}

bool pair_start_active(uint32_t node, const char *store)
{
    prepare(node, store, false, NULL);
    nodes_spawn(node, &pair_servers[node]);
    return harness_wait_ready(&pair_servers[node]);
}

void pair_start_standby(uint32_t node, const char *store, const char *hook)
{
    prepare(node, store, true, hook);
    nodes_spawn(node, &pair_servers[node]);
    uint64_t deadline_ns = dial_now_ns() + PAIR_PATIENCE_NS;
    while (!harness_log_contains(&pair_servers[node], "holdfast: standing by") &&
           dial_now_ns() < deadline_ns)
        pair_pause_briefly();
    HARNESS_EXPECT(dial_now_ns() < deadline_ns, "node %u does not stand by", node);
}

/* The standby serves. How long that took is said. */
bool pair_wait_taken_over(uint32_t node, const char *why)
{
    pair_servers[node].start_ns = dial_now_ns();
    bool is_ready = harness_wait_ready(&pair_servers[node]);
    printf("%s: node %u serves after %" PRIu64 " ms (state %u, %u clients, %u locks)\n", why, node,
           pair_servers[node].start_ns / 1000000, pair_servers[node].state,
           pair_servers[node].clients, pair_servers[node].locks);
    return is_ready;
}

void pair_take_locks(uint32_t node)
{
    for (uint32_t file = 0; file < PAIR_LOCKS; file++) {
        struct lock_call lock = pair_call_of(0, file, PEER_NLM_LOCK);
        pair_demand(0, node, &lock, PEER_NLM_IS_GRANTED);
    }
}

int pair_wait_exit(uint32_t node)
{
    uint64_t deadline_ns = dial_now_ns() + PAIR_PATIENCE_NS;
    while (harness_is_alive(&pair_servers[node]) && dial_now_ns() < deadline_ns)
        pair_pause_briefly();
    return harness_stop(&pair_servers[node], 0);
}

void pair_demand_replaced(uint32_t node)
{
    int code = pair_wait_exit(node);
    HARNESS_EXPECT(code == 76, "the old server ended with %d", code);
    HARNESS_EXPECT(harness_log_contains(&pair_servers[node], "another server has taken over"),
                   "its log does not say why");
}

void pair_stop_all(void)
{
    for (uint32_t node = 0; node < NODES_COUNT; node++)
        if (pair_servers[node].pid > 0)
            HARNESS_EXPECT(harness_stop(&pair_servers[node], SIGTERM) == 0, "node %u and SIGTERM",
                           node);
}

void pair_end_session_of(const struct cluster *cluster, const struct harness_server *server)
{
    /* `holdfast` becomes holdfastd by exec, so the pid is the one in the name of the session. */
    char sql[256];
    snprintf(sql, sizeof(sql),
             "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity "
             "WHERE application_name LIKE 'holdfast %% %d %%'",
             (int)server->pid);
    const char *count = cluster_ask(cluster, "postgres", sql);
    HARNESS_EXPECT(count && strcmp(count, "1") == 0, "%s sessions ended", count ? count : "no");
}

/* The pid in a file, when it is there. */
int pair_wait_for_pid(const char *path)
{
    int pid = 0;
    uint64_t deadline_ns = dial_now_ns() + PAIR_PATIENCE_NS;
    while (pid == 0 && dial_now_ns() < deadline_ns) {
        FILE *file = fopen(path, "re");
        if (file && fscanf(file, "%d\n", &pid) != 1)
            pid = 0;
        if (file)
            fclose(file);
        pair_pause_briefly();
    }
    return pid;
}

/* True: it runs. One that has ended may stay a zombie, if nobody takes note of its end. */
bool pair_runs(int pid)
{
    char path[64], state = 'Z';
    snprintf(path, sizeof(path), "/proc/%d/stat", pid);
    FILE *file = fopen(path, "re");
    if (!file)
        return false;
    if (fscanf(file, "%*d (%*[^)]) %c", &state) != 1)
        state = 'Z';
    fclose(file);
    return state != 'Z' && state != 'X';
}

void pair_demand_gone(int pid)
{
    uint64_t deadline_ns = dial_now_ns() + PAIR_PATIENCE_NS;
    while (pair_runs(pid) && dial_now_ns() < deadline_ns)
        pair_pause_briefly();
    if (!HARNESS_EXPECT(pid > 0 && !pair_runs(pid), "what the hook started goes on") && pid > 0)
        kill(pid, SIGKILL);
}
