/*
 * traffic.c -- the load generator of the bench, and the judge of every answer.
 *
 * usage: traffic KIND PORT [name=value...]
 *
 * KIND is null, stat, churn (SM_MON of new keys and SM_UNMON of old ones, in turns) or fill (SM_MON
 * of the first `registered` keys, once). A closed loop: `connections` TCP connections from
 * 127.0.0.1 with `in_flight` calls each; what was answered together is replaced together, in one
 * write. For `milliseconds` new calls leave; answers that come later are judged but not counted as
 * speed. It waits `drain` milliseconds for them.
 *
 * Every answer must have the mark, the xid of a call in flight on that connection, and the result
 * that its procedure has: SUCCESS without a result for NULL; STAT_SUCC and the state for SM_STAT
 * and SM_MON; the state for SM_UNMON. The state is `state`, or the one of the first answer if that
 * is 0. `void=1` is for the raw echo: every answer is SUCCESS without a result.
 *
 * It prints one line of numbers for the bench, and the first wrong answer in words. Exit 1 when an
 * answer was wrong or missing.
 */
#include "bench/keys.h"
#include "peer/dial.h"
#include "peer/peer_nsm.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#define CONNECTIONS_MAX 256
#define IN_FLIGHT_MAX   64 /* a power of two: the low bits of an xid are its slot */
#define INPUT_MAX       16384
#define OUTPUT_MAX      16384
#define MARK_LAST       UINT32_C(0x80000000)
#define REPLY_HEAD_LEN  24 /* an accepted answer with an empty verifier, up to its result */
#define REPLY_MAX       (REPLY_HEAD_LEN + 8)
#define CONNECT_MS      5000
#define STALL_MS        1000
#define BUCKETS         (64 * 8)

enum kind { KIND_NULL, KIND_STAT, KIND_CHURN, KIND_FILL };

static const char *const kind_names[] = {"null", "stat", "churn", "fill"};

/* What an answer looks like behind its xid. */
enum shape { SHAPE_VOID, SHAPE_STAT_RES, SHAPE_STAT, SHAPE_COUNT };

struct slot {
    uint32_t xid; /* 0: free */
    enum shape shape;
    uint64_t sent_ns;
};

struct connection {
    int fd;
    uint32_t sequence, free_count, out_len, in_len;
    bool must_remove; /* churn: the next call removes `old` */
    uint32_t old;
    uint32_t filled; /* fill: how many of its keys have left */
    uint8_t free[IN_FLIGHT_MAX];
    struct slot slots[IN_FLIGHT_MAX];
    uint8_t out[OUTPUT_MAX], in[INPUT_MAX];
};

struct expected {
    bool is_known;
    uint32_t len;
    uint8_t bytes[REPLY_MAX]; /* from the message type on */
};

static struct {
    enum kind kind;
    uint32_t port, connections, in_flight, milliseconds, drain, state, registered, is_void;
    const char *keys_path;
    struct dial_route route;
    struct keys keys;
    struct expected expected[SHAPE_COUNT];
    struct connection *links;
    int epoll_fd;
    uint64_t random, start_ns, stop_ns, now_ns;
    uint64_t posted, answered, wrong;
    uint64_t window_answered, window_last_ns;
    uint64_t histogram[BUCKETS], max_ns;
    struct packet call;
} run;

static uint64_t next_random(void)
{
    run.random ^= run.random << 13;
    run.random ^= run.random >> 7;
    run.random ^= run.random << 17;
    return run.random;
}

static void put_word(uint8_t *at, uint32_t value)
{
    at[0] = (uint8_t)(value >> 24);
    at[1] = (uint8_t)(value >> 16);
    at[2] = (uint8_t)(value >> 8);
    at[3] = (uint8_t)value;
}

/* The bytes that follow the xid of a right answer; the state is known by now. */
static void expect(enum shape shape)
{
    struct expected *expected = &run.expected[shape];
    memset(expected->bytes, 0, sizeof(expected->bytes));
    put_word(expected->bytes, 1); /* REPLY; accepted, AUTH_NONE, SUCCESS and STAT_SUCC are zeros */
    expected->len = REPLY_HEAD_LEN - 4;
    if (shape == SHAPE_STAT_RES)
        expected->len += 4;
    if (shape != SHAPE_VOID) {
        put_word(expected->bytes + expected->len, run.state);
        expected->len += 4;
    }
    expected->is_known = shape == SHAPE_VOID || run.state != 0;
}

