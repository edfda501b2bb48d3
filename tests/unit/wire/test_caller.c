/*
 * test_caller.c -- the sockets of outgoing calls against hosts on 127.x.y.z (fake_hosts.h): over
 * TCP and UDP, refused, silent, lost, dribbled, flooded; from the right address and port; thousands
 * at once; nothing left open afterwards, and with a shared store nothing left to the kernel.
 *
 * The test turns the loop as the daemon's driver does. It needs a network of its own, for port 111;
 * where that is not allowed it is skipped.
 */
#include "base/units.h"
#include "fake_hosts.h"
#include "unit/test.h"
#include "wire/caller.h"
#include "wire/sockaddr.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <linux/capability.h>

enum { ATTEMPTS_MAX = 4096, CONNECTIONS_MAX = 500, PATIENCE_S = 60 };

static struct {
    uv_loop_t loop;
    uv_check_t turn;
    struct clock clock;
    struct lease lease;
    struct rpc_client *client;
    struct caller *caller;
    struct fake_hosts *hosts;
    uint32_t result_count;
    struct client_result results[ATTEMPTS_MAX]; /* by id */
    bool has_result[ATTEMPTS_MAX];
} t;

static void on_turn(uv_check_t *check)
{
    (void)check;
    struct client_result result;
    while (rpc_client_next_result(t.client, &result)) {
        assert_in_range(result.id, 0, ATTEMPTS_MAX - 1);
        assert_false(t.has_result[result.id]);
        t.has_result[result.id] = true;
        t.results[result.id] = result;
        t.result_count++;
    }
    caller_turn(t.caller);
    clock_turn_over(&t.clock);
}

static void begin(uint16_t source_port_low, uint16_t source_port_high)
{
    struct rpc_client_limits limits = {.attempts_max = ATTEMPTS_MAX,
                                       .connections_max = CONNECTIONS_MAX,
                                       .bytes_max = UINT64_C(16) << 20,
                                       .lease = &t.lease};
    struct caller_options options = {.source_port_low = source_port_low,
                                     .source_port_high = source_port_high};
    t.clock = (struct clock){0};
    t.lease = (struct lease){0};
    t.result_count = 0;
    for (uint32_t i = 0; i < ATTEMPTS_MAX; i++)
        t.has_result[i] = false;
    assert_int_equal(uv_loop_init(&t.loop), 0);
    t.client = rpc_client_new(&limits, 1, 2);
    t.caller = caller_new(&t.loop, t.client, &t.clock, &options);
    assert_non_null(t.caller);
    t.hosts = fake_hosts_new(&t.loop);
    assert_int_equal(uv_check_init(&t.loop, &t.turn), 0);
    assert_int_equal(uv_check_start(&t.turn, on_turn), 0);
}

static void end(void)
{
    for (uint32_t id = 0; id < ATTEMPTS_MAX; id++)
        rpc_client_cancel(t.client, id);
    while (rpc_client_count(t.client) > 0)
        caller_turn(t.caller);
    caller_close(t.caller);
    uv_close((uv_handle_t *)&t.turn, NULL);
    fake_hosts_close(t.hosts);
    /* The hosts' ends of our connections close when they see ours closed. */
    assert_int_equal(uv_run(&t.loop, UV_RUN_DEFAULT), 0);
    assert_int_equal(t.hosts->open_count, 0);
    assert_int_equal(uv_loop_close(&t.loop), 0);
    assert_int_equal(rpc_client_count(t.client), 0);
    rpc_client_check(t.client);
    caller_free(t.caller);
    rpc_client_free(t.client);
    fake_hosts_free(t.hosts);
}

struct how {
    struct address local;
    uint16_t port_hint;
    bool is_privileged;
};

