/*
 * test_client_random.c -- random histories of many attempts in a world that answers, refuses,
 * repeats itself, lies and stays silent, with the client's invariants checked after every event.
 *
 * The world keeps its own book of every attempt, from its side of the wire, and at the end of each
 * attempt compares: exactly one result unless cancelled, messages in
 * order and none before its predecessor was answered, "undelivered" exactly when no message was
 * ever handed over, "answered" only when every one was, and never more connections open than
 * allowed. Calls that are one way go to hosts of their own; nothing is heard of them.
 */
#include "base/prng.h"
#include "base/units.h"
#include "peer/packet.h"
#include "rpc/client.h"
#include "unit/test.h"

enum {
    ATTEMPTS_MAX = 24,
    CONNECTIONS_MAX = 5,
    HOSTS = 40,        /* one attempt at a time each; the number is also the attempt's id */
    ONE_WAY_HOSTS = 8, /* beside them, with any number */
    OPEN_MAX = 64,
    SENT_MAX = 256,
    ROUNDS = 60,
    STEPS = 600,
};

struct book {
    bool is_live;
    uint32_t message_count;
    uint32_t message;    /* the last one sent */
    uint32_t answered;   /* one bit for each message that an answer was given to */
    bool is_handed_over; /* a message */
    bool is_refused;     /* a message, by an RPC error */
    uint64_t deadline_ns;
};

/* A call on its way: what a true answer needs to know. */
struct sent {
    uint32_t host, xid, proc, vers;
    uint16_t port;
    uint64_t connection; /* 0: a datagram */
    uint32_t message;    /* which, for a call of the service */
};

static struct {
    struct rpc_client *client;
    struct prng prng;
    uint64_t now_ns;
    struct book books[HOSTS + ONE_WAY_HOSTS];
    uint64_t open[OPEN_MAX]; /* connections that the client has asked for and not closed or lost */
    uint32_t open_hosts[OPEN_MAX];
    bool is_connected[OPEN_MAX];
    uint32_t open_count;
    struct sent sent[SENT_MAX]; /* the newest */
    uint32_t sent_count;
    uint32_t results[4];    /* by outcome: the test must have seen all of them */
    uint32_t one_way_count; /* calls that left */
} w;

static uint32_t below(uint32_t bound)
{
    return (uint32_t)prng_below(&w.prng, bound);
}

static struct address host_address(uint32_t host)
{
    if (host % 4 == 3) {
        uint8_t v6[16] = {0x20, 1, 0x0d, 0xb8};
        v6[15] = (uint8_t)host;
        return address_v6(v6, NULL);
    }
    const uint8_t v4[] = {10, 0, 0, (uint8_t)host};
    return address_v4(v4);
}

static uint32_t host_of(const struct address *address)
{
    return address->family == 6 ? address->bytes[15] : address->bytes[3];
}

static void start(void)
{
    static uint8_t bytes[CLIENT_MESSAGES_MAX][64];
    uint32_t host = below(HOSTS);
    struct book *book = &w.books[host];
    if (book->is_live)
        return;
    struct client_attempt attempt = {
        .id = host,
        .to = host_address(host),
        .prog = 100000 + host, /* the port cache is shared between attempts at one host */
        .vers = 1,
        .proc = 77,
        .port_hint = below(2) ? 12049 : 0,
        .way = below(2) ? CLIENT_TCP_FIRST : CLIENT_UDP_FIRST,
        .message_count = 1 + below(CLIENT_MESSAGES_MAX),
        .deadline_ns = w.now_ns + below(6000) * MS_NS,
    };
    for (uint32_t i = 0; i < attempt.message_count; i++) {
        for (uint32_t j = 0; j < sizeof bytes[i]; j++)
            bytes[i][j] = (uint8_t)(host * 16 + i);
        attempt.messages[i] = (struct bytes){bytes[i], 4 * (1 + below(16))};
    }
    bool has_room = rpc_client_has_room(w.client);
    assert_int_equal(rpc_client_start(w.client, &attempt, w.now_ns), has_room);
    if (has_room)
        *book = (struct book){.is_live = true,
                              .message_count = attempt.message_count,
                              .deadline_ns = attempt.deadline_ns};
}

static void start_one_way(void)
{
    static const uint8_t bytes[4] = {0};
    uint32_t host = HOSTS + below(ONE_WAY_HOSTS);
    struct client_attempt attempt = {
        .id = below(HOSTS),
        .to = host_address(host),
        .prog = 100000 + host,
        .vers = 1,
        .proc = 78,
        .way = below(2) ? CLIENT_TCP_FIRST : CLIENT_UDP_ONLY,
        .is_one_way = true,
        .sent_port = 400,
        .message_count = 1,
        .messages = {{bytes, sizeof bytes}},
        .deadline_ns = w.now_ns + below(6000) * MS_NS,
    };
    (void)rpc_client_start(w.client, &attempt, w.now_ns); /* or there is no room for it */
}

/* OPEN_MAX: there is none. */
static uint32_t find_open(uint64_t connection)
{
    for (uint32_t i = 0; i < w.open_count; i++)
        if (w.open[i] == connection)
            return i;
    return OPEN_MAX;
}

