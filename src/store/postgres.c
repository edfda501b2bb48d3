/*
 * postgres.c -- the shared back end: a PostgreSQL database that several machines can reach.
 *
 *   open    connect (and wait for a database that is away) -> lock -> tables -> next epoch
 *   commit  one pipeline; what goes wrong is tried again until --store-timeout
 *
 *                 +----------------- refused for now, pause -----------------+
 *                 v                                                          |
 *   commit --> CONNECTED --pipeline--> done --> 0                            |
 *                 ^   |  \-----------> refused -----------------------------+--> for good --> 74
 *                 |   |   \----------> refused by the fence ------------------------------> 76
 *                 |   lost
 *                 |   v
 *                 +-- AWAY: connect, take the lock (another has it: 76), read the number back:
 *                     this batch's: done; the one before: send it again; else 76
 *
 * Whoever lost the connection does not know whether the commit landed. PostgreSQL may even be still
 * at it: reading the number back takes the lock of its row and so waits for that.
 *
 * Always true:
 *  (1) A batch is sent again only when the number in the database is the one before it.
 *  (2) A session that commits holds the advisory lock, taken by that session.
 *  (3) The epoch was raised, durably, before a server reads its first record; every batch finds it
 *      unchanged or does nothing.
 *  (4) What a commit says of the epoch it says of the moment before it was sent, or later.
 *  (5) After a failure the store does nothing more (D9).
 */
#include "store/backend.h"

#include "base/check.h"
#include "store/postgres_batch.h"
#include "store/postgres_fence.h"
#include "store/postgres_load.h"
#include "store/postgres_schema.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#define MS_NS              UINT64_C(1000000)
#define SECOND_NS          (1000 * MS_NS)
#define TIMEOUT_DEFAULT_NS (30 * SECOND_NS)
#define PAUSE_MIN_NS       (20 * MS_NS)
#define PAUSE_MAX_NS       (500 * MS_NS)
#define CONNECT_NS         (5 * SECOND_NS) /* one attempt; the next one is heard at once */
#define LOCK_NS            (10 * SECOND_NS)
#define STANDBY_PAUSE_NS   (200 * MS_NS)
/* A commit that took longer was made who knows when: the epoch is looked at once more. */
#define PROMPT_NS SECOND_NS
/* For one last attempt when time is up; the driver's patience ends later. */
#define LAST_LOOK_NS (2 * SECOND_NS)
/* A standby lets the active server come back first when PostgreSQL was away for both. */
#define STANDBY_COURTESY_NS (3 * SECOND_NS)

struct postgres {
    struct postgres_session session;
    struct store_options options;
    struct postgres_batch *batch;
    struct postgres_fence fence; /* as it is in the database, as far as we know */
    uint64_t checked_ns;         /* it was ours then, or later, by CLOCK_BOOTTIME */
    char shown[160];             /* the URL, for messages */
    char said[512];              /* the last sentence of this wait */
    bool has_failed;
};

/* "store postgres:...: WHAT: CAUSE; NEXT STEP" */
static int fail(const struct postgres *postgres, int exit_code, const char *what, const char *next,
                struct store_failure *ret_failure)
{
    store_fail(ret_failure, exit_code, "store %.120s: %s: %.180s; %s", postgres->shown, what,
               postgres->session.error.text, next);
    return -EIO;
}

/* Says it once, and again when the cause is another one. */
static void say(struct postgres *postgres, const char *what)
{
    char sentence[sizeof postgres->said];
    (void)snprintf(sentence, sizeof sentence, "store %s: %s: %s", postgres->shown, what,
                   postgres->session.error.text);
    if (postgres->options.say == NULL || strcmp(sentence, postgres->said) == 0)
        return;
    memcpy(postgres->said, sentence, sizeof sentence);
    postgres->options.say(postgres->options.context, sentence);
}

static bool is_cancelled(const struct postgres *postgres)
{
    return postgres->options.is_cancelled != NULL &&
           postgres->options.is_cancelled(postgres->options.context);
}

