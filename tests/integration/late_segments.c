/*
 * late_segments.c -- order holds inside one TCP connection and nowhere else (decision 020).
 *
 * Passing proves, with the kernel's own retransmission in a network namespace:
 *  (1) a GRANTED callback that was written and lost keeps its bytes from everybody else after
 *      CANCEL, and the answer to CANCEL waits: until the callback is answered, when the network
 *      heals in time, or until its connection is reset; after that answer the kernel has nothing of
 *      it left to deliver;
 *  (2) a server that is killed leaves nothing of a callback to its kernel either;
 *  (3) the last byte of a LOCK that arrives, over a connection that its client gave up, when the
 *      lock was granted and released over another one, takes nothing; FREE_ALL and UNLOCK alike.
 *
 * Segments are lost by a filter on the client's socket: it takes the handshake and drops whatever
 * carries data, so that the server's kernel sends it again and again.
 */
#include "callbacks.h"
#include "harness.h"
#include "lock_call.h"

#include <errno.h>
#include <linux/filter.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PATIENCE_MS 30000
#define HOST_A      UINT32_C(0x7f000201)
#define HOST_B      UINT32_C(0x7f000202)
#define HOST_C      UINT32_C(0x7f000203)

enum { PORTMAPPER = 111, SERVICE = 4711, NLM_PROGRAM = 100021, NULL_MS = 1 };

/* The client that is called back: its portmapper, and its lock manager over TCP. */
static struct {
    int portmapper, listener, callback;
} b = {-1, -1, -1};

static uint32_t next_xid = 1000;

static struct lock_call call_of(enum peer_nlm_procedure procedure, const char *name, bool block)
{
    return (struct lock_call){.procedure = procedure,
                              .name = name,
                              .svid = 1,
                              .file = 1,
                              .len = 100,
                              .exclusive = true,
                              .block = block,
                              .state = 3};
}

/* ---- the host that is called back ---- */

/* Drops what carries data; the handshake, FIN and RST pass. */
static void lose_segments(int fd)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_B | BPF_ABS, 12), /* the length of the TCP header, in words */
        BPF_STMT(BPF_ALU | BPF_RSH | BPF_K, 4), BPF_STMT(BPF_ALU | BPF_LSH | BPF_K, 2),
        BPF_STMT(BPF_MISC | BPF_TAX, 0),        BPF_STMT(BPF_LD | BPF_W | BPF_LEN, 0),
        BPF_STMT(BPF_ALU | BPF_SUB | BPF_X, 0), BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, UINT32_MAX),  BPF_STMT(BPF_RET | BPF_K, 0),
    };
    struct sock_fprog program = {.len = sizeof code / sizeof code[0], .filter = code};
    if (setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof program) != 0)
        abort();
}

static void heal(int fd)
{
    int none = 0;
    if (setsockopt(fd, SOL_SOCKET, SO_DETACH_FILTER, &none, sizeof none) != 0)
        abort();
}

static int listen_at(int type, uint16_t port)
{
    struct dial_endpoint at = dial_endpoint_v4(HOST_B, port);
    int fd = socket(AF_INET, type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), on = 1;
    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) != 0 ||
        bind(fd, (const struct sockaddr *)&at.at, at.len) != 0 ||
        (type == SOCK_STREAM && listen(fd, 8) != 0))
        abort();
    return fd;
}

/* GETPORT: NLM is on TCP only. */
static void answer_portmapper(void)
{
    static struct packet question, answer;
    struct dial_endpoint from;
    int len =
        dial_receive_from(b.portmapper, question.bytes, sizeof question.bytes, NULL_MS, &from);
    if (len <= 0)
        return;
    struct packet_reader reader = {question.bytes, (uint32_t)len, false};
    struct packet_call call;
    if (!packet_get_call(&reader, &call) || call.vers != 2 || call.proc != 3)
        return;
    bool is_ours = packet_get_u32(&reader) == NLM_PROGRAM; /* its status monitor is not there */
    (void)packet_get_u32(&reader);
    is_ours = packet_get_u32(&reader) == IPPROTO_TCP && is_ours;
    packet_clear(&answer);
    packet_put_accepted(&answer, call.xid, PACKET_SUCCESS);
    packet_put_u32(&answer, is_ours ? SERVICE : 0);
    (void)sendto(b.portmapper, answer.bytes, answer.len, 0, (const struct sockaddr *)&from.at,
                 from.len);
}

