/*
 * test_record_mark.c -- records come out of a byte stream the same whatever way the bytes arrive:
 * at once, one by one, or cut at any place; whole ones without a copy; too long ones are refused at
 * their mark, before anything is lent or stored.
 */
#include "codec/record_mark.h"
#include "unit/test.h"

enum { RECORD_MAX = 16 };

static uint8_t lent[RECORD_MAX];

static struct record_reader fresh(void)
{
    struct record_reader reader;
    record_reader_init(&reader, RECORD_MAX);
    return reader;
}

static struct bytes view(const char *bytes, size_t len)
{
    return (struct bytes){(const uint8_t *)bytes, (uint32_t)len};
}

/* Three records: "abcde" whole, "fghij" in three fragments of which one is empty, and "". */
static const char stream_bytes[] = "\x80\0\0\5"
                                   "abcde"
                                   "\0\0\0\2"
                                   "fg"
                                   "\0\0\0\0"
                                   "\x80\0\0\3"
                                   "hij"
                                   "\x80\0\0\0";

static const char *const records[] = {"abcde", "fghij", ""};

/* Feeds one part of a stream; counts the records and compares them. */
static void feed(struct record_reader *reader, struct bytes part, uint32_t *count)
{
    for (;;) {
        struct bytes record = {0};
        switch (record_reader_next(reader, &part, &record)) {
        case RECORD_READ_MORE:
            assert_int_equal(part.len, 0);
            return;
        case RECORD_READ_WHOLE:
            assert_true(*count < 3);
            assert_true(bytes_equal(record, bytes_of_text(records[*count])));
            ++*count;
            break;
        case RECORD_READ_NEED_BUFFER:
            assert_true(part.len > 0);
            assert_true(reader->buffer == NULL || reader->buffer_len < record_reader_need(reader));
            reader->buffer = lent;
            reader->buffer_len = record_reader_need(reader);
            break;
        case RECORD_READ_TOO_LONG:
            fail_msg("a legal stream was refused");
        }
    }
}

TEST(test_record_mark__any_two_cuts_give_the_same_records)
{
    const uint32_t len = sizeof stream_bytes - 1;
    for (uint32_t first = 0; first <= len; first++) {
        for (uint32_t second = first; second <= len; second++) {
            struct record_reader reader = fresh();
            uint32_t count = 0;
            feed(&reader, view(stream_bytes, first), &count);
            feed(&reader, view(stream_bytes + first, second - first), &count);
            feed(&reader, view(stream_bytes + second, len - second), &count);
            assert_int_equal(count, 3);
            assert_true(record_reader_is_empty(&reader));
        }
    }
}

TEST(test_record_mark__byte_by_byte)
{
    struct record_reader reader = fresh();
    uint32_t count = 0;
    for (uint32_t i = 0; i < sizeof stream_bytes - 1; i++) {
        uint8_t *byte = malloc(1); /* gone after the call: nothing may point to it */
        assert_non_null(byte);
        *byte = (uint8_t)stream_bytes[i];
        feed(&reader, (struct bytes){byte, 1}, &count);
        free(byte);
    }
    assert_int_equal(count, 3);
}

TEST(test_record_mark__a_whole_record_is_not_copied)
{
    struct record_reader reader = fresh();
    const char stream[] = "\x80\0\0\3abc\x80\0\0\2de";
    struct bytes input = view(stream, sizeof stream - 1), record;
    assert_int_equal(record_reader_next(&reader, &input, &record), RECORD_READ_WHOLE);
    assert_ptr_equal(record.at, stream + 4);
    assert_int_equal(record_reader_next(&reader, &input, &record), RECORD_READ_WHOLE);
    assert_ptr_equal(record.at, stream + 11);
    assert_int_equal(record_reader_next(&reader, &input, &record), RECORD_READ_MORE);
    assert_null(reader.buffer);

    /* Also when its mark came earlier, in two parts. */
    input = view(stream, 1);
    assert_int_equal(record_reader_next(&reader, &input, &record), RECORD_READ_MORE);
    input = view(stream + 1, 3);
    assert_int_equal(record_reader_next(&reader, &input, &record), RECORD_READ_MORE);
    assert_false(record_reader_is_empty(&reader));
    input = view(stream + 4, 3);
    assert_int_equal(record_reader_next(&reader, &input, &record), RECORD_READ_WHOLE);
    assert_ptr_equal(record.at, stream + 4);
    assert_true(record_reader_is_empty(&reader));
}