static uint64_t grow_pause(uint64_t pause_ns)
{
    return pause_ns * 2 > PAUSE_MAX_NS ? PAUSE_MAX_NS : pause_ns * 2;
}

/* ---- opening ---- */

#define ADVICE_AWAY                                                                                \
    "start PostgreSQL, or correct the connection (psql with the same words must work), then "      \
    "start "                                                                                       \
    "again; nothing is lost"

/* Of a step that failed: -EAGAIN if it may succeed later, and -EIO. */
static int fail_for_now(const struct postgres *postgres, const char *what, const char *next,
                        struct store_failure *ret_failure)
{
    int code = fail(postgres, STORE_EXIT_STORE, what, next, ret_failure);
    return postgres_error_may_pass(&postgres->session.error) ? -EAGAIN : code;
}

/* Nobody waits any more: told to stop, or the time is up, which it never is for a standby. */
static bool is_over(const struct postgres *postgres, uint64_t deadline_ns)
{
    return is_cancelled(postgres) ||
           (postgres_now_ns() >= deadline_ns && !postgres->options.is_standby);
}

/* Sleeps, and wakes up when it is told to stop. */
static void rest(const struct postgres *postgres, uint64_t rest_ns)
{
    uint64_t until_ns = postgres_now_ns() + rest_ns;
    while (!is_cancelled(postgres) && postgres_pause(STANDBY_PAUSE_NS, until_ns))
        continue;
}

/* Says what is waited for, and waits. False: enough of that. */
static bool wait_on(struct postgres *postgres, uint64_t pause_ns, uint64_t deadline_ns)
{
    if (is_over(postgres, deadline_ns))
        return false;
    say(postgres, "waiting for PostgreSQL");
    rest(postgres, pause_ns);
    return !is_over(postgres, deadline_ns);
}

/* Connects, as long as it takes. 0, or as a step that failed. */
static int connect_patiently(struct postgres *postgres, uint64_t deadline_ns,
                             struct store_failure *ret_failure)
{
    for (uint64_t pause_ns = PAUSE_MIN_NS;; pause_ns = grow_pause(pause_ns)) {
        uint64_t try_until_ns = postgres_now_ns() + CONNECT_NS;
        if (try_until_ns > deadline_ns && !postgres->options.is_standby)
            try_until_ns = deadline_ns;
        if (postgres_session_connect(&postgres->session, try_until_ns) == POSTGRES_DONE)
            return 0;
        int code = fail_for_now(postgres, "cannot connect", ADVICE_AWAY, ret_failure);
        if (code != -EAGAIN || !wait_on(postgres, pause_ns, deadline_ns))
            return code;
    }
}

/* Connected: asks for the lock until somebody must decide what now. 0, -EAGAIN, -EIO. */
static int ask_for_lock(struct postgres *postgres, uint64_t deadline_ns,
                        struct store_failure *ret_failure)
{
    bool is_standby = postgres->options.is_standby;
    for (;;) {
        switch (postgres_fence_lock(&postgres->session, postgres_now_ns() + LOCK_NS)) {
        case POSTGRES_LOCK_TAKEN:
            return 0;
        case POSTGRES_LOCK_FAILED:
            return fail_for_now(postgres, "cannot take its lock", ADVICE_AWAY, ret_failure);
        case POSTGRES_LOCK_OTHERS:
            break;
        }
        say(postgres, is_standby ? "standing by" : "waiting for it");
        if (is_over(postgres, deadline_ns))
            return fail(postgres, STORE_EXIT_STORE, "in use by another server",
                        "stop that one, or start this one with --standby", ret_failure);
        rest(postgres, STANDBY_PAUSE_NS);
    }
}

/* The lock, or the wait for it. The connection may come and go meanwhile. As a step. */
static int lock_patiently(struct postgres *postgres, uint64_t deadline_ns,
                          struct store_failure *ret_failure)
{
    for (uint64_t pause_ns = PAUSE_MIN_NS;; pause_ns = grow_pause(pause_ns)) {
        bool was_away = pause_ns > PAUSE_MIN_NS;
        int code = connect_patiently(postgres, deadline_ns, ret_failure);
        if (code != 0)
            return code;
        if (was_away && postgres->options.is_standby)
            rest(postgres, STANDBY_COURTESY_NS);
        code = ask_for_lock(postgres, deadline_ns, ret_failure);
        if (code != -EAGAIN || !wait_on(postgres, pause_ns, deadline_ns))
            return code;
    }
}

