/*
 * test_outbox.c -- the queue of gated answers: order, the gate, room, redirection, and messages
 * that survive many turns of the ring of bytes unchanged.
 */
#include "rpc/outbox.h"
#include "unit/test.h"

static uint64_t add(struct outbox *outbox, uint64_t after_txn, uint8_t fill, uint32_t len)
{
    uint8_t *at = outbox_reserve(outbox);
    memset(at, fill, len);
    struct outbox_entry entry = {.after_txn = after_txn};
    struct rpc_source to = {.peer.transport = TRANSPORT_TCP, .route = fill};
    return outbox_add(outbox, &entry, &to, len);
}

TEST(test_outbox__gate)
{
    struct outbox *outbox = outbox_new(4, 100, 400);
    assert_null(outbox_head(outbox, 100));
    add(outbox, 5, 1, 10);
    add(outbox, 5, 2, 10);
    add(outbox, 6, 3, 10);
    assert_null(outbox_head(outbox, 4));
    assert_int_equal(outbox_head(outbox, 5)->route, 1);
    outbox_pop(outbox);
    assert_int_equal(outbox_head(outbox, 5)->route, 2);
    outbox_pop(outbox);
    assert_null(outbox_head(outbox, 5));
    assert_int_equal(outbox_head(outbox, 7)->route, 3);
    assert_int_equal(outbox_count(outbox), 1);
    outbox_free(outbox);
}

TEST(test_outbox__room)
{
    struct outbox *outbox = outbox_new(3, 100, 1000); /* entries run out */
    for (uint8_t i = 0; i < 3; i++) {
        assert_true(outbox_has_room(outbox));
        add(outbox, 1, i, 10);
    }
    assert_false(outbox_has_room(outbox));
    outbox_pop(outbox);
    assert_true(outbox_has_room(outbox));
    outbox_free(outbox);

    outbox = outbox_new(100, 100, 250); /* bytes run out */
    uint32_t count = 0;
    for (; outbox_has_room(outbox) && count < 100; count++)
        add(outbox, 1, 9, 100);
    assert_int_equal(count, 2);
    outbox_pop(outbox);
    assert_true(outbox_has_room(outbox));
    outbox_free(outbox);
}

/* A message that ends where the ring does: the next one starts at its beginning. */
TEST(test_outbox__ends_with_the_ring)
{
    struct outbox *outbox = outbox_new(8, 100, 200);
    uint8_t *first = outbox_reserve(outbox);
    add(outbox, 1, 0, 100);
    for (uint8_t i = 1; i < 10; i++) { /* one always waits */
        assert_ptr_equal(outbox_reserve(outbox), first + 100 * (i % 2));
        add(outbox, 1, i, 100);
        assert_false(outbox_has_room(outbox));
        assert_int_equal(outbox_message(outbox, outbox_head(outbox, 1)).at[99], i - 1);
        outbox_pop(outbox);
    }
    outbox_free(outbox);
}

/* Where nothing waits the next message takes the first place, and has a number of its own. */
TEST(test_outbox__empty_begins_again)
{
    struct outbox *outbox = outbox_new(4, 100, 1000);
    uint8_t *first = outbox_reserve(outbox);
    for (uint8_t i = 0; i < 10; i++) {
        assert_ptr_equal(outbox_reserve(outbox), first);
        uint64_t number = add(outbox, 1, i, 10);
        assert_int_equal(number, 2 * i);
        assert_int_equal(add(outbox, 1, 99, 10), 2 * i + 1);
        assert_int_equal(outbox_find(outbox, number)->route, i);
        outbox_pop(outbox);
        assert_ptr_equal(outbox_reserve(outbox), first + 20);
        assert_null(outbox_find(outbox, number));
        assert_int_equal(outbox_find(outbox, number + 1)->route, 99);
        outbox_pop(outbox);
        assert_null(outbox_find(outbox, number + 1));
    }
    outbox_free(outbox);
}

TEST(test_outbox__messages_stay_whole)
{
    struct outbox *outbox = outbox_new(8, 64, 200);
    uint32_t pushed = 0, popped = 0;
    while (popped < 2000) {
        while (outbox_has_room(outbox)) {
            add(outbox, pushed, (uint8_t)pushed, 1 + pushed % 64);
            pushed++;
        }
        assert_in_range(outbox_count(outbox), 1, 8);
        for (uint32_t i = popped; i < pushed; i++)
            assert_int_equal(outbox_find(outbox, i)->route, (uint8_t)i);
        const struct outbox_entry *head = outbox_head(outbox, UINT64_MAX);
        struct bytes message = outbox_message(outbox, head);
        assert_int_equal(message.len, 1 + popped % 64);
        for (uint32_t i = 0; i < message.len; i++)
            assert_int_equal(message.at[i], (uint8_t)popped);
        outbox_pop(outbox);
        popped++;
    }
    outbox_free(outbox);
}

/* Where messages may lie in a ring of so many bytes: the newest ones, oldest first. */
struct ring {
    uint32_t from[64], to[64], count;
};

/* Is there room for one more, by looking at every byte? It begins behind the newest one, or where
 * the ring does. */
