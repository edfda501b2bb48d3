/*
 * files_mount.c -- MOUNT and the clients of an export, over the wire.
 *
 * Passing shows: MNT gives a handle of an exported directory and of what is below it, to clients
 * that its line names, and else the status that says why; who is not named cannot use a handle that
 * he has from elsewhere; DUMP, UMNT, UMNTALL and EXPORT answer, over TCP and UDP; one client
 * cannot crowd others out of the list of mounts; what is wrong with an export is said by name
 * before the server starts.
 */
#include "files_stage.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { GREEDY_MOUNTS = 200 };

static struct files_stage stage;
static const char *open_path, *few_path, *secure_path;

static uint32_t mount_status(struct peer_link *link, const char *path)
{
    struct peer_mount_res res;
    return peer_mount_call(link, PEER_MOUNT_MNT, peer_nfs_text(path), &res);
}

static void expect_mount(struct peer_link *link, uint32_t wanted, const char *path, const char *why)
{
    uint32_t status = mount_status(link, path);
    HARNESS_EXPECT(status == wanted, "%s: MNT %s answered %s, expected %s", why, path,
                   peer_nfs_status_text(status), peer_nfs_status_text(wanted));
}

static const char *below(const char *path, const char *name)
{
    static char text[512];
    snprintf(text, sizeof(text), "%s/%s", path, name);
    return text;
}

static void check_paths(struct peer_link *link)
{
    struct peer_mount_res res;
    peer_mount_call(link, PEER_MOUNT_MNT, peer_nfs_text(open_path), &res);
    HARNESS_EXPECT(
        res.status == PEER_NFS_IS_OK && res.fh.len >= 4 && res.fh.len <= 56 && res.fh.len % 4 == 0,
        "MNT answered %s with a handle of %u bytes", peer_nfs_status_text(res.status), res.fh.len);
    bool has_sys = false;
    for (uint32_t i = 0; i < res.flavor_count; i++)
        has_sys = has_sys || res.flavors[i] == PACKET_AUTH_SYS;
    HARNESS_EXPECT(has_sys, "MNT does not offer AUTH_SYS");
    expect_mount(link, PEER_NFS_IS_OK, below(open_path, ""), "a slash at the end");
    expect_mount(link, PEER_NFS_IS_OK, below(open_path, "sub"), "below the export");
    expect_mount(link, PEER_NFS_IS_OK, below(open_path, "sub/deep"), "far below the export");
    expect_mount(link, PEER_NFS_IS_NOTDIR, below(open_path, "file"), "a file");
    expect_mount(link, PEER_NFS_IS_NOENT, below(open_path, "missing"), "missing below the export");
    expect_mount(link, PEER_NFS_IS_ACCES, "/usr", "exists, but is not exported");
    static const char *const odd[] = {"", "relative", "/", "sub/../.."};
    for (size_t i = 0; i < sizeof(odd) / sizeof(odd[0]); i++)
        HARNESS_EXPECT(mount_status(link, odd[i]) != PEER_NFS_IS_OK, "MNT '%s' is OK", odd[i]);
    HARNESS_EXPECT(mount_status(link, below(open_path, "../few")) != PEER_NFS_IS_OK,
                   "MNT leads out of the export by ..");
    HARNESS_EXPECT(mount_status(link, below(open_path, "way-out")) != PEER_NFS_IS_OK,
                   "MNT follows a symbolic link out of the export");
    struct peer_nfs_fh sub = files_stage_mount(link, below(open_path, "sub"));
    struct peer_nfs_fh root = files_stage_mount(link, open_path);
    struct peer_nfs_fh same = files_stage_lookup(link, root, "sub");
    HARNESS_EXPECT(peer_nfs_same_fh(&sub, &same), "a directory has two handles");
}

static void check_long_paths(struct peer_link *link)
{
    static char path[PEER_MOUNT_PATH_MAX + 2];
    struct peer_mount_res res;
    memset(path, 'a', PEER_MOUNT_PATH_MAX);
    path[0] = '/';
    uint32_t status = peer_mount_call(link, PEER_MOUNT_MNT,
                                      (struct peer_nfs_view){path, PEER_MOUNT_PATH_MAX}, &res);
    HARNESS_EXPECT(status != PEER_NFS_IS_OK && status != PEER_NFS_IS_NOTHING,
                   "a path of 1024 bytes: %s", peer_nfs_status_text(status));
    static struct peer_link_call call;
    struct packet_reply reply = {0};
    peer_link_begin(link, &call, PEER_MOUNT_PROGRAM, PEER_MOUNT_VERSION, PEER_MOUNT_MNT);
    path[PEER_MOUNT_PATH_MAX] = 'a';
    packet_put_opaque(&call.head, path, PEER_MOUNT_PATH_MAX + 1);
    HARNESS_EXPECT(peer_link_exchange(link, &call, &reply) == 0 && reply.accepted &&
                       reply.status == PACKET_GARBAGE_ARGS,
                   "a path of 1025 bytes: %s", packet_reply_text(&reply));
    expect_mount(link, PEER_NFS_IS_OK, open_path, "the connection goes on");
}

