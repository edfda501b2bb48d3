/*
 * once.h -- a call that changes names or attributes is executed once, also when the server is
 * killed in the middle of it and its client repeats it (F-ONCE).
 *
 *                                  +--> not executed: as if it came for the first time --+
 *   repeat: an earlier run knows --+--> half executed: completed ------------------------+--> OK
 *                                  +--> executed: answered as it would have been --------+
 *                                  +--> failed, for good: answered so again
 *
 * Every such call leaves an intent before it changes anything (intent.h), and completes it after
 * that, under the lock of the directory or file. The first call of a key that an earlier run has
 * an intent of is a repeat: it is judged by what the file system says of the names now.
 *
 * Always true:
 *  (1) What an intent says was done is not done again, whatever has become of it since; nor is
 *      what it says was refused done now.
 *  (2) A repeat changes no object but the one that its first execution would have changed.
 *  (3) A repeat that is answered OK waits for the same syncs as an execution, but for those of
 *      objects that are gone.
 *
 * Without a ring all of this does nothing.
 */
#ifndef FILE_ONCE_H
#define FILE_ONCE_H

#include "file/directory.h"
#include "file/intent.h"

enum once_verdict {
    ONCE_NEW,  /* to be executed */
    ONCE_HALF, /* made by its first execution, and perhaps not complete */
    ONCE_DONE, /* executed: the result has the status, which may be a failure */
    ONCE_GONE, /* what it meant is not there any more, and something else must not be touched */
};

/* ---- executing ---- */

/* It is about to be executed; what its names mean now, NULL: not known. */
void once_begin(struct call *call, const struct handle_object *first,
                const struct handle_object *second);
/* The object that it has made; or found, which changes no name. */
void once_note_object(struct call *call, const struct handle_object *object, bool is_found);
/* It was executed, and the result has its status. */
void once_end(struct call *call);
/* It failed, and has changed something: it stays begun. */
void once_stay_begun(struct call *call);

/* ---- judging: each takes what the names mean now ---- */

enum once_verdict once_judge_remove(struct call *call, const struct handle_object *now);
enum once_verdict once_judge_rename(struct call *call, const struct handle_object *from,
                                    const struct handle_object *to);
enum once_verdict once_judge_link(struct call *call, const struct handle_object *object,
                                  const struct handle_object *now);
/* CREATE, MKDIR, SYMLINK, MKNOD of this type. ONCE_DONE: the result has the object, which is
 * *ret_object, or NULL if it is gone or was never made. */
enum once_verdict once_judge_make(struct call *call, const struct directory *directory, mode_t type,
                                  struct descriptor **ret_object);
/* ONCE_HALF: the guard is not to be compared again. */
enum once_verdict once_judge_set(struct call *call, const struct stat *now);

/* After all else: an object that the first execution still found may be gone by now. */
void once_finish(struct call *call);

#endif
