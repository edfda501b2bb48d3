/*
 * files.c -- the file commands of `peer`; see files.h and the usage text in main.c.
 *
 * Each command mounts, walks to its path with LOOKUP, does one thing and prints it, or the status
 * by name. NFS and MOUNT are expected on the same port.
 */
#include "peer/files.h"

#include "peer/peer_mount.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Where a path leads. */
struct place {
    struct peer_nfs_fh directory, fh; /* fh.len is 0 when the last name is not there */
    struct peer_nfs_view name;
};

static struct peer_link link_of_command;
static struct peer_nfs_fh root;

static uint32_t ask(uint32_t procedure, const struct peer_nfs_args *args, struct peer_nfs_res *ret)
{
    return peer_nfs_call(&link_of_command, procedure, args, ret);
}

static int print_status(uint32_t status)
{
    puts(status == PEER_NFS_IS_OK ? "ok" : peer_nfs_status_text(status));
    return status == PEER_NFS_IS_OK ? 0 : 1;
}

/* Names of a path are looked up one by one; only the last may be missing. */
static uint32_t walk(const char *path, struct place *ret)
{
    struct peer_nfs_res res;
    *ret = (struct place){.directory = root, .fh = root};
    for (path += strspn(path, "/"); *path; path += strspn(path, "/")) {
        if (ret->fh.len == 0)
            return PEER_NFS_IS_NOENT;
        ret->name = (struct peer_nfs_view){path, (uint32_t)strcspn(path, "/")};
        ret->directory = ret->fh;
        struct peer_nfs_args args = {.fh = ret->directory, .name = ret->name};
        uint32_t status = ask(PEER_NFS_LOOKUP, &args, &res);
        if (status != PEER_NFS_IS_OK && status != PEER_NFS_IS_NOENT)
            return status;
        ret->fh = status == PEER_NFS_IS_OK ? res.fh : (struct peer_nfs_fh){0};
        path += ret->name.len;
    }
    return PEER_NFS_IS_OK;
}

static void print_attr(const struct peer_nfs_attr *attr)
{
    static const char kinds[] = " -dbclsp"; /* by type */
    printf("%c%04o %u %u:%u %llu", kinds[attr->type], attr->mode, attr->nlink, attr->uid, attr->gid,
           (unsigned long long)attr->size);
}

static int list(const struct place *at)
{
    struct peer_nfs_args args = {.fh = at->fh, .dircount = 65536, .count = 65536};
    struct peer_nfs_res res = {.eof = false};
    struct peer_nfs_entry entry;
    while (!res.eof) {
        uint32_t status = ask(PEER_NFS_READDIRPLUS, &args, &res);
        if (status != PEER_NFS_IS_OK)
            return print_status(status);
        while (peer_nfs_next_entry(&res.entries, true, &entry)) {
            if (entry.has_attr)
                print_attr(&entry.attr);
            else
                putchar('?');
            printf(" %.*s\n", (int)entry.name.len, (const char *)entry.name.at);
            args.cookie = entry.cookie;
        }
        memcpy(args.verf, res.verf, sizeof(args.verf));
    }
    return 0;
}

static int cat(const struct place *at)
{
    struct peer_nfs_args args = {.fh = at->fh, .count = PEER_NFS_DATA_MAX};
    struct peer_nfs_res res = {.eof = false};
    while (!res.eof) {
        uint32_t status = ask(PEER_NFS_READ, &args, &res);
        if (status != PEER_NFS_IS_OK)
            return print_status(status);
        fwrite(res.data.at, 1, res.data.len, stdout);
        args.offset += res.data.len;
    }
    return 0;
}

/* Standard input becomes the file's content. */
static int put(const struct place *at)
{
    static char buffer[PEER_NFS_DATA_MAX];
    struct peer_nfs_args args = {.fh = at->directory,
                                 .name = at->name,
                                 .sattr = {.has_mode = true, .mode = 0644, .has_size = true}};
    struct peer_nfs_res res;
    uint32_t status = ask(PEER_NFS_CREATE, &args, &res);
    if (status != PEER_NFS_IS_OK || !res.has_fh)
        return print_status(status);
    args = (struct peer_nfs_args){.fh = res.fh, .stable = PEER_NFS_FILE_SYNC};
    size_t len;
    while (status == PEER_NFS_IS_OK && (len = fread(buffer, 1, sizeof(buffer), stdin)) > 0) {
        args.count = (uint32_t)len;
        args.data = (struct peer_nfs_view){buffer, (uint32_t)len};
        status = ask(PEER_NFS_WRITE, &args, &res);
        args.offset += len;
    }
    return print_status(status);
}

static int stat_of(const struct place *at)
{
    struct peer_nfs_res res;
    uint32_t status = ask(PEER_NFS_GETATTR, &(struct peer_nfs_args){.fh = at->fh}, &res);
    if (status != PEER_NFS_IS_OK)
        return print_status(status);
    print_attr(&res.attr);
    printf(" fileid %llu fsid %llx mtime %u.%09u handle ", (unsigned long long)res.attr.fileid,
           (unsigned long long)res.attr.fsid, res.attr.mtime.seconds, res.attr.mtime.nanoseconds);
    for (uint32_t i = 0; i < at->fh.len; i++)
        printf("%02x", at->fh.at[i]);
    putchar('\n');
    return 0;
}

