/*
 * salvage.c -- copies a possibly torn store record by record in a child process; see salvage.h.
 *
 *   parent                     child
 *   fork ------------------->  open data.mdb read-only, walk every table of ours,
 *   wait                       put each record into data.mdb.new, sync it
 *   rename or report <-------  exit code, or death by SIGSEGV, SIGBUS, SIGABRT
 *
 * Always true:
 *  (1) The child ends: it reads at most as many records as the file has room for, and LMDB bounds
 *      the depth of a search, so a loop in a torn tree is an error and not a loop in the program.
 *  (2) data.mdb is replaced only by a copy that was read to the end and synced. For a reader it is
 *      never: its copy is a file without a name elsewhere, which it reads and then forgets.
 *  (3) Which records are good is not decided here. Each carries its checksum, and the core reads
 *      them; the copy keeps bad ones as they are so that they are reported.
 */
#include "store/salvage.h"

#include "store/backend.h"
#include "store/lmdb_env.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum child_exit { CHILD_COPIED = 0, CHILD_DAMAGED = 10, CHILD_FOREIGN = 11, CHILD_NO_COPY = 12 };

enum {
    VALUE_LEN_MAX = 64 * 1024, /* no format has longer records; a torn length is anything */
    RECORD_LEN_MIN = 16,       /* what a record takes in a page at the very least */
    COPY_COMMIT_COUNT = 10000, /* records per commit of the copy: bounds LMDB's memory */
};

struct copy {
    struct lmdb_env from, to;
    MDB_txn *reading, *writing;
    uint64_t records_left; /* more than this cannot be in the file */
    uint32_t uncommitted;
};

static enum child_exit put_record(struct copy *copy, int table, MDB_val *key, MDB_val *value)
{
    if (copy->records_left-- == 0)
        return CHILD_DAMAGED;
    if (key->mv_size != sizeof(uint32_t) || value->mv_size > VALUE_LEN_MAX)
        return CHILD_DAMAGED;
    int code = mdb_put(copy->writing, copy->to.tables[table], key, value, MDB_APPEND);
    if (code == MDB_KEYEXIST)
        return CHILD_DAMAGED; /* the slots are not in ascending order */
    if (code != 0)
        return CHILD_NO_COPY;
    if (++copy->uncommitted < COPY_COMMIT_COUNT)
        return CHILD_COPIED;
    copy->uncommitted = 0;
    if (mdb_txn_commit(copy->writing) != 0)
        return CHILD_NO_COPY;
    return mdb_txn_begin(copy->to.env, NULL, 0, &copy->writing) == 0 ? CHILD_COPIED : CHILD_NO_COPY;
}

static enum child_exit copy_table(struct copy *copy, int number)
{
    MDB_dbi table;
    MDB_cursor *cursor = NULL;
    MDB_stat stat;
    MDB_val key, value;
    unsigned flags = 0;
    int code = mdb_dbi_open(copy->reading, lmdb_env_table_name(number), 0, &table);
    if (code == MDB_NOTFOUND)
        return CHILD_COPIED; /* a store from before this table existed */
    if (code != 0 || mdb_dbi_flags(copy->reading, table, &flags) != 0 || flags != MDB_INTEGERKEY)
        return CHILD_DAMAGED;
    if (mdb_stat(copy->reading, table, &stat) != 0)
        return CHILD_DAMAGED;
    if (mdb_cursor_open(copy->reading, table, &cursor) != 0)
        return CHILD_DAMAGED;
    uint64_t count = 0;
    while ((code = mdb_cursor_get(cursor, &key, &value, MDB_NEXT)) == 0) {
        enum child_exit result = put_record(copy, number, &key, &value);
        if (result != CHILD_COPIED)
            return result;
        count++;
    }
    return code == MDB_NOTFOUND && count == stat.ms_entries ? CHILD_COPIED : CHILD_DAMAGED;
}

/* Codes of the disk that the copy is written to, as against those of a file that makes no sense. */
static bool is_disk_trouble(int code)
{
    return code == ENOSPC || code == EDQUOT || code == EACCES || code == ENOMEM || code == EROFS;
}

