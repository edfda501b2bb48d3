/*
 * test_connection.c -- shows what a TCP connection does for honest callers and against others: real
 * sockets on 127.0.0.1, the real server and core, one loop, in one process.
 *
 * The store and the time are the test's own. A batch becomes durable when the test says so, and
 * until the first one is, every STAT waits. The clock stands still unless the test moves it, and
 * the sweep runs every millisecond, so that closing for silence needs no waiting.
 */
#include "base/units.h"
#include "peer/peer_nsm.h"
#include "proto/nsm.h"
#include "unit/test.h"
#include "wire/tcp.h"

#include <arpa/inet.h>
#include <errno.h>
#include <malloc.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#define RECORD_LAST UINT32_C(0x80000000)

enum { CLIENTS_MAX = 80, TURNS_MAX = 20000, CONNECTIONS_MAX = 4 };

struct world {
    uv_loop_t loop;
    struct clock clock;
    struct core *core;
    struct rpc_server *server;
    struct tcp *tcp;
    uint16_t port;
};

static struct world w;

struct client {
    int fd;
    uint32_t len;
    uint8_t in[65536]; /* received, and not yet taken */
};

static const struct program *const programs[] = {&nsm_program};
static const struct rpc_server_limits ample = {.outbox_max = 2048, .cache_max = 4096};
static struct client clients[CLIENTS_MAX];
static struct packet stream, call;

static void open_world_of(const struct rpc_server_limits *limits, uint32_t connections_max)
{
    w = (struct world){.clock = {.now_ns = SECOND_NS, .wall_ns = 1, .is_set = true}};
    static const struct file_set shares[1];
    struct core_limits core_limits = {.clients_max = 10,
                                      .bytes_max = 65536,
                                      .batch_puts_max = 4,
                                      .file_sets = shares,
                                      .file_set_count = 1};
    w.core = core_new(&core_limits, 1);
    assert_non_null(w.core);
    core_start(w.core, &(struct core_boot){0});
    w.server = rpc_server_new(limits, programs, 1, w.core, 1);
    assert_non_null(w.server);
    assert_int_equal(uv_loop_init(&w.loop), 0);
    w.tcp = tcp_new(&w.loop, w.server, &w.clock, connections_max);
    assert_non_null(w.tcp);
    struct address loopback = {.family = 4, .bytes = {127, 0, 0, 1}};
    struct listen_set set;
    struct listen_failure failure;
    if (listen_open(&loopback, 1, 0, &set, &failure) != 0)
        fail_msg("%s", failure.text);
    w.port = set.port;
    assert_int_equal(close(set.at[0].udp_fd), 0);
    assert_int_equal(tcp_add(w.tcp, set.at[0].tcp_fd, false), 0);
    uv_timer_set_repeat(&w.tcp->sweep, 1);
    assert_int_equal(uv_timer_again(&w.tcp->sweep), 0);
    for (uint32_t i = 0; i < CLIENTS_MAX; i++)
        clients[i] = (struct client){.fd = -1};
    packet_clear(&stream);
}

static void open_world(const struct rpc_server_limits *limits)
{
    open_world_of(limits, CONNECTIONS_MAX);
}

/* uv_loop_close shows that no handle was left behind; the sanitizers, that no memory was. */
static void close_world(void)
{
    for (uint32_t i = 0; i < CLIENTS_MAX; i++)
        if (clients[i].fd >= 0)
            assert_int_equal(close(clients[i].fd), 0);
    rpc_server_check(w.server);
    tcp_close(w.tcp);
    assert_int_equal(uv_run(&w.loop, UV_RUN_DEFAULT), 0);
    assert_int_equal(uv_loop_close(&w.loop), 0);
    tcp_free(w.tcp);
    rpc_server_free(w.server);
    core_free(w.core);
}

