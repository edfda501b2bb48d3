/*
 * test_rpcbind.c -- the exchange with rpcbind over real sockets, against a fake one on the test's
 * own loop: where it is looked for, from which port it is called, when a connection is kept and
 * when another is opened, and what is made of one that is absent, silent, slow, rude or talks
 * nonsense. What is asked and what the answers mean is test_registration.c's.
 *
 * The fake one needs port 111 and /run/rpcbind.sock, so the test has a network and a /run of its
 * own; where that is not allowed it is skipped.
 */
#include "wire/rpcbind.h"

#include "fake_hosts.h"
#include "peer/packet.h"
#include "unit/test.h"
#include "wire/sockaddr.h"

#include <errno.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <linux/capability.h>

#define UNIX_PATH "/run/rpcbind.sock"

enum { PORTMAPPER = 111, NSM = 100024, TABLE_MAX = 8, PATIENCE_S = 30, TIME_MS = 20000 };

enum manners {
    POLITE,
    DRIBBLES,       /* every answer byte by byte, in two fragments */
    SAYS_NOTHING,   /* takes calls and is silent */
    HANGS_UP,       /* closes instead of answering */
    TALKS_NONSENSE, /* lists that have no end */
    ANSWERS_OTHERS, /* what is no answer to what was asked */
    TALKS_TOO_MUCH, /* a record without end */
    ALWAYS_REFUSES, /* FALSE to SET and UNSET */
};

struct entry {
    uint32_t prog, vers;
    char netid[16], address[64];
};

/* A connection to the fake rpcbind. */
struct visitor {
    union {
        uv_handle_t handle;
        uv_stream_t stream;
        uv_pipe_t pipe;
        uv_tcp_t tcp;
    };
    uint8_t in[4096];
    uint32_t in_len;
};

static struct {
    uv_loop_t loop;
    struct registration registration;
    struct rpcbind *rpcbind;
    uint32_t end_count, lost_count;
    enum rpcbind_result result; /* of the last pass */

    enum manners manners;
    uv_tcp_t listener;
    uv_pipe_t pipe_listener;
    bool has_pipe, has_tcp;
    struct visitor *visitor; /* the newest that is still there */
    uint32_t visitor_count;
    uint16_t visitor_port;
    uint32_t call_count;
    struct entry table[TABLE_MAX];
    uint32_t table_len;
    uv_timer_t dribble;
    uint32_t dribbled_len;
} t;

static struct packet reply, record;

/* ---- the fake rpcbind ---- */

static void on_visitor_closed(uv_handle_t *handle)
{
    free(handle->data);
}

static void dismiss(struct visitor *visitor)
{
    if (uv_is_closing(&visitor->handle))
        return;
    if (t.visitor == visitor)
        t.visitor = NULL;
    uv_close(&visitor->handle, on_visitor_closed);
}

static void say(struct visitor *visitor, const void *bytes, uint32_t len)
{
    uv_buf_t buffer = uv_buf_init((char *)(uintptr_t)bytes, len);
    assert_int_equal(uv_try_write(&visitor->stream, &buffer, 1), (int)len);
}

/* The rest of the answer, one byte per turn of the loop. */
static void on_dribble(uv_timer_t *timer)
{
    if (t.visitor != NULL && t.dribbled_len < record.len)
        say(t.visitor, record.bytes + t.dribbled_len++, 1);
    else
        (void)uv_timer_stop(timer);
}

static void say_record(struct visitor *visitor)
{
    packet_clear(&record);
    uint32_t first = t.manners == DRIBBLES ? 6 : 0;
    if (first > 0) {
        packet_put_u32(&record, first);
        packet_put_bytes(&record, reply.bytes, first);
    }
    packet_put_u32(&record, UINT32_C(0x80000000) | (reply.len - first));
    packet_put_bytes(&record, reply.bytes + first, reply.len - first);
    t.dribbled_len = 0;
    if (t.manners == DRIBBLES)
        assert_int_equal(uv_timer_start(&t.dribble, on_dribble, 0, 1), 0);
    else
        say(visitor, record.bytes, record.len);
}

static void read_text(struct packet_reader *reader, char *text, uint32_t size)
{
    uint32_t len;
    const uint8_t *bytes = packet_get_opaque(reader, size - 1, &len);
    assert_non_null(bytes);
    memcpy(text, bytes, len);
    text[len] = '\0';
}

