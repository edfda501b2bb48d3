/*
 * test_log.c -- shows that a log line is one line whatever peers send (R-SEC-8), that JSON lines
 * are JSON, that floods of one kind are counted instead of printed, and that a reader that does not
 * read cannot stop the writer.
 *
 * Lines go into a memory file and are read back. The JSON reader below is written for this test: it
 * accepts one object of strings and numbers, strictly, and nothing else.
 */
#include "daemon/log.h"
#include "unit/test.h"

#include <sys/mman.h>
#include <unistd.h>

/* 2026-11-15T20:10:57.123Z */
#define WALL_NS  UINT64_C(1794773457123456789)
#define SECOND   UINT64_C(1000000000)
#define TEXT_MAX (1 << 20)

static char captured[TEXT_MAX];

struct capture {
    struct log log;
};

static struct capture capture;

static void capture_start(enum log_level level, enum log_format format)
{
    int fd = memfd_create("log", MFD_CLOEXEC);
    assert_true(fd >= 0);
    log_init(&capture.log, level, format, fd);
}

/* Everything logged so far; the capture is empty afterwards. */
static const char *capture_take(void)
{
    ssize_t len = pread(capture.log.fd, captured, sizeof captured - 1, 0);
    assert_true(len >= 0);
    captured[len] = '\0';
    assert_int_equal(ftruncate(capture.log.fd, 0), 0);
    assert_int_equal(lseek(capture.log.fd, 0, SEEK_SET), 0);
    return captured;
}

static void capture_end(void)
{
    assert_int_equal(close(capture.log.fd), 0);
}

static uint32_t count_lines(const char *text)
{
    uint32_t count = 0;
    for (; *text != '\0'; text++)
        count += *text == '\n';
    return count;
}

static void assert_contains(const char *text, const char *part)
{
    if (strstr(text, part) == NULL)
        fail_msg("\"%s\" does not contain \"%s\"", text, part);
}

/* Readers of JSON: each returns what follows, or NULL. */
static const char *json_string(const char *at)
{
    if (*at++ != '"')
        return NULL;
    for (; *at != '"'; at++) {
        if ((unsigned char)*at < 0x20 || (unsigned char)*at >= 0x7f)
            return NULL;
        if (*at != '\\')
            continue;
        at++;
        if (*at == 'u') {
            if (strspn(at + 1, "0123456789abcdef") < 4)
                return NULL;
            at += 4;
        } else if (*at == '\0' || strchr("\"\\/bfnrt", *at) == NULL) {
            return NULL;
        }
    }
    return at + 1;
}

static const char *json_number(const char *at)
{
    size_t len = strspn(at, "0123456789");
    return len == 0 || (len > 1 && at[0] == '0') ? NULL : at + len;
}

static const char *json_object(const char *at)
{
    if (*at != '{')
        return NULL;
    do {
        at = json_string(at + 1);
        if (at == NULL || *at != ':')
            return NULL;
        at++;
        at = *at == '"' ? json_string(at) : json_number(at);
        if (at == NULL)
            return NULL;
    } while (*at == ',');
    return *at == '}' ? at + 1 : NULL;
}

static void assert_json_lines(const char *text)
{
    while (*text != '\0') {
        const char *end = json_object(text);
        if (end == NULL || *end != '\n')
            fail_msg("not one JSON object: %s", text);
        text = end + 1;
    }
}

static struct event event_of(enum event_kind kind, const void *name, uint32_t name_len)
{
    struct event event = {.kind = kind, .name_len = name_len, .value = 7};
    event.from = address_v4((const uint8_t[]){192, 0, 2, 9});
    memcpy(event.name, name, name_len < EVENT_NAME_MAX ? name_len : EVENT_NAME_MAX);
    return event;
}

TEST_FIXTURE(set_up)
{
    capture_start(LOG_LEVEL_DEBUG, LOG_FORMAT_TEXT);
}

TEST_FIXTURE(tear_down)
{
    capture_end();
}

