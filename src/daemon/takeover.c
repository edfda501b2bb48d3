/*
 * takeover.c -- a thread that opens, a loop that turns; see takeover.h.
 *
 *   loop thread                         opening thread
 *   takeover_open: thread, uv_run  -----> store_open
 *   on_news: log  <---- sentence ------ say
 *   on_signal: is_cancelled      -----> asked now and then
 *   on_news: uv_stop  <---- is_done --- returned
 *
 * While the takeover hook runs, a thread of the same kind asks the store whether we are still
 * active:
 *
 *   takeover_run_hook: thread, uv_run  -------> store_confirm, twice a second
 *   on_news: kill the hook  <----- is_lost --- no
 *   on_beat: may it still?  <--- lease ------- yes, as of then
 *   the hook has ended      ----- is_done ---> returns
 *
 * A question may take two seconds, so it is not the thread that looks at the age of the last answer
 * but the loop, ten times a second: nothing that PostgreSQL or the network does delays the end of
 * the hook. Only a process that is stopped cannot end it.
 *
 * One mutex guards what both touch. The last sentence waits for the loop; one that comes before it
 * was fetched replaces it. What is said on the loop thread itself, while records are loaded and the
 * loop stands still, is logged at once.
 */
#include "daemon/takeover.h"

#include "base/check.h"
#include "base/units.h"
#include "daemon/sd_notify.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#define ASK_NS  UINT64_C(500000000)
#define BEAT_MS 100

struct takeover {
    uv_loop_t *loop;
    struct log *log;
    struct clock *clock;
    uv_async_t news;
    uv_thread_t loop_thread;
    bool is_waiting; /* the loop thread's own */
    int hook_pid;    /* and its process group; 0: does not run */
    bool is_expired; /* the lease has run out; the loop thread's own */
    char reason[512];

    const char *url;
    struct store_options options;
    struct store *store;
    struct store_failure failure;

    uv_mutex_t mutex; /* guards what follows */
    uv_cond_t hook_ended;
    char sentence[512];
    bool has_sentence, is_cancelled, is_done;
    bool is_lost;        /* the store, while the hook ran; failure says why */
    struct lease *lease; /* the daemon's */
};

/* ---- any thread ---- */

static void log_sentence(struct takeover *takeover, const char *sentence)
{
    log_say(takeover->log, LOG_LEVEL_WARNING, clock_wall_ns(takeover->clock),
            LOG_MESSAGE(sentence));
}

static void say(void *context, const char *sentence)
{
    struct takeover *takeover = context;
    uv_thread_t self = uv_thread_self();
    if (uv_thread_equal(&self, &takeover->loop_thread)) {
        clock_turn_over(takeover->clock);
        log_sentence(takeover, sentence);
        return;
    }
    uv_mutex_lock(&takeover->mutex);
    (void)snprintf(takeover->sentence, sizeof takeover->sentence, "%s", sentence);
    takeover->has_sentence = true;
    uv_mutex_unlock(&takeover->mutex);
    (void)uv_async_send(&takeover->news);
}

static bool is_cancelled(void *context)
{
    struct takeover *takeover = context;
    uv_mutex_lock(&takeover->mutex);
    bool answer = takeover->is_cancelled;
    uv_mutex_unlock(&takeover->mutex);
    return answer;
}

static void run(void *context)
{
    struct takeover *takeover = context;
    takeover->store = store_open(takeover->url, &takeover->options, &takeover->failure);
    uv_mutex_lock(&takeover->mutex);
    takeover->is_done = true;
    uv_mutex_unlock(&takeover->mutex);
    (void)uv_async_send(&takeover->news);
}

/* Waits half a second. False: the hook has ended. */
static bool rest(struct takeover *takeover)
{
    uv_mutex_lock(&takeover->mutex);
    if (!takeover->is_done)
        (void)uv_cond_timedwait(&takeover->hook_ended, &takeover->mutex, ASK_NS);
    bool is_done = takeover->is_done;
    uv_mutex_unlock(&takeover->mutex);
    return !is_done;
}

/* What is said if no more is heard: there is no error when an answer is only late. */
static void expect_silence(struct takeover *takeover)
{
    takeover->failure = (struct store_failure){
        .exit_code = 74,
        .text = "PostgreSQL did not confirm in time that this server is still "
                "active; the takeover hook was stopped"};
}

