/*
 * nfs_text.c -- see nfs_text.h.
 */
#include "nfs_text.h"

#include "codec_check.h"
#include "vector.h"

#include <stdio.h>
#include <stdlib.h>

enum { PAYLOAD_MAX = 2048, NUMBERS_MAX = 24 };

/* ---- arguments ---- */

/* What each has, in its order: f handle, n name, F and N the other ones, s sattr, g guard, a
 * access, o offset, c count, d dircount, S stable, D data, C how, k cookie, v verifier, p path, t
 * type. */
static const char *const fields[NFS_PROCEDURE_COUNT] = {
    [NFS_NULL] = "",      [NFS_GETATTR] = "f",    [NFS_SETATTR] = "fsg",
    [NFS_LOOKUP] = "fn",  [NFS_ACCESS] = "fa",    [NFS_READLINK] = "f",
    [NFS_READ] = "foc",   [NFS_WRITE] = "focSD",  [NFS_CREATE] = "fnC",
    [NFS_MKDIR] = "fns",  [NFS_SYMLINK] = "fnsp", [NFS_MKNOD] = "fnt",
    [NFS_REMOVE] = "fn",  [NFS_RMDIR] = "fn",     [NFS_RENAME] = "fnFN",
    [NFS_LINK] = "fFN",   [NFS_READDIR] = "fkvc", [NFS_READDIRPLUS] = "fkvdc",
    [NFS_FSSTAT] = "f",   [NFS_FSINFO] = "f",     [NFS_PATHCONF] = "f",
    [NFS_COMMIT] = "foc",
};

static void add_hex(struct text *text, const char *key, struct bytes value)
{
    text_add(text, key);
    text_add_char(text, '=');
    if (value.len == 0)
        text_add_char(text, '-');
    else
        text_add_hex(text, value);
}

static void add_optional(struct text *text, const char *key, bool is_set, uint64_t value)
{
    if (is_set) {
        codec_check_add_number(text, key, value);
        return;
    }
    text_add(text, key);
    text_add(text, "=-");
}

static void add_time(struct text *text, const char *key, const char *word,
                     const struct nfs_time *time)
{
    text_add(text, key);
    text_add_char(text, '=');
    if (word != NULL) {
        text_add(text, word);
        return;
    }
    text_add_u64(text, time->seconds);
    text_add_char(text, '.');
    text_add_u64(text, time->nseconds);
}

static void add_sattr(struct text *text, const struct nfs_sattr *sattr)
{
    static const char *const words[] = {"KEEP", "SERVER", NULL};
    add_optional(text, "mode", sattr->set_mode, sattr->mode);
    add_optional(text, " uid", sattr->set_uid, sattr->uid);
    add_optional(text, " gid", sattr->set_gid, sattr->gid);
    add_optional(text, " size", sattr->set_size, sattr->size);
    add_time(text, " atime", words[sattr->atime_how], &sattr->atime);
    add_time(text, " mtime", words[sattr->mtime_how], &sattr->mtime);
}

static void add_create(struct text *text, const struct nfs_args *args)
{
    static const char *const words[] = {"UNCHECKED", "GUARDED", "EXCLUSIVE"};
    text_add(text, "how=");
    text_add(text, words[args->create]);
    text_add_char(text, ' ');
    if (args->create == NFS_EXCLUSIVE)
        add_hex(text, "verf", args->verf);
    else
        add_sattr(text, &args->sattr);
}

static void add_mknod(struct text *text, const struct nfs_args *args)
{
    codec_check_add_number(text, "type", (uint64_t)args->type);
    bool is_device = args->type == NFS_TYPE_CHR || args->type == NFS_TYPE_BLK;
    if (!is_device && args->type != NFS_TYPE_SOCK && args->type != NFS_TYPE_FIFO)
        return;
    text_add_char(text, ' ');
    add_sattr(text, &args->sattr);
    if (is_device) {
        codec_check_add_number(text, " major", args->rdev_major);
        codec_check_add_number(text, " minor", args->rdev_minor);
    }
}