static int prepare_schema(struct postgres *postgres, uint64_t deadline_ns,
                          struct store_failure *ret_failure)
{
    uint32_t version = 0;
    struct postgres_session *session = &postgres->session;
    if (postgres_schema_version(session, deadline_ns, &version) != POSTGRES_DONE)
        return fail_for_now(postgres, "cannot read the version of its tables", ADVICE_AWAY,
                            ret_failure);
    if (version > postgres_migration_count) {
        (void)snprintf(session->error.text, sizeof session->error.text,
                       "version %u, this holdfast knows %u", version, postgres_migration_count);
        return fail(postgres, STORE_EXIT_NEWER, "its tables were made by a newer holdfast",
                    "run that version, or \"holdfast store migrate --down\" with it; nothing was "
                    "changed",
                    ret_failure);
    }
    if (version == postgres_migration_count)
        return 0;
    if (postgres->options.is_reader) {
        (void)snprintf(session->error.text, sizeof session->error.text, "version %u of %u", version,
                       postgres_migration_count);
        return fail(postgres, STORE_EXIT_STORE, "its tables are not up to date",
                    "run \"holdfast store migrate\" first", ret_failure);
    }
    if (postgres_schema_move(session, version, postgres_migration_count, deadline_ns) !=
        POSTGRES_DONE)
        return fail_for_now(
            postgres, "cannot make its tables",
            "use a database of its own, and let its owner run \"holdfast store migrate\"",
            ret_failure);
    return 0;
}

static int begin_fence(struct postgres *postgres, uint64_t deadline_ns,
                       struct store_failure *ret_failure)
{
    struct postgres_session *session = &postgres->session;
    enum postgres_outcome outcome = POSTGRES_DONE;
    if (postgres->options.is_server)
        outcome = postgres_fence_raise(session, deadline_ns, &postgres->fence);
    else if (!postgres->options.is_reader)
        outcome = postgres_fence_read(session, deadline_ns, &postgres->fence);
    if (outcome == POSTGRES_DONE && !postgres->options.is_reader)
        outcome = postgres_batch_prepare(session, deadline_ns);
    if (outcome == POSTGRES_DONE)
        return 0;
    return fail_for_now(postgres, "cannot begin", ADVICE_AWAY, ret_failure);
}

/* 0, -EAGAIN, -EIO. */
static int open_once(struct postgres *postgres, uint64_t deadline_ns, struct store_summary *summary,
                     struct store_failure *ret_failure)
{
    const struct store_options *options = &postgres->options;
    int code = options->is_reader ? connect_patiently(postgres, deadline_ns, ret_failure)
                                  : lock_patiently(postgres, deadline_ns, ret_failure);
    deadline_ns = postgres_now_ns() + options->timeout_ns; /* somebody may have had the lock long */
    if (code == 0)
        code = prepare_schema(postgres, deadline_ns, ret_failure);
    if (code == 0)
        code = begin_fence(postgres, deadline_ns, ret_failure);
    if (code == 0 &&
        postgres_load_slots(&postgres->session, deadline_ns, summary->slots_used) != POSTGRES_DONE)
        code = fail_for_now(postgres, "cannot read it", ADVICE_AWAY, ret_failure);
    return code;
}

/* What is refused for now, or lost on the way, is tried again, as a database that is away. */
static int open_store(struct postgres *postgres, struct store_summary *summary,
                      struct store_failure *ret_failure)
{
    uint64_t deadline_ns = postgres_now_ns() + postgres->options.timeout_ns;
    for (uint64_t pause_ns = PAUSE_MIN_NS;; pause_ns = grow_pause(pause_ns)) {
        int code = open_once(postgres, deadline_ns, summary, ret_failure);
        if (code != -EAGAIN || !wait_on(postgres, pause_ns, deadline_ns))
            return code;
    }
}

