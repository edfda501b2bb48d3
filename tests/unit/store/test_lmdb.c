/*
 * test_lmdb.c -- shows how the LMDB back end treats its directory: one process at a time (R-PER-7),
 * nothing half made, and a refusal in words for everything it cannot use.
 *
 * Refusals are provoked with real files: no parent, no permission, a file in place of the
 * directory, garbage, an empty file, a cut file, another LMDB version, tables of a newer version.
 * Each must give its exit code and a sentence that names the directory, and must leave the file as
 * it was.
 */
#include "place.h"
#include "unit/test.h"

#include <errno.h>
#include <fcntl.h>
#include <lmdb.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { SLOTS = 300, NOBODY = 65534 };

/* Stands in for the C library's, for LMDB too, and counts. */
static int sync_count;
static struct timespec sync_lasts; /* on this disk, and nothing of it is anybody else's time */

int fdatasync(int fd)
{
    sync_count++;
    (void)nanosleep(&sync_lasts, NULL);
    return (int)syscall(SYS_fdatasync, fd);
}

TEST_FIXTURE(set_up)
{
    place_fixture(state, SLOTS);
}

/* A store with some history, closed. */
static void make_store(struct fixture *fixture, bool sync_process)
{
    struct store *store = place_open(fixture->place.url, sync_process);
    for (int i = 0; i < 30; i++)
        model_commit(model_next(&fixture->model), store);
    store_close(store);
}

/* Opens, compares, commits once more, compares again, closes. */
static void expect_usable(struct fixture *fixture)
{
    struct store *store = place_open(fixture->place.url, false);
    const char *difference = model_compare(&fixture->model, store);
    if (difference == NULL) {
        model_commit(model_next(&fixture->model), store);
        difference = model_compare(&fixture->model, store);
    }
    store_close(store);
    if (difference != NULL)
        fail_msg("%s", difference);
}

TEST_OF(test_lmdb__makes_a_private_directory, struct fixture *fixture)
{
    struct stat status;
    store_close(place_open(fixture->place.url, false));
    assert_int_equal(stat(fixture->place.path, &status), 0);
    assert_int_equal(status.st_mode & 0777, 0700);
    assert_int_equal(stat(place_file(&fixture->place, "data.mdb"), &status), 0);
    assert_int_equal(status.st_mode & 0777, 0600);
    assert_false(place_has(&fixture->place, "data.mdb.new"));
    assert_false(place_has(&fixture->place, "unsynced"));
    expect_usable(fixture);
}

/* A start that was interrupted while it made the store leaves data.mdb.new and no data.mdb. */
TEST_OF(test_lmdb__leftover_of_an_interrupted_start_is_replaced, struct fixture *fixture)
{
    assert_int_equal(mkdir(fixture->place.path, 0700), 0);
    place_write(&fixture->place, "data.mdb.new", "half a page", 11);
    struct store *store = place_open(fixture->place.url, false);
    struct store_summary summary;
    store_summarize(store, &summary);
    assert_int_equal(summary.slots_used[RECORD_SERVER], 0);
    store_close(store);
    assert_false(place_has(&fixture->place, "data.mdb.new"));
    expect_usable(fixture);
}

static int open_in_child(void *context)
{
    const struct fixture *fixture = context;
    struct store_failure failure;
    char pid[32];
    (void)snprintf(pid, sizeof pid, "process %ld", (long)getppid());
    if (store_open(fixture->place.url, &(struct store_options){0}, &failure) != NULL)
        return 1;
    if (failure.exit_code != 74)
        return 2;
    if (strstr(failure.text, pid) == NULL || strstr(failure.text, fixture->place.path) == NULL)
        return 3;
    return 0;
}

TEST_OF(test_lmdb__second_process_is_refused, struct fixture *fixture)
{
    struct store *store = place_open(fixture->place.url, false);
    char pid[32];
    (void)snprintf(pid, sizeof pid, "process %ld", (long)getpid());
    place_refused(fixture->place.url, false, 74, pid, fixture->place.path);
    assert_int_equal(place_in_child(open_in_child, fixture), 0);
    place_refused(fixture->place.url, true, 74, pid, fixture->place.path); /* it still holds */
    model_commit(model_next(&fixture->model), store);
    store_close(store);
    expect_usable(fixture);
}

static int open_and_die(void *context)
{
    const struct fixture *fixture = context;
    struct store_failure failure;
    if (store_open(fixture->place.url, &(struct store_options){0}, &failure) == NULL)
        return 1;
    abort();
}

