/*
 * callout_runner.c -- see callout_runner.h.
 *
 *              core_next_callout             a run is free, and none is          it ends, or is
 *   (nothing) ------------------> WAITING -----------------------------> RUNNING ---------------->
 *                                           about the same host                  killed after 10 s
 *
 * Always true: about one host no two run at once, and they run in the order in which things
 * happened. About different hosts they may overtake each other.
 *
 * The program is executed by a shell, which is there, and not by us: libuv waits until it is
 * executed, and one on a file system that hangs would keep us from answering.
 */
#include "daemon/callout_runner.h"

#include "base/check.h"
#include "base/text.h"
#include "base/units.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

enum { NUMBER_TEXT_MAX = 16, ARGUMENT_MAX = 9 };

/* What is to be told. */
struct job {
    struct job *next;
    enum core_callout_kind kind;
    char *mon_name, *third; /* owned, in one piece; of sm-notify the third is an address */
    char state[NUMBER_TEXT_MAX];
};

struct run {
    struct callout_runner *runner;
    struct job *job; /* NULL: free */
    uv_process_t process;
    uv_timer_t limit;
    bool is_late;
    uint32_t open_count; /* of its two handles */
};

struct callout_runner {
    uv_loop_t *loop;
    struct core *core;
    struct log *log;
    struct clock *clock;
    const char *program;
    struct job *first, **end; /* waiting, in order */
    uint32_t waiting;
    struct run runs[CALLOUT_RUNNER_RUNS_MAX];
    bool is_closed;
    uint64_t lost;                          /* that found no room here */
    uint64_t lost_reported, report_next_ns; /* one line a second */
    uint64_t failed;
};

struct callout_runner *callout_runner_new(uv_loop_t *loop, struct core *core, struct log *log,
                                          struct clock *clock, const char *program)
{
    struct callout_runner *runner = calloc(1, sizeof *runner);
    if (runner == NULL)
        return NULL;
    *runner = (struct callout_runner){
        .loop = loop, .core = core, .log = log, .clock = clock, .program = program};
    runner->end = &runner->first;
    for (uint32_t i = 0; i < CALLOUT_RUNNER_RUNS_MAX; i++)
        runner->runs[i].runner = runner;
    return runner;
}

static const char *verb_of(enum core_callout_kind kind)
{
    static const char *const verbs[] = {[CALLOUT_ADD] = "add-client",
                                        [CALLOUT_DELETE] = "del-client",
                                        [CALLOUT_NOTIFY] = "sm-notify"};
    return verbs[kind];
}

static void free_job(struct job *job)
{
    if (job != NULL)
        free(job->mon_name);
    free(job);
}

/* ---- what there is to tell ---- */

static struct job *job_of(const struct core_callout *told)
{
    char address[ADDRESS_TEXT_MAX];
    struct bytes third = told->my_name;
    if (told->kind == CALLOUT_NOTIFY) {
        address_text(&told->from, address);
        third = bytes_of_text(address);
    }
    struct job *job = calloc(1, sizeof *job);
    char *names = malloc((size_t)told->mon_name.len + third.len + 2);
    if (job == NULL || names == NULL) {
        free(job);
        free(names);
        return NULL;
    }
    *job = (struct job){.kind = told->kind, .mon_name = names};
    memcpy(names, told->mon_name.at, told->mon_name.len);
    names[told->mon_name.len] = '\0';
    job->third = names + told->mon_name.len + 1;
    memcpy(job->third, third.at, third.len);
    job->third[third.len] = '\0';
    struct text state;
    text_init(&state, job->state, sizeof job->state);
    text_add_u64(&state, told->state);
    return job;
}

static void take_all(struct callout_runner *runner)
{
    struct core_callout told;
    while (core_next_callout(runner->core, &told)) {
        struct job *job = runner->waiting < CALLOUT_RUNNER_WAITING_MAX ? job_of(&told) : NULL;
        if (job == NULL) {
            runner->lost++;
            continue;
        }
        *runner->end = job;
        runner->end = &job->next;
        runner->waiting++;
    }
}

/* ---- running ---- */

static bool is_busy(const struct callout_runner *runner, const char *mon_name)
{
    bool is_found = false;
    for (uint32_t i = 0; i < CALLOUT_RUNNER_RUNS_MAX && !is_found; i++) {
        const struct job *job = runner->runs[i].job;
        is_found = job != NULL && strcmp(job->mon_name, mon_name) == 0;
    }
    return is_found;
}

/* The first one that waits and may run; NULL: none. Only so many are looked at: with that many
 * about hosts that are busy, one of them is soon free. */
static struct job *take_next(struct callout_runner *runner)
{
    struct job **at = &runner->first;
    for (uint32_t i = 0; i < 2 * CALLOUT_RUNNER_RUNS_MAX && *at != NULL; i++, at = &(*at)->next) {
        struct job *job = *at;
        if (is_busy(runner, job->mon_name))
            continue;
        *at = job->next;
        if (runner->end == &job->next)
            runner->end = at;
        runner->waiting--;
        return job;
    }
    return NULL;
}

