/*
 * main.c -- sim: run the simulated world for many seeds.
 *
 *   sim [--seeds N] [--first F] [--seed S] [--seconds T] [--verbose] [--marks] [--scenario NAME]
 *       [--stories]
 *
 * Every scenario, every story of tests/stories (or HOLDFAST_STORIES) and the seeds 1 to
 * HOLDFAST_SIM_SEEDS (500) are run; --seeds and --seed run seeds only, --first begins with another
 * seed than 1, --seconds runs seeds until the time is over, --scenario one story, --stories those
 * of tests/stories only, as TAP. Every tenth seed is run twice, and both histories must be equal to
 * the last byte. The first broken promise ends the program with exit code 1, the seed, and the
 * command that shows it with its trace.
 *
 * --marks lists the MARKs of the server that nothing reached. That is a failure when the scenarios
 * and at least 500 seeds were run; fewer prove nothing.
 */
#include "base/check.h"
#include "scenario.h"
#include "stories/script.h"
#include "stories/sim.h"
#include "world.h"

#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { MARKS_SEEDS_MIN = 500 };

struct arguments {
    uint64_t seeds, first, seed, seconds;
    bool has_seed, has_seeds, has_seconds, verbose, marks, stories;
    const char *scenario;
};

struct totals {
    uint64_t seeds, crashes, answers, excluded, calls_out;
};

static char running[128]; /* what to say when a CHECK fails */

static void on_abort(int signal_number)
{
    ssize_t ignored = write(STDERR_FILENO, running, strlen(running));
    (void)ignored;
    (void)signal_number;
    _exit(1);
}

static uint64_t run_once(uint64_t seed, bool verbose, struct totals *totals)
{
    snprintf(running, sizeof running,
             "sim: seed %llu broke CHECK\nsim: see it happen: sim --seed %llu --verbose\n",
             (unsigned long long)seed, (unsigned long long)seed);
    struct world *world = world_new(&(struct world_options){.seed = seed, .verbose = verbose});
    world_run(world);
    uint64_t history = world->history;
    totals->crashes += world->crashes;
    totals->answers += world->answers;
    totals->excluded += world->excluded;
    totals->calls_out += world->calls_out;
    world_free(world);
    return history;
}

static void run_seed(uint64_t seed, bool verbose, struct totals *totals)
{
    uint64_t history = run_once(seed, verbose, totals);
    totals->seeds++;
    if (seed % 10 != 0 || verbose)
        return;
    struct totals repeated = {0};
    if (run_once(seed, false, &repeated) == history)
        return;
    fprintf(stderr, "sim: seed %llu broke determinism: two runs gave two histories\n",
            (unsigned long long)seed);
    exit(1);
}

/* Marks of one name may stand in several places; it is enough to reach one of them. */
static uint32_t list_missed_marks(void)
{
    uint32_t missed = 0;
#ifdef HOLDFAST_MARKS
    for (struct check_mark *mark = __start_check_marks; mark < __stop_check_marks; mark++) {
        uint64_t hits = 0;
        for (struct check_mark *same = __start_check_marks; same < __stop_check_marks; same++)
            if (strcmp(same->name, mark->name) == 0)
                hits += same->hits;
        if (hits > 0)
            continue;
        fprintf(stderr, "sim: mark %s was never reached\n", mark->name);
        missed++;
    }
#endif
    return missed;
}

static bool read_number(const char *text, uint64_t *ret)
{
    char *end;
    errno = 0;
    unsigned long long value = strtoull(text, &end, 10);
    if (errno != 0 || end == text || *end != '\0' || *text == '-')
        return false;
    *ret = value;
    return true;
}

static void usage(void)
{
    fprintf(stderr,
            "usage: sim [--seeds N] [--first F] [--seed S] [--seconds T] [--verbose] [--marks] "
            "[--scenario NAME] [--stories]\nscenarios, and the stories of tests/stories:\n");
    for (uint32_t i = 0; scenario_at(i) != NULL; i++)
        fprintf(stderr, "  %-34s %s\n", scenario_at(i)->name, scenario_at(i)->about);
    exit(2);
}

