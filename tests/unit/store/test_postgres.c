/*
 * test_postgres.c -- what is PostgreSQL's own: outages, doubtful commits, the schema.
 *
 * A private PostgreSQL is stopped, killed, frozen, and cut off in the middle of a commit by a
 * proxy. The contents are compared with the model (model.h) byte by byte afterwards: nothing that
 * was acknowledged may be missing, nothing may have happened twice. The contract itself is shown by
 * test_contract.c, who may write by test_postgres_fence.c.
 */
#include "place.h"
#include "scene.h"

#include "base/prng.h"
#include "store/postgres_schema.h"

#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

/* ---- hosts ---- */

static void expect_host(const char *conninfo, uint32_t count, uint32_t index, const char *host,
                        const char *port)
{
    struct postgres_hosts hosts;
    struct postgres_host at;
    assert_int_equal(postgres_hosts_init(&hosts, conninfo), 0);
    assert_int_equal(hosts.count, count);
    postgres_hosts_at(&hosts, index, &at);
    assert_string_equal(at.host_value == NULL ? "-" : at.host_value, host);
    assert_string_equal(at.port_value == NULL ? "-" : at.port_value, port);
    postgres_hosts_done(&hosts);
}

TEST(test_postgres__hosts_are_taken_apart)
{
    expect_host("dbname=x", 1, 0, "-", "-");
    expect_host("x", 1, 0, "-", "-");
    expect_host("host=a port=1", 1, 0, "-", "-"); /* the string says it itself */
    expect_host("host=a,b,c port=1,2,3", 3, 1, "b", "2");
    expect_host("host=a,b,c port=7", 3, 2, "c", "7");
    expect_host("host=,/run port=,2", 2, 0, "", "");
    expect_host("postgres://u@a:1,b:2/x", 2, 1, "b", "2");
    expect_host("host=a,b port=1,2,3", 1, 0, "-", "-"); /* libpq says what is wrong with it */
    expect_host("hostaddr=192.0.2.1,192.0.2.2", 2, 1, "-", "-");
    expect_host("host=a,b hostaddr=192.0.2.1,192.0.2.2", 2, 1, "b", "-");
}

/* Takes connections and never says a word. */
static int open_mute(uint16_t *ret_port)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof at;
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&at, sizeof at), 0);
    assert_int_equal(listen(fd, 5), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&at, &len), 0);
    *ret_port = ntohs(at.sin_port);
    return fd;
}

SCENE(test_postgres__a_mute_host_leaves_time_for_the_next)
{
    struct postgres_session session;
    char conninfo[300];
    uint16_t port;
    int fd = open_mute(&port);
    (void)snprintf(conninfo, sizeof conninfo,
                   "host=127.0.0.1,%s port=%u,5432 user=holdfast dbname=" SCENE_DATABASE
                   " sslmode=disable",
                   scene_cluster.directory, port);
    assert_int_equal(postgres_session_init(&session, conninfo), 0);
    uint64_t began_ns = postgres_now_ns();
    assert_int_equal(postgres_session_connect(&session, began_ns + 2 * SECOND_NS), POSTGRES_DONE);
    assert_true(postgres_now_ns() - began_ns >= SECOND_NS);
    /* The one that served comes first now: there is no time for the other one. */
    assert_int_equal(postgres_session_connect(&session, postgres_now_ns() + SECOND_NS),
                     POSTGRES_DONE);
    postgres_session_done(&session);
    (void)close(fd);
}

/* ---- outages ---- */

SCENE_OF(test_postgres__cut_commits_land_once, struct model *model)
{
    struct prng prng = {(uint64_t)time(NULL)};
    struct store *store = scene_open_patient(proxy_url(scene_proxy, SCENE_DATABASE));
    int before = proxy_deeds(scene_proxy), armed = 0;
    print_message("# seed %llu\n", (unsigned long long)prng.state);
    for (unsigned i = 0; i < 4 * place_rounds(); i++) {
        static const enum proxy_deed deeds[] = {PROXY_CUT_BEFORE, PROXY_CUT_HALF, PROXY_CUT_AFTER,
                                                PROXY_LEAVE};
        if (prng_chance(&prng, 70)) {
            proxy_arm(scene_proxy, deeds[prng_below(&prng, 4)]);
            armed++;
        }
        model_commit(model_next(model), store);
        assert_int_equal(model_stored_txn(store), model->txn);
    }
    store_close(store);
    assert_int_equal(proxy_deeds(scene_proxy) - before, armed);
    assert_true(armed > 0);
    scene_expect(model);
}

