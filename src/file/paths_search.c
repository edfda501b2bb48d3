/*
 * paths_search.c -- see paths_search.h.
 *
 * One walk through an export looks for all files that are wanted at that time, by the numbers of
 * their inodes, which directories have beside the names; a file is opened by nobody. The walk asks
 * for the disk when nobody else does, ends with the last file that is wanted or after ENTRIES_MAX
 * entries, and the next one waits for PAUSE_PART times as long as it took.
 */
#include "file/paths_search.h"

#include "base/check.h"
#include "base/units.h"
#include "file/aside.h"
#include "file/call.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/ioprio.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum {
    WANTED_MAX = 1024,
    FOUND_MAX = 4096,
    ENTRIES_MAX = 2000000,
    DEPTH_MAX = 64, /* each is an open directory */
    PAUSE_PART = 20,
};

struct name {
    uint32_t export_id;
    struct handle_object object;
    ino_t inode;
    struct export_table *exports; /* kept; of those that are wanted */
    char *path;                   /* owned; of those that were found */
};

struct paths_search {
    struct aside thread; /* guards what follows */
    struct name wanted[WANTED_MAX];
    uint32_t wanted_count;
    struct name found[FOUND_MAX]; /* a ring */
    uint32_t found_next;
};

/* One walk; the thread's own. */
struct walk {
    struct paths_search *search;
    const struct export *export;
    struct name wanted[WANTED_MAX];
    uint32_t wanted_count, left;
    uint32_t entries;
    char path[PATH_MAX];
    size_t path_len;
};

static bool is_of(const struct name *name, uint32_t export_id, const struct handle_object *object)
{
    return name->export_id == export_id && memcmp(&name->object, object, sizeof *object) == 0;
}

/* ---- for the one who asks ---- */

void paths_search_add(struct paths_search *search, struct export_table *exports, uint32_t export_id,
                      const struct handle_object *object, ino_t inode)
{
    aside_lock(&search->thread);
    bool is_there = search->wanted_count == WANTED_MAX;
    for (uint32_t i = 0; i < search->wanted_count && !is_there; i++)
        is_there = is_of(&search->wanted[i], export_id, object);
    if (!is_there) {
        search->wanted[search->wanted_count++] =
            (struct name){.export_id = export_id,
                          .object = *object,
                          .inode = inode,
                          .exports = export_table_keep(exports)};
        aside_wake(&search->thread);
    }
    aside_unlock(&search->thread);
}

/* Does the path lead to the file? */
static bool is_path_of(const struct export *export, const char *path,
                       const struct handle_object *object)
{
    struct handle_object there;
    int mount_id;
    size_t top = strlen(export->resolved);
    const char *rest = path + (top == 1 ? 0 : top);
    while (*rest == '/')
        rest++;
    return handle_object_at(export->root_fd, *rest == 0 ? "." : rest, &there, &mount_id) == 0 &&
           mount_id == export->mount_id && memcmp(&there, object, sizeof there) == 0;
}

char *paths_search_get(struct paths_search *search, const struct export *export,
                       const struct handle_object *object)
{
    char *path = NULL;
    aside_lock(&search->thread);
    for (uint32_t i = 0; i < FOUND_MAX && path == NULL; i++)
        if (search->found[i].path != NULL && is_of(&search->found[i], export->id, object))
            path = strdup(search->found[i].path);
    aside_unlock(&search->thread);
    if (path == NULL || is_path_of(export, path, object))
        return path;
    free(path);
    return NULL;
}

/* ---- the walk ---- */

static void keep_found(struct paths_search *search, const struct name *name, const char *path)
{
    char *copy = strdup(path);
    if (copy == NULL)
        return;
    aside_lock(&search->thread);
    struct name *place = NULL;
    for (uint32_t i = 0; i < FOUND_MAX && place == NULL; i++)
        if (search->found[i].path != NULL &&
            is_of(&search->found[i], name->export_id, &name->object))
            place = &search->found[i];
    if (place == NULL)
        place = &search->found[search->found_next++ % FOUND_MAX];
    free(place->path);
    *place = (struct name){.export_id = name->export_id, .object = name->object, .path = copy};
    aside_unlock(&search->thread);
}

/* The path has the entry's name behind it. */
static void look_at(struct walk *walk, ino_t inode)
{
    for (uint32_t i = 0; i < walk->wanted_count; i++) {
        struct name *name = &walk->wanted[i];
        if (name->inode != inode || name->export_id != walk->export->id ||
            !is_path_of(walk->export, walk->path, &name->object))
            continue;
        keep_found(walk->search, name, walk->path);
        name->inode = 0;
        walk->left--;
        return;
    }
}

