/*
 * test_postgres.c -- what is PostgreSQL's own: outages, doubtful commits, the fence, the schema.
 *
 * A private PostgreSQL is stopped, killed, frozen, and cut off in the middle of a commit by a
 * proxy. The contents are compared with the model (model.h) byte by byte afterwards: nothing that
 * was acknowledged may be missing, nothing may have happened twice. The contract itself is shown by
 * test_contract.c.
 */
#include "model.h"
#include "place.h"

#include "base/prng.h"
#include "postgres/cluster.h"
#include "postgres/proxy.h"
#include "store/postgres_schema.h"

#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#define DATABASE  "postgres_test"
#define SECOND_NS UINT64_C(1000000000)

enum { SLOTS = 200 };

static struct cluster cluster;
static struct proxy *proxy;
static const char *why_not;

static struct store *open_as(const char *url, const struct store_options *options)
{
    struct store_failure failure = {0};
    struct store *store = store_open(url, options, &failure);
    if (store == NULL)
        fail_msg("%s does not open: %s", url, failure.text);
    return store;
}

static struct store *open_patient(const char *url)
{
    return open_as(url, &(struct store_options){.timeout_ns = 20 * SECOND_NS});
}

static void expect_equal(const struct model *model)
{
    struct store *store = open_patient(cluster_url(&cluster, DATABASE));
    const char *difference = model_compare(model, store);
    store_close(store);
    if (difference != NULL)
        fail_msg("%s", difference);
}

/* A commit that must fail, with this code and these words. */
static void expect_refused(struct store *store, const struct store_batch *batch, int exit_code,
                           const char *word)
{
    struct store_failure failure = {0};
    assert_int_equal(store_commit(store, batch, &failure), -EIO);
    if (failure.exit_code != exit_code || strstr(failure.text, word) == NULL ||
        strstr(failure.text, "; ") == NULL)
        fail_msg("exit code %d and \"%s\" expected; got %d: %s", exit_code, word, failure.exit_code,
                 failure.text);
}

static void expect_not_opened(const char *url, const struct store_options *options, int exit_code,
                              const char *word)
{
    struct store_failure failure = {0};
    struct store *store = store_open(url, options, &failure);
    if (store != NULL)
        fail_msg("%s opens", url);
    if (failure.exit_code != exit_code || strstr(failure.text, word) == NULL ||
        strstr(failure.text, "; ") == NULL)
        fail_msg("exit code %d and \"%s\" expected; got %d: %s", exit_code, word, failure.exit_code,
                 failure.text);
}

static void run_sql(const char *sql)
{
    assert_true(cluster_run(&cluster, DATABASE, sql));
}

static void expect_answer(const char *sql, const char *expected)
{
    const char *answer = cluster_ask(&cluster, DATABASE, sql);
    assert_non_null(answer);
    if (strcmp(answer, expected) != 0)
        fail_msg("%s: \"%s\", expected \"%s\"", sql, answer, expected);
}

static void end_sessions(void)
{
    run_sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE application_name LIKE 'holdfast %'");
}

static int set_up(void **state)
{
    struct model *model = calloc(1, sizeof *model);
    assert_non_null(model);
    assert_true(cluster_fresh(&cluster, DATABASE));
    model_init(model, SLOTS);
    *state = model;
    return 0;
}

static int tear_down(void **state)
{
    proxy_arm(proxy, PROXY_HONEST);
    model_done(*state);
    free(*state);
    return 0;
}

/* ---- outages ---- */

static void test_postgres__cut_commits_land_once(void **state)
{
    struct model *model = *state;
    struct prng prng = {(uint64_t)time(NULL)};
    struct store *store = open_patient(proxy_url(proxy, DATABASE));
    int before = proxy_deeds(proxy), armed = 0;
    print_message("# seed %llu\n", (unsigned long long)prng.state);
    for (unsigned i = 0; i < 4 * place_rounds(); i++) {
        static const enum proxy_deed deeds[] = {PROXY_CUT_BEFORE, PROXY_CUT_HALF, PROXY_CUT_AFTER,
                                                PROXY_LEAVE};
        if (prng_chance(&prng, 70)) {
            proxy_arm(proxy, deeds[prng_below(&prng, 4)]);
            armed++;
        }
        model_commit(model_next(model), store);
        assert_int_equal(model_stored_txn(store), model->txn);
    }
    store_close(store);
    assert_int_equal(proxy_deeds(proxy) - before, armed);
    assert_true(armed > 0);
    expect_equal(model);
}

