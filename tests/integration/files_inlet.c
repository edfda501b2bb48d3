/*
 * files_inlet.c -- WRITEs that are long enough to come through pipes (decision 047), byte by byte.
 *
 * Passing shows:
 *  (1) 16 in flight on each of several connections, at any offset and of any length, with READs
 *      and COMMITs between them: the file has the bytes that were written, and nothing else;
 *  (2) peers that send a few bytes at a time, or in fragments, write the same bytes;
 *  (3) peers that go away in the middle of a call leave nothing in the file, nor in anybody's call;
 *  (4) calls that are refused are read to their end: the next one is understood;
 *  (5) pipes have their end: as many as there may be, whatever clients do.
 */
#include "files_stage.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    LINKS = 4,
    IN_FLIGHT = 16,
    ROUNDS = 10,
    CALL_MAX = PEER_NFS_DATA_MAX,
    PART_LEN = IN_FLIGHT * CALL_MAX, /* of the file, for each connection */
    FILE_LEN = LINKS * PART_LEN,
    RECORD_MAX = CALL_MAX + 1024,
    PIPES_MAX = 48,
};

static struct files_stage stage;
static struct peer_link links[LINKS];
static struct peer_nfs_fh file, closed_file;
static uint8_t content[FILE_LEN], read_back[FILE_LEN];
static uint64_t seed;

static uint32_t dice(uint32_t sides)
{
    return (uint32_t)(harness_random(&seed) >> 20) % sides;
}

/* New bytes for a stretch of the file. */
static const uint8_t *change(uint32_t at, uint32_t len)
{
    uint8_t first = (uint8_t)dice(256);
    for (uint32_t i = 0; i < len; i++)
        content[at + i] = (uint8_t)(first + i * 7 + i / 251);
    return content + at;
}

static void begin_write(struct peer_link *link, struct peer_link_call *call, struct peer_nfs_fh fh,
                        uint32_t at, uint32_t len)
{
    const struct peer_nfs_args args = {
        .fh = fh, .offset = at, .count = len, .stable = dice(3), .data = {content + at, len}};
    peer_nfs_begin(link, call, PEER_NFS_WRITE, &args);
}

static void expect_answer(struct peer_link *link, uint32_t wanted)
{
    struct packet_reply reply = {0};
    struct peer_nfs_res res = {0};
    HARNESS_EXPECT(peer_link_receive(link, &reply) == 0 &&
                       peer_nfs_finish(&reply, PEER_NFS_WRITE, &res) && res.status == wanted,
                   "a WRITE: %s", peer_nfs_status_text(res.status));
}

static void check_file(const char *path, const char *when)
{
    char name[600];
    snprintf(name, sizeof(name), "%s/file", path);
    int fd = open(name, O_RDONLY | O_CLOEXEC);
    HARNESS_EXPECT(fd >= 0 && read(fd, read_back, FILE_LEN) == FILE_LEN, "%s: no file", when);
    if (fd >= 0)
        close(fd);
    for (uint32_t i = 0; i < FILE_LEN; i++)
        if (read_back[i] != content[i]) {
            HARNESS_EXPECT(false, "%s: byte %u is 0x%02x, not 0x%02x", when, i, read_back[i],
                           content[i]);
            return;
        }
}

/* ---- many at once ---- */

