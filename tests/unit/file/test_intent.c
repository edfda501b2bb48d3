/*
 * test_intent.c -- the ring of intents: what it keeps over a restart, and that no bytes in its file
 * are taken for an intent but ours.
 */
#include "file/intent_parts.h"

#include "../test.h"
#include "base/prng.h"
#include "unit/remove_tree.h"

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FILE_LEN = INTENT_HEAD_LEN + INTENT_COUNT * INTENT_WORDS * 8, ENTRY_LEN = INTENT_WORDS * 8 };

static const struct mac_key key = {{1, 2}};
static char directory[64], path[128], note[512];
static struct intent_ring *ring;

static void open_with(const struct mac_key *with)
{
    struct text text;
    text_init(&text, note, sizeof note);
    ring = intent_ring_open(directory, with, &text);
}

static void again(void)
{
    intent_ring_close(ring);
    open_with(&key);
    assert_non_null(ring);
}

TEST_FIXTURE(start)
{
    (void)snprintf(directory, sizeof directory, "/tmp/ring-XXXXXX");
    assert_non_null(mkdtemp(directory));
    (void)snprintf(path, sizeof path, "%s/" INTENT_FILE, directory);
    open_with(&key);
    assert_non_null(ring);
    assert_string_equal(note, "");
}

TEST_FIXTURE(stop)
{
    intent_ring_close(ring);
    ring = NULL;
    remove_tree(directory);
}

static struct handle_object object_of(uint8_t byte)
{
    struct handle_object object = {.type = 1, .len = 8};
    memset(object.bytes, byte, object.len);
    return object;
}

static uint64_t add(uint64_t intent_key)
{
    return intent_begin(ring, &(struct intent){.key = intent_key,
                                               .client = 5,
                                               .place = 6,
                                               .to_place = 7,
                                               .procedure = NFS_MKDIR,
                                               .port = 700,
                                               .first = object_of(1),
                                               .second = object_of(2)});
}

static void write_at(off_t at, const void *bytes, size_t len)
{
    int fd = open(path, O_WRONLY);
    assert_true(fd >= 0);
    assert_int_equal(pwrite(fd, bytes, len, at), len);
    (void)close(fd);
}

TEST(test_intent__what_was_begun_is_found_by_the_next_run)
{
    (void)add(10);
    uint64_t number = add(11);
    struct handle_object made = object_of(3);
    intent_end(ring, number, INTENT_DONE, &made);
    assert_null(intent_find(ring, 10)); /* only the next one's */
    again();
    const struct intent *begun = intent_find(ring, 10), *done = intent_find(ring, 11);
    assert_non_null(begun);
    assert_non_null(done);
    assert_null(intent_find(ring, 12));
    struct handle_object first = object_of(1), second = object_of(2);
    assert_memory_equal(&begun->first, &first, sizeof first);
    assert_memory_equal(&begun->second, &second, sizeof second);
    assert_int_equal(begun->outcome, INTENT_BEGUN);
    assert_int_equal(begun->port, 700);
    assert_int_equal(begun->procedure, NFS_MKDIR);
    assert_int_equal(begun->to_place, 7);
    assert_true(begun->over_ns >= begun->begun_ns && begun->over_ns < intent_clock_ns());
    assert_int_equal(done->outcome, INTENT_DONE);
    assert_true(done->is_same_boot);
    assert_memory_equal(&done->made, &made, sizeof made);
    uint64_t over_ns = begun->over_ns;
    again(); /* its run does not end later because there are more */
    assert_int_equal(intent_find(ring, 10)->over_ns, over_ns);
}

TEST(test_intent__the_newest_of_a_key_counts)
{
    struct handle_object made = object_of(9);
    for (int i = 0; i < 5; i++)
        intent_end(ring, add(10), INTENT_FAILED, &made);
    again();
    assert_int_equal(intent_find(ring, 10)->outcome, INTENT_FAILED);
    intent_end(ring, add(10), INTENT_DONE, &made);
    again();
    assert_int_equal(intent_find(ring, 10)->outcome, INTENT_DONE);
}

