/*
 * export_table.c -- see export_table.h.
 *
 * An export is known in handles by 32 bits: those of fsid=, or a keyed hash of its path. A restart
 * finds the same number without having stored it, and so does another machine that opens the same
 * store. Two exports with one number are refused, with the way out: fsid=.
 *
 * Always true:
 *  (1) No export lies inside another one of the same file system: a file has one handle, whichever
 *      way it was reached, and locks depend on that.
 *  (2) Each root is open, and can be named by a handle.
 */
#include "file/export_table.h"

#include "base/check.h"
#include "file/handle.h"
#include "file/journal.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <strings.h>
#include <sys/vfs.h>
#include <unistd.h>

/* Of file systems that <linux/magic.h> does not name. */
#define GFS2_MAGIC   0x01161970
#define LUSTRE_MAGIC 0x0bd00bd0

static void say(struct text *why, const char *directory, const char *what, int err)
{
    text_add(why, "cannot export ");
    text_add_escaped(why, bytes_of_text(directory), 256);
    text_add(why, ": ");
    text_add(why, what);
    if (err != 0) {
        text_add(why, ": ");
        text_add(why, strerror(err));
    }
    if (err == ENOENT || err == ENOTDIR)
        text_add(why, "; make that directory, or correct the path");
}

uint32_t export_table_resolve(const char *name, struct address *ret, uint32_t max)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *found = NULL;
    if (getaddrinfo(name, NULL, &hints, &found) != 0)
        return 0;
    uint32_t count = 0;
    for (struct addrinfo *at = found; at != NULL && count < max; at = at->ai_next) {
        if (at->ai_family == AF_INET) {
            struct sockaddr_in in;
            memcpy(&in, at->ai_addr, sizeof in);
            uint8_t bytes[4];
            memcpy(bytes, &in.sin_addr, sizeof bytes);
            ret[count++] = address_v4(bytes);
        } else if (at->ai_family == AF_INET6) {
            struct sockaddr_in6 in;
            memcpy(&in, at->ai_addr, sizeof in);
            ret[count++] = address_v6(in.sin6_addr.s6_addr, NULL);
        }
    }
    freeaddrinfo(found);
    return count;
}

/* File systems that ask others: what they said before is not always enough for them. */
static bool is_asking(uint64_t magic)
{
    static const uint64_t asking[] = {
        FUSE_SUPER_MAGIC, NFS_SUPER_MAGIC, SMB_SUPER_MAGIC,   SMB2_SUPER_MAGIC, CIFS_SUPER_MAGIC,
        CEPH_SUPER_MAGIC, AFS_SUPER_MAGIC, AFS_FS_MAGIC,      V9FS_MAGIC,       CODA_SUPER_MAGIC,
        GFS2_MAGIC,       LUSTRE_MAGIC,    OCFS2_SUPER_MAGIC,
    };
    for (size_t i = 0; i < sizeof asking / sizeof asking[0]; i++)
        if (asking[i] == magic)
            return true;
    return false;
}

static bool classify(struct export *export)
{
    struct statfs fs;
    if (fstatfs(export->root_fd, &fs) != 0)
        return false;
    uint64_t magic = (uint64_t)(uint32_t)fs.f_type;
    export->is_memory = magic == TMPFS_MAGIC || magic == RAMFS_MAGIC;
    export->is_elsewhere = is_asking(magic);
    export->is_journaled = export->is_memory || magic == XFS_SUPER_MAGIC ||
                           (magic == EXT4_SUPER_MAGIC && journal_is_there(export->device));
    return true;
}

