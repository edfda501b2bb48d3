/*
 * files_piped.c -- READs that are long enough to go through pipes (decision 046), byte by byte.
 *
 * Passing shows:
 *  (1) 16 in flight on each of several connections, at any offset and of any length, also over a
 *      hole and at the end of the file: each reply has its bytes, its count and its eof;
 *  (2) a peer that reads a few bytes at a time gets the same bytes;
 *  (3) peers that go away in the middle leave nothing in anybody's reply;
 *  (4) a file that is written and cut meanwhile: each byte is an old one, a new one, or 0;
 *  (5) pipes have their end: as many as there may be, whatever clients ask for.
 */
#include "files_stage.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    LINKS = 4,
    IN_FLIGHT = 16,
    ROUNDS = 12,
    CALL_MAX = PEER_NFS_DATA_MAX,
    FILE_LEN = 4 * CALL_MAX + 777,
    HOLE_AT = CALL_MAX + 100,
    HOLE_END = 2 * CALL_MAX + 5000,
    PIPES_MAX = 48,
};

static struct files_stage stage;
static struct peer_link links[LINKS];
static struct peer_nfs_fh file;
static uint8_t content[FILE_LEN], other[FILE_LEN];
static uint64_t seed;

struct asked {
    uint32_t xid, count;
    uint64_t offset;
};

static uint32_t dice(uint32_t sides)
{
    return (uint32_t)(harness_random(&seed) >> 20) % sides;
}

/* Mostly long enough for a pipe, and often as clients ask. */
static struct asked choose(void)
{
    struct asked asked = {.offset = dice(FILE_LEN + 5000), .count = 1 + dice(CALL_MAX)};
    if (dice(2) == 0) {
        asked.offset = dice(5) * (uint64_t)CALL_MAX;
        asked.count = CALL_MAX;
    } else if (dice(2) == 0) {
        asked.count = CALL_MAX - dice(5);
    }
    return asked;
}

static void send_read(struct peer_link *link, struct asked *asked)
{
    static struct peer_link_call call;
    struct peer_nfs_args args = {.fh = file, .offset = asked->offset, .count = asked->count};
    peer_nfs_begin(link, &call, PEER_NFS_READ, &args);
    asked->xid = call.xid;
    HARNESS_EXPECT(peer_link_send(link, &call) == 0, "send");
}

/* The answer to one of them. */
static const struct asked *receive_read(struct peer_link *link, const struct asked *asked,
                                        struct peer_nfs_res *res)
{
    struct packet_reply reply = {0};
    if (peer_link_receive(link, &reply) != 0 || !peer_nfs_finish(&reply, PEER_NFS_READ, res) ||
        res->status != PEER_NFS_IS_OK) {
        HARNESS_EXPECT(false, "no answer to a READ, or %s", peer_nfs_status_text(res->status));
        return NULL;
    }
    for (uint32_t i = 0; i < IN_FLIGHT; i++)
        if (asked[i].xid == reply.xid)
            return &asked[i];
    HARNESS_EXPECT(false, "an answer to nothing");
    return NULL;
}

static void check_read(const struct asked *asked, const struct peer_nfs_res *res)
{
    uint64_t rest = asked->offset < FILE_LEN ? FILE_LEN - asked->offset : 0;
    uint32_t wanted = asked->count < rest ? asked->count : (uint32_t)rest;
    HARNESS_EXPECT(res->data.len == wanted && res->count == wanted && res->eof == (wanted == rest),
                   "%u bytes at %llu: %u, eof %d", asked->count, (unsigned long long)asked->offset,
                   res->data.len, res->eof);
    HARNESS_EXPECT(res->data.len != wanted ||
                       memcmp(res->data.at, content + (wanted > 0 ? asked->offset : 0), wanted) ==
                           0,
                   "%u bytes at %llu are others", wanted, (unsigned long long)asked->offset);
}

static void check_pipelined(void)
{
    static struct asked asked[LINKS][IN_FLIGHT];
    for (uint32_t round = 0; round < ROUNDS; round++) {
        for (uint32_t i = 0; i < IN_FLIGHT; i++)
            for (uint32_t l = 0; l < LINKS; l++) {
                asked[l][i] = choose();
                send_read(&links[l], &asked[l][i]);
            }
        for (uint32_t i = 0; i < IN_FLIGHT; i++)
            for (uint32_t l = 0; l < LINKS; l++) {
                struct peer_nfs_res res = {0};
                const struct asked *one = receive_read(&links[l], asked[l], &res);
                if (one == NULL)
                    return;
                check_read(one, &res);
            }
    }
}

/* ---- peers that are slow, or gone ---- */

static void check_slow(void)
{
    static uint8_t record[4 + 1024 + CALL_MAX];
    struct asked asked = {.offset = 4096, .count = CALL_MAX};
    struct peer_link *link = &links[0];
    for (uint32_t i = 0; i < 6; i++)
        send_read(link, &asked);
    for (uint32_t i = 0; i < 6; i++) {
        uint32_t len = 4;
        for (uint32_t at = 0; at < len;) {
            uint32_t most = i < 5 ? 50000 : 3000, piece = 1 + dice(most);
            int got =
                dial_receive(link->fd, record + at, piece < len - at ? piece : len - at, 30000);
            HARNESS_EXPECT(got > 0, "the peer is slow, and the server silent");
            if (got <= 0)
                return;
            at += (uint32_t)got;
            if (at == 4 && len == 4)
                len += (uint32_t)(record[0] & 0x7f) << 24 | (uint32_t)record[1] << 16 |
                       (uint32_t)record[2] << 8 | record[3];
            HARNESS_EXPECT(len <= sizeof(record), "a record of %u bytes", len);
            if (len > sizeof(record))
                return;
            usleep(at % 7 == 0 ? 200 : 0);
        }
        HARNESS_EXPECT(memcmp(record + len - CALL_MAX, content + asked.offset, CALL_MAX) == 0,
                       "other bytes for a slow peer");
    }
}

