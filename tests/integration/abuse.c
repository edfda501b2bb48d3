/*
 * abuse.c -- peers that want memory, descriptors or attention, while honest clients are served.
 *
 * Passing proves (P6, design: "no peer can make memory grow"):
 *  (1) a record mark of 1 GiB, or fragments that add up to more than a record may have, close the
 *      connection and cost nothing;
 *  (2) 2,000 idle connections are held and the server serves others meanwhile;
 *  (3) connections that send one byte per second are neither dropped nor in the way, and get their
 *      answer when their call is complete;
 *  (4) a peer that sends calls and never reads answers is slowed down, not buffered for;
 *  (5) at --max-connections every new connection is served: the one that was silent longest makes
 *      room, one that keeps asking stays;
 *  (6) resident memory is flat: the later rounds of abuse add less than 4 MiB, and all of them less
 *      than 20 MiB to what it was at the start: a peer that begins a call, and one that is
 *      answered, cost what they need and not the longest there may be;
 *  (7) the log grows by at most 200 lines in ten seconds, whatever the number of bad messages;
 *  (8) an honest client, over TCP and UDP in turn, is answered within 5 s all the way.
 *
 * The slow senders and the honest client are processes of their own and live through all of it: at
 * least three rounds and HOLDFAST_ABUSE_SECONDS (8).
 */
#include "harness.h"
#include "peer/peer_nsm.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PATIENCE_MS   30000
#define IDLE_COUNT    2000
#define SLOW_COUNT    20
#define SLOW_BYTES    45 /* a record may take a minute */
#define SLOW_XID      4711
#define ROUNDS_MAX    4096
#define GROWTH_KIB    (4 * 1024)
#define TOTAL_KIB     (20 * 1024)
#define FLOOD_COUNT   20000
#define LOG_LINES_MAX 200 /* in ten seconds */

/* A process beside the test; it ends when its pipe is closed and says in its status how it went. */
struct companion {
    pid_t pid;
    int stop_fd;
};

typedef bool (*companion_fn)(const struct harness_server *server, int stop_fd);

static struct companion start_companion(companion_fn run, const struct harness_server *server)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) < 0) {
        perror("pipe2");
        exit(1);
    }
    fflush(stdout);
    struct companion companion = {.pid = fork(), .stop_fd = ends[1]};
    if (companion.pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        close(ends[1]);
        bool is_good = run(server, ends[0]);
        fflush(stdout);
        _exit(is_good ? 0 : 1);
    }
    close(ends[0]);
    return companion;
}

static bool end_companion(struct companion *companion)
{
    int status = 1;
    close(companion->stop_fd);
    waitpid(companion->pid, &status, 0);
    return status == 0;
}

/* Waits this long, or less when the test wants us to stop. */
static bool must_stop(int stop_fd, int wait_ms)
{
    struct pollfd stop = {.fd = stop_fd, .events = POLLIN};
    return poll(&stop, 1, wait_ms) > 0;
}

static bool run_honest(const struct harness_server *server, int stop_fd)
{
    static struct packet call, answer;
    struct dial_route tcp_route = harness_route(server, false), udp_route = tcp_route;
    udp_route.is_udp = true;
    int fds[2] = {dial_open(&tcp_route, PATIENCE_MS), dial_open(&udp_route, PATIENCE_MS)};
    uint8_t priv[PEER_NSM_PRIV_LEN] = {0};
    struct peer_nsm_id id = {"honest.example", "honest", 100021, 3, 16};
    uint64_t slowest_ns = 0;
    uint32_t calls = 0;
    for (; !must_stop(stop_fd, 5); calls++) {
        struct packet_reply reply;
        uint64_t before_ns = dial_now_ns();
        if (calls / 2 % 2 == 0)
            peer_nsm_put_mon(&call, calls, &id, priv);
        else
            peer_nsm_put_unmon(&call, calls, &id);
        int result =
            dial_exchange(fds[calls % 2], calls % 2 == 1, &call, PATIENCE_MS, &answer, &reply);
        uint64_t took_ns = dial_now_ns() - before_ns;
        slowest_ns = took_ns > slowest_ns ? took_ns : slowest_ns;
        if (result < 0 || !reply.accepted || reply.status != PACKET_SUCCESS) {
            printf("the honest client's call %u over %s: %s\n", calls, calls % 2 ? "UDP" : "TCP",
                   result < 0 ? strerror(-result) : packet_reply_text(&reply));
            return false;
        }
    }
    printf("honest client: %u calls answered, the slowest in %llu ms\n", calls,
           (unsigned long long)(slowest_ns / 1000000));
    return true;
}