/* Each call has its own stretch, of any length within it. */
static void check_pipelined(void)
{
    static struct peer_link_call call;
    for (uint32_t round = 0; round < ROUNDS; round++) {
        for (uint32_t i = 0; i < IN_FLIGHT; i++)
            for (uint32_t l = 0; l < LINKS; l++) {
                uint32_t at = l * PART_LEN + i * CALL_MAX, len = CALL_MAX;
                if (dice(3) == 0) {
                    uint32_t skip = dice(CALL_MAX / 2);
                    at += skip;
                    len = 1 + dice(CALL_MAX - skip);
                }
                change(at, len);
                begin_write(&links[l], &call, file, at, len);
                HARNESS_EXPECT(peer_link_send(&links[l], &call) == 0, "send");
            }
        for (uint32_t i = 0; i < IN_FLIGHT; i++)
            for (uint32_t l = 0; l < LINKS; l++)
                expect_answer(&links[l], PEER_NFS_IS_OK);
        uint32_t at = dice(FILE_LEN - CALL_MAX);
        const struct peer_nfs_res *res =
            FILES_EXPECT(PEER_NFS_IS_OK, "read", &links[round % LINKS], PEER_NFS_READ, .fh = file,
                         .offset = at, .count = CALL_MAX);
        HARNESS_EXPECT(memcmp(res->data.at, content + at, CALL_MAX) == 0,
                       "an acknowledged WRITE is not seen");
        FILES_EXPECT(PEER_NFS_IS_OK, "synced", &links[round % LINKS], PEER_NFS_COMMIT, .fh = file);
    }
}

/* ---- peers that are slow, or gone ---- */

/* A call as one record, behind its mark: how long both are. */
static uint32_t flatten(const struct peer_link_call *call, uint8_t ret[RECORD_MAX])
{
    uint32_t len = call->head.len + call->data_len, padding = -call->data_len & 3;
    uint32_t mark = htonl(UINT32_C(0x80000000) | (len + padding));
    memcpy(ret, &mark, 4);
    memcpy(ret + 4, call->head.bytes, call->head.len);
    memcpy(ret + 4 + call->head.len, call->data, call->data_len);
    memset(ret + 4 + len, 0, padding);
    return 4 + len + padding;
}

static bool send_all(struct peer_link *link, const uint8_t *bytes, uint32_t len)
{
    for (uint32_t at = 0; at < len;) {
        ssize_t sent = send(link->fd, bytes + at, len - at, MSG_NOSIGNAL);
        if (sent <= 0)
            return false;
        at += (uint32_t)sent;
    }
    return true;
}

static void check_slow(void)
{
    static uint8_t record[RECORD_MAX];
    static struct peer_link_call call;
    for (uint32_t i = 0; i < 6; i++) {
        uint32_t at = dice(PART_LEN - CALL_MAX), piece_max = i < 3 ? 3000 : 60000;
        change(at, CALL_MAX);
        begin_write(&links[0], &call, file, at, CALL_MAX);
        uint32_t len = flatten(&call, record);
        for (uint32_t done = 0, piece; done < len; done += piece) {
            piece = 1 + dice(piece_max);
            piece = piece < len - done ? piece : len - done;
            HARNESS_EXPECT(send_all(&links[0], record + done, piece), "the server has gone");
            usleep(done % 7 == 0 ? 200 : 0);
        }
        expect_answer(&links[0], PEER_NFS_IS_OK);
    }
}

static void check_fragments(void)
{
    static uint8_t record[RECORD_MAX];
    static struct peer_link_call call;
    for (uint32_t i = 0; i < ROUNDS; i++) {
        uint32_t at = dice(PART_LEN - CALL_MAX);
        change(at, CALL_MAX);
        begin_write(&links[0], &call, file, at, CALL_MAX);
        uint32_t len = flatten(&call, record);
        for (uint32_t done = 4, piece; done < len; done += piece) {
            piece = 1 + dice(i % 2 == 0 ? CALL_MAX : 100000);
            piece = piece < len - done ? piece : len - done;
            uint32_t mark = htonl((done + piece == len ? UINT32_C(0x80000000) : 0) | piece);
            HARNESS_EXPECT(send_all(&links[0], (const uint8_t *)&mark, 4) &&
                               send_all(&links[0], record + done, piece),
                           "the server has gone");
        }
        expect_answer(&links[0], PEER_NFS_IS_OK);
    }
}