/* 8 buckets for each doubling. */
static uint32_t bucket_of(uint64_t ns)
{
    if (ns < 8)
        return (uint32_t)ns;
    uint32_t top = 63 - (uint32_t)__builtin_clzll(ns);
    return top * 8 + (uint32_t)(ns >> (top - 3) & 7);
}

static uint64_t quantile_ns(uint64_t share, uint64_t of)
{
    uint64_t total = 0, seen = 0;
    for (uint32_t i = 0; i < BUCKETS; i++)
        total += run.histogram[i];
    for (uint32_t i = 0; i < BUCKETS; i++) {
        seen += run.histogram[i];
        if (seen * of >= total * share && seen > 0) {
            uint64_t ns = i < 24 ? i : (UINT64_C(8) + i % 8) << (i / 8 - 3);
            return ns < run.max_ns ? ns : run.max_ns;
        }
    }
    return 0;
}

static void complain(const uint8_t *bytes, uint32_t len, const char *why)
{
    if (run.wrong++ > 0)
        return;
    fprintf(stderr, "traffic: wrong answer: %s; %u bytes:", why, len);
    for (uint32_t i = 0; i < len && i < 40; i++)
        fprintf(stderr, " %02x", bytes[i]);
    fprintf(stderr, "\n");
}

/* The state is not known yet: the first answer that carries one decides. */
static bool learn_state(enum shape shape, const uint8_t *bytes, uint32_t len)
{
    struct packet_reply reply;
    uint32_t res = PEER_NSM_STAT_SUCC, state = 0;
    if (!packet_get_reply(bytes, len, &reply) ||
        !(shape == SHAPE_STAT ? peer_nsm_get_stat(&reply, &state)
                              : peer_nsm_get_stat_res(&reply, &res, &state)) ||
        res != PEER_NSM_STAT_SUCC || state == 0)
        return false;
    run.state = state;
    for (enum shape each = SHAPE_VOID; each < SHAPE_COUNT; each++)
        expect(each);
    return true;
}

static void judge(struct connection *link, const uint8_t *bytes, uint32_t len)
{
    uint32_t xid = packet_xid(bytes, len);
    struct slot *slot = &link->slots[xid % IN_FLIGHT_MAX];
    if (xid == 0 || slot->xid != xid) {
        complain(bytes, len, "its xid is of no call in flight");
        return;
    }
    enum shape shape = slot->shape;
    const struct expected *expected = &run.expected[shape];
    if (!expected->is_known && !learn_state(shape, bytes, len))
        complain(bytes, len, "no success with a state");
    else if (len != expected->len + 4 || memcmp(bytes + 4, expected->bytes, expected->len) != 0)
        complain(bytes, len, "not the expected result");
    uint64_t took_ns = run.now_ns - slot->sent_ns;
    slot->xid = 0;
    link->free[link->free_count++] = (uint8_t)(xid % IN_FLIGHT_MAX);
    run.answered++;
    run.histogram[bucket_of(took_ns)]++;
    if (took_ns > run.max_ns)
        run.max_ns = took_ns;
    if (run.now_ns <= run.stop_ns || run.kind == KIND_FILL) {
        run.window_answered++;
        run.window_last_ns = run.now_ns;
    }
}

static void make_mon(uint32_t key, bool is_removal)
{
    static const uint8_t priv[PEER_NSM_PRIV_LEN] = {1, 2, 3, 4};
    char name[KEYS_NAME_MAX];
    struct peer_nsm_id id = {keys_name(key, name), "bench", 100021, 4, 16};
    if (is_removal)
        peer_nsm_put_unmon(&run.call, 0, &id);
    else
        peer_nsm_put_mon(&run.call, 0, &id, priv);
}

/* Puts the next call of the connection into run.call. False: it has no more. */
static bool make_call(struct connection *link, uint32_t index, enum shape *ret_shape)
{
    uint32_t key;
    *ret_shape = run.kind == KIND_NULL ? SHAPE_VOID : SHAPE_STAT_RES;
    switch (run.kind) {
    case KIND_NULL:
    case KIND_STAT:
        break; /* made once */
    case KIND_CHURN:
        if (link->must_remove) {
            *ret_shape = SHAPE_STAT;
            make_mon(link->old, true);
        } else {
            keys_replace(&run.keys, index, next_random(), &key, &link->old);
            make_mon(key, false);
        }
        link->must_remove = !link->must_remove;
        break;
    case KIND_FILL:
        if (link->filled == run.keys.parts[index].count)
            return false;
        make_mon(run.keys.parts[index].live[link->filled++], false);
        break;
    }
    if (run.is_void)
        *ret_shape = SHAPE_VOID;
    return true;
}

