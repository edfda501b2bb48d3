/*
 * journal.h -- has an ext4 file system a journal?
 *
 * With one, a sync of a directory makes durable all that a call has changed, the new object
 * included, because both are in one transaction. ext4 may be made without (mkfs.ext4 -O
 * ^has_journal), and ext2 and ext3 have the same magic number: a name could then be durable whose
 * object is not.
 */
#ifndef FILE_JOURNAL_H
#define FILE_JOURNAL_H

#include <stdbool.h>
#include <sys/types.h>

/* False where the kernel does not say: then every object is synced, too. */
bool journal_is_there(dev_t device);

#endif
