/*
 * lockers.c -- what happens once: a crowd of new clients, and a client that goes.
 *
 * usage: lockers newcomers|newcomers-udp SERVER FIRST-ADDRESS COUNT MILLISECONDS [HANDLES]
 *        lockers stream SERVER FIRST-ADDRESS COUNT MILLISECONDS HANDLES
 *        lockers free SERVER ADDRESS HELD
 *
 * SERVER is a port on this machine, or ADDRESS:PORT.
 *
 * newcomers: COUNT clients, each with an address and a TCP connection of its own, take their first
 * lock at once. The time runs from the first connect() to the last GRANTED. After MILLISECONDS it
 * is over, and NULL is called on a new connection: a server that does not answer that within two
 * seconds has stopped answering. newcomers-udp: the same with a UDP socket for each, which calls
 * again after a second.
 *
 * stream: the same clients come one after the other, for so long. Whoever is refused for want of
 * locks, as by a server that cannot watch him, asks again until he is granted; how long that took
 * is the figure.
 *
 * free: the client at ADDRESS holds HELD locks in one file (`locks hold ... files=1`). Another
 * client asks TEST for the whole file, one call at a time: first for a while in peace, then while
 * FREE_ALL frees them, until nothing is left. The answer must be DENIED with a holder that there
 * is, and then GRANTED. The slowest of these answers is the delay that others feel.
 *
 * Each prints a line of numbers for the bench; exit 1 when an answer was wrong.
 */
#include "bench/lock_call.h"
#include "peer/dial.h"
#include "peer/load.h"

#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NLM_VERSION   4
#define MS_NS         UINT64_C(1000000)
#define ALIVE_MS      2000
#define CALM_TESTS    500
#define FREE_LIMIT_NS (30000 * MS_NS)
#define NEWCOMER_SVID 4242
#define AGAIN_MS      20
#define STREAM_MS     70000 /* longer than a kernel waits for a status monitor */

static struct packet_reply last_reply;

/* One call on an open connection. NULL with the result in *ret, or why there is none. */
static const char *call_nlm(int fd, uint32_t xid, enum peer_nlm_procedure procedure,
                            const struct peer_nlm_args *args, struct peer_nlm_res *ret)
{
    static struct packet call, answer;
    peer_nlm_put_call(&call, xid, NLM_VERSION, procedure, args);
    int result = dial_exchange(fd, false, &call, 10000, &answer, &last_reply);
    if (result != 0)
        return strerror(-result);
    struct packet_reader reader = {last_reply.body, last_reply.body_len, false};
    if (!last_reply.accepted || last_reply.status != PACKET_SUCCESS)
        return packet_reply_text(&last_reply);
    return peer_nlm_get_res(&reader, NLM_VERSION, procedure, ret) ? NULL : "an unreadable result";
}

/* ---- newcomers ---- */

struct crowd {
    uint32_t granted, wrong;
    uint64_t last_ns;
};

static void on_answer(void *context, uint32_t link, uint64_t tag, const struct packet_reply *reply)
{
    struct crowd *crowd = context;
    uint8_t expected[LOCK_CALL_REPLY_MAX];
    const uint32_t head_len = 20; /* up to the result; load.c has read it */
    (void)link;
    uint32_t len = lock_call_granted(expected, tag) - head_len;
    if (!reply->accepted || reply->status != PACKET_SUCCESS || reply->body_len != len ||
        memcmp(reply->body, expected + head_len, len) != 0) {
        if (crowd->wrong++ == 0)
            fprintf(stderr, "lockers: client %" PRIu64 " was not answered GRANTED: %s\n", tag,
                    packet_reply_text(reply));
        return;
    }
    crowd->granted++;
    crowd->last_ns = dial_now_ns();
}

