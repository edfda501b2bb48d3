/*
 * engine.h -- the closed loop of the load generators: connections, calls in flight, a judge.
 *
 * `connections` TCP connections have `in_flight` slots each; a slot has one call under way at a
 * time. What was answered together is replaced together, in one write. For `milliseconds` new calls
 * leave; answers that come later are judged but not counted as speed. It waits `drain`
 * milliseconds for them.
 *
 * Every answer must have the mark of one fragment and the xid of a call in flight on its
 * connection; whether it is right is for the work to say. The first wrong one is printed.
 */
#ifndef BENCH_ENGINE_H
#define BENCH_ENGINE_H

#include "peer/packet.h"

#define ENGINE_CONNECTIONS_MAX 1024
#define ENGINE_IN_FLIGHT_MAX   64   /* a power of two: the low bits of an xid are its slot */
#define ENGINE_CALL_MAX        1024 /* unless the options say more */
#define ENGINE_ANSWER_MAX      8192 /* the same */
#define ENGINE_SKIM_MIN        128

struct engine_options {
    uint32_t port, connections, in_flight, milliseconds, drain;
    uint32_t source, sources;      /* connection c comes from source + c % sources, IPv4 */
    uint32_t call_max, answer_max; /* bytes, of a call without its data */
    bool skips; /* of a long answer only the first ENGINE_SKIM_MIN bytes are read; the rest is
                   dropped where it is, in the kernel: a client's copy is not the server's speed */
};

/* A whole call; its first word will be the xid. Valid until the next one is made; the data behind
 * it, which may be missing, as long as the engine runs. */
struct engine_call {
    const uint8_t *bytes;
    uint32_t len;
    const uint8_t *data;
    uint32_t data_len;
};

/* What is called, and what is answered. */
struct engine_work {
    void *context;
    /* False: the slot has nothing to call. When the time is over, only what must be finished. */
    bool (*make)(void *context, uint32_t connection, uint32_t slot, bool is_over,
                 struct engine_call *ret);
    /* The whole answer, from its xid on, or with `skips` the beginning of one that is so long. NULL
     * if it is right, else why it is not. */
    const char *(*judge)(void *context, uint32_t connection, uint32_t slot, const uint8_t *bytes,
                         uint32_t len);
    bool counts_all; /* a given number of calls: the time until the last answer counts */
};

/* The defaults: 32 x 32 for a second, 5 s for the rest, from 127.0.0.1. */
void engine_defaults(struct engine_options *options);
/* "name=value" of the options above but for the port. False: not one of them, or too much. */
bool engine_set_option(struct engine_options *options, const char *text);
/* The number of "name=value" if the name is this one and it is not larger than max. */
bool engine_number(const char *text, const char *name, uint32_t max, uint32_t *ret);

/*
 * Runs and prints one line of numbers for the bench. False: a connection failed, or an answer was
 * wrong or (with a drain) missing.
 */
bool engine_run(const struct engine_options *options, const struct engine_work *work);

void engine_put_word(uint8_t *at, uint32_t value);

#endif