static void release(void)
{
    struct rpc_reply reply;
    while (rpc_server_next(w.server, w.clock.now_ns, &reply)) {
        tcp_send(w.tcp, reply.route, reply.message);
        tcp_call_ended(w.tcp, reply.taken_by, 0);
    }
}

/* One turn of the loop, and what the end of a turn does. */
static void turn(void)
{
    (void)uv_run(&w.loop, UV_RUN_NOWAIT);
    release();
    tcp_resume(w.tcp);
    release();
    tcp_flush(w.tcp);
    (void)poll(NULL, 0, 1); /* only so that waiting costs no processor */
}

#define UNTIL(w, condition)                                                                        \
    for (uint32_t turns = 0; !(condition); turns++) {                                              \
        if (turns == TURNS_MAX)                                                                    \
            fail_msg("never: %s", #condition);                                                     \
        turn();                                                                                    \
    }

static void store(void)
{
    struct store_batch batch;
    assert_true(core_take_batch(w.core, &batch));
    rpc_server_stored(w.server, batch.txn, true, w.clock.now_ns, w.clock.wall_ns);
}

static uint16_t port_of(const struct client *client)
{
    struct sockaddr_in name = {0};
    socklen_t len = sizeof name;
    assert_int_equal(getsockname(client->fd, (struct sockaddr *)&name, &len), 0);
    return ntohs(name.sin_port);
}

/* The server's side of it, or NULL: not accepted yet, or closed. */
static struct connection *other_side(const struct client *client)
{
    uint16_t port = port_of(client);
    for (struct list *at = w.tcp->by_activity.next; at != &w.tcp->by_activity; at = at->next) {
        struct connection *c = LIST_ELEMENT(at, struct connection, by_activity);
        if (c->source.peer.port == port)
            return c;
    }
    return NULL;
}

static struct client *dial_with_buffer(uint32_t i, int buffer_len)
{
    struct sockaddr_in name = {.sin_family = AF_INET,
                               .sin_port = htons(w.port),
                               .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    clients[i].len = 0;
    clients[i].fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(clients[i].fd >= 0);
    if (buffer_len > 0)
        assert_int_equal(
            setsockopt(clients[i].fd, SOL_SOCKET, SO_RCVBUF, &buffer_len, sizeof buffer_len), 0);
    assert_int_equal(connect(clients[i].fd, (const struct sockaddr *)&name, sizeof name), 0);
    return &clients[i];
}

static struct client *dial(uint32_t i)
{
    return dial_with_buffer(i, 0);
}

static void put_record(void)
{
    packet_put_u32(&stream, RECORD_LAST | call.len);
    packet_put_bytes(&stream, call.bytes, call.len);
}

static void put_null(uint32_t xid)
{
    peer_nsm_put_null(&call, xid);
    put_record();
}

static void put_stat(uint32_t xid)
{
    peer_nsm_put_stat(&call, xid, "host");
    put_record();
}

static void send_bytes(struct client *client, const uint8_t *bytes, uint32_t len)
{
    assert_int_equal(send(client->fd, bytes, len, MSG_NOSIGNAL | MSG_DONTWAIT), len);
}

/* All that was put, in one write. */
static void send_stream(struct client *client)
{
    assert_false(stream.overflowed);
    send_bytes(client, stream.bytes, stream.len);
    packet_clear(&stream);
}

static void receive(struct client *client)
{
    ssize_t got =
        recv(client->fd, client->in + client->len, sizeof client->in - client->len, MSG_DONTWAIT);
    if (got > 0)
        client->len += (uint32_t)got;
}

/* One answer, if a whole one is there. */
static bool take(struct client *client, struct packet_reply *ret)
{
    static uint8_t message[1024];
    receive(client);
    if (client->len < 4)
        return false;
    struct packet_reader reader = {client->in, client->len, false};
    uint32_t mark = packet_get_u32(&reader), len = mark & ~RECORD_LAST;
    assert_true(mark & RECORD_LAST);
    assert_true(len <= sizeof message);
    if (reader.left < len)
        return false;
    memcpy(message, reader.at, len);
    client->len -= 4 + len;
    memmove(client->in, client->in + 4 + len, client->len);
    assert_true(packet_get_reply(message, len, ret));
    return true;
}

static void expect_answers(struct client *client, uint32_t first, uint32_t count)
{
    struct packet_reply reply;
    for (uint32_t i = 0; i < count; i++) {
        UNTIL(&w, take(client, &reply));
        assert_true(reply.accepted);
        assert_int_equal(reply.status, PACKET_SUCCESS);
        assert_int_equal(reply.xid, first + i);
    }
}

static bool is_silent(struct client *client)
{
    receive(client);
    return client->len == 0;
}

static bool is_closed(const struct client *client)
{
    uint8_t byte;
    ssize_t got = recv(client->fd, &byte, 1, MSG_DONTWAIT | MSG_PEEK);
    return got == 0 || (got < 0 && errno == ECONNRESET);
}

static bool was_reported(enum event_kind kind)
{
    struct event event;
    bool found = false;
    while (event_take(core_events(w.core), &event))
        found = found || event.kind == kind;
    return found;
}

/* A connection that is known to the server. */
static struct client *open_client(uint32_t i)
{
    struct client *client = dial(i);
    UNTIL(&w, other_side(client) != NULL);
    return client;
}

TEST_FIXTURE(set_up)
{
    open_world(&ample);
}

TEST_FIXTURE(tear_down)
{
    close_world();
}

TEST(test_connection__null_passes_a_stat_waits)
{
    struct client *client = open_client(0);
    put_stat(1);
    put_null(2);
    send_stream(client);
    expect_answers(client, 2, 1); /* past the one that waits for the store */
    assert_int_equal(rpc_server_waiting(w.server), 1);
    assert_int_equal(other_side(client)->in_flight, 1);
    assert_true(is_silent(client));
    store();
    expect_answers(client, 1, 1);
    assert_int_equal(other_side(client)->in_flight, 0);
}

TEST(test_connection__many_calls_of_one_write_are_one_batch)
{
    enum { CALLS = 300 };
    struct client *client = open_client(0);
    struct connection *c = other_side(client);
    for (uint32_t i = 0; i < CALLS; i++)
        put_stat(i);
    send_stream(client);
    UNTIL(&w, rpc_server_waiting(w.server) == CALLS);
    assert_int_equal(c->in_flight, CALLS);
    assert_true(is_silent(client));
    store();
    release(); /* they gather, and leave together */
    assert_int_equal(c->in_flight, 0);
    assert_int_equal(rpc_server_waiting(w.server), 0);
    uint32_t gathered = c->replies.out_len;
    assert_true(gathered > CALLS * 28); /* mark and header of each */
    assert_true(is_silent(client));
    tcp_flush(w.tcp);
    assert_int_equal(c->replies.out_len, 0);
    assert_null(c->replies.out); /* given back */
    UNTIL(&w, (receive(client), client->len == gathered));
    expect_answers(client, 0, CALLS);
}

TEST(test_connection__fragments)
{
    store();
    struct client *client = open_client(0);
    for (uint32_t piece = 1; piece < 60; piece += 7) {
        peer_nsm_put_stat(&call, piece, "host");
        for (uint32_t at = 0; at < call.len; at += piece) {
            uint32_t len = call.len - at < piece ? call.len - at : piece;
            packet_put_u32(&stream, 0); /* an empty fragment is legal anywhere */
            packet_put_u32(&stream, len);
            packet_put_bytes(&stream, call.bytes + at, len);
        }
        packet_put_u32(&stream, RECORD_LAST);
        put_null(piece + 1);
        send_stream(client);
        expect_answers(client, piece, 2); /* what is durable waits for nothing, like NULL */
    }
    assert_null(other_side(client)->reader.buffer);
}

TEST(test_connection__a_record_split_over_reads)
{
    store();
    struct client *client = open_client(0);
    struct connection *c = other_side(client);
    put_stat(5);
    put_stat(6);
    for (uint32_t i = 0; i < stream.len; i++) {
        w.clock.now_ns++;
        send_bytes(client, stream.bytes + i, 1);
        UNTIL(&w, c->heard_ns == w.clock.now_ns); /* one read for each byte */
    }
    expect_answers(client, 5, 2);
    assert_null(c->reader.buffer);
    assert_true(list_is_empty(&c->by_wait));
}

TEST(test_connection__half_closed_gets_all_answers)
{
    struct client *client = open_client(0), *mute = open_client(1);
    for (uint32_t i = 0; i < 50; i++)
        put_stat(i);
    send_stream(client);
    assert_int_equal(shutdown(client->fd, SHUT_WR), 0);
    UNTIL(&w, other_side(client)->at_end);
    assert_int_equal(rpc_server_waiting(w.server), 50);
    /* Who asked nothing before it ended is gone at once. */
    assert_int_equal(shutdown(mute->fd, SHUT_WR), 0);
    UNTIL(&w, is_closed(mute));
    assert_false(is_closed(client));
    store();
    expect_answers(client, 0, 50);
    UNTIL(&w, is_closed(client));
    assert_int_equal(w.tcp->connections.count, 0);
}

/* The answer finds nobody: it is dropped, and the call is not in flight any more. */
TEST(test_connection__a_caller_that_is_gone)
{
    struct client *client = open_client(0);
    put_stat(1);
    send_stream(client);
    UNTIL(&w, rpc_server_waiting(w.server) == 1);
    const struct linger reset = {.l_onoff = 1};
    assert_int_equal(setsockopt(client->fd, SOL_SOCKET, SO_LINGER, &reset, sizeof reset), 0);
    assert_int_equal(close(client->fd), 0);
    client->fd = -1;
    UNTIL(&w, w.tcp->connections.count == 0);
    store();
    turn();
    assert_int_equal(rpc_server_waiting(w.server), 0);
}

TEST(test_connection__a_record_that_is_too_long)
{
    uint32_t record_max = rpc_server_record_max(w.server, false);
    struct client *at_once = open_client(0), *in_pieces = open_client(1);
    packet_put_u32(&stream, RECORD_LAST | (record_max + 1));
    send_stream(at_once);
    UNTIL(&w, is_closed(at_once));
    assert_true(was_reported(EVENT_TOO_LONG));
    /* The longest that is legal, then one byte more in a second fragment. */
    packet_put_u32(&stream, record_max);
    call.len = record_max;
    memset(call.bytes, 0, record_max);
    packet_put_bytes(&stream, call.bytes, record_max);
    send_stream(in_pieces);
    UNTIL(&w, other_side(in_pieces)->reader.gathered == record_max);
    assert_false(is_closed(in_pieces));
    packet_put_u32(&stream, RECORD_LAST | 1);
    send_stream(in_pieces);
    UNTIL(&w, is_closed(in_pieces));
    assert_true(was_reported(EVENT_TOO_LONG));
}

TEST_WITH(test_connection__a_full_outbox_pauses_and_resumes, NULL, tear_down)
{
    enum { CALLS = 900, ROOM = 8 };
    const struct rpc_server_limits tight = {.outbox_max = ROOM, .cache_max = 64};
    open_world(&tight);
    struct client *client = open_client(0), *other = open_client(1);
    struct connection *c = other_side(client);
    for (uint32_t i = 0; i < CALLS; i++) /* more than one read takes */
        put_stat(i);
    assert_true(stream.len > CONNECTION_READ_MAX);
    send_stream(client);
    UNTIL(&w, !list_is_empty(&w.tcp->paused));
    assert_int_equal(rpc_server_waiting(w.server), ROOM);
    assert_int_equal(c->in_flight, ROOM);
    assert_false(c->is_reading);
    assert_non_null(c->stash);
    /* Others are served as far as they need no store; who does is paused as well. */
    put_null(7000);
    put_stat(7001);
    send_stream(other);
    expect_answers(other, 7000, 1);
    UNTIL(&w, !other_side(other)->is_reading);
    assert_int_equal(rpc_server_waiting(w.server), ROOM);
    assert_true(is_silent(client));
    store();
    expect_answers(client, 0, CALLS);
    expect_answers(other, 7001, 1);
    UNTIL(&w, list_is_empty(&w.tcp->paused));
    assert_true(c->is_reading);
    assert_null(c->stash);
}

TEST(test_connection__calls_in_flight_are_limited_for_each)
{
    enum { CALLS = CONNECTION_IN_FLIGHT_MAX + 88 };
    struct client *client = open_client(0), *other = open_client(1);
    for (uint32_t i = 0; i < CALLS; i++)
        put_stat(i);
    send_stream(client);
    UNTIL(&w, !list_is_empty(&w.tcp->paused));
    assert_int_equal(other_side(client)->in_flight, CONNECTION_IN_FLIGHT_MAX);
    put_stat(7000);
    send_stream(other);
    UNTIL(&w, rpc_server_waiting(w.server) == CONNECTION_IN_FLIGHT_MAX + 1);
    store();
    expect_answers(client, 0, CALLS);
    expect_answers(other, 7000, 1);
}

/* Asks until nothing more is taken from it, and never reads. False: it was closed meanwhile. */
static bool ask_until_stuck(struct client *client, void (*put)(uint32_t xid))
{
    for (uint32_t i = 0; stream.len + 200 < PACKET_MAX; i++)
        put(i);
    struct connection *c = other_side(client);
    uint32_t sent = 0; /* of the stream: records are never cut for good */
    for (uint32_t turns = 0; turns < TURNS_MAX; turns++) {
        ssize_t got =
            send(client->fd, stream.bytes + sent, stream.len - sent, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (got > 0)
            sent = (sent + (uint32_t)got) % stream.len;
        turn();
        if (w.tcp->connections.count == 0)
            return false;
        if (got < 0 && !c->is_reading && c->replies.is_writing)
            return true;
    }
    fail_msg("%s", "it is read for ever");
    return false;
}

TEST_WITH(test_connection__who_never_reads_is_closed, NULL, NULL)
{
    static void (*const puts[])(uint32_t) = {put_null, put_stat};
    for (size_t i = 0; i < sizeof puts / sizeof puts[0]; i++) {
        open_world(&ample);
        store();
        struct client *client = dial_with_buffer(0, 4096);
        UNTIL(&w, other_side(client) != NULL);
        size_t before = mallinfo2().uordblks;
        if (ask_until_stuck(client, puts[i])) {
            size_t used = mallinfo2().uordblks - before;
            assert_true(used <= 3 * 32768 + 16384 + 8192); /* decision 006, and libuv's own */
            w.clock.now_ns += 59 * SECOND_NS;
            for (uint32_t sweeps = 0; sweeps < 5; sweeps++)
                turn();
            assert_int_equal(w.tcp->connections.count, 1);
            w.clock.now_ns += SECOND_NS;
            UNTIL(&w, w.tcp->connections.count == 0);
            assert_true(was_reported(EVENT_SLOW_PEER));
        }
        close_world();
    }
}

static void ask_null(struct client *client, uint32_t xid)
{
    put_null(xid);
    send_stream(client);
    expect_answers(client, xid, 1);
}

TEST(test_connection__the_longest_silent_makes_room)
{
    for (uint32_t i = 0; i < CONNECTIONS_MAX; i++)
        ask_null(open_client(i), i);
    ask_null(&clients[0], 10); /* now 1 is the longest silent */
    put_stat(11);
    send_stream(&clients[1]);
    UNTIL(&w, rpc_server_waiting(w.server) == 1);
    ask_null(&clients[0], 12);
    ask_null(&clients[3], 13); /* 2, 1, 0, 3: and 2 has nothing in flight */
    ask_null(dial(4), 14);
    assert_int_equal(w.tcp->connections.count, CONNECTIONS_MAX);
    UNTIL(&w, is_closed(&clients[2]));
    assert_true(was_reported(EVENT_EVICTED));
    /* 1 is the longest silent now, but has a call in flight: 0 goes. */
    ask_null(dial(5), 15);
    UNTIL(&w, is_closed(&clients[0]));
    assert_false(is_closed(&clients[1]));
    store();
    expect_answers(&clients[1], 11, 1);
    for (uint32_t i = 3; i <= 5; i++)
        ask_null(&clients[i], 20 + i);
}

/* However many of the longest silent ones have calls that take long. */
TEST_WITH(test_connection__one_idle_among_many_busy_makes_room, NULL, tear_down)
{
    enum { BUSY = CLIENTS_MAX - 2 };
    open_world_of(&ample, BUSY + 1);
    for (uint32_t i = 0; i < BUSY; i++) {
        put_stat(i);
        send_stream(open_client(i));
        UNTIL(&w, rpc_server_waiting(w.server) == i + 1);
    }
    ask_null(open_client(BUSY), BUSY);
    ask_null(dial(BUSY + 1), BUSY + 1);
    UNTIL(&w, is_closed(&clients[BUSY]));
    store();
    for (uint32_t i = 0; i < BUSY; i++)
        expect_answers(&clients[i], i, 1);
}

TEST(test_connection__with_calls_in_flight_on_all_a_new_one_is_turned_away)
{
    for (uint32_t i = 0; i < CONNECTIONS_MAX; i++) {
        struct client *client = open_client(i);
        put_stat(i);
        send_stream(client);
        UNTIL(&w, rpc_server_waiting(w.server) == i + 1);
    }
    struct client *late = dial(CONNECTIONS_MAX);
    UNTIL(&w, is_closed(late));
    assert_true(was_reported(EVENT_TURNED_AWAY));
    store();
    for (uint32_t i = 0; i < CONNECTIONS_MAX; i++)
        expect_answers(&clients[i], i, 1);
}

/*
 * Three stop inside a record: one at once, one behind a whole call whose answer it reads, one with
 * a byte now and then. The fourth never ends a write at the end of a record, but its records come:
 * at first while the store stands still and no answer shows progress, then with answers.
 */
TEST(test_connection__stuck_inside_a_record_is_closed_steady_is_not)
{
    enum { STEP_S = 7, STEPS = 20, STORED = 10 };
    struct client *stuck = open_client(0), *answered = open_client(1);
    struct client *slow = open_client(2), *steady = open_client(3);
    uint64_t start_ns = w.clock.now_ns;
    packet_put_u32(&stream, RECORD_LAST | 100);
    send_stream(stuck);
    packet_put_u32(&stream, RECORD_LAST | 100);
    send_stream(slow);
    put_null(1);
    packet_put_u32(&stream, RECORD_LAST | 100);
    send_stream(answered);
    expect_answers(answered, 1, 1);
    put_stat(0);
    uint32_t half = stream.len / 2;
    send_bytes(steady, stream.bytes, half);
    for (uint32_t step = 0; step < STEPS; step++) {
        uint32_t whole = stream.len;
        put_stat(step + 1);
        send_bytes(steady, stream.bytes + half, whole);
        packet_clear(&stream);
        put_stat(step + 1);
        (void)send(slow->fd, "", 1, MSG_NOSIGNAL | MSG_DONTWAIT); /* it may be closed already */
        if (step < STORED) {
            UNTIL(&w, rpc_server_waiting(w.server) == step + 1);
        } else if (step == STORED) {
            store();
            expect_answers(steady, 0, STORED + 1);
        } else {
            expect_answers(steady, step, 1);
        }
        uint64_t passed_s = (w.clock.now_ns - start_ns) / SECOND_NS;
        if (passed_s < 60) {
            assert_false(is_closed(stuck) || is_closed(answered) || is_closed(slow));
        } else {
            UNTIL(&w, is_closed(stuck) && is_closed(answered) && is_closed(slow));
        }
        w.clock.now_ns += STEP_S * SECOND_NS;
    }
    assert_false(is_closed(steady));
    assert_true(was_reported(EVENT_SLOW_PEER));
}

TEST(test_connection__silence_of_ten_minutes)
{
    struct client *idle = open_client(0), *waiting = open_client(1);
    ask_null(idle, 1);
    put_stat(2);
    send_stream(waiting);
    UNTIL(&w, rpc_server_waiting(w.server) == 1);
    w.clock.now_ns += 599 * SECOND_NS;
    struct client *late = open_client(2);
    ask_null(late, 3);
    assert_false(is_closed(idle));
    w.clock.now_ns += SECOND_NS;
    UNTIL(&w, is_closed(idle));
    assert_false(is_closed(waiting) || is_closed(late));
    store();
    expect_answers(waiting, 2, 1); /* who waits for us is not idle */
    UNTIL(&w, is_closed(waiting));
}

TEST(test_connection__quiet_takes_no_call_and_gives_answers)
{
    struct client *client = open_client(0);
    put_stat(1);
    send_stream(client);
    UNTIL(&w, rpc_server_waiting(w.server) == 1);
    tcp_quiesce(w.tcp);
    put_null(2);
    send_stream(client);
    store();
    expect_answers(client, 1, 1);
    for (uint32_t turns = 0; turns < 5; turns++)
        turn();
    assert_true(is_silent(client));
    assert_false(is_closed(client));
}

/* With a shared store no kernel keeps a reply for longer than a successor waits, nor beyond the end
 * of the process (decision 025). */
TEST_WITH(test_connection__no_reply_waits_in_the_kernel, NULL, NULL)
{
    for (uint32_t i = 0; i < 2; i++) {
        const struct lease lease = {.is_shared = i == 1};
        struct rpc_server_limits limits = ample;
        limits.lease = &lease;
        open_world(&limits);
        uv_os_fd_t fd = -1;
        int wait_ms = -1;
        struct connection *accepted = other_side(open_client(0));
        assert_int_equal(uv_fileno((const uv_handle_t *)&accepted->handle, &fd), 0);
        struct linger linger = {0};
        socklen_t len = sizeof wait_ms, linger_len = sizeof linger;
        assert_int_equal(getsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &wait_ms, &len), 0);
        assert_int_equal(getsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, &linger_len), 0);
        assert_int_equal(wait_ms, lease.is_shared ? LEASE_KEPT_MS : 0);
        assert_int_equal(linger.l_onoff != 0, lease.is_shared);
        assert_int_equal(linger.l_linger, 0);
        close_world();
    }
}

static bool choose_algorithm(uv_os_fd_t fd, const char *name)
{
    return setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name, (socklen_t)strlen(name)) == 0;
}

/* Whatever the machine has chosen for others: a listener hands it on to what it accepts. */
TEST(test_connection__inside_the_machine_nothing_is_paced)
{
    uv_os_fd_t fd = -1;
    char name[16] = "";
    socklen_t len = sizeof name;
    assert_int_equal(uv_fileno((const uv_handle_t *)&w.tcp->listeners[0], &fd), 0);
    if (!choose_algorithm(fd, "bbr") && !choose_algorithm(fd, "cubic"))
        skip(); /* this kernel has no other */
    const struct connection *accepted = other_side(open_client(0));
    assert_int_equal(uv_fileno((const uv_handle_t *)&accepted->handle, &fd), 0);
    assert_int_equal(getsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name, &len), 0);
    assert_string_equal(name, "reno");
}

TEST_MAIN(set_up, tear_down, NULL, NULL)
