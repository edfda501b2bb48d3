/*
 * engine.c -- the closed loop of the load generators; see engine.h.
 */
#include "bench/engine.h"

#include "peer/dial.h"

#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/uio.h>

#define INPUT_MAX  (2 * 1024 * 1024)
#define MARK_LAST  UINT32_C(0x80000000)
#define CONNECT_MS 5000
#define PIECES_MAX (2 * ENGINE_IN_FLIGHT_MAX + 1)
#define OUT_ROUNDS 4 /* of calls, in the buffer of those that could not leave yet */
#define SKIM_LEN   256
#define BUCKETS    (64 * 8)

struct slot {
    uint32_t xid; /* 0: free */
    uint64_t sent_ns;
};

struct connection {
    int fd;
    uint32_t sequence, free_count, out_len, in_len;
    uint32_t skip; /* bytes of an answer that was judged already */
    uint8_t free[ENGINE_IN_FLIGHT_MAX];
    struct slot slots[ENGINE_IN_FLIGHT_MAX];
    uint8_t *out, *in;
    struct iovec pieces[PIECES_MAX]; /* of `out`, and data: what is still to be sent */
    uint32_t piece_count;
    bool awaits_room;
};

static struct {
    struct engine_options options;
    struct engine_work work;
    struct connection *connections;
    int epoll_fd;
    uint32_t input_max;
    uint64_t start_ns, stop_ns, now_ns;
    uint64_t posted, answered, wrong;
    uint64_t window_answered, window_last_ns;
    uint64_t histogram[BUCKETS], max_ns;
} run;

void engine_put_word(uint8_t *at, uint32_t value)
{
    at[0] = (uint8_t)(value >> 24);
    at[1] = (uint8_t)(value >> 16);
    at[2] = (uint8_t)(value >> 8);
    at[3] = (uint8_t)value;
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
    for (uint32_t i = 0; i < len && i < 48; i++)
        fprintf(stderr, " %02x", bytes[i]);
    fprintf(stderr, "\n");
}

static void take_answer(struct connection *link, uint32_t index, const uint8_t *bytes, uint32_t len)
{
    uint32_t xid = packet_xid(bytes, len), at = xid % ENGINE_IN_FLIGHT_MAX;
    struct slot *slot = &link->slots[at];
    if (xid == 0 || slot->xid != xid) {
        complain(bytes, len, "its xid is of no call in flight");
        return;
    }
    const char *why = run.work.judge(run.work.context, index, at, bytes, len);
    if (why)
        complain(bytes, len, why);
    uint64_t took_ns = run.now_ns - slot->sent_ns;
    slot->xid = 0;
    link->free[link->free_count++] = (uint8_t)at;
    run.answered++;
    run.histogram[bucket_of(took_ns)]++;
    if (took_ns > run.max_ns)
        run.max_ns = took_ns;
    if (run.now_ns <= run.stop_ns || run.work.counts_all) {
        run.window_answered++;
        run.window_last_ns = run.now_ns;
    }
}

static void add_piece(struct connection *link, const void *bytes, uint32_t len)
{
    struct iovec *last = link->pieces + link->piece_count - 1;
    if (link->piece_count > 0 && (const uint8_t *)last->iov_base + last->iov_len == bytes)
        last->iov_len += len;
    else
        link->pieces[link->piece_count++] = (struct iovec){(void *)(uintptr_t)bytes, len};
}

static void add_call(struct connection *link, const struct engine_call *call, uint32_t xid)
{
    uint8_t *out = link->out + link->out_len;
    engine_put_word(out, MARK_LAST | (call->len + call->data_len));
    memcpy(out + 4, call->bytes, call->len);
    engine_put_word(out + 4, xid);
    link->out_len += 4 + call->len;
    add_piece(link, out, 4 + call->len);
    if (call->data_len > 0)
        add_piece(link, call->data, call->data_len);
}

static bool has_room(const struct connection *link)
{
    uint32_t call_len = run.options.call_max + 4;
    return link->out_len + call_len <= OUT_ROUNDS * run.options.in_flight * call_len &&
           link->piece_count + 2 <= PIECES_MAX;
}

/* Every free slot is asked once; those that have nothing to call stay free. */
static void post_calls(struct connection *link, uint32_t index)
{
    bool is_over = run.now_ns >= run.stop_ns;
    uint32_t kept = 0, count = link->free_count;
    for (uint32_t i = 0; i < count; i++) {
        uint8_t at = link->free[i];
        struct engine_call call = {0};
        if (!has_room(link) || !run.work.make(run.work.context, index, at, is_over, &call) ||
            call.len > run.options.call_max) {
            link->free[kept++] = at;
            continue;
        }
        uint32_t xid = ++link->sequence * ENGINE_IN_FLIGHT_MAX + at;
        if (xid == 0) /* that is no call */
            xid = ++link->sequence * ENGINE_IN_FLIGHT_MAX + at;
        link->slots[at] = (struct slot){xid, run.now_ns};
        add_call(link, &call, xid);
        run.posted++;
    }
    link->free_count = kept;
}

