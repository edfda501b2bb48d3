/*
 * test_snapshot.c -- shows that a copy of a store is its state after one batch, whatever is
 * committed while it is made.
 *
 * Random batches and pieces of reading in random order, over each back end that can be walked; what
 * was handed over is compared with what the store held at the beginning, byte by byte. Then the
 * same as lines, with a reader that stops, one that leaves, and one that lets too much change.
 */
#include "model.h"
#include "place.h"

#include "base/prng.h"
#include "store/copy.h"
#include "store/lines.h"
#include "store/snapshot.h"
#include "unit/test.h"

enum { SLOTS = 500, LINES_LEN = 80 * 1024 * 1024 };

/* ---- what was handed over ---- */

struct seen {
    struct bytes records[RECORD_KIND_END][SLOTS]; /* owned; at NULL: none */
    uint32_t count, twice;
};

static int see(void *context, enum record_kind kind, uint32_t slot, struct bytes value)
{
    struct seen *seen = context;
    uint8_t *copy = malloc(value.len);
    assert_non_null(copy);
    assert_true(slot < SLOTS);
    memcpy(copy, value.at, value.len);
    seen->twice += seen->records[kind][slot].at != NULL;
    free((void *)(uintptr_t)seen->records[kind][slot].at);
    seen->records[kind][slot] = (struct bytes){copy, value.len};
    seen->count++;
    return 0;
}

static void forget(struct seen *seen)
{
    for (int kind = 0; kind < RECORD_KIND_END; kind++)
        for (uint32_t slot = 0; slot < SLOTS; slot++)
            free((void *)(uintptr_t)seen->records[kind][slot].at);
    free(seen);
}

static struct seen *see_all(struct store *store)
{
    struct seen *seen = calloc(1, sizeof *seen);
    struct store_failure failure;
    assert_non_null(seen);
    assert_int_equal(store_load(store, see, seen, &failure), 0);
    return seen;
}

static void expect_same(const struct seen *a, const struct seen *b)
{
    assert_int_equal(a->count, b->count);
    for (int kind = 0; kind < RECORD_KIND_END; kind++)
        for (uint32_t slot = 0; slot < SLOTS; slot++)
            if (!bytes_equal(a->records[kind][slot], b->records[kind][slot]))
                fail_msg("%s/%u differs", record_kind_name((enum record_kind)kind), slot);
}

/* ---- snapshots ---- */

static void take_one(struct model *model, struct store *store, struct prng *prng)
{
    struct store_failure failure;
    struct seen *before = see_all(store), *seen = calloc(1, sizeof *seen);
    struct snapshot *snapshot = snapshot_new(store, &failure);
    assert_non_null(seen);
    assert_non_null(snapshot);
    while (!snapshot_is_over(snapshot)) {
        if (prng_below(prng, 3) == 0) {
            const struct store_batch *batch = model_next(model);
            assert_int_equal(snapshot_keep(snapshot, store, batch, see, seen, &failure), 0);
            model_commit(batch, store);
        } else {
            uint32_t count = 1 + (uint32_t)prng_below(prng, 60);
            assert_int_equal(snapshot_read(snapshot, store, count, see, seen, &failure), 0);
        }
    }
    assert_int_equal(seen->twice, 0);
    expect_same(seen, before);
    snapshot_free(snapshot);
    forget(before);
    forget(seen);
}

static void take_many(const char *url, struct model *model)
{
    struct prng prng = {19};
    struct store *store = place_open(url, true);
    assert_true(store_can_walk(store));
    for (uint32_t i = 0; i < 12; i++)
        model_commit(model_next(model), store);
    for (uint32_t i = 0; i < test_rounds(80) + 4; i++)
        take_one(model, store, &prng);
    assert_null(model_compare(model, store));
    store_close(store);
}

TEST(test_snapshot__is_the_state_of_one_batch_in_memory)
{
    struct fixture *fixture = *state;
    take_many("memory:", &fixture->model);
}

TEST(test_snapshot__is_the_state_of_one_batch_in_lmdb)
{
    struct fixture *fixture = *state;
    take_many(fixture->place.url, &fixture->model);
}

