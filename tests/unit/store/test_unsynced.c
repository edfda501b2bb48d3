/*
 * test_unsynced.c -- shows what a start makes of a run with --sync process that was not closed
 * (D16).
 *
 * The machine cannot be stopped here, so its boot id is exchanged in the mark, and the data file is
 * damaged as a power loss might: single pages zeroed, filled with noise, or put back to what they
 * were some commits before; the file cut. Every start must come up, must say that something may
 * have been lost, must go on saying so until a batch was made in that knowledge, and must leave a
 * store that works; a file that cannot be read must be kept aside.
 */
#include "place.h"

#include "base/prng.h"
#include "unit/test.h"

#include <fcntl.h>
#include <time.h>
#include <unistd.h>

enum { SLOTS = 300 };

#define OTHER_BOOT "00000000-0000-0000-0000-000000000000\n"

TEST_FIXTURE(set_up)
{
    place_fixture(state, SLOTS);
}

struct run {
    const struct fixture *fixture;
    bool sync_process;
    int batch_count;
};

/* Commits and ends without closing, as kill -9 would. */
static int run_and_die(void *context)
{
    const struct run *run = context;
    struct store_failure failure;
    struct store *store =
        store_open(run->fixture->place.url,
                   &(struct store_options){.sync_process = run->sync_process}, &failure);
    if (store == NULL)
        return 1;
    struct model model;
    model_init(&model, SLOTS);
    while (model.txn < run->fixture->model.txn)
        (void)model_next(&model);
    for (int i = 0; i < run->batch_count; i++)
        if (store_commit(store, model_next(&model), &failure) != 0)
            return 2;
    return 0;
}

static void crash_after(struct fixture *fixture, bool sync_process, int batch_count)
{
    struct run run = {fixture, sync_process, batch_count};
    assert_int_equal(place_in_child(run_and_die, &run), 0);
    for (int i = 0; i < batch_count; i++)
        (void)model_next(&fixture->model);
}

static void change_boot(const struct fixture *fixture)
{
    assert_true(place_has(&fixture->place, "unsynced"));
    place_write(&fixture->place, "unsynced", OTHER_BOOT, sizeof OTHER_BOOT - 1);
}

static void expect_summary(struct store *store, bool may_have_lost, const char *note)
{
    struct store_summary summary;
    store_summarize(store, &summary);
    assert_int_equal(summary.may_have_lost, may_have_lost);
    if (strstr(summary.note, note) == NULL || (note[0] == '\0' && summary.note[0] != '\0'))
        fail_msg("\"%s\" expected in the note: %s", note, summary.note);
}

static void expect_equal(const struct fixture *fixture, struct store *store)
{
    const char *difference = model_compare(&fixture->model, store);
    if (difference != NULL)
        fail_msg("%s", difference);
}

TEST_OF(test_unsynced__mark_lasts_as_long_as_the_run, struct fixture *fixture)
{
    char boot_id[64], mark[64];
    int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        print_message("skipped: this kernel does not tell its boot id\n");
        skip();
    }
    ssize_t len = read(fd, boot_id, sizeof boot_id - 1);
    assert_true(len > 30);
    boot_id[len] = '\0';
    assert_int_equal(close(fd), 0);

    struct store *store = place_open(fixture->place.url, true);
    (void)place_read(&fixture->place, "unsynced", mark, sizeof mark - 1);
    assert_int_equal(strncmp(mark, boot_id, strlen(mark)), 0);
    assert_true(strlen(mark) >= 36);
    model_commit(model_next(&fixture->model), store);
    store_close(store);
    assert_false(place_has(&fixture->place, "unsynced"));
    store = place_open(fixture->place.url, false);
    expect_summary(store, false, "");
    assert_false(place_has(&fixture->place, "unsynced"));
    store_close(store);
}

TEST_OF(test_unsynced__same_boot_has_lost_nothing, struct fixture *fixture)
{
    crash_after(fixture, true, 20);
    assert_true(place_has(&fixture->place, "unsynced"));
    crash_after(fixture, true, 20);
    struct store *store = place_open(fixture->place.url, true);
    expect_summary(store, false, "");
    expect_equal(fixture, store);
    store_close(store);

    crash_after(fixture, true, 20);
    store = place_open(fixture->place.url, false); /* syncs what was not */
    assert_false(place_has(&fixture->place, "unsynced"));
    expect_summary(store, false, "");
    expect_equal(fixture, store);
    store_close(store);
}