SCENE_OF(test_postgres__commits_go_on_after_a_restart, struct model *model)
{
    struct store *store = scene_open_patient(scene_url());
    static const int signals[] = {SIGINT, SIGQUIT, SIGKILL};
    for (size_t i = 0; i < sizeof signals / sizeof signals[0]; i++) {
        model_commit(model_next(model), store);
        cluster_stop(&scene_cluster, signals[i]);
        assert_true(cluster_start(&scene_cluster));
        model_commit(model_next(model), store);
        scene_end_sessions();
        model_commit(model_next(model), store);
    }
    store_close(store);
    scene_expect(model);
}

static const struct store_options patient = {.timeout_ns = 20 * SECOND_NS};

SCENE_OF(test_postgres__a_commit_waits_for_postgres, struct model *model)
{
    struct job job;
    job_init(&job, &patient, "retrying");
    job.store = scene_open(job.url, &job.options);
    model_commit(model_next(model), job.store);
    cluster_stop(&scene_cluster, SIGINT);
    job.batch = model_next(model);
    job_start(&job);
    job_wait(&job, &job.has_heard);
    assert_false(job_is_done(&job));
    assert_true(cluster_start(&scene_cluster));
    job_end(&job);
    store_close(job.store);
    scene_expect(model);
}

SCENE_OF(test_postgres__an_open_waits_for_postgres, struct model *model)
{
    struct job job;
    job_init(&job, &patient, "waiting for PostgreSQL");
    cluster_stop(&scene_cluster, SIGINT);
    job.batch = model_next(model);
    job_start(&job);
    job_wait(&job, &job.has_heard);
    assert_true(cluster_start(&scene_cluster));
    job_end(&job);
    store_close(job.store);
    scene_expect(model);
}

SCENE_OF(test_postgres__patience_ends, struct model *model)
{
    struct store_options options = {.timeout_ns = SECOND_NS};
    char url[256];
    (void)snprintf(url, sizeof url, "%s", scene_url());
    struct store *store = scene_open(url, &options);
    model_commit(model_next(model), store);
    cluster_stop(&scene_cluster, SIGINT);
    struct model lost;
    model_init(&lost, SCENE_SLOTS);
    while (lost.txn < model->txn)
        (void)model_next(&lost);
    const struct store_batch *batch = model_next(&lost);
    scene_refuses(store, batch, 74, "--store-timeout");
    scene_refuses(store, batch, 74, "start again"); /* and never again */
    store_close(store);
    scene_stays_shut(url, &options, 74, "start PostgreSQL");
    model_done(&lost);
    assert_true(cluster_start(&scene_cluster));
    scene_expect(model);
}

/* A frozen PostgreSQL answers nothing; nothing hangs for longer than it may. */
SCENE_OF(test_postgres__frozen_postgres_is_given_up, struct model *model)
{
    struct store *store = scene_open(scene_url(), &(struct store_options){.timeout_ns = SECOND_NS});
    model_commit(model_next(model), store);
    const char *answer = cluster_ask(&scene_cluster, SCENE_DATABASE,
                                     "SELECT pid FROM pg_stat_activity "
                                     "WHERE application_name LIKE 'holdfast %'");
    assert_non_null(answer);
    pid_t backend = (pid_t)strtol(answer, NULL, 10);
    assert_int_equal(kill(backend, SIGSTOP), 0);
    assert_int_equal(kill(scene_cluster.pid, SIGSTOP), 0);
    struct model later;
    model_init(&later, SCENE_SLOTS);
    while (later.txn < model->txn)
        (void)model_next(&later);
    scene_refuses(store, model_next(&later), 74, "--store-timeout");
    assert_int_equal(kill(scene_cluster.pid, SIGCONT), 0);
    assert_int_equal(kill(backend, SIGCONT), 0);
    store_close(store);
    /* It was sent and may have landed: the next start reads which of the two it was. */
    store = scene_open_patient(scene_url());
    uint64_t found = model_stored_txn(store);
    store_close(store);
    assert_true(found == model->txn || found == later.txn);
    scene_expect(found == later.txn ? &later : model);
    model_done(&later);
}

