/*
 * called.h -- the services of a locking client's host: callbacks and results arrive here.
 */
#ifndef SIM_CALLED_H
#define SIM_CALLED_H

#include "locker.h"

/* A call that the server makes to a lock client, not to a registrant. */
bool called_is_for_locker(const struct world *world, const struct host *host, struct bytes message);
/* It leaves the server. */
void called_sent(struct world *world, const struct host *host, const struct address *local,
                 struct bytes message);
/* The host executes it; false: it answers nothing. */
bool called_execute(struct world *world, const struct letter *letter, struct bytes message,
                    struct packet *reply);

/* A GRANTED_RES that was held leaves its host now; they are counted from 0. */
void called_release(struct world *world, uint32_t index);

#endif