/* Is it in the list of mounts? */
static bool is_listed(struct peer_link *link, const char *path)
{
    struct peer_mount_res res;
    struct peer_mount_entry entry;
    bool found = false;
    HARNESS_EXPECT(peer_mount_call(link, PEER_MOUNT_DUMP, peer_nfs_text(""), &res) == 0,
                   "DUMP is not answered");
    while (peer_mount_next_entry(&res.list, &entry))
        found = found || peer_nfs_is_text(entry.directory, path);
    return found;
}

static void check_lists(struct peer_link *link)
{
    struct peer_mount_res res;
    struct peer_mount_export export;
    uint32_t found = 0;
    struct peer_nfs_view none = peer_nfs_text("");
    HARNESS_EXPECT(peer_mount_call(link, PEER_MOUNT_EXPORT, none, &res) == 0,
                   "EXPORT is not answered");
    while (peer_mount_next_export(&res.list, &export)) {
        if (peer_nfs_is_text(export.directory, open_path))
            found |= 1;
        if (peer_nfs_is_text(export.directory, few_path)) {
            found |= 2;
            HARNESS_EXPECT(export.group_count == 2, "%u clients listed", export.group_count);
        }
    }
    HARNESS_EXPECT(found == 3, "EXPORT does not list every directory");
    expect_mount(link, PEER_NFS_IS_OK, open_path, "for the list of mounts");
    HARNESS_EXPECT(is_listed(link, open_path), "a mount is not in DUMP");
    HARNESS_EXPECT(peer_mount_call(link, PEER_MOUNT_UMNT, peer_nfs_text(open_path), &res) == 0,
                   "UMNT is not answered");
    HARNESS_EXPECT(!is_listed(link, open_path), "UMNT leaves it in DUMP");
    expect_mount(link, PEER_NFS_IS_OK, open_path, "once more");
    HARNESS_EXPECT(peer_mount_call(link, PEER_MOUNT_UMNTALL, none, &res) == 0,
                   "UMNTALL is not answered");
    HARNESS_EXPECT(!is_listed(link, open_path), "UMNTALL leaves it in DUMP");
    HARNESS_EXPECT(peer_mount_call(link, PEER_MOUNT_NULL, none, &res) == 0, "NULL has no answer");
    /* The list is a hint: who is not in it goes on. */
    struct peer_nfs_fh root = files_stage_mount(link, open_path);
    (void)peer_mount_call(link, PEER_MOUNT_UMNTALL, none, &res);
    FILES_EXPECT(PEER_NFS_IS_OK, "after UMNTALL", link, PEER_NFS_GETATTR, .fh = root);
}

/* A client that mounts everything there is has its part of the list, and no more. */
static void check_one_client(struct peer_link *link)
{
    char path[600];
    struct peer_link greedy;
    struct peer_mount_res res;
    uint32_t count = 0;
    files_stage_link_from(&greedy, "127.0.0.77");
    expect_mount(link, PEER_NFS_IS_OK, open_path, "before the greedy one");
    for (uint32_t i = 0; i < GREEDY_MOUNTS; i++) {
        snprintf(path, sizeof(path), "%s/greedy%u", open_path, i);
        if (mkdir(path, 0755) != 0)
            abort();
        expect_mount(&greedy, PEER_NFS_IS_OK, path, "the greedy one");
        rmdir(path);
    }
    HARNESS_EXPECT(is_listed(link, open_path), "a mount is crowded out of DUMP by one client");
    struct peer_mount_entry entry;
    if (peer_mount_call(link, PEER_MOUNT_DUMP, peer_nfs_text(""), &res) == 0)
        while (peer_mount_next_entry(&res.list, &entry))
            count += peer_nfs_is_text(entry.host, "127.0.0.77");
    HARNESS_EXPECT(count == 64, "%u mounts of one client are listed", count);
    HARNESS_EXPECT(is_listed(link, path), "its newest one is not listed");
    (void)peer_mount_call(link, PEER_MOUNT_UMNTALL, peer_nfs_text(""), &res);
    peer_link_done(&greedy);
}

static void check_udp(void)
{
    struct dial_route route = {.is_udp = true};
    struct peer_link link;
    struct peer_mount_res res;
    if (!dial_endpoint_parse("127.0.0.1", FILES_STAGE_PORT, &route.server) ||
        !peer_link_init(&link, &route))
        return;
    link.timeout_ms = 5000;
    HARNESS_EXPECT(peer_mount_call(&link, PEER_MOUNT_NULL, peer_nfs_text(""), &res) == 0,
                   "MOUNT does not answer over UDP");
    expect_mount(&link, PEER_NFS_IS_OK, open_path, "over UDP");
    static struct peer_link_call call;
    struct packet_reply reply = {0};
    peer_nfs_begin(&link, &call, PEER_NFS_NULL, &(struct peer_nfs_args){.count = 0});
    HARNESS_EXPECT(peer_link_exchange(&link, &call, &reply) == 0 && reply.accepted &&
                       reply.status == PACKET_PROG_UNAVAIL,
                   "NFS over UDP: %s", packet_reply_text(&reply));
    peer_link_done(&link);
}