TEST_WITH(test_log__json_reader_of_this_test_refuses_what_is_not_json, NULL, NULL)
{
    assert_non_null(json_object("{\"a\":\"\\u00ff\\\"\",\"b\":10}"));
    static const char *const wrong[] = {"{\"a\":\"x}",
                                        "{\"a\":\"\n\"}",
                                        "{\"a\":\"\\x41\"}",
                                        "{\"a\":\"\\u00g0\"}",
                                        "{\"a\":01}",
                                        "{\"a\":}",
                                        "{\"a\" 1}",
                                        "{\"a\":\"\xff\"}",
                                        "{\"a\":1,}",
                                        "{\"a\":1",
                                        "\"a\"",
                                        "{}"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        assert_null(json_object(wrong[i]));
}

TEST(test_log__text_line_has_time_level_message_and_fields)
{
    struct address address = address_v4((const uint8_t[]){127, 0, 0, 1});
    log_say(&capture.log, LOG_LEVEL_INFO, WALL_NS, LOG_MESSAGE("listening \"now\""),
            LOG_ADDRESS("address", &address), LOG_NUMBER("port", 12049), LOG_TEXT("store", "a b"));
    assert_string_equal(capture_take(), "2026-11-15T20:10:57.123Z info    listening \"now\" "
                                        "address=127.0.0.1 port=12049 store=\"a b\"\n");
    log_say(&capture.log, LOG_LEVEL_WARNING, WALL_NS, LOG_MESSAGE("careful"));
    assert_string_equal(capture_take(), "2026-11-15T20:10:57.123Z warning careful\n");
}

TEST(test_log__levels_are_aligned)
{
    for (enum log_level level = 0; level <= LOG_LEVEL_INFO; level++) {
        log_say(&capture.log, level, WALL_NS, LOG_MESSAGE("message"));
        const char *line = capture_take();
        assert_int_equal(strstr(line, "message") - line, sizeof "2026-11-15T20:10:57.123Z warning");
    }
}

TEST(test_log__a_part_is_shown_of_its_total)
{
    struct event event = {
        .kind = EVENT_CLIENT_LOST, .value = 7, .total = 12, .name = "web1", .name_len = 4};
    log_event(&capture.log, &event, SECOND_NS, WALL_NS);
    assert_non_null(strstr(capture_take(), " name=\"web1\" reclaimed=\"7 of 12\"\n"));
}

TEST_WITH(test_log__json_line_has_the_same, NULL, tear_down)
{
    capture_start(LOG_LEVEL_DEBUG, LOG_FORMAT_JSON);
    struct address address = address_v4((const uint8_t[]){127, 0, 0, 1});
    log_say(&capture.log, LOG_LEVEL_ERROR, WALL_NS, LOG_MESSAGE("no \"room\"\n"),
            LOG_ADDRESS("address", &address), LOG_NUMBER("port", 12049), LOG_TEXT("store", "a\\b"));
    const char *line = capture_take();
    assert_string_equal(line, "{\"time\":\"2026-11-15T20:10:57.123Z\",\"level\":\"error\","
                              "\"message\":\"no \\\"room\\\"\\u000a\",\"address\":\"127.0.0.1\","
                              "\"port\":12049,\"store\":\"a\\\\b\"}\n");
    assert_json_lines(line);
}

TEST_WITH(test_log__level_silences_what_is_less_important, NULL, tear_down)
{
    capture_start(LOG_LEVEL_WARNING, LOG_FORMAT_TEXT);
    log_say(&capture.log, LOG_LEVEL_INFO, WALL_NS, LOG_MESSAGE("quiet"));
    log_say(&capture.log, LOG_LEVEL_DEBUG, WALL_NS, LOG_MESSAGE("quiet"));
    struct event event = event_of(EVENT_NOTICE, "web3", 4); /* info */
    for (int i = 0; i < 100; i++)
        log_event(&capture.log, &event, 0, WALL_NS);
    log_flush(&capture.log, SECOND, WALL_NS);
    assert_string_equal(capture_take(), "");
    log_say(&capture.log, LOG_LEVEL_WARNING, WALL_NS, LOG_MESSAGE("loud"));
    log_say(&capture.log, LOG_LEVEL_ERROR, WALL_NS, LOG_MESSAGE("loud"));
    assert_int_equal(count_lines(capture_take()), 2);
}

/* Every byte value, format directives, quotes, newlines, escape sequences: still one plain line. */
TEST_WITH(test_log__peer_data_cannot_break_a_line, NULL, NULL)
{
    static const char *const names[] = {"%n%s%n%s",
                                        "a\nb 2026-11-15T20:10:57.123Z error forged",
                                        "\"}{\"level\":\"error\"",
                                        "\\",
                                        "\x1b[31mred\x1b[0m\a\r",
                                        "\xc3\xa4\xff\xfe"};
    for (int format = 0; format < LOG_FORMAT_END; format++) {
        capture_start(LOG_LEVEL_DEBUG, (enum log_format)format);
        for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
            struct event event = event_of(EVENT_BAD_NAME, names[i], (uint32_t)strlen(names[i]));
            log_event(&capture.log, &event, 0, WALL_NS);
            const char *line = capture_take();
            assert_int_equal(count_lines(line), 1);
            for (const char *at = line; *at != '\n'; at++)
                assert_in_range((unsigned char)*at, 0x20, 0x7e);
            if (format == LOG_FORMAT_JSON)
                assert_json_lines(line);
        }
        uint8_t all[256];
        for (uint32_t i = 0; i < sizeof all; i++)
            all[i] = (uint8_t)i;
        struct bytes view = {all, sizeof all};
        log_say(&capture.log, LOG_LEVEL_INFO, WALL_NS, LOG_MESSAGE("all"),
                LOG_BYTES("bytes", view));
        const char *line = capture_take();
        assert_int_equal(count_lines(line), 1);
        assert_contains(line, "ABC");
        if (format == LOG_FORMAT_JSON)
            assert_json_lines(line);
        capture_end();
    }
}

