/*
 * test_contract.c -- shows that every back end keeps the contract of store.h.
 *
 * One suite, run once for each row of `back_ends`; a new back end joins by a row. The store's
 * contents are compared with a model (model.h) byte by byte and in order after every step.
 *
 * For those that promise to outlive a process: a child commits numbered batches and reports each
 * one that was acknowledged; it is killed at a random moment, between commits and inside them; then
 * the store must hold a batch at least as new as the last acknowledged one, whole, and nothing
 * else.
 */
#include "model.h"
#include "place.h"

#include "base/check.h"
#include "base/prng.h"
#include "unit/test.h"

#if HOLDFAST_POSTGRES
#include "postgres/cluster.h"
#endif

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

struct back_end {
    const char *name;
    const char *url; /* NULL: lmdb in the test's directory */
    bool sync_process;
    bool is_durable;         /* outlives close and kill -9 */
    bool is_postgres;        /* in a database that each test finds empty */
    const char *journal_len; /* of lmdb; NULL: the usual */
};

static const struct back_end back_ends[] = {
    {"memory", "memory:", false, false, false, NULL},
    {"lmdb full", NULL, false, true, false, NULL},
    {"lmdb process", NULL, true, true, false, NULL},
    /* Where a batch fits sometimes, and the tables take the journal again and again; and never. */
    {"lmdb full, short journal", NULL, false, true, false, "131072"},
    {"lmdb process, short journal", NULL, true, true, false, "131072"},
    {"lmdb full, no journal", NULL, false, true, false, "0"},
    {"postgres", NULL, false, true, true, NULL},
};

struct contract {
    const struct back_end *back_end;
    struct place place;
    struct store *store;
    struct model model;
};

enum { SLOTS = 500 };

#if HOLDFAST_POSTGRES
static struct cluster cluster;

static const char *postgres_url(void)
{
    return cluster_url(&cluster, "contract");
}

static void empty_postgres(void)
{
    assert_true(cluster_fresh(&cluster, "contract"));
}

static bool start_postgres(const char **ret_why)
{
    if (!cluster_init(&cluster, ret_why))
        return false;
    *ret_why = "the private PostgreSQL does not start";
    return cluster_start(&cluster);
}

static void stop_postgres(void)
{
    cluster_done(&cluster);
}
#else
static const char *postgres_url(void)
{
    UNREACHABLE();
}

static void empty_postgres(void)
{
    UNREACHABLE();
}

static bool start_postgres(const char **ret_why)
{
    *ret_why = "this build has no libpq (Debian: libpq-dev)";
    return false;
}

static void stop_postgres(void)
{
}
#endif

static struct store *open_again(const struct contract *fixture)
{
    const char *url = fixture->back_end->is_postgres ? postgres_url() : fixture->back_end->url;
    return place_open(url != NULL ? url : fixture->place.url, fixture->back_end->sync_process);
}

static void reopen(struct contract *fixture)
{
    store_close(fixture->store);
    fixture->store = open_again(fixture);
}

TEST_FIXTURE(set_up)
{
    struct contract *fixture = calloc(1, sizeof *fixture);
    assert_non_null(fixture);
    fixture->back_end = *state;
    place_set_journal(fixture->back_end->journal_len);
    place_init(&fixture->place);
    model_init(&fixture->model, SLOTS);
    if (fixture->back_end->is_postgres)
        empty_postgres();
    fixture->store = open_again(fixture);
    *state = fixture;
}

TEST_FIXTURE(tear_down)
{
    struct contract *fixture = *state;
    store_close(fixture->store);
    model_done(&fixture->model);
    place_done(&fixture->place);
    free(fixture);
}

#define CONTRACT(test) TEST_WITH(test, set_up, tear_down)

static void commit(struct contract *fixture)
{
    model_commit(model_end(&fixture->model, true), fixture->store);
}

/* The store equals the model, now and (where it is durable) after it was closed and opened. */
static void expect_equal(struct contract *fixture)
{
    const char *difference = model_compare(&fixture->model, fixture->store);
    if (difference != NULL)
        fail_msg("%s", difference);
    if (!fixture->back_end->is_durable)
        return;
    reopen(fixture);
    difference = model_compare(&fixture->model, fixture->store);
    if (difference != NULL)
        fail_msg("after reopening: %s", difference);
}

CONTRACT(test_contract__new_store_is_empty)
{
    struct contract *fixture = *state;
    struct store_summary summary;
    memset(&summary, 0xff, sizeof summary);
    store_summarize(fixture->store, &summary);
    assert_false(summary.may_have_lost);
    assert_string_equal(summary.note, "");
    for (int kind = RECORD_SERVER; kind < RECORD_KIND_END; kind++)
        assert_int_equal(summary.slots_used[kind], 0);
    assert_true(store_has_room(fixture->store));
    assert_null(model_compare(&fixture->model, fixture->store));
}