static void start_how(uint64_t id, struct address to, struct how how, uint32_t budget_ms)
{
    uint8_t argument[8] = {0};
    store_be32(argument, (uint32_t)id);
    uint64_t now_ns = clock_now_ns(&t.clock);
    struct client_attempt attempt = {
        .id = id,
        .to = to,
        .local = how.local,
        .prog = FAKE_PROG,
        .vers = FAKE_VERS,
        .proc = FAKE_PROC,
        .port_hint = how.port_hint,
        .is_privileged = how.is_privileged,
        .message_count = 1,
        .messages = {{argument, sizeof argument}},
        .deadline_ns = now_ns + budget_ms * MS_NS,
    };
    assert_true(rpc_client_start(t.client, &attempt, now_ns));
}

static void start_from(uint64_t id, struct address to, struct address local, uint16_t port_hint,
                       uint32_t budget_ms)
{
    start_how(id, to, (struct how){.local = local, .port_hint = port_hint}, budget_ms);
}

static void start_privileged(uint64_t id, struct address to, uint32_t budget_ms)
{
    start_how(id, to, (struct how){.is_privileged = true}, budget_ms);
}

static void start(uint64_t id, struct address to, uint32_t budget_ms)
{
    start_from(id, to, (struct address){0}, 0, budget_ms);
}

/* Turns the loop until this many attempts have ended. */
static void wait_for_results(uint32_t count)
{
    time_t until = time(NULL) + PATIENCE_S;
    caller_turn(t.caller);
    while (t.result_count < count) {
        assert_true(time(NULL) < until);
        (void)uv_run(&t.loop, UV_RUN_ONCE);
    }
    rpc_client_check(t.client);
}

static void expect(uint64_t id, enum client_outcome outcome)
{
    assert_true(t.has_result[id]);
    assert_int_equal(t.results[id].outcome, outcome);
    assert_int_equal(t.results[id].answered_count, outcome == CLIENT_ANSWERED);
}

/* The one call that this host got. */
static const struct fake_call *only_call(struct address host)
{
    assert_int_equal(fake_hosts_calls(t.hosts, &host), 1);
    for (uint32_t i = 0; i < t.hosts->call_count; i++)
        if (address_equal(&t.hosts->calls[i].host, &host))
            return &t.hosts->calls[i];
    return NULL;
}

TEST_FIXTURE(set_up)
{
    begin(0, 0);
}

TEST_FIXTURE(tear_down)
{
    end();
}

TEST(test_caller__over_tcp_and_udp)
{
    start(1, fake_host(FAKE_TCP, 1), 5000);
    start(2, fake_host(FAKE_UDP, 1), 5000);
    wait_for_results(2);
    expect(1, CLIENT_ANSWERED);
    expect(2, CLIENT_ANSWERED);
    const struct fake_call *call = only_call(fake_host(FAKE_TCP, 1));
    assert_false(call->is_udp);
    assert_int_equal(call->argument, 1);
    assert_int_equal(call->args_len, 8);
    call = only_call(fake_host(FAKE_UDP, 1));
    assert_true(call->is_udp);
    assert_int_equal(call->argument, 2);
}

/* R-NOTIFY-1: look-ups and calls leave from the address that the host knows. */
TEST(test_caller__from_the_address_given)
{
    struct address local = fake_host(FAKE_KINDS, 77);
    const enum fake_kind kinds[] = {FAKE_TCP, FAKE_UDP, FAKE_LOOKUP_TCP};
    for (uint32_t i = 0; i < 3; i++) {
        start_from(i, fake_host(kinds[i], 2), local, 0, 5000);
        wait_for_results(i + 1);
        expect(i, CLIENT_ANSWERED);
        assert_true(address_equal(&t.hosts->last_asker, &local));
        assert_true(address_equal(&only_call(fake_host(kinds[i], 2))->from, &local));
    }
}