static bool make_first_lock(struct lock_call *call, const struct lock_call_files *files,
                            uint32_t number)
{
    char name[16];
    struct lock_call_range range = {.file = number % files->count,
                                    .svid = NEWCOMER_SVID,
                                    .offset = (uint64_t)number * LOCK_CALL_PLACE_LEN};
    if (!lock_call_make(call, files, PEER_NLM_LOCK, lock_call_name(number, name)))
        return false;
    lock_call_set(call, files, number, &range);
    return true;
}

static bool post_first_lock(struct load *load, const struct lock_call_files *files,
                            const struct dial_route *route, uint32_t number)
{
    struct lock_call call;
    if (!make_first_lock(&call, files, number))
        return false;
    int link = load_open(load, route);
    bool is_posted = link >= 0 && load_post(load, (uint32_t)link, number, call.packet);
    free(call.packet);
    return is_posted;
}

static bool is_alive(const struct dial_endpoint *server)
{
    static struct packet call, answer;
    struct dial_route route = {.server = *server};
    struct packet_reply reply;
    struct peer_nlm_args none = {0};
    peer_nlm_put_call(&call, 1, NLM_VERSION, PEER_NLM_NULL, &none);
    return dial_call(&route, &call, ALIVE_MS, &answer, &reply) == 0 && reply.accepted;
}

static int bring_newcomers(const struct dial_endpoint *server, bool is_udp, uint32_t first,
                           uint32_t count, uint32_t limit_ms, const char *handles)
{
    struct lock_call_files files;
    struct crowd crowd = {0};
    struct load *load = load_new(count, on_answer, &crowd);
    if (!load || !lock_call_load(&files, handles ? 1000 : count, handles)) {
        fprintf(stderr, "lockers: no memory, or no file handles\n");
        return 1;
    }
    uint64_t start_ns = dial_now_ns(), end_ns = start_ns + limit_ms * MS_NS;
    for (uint32_t i = 0; i < count; i++) {
        struct dial_route route = {
            .is_udp = is_udp, .server = *server, .source = dial_endpoint_v4(first + i, 0)};
        if (!post_first_lock(load, &files, &route, i)) {
            fprintf(stderr, "lockers: client %u could not call\n", i);
            return 1;
        }
    }
    while (crowd.granted + crowd.wrong < count && dial_now_ns() < end_ns)
        load_turn(load, 20);
    bool is_answering = crowd.granted == count || is_alive(server);
    load_free(load);
    printf("newcomers granted=%u wrong=%u took_ns=%" PRIu64 " alive=%d\n", crowd.granted,
           crowd.wrong, crowd.granted > 0 ? crowd.last_ns - start_ns : 0, is_answering);
    return crowd.wrong == 0 ? 0 : 1;
}

/* ---- stream ---- */

/* The status of one LOCK; negative: there was no answer that can be read. */
static int try_first_lock(const struct dial_route *route, const struct lock_call *call)
{
    static struct packet answer;
    struct peer_nlm_res res = {0};
    int result = dial_call(route, call->packet, STREAM_MS, &answer, &last_reply);
    struct packet_reader reader = {last_reply.body, last_reply.body_len, false};
    if (result != 0)
        return result;
    if (!last_reply.accepted || last_reply.status != PACKET_SUCCESS ||
        !peer_nlm_get_res(&reader, NLM_VERSION, PEER_NLM_LOCK, &res))
        return -EBADMSG;
    return (int)res.status;
}

