/*
 * drc_parts.h -- the insides of the duplicate request cache, for the files of rpc/drc; nobody else
 * looks in here.
 *
 * An entry takes two lines of the processor's cache, with the answer that nearly every call gets:
 * those of thousands of calls are touched in turn, and each line of them is waited for. What a call
 * needs while it is in progress lies where it has its links when it is done.
 */
#ifndef RPC_DRC_PARTS_H
#define RPC_DRC_PARTS_H

#include "base/arena.h"
#include "base/hash.h"
#include "base/hash_index.h"
#include "base/table.h"
#include "rpc/drc.h"

/* Bytes of a reply that lie in its entry: those of a lock. */
#define DRC_REPLY_NEAR 44

/* A caller's share of the arena for longer ones, as its share of the entries. */
#define DRC_REPLY_BYTES 128
#define DRC_FAR_BYTES   (DRC_PER_ADDRESS * DRC_REPLY_BYTES)

/* The queues of what is done: of all, and of one caller; and of those with a cell of the arena. */
enum drc_which { DRC_OF_ALL, DRC_OF_CALLER, DRC_FAR_OF_ALL, DRC_FAR_OF_CALLER };
enum { DRC_QUEUES = DRC_FAR_OF_ALL, DRC_FAR_QUEUES = DRC_FAR_OF_CALLER + 1 - DRC_FAR_OF_ALL };

/* Slots of entries; SLOT_NONE: there is none. */
struct drc_link {
    uint32_t next, prev;
};

struct drc_queue {
    uint32_t first, last; /* the oldest comes first */
};

struct drc_entry {
    union {
        struct { /* in progress */
            uint64_t waiting;
            uint64_t before; /* handle of the entry that it has made old; DRC_NONE: none */
        };
        struct { /* done */
            uint64_t done_ns;
            struct drc_link links[DRC_QUEUES];
        };
    };
    uint64_t args_hash; /* the key, with the caller in place of its address */
    uint32_t caller;    /* slot in the table of callers */
    uint32_t owner, client, xid, proc;
    uint32_t life;      /* of its caller when it began; an older one is not kept */
    uint16_t reply_len; /* 0 while it is in progress */
    uint16_t port;      /* the last that asked while it was in progress */
    bool is_done;
    bool is_old;     /* a later call of its owner was begun; else it is in by_owner if it has one */
    bool is_passing; /* its answer was for the moment */
    uint32_t prog, vers, args_len; /* the rest of the key */
    union {
        uint8_t reply_near[DRC_REPLY_NEAR];
        struct {                 /* a longer one */
            uint32_t reply_cell; /* of the arena */
            struct drc_link far_links[DRC_FAR_QUEUES];
        };
    };
};
_Static_assert(TABLE_HEAD_LEN + sizeof(struct drc_entry) == 128,
               "two lines of the processor's cache");
_Static_assert(DRC_REPLY_MAX <= UINT16_MAX, "reply_len has room for every reply that is kept");

struct drc_caller {
    struct address address;
    struct drc_queue done, far;
    uint32_t done_count, entry_count;
    uint32_t far_bytes; /* of the arena, for its replies; at most DRC_FAR_BYTES */
    uint32_t life;      /* grows when the caller reboots */
};

struct drc {
    struct table entries, callers;
    struct hash_index by_key, by_address, by_owner;
    struct arena *replies;      /* the longer ones */
    struct drc_queue done, far; /* of all callers */
    uint32_t whole_count;
    uint32_t last_caller; /* that was looked for: the next call is mostly of the same; SLOT_NONE */
    uint64_t seed;
};

static inline uint64_t drc_owner_hash(const struct drc *drc, uint32_t caller, uint32_t owner)
{
    return hash_number(drc->seed, (uint64_t)caller << 32 | owner);
}

/* A FREE_ALL, if it is of anybody. */
static inline bool drc_is_whole(const struct drc_entry *entry)
{
    return entry->owner == entry->client;
}

static inline struct drc_link *drc_link_of(struct drc_entry *entry, enum drc_which which)
{
    return which < DRC_FAR_OF_ALL ? &entry->links[which]
                                  : &entry->far_links[which - DRC_FAR_OF_ALL];
}

/* drc_queue.c: puts the entry of a slot at the end of a queue, or takes it out of it. */
void drc_queue_append(struct drc *drc, struct drc_queue *queue, enum drc_which which, uint32_t slot,
                      struct drc_entry *entry);
void drc_queue_remove(struct drc *drc, struct drc_queue *queue, enum drc_which which,
                      struct drc_entry *entry);

#endif
