/*
 * groups.c -- three groups on two machines and one database: either machine may die at any moment
 * (P1, P2, docs/high-availability.md).
 *
 * Machines are network namespaces (nodes.h). Three standbys of all three groups run on each, so
 * whatever one machine serves, the other has a process for. What differs between groups is in the
 * sections of one configuration file; here it is the port, so a group is found by it.
 *
 * Clients lock and unlock without a pause (lock_book.h). HOLDFAST_GROUP_KILLS (4) times one machine
 * is killed at a random moment: all of its processes, kill -9. Shown:
 *  (1) the other machine serves its groups within 3 s, which are printed; every lock that was
 *      acknowledged is there, and the groups that it served already have noticed nothing;
 *  (2) a machine that stands still (SIGSTOP) while its sessions are ended, and goes on when its
 *      groups are served elsewhere, with requests in its sockets: it answers none of them and its
 *      servers end with 76; its standbys go on;
 *  (3) `holdfast groups` says who serves and who stands by, and exits with 1 when nobody serves
 *      one, with 74 when it cannot print that; `holdfast status` names the group; the hook gets its
 *      name; a reload reads the section of the group that is served.
 */
#include "lock_book.h"
#include "nodes.h"
#include "postgres/cluster.h"

#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define MACHINES    2
#define GROUPS      3
#define PORT        13001 /* of the first group */
#define PATIENCE_NS UINT64_C(60000000000)
#define SOON_NS     UINT64_C(3000000000)
#define LOAD_MS     1500 /* the kill comes within that time */
#define TIMEOUT_MS  1000 /* of one call under load */
#define NOBODY      MACHINES

static const char *const group_names[GROUPS] = {"alpha", "beta-1", "gamma_2"};
static const char *const client_names[GROUPS] = {"client-a", "client-b", "client-c"};

struct process {
    struct harness_server server;
    const char *control;
    uint32_t group; /* GROUPS: none, it stands by */
};

static struct process processes[MACHINES][GROUPS];
static struct lock_book books[GROUPS];
static const char *store, *config_path;
static uint64_t seed;

static uint64_t random_below(uint64_t max)
{
    return (harness_random(&seed) >> 11) % max;
}

static void pause_ms(uint64_t ms)
{
    nanosleep(
        &(struct timespec){.tv_sec = (time_t)(ms / 1000), .tv_nsec = (long)(ms % 1000 * 1000000)},
        NULL);
}

/* ---- processes ---- */

static void write_config(void)
{
    FILE *file = fopen(config_path, "we");
    fputs("[holdfast]\nstandby = on\n", file);
    fputs("takeover-hook = echo $HOLDFAST_GROUP | grep -qxE 'alpha|beta-1|gamma_2'\n", file);
    for (uint32_t i = 0; i < GROUPS; i++)
        fprintf(file, "group = %s\n", group_names[i]);
    for (uint32_t i = 0; i < GROUPS; i++)
        fprintf(file, "[group %s]\nnlm-port = %u\n", group_names[i], PORT + i);
    HARNESS_EXPECT(fclose(file) == 0, "%s", config_path);
}

/* What it says in its log decides. */
static void look_at(struct process *process)
{
    for (uint32_t i = 0; i < GROUPS && process->group == GROUPS && process->server.pid > 0; i++) {
        char words[64];
        snprintf(words, sizeof(words), "holdfast: ready on port %u ", PORT + i);
        if (harness_log_contains(&process->server, words))
            process->group = i;
    }
}

static uint32_t machine_of(uint32_t group)
{
    for (uint32_t machine = 0; machine < MACHINES; machine++)
        for (uint32_t i = 0; i < GROUPS; i++) {
            look_at(&processes[machine][i]);
            if (processes[machine][i].server.pid > 0 && processes[machine][i].group == group)
                return machine;
        }
    return NOBODY;
}

static struct lock_book_server server_of(uint32_t machine, uint32_t group)
{
    return (struct lock_book_server){nodes_address(machine), (uint16_t)(PORT + group)};
}

static void spawn(uint32_t machine, uint32_t index)
{
    struct process *process = &processes[machine][index];
    const char *const extra[] = {"--config",  config_path, "--notify-timeout", "2",
                                 "--control", NULL,        "--grace",          "20"};
    process->server = (struct harness_server){.store = store};
    process->group = GROUPS;
    memcpy(process->server.extra, extra, sizeof(extra));
    process->server.extra[5] = process->control;
    nodes_spawn(machine, &process->server);
}

