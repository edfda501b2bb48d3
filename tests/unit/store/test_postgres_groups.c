/*
 * test_postgres_groups.c -- groups that share a database, and nothing in it.
 *
 * Shown: each has its own records, epoch and active server; what is done to one, a takeover, a
 * clearing or a lost session, does not touch another; a role's search_path has no say; what was
 * there without a group stays as it was; a standby of several gets the first that falls free, and
 * two of them one each, and go on without one that was dropped; the list says who serves and who
 * waits, and runs no code that it finds.
 */
#include "scene.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static struct store_options options_of(const char *group)
{
    return (struct store_options){.is_server = true,
                                  .timeout_ns = 20 * SECOND_NS,
                                  .group_count = group == NULL ? 0 : 1,
                                  .groups = {group},
                                  .addresses = {"192.0.2.1"}};
}

static struct store *open_group(const char *group)
{
    struct store_options options = options_of(group);
    return scene_open(scene_url(), &options);
}

static void ignore_step(void *context, uint32_t from, uint32_t to, const char *sql)
{
    (void)context, (void)from, (void)to, (void)sql;
}

static void expect_records(const struct model *model, const char *group)
{
    struct store_options options = options_of(group);
    options.is_server = false; /* it only looks, and takes no epoch */
    struct store *store = scene_open(scene_url(), &options);
    const char *difference = model_compare(model, store);
    store_close(store);
    if (difference != NULL)
        fail_msg("%s: %s", group == NULL ? "no group" : group, difference);
}

/* Three places in one database, written in turn; the first one is as before there were groups. */
SCENE(test_postgres__groups_share_nothing)
{
    static const char *const groups[] = {NULL, "a", "b-1"};
    struct store *stores[3];
    struct model models[3];
    (void)state;
    for (int i = 0; i < 3; i++) {
        stores[i] = open_group(groups[i]);
        model_init(&models[i], SCENE_SLOTS);
    }
    for (int round = 0; round < 20; round++)
        for (int i = 0; i < 3; i++)
            if (round % (i + 1) == 0)
                model_commit(model_next(&models[i]), stores[i]);
    for (int i = 0; i < 3; i++)
        store_close(stores[i]);
    scene_answers("SELECT count(*) FROM public.server, holdfast_a.server a, "
                  "\"holdfast_b-1\".server b WHERE server.txn = 20 AND a.txn = 10 AND b.txn = 7",
                  "1");
    scene_run("CREATE TABLE before AS SELECT server.epoch, a.epoch AS a FROM public.server, "
              "holdfast_a.server a");
    store_close(open_group("a")); /* the next epoch, of one */
    scene_answers("SELECT a.epoch - before.a FROM before, holdfast_a.server a", "1");
    scene_answers("SELECT server.epoch - before.epoch FROM before, public.server", "0");
    for (int i = 0; i < 3; i++) {
        expect_records(&models[i], groups[i]);
        model_done(&models[i]);
    }
}

/* The lock is the group's: another group is not in the way, another server is. */
SCENE(test_postgres__each_group_has_an_active_server)
{
    (void)state;
    struct store *none = open_group(NULL), *a = open_group("a"), *b = open_group("b");
    static const char *const groups[] = {NULL, "a", "b"};
    for (int i = 0; i < 3; i++) {
        struct store_options options = options_of(groups[i]);
        options.timeout_ns = SECOND_NS / 2;
        scene_stays_shut(scene_url(), &options, 74, "in use");
    }
    store_close(a);
    store_close(open_group("a"));
    store_close(b);
    store_close(none);
}

/* Neither a role's search_path nor a table of the same name elsewhere leads a group astray. */
SCENE_OF(test_postgres__a_search_path_has_no_say, struct model *model)
{
    store_close(open_group("a"));
    store_close(open_group("b"));
    scene_run("ALTER ROLE holdfast SET search_path = holdfast_b, public");
    scene_run("CREATE TABLE public.locks (slot integer)");
    struct store *store = open_group("a");
    model_commit(model_next(model), store);
    scene_end_sessions(); /* it sets what it needs on the next connection, too */
    model_commit(model_next(model), store);
    store_close(store);
    expect_records(model, "a");
    scene_run("ALTER ROLE holdfast RESET search_path");
    scene_answers("SELECT txn FROM holdfast_b.server", "0");
}

static void expect_stray(const char *schema)
{
    struct store_options options = options_of(NULL);
    struct store_migration how = {.visit = ignore_step};
    struct store_failure failure = {0};
    scene_stays_shut(scene_url(), &options, 74, schema);
    options.is_server = false;
    scene_stays_shut(scene_url(), &options, 74, "use --group");
    /* PostgreSQL takes a moment to end the session that was refused before, and its lock. */
    time_t deadline = time(NULL) + 20;
    do
        assert_int_equal(store_migrate(scene_url(), &how, &failure), -EIO);
    while (strstr(failure.text, "in use") != NULL && time(NULL) < deadline && usleep(10000) == 0);
    assert_non_null(strstr(failure.text, schema));
}