static enum child_exit copy_store(const struct directory *directory, const struct directory *to,
                                  const char *file)
{
    struct copy copy = {0};
    struct stat status;
    char unknown[64];

    if (fstatat(directory->fd, LMDB_ENV_FILE, &status, 0) != 0)
        return CHILD_NO_COPY;
    copy.records_left = (uint64_t)status.st_size / RECORD_LEN_MIN;
    int code = lmdb_env_open(&copy.from, directory, LMDB_ENV_FILE, MDB_RDONLY);
    if (code != 0)
        return is_disk_trouble(code) ? CHILD_NO_COPY : CHILD_DAMAGED;
    if (lmdb_env_find_unknown(&copy.from, unknown) != 0)
        return CHILD_DAMAGED;
    if (unknown[0] != '\0') /* a version of ours gives tables plain names; noise is not plain */
        return strchr(unknown, '?') == NULL ? CHILD_FOREIGN : CHILD_DAMAGED;
    if (mdb_txn_begin(copy.from.env, NULL, MDB_RDONLY, &copy.reading) != 0)
        return CHILD_NO_COPY;

    if (lmdb_env_open(&copy.to, to, file, MDB_NOSYNC) != 0 || lmdb_env_make_tables(&copy.to) != 0 ||
        mdb_txn_begin(copy.to.env, NULL, 0, &copy.writing) != 0)
        return CHILD_NO_COPY;
    for (int table = LMDB_ENV_PLACE; table < RECORD_KIND_END; table++) {
        enum child_exit result = copy_table(&copy, table);
        if (result != CHILD_COPIED)
            return result;
    }
    if (mdb_txn_commit(copy.writing) != 0 || mdb_env_sync(copy.to.env, 1) != 0)
        return CHILD_NO_COPY;
    return CHILD_COPIED;
}

/* The child frees nothing: its end does. Whatever handlers it inherited are for another process. */
static _Noreturn void run_child(const struct directory *directory, const struct directory *to,
                                const char *file)
{
    static const int fatal[] = {SIGSEGV, SIGBUS, SIGABRT, SIGILL, SIGFPE, SIGXFSZ, SIGTERM, SIGINT};
    for (size_t i = 0; i < sizeof fatal / sizeof fatal[0]; i++)
        (void)signal(fatal[i], SIG_DFL);
    struct rlimit no_core = {0, 0};
    (void)setrlimit(RLIMIT_CORE, &no_core); /* its death is an answer, not an accident */
    int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
    if (null >= 0)
        (void)dup2(null, STDERR_FILENO); /* LMDB prints the assertion that ends it */
    _exit((int)copy_store(directory, to, file));
}

/* The child's exit code; CHILD_DAMAGED when the file killed it; negative errno. */
static int wait_for(pid_t child)
{
    int status = 0;
    while (waitpid(child, &status, 0) < 0)
        if (errno != EINTR)
            return -errno;
    if (WIFEXITED(status))
        return WEXITSTATUS(status);
    switch (WTERMSIG(status)) {
    case SIGSEGV:
    case SIGBUS:
    case SIGABRT:
    case SIGILL:
    case SIGFPE:
        return CHILD_DAMAGED;
    default:
        return -EINTR; /* somebody ended it: not the file's fault */
    }
}

/* Copies into a file of another directory. SALVAGE_FAILED with *ret_failure filled. */
static enum salvage_result copy_to(const struct directory *directory, const struct directory *to,
                                   const char *file, const char *where,
                                   struct store_failure *ret_failure)
{
    pid_t child = fork();
    if (child < 0) {
        directory_fail(directory, "cannot start a process to verify data.mdb", errno, ret_failure);
        return SALVAGE_FAILED;
    }
    if (child == 0)
        run_child(directory, to, file);
    int code = wait_for(child);
    if (code == CHILD_COPIED)
        return SALVAGE_COPIED;
    if (code == CHILD_DAMAGED)
        return SALVAGE_DAMAGED;
    if (code == CHILD_FOREIGN)
        return SALVAGE_FOREIGN;
    if (code == CHILD_NO_COPY)
        store_fail(ret_failure, STORE_EXIT_STORE,
                   "store lmdb:%.200s: data.mdb must be verified after a crash, but cannot be "
                   "copied for that; free as much space %s as data.mdb takes, check that it is "
                   "readable%s, then start again",
                   directory->path, where, directory->is_reader ? "" : " and writable");
    else
        directory_fail(directory, "the process that verifies data.mdb died", code < 0 ? -code : EIO,
                       ret_failure);
    return SALVAGE_FAILED;
}