static void test_postgres__commits_go_on_after_a_restart(void **state)
{
    struct model *model = *state;
    struct store *store = open_patient(cluster_url(&cluster, DATABASE));
    static const int signals[] = {SIGINT, SIGQUIT, SIGKILL};
    for (size_t i = 0; i < sizeof signals / sizeof signals[0]; i++) {
        model_commit(model_next(model), store);
        cluster_stop(&cluster, signals[i]);
        assert_true(cluster_start(&cluster));
        model_commit(model_next(model), store);
        end_sessions();
        model_commit(model_next(model), store);
    }
    store_close(store);
    expect_equal(model);
}

/*
 * Something that takes its time, on a thread of its own: opens a store if it has none, then commits
 * if it has a batch. What it says meanwhile is listened to.
 */
struct job {
    char url[256];
    struct store_options options;
    struct store *store;
    const struct store_batch *batch;
    const char *awaited; /* the word in a sentence that sets has_heard */
    pthread_t thread;
    pthread_mutex_t mutex; /* guards what follows */
    bool has_heard, is_done;
    int result;
    struct store_failure failure;
};

static void listen_to(void *context, const char *sentence)
{
    struct job *job = context;
    (void)pthread_mutex_lock(&job->mutex);
    job->has_heard |= strstr(sentence, job->awaited) != NULL;
    (void)pthread_mutex_unlock(&job->mutex);
}

static void job_init(struct job *job, const struct store_options *options, const char *awaited)
{
    *job =
        (struct job){.options = *options, .awaited = awaited, .mutex = PTHREAD_MUTEX_INITIALIZER};
    (void)snprintf(job->url, sizeof job->url, "%s", cluster_url(&cluster, DATABASE));
    job->options.say = listen_to;
    job->options.context = job;
}

static void *run_job(void *context)
{
    struct job *job = context;
    int result = 0;
    if (job->store == NULL)
        job->store = store_open(job->url, &job->options, &job->failure);
    if (job->store == NULL)
        result = -EIO;
    else if (job->batch != NULL)
        result = store_commit(job->store, job->batch, &job->failure);
    (void)pthread_mutex_lock(&job->mutex);
    job->is_done = true;
    job->result = result;
    (void)pthread_mutex_unlock(&job->mutex);
    return NULL;
}

static void job_start(struct job *job)
{
    assert_int_equal(pthread_create(&job->thread, NULL, run_job, job), 0);
}

static void job_wait(struct job *job, const bool *flag)
{
    for (int i = 0; i < 2000; i++) {
        struct timespec pause = {.tv_nsec = 10000000};
        (void)pthread_mutex_lock(&job->mutex);
        bool is_true = *flag;
        (void)pthread_mutex_unlock(&job->mutex);
        if (is_true)
            return;
        nanosleep(&pause, NULL);
    }
    fail_msg("it did not come that far in 20 s: %s", job->failure.text);
}

static void job_end(struct job *job)
{
    job_wait(job, &job->is_done);
    assert_int_equal(pthread_join(job->thread, NULL), 0);
    if (job->result != 0)
        fail_msg("%s", job->failure.text);
}

static const struct store_options patient = {.timeout_ns = 20 * SECOND_NS};

static void test_postgres__a_commit_waits_for_postgres(void **state)
{
    struct model *model = *state;
    struct job job;
    job_init(&job, &patient, "tried again");
    job.store = open_as(job.url, &job.options);
    model_commit(model_next(model), job.store);
    cluster_stop(&cluster, SIGINT);
    job.batch = model_next(model);
    job_start(&job);
    job_wait(&job, &job.has_heard);
    assert_false(job.is_done);
    assert_true(cluster_start(&cluster));
    job_end(&job);
    store_close(job.store);
    expect_equal(model);
}