/* So many bytes left. */
static void drop_pieces(struct connection *link, size_t sent)
{
    uint32_t first = 0;
    while (first < link->piece_count && sent >= link->pieces[first].iov_len)
        sent -= link->pieces[first++].iov_len;
    link->piece_count -= first;
    memmove(link->pieces, link->pieces + first, link->piece_count * sizeof(link->pieces[0]));
    if (link->piece_count == 0) {
        link->out_len = 0;
        return;
    }
    link->pieces[0].iov_base = (uint8_t *)link->pieces[0].iov_base + sent;
    link->pieces[0].iov_len -= sent;
}

static void await_room(struct connection *link, uint32_t index, bool awaits)
{
    struct epoll_event event = {.events = awaits ? EPOLLIN | EPOLLOUT : EPOLLIN, .data.u32 = index};
    if (link->awaits_room != awaits)
        epoll_ctl(run.epoll_fd, EPOLL_CTL_MOD, link->fd, &event);
    link->awaits_room = awaits;
}

/* What fits; a server that takes no more of one connection may take it of another. False: the
 * connection is gone. */
static bool send_calls(struct connection *link, uint32_t index)
{
    while (link->piece_count > 0) {
        struct msghdr message = {.msg_iov = link->pieces, .msg_iovlen = link->piece_count};
        ssize_t sent = sendmsg(link->fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent < 0 && errno == EINTR)
            continue;
        if (sent < 0 && errno == EAGAIN)
            break;
        if (sent < 0) {
            fprintf(stderr, "traffic: cannot send: %s\n", strerror(errno));
            return false;
        }
        drop_pieces(link, (size_t)sent);
    }
    await_room(link, index, link->piece_count > 0);
    return true;
}

/* Answers that are here, or begin here and are long enough to be judged. False: what is there is no
 * answer. */
static bool parse_answers(struct connection *link, uint32_t index)
{
    uint32_t at = 0;
    while (link->in_len - at >= 4) {
        uint32_t mark = packet_xid(link->in + at, 4), len = mark & ~MARK_LAST;
        uint32_t there = link->in_len - at - 4;
        if ((mark & MARK_LAST) == 0 || len > run.options.answer_max) {
            complain(link->in + at, link->in_len - at, "not one fragment of an answer's length");
            return false;
        }
        bool is_skimmed = run.options.skips && there < len && there >= ENGINE_SKIM_MIN;
        if (there < len && !is_skimmed)
            break;
        take_answer(link, index, link->in + at + 4, len);
        link->skip = is_skimmed ? len - there : 0;
        at += 4 + (is_skimmed ? there : len);
    }
    if (at > 0)
        memmove(link->in, link->in + at, link->in_len - at);
    link->in_len -= at;
    return true;
}

/* 1: something came; 0: nothing is there; -1: the connection is gone. */
static int receive(struct connection *link)
{
    bool skips = link->skip > 0;
    uint32_t max = run.options.skips ? SKIM_LEN : run.input_max;
    ssize_t got = skips ? recv(link->fd, link->in, link->skip, MSG_TRUNC | MSG_DONTWAIT)
                        : recv(link->fd, link->in + link->in_len, max - link->in_len, 0);
    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return 0;
    if (got <= 0) {
        fprintf(stderr, "traffic: the server closed a connection\n");
        return -1;
    }
    *(skips ? &link->skip : &link->in_len) += skips ? -(uint32_t)got : (uint32_t)got;
    return 1;
}

/* False: the connection is gone, or sends what is no answer. */
static bool take_answers(struct connection *link, uint32_t index)
{
    int result;
    do {
        result = receive(link);
        if (result > 0 && link->skip == 0 && !parse_answers(link, index))
            return false;
    } while (result > 0 && run.options.skips && link->free_count < run.options.in_flight);
    return result >= 0;
}

static bool open_connections(void)
{
    const struct engine_options *options = &run.options;
    struct dial_route route = {.server =
                                   dial_endpoint_v4(INADDR_LOOPBACK, (uint16_t)options->port)};
    for (uint32_t i = 0; i < options->connections; i++) {
        struct connection *link = &run.connections[i];
        struct epoll_event event = {.events = EPOLLIN, .data.u32 = i};
        link->out = malloc((size_t)OUT_ROUNDS * options->in_flight * (options->call_max + 4));
        link->in = malloc(run.input_max);
        if (!link->out || !link->in)
            return false;
        route.source = dial_endpoint_v4(options->source + i % options->sources, 0);
        link->fd = dial_open(&route, CONNECT_MS);
        if (link->fd < 0 || epoll_ctl(run.epoll_fd, EPOLL_CTL_ADD, link->fd, &event) < 0) {
            fprintf(stderr, "traffic: cannot connect to port %u: %s\n", options->port,
                    strerror(link->fd < 0 ? -link->fd : errno));
            return false;
        }
        for (; link->free_count < options->in_flight; link->free_count++)
            link->free[link->free_count] = (uint8_t)link->free_count;
    }
    return true;
}