TEST(test_log__every_line_names_the_group)
{
    static const enum log_format formats[] = {LOG_FORMAT_TEXT, LOG_FORMAT_JSON};
    static const char *const endings[] = {" clients=3 group=\"web\"\n",
                                          "\"clients\":3,\"group\":\"web\"}\n"};
    for (int i = 0; i < 2; i++) {
        log_set(&capture.log, LOG_LEVEL_INFO, formats[i]);
        capture.log.group = "web";
        log_say(&capture.log, LOG_LEVEL_INFO, WALL_NS, LOG_MESSAGE("ready"),
                LOG_NUMBER("clients", 3));
        assert_contains(capture_take(), endings[i]);
        capture.log.group = NULL;
        log_say(&capture.log, LOG_LEVEL_INFO, WALL_NS, LOG_MESSAGE("ready"));
        assert_null(strstr(capture_take(), "group"));
    }
}

TEST(test_log__text_escapes_are_readable)
{
    struct event event = event_of(EVENT_BAD_NAME, "a\n\"b", 4);
    log_event(&capture.log, &event, 0, WALL_NS);
    assert_contains(capture_take(), " from=192.0.2.9 name=\"a\\x0a\\x22b\"\n");
}

/* A line that cannot hold all fields loses whole fields and stays JSON, at every size. */
TEST_WITH(test_log__long_lines_lose_whole_fields, NULL, tear_down)
{
    static char big[2000];
    capture_start(LOG_LEVEL_DEBUG, LOG_FORMAT_JSON);
    for (uint32_t len = 0; len < sizeof big; len += 13) {
        memset(big, 1, len); /* each byte becomes six */
        struct bytes view = {(const uint8_t *)big, len};
        log_say(&capture.log, LOG_LEVEL_INFO, WALL_NS, LOG_BYTES("message", view),
                LOG_BYTES("one", view), LOG_BYTES("two", view), LOG_BYTES("three", view),
                LOG_NUMBER("last", 1));
        const char *line = capture_take();
        assert_int_equal(count_lines(line), 1);
        assert_in_range(strlen(line), 1, LOG_LINE_MAX);
        assert_json_lines(line);
        assert_contains(line, "\"message\":");
        assert_contains(line, "\"last\":1");
    }
}

TEST(test_log__cut_names_say_how_long_they_were)
{
    char name[1000];
    memset(name, 'x', sizeof name);
    struct event event = event_of(EVENT_BAD_NAME, name, sizeof name);
    log_event(&capture.log, &event, 0, WALL_NS);
    assert_contains(capture_take(), "x\" cut_from_bytes=1000\n");
}

TEST(test_log__every_kind_of_event_has_words)
{
    char seen[EVENT_KIND_END][256] = {0};
    for (uint32_t kind = 0; kind < EVENT_KIND_END; kind++) {
        struct event event = event_of((enum event_kind)kind, "name", 4);
        event.from.family = 0; /* no peer: no address */
        log_event(&capture.log, &event, 0, WALL_NS);
        const char *line = capture_take();
        assert_int_equal(count_lines(line), 1);
        assert_null(strstr(line, "from="));
        (void)snprintf(seen[kind], sizeof seen[kind], "%s", line);
        for (uint32_t other = 0; other < kind; other++)
            assert_string_not_equal(seen[kind], seen[other]);
    }
}