static void check_gone(void)
{
    static uint8_t record[RECORD_MAX];
    static struct peer_link_call call;
    for (uint32_t round = 0; round < 6 * ROUNDS; round++) {
        uint32_t at = dice(PART_LEN - CALL_MAX);
        static uint8_t other[CALL_MAX];
        memset(other, 0xee, sizeof(other));
        struct peer_nfs_args args = {
            .fh = file, .offset = at, .count = CALL_MAX, .data = {other, CALL_MAX}};
        HARNESS_EXPECT(peer_link_open(&links[1]) == 0, "connect");
        peer_nfs_begin(&links[1], &call, PEER_NFS_WRITE, &args);
        uint32_t len = flatten(&call, record);
        HARNESS_EXPECT(send_all(&links[1], record, 200 + dice(len - 201)), "the server has gone");
        peer_link_close(&links[1]);
        at = 2 * PART_LEN + dice(PART_LEN - CALL_MAX);
        change(at, CALL_MAX);
        begin_write(&links[2], &call, file, at, CALL_MAX);
        HARNESS_EXPECT(peer_link_send(&links[2], &call) == 0, "send");
        expect_answer(&links[2], PEER_NFS_IS_OK);
    }
}

/* ---- refused ---- */

static void check_refused(void)
{
    static struct peer_link_call call;
    struct peer_nfs_fh bad = file;
    bad.at[bad.len - 1] ^= 1;
    for (uint32_t i = 0; i < 2 * PIPES_MAX; i++) {
        bool is_read_only = i % 2 == 0;
        begin_write(&links[0], &call, is_read_only ? closed_file : bad, 0, CALL_MAX);
        HARNESS_EXPECT(peer_link_send(&links[0], &call) == 0, "send");
        expect_answer(&links[0], is_read_only ? PEER_NFS_IS_ROFS : PEER_NFS_IS_BADHANDLE);
    }
}

static void make_file(const char *directory)
{
    char path[600];
    snprintf(path, sizeof(path), "%s/file", directory);
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    HARNESS_EXPECT(fd >= 0 && ftruncate(fd, FILE_LEN) == 0, "cannot make %s", path);
    if (fd >= 0)
        close(fd);
}

int main(void)
{
    files_stage_init(&stage, "files_inlet");
    const char *path = files_stage_export(&stage, "files", "*(rw,async,no_root_squash)");
    const char *closed = files_stage_export(&stage, "closed", "*(ro)");
    make_file(path);
    make_file(closed);
    if (files_stage_start(&stage)) {
        seed = harness_seed();
        for (uint32_t i = 0; i < LINKS; i++)
            files_stage_link(&links[i], 0, 0);
        file = files_stage_lookup(&links[0], files_stage_mount(&links[0], path), "file");
        closed_file = files_stage_lookup(&links[0], files_stage_mount(&links[0], closed), "file");
        uint32_t before = files_stage_pipe_ends(&stage);
        change(0, CALL_MAX);
        FILES_EXPECT(PEER_NFS_IS_OK, "written", &links[0], PEER_NFS_WRITE, .fh = file,
                     .count = CALL_MAX, .data = {content, CALL_MAX});
        HARNESS_EXPECT(files_stage_pipe_ends(&stage) == before + 2,
                       "the first long WRITE came without a pipe");
        check_pipelined();
        check_file(path, "many at once");
        check_slow();
        check_fragments();
        check_file(path, "slow and in fragments");
        check_gone();
        check_file(path, "peers that go away");
        check_refused();
        check_pipelined();
        check_file(path, "at the end");
        uint32_t after = files_stage_pipe_ends(&stage);
        printf("ends of pipes: %u, then %u\n", before, after);
        HARNESS_EXPECT(after > before && after <= before + 2 * PIPES_MAX, "%u ends of pipes",
                       after);
        for (uint32_t i = 0; i < LINKS; i++)
            peer_link_done(&links[i]);
    }
    return files_stage_finish(&stage);
}
