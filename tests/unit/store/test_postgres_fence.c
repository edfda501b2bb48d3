/*
 * test_postgres_fence.c -- who may write to a shared database, and how a server finds out that it
 * was replaced.
 *
 * Two stores on one private PostgreSQL play two servers. Shown: only one is active; the lock, the
 * epoch and the number of the batch each stop the one that was replaced, also when the answer of
 * PostgreSQL comes late or half done; a standby takes over when it should and not before.
 */
#include "scene.h"

#include <errno.h>
#include <libpq-fe.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static void pause_ms(long ms)
{
    struct timespec pause = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};
    nanosleep(&pause, NULL);
}

static const struct store_options server_options = {.is_server = true,
                                                    .timeout_ns = 20 * SECOND_NS};

SCENE_OF(test_postgres__a_server_is_replaced, struct model *model)
{
    struct store *old = scene_open(scene_url(), &server_options);
    model_commit(model_next(model), old);
    scene_end_sessions(); /* its lock goes with its session, and it does not notice */
    struct store *new = scene_open(scene_url(), &server_options);
    struct model other;
    model_init(&other, SCENE_SLOTS);
    while (other.txn < model->txn)
        (void)model_next(&other);
    scene_refuses(old, model_next(&other), 76, "taken over");
    model_commit(model_next(model), new);
    scene_refuses(old, &other.batch, 74, "start again");
    store_close(old);
    store_close(new);
    model_done(&other);
    scene_expect(model);
}

/* The epoch alone decides, also when the lock was never lost. */
SCENE_OF(test_postgres__a_raised_epoch_stops_commits, struct model *model)
{
    struct store *store = scene_open(scene_url(), &server_options);
    model_commit(model_next(model), store);
    scene_run("UPDATE server SET epoch = epoch + 1");
    scene_refuses(store, &(struct store_batch){.txn = model->txn + 1, .epoch = 3}, 76,
                  "taken over");
    store_close(store);
}

/* A failover to a replica that was behind: nobody has taken over, and something is gone. */
SCENE_OF(test_postgres__lost_commits_are_noticed, struct model *model)
{
    struct store *store = scene_open(scene_url(), &server_options);
    model_commit(model_next(model), store);
    model_commit(model_next(model), store);
    scene_run("UPDATE server SET txn = txn - 1");
    scene_refuses(store, &(struct store_batch){.txn = model->txn + 1, .epoch = 3}, 74,
                  "--assume-lost");
    store_close(store);
}

/* After a cut the lock comes first: somebody who has it may be about to raise the epoch. */
SCENE_OF(test_postgres__a_lost_lock_stops_commits, struct model *model)
{
    struct store *store = scene_open(scene_url(), &server_options);
    model_commit(model_next(model), store);
    scene_end_sessions();
    struct store *tool = scene_open_patient(scene_url()); /* raises nothing */
    scene_refuses(store, model_next(model), 76, "the active server is");
    store_close(tool);
    store_close(store);
}

SCENE_OF(test_postgres__the_epoch_grows_with_every_start, struct model *model)
{
    struct store *store = scene_open(scene_url(), &server_options);
    model_commit(model_next(model), store); /* the model's epoch is 3 */
    store_close(store);
    scene_answers("SELECT epoch FROM server", "3");
    store_close(scene_open(scene_url(), &server_options));
    store_close(scene_open(scene_url(), &server_options));
    scene_answers("SELECT epoch FROM server", "5");
    struct store *reader = scene_open(scene_url(), &(struct store_options){.is_reader = true});
    scene_refuses(reader, &(struct store_batch){.txn = 2, .epoch = 5}, 74, "read-only");
    store_close(reader);
    scene_answers("SELECT epoch FROM server", "5");
}

SCENE(test_postgres__only_one_is_active)
{
    struct store *store = scene_open(scene_url(), &server_options);
    scene_stays_shut(scene_url(),
                     &(struct store_options){.is_server = true, .timeout_ns = SECOND_NS / 2}, 74,
                     "--standby");
    store_close(store);
}