static void remove_open(uint32_t i)
{
    w.open_count--;
    w.open[i] = w.open[w.open_count];
    w.open_hosts[i] = w.open_hosts[w.open_count];
    w.is_connected[i] = w.is_connected[w.open_count];
}

/* Notes a call, and checks that it is one that its attempt may send. */
static void note_call(const struct client_action *action)
{
    struct bytes bytes = action->bytes;
    bool is_stream = action->kind == CLIENT_WRITE;
    struct packet_reader reader = {bytes.at, bytes.len, false};
    if (is_stream)
        assert_int_equal(packet_get_u32(&reader), 0x80000000 | (bytes.len - 4));
    struct sent sent = {.host = host_of(&action->to), .port = action->port};
    sent.connection = is_stream ? action->connection : 0;
    sent.xid = packet_get_u32(&reader);
    assert_int_equal(packet_get_u32(&reader), 0);
    assert_int_equal(packet_get_u32(&reader), 2);
    uint32_t prog = packet_get_u32(&reader);
    sent.vers = packet_get_u32(&reader);
    sent.proc = packet_get_u32(&reader);
    for (uint32_t i = 0; i < 4; i++)
        assert_int_equal(packet_get_u32(&reader), 0);
    struct book *book = &w.books[sent.host];
    assert_true(book->is_live || sent.host >= HOSTS);
    if (sent.proc == 78) {
        assert_in_range(sent.host, HOSTS, HOSTS + ONE_WAY_HOSTS);
        assert_true(is_stream || sent.port == 800); /* not where it is already */
        w.one_way_count++;
    } else if (sent.proc == 77) {
        assert_int_equal(prog, 100000 + sent.host);
        const uint8_t *first = packet_get_fixed(&reader, 1);
        assert_non_null(first);
        sent.message = (*first - sent.host * 16) & 0xff;
        /* In order, and none before its predecessor was answered. */
        assert_in_range(sent.message, book->message, book->message_count - 1);
        uint32_t before = (1U << sent.message) - 1;
        assert_int_equal(book->answered & before, before);
        book->message = sent.message;
        book->is_handed_over = true;
    } else {
        assert_int_equal(prog, 100000);
        assert_int_equal(sent.proc, 3);
    }
    w.sent[w.sent_count++ % SENT_MAX] = sent;
}

static void act(void)
{
    struct client_action action;
    if (!rpc_client_next_action(w.client, &action))
        return;
    uint32_t i;
    switch (action.kind) {
    case CLIENT_CONNECT:
        assert_true(w.open_count < CONNECTIONS_MAX);
        w.open_hosts[w.open_count] = host_of(&action.to);
        w.is_connected[w.open_count] = false;
        w.open[w.open_count++] = action.connection;
        break;
    case CLIENT_DISCONNECT:
        i = find_open(action.connection);
        if (i != OPEN_MAX) /* it may have been lost while the client made up its mind */
            remove_open(i);
        break;
    case CLIENT_WRITE:
        i = find_open(action.connection);
        assert_int_not_equal(i, OPEN_MAX);
        assert_true(w.is_connected[i]);
        note_call(&action);
        break;
    case CLIENT_DATAGRAM:
        note_call(&action);
        break;
    }
}

/* A connection opens, is refused, or is lost. */
static void move_connection(void)
{
    if (w.open_count == 0)
        return;
    uint32_t i = below(w.open_count);
    uint64_t connection = w.open[i];
    if (!w.is_connected[i] && below(3) > 0) {
        w.is_connected[i] = true;
        rpc_client_connected(w.client, connection, true, w.now_ns);
        return;
    }
    if (w.is_connected[i] && below(4) > 0)
        return;
    bool was_connected = w.is_connected[i];
    remove_open(i);
    if (was_connected)
        rpc_client_lost(w.client, connection, w.now_ns);
    else
        rpc_client_connected(w.client, connection, false, w.now_ns);
}

static bool is_open(uint64_t connection)
{
    uint32_t i = find_open(connection);
    return i != OPEN_MAX && w.is_connected[i];
}

static void put_results(struct packet *packet, const struct sent *sent)
{
    if (sent->proc == 77 || sent->proc == 78)
        return;
    if (sent->vers == 2) {
        packet_put_u32(packet, below(3) * 400); /* 0, 400 or 800 */
    } else {
        static const char *const texts[] = {"", "0.0.0.0.1.144", "::.3.32", "nonsense"};
        packet_put_text(packet, texts[below(4)]);
    }
}