/* A churning connection that registered something new also removes the old one. */
static bool may_post(const struct connection *link)
{
    return run.now_ns < run.stop_ns || run.kind == KIND_FILL || link->must_remove;
}

static void post_calls(struct connection *link, uint32_t index)
{
    enum shape shape;
    while (link->free_count > IN_FLIGHT_MAX - run.in_flight && may_post(link) &&
           make_call(link, index, &shape)) {
        uint8_t at = link->free[--link->free_count];
        uint32_t xid = ++link->sequence * IN_FLIGHT_MAX + at;
        link->slots[at] = (struct slot){xid, shape, run.now_ns};
        put_word(link->out + link->out_len, MARK_LAST | run.call.len);
        memcpy(link->out + link->out_len + 4, run.call.bytes, run.call.len);
        put_word(link->out + link->out_len + 4, xid);
        link->out_len += 4 + run.call.len;
        run.posted++;
    }
}

/* False: the connection is gone. */
static bool send_calls(struct connection *link)
{
    int result = 0;
    if (link->out_len > 0)
        result = dial_send(link->fd, link->out, link->out_len, STALL_MS);
    link->out_len = 0;
    if (result < 0)
        fprintf(stderr, "traffic: cannot send: %s\n", strerror(-result));
    return result == 0;
}

/* False: the connection is gone, or sends what is no answer. */
static bool take_answers(struct connection *link)
{
    uint32_t at = 0;
    ssize_t got = recv(link->fd, link->in + link->in_len, INPUT_MAX - link->in_len, 0);
    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return true;
    if (got <= 0) {
        fprintf(stderr, "traffic: the server closed a connection\n");
        return false;
    }
    link->in_len += (uint32_t)got;
    while (link->in_len - at >= 4) {
        uint32_t mark = packet_xid(link->in + at, 4), len = mark & ~MARK_LAST;
        if ((mark & MARK_LAST) == 0 || len > INPUT_MAX / 2) {
            complain(link->in + at, link->in_len - at, "not one fragment of an answer's length");
            return false;
        }
        if (link->in_len - at - 4 < len)
            break;
        judge(link, link->in + at + 4, len);
        at += 4 + len;
    }
    memmove(link->in, link->in + at, link->in_len - at);
    link->in_len -= at;
    return true;
}

static bool open_connections(void)
{
    for (uint32_t i = 0; i < run.connections; i++) {
        struct connection *link = &run.links[i];
        struct epoll_event event = {.events = EPOLLIN, .data.u32 = i};
        link->fd = dial_open(&run.route, CONNECT_MS);
        if (link->fd < 0 || epoll_ctl(run.epoll_fd, EPOLL_CTL_ADD, link->fd, &event) < 0) {
            fprintf(stderr, "traffic: cannot connect to port %u: %s\n", run.port,
                    strerror(link->fd < 0 ? -link->fd : errno));
            return false;
        }
        for (; link->free_count < IN_FLIGHT_MAX; link->free_count++)
            link->free[link->free_count] = (uint8_t)link->free_count;
    }
    return true;
}

static bool has_more(void)
{
    return run.answered < run.posted || run.now_ns < run.stop_ns;
}

/* False: a connection was lost. */
static bool turn(void)
{
    struct epoll_event events[CONNECTIONS_MAX];
    int count = epoll_wait(run.epoll_fd, events, CONNECTIONS_MAX, 20);
    run.now_ns = dial_now_ns();
    for (int i = 0; i < count; i++) {
        uint32_t index = events[i].data.u32;
        struct connection *link = &run.links[index];
        if (!take_answers(link))
            return false;
        post_calls(link, index);
        if (!send_calls(link))
            return false;
    }
    return true;
}

