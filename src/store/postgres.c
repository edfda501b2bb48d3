/*
 * postgres.c -- the shared back end: a PostgreSQL database that several machines can reach.
 *
 *   open    postgres_open.c
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
 * After a lost connection nobody knows whether the commit landed. PostgreSQL may even be still at
 * it: reading the number back locks its row and so waits for that.
 *
 * Always true:
 *  (1) A batch is sent again only when the number in the database is the one before it.
 *  (2) A session that commits holds the advisory lock, taken by that session.
 *  (3) The epoch was raised, durably, before a server reads its first record; every batch finds it
 *      unchanged or does nothing.
 *  (4) What a commit says of the epoch it says of the moment before it was sent, or later.
 *  (5) After a failure the store does nothing more (D9).
 */
#include "store/postgres.h"

#include "base/check.h"
#include "base/units.h"
#include "store/postgres_load.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#define TIMEOUT_DEFAULT_NS (30 * SECOND_NS)
#define PAUSE_MAX_NS       (SECOND_NS / 2)
/* A commit that took longer was made who knows when: the epoch is looked at once more. */
#define PROMPT_NS SECOND_NS
/* And one that took longer than this may have been made by a PostgreSQL that was itself replaced
 * meanwhile, by its replica. */
#define SLOW_NS (5 * SECOND_NS)
/* For a look at who is active, while nothing is committed. */
#define CONFIRM_NS (2 * SECOND_NS)
/* For one last attempt when time is up; the driver's patience ends later. */
#define LAST_LOOK_NS (2 * SECOND_NS)

int postgres_fail(const struct postgres *postgres, int exit_code, const char *what,
                  const char *next, struct store_failure *ret_failure)
{
    store_fail(ret_failure, exit_code, "store %.120s: %s: %.180s; %s", postgres->shown, what,
               postgres->session.error.text, next);
    return -EIO;
}

void postgres_say(struct postgres *postgres, const char *what)
{
    char sentence[sizeof postgres->said];
    (void)snprintf(sentence, sizeof sentence, "store %s: %s: %s", postgres->shown, what,
                   postgres->session.error.text);
    if (postgres->options.say == NULL || strcmp(sentence, postgres->said) == 0)
        return;
    memcpy(postgres->said, sentence, sizeof sentence);
    postgres->options.say(postgres->options.context, sentence);
}

uint64_t postgres_grow_pause(uint64_t pause_ns)
{
    return pause_ns * 2 > PAUSE_MAX_NS ? PAUSE_MAX_NS : pause_ns * 2;
}

/* ---- opening and closing ---- */

static void postgres_close(void *self)
{
    struct postgres *postgres = self;
    postgres_session_done(&postgres->session);
    postgres_batch_free(postgres->batch);
    free(postgres);
}

/* From the whole string: who cuts it first may cut off what tells that a part of it is secret. */
static void show_url(struct postgres *postgres)
{
    const char *conninfo = postgres->session.conninfo;
    const char *scheme = strncmp(conninfo, "postgres:", 9) == 0 ? "" : "postgres:";
    size_t len = strlen(scheme);
    memcpy(postgres->shown, scheme, len);
    store_show_url(conninfo, postgres->shown + len, sizeof postgres->shown - len);
}

