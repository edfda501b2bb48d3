/*
 * workload.c -- registers, locks, repeats and removes under a recorder; see workload.h.
 *
 * Ten links from ten addresses (two of them UDP), three owners on each. A round posts one operation
 * for some of the owners without waiting in between, so that a batch holds several and the next
 * fills while one is synced, and then waits for all answers.
 *
 * Servers die on the way: several times in the middle of the very first start (behind the mkdir,
 * behind the creation and behind the renaming of the data file and of the journal, behind a
 * commit), once in the middle of a round, in each sync of the start that follows, and at the end.
 * What a killed process left unsynced is the next one's to be careful with. An operation without an
 * answer is posted again to the next server, and locks are reclaimed there.
 */
#include "workload.h"

#include "history.h"
#include "runner.h"

#include "base/prng.h"
#include "peer/dial.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum {
    LINKS = 10,
    UDP_FROM = 8,
    ANSWER_MS = 60000,
    OBSERVER = HISTORY_OWNERS - 1, /* an owner that only asks for the state */
};

struct workload {
    struct prng prng;
    struct runner server;
    int tape;
    int links[LINKS];
    uint32_t posted, version;
    bool is_process;
    uint32_t missed;                             /* deaths that did not happen */
    struct history_keys keys[HISTORY_OWNERS];    /* what the client believes */
    struct history_post waiting[HISTORY_OWNERS]; /* without an answer yet; xid 0: none */
    char log[512], text[800];
};

const char *workload_store(const struct workload_options *options)
{
    static char path[512];
    snprintf(path, sizeof(path), "%s/recorded-%s", options->directory, options->sync);
    return path;
}

/* ---- servers ---- */

static bool start(struct workload *workload, const char *kill)
{
    workload->server.kill = kill;
    if (tape_append(workload->tape, TAPE_START, NULL, 0) != 0)
        return false;
    return runner_start(&workload->server);
}

static void stop(struct workload *workload)
{
    runner_kill(&workload->server);
    (void)!tape_append(workload->tape, TAPE_KILL, NULL, 0);
    for (uint32_t i = 0; i < LINKS; i++) {
        if (workload->links[i] >= 0)
            close(workload->links[i]);
        workload->links[i] = -1;
    }
}

/* The start must die in its place. One that does not is held against the test at its end: what is
 * wrong with such a store shows better in the replay. */
static const char *die_starting(struct workload *workload, enum tape_type type, unsigned count)
{
    char kill[32];
    snprintf(kill, sizeof(kill), "%d:%u", (int)type, count);
    bool is_ready = start(workload, kill);
    stop(workload);
    if (!is_ready && !workload->server.was_killed)
        return "a start ended before it was killed";
    workload->missed += is_ready;
    return NULL;
}

static const char *open_links(struct workload *workload)
{
    struct history_name name;
    for (uint32_t i = 0; i < LINKS; i++) {
        history_name(i, 0, &name);
        struct dial_route route = {.is_udp = i >= UDP_FROM,
                                   .server = dial_endpoint_v4(0x7f000001, workload->server.port),
                                   .source = dial_endpoint_v4(name.address, 0)};
        workload->links[i] = dial_open(&route, ANSWER_MS);
        if (workload->links[i] < 0)
            return "cannot connect to the server";
    }
    return NULL;
}

static const char *start_serving(struct workload *workload)
{
    if (start(workload, NULL))
        return open_links(workload);
    snprintf(workload->text, sizeof(workload->text), "the server does not start: %s",
             runner_last_line(workload->server.log));
    return workload->text;
}

/* ---- calls ---- */

static void put_lock(struct packet *call, const struct history_post *post)
{
    bool is_lock = post->operation == HISTORY_ADD;
    struct peer_nlm_args args = {.cookie = peer_nlm_bytes_of(&post->xid, sizeof(post->xid)),
                                 .exclusive = is_lock,
                                 .reclaim = post->is_reclaim,
                                 .state = 3,
                                 .lock = history_lock(post)};
    peer_nlm_put_call(call, post->xid, HISTORY_NLM, is_lock ? PEER_NLM_LOCK : PEER_NLM_UNLOCK,
                      &args);
}

static void put_registration(struct packet *call, const struct history_post *post)
{
    struct history_name name;
    uint8_t priv[PEER_NSM_PRIV_LEN];
    history_name(post->owner, post->key, &name);
    struct peer_nsm_id id = history_id(&name);
    history_priv(post, priv);
    switch ((enum history_operation)post->operation) {
    case HISTORY_ADD:
        peer_nsm_put_mon(call, post->xid, &id, priv);
        break;
    case HISTORY_REMOVE:
        peer_nsm_put_unmon(call, post->xid, &id);
        break;
    case HISTORY_REMOVE_ALL:
        peer_nsm_put_unmon_all(call, post->xid, &id);
        break;
    case HISTORY_STAT:
        peer_nsm_put_stat(call, post->xid, id.mon_name);
        break;
    }
}

