/*
 * files.c -- see files.h.
 *
 * The key of the file handles is a file of the store's directory, made at the first start: who
 * has the store has the handles (decision 033). Threads of the service wake the loop; what they
 * finished leaves with the turn that follows (wire_flush).
 */
#include "daemon/files.h"

#include "base/check.h"
#include "daemon/bell.h"
#include "daemon/files_key.h"
#include "daemon/lock_keeper.h"
#include "file/identity.h"
#include "file/intent.h"
#include "file/keeper.h"
#include "store/store.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

enum {
    THREADS_MIN = 8,
    THREADS_PER_CORE = 4,
    CALLS_MAX = 4096,   /* of all callers, in flight or finished */
    PATIENCE_MS = 1100, /* longer than paths.c waits for a name */
};
#define BYTES_MAX (UINT64_C(256) << 20)

struct files {
    struct files_parts parts;
    struct file_service *service;
    struct keeper *keeper;       /* NULL: locks for programs end with this process */
    bool is_loss_logged;         /* of the keeper */
    struct intent_ring *intents; /* NULL: there is none */
    struct guard guard;
    struct bell bell;    /* of the threads of the service */
    uv_timer_t patience; /* of those who wait for a name, */
    bool is_waited_for;  /* if there are any */
};

bool files_is_wanted(const struct config *config)
{
    return config->exports.count > 0 || config->exports_file != NULL;
}

bool files_is_possible(const struct config *config, struct text *ret_why)
{
    if (config->user != NULL) {
        text_add(ret_why, "--export needs root for as long as it serves: it acts for the users of "
                          "its clients; leave --user out");
        return false;
    }
    if (store_url_is_shared(config->store)) {
        text_add(ret_why,
                 "--export: the files are on this machine, and so must be the key of their "
                 "handles; use --store lmdb:DIR");
        return false;
    }
    return identity_check(ret_why);
}

/* On a thread of the service. */
static void wake(void *context)
{
    struct files *files = context;
    bell_ring(&files->bell);
}

/* Names that were asked for may be there, or it takes too long. Who still waits says so again. */
static void tell_news(struct files *files)
{
    bool is_waited_for = files->is_waited_for;
    files->is_waited_for = false;
    if (is_waited_for)
        files->parts.on_news(files->parts.context);
}

static void on_patience_over(uv_timer_t *timer);

/* Somebody will ask again, in any turn; there must be one. */
static void expect_turn(struct files *files)
{
    if (!uv_is_active((uv_handle_t *)&files->patience))
        CHECK(uv_timer_start(&files->patience, on_patience_over, PATIENCE_MS, 0) == 0);
}

/* Files that are gone have no locks any more. */
static void free_removed(struct files *files)
{
    struct nfs_fh fh;
    struct files_parts *parts = &files->parts;
    while (!core_is_full(parts->core) && file_next_removed(files->service, &fh)) {
        const struct core_input input = {.kind = CORE_FILE_GONE,
                                         .now_ns = clock_now_ns(parts->clock),
                                         .wall_ns = clock_wall_ns(parts->clock),
                                         .fh = {fh.data, fh.len}};
        rpc_server_step(parts->server, &input, NULL);
    }
    if (core_is_full(parts->core))
        expect_turn(files);
}

/* Calls are collected at the end of the turn. */
static void on_wake(void *context)
{
    tell_news(context);
    free_removed(context);
}

static void on_patience_over(uv_timer_t *timer)
{
    tell_news(timer->data);
    free_removed(timer->data);
}

/* Until the next start. */
static void log_loss(struct files *files)
{
    if (files->is_loss_logged)
        return;
    files->is_loss_logged = true;
    log_say(files->parts.log, LOG_LEVEL_WARNING, clock_wall_ns(files->parts.clock),
            LOG_MESSAGE("the keeper of locks (holdfastd keep-locks) has ended or does not answer: "
                        "while holdfast is not running, programs on this machine can lock what "
                        "NFS clients hold; restart holdfast to start it again"));
}

static enum guard_verdict judge(void *context, const struct guard_question *question)
{
    struct files *files = context;
    if (files->keeper != NULL && keeper_is_lost(files->keeper))
        log_loss(files);
    enum guard_verdict verdict = file_judge_lock(files->service, question);
    if (verdict == GUARD_LATER)
        expect_turn(files);
    return verdict;
}

static uint64_t random_bits(void)
{
    uint64_t bits = 0;
    CHECK(getrandom(&bits, sizeof bits, 0) == sizeof bits);
    return bits;
}

static uint32_t thread_count(void)
{
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    uint32_t count = cores > 0 ? (uint32_t)cores * THREADS_PER_CORE : THREADS_MIN;
    return count > THREADS_MIN ? count : THREADS_MIN;
}

/* At least one. */
static bool read_lines(const struct config *config, struct config_export_lines *ret,
                       struct text *ret_why)
{
    if (config_export_read(&config->exports, config->exports_file, ret, ret_why) != 0)
        return false;
    if (ret->count > 0)
        return true;
    text_add(ret_why, config->exports_file == NULL
                          ? "no export is left; to serve locks alone, restart without --export"
                          : "--exports: the file has no line in it; write a directory, and who may "
                            "use it, such as '/srv/files *(rw)'");
    return false;
}