TEST(test_record_mark__a_buffer_is_lent_only_for_bytes)
{
    struct record_reader reader = fresh();
    struct bytes input = view("\x80\0\0\5", 4), record;
    assert_int_equal(record_reader_next(&reader, &input, &record), RECORD_READ_MORE);
    input = view("a", 1);
    assert_int_equal(record_reader_next(&reader, &input, &record), RECORD_READ_NEED_BUFFER);
    assert_int_equal(input.len, 1); /* nothing was taken */
    assert_int_equal(record_reader_next(&reader, &input, &record), RECORD_READ_NEED_BUFFER);
    reader.buffer = lent;
    reader.buffer_len = record_reader_need(&reader);
    assert_int_equal(reader.buffer_len, 5);
    assert_int_equal(record_reader_next(&reader, &input, &record), RECORD_READ_MORE);
    assert_false(record_reader_is_empty(&reader));
    input = view("bcde", 4);
    assert_int_equal(record_reader_next(&reader, &input, &record), RECORD_READ_WHOLE);
    assert_true(bytes_equal(record, bytes_of_text("abcde")));
    assert_ptr_equal(record.at, lent);
    assert_true(record_reader_is_empty(&reader));
    /* The buffer may be taken back between records. */
    reader.buffer = NULL;
    input = view("\x80\0\0\1z", 5);
    assert_int_equal(record_reader_next(&reader, &input, &record), RECORD_READ_WHOLE);
    assert_true(bytes_equal(record, bytes_of_text("z")));
}

TEST(test_record_mark__a_buffer_is_as_long_as_its_record)
{
    struct record_reader reader = fresh();
    struct bytes input = view("\x80\0\0\3a", 5), record;
    assert_int_equal(record_reader_next(&reader, &input, &record), RECORD_READ_NEED_BUFFER);
    assert_int_equal(record_reader_need(&reader), 3);
    reader.buffer = lent;
    reader.buffer_len = 3;
    assert_int_equal(record_reader_next(&reader, &input, &record), RECORD_READ_MORE);
    input = view("bc", 2);
    assert_int_equal(record_reader_next(&reader, &input, &record), RECORD_READ_WHOLE);
    /* The next one is longer, and one in fragments may be as long as any. */
    input = view("\x80\0\0\4d", 5);
    assert_int_equal(record_reader_next(&reader, &input, &record), RECORD_READ_NEED_BUFFER);
    assert_int_equal(record_reader_need(&reader), 4);
    reader.buffer_len = 4;
    assert_int_equal(record_reader_next(&reader, &input, &record), RECORD_READ_MORE);
    input = view("efg", 3);
    assert_int_equal(record_reader_next(&reader, &input, &record), RECORD_READ_WHOLE);
    assert_true(bytes_equal(record, bytes_of_text("defg")));
    input = view("\0\0\0\1h", 5);
    assert_int_equal(record_reader_next(&reader, &input, &record), RECORD_READ_NEED_BUFFER);
    assert_int_equal(record_reader_need(&reader), RECORD_MAX);
}

TEST(test_record_mark__the_longest_record_is_taken)
{
    struct record_reader reader = fresh();
    struct bytes input = view("\x80\0\0\x10"
                              "0123456789abcdef",
                              20),
                 record;
    assert_int_equal(record_reader_next(&reader, &input, &record), RECORD_READ_WHOLE);
    assert_int_equal(record.len, RECORD_MAX);
    /* In fragments that fill the buffer to its last byte. */
    reader.buffer = lent;
    reader.buffer_len = RECORD_MAX;
    input = view("\0\0\0\x0f"
                 "0123456789abcde"
                 "\x80\0\0\1"
                 "f",
                 24);
    assert_int_equal(record_reader_next(&reader, &input, &record), RECORD_READ_WHOLE);
    assert_true(bytes_equal(record, bytes_of_text("0123456789abcdef")));
}