static void postgres_close(void *self)
{
    struct postgres *postgres = self;
    postgres_session_done(&postgres->session);
    postgres_batch_free(postgres->batch);
    free(postgres);
}

static void *postgres_open(const char *rest, const struct store_options *options,
                           struct store_summary *ret_summary, struct store_failure *ret_failure)
{
    if (rest[0] == '\0' || options->sync_process) {
        store_fail(ret_failure, STORE_EXIT_USAGE, "store \"postgres:\": %s",
                   rest[0] == '\0'
                       ? "the connection is missing; use postgres:CONNINFO, as in "
                         "postgres:host=db1 dbname=holdfast"
                       : "--sync process is for lmdb: only; PostgreSQL always commits durably");
        return NULL;
    }
    struct postgres *postgres = calloc(1, sizeof *postgres);
    int code = -ENOMEM;
    if (postgres != NULL && (postgres->batch = postgres_batch_new()) != NULL)
        code = postgres_session_init(&postgres->session, rest);
    if (code != 0) {
        if (code == -EINVAL)
            store_fail(ret_failure, STORE_EXIT_USAGE,
                       "store \"postgres:\": %s; use postgres:CONNINFO, as in "
                       "postgres:host=db1 dbname=holdfast",
                       postgres->session.error.text);
        else
            store_fail(ret_failure, STORE_EXIT_STORE, "store \"postgres:\": out of memory");
        if (postgres != NULL)
            postgres_close(postgres);
        return NULL;
    }
    char url[sizeof postgres->shown + 16];
    (void)snprintf(url, sizeof url, "postgres:%s", rest);
    store_show_url(url, postgres->shown, sizeof postgres->shown);
    postgres->options = *options;
    if (postgres->options.timeout_ns == 0)
        postgres->options.timeout_ns = TIMEOUT_DEFAULT_NS;
    if (open_store(postgres, ret_summary, ret_failure) != 0) {
        postgres_close(postgres);
        return NULL;
    }
    return postgres;
}

/* ---- reading ---- */

static int postgres_load(void *self, store_visit_fn visit, void *context,
                         struct store_failure *ret_failure)
{
    struct postgres *postgres = self;
    const struct store_options *options = &postgres->options;
    /* The core adds one for its own run, and that is the epoch that was raised for it. */
    enum postgres_load_epoch epoch = options->is_server   ? POSTGRES_LOAD_EPOCH_BEFORE
                                     : options->is_reader ? POSTGRES_LOAD_EPOCH_NOW
                                                          : POSTGRES_LOAD_EPOCH_STORED;
    struct postgres_session *session = &postgres->session;
    struct postgres_loaded loaded = {0};
    enum postgres_outcome outcome =
        postgres_load_all(session, options->timeout_ns, epoch, visit, context, &loaded);
    if (loaded.stop != 0)
        return loaded.stop;
    /* Who reads no number begins with 1; nobody else has this epoch, so nobody confuses the two. */
    bool is_lost = !loaded.has_server && postgres->fence.txn > 0;
    if (outcome == POSTGRES_DONE && options->is_server && is_lost)
        outcome = postgres_fence_restart(session, postgres_now_ns() + options->timeout_ns,
                                         &postgres->fence);
    if (outcome != POSTGRES_DONE)
        return fail(postgres, STORE_EXIT_STORE, "cannot read it", ADVICE_AWAY, ret_failure);
    return 0;
}

/* ---- writing ---- */

enum verdict {
    VERDICT_GO_ON, /* connected, and the batch is not in the database */
    VERDICT_LANDED,
    VERDICT_LATER,
    VERDICT_REPLACED,
    VERDICT_WENT_BACK, /* what PostgreSQL had confirmed is gone */
    VERDICT_FAILED,
};

static enum verdict judge_error(const struct postgres *postgres)
{
    return postgres_error_may_pass(&postgres->session.error) ? VERDICT_LATER : VERDICT_FAILED;
}

