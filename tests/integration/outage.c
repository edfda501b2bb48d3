/*
 * outage.c -- the server while PostgreSQL is away: answers wait, and then it ends with a sentence.
 *
 * Shown with a private PostgreSQL, for the real process (D9, --store-timeout):
 *  (1) stopped for a while, killed, or out of disk space for a while: NULL is answered at once,
 *      SM_MON when PostgreSQL is back, once, and nobody has to ask again;
 *  (2) away for longer: no answer, exit 74, and the log says what to do; what was answered before
 *      is there at the next start, and what was not is there at most once;
 *  (3) away at the start: the server waits as long and then ends with 74, or comes up when
 *      PostgreSQL does; SIGTERM ends the wait;
 *  (4) gone when the takeover hook has ended: the server says what it waits for, and comes up then.
 */
#include "harness.h"
#include "peer/peer_nsm.h"
#include "postgres/cluster.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define PATIENCE_MS 60000
#define DATABASE    "outage"

static const char *const patient[] = {"--store-timeout", "300"};
static const char *const hasty[] = {"--store-timeout", "2"};

static struct harness_server server;
static uint32_t next_xid = 1;

static void pause_ms(long ms)
{
    nanosleep(&(struct timespec){.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000}, NULL);
}

static int open_socket(void)
{
    struct dial_route route = harness_route(&server, false);
    int fd = dial_open(&route, PATIENCE_MS);
    HARNESS_EXPECT(fd >= 0, "cannot connect: %s", strerror(-fd));
    return fd;
}

static void post_mon(int fd, const char *name)
{
    static struct packet call;
    struct peer_nsm_id id = {name, "watcher", 100021, 4, 16};
    uint8_t priv[PEER_NSM_PRIV_LEN] = {7};
    peer_nsm_put_mon(&call, next_xid++, &id, priv);
    int result = dial_send_record(fd, call.bytes, call.len, PATIENCE_MS);
    HARNESS_EXPECT(result == 0, "SM_MON of %s: %s", name, strerror(-result));
}

/* True: an answer came within the time; it must be a good one. Whoever waits for one that must not
 * come waits briefly: what a busy machine delays is found by the next look. */
static bool get_answer(int fd, uint32_t timeout_ms)
{
    static struct packet answer;
    struct packet_reply reply;
    uint32_t res, state;
    int len = dial_receive_record(fd, &answer, timeout_ms);
    if (len < 0)
        return false;
    HARNESS_EXPECT(packet_get_reply(answer.bytes, (uint32_t)len, &reply) &&
                       peer_nsm_get_stat_res(&reply, &res, &state) && res == 0 &&
                       state == server.state,
                   "an answer that is none");
    return true;
}

/* Answered while PostgreSQL is away: nobody starts it before this returns. */
static void demand_null(void)
{
    static struct packet call, answer;
    struct packet_reply reply;
    struct dial_route route = harness_route(&server, true);
    packet_clear(&call);
    packet_put_call(&call, &(struct packet_call){.xid = next_xid++, .prog = 100024, .vers = 1});
    int result = dial_call(&route, &call, PATIENCE_MS, &answer, &reply);
    HARNESS_EXPECT(result == 0, "NULL while the store is away: %s", strerror(-result));
}

/* ---- (1) ---- */

static void wait_for_log(const char *text)
{
    for (int i = 0; i < PATIENCE_MS / 20; i++) {
        if (harness_log_contains(&server, text))
            return;
        pause_ms(20);
    }
    HARNESS_EXPECT(false, "the log never says \"%s\"", text);
}

static void go_away_briefly(int signal, const char *name)
{
    int fd = open_socket();
    cluster_stop(harness_cluster(), signal);
    post_mon(fd, name);
    demand_null();
    wait_for_log("a commit failed; retrying");
    HARNESS_EXPECT(!get_answer(fd, 200), "answered without a store");
    HARNESS_EXPECT(cluster_start(harness_cluster()), "PostgreSQL");
    HARNESS_EXPECT(get_answer(fd, PATIENCE_MS), "no answer after PostgreSQL is back");
    HARNESS_EXPECT(!get_answer(fd, 100), "two answers");
    close(fd);
}

