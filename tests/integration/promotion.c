/*
 * promotion.c -- PostgreSQL's own failover: the primary dies under load, its synchronous replica is
 * promoted, and no acknowledged lock is lost (P1, docs/high-availability.md).
 *
 * The servers name both hosts. A client locks and unlocks without a pause (lock_book.h) while the
 * primary is killed at a random moment, kill -9, and the replica promoted. HOLDFAST_PROMOTIONS (2)
 * rounds, each with databases of its own, in turn:
 *  (1) the active server goes on with the replica: whatever it had granted nobody else gets; and
 *      the replica has it, because a server that starts on it grants the reclaims;
 *  (2) the active server dies with the primary: its standby takes over from the replica.
 * In each round:
 *  (3) a server that names several hosts warns when PostgreSQL waits for no replica, and only then;
 *  (4) the old primary comes back as one, not fenced, while its replica serves: a server that finds
 *      it first cannot even begin, because PostgreSQL there waits for a replica that has gone.
 */
#include "lock_book.h"
#include "postgres/cluster.h"

#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define PATIENCE_NS UINT64_C(60000000000)
#define LOAD_MS     1000
#define TIMEOUT_MS  30000 /* a call waits while there is no database */
#define WARNING     "synchronous_standby_names is empty"

static struct cluster primary, replica;
static struct harness_server active, standby, stray;
static struct lock_book book;
static char store[400];
static uint64_t seed;

static void pause_ms(uint64_t ms)
{
    nanosleep(
        &(struct timespec){.tv_sec = (time_t)(ms / 1000), .tv_nsec = (long)(ms % 1000 * 1000000)},
        NULL);
}

static void wait_for(const struct cluster *cluster, const char *sql, const char *expected)
{
    uint64_t deadline_ns = dial_now_ns() + PATIENCE_NS;
    const char *answer = NULL;
    while ((!answer || strcmp(answer, expected) != 0) && dial_now_ns() < deadline_ns) {
        pause_ms(20);
        answer = cluster_ask(cluster, "postgres", sql);
    }
    HARNESS_EXPECT(answer && strcmp(answer, expected) == 0, "%s: %s", sql, answer ? answer : "?");
}

static void wait_log(const struct harness_server *server, const char *text)
{
    uint64_t deadline_ns = dial_now_ns() + PATIENCE_NS;
    while (!harness_log_contains(server, text) && dial_now_ns() < deadline_ns)
        pause_ms(10);
    HARNESS_EXPECT(dial_now_ns() < deadline_ns, "%s never says \"%s\"", server->log, text);
}

/* ---- servers ---- */

static void prepare(struct harness_server *server, const char *control, const char *timeout)
{
    const char *const extra[] = {
        "--group",          "g", "--grace",         "20",   "--control", control, "--standby",
        "--notify-timeout", "2", "--store-timeout", timeout};
    *server = (struct harness_server){.listen = "127.0.0.1", .store = store};
    memcpy(server->extra, extra, sizeof(extra));
}

static struct lock_book_server server_at(const struct harness_server *server)
{
    return (struct lock_book_server){UINT32_C(0x7f000001), server->port};
}

/* ---- databases ---- */

static bool start_databases(bool says_attributes)
{
    const char *why = "it does not start";
    bool is_there = cluster_init(&primary, &why);
    if (!HARNESS_EXPECT(is_there && cluster_start(&primary) && cluster_fresh(&primary, "promotion"),
                        "PostgreSQL: %s", why) ||
        !HARNESS_EXPECT(cluster_copy(&replica, &primary) && cluster_start(&replica), "a replica"))
        return false;
    /* Without the last words the server says them itself: a replica is no use to it. */
    snprintf(store, sizeof(store), "postgres:host=%s,%s user=holdfast dbname=promotion%s",
             replica.directory, primary.directory,
             says_attributes ? " target_session_attrs=read-write" : "");
    return true;
}

static void make_synchronous(void)
{
    HARNESS_EXPECT(
        cluster_run(&primary, "postgres", "ALTER SYSTEM SET synchronous_standby_names = '*'") &&
            cluster_run(&primary, "postgres", "SELECT pg_reload_conf()"),
        "synchronous_standby_names");
    wait_for(&primary, "SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync'", "1");
}

/* ---- the failure ---- */

struct failure {
    uint64_t after_ms, promoted_ns;
    pid_t with; /* a server that dies, too; 0: none */
    atomic_bool is_done;
};

static void *carry_out(void *context)
{
    struct failure *failure = context;
    pause_ms(failure->after_ms);
    if (failure->with > 0)
        kill(failure->with, SIGKILL);
    cluster_stop(&primary, SIGKILL);
    HARNESS_EXPECT(cluster_run(&replica, "postgres", "SELECT pg_promote()"), "promotion");
    failure->promoted_ns = dial_now_ns();
    atomic_store(&failure->is_done, true);
    return NULL;
}

