/*
 * once_calls.h -- calls that are repeated after a restart, for the tests of once.c. A server that
 * is killed between a change and the note of it is one whose intent has lost its outcome.
 */
#ifndef UNIT_FILE_ONCE_CALLS_H
#define UNIT_FILE_ONCE_CALLS_H

#include "caller.h"

#include "../test.h"
#include "file/intent_parts.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define EXPORT "rw,no_root_squash"

static struct caller c;

/* ---- calls ---- */

static inline struct nfs_args named(const char *name)
{
    return (struct nfs_args){.fh = caller_bytes(&c.root), .name = bytes_of_text(name)};
}

/* Makes this of all four kinds. */
static inline enum nfs_stat make(enum nfs_procedure procedure, const char *name)
{
    struct nfs_args args = named(name);
    args.create = NFS_GUARDED;
    args.sattr = (struct nfs_sattr){.set_mode = true, .mode = 0750};
    args.type = NFS_TYPE_FIFO;
    args.path = bytes_of_text("nowhere");
    return caller_call(&c, procedure, &args);
}

static inline enum nfs_stat take_away(enum nfs_procedure procedure, const char *name)
{
    struct nfs_args args = named(name);
    return caller_call(&c, procedure, &args);
}

static inline enum nfs_stat move(const char *from, const char *to)
{
    struct nfs_args args = named(from);
    args.to_fh = caller_bytes(&c.root);
    args.to_name = bytes_of_text(to);
    return caller_call(&c, NFS_RENAME, &args);
}

static inline enum nfs_stat give_name(const struct nfs_fh *file, const char *to)
{
    return caller_call(&c, NFS_LINK,
                       &(struct nfs_args){.fh = caller_bytes(file),
                                          .to_fh = caller_bytes(&c.root),
                                          .to_name = bytes_of_text(to)});
}

static inline enum nfs_stat set_mode(const struct nfs_fh *file, uint32_t mode,
                                     const struct nfs_time *guard)
{
    struct nfs_args args = {.fh = caller_bytes(file), .sattr = {.set_mode = true, .mode = mode}};
    if (guard != NULL) {
        args.has_guard = true;
        args.guard = *guard;
    }
    return caller_call(&c, NFS_SETATTR, &args);
}

/* ---- the file system as this machine sees it ---- */

static inline uint64_t inode_of(const char *name)
{
    struct stat st;
    return lstat(caller_path(&c, name), &st) == 0 ? st.st_ino : 0;
}

static inline uint64_t make_local(const char *name)
{
    assert_int_equal(mknod(caller_path(&c, name), S_IFREG | 0666, 0), 0);
    assert_int_equal(chown(caller_path(&c, name), 1000, 1000), 0);
    return inode_of(name);
}

static inline void link_local(const char *from, const char *to)
{
    char path[512];
    (void)snprintf(path, sizeof path, "%s", caller_path(&c, from));
    assert_int_equal(link(path, caller_path(&c, to)), 0);
}

static inline void unlink_local(const char *name)
{
    assert_int_equal(remove(caller_path(&c, name)), 0);
}

/* So that times of the file system differ. */
static inline void wait_a_tick(void)
{
    assert_int_equal(usleep(12000), 0);
}

/* ---- a kill ---- */

/* The last call was killed when its change was made, or not, and its intent not yet completed. */
static inline void forget_outcome(void)
{
    struct intent_ring *ring = c.options.intents;
    uint64_t number = atomic_load(&ring->next_number) - 1;
    atomic_store(&ring->entries[number % INTENT_COUNT].words[INTENT_WORD_OUTCOME], 0);
}

static inline void restart(void)
{
    caller_restart(&c, EXPORT);
}

static inline void kill_inside(void)
{
    forget_outcome();
    restart();
}

static inline uint64_t repeats(void)
{
    struct file_status status;
    file_get_status(c.service, &status);
    return status.repeats;
}

/* Another client's call. */
static inline void be_another(void)
{
    c.peer.address.bytes[3] = 9;
    c.xid = 77;
}

static inline void be_the_first(void)
{
    c.peer.address.bytes[3] = 1;
    c.xid = 1000;
}

#endif
