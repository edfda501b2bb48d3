/*
 * locks.c -- LOCK, UNLOCK and TEST as load, and the judge of every answer.
 *
 * usage: locks KIND PORT [name=value...]
 *
 *   pairs   every slot takes a lock and, when GRANTED has arrived, gives it up; again and again, in
 *           the next one of `files` files each time. It has an owner and a range of its own, which
 *           touches no other. One more lock is held from before the first call until after the
 *           last: a server that monitors clients only while they hold something is measured at
 *           locking, and not at monitoring.
 *   hold    takes the locks 0 to `held` - 1 (lock_call.h), and ends while it holds them
 *   test    asks in turns for the range of a random one of these and for the one right behind it:
 *           the answers must be DENIED with that very holder, and GRANTED
 *
 * Everything else is engine.h's closed loop. Connections are clients of their own if `sources` is
 * more than 1. An answer is right if it is what it must be to the last byte. Beside the engine's
 * line it prints how many changes it made to the server's locks. Exit 1 when an answer was wrong or
 * missing.
 */
#include "bench/engine.h"
#include "bench/lock_call.h"
#include "peer/dial.h"

#include <inttypes.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PAIR_SVID   100000 /* and what follows */
#define ANCHOR_SVID 99999
#define ANCHOR_AT   (UINT64_C(1) << 40)
#define FILE_STEP   7
#define CALL_MS     10000

enum kind { KIND_PAIRS, KIND_HOLD, KIND_TEST };

static const char *const kind_names[] = {"pairs", "hold", "test"};

struct slot {
    bool is_held; /* pairs: its lock is granted */
    uint32_t turn;
    struct lock_call_range range;
    uint32_t reply_len;
    uint8_t reply[LOCK_CALL_REPLY_MAX]; /* the only right answer, behind its xid */
};

struct client {
    struct lock_call lock, unlock, test;
};

static struct {
    enum kind kind;
    struct engine_options options;
    uint32_t files_count, held, next;
    const char *handles_path;
    struct lock_call_files files;
    struct client *clients; /* by connection */
    struct slot *slots;
    uint64_t sequence, random, changes;
} run;

static uint64_t next_random(void)
{
    run.random ^= run.random << 13;
    run.random ^= run.random >> 7;
    run.random ^= run.random << 17;
    return run.random;
}

static struct slot *slot_at(uint32_t connection, uint32_t slot)
{
    return &run.slots[(size_t)connection * ENGINE_IN_FLIGHT_MAX + slot];
}

static void finish_call(struct slot *slot, struct lock_call *call, bool is_denied,
                        struct engine_call *ret)
{
    uint64_t cookie = ++run.sequence;
    lock_call_set(call, &run.files, cookie, &slot->range);
    slot->reply_len = is_denied ? lock_call_denied(slot->reply, cookie, &slot->range)
                                : lock_call_granted(slot->reply, cookie);
    *ret = (struct engine_call){.bytes = call->packet->bytes, .len = call->packet->len};
}

/* A slot that holds its lock also gives it up, however late it is. */
static bool make_pair(uint32_t connection, uint32_t at, bool is_over, struct engine_call *ret)
{
    struct slot *slot = slot_at(connection, at);
    uint32_t number = connection * run.options.in_flight + at;
    if (slot->is_held) {
        finish_call(slot, &run.clients[connection].unlock, false, ret);
        return true;
    }
    if (is_over)
        return false;
    slot->range = (struct lock_call_range){
        .file = (number + slot->turn++ * FILE_STEP) % run.files.count,
        .svid = PAIR_SVID + number,
        .offset = (uint64_t)number * LOCK_CALL_PLACE_LEN,
    };
    finish_call(slot, &run.clients[connection].lock, false, ret);
    return true;
}

static bool make_hold(uint32_t connection, uint32_t at, struct engine_call *ret)
{
    struct slot *slot = slot_at(connection, at);
    if (run.next == run.held)
        return false;
    slot->range = lock_call_held(&run.files, run.next++);
    finish_call(slot, &run.clients[connection].lock, false, ret);
    return true;
}

static bool make_test(uint32_t connection, uint32_t at, bool is_over, struct engine_call *ret)
{
    struct slot *slot = slot_at(connection, at);
    if (is_over)
        return false;
    slot->range = lock_call_held(&run.files, (uint32_t)(next_random() % run.held));
    bool is_denied = slot->turn++ % 2 == 0;
    if (!is_denied)
        slot->range.offset += LOCK_CALL_RANGE_LEN;
    finish_call(slot, &run.clients[connection].test, is_denied, ret);
    return true;
}

static bool make(void *context, uint32_t connection, uint32_t slot, bool is_over,
                 struct engine_call *ret)
{
    (void)context;
    switch (run.kind) {
    case KIND_PAIRS:
        return make_pair(connection, slot, is_over, ret);
    case KIND_HOLD:
        return make_hold(connection, slot, ret);
    case KIND_TEST:
        return make_test(connection, slot, is_over, ret);
    }
    return false;
}

