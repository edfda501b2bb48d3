/*
 * files_stage.c -- a server that exports directories of this test; see files_stage.h.
 */
#include "files_stage.h"

#include "callbacks.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { JUKEBOX_TRIES = 500, RESULTS = 3, HTTP_PORT = 8049, HTTP_MS = 10000 };

void files_stage_init(struct files_stage *stage, const char *name)
{
    *stage = (struct files_stage){0};
    if (geteuid() != 0 || !callbacks_enter_network()) {
        printf("skipped: needs root, to export files and for a network of its own\n");
        exit(HARNESS_SKIPPED);
    }
    umask(0);
    harness_init(name);
    stage->server.listen = "127.0.0.1";
    stage->server.store = harness_path("store");
    files_stage_option(stage, "--nfs-port", "2049");
}

void files_stage_option(struct files_stage *stage, const char *option, const char *value)
{
    if (stage->option_count + 2 > HARNESS_EXTRA_MAX)
        abort();
    stage->server.extra[stage->option_count++] = option;
    stage->server.extra[stage->option_count++] = value;
}

void files_stage_metrics(struct files_stage *stage)
{
    static char http[32];
    snprintf(http, sizeof(http), "127.0.0.1:%u", (unsigned)HTTP_PORT);
    files_stage_option(stage, "--http", http);
}

uint64_t files_stage_metric(const char *name)
{
    static char text[1 << 20];
    static const char ask[] = "GET /metrics HTTP/1.0\r\nHost: 127.0.0.1\r\n\r\n";
    struct dial_route route = {.server = dial_endpoint_v4(0x7f000001, HTTP_PORT)};
    size_t len = 0;
    int got = 1, fd = dial_open(&route, HTTP_MS);
    if (fd >= 0 && dial_send(fd, ask, sizeof(ask) - 1, HTTP_MS) == 0)
        while (len < sizeof(text) - 1 && got > 0) {
            got = dial_receive(fd, text + len, sizeof(text) - 1 - len, HTTP_MS);
            len += got > 0 ? (size_t)got : 0;
        }
    if (fd >= 0)
        close(fd);
    text[len] = 0;
    char line[128];
    snprintf(line, sizeof(line), "\n%s ", name);
    const char *at = strstr(text, line);
    HARNESS_EXPECT(at != NULL, "no metric is called %s", name);
    return at ? strtoull(at + strlen(line), NULL, 10) : 0;
}

const char *files_stage_export(struct files_stage *stage, const char *name, const char *clients)
{
    const char *path = harness_path(name);
    if (stage->export_count == FILES_STAGE_EXPORTS_MAX || mkdir(path, 0755) != 0)
        abort();
    char *line = stage->lines[stage->export_count++];
    snprintf(line, sizeof(stage->lines[0]), "%s %s", path, clients);
    files_stage_option(stage, "--export", line);
    return path;
}

bool files_stage_start(struct files_stage *stage)
{
    stage->starts++;
    return harness_start(&stage->server);
}

bool files_stage_crash(struct files_stage *stage)
{
    int code = harness_stop(&stage->server, SIGKILL);
    return HARNESS_EXPECT(code == 128 + SIGKILL, "the server ended with %d before it was killed",
                          code) &&
           files_stage_start(stage);
}

int files_stage_finish(struct files_stage *stage)
{
    if (stage->server.pid > 0)
        HARNESS_EXPECT(harness_stop(&stage->server, SIGTERM) == 0, "SIGTERM did not end it well");
    return harness_finish();
}

void files_stage_link_from(struct peer_link *link, const char *address)
{
    struct dial_route route = {0};
    if (!dial_endpoint_parse("127.0.0.1", FILES_STAGE_PORT, &route.server) ||
        !dial_endpoint_parse(address, 0, &route.source) || !peer_link_init(link, &route))
        abort();
    link->is_hard = true;
    link->timeout_ms = 60000;
}