/* The rest of the record on each slow connection, and its answer. */
static bool complete_slow(const int *fds, const struct packet *record, uint32_t sent)
{
    static struct packet answer;
    for (uint32_t i = 0; i < SLOW_COUNT; i++) {
        struct packet_reply reply;
        int result = dial_send(fds[i], record->bytes + sent, record->len - sent, PATIENCE_MS);
        if (result == 0)
            result = dial_receive_record(fds[i], &answer, PATIENCE_MS);
        if (result < 0 || !packet_get_reply(answer.bytes, (uint32_t)result, &reply) ||
            reply.xid != SLOW_XID) {
            printf("slow connection %u got no answer: %d\n", i, result);
            return false;
        }
    }
    return true;
}

/* One byte per second on each connection; after 45 of them, or at the end, the rest at once. */
static bool run_slow(const struct harness_server *server, int stop_fd)
{
    static struct packet call, record;
    struct dial_route route = harness_route(server, false);
    int fds[SLOW_COUNT];
    uint32_t sent = 0, sent_in_all = 0;
    bool is_over = false;
    peer_nsm_put_stat(&call, SLOW_XID, "a.name.that.makes.the.call.longer");
    packet_clear(&record);
    packet_put_u32(&record, UINT32_C(0x80000000) | call.len);
    packet_put_bytes(&record, call.bytes, call.len);
    for (uint32_t i = 0; i < SLOW_COUNT; i++)
        fds[i] = dial_open(&route, PATIENCE_MS);
    while (!is_over) {
        for (uint32_t i = 0; i < SLOW_COUNT; i++)
            if (dial_send(fds[i], record.bytes + sent, 1, PATIENCE_MS) < 0) {
                printf("slow connection %u was closed at byte %u\n", i, sent);
                return false;
            }
        sent++;
        sent_in_all++;
        is_over = must_stop(stop_fd, 1000);
        if (is_over || sent == SLOW_BYTES) {
            if (!complete_slow(fds, &record, sent))
                return false;
            sent = 0;
        }
    }
    printf("slow connections: %u, %u bytes at one per second, then answered\n", SLOW_COUNT,
           sent_in_all);
    return true;
}

/* True when the server closes the connection; what it sends before is read and dropped. */
static bool is_closed(int fd)
{
    uint8_t buffer[4096];
    int got;
    do
        got = dial_receive(fd, buffer, sizeof(buffer), PATIENCE_MS);
    while (got > 0);
    return got == 0 || got == -ECONNRESET;
}

static void huge_marks(const struct harness_server *server)
{
    static const uint8_t marks[][8] = {
        {0xc0, 0, 0, 0},             /* last, 1 GiB */
        {0x40, 0, 0, 0},             /* 1 GiB, more to follow */
        {0xff, 0xff, 0xff, 0xff},    /* as large as can be said */
        {0x7f, 0xff, 0xff, 0xff},    /* the same, more to follow */
        {0x80, 0x10, 0, 0},          /* 1 MiB */
        {0, 0, 0, 0, 0xc0, 0, 0, 0}, /* behind an empty fragment */
    };
    for (uint32_t round = 0; round < 50; round++) {
        for (size_t i = 0; i < sizeof(marks) / sizeof(marks[0]); i++) {
            struct dial_route route = harness_route(server, false);
            int fd = dial_open(&route, PATIENCE_MS);
            uint8_t bytes[2048] = {0};
            memcpy(bytes, marks[i], sizeof(marks[i]));
            int result = fd < 0 ? fd : dial_send(fd, bytes, sizeof(bytes), PATIENCE_MS);
            if (!HARNESS_EXPECT(fd >= 0 && (result == 0 || result == -ECONNRESET) && is_closed(fd),
                                "record mark %zu was not refused: %d", i, result))
                return;
            close(fd);
        }
    }
}

/* Fragments of 1,000 bytes, none of them the last, until the record is longer than any call. */
static void endless_fragments(const struct harness_server *server)
{
    for (uint32_t round = 0; round < 20; round++) {
        struct dial_route route = harness_route(server, false);
        uint8_t fragment[1004] = {0, 0, 0x03, 0xe8};
        int result = 0, fd = dial_open(&route, PATIENCE_MS);
        for (uint32_t i = 0; fd >= 0 && result == 0 && i < 100; i++)
            result = dial_send(fd, fragment, sizeof(fragment), PATIENCE_MS);
        HARNESS_EXPECT(fd >= 0 && (result == 0 || result == -ECONNRESET) && is_closed(fd),
                       "100,000 bytes of one record were taken: %d", result);
        close(fd);
    }
}

static bool ask_null(int fd, bool is_udp, uint32_t xid)
{
    static struct packet call, answer;
    struct packet_reply reply;
    peer_nsm_put_null(&call, xid);
    return dial_exchange(fd, is_udp, &call, PATIENCE_MS, &answer, &reply) == 0 &&
           peer_nsm_is_void(&reply);
}