TEST(test_log__floods_are_counted_per_kind)
{
    struct log *log = &capture.log;
    struct event flood = event_of(EVENT_MALFORMED, "", 0), other = event_of(EVENT_LIMIT, "n", 1);
    uint64_t now_ns = 5 * SECOND;
    for (uint32_t i = 0; i < LOG_BURST; i++)
        log_event(log, &flood, now_ns, WALL_NS);
    assert_int_equal(count_lines(capture_take()), LOG_BURST);
    for (uint32_t i = 0; i < 1234; i++)
        log_event(log, &flood, now_ns + i, WALL_NS);
    assert_string_equal(capture_take(), "");
    log_event(log, &other, now_ns, WALL_NS); /* one flood does not silence other kinds */
    assert_int_equal(count_lines(capture_take()), 1);

    /* Nothing more arrives: the tick says it, when the window is over and not before, once. */
    log_tick(log, now_ns + LOG_WINDOW_NS - 1, WALL_NS);
    assert_string_equal(capture_take(), "");
    log_tick(log, now_ns + LOG_WINDOW_NS, WALL_NS);
    const char *line = capture_take();
    assert_int_equal(count_lines(line), 1);
    assert_contains(line, "not an RPC call; and 1,234 more like this in the last 10 s");
    log_tick(log, now_ns + 2 * LOG_WINDOW_NS, WALL_NS);
    assert_string_equal(capture_take(), "");

    /* The next window begins with lines again. */
    log_event(log, &flood, now_ns + 3 * LOG_WINDOW_NS, WALL_NS);
    assert_int_equal(count_lines(capture_take()), 1);
}

TEST_WITH(test_log__a_late_event_ends_the_window_too, NULL, tear_down)
{
    capture_start(LOG_LEVEL_DEBUG, LOG_FORMAT_JSON);
    struct event flood = event_of(EVENT_BAD_ARGUMENTS, "", 0);
    for (uint32_t i = 0; i < LOG_BURST + 3; i++)
        log_event(&capture.log, &flood, 0, WALL_NS);
    (void)capture_take();
    log_event(&capture.log, &flood, LOG_WINDOW_NS + 2 * SECOND, WALL_NS);
    const char *lines = capture_take();
    assert_int_equal(count_lines(lines), 2);
    assert_contains(lines, "and 3 more like this in the last 12 s\",\"held_back\":3}");
    assert_json_lines(lines);
}

TEST(test_log__flush_says_what_is_held_back)
{
    struct event flood = event_of(EVENT_UNKNOWN_CALL, "", 0);
    for (uint32_t i = 0; i < LOG_BURST + 1; i++)
        log_event(&capture.log, &flood, 0, WALL_NS);
    (void)capture_take();
    log_flush(&capture.log, SECOND, WALL_NS);
    assert_contains(capture_take(), "and 1 more like this in the last 1 s");
}

TEST(test_log__a_full_ring_is_reported)
{
    static struct event_ring ring;
    for (uint32_t i = 0; i < EVENT_RING_MAX + 5; i++)
        event_add(&ring, EVENT_NOTICE, NULL, bytes_of_text("n"), i);
    log_drain(&capture.log, &ring, 0, WALL_NS);
    assert_int_equal(ring.count, 0);
    assert_true(ring.lost == 0);
    assert_int_equal(count_lines(capture_take()), LOG_BURST);
    log_tick(&capture.log, LOG_WINDOW_NS, WALL_NS);
    const char *lines = capture_take();
    assert_int_equal(count_lines(lines), 2);
    assert_contains(lines, "too many events at once to log; and 5 more");
    assert_contains(lines, "a client reported its reboot; and 246 more");
}

/* A pipe that nobody reads fills up; logging goes on, and says later what was lost. */
TEST_WITH(test_log__a_reader_that_does_not_read_cannot_stop_the_writer, NULL, NULL)
{
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    struct log log;
    log_init(&log, LOG_LEVEL_INFO, LOG_FORMAT_TEXT, ends[1]);
    while (log.lines_lost < 100) /* would never end if a write could wait */
        log_say(&log, LOG_LEVEL_INFO, WALL_NS, LOG_MESSAGE("line"), LOG_TEXT("key", "value"));
    ssize_t len = read(ends[0], captured, sizeof captured - 1);
    assert_true(len > 0);
    captured[len] = '\0';
    assert_true(captured[len - 1] == '\n'); /* no line was cut */
    uint64_t lost = log.lines_lost;
    log_say(&log, LOG_LEVEL_INFO, WALL_NS, LOG_MESSAGE("again"));
    assert_true(log.lines_lost == 0);
    len = read(ends[0], captured, sizeof captured - 1);
    assert_true(len > 0);
    captured[len] = '\0';
    char expected[64];
    (void)snprintf(expected, sizeof expected, " lines=%llu\n", (unsigned long long)lost);
    assert_int_equal(count_lines(captured), 2);
    assert_contains(captured, "lost log lines");
    assert_contains(captured, expected);
    assert_contains(captured, " again\n");
    assert_int_equal(close(ends[0]), 0);
    assert_int_equal(close(ends[1]), 0);
}

TEST_MAIN(set_up, tear_down, NULL, NULL)
