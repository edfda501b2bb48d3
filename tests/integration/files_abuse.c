/*
 * files_abuse.c -- clients that want memory, descriptors or attention of the file service, while an
 * honest one is served.
 *
 * Passing shows:
 *  (1) a record mark of 1 GiB closes the connection; 500 calls that say they will have a megabyte,
 *      and never do, cost what was sent of them;
 *  (2) handles, names, sizes, offsets, counts and cookies of any value and length: an answer to
 *      each, and the documented status;
 *  (3) 2,000 connections are served;
 *  (4) 64 connections that ask for 1 MiB again and again and read nothing: others go on to be
 *      served, and memory has its end; they lose their connections when others need the memory;
 *  (5) the same once more adds nothing: what leaks grows in every round, while what is kept for
 *      the next calls grows in one of them, whenever most of it was needed at the same time.
 */
#include "files_stage.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

enum {
    CONNECTIONS = 2000,
    BEGINNERS = 500,
    GREEDY = 64,
    GREEDY_CALLS = 40,
    ROUNDS = 3,
    PATIENCE_MS = 30000,
    ROOM_MS = 40000,
    BEGINNERS_KIB = 16 * 1024,
    GROWTH_KIB = 24 * 1024,
    BYTES_MAX_KIB = 512 * 1024, /* of calls under way, and what is kept of them for the next */
};

static struct files_stage stage;
static struct peer_link honest;
static struct peer_nfs_fh root, file;
static int fds[CONNECTIONS];

/* A sanitizer keeps what was freed: nothing can be said of memory then. */
static bool is_at_most(uint64_t kib, uint64_t limit_kib)
{
    return kib < limit_kib || getenv("HOLDFAST_SANITIZED");
}

static int dial(void)
{
    struct dial_route route = {.server = honest.route.server};
    int fd = dial_open(&route, PATIENCE_MS);
    if (fd < 0) {
        printf("cannot connect: %s\n", strerror(-fd));
        exit(1);
    }
    return fd;
}

static void be_honest(const char *why)
{
    FILES_EXPECT(PEER_NFS_IS_OK, why, &honest, PEER_NFS_GETATTR, .fh = file);
    const struct peer_nfs_res *res =
        FILES_EXPECT(PEER_NFS_IS_OK, why, &honest, PEER_NFS_READ, .fh = file, .count = 4096);
    HARNESS_EXPECT(res->data.len == 4096, "%s: %u bytes", why, res->data.len);
    FILES_EXPECT(PEER_NFS_IS_OK, why, &honest, PEER_NFS_CREATE, .fh = root,
                 .name = peer_nfs_text("honest"));
    FILES_EXPECT(PEER_NFS_IS_OK, why, &honest, PEER_NFS_REMOVE, .fh = root,
                 .name = peer_nfs_text("honest"));
}

/* ---- records ---- */

static void check_marks(void)
{
    static const uint8_t marks[][4] = {
        {0x40, 0, 0, 0}, {0xc0, 0, 0, 0}, {0x7f, 0xff, 0xff, 0xff}, {0xff, 0xff, 0xff, 0xff}};
    uint8_t byte;
    for (uint32_t i = 0; i < 4; i++) {
        int fd = dial();
        HARNESS_EXPECT(dial_send(fd, marks[i], 4, PATIENCE_MS) == 0, "send");
        int result = dial_receive(fd, &byte, 1, PATIENCE_MS);
        HARNESS_EXPECT(result == 0 || result == -ECONNRESET, "a record of 1 GiB: %s",
                       result < 0 ? strerror(-result) : "an answer");
        close(fd);
    }
    uint64_t before = harness_rss_kib(&stage.server);
    for (uint32_t i = 0; i < BEGINNERS; i++) {
        static const uint8_t begin[104] = {0x80, 0x10, 0, 0};
        fds[i] = dial();
        HARNESS_EXPECT(dial_send(fds[i], begin, sizeof(begin), PATIENCE_MS) == 0, "send");
    }
    be_honest("beside calls that are only begun");
    uint64_t after = harness_rss_kib(&stage.server);
    printf("%u begun calls of a megabyte: %llu KiB -> %llu KiB\n", BEGINNERS,
           (unsigned long long)before, (unsigned long long)after);
    HARNESS_EXPECT(is_at_most(after, before + BEGINNERS_KIB), "memory is taken for what may come");
    for (uint32_t i = 0; i < BEGINNERS; i++)
        close(fds[i]);
}

/* ---- values ---- */

/* Every procedure with this handle: an answer, and never OK. */
static void check_handle(const struct peer_nfs_fh *fh, const char *why)
{
    for (uint32_t procedure = PEER_NFS_GETATTR; procedure <= PEER_NFS_COMMIT; procedure++) {
        const struct peer_nfs_res *res =
            FILES_ASK(&honest, procedure, .fh = *fh, .to_fh = root, .name = peer_nfs_text("n"),
                      .to_name = peer_nfs_text("t"), .path = peer_nfs_text("p"), .count = 4096,
                      .dircount = 4096, .type = PEER_NFS_FIFO);
        /* WRITE says 4096 and has none: that is looked at behind the handle. */
        HARNESS_EXPECT(res->status == PEER_NFS_IS_BADHANDLE, "%s: %s answered %s", why,
                       peer_nfs_procedure_text(procedure), peer_nfs_status_text(res->status));
    }
}