/* Not from elsewhere when the address is not ours, over any transport. */
TEST(test_caller__an_address_that_is_not_ours)
{
    struct address elsewhere = address_v4((const uint8_t[]){192, 0, 2, 1});
    const uint8_t loopback6[16] = {[15] = 1};
    start_from(1, fake_host(FAKE_TCP, 3), elsewhere, 0, 700);
    start_from(2, fake_host(FAKE_TCP, 4), address_v6(loopback6, NULL), FAKE_TCP_PORT, 700);
    start_from(3, fake_host(FAKE_TCP, 5), elsewhere, FAKE_TCP_PORT, 2500);
    start(4, fake_host(FAKE_TCP, 6), 5000); /* the others do not disturb it */
    wait_for_results(4);
    expect(1, CLIENT_UNDELIVERED);
    expect(2, CLIENT_UNDELIVERED);
    expect(3, CLIENT_UNDELIVERED);
    expect(4, CLIENT_ANSWERED);
    assert_int_equal(t.hosts->call_count, 1);
    assert_int_equal(t.hosts->question_count, 1);
}

TEST(test_caller__refused)
{
    start(1, fake_host(FAKE_REFUSES, 1), 1200);
    start(2, fake_host(FAKE_NOT_REGISTERED, 1), 1200);
    start_from(3, fake_host(FAKE_NOT_REGISTERED, 2), (struct address){0}, FAKE_TCP_PORT, 5000);
    wait_for_results(3);
    expect(1, CLIENT_UNDELIVERED);
    expect(2, CLIENT_UNDELIVERED);
    expect(3, CLIENT_ANSWERED);
    /* Looked up again every 500 ms, twice each time where nothing is registered. */
    assert_in_range(t.hosts->question_count, 3 + 6 + 2 - 3, 3 + 6 + 2);
}

/* The datagram may have been delivered, even if the network says otherwise (D13). */
TEST(test_caller__udp_port_where_nobody_listens)
{
    start(1, fake_host(FAKE_REFUSES_UDP, 1), 2000);
    wait_for_results(1);
    expect(1, CLIENT_UNKNOWN);
    /* It was told at once, and looked up again: without that there would be two questions. */
    assert_in_range(t.hosts->question_count, 4, 8);
}

/* Without a portmapper the host says so, over IPv6 too: the hint is tried long before 2 s. */
TEST(test_caller__no_portmapper)
{
    const uint8_t loopback6[16] = {[15] = 1};
    struct address host = address_v6(loopback6, NULL);
    start_from(1, host, host, FAKE_HINT_V6, 1900);
    wait_for_results(1);
    expect(1, CLIENT_ANSWERED);
    assert_true(address_equal(&only_call(host)->from, &host));
}

TEST(test_caller__silent_portmappers)
{
    start(1, fake_host(FAKE_LOOKUP_TCP, 1), 5000);
    start_from(2, fake_host(FAKE_SILENT, 1), (struct address){0}, FAKE_TCP_PORT, 5000);
    start(3, fake_host(FAKE_SILENT, 2), 1500);
    wait_for_results(3);
    expect(1, CLIENT_ANSWERED);
    expect(2, CLIENT_ANSWERED);
    expect(3, CLIENT_UNDELIVERED);
}

TEST(test_caller__lost_connections)
{
    start(1, fake_host(FAKE_HANGS_UP, 1), 5000); /* called again after the loss */
    wait_for_results(1);
    expect(1, CLIENT_ANSWERED);
    struct address host = fake_host(FAKE_HANGS_UP, 1);
    assert_int_equal(fake_hosts_calls(t.hosts, &host), 2);

    start(2, fake_host(FAKE_HANGS_UP, 2), 1200); /* every time */
    start(3, fake_host(FAKE_NEVER_ANSWERS, 1), 1200);
    wait_for_results(3);
    expect(2, CLIENT_UNKNOWN);
    expect(3, CLIENT_UNKNOWN);
}

TEST(test_caller__answers_in_pieces_and_floods)
{
    start(1, fake_host(FAKE_DRIBBLES, 1), 5000);
    start(2, fake_host(FAKE_FLOODS, 1), 1200);
    wait_for_results(2);
    expect(1, CLIENT_ANSWERED);
    expect(2, CLIENT_UNKNOWN);
    struct address host = fake_host(FAKE_FLOODS, 1);
    assert_in_range(fake_hosts_calls(t.hosts, &host), 2, 3); /* cut off, and tried again */
}