enum salvage_result salvage_run(const struct directory *directory,
                                struct store_failure *ret_failure)
{
    if (unlinkat(directory->fd, LMDB_ENV_NEW_FILE, 0) != 0 && errno != ENOENT) {
        directory_fail(directory, "cannot remove data.mdb.new", errno, ret_failure);
        return SALVAGE_FAILED;
    }
    enum salvage_result result =
        copy_to(directory, directory, LMDB_ENV_NEW_FILE, "there", ret_failure);
    if (result == SALVAGE_COPIED) {
        directory_adopt(directory, LMDB_ENV_NEW_FILE);
        int code = directory_rename(directory, LMDB_ENV_NEW_FILE, LMDB_ENV_FILE);
        if (code == 0)
            return SALVAGE_COPIED;
        directory_fail(directory, "cannot replace data.mdb by its copy", -code, ret_failure);
        result = SALVAGE_FAILED;
    }
    (void)unlinkat(directory->fd, LMDB_ENV_NEW_FILE, 0); /* the next try removes it as well */
    return result;
}

/* A file without a name, below $TMPDIR, /var/tmp or /tmp; -1: none can be made. */
static int make_nameless(void)
{
    const char *const places[] = {getenv("TMPDIR"), "/var/tmp", "/tmp"};
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        char path[512];
        if (places[i] == NULL)
            continue;
        int len = snprintf(path, sizeof path, "%s/holdfast-copy-XXXXXX", places[i]);
        int fd = len < 0 || (size_t)len >= sizeof path ? -1 : mkostemp(path, O_CLOEXEC);
        if (fd < 0)
            continue;
        (void)unlink(path); /* whatever ends us, nothing is left */
        return fd;
    }
    return -1;
}

enum salvage_result salvage_look(const struct directory *directory, struct lmdb_env *ret,
                                 struct store_failure *ret_failure)
{
    static const char where[] = "in $TMPDIR, or in /var/tmp or /tmp,";
    struct directory nameless = {.path = (char[]){"/proc/self/fd"}, .fd = -1, .lock_fd = -1};
    char file[16];
    int fd = make_nameless();
    if (fd < 0) {
        store_fail(ret_failure, STORE_EXIT_STORE,
                   "store lmdb:%.200s: data.mdb must be verified after a crash, but no temporary "
                   "file can be created; set TMPDIR to a writable directory",
                   directory->path);
        return SALVAGE_FAILED;
    }
    (void)snprintf(file, sizeof file, "%d", fd);
    enum salvage_result result = copy_to(directory, &nameless, file, where, ret_failure);
    if (result == SALVAGE_COPIED) {
        int code = lmdb_env_open(ret, &nameless, file, MDB_RDONLY);
        if (code != 0) {
            directory_fail(directory, "cannot open the copy of data.mdb", code, ret_failure);
            result = SALVAGE_FAILED;
        }
    }
    (void)close(fd); /* LMDB has it open by now */
    return result;
}

int salvage_set_aside(const struct directory *directory, char ret_name[static 32])
{
    for (unsigned number = 1; number < 10000; number++) {
        char name[32];
        struct stat status;
        (void)snprintf(name, sizeof name, LMDB_ENV_FILE ".damaged-%u", number);
        if (fstatat(directory->fd, name, &status, AT_SYMLINK_NOFOLLOW) == 0)
            continue;
        if (errno != ENOENT)
            return -errno;
        int code = directory_rename(directory, LMDB_ENV_FILE, name);
        if (code == 0)
            memcpy(ret_name, name, sizeof name);
        return code;
    }
    return -EEXIST;
}
