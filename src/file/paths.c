/*
 * paths.c -- see paths.h.
 *
 * The names are in sets of WAYS entries, by hash; in a set the oldest makes room. An entry that was
 * asked for and is not answered keeps its place, so that a list which waits for one name and asks
 * for the following ones always gets on.
 *
 * A file whose name no cache of the kernel holds, after a reboot for example, has none at first:
 * the kernel then says "/", or something outside of the export. The export is searched for it
 * (paths_search.c), and a later question finds it.
 */
#include "file/paths.h"

#include "base/check.h"
#include "base/hash.h"
#include "base/units.h"
#include "file/aside.h"
#include "file/paths_search.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum { WAYS = 4, SETS = PATHS_MAX / WAYS, QUESTIONS_MAX = 1024 };

#define KEPT_NS     (UINT64_C(5) * SECOND_NS)
#define NONE_NS     SECOND_NS /* the same of a file without a name: it may have been found */
#define PATIENCE_NS SECOND_NS

struct entry {
    bool is_used, is_asked; /* the second: not answered yet */
    uint32_t export_id;
    struct handle_object object;
    uint64_t since_ns; /* asked, or answered */
    char *path;        /* owned; NULL: none, */
    bool is_nameless;  /* though the file is there */
};

struct question {
    uint32_t entry;
    struct export_table *exports; /* kept */
};

struct paths {
    void (*news)(void *context);
    void *context;
    uint64_t seed;
    struct paths_search *search;
    char shown[PATH_MAX]; /* the server's thread's */
    struct aside thread;  /* guards what follows */
    struct entry entries[PATHS_MAX];
    struct question questions[QUESTIONS_MAX]; /* a ring */
    uint32_t first, count;
    uint64_t busy_ns; /* since when the thread is at one question; 0: it is not */
};

static uint64_t now_ns(void)
{
    struct timespec now;
    CHECK(clock_gettime(CLOCK_MONOTONIC, &now) == 0);
    return (uint64_t)now.tv_sec * SECOND_NS + (uint64_t)now.tv_nsec;
}

/* ---- asking the kernel ---- */

static bool is_inside(struct bytes path, const char *directory)
{
    struct bytes top = bytes_of_text(directory);
    if (top.len == 1)
        return path.len > 0 && path.at[0] == '/';
    return path.len >= top.len && memcmp(path.at, top.at, top.len) == 0 &&
           (path.len == top.len || path.at[top.len] == '/');
}

bool paths_of_descriptor(int fd, const struct export *export, char *buffer, size_t size,
                         struct bytes *ret)
{
    static const char gone[] = " (deleted)";
    char link[32];
    (void)snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t len = readlink(link, buffer, size);
    if (len <= 0 || (size_t)len == size)
        return false;
    struct bytes path = {(const uint8_t *)buffer, (uint32_t)len};
    bool is_gone = path.len >= sizeof gone - 1 &&
                   memcmp(path.at + path.len - (sizeof gone - 1), gone, sizeof gone - 1) == 0;
    if (is_gone || !is_inside(path, export->resolved))
        return false;
    *ret = path;
    return true;
}

/* On the thread; may wait for a disk. NULL: none, or none yet of a file that is there. */
static char *find_path(struct paths *paths, struct export_table *exports, uint32_t export_id,
                       const struct handle_object *object, bool *ret_is_nameless)
{
    const struct export *export = export_table_find(exports, export_id);
    char buffer[PATH_MAX];
    struct bytes path;
    int fd = export == NULL ? -1 : handle_open(export->root_fd, object);
    *ret_is_nameless = false;
    if (fd < 0)
        return NULL;
    struct stat st;
    bool is_found = paths_of_descriptor(fd, export, buffer, sizeof buffer, &path);
    bool is_there = fstat(fd, &st) == 0 && st.st_nlink > 0;
    (void)close(fd);
    if (is_found || !is_there)
        return is_found ? strndup(buffer, path.len) : NULL;
    char *searched = paths_search_get(paths->search, export, object);
    if (searched == NULL)
        paths_search_add(paths->search, exports, export_id, object, st.st_ino);
    *ret_is_nameless = searched == NULL;
    return searched;
}

/* The mutex is held, but not while the kernel is asked. */
static void answer(struct paths *paths)
{
    struct question question = paths->questions[paths->first];
    paths->first = (paths->first + 1) % QUESTIONS_MAX;
    paths->count--;
    struct entry *entry = &paths->entries[question.entry];
    uint32_t export_id = entry->export_id;
    struct handle_object object = entry->object;
    paths->busy_ns = now_ns();
    aside_unlock(&paths->thread);
    bool is_nameless;
    char *path = find_path(paths, question.exports, export_id, &object, &is_nameless);
    export_table_drop(question.exports);
    aside_lock(&paths->thread);
    paths->busy_ns = 0;
    free(entry->path);
    entry->path = path;
    entry->is_nameless = is_nameless;
    entry->is_asked = false;
    entry->since_ns = now_ns();
    if (paths->count == 0)
        paths->news(paths->context);
}