SCENE_OF(test_postgres__a_standby_takes_over, struct model *model)
{
    struct job job;
    job_init(
        &job,
        &(struct store_options){.is_server = true, .is_standby = true, .timeout_ns = SECOND_NS / 2},
        "standing by");
    struct store *active = scene_open(job.url, &server_options);
    model_commit(model_next(model), active);
    job_start(&job);
    job_wait(&job, &job.has_heard);
    model_commit(model_next(model), active);
    assert_false(job_is_done(&job));
    store_close(active);
    job_end(&job);
    store_close(job.store);
    scene_expect(model);
}

/* Of two that stand by one takes over, and the other one goes on standing by. */
SCENE_OF(test_postgres__one_of_two_standbys_takes_over, struct model *model)
{
    const struct store_options options = {
        .is_server = true, .is_standby = true, .timeout_ns = SECOND_NS / 2};
    struct job jobs[2];
    struct store *active = scene_open(scene_url(), &server_options);
    model_commit(model_next(model), active);
    for (int i = 0; i < 2; i++) {
        job_init(&jobs[i], &options, "standing by");
        job_start(&jobs[i]);
        job_wait(&jobs[i], &jobs[i].has_heard);
    }
    store_close(active);
    while (!job_is_done(&jobs[0]) && !job_is_done(&jobs[1]))
        continue;
    struct job *first = job_is_done(&jobs[0]) ? &jobs[0] : &jobs[1];
    struct job *second = first == &jobs[0] ? &jobs[1] : &jobs[0];
    job_end(first);
    /* Several times as long as a standby waits between two looks. */
    for (int i = 0; i < 10; i++) {
        model_commit(model_next(model), first->store);
        pause_ms(100);
    }
    assert_false(job_is_done(second));
    store_close(first->store);
    job_end(second);
    store_close(second->store);
    scene_answers("SELECT epoch FROM server", "5"); /* the model's is 3, and each takeover adds 1 */
    scene_expect(model);
}

/* ---- what comes late, or half done ---- */

/* Waits until a question has this answer. */
static void wait_for_answer(const char *sql, const char *expected)
{
    for (int i = 0; i < 2000; i++) {
        const char *answer = cluster_ask(&scene_cluster, SCENE_DATABASE, sql);
        if (answer != NULL && strcmp(answer, expected) == 0)
            return;
        pause_ms(10);
    }
    fail_msg("%s: never \"%s\"", sql, expected);
}

/* From now on no commit ends, as none reaches a replica; or all do again. */
static void await_replica(bool is_awaited)
{
    scene_run(is_awaited ? "ALTER SYSTEM SET synchronous_standby_names = 'nobody'"
                         : "ALTER SYSTEM RESET synchronous_standby_names");
    scene_run("SELECT pg_reload_conf()");
    wait_for_answer("SHOW synchronous_standby_names", is_awaited ? "nobody" : "");
}

/*
 * The batch lands, its answer is under way for a while, and meanwhile another server takes over. A
 * commit that is as old as that says nothing about now.
 */
SCENE_OF(test_postgres__a_late_answer_is_not_believed, struct model *model)
{
    struct job job;
    job_init(&job, &server_options, "");
    job.store = scene_open(proxy_url(scene_proxy, SCENE_DATABASE), &job.options);
    model_commit(model_next(model), job.store);
    proxy_arm(scene_proxy, PROXY_HOLD);
    job.batch = model_next(model);
    job_start(&job);
    wait_for_answer("SELECT txn FROM server", "2");
    scene_run("UPDATE server SET epoch = epoch + 1");
    pause_ms(1200); /* longer than an answer that is believed */
    assert_false(job_is_done(&job));
    proxy_release(scene_proxy);
    job_fails(&job, 76);
    store_close(job.store);
    scene_expect(model);
}

/* Nobody took over: a commit that took long is good, and as new as the second look. */
SCENE_OF(test_postgres__a_slow_commit_is_looked_at_again, struct model *model)
{
    struct job job;
    struct timespec released;
    job_init(&job, &server_options, "");
    job.store = scene_open(proxy_url(scene_proxy, SCENE_DATABASE), &job.options);
    model_commit(model_next(model), job.store);
    proxy_arm(scene_proxy, PROXY_HOLD);
    job.batch = model_next(model);
    job_start(&job);
    wait_for_answer("SELECT txn FROM server", "2");
    pause_ms(1200);
    assert_int_equal(clock_gettime(CLOCK_BOOTTIME, &released), 0);
    proxy_release(scene_proxy);
    job_end(&job);
    uint64_t released_ns = (uint64_t)released.tv_sec * SECOND_NS + (uint64_t)released.tv_nsec;
    assert_true(store_checked_ns(job.store) >= released_ns);
    store_close(job.store);
    scene_expect(model);
}