static void check_handles(uint64_t *seed)
{
    for (uint32_t i = 0; i < 50; i++) {
        struct peer_nfs_fh forged = file;
        forged.at[harness_random(seed) % forged.len] ^= (uint8_t)(1u << harness_random(seed) % 8);
        check_handle(&forged, "a bit is changed");
    }
    for (uint32_t len = 0; len <= 64; len += 4) {
        struct peer_nfs_fh cut = file;
        cut.len = len;
        if (len != file.len)
            check_handle(&cut, "another length");
    }
    struct peer_nfs_fh noise = {.len = 64};
    for (uint32_t i = 0; i < noise.len; i++)
        noise.at[i] = (uint8_t)harness_random(seed);
    check_handle(&noise, "noise");
}

static bool is_refusal(uint32_t status)
{
    return status == PEER_NFS_IS_INVAL || status == PEER_NFS_IS_FBIG;
}

static void check_sizes(void)
{
    static const uint64_t sizes[] = {UINT64_MAX, UINT64_MAX - 1, (uint64_t)INT64_MAX + 1,
                                     INT64_MAX,  INT64_MAX - 1,  UINT64_MAX - 4095};
    struct peer_nfs_fh fh = files_stage_create(&honest, root, "sizes", 0644);
    for (uint32_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        const struct peer_nfs_res *res = FILES_ASK(&honest, PEER_NFS_SETATTR, .fh = fh,
                                                   .sattr = {.has_size = true, .size = sizes[i]});
        HARNESS_EXPECT(is_refusal(res->status), "SETATTR of size %llx: %s",
                       (unsigned long long)sizes[i], peer_nfs_status_text(res->status));
        res = FILES_ASK(&honest, PEER_NFS_WRITE, .fh = fh, .offset = sizes[i], .count = 3,
                        .data = {"abc", 3});
        HARNESS_EXPECT(is_refusal(res->status), "WRITE at %llx: %s", (unsigned long long)sizes[i],
                       peer_nfs_status_text(res->status));
        res = FILES_EXPECT(PEER_NFS_IS_OK, "READ far out", &honest, PEER_NFS_READ, .fh = fh,
                           .offset = sizes[i], .count = UINT32_MAX);
        HARNESS_EXPECT(res->eof && res->data.len == 0, "READ at %llx: %u bytes",
                       (unsigned long long)sizes[i], res->data.len);
        FILES_EXPECT(PEER_NFS_IS_OK, "COMMIT far out", &honest, PEER_NFS_COMMIT, .fh = fh,
                     .offset = sizes[i], .count = UINT32_MAX);
        res = FILES_ASK(&honest, PEER_NFS_CREATE, .fh = root, .name = peer_nfs_text("too-long"),
                        .sattr = {.has_size = true, .size = sizes[i]}, .how = PEER_NFS_GUARDED);
        HARNESS_EXPECT(is_refusal(res->status), "CREATE with size %llx: %s",
                       (unsigned long long)sizes[i], peer_nfs_status_text(res->status));
        FILES_EXPECT(PEER_NFS_IS_NOENT, "and nothing is left of it", &honest, PEER_NFS_LOOKUP,
                     .fh = root, .name = peer_nfs_text("too-long"));
        res = FILES_ASK(&honest, PEER_NFS_READDIR, .fh = root, .cookie = sizes[i],
                        .count = UINT32_MAX);
        HARNESS_EXPECT(res->status == PEER_NFS_IS_BAD_COOKIE || res->status == PEER_NFS_IS_OK,
                       "READDIR at %llx: %s", (unsigned long long)sizes[i],
                       peer_nfs_status_text(res->status));
    }
    const struct peer_nfs_res *res =
        FILES_EXPECT(PEER_NFS_IS_OK, "unchanged", &honest, PEER_NFS_GETATTR, .fh = fh);
    HARNESS_EXPECT(res->attr.size == 0, "size %llu", (unsigned long long)res->attr.size);
    FILES_EXPECT(PEER_NFS_IS_OK, "READDIRPLUS of everything", &honest, PEER_NFS_READDIRPLUS,
                 .fh = root, .count = UINT32_MAX, .dircount = UINT32_MAX);
}

/* ---- connections ---- */

/* A call of this many bytes to read, as it is on the wire. */
static uint32_t make_read(struct peer_link_call *call, uint32_t count)
{
    struct peer_nfs_args args = {.fh = file, .count = count};
    peer_nfs_begin(&honest, call, PEER_NFS_READ, &args);
    return call->head.len;
}