static struct entry *find(const struct entry *wanted)
{
    for (uint32_t i = 0; i < t.table_len; i++)
        if (t.table[i].prog == wanted->prog && t.table[i].vers == wanted->vers &&
            strcmp(t.table[i].netid, wanted->netid) == 0)
            return &t.table[i];
    return NULL;
}

static void put_list(void)
{
    for (uint32_t i = 0; i < t.table_len; i++) {
        packet_put_u32(&reply, 1);
        packet_put_u32(&reply, t.table[i].prog);
        packet_put_u32(&reply, t.table[i].vers);
        packet_put_text(&reply, t.table[i].netid);
        packet_put_text(&reply, t.table[i].address);
        packet_put_text(&reply, "superuser");
    }
    packet_put_u32(&reply, 0);
}

/* Version 4: SET, UNSET and DUMP. */
static void answer(struct packet_reader *call)
{
    uint32_t xid = packet_get_u32(call);
    static const uint32_t words[] = {0, 2, 100000, 4}; /* CALL, RPC version, program, version */
    for (uint32_t i = 0; i < 4; i++)
        assert_int_equal(packet_get_u32(call), words[i]);
    uint32_t procedure = packet_get_u32(call);
    for (uint32_t i = 0; i < 4; i++)
        assert_int_equal(packet_get_u32(call), 0); /* AUTH_NONE twice */
    packet_clear(&reply);
    const uint32_t header[] = {xid, 1, 0, 0, 0, 0};
    for (uint32_t i = 0; i < 6; i++)
        packet_put_u32(&reply, header[i]);
    if (procedure == 4) {
        put_list();
        return;
    }
    struct entry entry = {.prog = packet_get_u32(call), .vers = packet_get_u32(call)};
    char owner[32];
    read_text(call, entry.netid, sizeof entry.netid);
    read_text(call, entry.address, sizeof entry.address);
    read_text(call, owner, sizeof owner);
    assert_true(packet_is_done(call));
    struct entry *old = find(&entry);
    bool is_done = t.manners != ALWAYS_REFUSES && (procedure == 1) == (old == NULL);
    if (is_done && old == NULL)
        t.table[t.table_len++] = entry;
    else if (is_done)
        *old = t.table[--t.table_len];
    packet_put_u32(&reply, is_done);
}

static void take_call(struct visitor *visitor, const uint8_t *bytes, uint32_t len)
{
    t.call_count++;
    struct packet_reader reader = {bytes, len, false};
    switch (t.manners) {
    case SAYS_NOTHING:
        return;
    case HANGS_UP:
        dismiss(visitor);
        return;
    case ANSWERS_OTHERS:
        packet_clear(&reply);
        packet_put_text(&reply, "220 mail.example ESMTP");
        say_record(visitor);
        return;
    case TALKS_NONSENSE:
        answer(&reader);
        reply.len -= 4;
        say_record(visitor);
        return;
    case TALKS_TOO_MUCH:
        say(visitor, "\x00\x7f\xff\xff and on", 11); /* a fragment of 8 MB, not the last */
        return;
    case POLITE:
    case DRIBBLES:
    case ALWAYS_REFUSES:
        answer(&reader);
        say_record(visitor);
        return;
    }
}

static void on_alloc(uv_handle_t *handle, size_t size, uv_buf_t *ret)
{
    (void)size;
    struct visitor *visitor = handle->data;
    *ret = uv_buf_init((char *)visitor->in + visitor->in_len,
                       (unsigned)sizeof visitor->in - visitor->in_len);
}

static void on_read(uv_stream_t *stream, ssize_t n, const uv_buf_t *buffer)
{
    (void)buffer;
    struct visitor *visitor = stream->data;
    if (n < 0) {
        dismiss(visitor);
        return;
    }
    visitor->in_len += (uint32_t)n;
    while (visitor->in_len >= 4 && !uv_is_closing(&visitor->handle)) {
        uint32_t mark = packet_xid(visitor->in, 4), len = mark & 0x7fffffff;
        assert_true(mark & 0x80000000);
        if (visitor->in_len < len + 4)
            return;
        static uint8_t call[sizeof visitor->in];
        memcpy(call, visitor->in + 4, len);
        visitor->in_len -= len + 4;
        memmove(visitor->in, visitor->in + len + 4, visitor->in_len);
        take_call(visitor, call, len);
    }
}