/* The numbers are not those that this batch needs: whose doing is that? */
static enum verdict judge_fence(struct postgres *postgres, const struct postgres_fence *next,
                                const struct postgres_fence *found)
{
    struct postgres_error *error = &postgres->session.error;
    (void)snprintf(error->text, sizeof error->text,
                   "it is at epoch %llu and batch %llu, not %llu and %llu",
                   (unsigned long long)found->epoch, (unsigned long long)found->txn,
                   (unsigned long long)postgres->fence.epoch, (unsigned long long)next->txn - 1);
    return found->epoch > postgres->fence.epoch ? VERDICT_REPLACED : VERDICT_WENT_BACK;
}

/* A new connection, the lock, and what became of the batch if its commit was cut. */
static enum verdict come_back(struct postgres *postgres, const struct postgres_fence *next,
                              uint64_t deadline_ns)
{
    struct postgres_session *session = &postgres->session;
    struct postgres_fence found;
    uint64_t try_until_ns = postgres_now_ns() + CONNECT_NS;
    if (postgres_session_connect(
            session, try_until_ns < deadline_ns ? try_until_ns : deadline_ns) != POSTGRES_DONE)
        return judge_error(postgres);
    switch (postgres_fence_lock(session, deadline_ns)) {
    case POSTGRES_LOCK_TAKEN:
        break;
    case POSTGRES_LOCK_OTHERS:
        return VERDICT_REPLACED;
    case POSTGRES_LOCK_FAILED:
        postgres_session_cut(session);
        return judge_error(postgres);
    }
    if (postgres_batch_prepare(session, deadline_ns) != POSTGRES_DONE ||
        postgres_fence_read(session, deadline_ns, &found) != POSTGRES_DONE) {
        postgres_session_cut(session);
        return judge_error(postgres);
    }
    if (found.epoch == postgres->fence.epoch && found.txn == next->txn - 1)
        return VERDICT_GO_ON;
    if (found.epoch == next->epoch && found.txn == next->txn)
        return VERDICT_LANDED;
    return judge_fence(postgres, next, &found);
}

static enum verdict attempt(struct postgres *postgres, const struct postgres_fence *next,
                            uint64_t deadline_ns)
{
    if (postgres->session.connection == NULL) {
        enum verdict verdict = come_back(postgres, next, deadline_ns);
        if (verdict != VERDICT_GO_ON)
            return verdict;
    }
    switch (postgres_batch_send(postgres->batch, &postgres->session, postgres->fence.epoch,
                                next->epoch, deadline_ns)) {
    case POSTGRES_DONE:
        return VERDICT_LANDED;
    case POSTGRES_LOST:
        return VERDICT_LATER;
    case POSTGRES_REFUSED:
        break;
    }
    struct postgres_fence found;
    if (strcmp(postgres->session.error.state, "HF076") != 0)
        return judge_error(postgres);
    if (postgres_fence_read(&postgres->session, deadline_ns, &found) != POSTGRES_DONE)
        return VERDICT_LATER;
    return judge_fence(postgres, next, &found);
}

/*
 * The batch is in the database. That is not enough when the answer took long: it may have been
 * under way, or waited for a process that stood still, while another server took over, and what
 * follows from it would seem new. Nor when PostgreSQL warned: it may not be on the replica yet. So
 * the epoch is read once more, and then is it ours as of the moment before that.
 */
static enum verdict confirm(struct postgres *postgres, const struct postgres_fence *next,
                            uint64_t deadline_ns)
{
    struct postgres_session *session = &postgres->session;
    struct postgres_fence found;
    if (!session->is_warned && postgres_boot_ns() - session->sent_ns < PROMPT_NS)
        return VERDICT_LANDED;
    if (postgres_fence_read(session, deadline_ns, &found) != POSTGRES_DONE || session->is_warned) {
        postgres_session_cut(session);
        return VERDICT_LATER;
    }
    if (found.epoch == next->epoch && found.txn == next->txn)
        return VERDICT_LANDED;
    return judge_fence(postgres, next, &found);
}

