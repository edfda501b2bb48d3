/*
 * intent.h -- what a call was about to change, kept where kill -9 cannot take it: a ring in a file
 * that is mapped into memory (decision 043).
 *
 *                 begin                      end
 *   (nothing) -----------> INTENT_BEGUN ---------------> INTENT_DONE, _FOUND, _FAILED
 *                               |   the server is killed        |
 *                               +------------> earlier <--------+---> overwritten, or too old
 *
 * An entry is 32 words of the machine. Two of them are keyed checksums: one of what is known before
 * the change, one of what is known after it. Each is stored last.
 *
 *    0 checksum of 2 to 23            9 order: its number, or that of the entry it repeats
 *    1 over: when its run was         10 begun: by the clock of the file systems
 *    2 number                         11 to_place, procedure, port
 *    3 run                            12 first, six words
 *    4 key                            18 second, six words
 *    5 client                         24 checksum of 2 and 25 to 31
 *    6 place                          25 status, outcome
 *    7 boot                           26 made, six words
 *    8 clock: time that servers were up
 *
 * Always true:
 *  (1) An entry counts when its first checksum is right, and its outcome when the second is: a
 *      thread that is killed inside either leaves an entry that does not exist, or an intent that
 *      was begun.
 *  (2) The number of an entry is larger than all before it, and is its place in the ring.
 *  (3) Whatever the bytes of the file are, they are an intent of ours, or nothing.
 *
 * Nothing is synced. The file is the kernel's when the process is gone; if the machine goes, what
 * it had written until then is left, and an outcome may have got there before the change that it is
 * of: so it is not believed in another boot. INTENT_FAILED is: there is no change.
 *
 * Every function but open and close may be called from any thread.
 */
#ifndef FILE_INTENT_H
#define FILE_INTENT_H

#include "base/mac.h"
#include "base/text.h"
#include "file/handle.h"

#include <stdatomic.h>

enum {
    INTENT_COUNT = 16384, /* more than calls can be in flight, and seconds of the rest */
    INTENT_HEAD_LEN = 4096,
    INTENT_WORDS = 32,
    INTENT_WORD_OUTCOME = 24, /* the second checksum */
};
#define INTENT_FILE "intents.ring"

enum intent_outcome {
    INTENT_BEGUN,
    INTENT_DONE,
    INTENT_FAILED, /* and nothing has changed */
    INTENT_FOUND,  /* done; the object had been there before */
};

struct intent {
    uint64_t key;      /* of the call: who, which xid, what; see once.c */
    uint64_t client;   /* who */
    uint64_t place;    /* which name in which directory, or which object, it changes */
    uint32_t to_place; /* RENAME: the low bits of the other one */
    uint16_t procedure, port;
    struct handle_object first;  /* what the name meant before; len 0: nothing, or not asked */
    struct handle_object second; /* the same of the other name */
    /* Of a repeat: that of the entry it repeats; 0: its own. */
    uint64_t begun_ns, order, clock_ms;

    /* Of one that is found. */
    enum intent_outcome outcome;
    bool is_same_boot;         /* if not, the outcome may be older than it says */
    enum nfs_stat stat;        /* of one that failed; NFS_OK: not known */
    struct handle_object made; /* len 0: not known */
    uint64_t over_ns;          /* nothing of its run happened after this */
    uint64_t number, run;
};

struct intent_ring;

/*
 * The ring in a directory, made if there is none. *ret_note has a sentence if there is something to
 * say: with NULL, why there can be none; else, that an unusable one was replaced.
 */
struct intent_ring *intent_ring_open(const char *directory, const struct mac_key *key,
                                     struct text *ret_note);
void intent_ring_close(struct intent_ring *ring);
/* For the keys of intents: a key of its own, the same at every start. */
const struct mac_key *intent_ring_key(const struct intent_ring *ring);
/* So much time has passed while the server was up. */
void intent_ring_tick(struct intent_ring *ring, uint32_t ms);

/* Before the change. The number for intent_end. */
uint64_t intent_begin(struct intent_ring *ring, const struct intent *intent);
void intent_end(struct intent_ring *ring, uint64_t number, enum intent_outcome outcome,
                const struct handle_object *made);
/* The same of one that has failed, and how. */
void intent_fail(struct intent_ring *ring, uint64_t number, enum nfs_stat stat);

/* The newest of this key that an earlier run began; NULL: none, or too long ago. It lives as long
 * as the ring. */
const struct intent *intent_find(const struct intent_ring *ring, uint64_t key);
/* Has the same client changed the same place by another call, so much later that it must have had
 * its answer to this one? */
bool intent_is_superseded(const struct intent_ring *ring, const struct intent *intent);
/* Has another call made the object intent->made? */
bool intent_is_made_by_another(const struct intent_ring *ring, const struct intent *intent);
/* Has another call since found intent->first where it was? */
bool intent_is_seen_by_another(const struct intent_ring *ring, const struct intent *intent);
/* Has another LINK since found nothing under this name? */
bool intent_is_missed_by_another(const struct intent_ring *ring, const struct intent *intent);

#endif
