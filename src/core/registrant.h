/*
 * registrant.h -- SM_MON registrations: who asked us to watch whom, and how to call them back (D1).
 *
 * A registrant is known by (source address, mon_name, my_name, my_prog, my_vers, my_proc).
 * Repeating the call updates the record in place. Records are freed by SM_UNMON and SM_UNMON_ALL
 * from the same address, by an operator, and for a new one when the table is full (evict.h).
 */
#ifndef CORE_REGISTRANT_H
#define CORE_REGISTRANT_H

#include "base/table.h"
#include "core/admit.h"
#include "core/host_index.h"
#include "core/message.h"

struct core;

/* Names and the address are slots of the core's intern pools; the registrant holds references. */
struct registrant {
    uint64_t id;
    uint64_t registered_ns;
    uint64_t heard_ns; /* wall clock: its last SM_MON or answer in this run; not stored */
    uint64_t server_epoch;
    uint64_t key_hash;
    uint32_t address, mon_name, my_name;
    uint32_t mon_fold; /* mon_name without case, in the core's pool of such names */
    uint32_t my_prog, my_vers, my_proc;
    uint32_t port, transport;
    uint32_t told_state, relayed_state; /* see store/record.h */
    uint32_t quota;                     /* of its address, with a reference */
    struct address local;
    uint8_t priv[RECORD_PRIV_LEN];
};

struct registrants {
    struct table table;      /* of struct registrant; slots are the store's keys */
    struct host_index index; /* the name is mon_name: it is watched in every spelling */
};

__attribute__((warn_unused_result)) int registrant_init(struct core *core, const uint32_t slots[]);
void registrant_done(struct core *core);

/* SM_MON whose names and callback were found acceptable. */
enum admission registrant_add(struct core *core, const struct peer *from,
                              const struct request *request, uint64_t wall_ns);
/* Of the key of a SM_MON or SM_UNMON. */
uint64_t registrant_hash(const struct core *core, const struct address *from,
                         const struct request *request);
/* SM_UNMON: the one with this key. False: there was none. */
bool registrant_remove(struct core *core, const struct peer *from, const struct request *request);
/* SM_UNMON_ALL: those of this address and my_name. Returns how many there were. */
uint32_t registrant_remove_all(struct core *core, const struct address *from, struct bytes my_name);

struct registrant *registrant_at(const struct core *core, uint32_t slot);
/* It called or answered just now: what operators see as its last sign of life. */
void registrant_alive(struct core *core, uint32_t slot);
/* The last such moment that is known, else when it registered; wall clock. */
uint64_t registrant_last_seen_ns(const struct registrant *registrant);
/* By a walk; SLOT_NONE: there is none of that id. */
uint32_t registrant_find_id(const struct core *core, uint64_t id);
/* An operator, or a full table, does without it. */
void registrant_forget(struct core *core, uint32_t slot);

/* Does anybody watch this name? `fold` is the slot of a name without case. */
bool registrant_any_of(const struct core *core, uint32_t fold);

/* A stored record comes back. False: the slot is taken or the key is there already. */
bool registrant_load(struct core *core, uint32_t slot, const struct record_registrant *record);
uint32_t registrant_encode(const struct core *core, uint32_t slot, uint8_t *buffer);

void registrant_check(const struct core *core);

#endif
