/*
 * test_journal.c -- frames that count and frames that do not, and what they come to.
 */
#include "place.h"

#include "base/prng.h"
#include "store/fold.h"
#include "unit/test.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

enum { SLOTS = 300, BLOCK = 4096, SECTOR = 512, LEN = 64 * BLOCK };

struct scene {
    struct fixture *fixture; /* owned by *state */
    struct directory directory;
    struct journal journal;
};

static struct scene scene;

TEST_FIXTURE(set_up)
{
    place_fixture(state, SLOTS);
    struct store_failure failure;
    scene = (struct scene){.fixture = *state};
    assert_int_equal(directory_open(&scene.directory, scene.fixture->place.path, &failure), 0);
    assert_int_equal(journal_make(&scene.directory, LEN), 0);
    assert_int_equal(journal_open(&scene.journal, &scene.directory), 0);
    assert_int_equal(journal_begin(&scene.journal, 0), 0);
}

static int tear_down(void **state)
{
    journal_close(&scene.journal);
    directory_close(&scene.directory);
    return place_fixture_done(state);
}

/* A batch with values that differ, so that its frame takes some blocks. */
static const struct store_batch *next(uint32_t puts)
{
    struct model *model = &scene.fixture->model;
    model_begin(model);
    for (uint32_t slot = 0; slot < puts; slot++)
        model_put(model, RECORD_REGISTRANT, slot);
    return model_end(model, false);
}

static void append(uint32_t puts)
{
    assert_int_equal(journal_append(&scene.journal, next(puts), true), 0);
}

/* As the next process finds it. */
static bool find_again(uint64_t id, uint64_t number)
{
    journal_close(&scene.journal);
    assert_int_equal(journal_open(&scene.journal, &scene.directory), 0);
    return journal_find(&scene.journal, id, number);
}