static bool ring_has_room(const struct ring *ring, uint32_t message_max, uint32_t bytes_max)
{
    if (ring->count == 0)
        return true;
    uint32_t from = ring->to[ring->count - 1];
    from = from + message_max <= bytes_max ? from : 0;
    bool is_free = true;
    for (uint32_t i = 0; i < ring->count; i++)
        is_free &= ring->to[i] <= from || from + message_max <= ring->from[i];
    return is_free;
}

/* Messages of all lengths, added and taken in any order that a seed can think of. */
TEST(test_outbox__room_is_what_is_free)
{
    enum { MESSAGE_MAX = 50, BYTES_MAX = 333 };
    uint32_t fulls = 0;
    for (uint32_t seed = 1; seed <= 50; seed++) {
        struct outbox *outbox = outbox_new(64, MESSAGE_MAX, BYTES_MAX);
        uint8_t *start = outbox_reserve(outbox);
        struct ring ring = {.count = 0};
        uint32_t dice = seed * 2654435761u;
        for (uint32_t i = 0; i < 2000; i++) {
            dice = dice * 1664525 + 1013904223;
            bool has_room = outbox_has_room(outbox);
            assert_int_equal(has_room, ring_has_room(&ring, MESSAGE_MAX, BYTES_MAX));
            fulls += !has_room;
            if (has_room && (ring.count == 0 || dice >> 31)) {
                uint32_t from = (uint32_t)(outbox_reserve(outbox) - start);
                uint32_t len = dice >> 8 & 64 ? MESSAGE_MAX : 1 + (dice >> 16) % MESSAGE_MAX;
                add(outbox, 1, 1, len);
                ring.from[ring.count] = from;
                ring.to[ring.count++] = from + len;
            } else {
                assert_true(ring.count > 0);
                outbox_pop(outbox);
                ring.count--;
                memmove(ring.from, ring.from + 1, ring.count * sizeof ring.from[0]);
                memmove(ring.to, ring.to + 1, ring.count * sizeof ring.to[0]);
            }
        }
        outbox_free(outbox);
    }
    assert_true(fulls > 1000);
}

/* Who gets it is known of datagrams and of calls; a connection knows that itself. It stays with its
 * entry when the ring goes round. */
TEST(test_outbox__peers)
{
    struct outbox *outbox = outbox_new(5, 10, 1000);
    for (uint32_t i = 0; i < 60; i++) {
        struct outbox_entry entry = {.is_call = i % 3 == 0};
        struct rpc_source to = {.peer = {.port = (uint16_t)(1 + i),
                                         .transport = i % 2 == 0 ? TRANSPORT_TCP : TRANSPORT_UDP},
                                .route = i};
        memset(outbox_reserve(outbox), 1, 1);
        (void)outbox_add(outbox, &entry, &to, 1);
        if (i < 3)
            continue;
        uint32_t oldest = i - 3; /* four wait, of five places */
        const struct outbox_entry *head = outbox_head(outbox, 0);
        assert_int_equal(head->route, oldest);
        const struct peer *peer = outbox_peer(outbox, head);
        assert_int_equal(peer != NULL, oldest % 3 == 0 || oldest % 2 == 1);
        if (peer != NULL) {
            assert_int_equal(peer->port, 1 + oldest);
            assert_int_equal(peer->transport, oldest % 2 == 0 ? TRANSPORT_TCP : TRANSPORT_UDP);
        }
        outbox_pop(outbox);
    }
    outbox_free(outbox);
}

/* From a datagram to a connection and back, and a call keeps who gets it. */
TEST(test_outbox__redirection_to_another_transport)
{
    struct outbox *outbox = outbox_new(4, 100, 400);
    const struct rpc_source tcp = {.peer = {.port = 7, .transport = TRANSPORT_TCP}, .route = 1};
    const struct rpc_source udp = {.peer = {.port = 8, .transport = TRANSPORT_UDP}, .route = 2};
    for (uint32_t i = 0; i < 2; i++) {
        bool is_call = i == 1;
        struct outbox_entry entry = {.is_call = is_call};
        memset(outbox_reserve(outbox), 1, 1);
        struct outbox_entry *added =
            outbox_find(outbox, outbox_add(outbox, &entry, is_call ? &tcp : &udp, 1));
        assert_int_equal(outbox_peer(outbox, added)->port, is_call ? 7 : 8);
        outbox_redirect(outbox, added, is_call ? &udp : &tcp);
        assert_int_equal(added->route, is_call ? 2 : 1);
        assert_int_equal(outbox_peer(outbox, added) != NULL, is_call);
        outbox_redirect(outbox, added, &udp);
        assert_int_equal(outbox_peer(outbox, added)->port, 8);
        assert_int_equal(added->route, 2);
    }
    outbox_free(outbox);
}

TEST(test_outbox__redirection)
{
    struct outbox *outbox = outbox_new(4, 100, 400);
    add(outbox, 1, 1, 10);
    uint64_t number = add(outbox, 1, 2, 10);
    struct rpc_source to = {.peer.transport = TRANSPORT_TCP, .route = 77};
    outbox_redirect(outbox, outbox_find(outbox, number), &to);
    outbox_pop(outbox);
    assert_int_equal(outbox_head(outbox, 1)->route, 77);
    outbox_pop(outbox);
    assert_null(outbox_find(outbox, number)); /* it left */
    assert_null(outbox_find(outbox, number + 1));
    outbox_free(outbox);
}

TEST_MAIN(NULL, NULL, NULL, NULL)