static int stream_newcomers(const struct dial_endpoint *server, uint32_t first, uint32_t count,
                            uint32_t limit_ms, const char *handles)
{
    struct lock_call_files files;
    struct lock_call call;
    uint32_t clients = 0, refusals = 0;
    uint64_t slowest_ns = 0, end_ns = dial_now_ns() + limit_ms * MS_NS;
    if (!lock_call_load(&files, 1, handles)) {
        fprintf(stderr, "lockers: no memory, or no file handles\n");
        return 1;
    }
    for (; clients < count && dial_now_ns() < end_ns; clients++) {
        struct dial_route route = {.server = *server,
                                   .source = dial_endpoint_v4(first + clients, 0)};
        uint64_t start_ns = dial_now_ns();
        if (!make_first_lock(&call, &files, clients))
            return 1;
        int status = try_first_lock(&route, &call);
        for (; status == PEER_NLM_IS_NOLOCKS && dial_now_ns() - start_ns < STREAM_MS * MS_NS;
             refusals++) {
            (void)usleep(AGAIN_MS * 1000);
            status = try_first_lock(&route, &call);
        }
        free(call.packet);
        if (status != PEER_NLM_IS_GRANTED) {
            fprintf(stderr, "lockers: client %u: %s\n", clients,
                    status < 0 ? strerror(-status) : peer_nlm_status_text((uint32_t)status));
            return 1;
        }
        uint64_t took_ns = dial_now_ns() - start_ns;
        slowest_ns = took_ns > slowest_ns ? took_ns : slowest_ns;
    }
    printf("stream granted=%u refusals=%u slowest_ms=%" PRIu64 "\n", clients, refusals,
           slowest_ns / MS_NS);
    return 0;
}

/* ---- freeing ---- */

struct freeing {
    struct lock_call_files file;
    uint32_t held, xid;
    uint64_t tests, calm_max_ns, max_ns;
    bool has_begun; /* FREE_ALL was sent */
};

/* One TEST of the whole file. NULL and whether something is in its way, or what was wrong. */
static const char *test_all(struct freeing *freeing, int fd, bool *ret_is_held, uint64_t *ret_ns)
{
    static struct peer_nlm_args args;
    static char text[160];
    struct peer_nlm_res res = {0};
    char oh[16];
    args.exclusive = true;
    args.cookie = peer_nlm_text("whole");
    args.lock.caller_name = peer_nlm_text("other");
    args.lock.fh = peer_nlm_bytes_of(freeing->file.handles[0], freeing->file.handle_len);
    args.lock.oh = peer_nlm_text("other");
    args.lock.svid = NEWCOMER_SVID;
    uint64_t start_ns = dial_now_ns();
    const char *why = call_nlm(fd, ++freeing->xid, PEER_NLM_TEST, &args, &res);
    *ret_ns = dial_now_ns() - start_ns;
    freeing->tests++;
    if (why)
        return why;
    /* Behind FREE_ALL what is left is on its way out: nobody holds it, ask again. */
    bool is_leaving = freeing->has_begun && res.status == PEER_NLM_IS_GRACE;
    *ret_is_held = res.status == PEER_NLM_IS_DENIED || is_leaving;
    if (res.status == PEER_NLM_IS_GRANTED || is_leaving)
        return NULL;
    uint32_t place = (uint32_t)((res.offset - LOCK_CALL_HELD_BASE) / LOCK_CALL_PLACE_LEN);
    struct lock_call_range holder = lock_call_held(&freeing->file, place);
    snprintf(oh, sizeof(oh), "%08u", holder.svid);
    struct peer_nlm_bytes expected = peer_nlm_text(oh);
    bool is_right = *ret_is_held && place < freeing->held && res.offset == holder.offset &&
                    res.len == LOCK_CALL_RANGE_LEN && res.svid == holder.svid && res.exclusive &&
                    peer_nlm_bytes_equal(&res.oh, &expected);
    if (is_right)
        return NULL;
    snprintf(text, sizeof(text),
             "a holder that there is not: status %u, svid %u, offset %" PRIu64 ", length %" PRIu64,
             res.status, res.svid, res.offset, res.len);
    return text;
}

static const char *test_in_peace(struct freeing *freeing, int fd)
{
    const char *why = NULL;
    bool is_held = true;
    uint64_t took_ns;
    for (uint32_t i = 0; i < CALM_TESTS && !why; i++) {
        why = test_all(freeing, fd, &is_held, &took_ns);
        if (took_ns > freeing->calm_max_ns)
            freeing->calm_max_ns = took_ns;
    }
    return why || is_held ? why : "nothing is held before FREE_ALL";
}