/* The clients that a line names: an address and a network. */
static void check_clients(struct peer_link *stranger)
{
    struct peer_link friend, neighbour;
    files_stage_link_from(&friend, "127.0.0.2");
    files_stage_link_from(&neighbour, "127.3.7.9");
    expect_mount(stranger, PEER_NFS_IS_ACCES, few_path, "a client that is not named");
    expect_mount(&neighbour, PEER_NFS_IS_OK, few_path, "a client of the network");
    struct peer_nfs_fh root = files_stage_mount(&friend, few_path);
    FILES_EXPECT(PEER_NFS_IS_OK, "a client that is named", &friend, PEER_NFS_CREATE, .fh = root,
                 .name = peer_nfs_text("by-friend"));
    FILES_EXPECT(PEER_NFS_IS_ROFS, "the network may only read", &neighbour, PEER_NFS_CREATE,
                 .fh = root, .name = peer_nfs_text("by-neighbour"));
    FILES_EXPECT(PEER_NFS_IS_OK, "the network may read", &neighbour, PEER_NFS_LOOKUP, .fh = root,
                 .name = peer_nfs_text("by-friend"));
    FILES_EXPECT(PEER_NFS_IS_ACCES, "a stranger with a handle", stranger, PEER_NFS_GETATTR,
                 .fh = root);
    FILES_EXPECT(PEER_NFS_IS_ACCES, "a stranger with a handle", stranger, PEER_NFS_CREATE,
                 .fh = root, .name = peer_nfs_text("by-stranger"));
    expect_mount(stranger, PEER_NFS_IS_ACCES, secure_path, "from a port above 1023");
    peer_link_done(&friend);
    peer_link_done(&neighbour);
    struct peer_link privileged;
    files_stage_link_from(&privileged, "127.0.0.1");
    if (!dial_endpoint_parse("127.0.0.1", 987, &privileged.route.source))
        return;
    expect_mount(&privileged, PEER_NFS_IS_OK, secure_path, "from a port below 1024");
    peer_link_done(&privileged);
}

/* A line that is wrong: the server does not start, and its log has these words. */
static void check_refused(const char *line, const char *words)
{
    struct harness_server server = {.listen = "127.0.0.1", .store = harness_path("refused")};
    server.extra[0] = "--export";
    server.extra[1] = line;
    server.extra[2] = "--nfs-port";
    server.extra[3] = "3049";
    harness_spawn(&server);
    for (uint32_t i = 0; i < 5000 && harness_is_alive(&server); i++)
        usleep(2000);
    bool is_alive = harness_is_alive(&server);
    int code = harness_stop(&server, SIGKILL);
    HARNESS_EXPECT(!is_alive && code != 0, "'%s' is accepted (%d)", line, code);
    HARNESS_EXPECT(harness_log_contains(&server, words), "'%s': the log does not say '%s'", line,
                   words);
}

static void check_lines(void)
{
    char line[512];
    static const struct {
        const char *rest, *words;
    } rows[] = {
        {"*(rw,bogus)", "bogus"},           {"@staff(rw)", "@staff"},
        {"*(rw,crossmnt)", "crossmnt"},     {"*(rw,nohide)", "nohide"},
        {"*(rw,anonuid=x)", "anonuid"},     {"*(rw", "*(rw"},
        {"10.0.0.0/33(rw)", "10.0.0.0/33"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        snprintf(line, sizeof(line), "%s %s", open_path, rows[i].rest);
        check_refused(line, rows[i].words);
    }
    check_refused("/does/not/exist *(rw)", "/does/not/exist");
    check_refused("relative *(rw)", "relative");
    check_refused(below(open_path, "file"), "file");
}

int main(void)
{
    struct peer_link link;
    char path[512];
    files_stage_init(&stage, "files_mount");
    open_path = files_stage_export(&stage, "open", "*(rw,no_root_squash)");
    few_path = files_stage_export(&stage, "few", "127.0.0.2(rw,no_root_squash) 127.3.0.0/16(ro)");
    secure_path = files_stage_export(&stage, "secure", "*(rw,secure)");
    files_stage_put_local(open_path, "file", "text", 0644);
    snprintf(path, sizeof(path), "%s/sub", open_path);
    HARNESS_EXPECT(mkdir(path, 0755) == 0, "no directory");
    snprintf(path, sizeof(path), "%s/sub/deep", open_path);
    HARNESS_EXPECT(mkdir(path, 0755) == 0, "no directory");
    snprintf(path, sizeof(path), "%s/way-out", open_path);
    HARNESS_EXPECT(symlink("/usr", path) == 0, "no link");
    if (files_stage_start(&stage)) {
        files_stage_link(&link, 0, 0);
        check_paths(&link);
        check_long_paths(&link);
        check_lists(&link);
        check_one_client(&link);
        check_udp();
        check_clients(&link);
        peer_link_done(&link);
        check_lines();
    }
    return files_stage_finish(&stage);
}