static bool fill(const char *path)
{
    static const char zeros[1 << 16];
    FILE *file = fopen(path, "we");
    if (!file)
        return false;
    setvbuf(file, NULL, _IONBF, 0);
    while (fwrite(zeros, 1, sizeof(zeros), file) == sizeof(zeros))
        continue;
    fclose(file);
    return true;
}

/* The table of registrations is on a file system of 2 MiB, which is full for a while. */
static void fill_the_disk(void)
{
    char place[200], filler[256], sql[320];
    const struct cluster *cluster = harness_cluster();
    snprintf(place, sizeof(place), "%s/tiny", cluster->directory);
    snprintf(filler, sizeof(filler), "%s/filler", place);
    if (mkdir(place, 0700) != 0 || mount("tiny", place, "tmpfs", 0, "size=2m") != 0) {
        printf("not shown: a full disk (%s); it takes root\n", strerror(errno));
        rmdir(place);
        return;
    }
    snprintf(sql, sizeof(sql), "%s/space", place);
    if (chmod(place, 0755) != 0 || mkdir(sql, 0700) != 0 ||
        chown(sql, cluster->user, cluster->group) != 0)
        HARNESS_EXPECT(false, "%s: %s", sql, strerror(errno));
    snprintf(sql, sizeof(sql), "CREATE TABLESPACE tiny LOCATION '%s/space'", place);
    HARNESS_EXPECT(cluster_run(cluster, DATABASE, sql) &&
                       cluster_run(cluster, DATABASE,
                                   "ALTER TABLE nsm_client_registrations SET TABLESPACE tiny"),
                   "a tablespace");
    HARNESS_EXPECT(fill(filler), "%s", filler);
    int fd = open_socket(), answered = 0, posted = 0;
    for (; posted < 200 && !harness_log_contains(&server, "No space left"); posted++) {
        char name[600];
        memset(name, 'n', sizeof(name));
        snprintf(name + 500, 100, "%d", posted);
        post_mon(fd, name);
        answered += get_answer(fd, 500);
    }
    HARNESS_EXPECT(harness_log_contains(&server, "No space left"), "%d fit", posted);
    HARNESS_EXPECT(answered < posted, "all were answered");
    demand_null();
    HARNESS_EXPECT(unlink(filler) == 0, "%s", filler);
    while (answered < posted && get_answer(fd, PATIENCE_MS))
        answered++;
    HARNESS_EXPECT(answered == posted, "%d of %d answered when there is room again", answered,
                   posted);
    close(fd);
    HARNESS_EXPECT(cluster_run(cluster, DATABASE,
                               "ALTER TABLE nsm_client_registrations SET TABLESPACE pg_default") &&
                       cluster_run(cluster, DATABASE, "DROP TABLESPACE tiny"),
                   "the tablespace goes");
    HARNESS_EXPECT(umount2(place, MNT_DETACH) == 0 && rmdir(place) == 0, "%s", place);
}

/* ---- (2), (3) ---- */

struct found {
    uint32_t kept, lost;
};

static void look_for(void *context, const struct harness_record *record)
{
    struct found *found = context;
    found->kept += strcmp(record->mon_name, "kept") == 0;
    found->lost += strcmp(record->mon_name, "lost") == 0;
}

static int wait_exit(void)
{
    uint64_t deadline_ns = dial_now_ns() + PATIENCE_MS * UINT64_C(1000000);
    while (harness_is_alive(&server) && dial_now_ns() < deadline_ns)
        pause_ms(20);
    return harness_stop(&server, 0);
}