static void test_postgres__an_open_waits_for_postgres(void **state)
{
    struct model *model = *state;
    struct job job;
    job_init(&job, &patient, "waiting for PostgreSQL");
    cluster_stop(&cluster, SIGINT);
    job.batch = model_next(model);
    job_start(&job);
    job_wait(&job, &job.has_heard);
    assert_true(cluster_start(&cluster));
    job_end(&job);
    store_close(job.store);
    expect_equal(model);
}

static void test_postgres__patience_ends(void **state)
{
    struct model *model = *state;
    struct store_options options = {.timeout_ns = SECOND_NS};
    char url[256];
    (void)snprintf(url, sizeof url, "%s", cluster_url(&cluster, DATABASE));
    struct store *store = open_as(url, &options);
    model_commit(model_next(model), store);
    cluster_stop(&cluster, SIGINT);
    struct model lost;
    model_init(&lost, SLOTS);
    while (lost.txn < model->txn)
        (void)model_next(&lost);
    const struct store_batch *batch = model_next(&lost);
    expect_refused(store, batch, 74, "--store-timeout");
    expect_refused(store, batch, 74, "start again"); /* and never again */
    store_close(store);
    expect_not_opened(url, &options, 74, "start PostgreSQL");
    model_done(&lost);
    assert_true(cluster_start(&cluster));
    expect_equal(model);
}

/* A frozen PostgreSQL answers nothing; nothing hangs for longer than it may. */
static void test_postgres__frozen_postgres_is_given_up(void **state)
{
    struct model *model = *state;
    struct store *store =
        open_as(cluster_url(&cluster, DATABASE), &(struct store_options){.timeout_ns = SECOND_NS});
    model_commit(model_next(model), store);
    const char *answer = cluster_ask(&cluster, DATABASE,
                                     "SELECT pid FROM pg_stat_activity "
                                     "WHERE application_name LIKE 'holdfast %'");
    assert_non_null(answer);
    pid_t backend = (pid_t)strtol(answer, NULL, 10);
    assert_int_equal(kill(backend, SIGSTOP), 0);
    assert_int_equal(kill(cluster.pid, SIGSTOP), 0);
    struct model later;
    model_init(&later, SLOTS);
    while (later.txn < model->txn)
        (void)model_next(&later);
    expect_refused(store, model_next(&later), 74, "--store-timeout");
    assert_int_equal(kill(cluster.pid, SIGCONT), 0);
    assert_int_equal(kill(backend, SIGCONT), 0);
    store_close(store);
    /* It was sent and may have landed: the next start reads which of the two it was. */
    store = open_patient(cluster_url(&cluster, DATABASE));
    uint64_t found = model_stored_txn(store);
    store_close(store);
    assert_true(found == model->txn || found == later.txn);
    expect_equal(found == later.txn ? &later : model);
    model_done(&later);
}

/* Somebody else locks the table, and statements end after 100 ms. */
static void test_postgres__statement_timeout_is_tried_again(void **state)
{
    struct model *model = *state;
    struct job job;
    job_init(&job, &patient, "statement timeout");
    job.store = open_as(job.url, &job.options);
    model_commit(model_next(model), job.store);
    run_sql("ALTER DATABASE " DATABASE " SET statement_timeout = '100ms'");
    end_sessions();
    char conninfo[256];
    (void)snprintf(conninfo, sizeof conninfo,
                   "host=%s user=holdfast dbname=" DATABASE
                   " application_name=blocker options='-c statement_timeout=0'",
                   cluster.directory);
    PGconn *blocker = PQconnectdb(conninfo);
    assert_int_equal(PQstatus(blocker), CONNECTION_OK);
    PQclear(PQexec(blocker, "BEGIN"));
    PQclear(PQexec(blocker, "LOCK TABLE notices, locks, clients, nsm_client_registrations"));
    model_begin(model);
    model_put(model, RECORD_NOTICE, 1);
    model_put(model, RECORD_LOCK, 1);
    job.batch = model_end(model, true);
    job_start(&job);
    job_wait(&job, &job.has_heard);
    assert_false(job.is_done);
    PQfinish(blocker);
    job_end(&job);
    store_close(job.store);
    expect_equal(model);
}