static void watch_store(void *context)
{
    struct takeover *takeover = context;
    bool is_lost = false;
    while (!is_lost && rest(takeover)) {
        int code = store_confirm(takeover->store, &takeover->failure);
        is_lost = code == -EIO;
        if (code != 0)
            continue;
        expect_silence(takeover);
        uv_mutex_lock(&takeover->mutex);
        lease_renew(takeover->lease, store_checked_ns(takeover->store));
        uv_mutex_unlock(&takeover->mutex);
    }
    uv_mutex_lock(&takeover->mutex);
    takeover->is_lost = is_lost;
    uv_mutex_unlock(&takeover->mutex);
    (void)uv_async_send(&takeover->news);
}

/* ---- the loop thread ---- */

/* Scripts wait for this line as they do for the one at readiness; a service manager, too. */
static void announce_standby(const struct takeover *takeover)
{
    if (!takeover->is_waiting || !takeover->options.is_standby)
        return;
    (void)printf("holdfast: standing by\n");
    (void)fflush(stdout);
    (void)sd_notify_started("standing by");
}

/* With all that it started: what is left of it could move the address when we are gone. */
static void kill_hook(int pid)
{
    if (pid > 0)
        (void)kill(-pid, SIGKILL);
}

static void on_news(uv_async_t *async)
{
    struct takeover *takeover = async->data;
    char sentence[sizeof takeover->sentence];
    uv_mutex_lock(&takeover->mutex);
    bool has_sentence = takeover->has_sentence, is_done = takeover->is_done;
    bool is_lost = takeover->is_lost;
    memcpy(sentence, takeover->sentence, sizeof sentence);
    takeover->has_sentence = false;
    uv_mutex_unlock(&takeover->mutex);
    if (has_sentence) {
        memcpy(takeover->reason, sentence, sizeof sentence);
        log_sentence(takeover, sentence);
        announce_standby(takeover);
    }
    if (is_lost)
        kill_hook(takeover->hook_pid);
    if (is_done && takeover->is_waiting)
        uv_stop(takeover->loop);
}

static void on_signal(uv_signal_t *handle, int number)
{
    (void)number;
    struct takeover *takeover = handle->data;
    uv_mutex_lock(&takeover->mutex);
    takeover->is_cancelled = true;
    uv_mutex_unlock(&takeover->mutex);
    kill_hook(takeover->hook_pid);
}

/* The loop has no "now" of its own before the driver turns it. */
static void on_sleep(uv_prepare_t *prepare)
{
    struct takeover *takeover = prepare->data;
    clock_turn_over(takeover->clock);
}

struct takeover *takeover_new(uv_loop_t *loop, struct log *log, struct clock *clock,
                              struct lease *lease)
{
    struct takeover *takeover = calloc(1, sizeof *takeover);
    if (takeover == NULL)
        return NULL;
    takeover->loop = loop;
    takeover->log = log;
    takeover->clock = clock;
    takeover->lease = lease;
    takeover->loop_thread = uv_thread_self();
    CHECK(uv_mutex_init(&takeover->mutex) == 0);
    CHECK(uv_cond_init(&takeover->hook_ended) == 0);
    CHECK(uv_async_init(loop, &takeover->news, on_news) == 0);
    uv_unref((uv_handle_t *)&takeover->news); /* it is no reason to go on */
    takeover->news.data = takeover;
    return takeover;
}

void takeover_close(struct takeover *takeover)
{
    if (takeover != NULL)
        uv_close((uv_handle_t *)&takeover->news, NULL);
}

void takeover_free(struct takeover *takeover)
{
    if (takeover == NULL)
        return;
    uv_cond_destroy(&takeover->hook_ended);
    uv_mutex_destroy(&takeover->mutex);
    free(takeover);
}

bool takeover_explain(const struct takeover *takeover, struct text *ret_reason)
{
    if (takeover == NULL || !takeover->is_waiting || takeover->reason[0] == '\0')
        return false;
    text_add(ret_reason, takeover->reason);
    return true;
}

/* Handles that are needed for one wait only; the loop is run until they are closed. */
struct wait {
    uv_signal_t term, interrupt;
    uv_prepare_t sleep;
    uv_process_t process;
    uv_timer_t timer, beat;
    int64_t exit_status;
    int signal;
    bool has_ended, is_late;
};