static struct arguments read_arguments(int count, char **values)
{
    static const struct option options[] = {{"seeds", required_argument, NULL, 'n'},
                                            {"first", required_argument, NULL, 'f'},
                                            {"seed", required_argument, NULL, 's'},
                                            {"seconds", required_argument, NULL, 't'},
                                            {"verbose", no_argument, NULL, 'v'},
                                            {"marks", no_argument, NULL, 'm'},
                                            {"scenario", required_argument, NULL, 'c'},
                                            {"stories", no_argument, NULL, 'o'},
                                            {NULL, 0, NULL, 0}};
    struct arguments arguments = {.seeds = 500, .first = 1};
    const char *budget = getenv("HOLDFAST_SIM_SEEDS");
    bool good = budget == NULL || read_number(budget, &arguments.seeds);
    int option;
    while ((option = getopt_long(count, values, "", options, NULL)) != -1) {
        if (option == 'n') {
            arguments.has_seeds = true;
            good &= read_number(optarg, &arguments.seeds);
        } else if (option == 'f') {
            good &= read_number(optarg, &arguments.first);
        } else if (option == 's') {
            arguments.has_seed = true;
            good &= read_number(optarg, &arguments.seed);
        } else if (option == 't') {
            arguments.has_seconds = true;
            good &= read_number(optarg, &arguments.seconds);
        } else if (option == 'v') {
            arguments.verbose = true;
        } else if (option == 'm') {
            arguments.marks = true;
        } else if (option == 'c') {
            arguments.scenario = optarg;
        } else if (option == 'o') {
            arguments.stories = true;
        } else {
            usage();
        }
    }
    if (!good || optind != count)
        usage();
    return arguments;
}

static bool run_scenario(const struct arguments *arguments, const struct scenario *scenario)
{
    if (arguments->scenario != NULL && strcmp(arguments->scenario, scenario->name) != 0)
        return false;
    snprintf(running, sizeof running, "sim: scenario %s broke CHECK\n", scenario->name);
    scenario->run(scenario, arguments->verbose);
    printf("scenario %s: ok\n", scenario->name);
    return true;
}

static const char *stories_directory(void)
{
    const char *given = getenv("HOLDFAST_STORIES");
    return given != NULL ? given : "tests/stories";
}

static void begin_story(const char *slug)
{
    snprintf(running, sizeof running, "sim: scenario %s broke CHECK\n", slug);
}

static bool run_scenarios(const struct arguments *arguments)
{
    bool found = false;
    for (uint32_t i = 0; scenario_at(i) != NULL; i++)
        found |= run_scenario(arguments, scenario_at(i));
    if (!found || arguments->scenario == NULL)
        found |=
            sim_tell(stories_directory(), arguments->scenario, arguments->verbose, begin_story);
    return found;
}

static bool is_time_over(const struct arguments *arguments, time_t start)
{
    return arguments->has_seconds && (uint64_t)(time(NULL) - start) >= arguments->seconds;
}

int main(int count, char **values)
{
    struct arguments arguments = read_arguments(count, values);
    struct totals totals = {0};
    time_t start = time(NULL);
    (void)signal(SIGABRT, on_abort);
    if (arguments.stories)
        return script_main(&sim_driver, stories_directory(), arguments.scenario);
    if (arguments.scenario != NULL) {
        if (!run_scenarios(&arguments))
            usage();
        return 0;
    }
    if (arguments.has_seed) {
        run_seed(arguments.seed, arguments.verbose, &totals);
    } else {
        if (!arguments.has_seeds)
            (void)run_scenarios(&arguments);
        uint64_t left = arguments.has_seconds ? UINT64_MAX : arguments.seeds;
        for (uint64_t seed = arguments.first; left > 0 && !is_time_over(&arguments, start); left--)
            run_seed(seed++, arguments.verbose, &totals);
    }
    printf("sim: %llu seeds, %llu crashes, %llu answers, %llu calls back, %llu datagrams excluded: "
           "all promises kept\n",
           (unsigned long long)totals.seeds, (unsigned long long)totals.crashes,
           (unsigned long long)totals.answers, (unsigned long long)totals.calls_out,
           (unsigned long long)totals.excluded);
    uint32_t missed = arguments.marks ? list_missed_marks() : 0;
    bool is_proof = !arguments.has_seeds && totals.seeds >= MARKS_SEEDS_MIN;
    return missed > 0 && is_proof ? 1 : 0;
}
