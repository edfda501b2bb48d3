/*
 * unsynced.h -- the mark that a store may hold changes which only the page cache has (D16).
 *
 * A run with --sync process leaves commits in the kernel's hands. They survive the process but not
 * the machine, so the directory carries the boot id of the kernel they were given to. A start that
 * opens the store under another boot id knows that changes may be missing, and that a data file of
 * a version without a journal may be torn.
 */
#ifndef STORE_UNSYNCED_H
#define STORE_UNSYNCED_H

#include "store/directory.h"

enum unsynced_mark {
    UNSYNCED_NONE,
    UNSYNCED_SAME_BOOT,  /* the page cache has it all */
    UNSYNCED_OTHER_BOOT, /* the machine stopped since; also when the boot id is not known */
};

/* 0 with *ret filled, or negative errno. */
__attribute__((warn_unused_result)) int unsynced_get(const struct directory *directory,
                                                     enum unsynced_mark *ret);
/* Sets the mark of this boot, durably. 0 or negative errno; the old mark then stays. */
__attribute__((warn_unused_result)) int unsynced_set(const struct directory *directory);
/* Sets a mark that no boot ever equals, durably: what it stood for is gone already. 0 or negative
 * errno. */
__attribute__((warn_unused_result)) int unsynced_set_lost(const struct directory *directory);
/* Removes the mark, durably. 0 (also when there was none) or negative errno. */
__attribute__((warn_unused_result)) int unsynced_clear(const struct directory *directory);

#endif
