/*
 * export_table.h -- the exported directories: opened, their clients resolved, and who may do what.
 *
 * A table never changes. A reload makes a new one and swaps it in; calls that run keep the table
 * they started with, by a count of references, and its directories stay open as long.
 *
 * Which rights a client has is decided by the most exact of the clients that match: an address or
 * hostname before a network, a longer prefix before a shorter one, everybody last.
 */
#ifndef FILE_EXPORT_TABLE_H
#define FILE_EXPORT_TABLE_H

#include "base/mac.h"
#include "file/export_line.h"
#include "file/lane.h"

#include <stdatomic.h>
#include <sys/stat.h>

enum { EXPORTS_MAX = 1024, EXPORT_ADDRESSES_MAX = 16 };

/* A client with the addresses of its name. */
struct export_rule {
    struct export_client client;
    uint32_t address_count; /* EXPORT_HOST: what it resolved to */
    struct address addresses[EXPORT_ADDRESSES_MAX];
};

struct export
{
    char directory[EXPORT_DIRECTORY_MAX + 1]; /* as written */
    char resolved[EXPORT_DIRECTORY_MAX + 1];  /* without symbolic links */
    uint32_t id;                              /* in handles and as fsid: stable over restarts */
    int root_fd;                              /* open for reading */
    dev_t device;
    ino_t root_inode;
    struct lane *lane; /* kept; NULL: not told yet */
    int mount_id;      /* as the kernel names it in handles */
    bool is_memory;    /* tmpfs: a read never waits for a disk */
    bool is_elsewhere; /* another program or machine answers, or does not: attributes, too */
    bool is_journaled; /* one sync of a directory makes a whole operation durable */
    uint32_t rule_count;
    struct export_rule *rules;
};

struct export_table {
    atomic_uint references;
    uint32_t count;
    struct export exports[];
};

/* Resolves hostnames: up to `max` addresses; their number, 0: not known. For tests to replace. */
typedef uint32_t (*export_resolve_fn)(const char *name, struct address *ret, uint32_t max);
uint32_t export_table_resolve(const char *name, struct address *ret, uint32_t max);

/*
 * Opens every directory of the lines; lines of the same directory add up. NULL with a sentence in
 * *ret_why: not there, not a directory, inside another one, no file handles, two with one fsid.
 */
struct export_table *export_table_new(const struct export_line *lines, uint32_t count,
                                      const struct mac_key *key, export_resolve_fn resolve,
                                      struct text *ret_why);
/* Each export gets the lane of its file system. False: no memory. */
bool export_table_take_lanes(struct export_table *table, struct lane_list *lanes);
struct export_table *export_table_keep(struct export_table *table);
void export_table_drop(struct export_table *table);

/* NULL: no such export. */
const struct export *export_table_find(const struct export_table *table, uint32_t id);
/* The export that a path is, or is below; *ret_rest is what follows, without a slash in front. */
const struct export *export_table_find_path(const struct export_table *table, const char *path,
                                            const char **ret_rest);
/* NULL: this client may do nothing. */
const struct export_rights *export_rights_of(const struct export *export,
                                             const struct address *from, uint16_t port);

#endif