static void *postgres_open(const char *rest, const struct store_options *options,
                           struct store_summary *ret_summary, struct store_failure *ret_failure)
{
    if (rest[0] == '\0' || options->sync_process) {
        store_fail(ret_failure, STORE_EXIT_USAGE, "store \"postgres:\": %s",
                   rest[0] == '\0'
                       ? "missing connection string; use postgres:CONNINFO, as in "
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
    show_url(postgres);
    postgres->options = *options;
    if (postgres->options.timeout_ns == 0)
        postgres->options.timeout_ns = TIMEOUT_DEFAULT_NS;
    if (postgres_open_begin(postgres, ret_summary, ret_failure) != 0) {
        postgres_close(postgres);
        return NULL;
    }
    return postgres;
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
    if (postgres_session_connect(session, deadline_ns) != POSTGRES_DONE)
        return judge_error(postgres);
    switch (postgres_fence_lock(session, deadline_ns)) {
    case POSTGRES_LOCK_TAKEN:
        break;
    case POSTGRES_LOCK_OTHERS:
        return VERDICT_REPLACED;
    case POSTGRES_LOCK_ABSENT:
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
 * in flight, or waited for a process that stood still, while another server took over, and what
 * follows from it would seem new. Nor when PostgreSQL warned: it may not be on the replica yet. So
 * the epoch is read once more, and then is it ours as of the moment before that.
 *
 * After a warning, or after very long, the row is locked, which waits for the disk and the replica
 * as a commit does. Otherwise it is only looked at: where every commit takes seconds, so would the
 * second look, and none would ever be new enough for a call of ours to begin.
 */
static enum verdict confirm(struct postgres *postgres, const struct postgres_fence *next,
                            uint64_t deadline_ns)
{
    struct postgres_session *session = &postgres->session;
    struct postgres_fence found;
    uint64_t took_ns = postgres_boot_ns() - session->sent_ns;
    if (!session->is_warned && took_ns < PROMPT_NS)
        return VERDICT_LANDED;
    enum postgres_outcome outcome = session->is_warned || took_ns > SLOW_NS
                                        ? postgres_fence_read(session, deadline_ns, &found)
                                        : postgres_fence_look(session, deadline_ns, &found);
    if (outcome == POSTGRES_DONE && session->is_warned) {
        session->error = (struct postgres_error){0};
        (void)snprintf(session->error.text, sizeof session->error.text, "%s", session->warning);
    }
    if (outcome != POSTGRES_DONE || session->is_warned) {
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

/* Of a verdict after which nothing is tried again. `what` failed, if it is PostgreSQL's refusal. */
static int fail_for_good(const struct postgres *postgres, enum verdict verdict, const char *what,
                         struct store_failure *ret_failure)
{
    if (verdict == VERDICT_REPLACED)
        return postgres_fail(postgres, STORE_EXIT_REPLACED, "another server has taken over",
                             "this one no longer serves clients; start it again with --standby",
                             ret_failure);
    if (verdict == VERDICT_WENT_BACK)
        return postgres_fail(postgres, STORE_EXIT_STORE, "it lost records that it had confirmed",
                             "an outdated replica may have been promoted, or a backup restored; "
                             "start with --assume-lost",
                             ret_failure);
    return postgres_fail(postgres, STORE_EXIT_STORE, what,
                         "repair the database, then start again; nothing acknowledged is lost",
                         ret_failure);
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
    for (uint64_t pause_ns = POSTGRES_PAUSE_MIN_NS;; pause_ns = postgres_grow_pause(pause_ns)) {
        enum verdict verdict = attempt_and_confirm(postgres, &next, deadline_ns);
        switch (verdict) {
        case VERDICT_LANDED:
            postgres->fence = next;
            postgres->checked_ns = postgres->session.sent_ns;
            return 0;
        case VERDICT_REPLACED:
        case VERDICT_WENT_BACK:
        case VERDICT_FAILED:
            return fail_for_good(postgres, verdict, "cannot commit", ret_failure);
        case VERDICT_GO_ON:
        case VERDICT_LATER:
            break;
        }
        if (is_last)
            return postgres_fail(postgres, STORE_EXIT_STORE, "no commit within --store-timeout",
                                 "start PostgreSQL or free disk space for it, then start again; "
                                 "nothing acknowledged is lost",
                                 ret_failure);
        postgres_say(postgres, "a commit failed; retrying");
        if (!postgres_pause(pause_ns, deadline_ns)) {
            /* The time may have passed while this process was not scheduled. Check who is active
             * now: a replaced server must say so. */
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
                                        : "opened read-only; nothing was written");
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

/* ---- reading ---- */

/*
 * Begins the reading. The hook may have taken a while, and the session may have been lost since the
 * store was opened: then it is re-established as for a commit, if nobody has taken over.
 */
static int begin_load(struct postgres *postgres, struct store_failure *ret_failure)
{
    struct postgres_session *session = &postgres->session;
    uint64_t deadline_ns = postgres_now_ns() + postgres->options.timeout_ns;
    const struct postgres_fence next = {postgres->fence.epoch, postgres->fence.txn + 1};
    for (uint64_t pause_ns = POSTGRES_PAUSE_MIN_NS;; pause_ns = postgres_grow_pause(pause_ns)) {
        enum verdict verdict = VERDICT_GO_ON;
        if (session->connection == NULL)
            verdict = come_back(postgres, &next, deadline_ns);
        if (verdict == VERDICT_GO_ON &&
            postgres_load_begin(session, postgres->options.timeout_ns) == POSTGRES_DONE)
            return 0;
        if (verdict == VERDICT_REPLACED || verdict == VERDICT_WENT_BACK)
            return fail_for_good(postgres, verdict, "cannot read it", ret_failure);
        bool may_pass = verdict == VERDICT_GO_ON ? judge_error(postgres) == VERDICT_LATER
                                                 : verdict == VERDICT_LATER;
        if (postgres->options.is_reader || !may_pass || !postgres_pause(pause_ns, deadline_ns))
            return postgres_fail(postgres, STORE_EXIT_STORE, "cannot read it", POSTGRES_ADVICE,
                                 ret_failure);
        postgres_say(postgres, "waiting for PostgreSQL");
    }
}

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
    if (begin_load(postgres, ret_failure) != 0)
        return -EIO;
    enum postgres_outcome outcome =
        postgres_load_all(session, options->timeout_ns, epoch, visit, context, &loaded);
    if (loaded.stop != 0)
        return loaded.stop;
    /* Without a number to read, start with 1; nobody else has this epoch, so the two cannot be
     * confused. */
    bool is_lost = !loaded.has_server && postgres->fence.txn > 0;
    if (outcome == POSTGRES_DONE && options->is_server && is_lost)
        outcome = postgres_fence_restart(session, postgres_now_ns() + options->timeout_ns,
                                         &postgres->fence);
    if (outcome != POSTGRES_DONE)
        return postgres_fail(postgres, STORE_EXIT_STORE, "cannot read it", POSTGRES_ADVICE,
                             ret_failure);
    return 0;
}

/* The session may have been lost, and with it the lock: it is taken again, if it can be. */
static int postgres_confirm(void *self, struct store_failure *ret_failure)
{
    struct postgres *postgres = self;
    struct postgres_session *session = &postgres->session;
    uint64_t deadline_ns = postgres_now_ns() + CONFIRM_NS;
    const struct postgres_fence next = {postgres->fence.epoch, postgres->fence.txn + 1};
    struct postgres_fence found;
    enum verdict verdict = VERDICT_GO_ON;
    if (session->connection == NULL)
        verdict = come_back(postgres, &next, deadline_ns);
    if (verdict == VERDICT_GO_ON) {
        if (postgres_fence_look(session, deadline_ns, &found) != POSTGRES_DONE) {
            postgres_session_cut(session);
            verdict = judge_error(postgres);
        } else if (found.epoch != next.epoch || found.txn != next.txn - 1) {
            verdict = judge_fence(postgres, &next, &found);
        }
    }
    if (verdict == VERDICT_GO_ON) {
        postgres->checked_ns = session->sent_ns;
        return 0;
    }
    if (verdict != VERDICT_LATER)
        return fail_for_good(postgres, verdict, "cannot read it", ret_failure);
    (void)postgres_fail(postgres, STORE_EXIT_STORE, "no reply from PostgreSQL", POSTGRES_ADVICE,
                        ret_failure);
    return -EAGAIN;
}

static bool postgres_tend(void *self)
{
    (void)self;
    return false; /* PostgreSQL tends itself */
}

static bool postgres_has_room(const void *self)
{
    (void)self;
    return true; /* only PostgreSQL's machine knows how much there is */
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
    .confirm = postgres_confirm,
    .migrate = postgres_migrate,
    .list_groups = postgres_list_groups,
};