/* It serves or stands by. */
static void wait_settled(struct process *process)
{
    uint64_t deadline_ns = dial_now_ns() + PATIENCE_NS;
    while (process->group == GROUPS &&
           !harness_log_contains(&process->server, "holdfast: standing by") &&
           dial_now_ns() < deadline_ns) {
        pause_ms(5);
        look_at(process);
    }
    HARNESS_EXPECT(dial_now_ns() < deadline_ns, "%s: neither serves nor stands by",
                   process->server.log);
}

static void start(uint32_t machine, uint32_t index)
{
    spawn(machine, index);
    wait_settled(&processes[machine][index]);
}

/* Every process of a machine that does not run. */
static void start_missing(uint32_t machine)
{
    for (uint32_t i = 0; i < GROUPS; i++)
        if (processes[machine][i].server.pid == 0)
            start(machine, i);
}

/* ---- load, and a kill in the middle of it ---- */

struct kill_plan {
    uint32_t machine;
    uint64_t after_ms;
    pid_t pids[GROUPS];
    atomic_bool is_done;
    uint64_t killed_ns;
};

static void *carry_out(void *context)
{
    struct kill_plan *plan = context;
    pause_ms(plan->after_ms);
    for (uint32_t i = 0; i < GROUPS; i++)
        kill(plan->pids[i], SIGKILL);
    plan->killed_ns = dial_now_ns();
    atomic_store(&plan->is_done, true);
    return NULL;
}

static void load_once(void)
{
    for (uint32_t group = 0; group < GROUPS; group++) {
        uint32_t machine = machine_of(group);
        struct lock_book_server server = server_of(machine, group);
        if (machine != NOBODY)
            (void)lock_book_step(&books[group], &server, TIMEOUT_MS);
    }
}

static uint32_t count_served(uint32_t machine)
{
    uint32_t count = 0;
    for (uint32_t group = 0; group < GROUPS; group++)
        count += machine_of(group) == machine;
    return count;
}

/* Its groups are served by the other one, soon; how long each took is said. */
static void demand_taken_over(const bool was_served[GROUPS], uint32_t other, uint64_t since_ns,
                              const char *why)
{
    for (uint32_t group = 0; group < GROUPS; group++) {
        uint64_t deadline_ns = dial_now_ns() + PATIENCE_NS;
        while (was_served[group] && machine_of(group) != other && dial_now_ns() < deadline_ns)
            pause_ms(2);
        if (!was_served[group])
            continue;
        uint64_t took_ns = dial_now_ns() - since_ns;
        printf("%s: %s is served by machine %u after %" PRIu64 " ms, %u locks\n", why,
               group_names[group], other, took_ns / 1000000, lock_book_held(&books[group]));
        HARNESS_EXPECT(took_ns < SOON_NS, "%s took %" PRIu64 " ms", group_names[group],
                       took_ns / 1000000);
    }
}

static void verify(uint32_t machine, const bool which[GROUPS])
{
    for (uint32_t group = 0; group < GROUPS; group++) {
        struct lock_book_server server = server_of(machine, group);
        if (which[group])
            lock_book_verify(&books[group], &server);
    }
}

/* ---- (1) ---- */

static void note_served(uint32_t machine, bool ret[GROUPS])
{
    for (uint32_t group = 0; group < GROUPS; group++)
        ret[group] = machine_of(group) == machine;
}

static void kill_machine(uint32_t machine)
{
    uint32_t other = 1 - machine;
    bool was_served[GROUPS], was_others[GROUPS];
    struct kill_plan plan = {.machine = machine, .after_ms = random_below(LOAD_MS)};
    pthread_t thread;
    note_served(machine, was_served);
    note_served(other, was_others);
    for (uint32_t i = 0; i < GROUPS; i++)
        plan.pids[i] = processes[machine][i].server.pid;
    if (!HARNESS_EXPECT(pthread_create(&thread, NULL, carry_out, &plan) == 0, "a thread"))
        return;
    while (!atomic_load(&plan.is_done))
        load_once();
    pthread_join(thread, NULL);
    for (uint32_t i = 0; i < GROUPS; i++) {
        int code = harness_stop(&processes[machine][i].server, 0);
        HARNESS_EXPECT(code == 128 + SIGKILL, "kill -9: %d", code);
        processes[machine][i].server.pid = 0;
    }
    demand_taken_over(was_served, other, plan.killed_ns, "killed");
    verify(other, was_served);
    for (uint32_t group = 0; group < GROUPS; group++)
        HARNESS_EXPECT(!was_others[group] || machine_of(group) == other, "%s has moved",
                       group_names[group]);
    load_once();
    start_missing(machine);
}