TEST(test_caller__udp_calls_are_repeated)
{
    start(1, fake_host(FAKE_TOO_LATE, 1), 10000);
    wait_for_results(1);
    expect(1, CLIENT_ANSWERED);
    assert_int_equal(t.hosts->call_count, 3);
    assert_int_equal(t.hosts->calls[0].from_port, t.hosts->calls[2].from_port);
}

TEST(test_caller__cancelled)
{
    start(1, fake_host(FAKE_NEVER_ANSWERS, 1), 60000);
    start(2, fake_host(FAKE_TCP, 1), 60000);
    wait_for_results(1);
    while (t.hosts->call_count < 2)
        (void)uv_run(&t.loop, UV_RUN_ONCE);
    rpc_client_cancel(t.client, 1);
    caller_turn(t.caller);
    while (t.hosts->open_count > 0)
        (void)uv_run(&t.loop, UV_RUN_ONCE);
    assert_int_equal(t.result_count, 1);
    expect(2, CLIENT_ANSWERED);
    /* What was answered is closed; what was not, the kernel must not deliver later. */
    assert_int_equal(t.hosts->reset_count, 1);
}

/* Time is up, or nobody needs it any more: aborted, and told only then. */
TEST(test_caller__unanswered_is_aborted)
{
    start(1, fake_host(FAKE_NEVER_ANSWERS, 1), 300);
    start(2, fake_host(FAKE_NEVER_ANSWERS, 2), 60000);
    caller_turn(t.caller);
    while (t.hosts->call_count < 2)
        (void)uv_run(&t.loop, UV_RUN_ONCE);
    uint64_t now_ns = clock_now_ns(&t.clock);
    rpc_client_finish(t.client, 2, now_ns + 200 * MS_NS, now_ns);
    wait_for_results(2);
    expect(1, CLIENT_UNKNOWN);
    expect(2, CLIENT_UNKNOWN);
    while (t.hosts->open_count > 0)
        (void)uv_run(&t.loop, UV_RUN_ONCE);
    assert_int_equal(t.hosts->reset_count, 2);
}

/* --source-ports: every call from the range, though one of its ports is taken by somebody. */
/* What our socket to this host allows the kernel to wait for it, in milliseconds; -1: no socket. */
static int unacknowledged_ms(struct address host)
{
    for (int fd = 3; fd < 1024; fd++) {
        struct sockaddr_storage at;
        socklen_t at_len = sizeof at, value_len = sizeof(int);
        uint16_t port;
        int value = -1;
        if (getpeername(fd, (struct sockaddr *)&at, &at_len) != 0)
            continue;
        struct address peer = sockaddr_address((const struct sockaddr *)&at, &port);
        if (address_equal(&peer, &host) &&
            getsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &value, &value_len) == 0)
            return value;
    }
    return -1;
}

/* With a shared store no kernel keeps a call for a host that does not hear it: it would reach it
 * when another server has taken over. */
TEST(test_caller__nothing_waits_in_the_kernel)
{
    start(1, fake_host(FAKE_NEVER_ANSWERS, 1), 60000);
    caller_turn(t.caller);
    while (t.hosts->call_count < 1)
        (void)uv_run(&t.loop, UV_RUN_ONCE);
    assert_int_equal(unacknowledged_ms(fake_host(FAKE_NEVER_ANSWERS, 1)), 0);
    t.lease.is_shared = true;
    lease_renew(&t.lease, clock_boot_ns());
    start(2, fake_host(FAKE_NEVER_ANSWERS, 2), 60000);
    start_privileged(3, fake_host(FAKE_NEVER_ANSWERS, 3), 60000);
    caller_turn(t.caller);
    while (t.hosts->call_count < 3)
        (void)uv_run(&t.loop, UV_RUN_ONCE);
    assert_int_equal(unacknowledged_ms(fake_host(FAKE_NEVER_ANSWERS, 2)), LEASE_KEPT_MS);
    assert_int_equal(unacknowledged_ms(fake_host(FAKE_NEVER_ANSWERS, 3)), LEASE_KEPT_MS);
}