/* The loss is reported again by every start until one commits, and never after that. */
static void expect_reported_until_commit(struct fixture *fixture, bool sync_process)
{
    crash_after(fixture, true, 20);
    change_boot(fixture);
    struct store *store = place_open(fixture->place.url, sync_process);
    expect_summary(store, true, "may be missing");
    expect_equal(fixture, store); /* nothing was damaged, so all of it is there */
    store_close(store);

    crash_after(fixture, sync_process, 0);
    store = place_open(fixture->place.url, sync_process);
    expect_summary(store, true, "may be missing");
    model_commit(model_next(&fixture->model), store);
    assert_int_equal(place_has(&fixture->place, "unsynced"), sync_process);
    store_close(store);

    assert_false(place_has(&fixture->place, "unsynced"));
    store = place_open(fixture->place.url, sync_process);
    expect_summary(store, false, "");
    expect_equal(fixture, store);
    store_close(store);
}

TEST(test_unsynced__other_boot_is_reported_until_a_commit_full)
{
    expect_reported_until_commit(*state, false);
}

TEST(test_unsynced__other_boot_is_reported_until_a_commit_process)
{
    expect_reported_until_commit(*state, true);
}

/* The mark of this boot replaces the old one at the first commit: a kill after that loses nothing.
 */
TEST_OF(test_unsynced__kill_after_the_first_commit_loses_nothing, struct fixture *fixture)
{
    crash_after(fixture, true, 5);
    change_boot(fixture);
    crash_after(fixture, true, 5);
    struct store *store = place_open(fixture->place.url, true);
    expect_summary(store, false, "");
    expect_equal(fixture, store);
    store_close(store);
}

TEST_OF(test_unsynced__store_of_which_only_the_mark_is_left_is_not_new, struct fixture *fixture)
{
    crash_after(fixture, true, 5);
    assert_int_equal(unlink(place_file(&fixture->place, "data.mdb")), 0);
    struct store *store = place_open(fixture->place.url, false);
    expect_summary(store, true, "data.mdb is missing");
    store_close(store);
    store = place_open(fixture->place.url, false);
    expect_summary(store, true, "may be missing");
    store_close(store);
}

TEST_OF(test_unsynced__damaged_file_is_kept_aside, struct fixture *fixture)
{
    static const char noise[] = "this is not the store that was here";
    for (int number = 1; number <= 3; number++) {
        char name[32], kept[64];
        (void)snprintf(name, sizeof name, "data.mdb.damaged-%d", number);
        struct run run = {fixture, true, 3};
        assert_int_equal(place_in_child(run_and_die, &run), 0);
        change_boot(fixture);
        /* Also an empty file: after a power loss a name may be left without its bytes. */
        size_t len = number == 2 ? 0 : sizeof noise - 1;
        place_write(&fixture->place, "data.mdb", noise, len);
        struct store *store = place_open(fixture->place.url, number != 1);
        expect_summary(store, true, name);
        assert_int_equal(place_read(&fixture->place, name, kept, sizeof kept - 1), len);
        assert_memory_equal(kept, noise, len);
        expect_equal(fixture, store); /* the model of the parent is still empty */
        store_close(store);
        /* The next child finds a store without records and starts the history again. */
    }
}

/* What a store holds that may be damaged: counts the good records and refuses none. */
static int count_good(void *context, enum record_kind kind, uint32_t slot, struct bytes value)
{
    struct record_registrant registrant;
    struct record_lock lock;
    if (kind == RECORD_REGISTRANT && record_get_registrant(value, slot, &registrant) == RECORD_GOOD)
        ++*(uint32_t *)context;
    if (kind == RECORD_LOCK && record_get_lock(value, slot, &lock) == RECORD_GOOD)
        ++*(uint32_t *)context;
    return 0;
}

