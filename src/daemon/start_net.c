/*
 * start_net.c -- see start_net.h.
 */
#include "daemon/start_net.h"

#include "admin/events.h"
#include "admin/http.h"
#include "admin/samples.h"
#include "daemon/start_serve.h"
#include "proto/mount.h"
#include "proto/nfs.h"
#include "proto/nlm.h"
#include "proto/nsm.h"

#include <errno.h>
#include <sys/stat.h>

/* The directory of an lmdb: store, which --user must be able to write; NULL for other stores. */
static const char *store_path(const char *url)
{
    return strncmp(url, "lmdb:", 5) == 0 ? url + 5 : NULL;
}

int start_net_reload(struct daemon *daemon)
{
    struct reload_parts parts = {.loop = &daemon->loop,
                                 .log = &daemon->log,
                                 .clock = &daemon->clock,
                                 .config = &daemon->config,
                                 .argc = daemon->argc,
                                 .argv = daemon->argv};
    daemon->reload = daemon->hooks.reload = reload_new(&parts);
    return daemon->reload == NULL ? daemon_fail(daemon, DAEMON_EXIT_USAGE, "out of memory") : 0;
}

int start_net_user(struct daemon *daemon)
{
    char buffer[512];
    struct text why;
    text_init(&why, buffer, sizeof buffer);
    int err = privilege_resolve(daemon->config.user, &daemon->privilege, &why);
    if (err == 0)
        err = privilege_resolve_group(daemon->config.tracker_group, &daemon->privilege, &why);
    return err == 0 ? 0 : daemon_fail(daemon, DAEMON_EXIT_USAGE, buffer);
}

int start_net_files(struct daemon *daemon)
{
    uint32_t group_count = daemon->config.group_names.count;
    char buffer[512];
    struct text why;
    text_init(&why, buffer, sizeof buffer);
    bool is_good = !files_is_wanted(&daemon->config) || files_is_possible(&daemon->config, &why);
    for (uint32_t i = 0; is_good && daemon->group_configs != NULL && i < group_count; i++)
        is_good = !files_is_wanted(&daemon->group_configs[i]) ||
                  files_is_possible(&daemon->group_configs[i], &why);
    return is_good ? 0 : daemon_fail(daemon, DAEMON_EXIT_USAGE, buffer);
}

int start_net_directory(struct daemon *daemon)
{
    if (daemon->config.control_is_default && store_path(daemon->config.store) == NULL)
        (void)mkdir(CONFIG_RUN_DIRECTORY, 0755); /* start_net_control says what is missing */
    return 0;
}

int start_net_http(struct daemon *daemon)
{
    daemon->hooks.admin.events = events_new(&daemon->loop, &daemon->hooks.admin, daemon_seed());
    daemon->hooks.admin.samples = samples_new(&daemon->loop, &daemon->hooks.admin);
    if (daemon->hooks.admin.events == NULL || daemon->hooks.admin.samples == NULL)
        return daemon_fail(daemon, DAEMON_EXIT_USAGE, "out of memory");
    const struct config_endpoint *at = &daemon->config.http;
    if (!at->is_on)
        return 0;
    char buffer[512];
    struct text why;
    text_init(&why, buffer, sizeof buffer);
    int exit_code = DAEMON_EXIT_UNAVAILABLE;
    daemon->http =
        http_new(&daemon->loop, &at->address, at->port, &daemon->hooks.admin, &exit_code, &why);
    return daemon->http == NULL ? daemon_fail(daemon, exit_code, buffer) : 0;
}

/* Is one of the other ports that of files, too? */
static bool is_shared_port(const struct config *config)
{
    return config->nfs_port != 0 &&
           (config->nfs_port == config->nlm_port || config->nfs_port == config->nsm_port);
}

int start_net_ports(struct daemon *daemon)
{
    const struct config *config = &daemon->config;
    const struct descriptors_shares wanted = {config->connections_max, DAEMON_CALLS_MAX};
    bool has_files = files_is_wanted(config);
    uint64_t files = has_files ? FILES_OPEN_MAX : 0;
    uint64_t pipes = has_files ? FILES_PIPES_MAX : 0;
    uint64_t needed = (uint64_t)wanted.callers + DESCRIPTORS_SPARE + files + 2 * pipes;
    bool has_mirror = has_files && config->local_locks == CONFIG_ON;
    uint64_t limit =
        descriptors_reserve(needed + wanted.calls + (has_mirror ? 4 * FILES_MIRRORED_MAX : 0));
    daemon->files_open_max = descriptors_for_files(limit, needed, (uint32_t)files);
    daemon->files_pipes_max = descriptors_for_pipes(limit, needed, (uint32_t)pipes);
    daemon->files_mirrored_max =
        has_mirror ? descriptors_for_mirror(limit, needed, FILES_MIRRORED_MAX) : 0;
    uint64_t of_files = daemon->files_open_max + 2 * (uint64_t)daemon->files_mirrored_max +
                        2 * (uint64_t)daemon->files_pipes_max;
    daemon->connections =
        descriptors_divide(limit <= of_files ? limit / 2 : limit - of_files, &wanted);
    if (limit > 0 && limit < needed)
        log_say(&daemon->log, LOG_LEVEL_WARNING, clock_wall_ns(&daemon->clock),
                LOG_MESSAGE("the open file limit is too low for --max-connections, so fewer "
                            "connections are kept; raise it (ulimit -n, LimitNOFILE=) or lower "
                            "the option"),
                LOG_NUMBER("allowed", limit), LOG_NUMBER("needed", needed),
                LOG_NUMBER("connections", daemon->connections.callers));
    const struct config_addresses *at = &config->listen;
    struct listen_failure failure;
    if (listen_open(at->at, at->count, config->nlm_port, &daemon->sockets, &failure) != 0 ||
        (config->nsm_port != config->nlm_port &&
         listen_open(at->at, at->count, config->nsm_port, &daemon->nsm_sockets, &failure) != 0) ||
        (has_files && !is_shared_port(config) &&
         listen_open(at->at, at->count, config->nfs_port, &daemon->nfs_sockets, &failure) != 0))
        return daemon_fail(
            daemon, failure.error == EADDRINUSE ? DAEMON_EXIT_UNAVAILABLE : DAEMON_EXIT_USAGE,
            failure.text);
    return 0;
}