/* Without a group it has another lock, so two servers would share the group's tables. */
SCENE(test_postgres__a_search_path_leads_nobody_into_a_group)
{
    (void)state;
    store_close(open_group("a"));
    scene_run("CREATE SCHEMA holdfast_new");
    scene_run("ALTER ROLE holdfast SET search_path = holdfast_a, public");
    expect_stray("leads to schema \"holdfast_a\"");
    scene_answers("SELECT epoch FROM holdfast_a.server", "1");
    scene_run("ALTER ROLE holdfast SET search_path = holdfast_new, public"); /* still empty */
    expect_stray("leads to schema \"holdfast_new\"");
    scene_run("ALTER ROLE holdfast RESET search_path");
    scene_answers("SELECT count(*) FROM pg_class WHERE relnamespace = 'holdfast_new'::regnamespace",
                  "0");
    store_close(open_group(NULL));
}

/* A server of one group is replaced, and the other one goes on. */
SCENE_OF(test_postgres__a_takeover_is_of_one_group, struct model *model)
{
    struct model other;
    model_init(&other, SCENE_SLOTS);
    struct store *a = open_group("a"), *b = open_group("b");
    model_commit(model_next(model), a);
    model_commit(model_next(&other), b);
    scene_run("SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory' "
              "AND database = (SELECT oid FROM pg_database WHERE datname = current_database()) "
              "AND classid = 1752132708 AND objsubid = 2 "
              "AND objid = '\"holdfast_a\"'::regnamespace");
    struct store *next = open_group("a");
    scene_refuses(a, &(struct store_batch){.txn = model->txn + 1, .epoch = 1}, 76, "taken over");
    model_commit(model_next(&other), b);
    store_close(a);
    store_close(b);
    store_close(next);
    expect_records(&other, "b");
    model_done(&other);
}

/* A schema that was dropped under its server is no reason to begin anew. */
SCENE_OF(test_postgres__a_dropped_group_ends_its_server, struct model *model)
{
    struct store *store = open_group("a");
    model_commit(model_next(model), store);
    scene_run("DROP SCHEMA holdfast_a CASCADE");
    scene_end_sessions();
    scene_refuses(store, model_next(model), 74, "no such group");
    store_close(store);
    scene_answers("SELECT count(*) FROM pg_namespace WHERE nspname = 'holdfast_a'", "0");
}

SCENE(test_postgres__a_reader_makes_no_group)
{
    (void)state;
    const struct store_options reader = {
        .is_reader = true, .timeout_ns = SECOND_NS, .group_count = 1, .groups = {"typo"}};
    scene_stays_shut(scene_url(), &reader, 74, "no such group");
    scene_answers("SELECT count(*) FROM pg_namespace WHERE nspname LIKE 'holdfast%'", "0");
}

/* ---- a standby of several ---- */

static void begin_standby(struct job *job)
{
    const struct store_options options = {.is_server = true,
                                          .is_standby = true,
                                          .timeout_ns = 20 * SECOND_NS,
                                          .group_count = 3,
                                          .groups = {"a", "b", "c"},
                                          .addresses = {"192.0.2.1", "192.0.2.2", "192.0.2.3"}};
    job_init(job, &options, "standing by");
    job_start(job);
}

static uint32_t group_of(struct job *job)
{
    struct store_summary summary;
    job_end(job);
    store_summarize(job->store, &summary);
    return summary.group;
}

SCENE(test_postgres__a_standby_of_several_gets_the_first_that_is_free)
{
    (void)state;
    struct store *stores[3] = {open_group("a"), open_group("b"), open_group("c")};
    struct job jobs[2];
    for (int i = 0; i < 2; i++) {
        begin_standby(&jobs[i]);
        job_wait(&jobs[i], &jobs[i].has_heard);
    }
    struct model model;
    model_init(&model, SCENE_SLOTS);
    model_commit(model_next(&model), stores[1]);
    store_close(stores[1]);
    store_close(stores[2]);
    uint32_t first = group_of(&jobs[0]), second = group_of(&jobs[1]);
    if (first == 0 || second == 0 || first == second)
        fail_msg("they got %u and %u", first, second);
    /* And it is of that group: its records, and its address. */
    scene_answers("SELECT address FROM holdfast_b.server", "192.0.2.2");
    scene_answers("SELECT address FROM holdfast_c.server", "192.0.2.3");
    model_commit(model_next(&model), jobs[first == 1 ? 0 : 1].store);
    for (int i = 0; i < 2; i++)
        store_close(jobs[i].store);
    store_close(stores[0]);
    expect_records(&model, "b");
    model_done(&model);
}