static bool open_root(struct export *export, struct text *why)
{
    char resolved[PATH_MAX];
    struct stat st;
    export->root_fd = -1;
    if (realpath(export->directory, resolved) == NULL)
        return say(why, export->directory, "cannot be opened", errno), false;
    if (strlen(resolved) > EXPORT_DIRECTORY_MAX)
        return say(why, export->directory, "its path is longer than 1,023 bytes", 0), false;
    memcpy(export->resolved, resolved, strlen(resolved) + 1);
    export->root_fd = open(resolved, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (export->root_fd < 0)
        return say(why, export->directory, "cannot be opened", errno), false;
    if (fstat(export->root_fd, &st) != 0)
        return say(why, export->directory, "cannot be examined", errno), false;
    export->device = st.st_dev;
    export->root_inode = st.st_ino;
    if (!classify(export))
        return say(why, export->directory, "cannot be examined", errno), false;
    struct handle_object object;
    int code = handle_object_at(export->root_fd, ".", &object, &export->mount_id);
    if (code == -EOVERFLOW)
        return say(why, export->directory, "this file system has handles of more than 40 bytes", 0),
               false;
    if (code != 0)
        return say(why, export->directory,
                   "this file system has no file handles (name_to_handle_at)", -code),
               false;
    int fd = handle_open(export->root_fd, &object);
    if (fd < 0)
        return say(why, export->directory,
                   "file handles cannot be opened; run as root or with CAP_DAC_READ_SEARCH", -fd),
               false;
    (void)close(fd);
    return true;
}

static bool add_rules(struct export *export, const struct export_line *line,
                      export_resolve_fn resolve, struct text *why)
{
    uint32_t count = export->rule_count + line->client_count;
    struct export_rule *grown = realloc(export->rules, count * sizeof *grown);
    if (grown == NULL)
        return say(why, line->directory, "out of memory", 0), false;
    export->rules = grown;
    for (uint32_t i = 0; i < line->client_count; i++) {
        struct export_rule *rule = &export->rules[export->rule_count++];
        *rule = (struct export_rule){.client = line->clients[i]};
        if (rule->client.kind != EXPORT_HOST)
            continue;
        rule->address_count = resolve(rule->client.name, rule->addresses, EXPORT_ADDRESSES_MAX);
        if (rule->address_count == 0) {
            say(why, line->directory, "the name of this client has no address: ", 0);
            text_add(why, rule->client.name);
            return false;
        }
    }
    return true;
}

static bool is_same_client(const struct export_client *a, const struct export_client *b)
{
    if (a->kind != b->kind)
        return false;
    switch (a->kind) {
    case EXPORT_EVERYBODY:
        return true;
    case EXPORT_NETWORK:
        return a->network.prefix_len == b->network.prefix_len &&
               network_has(&a->network, &b->network.address);
    case EXPORT_HOST:
        return strcasecmp(a->name, b->name) == 0;
    }
    UNREACHABLE();
}

/* Only one of them could count, and nobody would see which. */
static bool check_clients(const struct export *export, struct text *why)
{
    for (uint32_t i = 0; i < export->rule_count; i++)
        for (uint32_t j = 0; j < i; j++)
            if (is_same_client(&export->rules[i].client, &export->rules[j].client)) {
                say(why, export->directory, "this client is listed twice: ", 0);
                text_add_escaped(why, bytes_of_text(export->rules[i].client.name), EXPORT_NAME_MAX);
                return false;
            }
    return true;
}

static bool is_below(const char *path, const char *directory)
{
    size_t len = strlen(directory);
    if (len == 1)
        return path[0] == '/';
    return strncmp(path, directory, len) == 0 && (path[len] == 0 || path[len] == '/');
}

static bool check_against(const struct export *a, const struct export *b, struct text *why)
{
    bool is_nested = is_below(a->resolved, b->resolved) || is_below(b->resolved, a->resolved);
    if (is_nested && a->device == b->device) {
        say(why, a->directory,
            "it and this export lie inside each other on one file system, and "
            "files would have two handles: ",
            0);
        text_add_escaped(why, bytes_of_text(b->directory), 256);
        return false;
    }
    if (a->id == b->id) {
        say(why, a->directory, "give it an fsid= of its own: it has the same as ", 0);
        text_add_escaped(why, bytes_of_text(b->directory), 256);
        return false;
    }
    return true;
}

static bool take_fsid(struct export *export, const struct mac_key *key, struct text *why)
{
    bool has_fsid = false;
    for (uint32_t i = 0; i < export->rule_count; i++) {
        const struct export_rights *rights = &export->rules[i].client.rights;
        if (!rights->has_fsid)
            continue;
        if (has_fsid && rights->fsid != export->id)
            return say(why, export->directory, "its clients have different fsid=", 0), false;
        has_fsid = true;
        export->id = rights->fsid;
    }
    if (!has_fsid)
        export->id = (uint32_t)mac_of(key, bytes_of_text(export->directory));
    return true;
}

static struct export *find_directory(struct export_table *table, const char *directory)
{
    for (uint32_t i = 0; i < table->count; i++)
        if (strcmp(table->exports[i].directory, directory) == 0)
            return &table->exports[i];
    return NULL;
}

static bool fill(struct export_table *table, const struct export_line *lines, uint32_t count,
                 export_resolve_fn resolve, struct text *why)
{
    for (uint32_t i = 0; i < count; i++) {
        struct export *export = find_directory(table, lines[i].directory);
        if (export == NULL) {
            export = &table->exports[table->count++];
            memcpy(export->directory, lines[i].directory, sizeof export->directory);
            if (!open_root(export, why))
                return false;
        }
        if (!add_rules(export, &lines[i], resolve, why))
            return false;
    }
    return true;
}

struct export_table *export_table_new(const struct export_line *lines, uint32_t count,
                                      const struct mac_key *key, export_resolve_fn resolve,
                                      struct text *ret_why)
{
    if (count > EXPORTS_MAX) {
        text_add(ret_why, "more than 1,024 exports");
        return NULL;
    }
    struct export_table *table = calloc(1, sizeof *table + count * sizeof table->exports[0]);
    if (table == NULL) {
        text_add(ret_why, "out of memory");
        return NULL;
    }
    atomic_init(&table->references, 1);
    bool is_good = fill(table, lines, count, resolve, ret_why);
    for (uint32_t i = 0; is_good && i < table->count; i++) {
        is_good = check_clients(&table->exports[i], ret_why) &&
                  take_fsid(&table->exports[i], key, ret_why);
        for (uint32_t j = 0; is_good && j < i; j++)
            is_good = check_against(&table->exports[i], &table->exports[j], ret_why);
    }
    if (is_good)
        return table;
    export_table_drop(table);
    return NULL;
}

bool export_table_take_lanes(struct export_table *table, struct lane_list *lanes)
{
    bool is_good = true;
    for (uint32_t i = 0; i < table->count && is_good; i++) {
        table->exports[i].lane = lane_get(lanes, table->exports[i].device);
        is_good = table->exports[i].lane != NULL;
    }
    return is_good;
}

struct export_table *export_table_keep(struct export_table *table)
{
    atomic_fetch_add(&table->references, 1);
    return table;
}

void export_table_drop(struct export_table *table)
{
    if (table == NULL || atomic_fetch_sub(&table->references, 1) != 1)
        return;
    for (uint32_t i = 0; i < table->count; i++) {
        if (table->exports[i].root_fd >= 0)
            (void)close(table->exports[i].root_fd);
        lane_drop(table->exports[i].lane);
        free(table->exports[i].rules);
    }
    free(table);
}

const struct export *export_table_find(const struct export_table *table, uint32_t id)
{
    for (uint32_t i = 0; i < table->count; i++)
        if (table->exports[i].id == id)
            return &table->exports[i];
    return NULL;
}

const struct export *export_table_find_path(const struct export_table *table, const char *path,
                                            const char **ret_rest)
{
    const struct export *best = NULL;
    size_t best_len = 0;
    for (uint32_t i = 0; i < table->count; i++) {
        const char *names[2] = {table->exports[i].directory, table->exports[i].resolved};
        for (int n = 0; n < 2; n++) {
            size_t len = strlen(names[n]);
            if (!is_below(path, names[n]) || (best != NULL && len <= best_len))
                continue;
            best = &table->exports[i];
            best_len = len;
        }
    }
    if (best == NULL)
        return NULL;
    const char *rest = path + best_len;
    while (*rest == '/')
        rest++;
    *ret_rest = rest;
    return best;
}

/* How exactly a rule names this client; 0: not at all. */
static uint32_t match(const struct export_rule *rule, const struct address *from)
{
    switch (rule->client.kind) {
    case EXPORT_EVERYBODY:
        return 1;
    case EXPORT_NETWORK:
        if (!network_has(&rule->client.network, from))
            return 0;
        return network_is_address(&rule->client.network) ? 1000
                                                         : 2 + rule->client.network.prefix_len;
    case EXPORT_HOST: {
        struct address plain = address_without_zone(from);
        for (uint32_t i = 0; i < rule->address_count; i++)
            if (address_equal(&rule->addresses[i], &plain))
                return 1000;
        return 0;
    }
    }
    UNREACHABLE();
}

const struct export_rights *export_rights_of(const struct export *export,
                                             const struct address *from, uint16_t port)
{
    const struct export_rights *best = NULL;
    uint32_t best_match = 0;
    for (uint32_t i = 0; i < export->rule_count; i++) {
        uint32_t exactness = match(&export->rules[i], from);
        if (exactness <= best_match)
            continue;
        best_match = exactness;
        best = &export->rules[i].client.rights;
    }
    if (best != NULL && best->is_secure && port >= IPPORT_RESERVED)
        return NULL;
    return best;
}