int start_net_privileges(struct daemon *daemon)
{
    const struct privilege *privilege = &daemon->privilege;
    char buffer[512];
    struct text why;
    text_init(&why, buffer, sizeof buffer);
    const char *path = store_path(daemon->config.store);
    if (path != NULL && privilege_hand_over(privilege, path, &why) != 0)
        return daemon_fail(daemon, DAEMON_EXIT_STORE, buffer);
    if (path == NULL && daemon->config.control_is_default &&
        privilege_hand_over(privilege, CONFIG_RUN_DIRECTORY, &why) != 0)
        text_init(&why, buffer, sizeof buffer); /* start_net_control says what is missing */
    /* A standby has made its socket already, as root; who we become must be able to use it. */
    gid_t group = privilege->has_group ? privilege->group : privilege->gid;
    int error = privilege->is_needed ? control_give(&daemon->control, privilege->uid, group) : 0;
    if (error != 0)
        log_say(&daemon->log, LOG_LEVEL_WARNING, clock_wall_ns(&daemon->clock),
                LOG_MESSAGE("the control socket stays owned by root: only root can use it"),
                LOG_TEXT("cause", strerror(error)));
    if (privilege_drop(privilege, &why) != 0)
        return daemon_fail(daemon, DAEMON_EXIT_USAGE, buffer);
    return 0;
}

static void say(void *context, const char *sentence)
{
    struct daemon *daemon = context;
    log_say(&daemon->log, LOG_LEVEL_WARNING, clock_wall_ns(&daemon->clock), LOG_MESSAGE(sentence));
}

/* The control socket is there: who may use it beside us? */
static void let_group_in(struct daemon *daemon)
{
    const struct privilege *privilege = &daemon->privilege;
    if (!privilege->has_group)
        return;
    daemon->hooks.admin.has_tracker_group = true;
    daemon->hooks.admin.tracker_group = privilege->group;
    if (!control_is_reachable(&daemon->control, privilege->group))
        log_say(&daemon->log, LOG_LEVEL_WARNING, clock_wall_ns(&daemon->clock),
                LOG_MESSAGE("members of --tracker-group cannot reach the control socket: its "
                            "directory does not let them in; choose another with --control, or "
                            "let the group search it (chgrp, chmod g+x)"),
                LOG_TEXT("control", daemon->config.control));
}

int start_net_control(struct daemon *daemon)
{
    const struct control_words words = {.say = say, .context = daemon};
    char buffer[1024];
    struct text why;
    text_init(&why, buffer, sizeof buffer);
    int exit_code;
    gid_t group = daemon->privilege.has_group ? daemon->privilege.group : CONTROL_NO_GROUP;
    if (control_open(daemon->config.control, group, &words, &daemon->control, &exit_code, &why)) {
        let_group_in(daemon);
        daemon->control_http =
            http_new_control(&daemon->loop, daemon->control.fd, &daemon->hooks.admin);
        return daemon->control_http == NULL
                   ? daemon_fail(daemon, DAEMON_EXIT_USAGE, "out of memory")
                   : 0;
    }
    if (store_path(daemon->config.store) != NULL || !daemon->config.control_is_default)
        return daemon_fail(daemon, exit_code, buffer);
    log_say(&daemon->log, LOG_LEVEL_WARNING, clock_wall_ns(&daemon->clock),
            LOG_MESSAGE("no control socket: the holdfast command cannot reach this server"),
            LOG_TEXT("cause", buffer));
    return 0;
}

struct listen_set *start_net_files_at(struct daemon *daemon)
{
    if (daemon->nfs_sockets.port != 0)
        return &daemon->nfs_sockets;
    bool is_nsm =
        daemon->nsm_sockets.port != 0 && daemon->nsm_sockets.port == daemon->config.nfs_port;
    return is_nsm ? &daemon->nsm_sockets : &daemon->sockets;
}

int start_net_rpcbind(struct daemon *daemon)
{
    struct registrar_parts parts = {.loop = &daemon->loop,
                                    .clock = &daemon->clock,
                                    .log = &daemon->log,
                                    .config = &daemon->config,
                                    .context = daemon,
                                    .on_registered = start_serve_registered};
    daemon->registrar = registrar_new(&parts);
    if (daemon->registrar == NULL)
        return daemon_fail(daemon, DAEMON_EXIT_USAGE, "cannot reserve memory for the registration");
    bool is_split = daemon->nsm_sockets.count > 0;
    if (daemon->config.role != CONFIG_MONITOR) /* the machine has its own */
        registrar_add(daemon->registrar, &nlm_program, &daemon->sockets);
    registrar_add(daemon->registrar, &nsm_program,
                  is_split ? &daemon->nsm_sockets : &daemon->sockets);
    if (files_is_wanted(&daemon->config)) {
        const struct listen_set *sockets = start_net_files_at(daemon);
        registrar_add(daemon->registrar, &nfs_program, sockets);
        registrar_add(daemon->registrar, &mount_program, sockets);
    }
    return registrar_prepare(daemon->registrar);
}