CONTRACT(test_contract__stays_empty_until_the_first_commit)
{
    struct contract *fixture = *state;
    struct store_summary summary;
    reopen(fixture);
    store_summarize(fixture->store, &summary);
    for (int kind = RECORD_SERVER; kind < RECORD_KIND_END; kind++)
        assert_int_equal(summary.slots_used[kind], 0);
    model_begin(&fixture->model);
    model_put(&fixture->model, RECORD_REGISTRANT, 41);
    model_put(&fixture->model, RECORD_REGISTRANT, 7);
    model_put(&fixture->model, RECORD_NOTICE, SLOTS - 1);
    model_put(&fixture->model, RECORD_CLIENT, 1);
    model_put(&fixture->model, RECORD_LOCK, 99);
    model_put(&fixture->model, RECORD_WAITER, 0);
    model_put(&fixture->model, RECORD_TRACKED, 17);
    commit(fixture);
    if (!fixture->back_end->is_durable)
        return;
    reopen(fixture);
    store_summarize(fixture->store, &summary);
    assert_false(summary.may_have_lost);
    assert_int_equal(summary.slots_used[RECORD_SERVER], 1);
    assert_int_equal(summary.slots_used[RECORD_REGISTRANT], 42);
    assert_int_equal(summary.slots_used[RECORD_NOTICE], SLOTS);
    assert_int_equal(summary.slots_used[RECORD_CLIENT], 2);
    assert_int_equal(summary.slots_used[RECORD_LOCK], 100);
    assert_int_equal(summary.slots_used[RECORD_WAITER], 1);
    assert_int_equal(summary.slots_used[RECORD_SHARE], 0);
    assert_int_equal(summary.slots_used[RECORD_TRACKED], 18);
}

CONTRACT(test_contract__commit_comes_back)
{
    struct contract *fixture = *state;
    model_begin(&fixture->model);
    for (int kind = RECORD_REGISTRANT; kind < RECORD_KIND_END; kind++)
        for (uint32_t slot = 0; slot < SLOTS; slot++)
            model_put(&fixture->model, (enum record_kind)kind, slot);
    commit(fixture);
    expect_equal(fixture);
    assert_int_equal(model_stored_txn(fixture->store), 1);
}

CONTRACT(test_contract__loads_in_order)
{
    struct contract *fixture = *state;
    model_begin(&fixture->model);
    for (uint32_t slot = SLOTS; slot-- > 0;)
        for (int kind = RECORD_KIND_END - 1; kind > RECORD_SERVER; kind--)
            if (slot % (uint32_t)(kind + 1) != 0)
                model_put(&fixture->model, (enum record_kind)kind, slot);
    commit(fixture); /* the server record is the last change and must come first */
    expect_equal(fixture);
}

CONTRACT(test_contract__update_replaces)
{
    struct contract *fixture = *state;
    for (int round = 0; round < 5; round++) {
        model_begin(&fixture->model);
        for (uint32_t slot = 0; slot < 50; slot++) {
            model_put(&fixture->model, RECORD_REGISTRANT, slot);
            model_put(&fixture->model, RECORD_LOCK, slot);
        }
        commit(fixture);
        expect_equal(fixture);
    }
}

CONTRACT(test_contract__delete_removes_and_slots_are_used_again)
{
    struct contract *fixture = *state;
    model_begin(&fixture->model);
    for (uint32_t slot = 0; slot < 20; slot++)
        model_put(&fixture->model, RECORD_REGISTRANT, slot);
    commit(fixture);
    model_begin(&fixture->model);
    for (uint32_t slot = 0; slot < 20; slot += 2)
        model_delete(&fixture->model, RECORD_REGISTRANT, slot);
    commit(fixture);
    expect_equal(fixture);
    model_begin(&fixture->model);
    model_put(&fixture->model, RECORD_REGISTRANT, 4);
    model_put(&fixture->model, RECORD_REGISTRANT, 18);
    commit(fixture);
    expect_equal(fixture);
}

CONTRACT(test_contract__deleting_nothing_is_fine)
{
    struct contract *fixture = *state;
    model_begin(&fixture->model);
    model_delete(&fixture->model, RECORD_NOTICE, SLOTS - 1);
    model_delete(&fixture->model, RECORD_REGISTRANT, 0);
    commit(fixture);
    model_begin(&fixture->model);
    model_delete(&fixture->model, RECORD_NOTICE, SLOTS - 1);
    commit(fixture);
    expect_equal(fixture);
}

