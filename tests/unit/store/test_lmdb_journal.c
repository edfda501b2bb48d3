/*
 * test_lmdb_journal.c -- an embedded store and its journal: what a start and a reader make of both.
 */
#include "place.h"

#include "store/lmdb_place.h"
#include "unit/test.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

enum { SLOTS = 300, BLOCK = 4096, BATCHES = 12 };
#define OTHER_BOOT "00000000-0000-4000-8000-000000000000\n"

TEST_FIXTURE(set_up)
{
    place_set_journal(NULL);
    place_fixture(state, SLOTS);
}

static int commit_some(struct store *store, struct model *model)
{
    struct store_failure failure;
    for (int i = 0; i < BATCHES; i++)
        if (store_commit(store, model_next(model), &failure) != 0)
            return 1;
    return 0;
}

static int run(struct fixture *fixture, bool sync_process)
{
    struct store_failure failure;
    const struct store_options options = {.sync_process = sync_process};
    struct store *store = store_open(fixture->place.url, &options, &failure);
    _exit(store == NULL || commit_some(store, &fixture->model) != 0); /* it is not closed */
}

static int run_full(void *context)
{
    return run(context, false);
}

static int run_process(void *context)
{
    return run(context, true);
}

/* The journal has everything that was committed, the tables nothing of it. */
static void make_killed(struct fixture *fixture, bool sync_process)
{
    assert_int_equal(place_in_child(sync_process ? run_process : run_full, fixture), 0);
    for (int i = 0; i < BATCHES; i++)
        (void)model_next(&fixture->model);
}

static struct store *open_reader(const struct fixture *fixture, struct store_failure *ret_failure)
{
    const struct store_options options = {.is_reader = true};
    return store_open(fixture->place.url, &options, ret_failure);
}

static void expect_equal(const struct fixture *fixture, struct store *store)
{
    const char *difference = model_compare(&fixture->model, store);
    if (difference != NULL)
        fail_msg("%s", difference);
}

static void expect_used(struct store *store, const struct model *model)
{
    struct store_summary summary;
    store_summarize(store, &summary);
    for (int kind = RECORD_SERVER + 1; kind < RECORD_KIND_END; kind++)
        for (uint32_t slot = 0; slot < model->slot_max; slot++)
            if (model->versions[kind][slot] != 0)
                assert_true(slot < summary.slots_used[kind]);
}

/* By server and reader. */
static void refused_by_both(struct fixture *fixture, int exit_code, const char *word)
{
    struct store_failure failure = {0};
    place_refused(fixture->place.url, false, exit_code, fixture->place.path, word);
    assert_null(open_reader(fixture, &failure));
    assert_int_equal(failure.exit_code, exit_code);
    assert_non_null(strstr(failure.text, word));
}