static int readlink_of(const struct place *at)
{
    struct peer_nfs_res res;
    uint32_t status = ask(PEER_NFS_READLINK, &(struct peer_nfs_args){.fh = at->fh}, &res);
    if (status != PEER_NFS_IS_OK)
        return print_status(status);
    printf("%.*s\n", (int)res.data.len, (const char *)res.data.at);
    return 0;
}

/* mv, ln: a second path; ln -s: any text. */
static int change_two(const char *command, const struct place *from, const char *second)
{
    struct place to = {.directory = root};
    struct peer_nfs_res res;
    if (strcmp(command, "symlink") == 0) {
        struct peer_nfs_args args = {
            .fh = from->directory, .name = from->name, .path = peer_nfs_text(second)};
        return print_status(ask(PEER_NFS_SYMLINK, &args, &res));
    }
    uint32_t status = walk(second, &to);
    if (status != PEER_NFS_IS_OK)
        return print_status(status);
    bool is_link = strcmp(command, "ln") == 0;
    struct peer_nfs_args args = {.fh = is_link ? from->fh : from->directory,
                                 .name = from->name,
                                 .to_fh = to.directory,
                                 .to_name = to.name};
    return print_status(ask(is_link ? PEER_NFS_LINK : PEER_NFS_RENAME, &args, &res));
}

static int change(const char *command, const struct place *at, const char *mode)
{
    struct peer_nfs_args args = {.fh = at->directory, .name = at->name};
    struct peer_nfs_res res;
    uint32_t procedure = PEER_NFS_REMOVE;
    if (strcmp(command, "mkdir") == 0) {
        procedure = PEER_NFS_MKDIR;
        args.sattr = (struct peer_nfs_sattr){.has_mode = true, .mode = 0755};
    } else if (strcmp(command, "rmdir") == 0) {
        procedure = PEER_NFS_RMDIR;
    } else if (strcmp(command, "chmod") == 0) {
        procedure = PEER_NFS_SETATTR;
        args.fh = at->fh;
        args.sattr =
            (struct peer_nfs_sattr){.has_mode = true, .mode = (uint32_t)strtoul(mode, NULL, 8)};
    }
    return print_status(ask(procedure, &args, &res));
}

static int list_exports(void)
{
    struct peer_mount_res res;
    struct peer_mount_export export;
    uint32_t status = peer_mount_call(&link_of_command, PEER_MOUNT_EXPORT, peer_nfs_text(""), &res);
    if (status != PEER_NFS_IS_OK)
        return print_status(status);
    while (peer_mount_next_export(&res.list, &export)) {
        printf("%.*s", (int)export.directory.len, (const char *)export.directory.at);
        for (uint32_t i = 0; i < export.group_count && i < 16; i++)
            printf(" %.*s", (int)export.groups[i].len, (const char *)export.groups[i].at);
        putchar('\n');
    }
    return 0;
}

static int run_at(const char *command, const struct place *at, const char *more)
{
    static const char *const names[] = {"mkdir", "rmdir", "rm"};
    if (strcmp(command, "ls") == 0 && !more)
        return list(at);
    if (strcmp(command, "cat") == 0 && !more)
        return cat(at);
    if (strcmp(command, "put") == 0 && !more)
        return put(at);
    if (strcmp(command, "stat") == 0 && !more)
        return stat_of(at);
    if (strcmp(command, "readlink") == 0 && !more)
        return readlink_of(at);
    for (size_t i = 0; i < 3; i++)
        if (strcmp(command, names[i]) == 0 && !more)
            return change(command, at, NULL);
    if (strcmp(command, "chmod") == 0 && more)
        return change(command, at, more);
    if ((strcmp(command, "mv") == 0 || strcmp(command, "ln") == 0 ||
         strcmp(command, "symlink") == 0) &&
        more)
        return change_two(command, at, more);
    return 2;
}

int files_run(const struct files_options *options)
{
    struct peer_mount_res mounted;
    struct place at = {.fh = {0}};
    char **words = options->arguments;
    int count = options->arguments_count, result = 2;
    if (!peer_link_init(&link_of_command, &options->route))
        return 1;
    link_of_command.who = options->who;
    link_of_command.timeout_ms = options->timeout_ms;
    if (count == 2 && strcmp(words[1], "exports") == 0) {
        result = list_exports();
    } else if (count >= 4 && count <= 5) {
        uint32_t status =
            peer_mount_call(&link_of_command, PEER_MOUNT_MNT, peer_nfs_text(words[1]), &mounted);
        root = mounted.fh;
        if (status == PEER_NFS_IS_OK)
            status = walk(words[3], &at);
        result = status == PEER_NFS_IS_OK ? run_at(words[2], &at, count == 5 ? words[4] : NULL)
                                          : print_status(status);
    }
    peer_link_done(&link_of_command);
    return result;
}
