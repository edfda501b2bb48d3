/*
 * test_writer.c -- JSON is written as JSON: whatever is in it, a reader of another making gets back
 * what was put in. That reader is jansson, which also says what is UTF-8.
 */
#include "admin/writer.h"
#include "unit/test.h"

#include <jansson.h>

static void assert_written(struct writer *writer, const char *expected)
{
    size_t len;
    char *text = writer_take(writer, &len);
    assert_non_null(text);
    assert_string_equal(text, expected);
    assert_int_equal(len, strlen(expected));
    free(text);
}

/* What a reader gets of the only value of an object. */
static json_t *read_back(struct writer *writer)
{
    size_t len;
    json_error_t error;
    char *text = writer_take(writer, &len);
    assert_non_null(text);
    json_t *object = json_loadb(text, len, 0, &error);
    if (object == NULL)
        fail_msg("%s: %s", error.text, text);
    free(text);
    json_t *value = json_incref(json_object_get(object, "v"));
    json_decref(object);
    return value;
}

static json_t *read_bytes(struct bytes bytes)
{
    struct writer writer = {0};
    writer_object(&writer, NULL);
    writer_bytes(&writer, "v", bytes);
    writer_end_object(&writer);
    return read_back(&writer);
}

TEST(test_writer__puts_commas_where_they_belong)
{
    struct writer writer = {0};
    writer_object(&writer, NULL);
    writer_list(&writer, "none");
    writer_end_list(&writer);
    writer_list(&writer, "rows");
    for (uint64_t i = 1; i <= 2; i++) {
        writer_line(&writer);
        writer_object(&writer, NULL);
        writer_number(&writer, "a", i);
        writer_object(&writer, "b");
        writer_end_object(&writer);
        writer_bool(&writer, "c", i == 1);
        writer_end_object(&writer);
    }
    writer_end_list(&writer);
    writer_list(&writer, "words");
    writer_text(&writer, NULL, "x");
    writer_text(&writer, NULL, NULL);
    writer_end_list(&writer);
    writer_end_object(&writer);
    writer_plain(&writer, "\n");
    assert_written(&writer, "{\"none\":[],\"rows\":[\n{\"a\":1,\"b\":{},\"c\":true},"
                            "\n{\"a\":2,\"b\":{},\"c\":false}],\"words\":[\"x\",null]}\n");
}

TEST(test_writer__writes_what_the_api_promises)
{
    struct writer writer = {0};
    struct address address = {.family = 4, .bytes = {10, 0, 0, 5}};
    writer_object(&writer, NULL);
    writer_id(&writer, "id", 17);
    writer_time(&writer, "time", UINT64_C(1763251200007000000));
    writer_time(&writer, "never", 0);
    writer_time(&writer, "last", UINT64_MAX);
    writer_seconds(&writer, "s", UINT64_C(12000000345));
    writer_hex(&writer, "hex", (struct bytes){(const uint8_t *)"\x00\xaf", 2});
    writer_address(&writer, "at", &address);
    address.family = 0;
    writer_address(&writer, "nowhere", &address);
    writer_end_object(&writer);
    assert_written(&writer, "{\"id\":\"c17\",\"time\":\"2025-11-16T00:00:00.007Z\",\"never\":null,"
                            "\"last\":\"2554-07-21T23:34:33.709Z\",\"s\":12.000000345,"
                            "\"hex\":\"00af\",\"at\":\"10.0.0.5\",\"nowhere\":null}");
}

TEST(test_writer__numbers_are_read_by_others)
{
    static const uint64_t numbers[] = {0, 9, 10, INT64_MAX, (uint64_t)INT64_MAX + 1, UINT64_MAX};
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        struct writer writer = {0};
        writer_object(&writer, NULL);
        writer_number(&writer, "v", numbers[i]);
        writer_end_object(&writer);
        json_t *value = read_back(&writer);
        assert_true(json_is_number(value));
        if (numbers[i] <= INT64_MAX)
            assert_true((uint64_t)json_integer_value(value) == numbers[i]);
        else
            assert_true(json_real_value(value) == (double)numbers[i]);
        json_decref(value);
    }
}