TEST_WITH(test_caller__from_a_range_of_ports, NULL, tear_down)
{
    begin(20000, 20004);
    struct address any = {.family = 4};
    struct sockaddr_storage at;
    int fds[2];
    for (uint32_t i = 0; i < 2; i++) {
        fds[i] = socket(AF_INET, i == 0 ? SOCK_STREAM : SOCK_DGRAM, 0);
        assert_true(fds[i] >= 0);
        socklen_t at_len = sockaddr_of(&any, (uint16_t)(i == 0 ? 20002 : 20000), &at);
        assert_int_equal(bind(fds[i], (const struct sockaddr *)&at, at_len), 0);
    }
    assert_int_equal(listen(fds[0], 1), 0);
    for (uint32_t i = 0; i < 60; i++) /* more than there are ports */
        start_from(i, fake_host(FAKE_TCP, i + 1), fake_host(FAKE_KINDS, 1), 0, 10000);
    start_from(60, fake_host(FAKE_UDP, 1), fake_host(FAKE_KINDS, 1), 0, 10000);
    wait_for_results(61);
    bool seen[5] = {false};
    for (uint32_t i = 0; i < 61; i++) {
        expect(i, CLIENT_ANSWERED);
        const struct fake_call *call = &t.hosts->calls[i];
        assert_in_range(call->from_port, 20000, 20004);
        if (call->is_udp)
            assert_int_equal(call->from_port, 20001); /* 20000 was taken */
        else
            seen[call->from_port - 20000] = true;
    }
    for (uint32_t i = 0; i < 5; i++)
        assert_int_equal(seen[i], i != 2);
    assert_int_equal(t.hosts->last_asker_port, 20001);
    (void)close(fds[0]);
    (void)close(fds[1]);
}

/* A range of one port, and many calls to one host: they come one after the other. */
TEST_WITH(test_caller__too_few_ports, NULL, tear_down)
{
    begin(20010, 20010);
    for (uint32_t i = 0; i < 3; i++)
        start_from(i, fake_host(FAKE_NEVER_ANSWERS, 1), fake_host(FAKE_KINDS, 1), 0, 1500);
    wait_for_results(3);
    uint32_t unknown = 0, undelivered = 0;
    for (uint32_t i = 0; i < 3; i++) {
        unknown += t.results[i].outcome == CLIENT_UNKNOWN;
        undelivered += t.results[i].outcome == CLIENT_UNDELIVERED;
    }
    assert_int_equal(unknown, 1);
    assert_int_equal(undelivered, 2);
}

enum { PRIVILEGED_LOW = 512, PRIVILEGED_END = 1024 };

static bool is_privileged(const struct fake_call *call)
{
    return call->from_port >= PRIVILEGED_LOW && call->from_port < PRIVILEGED_END;
}

/*
 * R-NOTIFY-3: the calls that ask for it come from a privileged port, over TCP and UDP, IPv4 and
 * IPv6. Look-ups do not, and neither do calls to registrants (D3), not even from root.
 */
TEST(test_caller__from_a_privileged_port)
{
    const uint8_t loopback6[16] = {[15] = 1};
    struct address host6 = address_v6(loopback6, NULL);
    struct how over6 = {.local = host6, .port_hint = FAKE_HINT_V6, .is_privileged = true};
    const enum fake_kind kinds[] = {FAKE_TCP, FAKE_UDP, FAKE_LOOKUP_TCP};
    start_how(0, host6, over6, 5000);
    for (uint32_t i = 0; i < 3; i++) {
        start_privileged(1 + i, fake_host(kinds[i], 1), 5000);
        start(4 + i, fake_host(kinds[i], 2), 5000);
    }
    wait_for_results(7);
    for (uint32_t i = 0; i < 7; i++)
        expect(i, CLIENT_ANSWERED);
    assert_true(is_privileged(only_call(host6)));
    for (uint32_t i = 0; i < 3; i++) {
        assert_true(is_privileged(only_call(fake_host(kinds[i], 1))));
        assert_in_range(only_call(fake_host(kinds[i], 2))->from_port, PRIVILEGED_END, UINT16_MAX);
    }
    assert_in_range(t.hosts->last_asker_port, PRIVILEGED_END, UINT16_MAX);
}

