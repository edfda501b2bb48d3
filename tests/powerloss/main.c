/*
 * main.c -- the power-loss test (R-PER-6).
 *
 * kill -9 proves nothing about power: the page cache survives it. So a server is recorded while
 * clients register, lock, repeat and remove, and while it is killed and started again (workload.c,
 * recorder.c). Then the disk is rebuilt as a power cut could have left it, at many moments and in
 * many ways (disk.h), a server is started on each, and passing proves for --sync full that
 *  (a) it starts;
 *  (b) it has every registration and every lock that was acknowledged before the cut, as it was
 *      acknowledged last or posted later, none whose removal was acknowledged, and nothing else;
 *  (c) its state is odd and larger than every state in an answer before the cut;
 * and that nothing was set aside or counts as incomplete on the way. For --sync process it proves
 * (a), (c), that the store then counts as incomplete (D16), and that a disk which is exactly as the
 * last sync left it has every acknowledged registration, although not its updates and removals, nor
 * every lock.
 *
 * The same replay must accuse every tape that mutant.c makes worse.
 *
 * HOLDFAST_POWER_CUTS (200) moments are tried, each in every variant; HOLDFAST_SEED repeats a
 * workload. A failure keeps the tape and prints the command that repeats it:
 *
 *   powerloss --tape FILE --seed N --cut N --variant N [--mutant NAME] [--sync process]
 */
#include "mutant.h"
#include "replay.h"
#include "runner.h"
#include "workload.h"

#include "peer/dial.h"

#include <getopt.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    ROUNDS = 60,
    COMMITS_MIN = 6,
    FRAMES_MIN = 40,
    ACKNOWLEDGED_MIN = 200,
    FEW_CUTS = 40,
    START_CUTS = 40,
    FAILURES_SHOWN = 5
};

struct options {
    const char *tape, *mutant; /* NULL: record one; none */
    const char *sync;          /* full or process; NULL: both, one after the other */
    uint64_t seed;
    long cut, variant; /* -1: many; all */
};

struct place {
    char recorded[128]; /* on a real disk */
    char images[128];   /* in memory, when there is a file system for that */
};

/* ---- where ---- */

static bool make_directory(const char *parent, char ret[static 128])
{
    snprintf(ret, 128, "%s/holdfast-powerloss-XXXXXX", parent);
    return mkdtemp(ret) != NULL;
}

/* Images need no disk: what a disk may lose is decided before they are written. */
static bool make_place(struct place *ret)
{
    const char *parent = getenv("TMPDIR");
    parent = parent ? parent : "/tmp";
    if (!make_directory(parent, ret->recorded)) {
        perror(ret->recorded);
        return false;
    }
    if (!make_directory("/dev/shm", ret->images) && !make_directory(parent, ret->images)) {
        perror(ret->images);
        runner_remove(ret->recorded);
        return false;
    }
    return true;
}

/* ---- one tape ---- */

static const char *self_name;

static void print_failure(const void *context, const struct tape *tape,
                          const struct replay_failure *failure)
{
    const struct options *options = context;
    printf("FAILED cut %zu of %zu, variant %d (%s), seed %" PRIu64 ": %s\n", failure->cut,
           tape->count, (int)failure->variant, disk_variant_text(failure->variant), options->seed,
           failure->text);
    if (failure->cut > 0)
        printf("    the last event before the cut: %s\n",
               tape_event_text(&tape->events[failure->cut - 1]));
    printf("    repeat: HOLDFASTD=%s STORE_DUMP=%s %s --tape %s --seed %" PRIu64
           " --cut %zu --variant %d --sync %s%s%s\n",
           runner_variable("HOLDFASTD"), runner_variable("STORE_DUMP"), self_name, options->tape,
           options->seed, failure->cut, (int)failure->variant, options->sync,
           options->mutant ? " --mutant " : "", options->mutant ? options->mutant : "");
}

static bool is_process(const struct options *options)
{
    return strcmp(options->sync, "process") == 0;
}

/* A quarter of them for --sync process, which promises less. */
static uint32_t cuts_max(const struct options *options)
{
    const char *text = getenv("HOLDFAST_POWER_CUTS");
    uint32_t count = text && *text ? (uint32_t)strtoul(text, NULL, 10) : 200;
    return is_process(options) ? count / 4 + 1 : count;
}

static size_t first_post(const struct tape *tape)
{
    size_t i = 0;
    while (i < tape->count && tape->events[i].head.type != TAPE_POST)
        i++;
    return i;
}