/* The text that bytes stand for: themselves, or each the character of its number. */
static void assert_read(const json_t *value, struct bytes bytes, bool is_utf8)
{
    char latin[16];
    size_t len = 0;
    for (uint32_t i = 0; i < bytes.len; i++) {
        uint8_t c = bytes.at[i];
        if (c >= 0x80 && !is_utf8) {
            latin[len++] = (char)(0xc0 | c >> 6);
            c = (uint8_t)(0x80 | (c & 0x3f));
        }
        latin[len++] = (char)c;
    }
    assert_int_equal(json_string_length(value), len);
    assert_memory_equal(json_string_value(value), latin, len);
}

static void check_bytes(struct bytes bytes)
{
    json_t *judge = json_stringn((const char *)bytes.at, bytes.len);
    json_t *value = read_bytes(bytes);
    assert_read(value, bytes, judge != NULL);
    json_decref(judge);
    json_decref(value);
}

TEST(test_writer__bytes_of_peers_stay_text)
{
    uint8_t bytes[4];
    check_bytes((struct bytes){0});
    for (uint32_t first = 1; first < 256; first++) {
        bytes[0] = (uint8_t)first;
        check_bytes((struct bytes){bytes, 1});
        for (uint32_t second = 1; second < 256; second++) {
            bytes[1] = (uint8_t)second;
            bytes[2] = 0xbf;
            bytes[3] = 0x80;
            check_bytes((struct bytes){bytes, 2});
            check_bytes((struct bytes){bytes, 3});
            check_bytes((struct bytes){bytes, 4});
        }
    }
    bytes[0] = 0;
    struct writer writer = {0};
    writer_bytes(&writer, NULL, (struct bytes){bytes, 1});
    assert_written(&writer, "\"\\u0000\"");
}

static bool shows(const char *bytes, const char *text)
{
    return writer_shows(bytes_of_text(bytes), bytes_of_text(text));
}

/* A name is found by what is shown of it: UTF-8 as it is, anything else byte by byte as Latin-1. */
TEST(test_writer__knows_what_it_shows)
{
    assert_true(shows("web1", "WEB1"));
    assert_false(shows("web1", "web"));
    assert_false(shows("web", "web1"));
    assert_true(shows("b\xc3\xa4r", "b\xc3\xa4r"));
    assert_false(shows("b\xc3\xa4r", "b\xc3\x83\xc2\xa4r")); /* it is shown as UTF-8 */
    assert_true(shows("b\xe4r", "B\xc3\xa4r"));
    assert_true(shows("\xc2", "\xc3\x82"));
    assert_false(shows("b\xe4r", "b\xe4r"));
    assert_false(shows("b\xe4r", "b\xc3\xa4"));
    assert_false(shows("b\xe4", "b\xc3\xa4r"));
    assert_false(shows("\xe4", "\xc4\x84")); /* U+0104 is no byte */
    assert_false(shows("\xe4", ""));
}

TEST(test_writer__grows_with_its_text)
{
    struct writer writer = {0};
    writer_list(&writer, NULL);
    for (uint32_t i = 0; i < 100000; i++)
        writer_number(&writer, NULL, i);
    writer_end_list(&writer);
    size_t len;
    char *text = writer_take(&writer, &len);
    assert_non_null(text);
    json_t *list = json_loadb(text, len, 0, NULL);
    assert_int_equal(json_array_size(list), 100000);
    assert_int_equal(json_integer_value(json_array_get(list, 99999)), 99999);
    json_decref(list);
    free(text);
}

/* What failed once stays failed, also for what would fit again. */
TEST(test_writer__a_gap_is_never_closed)
{
    struct writer writer = {0};
    size_t len = 7;
    writer_list(&writer, NULL);
    writer_number(&writer, NULL, 1);
    writer.has_failed = true; /* as when there was no memory for a long value here */
    writer_number(&writer, NULL, 3);
    writer_line(&writer);
    writer_plain(&writer, " ");
    writer_end_list(&writer);
    assert_int_equal(writer.len, strlen("[1"));
    assert_null(writer_take(&writer, &len));
    assert_int_equal(len, 7);
    writer_list(&writer, NULL); /* whoever takes it finds an empty one */
    writer_end_list(&writer);
    assert_written(&writer, "[]");
}

TEST_MAIN(NULL, NULL, NULL, NULL)
