/*
 * ofd.h -- the locks of NFS clients as locks of the kernel's (F-MIRROR): the file service's side of
 * core/local.h.
 *
 * Every file that has something on it keeps a descriptor, whose open-file-description locks are the
 * bytes that clients hold, as one holder. The kernel compares them with those of programs, of Samba
 * and of containers; among clients the lock table decides, and never asks here.
 *
 * The kernel keeps the locks of a file in a list. A file in more than OFD_PIECES_MAX pieces is
 * therefore held as a whole, exclusively, until it is in few again.
 *
 *              raise: one piece too many
 *   in pieces ---------------------------> as a whole
 *             <---------------------------
 *                       refine
 *
 * File systems whose locks are kept elsewhere (NFS, FUSE and the like) are not mirrored: a lock
 * there may wait for somebody. A file that cannot be opened for writing has shared locks only.
 *
 * All of it belongs to the server's thread.
 */
#ifndef FILE_OFD_H
#define FILE_OFD_H

#include "core/local.h"

enum { OFD_PIECES_MAX = 128 };

struct file_service;
struct ofd;

/* Locks of at most so many files; NULL: no memory. */
struct ofd *ofd_new(struct file_service *service, uint32_t files_max);
/* What is held goes with its descriptors, unless the keeper has them (keeper.h). */
void ofd_free(struct ofd *ofd);

/* As core/local.h says. */
const struct local_locks *ofd_local(struct ofd *ofd);

/* While the server starts, files are opened on the spot, whatever that takes; later, those that may
 * lock them have opened them (lock_guard.h). */
void ofd_end_start(struct ofd *ofd);
/* The same once more: there are other exports, and locks on their files. */
void ofd_begin_start(struct ofd *ofd);

/* Files that nobody has locked for half a second are let go; now and then. */
void ofd_tick(struct ofd *ofd);

/* Files that are mirrored. */
uint32_t ofd_count(const struct ofd *ofd);

#endif