/* More calls than there are such ports, at once: those to different hosts share them. */
TEST(test_caller__privileged_ports_are_shared)
{
    uint32_t count = 700;
    for (uint32_t i = 0; i < count; i++)
        start_how(i, fake_host(FAKE_TCP, i),
                  (struct how){.local = fake_host(FAKE_KINDS, i % 3), .is_privileged = true},
                  20000);
    wait_for_results(count);
    for (uint32_t i = 0; i < count; i++) {
        struct address local = fake_host(FAKE_KINDS, i % 3);
        const struct fake_call *call = only_call(fake_host(FAKE_TCP, i));
        assert_true(is_privileged(call));
        assert_true(address_equal(&call->from, &local));
    }
}

/* --source-ports wins. */
TEST_WITH(test_caller__a_range_of_ports_goes_before_privileged_ones, NULL, tear_down)
{
    begin(20020, 20024);
    start_privileged(1, fake_host(FAKE_TCP, 1), 5000);
    start_privileged(2, fake_host(FAKE_UDP, 1), 5000);
    wait_for_results(2);
    assert_in_range(only_call(fake_host(FAKE_TCP, 1))->from_port, 20020, 20024);
    assert_in_range(only_call(fake_host(FAKE_UDP, 1))->from_port, 20020, 20024);
}

static void expect_any_port(void)
{
    start_privileged(1, fake_host(FAKE_TCP, 1), 5000);
    start_privileged(2, fake_host(FAKE_UDP, 1), 5000);
    wait_for_results(2);
    expect(1, CLIENT_ANSWERED);
    expect(2, CLIENT_ANSWERED);
    assert_in_range(only_call(fake_host(FAKE_TCP, 1))->from_port, PRIVILEGED_END, UINT16_MAX);
    assert_in_range(only_call(fake_host(FAKE_UDP, 1))->from_port, PRIVILEGED_END, UINT16_MAX);
}

/* Takes a port on all addresses; what is left of old connections is no obstacle. */
static int occupy(int type, uint16_t port)
{
    int fd = socket(AF_INET, type | SOCK_CLOEXEC, 0), on = type == SOCK_STREAM;
    assert_true(fd >= 0);
    assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on), 0);
    struct sockaddr_storage at;
    socklen_t at_len = sockaddr_of(&(struct address){.family = 4}, port, &at);
    assert_int_equal(bind(fd, (const struct sockaddr *)&at, at_len), 0);
    if (type == SOCK_STREAM)
        assert_int_equal(listen(fd, 1), 0);
    return fd;
}

/* All of them but one are taken: that one is found. Then that one too: any port. */
TEST(test_caller__no_privileged_port_is_free)
{
    enum { FREE_ONE = 700 };
    static int streams[PRIVILEGED_END], datagrams[PRIVILEGED_END];
    for (uint16_t port = PRIVILEGED_LOW; port < PRIVILEGED_END; port++) {
        datagrams[port] = occupy(SOCK_DGRAM, port);
        if (port != FREE_ONE)
            streams[port] = occupy(SOCK_STREAM, port);
    }
    start_privileged(3, fake_host(FAKE_TCP, 3), 5000);
    wait_for_results(1);
    assert_int_equal(only_call(fake_host(FAKE_TCP, 3))->from_port, FREE_ONE);
    streams[FREE_ONE] = occupy(SOCK_STREAM, FREE_ONE);
    t.result_count = 0;
    expect_any_port();
    for (uint16_t port = PRIVILEGED_LOW; port < PRIVILEGED_END; port++) {
        assert_int_equal(close(streams[port]), 0);
        assert_int_equal(close(datagrams[port]), 0);
    }
}