static bool check_tape(const struct tape *tape, struct trials *trials,
                       const struct options *options)
{
    struct replay_plan plan = {.seed = options->seed,
                               .cuts_max = cuts_max(options),
                               .last_cut = tape->count,
                               .variant = -1,
                               .is_process = is_process(options),
                               .failures_max = FAILURES_SHOWN};
    struct replay_result result;
    uint64_t begin_ns = dial_now_ns();
    /* First starts that are killed leave names behind that nobody has synced: a few cuts of their
     * own, because a hundred of them over all of the tape hardly meet that. */
    struct replay_plan starts = plan;
    starts.near_only = true;
    starts.cuts_max = START_CUTS;
    starts.last_cut = first_post(tape);
    replay_run(tape, trials, &starts, print_failure, options, &result);
    uint32_t failures = result.failures;
    replay_run(tape, trials, &plan, print_failure, options, &result);
    result.failures += failures;
    printf("replay of --sync %s: %u of %zu cuts, %u images (%u different), %u failures, %" PRIu64
           " s\n",
           options->sync, result.cuts, tape->count + 1, result.images, trial_count(trials),
           result.failures, (dial_now_ns() - begin_ns) / 1000000000);
    return result.failures == 0;
}

/* ---- mutants ---- */

static size_t first_difference(const struct tape *a, const struct tape *b)
{
    size_t i = 0;
    while (i < a->count && i < b->count &&
           memcmp(&a->events[i], &b->events[i], sizeof(a->events[0])) == 0)
        i++;
    return i;
}

static bool check_mutant(uint32_t index, const struct tape *tape, struct trials *trials,
                         const struct options *options)
{
    struct tape worse;
    struct replay_result result;
    if (!mutant_make(index, tape, &worse)) {
        printf("MISSED %s: the tape has no place for it\n", mutant_name(index));
        return false;
    }
    struct replay_plan plan = {.seed = options->seed,
                               .cuts_max = FEW_CUTS,
                               .near_only = true,
                               .first_cut = first_difference(tape, &worse),
                               .last_cut = worse.count,
                               .variant = -1,
                               .is_process = is_process(options),
                               .failures_max = 1};
    replay_run(&worse, trials, &plan, NULL, NULL, &result); /* most show everywhere */
    plan.cuts_max = UINT32_MAX;
    if (result.failures == 0)
        replay_run(&worse, trials, &plan, NULL, NULL, &result);
    if (result.failures > 0)
        printf("caught %s%s: cut %zu variant %d, %s\n", mutant_name(index),
               is_process(options) ? " (--sync process)" : "", result.first.cut,
               (int)result.first.variant, result.first.text);
    else
        printf("MISSED %s (%s) in %u images\n", mutant_name(index), mutant_text(index),
               result.images);
    tape_free(&worse);
    return result.failures > 0;
}

/* ---- all of it ---- */

static bool record(const struct place *place, struct options *options, struct tape *ret,
                   uint32_t *ret_missed)
{
    static char tape_path[256];
    snprintf(tape_path, sizeof(tape_path), "%s/tape-%s", place->recorded, options->sync);
    struct workload_options workload = {.directory = place->recorded,
                                        .tape = tape_path,
                                        .sync = options->sync,
                                        .seed = options->seed,
                                        .rounds = ROUNDS};
    struct replay_summary summary;
    options->tape = tape_path;
    const char *why = workload_run(&workload, ret_missed);
    if (why) {
        printf("FAILED workload: %s\n", why);
        return false;
    }
    why = tape_load(tape_path, ret);
    if (why) {
        printf("FAILED: the tape %s\n", why);
        return false;
    }
    why = replay_check(ret, workload_store(&workload), &summary);
    printf("tape of --sync %s: %zu events, %u commits, %u frames, %u writes of zeros, %u kills; %u "
           "calls "
           "acknowledged with "
           "%u different states\n",
           options->sync, ret->count, summary.commits, summary.frames, summary.zeros, summary.kills,
           summary.acknowledged, summary.states);
    if (why)
        printf("FAILED: the tape does not say what happened: %s\n", why);
    else if (summary.commits < COMMITS_MIN || summary.frames < FRAMES_MIN ||
             summary.acknowledged < ACKNOWLEDGED_MIN)
        printf("FAILED: too little happened to prove anything\n");
    else
        return true;
    return false;
}