static void check_gone(void)
{
    static uint8_t some[CALL_MAX];
    for (uint32_t round = 0; round < ROUNDS; round++) {
        struct asked asked[IN_FLIGHT];
        for (uint32_t i = 0; i < IN_FLIGHT; i++) {
            asked[i] = choose();
            send_read(&links[1], &asked[i]);
        }
        if (round % 3 != 0)
            (void)dial_receive(links[1].fd, some, 1 + dice(CALL_MAX), 30000);
        peer_link_close(&links[1]);
        struct asked honest[IN_FLIGHT] = {{.offset = dice(CALL_MAX), .count = CALL_MAX}};
        struct peer_nfs_res res = {0};
        send_read(&links[2], &honest[0]);
        if (receive_read(&links[2], honest, &res) != NULL)
            check_read(&honest[0], &res);
    }
}

/* ---- a file that changes ---- */

static void write_all_of(struct peer_link *link, const uint8_t *bytes)
{
    for (uint32_t at = 0; at < FILE_LEN; at += CALL_MAX) {
        uint32_t len = FILE_LEN - at < CALL_MAX ? FILE_LEN - at : CALL_MAX;
        FILES_EXPECT(PEER_NFS_IS_OK, "written", link, PEER_NFS_WRITE, .fh = file, .offset = at,
                     .count = len, .data = {bytes + at, len});
    }
}

static void check_changing(void)
{
    for (uint32_t round = 0; round < ROUNDS; round++) {
        struct asked asked[IN_FLIGHT];
        for (uint32_t i = 0; i < IN_FLIGHT; i++) {
            asked[i] = choose();
            send_read(&links[0], &asked[i]);
        }
        if (round % 2 == 0)
            FILES_EXPECT(PEER_NFS_IS_OK, "cut", &links[1], PEER_NFS_SETATTR, .fh = file,
                         .sattr = {.has_size = true, .size = dice(FILE_LEN)});
        write_all_of(&links[1], round % 2 == 0 ? other : content);
        for (uint32_t i = 0; i < IN_FLIGHT; i++) {
            struct peer_nfs_res res = {0};
            const struct asked *one = receive_read(&links[0], asked, &res);
            if (one == NULL)
                return;
            const uint8_t *got = res.data.at;
            HARNESS_EXPECT(res.data.len <= one->count, "more than was asked for");
            HARNESS_EXPECT(res.attr.size >= one->offset + res.data.len || res.eof,
                           "more to come behind the end");
            for (uint32_t at = 0; at < res.data.len; at++) {
                uint64_t place = one->offset + at;
                if (got[at] != 0 && got[at] != content[place] && got[at] != other[place]) {
                    HARNESS_EXPECT(false, "a byte that nobody wrote at %llu",
                                   (unsigned long long)place);
                    return;
                }
            }
        }
        /* All is answered: who asks now gets what was written last. */
        struct asked now[IN_FLIGHT] = {{.offset = dice(FILE_LEN), .count = CALL_MAX}};
        struct peer_nfs_res res = {0};
        send_read(&links[2], &now[0]);
        const struct asked *one = receive_read(&links[2], now, &res);
        const uint8_t *last = round % 2 == 0 ? other : content;
        HARNESS_EXPECT(one != NULL && memcmp(res.data.at, last + one->offset, res.data.len) == 0,
                       "an acknowledged WRITE is not seen");
    }
    write_all_of(&links[1], content);
}

static void make_content(const char *directory)
{
    char path[600];
    for (uint32_t i = 0; i < FILE_LEN; i++) {
        content[i] = i >= HOLE_AT && i < HOLE_END ? 0 : (uint8_t)(i * 7 + i / 251 + i / 65536);
        other[i] = (uint8_t)(i * 13 + i / 241 + 5);
    }
    snprintf(path, sizeof(path), "%s/file", directory);
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    HARNESS_EXPECT(fd >= 0 && pwrite(fd, content, HOLE_AT, 0) == HOLE_AT &&
                       pwrite(fd, content + HOLE_END, FILE_LEN - HOLE_END, HOLE_END) ==
                           FILE_LEN - HOLE_END,
                   "cannot write %s", path);
    close(fd);
}

int main(void)
{
    files_stage_init(&stage, "files_piped");
    const char *path = files_stage_export(&stage, "files", "*(rw,async,no_root_squash)");
    if (files_stage_start(&stage)) {
        seed = harness_seed();
        make_content(path);
        for (uint32_t i = 0; i < LINKS; i++)
            files_stage_link(&links[i], 0, 0);
        file = files_stage_lookup(&links[0], files_stage_mount(&links[0], path), "file");
        uint32_t before = files_stage_pipe_ends(&stage);
        check_pipelined();
        check_slow();
        check_gone();
        check_changing();
        check_pipelined();
        uint32_t after = files_stage_pipe_ends(&stage);
        printf("ends of pipes: %u, then %u\n", before, after);
        HARNESS_EXPECT(after > before && after <= before + 2 * PIPES_MAX, "%u ends of pipes",
                       after);
        for (uint32_t i = 0; i < LINKS; i++)
            peer_link_done(&links[i]);
    }
    return files_stage_finish(&stage);
}