/* One that was dropped is nobody's any more, and no reason to give up the others, even when the
 * connection was lost meanwhile; who waits for it makes no empty one. */
SCENE(test_postgres__a_standby_of_several_goes_on_without_a_dropped_one)
{
    (void)state;
    struct store *stores[3] = {open_group("a"), open_group("b"), open_group("c")};
    struct job job;
    begin_standby(&job);
    job_wait(&job, &job.has_heard);
    (void)pthread_mutex_lock(&job.mutex);
    job.awaited = "not for the group of schema holdfast_b, which is gone";
    job.has_heard = false;
    (void)pthread_mutex_unlock(&job.mutex);
    scene_run("DROP SCHEMA holdfast_b CASCADE");
    job_wait(&job, &job.has_heard);
    store_close(stores[1]);
    scene_run("SELECT pg_terminate_backend(pid) FROM pg_locks WHERE classid = 2002872692");
    store_close(stores[2]);
    assert_int_equal(group_of(&job), 2);
    scene_answers("SELECT count(*) FROM pg_namespace WHERE nspname = 'holdfast_b'", "0");
    store_close(job.store);
    store_close(stores[0]);
}

/* Who waits for nothing else ends, and knows what to do. */
SCENE(test_postgres__a_standby_of_a_dropped_group_ends)
{
    (void)state;
    struct store *store = open_group("a");
    struct store_options options = options_of("a");
    struct job job;
    options.is_standby = true;
    job_init(&job, &options, "standing by");
    job_start(&job);
    job_wait(&job, &job.has_heard);
    scene_run("DROP SCHEMA holdfast_a CASCADE");
    job_fails(&job, 74);
    assert_non_null(strstr(job.failure.text, "\"holdfast_a\""));
    assert_non_null(strstr(job.failure.text, "restore that schema from a backup"));
    store_close(store);
}

/* Who may not make it says who is to have it. */
SCENE(test_postgres__a_schema_that_may_not_be_made)
{
    (void)state;
    struct store_options options = options_of("a");
    char url[320];
    scene_run("DROP ROLE IF EXISTS \"poor role\"; CREATE ROLE \"poor role\" LOGIN");
    (void)snprintf(url, sizeof url, "%s user='poor role'", scene_url());
    scene_stays_shut(url, &options, 74,
                     "run: CREATE SCHEMA \"holdfast_a\" AUTHORIZATION \"poor role\"");
    scene_run("CREATE SCHEMA holdfast_a AUTHORIZATION \"poor role\"");
    store_close(scene_open(url, &options));
    scene_run("DROP SCHEMA holdfast_a CASCADE; DROP ROLE \"poor role\"");
}

/* ---- the list ---- */

struct listed {
    char text[1024];
};

static int put_group(void *context, const struct store_group *group)
{
    struct listed *listed = context;
    size_t len = strlen(listed->text);
    (void)snprintf(listed->text + len, sizeof listed->text - len,
                   "%s %s %s epoch %llu waiting %u%s;", group->name == NULL ? "-" : group->name,
                   group->is_served ? "active" : "nobody",
                   group->address == NULL ? "?" : group->address, (unsigned long long)group->epoch,
                   group->waiting, group->host != NULL && group->since != NULL ? "" : " unknown");
    return 0;
}

static void expect_list(const char *expected)
{
    struct listed listed = {""};
    struct store_failure failure = {0};
    if (store_list_groups(scene_url(), 20 * SECOND_NS, put_group, &listed, &failure) != 0)
        fail_msg("%s", failure.text);
    assert_string_equal(listed.text, expected);
}

SCENE(test_postgres__the_list_says_who_serves_and_who_waits)
{
    (void)state;
    expect_list("");
    struct store *none = open_group(NULL), *a = open_group("a"), *b = open_group("b"),
                 *c = open_group("c");
    store_close(none);
    struct job job;
    begin_standby(&job);
    job_wait(&job, &job.has_heard);
    uint64_t deadline_ns = 0; /* it shows itself right after it has said so */
    while (deadline_ns++ < 1000) {
        const char *count = cluster_ask(&scene_cluster, SCENE_DATABASE,
                                        "SELECT count(*) FROM pg_locks WHERE classid = 2002872692");
        if (count != NULL && strcmp(count, "3") == 0)
            break;
    }
    expect_list("- nobody 192.0.2.1 epoch 1 waiting 0;a active 192.0.2.1 epoch 1 waiting 1;"
                "b active 192.0.2.1 epoch 1 waiting 1;c active 192.0.2.1 epoch 1 waiting 1;");
    store_close(b);
    assert_int_equal(group_of(&job), 1);
    expect_list("- nobody 192.0.2.1 epoch 1 waiting 0;a active 192.0.2.1 epoch 1 waiting 0;"
                "b active 192.0.2.2 epoch 2 waiting 0;c active 192.0.2.1 epoch 1 waiting 0;");
    store_close(job.store);
    store_close(a);
    store_close(c);
    /* A tool that took the epoch serves nobody. */
    const struct store_options tool = {
        .is_server = true, .timeout_ns = SECOND_NS, .group_count = 1, .groups = {"a"}};
    store_close(scene_open(scene_url(), &tool));
    expect_list("- nobody 192.0.2.1 epoch 1 waiting 0;a nobody ? epoch 2 waiting 0 unknown;"
                "b nobody 192.0.2.2 epoch 2 waiting 0;c nobody 192.0.2.1 epoch 1 waiting 0;");
}

