/*
 * store_to_statd.c -- see store_to_statd.h.
 *
 * Into directories that are empty, so that nothing of rpc.statd's own, of before, is mixed in or
 * lost. The state number is written last: without it rpc.statd takes the directory for a new one.
 * Everything belongs to who owns DIR, because rpc.statd becomes that user. We may be root, and that
 * user may change DIR meanwhile: no link is followed, and nothing is given away but what we made.
 *
 * A file is named by its mon_name. rpc.statd may have called it otherwise, by what the resolver
 * said; it finds a host by the lines.
 */
#include "daemon/store_to_statd.h"

#include "daemon/machine.h"
#include "daemon/statd_line.h"
#include "daemon/store_export.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

struct home {
    struct store_command *command;
    int directory, sm, bak; /* -1: not open */
    struct stat status;     /* of the directory */
    struct record_server server;
    bool has_server;
    uint64_t standing, owed, unfit;
};

static int refuse(const struct home *home, const char *name, const char *why)
{
    char sentence[512];
    (void)snprintf(sentence, sizeof sentence, "%s/%s: %s", home->command->file, name, why);
    return store_command_fail(home->command, STORE_COMMAND_NO, sentence);
}

static bool is_empty(int directory)
{
    int fd = openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *entries = fd < 0 ? NULL : fdopendir(fd);
    bool is_found = entries == NULL;
    for (const struct dirent *entry; !is_found && (entry = readdir(entries)) != NULL;)
        is_found = strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
    if (entries != NULL)
        (void)closedir(entries);
    else if (fd >= 0)
        (void)close(fd);
    return !is_found;
}

/* Given to the owner of the directory; a user other than root owns what it writes already. */
static int give_away(const struct home *home, int fd)
{
    return geteuid() == 0 && fchown(fd, home->status.st_uid, home->status.st_gid) != 0 ? -errno : 0;
}