/* Load until the replica is promoted. */
static uint64_t fail_under_load(pid_t with)
{
    struct failure failure = {.after_ms = harness_random(&seed) % LOAD_MS, .with = with};
    struct lock_book_server server = server_at(&active);
    pthread_t thread;
    for (uint32_t i = 0; i < 100; i++)
        HARNESS_EXPECT(lock_book_step(&book, &server, TIMEOUT_MS), "no answer before the failure");
    if (!HARNESS_EXPECT(pthread_create(&thread, NULL, carry_out, &failure) == 0, "a thread"))
        return 0;
    while (!atomic_load(&failure.is_done))
        if (!lock_book_step(&book, &server, TIMEOUT_MS))
            pause_ms(20);
    pthread_join(thread, NULL);
    return failure.promoted_ns;
}

/* ---- (1), (2) ---- */

static void go_on_with_replica(void)
{
    struct lock_book_server server = server_at(&active);
    uint64_t promoted_ns = fail_under_load(0);
    HARNESS_EXPECT(lock_book_step(&book, &server, TIMEOUT_MS), "no answer after the promotion");
    printf("promoted: an answer after %" PRIu64 " ms, %u locks held, %u calls unanswered\n",
           (dial_now_ns() - promoted_ns) / 1000000, lock_book_held(&book), book.unanswered);
    HARNESS_EXPECT(harness_is_alive(&active), "the server has ended");
    lock_book_demand_refused(&book, &server);
    HARNESS_EXPECT(harness_stop(&active, SIGKILL) == 128 + SIGKILL, "kill -9");
    if (harness_start(&active)) {
        server = server_at(&active);
        lock_book_verify(&book, &server);
    }
}

static void take_over_from_replica(void)
{
    prepare(&standby, harness_path("control.standby"), "60");
    harness_spawn(&standby);
    wait_log(&standby, "holdfast: standing by");
    uint64_t promoted_ns = fail_under_load(active.pid);
    HARNESS_EXPECT(harness_stop(&active, 0) == 128 + SIGKILL, "kill -9");
    bool is_ready = harness_wait_ready(&standby);
    printf("promoted: the standby serves after %" PRIu64 " ms, %u locks held, %u calls "
           "unanswered\n",
           (dial_now_ns() - promoted_ns) / 1000000, lock_book_held(&book), book.unanswered);
    if (!HARNESS_EXPECT(is_ready, "the standby does not serve"))
        return;
    struct lock_book_server server = server_at(&standby);
    lock_book_verify(&book, &server);
    active = standby;
    standby.pid = 0;
}

/* ---- (4) ---- */

/* It names the old primary first. */
static void come_back_unfenced(void)
{
    char old_first[sizeof(store)];
    snprintf(old_first, sizeof(old_first), "postgres:host=%s,%s user=holdfast dbname=promotion",
             primary.directory, replica.directory);
    if (!HARNESS_EXPECT(cluster_start(&primary), "the old primary"))
        return;
    prepare(&stray, harness_path("control.stray"), "2");
    stray.store = old_first;
    stray.extra[6] = "--force"; /* not as a standby, which would wait for ever */
    harness_spawn(&stray);
    uint64_t deadline_ns = dial_now_ns() + PATIENCE_NS;
    while (harness_is_alive(&stray) && dial_now_ns() < deadline_ns)
        pause_ms(10);
    int code = harness_stop(&stray, SIGKILL);
    HARNESS_EXPECT(code == 74 && !harness_log_contains(&stray, "ready on port"),
                   "a server on the old primary ended with %d", code);
    struct lock_book_server server = server_at(&active);
    HARNESS_EXPECT(lock_book_step(&book, &server, TIMEOUT_MS), "the active server was disturbed");
}

static void run_round(uint32_t round)
{
    book = (struct lock_book){.name = "client",
                              .source = UINT32_C(0x7f00000b),
                              .other_source = UINT32_C(0x7f00000c),
                              .seed = harness_random(&seed)};
    if (!start_databases(round % 2 == 0))
        return;
    prepare(&active, harness_path("control.active"), "60");
    if (harness_start(&active)) {
        HARNESS_EXPECT(harness_log_contains(&active, WARNING), "no warning");
        HARNESS_EXPECT(harness_stop(&active, SIGTERM) == 0, "SIGTERM");
    }
    make_synchronous();
    if (harness_start(&active)) {
        HARNESS_EXPECT(!harness_log_contains(&active, WARNING), "a warning");
        if (round % 2 == 0)
            go_on_with_replica();
        else
            take_over_from_replica();
        come_back_unfenced();
        HARNESS_EXPECT(harness_stop(&active, SIGTERM) == 0, "SIGTERM");
    }
    cluster_done(&replica);
    cluster_done(&primary);
}

int main(void)
{
    harness_init("promotion");
    (void)harness_cluster(); /* or it is skipped */
    seed = harness_seed();
    uint32_t rounds = harness_number("HOLDFAST_PROMOTIONS", 2);
    for (uint32_t round = 0; round < rounds; round++)
        run_round(round);
    return harness_finish();
}