static void *run(void *argument)
{
    struct paths *paths = argument;
    aside_lock(&paths->thread);
    while (!aside_is_stopping(&paths->thread)) {
        if (paths->count > 0)
            answer(paths);
        else
            aside_wait(&paths->thread);
    }
    aside_unlock(&paths->thread);
    return NULL;
}

/* ---- for the server's thread; the mutex is held ---- */

static uint32_t set_of(const struct paths *paths, uint32_t export_id,
                       const struct handle_object *object)
{
    struct bytes bytes = {(const uint8_t *)object, sizeof *object};
    return (uint32_t)(hash_bytes(paths->seed ^ export_id, bytes) % SETS) * WAYS;
}

static bool is_of(const struct entry *entry, uint32_t export_id, const struct handle_object *object)
{
    return entry->is_used && entry->export_id == export_id &&
           memcmp(&entry->object, object, sizeof *object) == 0;
}

/* The file's own entry, or the one that makes room for it; NULL: all wait for answers. */
static struct entry *place_of(struct paths *paths, uint32_t export_id,
                              const struct handle_object *object)
{
    struct entry *set = &paths->entries[set_of(paths, export_id, object)], *oldest = NULL;
    for (uint32_t i = 0; i < WAYS; i++) {
        if (is_of(&set[i], export_id, object))
            return &set[i];
        if (!set[i].is_asked && (oldest == NULL || set[i].since_ns < oldest->since_ns))
            oldest = &set[i];
    }
    return oldest;
}

static enum path_state ask(struct paths *paths, struct export_table *exports, struct entry *entry,
                           uint64_t now)
{
    bool is_stuck = paths->busy_ns != 0 && now - paths->busy_ns > PATIENCE_NS;
    if (is_stuck || paths->count == QUESTIONS_MAX)
        return PATH_UNKNOWN;
    entry->is_asked = true;
    entry->since_ns = now;
    uint32_t place = (paths->first + paths->count++) % QUESTIONS_MAX;
    paths->questions[place] = (struct question){.entry = (uint32_t)(entry - paths->entries),
                                                .exports = export_table_keep(exports)};
    aside_wake(&paths->thread);
    return PATH_LATER;
}

static enum path_state get(struct paths *paths, struct export_table *exports, uint32_t export_id,
                           const struct handle_object *object)
{
    uint64_t now = now_ns();
    struct entry *entry = place_of(paths, export_id, object);
    if (entry == NULL)
        return PATH_UNKNOWN;
    if (!is_of(entry, export_id, object)) {
        free(entry->path);
        *entry = (struct entry){.is_used = true, .export_id = export_id, .object = *object};
        return ask(paths, exports, entry, now);
    }
    if (entry->is_asked)
        return now - entry->since_ns > PATIENCE_NS ? PATH_UNKNOWN : PATH_LATER;
    if (now - entry->since_ns > (entry->path != NULL ? KEPT_NS : NONE_NS))
        return ask(paths, exports, entry, now);
    if (entry->path == NULL)
        return entry->is_nameless ? PATH_UNKNOWN : PATH_NONE;
    (void)snprintf(paths->shown, sizeof paths->shown, "%s", entry->path);
    return PATH_KNOWN;
}

enum path_state paths_get(struct paths *paths, struct export_table *exports, uint32_t export_id,
                          const struct handle_object *object, struct bytes *ret)
{
    aside_lock(&paths->thread);
    enum path_state state = get(paths, exports, export_id, object);
    aside_unlock(&paths->thread);
    if (state == PATH_KNOWN)
        *ret = bytes_of_text(paths->shown);
    return state;
}

/* ---- life ---- */

struct paths *paths_new(uint64_t seed, void (*news)(void *context), void *context)
{
    struct paths *paths = calloc(1, sizeof *paths);
    if (paths == NULL)
        return NULL;
    paths->seed = seed;
    paths->news = news;
    paths->context = context;
    paths->search = paths_search_new();
    if (paths->search != NULL && aside_start(&paths->thread, run, paths))
        return paths;
    paths_search_free(paths->search);
    free(paths);
    return NULL;
}

void paths_free(struct paths *paths)
{
    if (paths == NULL)
        return;
    aside_stop(&paths->thread);
    paths_search_free(paths->search);
    for (; paths->count > 0; paths->count--) {
        export_table_drop(paths->questions[paths->first].exports);
        paths->first = (paths->first + 1) % QUESTIONS_MAX;
    }
    for (uint32_t i = 0; i < PATHS_MAX; i++)
        free(paths->entries[i].path);
    free(paths);
}