static const char *free_all(struct freeing *freeing, int holder_fd, int fd, uint64_t *ret_ns)
{
    static struct packet call, answer;
    char name[16];
    struct peer_nlm_args args = {.lock.caller_name = peer_nlm_text(lock_call_name(0, name))};
    const char *why = NULL;
    bool is_held = true;
    uint64_t took_ns, start_ns = dial_now_ns();
    peer_nlm_put_call(&call, 1, NLM_VERSION, PEER_NLM_FREE_ALL, &args);
    if (dial_send_record(holder_fd, call.bytes, call.len, 1000) != 0)
        return "cannot send FREE_ALL";
    freeing->has_begun = true;
    while (!why && is_held && dial_now_ns() - start_ns < FREE_LIMIT_NS) {
        why = test_all(freeing, fd, &is_held, &took_ns);
        if (took_ns > freeing->max_ns)
            freeing->max_ns = took_ns;
    }
    *ret_ns = dial_now_ns() - start_ns;
    if (why || is_held)
        return why ? why : "locks are left 30 s after FREE_ALL";
    if (dial_receive_record(holder_fd, &answer, 1000) <= 0 ||
        !packet_get_reply(answer.bytes, answer.len, &last_reply) || !last_reply.accepted ||
        last_reply.status != PACKET_SUCCESS || last_reply.body_len != 0)
        return "FREE_ALL was not answered";
    return NULL;
}

static int watch_freeing(const struct dial_endpoint *server, uint32_t address, uint32_t held)
{
    struct freeing freeing = {.held = held};
    struct dial_route route = {.server = *server, .source = dial_endpoint_v4(address, 0)};
    int holder_fd = dial_open(&route, 5000);
    route.source = dial_endpoint_v4(INADDR_LOOPBACK, 0);
    int fd = dial_open(&route, 5000);
    uint64_t took_ns = 0;
    const char *why = "cannot connect";
    if (holder_fd >= 0 && fd >= 0 && lock_call_load(&freeing.file, 1, NULL))
        why = test_in_peace(&freeing, fd);
    if (!why)
        why = free_all(&freeing, holder_fd, fd, &took_ns);
    if (why) {
        fprintf(stderr, "lockers: %s\n", why);
        return 1;
    }
    printf("free took_ns=%" PRIu64 " tests=%" PRIu64 " calm_max_ns=%" PRIu64 " max_ns=%" PRIu64
           "\n",
           took_ns, freeing.tests - CALM_TESTS, freeing.calm_max_ns, freeing.max_ns);
    return 0;
}

static uint32_t number(const char *text)
{
    return (uint32_t)strtoul(text, NULL, 10);
}

int main(int count, char **arguments)
{
    struct in_addr address = {0};
    struct dial_endpoint server;
    bool is_known = count >= 5 && dial_endpoint_read(arguments[2], &server) &&
                    inet_pton(AF_INET, arguments[3], &address) == 1;
    uint32_t first = ntohl(address.s_addr);
    bool is_udp = is_known && strcmp(arguments[1], "newcomers-udp") == 0;
    if (is_known && (is_udp || strcmp(arguments[1], "newcomers") == 0) &&
        (count == 6 || count == 7))
        return bring_newcomers(&server, is_udp, first, number(arguments[4]), number(arguments[5]),
                               count == 7 ? arguments[6] : NULL);
    if (is_known && strcmp(arguments[1], "stream") == 0 && count == 7)
        return stream_newcomers(&server, first, number(arguments[4]), number(arguments[5]),
                                arguments[6]);
    if (is_known && strcmp(arguments[1], "free") == 0 && count == 5)
        return watch_freeing(&server, first, number(arguments[4]));
    fprintf(stderr, "usage: lockers newcomers|newcomers-udp SERVER FIRST-ADDRESS COUNT MILLISECONDS"
                    " [HANDLES]\n"
                    "       lockers stream SERVER FIRST-ADDRESS COUNT MILLISECONDS HANDLES\n"
                    "       lockers free SERVER ADDRESS HELD\n");
    return 2;
}