/* An answer to some call that was sent: usually true, sometimes late, repeated, or damaged. */
static void answer(void)
{
    static struct packet packet;
    uint32_t kept = w.sent_count < SENT_MAX ? w.sent_count : SENT_MAX;
    if (kept == 0)
        return;
    struct sent sent = w.sent[(w.sent_count - 1 - below(kept < 8 ? kept : 8)) % SENT_MAX];
    struct book *book = &w.books[sent.host];
    uint32_t stat = below(8) > 0 ? 0 : 1 + below(5);
    packet_clear(&packet);
    const uint32_t words[] = {sent.xid, 1, 0, 0, 0, stat};
    for (uint32_t i = 0; i < 6; i++)
        packet_put_u32(&packet, words[i]);
    if (stat == 0)
        put_results(&packet, &sent);
    struct address from = host_address(sent.host);
    bool is_lie = below(10) == 0;
    if (is_lie) {
        switch (below(4)) {
        case 0:
            from = host_address((sent.host + 4) % HOSTS);
            break;
        case 1:
            packet_set_xid(&packet, sent.xid - 1000);
            break;
        case 2:
            packet.len = below(24);
            break;
        default:
            sent.port = 9;
        }
        if (sent.connection != 0)
            packet.len = below(24);
    }
    struct bytes bytes = {packet.bytes, packet.len};
    if (sent.proc == 77 && !is_lie && stat == 0)
        book->answered |= 1U << sent.message;
    else if (sent.proc == 77 && !is_lie)
        book->is_refused = true;
    uint32_t count = rpc_client_count(w.client);
    if (sent.connection != 0 && is_open(sent.connection))
        rpc_client_record(w.client, sent.connection, bytes, w.now_ns);
    else if (sent.connection == 0)
        rpc_client_datagram(w.client, &from, sent.port, bytes, w.now_ns);
    assert_int_equal(rpc_client_count(w.client), count); /* results are still to be taken */
}

static void say_unreachable(void)
{
    static const uint16_t ports[] = {111, 111, 400, 800, 5};
    struct address to = host_address(below(HOSTS));
    rpc_client_unreachable(w.client, &to, ports[below(5)], w.now_ns);
}

static void take_result(void)
{
    struct client_result result;
    if (!rpc_client_next_result(w.client, &result))
        return;
    assert_in_range(result.id, 0, HOSTS - 1);
    struct book *book = &w.books[result.id];
    assert_true(book->is_live);
    book->is_live = false;
    w.results[result.outcome]++;
    assert_in_range(result.answered_count, 0, book->message_count);
    uint32_t answered = (1U << result.answered_count) - 1;
    assert_int_equal(book->answered & answered, answered);
    switch (result.outcome) {
    case CLIENT_ANSWERED:
        assert_int_equal(result.answered_count, book->message_count);
        break;
    case CLIENT_UNDELIVERED:
        assert_false(book->is_handed_over);
        break;
    case CLIENT_REFUSED:
        assert_true(book->is_refused);
        assert_true(book->is_handed_over);
        assert_true(result.answered_count < book->message_count);
        break;
    case CLIENT_UNKNOWN:
        assert_true(book->is_handed_over);
        assert_true(result.answered_count < book->message_count);
        break;
    }
}

static void cancel(void)
{
    uint32_t host = below(HOSTS);
    rpc_client_cancel(w.client, host);
    w.books[host].is_live = false;
}

static void wait(void)
{
    w.now_ns += below(300) * MS_NS;
    rpc_client_tick(w.client, w.now_ns);
    assert_true(rpc_client_deadline_ns(w.client) > w.now_ns);
}

static void round_of(uint64_t seed)
{
    struct rpc_client_limits limits = {.attempts_max = ATTEMPTS_MAX,
                                       .connections_max = CONNECTIONS_MAX,
                                       .bytes_max = UINT64_C(1) << 20};
    w.client = rpc_client_new(&limits, (uint32_t)seed * 0x01000193, seed);
    assert_non_null(w.client);
    w.prng.state = seed;
    w.open_count = w.sent_count = 0;
    for (uint32_t step = 0; step < STEPS; step++) {
        switch (below(16)) {
        case 0:
        case 1:
            start();
            break;
        case 2:
            if (below(8) == 0)
                cancel();
            else
                start_one_way();
            break;
        case 3:
            say_unreachable();
            break;
        case 4:
            wait();
            break;
        case 5:
            take_result();
            break;
        case 6:
        case 7:
            move_connection();
            break;
        case 8:
        case 9:
        case 10:
            answer();
            break;
        default:
            act();
        }
        rpc_client_check(w.client);
    }
    /* Everything ends, and nothing stays behind. */
    w.now_ns += 6001 * MS_NS;
    rpc_client_tick(w.client, w.now_ns);
    for (uint32_t i = 0; i < ATTEMPTS_MAX * 8; i++) {
        take_result();
        act();
        rpc_client_check(w.client);
    }
    assert_int_equal(rpc_client_count(w.client), 0);
    assert_int_equal(w.open_count, 0);
    for (uint32_t host = 0; host < HOSTS; host++)
        assert_false(w.books[host].is_live);
    rpc_client_free(w.client);
}

TEST(test_client_random__histories)
{
    for (uint64_t seed = 1; seed <= ROUNDS; seed++)
        round_of(seed);
    for (uint32_t outcome = 0; outcome < 4; outcome++)
        assert_true(w.results[outcome] > 0);
    assert_true(w.one_way_count > 0);
}

TEST_MAIN(NULL, NULL, NULL, NULL)
