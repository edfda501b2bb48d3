/*
 * program.h -- programs on the server's machine that lock the same files, and the kernel between
 * them and the server (core/mirror.h).
 *
 * The kernel is a table: for each file the cells (locker.h) that each program has, and those that
 * the server holds for its clients. It knows nothing of the server's insides. Programs take
 * ranges, shared or exclusive, keep them for a while, change their mode, give back; some wait, and
 * have a range at the very moment at which it is free, also inside a call of the server. When the
 * server's process dies the kernel drops all that it held, and programs are faster than the next
 * start. In some runs it is started with --local-locks off.
 *
 * Always true of the model:
 *  (1) A program has a cell exactly if neither another program nor the server had it in the way
 *      when it was taken; the same for the server.
 *  (2) A server that does not run holds nothing.
 *
 * The oracle (program_oracle.c), while a run mirrors:
 *
 *  M1  No program and no client rely on conflicting bytes (P2), but in a file that was reported as
 *      refused in this run and still counts as that.
 *  M2  What is stored, and what is relied on, the server holds in the kernel, in that mode or a
 *      stronger one, but in such a file, and until it is stored that what was refused is released.
 *  M3  Only what a program had while nobody mirrored is reported: what is given back is given back
 *      in the kernel when no crash can bring it back.
 *  M4  What is stored nowhere is not held for long.
 *  M5  TEST names a program that is in the way (L3, L5).
 *  M6  When all is given back, the server holds nothing, and has closed every file.
 *
 * That a client gets what a program leaves is L6: in the calm programs give back everything, a
 * while after those who wait have asked for the last time.
 */
#ifndef SIM_PROGRAM_H
#define SIM_PROGRAM_H

#include "core/local.h"
#include "locker.h"

enum {
    PROGRAM_MAX = 4,
    PROGRAM_PID = 9001, /* of the first */
    PROGRAM_FEW = 2,    /* pieces, where there may not be many */
};

struct local_program {
    uint32_t index;
    struct cells held[LOCKER_FILES_MAX];
    uint16_t unguarded[LOCKER_FILES_MAX]; /* of that: taken while nobody mirrored */
    struct extent wish;
    bool is_waiting;
    uint32_t timer;
};

/* A file as the kernel knows it, with what the oracle knows of it. */
struct program_file {
    struct cells server;    /* what the server holds */
    bool is_open;           /* by the server */
    bool is_whole;          /* it holds all of it, because its pieces were too many */
    bool is_reported;       /* as refused */
    struct cells stored;    /* on the disk, for anybody */
    uint32_t reported_left; /* batches that may still hold what was reported */
    uint64_t excess_ns;     /* since when more is held than that; 0: it is not */
};

struct programs {
    struct world *world;
    struct prng prng;
    struct local_program at[PROGRAM_MAX];
    uint32_t count;
    uint64_t think_max_ns;
    bool is_mirrored; /* by the run that runs now */
    struct local_locks kernel;
    struct program_file files[LOCKER_FILES_MAX];
};

/* Nothing unless the plan has programs. */
void program_init(struct world *world);
void program_done(struct world *world);

/* A new core is there: it mirrors, or this run has --local-locks off. */
void program_boot(struct world *world);
/* The server's process has died. */
void program_crash(struct world *world);
/* A program's time has come: QUEUE_PROGRAM. The ticket: its index, and 32 bits of which timer. */
void program_act(struct world *world, uint64_t ticket);
/* From now on they only give back. */
void program_be_calm(struct world *world);
/* This file is gone, for programs too. */
void program_loses_file(struct world *world, uint32_t file);

/* It takes these bytes. False: somebody is in the way, and it waits if it is to. */
bool program_takes(struct world *world, struct local_program *program, const struct extent *extent,
                   bool waits);
void program_gives_back(struct world *world, struct local_program *program,
                        const struct extent *extent);

/* ---- program_oracle.c ---- */

/* Which programs are in the way of these bytes, one bit each; 0 when nobody mirrors. */
uint32_t program_in_the_way(const struct world *world, const struct extent *extent);
/* May the server be refused these bytes by the kernel? */
bool program_may_refuse(const struct world *world, const struct extent *extent);
/* The holder that TEST names is one of these programs. */
bool program_is_named(const struct peer_nlm_res *res, uint32_t programs);

/* The server has reported that file as refused. */
void program_reported(struct world *world, struct bytes fh);
/* The disk has changed. */
void program_stored(struct world *world);
/* M1, M2: at any time. */
void program_check(struct world *world);
/* M4: at the end of a turn. */
void program_check_excess(struct world *world);
/* M6. */
void program_check_empty(struct world *world);

#endif
