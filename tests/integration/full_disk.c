/*
 * full_disk.c -- a file system that is full refuses new registrations and locks, and nothing else.
 *
 * Passing proves (R-PER-8, D9), on a tmpfs of 24 MiB in a mount namespace of this test alone:
 *  (1) when no more space can be reserved, SM_MON of a new client is answered STAT_FAIL, a LOCK
 *      DENIED_NOLOCKS, and the server stays up; it says so in its log;
 *  (2) repeats of registered clients and SM_UNMON still work, all the way down to empty; so do LOCK
 *      of what is held and UNLOCK, also one that splits a lock (R-RNG-5);
 *  (3) space that removals freed takes new registrations and locks again;
 *  (4) what was acknowledged is there after a restart on the full disk.
 *
 * Needs root for the mount; without it the test is skipped.
 */
#include "bulk.h"
#include "full_disk_locks.h"

#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#define CLIENTS_MAX 60000
#define SURE        200

static void count_record(void *context, const struct harness_record *record)
{
    uint32_t *count = context;
    *count += record->is_server ? 0 : 1;
}

static bool mount_at(const char *path)
{
    return mkdir(path, 0700) == 0 && mount("tmpfs", path, "tmpfs", 0, "size=24m") == 0;
}

static bool mount_small_disk(const char *path)
{
    return unshare(CLONE_NEWNS) == 0 && mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
           mount_at(path);
}

static struct bulk_result run(const struct harness_server *server, struct bulk bulk)
{
    struct bulk_result result = {0};
    bulk.name_len = 1000;
    HARNESS_EXPECT(bulk_run(server, &bulk, &result) && result.wrong == 0,
                   "calls without an answer, or %u wrong ones", result.wrong);
    HARNESS_EXPECT(harness_is_alive(server), "the server ended");
    return result;
}

/* Registers until the disk refuses; the count of the registered. */
static uint32_t fill(const struct harness_server *server)
{
    /* Some that are registered for certain, whichever connection is served first. */
    struct bulk_result result = run(server, (struct bulk){.first = 0, .count = SURE});
    HARNESS_EXPECT(result.accepted == SURE, "%u of %u registered", result.accepted, SURE);
    result = run(
        server, (struct bulk){.first = SURE, .count = CLIENTS_MAX - SURE, .stop_at_refusal = true});
    HARNESS_EXPECT(result.refused > 0, "%u registered and the disk still takes more",
                   result.accepted);
    HARNESS_EXPECT(result.accepted > 100, "only %u registered on an empty disk", result.accepted);
    printf("%u registered, then refused\n", SURE + result.accepted);
    return SURE + result.accepted;
}

static void test_full(struct harness_server *server)
{
    if (!harness_start(server))
        return;
    uint32_t registered = fill(server), stored = 0;
    /* Numbers that were never tried are new for certain. */
    struct bulk_result result = run(server, (struct bulk){.first = CLIENTS_MAX, .count = 400});
    HARNESS_EXPECT(result.refused == 400, "%u new ones accepted on a full disk", result.accepted);
    HARNESS_EXPECT(harness_log_contains(server, "space"), "the log does not say why");
    HARNESS_EXPECT(harness_stop(server, SIGKILL) == 128 + SIGKILL, "SIGKILL");
    harness_dump(server->store, count_record, &stored);
    HARNESS_EXPECT(stored == registered, "%u acknowledged, %u stored", registered, stored);

    if (!harness_start(server))
        return;
    HARNESS_EXPECT(server->clients == registered, "%u clients after the restart", server->clients);
    result = run(server, (struct bulk){.first = CLIENTS_MAX, .count = 400});
    HARNESS_EXPECT(result.refused == 400, "%u new ones accepted after the restart",
                   result.accepted);
    result = run(server, (struct bulk){.first = 0, .count = SURE, .priv = 7});
    HARNESS_EXPECT(result.accepted == SURE, "%u of %u repeats accepted", result.accepted, SURE);
    result = run(server, (struct bulk){.kind = BULK_UNMON, .first = 0, .count = CLIENTS_MAX});
    HARNESS_EXPECT(result.accepted == CLIENTS_MAX, "%u removals answered", result.accepted);
    /* The store thread looks for room once a second: ask until it has found it. */
    for (uint32_t try = 0; try < 2000 && result.accepted != 400; try++)
        result = run(server, (struct bulk){.first = 0, .count = 400});
    HARNESS_EXPECT(result.accepted == 400, "%u of 400 accepted in the space that came free",
                   result.accepted);
    HARNESS_EXPECT(harness_stop(server, SIGTERM) == 0, "SIGTERM");
}

int main(void)
{
    if (geteuid() != 0) {
        puts("SKIP full_disk: mounting a small file system needs root");
        return HARNESS_SKIPPED;
    }
    harness_init("full_disk");
    const char *disk = harness_path("disk");
    if (!mount_small_disk(disk)) {
        puts("SKIP full_disk: this machine does not let us mount a tmpfs");
        (void)harness_finish();
        return HARNESS_SKIPPED;
    }
    struct harness_server server = {.listen = "127.0.0.1",
                                    .store = harness_path("disk/store"),
                                    .extra = {"--max-clients", "100000", "--recovery", "resume"}};
    test_full(&server);
    umount2(disk, MNT_DETACH);
    const char *second = harness_path("second");
    if (HARNESS_EXPECT(mount_at(second), "a second small file system")) {
        full_disk_locks(harness_path("second/store"));
        umount2(second, MNT_DETACH);
    }
    return harness_finish();
}
