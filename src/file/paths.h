/*
 * paths.h -- the names of files by their handles: for people who look, never for a call.
 *
 * Finding a file may mean waiting for a disk, so a thread of its own asks the kernel. Who asks
 * hears "later", is told when there is news, and asks again; who would have to wait too long hears
 * "unknown", and shows the handle. Names are kept for a few seconds, PATHS_MAX at most: files are
 * renamed.
 */
#ifndef FILE_PATHS_H
#define FILE_PATHS_H

#include "file/export_table.h"
#include "file/handle.h"

enum { PATHS_MAX = 4096 };

enum path_state {
    PATH_NONE,    /* of no export, or gone */
    PATH_KNOWN,   /* here it is */
    PATH_LATER,   /* it has been asked for */
    PATH_UNKNOWN, /* it takes too long, or the export is searched for it */
};

struct paths;

/* `news` is called on the thread. NULL: no memory or no thread. */
struct paths *paths_new(uint64_t seed, void (*news)(void *context), void *context);
void paths_free(struct paths *paths);

/* For the server's thread. The name lives until the next call. */
enum path_state paths_get(struct paths *paths, struct export_table *exports, uint32_t export_id,
                          const struct handle_object *object, struct bytes *ret);

/* What the kernel says that an open descriptor is called, if that is below the export's directory;
 * never waits. False: nothing, or no longer. */
bool paths_of_descriptor(int fd, const struct export *export, char *buffer, size_t size,
                         struct bytes *ret);

#endif
