/*
 * test_held.c -- datagrams that wait for the server: each caller's stay in order, one caller waits
 * for no other, and nothing waits for ever or without limit.
 */
#include "base/units.h"
#include "unit/test.h"
#include "wire/held.h"

static struct held held;
static char taken[600]; /* first bytes of what was delivered */
static uint32_t taken_count;
static char refused; /* whose datagrams are not taken */

static int begin(void **state)
{
    (void)state;
    taken_count = 0;
    refused = 0;
    return 0;
}

static int end(void **state)
{
    (void)state;
    held_done(&held);
    assert_int_equal(held.count, 0);
    return 0;
}

static struct rpc_source from(char who)
{
    return (struct rpc_source){
        .peer = {.address = {.family = 4, .bytes = {10, 0, 0, (uint8_t)who}}}};
}

static void add(char who, const char *text, uint64_t now_ns)
{
    const struct rpc_source source = from(who);
    held_add(&held, &source, bytes_of_text(text), now_ns);
}

static bool deliver(void *context, const struct rpc_source *source, struct bytes datagram)
{
    (void)context;
    if (source->peer.address.bytes[3] == (uint8_t)refused)
        return false;
    assert_true(taken_count < sizeof taken - 1);
    taken[taken_count++] = (char)datagram.at[0];
    taken[taken_count] = 0;
    return true;
}

TEST(test_held__each_callers_stay_in_order)
{
    const struct rpc_source a = from('A'), c = from('C');
    add('A', "1", 0);
    add('B', "2", 0);
    add('A', "3", 0);
    assert_true(held_has(&held, &a.peer.address));
    assert_false(held_has(&held, &c.peer.address));
    refused = 'A';
    held_offer(&held, 1, deliver, NULL);
    assert_string_equal(taken, "2");
    assert_int_equal(held.count, 2);
    refused = 0;
    held_offer(&held, 2, deliver, NULL);
    assert_string_equal(taken, "213");
    assert_int_equal(held.count, 0);
}

TEST(test_held__nothing_waits_for_ever)
{
    add('A', "1", 0);
    add('A', "2", SECOND_NS);
    refused = 'A';
    held_offer(&held, (uint64_t)HELD_PATIENCE_S * SECOND_NS - 1, deliver, NULL);
    assert_int_equal(held.count, 2);
    held_offer(&held, (uint64_t)HELD_PATIENCE_S * SECOND_NS, deliver, NULL);
    assert_int_equal(held.count, 1);
    refused = 0;
    held_offer(&held, (uint64_t)HELD_PATIENCE_S * SECOND_NS, deliver, NULL);
    assert_string_equal(taken, "2");
}

TEST(test_held__there_is_a_limit)
{
    for (uint32_t i = 0; i < HELD_MAX + 10; i++)
        add('A', "x", 0);
    assert_int_equal(held.count, HELD_MAX);
}

TEST_MAIN(begin, end, NULL, NULL)