/* The tables take what the journal has in the middle of it, and more than once. */
TEST(test_snapshot__is_the_state_of_one_batch_with_a_short_journal)
{
    struct fixture *fixture = *state;
    place_set_journal("131072");
    take_many(fixture->place.url, &fixture->model);
    place_set_journal(NULL);
}

/* Nobody has read the store before: its last batches are where only a fold finds them. */
TEST_OF(test_snapshot__has_what_was_committed_last, struct fixture *fixture)
{
    struct store_failure failure;
    struct store *store = place_open(fixture->place.url, false);
    for (uint32_t i = 0; i < 12; i++)
        model_commit(model_next(&fixture->model), store);
    struct seen *seen = calloc(1, sizeof *seen);
    struct snapshot *snapshot = snapshot_new(store, &failure);
    assert_non_null(seen);
    assert_non_null(snapshot);
    while (!snapshot_is_over(snapshot))
        assert_int_equal(snapshot_read(snapshot, store, 50, see, seen, &failure), 0);
    struct seen *all = see_all(store);
    assert_true(all->count > 0);
    expect_same(seen, all);
    snapshot_free(snapshot);
    forget(seen);
    forget(all);
    store_close(store);
}

TEST(test_snapshot__of_an_empty_store)
{
    struct store_failure failure;
    struct seen *seen = calloc(1, sizeof *seen);
    struct store *store = place_open("memory:", false);
    struct snapshot *snapshot = snapshot_new(store, &failure);
    assert_non_null(seen);
    assert_int_equal(snapshot_read(snapshot, store, 1, see, seen, &failure), 0);
    assert_true(snapshot_is_over(snapshot));
    assert_int_equal(seen->count, 0);
    snapshot_free(snapshot);
    snapshot_free(NULL);
    store_close(store);
    forget(seen);
}

static int see_one(void *context, enum record_kind kind, uint32_t slot, struct bytes value)
{
    (void)see(context, kind, slot, value);
    return 7;
}

TEST(test_snapshot__ends_with_its_visitor)
{
    struct fixture *fixture = *state;
    struct store_failure failure;
    struct seen *seen = calloc(1, sizeof *seen);
    struct store *store = place_open("memory:", false);
    struct snapshot *snapshot = snapshot_new(store, &failure);
    assert_non_null(seen);
    for (uint32_t i = 0; i < 12; i++)
        model_commit(model_next(&fixture->model), store);
    assert_int_equal(snapshot_read(snapshot, store, 60, see_one, seen, &failure), 7);
    assert_int_equal(seen->count, 1);
    const struct store_batch *batch = model_next(&fixture->model);
    while (snapshot_keep(snapshot, store, batch, see_one, seen, &failure) == 0)
        batch = model_next(&fixture->model); /* changes only what was empty */
    assert_int_equal(seen->count, 2);
    snapshot_free(snapshot);
    store_close(store);
    forget(seen);
}

/* ---- lines ---- */

static int sum_up(void *context, enum record_kind kind, uint32_t slot, struct bytes value)
{
    digest_add(context, kind, slot, value);
    return 0;
}

static struct digest digest_of(struct store *store)
{
    struct digest digest = {0};
    struct store_failure failure;
    assert_int_equal(store_load(store, sum_up, &digest, &failure), 0);
    return digest;
}

/* Takes what there is; how it ended, 0: not yet. */
static ssize_t take_all(struct copy *copy, char *lines, size_t *len)
{
    ssize_t taken;
    while ((taken = copy_take(copy, lines + *len, LINES_LEN - *len - 1)) > 0)
        *len += (size_t)taken;
    lines[*len] = '\0';
    return taken;
}

static const char *last_line(char *lines, size_t len)
{
    assert_true(len > 0 && lines[len - 1] == '\n');
    lines[len - 1] = '\0';
    char *newline = strrchr(lines, '\n');
    return newline == NULL ? lines : newline + 1;
}