static void on_visitor(uv_stream_t *listener, int status)
{
    assert_int_equal(status, 0);
    struct visitor *visitor = calloc(1, sizeof *visitor);
    assert_non_null(visitor);
    bool is_pipe = listener == (uv_stream_t *)&t.pipe_listener;
    assert_int_equal(is_pipe ? uv_pipe_init(&t.loop, &visitor->pipe, 0)
                             : uv_tcp_init(&t.loop, &visitor->tcp),
                     0);
    visitor->handle.data = visitor;
    assert_int_equal(uv_accept(listener, &visitor->stream), 0);
    if (!is_pipe) {
        struct sockaddr_storage at;
        int at_len = sizeof at;
        assert_int_equal(uv_tcp_getpeername(&visitor->tcp, (struct sockaddr *)&at, &at_len), 0);
        struct address from = sockaddr_address((const struct sockaddr *)&at, &t.visitor_port);
        assert_true(address_is_loopback(&from));
    }
    t.visitor = visitor;
    t.visitor_count++;
    assert_int_equal(uv_read_start(&visitor->stream, on_alloc, on_read), 0);
}

static void listen_on_loopback(void)
{
    struct address loopback = {.family = 4, .bytes = {127, 0, 0, 1}};
    struct sockaddr_storage at;
    (void)sockaddr_of(&loopback, PORTMAPPER, &at);
    assert_int_equal(uv_tcp_init(&t.loop, &t.listener), 0);
    assert_int_equal(uv_tcp_bind(&t.listener, (const struct sockaddr *)&at, 0), 0);
    assert_int_equal(uv_listen((uv_stream_t *)&t.listener, 16, on_visitor), 0);
    t.has_tcp = true;
}

/* False: not possible here. */
static bool listen_on_path(void)
{
    assert_int_equal(uv_pipe_init(&t.loop, &t.pipe_listener, 0), 0);
    t.has_pipe = true;
    return uv_pipe_bind(&t.pipe_listener, UNIX_PATH) == 0 &&
           uv_listen((uv_stream_t *)&t.pipe_listener, 16, on_visitor) == 0;
}

static void leave(void)
{
    if (t.has_tcp)
        uv_close((uv_handle_t *)&t.listener, NULL);
    if (t.has_pipe)
        uv_close((uv_handle_t *)&t.pipe_listener, NULL); /* removes the path too */
    t.has_tcp = t.has_pipe = false;
}

/* ---- passes ---- */

static void on_end(void *context, enum registration_goal goal, enum rpcbind_result result)
{
    (void)context;
    (void)goal;
    t.end_count++;
    t.result = result;
}

static void on_lost(void *context)
{
    (void)context;
    t.lost_count++;
}

static void begin(enum manners manners)
{
    memset(&t, 0, sizeof t);
    t.manners = manners;
    assert_int_equal(uv_loop_init(&t.loop), 0);
    assert_int_equal(uv_timer_init(&t.loop, &t.dribble), 0);
    registration_init(&t.registration, false, 100);
    const struct portmap_service service = {
        .prog = NSM, .vers = 1, .prot = TRANSPORT_TCP, .address = {.family = 4}, .port = 12049};
    registration_add(&t.registration, &service);
    struct rpcbind_hooks hooks = {.on_end = on_end, .on_lost = on_lost};
    t.rpcbind = rpcbind_new(&t.loop, &t.registration, &hooks);
    assert_non_null(t.rpcbind);
}

static void end(void)
{
    leave();
    uv_close((uv_handle_t *)&t.dribble, NULL);
    rpcbind_close(t.rpcbind);
    if (t.visitor != NULL)
        dismiss(t.visitor);
    assert_int_equal(uv_run(&t.loop, UV_RUN_DEFAULT), 0);
    assert_int_equal(uv_loop_close(&t.loop), 0);
    rpcbind_free(t.rpcbind);
}

