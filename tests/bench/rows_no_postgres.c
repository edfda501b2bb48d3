/*
 * rows_no_postgres.c -- the row of the shared store in a build without it.
 */
#include "bench/rows.h"

void rows_postgres(struct rows *rows)
{
    report_skip(report_add_line(rows->report, "postgres", "LOCK/UNLOCK 32 x 32, PostgreSQL",
                                "1 per transaction", 0),
                "this build has no libpq (Debian: libpq-dev)");
}