static void add_field(struct text *text, char field, const struct nfs_args *args)
{
    switch (field) {
    case 'f':
        add_hex(text, "fh", args->fh);
        return;
    case 'n':
        codec_check_add_string(text, "name", args->name);
        return;
    case 'F':
        add_hex(text, "to_fh", args->to_fh);
        return;
    case 'N':
        codec_check_add_string(text, "to_name", args->to_name);
        return;
    case 's':
        add_sattr(text, &args->sattr);
        return;
    case 'g':
        add_time(text, "guard", args->has_guard ? NULL : "-", &args->guard);
        return;
    case 'a':
        codec_check_add_number(text, "access", args->access);
        return;
    case 'o':
        codec_check_add_number(text, "offset", args->offset);
        return;
    case 'c':
        codec_check_add_number(text, "count", args->count);
        return;
    case 'd':
        codec_check_add_number(text, "dircount", args->dircount);
        return;
    case 'S':
        codec_check_add_number(text, "stable", (uint64_t)args->stable);
        return;
    case 'D':
        add_hex(text, "data", args->data);
        return;
    case 'C':
        add_create(text, args);
        return;
    case 'k':
        codec_check_add_number(text, "cookie", args->cookie);
        return;
    case 'v':
        add_hex(text, "verf", args->verf);
        return;
    case 'p':
        codec_check_add_string(text, "path", args->path);
        return;
    default:
        add_mknod(text, args);
        return;
    }
}

void nfs_text_add_args(struct text *text, enum nfs_procedure procedure, const struct nfs_args *args)
{
    if (fields[procedure][0] == '\0')
        text_add(text, "void");
    for (const char *field = fields[procedure]; *field != '\0'; field++) {
        if (field != fields[procedure])
            text_add_char(text, ' ');
        add_field(text, *field, args);
    }
}

void nfs_text_add_mount_args(struct text *text, enum mount_procedure procedure, struct bytes path)
{
    if (procedure == MOUNT_MNT || procedure == MOUNT_UMNT)
        codec_check_add_string(text, "path", path);
    else
        text_add(text, "void");
}

/* ---- results ---- */

/* The numbers of a field with commas or points between them; their count, 0 for `-` and for a field
 * that is not there. */
static uint32_t numbers_of(const char *text, const char *key, uint64_t ret[static NUMBERS_MAX])
{
    const char *at = vector_field(text, key);
    uint32_t count = 0;
    if (at == NULL || *at == '-')
        return 0;
    for (;;) {
        char *end;
        ret[count++] = strtoull(at, &end, 10);
        if ((*end != ',' && *end != '.') || count == NUMBERS_MAX)
            return count;
        at = end + 1;
    }
}

static uint64_t number_of(const char *text, const char *key)
{
    uint64_t numbers[NUMBERS_MAX] = {0};
    return numbers_of(text, key, numbers) > 0 ? numbers[0] : 0;
}

static uint32_t hex_of(const char *text, const char *key, uint8_t *ret, size_t size)
{
    static char digits[2 * PAYLOAD_MAX + 1];
    const char *at = vector_field(text, key);
    size_t len = at != NULL && *at != '-' ? strcspn(at, " ") : 0;
    memcpy(digits, len > 0 ? at : "", len);
    digits[len] = '\0';
    size_t got = vector_hex(digits, ret, size);
    if (got == SIZE_MAX)
        abort();
    return (uint32_t)got;
}

static struct nfs_post_attr attr_of(const char *text, const char *key)
{
    uint64_t n[NUMBERS_MAX] = {0};
    if (numbers_of(text, key, n) == 0)
        return (struct nfs_post_attr){0};
    return (struct nfs_post_attr){
        .is_there = true,
        .attr = {.type = (enum nfs_type)n[0],
                 .mode = (uint32_t)n[1],
                 .nlink = (uint32_t)n[2],
                 .uid = (uint32_t)n[3],
                 .gid = (uint32_t)n[4],
                 .size = n[5],
                 .used = n[6],
                 .rdev_major = (uint32_t)n[7],
                 .rdev_minor = (uint32_t)n[8],
                 .fsid = n[9],
                 .fileid = n[10],
                 .atime = {(uint32_t)n[11], (uint32_t)n[12]},
                 .mtime = {(uint32_t)n[13], (uint32_t)n[14]},
                 .ctime = {(uint32_t)n[15], (uint32_t)n[16]}},
    };
}