static bool make_traffic(void)
{
    if (!open_connections())
        return false;
    run.start_ns = run.now_ns = dial_now_ns();
    run.stop_ns = run.start_ns + run.milliseconds * UINT64_C(1000000);
    uint64_t deadline_ns = run.stop_ns + run.drain * UINT64_C(1000000);
    for (uint32_t i = 0; i < run.connections; i++) {
        post_calls(&run.links[i], i);
        if (!send_calls(&run.links[i]))
            return false;
    }
    while (has_more() && run.now_ns < deadline_ns)
        if (!turn())
            return false;
    return true;
}

static bool set_option(const char *option)
{
    const struct {
        const char *name;
        uint32_t *value, max;
    } numbers[] = {{"connections=", &run.connections, CONNECTIONS_MAX},
                   {"in_flight=", &run.in_flight, IN_FLIGHT_MAX},
                   {"milliseconds=", &run.milliseconds, 600000},
                   {"drain=", &run.drain, 600000},
                   {"state=", &run.state, UINT32_MAX},
                   {"registered=", &run.registered, 10000000},
                   {"void=", &run.is_void, 1}};
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
        size_t len = strlen(numbers[i].name);
        if (strncmp(option, numbers[i].name, len) != 0)
            continue;
        unsigned long value = strtoul(option + len, NULL, 10);
        *numbers[i].value = (uint32_t)value;
        return value <= numbers[i].max;
    }
    if (strncmp(option, "keys=", 5) != 0)
        return false;
    run.keys_path = option + 5;
    return true;
}

static bool parse(int count, char **arguments)
{
    uint32_t kind = 0;
    if (count < 3)
        return false;
    while (kind <= KIND_FILL && strcmp(arguments[1], kind_names[kind]) != 0)
        kind++;
    run.kind = (enum kind)kind;
    run.port = (uint32_t)strtoul(arguments[2], NULL, 10);
    run.connections = run.in_flight = 32;
    run.milliseconds = 1000;
    run.drain = 5000;
    for (int i = 3; i < count; i++)
        if (!set_option(arguments[i]))
            return false;
    return kind <= KIND_FILL && run.port > 0 && run.port < 65536 && run.connections > 0 &&
           run.in_flight > 0;
}

static bool prepare(void)
{
    run.random = dial_now_ns() | 1;
    run.route.server = dial_endpoint_v4(UINT32_C(0x7f000001), (uint16_t)run.port);
    run.route.source = dial_endpoint_v4(UINT32_C(0x7f000001), 0);
    run.links = calloc(run.connections, sizeof(*run.links));
    run.epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    for (enum shape shape = SHAPE_VOID; shape < SHAPE_COUNT; shape++)
        expect(shape);
    if (run.kind == KIND_NULL)
        peer_nsm_put_null(&run.call, 0);
    if (run.kind == KIND_STAT)
        peer_nsm_put_stat(&run.call, 0, "10.0.0.1");
    bool has_keys = run.keys_path && run.kind == KIND_CHURN &&
                    keys_load(&run.keys, run.connections, run.keys_path);
    return run.links && run.epoll_fd >= 0 &&
           (has_keys || keys_init(&run.keys, run.connections, run.registered));
}

int main(int count, char **arguments)
{
    if (!parse(count, arguments)) {
        fprintf(stderr, "usage: traffic null|stat|churn|fill PORT [connections=32] [in_flight=32]"
                        " [milliseconds=1000] [drain=5000] [state=N] [registered=N] [keys=FILE]"
                        " [void=1]\n");
        return 2;
    }
    if (!prepare()) {
        fprintf(stderr, "traffic: no memory\n");
        return 1;
    }
    bool is_complete = make_traffic();
    if (run.keys_path && !keys_save(&run.keys, run.keys_path)) {
        fprintf(stderr, "traffic: cannot write %s: %s\n", run.keys_path, strerror(errno));
        is_complete = false;
    }
    uint64_t missing = run.posted - run.answered;
    printf("traffic answered=%" PRIu64 " wrong=%" PRIu64 " missing=%" PRIu64 " counted=%" PRIu64
           " window_ns=%" PRIu64 " p50_ns=%" PRIu64 " p99_ns=%" PRIu64 " max_ns=%" PRIu64 "\n",
           run.answered, run.wrong, missing, run.window_answered,
           run.window_answered > 0 ? run.window_last_ns - run.start_ns : 0, quantile_ns(1, 2),
           quantile_ns(99, 100), run.max_ns);
    return is_complete && run.wrong == 0 && (missing == 0 || run.drain == 0) ? 0 : 1;
}