/* Bytes that the server's kernel has not delivered to B's service; -1: it has no such socket. */
static long undelivered(void)
{
    char line[256];
    long found = -1;
    FILE *table = fopen("/proc/net/tcp", "r");
    if (table == NULL)
        abort();
    while (fgets(line, sizeof line, table) != NULL) {
        unsigned remote, remote_port, state;
        unsigned long queued;
        if (sscanf(line, " %*u: %*x:%*x %x:%x %x %lx:", &remote, &remote_port, &state, &queued) ==
                4 &&
            remote_port == SERVICE && remote == htonl(HOST_B))
            found = found < 0 ? (long)queued : found + (long)queued;
    }
    (void)fclose(table);
    return found;
}

/* The callback is written, and lost. */
static bool callback_is_lost(void)
{
    uint64_t until_ns = dial_now_ns() + UINT64_C(1000000) * PATIENCE_MS;
    b.callback = -1;
    while (dial_now_ns() < until_ns) {
        answer_portmapper();
        struct pollfd poller = {.fd = b.listener, .events = POLLIN};
        if (b.callback < 0 && poll(&poller, 1, NULL_MS) == 1)
            b.callback = accept4(b.listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (b.callback >= 0 && undelivered() > 0)
            return true;
    }
    return HARNESS_EXPECT(false, "no callback was written");
}

/* ---- callers ---- */

static int dial(const struct harness_server *server, uint32_t host)
{
    struct dial_route route = harness_route(server, false);
    route.source = dial_endpoint_v4(host, 0);
    return dial_open(&route, PATIENCE_MS);
}

static int status_of(const struct lock_call *call, const struct packet *answer)
{
    struct packet_reply reply;
    return packet_get_reply(answer->bytes, answer->len, &reply)
               ? lock_call_status(call, &reply, NULL)
               : -1;
}

/* One call under this xid on an open connection; its status. */
static int ask_as(int fd, const struct lock_call *call, uint32_t xid)
{
    static struct packet packet, answer;
    struct packet_reply reply;
    lock_call_put(&packet, call);
    packet_set_xid(&packet, xid);
    if (dial_exchange(fd, false, &packet, PATIENCE_MS, &answer, &reply) != 0)
        return -1;
    return call->procedure == PEER_NLM_FREE_ALL ? 0 : status_of(call, &answer);
}

static int ask(int fd, const struct lock_call *call)
{
    return ask_as(fd, call, ++next_xid);
}

static void expect(int status, int wanted, const char *what)
{
    HARNESS_EXPECT(status == wanted, "%s: %s instead of %s", what, lock_call_text(status),
                   lock_call_text(wanted));
}

/* Is there anything to read? */
static bool has_answer(int fd)
{
    struct pollfd poller = {.fd = fd, .events = POLLIN};
    return poll(&poller, 1, 0) == 1;
}

struct story {
    int a, b, c;
    struct lock_call lock_a, lock_b, test_c;
};

/* A had it, B waits for it, and B's callback is lost. */
static bool begin(const struct harness_server *server, struct story *ret)
{
    *ret = (struct story){.a = dial(server, HOST_A),
                          .b = dial(server, HOST_B),
                          .c = dial(server, HOST_C),
                          .lock_a = call_of(PEER_NLM_LOCK, "a", false),
                          .lock_b = call_of(PEER_NLM_LOCK, "b", true),
                          .test_c = call_of(PEER_NLM_TEST, "c", false)};
    struct lock_call unlock = call_of(PEER_NLM_UNLOCK, "a", false);
    expect(ask(ret->a, &ret->lock_a), PEER_NLM_IS_GRANTED, "lock of A");
    expect(ask(ret->b, &ret->lock_b), PEER_NLM_IS_BLOCKED, "lock of B");
    expect(ask(ret->a, &unlock), PEER_NLM_IS_GRANTED, "unlock of A");
    return callback_is_lost();
}

static void end(const struct story *story)
{
    close(story->a);
    close(story->b);
    close(story->c);
    close(b.callback);
}

static void send_cancel(const struct story *story, struct lock_call *ret)
{
    static struct packet packet;
    *ret = call_of(PEER_NLM_CANCEL, "b", true);
    lock_call_put(&packet, ret);
    packet_set_xid(&packet, ++next_xid);
    if (dial_send_record(story->b, packet.bytes, packet.len, PATIENCE_MS) != 0)
        abort();
}

/* The network stays as it is: 5 s later the connection is reset, and then CANCEL is answered. */
static void cancelled_and_lost(const struct harness_server *server)
{
    static struct packet answer;
    struct story story;
    struct lock_call cancel;
    if (!begin(server, &story))
        return;
    send_cancel(&story, &cancel);
    /* C asks until it is its own; up to then B is not answered. */
    uint32_t denied = 0;
    while (ask(story.c, &story.test_c) == PEER_NLM_IS_DENIED && denied < 1000000) {
        denied++;
        (void)usleep(10000);
    }
    HARNESS_EXPECT(denied > 0, "the bytes were free at once");
    HARNESS_EXPECT(undelivered() <= 0, "the bytes are free, and the callback may still arrive");
    HARNESS_EXPECT(dial_receive_record(story.b, &answer, PATIENCE_MS) > 0 &&
                       status_of(&cancel, &answer) == PEER_NLM_IS_GRANTED,
                   "CANCEL was not answered");
    HARNESS_EXPECT(undelivered() <= 0, "CANCEL is answered, and the callback may still arrive");
    uint8_t byte;
    heal(b.callback);
    HARNESS_EXPECT(recv(b.callback, &byte, 1, 0) < 0 && errno == ECONNRESET,
                   "the connection of the callback was not reset");
    /* Who asks again is told to wait, and nothing old can tell it otherwise. */
    struct lock_call lock_c = call_of(PEER_NLM_LOCK, "c", false);
    expect(ask(story.c, &lock_c), PEER_NLM_IS_GRANTED, "lock of C");
    expect(ask(story.b, &story.lock_b), PEER_NLM_IS_BLOCKED, "lock of B again");
    struct lock_call over = call_of(PEER_NLM_CANCEL, "b", true);
    expect(ask(story.b, &over), PEER_NLM_IS_GRANTED, "cancel of B again");
    over = call_of(PEER_NLM_UNLOCK, "c", false);
    expect(ask(story.c, &over), PEER_NLM_IS_GRANTED, "unlock of C");
    end(&story);
}

/* It heals in time: the callback arrives, is answered, and only then is CANCEL. */
static void cancelled_and_healed(const struct harness_server *server)
{
    static struct packet message, answer;
    struct story story;
    struct lock_call cancel;
    if (!begin(server, &story))
        return;
    send_cancel(&story, &cancel);
    expect(ask(story.c, &story.test_c), PEER_NLM_IS_DENIED, "test of C");
    heal(b.callback);
    HARNESS_EXPECT(dial_receive_record(b.callback, &message, PATIENCE_MS) > 0,
                   "the kernel did not send the callback again");
    HARNESS_EXPECT(!has_answer(story.b), "CANCEL was answered before the callback");
    struct packet_reader reader = {message.bytes, message.len, false};
    struct packet_call call;
    static struct peer_nlm_args args;
    static struct peer_nlm_res res;
    if (HARNESS_EXPECT(packet_get_call(&reader, &call) &&
                           peer_nlm_get_args(&reader, call.vers, call.proc, &args),
                       "it cannot be read")) {
        res.cookie = args.cookie;
        res.status = PEER_NLM_IS_DENIED;
        packet_clear(&answer);
        packet_put_accepted(&answer, call.xid, PACKET_SUCCESS);
        peer_nlm_put_res(&answer, call.vers, PEER_NLM_GRANTED, &res);
        (void)dial_send_record(b.callback, answer.bytes, answer.len, PATIENCE_MS);
    }
    HARNESS_EXPECT(dial_receive_record(story.b, &answer, PATIENCE_MS) > 0 &&
                       status_of(&cancel, &answer) == PEER_NLM_IS_GRANTED,
                   "CANCEL was not answered");
    expect(ask(story.c, &story.test_c), PEER_NLM_IS_GRANTED, "test of C when it is over");
    end(&story);
}

/* Also the end of the process is a reset. */
static void killed(struct harness_server *server)
{
    struct story story;
    if (!begin(server, &story))
        return;
    (void)harness_stop(server, SIGKILL);
    HARNESS_EXPECT(undelivered() <= 0, "a dead server's kernel goes on delivering its callback");
    end(&story);
}

/* All of a call but its last byte; that follows when the client has long gone on. */
static void late_last_byte(const struct harness_server *server, const struct lock_call *late,
                           const char *what)
{
    static struct packet packet, answer;
    uint8_t record[PACKET_MAX + 4];
    struct lock_call lock = call_of(PEER_NLM_LOCK, "b", false);
    struct lock_call unlock = call_of(PEER_NLM_UNLOCK, "b", false);
    struct lock_call test = call_of(PEER_NLM_TEST, "c", false);
    bool takes = late->procedure == PEER_NLM_LOCK;
    int first = dial(server, HOST_B), second = dial(server, HOST_B), c = dial(server, HOST_C);
    uint32_t xid = ++next_xid;
    lock_call_put(&packet, late);
    packet_set_xid(&packet, xid);
    uint32_t mark = htonl(UINT32_C(0x80000000) | packet.len);
    memcpy(record, &mark, 4);
    memcpy(record + 4, packet.bytes, packet.len);
    (void)dial_send(first, record, packet.len + 3, PATIENCE_MS);
    expect(ask_as(second, late, xid), PEER_NLM_IS_GRANTED, what);
    expect(ask(second, takes ? &unlock : &lock), PEER_NLM_IS_GRANTED, "what follows it");
    (void)dial_send(first, record + packet.len + 3, 1, PATIENCE_MS);
    if (late->procedure == PEER_NLM_FREE_ALL) {
        struct lock_call other = call_of(PEER_NLM_TEST, "b", false); /* behind it: it was read */
        expect(ask(first, &other), PEER_NLM_IS_GRANTED, "test of B");
    } else {
        HARNESS_EXPECT(dial_receive_record(first, &answer, PATIENCE_MS) > 0, "no answer: %s", what);
        expect(status_of(late, &answer), PEER_NLM_IS_GRACE, what);
    }
    expect(ask(c, &test), takes ? PEER_NLM_IS_GRANTED : PEER_NLM_IS_DENIED, what);
    expect(ask(second, &unlock), PEER_NLM_IS_GRANTED, "the end");
    close(first);
    close(second);
    close(c);
}

int main(void)
{
    harness_init("late_segments");
    if (!callbacks_enter_network()) {
        printf("late_segments: needs a network namespace\n");
        (void)harness_finish();
        return HARNESS_SKIPPED;
    }
    struct harness_server server = {.store = harness_path("store"),
                                    .extra = {"--notify-timeout", "30", NULL}};
    b.portmapper = listen_at(SOCK_DGRAM, PORTMAPPER);
    b.listener = listen_at(SOCK_STREAM, SERVICE);
    lose_segments(b.listener);
    if (!harness_start(&server))
        return harness_finish();
    struct lock_call late = call_of(PEER_NLM_LOCK, "b", false);
    late_last_byte(&server, &late, "a late LOCK");
    late = call_of(PEER_NLM_UNLOCK, "b", false);
    late_last_byte(&server, &late, "a late UNLOCK");
    late = call_of(PEER_NLM_FREE_ALL, "b", false);
    late_last_byte(&server, &late, "a late FREE_ALL");
    cancelled_and_healed(&server);
    cancelled_and_lost(&server);
    killed(&server);
    close(b.portmapper);
    close(b.listener);
    return harness_finish();
}