/* Somebody else locks the table, and statements end after 100 ms. */
SCENE_OF(test_postgres__statement_timeout_is_tried_again, struct model *model)
{
    struct job job;
    job_init(&job, &patient, "statement timeout");
    job.store = scene_open(job.url, &job.options);
    model_commit(model_next(model), job.store);
    scene_run("ALTER DATABASE " SCENE_DATABASE " SET statement_timeout = '100ms'");
    scene_end_sessions();
    char conninfo[256];
    (void)snprintf(conninfo, sizeof conninfo,
                   "host=%s user=holdfast dbname=" SCENE_DATABASE
                   " application_name=blocker options='-c statement_timeout=0'",
                   scene_cluster.directory);
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
    assert_false(job_is_done(&job));
    PQfinish(blocker);
    job_end(&job);
    store_close(job.store);
    scene_expect(model);
}

SCENE_OF(test_postgres__what_cannot_pass_is_told_at_once, struct model *model)
{
    struct store *store = scene_open_patient(scene_url());
    model_commit(model_next(model), store);
    scene_run("DROP TABLE notices");
    model_begin(model);
    model_put(model, RECORD_NOTICE, 1);
    scene_refuses(store, model_end(model, true), 74, "notices");
    store_close(store);
}

/* ---- schema ---- */

static const struct store_options server_options = {.is_server = true,
                                                    .timeout_ns = 20 * SECOND_NS};

SCENE_OF(test_postgres__registrations_have_the_named_columns, struct model *model)
{
    struct store *store = scene_open_patient(scene_url());
    uint8_t value[RECORD_VALUE_MAX];
    struct record_registrant record = {.id = 17,
                                       .registered_ns = UINT64_C(1700000000) * SECOND_NS,
                                       .server_epoch = 4,
                                       .address = address_v4((uint8_t[]){192, 0, 2, 7}),
                                       .transport = TRANSPORT_TCP,
                                       .my_prog = 100021,
                                       .my_vers = 4,
                                       .my_proc = 16,
                                       .priv = {1, 2, 3},
                                       .mon_name = bytes_of_text("web\xc3\xbc.example"),
                                       .my_name = bytes_of_text("nas.example")};
    uint32_t len = record_put_registrant(value, 5, &record);
    model_begin(model);
    store_batch_put(&model->writer, RECORD_REGISTRANT, 5, (struct bytes){value, len});
    model_commit(model_end(model, true), store);
    store_close(store);
    scene_answers("SELECT concat_ws(' ', slot, client_id, mon_name, encode(priv, 'hex'), "
                  "callback_host, callback_prog, callback_vers, callback_proc, "
                  "registered_at AT TIME ZONE 'UTC', server_epoch, address, transport) "
                  "FROM nsm_client_registrations",
                  "5 17 web%C3%BC.example 01020300000000000000000000000000 nas.example 100021 4 16 "
                  "2023-11-14 22:13:20 4 192.0.2.7 tcp");
    scene_answers("SELECT string_agg(a.attname, ' ' ORDER BY a.attname) FROM pg_index i "
                  "JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = i.indkey[0] "
                  "WHERE i.indrelid = 'nsm_client_registrations'::regclass AND NOT indisprimary",
                  "callback_host mon_name registered_at");
}

SCENE(test_postgres__a_newer_schema_is_refused)
{
    store_close(scene_open_patient(scene_url()));
    scene_run("UPDATE holdfast_schema SET version = 99");
    scene_stays_shut(scene_url(), &server_options, 78, "version 99");
    scene_answers("SELECT epoch FROM server", "0"); /* nothing was changed */
}

SCENE(test_postgres__migrations_go_up_and_down)
{
    struct postgres_session session;
    const char *url = scene_url();
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
        scene_answers("SELECT count(*) FROM pg_class c JOIN pg_namespace n ON n.oid = relnamespace "
                      "WHERE nspname = 'public'",
                      "0");
    }
    postgres_session_done(&session);
}