static bool is_over(const struct walk *walk)
{
    return walk->left == 0 || walk->entries >= ENTRIES_MAX ||
           aside_is_stopping(&walk->search->thread);
}

static void walk_directory(struct walk *walk, int fd, uint32_t depth);

static void visit(struct walk *walk, int directory_fd, const struct dirent *entry, uint32_t depth)
{
    size_t len = strlen(entry->d_name), before = walk->path_len;
    if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0 ||
        before + 1 + len >= sizeof walk->path)
        return;
    walk->entries++;
    if (before > 1)
        walk->path[walk->path_len++] = '/';
    memcpy(walk->path + walk->path_len, entry->d_name, len + 1);
    walk->path_len += len;
    look_at(walk, entry->d_ino);
    if ((entry->d_type == DT_DIR || entry->d_type == DT_UNKNOWN) && depth < DEPTH_MAX) {
        int fd = resolve_open_at(directory_fd, entry->d_name, O_RDONLY | O_DIRECTORY);
        if (fd >= 0)
            walk_directory(walk, fd, depth + 1);
    }
    walk->path_len = before;
    walk->path[before] = 0;
}

/* Takes the descriptor over. */
static void walk_directory(struct walk *walk, int fd, uint32_t depth)
{
    DIR *directory = fdopendir(fd);
    if (directory == NULL) {
        (void)close(fd);
        return;
    }
    for (const struct dirent *entry; !is_over(walk) && (entry = readdir(directory)) != NULL;)
        visit(walk, fd, entry, depth);
    (void)closedir(directory);
}

static void walk_export(struct walk *walk, const struct export *export)
{
    walk->export = export;
    walk->path_len = strlen(export->resolved);
    memcpy(walk->path, export->resolved, walk->path_len + 1);
    int fd = openat(export->root_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd >= 0)
        walk_directory(walk, fd, 0);
}

/* Each export that has wanted files; `left` is for one export at a time. */
static void walk_all(struct walk *walk)
{
    for (uint32_t i = 0; i < walk->wanted_count; i++) {
        const struct export *export =
            export_table_find(walk->wanted[i].exports, walk->wanted[i].export_id);
        if (export == NULL || walk->wanted[i].inode == 0)
            continue;
        walk->left = 0;
        for (uint32_t j = i; j < walk->wanted_count; j++)
            walk->left += walk->wanted[j].inode != 0 && walk->wanted[j].export_id == export->id;
        walk_export(walk, export);
        for (uint32_t j = i; j < walk->wanted_count; j++)
            if (walk->wanted[j].export_id == export->id)
                walk->wanted[j].inode = 0;
    }
    for (uint32_t i = 0; i < walk->wanted_count; i++)
        export_table_drop(walk->wanted[i].exports);
}

/* ---- the thread ---- */

static uint64_t now_ns(void)
{
    struct timespec now;
    CHECK(clock_gettime(CLOCK_MONOTONIC, &now) == 0);
    return (uint64_t)now.tv_sec * SECOND_NS + (uint64_t)now.tv_nsec;
}

static void *run(void *argument)
{
    struct paths_search *search = argument;
    struct walk *walk = calloc(1, sizeof *walk);
    (void)syscall(SYS_ioprio_set, IOPRIO_WHO_PROCESS, 0, IOPRIO_PRIO_VALUE(IOPRIO_CLASS_IDLE, 0));
    aside_lock(&search->thread);
    while (walk != NULL && !aside_is_stopping(&search->thread)) {
        if (search->wanted_count == 0) {
            aside_wait(&search->thread);
            continue;
        }
        *walk = (struct walk){.search = search, .wanted_count = search->wanted_count};
        memcpy(walk->wanted, search->wanted, sizeof walk->wanted);
        search->wanted_count = 0;
        aside_unlock(&search->thread);
        uint64_t begun = now_ns();
        walk_all(walk);
        uint64_t took = now_ns() - begun;
        aside_lock(&search->thread);
        aside_pause(&search->thread, PAUSE_PART * took);
    }
    aside_unlock(&search->thread);
    free(walk);
    return NULL;
}

/* ---- life ---- */

struct paths_search *paths_search_new(void)
{
    struct paths_search *search = calloc(1, sizeof *search);
    if (search == NULL)
        return NULL;
    if (aside_start(&search->thread, run, search))
        return search;
    free(search);
    return NULL;
}

void paths_search_free(struct paths_search *search)
{
    if (search == NULL)
        return;
    aside_stop(&search->thread);
    for (uint32_t i = 0; i < search->wanted_count; i++)
        export_table_drop(search->wanted[i].exports);
    for (uint32_t i = 0; i < FOUND_MAX; i++)
        free(search->found[i].path);
    free(search);
}
