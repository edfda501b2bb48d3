/*
 * proxy.h -- stands between a server and PostgreSQL and cuts connections at the worst moments.
 *
 * It listens on a unix socket of its own and passes on whatever comes, on a thread of its own.
 * Armed, it does one evil deed with the next thing that the server says, and then goes on honestly.
 */
#ifndef TESTS_POSTGRES_PROXY_H
#define TESTS_POSTGRES_PROXY_H

#include "postgres/cluster.h"

struct proxy;

enum proxy_deed {
    PROXY_HONEST,
    PROXY_CUT_BEFORE, /* PostgreSQL hears nothing of it; both sides are cut */
    PROXY_CUT_HALF,   /* PostgreSQL hears half of it */
    PROXY_CUT_AFTER,  /* PostgreSQL does it and answers; the answer is lost */
    PROXY_HOLD,       /* PostgreSQL does it and answers; the answer comes after proxy_release */
    PROXY_LEAVE,      /* the answer is lost, but PostgreSQL's side stays open: it notices nothing */
};

/* NULL: it cannot listen. */
struct proxy *proxy_new(const struct cluster *cluster);
void proxy_free(struct proxy *proxy);

/* The store URL of a database as it is reached through the proxy. Valid until the next call. */
const char *proxy_url(const struct proxy *proxy, const char *database);

/* Cut: nothing passes, PostgreSQL has noticed, the server has not. Mended: it notices too. */
void proxy_cut(struct proxy *proxy);
void proxy_mend(struct proxy *proxy);

/* What is held back passes. */
void proxy_release(struct proxy *proxy);

void proxy_arm(struct proxy *proxy, enum proxy_deed deed);
/* How many deeds were done. */
int proxy_deeds(struct proxy *proxy);

#endif