static const char *post(struct workload *workload, struct history_post *post)
{
    static struct packet call;
    post->xid = HISTORY_XID + workload->posted++;
    if (history_is_locker(post->owner))
        put_lock(&call, post);
    else
        put_registration(&call, post);
    workload->waiting[post->owner] = *post;
    if (tape_append(workload->tape, TAPE_POST, post, sizeof(*post)) != 0)
        return "cannot write to the tape";
    const uint32_t link = post->owner % LINKS;
    int code = link >= UDP_FROM
                   ? dial_send(workload->links[link], call.bytes, call.len, ANSWER_MS)
                   : dial_send_record(workload->links[link], call.bytes, call.len, ANSWER_MS);
    return code == 0 ? NULL : "cannot send a call";
}

static const char *take_answer(struct workload *workload, uint32_t link)
{
    static struct packet answer;
    struct packet_reply reply;
    int len = link >= UDP_FROM ? dial_receive(workload->links[link], answer.bytes,
                                              sizeof(answer.bytes), ANSWER_MS)
                               : dial_receive_record(workload->links[link], &answer, ANSWER_MS);
    if (len < 0 || !packet_get_reply(answer.bytes, (uint32_t)len, &reply))
        return "no answer came, or one that is no RPC reply";
    for (uint32_t owner = link; owner < HISTORY_OWNERS; owner += LINKS)
        if (workload->waiting[owner].xid == reply.xid) {
            history_apply(&workload->keys[owner], &workload->waiting[owner]);
            workload->waiting[owner].xid = 0;
            return NULL;
        }
    return "an answer to a call that was not made on this connection";
}

static const char *take_answers(struct workload *workload, uint32_t links)
{
    const char *why = NULL;
    for (uint32_t owner = 0; owner < HISTORY_OWNERS && !why; owner++)
        while (!why && owner % LINKS < links && workload->waiting[owner].xid != 0)
            why = take_answer(workload, owner % LINKS);
    return why;
}

/* ---- rounds ---- */

/* Half of the keys are there in the long run. */
static struct history_post choose(struct workload *workload, uint32_t owner)
{
    struct history_post post = {.owner = owner,
                                .key = (uint32_t)prng_below(&workload->prng, HISTORY_KEYS)};
    bool is_known = workload->keys[owner].version[post.key] != 0;
    uint64_t dice = prng_below(&workload->prng, 100);
    if (dice < (is_known ? 40 : 80)) {
        post.operation = HISTORY_ADD;
        post.version = ++workload->version;
    } else {
        post.operation = dice < 94 ? HISTORY_REMOVE : HISTORY_REMOVE_ALL;
    }
    return post;
}

/* One operation for each owner that waits for none, or for `percent` of them. */
static const char *post_round(struct workload *workload, uint32_t percent)
{
    const char *why = NULL;
    for (uint32_t owner = 0; owner < OBSERVER && !why; owner++) {
        if (workload->waiting[owner].xid != 0 || !prng_chance(&workload->prng, percent))
            continue;
        struct history_post next = choose(workload, owner);
        why = post(workload, &next);
    }
    return why;
}

/* Asks for the state: the first answer of a start, and one that needs no commit of its own. */
static const char *ask_state(struct workload *workload)
{
    struct history_post stat = {.operation = HISTORY_STAT, .owner = OBSERVER};
    const char *why = post(workload, &stat);
    return why ? why : take_answer(workload, OBSERVER % LINKS);
}

/* What has no answer yet. A new lock would have to wait for the end of grace: who does not know
 * whether it has it unlocks it. */
static const char *post_again(struct workload *workload)
{
    const char *why = NULL;
    for (uint32_t owner = 0; owner < HISTORY_OWNERS && !why; owner++)
        if (workload->waiting[owner].xid != 0) {
            struct history_post again = workload->waiting[owner];
            if (history_is_locker(owner) && again.operation == HISTORY_ADD)
                again.operation = HISTORY_REMOVE;
            why = post(workload, &again);
        }
    return why ? why : take_answers(workload, LINKS);
}

