/*
 * files.c -- calls of NFS version 3 as load, and the judge of every answer.
 *
 * usage: files KIND PORT HANDLES [name=value...]
 *
 * HANDLES is what `tree prepare` wrote, for as many connections and calls in flight. Each slot
 * works on a file or a name of its own:
 *
 *   getattr, access, lookup, setattr   of its file
 *   read, write    `size` bytes at a time of its file; after 16 unstable writes a COMMIT
 *   sync           8 KiB FILE_SYNC into a place of its own of one file per connection
 *   create, mkdir  a name is made and, when that was answered, removed
 *   make           CREATE only: another name each time
 *   rename         its file, to another name and back
 *   untar          ACCESS, LOOKUP of what is not there, CREATE, WRITE of 8 KiB, COMMIT, SETATTR of
 *                  mode and times, and REMOVE
 *
 * Everything else is engine.h's closed loop. An answer is right if it has the status that it must
 * have, and a READ all its bytes. Exit 1 when one was wrong or missing.
 */
#include "bench/engine.h"
#include "bench/files_tree.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FILE_LEN      (1024 * 1024)
#define SMALL_WRITE   8192
#define WRITES_BEFORE 16 /* a COMMIT */
#define STATUS_AT     24 /* in an answer: behind the accepted header */
#define HEAD_MAX      1024
#define SKIPPED_MIN   65536 /* a READ of so much is not copied here */

enum kind {
    KIND_GETATTR,
    KIND_ACCESS,
    KIND_LOOKUP,
    KIND_SETATTR,
    KIND_READ,
    KIND_WRITE,
    KIND_SYNC,
    KIND_CREATE,
    KIND_MKDIR,
    KIND_MAKE,
    KIND_RENAME,
    KIND_UNTAR,
    KIND_COUNT,
};

static const char *const kind_names[KIND_COUNT] = {"getattr", "access", "lookup", "setattr",
                                                   "read",    "write",  "sync",   "create",
                                                   "mkdir",   "make",   "rename", "untar"};

enum {
    UNTAR_ACCESS,
    UNTAR_LOOKUP,
    UNTAR_CREATE,
    UNTAR_WRITE,
    UNTAR_COMMIT,
    UNTAR_SETATTR,
    UNTAR_REMOVE,
    UNTAR_STEPS
};

struct slot {
    uint32_t step;   /* of the call that is made next */
    uint32_t wanted; /* status of the one under way */
    struct peer_nfs_fh made;
};

static struct {
    enum kind kind;
    struct engine_options options;
    uint32_t size;
    struct files_tree tree;
    struct slot *slots;
    uint8_t *data;
} run;

static struct slot *slot_at(uint32_t connection, uint32_t slot)
{
    return &run.slots[(size_t)connection * ENGINE_IN_FLIGHT_MAX + slot];
}

static void put_call(uint32_t procedure, const struct peer_nfs_args *args, struct engine_call *ret)
{
    static struct packet packet;
    const struct packet_call header = {0, PEER_NFS_PROGRAM, PEER_NFS_VERSION, procedure,
                                       PACKET_AUTH_SYS};
    packet_clear(&packet);
    packet_put_call(&packet, &header);
    peer_nfs_put_args(&packet, procedure, args);
    *ret = (struct engine_call){.bytes = packet.bytes, .len = packet.len};
    if (procedure != PEER_NFS_WRITE)
        return;
    ret->data = args->data.at;
    ret->data_len = args->data.len; /* a multiple of 4 */
}

static struct peer_nfs_args write_args(struct peer_nfs_fh fh, uint64_t offset, uint32_t len)
{
    return (struct peer_nfs_args){
        .fh = fh, .offset = offset, .count = len, .data = {run.data, len}};
}

/* ---- one call after another ---- */

