/*
 * notice.h -- what SM_NOTIFY said: "the host of this name is up again, with this state" (D7).
 *
 * One record per name, however many registrants watch it: the void answer to an SM_NOTIFY waits for
 * one small write, not for one per registrant. A registrant still has to hear of a notice while its
 * relayed_state differs from the notice's state. A notice lives as long as somebody watches its
 * name.
 */
#ifndef CORE_NOTICE_H
#define CORE_NOTICE_H

#include "base/chains.h"
#include "base/table.h"
#include "core/message.h"

struct core;

struct notice {
    uint64_t heard_ns;
    uint32_t mon_name; /* slot of the name, with a reference; spelled as first heard */
    uint32_t mon_fold; /* the same without case, in the core's pool of such names */
    uint32_t state;
    struct address address;
};

struct notices {
    struct table table;    /* of struct notice; slots are the store's keys */
    struct chains by_name; /* chain = slot of mon_fold; at most one notice on each */
};

__attribute__((warn_unused_result)) int notice_init(struct core *core, const uint32_t slots[]);
void notice_done(struct core *core);

enum notice_result {
    NOTICE_NEW,     /* recorded, or an older one replaced */
    NOTICE_KNOWN,   /* the same state was recorded before: a repeat */
    NOTICE_ASKING,  /* the resolver is asked whether the sender may speak for that name */
    NOTICE_UNHEARD, /* nobody watches that name, the sender may not speak for it, or it says 0 */
    NOTICE_CROWDED, /* there is no place for it to wait in */
    NOTICE_BYTES,   /* no bytes left to keep it in */
};

/* Whether it is true, as far as is known. */
enum notice_trust {
    NOTICE_CLAIM,       /* somebody says so; who may not is reported (hearsay.h) */
    NOTICE_MINOR_CLAIM, /* the same, of a host whose restart is looked into under another name */
    NOTICE_TRUE,        /* it is: a lock client's word, or that of an address of that name */
};

/* SM_NOTIFY with an acceptable name. */
enum notice_result notice_hear(struct core *core, const struct address *from, struct bytes mon_name,
                               uint32_t state, enum notice_trust trust);

/* The state last heard of this name; 0: none. `fold` is the slot of a name without case. */
uint32_t notice_state(const struct core *core, uint32_t fold);

/* When that was, wall clock; 0: never. */
uint64_t notice_heard_ns(const struct core *core, uint32_t fold);

/* A registrant of this name went: drop the notice when it was the last. */
void notice_unwatched(struct core *core, uint32_t fold);

bool notice_load(struct core *core, uint32_t slot, const struct record_notice *record);
uint32_t notice_encode(const struct core *core, uint32_t slot, uint8_t *buffer);
/* After loading: notices whose name nobody watches are removed. */
void notice_sweep(struct core *core);

void notice_check(const struct core *core);

#endif