TEST(test_record_mark__too_long_is_refused_at_the_mark)
{
    const struct {
        const char *stream;
        uint32_t len;
    } rows[] = {
        {"\x80\0\0\x11", 4},         /* one more than allowed */
        {"\0\0\0\x11", 4},           /* not even the last fragment */
        {"\xc0\0\0\0", 4},           /* 1 GiB */
        {"\xff\xff\xff\xff", 4},     /* the most that a mark can say */
        {"\x7f\xff\xff\xff", 4},     /* the same, not last */
        {"GET / HTTP/1.1\r\n", 16},  /* another protocol */
        {"\0\0\0\1a\x80\0\0\x10", 9} /* one byte gathered, and the rest is one too many */
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct record_reader reader = fresh();
        struct bytes input = view(rows[i].stream, rows[i].len), record;
        enum record_read result = record_reader_next(&reader, &input, &record);
        if (result == RECORD_READ_NEED_BUFFER) {
            assert_int_equal(i, 6);
            reader.buffer = lent;
            reader.buffer_len = RECORD_MAX;
            result = record_reader_next(&reader, &input, &record);
        }
        assert_int_equal(result, RECORD_READ_TOO_LONG);
        /* There is no way back into the stream. */
        input = view("\x80\0\0\1z", 5);
        assert_int_equal(record_reader_next(&reader, &input, &record), RECORD_READ_TOO_LONG);
        assert_int_equal(input.len, 5);
    }
}

TEST(test_record_mark__empty_fragments_add_nothing)
{
    struct record_reader reader = fresh();
    static uint8_t zeros[4000];
    struct bytes input = {zeros, sizeof zeros}, record;
    assert_int_equal(record_reader_next(&reader, &input, &record), RECORD_READ_MORE);
    assert_null(reader.buffer);
    assert_true(record_reader_is_empty(&reader));
    input = view("\x80\0\0\2hi", 6);
    assert_int_equal(record_reader_next(&reader, &input, &record), RECORD_READ_WHOLE);
    assert_true(bytes_equal(record, bytes_of_text("hi")));
}

/* The same stream, but what is missing of a gathered record is put into its place. */
TEST(test_record_mark__bytes_in_their_place_are_the_same_records)
{
    const uint32_t len = sizeof stream_bytes - 1;
    uint32_t placed = 0;
    for (uint32_t cut = 1; cut <= len; cut++)
        for (uint32_t step = 1; step <= 4; step++) {
            struct record_reader reader = fresh();
            uint32_t count = 0, at = cut, room = 0;
            feed(&reader, view(stream_bytes, cut), &count);
            while (at < len) {
                uint8_t *place = record_reader_place(&reader, &room);
                uint32_t part = len - at < step ? len - at : step;
                if (place != NULL) {
                    part = part < room ? part : room;
                    memcpy(place, stream_bytes + at, part);
                    record_reader_placed(&reader, part);
                    feed(&reader, (struct bytes){0}, &count);
                    placed++;
                } else {
                    feed(&reader, view(stream_bytes + at, part), &count);
                }
                at += part;
            }
            assert_int_equal(count, 3);
            assert_true(record_reader_is_empty(&reader));
            assert_null(record_reader_place(&reader, &room));
        }
    assert_true(placed > 0);
}

/* How long a record will be is known with the mark of its last fragment. */
TEST(test_record_mark__what_is_there_and_what_is_missing)
{
    struct record_reader reader = fresh();
    struct bytes start;
    uint32_t left, count = 0;
    assert_false(record_reader_start(&reader, &start, &left));
    feed(&reader, view("\0\0\0\3ab", 6), &count);
    assert_false(record_reader_start(&reader, &start, &left));
    feed(&reader, view("c\x80\0\0", 4), &count);
    assert_false(record_reader_start(&reader, &start, &left));
    feed(&reader, view("\5de", 3), &count);
    assert_true(record_reader_start(&reader, &start, &left));
    assert_true(bytes_equal(start, bytes_of_text("abcde")));
    assert_int_equal(left, 3);
    struct bytes rest = view("fgh", 3), record;
    assert_int_equal(record_reader_next(&reader, &rest, &record), RECORD_READ_WHOLE);
    assert_true(bytes_equal(record, bytes_of_text("abcdefgh")));
    assert_false(record_reader_start(&reader, &start, &left));
}

TEST_MAIN(NULL, NULL, NULL, NULL)