static int open_list(const struct home *home, const char *name)
{
    bool is_new = mkdirat(home->directory, name, 0700) == 0;
    if (!is_new && errno != EEXIST)
        return -errno;
    int fd = openat(home->directory, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    struct stat status;
    int result = fstat(fd, &status) != 0 ? -errno : is_empty(fd) ? 0 : -ENOTEMPTY;
    bool is_ours = is_new && result == 0 && status.st_uid == geteuid();
    if (is_ours)
        result = give_away(home, fd);
    else if (result == 0 && status.st_uid != home->status.st_uid)
        result = -EPERM;
    if (result == 0)
        return fd;
    (void)close(fd);
    return result;
}

static const char *list_error(int error)
{
    switch (-error) {
    case ENOTEMPTY:
        return "is not empty, and what is in it may be out of date; move the files away, then "
               "export. Nothing was written";
    case ENOTDIR:
    case ELOOP:
        return "is not a directory, or a link to one; move it away, then export. Nothing was "
               "written";
    case EPERM:
        return "belongs to another user than the directory that it is in; move it away, then "
               "export. Nothing was written";
    default:
        return strerror(-error);
    }
}

static int open_home(struct home *home)
{
    home->directory = open(home->command->file, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (home->directory < 0 || fstat(home->directory, &home->status) != 0)
        return refuse(home, "", strerror(errno));
    home->sm = open_list(home, "sm");
    if (home->sm < 0)
        return refuse(home, "sm", list_error(home->sm));
    home->bak = open_list(home, "sm.bak");
    if (home->bak < 0)
        return refuse(home, "sm.bak", list_error(home->bak));
    return 0;
}

static void close_home(const struct home *home)
{
    const int all[] = {home->directory, home->sm, home->bak};
    for (uint32_t i = 0; i < sizeof all / sizeof all[0]; i++)
        if (all[i] >= 0)
            (void)close(all[i]);
}

/* Is this one that we made and gave away, and not somebody's file under a second name? */
static bool is_given_away(const struct home *home, int fd)
{
    struct stat status;
    return fstat(fd, &status) == 0 && S_ISREG(status.st_mode) && status.st_nlink == 1 &&
           status.st_uid == home->status.st_uid;
}

/* The file at its end: a new one, which is given away, or one of this export. */
static int open_file(const struct home *home, int directory, const char *name)
{
    const int flags = O_WRONLY | O_APPEND | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
    int fd = openat(directory, name, flags | O_CREAT | O_EXCL, 0600);
    bool is_new = fd >= 0;
    if (fd < 0 && errno == EEXIST)
        fd = openat(directory, name, flags);
    if (fd < 0)
        return -errno;
    int result = is_new ? give_away(home, fd) : is_given_away(home, fd) ? 0 : -EEXIST;
    if (result == 0)
        return fd;
    (void)close(fd);
    return result;
}

/* Adds to the file, durably. */
static int append(const struct home *home, int directory, const char *name, struct bytes bytes)
{
    int fd = open_file(home, directory, name);
    if (fd < 0)
        return fd;
    int result = 0;
    ssize_t len = result == 0 ? write(fd, bytes.at, bytes.len) : 0;
    if (result == 0 && len != (ssize_t)bytes.len)
        result = len < 0 ? -errno : -ENOSPC;
    if (result == 0 && fsync(fd) != 0)
        result = -errno;
    (void)close(fd);
    return result;
}

static bool is_owed(const struct record_server *server, const struct record_registrant *record)
{
    uint32_t told = record->told_state;
    return told == 0 || (int32_t)(told - server->restart_state) < 0 ||
           (int32_t)(server->state - told) < 0; /* not a number of ours */
}

static int write_registrant(struct home *home, const struct record_registrant *record)
{
    char line[STATD_LINE_MAX], name[NAME_MAX + 1];
    struct bytes mon_name = record->mon_name;
    bool is_file = mon_name.len > 0 && mon_name.len <= NAME_MAX && mon_name.at[0] != '.' &&
                   memchr(mon_name.at, '/', mon_name.len) == NULL;
    if (!is_file || !statd_line_put(line, record)) {
        home->unfit++;
        return 0;
    }
    memcpy(name, mon_name.at, mon_name.len);
    name[mon_name.len] = '\0';
    bool owed = is_owed(&home->server, record);
    bool stands = record->server_epoch >= home->server.boot_epoch;
    int result = stands ? append(home, home->sm, name, bytes_of_text(line)) : 0;
    if (result == 0 && owed)
        result = append(home, home->bak, name, bytes_of_text(line));
    if (result != 0)
        return refuse(home, name, strerror(-result));
    home->standing += stands;
    home->owed += owed;
    return 0;
}

static int write_record(void *context, enum record_kind kind, uint32_t slot, struct bytes value)
{
    struct home *home = context;
    struct record_registrant record;
    if (kind == RECORD_SERVER && record_get_server(value, &home->server) == RECORD_GOOD)
        home->has_server = true;
    if (kind == RECORD_SERVER && home->has_server && !(home->server.flags & RECORD_SERVER_MONITOR))
        return store_command_fail(home->command, STORE_COMMAND_USAGE,
                                  "the store is of a lock server; rpc.statd cannot know its locks. "
                                  "Give the --store of a status monitor");
    if (kind != RECORD_REGISTRANT)
        return 0;
    if (!home->has_server)
        return store_command_fail(home->command, STORE_COMMAND_STORE,
                                  "its server record, which holds the state number, is lost or "
                                  "damaged; start the monitor on it once, then export");
    if (record_get_registrant(value, slot, &record) != RECORD_GOOD) {
        home->unfit++;
        return 0;
    }
    return write_registrant(home, &record);
}

static int write_state(const struct home *home)
{
    uint32_t state = home->server.state;
    int result = 0;
    if (fsync(home->sm) != 0 || fsync(home->bak) != 0)
        result = -errno;
    if (result == 0 && unlinkat(home->directory, "state", 0) != 0 && errno != ENOENT)
        result = -errno;
    if (result == 0)
        result = append(home, home->directory, "state",
                        (struct bytes){(const uint8_t *)&state, sizeof state});
    if (result == 0 && fsync(home->directory) != 0)
        result = -errno;
    return result == 0 ? 0 : refuse(home, "state", strerror(-result));
}

/* sm-notify notifies everybody unless it believes that it has run in this boot. */
static void report(const struct home *home)
{
    struct machine_identity identity;
    char buffer[256];
    struct text why;
    text_init(&why, buffer, sizeof buffer);
    (void)fprintf(stderr,
                  "holdfast store export: %llu registration%s, %llu host%s to notify, state %u\n",
                  (unsigned long long)home->standing, home->standing == 1 ? "" : "s",
                  (unsigned long long)home->owed, home->owed == 1 ? "" : "s", home->server.state);
    if (machine_identify(&identity, &why) != 0 || machine_ran_sm_notify() ||
        memcmp(identity.boot, home->server.boot, RECORD_BOOT_LEN) != 0)
        return;
    (void)fputs("holdfast store export: the hosts were notified of this boot; before you start "
                "rpc.statd or sm-notify, run 'touch /run/sm-notify.pid', or they are notified of a "
                "reboot that did not happen\n",
                stderr);
}

static int write_home(struct home *home)
{
    struct store_failure failure = {0};
    struct store_summary summary;
    int result = 0;
    struct store *store = store_export_open(home->command, &summary, &result);
    if (store == NULL)
        return result;
    result = open_home(home);
    if (result == 0)
        result = store_load(store, write_record, home, &failure);
    store_close(store);
    if (result < 0)
        return store_command_fail(home->command, failure.exit_code, failure.text);
    if (result == 0 && !home->has_server)
        return store_command_fail(home->command, STORE_COMMAND_NO, "the store is empty");
    if (result == 0)
        result = write_state(home);
    if (result != 0)
        return result;
    report(home);
    if (home->unfit > 0)
        return store_command_fail(home->command, STORE_COMMAND_NO,
                                  "some registrations are damaged, or have names that rpc.statd "
                                  "cannot keep; they were left out");
    return 0;
}

int store_to_statd(struct store_command *command)
{
    struct home home = {.command = command, .directory = -1, .sm = -1, .bak = -1};
    int result = write_home(&home);
    close_home(&home);
    return result;
}
