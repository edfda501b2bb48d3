/*
 * files.c -- see files.h.
 *
 * The key of the file handles is a file of the store's directory, made at the first start: whoever
 * has the store has the handles (decision 033). Threads of the service wake the loop; what they
 * finished leaves with the turn that follows (wire_flush).
 */
#include "daemon/files.h"

#include "base/check.h"
#include "daemon/files_key.h"
#include "store/store.h"

#include <errno.h>
#include <linux/capability.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
    THREADS_MIN = 8,
    THREADS_PER_CORE = 4,
    CALLS_MAX = 4096, /* of all callers, under way or finished */
};
#define BYTES_MAX (UINT64_C(256) << 20)

struct files {
    struct files_parts parts;
    struct file_service *service;
    uv_async_t wake;
    uv_signal_t hang_up;
    atomic_bool is_closed;
};

bool files_is_wanted(const struct config *config)
{
    return config->exports.count > 0 || config->exports_file != NULL;
}

/* Capabilities that a file server for other users cannot do without. */
static const struct {
    int number;
    const char *name;
} needed[] = {
    {CAP_DAC_READ_SEARCH, "CAP_DAC_READ_SEARCH"},
    {CAP_SETUID, "CAP_SETUID"},
    {CAP_SETGID, "CAP_SETGID"},
    {CAP_CHOWN, "CAP_CHOWN"},
    {CAP_DAC_OVERRIDE, "CAP_DAC_OVERRIDE"},
    {CAP_FOWNER, "CAP_FOWNER"},
    {CAP_MKNOD, "CAP_MKNOD"},
};

/* True when this process has it. */
static bool has_capability(int number)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = {0};
    if (syscall(SYS_capget, &header, data) != 0)
        return true; /* a system call filter; the first file will tell */
    return (data[number / 32].effective >> (number % 32) & 1) != 0;
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
    for (size_t i = 0; i < sizeof needed / sizeof needed[0]; i++) {
        if (has_capability(needed[i].number))
            continue;
        text_add(ret_why, "--export: ");
        text_add(ret_why, needed[i].name);
        text_add(ret_why, " is missing; run holdfast as root, or in a container add it "
                          "(docker run --cap-add ");
        text_add(ret_why, needed[i].name + strlen("CAP_"));
        text_add(ret_why, ")");
        return false;
    }
    return true;
}

/* On a thread of the service. */
static void wake(void *context)
{
    struct files *files = context;
    if (!atomic_load(&files->is_closed))
        (void)uv_async_send(&files->wake);
}

static void on_wake(uv_async_t *async)
{
    (void)async; /* the end of the turn collects */
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

static struct file_service *open_service(struct files *files, struct text *ret_why)
{
    const struct config *config = files->parts.config;
    struct file_options options = {
        .limits = {.threads = thread_count(),
                   .files_max = FILES_OPEN_MAX,
                   .calls_max = CALLS_MAX,
                   .bytes_max = BYTES_MAX},
        .epoch = files->parts.epoch,
        .seed = random_bits(),
        .groups_of_server = config->groups == CONFIG_GROUPS_SERVER,
        .wake = wake,
        .context = files,
    };
    if (files_key_get(config->store, &options.key, ret_why) != 0)
        return NULL;
    struct config_export_lines lines;
    if (config_export_read(&config->exports, config->exports_file, &lines, ret_why) != 0)
        return NULL;
    struct file_service *service = NULL;
    if (lines.count == 0)
        text_add(ret_why, "--exports: the file has no line in it; write a directory, and who may "
                          "use it, such as '/srv/files *(rw)'");
    else
        service = file_new(&options, lines.at, lines.count, ret_why);
    config_export_lines_done(&lines);
    return service;
}

static void say(const struct files *files, enum log_level level, const char *sentence,
                const char *cause)
{
    if (cause != NULL)
        log_say(files->parts.log, level, clock_wall_ns(files->parts.clock), LOG_MESSAGE(sentence),
                LOG_TEXT("cause", cause));
    else
        log_say(files->parts.log, level, clock_wall_ns(files->parts.clock), LOG_MESSAGE(sentence));
}

static void on_hang_up(uv_signal_t *handle, int number)
{
    (void)number;
    char buffer[1024];
    struct text why;
    text_init(&why, buffer, sizeof buffer);
    (void)files_reload(handle->data, &why); /* it says itself how it went */
}

struct files *files_new(const struct files_parts *parts, struct text *ret_why)
{
    struct files *files = calloc(1, sizeof *files);
    if (files == NULL) {
        text_add(ret_why, "out of memory");
        return NULL;
    }
    files->parts = *parts;
    CHECK(uv_async_init(parts->loop, &files->wake, on_wake) == 0);
    CHECK(uv_signal_init(parts->loop, &files->hang_up) == 0);
    files->hang_up.data = files;
    files->service = open_service(files, ret_why);
    if (files->service == NULL)
        return files; /* with its handles, for files_close */
    rpc_server_set_desk(parts->server, file_desk(files->service));
    CHECK(uv_signal_start(&files->hang_up, on_hang_up, SIGHUP) == 0);
    return files;
}

struct file_service *files_service(struct files *files)
{
    return files->service;
}

/* The exports of these options instead of ours. */
static bool take_exports(struct files *files, struct config *fresh, struct text *ret_why)
{
    struct config *config = files->parts.config;
    struct config_export_lines lines;
    if (config_export_read(&fresh->exports, fresh->exports_file, &lines, ret_why) != 0)
        return false;
    bool is_done = file_reload(files->service, lines.at, lines.count, ret_why);
    config_export_lines_done(&lines);
    if (!is_done)
        return false;
    struct config_exports ours = config->exports; /* the old ones go with the fresh options */
    config->exports = fresh->exports;
    fresh->exports = ours;
    config->log_level = fresh->log_level;
    log_set_level(files->parts.log, fresh->log_level);
    return true;
}

bool files_reload(struct files *files, struct text *ret_why)
{
    struct config fresh;
    bool is_done = false;
    if (config_read(files->parts.argc, files->parts.argv, &fresh, ret_why) == 0) {
        is_done = take_exports(files, &fresh, ret_why);
        config_done(&fresh);
    }
    if (is_done)
        say(files, LOG_LEVEL_INFO, "exports reloaded", NULL);
    else
        say(files, LOG_LEVEL_ERROR, "cannot reload the exports; they are unchanged",
            ret_why->start);
    return is_done;
}

void files_close(struct files *files)
{
    if (files == NULL)
        return;
    atomic_store(&files->is_closed, true);
    uv_close((uv_handle_t *)&files->wake, NULL);
    uv_close((uv_handle_t *)&files->hang_up, NULL);
}

void files_free(struct files *files)
{
    if (files == NULL)
        return;
    file_free(files->service);
    free(files);
}
