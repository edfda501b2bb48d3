/*
 * directory.h -- a directory of a call while a name in it changes: locked, and its attributes
 * before and after.
 */
#ifndef FILE_DIRECTORY_H
#define FILE_DIRECTORY_H

#include "file/call.h"

struct directory {
    struct descriptor *descriptor;
    struct nfs_wcc *wcc;
    char name[CALL_NAME_MAX + 1];
};

/* The directory of the call's handle and a name in it that may be changed, locked: nobody else
 * changes it through us. False: the result has the status, and the attributes that there are.
 * `dots` is the status of `.` and `..`. */
bool directory_begin(struct call *call, enum nfs_stat dots, struct directory *ret);
/* The same of to_fh and to_name. */
bool directory_begin_other(struct call *call, enum nfs_stat dots, struct directory *ret);
/* Both, locked in an order that all agree on. */
bool directory_begin_both(struct call *call, enum nfs_stat dots, struct directory *from,
                          struct directory *to);

/* Attributes as they are now; and what was changed must be synced. */
void directory_end(struct call *call, struct directory *directory);
void directory_end_both(struct call *call, struct directory *a, struct directory *b);

/* What the name means now; len 0: nothing, or the kernel does not say. */
void directory_look(const struct directory *directory, struct handle_object *ret);
/* The same of a name that is about to go, and the object if it is open: so that it can be
 * forgotten. */
struct descriptor *directory_find_victim(struct call *call, const struct directory *directory,
                                         struct handle_object *ret);
/* It went. */
void directory_lose_victim(struct call *call, struct descriptor *victim);

#endif