TEST(test_intent__a_failure_has_a_status)
{
    struct handle_object made = object_of(9);
    static const enum nfs_stat stats[] = {NFS_NOENT, NFS_EXIST, NFS_NOTEMPTY, NFS_JUKEBOX};
    for (uint64_t i = 0; i < 4; i++)
        intent_fail(ring, add(10 + i), stats[i]);
    intent_end(ring, add(20), INTENT_DONE, &made);
    uint64_t number = add(21);
    intent_fail(ring, number, NFS_NOENT);
    atomic_fetch_xor(&ring->entries[number % INTENT_COUNT].words[INTENT_AT_OUTCOME],
                     UINT64_C(1) << 32); /* another one is no outcome */
    again();
    for (uint64_t i = 0; i < 4; i++) {
        assert_int_equal(intent_find(ring, 10 + i)->outcome, INTENT_FAILED);
        assert_int_equal(intent_find(ring, 10 + i)->stat, stats[i]);
        assert_int_equal(intent_find(ring, 10 + i)->made.len, 0);
    }
    assert_int_equal(intent_find(ring, 20)->outcome, INTENT_DONE);
    assert_int_equal(intent_find(ring, 20)->stat, NFS_OK);
    assert_int_equal(intent_find(ring, 21)->outcome, INTENT_BEGUN);
}

/* Every moment of a kill: the words of an entry as they are after each store. */
TEST(test_intent__a_torn_entry_is_none_or_begun)
{
    struct handle_object made = object_of(3);
    uint64_t number = add(10);
    struct intent_entry *entry = &ring->entries[number % INTENT_COUNT];
    intent_end(ring, number, INTENT_DONE, &made);
    uint64_t whole[INTENT_WORDS];
    for (uint32_t i = 0; i < INTENT_WORDS; i++)
        whole[i] = atomic_load(&entry->words[i]);
    struct intent found;
    for (uint32_t i = INTENT_AT_NUMBER; i < INTENT_WORDS; i++) {
        atomic_store(&entry->words[i], whole[i] ^ 1); /* not written yet */
        bool is_there = intent_read(ring, (uint32_t)(number % INTENT_COUNT), &found);
        assert_int_equal(is_there, i >= INTENT_AT_END);
        if (is_there)
            assert_int_equal(found.outcome, INTENT_BEGUN);
        atomic_store(&entry->words[i], whole[i]);
    }
    atomic_store(&entry->words[INTENT_AT_CHECK], 0);
    assert_false(intent_read(ring, (uint32_t)(number % INTENT_COUNT), &found));
}

/* The outcome of the entry that was there before is not that of the next. */
TEST(test_intent__an_outcome_belongs_to_its_entry)
{
    struct handle_object made = object_of(3);
    uint64_t number = add(10);
    struct intent_entry *entry = &ring->entries[number % INTENT_COUNT];
    intent_end(ring, number, INTENT_DONE, &made);
    uint64_t check = atomic_load(&entry->words[INTENT_WORD_OUTCOME]);
    for (uint32_t i = 1; i < INTENT_COUNT; i++)
        (void)add(11);
    assert_int_equal(add(12) % INTENT_COUNT, number % INTENT_COUNT);
    atomic_store(&entry->words[INTENT_WORD_OUTCOME], check);
    struct intent found;
    assert_true(intent_read(ring, (uint32_t)(number % INTENT_COUNT), &found));
    assert_int_equal(found.key, 12);
    assert_int_equal(found.outcome, INTENT_BEGUN);
}

TEST(test_intent__a_full_ring_loses_the_oldest)
{
    for (uint64_t i = 1; i <= INTENT_COUNT + 10; i++)
        (void)add(i);
    again();
    assert_null(intent_find(ring, 10));
    assert_non_null(intent_find(ring, 11));
    assert_non_null(intent_find(ring, INTENT_COUNT + 10));
}

TEST(test_intent__an_outcome_that_comes_too_late_is_nobody_elses)
{
    struct handle_object made = object_of(3);
    uint64_t slow = add(1), last = 0;
    for (uint64_t i = 0; i < INTENT_COUNT; i++)
        last = add(2 + i);
    assert_int_equal(last % INTENT_COUNT, slow % INTENT_COUNT);
    intent_end(ring, last, INTENT_DONE, &made);
    intent_fail(ring, slow, NFS_EXIST);
    again();
    assert_null(intent_find(ring, 1));
    assert_non_null(intent_find(ring, INTENT_COUNT + 1));
    assert_int_equal(intent_find(ring, INTENT_COUNT + 1)->outcome, INTENT_DONE);
}