CONTRACT(test_contract__last_change_of_a_batch_wins)
{
    struct contract *fixture = *state;
    model_begin(&fixture->model);
    model_put(&fixture->model, RECORD_NOTICE, 1);
    model_delete(&fixture->model, RECORD_NOTICE, 1);
    model_delete(&fixture->model, RECORD_NOTICE, 2);
    model_put(&fixture->model, RECORD_NOTICE, 2);
    commit(fixture);
    expect_equal(fixture);
}

CONTRACT(test_contract__empty_batch_is_fine)
{
    struct contract *fixture = *state;
    model_begin(&fixture->model);
    model_put(&fixture->model, RECORD_NOTICE, 3);
    commit(fixture);
    model_commit(&(struct store_batch){.txn = 2, .epoch = 3}, fixture->store);
    expect_equal(fixture);
}

CONTRACT(test_contract__random_history_is_kept)
{
    struct contract *fixture = *state;
    for (int i = 0; i < 200; i++) {
        model_commit(model_next(&fixture->model), fixture->store);
        assert_int_equal(model_stored_txn(fixture->store), fixture->model.txn);
        if (i % 20 == 0)
            expect_equal(fixture);
        (void)store_tend(fixture->store);
    }
    expect_equal(fixture);
}

CONTRACT(test_contract__takes_a_big_batch)
{
    struct contract *fixture = *state;
    struct model *model = &fixture->model;
    const uint32_t big = 100000; /* a client with as many locks as one may have is freed */
    model_done(model);
    model_init(model, big);
    model_begin(model);
    for (uint32_t slot = 0; slot < big; slot++) {
        model_put(model, RECORD_LOCK, slot);
        if (slot % 2 == 0)
            model_put(model, RECORD_NOTICE, big - 1 - slot);
    }
    commit(fixture);
    expect_equal(fixture);
    model_begin(model);
    for (uint32_t slot = 0; slot < big; slot++) {
        model_delete(model, RECORD_LOCK, slot);
        model_delete(model, RECORD_NOTICE, slot);
    }
    commit(fixture);
    expect_equal(fixture);
}

struct stopper {
    int left, calls;
};

static int stop_after(void *context, enum record_kind kind, uint32_t slot, struct bytes value)
{
    (void)kind, (void)slot, (void)value;
    struct stopper *stopper = context;
    stopper->calls++;
    return --stopper->left == 0 ? 1234 : 0;
}

CONTRACT(test_contract__visitor_stops_the_load)
{
    struct contract *fixture = *state;
    struct store_failure failure;
    model_begin(&fixture->model);
    for (uint32_t slot = 0; slot < 9; slot++)
        model_put(&fixture->model, RECORD_REGISTRANT, slot);
    commit(fixture); /* ten records with the server's */
    for (int stop = 1; stop <= 10; stop++) {
        struct stopper stopper = {.left = stop};
        assert_int_equal(store_load(fixture->store, stop_after, &stopper, &failure), 1234);
        assert_int_equal(stopper.calls, stop);
    }
    struct stopper stopper = {.left = 11};
    assert_int_equal(store_load(fixture->store, stop_after, &stopper, &failure), 0);
    assert_int_equal(stopper.calls, 10);
    expect_equal(fixture);
}

CONTRACT(test_contract__tending_ends_and_changes_nothing)
{
    struct contract *fixture = *state;
    model_commit(model_next(&fixture->model), fixture->store);
    int calls = 0;
    while (store_tend(fixture->store))
        assert_true(++calls < 10000);
    assert_false(store_tend(fixture->store));
    assert_true(store_has_room(fixture->store));
    model_commit(model_next(&fixture->model), fixture->store);
    expect_equal(fixture);
}

/* ---- kill -9 ---- */

struct victim {
    const struct contract *fixture;
    int acks; /* where acknowledged numbers are written */
    uint64_t found_txn;
};

/* Goes on with the history from where the store is, until it is killed. */
static int commit_for_ever(const struct victim *victim)
{
    struct store *store = open_again(victim->fixture);
    struct model model;
    model_init(&model, SLOTS);
    while (model.txn < victim->found_txn)
        (void)model_next(&model);
    for (;;) {
        struct store_failure failure;
        if (store_commit(store, model_next(&model), &failure) != 0)
            return 1;
        if (write(victim->acks, &model.txn, sizeof model.txn) != sizeof model.txn)
            return 2;
        (void)store_tend(store);
    }
}

/* Reads `count` acknowledgements, or all that are left; the last one read, or `acked`. */
static uint64_t read_acks(int fd, uint64_t count, uint64_t acked)
{
    uint64_t txn;
    for (uint64_t i = 0; i < count && read(fd, &txn, sizeof txn) == sizeof txn; i++)
        acked = txn;
    return acked;
}