static void stop_process(struct process *process)
{
    HARNESS_EXPECT(harness_stop(&process->server, SIGTERM) == 0, "SIGTERM");
    process->server.pid = 0;
}

/* Some of what a machine serves moves to the other one, by clean stops; its own standbys, which
 * might be the first, are not there meanwhile. */
static void rebalance(uint32_t machine, uint32_t wanted)
{
    for (uint32_t i = 0; i < GROUPS; i++)
        if (processes[machine][i].group == GROUPS)
            stop_process(&processes[machine][i]);
    for (uint32_t i = 0; i < GROUPS && count_served(machine) > wanted; i++) {
        struct process *process = &processes[machine][i];
        bool was_served[GROUPS] = {false};
        if (process->server.pid == 0)
            continue;
        was_served[process->group] = true;
        uint64_t since_ns = dial_now_ns();
        stop_process(process);
        demand_taken_over(was_served, 1 - machine, since_ns, "stopped");
        verify(1 - machine, was_served);
    }
    start_missing(machine);
}

/* ---- (2) ---- */

static void end_session_of(const struct harness_server *server)
{
    char sql[256];
    snprintf(sql, sizeof(sql),
             "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity "
             "WHERE application_name LIKE 'holdfast %% %d %%'",
             (int)server->pid);
    const char *count = cluster_ask(harness_cluster(), "postgres", sql);
    HARNESS_EXPECT(count && strcmp(count, "1") == 0, "%s sessions ended", count ? count : "no");
}

/* A socket to the old server, with a request that it reads when it goes on. */
static int leave_request(uint32_t machine, uint32_t group)
{
    static struct packet packet;
    struct dial_route route = {
        .server = dial_endpoint_v4(nodes_address(machine), (uint16_t)(PORT + group)),
        .source = dial_endpoint_v4(NODES_CLIENT + 10, 0)};
    struct lock_call lock = {.procedure = PEER_NLM_LOCK,
                             .name = "late",
                             .svid = 3,
                             .file = LOCK_BOOK_FILES,
                             .len = 10,
                             .exclusive = true,
                             .state = 3};
    int fd = dial_open(&route, TIMEOUT_MS); /* its kernel takes the connection */
    lock_call_put(&packet, &lock);
    HARNESS_EXPECT(fd >= 0 && dial_send_record(fd, packet.bytes, packet.len, TIMEOUT_MS) == 0,
                   "a request to %s", group_names[group]);
    return fd;
}

static void demand_replaced(struct process *process)
{
    uint64_t deadline_ns = dial_now_ns() + PATIENCE_NS;
    while (harness_is_alive(&process->server) && dial_now_ns() < deadline_ns)
        pause_ms(5);
    int code = harness_stop(&process->server, 0);
    HARNESS_EXPECT(code == 76, "the old server of %s ended with %d", group_names[process->group],
                   code);
    process->server.pid = 0;
}