static void wait_begin(struct wait *wait, struct takeover *takeover)
{
    uv_loop_t *loop = takeover->loop;
    CHECK(uv_signal_init(loop, &wait->term) == 0);
    CHECK(uv_signal_init(loop, &wait->interrupt) == 0);
    CHECK(uv_prepare_init(loop, &wait->sleep) == 0);
    wait->term.data = wait->interrupt.data = wait->sleep.data = takeover;
    CHECK(uv_signal_start(&wait->term, on_signal, SIGTERM) == 0);
    CHECK(uv_signal_start(&wait->interrupt, on_signal, SIGINT) == 0);
    CHECK(uv_prepare_start(&wait->sleep, on_sleep) == 0);
}

/* A signal that came while the loop stood still is heard first. One that comes later is kept until
 * nobody listens here any more, and then does what it always does. */
static void wait_end(struct wait *wait, struct takeover *takeover)
{
    sigset_t both, before;
    CHECK(sigemptyset(&both) == 0);
    CHECK(sigaddset(&both, SIGTERM) == 0);
    CHECK(sigaddset(&both, SIGINT) == 0);
    CHECK(pthread_sigmask(SIG_BLOCK, &both, &before) == 0);
    (void)uv_run(takeover->loop, UV_RUN_NOWAIT);
    uv_close((uv_handle_t *)&wait->term, NULL);
    uv_close((uv_handle_t *)&wait->interrupt, NULL);
    uv_close((uv_handle_t *)&wait->sleep, NULL);
    (void)uv_run(takeover->loop, UV_RUN_NOWAIT); /* closes them: they live on our stack */
    CHECK(pthread_sigmask(SIG_SETMASK, &before, NULL) == 0);
}

struct store *takeover_open(struct takeover *takeover, const char *url,
                            const struct store_options *options, struct store_failure *ret_failure)
{
    uv_thread_t thread;
    struct wait wait = {0};
    takeover->url = url;
    takeover->options = *options;
    takeover->options.say = say;
    takeover->options.is_cancelled = is_cancelled;
    takeover->options.context = takeover;
    takeover->is_waiting = true;
    if (uv_thread_create(&thread, run, takeover) != 0) {
        *ret_failure = (struct store_failure){
            .exit_code = 74,
            .text = "cannot start a thread; raise the limit of threads (TasksMax=, ulimit -u)"};
        return NULL;
    }
    wait_begin(&wait, takeover);
    bool is_done = false;
    while (!is_done) {
        (void)uv_run(takeover->loop, UV_RUN_DEFAULT);
        uv_mutex_lock(&takeover->mutex);
        is_done = takeover->is_done;
        uv_mutex_unlock(&takeover->mutex);
    }
    CHECK(uv_thread_join(&thread) == 0);
    takeover->is_waiting = false;
    wait_end(&wait, takeover);
    clock_turn_over(takeover->clock);
    *ret_failure = takeover->failure;
    if (!is_cancelled(takeover))
        return takeover->store;
    store_close(takeover->store);
    ret_failure->exit_code = 0;
    return NULL;
}

/* ---- the hook ---- */

static void on_hook_exit(uv_process_t *process, int64_t exit_status, int signal)
{
    struct wait *wait = process->data;
    wait->has_ended = true;
    wait->exit_status = exit_status;
    wait->signal = signal;
    uv_stop(process->loop);
}

static void on_late(uv_timer_t *timer)
{
    struct wait *wait = timer->data;
    wait->is_late = true;
    kill_hook(wait->process.pid); /* on_hook_exit follows */
}

static void on_beat(uv_timer_t *timer)
{
    struct takeover *takeover = timer->data;
    uv_mutex_lock(&takeover->mutex);
    bool may_move = lease_may_move(takeover->lease, clock_boot_ns());
    uv_mutex_unlock(&takeover->mutex);
    if (may_move)
        return;
    takeover->is_expired = true;
    kill_hook(takeover->hook_pid); /* on_hook_exit follows */
}

static void explain_hook(const struct wait *wait, int err, const char *command,
                         struct store_failure *ret_failure)
{
    struct text why;
    text_init(&why, ret_failure->text, sizeof ret_failure->text);
    ret_failure->exit_code = TAKEOVER_EXIT_HOOK;
    text_add(&why, "the takeover hook \"");
    text_add_escaped(&why, bytes_of_text(command), 200);
    if (err != 0) {
        text_add(&why, "\" cannot be run: ");
        text_add(&why, uv_strerror(err));
    } else if (wait->is_late) {
        text_add(&why, "\" was stopped: it took more than ");
        text_add_u64(&why, TAKEOVER_HOOK_MAX_S);
        text_add(&why, " s");
    } else {
        text_add(&why, "\" failed with code ");
        text_add_u64(&why, wait->signal != 0 ? (uint64_t)wait->signal + 128
                                             : (uint64_t)wait->exit_status);
    }
    text_add(&why, "; exiting so that another server can take over");
}

