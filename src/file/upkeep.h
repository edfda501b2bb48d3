/*
 * upkeep.h -- what the file service does at regular times: it closes files that nobody uses, and
 * finds file systems that hang.
 */
#ifndef FILE_UPKEEP_H
#define FILE_UPKEEP_H

#include "file/service.h"

struct upkeep;

/* A thread of its own. NULL: no memory or no thread. */
struct upkeep *upkeep_new(struct file_service *service);
void upkeep_free(struct upkeep *upkeep);

#endif