/* Where every commit waits for a slow replica the second look does not, or it would be as old. */
SCENE_OF(test_postgres__a_second_look_waits_for_no_replica, struct model *model)
{
    struct job job;
    job_init(&job, &server_options, "");
    job.store = scene_open(proxy_url(scene_proxy, SCENE_DATABASE), &job.options);
    model_commit(model_next(model), job.store);
    proxy_arm(scene_proxy, PROXY_HOLD);
    job.batch = model_next(model);
    job_start(&job);
    wait_for_answer("SELECT txn FROM server", "2");
    await_replica(true);
    pause_ms(1200); /* longer than an answer that is believed */
    proxy_release(scene_proxy);
    for (int i = 0; i < 500 && !job_is_done(&job); i++)
        pause_ms(10);
    bool is_done = job_is_done(&job);
    await_replica(false);
    job_end(&job);
    assert_true(is_done);
    store_close(job.store);
    scene_expect(model);
}

/* Told to wait no longer for a replica, PostgreSQL commits with a warning: that is not enough. */
static void wait_for_replica(struct model *model)
{
    struct job job;
    job_init(&job, &server_options, "synchronous replication"); /* of the warning */
    job.store = scene_open(scene_url(), &job.options);
    model_commit(model_next(model), job.store);
    await_replica(true);
    job.batch = model_next(model);
    job_start(&job);
    for (int i = 0; i < 3; i++)
        wait_for_answer("SELECT count(pg_cancel_backend(pid)) FROM pg_stat_activity "
                        "WHERE application_name LIKE 'holdfast %' AND wait_event = 'SyncRep'",
                        "1");
    bool is_done = job_is_done(&job);
    await_replica(false);
    assert_false(is_done);
    job_end(&job);
    assert_true(job.has_heard);
    store_close(job.store);
    scene_expect(model);
}

SCENE(test_postgres__a_commit_waits_for_its_replica)
{
    wait_for_replica(*state);
}

/* Nobody who sets what a role gets to read can hide that warning. */
SCENE(test_postgres__warnings_are_heard)
{
    scene_run("ALTER ROLE holdfast IN DATABASE " SCENE_DATABASE " SET client_min_messages = error");
    wait_for_replica(*state);
}

/* What is left of our own session is ours, also if it ends by itself and so cannot be ended. */
SCENE_OF(test_postgres__an_old_session_is_known_by_its_name, struct model *model)
{
    scene_run(
        "CREATE FUNCTION public.pg_terminate_backend(integer) RETURNS boolean LANGUAGE plpgsql "
        "AS 'BEGIN PERFORM pg_catalog.pg_terminate_backend($1); RETURN false; END'");
    scene_run("ALTER DATABASE " SCENE_DATABASE " SET search_path = public, pg_catalog");
    struct store *store = scene_open(proxy_url(scene_proxy, SCENE_DATABASE), &server_options);
    model_commit(model_next(model), store);
    proxy_arm(scene_proxy, PROXY_LEAVE);
    model_commit(model_next(model), store);
    store_close(store);
    scene_expect(model);
}

/* ---- starts ---- */

static int take_anything(void *context, enum record_kind kind, uint32_t slot, struct bytes value)
{
    (void)context, (void)kind, (void)slot, (void)value;
    return 0;
}

/* Whoever finds no server record cannot know the number of the last batch, and begins with 1. */
SCENE_OF(test_postgres__a_lost_server_record_is_no_end, struct model *model)
{
    static const char *const damages[] = {"UPDATE server SET record = '\\x00'",
                                          "UPDATE server SET record = NULL"};
    for (size_t i = 0; i < sizeof damages / sizeof damages[0]; i++) {
        struct store *store = scene_open(scene_url(), &server_options);
        struct store_failure failure = {0};
        assert_int_equal(store_load(store, take_anything, NULL, &failure), 0);
        for (int batch = 0; batch < 3; batch++)
            model_commit(model_next(model), store);
        store_close(store);
        scene_run(damages[i]);
        store = scene_open(scene_url(), &server_options);
        assert_int_equal(store_load(store, take_anything, NULL, &failure), 0);
        model_done(model);
        model_init(model, SCENE_SLOTS);
        model_commit(model_next(model), store);
        model_commit(model_next(model), store);
        store_close(store);
        scene_answers("SELECT txn FROM server", "2");
    }
}

