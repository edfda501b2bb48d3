/*
 * test_event.c -- the ring of events: order, cut names, and a full ring that counts instead of
 * keeping, and summaries that are kept all the same.
 */
#include "core/event.h"
#include "unit/test.h"

TEST(test_event__first_in_first_out)
{
    struct event_ring ring = {0};
    struct event event;
    assert_false(event_take(&ring, &event));
    struct address from = {.family = 4, .bytes = {10, 0, 0, 2}};
    for (uint64_t i = 0; i < 3 * EVENT_RING_MAX; i++) { /* goes round the ring */
        event_add(&ring, EVENT_BAD_NAME, &from, bytes_of_text("name"), i);
        event_add(&ring, EVENT_LIMIT, NULL, (struct bytes){0}, i);
        assert_true(event_take(&ring, &event));
        assert_int_equal(event.kind, EVENT_BAD_NAME);
        assert_true(event.value == i);
        assert_true(address_equal(&event.from, &from));
        assert_memory_equal(event.name, "name", 4);
        assert_true(event_take(&ring, &event));
        assert_int_equal(event.kind, EVENT_LIMIT);
        assert_int_equal(event.from.family, 0);
    }
    assert_true(ring.lost == 0);
}

TEST(test_event__long_name_is_cut)
{
    struct event_ring ring = {0};
    struct event event;
    uint8_t name[1024];
    memset(name, 'x', sizeof name);
    event_add(&ring, EVENT_BAD_NAME, NULL, (struct bytes){name, sizeof name}, 0);
    assert_true(event_take(&ring, &event));
    assert_int_equal(event.name_len, 1024);
    assert_memory_equal(event.name, name, EVENT_NAME_MAX);
}

TEST(test_event__full_ring_counts)
{
    struct event_ring ring = {0};
    struct event event;
    for (uint64_t i = 0; i < EVENT_RING_MAX + 7; i++)
        event_add(&ring, EVENT_LIMIT, NULL, (struct bytes){0}, i);
    assert_true(ring.lost == 7);
    for (uint64_t i = 0; i < EVENT_RING_MAX; i++) {
        assert_true(event_take(&ring, &event));
        assert_true(event.value == i); /* the oldest are kept */
    }
    assert_false(event_take(&ring, &event));
}

TEST(test_event__a_summary_finds_room)
{
    struct event_ring ring = {0};
    struct event event;
    event_add_summary(&ring, EVENT_ROUND_OVER, bytes_of_text("first"), 1);
    while (ring.count < EVENT_RING_MAX)
        event_add(&ring, EVENT_NOT_REACHED, NULL, (struct bytes){0}, ring.count);
    event_add_summary(&ring, EVENT_ROUND_OVER, bytes_of_text("last"), 2);
    assert_true(ring.lost == 1); /* whose place it took */
    assert_true(event_take(&ring, &event));
    assert_int_equal(event.kind, EVENT_ROUND_OVER);
    assert_int_equal(event.from.family, 0);
    assert_memory_equal(event.name, "first", 5);
    for (uint64_t i = 1; i < EVENT_RING_MAX - 1; i++) {
        assert_true(event_take(&ring, &event));
        assert_int_equal(event.kind, EVENT_NOT_REACHED);
        assert_true(event.value == i);
    }
    assert_true(event_take(&ring, &event));
    assert_int_equal(event.kind, EVENT_ROUND_OVER);
    assert_true(event.value == 2);
    assert_false(event_take(&ring, &event));
}

TEST_MAIN(NULL, NULL, NULL, NULL)