static void write_at(const struct fixture *fixture, const char *name, off_t at, uint8_t byte)
{
    int fd = open(place_file(&fixture->place, name), O_RDWR | O_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(pwrite(fd, &byte, 1, at), 1);
    assert_int_equal(close(fd), 0);
}

TEST_OF(test_lmdb_journal__start_and_reader_have_all_of_it, struct fixture *fixture)
{
    struct store_failure failure;
    make_killed(fixture, false);
    struct store *store = open_reader(fixture, &failure);
    assert_non_null(store);
    expect_equal(fixture, store);
    expect_used(store, &fixture->model);
    store_close(store);
    for (int i = 0; i < 3; i++) { /* the tables have it now, and then more */
        store = place_open(fixture->place.url, false);
        expect_used(store, &fixture->model);
        expect_equal(fixture, store);
        assert_int_equal(commit_some(store, &fixture->model), 0);
        expect_equal(fixture, store);
        store_close(store);
    }
    assert_true(place_has(&fixture->place, "journal"));
}

/* What data.mdb has at a clean end is everything. */
TEST_OF(test_lmdb_journal__closed_store_needs_none, struct fixture *fixture)
{
    struct store *store = place_open(fixture->place.url, false);
    assert_int_equal(commit_some(store, &fixture->model), 0);
    store_close(store);
    assert_int_equal(unlink(place_file(&fixture->place, "journal")), 0);
    struct store_failure failure;
    store = open_reader(fixture, &failure);
    assert_non_null(store);
    expect_equal(fixture, store);
    store_close(store);
    struct store_summary summary;
    store = place_open(fixture->place.url, false);
    store_summarize(store, &summary);
    assert_false(summary.may_have_lost);
    expect_equal(fixture, store);
    store_close(store);
}

enum { JOURNAL_LEN = 16 << 20 };
static char old[JOURNAL_LEN + 1];

/* An operator puts another file in its place, which says nothing of what is missing. */
TEST_OF(test_lmdb_journal__of_another_run_or_store_is_refused, struct fixture *fixture)
{
    make_killed(fixture, false);
    assert_int_equal(place_read(&fixture->place, "journal", old, JOURNAL_LEN), JOURNAL_LEN);
    make_killed(fixture, false); /* it takes what the first has, and begins its own */
    struct store_failure failure;
    struct store *store = open_reader(fixture, &failure);
    assert_non_null(store);
    expect_equal(fixture, store);
    store_close(store);
    place_write(&fixture->place, "journal", old, JOURNAL_LEN);
    refused_by_both(fixture, 74, "journal is of another store, or of another run");
    memset(old, 0, sizeof old);
    place_write(&fixture->place, "journal", old, JOURNAL_LEN);
    refused_by_both(fixture, 74, "journal is of another store, or of another run");
}

/* The tables are older than it by one start, as when only data.mdb came from a backup. */
TEST_OF(test_lmdb_journal__of_the_next_run_is_refused, struct fixture *fixture)
{
    make_killed(fixture, false);
    size_t len = place_read(&fixture->place, "data.mdb", old, JOURNAL_LEN); /* its pages in use */
    make_killed(fixture, false);
    int fd = open(place_file(&fixture->place, "data.mdb"), O_RDWR | O_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(pwrite(fd, old, len, 0), len);
    assert_int_equal(close(fd), 0);
    refused_by_both(fixture, 74, "another run");
}

TEST_OF(test_lmdb_journal__without_data_is_a_loss_until_a_commit, struct fixture *fixture)
{
    struct store_summary summary;
    make_killed(fixture, false);
    assert_int_equal(unlink(place_file(&fixture->place, "data.mdb")), 0);
    for (int i = 0; i < 3; i++) {
        struct store *store = place_open(fixture->place.url, false);
        store_summarize(store, &summary);
        assert_int_equal(summary.may_have_lost, i < 2);
        assert_int_equal(strstr(summary.note, "data.mdb is missing") != NULL, i == 0);
        if (i == 1)
            model_commit(model_next(&fixture->model), store);
        store_close(store);
    }
}

/* A pipe would keep who opens it waiting. */
TEST_OF(test_lmdb_journal__that_is_no_file_is_refused, struct fixture *fixture)
{
    make_killed(fixture, false);
    assert_int_equal(unlink(place_file(&fixture->place, "journal")), 0);
    assert_int_equal(mkfifo(place_file(&fixture->place, "journal"), 0600), 0);
    refused_by_both(fixture, 74, "journal");
}

/* What is left of one when nothing of it is needed does not matter. */
TEST_OF(test_lmdb_journal__of_an_earlier_run_is_not_read, struct fixture *fixture)
{
    make_killed(fixture, false);
    assert_int_equal(place_read(&fixture->place, "journal", old, JOURNAL_LEN), JOURNAL_LEN);
    struct store *store = place_open(fixture->place.url, false);
    assert_int_equal(commit_some(store, &fixture->model), 0);
    store_close(store);
    place_write(&fixture->place, "journal", old, JOURNAL_LEN);
    store = place_open(fixture->place.url, false);
    expect_equal(fixture, store);
    store_close(store);
}

TEST_OF(test_lmdb_journal__missing_is_a_loss_until_a_commit, struct fixture *fixture)
{
    struct store_failure failure;
    struct store_summary summary;
    make_killed(fixture, false);
    assert_int_equal(unlink(place_file(&fixture->place, "journal")), 0);
    struct store *store = open_reader(fixture, &failure);
    assert_non_null(store);
    store_summarize(store, &summary);
    assert_true(summary.may_have_lost);
    store_close(store);
    for (int i = 0; i < 3; i++) {
        store = place_open(fixture->place.url, false);
        store_summarize(store, &summary);
        assert_int_equal(summary.may_have_lost, i < 2);
        assert_int_equal(strstr(summary.note, "journal is missing") != NULL, i == 0);
        if (i == 1)
            model_commit(model_next(&fixture->model), store);
        store_close(store);
    }
}

TEST_OF(test_lmdb_journal__damaged_is_refused_and_kept, struct fixture *fixture)
{
    make_killed(fixture, false);
    write_at(fixture, "journal", BLOCK + 100, 0xee); /* in the first frame, with others behind it */
    refused_by_both(fixture, 74, "journal is damaged");
    refused_by_both(fixture, 74, "move journal away");
    assert_int_equal(unlink(place_file(&fixture->place, "journal")), 0); /* as it says */
    store_close(place_open(fixture->place.url, false));
}

TEST_OF(test_lmdb_journal__cut_is_refused, struct fixture *fixture)
{
    make_killed(fixture, false);
    assert_int_equal(truncate(place_file(&fixture->place, "journal"), 4 * BLOCK), 0);
    refused_by_both(fixture, 74, "another length");
    assert_int_equal(truncate(place_file(&fixture->place, "journal"), 4 * BLOCK + 1), 0);
    refused_by_both(fixture, 74, "another length");
}

/* The machine stopped in an unsynced run: any frame may be missing, those before it count. */
TEST_OF(test_lmdb_journal__unsynced_run_is_read_up_to_the_first_gap, struct fixture *fixture)
{
    struct store_summary summary;
    struct store_failure failure;
    make_killed(fixture, true);
    place_write(&fixture->place, "unsynced", OTHER_BOOT, sizeof OTHER_BOOT - 1);
    struct store *store = open_reader(fixture, &failure);
    assert_non_null(store);
    assert_int_equal(model_stored_txn(store), BATCHES);
    store_close(store);
    static char bytes[(1 << 20) + 1];
    assert_int_equal(place_read(&fixture->place, "journal", bytes, 1 << 20), 1 << 20);
    off_t at = BLOCK;
    for (int frame = 0; frame < 5; frame++) { /* to where frame 6 begins */
        uint64_t len = 40 + load_be64((const uint8_t *)bytes + at + 24);
        at += (off_t)((len + BLOCK - 1) / BLOCK * BLOCK);
    }
    write_at(fixture, "journal", at, 0);
    store = open_reader(fixture, &failure);
    assert_non_null(store);
    assert_int_equal(model_stored_txn(store), 5);
    store_close(store);
    store = place_open(fixture->place.url, true);
    store_summarize(store, &summary);
    assert_true(summary.may_have_lost);
    assert_int_equal(model_stored_txn(store), 5);
    /* Its own frames follow, with the old ones of a higher number behind them. */
    model_begin(&fixture->model);
    fixture->model.txn = 6;
    model_commit(model_end(&fixture->model, false), store);
    assert_int_equal(model_stored_txn(store), fixture->model.txn);
    store_close(store);
}

TEST_OF(test_lmdb_journal__of_a_newer_version_is_refused, struct fixture *fixture)
{
    struct directory directory;
    struct store_failure failure;
    struct lmdb_env env = {0};
    MDB_txn *txn = NULL;
    make_killed(fixture, false);
    assert_int_equal(directory_open(&directory, fixture->place.path, &failure), 0);
    assert_int_equal(lmdb_env_open(&env, &directory, LMDB_ENV_FILE, 0), 0);
    assert_int_equal(lmdb_env_make_tables(&env), 0);
    uint32_t slot = 0;
    uint8_t bytes[] = {0, 0, 0, 2, 'n', 'e', 'w', 'e', 'r'};
    MDB_val key = {sizeof slot, &slot}, value = {sizeof bytes, bytes};
    assert_int_equal(mdb_txn_begin(env.env, NULL, 0, &txn), 0);
    assert_int_equal(mdb_put(txn, env.tables[LMDB_ENV_PLACE], &key, &value, 0), 0);
    assert_int_equal(mdb_txn_commit(txn), 0);
    lmdb_env_close(&env);
    directory_close(&directory);
    refused_by_both(fixture, 78, "newer holdfast");
}

/* A store that had none, also of an earlier version, gets one. */
TEST_OF(test_lmdb_journal__is_made_for_a_store_without, struct fixture *fixture)
{
    place_set_journal("0");
    struct store *store = place_open(fixture->place.url, false);
    assert_int_equal(commit_some(store, &fixture->model), 0);
    assert_false(place_has(&fixture->place, "journal"));
    store_close(store);
    place_set_journal("65536");
    store = place_open(fixture->place.url, false);
    assert_int_equal(place_len(&fixture->place, "journal"), 65536);
    assert_int_equal(commit_some(store, &fixture->model), 0);
    expect_equal(fixture, store);
    store_close(store);
    place_set_journal("0"); /* and is left alone by who wants none */
    store = place_open(fixture->place.url, false);
    assert_int_equal(commit_some(store, &fixture->model), 0);
    store_close(store);
    place_set_journal(NULL);
    store = place_open(fixture->place.url, false);
    expect_equal(fixture, store);
    store_close(store);
}

TEST_MAIN(set_up, place_fixture_done, NULL, NULL)