static void test_postgres__what_cannot_pass_is_told_at_once(void **state)
{
    struct model *model = *state;
    struct store *store = open_patient(cluster_url(&cluster, DATABASE));
    model_commit(model_next(model), store);
    run_sql("DROP TABLE notices");
    model_begin(model);
    model_put(model, RECORD_NOTICE, 1);
    expect_refused(store, model_end(model, true), 74, "notices");
    store_close(store);
}

/* ---- the fence ---- */

static const struct store_options server_options = {.is_server = true,
                                                    .timeout_ns = 20 * SECOND_NS};

static void test_postgres__a_server_is_replaced(void **state)
{
    struct model *model = *state;
    struct store *old = open_as(cluster_url(&cluster, DATABASE), &server_options);
    model_commit(model_next(model), old);
    end_sessions(); /* its lock goes with its session, and it does not notice */
    struct store *new = open_as(cluster_url(&cluster, DATABASE), &server_options);
    struct model other;
    model_init(&other, SLOTS);
    while (other.txn < model->txn)
        (void)model_next(&other);
    expect_refused(old, model_next(&other), 76, "taken over");
    model_commit(model_next(model), new);
    expect_refused(old, &other.batch, 74, "start again");
    store_close(old);
    store_close(new);
    model_done(&other);
    expect_equal(model);
}

/* The epoch alone decides, also when the lock was never lost. */
static void test_postgres__a_raised_epoch_stops_commits(void **state)
{
    struct model *model = *state;
    struct store *store = open_as(cluster_url(&cluster, DATABASE), &server_options);
    model_commit(model_next(model), store);
    run_sql("UPDATE server SET epoch = epoch + 1");
    expect_refused(store, &(struct store_batch){.txn = model->txn + 1, .epoch = 3}, 76,
                   "taken over");
    store_close(store);
}

/* A failover to a replica that was behind: nobody has taken over, and something is gone. */
static void test_postgres__lost_commits_are_noticed(void **state)
{
    struct model *model = *state;
    struct store *store = open_as(cluster_url(&cluster, DATABASE), &server_options);
    model_commit(model_next(model), store);
    model_commit(model_next(model), store);
    run_sql("UPDATE server SET txn = txn - 1");
    expect_refused(store, &(struct store_batch){.txn = model->txn + 1, .epoch = 3}, 74,
                   "--assume-lost");
    store_close(store);
}

/* After a cut the lock comes first: somebody who has it may be about to raise the epoch. */
static void test_postgres__a_lost_lock_stops_commits(void **state)
{
    struct model *model = *state;
    struct store *store = open_as(cluster_url(&cluster, DATABASE), &server_options);
    model_commit(model_next(model), store);
    end_sessions();
    struct store *tool = open_patient(cluster_url(&cluster, DATABASE)); /* raises nothing */
    expect_refused(store, model_next(model), 76, "the active server is");
    store_close(tool);
    store_close(store);
}

static void test_postgres__the_epoch_grows_with_every_start(void **state)
{
    struct model *model = *state;
    struct store *store = open_as(cluster_url(&cluster, DATABASE), &server_options);
    model_commit(model_next(model), store); /* the model's epoch is 3 */
    store_close(store);
    expect_answer("SELECT epoch FROM server", "3");
    store_close(open_as(cluster_url(&cluster, DATABASE), &server_options));
    store_close(open_as(cluster_url(&cluster, DATABASE), &server_options));
    expect_answer("SELECT epoch FROM server", "5");
    struct store *reader =
        open_as(cluster_url(&cluster, DATABASE), &(struct store_options){.is_reader = true});
    expect_refused(reader, &(struct store_batch){.txn = 2, .epoch = 5}, 74, "read only");
    store_close(reader);
    expect_answer("SELECT epoch FROM server", "5");
}

static void test_postgres__only_one_is_active(void **state)
{
    (void)state;
    struct store *store = open_as(cluster_url(&cluster, DATABASE), &server_options);
    expect_not_opened(cluster_url(&cluster, DATABASE),
                      &(struct store_options){.is_server = true, .timeout_ns = SECOND_NS / 2}, 74,
                      "--standby");
    store_close(store);
}