/* What has one step, or repeats it for ever. */
static uint32_t make_simple(uint32_t connection, uint32_t at, struct slot *slot,
                            struct peer_nfs_args *args)
{
    static char name[16];
    args->fh = *files_tree_file(&run.tree, connection, at);
    switch ((uint32_t)run.kind) {
    case KIND_ACCESS:
        args->access = 0x3f;
        return PEER_NFS_ACCESS;
    case KIND_LOOKUP:
        snprintf(name, sizeof(name), "f%u", at);
        args->fh = *files_tree_directory(&run.tree, connection);
        args->name = peer_nfs_text(name);
        return PEER_NFS_LOOKUP;
    case KIND_SETATTR:
        args->sattr = (struct peer_nfs_sattr){.has_mode = true, .mode = 0600 + slot->step % 2};
        return PEER_NFS_SETATTR;
    case KIND_READ:
        args->offset = (uint64_t)slot->step * run.size % FILE_LEN;
        args->count = run.size;
        return PEER_NFS_READ;
    case KIND_WRITE:
        if (slot->step % (WRITES_BEFORE + 1) == WRITES_BEFORE)
            return PEER_NFS_COMMIT;
        *args = write_args(args->fh, (uint64_t)slot->step * run.size % FILE_LEN, run.size);
        return PEER_NFS_WRITE;
    case KIND_SYNC:
        *args = write_args(*files_tree_file(&run.tree, connection, 0), (uint64_t)at * SMALL_WRITE,
                           SMALL_WRITE);
        args->stable = PEER_NFS_FILE_SYNC;
        return PEER_NFS_WRITE;
    default:
        return PEER_NFS_GETATTR;
    }
}

/* What makes a name takes it away again, however late it is. */
static uint32_t make_name(uint32_t connection, uint32_t at, struct slot *slot,
                          struct peer_nfs_args *args)
{
    static char name[32], other[32];
    bool is_first = slot->step % 2 == 0;
    snprintf(name, sizeof(name), "n%u", at);
    args->fh = *files_tree_directory(&run.tree, connection);
    args->sattr = (struct peer_nfs_sattr){.has_mode = true, .mode = 0755};
    args->how = PEER_NFS_GUARDED;
    if (run.kind == KIND_MAKE) {
        snprintf(name, sizeof(name), "m%u.%u", at, slot->step);
        args->name = peer_nfs_text(name);
        return PEER_NFS_CREATE;
    }
    if (run.kind == KIND_RENAME) {
        snprintf(other, sizeof(other), "f%u", at);
        args->name = peer_nfs_text(is_first ? other : name);
        args->to_fh = args->fh;
        args->to_name = peer_nfs_text(is_first ? name : other);
        return PEER_NFS_RENAME;
    }
    args->name = peer_nfs_text(name);
    if (run.kind == KIND_MKDIR)
        return is_first ? PEER_NFS_MKDIR : PEER_NFS_RMDIR;
    return is_first ? PEER_NFS_CREATE : PEER_NFS_REMOVE;
}

static uint32_t make_untar(uint32_t connection, uint32_t at, struct slot *slot,
                           struct peer_nfs_args *args)
{
    static char name[32];
    static const uint32_t procedures[UNTAR_STEPS] = {
        PEER_NFS_ACCESS, PEER_NFS_LOOKUP,  PEER_NFS_CREATE, PEER_NFS_WRITE,
        PEER_NFS_COMMIT, PEER_NFS_SETATTR, PEER_NFS_REMOVE};
    uint32_t step = slot->step % UNTAR_STEPS;
    bool has_file = step >= UNTAR_WRITE && step <= UNTAR_SETATTR;
    snprintf(name, sizeof(name), "u%u", at);
    if (step == UNTAR_WRITE)
        *args = write_args(slot->made, 0, SMALL_WRITE);
    args->fh = has_file ? slot->made : *files_tree_directory(&run.tree, connection);
    args->name = peer_nfs_text(name);
    args->access = 0x1f;
    args->sattr = (struct peer_nfs_sattr){.has_mode = true, .mode = 0644};
    if (step == UNTAR_SETATTR) {
        args->sattr.atime_how = args->sattr.mtime_how = PEER_NFS_CLIENT_TIME;
        args->sattr.atime = args->sattr.mtime = (struct peer_nfs_time){1000000000, 5};
    }
    args->how = PEER_NFS_GUARDED;
    slot->wanted = step == UNTAR_LOOKUP ? PEER_NFS_IS_NOENT : PEER_NFS_IS_OK;
    return procedures[step];
}

/* True: it left nothing behind that the next run would meet. */
static bool is_between(const struct slot *slot)
{
    if (run.kind == KIND_UNTAR)
        return slot->step % UNTAR_STEPS == 0;
    bool is_pair = run.kind == KIND_CREATE || run.kind == KIND_MKDIR || run.kind == KIND_RENAME;
    return !is_pair || slot->step % 2 == 0;
}

