/*
 * files_large.c -- one directory with very many entries.
 *
 * Passing shows: READDIR and READDIRPLUS list each of HOLDFAST_FILES_ENTRIES entries once (a
 * million with the long budget), in calls of the size that Linux asks for, and the server's memory
 * does not grow with their number.
 */
#include "files_stage.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { COUNT = 65536, GROWTH_KIB = 12 * 1024 };

static struct files_stage stage;
static struct peer_link link_of_root;
static struct peer_nfs_fh root;
static uint32_t entry_max;
static uint8_t *seen; /* of each entry: how often */

static void make_entries(const char *path)
{
    char name[32];
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    for (uint32_t i = 0; i < entry_max; i++) {
        snprintf(name, sizeof(name), "entry-%u", i);
        if (mknodat(fd, name, S_IFREG | 0644, 0) != 0) {
            perror(name);
            exit(1);
        }
    }
    close(fd);
}

static void see(const struct peer_nfs_entry *entry)
{
    char name[32];
    uint32_t index;
    snprintf(name, sizeof(name), "%.*s", (int)entry->name.len, (const char *)entry->name.at);
    if (sscanf(name, "entry-%u", &index) == 1 && index < entry_max)
        seen[index]++;
    else
        HARNESS_EXPECT(name[0] == '.', "%s was never there", name);
}

/* A whole listing: how many calls it took. */
static uint32_t list(uint32_t procedure)
{
    struct peer_nfs_args args = {.fh = root, .count = COUNT, .dircount = COUNT};
    uint32_t calls = 0, wrong = 0;
    memset(seen, 0, entry_max);
    for (bool is_over = false; !is_over; calls++) {
        const struct peer_nfs_res *res = files_stage_ask(&link_of_root, procedure, &args);
        struct packet_reader entries = res->entries;
        struct peer_nfs_entry entry;
        if (!HARNESS_EXPECT(res->status == PEER_NFS_IS_OK && (res->entry_count > 0 || res->eof),
                            "%s: %s", peer_nfs_procedure_text(procedure),
                            peer_nfs_status_text(res->status)))
            return calls;
        is_over = res->eof;
        while (peer_nfs_next_entry(&entries, procedure == PEER_NFS_READDIRPLUS, &entry)) {
            see(&entry);
            args.cookie = entry.cookie;
        }
    }
    for (uint32_t i = 0; i < entry_max; i++)
        wrong += seen[i] != 1;
    HARNESS_EXPECT(wrong == 0, "%s: %u entries are not listed once",
                   peer_nfs_procedure_text(procedure), wrong);
    return calls;
}

static void check_listing(uint32_t procedure)
{
    uint64_t before = harness_rss_kib(&stage.server), begun_ns = dial_now_ns();
    uint32_t calls = list(procedure);
    uint64_t after = harness_rss_kib(&stage.server);
    printf("%s: %u entries in %u calls and %llu ms, %llu KiB -> %llu KiB\n",
           peer_nfs_procedure_text(procedure), entry_max, calls,
           (unsigned long long)((dial_now_ns() - begun_ns) / 1000000), (unsigned long long)before,
           (unsigned long long)after);
    HARNESS_EXPECT(after < before + GROWTH_KIB || getenv("HOLDFAST_SANITIZED"),
                   "memory grows with the directory");
}

int main(void)
{
    entry_max = harness_number("HOLDFAST_FILES_ENTRIES", 20000);
    seen = calloc(entry_max, 1);
    files_stage_init(&stage, "files_large");
    const char *path = files_stage_export(&stage, "files", "*(rw,no_root_squash)");
    make_entries(path);
    if (seen && files_stage_start(&stage)) {
        files_stage_link(&link_of_root, 0, 0);
        root = files_stage_mount(&link_of_root, path);
        check_listing(PEER_NFS_READDIR);
        check_listing(PEER_NFS_READDIRPLUS);
        peer_link_done(&link_of_root);
    }
    free(seen);
    return files_stage_finish(&stage);
}
