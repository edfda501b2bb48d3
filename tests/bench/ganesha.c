/*
 * ganesha.c -- nfs-ganesha as another lock manager; see ganesha.h.
 */
#include "bench/ganesha.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define NFS_PORT   "13049"
#define MOUNT_PORT "13005"
#define NLM_PORT   13021
#define START_MS   20000
#define LOOKUP_MS  30000
#define STATD      "ganesha-statd"
#define EXPORT     "ganesha"
#define HANDLES    "ganesha.handles"
#define CONFIG     "ganesha.conf"

static bool make_files(uint32_t count)
{
    char path[600];
    bool is_made = mkdir(peers_path(EXPORT), 0755) == 0;
    for (uint32_t i = 0; is_made && i < count; i++) {
        snprintf(path, sizeof(path), "%s/f%u", peers_path(EXPORT), i);
        int fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0644);
        is_made = fd >= 0 && close(fd) == 0;
    }
    return is_made;
}

/* Only what locks need, and no grace period: it would refuse locks for its time. */
static bool write_config(const char *directory, bool has_locks)
{
    FILE *file = fopen(peers_path(CONFIG), "we");
    if (!file)
        return false;
    fprintf(file,
            "NFS_CORE_PARAM { Protocols = 3; NFS_Port = " NFS_PORT "; MNT_Port = " MOUNT_PORT ";"
            " NLM_Port = %d; Enable_NLM = %s; Enable_RQUOTA = false; }\n"
            "NFSv4 { Graceless = true; }\n"
            "EXPORT { Export_Id = 1; Path = %s; Pseudo = /bench; Protocols = 3; Transports = TCP;"
            " Access_Type = RW; Squash = None; SecType = sys; FSAL { Name = VFS; } }\n",
            NLM_PORT, has_locks ? "true" : "false", directory);
    return fclose(file) == 0;
}

static bool find_handles(uint32_t count)
{
    struct process process = {0};
    char number[16];
    snprintf(number, sizeof(number), "%u", count);
    const char *arguments[] = {
        peers_tool("handles"), MOUNT_PORT, NFS_PORT, peers_path(EXPORT), number,
        peers_path(HANDLES),   NULL};
    return (process_start(&process, arguments) && process_wait_end(&process, LOOKUP_MS) == 0) ||
           peers_fail("nfs-ganesha gave no file handles: %s", process_last_words(&process));
}

static bool start(struct ganesha *ganesha, uint16_t port)
{
    struct peers_server *server = &ganesha->server;
    char config[600], pid[600];
    snprintf(config, sizeof(config), "%s", peers_path(CONFIG));
    snprintf(pid, sizeof(pid), "%s", peers_path("ganesha.pid"));
    const char *arguments[] = {"ganesha.nfsd", "-F",     "-f", config,    "-p", pid,
                               "-L",           "STDERR", "-N", "NIV_MAJ", NULL};
    server->kind = PEERS_GANESHA;
    server->port = port;
    return (process_start(&server->process, arguments) &&
            process_wait_port(&server->process, port, START_MS)) ||
           peers_fail("nfs-ganesha did not start: %s", process_last_words(&server->process));
}

bool ganesha_start(struct ganesha *ganesha, uint32_t files)
{
    *ganesha = (struct ganesha){.handles = HANDLES};
    if (!process_is_installed("ganesha.nfsd"))
        return peers_fail("not installed (Debian: nfs-ganesha, nfs-ganesha-vfs)");
    if (!make_files(files) || !write_config(peers_path(EXPORT), true))
        return peers_fail("cannot write %s: %s", peers_path(EXPORT), strerror(errno));
    if (peers_start_statd(&ganesha->statd, STATD, 0) && start(ganesha, NLM_PORT) &&
        find_handles(files))
        return true;
    ganesha_stop(ganesha);
    return false;
}

bool ganesha_start_files(struct ganesha *ganesha, const char *directory)
{
    *ganesha = (struct ganesha){0};
    if (!process_is_installed("ganesha.nfsd"))
        return peers_fail("not installed (Debian: nfs-ganesha, nfs-ganesha-vfs)");
    if (!write_config(directory, false))
        return peers_fail("cannot write %s: %s", peers_path(CONFIG), strerror(errno));
    /* It registers with rpcbind, or does not start. */
    if (peers_start_rpcbind() && start(ganesha, GANESHA_NFS_PORT) &&
        process_wait_port(&ganesha->server.process, GANESHA_MOUNT_PORT, START_MS))
        return true;
    ganesha_stop(ganesha);
    return false;
}

void ganesha_stop(struct ganesha *ganesha)
{
    peers_stop(&ganesha->server, SIGKILL);
    peers_stop(&ganesha->statd, SIGKILL);
    peers_remove(STATD);
    peers_remove(EXPORT);
}
