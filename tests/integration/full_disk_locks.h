/*
 * full_disk_locks.h -- the part of full_disk.c that locks.
 */
#ifndef INTEGRATION_FULL_DISK_LOCKS_H
#define INTEGRATION_FULL_DISK_LOCKS_H

/* Fills the small file system that this store is on with locks. */
void full_disk_locks(const char *store);

#endif
