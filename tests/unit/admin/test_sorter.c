/*
 * test_sorter.c -- pages of a sorted list, read one after the other, are the list: every row once,
 * in order, whatever the size of a page. Texts are in the order in which people read them.
 */
#include "admin/sorter.h"

#include "base/prng.h"
#include "unit/test.h"

#include <stdlib.h>

enum { ROWS = 500, PAGE_MAX = 64 };

static struct sorter_key key_of(uint64_t number, const char *text, uint64_t id)
{
    struct sorter_key key = {.number = number, .id = id};
    sorter_set_text(&key, bytes_of_text(text));
    return key;
}

/* -1, 0 or 1 */
static int order_of(const struct sorter *sorter, struct sorter_key a, struct sorter_key b)
{
    int result = sorter_compare(sorter, &a, &b), other = sorter_compare(sorter, &b, &a);
    assert_true((result < 0) == (other > 0));
    assert_true((result == 0) == (other == 0));
    return result < 0 ? -1 : result > 0;
}

static int order_of_texts(const char *a, const char *b)
{
    struct sorter up = {.is_text = true}, down = {.is_text = true, .is_down = true};
    int result = order_of(&up, key_of(0, a, 1), key_of(0, b, 1));
    assert_int_equal(order_of(&down, key_of(0, a, 1), key_of(0, b, 1)), -result);
    return result;
}

TEST(test_sorter__texts_are_in_the_order_of_people)
{
    static const char *const sorted[] = {"",
                                         "-",
                                         "7",
                                         "10.0.0.9",
                                         "10.0.0.10",
                                         "a",
                                         "a1",
                                         "A2",
                                         "a10",
                                         "a10b",
                                         "a10c",
                                         "a100",
                                         "ab",
                                         "web2",
                                         "Web2.example",
                                         "web10",
                                         "web99999999999999999999999998",
                                         "web99999999999999999999999999",
                                         "\xff"};
    for (size_t i = 0; i < sizeof sorted / sizeof sorted[0]; i++)
        for (size_t j = 0; j < sizeof sorted / sizeof sorted[0]; j++)
            assert_int_equal(order_of_texts(sorted[i], sorted[j]), i < j ? -1 : i > j);
    assert_int_equal(order_of_texts("WEB007", "web7"), 0);
    assert_int_equal(order_of_texts("a0", "a00"), 0);
}

TEST(test_sorter__number_then_text_then_id)
{
    struct sorter up = {0}, down = {.is_down = true};
    assert_int_equal(order_of(&up, key_of(1, "b", 9), key_of(2, "a", 1)), -1);
    assert_int_equal(order_of(&down, key_of(1, "b", 9), key_of(2, "a", 1)), 1);
    assert_int_equal(order_of(&up, key_of(1, "a", 9), key_of(1, "b", 1)), -1);
    assert_int_equal(order_of(&down, key_of(1, "a", 9), key_of(1, "b", 1)), -1);
    assert_int_equal(order_of(&down, key_of(1, "a", 1), key_of(1, "a", 2)), -1);
    assert_int_equal(order_of(&down, key_of(1, "a", 2), key_of(1, "a", 2)), 0);
}

TEST(test_sorter__a_long_text_is_cut)
{
    char text[2 * SORTER_TEXT_MAX + 1];
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    struct sorter_key key = key_of(0, text, 1), read;
    assert_int_equal(key.len, SORTER_TEXT_MAX);
    char cursor[SORTER_CURSOR_MAX];
    key.number = key.id = UINT64_MAX;
    sorter_put_cursor(&key, cursor);
    assert_int_equal(strlen(cursor), SORTER_CURSOR_MAX - 1);
    assert_true(sorter_parse_cursor(cursor, &read));
    assert_int_equal(order_of(&(struct sorter){0}, key, read), 0);
}

TEST(test_sorter__cursors)
{
    static const char *const bad[] = {"",
                                      "7",
                                      "7-",
                                      "7-8",
                                      "-7-8",
                                      "7-8-6",
                                      "7-8-",
                                      "7--",
                                      "a-8-",
                                      "7 -8",
                                      "7-8-g",
                                      "7-8-61-",
                                      "99999999999999999999-8-",
                                      "7-8-6161 "};
    struct sorter_key key, read = key_of(5, "same", 6);
    char cursor[SORTER_CURSOR_MAX];
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        if (strcmp(bad[i], "7-8-") != 0) {
            assert_false(sorter_parse_cursor(bad[i], &read));
            assert_int_equal(read.number, 5);
        }
    assert_true(sorter_parse_cursor("7-8-", &read)); /* an empty text */
    assert_int_equal(read.len, 0);
    key = key_of(7, "a-b", 8);
    sorter_put_cursor(&key, cursor);
    assert_string_equal(cursor, "7-8-612d62");
}

static const struct sorter *the_sorter;

static int compare(const void *a, const void *b)
{
    return sorter_compare(the_sorter, a, b);
}

/* Reads all pages of so many rows and compares them with the whole list, sorted at once. */
static void read_pages(const struct sorter_key *rows, const struct sorter_key *sorted,
                       struct sorter kind, uint32_t page)
{
    struct sorter_key kept[PAGE_MAX];
    uint32_t seen = 0;
    do {
        struct sorter sorter = kind;
        char cursor[SORTER_CURSOR_MAX];
        sorter.kept = kept;
        sorter.max = page;
        if (seen > 0) {
            sorter_put_cursor(&sorted[seen - 1], cursor);
            sorter.has_after = sorter_parse_cursor(cursor, &sorter.after);
            assert_true(sorter.has_after);
        }
        for (uint32_t i = 0; i < ROWS; i++)
            sorter_add(&sorter, &rows[i]);
        sorter_finish(&sorter);
        assert_int_equal(sorter.total, ROWS);
        assert_int_equal(sorter.before, seen);
        assert_int_equal(sorter.count, ROWS - seen < page ? ROWS - seen : page);
        for (uint32_t i = 0; i < sorter.count; i++)
            assert_int_equal(kept[i].id, sorted[seen + i].id);
        seen += sorter.count;
    } while (seen < ROWS);
}

TEST(test_sorter__pages_are_the_list)
{
    static const uint32_t pages[] = {1, 7, 50, PAGE_MAX};
    static struct sorter_key rows[ROWS], sorted[ROWS];
    struct prng prng = {77};
    char text[16];
    for (uint32_t turn = 0; turn < 4; turn++) {
        struct sorter kind = {.is_text = turn % 2 != 0, .is_down = turn / 2 != 0};
        for (uint32_t i = 0; i < ROWS; i++) {
            (void)snprintf(text, sizeof text, "n%u", (unsigned)prng_below(&prng, 100));
            rows[i] = key_of(kind.is_text ? 0 : prng_below(&prng, 20), text, i + 1);
        }
        memcpy(sorted, rows, sizeof sorted);
        the_sorter = &kind;
        qsort(sorted, ROWS, sizeof sorted[0], compare);
        for (size_t i = 0; i < sizeof pages / sizeof pages[0]; i++)
            read_pages(rows, sorted, kind, pages[i]);
    }
}

TEST_MAIN(NULL, NULL, NULL, NULL)