/* False: a connection was lost. */
static bool turn(void)
{
    struct epoll_event events[ENGINE_CONNECTIONS_MAX];
    int count = epoll_wait(run.epoll_fd, events, ENGINE_CONNECTIONS_MAX, 20);
    run.now_ns = dial_now_ns();
    for (int i = 0; i < count; i++) {
        uint32_t index = events[i].data.u32;
        struct connection *link = &run.connections[index];
        if ((events[i].events & ~(uint32_t)EPOLLOUT) != 0 && !take_answers(link, index))
            return false;
        post_calls(link, index);
        if (!send_calls(link, index))
            return false;
    }
    return true;
}

static bool make_traffic(void)
{
    if (!open_connections())
        return false;
    run.start_ns = run.now_ns = dial_now_ns();
    run.stop_ns = run.start_ns + run.options.milliseconds * UINT64_C(1000000);
    uint64_t deadline_ns = run.stop_ns + run.options.drain * UINT64_C(1000000);
    for (uint32_t i = 0; i < run.options.connections; i++) {
        post_calls(&run.connections[i], i);
        if (!send_calls(&run.connections[i], i))
            return false;
    }
    while ((run.answered < run.posted || run.now_ns < run.stop_ns) && run.now_ns < deadline_ns)
        if (!turn())
            return false;
    return true;
}

void engine_defaults(struct engine_options *options)
{
    *options = (struct engine_options){.connections = 32,
                                       .in_flight = 32,
                                       .milliseconds = 1000,
                                       .drain = 5000,
                                       .source = INADDR_LOOPBACK,
                                       .sources = 1,
                                       .call_max = ENGINE_CALL_MAX,
                                       .answer_max = ENGINE_ANSWER_MAX};
}

bool engine_number(const char *text, const char *name, uint32_t max, uint32_t *ret)
{
    size_t len = strlen(name);
    if (strncmp(text, name, len) != 0 || text[len] != '=')
        return false;
    unsigned long value = strtoul(text + len + 1, NULL, 10);
    if (value > max)
        return false;
    *ret = (uint32_t)value;
    return true;
}

bool engine_set_option(struct engine_options *options, const char *text)
{
    struct in_addr source;
    if (strncmp(text, "source=", 7) == 0 && inet_pton(AF_INET, text + 7, &source) == 1) {
        options->source = ntohl(source.s_addr);
        return true;
    }
    return engine_number(text, "connections", ENGINE_CONNECTIONS_MAX, &options->connections) ||
           engine_number(text, "in_flight", ENGINE_IN_FLIGHT_MAX, &options->in_flight) ||
           engine_number(text, "milliseconds", 600000, &options->milliseconds) ||
           engine_number(text, "drain", 600000, &options->drain) ||
           engine_number(text, "sources", ENGINE_CONNECTIONS_MAX, &options->sources);
}

bool engine_run(const struct engine_options *options, const struct engine_work *work)
{
    run.options = *options;
    run.work = *work;
    run.connections = calloc(options->connections, sizeof(*run.connections));
    run.epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    /* As much as may arrive at once, within reason. */
    run.input_max = options->in_flight * options->answer_max;
    if (run.input_max > INPUT_MAX)
        run.input_max = INPUT_MAX;
    if (run.input_max < 2 * options->answer_max)
        run.input_max = 2 * options->answer_max;
    if (!run.connections || run.epoll_fd < 0 || options->sources == 0) {
        fprintf(stderr, "traffic: no memory, or nobody to send it\n");
        return false;
    }
    /* Calls of another run with these xids would be repeats, from whichever port. */
    for (uint32_t i = 0; i < options->connections; i++)
        run.connections[i].sequence = (uint32_t)dial_now_ns();
    bool is_complete = make_traffic();
    uint64_t missing = run.posted - run.answered;
    printf("traffic answered=%" PRIu64 " wrong=%" PRIu64 " missing=%" PRIu64 " counted=%" PRIu64
           " window_ns=%" PRIu64 " p50_ns=%" PRIu64 " p99_ns=%" PRIu64 " max_ns=%" PRIu64 "\n",
           run.answered, run.wrong, missing, run.window_answered,
           run.window_answered > 0 ? run.window_last_ns - run.start_ns : 0, quantile_ns(1, 2),
           quantile_ns(99, 100), run.max_ns);
    return is_complete && run.wrong == 0 && (missing == 0 || options->drain == 0);
}