#define UNTIL(condition)                                                                           \
    for (time_t give_up = time(NULL) + PATIENCE_S; !(condition);) {                                \
        if (time(NULL) > give_up)                                                                  \
            fail_msg("never: %s", #condition);                                                     \
        (void)uv_run(&t.loop, UV_RUN_ONCE);                                                        \
    }

static void start(enum registration_goal goal, uint32_t timeout_ms)
{
    rpcbind_begin(t.rpcbind, goal, timeout_ms);
}

static void expect(enum rpcbind_result result, uint32_t end_count)
{
    UNTIL(t.end_count >= end_count);
    assert_int_equal(t.end_count, end_count);
    assert_int_equal(t.result, result);
}

static void expect_registered(void)
{
    assert_int_equal(t.table_len, 1);
    assert_int_equal(t.table[0].prog, NSM);
    assert_string_equal(t.table[0].netid, "tcp");
    assert_string_equal(t.table[0].address, "0.0.0.0.47.17");
}

TEST_FIXTURE(set_up)
{
    begin(POLITE);
}

TEST_FIXTURE(tear_down)
{
    end();
}

TEST(test_rpcbind__over_loopback_from_a_privileged_port)
{
    listen_on_loopback();
    assert_string_equal(rpcbind_place(t.rpcbind), "");
    start(REGISTRATION_CLAIM, TIME_MS);
    expect(RPCBIND_DONE, 1);
    expect_registered();
    assert_string_equal(rpcbind_place(t.rpcbind), "127.0.0.1 port 111");
    assert_in_range(t.visitor_port, 512, 1023);
}

TEST(test_rpcbind__from_any_port_without_the_right)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = {0};
    const uint32_t right = UINT32_C(1) << CAP_NET_BIND_SERVICE;
    listen_on_loopback();
    assert_int_equal(syscall(SYS_capget, &header, data), 0);
    data[0].effective &= ~right;
    assert_int_equal(syscall(SYS_capset, &header, data), 0);
    start(REGISTRATION_CLAIM, TIME_MS);
    expect(RPCBIND_DONE, 1);
    data[0].effective |= right;
    assert_int_equal(syscall(SYS_capset, &header, data), 0);
    assert_in_range(t.visitor_port, 1024, 65535);
}

TEST_WITH(test_rpcbind__its_socket_goes_before_loopback, set_up, NULL)
{
    listen_on_loopback();
    if (!listen_on_path()) {
        end();
        print_message("skipped: no socket can be made in /run here\n");
        skip();
    }
    start(REGISTRATION_CLAIM, TIME_MS);
    expect(RPCBIND_DONE, 1);
    expect_registered();
    assert_string_equal(rpcbind_place(t.rpcbind), UNIX_PATH);
    assert_int_equal(t.visitor_count, 1);
    assert_int_equal(t.visitor_port, 0); /* nobody came over TCP */
    end();
}

TEST(test_rpcbind__absent)
{
    start(REGISTRATION_LOOK, TIME_MS);
    expect(RPCBIND_ABSENT, 1);
    listen_on_loopback(); /* it comes up */
    start(REGISTRATION_CLAIM, TIME_MS);
    expect(RPCBIND_DONE, 2);
    assert_int_equal(t.lost_count, 0);
}

TEST_WITH(test_rpcbind__silent, NULL, tear_down)
{
    begin(SAYS_NOTHING);
    listen_on_loopback();
    start(REGISTRATION_CLAIM, 50);
    expect(RPCBIND_SILENT, 1);
    assert_int_equal(t.call_count, 1);
    UNTIL(t.visitor == NULL); /* an answer that comes now is nobody's: the connection is closed */
    t.manners = POLITE;
    start(REGISTRATION_CLAIM, TIME_MS);
    expect(RPCBIND_DONE, 2);
    assert_int_equal(t.visitor_count, 2);
}

TEST_WITH(test_rpcbind__answers_in_pieces, NULL, tear_down)
{
    begin(DRIBBLES);
    listen_on_loopback();
    start(REGISTRATION_CLAIM, TIME_MS);
    expect(RPCBIND_DONE, 1);
    expect_registered();
}

TEST_WITH(test_rpcbind__hangs_up_or_talks_nonsense, NULL, NULL)
{
    static const struct {
        enum manners manners;
        enum rpcbind_result result;
        uint32_t timeout_ms;
    } cases[] = {{HANGS_UP, RPCBIND_SILENT, TIME_MS},
                 {TALKS_NONSENSE, RPCBIND_GARBLED, TIME_MS},
                 {ANSWERS_OTHERS, RPCBIND_SILENT, 50},
                 {TALKS_TOO_MUCH, RPCBIND_SILENT, TIME_MS},
                 {ALWAYS_REFUSES, RPCBIND_REFUSED, TIME_MS}};
    for (uint32_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        begin(cases[i].manners);
        listen_on_loopback();
        start(REGISTRATION_CLAIM, cases[i].timeout_ms);
        expect(cases[i].result, 1);
        assert_int_equal(t.visitor_count, 1); /* a new connection would meet the same */
        assert_int_equal(t.lost_count, 0);
        end();
    }
}