/* Every lock client has what it had; with the last of them grace ends. */
static const char *reclaim(struct workload *workload)
{
    const char *why = NULL;
    for (uint32_t key = 0; key < HISTORY_KEYS && !why; key++) {
        for (uint32_t owner = 0; owner < OBSERVER && !why; owner++) {
            struct history_post lock = {.operation = HISTORY_ADD,
                                        .owner = owner,
                                        .key = key,
                                        .version = workload->keys[owner].version[key],
                                        .is_reclaim = true};
            if (history_is_locker(owner) && lock.version != 0)
                why = post(workload, &lock);
        }
        if (!why)
            why = take_answers(workload, LINKS);
    }
    return why;
}

static const char *run_rounds(struct workload *workload, uint32_t count)
{
    static const uint32_t percents[] = {5, 15, 50, 100};
    const char *why = NULL;
    for (uint32_t i = 0; i < count && !why; i++) {
        why = post_round(workload, percents[prng_below(&workload->prng, 4)]);
        if (!why)
            why = take_answers(workload, LINKS);
    }
    return why;
}

/* A kill while half of the owners may have been answered and the others just have posted. */
static const char *die_working(struct workload *workload)
{
    const char *why = post_round(workload, 100);
    if (!why)
        why = take_answers(workload, LINKS / 2);
    if (!why)
        why = post_round(workload, 100);
    stop(workload);
    return why;
}

struct death {
    enum tape_type type;
    unsigned count;
};

static const char *die_in(struct workload *workload, const struct death *deaths, size_t count)
{
    const char *why = NULL;
    for (size_t i = 0; i < count && !why; i++)
        why = die_starting(workload, deaths[i].type, deaths[i].count);
    return why;
}

static const char *run_first_starts(struct workload *workload)
{
    static const struct death full[] = {
        {TAPE_MKDIR, 1},        {TAPE_CREATE, 2}, /* the lock, then the data file */
        {TAPE_WRITE_SYNCED, 1}, {TAPE_RENAME, 1}, {TAPE_CREATE, 1}, /* the journal, */
        {TAPE_RENAME, 1},                                           /* complete, */
        {TAPE_WRITE_SYNCED, 1}};                                    /* and known to the data file */
    static const struct death process[] = {{TAPE_RENAME, 1},        /* the data file */
                                           {TAPE_RENAME, 1},        /* the journal */
                                           {TAPE_RENAME, 1}};       /* the mark `unsynced` */
    return workload->is_process ? die_in(workload, process, 3) : die_in(workload, full, 7);
}

/* Directory above, directory, old and new owner of the journal, tables that take what it had, first
 * frame: it dies in each of these syncs. */
static const char *run_second_starts(struct workload *workload)
{
    static const struct death full[] = {{TAPE_SYNC_BEGIN, 2},   {TAPE_SYNC_BEGIN, 3},
                                        {TAPE_SYNC_BEGIN, 4},   {TAPE_SYNC_BEGIN, 5},
                                        {TAPE_WRITE_SYNCED, 1}, {TAPE_SYNC_BEGIN, 6}};
    static const struct death process[] = {
        {TAPE_SYNC_BEGIN, 4}, {TAPE_SYNC_BEGIN, 5}, {TAPE_SYNC_BEGIN, 6}};
    return workload->is_process ? die_in(workload, process, 3) : die_in(workload, full, 6);
}

static const char *run_all(struct workload *workload, uint32_t rounds)
{
    const char *why = run_first_starts(workload);
    if (!why)
        why = start_serving(workload);
    if (!why)
        why = ask_state(workload);
    if (!why)
        why = run_rounds(workload, rounds / 2);
    if (!why)
        why = die_working(workload);
    if (!why)
        why = run_second_starts(workload);
    if (!why)
        why = start_serving(workload);
    if (!why)
        why = ask_state(workload);
    if (!why)
        why = post_again(workload);
    if (!why)
        why = reclaim(workload);
    if (!why)
        why = run_rounds(workload, rounds - rounds / 2);
    stop(workload);
    return why;
}

const char *workload_run(const struct workload_options *options, uint32_t *ret_missed)
{
    static struct workload workload;
    workload = (struct workload){.prng = {options->seed},
                                 .is_process = strcmp(options->sync, "process") == 0};
    snprintf(workload.log, sizeof(workload.log), "%s/log", options->directory);
    workload.server = (struct runner){.store = workload_store(options),
                                      .log = workload.log,
                                      .sync = options->sync,
                                      .tape = options->tape};
    for (uint32_t i = 0; i < LINKS; i++)
        workload.links[i] = -1;
    workload.tape = open(options->tape, O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0600);
    if (workload.tape < 0)
        return "cannot make the tape";
    const char *why = run_all(&workload, options->rounds);
    close(workload.tape);
    *ret_missed = workload.missed;
    return why;
}