static void freeze_machine(uint32_t machine)
{
    uint32_t other = 1 - machine;
    bool was_served[GROUPS];
    int fds[GROUPS];
    load_once();
    note_served(machine, was_served);
    for (uint32_t i = 0; i < GROUPS; i++)
        kill(processes[machine][i].server.pid, SIGSTOP);
    for (uint32_t group = 0; group < GROUPS; group++)
        fds[group] = was_served[group] ? leave_request(machine, group) : -1;
    uint64_t since_ns = dial_now_ns();
    struct process *served[GROUPS] = {NULL};
    for (uint32_t i = 0; i < GROUPS; i++)
        if (processes[machine][i].group < GROUPS)
            served[processes[machine][i].group] = &processes[machine][i];
    for (uint32_t group = 0; group < GROUPS; group++)
        if (served[group]) {
            end_session_of(&served[group]->server);
            served[group]->group = GROUPS + 1; /* whatever it has said before */
        }
    demand_taken_over(was_served, other, since_ns, "frozen");
    verify(other, was_served);
    for (uint32_t i = 0; i < GROUPS; i++)
        kill(processes[machine][i].server.pid, SIGCONT);
    for (uint32_t group = 0; group < GROUPS; group++) {
        if (!served[group])
            continue;
        uint8_t bytes[512];
        served[group]->group = group;
        demand_replaced(served[group]);
        int len = dial_receive(fds[group], bytes, sizeof(bytes), 100);
        HARNESS_EXPECT(len <= 0, "the old server of %s answered %d bytes", group_names[group], len);
        close(fds[group]);
    }
    for (uint32_t i = 0; i < GROUPS; i++)
        HARNESS_EXPECT(processes[machine][i].server.pid == 0 ||
                           harness_is_alive(&processes[machine][i].server),
                       "a standby of machine %u has ended", machine);
    start_missing(machine);
}

/* ---- (3) ---- */

/* The output of a command of the operator; its exit code. */
static int run_shell(const char *command, char *output, size_t size)
{
    FILE *pipe = popen(command, "r");
    size_t len = pipe ? fread(output, 1, size - 1, pipe) : 0;
    output[len] = '\0';
    int status = pipe ? pclose(pipe) : -1;
    return status < 0 ? -1 : status >> 8;
}

static int run_command(const char *words, char *output, size_t size)
{
    char command[1024];
    snprintf(command, sizeof(command), "\"$HOLDFAST\" %s", words);
    return run_shell(command, output, size);
}

/* What a server serves over its control socket: its group is named there, and nothing is before it
 * has one. */
static void look_at_metrics(const struct process *process)
{
    static char output[262144];
    char command[512], expected[64];
    snprintf(command, sizeof(command), "curl -s --unix-socket '%s' http://localhost/metrics",
             process->control);
    int code = run_shell(command, output, sizeof(output));
    snprintf(expected, sizeof(expected), "holdfast_group_info{group=\"%s\"} 1\n",
             process->group < GROUPS ? group_names[process->group] : "");
    HARNESS_EXPECT(code == 0 && (process->group == GROUPS) == !strstr(output, expected),
                   "metrics: exit %d, no %s", code, expected);
}

static void demand_listed(int expected_code, const char *expected)
{
    char words[512], output[4096];
    snprintf(words, sizeof(words), "groups --json --store '%s'", store);
    int code = run_command(words, output, sizeof(output));
    HARNESS_EXPECT(code == expected_code && strstr(output, expected), "exit %d, %s, expected %s",
                   code, output, expected);
}

/* What was not printed is not "nobody serves it". */
static void list_into_full_disk(void)
{
    char words[512], output[64];
    snprintf(words, sizeof(words), "groups --store '%s' 2>&1 >/dev/full", store);
    int code = run_command(words, output, sizeof(output));
    HARNESS_EXPECT(code == 74, "an output that cannot be written: exit %d", code);
}

static void look_at_groups(void)
{
    char words[512], output[8192];
    snprintf(words, sizeof(words), "groups --store '%s'", store);
    int code = run_command(words, output, sizeof(output));
    printf("%s", output);
    HARNESS_EXPECT(code == 0 && strstr(output, "GROUP") && strstr(output, "beta-1"), "exit %d",
                   code);
    demand_listed(0, "{\"group\":\"alpha\",\"state\":\"active\"");
    demand_listed(0, "\"standbys\":3");
    list_into_full_disk();
    for (uint32_t i = 0; i < GROUPS; i++) {
        struct process *process = &processes[0][i];
        snprintf(words, sizeof(words), "status --control '%s'", process->control);
        code = run_command(words, output, sizeof(output));
        char expected[64];
        snprintf(expected, sizeof(expected), "group %s",
                 process->group < GROUPS ? group_names[process->group] : "");
        HARNESS_EXPECT(code == 0 && (process->group == GROUPS) == !strstr(output, ", group ") &&
                           (process->group == GROUPS || strstr(output, expected)),
                       "status of process %u: exit %d, %s", i, code, output);
        look_at_metrics(process);
        HARNESS_EXPECT(process->group == GROUPS ||
                           harness_log_contains(&process->server, "group=\"alpha\"") ||
                           process->group != 0,
                       "its log does not name the group");
    }
}