TEST(test_copy__ends_with_a_line_that_proves_it)
{
    struct fixture *fixture = *state;
    struct store *store = place_open("memory:", false);
    for (uint32_t i = 0; i < 12; i++)
        model_commit(model_next(&fixture->model), store);
    struct digest digest = digest_of(store);
    char *lines = malloc(LINES_LEN), end[LINES_MAX];
    size_t len = 0, count = 0;
    struct copy *copy = copy_new();
    assert_non_null(lines);
    copy_hold(copy);
    assert_int_equal(copy_take(copy, lines, 10), 0);
    assert_true(copy_is_wanting(copy));
    while (!copy_step(copy, store)) {
        assert_int_equal(take_all(copy, lines, &len), 0);
        const struct store_batch *batch = model_next(&fixture->model);
        copy_keep(copy, store, batch);
        model_commit(batch, store);
    }
    assert_false(copy_leave(copy, NULL) && len == 0);
    assert_int_equal(take_all(copy, lines, &len), COPY_WHOLE);
    assert_int_equal(take_all(copy, lines, &len), COPY_WHOLE);
    assert_int_equal(copy_count(copy), digest.count);
    for (size_t i = 0; i < len; i++)
        count += lines[i] == '\n';
    assert_int_equal(count, digest.count + 1);
    uint32_t end_len = lines_put_end(end, &digest);
    end[end_len - 1] = '\0';
    assert_string_equal(last_line(lines, len), end);
    assert_non_null(strstr(lines, "{\"kind\": \"server\", \"slot\": 0, \"record\": \"01"));
    assert_false(copy_cancel(copy));
    store_close(store);
    free(lines);
}

/* Large records: few of them fill the queue. */
static void put_large(struct store *store, struct copy *copy, uint32_t count, uint64_t txn)
{
    uint8_t value[2500];
    struct batch_writer writer = {.max = (uint64_t)count * (sizeof value + BATCH_CHANGE_OVERHEAD)};
    writer.start = malloc(writer.max);
    assert_non_null(writer.start);
    memset(value, (int)txn, sizeof value);
    for (uint32_t slot = 0; slot < count; slot++)
        store_batch_put(&writer, RECORD_LOCK, slot, (struct bytes){value, sizeof value});
    struct store_batch batch = {
        .txn = txn, .count = writer.count, .changes = {writer.start, writer.len}};
    if (copy != NULL)
        copy_keep(copy, store, &batch);
    model_commit(&batch, store);
    free(writer.start);
}

TEST(test_copy__waits_for_a_reader_that_stops)
{
    struct store *store = place_open("memory:", false);
    char *lines = malloc(LINES_LEN);
    size_t len = 0;
    uint32_t steps = 0;
    assert_non_null(lines);
    put_large(store, NULL, 1000, 1); /* 5 MB */
    struct copy *copy = copy_new();
    copy_hold(copy);
    while (copy_is_wanting(copy)) {
        assert_false(copy_step(copy, store));
        steps++;
    }
    assert_true(copy_count(copy) < 500); /* half of it is not read before somebody takes some */
    assert_true(steps > 0);
    assert_int_equal(take_all(copy, lines, &len), 0);
    assert_true(len < 2 * 1024 * 1024);
    assert_true(copy_is_wanting(copy));
    while (!copy_step(copy, store))
        (void)take_all(copy, lines, &len);
    (void)copy_leave(copy, NULL);
    assert_int_equal(take_all(copy, lines, &len), COPY_WHOLE);
    assert_int_equal(copy_count(copy), 1000);
    (void)copy_cancel(copy);
    store_close(store);
    free(lines);
}

TEST(test_copy__breaks_off_when_too_much_changes)
{
    struct store *store = place_open("memory:", false);
    char *lines = malloc(LINES_LEN), why[COPY_WHY_MAX];
    size_t len = 0;
    assert_non_null(lines);
    put_large(store, NULL, 14000, 1); /* 70 MB of lines */
    struct copy *copy = copy_new();
    copy_hold(copy);
    assert_false(copy_step(copy, store));
    put_large(store, copy, 14000, 2);
    assert_false(copy_is_wanting(copy)); /* nobody reads: it waits */
    char piece[64 * 1024];
    while (!copy_is_wanting(copy)) {
        ssize_t taken = copy_take(copy, piece, sizeof piece);
        assert_true(taken > 0);
        len += (size_t)taken;
    }
    assert_true(len > 60 * 1024 * 1024 && len < 65 * 1024 * 1024);
    assert_true(copy_step(copy, store));
    (void)copy_leave(copy, NULL);
    len = 0;
    assert_int_equal(take_all(copy, lines, &len), COPY_CUT);
    copy_get_why(copy, why);
    assert_non_null(strstr(why, "too many records changed"));
    const char *last = last_line(lines, len);
    assert_int_equal(strncmp(last, "{\"kind\": \"error\", \"error\": \"too many", 35), 0);
    assert_false(copy_cancel(copy));
    store_close(store);
    free(lines);
}