TEST_OF(test_lmdb__lock_of_a_dead_process_is_free, struct fixture *fixture)
{
    assert_int_equal(place_in_child(open_and_die, fixture), -SIGABRT);
    assert_true(place_has(&fixture->place, "lock"));
    expect_usable(fixture);
}

TEST_OF(test_lmdb__missing_parent_is_refused, struct fixture *fixture)
{
    char url[512];
    (void)snprintf(url, sizeof url, "%s/below", fixture->place.url);
    place_refused(url, false, 74, fixture->place.path, "parent directory");
    assert_int_equal(access(fixture->place.path, F_OK), -1);
}

TEST_OF(test_lmdb__file_instead_of_a_directory_is_refused, struct fixture *fixture)
{
    FILE *file = fopen(fixture->place.path, "w");
    assert_non_null(file);
    assert_int_equal(fclose(file), 0);
    place_refused(fixture->place.url, false, 74, fixture->place.path, "Not a directory");
}

/* In a child without root's rights: 0 when both refusals are as they should be. */
static int open_as_nobody(void *context)
{
    const struct fixture *fixture = context;
    struct store_failure failure;
    if (geteuid() == 0 && (setgid(NOBODY) != 0 || setuid(NOBODY) != 0))
        return 77;
    if (store_open(fixture->place.url, &(struct store_options){0}, &failure) != NULL)
        return 1;
    if (failure.exit_code != 74 || strstr(failure.text, "Permission denied") == NULL)
        return 2;
    if (strstr(failure.text, fixture->place.path) == NULL || strstr(failure.text, "; ") == NULL)
        return 3;
    return 0;
}

TEST_OF(test_lmdb__missing_permission_is_refused, struct fixture *fixture)
{
    assert_int_equal(chmod(fixture->place.base, 0555), 0); /* cannot create the directory */
    int result = place_in_child(open_as_nobody, fixture);
    assert_int_equal(chmod(fixture->place.base, 0755), 0);
    if (result == 77) {
        print_message("skipped: cannot give up root's rights here\n");
        skip();
    }
    assert_int_equal(result, 0);
    make_store(fixture, false);
    assert_int_equal(chmod(fixture->place.path, 0), 0); /* cannot read it */
    result = place_in_child(open_as_nobody, fixture);
    assert_int_equal(chmod(fixture->place.path, 0755), 0);
    assert_int_equal(result, 0);
    if (geteuid() == 0) { /* somebody else's file in a directory that can be read */
        result = place_in_child(open_as_nobody, fixture);
        assert_int_equal(result, 0);
    }
    assert_int_equal(chmod(fixture->place.path, 0700), 0);
    expect_usable(fixture);
}

/* Puts these bytes in place of data.mdb, expects a refusal, and that they are still there. */
static void refuse_contents(struct fixture *fixture, const void *bytes, size_t len,
                            const char *word)
{
    static char after[65537];
    assert_true(len < sizeof after);
    for (int sync_process = 0; sync_process < 2; sync_process++) {
        place_write(&fixture->place, "data.mdb", bytes, len);
        place_refused(fixture->place.url, sync_process != 0, 74, fixture->place.path, word);
        assert_int_equal(place_read(&fixture->place, "data.mdb", after, sizeof after - 1), len);
        assert_memory_equal(after, bytes, len);
        assert_false(place_has(&fixture->place, "unsynced"));
        assert_false(place_has(&fixture->place, "data.mdb.damaged-1"));
    }
}

TEST_OF(test_lmdb__garbage_is_refused_and_kept, struct fixture *fixture)
{
    static uint8_t page[16384];
    assert_int_equal(mkdir(fixture->place.path, 0700), 0);
    refuse_contents(fixture, "", 0, "data.mdb is empty");
    refuse_contents(fixture, "hello\n", 6, "--assume-lost");
    refuse_contents(fixture, page, sizeof page, "--assume-lost");
    memset(page, 0xee, sizeof page);
    refuse_contents(fixture, page, sizeof page, "--assume-lost");

    assert_int_equal(unlink(place_file(&fixture->place, "data.mdb")), 0);
    assert_int_equal(mkdir(place_file(&fixture->place, "data.mdb"), 0700), 0);
    place_refused(fixture->place.url, false, 74, fixture->place.path, "not a file");
}