/* Between opening and loading a hook runs: the session may be lost, and the office too. */
SCENE_OF(test_postgres__a_load_finds_its_session_lost, struct model *model)
{
    struct store_failure failure = {0};
    struct store *store = scene_open(scene_url(), &server_options);
    model_commit(model_next(model), store);
    scene_end_sessions();
    assert_int_equal(store_load(store, take_anything, NULL, &failure), 0);
    model_commit(model_next(model), store);
    scene_end_sessions();
    scene_run("UPDATE server SET epoch = epoch + 1");
    assert_int_equal(store_load(store, take_anything, NULL, &failure), -EIO);
    assert_int_equal(failure.exit_code, 76);
    store_close(store);
    scene_expect(model);
    store = scene_open(scene_url(), &server_options);
    scene_end_sessions();
    scene_run("UPDATE server SET txn = txn - 1");
    assert_int_equal(store_load(store, take_anything, NULL, &failure), -EIO);
    assert_int_equal(failure.exit_code, 74);
    assert_non_null(strstr(failure.text, "--assume-lost"));
    store_close(store);
}

/* Refused for now is no reason to give up, not at the start either. */
SCENE_OF(test_postgres__a_start_waits_for_what_may_pass, struct model *model)
{
    struct job job;
    store_close(scene_open_patient(scene_url())); /* makes the tables */
    scene_run("ALTER DATABASE " SCENE_DATABASE " SET statement_timeout = '100ms'");
    char conninfo[256];
    (void)snprintf(conninfo, sizeof conninfo,
                   "host=%s user=holdfast dbname=" SCENE_DATABASE
                   " application_name=blocker options='-c statement_timeout=0'",
                   scene_cluster.directory);
    PGconn *blocker = PQconnectdb(conninfo);
    assert_int_equal(PQstatus(blocker), CONNECTION_OK);
    PQclear(PQexec(blocker, "BEGIN"));
    PQclear(PQexec(blocker, "SELECT FROM server FOR UPDATE"));
    job_init(&job, &server_options, "statement timeout");
    job.batch = model_next(model);
    job_start(&job);
    job_wait(&job, &job.has_heard);
    assert_false(job_is_done(&job));
    PQfinish(blocker);
    job_end(&job);
    store_close(job.store);
    scene_expect(model);
}

/* A lock that cannot even be asked for: the start ends when its time is over. */
SCENE(test_postgres__a_start_ends_without_a_lock)
{
    struct job job;
    scene_run("CREATE FUNCTION public.pg_try_advisory_lock(bigint) RETURNS boolean "
              "LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'no more locks' USING ERRCODE = "
              "'53200'; END $$");
    scene_run("ALTER DATABASE " SCENE_DATABASE " SET search_path = public, pg_catalog");
    job_init(&job, &(struct store_options){.is_server = true, .timeout_ns = SECOND_NS}, "");
    job_start(&job);
    job_fails(&job, 74);
    assert_non_null(strstr(job.failure.text, "no more locks"));
}

/* A big store takes the time that it takes, whatever statement_timeout says of other statements. */
SCENE_OF(test_postgres__a_load_takes_its_time, struct model *model)
{
    struct store *store = scene_open_patient(scene_url());
    model_commit(model_next(model), store);
    store_close(store);
    scene_run("ALTER DATABASE " SCENE_DATABASE " SET statement_timeout = '300ms'");
    scene_run("ALTER TABLE notices RENAME TO real_notices");
    scene_run("CREATE VIEW notices AS SELECT n.* FROM (SELECT CASE WHEN "
              "current_setting('transaction_isolation') = 'repeatable read' "
              "THEN pg_sleep(0.5)::text END) AS slow, real_notices n");
    store = scene_open(scene_url(), &(struct store_options){.is_reader = true});
    const char *difference = model_compare(model, store);
    store_close(store);
    if (difference != NULL)
        fail_msg("%s", difference);
}