static void idle_connections(const struct harness_server *server)
{
    static int fds[IDLE_COUNT];
    struct dial_route route = harness_route(server, false);
    for (uint32_t i = 0; i < IDLE_COUNT; i++) {
        fds[i] = dial_open(&route, PATIENCE_MS);
        if (!HARNESS_EXPECT(fds[i] >= 0, "idle connection %u: %s", i, strerror(-fds[i])))
            return;
        if (i % 2 == 1) /* half of them begin a call and stop in the middle */
            (void)dial_send(fds[i], "\x80\0\0\x28 half a", 11, PATIENCE_MS);
    }
    for (uint32_t i = 0; i < IDLE_COUNT; i += 2)
        HARNESS_EXPECT(ask_null(fds[i], false, i), "idle connection %u is not served", i);
    for (uint32_t i = 0; i < IDLE_COUNT; i++)
        close(fds[i]);
}

/* Sends calls and reads nothing until the server takes no more for 300 ms. */
static void never_reads(const struct harness_server *server)
{
    static struct packet call, stream;
    uint64_t sent = 0;
    peer_nsm_put_stat(&call, 1, "never.read");
    packet_clear(&stream);
    while (stream.len + call.len + 4 <= PACKET_MAX) {
        packet_put_u32(&stream, UINT32_C(0x80000000) | call.len);
        packet_put_bytes(&stream, call.bytes, call.len);
    }
    struct dial_route route = harness_route(server, false);
    int result = 0, fd = dial_open(&route, PATIENCE_MS);
    for (uint32_t i = 0; fd >= 0 && result == 0 && i < 2000; i++) {
        result = dial_send(fd, stream.bytes, stream.len, 300);
        sent += result == 0 ? stream.len : 0;
    }
    HARNESS_EXPECT(fd >= 0 && (result == -ETIMEDOUT || result == -ECONNRESET),
                   "%llu bytes of calls were taken from a peer that reads nothing (%d)",
                   (unsigned long long)sent, result);
    close(fd);
}

/* Bad calls and different removals, faster than anybody logs them. */
static void flood(const struct harness_server *server)
{
    static struct packet call;
    uint8_t sink[512];
    struct dial_route route = harness_route(server, true);
    int fd = dial_open(&route, PATIENCE_MS);
    struct peer_nsm_id id = {"nobody", "flood", 100021, 3, 16};
    uint8_t priv[PEER_NSM_PRIV_LEN] = {0};
    for (uint32_t i = 0; i < FLOOD_COUNT; i++) {
        if (i % 4 == 0)
            peer_nsm_put_unmon(&call, i, &id);
        else if (i % 4 == 1)
            peer_nsm_put_header(&call, i, (enum peer_nsm_procedure)(i % 100 + 7));
        else if (i % 4 == 2)
            peer_nsm_put_header(&call, i, PEER_NSM_STAT);
        else
            peer_nsm_put_mon(&call, i, &(struct peer_nsm_id){"bad/name\n", "flood", 100021, 3, 16},
                             priv);
        (void)dial_send(fd, call.bytes, call.len, PATIENCE_MS);
        while (recv(fd, sink, sizeof(sink), MSG_DONTWAIT) > 0)
            ;
    }
    close(fd);
}

static void churn(const struct harness_server *server)
{
    struct dial_route route = harness_route(server, false);
    struct linger reset = {.l_onoff = 1};
    for (uint32_t i = 0; i < 1000; i++) {
        int fd = dial_open(&route, PATIENCE_MS);
        if (!HARNESS_EXPECT(fd >= 0, "connection %u: %s", i, strerror(-fd)))
            return;
        if (i % 3 > 0)
            (void)dial_send(fd, "\x80\0\0\x28 half a", i % 3 == 1 ? 3 : 11, PATIENCE_MS);
        if (i % 2 == 0)
            setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
        close(fd);
    }
}

static void all_of_it(struct harness_server *server)
{
    huge_marks(server);
    endless_fragments(server);
    idle_connections(server);
    never_reads(server);
    flood(server);
    churn(server);
    HARNESS_EXPECT(harness_is_alive(server), "the server ended");
}

static uint64_t least(const uint64_t *samples, uint32_t begin, uint32_t end)
{
    uint64_t least = UINT64_MAX;
    for (uint32_t i = begin; i < end; i++)
        least = samples[i] < least ? samples[i] : least;
    return least;
}