static bool make(void *context, uint32_t connection, uint32_t at, bool is_over,
                 struct engine_call *ret)
{
    struct slot *slot = slot_at(connection, at);
    struct peer_nfs_args args = {.fh = {0}};
    uint32_t procedure;
    (void)context;
    if (is_over && is_between(slot))
        return false;
    slot->wanted = PEER_NFS_IS_OK;
    if (run.kind == KIND_UNTAR)
        procedure = make_untar(connection, at, slot, &args);
    else if (run.kind >= KIND_CREATE)
        procedure = make_name(connection, at, slot, &args);
    else
        procedure = make_simple(connection, at, slot, &args);
    slot->step++;
    put_call(procedure, &args, ret);
    return true;
}

static const char *judge(void *context, uint32_t connection, uint32_t at, const uint8_t *bytes,
                         uint32_t len)
{
    static char why[64];
    struct slot *slot = slot_at(connection, at);
    struct packet_reader reader = {bytes + STATUS_AT, len - STATUS_AT, len < STATUS_AT + 4};
    uint32_t status = packet_get_u32(&reader), fh_len;
    (void)context;
    if (reader.failed || status != slot->wanted) {
        snprintf(why, sizeof(why), "%s where %s is right", peer_nfs_status_text(status),
                 peer_nfs_status_text(slot->wanted));
        return why;
    }
    if (run.kind == KIND_READ && len < STATUS_AT + run.size)
        return "fewer bytes than there are";
    if (run.kind != KIND_UNTAR || slot->step % UNTAR_STEPS != UNTAR_CREATE + 1)
        return NULL;
    bool has_fh = packet_get_u32(&reader) == 1;
    const uint8_t *fh = packet_get_opaque(&reader, PEER_NFS_FH_MAX, &fh_len);
    if (!has_fh || reader.failed)
        return "a new file without a handle";
    slot->made.len = fh_len;
    memcpy(slot->made.at, fh, fh_len);
    return NULL;
}

/* ---- the program ---- */

static bool parse(int count, char **arguments)
{
    uint32_t kind = 0;
    if (count < 4)
        return false;
    while (kind < KIND_COUNT && strcmp(arguments[1], kind_names[kind]) != 0)
        kind++;
    run.kind = (enum kind)kind;
    run.size = SMALL_WRITE;
    engine_defaults(&run.options);
    run.options.port = (uint32_t)strtoul(arguments[2], NULL, 10);
    for (int i = 4; i < count; i++)
        if (!engine_set_option(&run.options, arguments[i]) &&
            !engine_number(arguments[i], "size", FILE_LEN, &run.size))
            return false;
    return kind < KIND_COUNT && run.options.port > 0 && run.options.port < 65536 &&
           run.options.connections > 0 && run.options.in_flight > 0 && run.size > 0 &&
           run.size % 4 == 0;
}

int main(int count, char **arguments)
{
    if (!parse(count, arguments)) {
        fprintf(stderr, "usage: files getattr|access|lookup|setattr|read|write|sync|create|mkdir|"
                        "make|rename|untar PORT HANDLES [connections=32] [in_flight=32]"
                        " [milliseconds=1000] [drain=5000] [size=8192]\n");
        return 2;
    }
    uint32_t largest = run.size > SMALL_WRITE ? run.size : SMALL_WRITE;
    run.options.call_max = HEAD_MAX;
    run.options.answer_max = largest + HEAD_MAX;
    run.options.skips = run.kind == KIND_READ && run.size >= SKIPPED_MIN;
    run.data = malloc(largest);
    run.slots = calloc((size_t)run.options.connections * ENGINE_IN_FLIGHT_MAX, sizeof(*run.slots));
    if (!run.data || !run.slots ||
        !files_tree_init(&run.tree, run.options.connections, run.options.in_flight) ||
        !files_tree_read(&run.tree, arguments[3])) {
        fprintf(stderr, "files: no memory, or not enough handles in %s\n", arguments[3]);
        return 1;
    }
    memset(run.data, 'b', largest);
    struct engine_work work = {NULL, make, judge, false};
    return engine_run(&run.options, &work) ? 0 : 1;
}
