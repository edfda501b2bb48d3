/*
 * postgres_load.h -- reading the records of a database, all as of one moment.
 */
#ifndef STORE_POSTGRES_LOAD_H
#define STORE_POSTGRES_LOAD_H

#include "store/postgres_session.h"

/* With which epoch the server record is shown. The one that counts is in the row of table server: a
 * start that was killed before its first batch has raised it, and the record has the one before. */
enum postgres_load_epoch {
    POSTGRES_LOAD_EPOCH_STORED, /* the record's, as it was written */
    POSTGRES_LOAD_EPOCH_NOW,    /* the row's */
    POSTGRES_LOAD_EPOCH_BEFORE, /* one less than the row's: the last server's */
};

struct postgres_loaded {
    int stop;        /* what the visitor returned */
    bool has_server; /* an intact server record was there */
};

/* The highest slot of each kind plus one. */
enum postgres_outcome postgres_load_slots(struct postgres_session *session, uint64_t deadline_ns,
                                          uint32_t ret_slots_used[static RECORD_KIND_END]);

/* Begins: what is loaded next is as of this moment. */
enum postgres_outcome postgres_load_begin(struct postgres_session *session, uint64_t silence_ns);

/*
 * Every record, the server's first, and ends. `silence_ns` is how long PostgreSQL may say nothing;
 * what statement_timeout says does not count here, as a store takes the time that it takes.
 */
enum postgres_outcome postgres_load_all(struct postgres_session *session, uint64_t silence_ns,
                                        enum postgres_load_epoch epoch, store_visit_fn visit,
                                        void *context, struct postgres_loaded *ret);

#endif