static void test_abuse(void)
{
    struct harness_server server = {.listen = "127.0.0.1", .store = harness_path("store")};
    if (!harness_start(&server))
        return;
    uint64_t at_start = harness_rss_kib(&server);
    static uint64_t samples[ROUNDS_MAX];
    uint64_t start_ns = dial_now_ns(), wanted_ms, took_ms = 0;
    uint32_t round = 0;
    wanted_ms = (uint64_t)harness_number("HOLDFAST_ABUSE_SECONDS", 8) * 1000;
    struct companion honest = start_companion(run_honest, &server);
    struct companion slow = start_companion(run_slow, &server);
    while (round < 8 || (took_ms < wanted_ms && round < ROUNDS_MAX)) {
        all_of_it(&server);
        samples[round++] = harness_rss_kib(&server);
        took_ms = (dial_now_ns() - start_ns) / 1000000;
    }
    HARNESS_EXPECT(end_companion(&slow), "slow connections were not served");
    HARNESS_EXPECT(end_companion(&honest), "the honest client was not served");
    /* The heap grows to what the most peers at a time need, and keeps that: how soon depends on how
     * busy the machine is. What leaks goes on growing. So the least of the last quarter of the
     * rounds is held against the least of the second; the least, because a sample may catch
     * buffers of peers that the server has not seen leave yet. */
    uint64_t before = least(samples, round / 4, round / 2);
    uint64_t later = least(samples, round - round / 4, round);
    uint32_t lines = harness_log_lines(&server);
    printf("%u rounds in %llu ms; resident: %llu KiB at start, %llu KiB at the least in the second "
           "quarter, %llu KiB in the last; %u log lines\n",
           round, (unsigned long long)took_ms, (unsigned long long)at_start,
           (unsigned long long)before, (unsigned long long)later, lines);
    bool is_sanitized = harness_number("HOLDFAST_SANITIZED", 0) != 0;
    if (is_sanitized)
        puts("not shown: memory, because a sanitizer keeps what was freed");
    HARNESS_EXPECT(is_sanitized || later < before + GROWTH_KIB, "memory grew from %llu to %llu KiB",
                   (unsigned long long)before, (unsigned long long)later);
    uint64_t most = 0;
    for (uint32_t i = 0; i < round; i++)
        most = samples[i] > most ? samples[i] : most;
    HARNESS_EXPECT(is_sanitized || most < at_start + TOTAL_KIB,
                   "memory grew from %llu to %llu KiB in all", (unsigned long long)at_start,
                   (unsigned long long)most);
    HARNESS_EXPECT(lines > 1, "nothing of it is in the log");
    HARNESS_EXPECT(lines <= LOG_LINES_MAX * (took_ms / 10000 + 1), "%u log lines", lines);
    HARNESS_EXPECT(harness_stop(&server, SIGTERM) == 0, "SIGTERM");
}

/* Whether the server has closed it, seen without waiting. */
static bool was_closed(int fd)
{
    uint8_t byte;
    ssize_t got = recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    return got == 0 || (got < 0 && errno != EAGAIN);
}

static void test_connection_limit(void)
{
    enum { MAX = 50, TRIED = 120 };
    int fds[TRIED];
    uint32_t closed = 0;
    struct harness_server server = {
        .listen = "127.0.0.1", .store = harness_path("few"), .extra = {"--max-connections", "50"}};
    if (!harness_start(&server))
        return;
    struct dial_route route = harness_route(&server, false);
    int busy = dial_open(&route, PATIENCE_MS);
    for (uint32_t i = 0; i < TRIED; i++) {
        fds[i] = dial_open(&route, PATIENCE_MS);
        HARNESS_EXPECT(fds[i] >= 0 && ask_null(fds[i], false, i), "connection %u", i);
        HARNESS_EXPECT(ask_null(busy, false, i), "the busy connection at connection %u", i);
    }
    for (uint32_t i = 0; i < TRIED; i++)
        closed += was_closed(fds[i]);
    HARNESS_EXPECT(closed == TRIED + 1 - MAX, "%u of %d idle connections were closed", closed,
                   TRIED);
    for (uint32_t i = TRIED - MAX / 2; i < TRIED; i++)
        HARNESS_EXPECT(ask_null(fds[i], false, i), "connection %u, one of the newest", i);
    for (uint32_t i = 0; i < TRIED; i++)
        close(fds[i]);
    close(busy);
    HARNESS_EXPECT(harness_stop(&server, SIGTERM) == 0, "SIGTERM");
}

int main(void)
{
    struct rlimit files;
    if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
        files.rlim_cur = files.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &files);
        if (files.rlim_cur < IDLE_COUNT + 500) {
            puts("SKIP abuse: fewer than 2,500 open files are allowed here (ulimit -n)");
            return HARNESS_SKIPPED;
        }
    }
    harness_init("abuse");
    test_abuse();
    test_connection_limit();
    return harness_finish();
}