static const char *judge(void *context, uint32_t connection, uint32_t at, const uint8_t *bytes,
                         uint32_t len)
{
    struct slot *slot = slot_at(connection, at);
    (void)context;
    slot->is_held = run.kind == KIND_PAIRS && !slot->is_held;
    run.changes += run.kind == KIND_TEST ? 0 : 1;
    if (len != slot->reply_len + 4 || memcmp(bytes + 4, slot->reply, slot->reply_len) != 0)
        return "not the expected result";
    return NULL;
}

/* The lock that is held all the time, on a connection of its own. */
static bool call_anchor(struct lock_call *call)
{
    static struct packet answer;
    const struct lock_call_range range = {0, ANCHOR_SVID, ANCHOR_AT};
    struct dial_route route = {.server =
                                   dial_endpoint_v4(INADDR_LOOPBACK, (uint16_t)run.options.port),
                               .source = dial_endpoint_v4(run.options.source, 0)};
    struct packet_reply reply;
    struct peer_nlm_res res;
    packet_set_xid(call->packet, (uint32_t)dial_now_ns());
    lock_call_set(call, &run.files, ++run.sequence, &range);
    int result = dial_call(&route, call->packet, CALL_MS, &answer, &reply);
    struct packet_reader reader = {reply.body, reply.body_len, false};
    if (result != 0 || !reply.accepted || reply.status != PACKET_SUCCESS ||
        !peer_nlm_get_res(&reader, 4, PEER_NLM_LOCK, &res) || res.status != PEER_NLM_IS_GRANTED) {
        fprintf(stderr, "traffic: the first or last call was not answered GRANTED: %s\n",
                result != 0 ? strerror(-result) : packet_reply_text(&reply));
        return false;
    }
    run.changes++;
    return true;
}

static bool set_option(const char *option)
{
    if (strncmp(option, "handles=", 8) == 0) {
        run.handles_path = option + 8;
        return true;
    }
    return engine_set_option(&run.options, option) ||
           engine_number(option, "files", 100000, &run.files_count) ||
           engine_number(option, "held", 10000000, &run.held);
}

static bool parse(int count, char **arguments)
{
    uint32_t kind = 0;
    if (count < 3)
        return false;
    while (kind <= KIND_TEST && strcmp(arguments[1], kind_names[kind]) != 0)
        kind++;
    run.kind = (enum kind)kind;
    engine_defaults(&run.options);
    run.options.port = (uint32_t)strtoul(arguments[2], NULL, 10);
    run.files_count = 1000;
    for (int i = 3; i < count; i++)
        if (!set_option(arguments[i]))
            return false;
    return kind <= KIND_TEST && run.options.port > 0 && run.options.port < 65536 &&
           run.options.connections > 0 && run.options.in_flight > 0 && run.files_count > 0 &&
           (run.held > 0 || run.kind == KIND_PAIRS);
}

static bool prepare(void)
{
    char name[16];
    bool is_made = lock_call_load(&run.files, run.files_count, run.handles_path);
    run.random = dial_now_ns() | 1;
    run.clients = calloc(run.options.connections, sizeof(*run.clients));
    run.slots = calloc((size_t)run.options.connections * ENGINE_IN_FLIGHT_MAX, sizeof(*run.slots));
    is_made = is_made && run.clients && run.slots;
    for (uint32_t i = 0; is_made && i < run.options.connections; i++) {
        struct client *client = &run.clients[i];
        lock_call_name(i % run.options.sources, name);
        is_made = lock_call_make(&client->lock, &run.files, PEER_NLM_LOCK, name) &&
                  lock_call_make(&client->unlock, &run.files, PEER_NLM_UNLOCK, name) &&
                  lock_call_make(&client->test, &run.files, PEER_NLM_TEST, name);
    }
    return is_made;
}

int main(int count, char **arguments)
{
    if (!parse(count, arguments)) {
        fprintf(stderr, "usage: locks pairs|hold|test PORT [connections=32] [in_flight=32]"
                        " [milliseconds=1000] [drain=5000] [source=127.0.0.1] [sources=1]"
                        " [files=1000] [handles=FILE] [held=N]\n");
        return 2;
    }
    if (!prepare()) {
        fprintf(stderr, "traffic: no memory, or no file handles in %s\n",
                run.handles_path ? run.handles_path : "the program");
        return 1;
    }
    struct engine_work work = {NULL, make, judge, run.kind == KIND_HOLD};
    bool has_anchor = run.kind == KIND_PAIRS;
    bool is_right = (!has_anchor || call_anchor(&run.clients[0].lock)) &&
                    engine_run(&run.options, &work) &&
                    (!has_anchor || call_anchor(&run.clients[0].unlock));
    printf("locks changes=%" PRIu64 "\n", run.changes);
    return is_right ? 0 : 1;
}