TEST(test_rpcbind__somebody_else_is_registered)
{
    listen_on_loopback();
    t.table[t.table_len++] = (struct entry){NSM, 1, "tcp", "0.0.0.0.3.4"};
    start(REGISTRATION_CLAIM, TIME_MS);
    expect(RPCBIND_FOREIGN, 1);
    assert_int_equal(t.call_count, 1); /* nothing was changed */
    assert_string_equal(t.table[0].address, "0.0.0.0.3.4");
}

/* One connection for many passes; that it is gone is noticed between them. */
TEST(test_rpcbind__the_connection_is_kept)
{
    listen_on_loopback();
    start(REGISTRATION_CLAIM, TIME_MS);
    expect(RPCBIND_DONE, 1);
    start(REGISTRATION_KEEP, TIME_MS);
    expect(RPCBIND_DONE, 2);
    assert_int_equal(t.visitor_count, 1);
    dismiss(t.visitor);
    UNTIL(t.lost_count == 1);
    t.table_len = 0; /* a new rpcbind knows nothing */
    start(REGISTRATION_KEEP, TIME_MS);
    expect(RPCBIND_DONE, 3);
    expect_registered();
    assert_int_equal(registration_restored(&t.registration), 1);
    assert_int_equal(t.visitor_count, 2);
    start(REGISTRATION_DROP, TIME_MS);
    expect(RPCBIND_DONE, 4);
    assert_int_equal(t.table_len, 0);
    assert_int_equal(t.lost_count, 1);
}

/* Closed while it rested, but we learn of it only in the pass: that is done on another one. */
TEST(test_rpcbind__closed_at_the_wrong_moment)
{
    listen_on_loopback();
    start(REGISTRATION_CLAIM, TIME_MS);
    expect(RPCBIND_DONE, 1);
    dismiss(t.visitor);
    start(REGISTRATION_KEEP, TIME_MS);
    expect(RPCBIND_DONE, 2);
    assert_int_equal(t.visitor_count, 2);
    assert_int_equal(t.lost_count, 0);
    t.manners = HANGS_UP; /* also if it takes the call and then closes; but only once */
    start(REGISTRATION_KEEP, TIME_MS);
    expect(RPCBIND_SILENT, 3);
    assert_int_equal(t.visitor_count, 3);
}

/* Words that nobody asked for end the connection. */
TEST(test_rpcbind__talks_unasked)
{
    listen_on_loopback();
    start(REGISTRATION_CLAIM, TIME_MS);
    expect(RPCBIND_DONE, 1);
    say_record(t.visitor); /* the last answer once more */
    UNTIL(t.lost_count == 1);
    UNTIL(t.visitor == NULL);
    assert_int_equal(t.end_count, 1);
}

/* A pass that is under way is given up without a word, and its answer is not the next one's. */
TEST_WITH(test_rpcbind__begun_again, NULL, tear_down)
{
    begin(SAYS_NOTHING);
    listen_on_loopback();
    start(REGISTRATION_CLAIM, TIME_MS);
    UNTIL(t.call_count == 1);
    t.manners = POLITE;
    start(REGISTRATION_CLAIM, TIME_MS);
    expect(RPCBIND_DONE, 1);
    assert_int_equal(t.visitor_count, 2);
    expect_registered();
    rpcbind_disconnect(t.rpcbind); /* the next one opens another, with the rights we have then */
    start(REGISTRATION_KEEP, TIME_MS);
    expect(RPCBIND_DONE, 2);
    assert_int_equal(t.visitor_count, 3);
    assert_int_equal(t.lost_count, 0);
}

TEST_WITH(test_rpcbind__closed_in_the_middle, NULL, tear_down)
{
    begin(SAYS_NOTHING);
    listen_on_loopback();
    start(REGISTRATION_CLAIM, TIME_MS);
    UNTIL(t.call_count == 1);
    assert_int_equal(t.end_count, 0);
}

/* A /run of its own, so that the machine's rpcbind is not met. */
static bool enter_run(void)
{
    return unshare(CLONE_NEWNS) == 0 && mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
           mount("tmpfs", "/run", "tmpfs", 0, NULL) == 0 &&
           access("/var/run/rpcbind.sock", F_OK) != 0;
}

int main(void)
{
    if (!fake_hosts_enter_network() || !enter_run()) {
        puts("1..0 # SKIP needs a network and a /run of its own (root, or user namespaces)");
        return 0;
    }
    return test_run(set_up, tear_down, NULL, NULL);
}
