/*
 * traffic.c -- NULL and the NSM procedures as load, and the judge of every answer.
 *
 * usage: traffic KIND PORT [name=value...]
 *
 * KIND is null, stat, churn (SM_MON of new keys and SM_UNMON of old ones, in turns) or fill (SM_MON
 * of the first `registered` keys, once). Everything else is engine.h's closed loop.
 *
 * An answer must have the result that its procedure has: SUCCESS without a result for NULL;
 * STAT_SUCC and the state for SM_STAT and SM_MON; the state for SM_UNMON. The state is `state`, or
 * the one of the first answer if that is 0. `void=1` is for the raw echo: every answer is SUCCESS
 * without a result.
 *
 * It prints one line of numbers for the bench, and the first wrong answer in words. Exit 1 when an
 * answer was wrong or missing.
 */
#include "bench/engine.h"
#include "bench/keys.h"
#include "peer/dial.h"
#include "peer/peer_nsm.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define REPLY_HEAD_LEN 24 /* an accepted answer with an empty verifier, up to its result */
#define REPLY_MAX      (REPLY_HEAD_LEN + 8)

enum kind { KIND_NULL, KIND_STAT, KIND_CHURN, KIND_FILL };

static const char *const kind_names[] = {"null", "stat", "churn", "fill"};

/* What an answer looks like behind its xid. */
enum shape { SHAPE_VOID, SHAPE_STAT_RES, SHAPE_STAT, SHAPE_COUNT };

struct expected {
    bool is_known;
    uint32_t len;
    uint8_t bytes[REPLY_MAX]; /* from the message type on */
};

struct link {
    bool must_remove; /* churn: the next call removes `old` */
    uint32_t old;
    uint32_t filled; /* fill: how many of its keys have left */
    enum shape shapes[ENGINE_IN_FLIGHT_MAX];
};

static struct {
    enum kind kind;
    struct engine_options options;
    uint32_t state, registered, is_void;
    const char *keys_path;
    struct keys keys;
    struct expected expected[SHAPE_COUNT];
    struct link links[ENGINE_CONNECTIONS_MAX];
    uint64_t random;
    struct packet call;
} run;

static uint64_t next_random(void)
{
    run.random ^= run.random << 13;
    run.random ^= run.random >> 7;
    run.random ^= run.random << 17;
    return run.random;
}

/* The bytes that follow the xid of a right answer; the state is known by now. */
static void expect(enum shape shape)
{
    struct expected *expected = &run.expected[shape];
    memset(expected->bytes, 0, sizeof(expected->bytes));
    /* REPLY; accepted, AUTH_NONE, SUCCESS and STAT_SUCC are zeros */
    engine_put_word(expected->bytes, 1);
    expected->len = REPLY_HEAD_LEN - 4;
    if (shape == SHAPE_STAT_RES)
        expected->len += 4;
    if (shape != SHAPE_VOID) {
        engine_put_word(expected->bytes + expected->len, run.state);
        expected->len += 4;
    }
    expected->is_known = shape == SHAPE_VOID || run.state != 0;
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

static const char *judge(void *context, uint32_t connection, uint32_t slot, const uint8_t *bytes,
                         uint32_t len)
{
    (void)context;
    enum shape shape = run.links[connection].shapes[slot];
    const struct expected *expected = &run.expected[shape];
    if (!expected->is_known && !learn_state(shape, bytes, len))
        return "no success with a state";
    if (len != expected->len + 4 || memcmp(bytes + 4, expected->bytes, expected->len) != 0)
        return "not the expected result";
    return NULL;
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

/* A connection that registered something new also removes the old one, however late it is. */
static bool make(void *context, uint32_t connection, uint32_t slot, bool is_over,
                 struct engine_call *ret)
{
    (void)context;
    struct link *link = &run.links[connection];
    enum shape shape = run.kind == KIND_NULL ? SHAPE_VOID : SHAPE_STAT_RES;
    uint32_t key;
    if (is_over && run.kind != KIND_FILL && !link->must_remove)
        return false;
    switch (run.kind) {
    case KIND_NULL:
    case KIND_STAT:
        break; /* made once */
    case KIND_CHURN:
        if (link->must_remove) {
            shape = SHAPE_STAT;
            make_mon(link->old, true);
        } else {
            keys_replace(&run.keys, connection, next_random(), &key, &link->old);
            make_mon(key, false);
        }
        link->must_remove = !link->must_remove;
        break;
    case KIND_FILL:
        if (link->filled == run.keys.parts[connection].count)
            return false;
        make_mon(run.keys.parts[connection].live[link->filled++], false);
        break;
    }
    link->shapes[slot] = run.is_void ? SHAPE_VOID : shape;
    *ret = (struct engine_call){.bytes = run.call.bytes, .len = run.call.len};
    return true;
}

static bool set_option(const char *option)
{
    if (strncmp(option, "keys=", 5) == 0) {
        run.keys_path = option + 5;
        return true;
    }
    return engine_set_option(&run.options, option) ||
           engine_number(option, "state", UINT32_MAX, &run.state) ||
           engine_number(option, "registered", 10000000, &run.registered) ||
           engine_number(option, "void", 1, &run.is_void);
}

static bool parse(int count, char **arguments)
{
    uint32_t kind = 0;
    if (count < 3)
        return false;
    while (kind <= KIND_FILL && strcmp(arguments[1], kind_names[kind]) != 0)
        kind++;
    run.kind = (enum kind)kind;
    engine_defaults(&run.options);
    run.options.port = (uint32_t)strtoul(arguments[2], NULL, 10);
    for (int i = 3; i < count; i++)
        if (!set_option(arguments[i]))
            return false;
    return kind <= KIND_FILL && run.options.port > 0 && run.options.port < 65536 &&
           run.options.connections > 0 && run.options.in_flight > 0;
}

static bool prepare(void)
{
    run.random = dial_now_ns() | 1;
    for (enum shape shape = SHAPE_VOID; shape < SHAPE_COUNT; shape++)
        expect(shape);
    if (run.kind == KIND_NULL)
        peer_nsm_put_null(&run.call, 0);
    if (run.kind == KIND_STAT)
        peer_nsm_put_stat(&run.call, 0, "10.0.0.1");
    bool has_keys = run.keys_path && run.kind == KIND_CHURN &&
                    keys_load(&run.keys, run.options.connections, run.keys_path);
    return has_keys || keys_init(&run.keys, run.options.connections, run.registered);
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
    struct engine_work work = {NULL, make, judge, run.kind == KIND_FILL};
    bool is_right = engine_run(&run.options, &work);
    if (run.keys_path && !keys_save(&run.keys, run.keys_path)) {
        fprintf(stderr, "traffic: cannot write %s: %s\n", run.keys_path, strerror(errno));
        is_right = false;
    }
    return is_right ? 0 : 1;
}