/* VERDICT_LANDED: and the fence holds. */
static enum verdict attempt_and_confirm(struct postgres *postgres,
                                        const struct postgres_fence *next, uint64_t deadline_ns)
{
    enum verdict verdict = attempt(postgres, next, deadline_ns);
    return verdict == VERDICT_LANDED ? confirm(postgres, next, deadline_ns) : verdict;
}

static int commit_batch(struct postgres *postgres, const struct store_batch *batch,
                        struct store_failure *ret_failure)
{
    uint64_t deadline_ns = postgres_now_ns() + postgres->options.timeout_ns;
    const struct postgres_fence next = {
        .epoch = batch->epoch > postgres->fence.epoch ? batch->epoch : postgres->fence.epoch,
        .txn = batch->txn,
    };
    bool is_last = false;
    postgres->said[0] = '\0';
    for (uint64_t pause_ns = PAUSE_MIN_NS;; pause_ns = grow_pause(pause_ns)) {
        switch (attempt_and_confirm(postgres, &next, deadline_ns)) {
        case VERDICT_LANDED:
            postgres->fence = next;
            postgres->checked_ns = postgres->session.sent_ns;
            return 0;
        case VERDICT_REPLACED:
            return fail(postgres, STORE_EXIT_REPLACED, "another server has taken over",
                        "this one answers nobody any more; start it again with --standby",
                        ret_failure);
        case VERDICT_WENT_BACK:
            return fail(postgres, STORE_EXIT_STORE, "it has lost what it had confirmed",
                        "a replica that was behind may have been promoted, or a backup restored; "
                        "start with --assume-lost",
                        ret_failure);
        case VERDICT_FAILED:
            return fail(postgres, STORE_EXIT_STORE, "cannot commit",
                        "repair that in the database, then start again; nothing that was answered "
                        "is lost",
                        ret_failure);
        case VERDICT_GO_ON:
        case VERDICT_LATER:
            break;
        }
        if (is_last)
            return fail(postgres, STORE_EXIT_STORE, "no commit within --store-timeout",
                        "start PostgreSQL, or make room for it, then start again; nothing that was "
                        "answered is lost",
                        ret_failure);
        say(postgres, "a commit failed and is tried again");
        if (!postgres_pause(pause_ns, deadline_ns)) {
            /* The time may have passed while this process stood still. Who is in office now is
             * worth a look: one who was replaced says so. */
            is_last = true;
            deadline_ns = postgres_now_ns() + LAST_LOOK_NS;
        }
    }
}

static int postgres_commit(void *self, const struct store_batch *batch,
                           struct store_failure *ret_failure)
{
    struct postgres *postgres = self;
    if (postgres->has_failed || postgres->options.is_reader) {
        store_fail(ret_failure, STORE_EXIT_STORE, "store %s: %s", postgres->shown,
                   postgres->has_failed ? "an earlier commit failed; start again"
                                        : "opened to be read only; nothing was written");
        return -EIO;
    }
    if (postgres_batch_fill(postgres->batch, batch) != 0) {
        postgres->has_failed = true;
        store_fail(ret_failure, STORE_EXIT_STORE,
                   "store %s: out of memory for batch %llu; raise the memory limit",
                   postgres->shown, (unsigned long long)batch->txn);
        return -EIO;
    }
    int code = commit_batch(postgres, batch, ret_failure);
    postgres->has_failed = code != 0;
    return code;
}

static bool postgres_tend(void *self)
{
    (void)self;
    return false; /* PostgreSQL tends itself */
}

static bool postgres_has_room(const void *self)
{
    (void)self;
    return true; /* how much there is only PostgreSQL's machine knows */
}

static uint64_t postgres_checked_ns(const void *self)
{
    const struct postgres *postgres = self;
    return postgres->checked_ns;
}

const struct store_backend store_postgres = {
    .scheme = "postgres",
    .usage = "postgres:CONNINFO",
    .is_shared = true,
    .open = postgres_open,
    .load = postgres_load,
    .commit = postgres_commit,
    .tend = postgres_tend,
    .has_room = postgres_has_room,
    .close = postgres_close,
    .checked_ns = postgres_checked_ns,
    .migrate = postgres_migrate,
};