static struct nfs_wcc wcc_of(const char *text, const char *before, const char *after)
{
    uint64_t n[NUMBERS_MAX] = {0};
    struct nfs_wcc wcc = {.after = attr_of(text, after)};
    if (numbers_of(text, before, n) > 0)
        wcc.before = (struct nfs_pre_attr){.is_there = true,
                                           .size = n[0],
                                           .mtime = {(uint32_t)n[1], (uint32_t)n[2]},
                                           .ctime = {(uint32_t)n[3], (uint32_t)n[4]}};
    return wcc;
}

static enum nfs_stat stat_of(const char *text)
{
    for (uint32_t i = 0; i < 20000; i++)
        if (vector_is(text, "stat", nfs_xdr_stat_name((enum nfs_stat)i)))
            return (enum nfs_stat)i;
    vector_say("no status in: %s", text);
    abort();
}

static struct nfs_fsstat fsstat_of(const char *text)
{
    uint64_t n[NUMBERS_MAX] = {0};
    (void)numbers_of(text, "fsstat", n);
    return (struct nfs_fsstat){n[0], n[1], n[2], n[3], n[4], n[5], (uint32_t)n[6]};
}

static struct nfs_fsinfo fsinfo_of(const char *text)
{
    uint64_t n[NUMBERS_MAX] = {0};
    (void)numbers_of(text, "fsinfo", n);
    return (struct nfs_fsinfo){.rtmax = (uint32_t)n[0],
                               .rtpref = (uint32_t)n[1],
                               .rtmult = (uint32_t)n[2],
                               .wtmax = (uint32_t)n[3],
                               .wtpref = (uint32_t)n[4],
                               .wtmult = (uint32_t)n[5],
                               .dtpref = (uint32_t)n[6],
                               .maxfilesize = n[7],
                               .time_delta = {(uint32_t)n[8], (uint32_t)n[9]},
                               .properties = (uint32_t)n[10]};
}

static struct nfs_pathconf pathconf_of(const char *text)
{
    uint64_t n[NUMBERS_MAX] = {0};
    (void)numbers_of(text, "pathconf", n);
    return (struct nfs_pathconf){(uint32_t)n[0], (uint32_t)n[1], n[2] != 0,
                                 n[3] != 0,      n[4] != 0,      n[5] != 0};
}

static struct nfs_fh fh_of(const char *text, const char *key)
{
    struct nfs_fh fh = {0};
    fh.len = hex_of(text, key, fh.data, sizeof fh.data);
    return fh;
}

/* The entries of a listing: entry1=FILEID,COOKIE name1="..." attr1=... fh1=... */
static uint32_t entries_of(enum nfs_procedure procedure, const char *text,
                           uint8_t payload[static PAYLOAD_MAX])
{
    struct xdr_out out = xdr_out_of(payload, PAYLOAD_MAX);
    uint32_t count = (uint32_t)number_of(text, "entries"), len = 0;
    for (uint32_t i = 1; i <= count; i++) {
        char key[4][16];
        static const char *const words[] = {"entry", "name", "attr", "fh"};
        for (int j = 0; j < 4; j++)
            (void)snprintf(key[j], sizeof key[j], "%s%u", words[j], i);
        uint64_t n[NUMBERS_MAX] = {0};
        uint8_t name[256];
        (void)numbers_of(text, key[0], n);
        struct nfs_post_attr attr = attr_of(text, key[2]);
        struct nfs_fh fh = fh_of(text, key[3]);
        struct nfs_entry entry = {
            .fileid = n[0],
            .cookie = n[1],
            .name = {name, (uint32_t)vector_string(text, key[1], name, sizeof name)},
            .attr = attr.is_there ? &attr.attr : NULL,
            .fh = fh.len > 0 ? &fh : NULL,
        };
        nfs_results_put_entry(&out, procedure, &entry);
        len += nfs_results_entry_len(procedure, &entry);
        if (xdr_out_len(&out) != len)
            vector_say("an entry is not as long as nfs_results_entry_len says");
    }
    nfs_results_put_entries_end(&out, number_of(text, "eof") != 0);
    return xdr_out_len(&out) == len + NFS_ENTRIES_END_LEN ? xdr_out_len(&out) : 0;
}