/* Damages some pages in use: zeros, noise, or what they were before the last commits. */
static void tear_pages(const struct fixture *fixture, struct prng *prng, const char *old,
                       size_t old_len)
{
    size_t page_len = (size_t)sysconf(_SC_PAGESIZE);
    int fd = open(place_file(&fixture->place, "data.mdb"), O_RDWR | O_CLOEXEC);
    assert_true(fd >= 0);
    uint8_t *page = malloc(page_len);
    assert_non_null(page);
    uint64_t count = 1 + prng_below(prng, 8);
    for (uint64_t i = 0; i < count; i++) {
        /* Pages 0 and 1 are LMDB's own; they are written last and may be the torn ones too. */
        uint64_t number = prng_below(prng, 60);
        uint64_t manner = prng_below(prng, 3);
        memset(page, 0, page_len);
        if (manner == 1)
            for (size_t at = 0; at < page_len; at++)
                page[at] = (uint8_t)prng_next(prng);
        if (manner == 2 && (number + 1) * page_len <= old_len)
            memcpy(page, old + number * page_len, page_len);
        assert_int_equal(pwrite(fd, page, page_len, (off_t)(number * page_len)), page_len);
    }
    if (prng_chance(prng, 10))
        assert_int_equal(ftruncate(fd, (off_t)(prng_below(prng, 40) * page_len)), 0);
    free(page);
    assert_int_equal(close(fd), 0);
}

TEST_OF(test_unsynced__torn_file_never_keeps_the_server_down, struct fixture *fixture)
{
    struct prng prng = {(uint64_t)time(NULL)};
    uint64_t seed = prng.state;
    size_t old_max = 100 * (size_t)sysconf(_SC_PAGESIZE);
    char *old = malloc(old_max + 1);
    assert_non_null(old);
    for (unsigned round = 0; round < 3 * place_rounds(); round++) {
        struct run run = {fixture, true, 10};
        assert_int_equal(place_in_child(run_and_die, &run), 0);
        size_t old_len = place_read(&fixture->place, "data.mdb", old, old_max);
        assert_int_equal(place_in_child(run_and_die, &run), 0);
        change_boot(fixture);
        tear_pages(fixture, &prng, old, old_len);

        struct store_failure failure;
        struct store *store = store_open(fixture->place.url, &(struct store_options){0}, &failure);
        if (store == NULL)
            fail_msg("seed %llu round %u: %s", (unsigned long long)seed, round, failure.text);
        struct store_summary summary;
        store_summarize(store, &summary);
        assert_true(summary.may_have_lost);
        uint32_t good = 0;
        assert_int_equal(store_load(store, count_good, &good, &failure), 0);

        /* Whatever was left, the store works: overwrite all of it and find exactly that. */
        struct model model;
        model_init(&model, SLOTS);
        model_begin(&model);
        for (uint32_t slot = 0; slot < SLOTS; slot++) {
            model_put(&model, RECORD_REGISTRANT, slot);
            model_put(&model, RECORD_LOCK, slot);
            model_delete(&model, RECORD_NOTICE, slot);
            model_delete(&model, RECORD_CLIENT, slot);
            model_delete(&model, RECORD_WAITER, slot);
            model_delete(&model, RECORD_SHARE, slot);
            model_delete(&model, RECORD_TRACKED, slot);
        }
        model_commit(model_end(&model, true), store);
        store_close(store);
        store = place_open(fixture->place.url, false);
        const char *difference = model_compare(&model, store);
        model_done(&model);
        store_close(store);
        if (difference != NULL)
            fail_msg("seed %llu round %u: %s", (unsigned long long)seed, round, difference);
    }
    free(old);
}

/* The kernel writes its two files when it likes: either may be of the run before, or cut. */
TEST_OF(test_unsynced__files_of_different_age_never_keep_the_server_down, struct fixture *fixture)
{
    static const char *const OLD[] = {"data.mdb", "journal"};
    enum { MAX = 32 * 1024 * 1024 };
    char *old = malloc(MAX);
    assert_non_null(old);
    for (unsigned i = 0; i < 2 * sizeof OLD / sizeof *OLD; i++) {
        const char *file = OLD[i / 2];
        struct run run = {fixture, true, 10};
        assert_int_equal(place_in_child(run_and_die, &run), 0);
        size_t len = place_read(&fixture->place, file, old, MAX);
        assert_int_equal(place_in_child(run_and_die, &run), 0);
        change_boot(fixture);
        place_write(&fixture->place, file, old, i % 2 == 0 ? len : len / 2);

        struct store_failure failure;
        struct store *store = store_open(fixture->place.url, &(struct store_options){0}, &failure);
        if (store == NULL)
            fail_msg("%s %u: %s", file, i, failure.text);
        expect_summary(store, true, "store lmdb:");
        uint32_t good = 0;
        assert_int_equal(store_load(store, count_good, &good, &failure), 0);
        model_commit(model_next(&fixture->model), store);
        store_close(store);
    }
    free(old);
}

TEST_MAIN(set_up, place_fixture_done, NULL, NULL)