TEST(test_intent__garbage_is_nothing)
{
    static uint8_t bytes[FILE_LEN];
    struct prng prng = {.state = 7};
    for (int round = 0; round < 8; round++) {
        (void)add(10);
        for (size_t i = 0; i < sizeof bytes; i++)
            bytes[i] = (uint8_t)prng_next(&prng);
        /* All of it, or everything behind a good head, or a part. */
        off_t at = round % 3 == 0 ? 0 : round % 3 == 1 ? INTENT_HEAD_LEN : FILE_LEN / 2;
        intent_ring_close(ring);
        write_at(at, bytes, (size_t)(FILE_LEN - at));
        open_with(&key);
        assert_non_null(ring);
        assert_true(ring->earlier_count <= (uint32_t)round + 1);
        assert_int_equal(note[0] != 0, at == 0); /* with words if nothing can be read */
        (void)add(11);
        again();
        assert_non_null(intent_find(ring, 11));
    }
}

TEST(test_intent__every_changed_bit_is_noticed)
{
    uint64_t number = add(10);
    struct intent_entry *entry = &ring->entries[number % INTENT_COUNT];
    struct intent found;
    for (uint32_t bit = 0; bit < INTENT_AT_END * 64; bit++) {
        if (bit / 64 == INTENT_AT_OVER)
            continue;
        atomic_fetch_xor(&entry->words[bit / 64], UINT64_C(1) << bit % 64);
        assert_false(intent_read(ring, (uint32_t)(number % INTENT_COUNT), &found));
        atomic_fetch_xor(&entry->words[bit / 64], UINT64_C(1) << bit % 64);
    }
}

static void expect_replaced(void)
{
    open_with(&key);
    assert_non_null(ring);
    assert_non_null(strstr(note, "is empty now"));
    assert_null(intent_find(ring, 10));
    (void)add(10);
    again();
    assert_string_equal(note, "");
    assert_non_null(intent_find(ring, 10));
}

TEST(test_intent__another_length_version_or_key_begins_again)
{
    uint64_t other = 99;
    (void)add(10);
    intent_ring_close(ring);
    assert_int_equal(truncate(path, FILE_LEN - 256), 0);
    expect_replaced();
    intent_ring_close(ring);
    assert_int_equal(truncate(path, FILE_LEN + 256), 0);
    expect_replaced();
    intent_ring_close(ring);
    write_at(8, &other, sizeof other);
    expect_replaced();
    intent_ring_close(ring);
    open_with(&(struct mac_key){{1, 3}});
    assert_non_null(ring);
    assert_non_null(strstr(note, "is empty now"));
}

TEST(test_intent__what_cannot_be_used_is_said)
{
    intent_ring_close(ring);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(symlink("/dev/null", path), 0);
    open_with(&key);
    assert_null(ring);
    assert_non_null(strstr(note, "will be executed again"));
    assert_non_null(strstr(note, path));
    assert_int_equal(unlink(path), 0);
    assert_int_equal(mkfifo(path, 0600), 0);
    open_with(&key);
    assert_null(ring);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(rmdir(directory), 0);
    open_with(&key);
    assert_null(ring);
    assert_non_null(strstr(note, "No such file"));
}

/* As a copy that leaves out what is empty. */
static void make_sparse(void)
{
    static uint8_t bytes[INTENT_HEAD_LEN + 16 * ENTRY_LEN];
    int fd = open(path, O_RDWR);
    assert_true(fd >= 0);
    assert_int_equal(pread(fd, bytes, sizeof bytes, 0), sizeof bytes);
    assert_int_equal(ftruncate(fd, 0), 0);
    assert_int_equal(pwrite(fd, bytes, sizeof bytes, 0), sizeof bytes);
    assert_int_equal(ftruncate(fd, FILE_LEN), 0);
    (void)close(fd);
}

static uint64_t allocated(void)
{
    struct stat st;
    assert_int_equal(stat(path, &st), 0);
    return (uint64_t)st.st_blocks * 512;
}

TEST(test_intent__a_copy_with_holes_is_allocated)
{
    (void)add(10);
    intent_ring_close(ring);
    ring = NULL;
    make_sparse();
    assert_true(allocated() < FILE_LEN);
    open_with(&key);
    assert_non_null(ring);
    assert_string_equal(note, "");
    assert_non_null(intent_find(ring, 10));
    assert_true(allocated() >= FILE_LEN);
}

