/*
 * files_locks.c -- locks of files that this server serves itself (F-LOCK).
 *
 * Passing shows: a lock needs a handle of ours, an export that lists its client, and a user who may
 * read the file or owns it, over TCP and UDP, also as the first call about that file; a read-only
 * export gives no exclusive lock; a file that was removed is stale; what was granted can be
 * reclaimed and freed whatever its permissions are by then; --allow says who may lock at all, and
 * changes with a reload. Each refusal is in the log, with the name of the file.
 */
#include "lock_asker.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PATIENCE_MS = 10000, PAUSE_MS = 10 };

static struct files_stage stage;
static const char *path, *read_only_path, *private_path, *config_path;
static struct peer_link nfs;

static const struct asker owner = {"127.0.0.1", {.uid = 1000, .gid = 1000}, false};
static const struct asker other = {"127.0.0.1", {.uid = 1001, .gid = 1001}, false};

static struct peer_nlm_args about(const struct peer_nfs_fh *fh)
{
    return lock_asker_about(fh);
}

static uint32_t ask(const struct asker *asker, uint32_t procedure, struct peer_nlm_args args)
{
    return lock_asker_ask(&stage.server, asker, procedure, args);
}

static void expect(uint32_t wanted, const char *why, const struct asker *asker, uint32_t procedure,
                   struct peer_nlm_args args)
{
    lock_asker_expect(&stage.server, wanted, why, asker, procedure, args);
}

/* Locked and freed again. */
static void expect_lock(uint32_t wanted, const char *why, const struct asker *asker,
                        const struct peer_nfs_fh *fh)
{
    expect(wanted, why, asker, PEER_NLM_LOCK, about(fh));
    expect(PEER_NLM_IS_GRANTED, why, asker, PEER_NLM_UNLOCK, about(fh));
}

static void expect_log(const char *text, const char *name)
{
    HARNESS_EXPECT(harness_log_contains(&stage.server, text), "the log does not say: %s", text);
    if (name != NULL)
        HARNESS_EXPECT(harness_log_contains(&stage.server, name), "the log does not name %s", name);
}

/* A file of its owner's; the handle is fetched over NFS. */
static struct peer_nfs_fh make(const char *directory, const char *name, uint32_t mode)
{
    char file[512];
    files_stage_put_local(directory, name, "text", mode);
    snprintf(file, sizeof(file), "%s/%s", directory, name);
    if (chown(file, 1000, 1000) != 0)
        abort();
    nfs.who = (struct peer_link_identity){.uid = 1000, .gid = 1000};
    return files_stage_lookup(&nfs, files_stage_mount(&nfs, directory), name);
}

static void check_permissions(void)
{
    struct peer_nfs_fh readable = make(path, "readable", 0644);
    struct peer_nfs_fh secret = make(path, "secret", 0600);
    struct peer_nfs_fh unreadable = make(path, "unreadable", 0);
    struct asker datagrams = other;
    datagrams.is_udp = true;
    expect_lock(PEER_NLM_IS_GRANTED, "who may read", &other, &readable);
    expect_lock(PEER_NLM_IS_GRANTED, "the same over UDP", &datagrams, &readable);
    expect_lock(PEER_NLM_IS_GRANTED, "the owner", &owner, &unreadable);
    expect_lock(PEER_NLM_IS_DENIED, "who may not read", &other, &secret);
    expect_lock(PEER_NLM_IS_DENIED, "the same over UDP", &datagrams, &secret);
    expect(PEER_NLM_IS_DENIED, "who may not read", &other, PEER_NLM_TEST, about(&secret));
    expect(PEER_NLM_IS_DENIED, "who may not read", &other, PEER_NLM_SHARE, about(&secret));
    const struct asker root = {"127.0.0.1", {.uid = 0}, false};
    expect_lock(PEER_NLM_IS_DENIED, "root, squashed", &root, &secret);
    const struct asker nobody = {"127.0.0.1", {.is_none = true}, false};
    expect_lock(PEER_NLM_IS_DENIED, "AUTH_NONE", &nobody, &secret);
    expect_log("refused a lock: its user may not read the file", "secret");
}