TEST_OF(test_lmdb__other_lmdb_version_is_refused, struct fixture *fixture)
{
    make_store(fixture, false);
    /* LMDB's version is the second word behind the header of each of the first two pages. */
    int fd = open(place_file(&fixture->place, "data.mdb"), O_RDWR | O_CLOEXEC);
    assert_true(fd >= 0);
    uint32_t version = 0, other = 999;
    const off_t page_len = sysconf(_SC_PAGESIZE);
    for (off_t page = 0; page < 2; page++) {
        off_t at = page * page_len + 20;
        assert_int_equal(pread(fd, &version, 4, at), 4);
        assert_int_equal(version, 1);
        assert_int_equal(pwrite(fd, &other, 4, at), 4);
    }
    place_refused(fixture->place.url, false, 74, fixture->place.path, "MDB_VERSION_MISMATCH");
    for (off_t page = 0; page < 2; page++)
        assert_int_equal(pwrite(fd, &version, 4, page * page_len + 20), 4);
    assert_int_equal(close(fd), 0);
    expect_usable(fixture);
}

/* Opens the environment as another program would and runs a write transaction in it. */
static MDB_txn *write_directly(const struct fixture *fixture, MDB_env **ret_env)
{
    MDB_txn *txn = NULL;
    assert_int_equal(mdb_env_create(ret_env), 0);
    assert_int_equal(mdb_env_set_maxdbs(*ret_env, 8), 0);
    assert_int_equal(mdb_env_open(*ret_env, fixture->place.path, MDB_NOLOCK, 0600), 0);
    assert_int_equal(mdb_txn_begin(*ret_env, NULL, 0, &txn), 0);
    return txn;
}

TEST_OF(test_lmdb__table_of_a_newer_version_is_refused, struct fixture *fixture)
{
    MDB_env *env = NULL;
    MDB_dbi table;
    make_store(fixture, false);
    MDB_txn *txn = write_directly(fixture, &env);
    assert_int_equal(mdb_dbi_open(txn, "lease\n", MDB_CREATE | MDB_INTEGERKEY, &table), 0);
    assert_int_equal(mdb_txn_commit(txn), 0);
    mdb_env_close(env);
    place_refused(fixture->place.url, false, 78, fixture->place.path, "\"lease?\"");
    place_refused(fixture->place.url, true, 78, fixture->place.path, "newer holdfast");
    assert_false(place_has(&fixture->place, "unsynced"));

    txn = write_directly(fixture, &env);
    assert_int_equal(mdb_dbi_open(txn, "lease\n", 0, &table), 0);
    assert_int_equal(mdb_drop(txn, table, 1), 0);
    assert_int_equal(mdb_txn_commit(txn), 0);
    mdb_env_close(env);
    expect_usable(fixture);
}

TEST_OF(test_lmdb__table_of_another_shape_is_refused, struct fixture *fixture)
{
    MDB_env *env = NULL;
    MDB_dbi table;
    assert_int_equal(mkdir(fixture->place.path, 0700), 0);
    MDB_txn *txn = write_directly(fixture, &env);
    assert_int_equal(mdb_dbi_open(txn, "registrant", MDB_CREATE, &table), 0);
    assert_int_equal(mdb_txn_commit(txn), 0);
    mdb_env_close(env);
    place_refused(fixture->place.url, false, 74, fixture->place.path, "MDB_INCOMPATIBLE");
}

/* A store from before a kind existed has no table for it. */
TEST_OF(test_lmdb__missing_tables_are_made, struct fixture *fixture)
{
    MDB_env *env = NULL;
    make_store(fixture, false);
    MDB_txn *txn = write_directly(fixture, &env);
    for (int kind = RECORD_CLIENT; kind < RECORD_KIND_END; kind++) {
        MDB_dbi table;
        assert_int_equal(mdb_dbi_open(txn, record_kind_name((enum record_kind)kind), 0, &table), 0);
        assert_int_equal(mdb_drop(txn, table, 1), 0);
        memset(fixture->model.versions[kind], 0, SLOTS * sizeof(uint64_t));
    }
    assert_int_equal(mdb_txn_commit(txn), 0);
    mdb_env_close(env);
    expect_usable(fixture);
}

/* What version 0.1 refuses is a table that it does not know, before it writes anything. */
TEST_OF(test_lmdb__older_versions_see_a_newer_store, struct fixture *fixture)
{
    MDB_env *env = NULL;
    store_close(place_open(fixture->place.url, false)); /* nothing was ever committed */
    MDB_txn *txn = write_directly(fixture, &env);
    for (int kind = RECORD_SERVER; kind < RECORD_KIND_END; kind++) {
        MDB_dbi table;
        assert_int_equal(mdb_dbi_open(txn, record_kind_name((enum record_kind)kind), 0, &table), 0);
    }
    mdb_txn_abort(txn);
    mdb_env_close(env);
}