/* A user who may make a schema chooses its name and what is in it. Neither runs as the one who
 * lists. */
SCENE(test_postgres__the_list_runs_nobodys_code)
{
    (void)state;
    store_close(open_group("a"));
    scene_run("CREATE TABLE public.alarm ()");
    scene_run("CREATE SCHEMA \"holdfast_x\"\".server; DROP TABLE public.alarm; --\" "
              "CREATE TABLE holdfast_schema () CREATE TABLE server ()");
    scene_run("CREATE SCHEMA \"holdfast_Upper\" CREATE TABLE holdfast_schema ()");
    scene_run("CREATE FUNCTION public.strike() RETURNS bigint LANGUAGE plpgsql AS "
              "'BEGIN DROP TABLE IF EXISTS public.alarm; RETURN 7; END'");
    scene_run("CREATE SCHEMA holdfast_view CREATE TABLE holdfast_schema () "
              "CREATE VIEW server AS SELECT public.strike() AS epoch");
    scene_run("CREATE TYPE public.mood AS ENUM ('bad'); "
              "CREATE FUNCTION public.strike(public.mood) RETURNS json LANGUAGE plpgsql AS "
              "'BEGIN DROP TABLE IF EXISTS public.alarm; RETURN ''7''; END'; "
              "CREATE CAST (public.mood AS json) WITH FUNCTION public.strike(public.mood); "
              "CREATE SCHEMA holdfast_type CREATE TABLE holdfast_schema () "
              "CREATE TABLE server (epoch bigint, host public.mood); "
              "INSERT INTO holdfast_type.server VALUES (7, 'bad')");
    scene_run("CREATE SCHEMA holdfast_policy CREATE TABLE holdfast_schema () "
              "CREATE TABLE server (epoch bigint); "
              "INSERT INTO holdfast_policy.server VALUES (7); "
              "CREATE POLICY p ON holdfast_policy.server USING (public.strike() = 7); "
              "ALTER TABLE holdfast_policy.server ENABLE ROW LEVEL SECURITY, "
              "FORCE ROW LEVEL SECURITY");
    expect_list("a nobody 192.0.2.1 epoch 1 waiting 0;policy nobody ? epoch 0 waiting 0 unknown;"
                "type nobody ? epoch 0 waiting 0 unknown;view nobody ? epoch 0 waiting 0 unknown;");
    scene_answers("SELECT to_regclass('public.alarm') IS NOT NULL", "t");
}

/* ---- tables ---- */

static void keep_sql(void *context, uint32_t from, uint32_t to, const char *sql)
{
    struct listed *listed = context;
    (void)to;
    if (from == 0)
        (void)snprintf(listed->text, sizeof listed->text, "%s", sql);
}

SCENE(test_postgres__the_tables_of_a_group_are_migrated_alone)
{
    (void)state;
    struct listed listed = {""};
    struct store_failure failure = {0};
    struct store_migration how = {
        .print_only = true, .group = "a", .visit = keep_sql, .context = &listed};
    assert_int_equal(store_migrate(scene_url(), &how, &failure), 0);
    assert_non_null(strstr(listed.text, "CREATE SCHEMA IF NOT EXISTS \"holdfast_a\";\n"
                                        "SET search_path = \"holdfast_a\", pg_temp;"));
    scene_answers("SELECT count(*) FROM pg_namespace WHERE nspname LIKE 'holdfast%'", "0");
    how.print_only = false;
    assert_int_equal(store_migrate(scene_url(), &how, &failure), 0);
    scene_answers("SELECT count(*) FROM pg_class c JOIN pg_namespace n ON n.oid = relnamespace "
                  "WHERE nspname = 'public'",
                  "0");
    scene_answers("SELECT version FROM holdfast_a.holdfast_schema", "3");
    how.is_down = true;
    assert_int_equal(store_migrate(scene_url(), &how, &failure), 0);
    scene_answers("SELECT version FROM holdfast_a.holdfast_schema", "2");
}

int main(void)
{
    return scene_main();
}
