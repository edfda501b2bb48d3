/*
 * files_traps.h -- the mistakes that file servers make, one check each; run by files_traps.c.
 */
#ifndef INTEGRATION_FILES_TRAPS_H
#define INTEGRATION_FILES_TRAPS_H

#include "files_stage.h"

/* What every check finds. */
struct files_traps {
    struct files_stage *stage;
    struct peer_link *link, *user; /* root; uid 1000, gid 1000 */
    struct peer_nfs_fh root;       /* mode 0777 */
    const char *path, *other_path; /* of the export, and of a second one */
};

void files_traps_data(struct files_traps *traps);
void files_traps_create(struct files_traps *traps);
void files_traps_attributes(struct files_traps *traps);
void files_traps_names(struct files_traps *traps);
void files_traps_handles(struct files_traps *traps);

#endif