struct seen {
    uint32_t count, stray_count;
};

static int see(void *context, enum record_kind kind, uint32_t slot, struct bytes value)
{
    struct seen *seen = context;
    (void)value;
    seen->count++;
    if (kind == RECORD_SERVER ? slot > 0 : slot >= SLOTS)
        seen->stray_count++;
    return 0;
}

/* R-PER-5: a damaged key is any number. It is handed over so that it is reported, it does not count
 * as a slot, and it is gone after the next commit. */
TEST_OF(test_lmdb__damaged_keys_are_shown_once, struct fixture *fixture)
{
    static const uint32_t strays[] = {SLOTS + 7, 0x10000000, UINT32_MAX};
    struct store_summary before, after;
    struct store_failure failure;
    MDB_env *env = NULL;
    make_store(fixture, false);
    struct store *store = place_open(fixture->place.url, false);
    store_summarize(store, &before);
    store_close(store);
    MDB_txn *txn = write_directly(fixture, &env);
    for (int kind = RECORD_SERVER; kind < RECORD_KIND_END; kind++) {
        MDB_dbi table;
        assert_int_equal(mdb_dbi_open(txn, record_kind_name((enum record_kind)kind), 0, &table), 0);
        for (size_t i = 0; i < sizeof strays / sizeof strays[0]; i++) {
            /* A good record of another slot: only the key is wrong. */
            uint8_t buffer[RECORD_VALUE_MAX];
            uint32_t slot = strays[i];
            uint32_t len = record_put_notice(buffer, 3, &(struct record_notice){.state = 1});
            if (kind == RECORD_REGISTRANT)
                len = record_put_registrant(
                    buffer, 3, &(struct record_registrant){.id = 1, .transport = TRANSPORT_TCP});
            if (kind == RECORD_LOCK)
                len = record_put_lock(
                    buffer, 3,
                    &(struct record_lock){.of = {.incarnation = 1}, .fh = bytes_of_text("f")});
            MDB_val key = {sizeof slot, &slot}, value = {len, buffer};
            assert_int_equal(mdb_put(txn, table, &key, &value, 0), 0);
        }
    }
    assert_int_equal(mdb_txn_commit(txn), 0);
    mdb_env_close(env);

    for (int open = 0; open < 2; open++) { /* until a commit they stay */
        struct seen seen = {0};
        store = place_open(fixture->place.url, false);
        store_summarize(store, &after);
        assert_memory_equal(after.slots_used, before.slots_used, sizeof after.slots_used);
        assert_int_equal(store_load(store, see, &seen, &failure), 0);
        assert_int_equal(seen.stray_count, 3 * (RECORD_KIND_END - RECORD_SERVER));
        if (open == 0)
            store_close(store);
    }
    model_begin(&fixture->model);
    model_put(&fixture->model, RECORD_REGISTRANT, SLOTS - 1);
    model_commit(model_end(&fixture->model, true), store);
    const char *difference = model_compare(&fixture->model, store);
    store_close(store);
    if (difference != NULL)
        fail_msg("%s", difference);
    expect_usable(fixture);
}

/* Nobody knows what was in the missing part, so the operator decides: nothing is moved or made. */
TEST_OF(test_lmdb__cut_file_is_refused_and_kept, struct fixture *fixture)
{
    make_store(fixture, false);
    const char *file = place_file(&fixture->place, "data.mdb");
    const off_t page_len = sysconf(_SC_PAGESIZE);
    assert_int_equal(truncate(file, 3 * page_len), 0);
    place_refused(fixture->place.url, false, 74, fixture->place.path, "truncated");
    assert_int_equal(place_len(&fixture->place, "data.mdb"), 3 * page_len);
    assert_false(place_has(&fixture->place, "data.mdb.new"));
    assert_false(place_has(&fixture->place, "data.mdb.damaged-1"));
}

/* Takes a file away under its descriptors: every write to it fails from here on. */
static void break_writes(const char *file)
{
    char name[64], target[512];
    for (int fd = 3; fd < 64; fd++) {
        (void)snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
        ssize_t len = readlink(name, target, sizeof target - 1);
        if (len <= 0)
            continue;
        target[len] = '\0';
        if (strstr(target, file) != NULL) {
            int broken = open("/dev/full", O_RDWR | O_CLOEXEC);
            assert_true(broken >= 0);
            assert_int_equal(dup2(broken, fd), fd);
            assert_int_equal(close(broken), 0);
        }
    }
}

