/*
 * tree.c -- what load on files needs around it.
 *
 * usage: tree prepare NFS-PORT MOUNT-PORT DIRECTORY HANDLES CONNECTIONS IN-FLIGHT SIZE
 *            makes directories and files of that size through the server (files_tree.h)
 *        tree fill DIRECTORY COUNT
 *            makes COUNT empty files in a directory of this machine
 *        tree list NFS-PORT MOUNT-PORT DIRECTORY
 *            lists a directory by READDIRPLUS; every entry must have a handle and attributes
 *        tree local-create DIRECTORY MILLISECONDS
 *            what the file system does itself: 32 files are created, then one fsync
 *        tree local-write DIRECTORY MILLISECONDS
 *            the same: 16 writes of 8 KiB into one file, then one fsync
 *
 * Each prints one line of numbers for the bench. Exit 1 when something failed.
 */
#include "bench/files_tree.h"
#include "peer/peer_mount.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define CALL_MS      30000
#define CREATES      32 /* for each fsync */
#define WRITES       16
#define WRITE_LEN    8192
#define LISTING_LEN  65536
#define DATA_LEN_MAX (1024 * 1024)

static struct peer_link link_of_tree;
static struct peer_nfs_res res;

static bool complain(const char *what, uint32_t status)
{
    fprintf(stderr, "tree: %s: %s\n", what, peer_nfs_status_text(status));
    return false;
}

static bool ask(const char *what, uint32_t procedure, const struct peer_nfs_args *args)
{
    uint32_t status;
    do
        status = peer_nfs_call(&link_of_tree, procedure, args, &res);
    while (status == PEER_NFS_IS_JUKEBOX);
    return status == PEER_NFS_IS_OK || complain(what, status);
}

static bool open_link(struct peer_link *link, const char *port)
{
    struct dial_route route = {
        .server = dial_endpoint_v4(INADDR_LOOPBACK, (uint16_t)strtoul(port, NULL, 10))};
    if (!peer_link_init(link, &route))
        return false;
    link->timeout_ms = CALL_MS;
    return true;
}

static bool mount_root(const char *nfs_port, const char *mount_port, const char *directory,
                       struct peer_nfs_fh *ret)
{
    struct peer_link mounting;
    struct peer_mount_res mounted = {0};
    if (!open_link(&mounting, mount_port) || !open_link(&link_of_tree, nfs_port))
        return false;
    uint32_t status =
        peer_mount_call(&mounting, PEER_MOUNT_MNT, peer_nfs_text(directory), &mounted);
    peer_link_done(&mounting);
    *ret = mounted.fh;
    return status == PEER_NFS_IS_OK || complain("MNT", status);
}

/* ---- prepare ---- */

static bool prepare_directory(const struct files_tree *tree, uint32_t connection)
{
    char name[16];
    snprintf(name, sizeof(name), "c%u", connection);
    struct peer_nfs_args args = {
        .fh = tree->root, .name = peer_nfs_text(name), .sattr = {.has_mode = true, .mode = 0755}};
    uint32_t status = peer_nfs_call(&link_of_tree, PEER_NFS_MKDIR, &args, &res);
    if (status != PEER_NFS_IS_OK && status != PEER_NFS_IS_EXIST)
        return complain("MKDIR", status);
    if (!ask("LOOKUP", PEER_NFS_LOOKUP, &args))
        return false;
    *files_tree_directory(tree, connection) = res.fh;
    return true;
}

static bool prepare_file(const struct files_tree *tree, uint32_t connection, uint32_t slot,
                         uint32_t size)
{
    static uint8_t data[DATA_LEN_MAX];
    char name[16];
    snprintf(name, sizeof(name), "f%u", slot);
    struct peer_nfs_args args = {.fh = *files_tree_directory(tree, connection),
                                 .name = peer_nfs_text(name),
                                 .sattr = {.has_mode = true, .mode = 0644}};
    if (!ask("CREATE", PEER_NFS_CREATE, &args) || !ask("LOOKUP", PEER_NFS_LOOKUP, &args))
        return false;
    struct peer_nfs_fh fh = res.fh;
    *files_tree_file(tree, connection, slot) = fh;
    if (size == 0 || res.attr.size >= size)
        return true;
    args = (struct peer_nfs_args){.fh = fh, .count = size, .data = {data, size}};
    return ask("WRITE", PEER_NFS_WRITE, &args);
}