/* Asks whether we are active, and keeps asking. 0, or -EIO: we are not, or nobody can ask. */
static int begin_watch(struct takeover *takeover, struct store *store, uv_thread_t *ret,
                       struct store_failure *ret_failure)
{
    int code = store_confirm(store, ret_failure);
    lease_renew(takeover->lease, store_checked_ns(store));
    if (code == -EIO || (code != 0 && !lease_may_move(takeover->lease, clock_boot_ns())))
        return -EIO;
    takeover->store = store;
    takeover->is_done = takeover->is_lost = takeover->is_expired = false;
    expect_silence(takeover);
    if (uv_thread_create(ret, watch_store, takeover) == 0)
        return 0;
    *ret_failure = (struct store_failure){
        .exit_code = TAKEOVER_EXIT_HOOK,
        .text = "cannot start a thread; raise the limit of threads (TasksMax=, ulimit -u)"};
    return -EIO;
}

/* True: another server is active, or may be, and the failure says how. */
static bool end_watch(struct takeover *takeover, uv_thread_t *thread)
{
    uv_mutex_lock(&takeover->mutex);
    takeover->is_done = true;
    uv_cond_signal(&takeover->hook_ended);
    uv_mutex_unlock(&takeover->mutex);
    CHECK(uv_thread_join(thread) == 0);
    return takeover->is_lost || takeover->is_expired;
}

/* Runs the hook until it has ended, however that happens. 0, or why it cannot be run. */
static int run_hook(struct takeover *takeover, const char *command, struct wait *wait)
{
    char *arguments[] = {(char *)(uintptr_t) "/bin/sh", (char *)(uintptr_t) "-c",
                         (char *)(uintptr_t)command, NULL};
    uv_stdio_container_t streams[3] = {{.flags = UV_IGNORE},
                                       {.flags = UV_INHERIT_FD, .data.fd = 2},
                                       {.flags = UV_INHERIT_FD, .data.fd = 2}};
    uv_process_options_t process = {.exit_cb = on_hook_exit,
                                    .file = "/bin/sh",
                                    .args = arguments,
                                    .flags = UV_PROCESS_DETACHED, /* a process group of its own */
                                    .stdio_count = 3,
                                    .stdio = streams};
    int err = uv_spawn(takeover->loop, &wait->process, &process);
    if (err != 0)
        return err;
    takeover->hook_pid = wait->process.pid;
    CHECK(uv_timer_start(&wait->timer, on_late, UINT64_C(1000) * TAKEOVER_HOOK_MAX_S, 0) == 0);
    CHECK(uv_timer_start(&wait->beat, on_beat, BEAT_MS, BEAT_MS) == 0);
    while (!wait->has_ended)
        (void)uv_run(takeover->loop, UV_RUN_DEFAULT);
    takeover->hook_pid = 0;
    return 0;
}

int takeover_run_hook(struct takeover *takeover, struct store *store, const char *command,
                      struct store_failure *ret_failure)
{
    struct wait wait = {0};
    uv_thread_t thread;
    if (begin_watch(takeover, store, &thread, ret_failure) != 0)
        return -EIO;
    wait_begin(&wait, takeover);
    CHECK(uv_timer_init(takeover->loop, &wait.timer) == 0);
    CHECK(uv_timer_init(takeover->loop, &wait.beat) == 0);
    wait.timer.data = wait.process.data = &wait;
    wait.beat.data = takeover;
    int err = run_hook(takeover, command, &wait);
    bool is_lost = end_watch(takeover, &thread);
    bool is_good = err == 0 && wait.exit_status == 0 && wait.signal == 0 && !is_lost;
    uv_close((uv_handle_t *)&wait.timer, NULL);
    uv_close((uv_handle_t *)&wait.beat, NULL);
    uv_close((uv_handle_t *)&wait.process, NULL);
    wait_end(&wait, takeover);
    if (err == 0 && (!is_good || is_cancelled(takeover)))
        kill_hook(wait.process.pid); /* what it left behind: its group outlives it */
    clock_turn_over(takeover->clock);
    if (is_cancelled(takeover))
        return -ECANCELED;
    if (is_good)
        return 0;
    if (is_lost)
        *ret_failure = takeover->failure;
    else
        explain_hook(&wait, err, command, ret_failure);
    return -EIO;
}