static void report_failure(struct callout_runner *runner, const struct job *job, const char *how,
                           int64_t code)
{
    uint64_t now_ns = clock_now_ns(runner->clock);
    runner->failed++;
    if (now_ns < runner->report_next_ns)
        return;
    runner->report_next_ns = now_ns + SECOND_NS;
    log_say(runner->log, LOG_LEVEL_WARNING, clock_wall_ns(runner->clock), LOG_MESSAGE(how),
            LOG_TEXT("callout", verb_of(job->kind)), LOG_TEXT("host", job->mon_name),
            LOG_NUMBER("code", (uint64_t)code), LOG_NUMBER("failed", runner->failed));
}

static void on_closed(uv_handle_t *handle)
{
    struct run *run = handle->data;
    if (--run->open_count > 0)
        return;
    free_job(run->job);
    run->job = NULL;
    callout_runner_turn(run->runner);
}

static void on_end(uv_process_t *process, int64_t code, int signal)
{
    struct run *run = process->data;
    if (run->is_late)
        report_failure(run->runner, run->job, "a callout took longer than 10 s and was killed", 0);
    else if (code != 0 || signal != 0)
        report_failure(run->runner, run->job, "a callout failed",
                       signal != 0 ? 128 + signal : code);
    uv_close((uv_handle_t *)process, on_closed);
    uv_close((uv_handle_t *)&run->limit, on_closed);
}

static void on_limit(uv_timer_t *timer)
{
    struct run *run = timer->data;
    run->is_late = true;
    (void)kill(-run->process.pid, SIGKILL);
}

static void start(struct callout_runner *runner, struct run *run, struct job *job)
{
    char shell[] = "/bin/sh", option[] = "-c", script[] = "exec \"$0\" \"$@\"";
    char verb[NUMBER_TEXT_MAX];
    struct text text;
    text_init(&text, verb, sizeof verb);
    text_add(&text, verb_of(job->kind));
    char *arguments[ARGUMENT_MAX] = {
        shell, option,        script,     (char *)(uintptr_t)runner->program,
        verb,  job->mon_name, job->third, job->kind == CALLOUT_NOTIFY ? job->state : NULL};
    uv_stdio_container_t files[3] = {{.flags = UV_IGNORE},
                                     {.flags = UV_INHERIT_FD, .data.fd = STDERR_FILENO},
                                     {.flags = UV_INHERIT_FD, .data.fd = STDERR_FILENO}};
    uv_process_options_t options = {.file = shell,
                                    .args = arguments,
                                    .flags = UV_PROCESS_DETACHED, /* a process group of its own */
                                    .stdio_count = 3,
                                    .stdio = files,
                                    .exit_cb = on_end};
    run->job = job;
    run->is_late = false;
    run->open_count = 2;
    run->process.data = run->limit.data = run;
    CHECK(uv_timer_init(runner->loop, &run->limit) == 0);
    int result = uv_spawn(runner->loop, &run->process, &options);
    if (result != 0) { /* its handle is to be closed all the same */
        report_failure(runner, job, "a callout could not be started", -result);
        uv_close((uv_handle_t *)&run->process, on_closed);
        uv_close((uv_handle_t *)&run->limit, on_closed);
        return;
    }
    CHECK(uv_timer_start(&run->limit, on_limit, CALLOUT_RUNNER_SECONDS_MAX * UINT64_C(1000), 0) ==
          0);
}

static void report_lost(struct callout_runner *runner)
{
    uint64_t lost = runner->lost + core_lost_callouts(runner->core);
    uint64_t now_ns = clock_now_ns(runner->clock);
    if (lost == runner->lost_reported || now_ns < runner->report_next_ns)
        return;
    runner->report_next_ns = now_ns + SECOND_NS;
    runner->lost_reported = lost;
    log_say(runner->log, LOG_LEVEL_WARNING, clock_wall_ns(runner->clock),
            LOG_MESSAGE("callouts were lost: the program is too slow, and too many wait for it"),
            LOG_NUMBER("lost", lost));
}

void callout_runner_turn(struct callout_runner *runner)
{
    if (runner == NULL || runner->is_closed)
        return;
    take_all(runner);
    for (uint32_t i = 0; i < CALLOUT_RUNNER_RUNS_MAX && runner->waiting > 0; i++) {
        if (runner->runs[i].job != NULL)
            continue;
        struct job *job = take_next(runner);
        if (job == NULL)
            break;
        start(runner, &runner->runs[i], job);
    }
    report_lost(runner);
}

void callout_runner_close(struct callout_runner *runner)
{
    if (runner == NULL || runner->is_closed)
        return;
    runner->is_closed = true;
    for (uint32_t i = 0; i < CALLOUT_RUNNER_RUNS_MAX; i++) {
        struct run *run = &runner->runs[i];
        if (run->job == NULL || uv_is_closing((uv_handle_t *)&run->limit))
            continue;
        (void)kill(-run->process.pid, SIGTERM);
        uv_close((uv_handle_t *)&run->process, on_closed);
        uv_close((uv_handle_t *)&run->limit, on_closed);
    }
}

void callout_runner_free(struct callout_runner *runner)
{
    if (runner == NULL)
        return;
    for (struct job *next; runner->first != NULL; runner->first = next) {
        next = runner->first->next;
        free_job(runner->first);
    }
    free(runner);
}
