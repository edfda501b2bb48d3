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
 * The program is executed by a process between it and us (callout_keeper.h), which ends with all
 * that the program started. libuv waits until that one is executed, and not the program, which may
 * be on a file system that hangs.
 */
#include "daemon/callout_runner.h"

#include "base/check.h"
#include "base/text.h"
#include "base/units.h"
#include "daemon/callout_keeper.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

enum {
    NUMBER_TEXT_MAX = 16,
    ARGUMENT_MAX = 8,
    KEEPER_SECONDS_MAX = CALLOUT_KEEPER_SECONDS_MAX + 10, /* it should have ended long before */
};

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
    uv_pipe_t output;
    uint32_t open_count; /* of its three handles */
    bool is_started;
    int64_t code; /* how it ended */
    int signal;
    char said[CALLOUT_KEEPER_OUTPUT_MAX + 1]; /* and what it printed */
    uint32_t said_len;
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

/* One line a second. */
static void report(struct callout_runner *runner, const struct run *run, enum log_level level,
                   const char *how, int64_t code)
{
    uint64_t now_ns = clock_now_ns(runner->clock);
    if (now_ns < runner->report_next_ns)
        return;
    runner->report_next_ns = now_ns + SECOND_NS;
    log_say(runner->log, level, clock_wall_ns(runner->clock), LOG_MESSAGE(how),
            LOG_TEXT("callout", verb_of(run->job->kind)), LOG_TEXT("host", run->job->mon_name),
            LOG_NUMBER("code", (uint64_t)code), LOG_NUMBER("failed", runner->failed),
            LOG_TEXT("said", run->said));
}

static void report_end(struct callout_runner *runner, struct run *run)
{
    while (run->said_len > 0 && run->said[run->said_len - 1] == '\n')
        run->said_len--;
    run->said[run->said_len] = '\0';
    bool has_failed = run->code != 0 || run->signal != 0;
    runner->failed += has_failed;
    if (!run->is_started || runner->is_closed)
        return;
    if (run->signal == SIGALRM)
        report(runner, run, LOG_LEVEL_WARNING,
               "a callout, or what it started, took longer than 10 s and was killed", 0);
    else if (has_failed)
        report(runner, run, LOG_LEVEL_WARNING, "a callout failed",
               run->signal != 0 ? 128 + run->signal : run->code);
    else if (run->said_len > 0)
        report(runner, run, LOG_LEVEL_INFO, "a callout printed something", 0);
}

static void on_closed(uv_handle_t *handle)
{
    struct run *run = handle->data;
    if (--run->open_count > 0)
        return;
    report_end(run->runner, run);
    free_job(run->job);
    run->job = NULL;
    callout_runner_turn(run->runner);
}

static void on_end(uv_process_t *process, int64_t code, int signal)
{
    struct run *run = process->data;
    run->code = code;
    run->signal = signal;
    uv_close((uv_handle_t *)process, on_closed);
    uv_close((uv_handle_t *)&run->limit, on_closed);
}

static void on_limit(uv_timer_t *timer)
{
    struct run *run = timer->data;
    (void)kill(-run->process.pid, SIGKILL);
}

static void on_room(uv_handle_t *handle, size_t wanted, uv_buf_t *ret)
{
    struct run *run = handle->data;
    (void)wanted;
    *ret = uv_buf_init(run->said + run->said_len, CALLOUT_KEEPER_OUTPUT_MAX - run->said_len);
}

/* Nothing more comes when the keeper has ended; it lets no more through than there is room for. */
static void on_output(uv_stream_t *stream, ssize_t len, const uv_buf_t *buffer)
{
    struct run *run = stream->data;
    (void)buffer;
    if (len > 0)
        run->said_len += (uint32_t)len;
    if (len < 0 || run->said_len == CALLOUT_KEEPER_OUTPUT_MAX)
        uv_close((uv_handle_t *)stream, on_closed);
}

static int spawn(struct callout_runner *runner, struct run *run, const struct job *job)
{
    char self[] = "/proc/self/exe", keep[] = CALLOUT_KEEPER_VERB, verb[NUMBER_TEXT_MAX];
    struct text text;
    text_init(&text, verb, sizeof verb);
    text_add(&text, verb_of(job->kind));
    char *arguments[ARGUMENT_MAX] = {self,
                                     keep,
                                     (char *)(uintptr_t)runner->program,
                                     verb,
                                     job->mon_name,
                                     job->third,
                                     job->kind == CALLOUT_NOTIFY ? (char *)(uintptr_t)job->state
                                                                 : NULL};
    uv_stdio_container_t files[3] = {
        {.flags = UV_IGNORE},
        {.flags = UV_CREATE_PIPE | UV_WRITABLE_PIPE, .data.stream = (uv_stream_t *)&run->output},
        {.flags = UV_INHERIT_FD, .data.fd = STDERR_FILENO}};
    uv_process_options_t options = {.file = self,
                                    .args = arguments,
                                    .flags = UV_PROCESS_DETACHED, /* a process group of its own */
                                    .stdio_count = 3,
                                    .stdio = files,
                                    .exit_cb = on_end};
    return uv_spawn(runner->loop, &run->process, &options);
}

static void start(struct callout_runner *runner, struct run *run, struct job *job)
{
    *run = (struct run){.runner = runner, .job = job, .open_count = 3};
    run->process.data = run->limit.data = run->output.data = run;
    CHECK(uv_timer_init(runner->loop, &run->limit) == 0);
    CHECK(uv_pipe_init(runner->loop, &run->output, 0) == 0);
    int result = spawn(runner, run, job);
    if (result != 0) { /* its handle is to be closed all the same */
        run->code = -result;
        report(runner, run, LOG_LEVEL_WARNING, "a callout could not be started", -result);
        uv_close((uv_handle_t *)&run->process, on_closed);
        uv_close((uv_handle_t *)&run->limit, on_closed);
        uv_close((uv_handle_t *)&run->output, on_closed);
        return;
    }
    run->is_started = true;
    CHECK(uv_read_start((uv_stream_t *)&run->output, on_room, on_output) == 0);
    CHECK(uv_timer_start(&run->limit, on_limit, KEEPER_SECONDS_MAX * UINT64_C(1000), 0) == 0);
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
        (void)kill(run->process.pid, SIGTERM);
        uv_close((uv_handle_t *)&run->process, on_closed);
        uv_close((uv_handle_t *)&run->limit, on_closed);
        if (!uv_is_closing((uv_handle_t *)&run->output))
            uv_close((uv_handle_t *)&run->output, on_closed);
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