static void check_handles(void)
{
    struct peer_nfs_fh file = make(path, "handles", 0666), forged = file;
    forged.at[file.len - 1] ^= 1;
    expect_lock(PEER_NLM_IS_STALE_FH, "a forged handle", &owner, &forged);
    forged.len = 32;
    memset(forged.at, 0, forged.len);
    expect_lock(PEER_NLM_IS_STALE_FH, "a handle of another server", &owner, &forged);
    expect(PEER_NLM_IS_GRANTED, "before it is removed", &owner, PEER_NLM_LOCK, about(&file));
    char name[512];
    snprintf(name, sizeof(name), "%s/handles", path);
    HARNESS_EXPECT(unlink(name) == 0, "cannot remove %s", name);
    expect(PEER_NLM_IS_STALE_FH, "a removed file", &other, PEER_NLM_LOCK, about(&file));
    expect(PEER_NLM_IS_STALE_FH, "a removed file", &other, PEER_NLM_TEST, about(&file));
    expect(PEER_NLM_IS_GRANTED, "its lock can be freed", &owner, PEER_NLM_UNLOCK, about(&file));
}

static void check_exports(void)
{
    struct peer_nfs_fh read_only = make(read_only_path, "file", 0666);
    struct peer_nlm_args shared = about(&read_only);
    expect_lock(PEER_NLM_IS_ROFS, "exclusive on a read-only export", &owner, &read_only);
    expect_log("this client may only read that export", NULL);
    shared.exclusive = false;
    expect(PEER_NLM_IS_GRANTED, "shared on a read-only export", &owner, PEER_NLM_LOCK, shared);
    expect(PEER_NLM_IS_GRANTED, "and freed", &owner, PEER_NLM_UNLOCK, shared);

    struct peer_nfs_fh file = make(private_path, "file", 0666);
    struct asker stranger = owner;
    stranger.address = "127.0.0.9";
    expect_lock(PEER_NLM_IS_GRANTED, "a client of the export", &owner, &file);
    expect_lock(PEER_NLM_IS_DENIED, "a client that it does not list", &stranger, &file);
    expect_log("the file's export does not list this client", NULL);
}

/* A lock outlives the right to read, a crash, and both. */
static void check_reclaim(void)
{
    struct peer_nfs_fh file = make(path, "kept", 0644);
    char name[512];
    snprintf(name, sizeof(name), "%s/kept", path);
    expect(PEER_NLM_IS_GRANTED, "before a chmod", &other, PEER_NLM_LOCK, about(&file));
    HARNESS_EXPECT(chmod(name, 0600) == 0, "cannot chmod %s", name);
    if (!files_stage_crash(&stage))
        return;
    HARNESS_EXPECT(stage.server.locks == 1, "%u locks after the crash", stage.server.locks);
    struct peer_nlm_args args = about(&file);
    args.reclaim = true;
    expect(PEER_NLM_IS_GRANTED, "a reclaim after a chmod", &other, PEER_NLM_LOCK, args);
    expect(PEER_NLM_IS_GRANTED, "and freed", &other, PEER_NLM_UNLOCK, about(&file));
    expect_lock(PEER_NLM_IS_DENIED, "a new lock is another matter", &other, &file);
}

static void configure(const char *allow)
{
    FILE *file = fopen(config_path, "we");
    if (file == NULL || fprintf(file, "[holdfast]\n%s\n", allow) < 0 || fclose(file) != 0)
        abort();
    if (stage.server.pid > 0)
        kill(stage.server.pid, SIGHUP);
}

static void check_allow(void)
{
    struct peer_nfs_fh file = make(path, "allowed", 0666);
    struct asker near = owner, far = owner;
    far.address = "127.0.1.1";
    expect_lock(PEER_NLM_IS_GRANTED, "nobody is excluded", &far, &file);
    configure("allow = 127.0.0.0/24\nallow = 192.0.2.1");
    uint32_t status = PEER_NLM_IS_GRANTED;
    for (uint32_t ms = 0; ms < PATIENCE_MS && status == PEER_NLM_IS_GRANTED; ms += PAUSE_MS) {
        status = ask(&far, PEER_NLM_TEST, about(&file));
        usleep(PAUSE_MS * 1000);
    }
    HARNESS_EXPECT(status == PEER_NLM_IS_DENIED, "an address that --allow does not list: %s",
                   peer_nlm_status_text(status));
    expect_lock(PEER_NLM_IS_GRANTED, "an address that --allow lists", &near, &file);
    expect_log("--allow does not list this address", "allowed");
}

int main(void)
{
    files_stage_init(&stage, "files_locks");
    config_path = harness_path("holdfast.conf");
    configure("");
    path = files_stage_export(&stage, "files", "*(rw)");
    read_only_path = files_stage_export(&stage, "read-only", "*(ro)");
    private_path = files_stage_export(&stage, "private", "127.0.0.1(rw)");
    files_stage_option(&stage, "--config", config_path);
    if (files_stage_start(&stage)) {
        files_stage_link(&nfs, 1000, 1000);
        check_permissions();
        check_handles();
        check_exports();
        check_reclaim();
        check_allow();
        peer_link_done(&nfs);
    }
    return files_stage_finish(&stage);
}