/* A store into it would be SIGBUS. */
TEST(test_intent__holes_on_a_full_disk_are_said)
{
    (void)add(10);
    intent_ring_close(ring);
    ring = NULL;
    if (unshare(CLONE_NEWNS) != 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
        mount("none", directory, "tmpfs", 0, "size=5m") != 0)
        skip();
    open_with(&key);
    assert_non_null(ring);
    (void)add(10);
    intent_ring_close(ring);
    ring = NULL;
    make_sparse();
    char other[128];
    (void)snprintf(other, sizeof other, "%s/other", directory);
    int fd = open(other, O_WRONLY | O_CREAT, 0600);
    assert_true(fd >= 0);
    assert_int_equal(posix_fallocate(fd, 0, 3 << 20), 0);
    (void)close(fd);
    open_with(&key);
    assert_null(ring);
    assert_non_null(strstr(note, "will be executed again"));
    assert_non_null(strstr(note, "No space left"));
    assert_int_equal(unlink(other), 0);
    open_with(&key); /* nothing is lost by that */
    assert_non_null(ring);
    assert_non_null(intent_find(ring, 10));
    intent_ring_close(ring);
    ring = NULL;
    assert_int_equal(umount(directory), 0);
}

static void expect_bytes(const char *name, const uint8_t *bytes, size_t len)
{
    static uint8_t now[FILE_LEN + 1];
    int fd = open(name, O_RDONLY);
    assert_true(fd >= 0);
    assert_int_equal(read(fd, now, sizeof now), len);
    assert_memory_equal(now, bytes, len);
    (void)close(fd);
}

/* Another file of any length, or even another ring. */
TEST(test_intent__what_has_another_name_is_not_touched)
{
    static uint8_t bytes[FILE_LEN];
    static const size_t lens[] = {0, 100, FILE_LEN, FILE_LEN};
    char other[128];
    (void)snprintf(other, sizeof other, "%s/other", directory);
    for (int i = 0; i < 4; i++) {
        (void)add(10);
        intent_ring_close(ring);
        memset(bytes, 'x', sizeof bytes);
        if (i < 3) {
            assert_int_equal(truncate(path, 0), 0);
            write_at(0, bytes, lens[i]);
        } else {
            int fd = open(path, O_RDONLY);
            assert_true(fd >= 0);
            assert_int_equal(read(fd, bytes, sizeof bytes), sizeof bytes);
            (void)close(fd);
        }
        assert_int_equal(link(path, other), 0);
        open_with(&key);
        assert_non_null(ring);
        assert_non_null(strstr(note, "hard link"));
        assert_null(intent_find(ring, 10));
        (void)add(11);
        again();
        assert_string_equal(note, "");
        assert_non_null(intent_find(ring, 11));
        expect_bytes(other, bytes, lens[i]);
        assert_int_equal(unlink(other), 0);
    }
}

TEST(test_intent__age_is_time_that_servers_were_up)
{
    (void)add(10);
    intent_ring_tick(ring, 400000);
    (void)add(11);
    again();
    intent_ring_tick(ring, 300000);
    assert_null(intent_find(ring, 10));
    assert_non_null(intent_find(ring, 11));
    again();
    assert_null(intent_find(ring, 10));
}

static void *write_many(void *argument)
{
    uint64_t first = (uint64_t)(uintptr_t)argument;
    struct handle_object made = object_of((uint8_t)first);
    for (uint64_t i = 0; i < 2000; i++)
        intent_end(ring, add(first * 10000 + i), INTENT_DONE, &made);
    return NULL;
}

TEST(test_intent__threads_do_not_disturb_each_other)
{
    pthread_t threads[4];
    for (uintptr_t i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, write_many, (void *)(i + 1)), 0);
    const struct intent wanted = {.key = 1, .made = object_of(99), .first = object_of(98)};
    for (int i = 0; i < 20; i++) { /* who looks meanwhile sees nothing that is half written */
        assert_false(intent_is_made_by_another(ring, &wanted));
        assert_false(intent_is_seen_by_another(ring, &wanted));
    }
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    again();
    assert_int_equal(ring->earlier_count, 8000);
    for (uint64_t i = 1; i <= 4; i++) {
        struct handle_object made = object_of((uint8_t)i);
        for (uint64_t j = 0; j < 2000; j++) {
            const struct intent *found = intent_find(ring, i * 10000 + j);
            assert_non_null(found);
            assert_memory_equal(&found->made, &made, sizeof made);
        }
    }
}

TEST_MAIN(start, stop, NULL, NULL)