/* Without the right to bind one the call is made all the same. */
TEST(test_caller__no_privileged_port_is_allowed)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = {0};
    const uint32_t right = UINT32_C(1) << CAP_NET_BIND_SERVICE;
    /* the portmapper's own port needs the right */
    assert_int_equal(syscall(SYS_capget, &header, data), 0);
    assert_true(data[0].effective & right);
    data[0].effective &= ~right;
    assert_int_equal(syscall(SYS_capset, &header, data), 0);
    expect_any_port();
    data[0].effective |= right;
    assert_int_equal(syscall(SYS_capset, &header, data), 0);
}

/* Our acknowledgement of the connection leaves with the call: the host wakes up once for both. */
TEST(test_caller__a_connection_comes_with_its_call)
{
    for (uint32_t i = 0; i < 20; i++)
        start(i, fake_host(FAKE_TCP, i), 5000);
    wait_for_results(20);
    /* Not all: the kernel acknowledges by itself when this process is kept from running. */
    assert_in_range(t.hosts->laden_count, 1, 20);
}

/* An answer that comes together with the end is an answer, and its connection no failure. */
TEST(test_caller__answers_and_ends_at_once)
{
    start(1, fake_host(FAKE_ENDS, 1), 5000);
    wait_for_results(1);
    expect(1, CLIENT_ANSWERED);
    (void)only_call(fake_host(FAKE_ENDS, 1));
    while (t.hosts->open_count > 0)
        (void)uv_run(&t.loop, UV_RUN_ONCE);
    assert_int_equal(t.hosts->reset_count, 0);
}

/* An answer that is cut off is none, and that is known at once: the call is made again. */
TEST(test_caller__an_answer_cut_off)
{
    struct address host = fake_host(FAKE_CUTS, 1);
    start(1, host, 1700);
    wait_for_results(1);
    expect(1, CLIENT_UNKNOWN);
    assert_in_range(fake_hosts_calls(t.hosts, &host), 2, 4);
}

/* All at once, with fewer connections than calls; each host is called exactly once. */
TEST(test_caller__two_thousand_at_once)
{
    uint32_t count = 2000;
    for (uint32_t i = 0; i < count; i++)
        start_from(i, fake_host(i % 4 == 3 ? FAKE_UDP : FAKE_TCP, i), fake_host(FAKE_KINDS, i % 7),
                   0, 20000);
    wait_for_results(count);
    for (uint32_t i = 0; i < count; i++) {
        expect(i, CLIENT_ANSWERED);
        const struct fake_call *call = only_call(fake_host(i % 4 == 3 ? FAKE_UDP : FAKE_TCP, i));
        struct address local = fake_host(FAKE_KINDS, i % 7);
        assert_int_equal(call->argument, i);
        assert_true(address_equal(&call->from, &local));
    }
}

/* Many that refuse and many that are silent do not keep the others from being called. */
TEST(test_caller__among_dead_hosts)
{
    for (uint32_t i = 0; i < 600; i++)
        start(i, fake_host(i % 2 == 0 ? FAKE_REFUSES : FAKE_REFUSES_UDP, i), 2000);
    for (uint32_t i = 600; i < 1200; i++)
        start(i, fake_host(FAKE_SILENT, i), 2000);
    for (uint32_t i = 1200; i < 1300; i++)
        start(i, fake_host(FAKE_TCP, i), 20000);
    wait_for_results(1300);
    for (uint32_t i = 0; i < 1300; i++)
        expect(i, i >= 1200                ? CLIENT_ANSWERED
                  : i >= 600 || i % 2 == 0 ? CLIENT_UNDELIVERED
                                           : CLIENT_UNKNOWN);
}

int main(void)
{
    struct rlimit files;
    if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
        files.rlim_cur = files.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &files);
    }
    if (!fake_hosts_enter_network()) {
        puts("1..0 # SKIP needs a network namespace of its own, for port 111 (root, or user "
             "namespaces)");
        return 0;
    }
    return test_run(set_up, tear_down, NULL, NULL);
}