static void damage(uint64_t at, size_t len)
{
    static const uint8_t noise[BLOCK] = {0xe3, 0xe2, 0xe1};
    int fd = open(place_file(&scene.fixture->place, "journal"), O_RDWR | O_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(pwrite(fd, noise, len, (off_t)at), len);
    assert_int_equal(close(fd), 0);
}

TEST(test_journal__is_written_when_it_is_made)
{
    struct stat status;
    assert_int_equal(stat(place_file(&scene.fixture->place, "journal"), &status), 0);
    assert_int_equal(status.st_size, LEN);
    assert_true(status.st_blocks * 512 >= LEN);
    assert_int_equal(status.st_mode & 0777, 0600);
    assert_false(place_has(&scene.fixture->place, "journal.new"));
}

TEST(test_journal__finds_what_was_appended)
{
    static uint8_t kept[4][LEN];
    struct store_batch batches[4];
    const uint64_t id = scene.journal.id;
    for (uint32_t i = 0; i < 4; i++) {
        batches[i] = *next(i * 40);
        memcpy(kept[i], batches[i].changes.at, batches[i].changes.len);
        assert_int_equal(journal_append(&scene.journal, &batches[i], i % 2 == 0), 0);
        assert_int_equal(scene.journal.end % BLOCK, 0);
    }
    assert_false(find_again(id, 0));
    assert_int_equal(scene.journal.frame_count, 4);
    assert_int_equal(scene.journal.number, 4);
    for (uint32_t i = 0; i < 4; i++) {
        struct store_batch found = journal_get(&scene.journal, i);
        assert_int_equal(found.count, batches[i].count);
        assert_int_equal(found.changes.len, batches[i].changes.len);
        assert_memory_equal(found.changes.at, kept[i], found.changes.len);
    }
    append(3); /* and goes on behind them */
    assert_false(find_again(id, 0));
    assert_int_equal(scene.journal.frame_count, 5);
}

TEST(test_journal__begins_again_from_its_start)
{
    const uint64_t id = scene.journal.id;
    append(40);
    append(1);
    append(1);
    journal_restart(&scene.journal);
    assert_false(find_again(id, 3)); /* the tables have all three */
    assert_int_equal(scene.journal.frame_count, 0);
    append(1);
    assert_false(find_again(id, 3)); /* the others are still there, and older */
    assert_int_equal(scene.journal.frame_count, 1);
    assert_int_equal(scene.journal.number, 4);
    assert_true(find_again(id, 2)); /* of tables that are older than that: 3 is gone */
    assert_int_equal(scene.journal.frame_count, 0);
}

/* Of the map, as the kernel counts it. */
static unsigned long resident_kib(const void *map)
{
    char line[512];
    unsigned long start, end, kib = 0;
    bool is_ours = false, is_found = false;
    FILE *file = fopen("/proc/self/smaps", "re");
    assert_non_null(file);
    while (!is_found && fgets(line, sizeof line, file) != NULL) {
        if (sscanf(line, "%lx-%lx ", &start, &end) == 2)
            is_ours = start <= (uintptr_t)map && (uintptr_t)map < end;
        is_found = is_ours && sscanf(line, "Rss: %lu", &kib) == 1;
    }
    assert_int_equal(fclose(file), 0);
    assert_true(is_found);
    return kib;
}

TEST(test_journal__that_was_read_takes_no_memory)
{
    const uint64_t id = scene.journal.id;
    const struct store_batch *batch = next(40);
    assert_int_equal(journal_append(&scene.journal, batch, false), 0);
    assert_false(find_again(id, 0)); /* looks at every block */
    assert_true(resident_kib(scene.journal.map) * 1024 >= LEN / 2);
    struct store_batch found = journal_get(&scene.journal, 0);
    journal_restart(&scene.journal);
    assert_int_equal(resident_kib(scene.journal.map), 0);
    assert_int_equal(found.changes.len, batch->changes.len); /* and nothing is lost */
    assert_memory_equal(found.changes.at, batch->changes.at, found.changes.len);
}

TEST(test_journal__of_another_run_is_not_read)
{
    const uint64_t id = scene.journal.id;
    append(1);
    append(1);
    assert_false(find_again(id + 1, 0));
    assert_int_equal(scene.journal.frame_count, 0);
    assert_int_equal(journal_begin(&scene.journal, id), 0);
    assert_int_not_equal(scene.journal.id, id);
    append(1); /* frame 2 of the run before follows, and does not count */
    assert_false(find_again(scene.journal.id, 0));
    assert_int_equal(scene.journal.frame_count, 1);
}

/* A frame that was being written when the power went may be there in any part. */
TEST(test_journal__torn_frame_does_not_count)
{
    const uint64_t id = scene.journal.id;
    append(2);
    uint64_t from = scene.journal.end;
    append(100);
    uint64_t end = from + 40 + journal_get(&scene.journal, 1).changes.len;
    assert_true(end > from + 4 * (uint64_t)BLOCK);
    static uint8_t whole[LEN];
    memcpy(whole, scene.journal.map, LEN);
    for (uint64_t at = from; at < end; at += SECTOR) {
        damage(at, SECTOR);
        assert_false(find_again(id, 0));
        assert_int_equal(scene.journal.frame_count, 1);
        place_write(&scene.fixture->place, "journal", whole, LEN);
        assert_false(find_again(id, 0));
        assert_int_equal(scene.journal.frame_count, 2);
    }
}

/* Frames behind one that cannot be read were acknowledged after it: it is not torn but damaged. */
TEST(test_journal__damage_in_the_middle_is_told)
{
    const uint64_t id = scene.journal.id;
    uint64_t begins[5];
    for (uint32_t i = 0; i < 5; i++) {
        begins[i] = scene.journal.end;
        append(30);
    }
    static uint8_t whole[LEN];
    memcpy(whole, scene.journal.map, LEN);
    for (uint32_t i = 0; i < 5; i++) {
        damage(begins[i] + 100, 3);
        assert_int_equal(find_again(id, 0), i < 4); /* the last one may be torn */
        assert_int_equal(scene.journal.frame_count, i);
        place_write(&scene.fixture->place, "journal", whole, LEN);
    }
}

/* A checksum does not say that what it is of makes sense to this version. */
TEST(test_journal__changes_that_cannot_be_walked_do_not_count)
{
    const struct store_batch *good = next(3);
    static uint8_t bytes[LEN];
    memcpy(bytes, good->changes.at, good->changes.len);
    struct store_batch batch = {.count = good->count, .changes = {bytes, good->changes.len}};
    assert_true(store_batch_is_sound(&batch));
    batch.changes.len--;
    assert_false(store_batch_is_sound(&batch));
    batch.changes.len++;
    batch.count++;
    assert_false(store_batch_is_sound(&batch));
    batch.count--;
    bytes[0] = RECORD_KIND_END;
    assert_false(store_batch_is_sound(&batch));
    bytes[0] = 0;
    assert_false(store_batch_is_sound(&batch));
    assert_int_equal(journal_append(&scene.journal, &batch, true), 0);
    assert_true(find_again(scene.journal.id, 0)); /* it was acknowledged */
    assert_int_equal(scene.journal.frame_count, 0);
}

TEST(test_journal__has_space_for_what_fits)
{
    const struct store_batch *batch = next(0);
    assert_true(journal_has_space(&scene.journal, batch));
    for (uint32_t blocks = 1; blocks < LEN / BLOCK; blocks++) {
        assert_true(journal_has_space(&scene.journal, batch));
        assert_int_equal(journal_append(&scene.journal, batch, false), 0);
    }
    assert_false(journal_has_space(&scene.journal, batch));
    assert_int_equal(scene.journal.frame_count, LEN / BLOCK - 1);
    assert_false(find_again(scene.journal.id, 0));
    assert_int_equal(scene.journal.frame_count, LEN / BLOCK - 1);
    journal_restart(&scene.journal);
    struct store_batch large = {.changes = {.len = LEN - BLOCK - 40}};
    assert_true(journal_has_space(&scene.journal, &large));
    large.changes.len++;
    assert_false(journal_has_space(&scene.journal, &large));
    large.changes.len = UINT64_MAX;
    assert_false(journal_has_space(&scene.journal, &large));
    assert_false(journal_has_space(&(struct journal){.fd = -1}, batch)); /* there is none */
}

TEST(test_journal__needs_ample_room_and_whole_blocks)
{
    assert_int_equal(journal_make(&scene.directory, UINT64_C(1) << 60), -ENOSPC);
    assert_true(place_has(&scene.fixture->place, "journal")); /* the old one is still there */
    place_write(&scene.fixture->place, "journal", "short", 5);
    journal_close(&scene.journal);
    assert_int_equal(journal_open(&scene.journal, &scene.directory), -EINVAL);
    assert_int_equal(unlink(place_file(&scene.fixture->place, "journal")), 0);
    assert_int_equal(journal_open(&scene.journal, &scene.directory), -ENOENT);
}

/* ---- whose it is ---- */

TEST(test_journal__is_of_the_old_run_until_the_new_one_is_settled)
{
    uint64_t first = scene.journal.id;
    assert_int_equal(journal_settle(&scene.journal), 0);
    for (int i = 0; i < 5; i++) {
        append(1);
        assert_false(journal_is_of(&scene.journal, first + 1));
        assert_int_equal(journal_begin(&scene.journal, first), 0);
        uint64_t second = scene.journal.id;
        assert_false(find_again(first, 0)); /* a crash here: the tables know the first */
        assert_true(journal_is_of(&scene.journal, first));
        assert_true(journal_is_of(&scene.journal, second));
        assert_int_equal(scene.journal.frame_count, 1);
        scene.journal.id = second;
        scene.journal.number = 0;
        journal_restart(&scene.journal);
        assert_int_equal(journal_settle(&scene.journal), 0);
        assert_false(journal_is_of(&scene.journal, first));
        assert_true(journal_is_of(&scene.journal, second));
        first = second;
    }
}

/* One of the two places may be torn when it is written, never the other. */
TEST(test_journal__torn_owner_leaves_the_old_one)
{
    uint64_t first = scene.journal.id;
    assert_int_equal(journal_settle(&scene.journal), 0);
    for (uint64_t torn = 0; torn < 2; torn++) {
        damage(torn * SECTOR, 3);
        assert_false(find_again(first, 0));
        assert_true(journal_is_of(&scene.journal, first));
        assert_int_equal(journal_begin(&scene.journal, first), 0);
        assert_true(journal_is_of(&scene.journal, first));
        assert_int_equal(journal_settle(&scene.journal), 0);
        first = scene.journal.id;
    }
}

TEST(test_journal__holes_are_filled)
{
    struct stat status;
    const char *path = place_file(&scene.fixture->place, "journal");
    assert_true(journal_is_solid(&scene.journal));
    journal_close(&scene.journal);
    assert_int_equal(truncate(path, 0), 0);
    assert_int_equal(truncate(path, LEN), 0);
    assert_int_equal(journal_open(&scene.journal, &scene.directory), 0);
    assert_true(journal_is_solid(&scene.journal));
    assert_int_equal(stat(place_file(&scene.fixture->place, "journal"), &status), 0);
    assert_true(status.st_blocks * 512 >= LEN);
}

TEST(test_journal__has_one_server)
{
    struct journal other;
    assert_int_equal(journal_open(&other, &scene.directory), -EBUSY);
    scene.directory.is_reader = true;
    assert_int_equal(journal_open(&other, &scene.directory), 0);
    journal_close(&other);
    scene.directory.is_reader = false;
}

/* ---- what frames come to ---- */

TEST(test_journal__fold_has_the_last_change_of_each_record)
{
    struct model *model = &scene.fixture->model;
    struct fold fold = {0};
    struct fold_list list;
    const struct store_batch *batch = NULL;
    for (uint32_t i = 0; i < 4; i++) {
        model_begin(model);
        for (uint32_t slot = i; slot < 10; slot++) {
            model_put(model, RECORD_LOCK, 100 - slot);
            if (slot % 3 == 0)
                model_delete(model, RECORD_LOCK, 100 - slot);
        }
        model_put(model, RECORD_NOTICE, i);
        batch = model_end(model, false);
        assert_true(fold_add(&fold, batch));
        if (i < 3)
            assert_int_equal(journal_append(&scene.journal, batch, false), 0);
    }
    assert_int_equal(fold.changed.count, 10 + 4 + 1);
    assert_int_equal(fold_puts_max(&fold), 15);
    assert_true(fold_take(&fold, &scene.journal, batch, &list));
    assert_int_equal(list.count, 15);
    for (uint32_t i = 0; i < list.count; i++) {
        const struct record_change *change = &list.changes[i];
        assert_true(i == 0 || change[-1].kind < change->kind ||
                    (change[-1].kind == change->kind && change[-1].slot < change->slot));
        if (change->kind == RECORD_LOCK)
            assert_int_equal(change->deleted, (100 - change->slot) % 3 == 0);
    }
    assert_int_equal(list.changes[0].kind, RECORD_SERVER);
    struct record_server server;
    assert_int_equal(record_get_server(list.changes[0].value, &server), RECORD_GOOD);
    assert_int_equal(server.txn, model->txn);
    fold_list_free(&list);
    assert_int_equal(fold_puts_max(&fold), 0);
    assert_true(fold_take(&fold, &(struct journal){.fd = -1}, NULL, &list)); /* nothing is left */
    assert_int_equal(list.count, 0);
    fold_list_free(&list);
    fold_free(&fold);
}

TEST(test_journal__removals_are_no_puts)
{
    struct model *model = &scene.fixture->model;
    struct fold fold = {0};
    model_begin(model);
    for (uint32_t slot = 0; slot < 100; slot++)
        model_delete(model, RECORD_LOCK, slot);
    assert_true(fold_add(&fold, model_end(model, false)));
    assert_int_equal(fold.changed.count, 101);
    assert_int_equal(fold_puts_max(&fold), 1); /* the server record */
    fold_free(&fold);
}

TEST_MAIN(set_up, tear_down, NULL, NULL)