static void test_postgres__a_standby_takes_over(void **state)
{
    struct model *model = *state;
    struct job job;
    job_init(
        &job,
        &(struct store_options){.is_server = true, .is_standby = true, .timeout_ns = SECOND_NS / 2},
        "standing by");
    struct store *active = open_as(job.url, &server_options);
    model_commit(model_next(model), active);
    job_start(&job);
    job_wait(&job, &job.has_heard);
    model_commit(model_next(model), active);
    assert_false(job.is_done);
    store_close(active);
    job_end(&job);
    store_close(job.store);
    expect_equal(model);
}

/* ---- schema ---- */

static void test_postgres__registrations_have_the_named_columns(void **state)
{
    struct model *model = *state;
    struct store *store = open_patient(cluster_url(&cluster, DATABASE));
    uint8_t value[RECORD_VALUE_MAX];
    struct record_registrant record = {.id = 17,
                                       .registered_ns = UINT64_C(1700000000) * SECOND_NS,
                                       .server_epoch = 4,
                                       .address = address_v4((uint8_t[]){192, 0, 2, 7}),
                                       .transport = RECORD_TCP,
                                       .my_prog = 100021,
                                       .my_vers = 4,
                                       .my_proc = 16,
                                       .priv = {1, 2, 3},
                                       .mon_name = bytes_of_text("web\xc3\xbc.example"),
                                       .my_name = bytes_of_text("nas.example")};
    uint32_t len = record_put_registrant(value, 5, &record);
    model_begin(model);
    batch_put(&model->writer, RECORD_REGISTRANT, 5, (struct bytes){value, len});
    model_commit(model_end(model, true), store);
    store_close(store);
    expect_answer("SELECT concat_ws(' ', slot, client_id, mon_name, encode(priv, 'hex'), "
                  "callback_host, callback_prog, callback_vers, callback_proc, "
                  "registered_at AT TIME ZONE 'UTC', server_epoch, address, transport) "
                  "FROM nsm_client_registrations",
                  "5 17 web%C3%BC.example 01020300000000000000000000000000 nas.example 100021 4 16 "
                  "2023-11-14 22:13:20 4 192.0.2.7 tcp");
    expect_answer("SELECT string_agg(a.attname, ' ' ORDER BY a.attname) FROM pg_index i "
                  "JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = i.indkey[0] "
                  "WHERE i.indrelid = 'nsm_client_registrations'::regclass AND NOT indisprimary",
                  "callback_host mon_name registered_at");
}

static void test_postgres__a_newer_schema_is_refused(void **state)
{
    (void)state;
    store_close(open_patient(cluster_url(&cluster, DATABASE)));
    run_sql("UPDATE holdfast_schema SET version = 99");
    expect_not_opened(cluster_url(&cluster, DATABASE), &server_options, 78, "version 99");
    expect_answer("SELECT epoch FROM server", "0"); /* nothing was changed */
}

static void test_postgres__migrations_go_up_and_down(void **state)
{
    (void)state;
    struct postgres_session session;
    const char *url = cluster_url(&cluster, DATABASE);
    uint64_t deadline_ns = postgres_now_ns() + 20 * SECOND_NS;
    assert_int_equal(postgres_session_init(&session, url + strlen("postgres:")), 0);
    assert_int_equal(postgres_session_connect(&session, deadline_ns), POSTGRES_DONE);
    for (int round = 0; round < 2; round++) {
        uint32_t version = 7;
        for (uint32_t to = 1; to <= postgres_migration_count; to++) {
            assert_int_equal(postgres_schema_move(&session, to - 1, to, deadline_ns),
                             POSTGRES_DONE);
            assert_int_equal(postgres_schema_version(&session, deadline_ns, &version),
                             POSTGRES_DONE);
            assert_int_equal(version, to);
        }
        assert_int_equal(postgres_schema_move(&session, postgres_migration_count, 0, deadline_ns),
                         POSTGRES_DONE);
        assert_int_equal(postgres_schema_version(&session, deadline_ns, &version), POSTGRES_DONE);
        assert_int_equal(version, 0);
        expect_answer("SELECT count(*) FROM pg_class c JOIN pg_namespace n ON n.oid = relnamespace "
                      "WHERE nspname = 'public'",
                      "0");
    }
    postgres_session_done(&session);
}

