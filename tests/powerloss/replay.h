/*
 * replay.h -- cuts the power at many places of a tape, in many ways, and judges each restart.
 */
#ifndef POWERLOSS_REPLAY_H
#define POWERLOSS_REPLAY_H

#include "disk.h"
#include "trial.h"

/* What a tape amounts to when it is played to the end. */
struct replay_summary {
    uint32_t commits; /* writes of a meta page, of all starts, */
    uint32_t frames;  /* and of frames of the journal */
    uint32_t acknowledged, states, kills, zeros;
};

/* A cut is a count of events: those before it happened, the others did not. */
struct replay_plan {
    uint64_t seed;
    uint32_t cuts_max;          /* so many cuts; more than there are: all */
    bool near_only;             /* only cuts beside a sync, a meta page, a name or an answer */
    size_t first_cut, last_cut; /* none before or after these */
    int variant;                /* this one only; -1: all */
    bool is_process;            /* a tape of --sync process */
    uint32_t failures_max;      /* stop there */
};

struct replay_failure {
    size_t cut;
    enum disk_variant variant;
    char text[700];
};

struct replay_result {
    uint32_t cuts, images, failures;
    struct replay_failure first;
};

typedef void (*replay_failed_fn)(const void *context, const struct tape *tape,
                                 const struct replay_failure *failure);

/* NULL, or why the tape makes no sense. `path`: a directory that must now hold what the tape
 * makes of it, or NULL. */
const char *replay_check(const struct tape *tape, const char *path, struct replay_summary *ret);

/* Calls `failed` for each failure. The tape must have passed replay_check, or be a mutant. */
void replay_run(const struct tape *tape, struct trials *trials, const struct replay_plan *plan,
                replay_failed_fn failed, const void *context, struct replay_result *ret);

#endif