static uint32_t payload_of(enum nfs_procedure procedure, const char *text,
                           uint8_t payload[static PAYLOAD_MAX])
{
    if (procedure == NFS_READ)
        return hex_of(text, "data", payload, PAYLOAD_MAX);
    if (procedure == NFS_READLINK)
        return (uint32_t)vector_string(text, "path", payload, PAYLOAD_MAX);
    return entries_of(procedure, text, payload);
}

void nfs_text_put_result(struct xdr_out *out, enum nfs_procedure procedure, const char *text)
{
    static uint8_t payload[PAYLOAD_MAX];
    if (procedure == NFS_NULL)
        return;
    struct nfs_result r = {
        .stat = stat_of(text),
        .attr = attr_of(text, "attr"),
        .dir_attr = attr_of(text, "dir_attr"),
        .wcc = wcc_of(text, "before", "after"),
        .to_wcc = wcc_of(text, "to_before", "to_after"),
        .fh = fh_of(text, "fh"),
        .access = (uint32_t)number_of(text, "access"),
        .count = (uint32_t)number_of(text, "count"),
        .committed = (enum nfs_stable)number_of(text, "committed"),
        .eof = number_of(text, "eof") != 0,
        .fsstat = fsstat_of(text),
        .fsinfo = fsinfo_of(text),
        .pathconf = pathconf_of(text),
    };
    r.has_fh = r.fh.len > 0;
    (void)hex_of(text, "verf", r.verf, sizeof r.verf);
    bool has_payload = nfs_results_has_payload(procedure) && r.stat == NFS_OK;
    if (has_payload)
        r.payload_len = payload_of(procedure, text, payload);
    nfs_results_put(out, procedure, &r);
    if (nfs_results_has_payload(procedure) && !out->overflowed &&
        xdr_out_len(out) != nfs_results_payload_head_len(procedure, &r))
        vector_say("the head is not as long as nfs_results_payload_head_len says");
    if (has_payload)
        xdr_put_fixed(out, (struct bytes){payload, r.payload_len});
}

/* ---- results of MOUNT ---- */

static struct bytes string_of(const char *text, const char *key, uint32_t number,
                              uint8_t memory[static MOUNT_PATH_MAX])
{
    char numbered[32];
    (void)snprintf(numbered, sizeof numbered, "%s%u", key, number);
    return (struct bytes){memory, (uint32_t)vector_string(text, numbered, memory, MOUNT_PATH_MAX)};
}

static void put_mnt(struct xdr_out *out, const char *text)
{
    uint64_t n[NUMBERS_MAX] = {0};
    struct mount_result result = {.stat = (enum mount_stat)number_of(text, "stat"),
                                  .fh = fh_of(text, "fh")};
    result.flavor_count = numbers_of(text, "flavors", n);
    for (uint32_t i = 0; i < result.flavor_count; i++)
        result.flavors[i] = (uint32_t)n[i];
    mount_xdr_put_mnt(out, &result);
}

/* directory1="..." groups1=2, and then group1="..." and so on, counted over all. */
static void put_exports(struct xdr_out *out, const char *text)
{
    uint8_t memory[MOUNT_PATH_MAX];
    uint32_t group = 0;
    for (uint32_t i = 1; i <= number_of(text, "exports"); i++) {
        char key[32];
        (void)snprintf(key, sizeof key, "groups%u", i);
        mount_xdr_put_export(out, string_of(text, "directory", i, memory));
        for (uint64_t left = number_of(text, key); left > 0; left--)
            mount_xdr_put_group(out, string_of(text, "group", ++group, memory));
        mount_xdr_put_end(out);
    }
    mount_xdr_put_end(out);
}

void nfs_text_put_mount_result(struct xdr_out *out, enum mount_procedure procedure,
                               const char *text)
{
    uint8_t host[MOUNT_PATH_MAX], directory[MOUNT_PATH_MAX];
    if (procedure == MOUNT_MNT) {
        put_mnt(out, text);
    } else if (procedure == MOUNT_EXPORT) {
        put_exports(out, text);
    } else if (procedure == MOUNT_DUMP) {
        for (uint32_t i = 1; i <= number_of(text, "mounts"); i++)
            mount_xdr_put_mount(out, string_of(text, "host", i, host),
                                string_of(text, "directory", i, directory));
        mount_xdr_put_end(out);
    }
}
