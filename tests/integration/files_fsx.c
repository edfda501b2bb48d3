/*
 * files_fsx.c -- one file, read, written and cut at random by several clients, with big calls in
 * fragments, COMMIT and kill -9: it always has the bytes and the size that the calls gave it.
 *
 * What is written UNSTABLE is kept here until a COMMIT with the verifier of the WRITE; a verifier
 * that changed means that it is written again, as clients do. WRITE and COMMIT of one life of the
 * server have one verifier, those of two lives two.
 */
#include "files_stage.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LINKS = 3, FILE_MAX = 3 * 1024 * 1024, CALL_MAX = 1024 * 1024 };

static struct files_stage stage;
static struct peer_link links[LINKS];
static struct peer_nfs_fh file;
static uint8_t *content, *buffer;
static uint64_t size, seed;
static uint8_t verf[PEER_NFS_VERF_LEN];
static bool has_verf;

static uint32_t dice(uint32_t sides)
{
    return (uint32_t)(harness_random(&seed) >> 20) % sides;
}

/* Mostly small, at times as big as a call may be. */
static uint32_t any_count(void)
{
    uint32_t kind = dice(10);
    return kind == 0 ? CALL_MAX - dice(3) : dice(kind < 4 ? 70000 : 5000);
}

static void check_size(const char *what, const struct peer_nfs_res *res)
{
    if (res->wcc.has_after)
        HARNESS_EXPECT(res->wcc.after.size == size, "%s: size %llu, expected %llu", what,
                       (unsigned long long)res->wcc.after.size, (unsigned long long)size);
}

static void check_verf(const struct peer_nfs_res *res)
{
    bool is_same = memcmp(verf, res->verf, sizeof(verf)) == 0;
    HARNESS_EXPECT(!has_verf || is_same, "two verifiers in one life of the server");
    HARNESS_EXPECT(has_verf || stage.starts == 1 || !is_same, "one verifier in two lives");
    has_verf = true;
    memcpy(verf, res->verf, sizeof(verf));
}

/* A call; killed in its middle if asked for. */
static const struct peer_nfs_res *ask(struct peer_link *link, uint32_t procedure,
                                      const struct peer_nfs_args *args, bool is_killed)
{
    static struct peer_link_call call;
    static struct peer_nfs_res res;
    struct packet_reply reply = {0};
    res = (struct peer_nfs_res){.status = PEER_NFS_IS_NOTHING};
    peer_nfs_begin(link, &call, procedure, args);
    if (is_killed) {
        (void)peer_link_send(link, &call);
        usleep(dice(1500));
        (void)files_stage_crash(&stage);
        has_verf = false;
        peer_link_close(link); /* if it was answered, nobody heard it */
    }
    int result = peer_link_exchange(link, &call, &reply);
    if (result == 0 && !peer_nfs_finish(&reply, procedure, &res))
        result = -1;
    HARNESS_EXPECT(result == 0 && res.status == PEER_NFS_IS_OK, "%s at %llu of %u bytes: %s %s",
                   peer_nfs_procedure_text(procedure), (unsigned long long)args->offset,
                   args->count, peer_nfs_status_text(res.status), strerror(-result));
    return &res;
}

static void write_some(struct peer_link *link, bool is_killed)
{
    uint32_t count = any_count(), offset = dice(FILE_MAX - CALL_MAX);
    for (uint32_t i = 0; i < count; i++)
        buffer[i] = (uint8_t)(harness_random(&seed) >> 33);
    struct peer_nfs_args args = {
        .fh = file, .offset = offset, .count = count, .stable = dice(3), .data = {buffer, count}};
    const struct peer_nfs_res *res = ask(link, PEER_NFS_WRITE, &args, is_killed);
    HARNESS_EXPECT(res->count == count, "WRITE took %u of %u bytes", res->count, count);
    HARNESS_EXPECT(res->committed >= args.stable, "WRITE reached %u, %u was asked for",
                   res->committed, args.stable);
    memcpy(content + offset, buffer, count);
    if (count > 0 && offset + count > size)
        size = offset + count;
    check_size("WRITE", res);
    check_verf(res);
}

static void read_some(struct peer_link *link, bool is_killed)
{
    struct peer_nfs_args args = {.fh = file, .offset = dice(FILE_MAX), .count = any_count()};
    const struct peer_nfs_res *res = ask(link, PEER_NFS_READ, &args, is_killed);
    uint64_t left = args.offset < size ? size - args.offset : 0;
    uint64_t len = left < args.count ? left : args.count;
    HARNESS_EXPECT(res->data.len == len, "READ at %llu of %u gives %u bytes of %llu",
                   (unsigned long long)args.offset, args.count, res->data.len,
                   (unsigned long long)len);
    HARNESS_EXPECT(res->eof == (args.offset + len >= size), "READ is wrong about the end");
    HARNESS_EXPECT(res->data.len != len || len == 0 ||
                       memcmp(res->data.at, content + args.offset, len) == 0,
                   "READ at %llu gives other bytes", (unsigned long long)args.offset);
}

static void cut(struct peer_link *link, bool is_killed)
{
    uint64_t to = dice(FILE_MAX);
    struct peer_nfs_args args = {.fh = file, .sattr = {.has_size = true, .size = to}};
    const struct peer_nfs_res *res = ask(link, PEER_NFS_SETATTR, &args, is_killed);
    if (to < size)
        memset(content + to, 0, size - to);
    size = to;
    check_size("SETATTR", res);
}

static void commit(struct peer_link *link, bool is_killed)
{
    struct peer_nfs_args args = {.fh = file};
    if (dice(2)) {
        args.offset = dice(FILE_MAX);
        args.count = any_count();
    }
    check_verf(ask(link, PEER_NFS_COMMIT, &args, is_killed));
}

int main(void)
{
    files_stage_init(&stage, "files_fsx");
    const char *path = files_stage_export(&stage, "files", "*(rw,no_root_squash)");
    uint32_t steps = harness_number("HOLDFAST_FILES_FSX", 600);
    uint32_t kills = harness_number("HOLDFAST_FILES_FSX_KILLS", 6);
    seed = harness_seed() | 1;
    content = calloc(1, FILE_MAX);
    buffer = calloc(1, CALL_MAX);
    if (!content || !buffer || !files_stage_start(&stage))
        return 1;
    for (uint32_t i = 0; i < LINKS; i++)
        files_stage_link(&links[i], 0, 0);
    links[1].fragment_len = 4000;
    links[2].fragment_len = 65536;
    file = files_stage_create(&links[0], files_stage_mount(&links[0], path), "file", 0600);
    for (uint32_t i = 0; i < steps; i++) {
        struct peer_link *link = &links[dice(LINKS)];
        uint32_t kind = dice(20);
        bool is_killed = dice(steps) < kills;
        if (kind < 8)
            write_some(link, is_killed);
        else if (kind < 16)
            read_some(link, is_killed);
        else if (kind < 18)
            cut(link, is_killed);
        else
            commit(link, is_killed);
    }
    printf("%u steps, %u starts, the file has %llu bytes\n", steps, stage.starts,
           (unsigned long long)size);
    for (uint32_t i = 0; i < LINKS; i++)
        peer_link_done(&links[i]);
    free(content);
    free(buffer);
    return files_stage_finish(&stage);
}