void files_stage_link(struct peer_link *link, uint32_t uid, uint32_t gid)
{
    files_stage_link_from(link, "127.0.0.1");
    link->who = (struct peer_link_identity){.uid = uid, .gid = gid};
}

struct peer_nfs_fh files_stage_mount(struct peer_link *link, const char *path)
{
    struct peer_mount_res res;
    uint32_t status = peer_mount_call(link, PEER_MOUNT_MNT, peer_nfs_text(path), &res);
    HARNESS_EXPECT(status == PEER_NFS_IS_OK, "MNT %s answered %s", path,
                   peer_nfs_status_text(status));
    return res.fh;
}

const struct peer_nfs_res *files_stage_ask(struct peer_link *link, uint32_t procedure,
                                           const struct peer_nfs_args *args)
{
    static const struct timespec pause = {.tv_nsec = 10000000};
    static struct peer_nfs_res results[RESULTS];
    static uint32_t next;
    struct peer_nfs_res *res = &results[next++ % RESULTS];
    for (uint32_t i = 0; i < JUKEBOX_TRIES; i++) {
        if (peer_nfs_call(link, procedure, args, res) != PEER_NFS_IS_JUKEBOX)
            return res;
        nanosleep(&pause, NULL);
    }
    return res;
}

const struct peer_nfs_res *files_stage_expect(uint32_t wanted, const char *why, uint32_t procedure,
                                              const struct peer_nfs_res *res)
{
    HARNESS_EXPECT(res->status == wanted, "%s: %s answered %s, expected %s", why,
                   peer_nfs_procedure_text(procedure), peer_nfs_status_text(res->status),
                   peer_nfs_status_text(wanted));
    return res;
}

struct peer_nfs_fh files_stage_lookup(struct peer_link *link, struct peer_nfs_fh directory,
                                      const char *name)
{
    return FILES_EXPECT(PEER_NFS_IS_OK, name, link, PEER_NFS_LOOKUP, .fh = directory,
                        .name = peer_nfs_text(name))
        ->fh;
}

struct peer_nfs_fh files_stage_create(struct peer_link *link, struct peer_nfs_fh directory,
                                      const char *name, uint32_t mode)
{
    const struct peer_nfs_res *res = FILES_EXPECT(
        PEER_NFS_IS_OK, name, link, PEER_NFS_CREATE, .fh = directory, .name = peer_nfs_text(name),
        .how = PEER_NFS_GUARDED, .sattr = {.has_mode = true, .mode = mode});
    HARNESS_EXPECT(res->status != PEER_NFS_IS_OK || res->has_fh, "%s has no handle", name);
    return res->fh;
}

void files_stage_put_local(const char *directory, const char *name, const char *text, uint32_t mode)
{
    char path[512];
    snprintf(path, sizeof(path), "%s/%s", directory, name);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode);
    if (fd < 0 || write(fd, text, strlen(text)) != (ssize_t)strlen(text)) {
        perror(path);
        exit(1);
    }
    close(fd);
}

uint32_t files_stage_pipe_ends(const struct files_stage *stage)
{
    char path[64], name[320], target[64];
    uint32_t count = 0;
    snprintf(path, sizeof(path), "/proc/%d/fd", (int)stage->server.pid);
    DIR *list = opendir(path);
    for (struct dirent *entry; list && (entry = readdir(list));) {
        snprintf(name, sizeof(name), "%s/%s", path, entry->d_name);
        ssize_t len = readlink(name, target, sizeof(target) - 1);
        count += len > 5 && strncmp(target, "pipe:", 5) == 0;
    }
    if (list)
        closedir(list);
    return count;
}

int files_stage_run(const char *const *words)
{
    int status;
    pid_t child = fork();
    if (child == 0) {
        int null_fd = open("/dev/null", O_WRONLY | O_CLOEXEC);
        dup2(null_fd, 1);
        dup2(null_fd, 2);
        execvp(words[0], (char *const *)words);
        _exit(127);
    }
    return waitpid(child, &status, 0) == child && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}