static bool prepare(char **words)
{
    struct files_tree tree;
    uint32_t size = (uint32_t)strtoul(words[6], NULL, 10);
    bool is_made = size <= DATA_LEN_MAX &&
                   files_tree_init(&tree, (uint32_t)strtoul(words[4], NULL, 10),
                                   (uint32_t)strtoul(words[5], NULL, 10)) &&
                   mount_root(words[0], words[1], words[2], &tree.root);
    for (uint32_t c = 0; is_made && c < tree.connections; c++) {
        is_made = prepare_directory(&tree, c);
        for (uint32_t slot = 0; is_made && slot < tree.in_flight; slot++)
            is_made = prepare_file(&tree, c, slot, size);
    }
    is_made = is_made && files_tree_write(&tree, words[3]);
    printf("tree files=%u\n", is_made ? tree.connections * tree.in_flight : 0);
    return is_made;
}

static bool fill(char **words)
{
    uint32_t count = (uint32_t)strtoul(words[1], NULL, 10);
    char name[24];
    int directory = open(words[0], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    bool is_made = directory >= 0;
    for (uint32_t i = 0; is_made && i < count; i++) {
        snprintf(name, sizeof(name), "entry-%07u", i);
        is_made = mknodat(directory, name, S_IFREG | 0644, 0) == 0 || errno == EEXIST;
    }
    if (!is_made)
        fprintf(stderr, "tree: %s: %s\n", words[0], strerror(errno));
    printf("tree files=%u\n", is_made ? count : 0);
    return is_made;
}

/* ---- list ---- */

static bool list(char **words)
{
    struct peer_nfs_args args = {.dircount = LISTING_LEN, .count = LISTING_LEN};
    struct peer_nfs_entry entry;
    uint32_t entries = 0, bare = 0, calls = 0;
    if (!mount_root(words[0], words[1], words[2], &args.fh))
        return false;
    uint64_t start_ns = dial_now_ns();
    do {
        if (!ask("READDIRPLUS", PEER_NFS_READDIRPLUS, &args))
            return false;
        for (calls++; peer_nfs_next_entry(&res.entries, true, &entry); entries++) {
            bare += !entry.has_fh || !entry.has_attr;
            args.cookie = entry.cookie;
        }
        memcpy(args.verf, res.verf, sizeof(args.verf));
    } while (!res.eof);
    printf("tree entries=%u bare=%u calls=%u took_ns=%" PRIu64 "\n", entries, bare, calls,
           dial_now_ns() - start_ns);
    return true;
}

/* ---- what the file system does itself ---- */

static bool create_batch(int directory, uint32_t batch)
{
    char name[32];
    for (uint32_t i = 0; i < CREATES; i++) {
        snprintf(name, sizeof(name), "local-%u-%u", batch, i);
        int fd = openat(directory, name, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0644);
        if (fd < 0 || close(fd) != 0)
            return false;
    }
    return fsync(directory) == 0;
}

static bool write_batch(int file)
{
    static uint8_t data[WRITE_LEN];
    for (uint32_t i = 0; i < WRITES; i++)
        if (pwrite(file, data, WRITE_LEN, (off_t)i * WRITE_LEN) != WRITE_LEN)
            return false;
    return fsync(file) == 0;
}

static bool work_locally(char **words, bool creates)
{
    char path[600];
    snprintf(path, sizeof(path), "%s/local", words[0]);
    int fd = creates ? open(words[0], O_RDONLY | O_DIRECTORY | O_CLOEXEC)
                     : open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    uint64_t start_ns = dial_now_ns(), now_ns = start_ns;
    uint64_t stop_ns = start_ns + strtoul(words[1], NULL, 10) * UINT64_C(1000000);
    uint32_t batch = (uint32_t)start_ns, count = 0;
    bool is_done = fd >= 0;
    for (; is_done && now_ns < stop_ns; now_ns = dial_now_ns(), count++)
        is_done = creates ? create_batch(fd, batch++) : write_batch(fd);
    if (!is_done)
        fprintf(stderr, "tree: %s: %s\n", words[0], strerror(errno));
    printf("tree operations=%u took_ns=%" PRIu64 "\n", count * (creates ? CREATES : WRITES),
           now_ns - start_ns);
    return is_done;
}

int main(int count, char **arguments)
{
    char **words = arguments + 2;
    const char *verb = count > 1 ? arguments[1] : "";
    bool is_done = false;
    if (strcmp(verb, "prepare") == 0 && count == 9)
        is_done = prepare(words);
    else if (strcmp(verb, "fill") == 0 && count == 4)
        is_done = fill(words);
    else if (strcmp(verb, "list") == 0 && count == 5)
        is_done = list(words);
    else if (strcmp(verb, "local-create") == 0 && count == 4)
        is_done = work_locally(words, true);
    else if (strcmp(verb, "local-write") == 0 && count == 4)
        is_done = work_locally(words, false);
    else
        fprintf(stderr, "usage: tree prepare|fill|list|local-create|local-write ..., see tree.c\n");
    return is_done ? 0 : 1;
}
