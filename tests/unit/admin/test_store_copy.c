/*
 * test_store_copy.c -- shows how long a reader of a copy may take.
 *
 * store_copy.c is linked with an exchange, a copy and a clock made here: the test is the HTTP
 * library that asks for the next bytes.
 */
#include "admin/store_copy.h"

#include "admin/http.h"
#include "base/units.h"
#include "unit/test.h"

#include <uv.h>

enum { PIECE = 64 * 1024, PACE = 1024 * 1024 };

static struct {
    uint64_t now_ns;
    ssize_t next; /* what copy_read returns */
    MHD_ContentReaderCallback read;
    MHD_ContentReaderFreeCallback free;
    void *stream;
    uint32_t sleeps, ends;
    bool is_too_slow;
} fake;

uint64_t uv_hrtime(void)
{
    return fake.now_ns;
}

ssize_t http_sleep(struct exchange *exchange)
{
    (void)exchange;
    fake.sleeps++;
    return 0;
}

enum MHD_Result MHD_set_connection_option(struct MHD_Connection *connection,
                                          enum MHD_CONNECTION_OPTION option, ...)
{
    (void)connection;
    assert_int_equal(option, MHD_CONNECTION_OPTION_TIMEOUT);
    return MHD_YES;
}

void exchange_constant(struct exchange *exchange, const char *type, const void *body, size_t len)
{
    (void)exchange, (void)type, (void)body, (void)len;
    fail();
}

void exchange_error(struct exchange *exchange, unsigned status, const char *error,
                    struct bytes shown, const char *hint)
{
    (void)exchange, (void)status, (void)error, (void)shown, (void)hint;
    fail();
}

void exchange_header(struct exchange *exchange, const char *name, const char *value)
{
    (void)exchange;
    assert_string_equal(name, STORE_COPY_HEADER);
    assert_string_equal(value, "7:9");
}

void exchange_stream(struct exchange *exchange, const char *type, size_t block,
                     MHD_ContentReaderCallback reader, void *context,
                     MHD_ContentReaderFreeCallback free_context)
{
    (void)exchange, (void)type;
    assert_int_equal(block, PIECE);
    fake.read = reader;
    fake.stream = context;
    fake.free = free_context;
}

static void begin_copy(void *context, const struct admin_caller *who, struct admin_copy *ret)
{
    (void)context, (void)who;
    *ret = (struct admin_copy){.copy = &fake, .store = "7:9"};
}

static ssize_t read_copy(void *copy, char *buffer, size_t max)
{
    (void)copy;
    if (fake.next > 0) {
        assert_true((size_t)fake.next <= max);
        memset(buffer, 'x', (size_t)fake.next);
    }
    return fake.next;
}

static void end_copy(void *copy, bool is_too_slow)
{
    (void)copy;
    fake.ends++;
    fake.is_too_slow = is_too_slow;
}

static void begin(void)
{
    static const struct admin admin = {
        .copy_begin = begin_copy, .copy_read = read_copy, .copy_end = end_copy};
    struct exchange exchange = {.admin = &admin};
    memset(&fake, 0, sizeof fake);
    fake.now_ns = 1000 * SECOND_NS;
    store_copy_answer(&exchange);
    assert_non_null(fake.stream);
}

/* The reader comes for more after so many seconds, and the store has `next` for it. */
static ssize_t come_after(uint64_t seconds, ssize_t next)
{
    static char buffer[PIECE];
    fake.now_ns += seconds * SECOND_NS;
    fake.next = next;
    return fake.read(fake.stream, 0, buffer, sizeof buffer);
}

static void expect_end(bool is_too_slow)
{
    assert_int_equal(fake.ends, 0);
    fake.free(fake.stream);
    assert_int_equal(fake.ends, 1);
    assert_int_equal(fake.is_too_slow, is_too_slow);
}

TEST(test_store_copy__passes_on_what_there_is)
{
    begin();
    assert_int_equal(come_after(0, 100), 100);
    assert_int_equal(come_after(0, 0), 0);
    assert_int_equal(fake.sleeps, 1);
    assert_int_equal(come_after(0, PIECE), PIECE);
    assert_int_equal(come_after(0, ADMIN_COPY_WHOLE), MHD_CONTENT_READER_END_OF_STREAM);
    expect_end(false);
    begin();
    assert_int_equal(come_after(0, ADMIN_COPY_CUT), MHD_CONTENT_READER_END_WITH_ERROR);
    expect_end(false);
}

TEST(test_store_copy__serves_1_mib_in_a_minute)
{
    begin();
    for (uint32_t i = 0; i < 100 * PACE / PIECE; i++)
        assert_int_equal(come_after(i % 16 < 12 ? 4 : 3, PIECE), PIECE); /* a MiB in 60 s */
    expect_end(false);
}

/* Without one more byte: they could be in the middle of a line. */
TEST(test_store_copy__cuts_off_a_slower_reader)
{
    begin();
    for (uint32_t i = 0; i < 6; i++)
        assert_int_equal(come_after(10, PIECE), PIECE);
    assert_int_equal(come_after(1, PIECE), MHD_CONTENT_READER_END_WITH_ERROR);
    expect_end(true);
}

TEST(test_store_copy__does_not_blame_the_reader_for_the_store)
{
    begin();
    for (uint32_t i = 0; i < 20; i++) {
        assert_int_equal(come_after(10, 100), 100);
        assert_int_equal(come_after(300, 0), 0);
    }
    expect_end(false);
}

TEST_MAIN(NULL, NULL, NULL, NULL)
