/*
 * op_data.h -- descriptors for data, for those who may read or write it.
 */
#ifndef FILE_OP_DATA_H
#define FILE_OP_DATA_H

#include "file/call.h"

/* The caller may write: by its mode, or as its owner. A descriptor, or -errno. Leaves the thread as
 * the caller, so that what it writes takes setuid bits away. */
int op_data_open_for_writing(struct call *call, struct descriptor *descriptor,
                             const struct stat *st);

#endif