/* A database that is somebody else's stays as it is. */
static void test_postgres__a_foreign_database_is_left_alone(void **state)
{
    (void)state;
    run_sql("CREATE TABLE server (name text)");
    expect_not_opened(cluster_url(&cluster, DATABASE), &server_options, 74, "database of its own");
    expect_answer("SELECT count(*) FROM pg_class c JOIN pg_namespace n ON n.oid = relnamespace "
                  "WHERE nspname = 'public' AND relkind = 'r'",
                  "1");
}

static void test_postgres__bad_urls_are_refused(void **state)
{
    (void)state;
    place_refused("postgres:", false, 2, "connection is missing", "postgres:CONNINFO");
    place_refused("postgres:dbname=x", true, 2, "--sync process", "lmdb");
    expect_not_opened("postgres:nonsense", &(struct store_options){.timeout_ns = SECOND_NS / 10},
                      74, "nonsense");
}

static void expect_shown(const char *url, const char *expected)
{
    char text[128];
    store_show_url(url, text, sizeof text);
    assert_string_equal(text, expected);
}

static void test_postgres__passwords_are_not_shown(void **state)
{
    (void)state;
    expect_shown("lmdb:DIR", "lmdb:DIR");
    expect_shown("postgres:host=a password=b user=c", "postgres:host=a password=... user=c");
    expect_shown("postgres:password='b \\' c' user=d", "postgres:password=... user=d");
    expect_shown("postgres:password=b", "postgres:password=...");
    expect_shown("postgres://me:secret@db/x?password=y&a=b",
                 "postgres://me:...@db/x?password=...&a=b");
    expect_shown("postgres://me@db:5432/x", "postgres://me@db:5432/x");
    char text[16];
    store_show_url("postgres:password=a_very_long_password", text, sizeof text);
    assert_null(strstr(text, "very"));
}

#define POSTGRES(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

static const struct CMUnitTest tests[] = {
    POSTGRES(test_postgres__cut_commits_land_once),
    POSTGRES(test_postgres__commits_go_on_after_a_restart),
    POSTGRES(test_postgres__a_commit_waits_for_postgres),
    POSTGRES(test_postgres__an_open_waits_for_postgres),
    POSTGRES(test_postgres__patience_ends),
    POSTGRES(test_postgres__frozen_postgres_is_given_up),
    POSTGRES(test_postgres__statement_timeout_is_tried_again),
    POSTGRES(test_postgres__what_cannot_pass_is_told_at_once),
    POSTGRES(test_postgres__a_server_is_replaced),
    POSTGRES(test_postgres__a_raised_epoch_stops_commits),
    POSTGRES(test_postgres__lost_commits_are_noticed),
    POSTGRES(test_postgres__a_lost_lock_stops_commits),
    POSTGRES(test_postgres__the_epoch_grows_with_every_start),
    POSTGRES(test_postgres__only_one_is_active),
    POSTGRES(test_postgres__a_standby_takes_over),
    POSTGRES(test_postgres__registrations_have_the_named_columns),
    POSTGRES(test_postgres__a_newer_schema_is_refused),
    POSTGRES(test_postgres__migrations_go_up_and_down),
    POSTGRES(test_postgres__a_foreign_database_is_left_alone),
    POSTGRES(test_postgres__bad_urls_are_refused),
    cmocka_unit_test(test_postgres__passwords_are_not_shown),
};

static void test_postgres__all(void **state)
{
    (void)state;
    print_message("skipped: %s\n", why_not);
    skip();
}

static const struct CMUnitTest instead[] = {cmocka_unit_test(test_postgres__all)};

int main(void)
{
    if (!cluster_init(&cluster, &why_not))
        return cmocka_run_group_tests(instead, NULL, NULL);
    int failed = 1;
    if (cluster_start(&cluster) && (proxy = proxy_new(&cluster)) != NULL) {
        failed = cmocka_run_group_tests(tests, NULL, NULL);
        proxy_free(proxy);
    }
    cluster_done(&cluster);
    return failed;
}
