/*
 * state.h -- the insides of struct core, for the files of src/core only.
 */
#ifndef CORE_STATE_H
#define CORE_STATE_H

#include "core/core.h"
#include "core/dirty.h"
#include "core/notice.h"
#include "core/notify.h"
#include "core/registrant.h"

struct core {
    struct core_limits limits;
    uint64_t seed;   /* of every hash */
    uint64_t now_ns; /* of the current step */

    /* Our own record, as it is now; `txn` is the number of the last batch taken. */
    struct record_server server;
    bool server_changed; /* must go into the open batch although no slot is dirty */
    bool sync_wanted;    /* the open batch adds a client or changes the state */
    bool batch_out;      /* taken and not yet stored */
    uint64_t durable_txn;
    bool has_room;

    /* Loading, until core_start. */
    bool started, server_loaded;
    bool corrupt_found;
    uint32_t records_loaded;
    uint64_t id_seen_max, epoch_seen_max;

    struct arena *arena;
    struct intern names; /* as they were spelled */
    struct intern folds; /* monitored names without case: what notices and registrants share */
    struct registrants registrants;
    struct notices notices;
    struct notify notify;
    struct dirty dirty;
    uint8_t *batch_memory;
    uint64_t batch_memory_len;
    struct event_ring events;
};

/* The next state number: odd, larger (R-PER-4). After 2^31 - 1, the largest the protocol's signed
 * number can say, it starts again at 1. */
uint32_t core_next_state(uint32_t state);

/* The batch that must be durable before anything that depends on the state as it is now may leave:
 * the open one if it holds anything, else the last one taken (P1). */
uint64_t core_gate_txn(const struct core *core);

/* A monitored name without case in the pool `folds`: a new reference, or the slot of one that is
 * there. SLOT_NONE: no room, or not there. */
uint32_t core_add_fold(struct core *core, struct bytes name);
uint32_t core_find_fold(const struct core *core, struct bytes name);

#endif
