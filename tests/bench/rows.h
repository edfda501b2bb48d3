/*
 * rows.h -- what the bench measures.
 *
 * Each function starts what it needs, measures in rounds, adds its lines to the report and stops
 * what it started. What cannot be installed or started becomes a skipped line with the reason. A
 * wrong answer is not a slow one: it sets has_failed and is printed at once.
 */
#ifndef BENCH_ROWS_H
#define BENCH_ROWS_H

#include "bench/report.h"

struct rows {
    struct report *report;
    const char
        *only; /* the rows that were asked for, or the beginning of a line's key; NULL: all */
    uint32_t rounds;
    bool is_quick;   /* small counts and short times: shows that the bench works, and no more */
    bool has_failed; /* an answer was wrong */
};

/* NULL and SM_STAT against the raw echo and rpc.statd. */
void rows_calls(struct rows *rows);
/* Durable SM_MON and SM_UNMON with nobody, 10,000 and 100,000 registered, against rpc.statd. */
void rows_registrations(struct rows *rows);
/* 10,000 hosts that answer are told of a restart, against sm-notify. */
void rows_reachable(struct rows *rows);
/* 10,000 hosts that are silent, and what other clients feel of it. */
void rows_silent(struct rows *rows);

/* Durable LOCK and UNLOCK, also with 1,000,000 locks stored, against nfs-ganesha. */
void rows_locks(struct rows *rows);
/* 1,000 clients take their first lock at once, against nfs-ganesha. */
void rows_newcomers(struct rows *rows);
/* 100,000 locks on one file: taken, asked for, and freed at once. */
void rows_file(struct rows *rows);

/* Durable LOCK and UNLOCK on the shared store, against one transaction per request. */
void rows_postgres(struct rows *rows);

/* What readers over HTTP cost those who lock, and 1,000,000 stored locks those who read. */
void rows_http(struct rows *rows);

/* What an export of 1,000,000 stored locks costs those who lock meanwhile. */
void rows_backup(struct rows *rows);

/* What an honest client feels of a hostile one. */
void rows_storm(struct rows *rows);

/* NFS: calls, data, names and listings in memory, against nfs-ganesha. */
void rows_files(struct rows *rows);
/* The same: durable work on a disk, against the file system itself; and locks meanwhile. */
void rows_files_durable(struct rows *rows);

/* What it costs those who lock that programs on the server see it. */
void rows_mirror(struct rows *rows);

/* The monitor role with 10,000 watched hosts, against rpc.statd and sm-notify. */
void rows_monitor(struct rows *rows);

/* Hosts that tests/bench/hosts.c plays, and hosts of which nothing is heard after rows_silence. */
#define ROWS_HOSTS_FIRST  "127.16.0.0"
#define ROWS_SILENT_FIRST "127.200.0.0"
bool rows_silence(void);
void rows_end_silence(void);
/* sm-notify tells the hosts from ROWS_HOSTS_FIRST on, for at most so long. */
bool rows_sm_notify(uint32_t count, uint32_t limit_s, struct report_sample *ret,
                    uint32_t *ret_told);

/* Says what is being done, for the patient. */
__attribute__((format(printf, 1, 2))) void rows_say(const char *format, ...);
/* An answer was wrong, or what was acknowledged is not there. */
__attribute__((format(printf, 2, 3))) void rows_fail(struct rows *rows, const char *format, ...);

#endif