static void go_away_for_long(void)
{
    struct found found = {0};
    int fd = open_socket();
    post_mon(fd, "kept");
    HARNESS_EXPECT(get_answer(fd, PATIENCE_MS), "no answer");
    uint64_t since_ns = dial_now_ns(); /* it may notice before we know that PostgreSQL has ended */
    cluster_stop(harness_cluster(), SIGINT);
    post_mon(fd, "lost");
    int code = wait_exit();
    uint64_t took_ms = (dial_now_ns() - since_ns) / 1000000;
    HARNESS_EXPECT(code == 74, "exit %d", code);
    /* Neither at once nor after the default of 30 s. */
    HARNESS_EXPECT(took_ms >= 2000 && took_ms < 20000, "after %llu ms",
                   (unsigned long long)took_ms);
    HARNESS_EXPECT(!get_answer(fd, 100), "answered without a store");
    HARNESS_EXPECT(harness_log_contains(&server, "start PostgreSQL"), "no advice in the log");
    close(fd);
    HARNESS_EXPECT(cluster_start(harness_cluster()), "PostgreSQL");
    HARNESS_EXPECT(harness_dump(server.store, look_for, &found), "dump");
    HARNESS_EXPECT(found.kept == 1 && found.lost <= 1, "%u kept, %u lost", found.kept, found.lost);
}

/* The first start gives up; the others have all the time that a busy machine may need. */
static void start_without_postgres(void)
{
    cluster_stop(harness_cluster(), SIGINT);
    memcpy(server.extra, hasty, sizeof(hasty));
    harness_spawn(&server);
    int code = wait_exit();
    HARNESS_EXPECT(code == 74, "exit %d", code);
    HARNESS_EXPECT(harness_log_contains(&server, "start PostgreSQL"), "no advice in the log");
    memcpy(server.extra, patient, sizeof(patient));
    harness_spawn(&server);
    wait_for_log("waiting for PostgreSQL");
    HARNESS_EXPECT(harness_stop(&server, SIGTERM) == 0, "SIGTERM while it waits");
    harness_spawn(&server);
    wait_for_log("waiting for PostgreSQL");
    HARNESS_EXPECT(cluster_start(harness_cluster()), "PostgreSQL");
    HARNESS_EXPECT(harness_wait_ready(&server), "it does not come up with PostgreSQL");
}

/* ---- (4) ---- */

static void go_away_in_hook(void)
{
    const char *begun = harness_path("hook_begun"), *go = harness_path("hook_go");
    char hook[600];
    snprintf(hook, sizeof(hook), "touch %s; until [ -e %s ]; do sleep 0.05; done", begun, go);
    memcpy(server.extra, patient, sizeof(patient));
    server.extra[2] = "--takeover-hook";
    server.extra[3] = hook;
    harness_spawn(&server);
    for (int i = 0; i < PATIENCE_MS / 20 && access(begun, F_OK) != 0; i++)
        pause_ms(20);
    cluster_stop(harness_cluster(), SIGINT);
    FILE *file = fopen(go, "we");
    HARNESS_EXPECT(file && fclose(file) == 0, "%s", go);
    wait_for_log("waiting for PostgreSQL");
    HARNESS_EXPECT(cluster_start(harness_cluster()), "PostgreSQL");
    HARNESS_EXPECT(harness_wait_ready(&server), "it does not come up with PostgreSQL");
    HARNESS_EXPECT(harness_stop(&server, SIGTERM) == 0, "SIGTERM");
    server.extra[2] = server.extra[3] = NULL;
}

int main(void)
{
    harness_init("outage");
    if (geteuid() == 0 &&
        (unshare(CLONE_NEWNS) != 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0))
        printf("no mount namespace of its own: %s\n", strerror(errno));
    server.listen = "127.0.0.1";
    server.store = harness_postgres(DATABASE);
    memcpy(server.extra, patient, sizeof(patient));
    if (harness_start(&server)) {
        go_away_briefly(SIGINT, "stopped");
        go_away_briefly(SIGKILL, "killed");
        fill_the_disk();
        HARNESS_EXPECT(harness_stop(&server, SIGTERM) == 0, "SIGTERM");
    }
    memcpy(server.extra, hasty, sizeof(hasty));
    if (harness_start(&server))
        go_away_for_long();
    start_without_postgres();
    HARNESS_EXPECT(harness_stop(&server, SIGTERM) == 0, "SIGTERM");
    go_away_in_hook();
    return harness_finish();
}