/* A database that is somebody else's stays as it is. */
SCENE(test_postgres__a_foreign_database_is_left_alone)
{
    scene_run("CREATE TABLE server (name text)");
    scene_stays_shut(scene_url(), &server_options, 74, "its own database");
    scene_answers("SELECT count(*) FROM pg_class c JOIN pg_namespace n ON n.oid = relnamespace "
                  "WHERE nspname = 'public' AND relkind = 'r'",
                  "1");
}

SCENE(test_postgres__bad_urls_are_refused)
{
    place_refused("postgres:", false, 2, "missing connection string", "postgres:CONNINFO");
    place_refused("postgres:dbname=x", true, 2, "--sync process", "lmdb");
    scene_stays_shut("postgres:nonsense", &(struct store_options){.timeout_ns = SECOND_NS / 10}, 74,
                     "nonsense");
    /* What libpq cannot read is no outage: nobody waits, also a standby does not. */
    static const struct store_options standby = {.is_server = true, .is_standby = true};
    scene_stays_shut("postgres:hots=db1", &standby, 2, "hots");
    scene_stays_shut("postgres:host=db1 nonsense", &standby, 2, "nonsense");
    scene_stays_shut("postgres://db1/x?hots=y", &standby, 2, "hots");
    /* libpq would quote it */
    static const char *const secrets[] = {
        "postgres:password=very secret", "postgres://u:50%secret@db/x",
        "postgres:postgres://u:50%secret@db/x", "postgres:postgresql://u:50%secret@db/x"};
    for (size_t i = 0; i < sizeof secrets / sizeof secrets[0]; i++) {
        struct store_failure failure = {0};
        assert_null(store_open(secrets[i], &standby, &failure));
        assert_int_equal(failure.exit_code, 2);
        assert_null(strstr(failure.text, "secret"));
    }
}

static void expect_shown(const char *url, const char *expected)
{
    char text[128];
    store_show_url(url, text, sizeof text);
    assert_string_equal(text, expected);
}

TEST(test_postgres__passwords_are_not_shown)
{
    expect_shown("lmdb:DIR", "lmdb:DIR");
    expect_shown("postgres:host=a password=b user=c", "postgres:host=a password=... user=c");
    expect_shown("postgres:password='b \\' c' user=d", "postgres:password=... user=d");
    expect_shown("postgres:password=b", "postgres:password=...");
    expect_shown("postgres://me:secret@db/x?password=y&a=b",
                 "postgres://me:...@db/x?password=...&a=b");
    expect_shown("postgres://me@db:5432/x", "postgres://me@db:5432/x");
    expect_shown("postgres:password = b user=c", "postgres:password = ... user=c");
    expect_shown("postgres:password=b&c user=d", "postgres:password=... user=d");
    expect_shown("postgres:password=b\\ c user=d", "postgres:password=... user=d");
    expect_shown("postgres:sslpassword=b user=d", "postgres:sslpassword=... user=d");
    expect_shown("postgres://me:a@b@db/x", "postgres://me:...@db/x");
    expect_shown("postgres://me:a/b@db/x", "postgres://me:...@db/x");
    expect_shown("postgres://me:a?b@db/x", "postgres://me:...@db/x");
    expect_shown("postgres://me:a/b?c@db/x?d=e", "postgres://me:...@db/x?d=e");
    expect_shown("postgres://me:a@db/x?password=b@c&d=e", "postgres://me:...&d=e");
    expect_shown("postgres:postgres://me:a@db/x", "postgres:postgres://me:...@db/x");
    expect_shown("postgres:postgresql://me:a?b@db/x", "postgres:postgresql://me:...@db/x");
    expect_shown("postgres:dbname=postgres://me:a@db/x user=b",
                 "postgres:dbname=postgres://me:...@db/x user=b");
    expect_shown("postgres:dbname=a://b password=c&d", "postgres:dbname=a://b password=...");
    expect_shown("postgres://db:5432/x?user=a@b", "postgres://db:...@b"); /* rather too much */
    expect_shown("lmdb:/a b/password", "lmdb:/a b/password");
    char text[16];
    store_show_url("postgres:password=a_very_long_password", text, sizeof text);
    assert_null(strstr(text, "very"));
}

int main(void)
{
    return scene_main();
}