/* ---- a standby finds PostgreSQL again ---- */

#define STANDBY_SESSIONS                                                                           \
    "SELECT count(*) FROM pg_stat_activity WHERE application_name LIKE 'holdfast %' "
#define COURTESY_NS (3 * SECOND_NS)

static uint64_t now_ns(void)
{
    struct timespec now;
    assert_int_equal(clock_gettime(CLOCK_MONOTONIC, &now), 0);
    return (uint64_t)now.tv_sec * SECOND_NS + (uint64_t)now.tv_nsec;
}

/*
 * An active server with a batch, a standby, and PostgreSQL away and back: the standby has just
 * connected, and nothing else happened. When that began, at the earliest.
 */
static uint64_t go_and_return(struct model *model, struct job *standby, bool is_there_before,
                              struct store **ret_active)
{
    job_init(standby,
             &(struct store_options){
                 .is_server = true, .is_standby = true, .timeout_ns = 20 * SECOND_NS},
             "waiting for PostgreSQL");
    *ret_active = scene_open(scene_url(), &server_options);
    model_commit(model_next(model), *ret_active);
    if (is_there_before) {
        job_start(standby);
        wait_for_answer(STANDBY_SESSIONS, "2");
    }
    cluster_stop(&scene_cluster, SIGINT);
    if (!is_there_before)
        job_start(standby);
    job_wait(standby, &standby->has_heard);
    pause_ms(is_there_before ? 4000 : 0); /* longer than a standby holds back */
    uint64_t since_ns = now_ns();
    assert_true(cluster_start(&scene_cluster));
    wait_for_answer(STANDBY_SESSIONS, "1");
    return since_ns;
}

static void begin_anew(struct model *model)
{
    assert_true(cluster_fresh(&scene_cluster, SCENE_DATABASE));
    model_done(model);
    model_init(model, SCENE_SLOTS);
}

/*
 * However long PostgreSQL was away: a standby lets the active server, which is well, come first. It
 * gets time enough to take the lock, if it were so rude. On a machine so busy that all this takes
 * longer than it holds back nothing is shown, and it is tried again.
 */
static void come_back_first(struct model *model, bool is_there_before)
{
    struct job standby;
    struct store *active;
    for (int i = 0; i < 5; i++) {
        struct store_failure failure = {0};
        uint64_t since_ns = go_and_return(model, &standby, is_there_before, &active);
        wait_for_answer(STANDBY_SESSIONS "AND clock_timestamp() - backend_start > '300 ms'", "1");
        int result = store_commit(active, model_next(model), &failure);
        bool is_late = now_ns() - since_ns > COURTESY_NS;
        if (result != 0 && !is_late)
            fail_msg("the standby did not hold back: %s", failure.text);
        if (result == 0)
            assert_false(job_is_done(&standby));
        store_close(active);
        job_end(&standby);
        store_close(standby.store);
        if (result == 0) {
            scene_expect(model);
            return;
        }
        begin_anew(model);
    }
    fail_msg("five times slower than a standby holds back");
}

SCENE(test_postgres__the_active_server_comes_back_first)
{
    come_back_first(*state, true);
}

/* The same of a standby that was started when PostgreSQL was away already. */
SCENE(test_postgres__a_new_standby_holds_back_too)
{
    come_back_first(*state, false);
}

/* Told to stop while it holds back: it does not take the lock that happens to be free. */
SCENE_OF(test_postgres__a_standby_that_stops_takes_nothing, struct model *model)
{
    struct job standby;
    struct store *active;
    for (int i = 0; i < 5; i++) {
        uint64_t since_ns = go_and_return(model, &standby, true, &active);
        job_cancel(&standby);
        bool is_late = now_ns() - since_ns > COURTESY_NS;
        job_wait(&standby, &standby.is_done);
        if (is_late && standby.result == 0) {
            job_end(&standby);
            store_close(standby.store);
            store_close(active);
            begin_anew(model);
            continue;
        }
        job_fails(&standby, 74);
        scene_answers("SELECT epoch FROM server", "3"); /* the model's */
        model_commit(model_next(model), active);
        store_close(active);
        scene_expect(model);
        return;
    }
    fail_msg("five times slower than a standby holds back");
}

int main(void)
{
    return scene_main();
}
