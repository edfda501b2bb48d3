/*
 * file.h -- what is locked: a file, known by its handle's bytes.
 *
 * A file lives while a lock, an offer, a waiter or a share reservation is on it. Which file set it
 * belongs to is computed from the handle and never stored: the longest configured prefix wins,
 * everything else is in set 0, "default" (D14).
 */
#ifndef CORE_FILE_H
#define CORE_FILE_H

#include "base/intern.h"
#include "base/list.h"
#include "base/tree.h"
#include "core/core.h"
#include "core/span.h"

struct core;

struct file {
    span_root locks;       /* held and offered, by (start, slot) */
    tree_root waiters;     /* queued ones; see waiter.h */
    tree_root woken;       /* of them, to be looked at again */
    struct list wake_turn; /* while there are any: among the files of the first one's address */
    uint32_t lock_count;   /* of the set `locks` */
    uint32_t set;          /* index of the named set of files it belongs to */

    /* mirror.h's. */
    uint32_t mirror;             /* as local.h knows it */
    uint32_t charged;            /* the address (quota.h) that it counts for; SLOT_NONE: none */
    bool is_refused_again;       /* by a program, of what was gone through */
    struct list behind, refused; /* it is to be gone through; a program holds bytes of it */
    uint64_t behind_txn, behind_at;
    uint64_t loose_txn; /* of what was released last; */
    bool is_loose;      /* not all of it has been given back since */

    /* gone.h's: it was removed, and so many locks and shares of it are freed. */
    struct list gone;
    uint32_t gone_count;
};

struct files {
    struct intern handles; /* a file's slot is its handle's; references keep it */
    struct file *at;       /* by slot */
};

__attribute__((warn_unused_result)) int file_init(struct core *core, const uint32_t slots[]);
void file_done(struct core *core);

/* SLOT_NONE: nothing is on it. */
uint32_t file_find(const struct core *core, struct bytes fh);
/* One more reference, new or not. SLOT_NONE: no bytes left for its handle. */
uint32_t file_add(struct core *core, struct bytes fh);
/* One more reference to a file that is there. */
void file_keep(struct core *core, uint32_t slot);
/* One reference less. True: it was the last, and the file is gone. */
bool file_release(struct core *core, uint32_t slot);

struct file *file_at(const struct core *core, uint32_t slot);
struct bytes file_handle(const struct core *core, uint32_t slot);

void file_check(const struct core *core);

#endif