/* Without it, a program may lock what a client holds while no server runs. */
static struct keeper *find_keeper(const struct files *files)
{
    const struct files_parts *parts = &files->parts;
    int fd = lock_keeper_connect(parts->config->store, true);
    struct keeper *keeper = fd < 0 ? NULL : keeper_new(fd);
    if (keeper != NULL && keeper_is_lost(keeper)) { /* it was about to end */
        keeper_free(keeper);
        fd = lock_keeper_connect(parts->config->store, true);
        keeper = fd < 0 ? NULL : keeper_new(fd);
    }
    if (fd == -ENOTDIR)
        return NULL; /* nothing outlives such a store */
    if (keeper == NULL)
        log_say(parts->log, LOG_LEVEL_WARNING, clock_wall_ns(parts->clock),
                LOG_MESSAGE("cannot start or reach the keeper of locks (holdfastd keep-locks): "
                            "while holdfast is not running, programs on this machine can lock "
                            "what NFS clients hold"),
                LOG_TEXT("error", strerror(fd < 0 ? -fd : ENOMEM)));
    return keeper;
}

static bool wants_nothing(const void *context, uint32_t export_id)
{
    (void)context;
    (void)export_id;
    return false;
}

/* What a run with --local-locks on has left. */
static void drop_kept(const struct files *files)
{
    int fd = lock_keeper_connect(files->parts.config->store, false);
    struct keeper *keeper = fd < 0 ? NULL : keeper_new(fd);
    keeper_drop_rest(keeper, wants_nothing, NULL);
    keeper_free(keeper);
}

/* Beside the key: of a store in memory neither outlives the process. A ring is no reason not to
 * serve. */
static void open_intents(struct files *files, const struct mac_key *key)
{
    const char *directory = files_key_directory(files->parts.config->store);
    if (directory == NULL)
        return;
    char buffer[512];
    struct text note;
    text_init(&note, buffer, sizeof buffer);
    files->intents = intent_ring_open(directory, key, &note);
    if (note.len > 0)
        log_say(files->parts.log, LOG_LEVEL_WARNING, clock_wall_ns(files->parts.clock),
                LOG_MESSAGE(buffer));
}

static struct file_service *open_service(struct files *files, struct text *ret_why)
{
    const struct config *config = files->parts.config;
    struct file_options options = {
        .limits = {.threads = thread_count(),
                   .files_max = files->parts.open_max,
                   .pipes_max = files->parts.pipes_max,
                   .mirrored_max = config->local_locks == CONFIG_ON ? files->parts.mirrored_max : 0,
                   .calls_max = CALLS_MAX,
                   .bytes_max = BYTES_MAX},
        .epoch = files->parts.epoch,
        .chance = (uint32_t)random_bits(),
        .seed = random_bits(),
        .groups_of_server = config->groups == CONFIG_GROUPS_SERVER,
        .wake = wake,
        .context = files,
    };
    if (files_key_get(config->store, &options.key, ret_why) != 0)
        return NULL;
    if (options.limits.mirrored_max > 0)
        files->keeper = find_keeper(files);
    else
        drop_kept(files);
    options.keeper = files->keeper;
    struct config_export_lines lines;
    if (!read_lines(config, &lines, ret_why))
        return NULL;
    open_intents(files, &options.key);
    options.intents = files->intents;
    struct file_service *service = file_new(&options, lines.at, lines.count, ret_why);
    config_export_lines_done(&lines);
    return service;
}

struct files *files_new(const struct files_parts *parts, struct text *ret_why)
{
    struct files *files = calloc(1, sizeof *files);
    if (files == NULL) {
        text_add(ret_why, "out of memory");
        return NULL;
    }
    files->parts = *parts;
    CHECK(bell_init(&files->bell, parts->loop, on_wake, files) == 0);
    CHECK(uv_timer_init(parts->loop, &files->patience) == 0);
    files->patience.data = files;
    files->service = open_service(files, ret_why);
    if (files->service == NULL)
        return files; /* with its handles, for files_close */
    rpc_server_set_desk(parts->server, file_desk(files->service));
    files->guard = (struct guard){.judge = judge, .context = files};
    rpc_server_set_guard(parts->server, &files->guard);
    if (file_local_locks(files->service) != NULL)
        core_mirror(parts->core, file_local_locks(files->service));
    file_serve_locks(files->service);
    return files;
}

struct file_service *files_service(struct files *files)
{
    return files->service;
}

struct export_table *files_prepare(const struct files *files, const struct config *config,
                                   struct text *ret_why)
{
    struct config_export_lines lines;
    if (!read_lines(config, &lines, ret_why))
        return NULL;
    struct export_table *exports = file_prepare(files->service, lines.at, lines.count, ret_why);
    config_export_lines_done(&lines);
    return exports;
}

void files_take(struct files *files, struct export_table *exports)
{
    file_take(files->service, exports);
    file_open_locks(files->service);
    core_mirror_again(files->parts.core);
    file_serve_locks(files->service);
}

enum path_state files_get_path(struct files *files, struct bytes fh, struct bytes *ret)
{
    enum path_state state = file_get_path(files->service, fh, ret);
    files->is_waited_for |= state == PATH_LATER;
    if (state == PATH_LATER)
        expect_turn(files);
    return state;
}

void files_close(struct files *files)
{
    if (files == NULL)
        return;
    bell_close(&files->bell);
    uv_close((uv_handle_t *)&files->patience, NULL);
}

void files_free(struct files *files)
{
    if (files == NULL)
        return;
    file_free(files->service);
    keeper_free(files->keeper);
    intent_ring_close(files->intents);
    bell_done(&files->bell);
    free(files);
}
