/*
 * postgres_session.h -- one connection to PostgreSQL on which nothing waits forever.
 *
 * libpq's own calls wait as long as the network lets them. Here every wait has a deadline, and each
 * statement ends in one of three ways: it succeeded, PostgreSQL refused it (and then nothing of it
 * happened), or the connection was lost (and then the outcome is unknown).
 *
 * A session has a name of its own among all sessions of the database, in application_name. A
 * session left over from a cut connection is recognised by it.
 */
#ifndef STORE_POSTGRES_SESSION_H
#define STORE_POSTGRES_SESSION_H

#include "store/backend.h"
#include "store/postgres_hosts.h"

#include <libpq-fe.h>

#define POSTGRES_NAME_MAX 64 /* PostgreSQL cuts longer ones */

enum postgres_outcome {
    POSTGRES_DONE,
    POSTGRES_REFUSED, /* nothing happened; error says why */
    POSTGRES_LOST,    /* no connection any more, or no answer in time: the outcome is not known */
};

struct postgres_error {
    char state[6]; /* SQLSTATE; empty when the connection is what failed */
    char text[256];
};

struct postgres_session {
    PGconn *connection; /* NULL: none */
    char *conninfo;     /* owned */
    struct postgres_hosts hosts;
    uint32_t host_index; /* the one that served last */
    char name[POSTGRES_NAME_MAX];
    char schema[POSTGRES_NAME_MAX]; /* of its group; empty: of none (postgres_group.h) */
    struct postgres_error error;    /* of the last thing that did not succeed */
    uint64_t sent_ns; /* before the last statement or batch was sent, by CLOCK_BOOTTIME */
    bool is_warned;   /* PostgreSQL did it with a warning */
    char warning[256];
};

/* Monotonic. */
uint64_t postgres_now_ns(void);
/* The clock of sent_ns. */
uint64_t postgres_boot_ns(void);
/* Sleeps so long, or until the deadline. False: the deadline has come. */
bool postgres_pause(uint64_t pause_ns, uint64_t deadline_ns);

/* `rest` is the URL behind "postgres:". 0, -ENOMEM, or -EINVAL: libpq cannot read it, and the error
 * says why. */
__attribute__((warn_unused_result)) int postgres_session_init(struct postgres_session *session,
                                                              const char *rest);
void postgres_session_done(struct postgres_session *session);

/* Connects, and sets what we rely on. A host has five seconds, or its share of the time until the
 * deadline. On failure the session has no connection. */
enum postgres_outcome postgres_session_connect(struct postgres_session *session,
                                               uint64_t deadline_ns);
/* Cuts the connection. */
void postgres_session_cut(struct postgres_session *session);

/* One statement without parameters, or several separated by semicolons, which are one transaction.
 * The last result in *ret if that is not NULL; the caller clears it. */
enum postgres_outcome postgres_session_run(struct postgres_session *session, const char *sql,
                                           uint64_t deadline_ns, PGresult **ret);

/* For those who speak libpq themselves: begins a statement or a batch; sets sent_ns, is_warned. */
void postgres_session_begin(struct postgres_session *session);

/* The same: sends what is buffered and waits for the next result. NULL
 * in *ret: this statement has no more. */
enum postgres_outcome postgres_session_next(struct postgres_session *session, uint64_t deadline_ns,
                                            PGresult **ret);

/* Keeps what a result or the connection says. */
void postgres_session_note(struct postgres_session *session, const PGresult *result);

/* True: the same may succeed later (PostgreSQL stops, starts, is full, was told to cancel). */
bool postgres_error_may_pass(const struct postgres_error *error);

#endif