/* One life of a victim. Returns the number of the last batch it acknowledged. */
static uint64_t kill_one(const struct contract *fixture, struct prng *prng, uint64_t found_txn)
{
    int pipe_fds[2], status = 0;
    assert_int_equal(pipe(pipe_fds), 0);
    (void)fflush(NULL);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        struct victim victim = {fixture, pipe_fds[1], found_txn};
        _exit(commit_for_ever(&victim));
    }
    assert_int_equal(close(pipe_fds[1]), 0);
    uint64_t acked = read_acks(pipe_fds[0], prng_below(prng, 60), found_txn);
    /* A random point inside whatever it does next; the moment is the test, not a wait for it. */
    struct timespec pause = {0, (long)prng_below(prng, 4000000)};
    (void)nanosleep(&pause, NULL);
    assert_int_equal(kill(child, SIGKILL), 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL); /* it had not failed */
    acked = read_acks(pipe_fds[0], UINT64_MAX, acked);
    assert_int_equal(close(pipe_fds[0]), 0);
    return acked;
}

CONTRACT(test_contract__kill_loses_nothing_acknowledged)
{
    struct contract *fixture = *state;
    struct prng prng = {(uint64_t)time(NULL)};
    uint64_t seed = prng.state;
    for (unsigned round = 0; round < place_rounds(); round++) {
        store_close(fixture->store);
        fixture->store = NULL;
        uint64_t acked = kill_one(fixture, &prng, fixture->model.txn);
        fixture->store = open_again(fixture);
        uint64_t found = model_stored_txn(fixture->store);
        if (found < acked || found > acked + 1)
            fail_msg("seed %llu round %u: batch %llu was acknowledged, the store has %llu",
                     (unsigned long long)seed, round, (unsigned long long)acked,
                     (unsigned long long)found);
        while (fixture->model.txn < found)
            (void)model_next(&fixture->model);
        const char *difference = model_compare(&fixture->model, fixture->store);
        if (difference != NULL)
            fail_msg("seed %llu round %u: not the contents of batch %llu: %s",
                     (unsigned long long)seed, round, (unsigned long long)found, difference);
        struct store_summary summary;
        store_summarize(fixture->store, &summary);
        assert_false(summary.may_have_lost);
    }
}

TEST(test_contract__bad_urls_are_refused)
{
    place_refused("", false, 2, "memory:", "lmdb:DIR");
    place_refused("nowhere", false, 2, "\"nowhere\"", "lmdb:DIR");
    place_refused("lmdb", false, 2, "\"lmdb\"", "lmdb:DIR");
    place_refused("LMDB:x", false, 2, "\"LMDB:x\"", "lmdb:DIR");
    place_refused("lmdbx:y", false, 2, "\"lmdbx:y\"", "lmdb:DIR");
    place_refused("lmdb:", false, 2, "directory is missing", "lmdb:DIR");
    place_refused("memory:x", false, 2, "memory:x", "use memory:");
}

static const char *why_no_postgres;

static void test_contract__postgres(void **state)
{
    (void)state;
    print_message("skipped: %s\n", why_no_postgres);
    skip();
}

enum {
    BACK_END_COUNT = sizeof back_ends / sizeof back_ends[0],
    CASES_MAX = 128,
};

static struct CMUnitTest cases[CASES_MAX]; /* cmocka passes over those left empty */
static char names[CASES_MAX][128];
static size_t case_count;

/* Every test with every back end that promises what it shows; those without one only once. */
static void add_case(const struct CMUnitTest *test, const struct back_end *back_end)
{
    CHECK(case_count < CASES_MAX);
    bool is_of_a_back_end = test->setup_func != NULL;
    if ((test->test_func == test_contract__kill_loses_nothing_acknowledged &&
         !back_end->is_durable) ||
        (!is_of_a_back_end && back_end != back_ends))
        return;
    (void)snprintf(names[case_count], sizeof names[case_count], "%s (%s)", test->name,
                   is_of_a_back_end ? back_end->name : "none");
    cases[case_count] = *test;
    cases[case_count].initial_state = is_of_a_back_end ? (void *)(uintptr_t)back_end : NULL;
    cases[case_count].name = names[case_count];
    case_count++;
}

int main(void)
{
    bool has_postgres = start_postgres(&why_no_postgres);
    for (size_t row = 0; row < BACK_END_COUNT; row++)
        if (back_ends[row].is_postgres && !has_postgres)
            cases[case_count++] = (struct CMUnitTest)cmocka_unit_test(test_contract__postgres);
        else
            for (size_t i = 0; i < test_count; i++)
                add_case(&test_all[i], &back_ends[row]);
    int failed = cmocka_run_group_tests(cases, NULL, NULL);
    stop_postgres();
    return failed;
}