static void check_connections(void)
{
    static struct peer_link_call call;
    static struct packet answer;
    uint32_t answered = 0;
    for (uint32_t i = 0; i < CONNECTIONS; i++)
        fds[i] = dial();
    for (uint32_t i = 0; i < CONNECTIONS; i++) {
        uint32_t len = make_read(&call, 100);
        HARNESS_EXPECT(dial_send_record(fds[i], call.head.bytes, len, PATIENCE_MS) == 0, "send");
    }
    for (uint32_t i = 0; i < CONNECTIONS; i++)
        answered += dial_receive_record(fds[i], &answer, PATIENCE_MS) > 100;
    HARNESS_EXPECT(answered == CONNECTIONS, "%u of %u connections are answered", answered,
                   CONNECTIONS);
    be_honest("beside 2,000 connections");
    for (uint32_t i = 0; i < CONNECTIONS; i++)
        close(fds[i]);
}

/* A megabyte for the honest client, before those who read nothing would be closed anyway. */
static void await_room(void)
{
    struct peer_nfs_args args = {.fh = file, .count = PEER_NFS_DATA_MAX};
    static struct peer_nfs_res res;
    uint64_t end_ns = dial_now_ns() + ROOM_MS * UINT64_C(1000000);
    uint32_t status, tries = 0;
    do {
        status = peer_nfs_call(&honest, PEER_NFS_READ, &args, &res);
        usleep(status == PEER_NFS_IS_JUKEBOX ? 100000 : 0);
        tries++;
    } while (status == PEER_NFS_IS_JUKEBOX && dial_now_ns() < end_ns);
    printf("a megabyte beside them: at try %u\n", tries);
    HARNESS_EXPECT(status == PEER_NFS_IS_OK && res.data.len == PEER_NFS_DATA_MAX,
                   "a megabyte beside clients that read nothing: %s", peer_nfs_status_text(status));
}

/* Until nothing that they sent can change any more: twice in a row no call waits for a thread, and
 * as many wait to be sent. */
static void await_calm(void)
{
    uint64_t end_ns = dial_now_ns() + PATIENCE_MS * UINT64_C(1000000);
    uint64_t queued, unsent, before;
    unsent = UINT64_MAX;
    do {
        be_honest("beside clients that read nothing");
        before = unsent;
        queued = files_stage_metric("nfs_queue_length");
        unsent = files_stage_metric("nfs_calls_in_progress");
    } while ((queued > 0 || unsent != before) && dial_now_ns() < end_ns);
    HARNESS_EXPECT(queued == 0 && unsent == before, "%llu calls wait for a thread after %u ms",
                   (unsigned long long)queued, (unsigned)PATIENCE_MS);
}

/* Resident memory while they are there. */
static uint64_t check_greedy(bool is_last)
{
    static struct peer_link_call call;
    for (uint32_t i = 0; i < GREEDY; i++)
        fds[i] = dial();
    for (uint32_t n = 0; n < GREEDY_CALLS; n++)
        for (uint32_t i = 0; i < GREEDY; i++) {
            uint32_t len = make_read(&call, PEER_NFS_DATA_MAX);
            (void)dial_send_record(fds[i], call.head.bytes, len, 100);
        }
    await_calm();
    uint64_t now = harness_rss_kib(&stage.server);
    printf("%u connections that read nothing: %llu KiB\n", GREEDY, (unsigned long long)now);
    HARNESS_EXPECT(is_at_most(now, BYTES_MAX_KIB), "%llu KiB", (unsigned long long)now);
    if (is_last)
        await_room();
    for (uint32_t i = 0; i < GREEDY; i++)
        close(fds[i]);
    be_honest("after clients that read nothing");
    return now;
}

int main(void)
{
    static uint8_t data[PEER_NFS_DATA_MAX];
    struct rlimit files = {.rlim_cur = CONNECTIONS + 200, .rlim_max = CONNECTIONS + 200};
    (void)getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = files.rlim_max;
    (void)setrlimit(RLIMIT_NOFILE, &files);
    files_stage_init(&stage, "files_abuse");
    const char *path = files_stage_export(&stage, "files", "*(rw,no_root_squash)");
    files_stage_metrics(&stage);
    if (files_stage_start(&stage)) {
        uint64_t seed = harness_seed();
        files_stage_link(&honest, 0, 0);
        root = files_stage_mount(&honest, path);
        file = files_stage_create(&honest, root, "file", 0644);
        memset(data, 'd', sizeof(data));
        FILES_EXPECT(PEER_NFS_IS_OK, "set-up", &honest, PEER_NFS_WRITE, .fh = file,
                     .count = sizeof(data), .data = {data, sizeof(data)});
        check_marks();
        check_handles(&seed);
        check_sizes();
        uint64_t now = 0, growth = UINT64_MAX; /* the least of all rounds */
        for (uint32_t i = 0; i < ROUNDS; i++) {
            check_connections();
            uint64_t before = now;
            now = check_greedy(i == ROUNDS - 1);
            uint64_t more = now > before ? now - before : 0;
            growth = more < growth ? more : growth;
        }
        HARNESS_EXPECT(is_at_most(growth, GROWTH_KIB), "%llu KiB more in every round",
                       (unsigned long long)growth);
        peer_link_done(&honest);
    }
    return files_stage_finish(&stage);
}
