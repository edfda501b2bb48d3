/*
 * lock_book.h -- one client that locks and unlocks files for as long as it is told to, and a book
 * of what it was answered.
 *
 * A lock is HELD from its GRANTED on, GONE from the answer to its UNLOCK on, and IN DOUBT when a
 * call was not answered: it may have been done or not, and nobody can demand either. So the book is
 * what a server that took over must know: everything held, nothing gone.
 */
#ifndef INTEGRATION_LOCK_BOOK_H
#define INTEGRATION_LOCK_BOOK_H

#include "lock_call.h"

#define LOCK_BOOK_FILES 600

enum lock_book_state { LOCK_BOOK_GONE, LOCK_BOOK_HELD, LOCK_BOOK_DOUBT };

struct lock_book {
    const char *name;                /* the client's */
    uint32_t source;                 /* and its address, host byte order */
    uint32_t other_source;           /* of somebody who wants the same */
    uint8_t states[LOCK_BOOK_FILES]; /* of enum lock_book_state */
    uint64_t seed;
    uint32_t granted, unanswered;
};

/* Where a server is. */
struct lock_book_server {
    uint32_t address; /* host byte order */
    uint16_t port;
};

/* One LOCK of a file that is free, or one UNLOCK. True: it was answered, if only with "grace". */
bool lock_book_step(struct lock_book *book, const struct lock_book_server *server,
                    uint32_t timeout_ms);
uint32_t lock_book_held(const struct lock_book *book);
/* Nobody else gets what is held. */
void lock_book_demand_refused(const struct lock_book *book, const struct lock_book_server *server);
/* The same of a server that has just started, and its grace has not ended: what is held is stored,
 * because a reclaim of it is granted; what was in doubt is given back. */
void lock_book_verify(struct lock_book *book, const struct lock_book_server *server);

#endif
