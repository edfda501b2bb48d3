/*
 * mirror.h -- what NFS clients hold, as programs on this machine see it (F-MIRROR).
 *
 * The bytes of a file that are held or offered, in the strongest mode of any owner, are its
 * *mirror*: locks of the kernel's, reached through local.h. A program that holds conflicting bytes
 * is in the way of a request like another client is; it has no place in the lock table.
 *
 *                     mirror_take          lock_element_remove, _change          durable
 *   bytes: not held ---------------> held -------------------------------> loose --------> not held
 *                   false: in the way     ^                                  |
 *                                         +----------------------------------+ taken again
 *
 * Always true:
 *  (1) Bytes are mirrored before anybody learns that they are granted or offered.
 *  (2) They stay so until a crash cannot bring the lock back: the batch without it is durable.
 *  (3) What could not be mirrored when a run began, because a program was faster, is reported,
 *      counted, and tried again. Neither of the two holders is a secret.
 *
 * A waiter in whose way a program is looks again every MIRROR_AGAIN_NS: the kernel does not say
 * when a lock is free. As long as clients wait for each other's locks, they come before programs.
 */
#ifndef CORE_MIRROR_H
#define CORE_MIRROR_H

#include "base/list.h"
#include "base/units.h"
#include "core/claim.h"
#include "core/local.h"
#include "core/message.h"

struct core;

#define MIRROR_AGAIN_NS (100 * MS_NS)

/* Bytes that were released in a batch. */
struct mirror_loose {
    uint64_t start, end;
    uint64_t txn;
    uint32_t file; /* with a reference */
};

struct mirrors {
    const struct local_locks *world; /* NULL: there are no other programs */
    struct mirror_loose *loose;      /* a ring, oldest first */
    uint32_t loose_first, loose_count;
    struct list behind;  /* files that are gone through as a whole, with a reference */
    struct list refused; /* files with bytes that a program holds */
    struct list waiting; /* waiters in whose way a program is, longest first */
    uint32_t waiting_count;
    uint64_t waiting_ns;    /* when they look again, */
    uint64_t refused_ns;    /* and when these do */
    uint32_t refused_count; /* of files */
    uint32_t charged_count; /* files that count for an address */
};

__attribute__((warn_unused_result)) int mirror_init(struct core *core, const uint32_t slots[]);
void mirror_done(struct core *core);

/* A file has its first reference, or loses its last. */
void mirror_open(struct core *core, uint32_t file);
void mirror_close(struct core *core, uint32_t file);

/* May this address have one more file mirrored? Every locked file needs descriptors, of which there
 * are few: half of them go to anybody, the others to addresses within their share. */
bool mirror_admits(const struct core *core, const struct address *address);
/* A new file counts for this address as long as it lives. */
void mirror_charge(struct core *core, uint32_t file, const struct address *address);

/* Nobody in the lock table is in the way of this claim; is a program? If what it was taken for does
 * not come about, mirror_loosen takes it back. */
enum mirror_result {
    MIRROR_TAKEN,
    MIRROR_REFUSED, /* a program holds some of it */
    MIRROR_NO_ROOM, /* for one more file */
    MIRROR_NOT_NOW, /* it must be asked for again */
};
enum mirror_result mirror_take(struct core *core, const struct claim *claim);
/* Less is held of these bytes than before. */
void mirror_loosen(struct core *core, const struct claim *claim);
/* No program is in the way of this claim, whose file need not be known here; false: this one is. */
bool mirror_test(const struct core *core, struct bytes fh, const struct claim *claim,
                 struct lock_holder *ret);

/* Waiters in whose way a program is. */
uint32_t mirror_waiting_count(const struct core *core);

void mirror_work(struct core *core);
uint64_t mirror_deadline_ns(const struct core *core);
void mirror_check(const struct core *core);

#endif