/* The section of the group that a server came to serve counts for a reload, too. */
static void reload(void)
{
    FILE *file = fopen(config_path, "ae");
    fprintf(file, "[group %s]\nname = alpha.example\n", group_names[0]);
    HARNESS_EXPECT(fclose(file) == 0, "%s", config_path);
    for (uint32_t machine = 0; machine < MACHINES; machine++)
        for (uint32_t i = 0; i < GROUPS; i++) {
            const struct process *process = &processes[machine][i];
            char words[512], output[4096];
            if (process->group == GROUPS)
                continue;
            snprintf(words, sizeof(words), "reload --json --control '%s'", process->control);
            int code = run_command(words, output, sizeof(output));
            HARNESS_EXPECT(code == 0 &&
                               (process->group == 0) == (strstr(output, "alpha.example") != NULL),
                           "reload of %s: exit %d, %s", group_names[process->group], code, output);
        }
}

static void stop_all(void)
{
    for (uint32_t machine = 0; machine < MACHINES; machine++)
        for (uint32_t i = 0; i < GROUPS; i++)
            if (processes[machine][i].server.pid > 0 && processes[machine][i].group == GROUPS)
                HARNESS_EXPECT(harness_stop(&processes[machine][i].server, SIGTERM) == 0,
                               "a standby and SIGTERM");
    for (uint32_t machine = 0; machine < MACHINES; machine++)
        for (uint32_t i = 0; i < GROUPS; i++)
            if (processes[machine][i].server.pid > 0)
                HARNESS_EXPECT(harness_stop(&processes[machine][i].server, SIGTERM) == 0,
                               "a server and SIGTERM");
    demand_listed(1, "\"state\":\"nobody\"");
}

static void begin(void)
{
    static const char *const controls[MACHINES][GROUPS] = {{"c00", "c01", "c02"},
                                                           {"c10", "c11", "c12"}};
    store = harness_postgres("groups");
    config_path = harness_path("groups.conf");
    write_config();
    for (uint32_t i = 0; i < GROUPS; i++)
        books[i] = (struct lock_book){.name = client_names[i],
                                      .source = NODES_CLIENT + i,
                                      .other_source = NODES_CLIENT + GROUPS + i,
                                      .seed = harness_random(&seed)};
    for (uint32_t machine = 0; machine < MACHINES; machine++)
        for (uint32_t i = 0; i < GROUPS; i++)
            processes[machine][i].control = harness_path(controls[machine][i]);
    /* Two groups here, one there; each machine has a process more for whatever the other serves. */
    start(0, 0);
    start(0, 1);
    start_missing(1);
    start_missing(0);
    for (uint32_t i = 0; i < 100; i++)
        load_once();
    HARNESS_EXPECT(count_served(0) == 2 && count_served(1) == 1, "%u and %u groups",
                   count_served(0), count_served(1));
}

int main(void)
{
    harness_init("groups");
    if (!nodes_init()) {
        nodes_done();
        (void)harness_finish();
        return HARNESS_SKIPPED;
    }
    (void)harness_cluster(); /* or it is skipped */
    seed = harness_seed();
    uint32_t kills = harness_number("HOLDFAST_GROUP_KILLS", 4);
    begin();
    look_at_groups();
    reload();
    for (uint32_t i = 0; i < kills; i++) {
        uint32_t machine = count_served(0) == 0   ? 1
                           : count_served(1) == 0 ? 0
                                                  : (uint32_t)random_below(MACHINES);
        kill_machine(machine);
        rebalance(1 - machine, 1 + (uint32_t)random_below(GROUPS));
    }
    uint32_t machine = count_served(0) > 0 ? 0 : 1;
    freeze_machine(machine);
    load_once();
    stop_all();
    uint32_t granted = 0, unanswered = 0;
    for (uint32_t i = 0; i < GROUPS; i++) {
        granted += books[i].granted;
        unanswered += books[i].unanswered;
    }
    printf("%u locks were granted, %u calls not answered\n", granted, unanswered);
    nodes_done();
    return harness_finish();
}