TEST(test_copy__ends_with_its_reader)
{
    struct store *store = place_open("memory:", false);
    put_large(store, NULL, 1000, 1);
    struct copy *copy = copy_new();
    copy_hold(copy);
    while (copy_is_wanting(copy))
        assert_false(copy_step(copy, store));
    assert_true(copy_cancel(copy)); /* the worker must be told, */
    assert_true(copy_is_wanting(copy));
    assert_true(copy_step(copy, store)); /* and is done with it */
    assert_false(copy_leave(copy, NULL));
    store_close(store);
}

TEST(test_copy__breaks_off_with_the_store)
{
    char lines[1024];
    struct copy *copy = copy_new();
    copy_hold(copy);
    assert_int_equal(copy_take(copy, lines, sizeof lines), 0);
    assert_true(copy_leave(copy, "the \"disk\" is\ngone"));
    ssize_t len = copy_take(copy, lines, sizeof lines - 1);
    assert_true(len > 0);
    lines[len] = '\0';
    assert_string_equal(lines, "{\"kind\": \"error\", \"error\": \"the ?disk? is?gone\"}\n");
    assert_int_equal(copy_take(copy, lines, sizeof lines), COPY_CUT);
    assert_false(copy_is_wanting(copy));
    assert_false(copy_cancel(copy));
}

/* ---- the digest ---- */

TEST(test_digest__is_of_the_records_and_their_slots)
{
    struct record_server server = {
        .txn = 7, .epoch = 3, .next_id = 9, .state = 5, .restart_state = 5};
    uint8_t buffer[RECORD_VALUE_MAX];
    uint8_t bytes[] = {1, 2, 3};
    struct bytes value = {bytes, sizeof bytes};
    struct digest a = {0}, b = {0};
    digest_add(&a, RECORD_LOCK, 3, value);
    digest_add(&a, RECORD_LOCK, 4, value);
    digest_add(&a, RECORD_SERVER, 0, (struct bytes){buffer, record_put_server(buffer, &server)});
    server.txn = 1; /* an import counts its own batches */
    server.epoch = 4;
    digest_add(&b, RECORD_SERVER, 0, (struct bytes){buffer, record_put_server(buffer, &server)});
    digest_add(&b, RECORD_LOCK, 4, value);
    digest_add(&b, RECORD_LOCK, 3, value);
    assert_int_equal(a.count, 3);
    assert_true(a.sum == b.sum); /* in any order */
    struct digest c = b;
    digest_add(&b, RECORD_LOCK, 5, value);
    digest_add(&c, RECORD_SHARE, 5, value);
    assert_true(b.sum != c.sum);
    bytes[0] = 9;
    digest_add(&a, RECORD_LOCK, 5, value);
    assert_true(a.sum != b.sum);
}

/* Backups outlive versions: these numbers never change. */
TEST(test_digest__is_the_same_for_every_version)
{
    static const uint8_t of_format_1[] = {
        1, 0, 0, 1, 0xde, 0xad, 0xbe, 0xef,             /* the checksum is not looked at */
        0, 0, 0, 0, 0,    0,    0,    7,                /* txn */
        0, 0, 0, 0, 0,    0,    0,    3,                /* epoch */
        0, 0, 0, 0, 0,    0,    0,    9,    0, 0, 0, 5, /* next_id, state */
        0, 0, 0, 0,                                     /* flags */
    };
    static const uint8_t lock[] = {5, 0, 0, 2, 1, 2, 3, 4, 5, 6, 7};
    const struct record_server today = {
        .txn = 1, .epoch = 4, .next_id = 9, .state = 5, .restart_state = 5};
    uint8_t buffer[RECORD_VALUE_MAX];
    struct digest before = {0}, after = {0};
    digest_add(&before, RECORD_SERVER, 0, (struct bytes){of_format_1, sizeof of_format_1});
    assert_int_equal(before.count, 1);
    assert_int_equal(before.sum, UINT64_C(0x6bfa4073faf9f422));
    digest_add(&before, RECORD_LOCK, 3, (struct bytes){lock, sizeof lock});
    assert_int_equal(before.count, 2);
    assert_int_equal(before.sum, UINT64_C(0x2a25134eb47a6232));
    /* A restore writes a server record of today. */
    digest_add(&after, RECORD_SERVER, 0, (struct bytes){buffer, record_put_server(buffer, &today)});
    digest_add(&after, RECORD_LOCK, 3, (struct bytes){lock, sizeof lock});
    assert_true(after.count == before.count && after.sum == before.sum);
}