static bool run_test(struct options *options, const struct place *place)
{
    struct tape tape = {0};
    uint32_t missed = 0;
    if (!record(place, options, &tape, &missed)) {
        tape_free(&tape);
        return false;
    }
    struct trials *trials = trial_new(place->images, options->sync);
    bool is_good = check_tape(&tape, trials, options);
    for (uint32_t i = 0; i < (is_process(options) ? MUTANT_COUNT_PROCESS : MUTANT_COUNT); i++)
        is_good &= check_mutant(i, &tape, trials, options);
    if (missed > 0)
        printf("FAILED: %u starts did not come to the place where they were to be killed\n",
               missed);
    trial_free(trials);
    tape_free(&tape);
    return is_good && missed == 0;
}

/* One cut of a kept tape, with the server's log; the image stays for a look at it. */
static bool run_again(const struct options *options, const struct place *place)
{
    struct tape tape, worse = {0};
    struct replay_result result;
    const char *why = tape_load(options->tape, &tape);
    if (why) {
        printf("%s %s\n", options->tape, why);
        return false;
    }
    for (uint32_t i = 0; i < MUTANT_COUNT && options->mutant; i++)
        if (strcmp(mutant_name(i), options->mutant) == 0)
            (void)mutant_make(i, &tape, &worse);
    const struct tape *chosen = options->mutant ? &worse : &tape;
    bool is_known = options->cut >= 0 && (size_t)options->cut <= chosen->count;
    if (!is_known) {
        printf("the tape has cuts 0 to %zu\n", chosen->count);
        runner_remove(place->images);
    }
    struct replay_plan plan = {.seed = options->seed,
                               .cuts_max = UINT32_MAX,
                               .first_cut = (size_t)options->cut,
                               .last_cut = (size_t)options->cut,
                               .variant = (int)options->variant,
                               .is_process = is_process(options),
                               .failures_max = UINT32_MAX};
    struct trials *trials = trial_new(place->images, options->sync);
    if (is_known) {
        replay_run(chosen, trials, &plan, print_failure, options, &result);
        printf("%u failures; the last server's log is %s, what it left is %s\n", result.failures,
               trial_log(trials), trial_store(trials));
    }
    trial_free(trials);
    tape_free(&worse);
    tape_free(&tape);
    return is_known && result.failures == 0;
}

static bool read_options(int argc, char **argv, struct options *ret)
{
    static const struct option known[] = {{"tape", required_argument, NULL, 't'},
                                          {"seed", required_argument, NULL, 's'},
                                          {"cut", required_argument, NULL, 'c'},
                                          {"variant", required_argument, NULL, 'v'},
                                          {"mutant", required_argument, NULL, 'm'},
                                          {"sync", required_argument, NULL, 'y'},
                                          {NULL, 0, NULL, 0}};
    const char *seed = getenv("HOLDFAST_SEED");
    *ret = (struct options){.cut = -1, .variant = -1};
    ret->seed = seed && *seed ? strtoull(seed, NULL, 0) : dial_now_ns();
    for (int letter; (letter = getopt_long(argc, argv, "", known, NULL)) != -1;) {
        if (letter == 't')
            ret->tape = optarg;
        else if (letter == 's')
            ret->seed = strtoull(optarg, NULL, 0);
        else if (letter == 'c')
            ret->cut = strtol(optarg, NULL, 10);
        else if (letter == 'v')
            ret->variant = strtol(optarg, NULL, 10);
        else if (letter == 'm')
            ret->mutant = optarg;
        else if (letter == 'y')
            ret->sync = optarg;
        else
            return false;
    }
    bool is_mode =
        !ret->sync || strcmp(ret->sync, "full") == 0 || strcmp(ret->sync, "process") == 0;
    return is_mode && optind == argc;
}

int main(int argc, char **argv)
{
    struct options options;
    struct place place;
    self_name = argv[0];
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (!read_options(argc, argv, &options)) {
        fprintf(stderr, "usage: powerloss [--sync full|process] "
                        "[--tape FILE --seed N --cut N [--variant N] [--mutant NAME]]\n");
        return 2;
    }
    if (!make_place(&place))
        return 1;
    if (options.tape) {
        options.sync = options.sync ? options.sync : "full";
        bool is_good = run_again(&options, &place);
        runner_remove(place.recorded);
        return is_good ? 0 : 1;
    }
    printf("powerloss: HOLDFAST_SEED=%" PRIu64 "\n", options.seed);
    const char *only = options.sync;
    bool is_good = true;
    for (size_t i = 0; i < 2; i++) {
        options.sync = i == 0 ? "full" : "process";
        if (!only || strcmp(only, options.sync) == 0)
            is_good &= run_test(&options, &place);
    }
    runner_remove(place.images);
    if (is_good)
        runner_remove(place.recorded);
    else
        printf("the tape and the recorded store are kept in %s\n", place.recorded);
    return is_good ? 0 : 1;
}