static void fail_commit(struct fixture *fixture, const char *file, const char *word)
{
    struct store *store = place_open(fixture->place.url, false);
    struct store_failure failure = {0};
    model_commit(model_next(&fixture->model), store);
    uint64_t good_txn = fixture->model.txn;
    break_writes(file);
    assert_int_equal(store_commit(store, model_next(&fixture->model), &failure), -EIO);
    assert_int_equal(failure.exit_code, 74);
    assert_non_null(strstr(failure.text, fixture->place.path));
    assert_non_null(strstr(failure.text, word));
    assert_non_null(strstr(failure.text, "No space left"));
    assert_int_equal(store_commit(store, model_next(&fixture->model), &failure), -EIO);
    assert_non_null(strstr(failure.text, word));
    assert_int_equal(store_fold(store, &failure), -EIO); /* no copy of what is not all there */
    assert_non_null(strstr(failure.text, word));
    assert_false(store_tend(store));
    store_close(store);

    store = place_open(fixture->place.url, false);
    assert_int_equal(model_stored_txn(store), good_txn);
    store_close(store);
}

TEST_OF(test_lmdb__failed_commit_is_final, struct fixture *fixture)
{
    place_set_journal("0");
    fail_commit(fixture, "/data.mdb", "cannot commit to data.mdb");
    place_set_journal(NULL);
    fixture->model.txn = 1;
    fail_commit(fixture, "/journal", "cannot write to journal");
}

/* kill -9 cannot tell a synced commit from another one, so the calls are counted. */
TEST_OF(test_lmdb__syncs_what_it_promises, struct fixture *fixture)
{
    for (int sync_process = 0; sync_process < 2; sync_process++) {
        struct store *store = place_open(fixture->place.url, sync_process != 0);
        while (store_tend(store)) /* space that is written ahead is synced, too */
            continue;
        for (uint32_t i = 0; i < 10; i++) {
            bool must_sync = i % 2 == 0;
            model_begin(&fixture->model);
            model_put(&fixture->model, RECORD_REGISTRANT, i);
            sync_count = 0;
            model_commit(model_end(&fixture->model, must_sync), store);
            assert_int_equal(sync_count, sync_process == 0 || must_sync ? 1 : 0);
        }
        sync_count = 0;
        store_close(store); /* what the tables get then is synced in both modes */
        assert_int_equal(sync_count, 1);
    }
}

/* The number of the frame at the start of the journal: another one when that was begun again. */
static uint64_t first_frame(const struct fixture *fixture)
{
    enum { NUMBER_AT = 4096 + 16 };
    char bytes[NUMBER_AT + 8 + 1];
    assert_int_equal(place_read(&fixture->place, "journal", bytes, NUMBER_AT + 8), NUMBER_AT + 8);
    return load_be64((const uint8_t *)bytes + NUMBER_AT);
}

static void commit_slots(struct model *model, struct store *store, uint32_t from, uint32_t count)
{
    model_begin(model);
    for (uint32_t slot = from; slot < from + count; slot++)
        model_put(model, RECORD_REGISTRANT, slot);
    model_commit(model_end(model, false), store);
}

/* Batches wait for a fold: on a disk that needs long for one, the next has less to do. */
TEST_OF(test_lmdb__folds_less_on_a_slow_disk, struct fixture *fixture)
{
    enum { MANY = 2000, LEAST = 1024, STEP = 100 };
    struct store_failure failure;
    struct store *store = place_open(fixture->place.url, false);
    struct model model;
    model_init(&model, MANY);
    commit_slots(&model, store, 0, MANY);
    sync_lasts.tv_nsec = 600000000;
    assert_int_equal(store_fold(store, &failure), 0);
    sync_lasts.tv_nsec = 0;
    commit_slots(&model, store, 0, STEP);
    uint64_t first = first_frame(fixture);
    uint32_t slot = STEP;
    for (; slot < MANY && first_frame(fixture) == first; slot += STEP)
        commit_slots(&model, store, slot, STEP);
    assert_in_range(slot, LEAST, LEAST + 4 * STEP); /* not 16 MiB of them */
    const char *difference = model_compare(&model, store);
    store_close(store);
    model_done(&model);
    if (difference != NULL)
        fail_msg("%s", difference);
}

TEST_MAIN(set_up, place_fixture_done, NULL, NULL)