/* ---- one line ---- */

static enum lines_kind get(const char *line, struct lines_read *ret)
{
    return lines_get(bytes_of_text(line), ret);
}

TEST(test_lines__come_back)
{
    char line[LINES_MAX + 1];
    static struct lines_read read;
    uint8_t value[RECORD_VALUE_MAX];
    for (uint32_t i = 0; i < sizeof value; i++)
        value[i] = (uint8_t)(i * 7);
    for (int kind = RECORD_SERVER; kind < RECORD_KIND_END; kind++) {
        struct bytes bytes = {value, (uint32_t)kind * 320};
        uint32_t slot = (uint32_t)kind * 1249999;
        uint32_t len = lines_put_record(line, (enum record_kind)kind, slot, bytes);
        line[len] = '\0';
        assert_int_equal(get(line, &read), LINES_RECORD);
        assert_int_equal(read.record.kind, kind);
        assert_int_equal(read.record.slot, slot);
        assert_true(bytes_equal(read.record.value, bytes));
        for (uint32_t cut = 0; cut < len; cut++) /* no part of a line is one */
            assert_int_equal(lines_get((struct bytes){(const uint8_t *)line, cut}, &read),
                             LINES_OTHER);
    }
    struct digest digest = {12, UINT64_C(0x0123456789abcdef)};
    line[lines_put_end(line, &digest)] = '\0';
    assert_string_equal(line,
                        "{\"kind\": \"end\", \"records\": 12, \"digest\": \"0123456789abcdef\"}\n");
    assert_int_equal(get(line, &read), LINES_END);
    assert_int_equal(read.end.count, 12);
    assert_true(read.end.sum == digest.sum);
    line[lines_put_error(line, "no \"disk\"")] = '\0';
    assert_int_equal(get(line, &read), LINES_ERROR);
    assert_true(bytes_equal(read.error, bytes_of_text("no ?disk?")));
}

TEST(test_lines__refuses_what_it_does_not_write)
{
    static const char *const lines[] = {
        "",
        "\n",
        "{}\n",
        "{\"kind\": \"lick\", \"slot\": 3, \"record\": \"00\"}\n",
        "{\"kind\": \"lock\", \"slot\": , \"record\": \"00\"}\n",
        "{\"kind\": \"lock\", \"slot\": 10000000, \"record\": \"00\"}\n",
        "{\"kind\": \"lock\", \"slot\": 99999999999999999999, \"record\": \"00\"}\n",
        "{\"kind\": \"lock\", \"slot\": 3, \"record\": \"0\"}\n",
        "{\"kind\": \"lock\", \"slot\": 3, \"record\": \"0G\"}\n",
        "{\"kind\": \"lock\", \"slot\": 3, \"record\": \"00\"} \n",
        "{\"kind\": \"end\", \"records\": 1, \"digest\": \"0123456789abcde\"}\n",
        "{\"kind\": \"end\", \"records\": 1, \"digest\": \"0123456789abcdef00\"}\n",
    };
    static struct lines_read read;
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++)
        assert_int_equal(get(lines[i], &read), LINES_OTHER);
}

TEST_FIXTURE(set_up)
{
    place_fixture(state, SLOTS);
}

static int tear_down(void **state)
{
    return place_fixture_done(state);
}

TEST_MAIN(set_up, tear_down, NULL, NULL)
