/*
 * crowd_recovery.c -- a crowd lives through the restart of its server; see crowd_recovery.h.
 *
 * A host reclaims as Linux does: when it is told, and one lock after another. It is told under
 * several names, all with one state; a larger state means that everything must be reclaimed again.
 *
 * Answers of two links may be read in another order than they were sent in. So "grace is over" is
 * judged by what was sent: a reclaim that was not even sent when somebody got a new lock was not
 * waited for, and a LOCK that was sent after that must not be answered "in grace".
 */
#include "crowd_recovery.h"

#include <stdio.h>
#include <string.h>

#define RECLAIM_TAG CROWD_PROCESSES /* any tag that is no process: the link says which host */
#define SPREAD_NS   (20 * CROWD_MS) /* in which everybody is back after a restart */

static bool is_relying(const struct crowd *crowd, uint32_t host)
{
    for (uint32_t i = 0; i < CROWD_PER_HOST; i++)
        if (reliance_count(crowd->reliance, host * CROWD_PER_HOST + i) > 0)
            return true;
    return false;
}

/* ---- the crash ---- */

/* What it knows, and what it will do about what it does not know. */
static void lose_server(struct crowd_process *process, bool must_reclaim)
{
    bool has_call = process->pending != PEER_NLM_NULL;
    if (has_call && process->pending != PEER_NLM_LOCK)
        process->again = process->pending;
    if (process->want == CROWD_WAITS && process->again == PEER_NLM_NULL) {
        process->has_waited = true;
        /* A poll that died may have been the last one: only who sent none can just wait. */
        process->is_patient = !must_reclaim && !has_call;
    }
    /* A reclaim start knows of no waiters: they ask again (R-BLK-14). */
    if (process->want == CROWD_WAITS && must_reclaim)
        process->want = CROWD_ASKS;
    process->pending = PEER_NLM_NULL;
}

void crowd_recovery_crash(struct crowd *crowd, bool must_reclaim)
{
    uint64_t now_ns = dial_now_ns();
    for (uint32_t i = 0; i < CROWD_PROCESSES; i++) {
        lose_server(&crowd->processes[i], must_reclaim);
        crowd->processes[i].due_ns = now_ns + harness_random(&crowd->seed) % SPREAD_NS;
        reliance_restart(crowd->reliance, i, must_reclaim);
    }
    for (uint32_t i = 0; i < CROWD_HOSTS; i++) {
        struct crowd_host *host = &crowd->hosts[i];
        host->relied = is_relying(crowd, i);
        host->is_told = host->is_reclaiming = false;
    }
    crowd->must_reclaim = must_reclaim;
}

struct look {
    struct crowd *crowd;
    bool is_settled;
    bool is_known[CROWD_PROCESSES]; /* to be one that does not know of a lock */
    uint32_t unknown;
};

/* The process of a stored lock, or CROWD_PROCESSES. */
static uint32_t process_of(const struct lock_dump_lock *lock)
{
    char address[64];
    unsigned a, b, c, d;
    if (sscanf(lock->address, "%u.%u.%u.%u", &a, &b, &c, &d) != 4)
        return CROWD_PROCESSES;
    uint32_t host = (a << 24 | b << 16 | c << 8 | d) - CROWD_FIRST_ADDRESS;
    snprintf(address, sizeof(address), "client%u", host);
    if (host >= CROWD_HOSTS || strcmp(address, lock->name) != 0 || lock->svid == 0 ||
        lock->svid > CROWD_PER_HOST)
        return CROWD_PROCESSES;
    return host * CROWD_PER_HOST + lock->svid - 1;
}

static void on_lock(void *context, const struct lock_dump_lock *lock)
{
    struct look *look = context;
    struct crowd *crowd = look->crowd;
    uint32_t index = process_of(lock);
    struct reliance_range range = {lock->file, (uint32_t)lock->start, (uint32_t)lock->end,
                                   lock->exclusive};
    bool is_ours = index < CROWD_PROCESSES && lock->end < RELIANCE_CELLS && !lock->is_unmonitored;
    if (!HARNESS_EXPECT(is_ours, "a lock of %s %s, svid %u, who is nobody", lock->address,
                        lock->name, lock->svid) ||
        reliance_covers(crowd->reliance, index, &range))
        return;
    struct crowd_process *process = &crowd->processes[index];
    if (process->again != PEER_NLM_NULL)
        return; /* an UNLOCK or CANCEL that is sent again settles it */
    HARNESS_EXPECT(process->want != CROWD_WANTS_NOTHING,
                   "%s has file %u bytes %u-%u stored, and gave that back", crowd_name(index),
                   range.file, range.first, range.last);
    look->unknown += !look->is_known[index];
    look->is_known[index] = true;
    process->gives_up |= look->is_settled;
}

bool crowd_recovery_look(struct crowd *crowd, const char *store, bool is_settled,
                         struct lock_dump *ret, uint32_t *ret_unknown)
{
    struct look look = {.crowd = crowd, .is_settled = is_settled};
    bool is_read = lock_dump_read(store, on_lock, &look, ret);
    *ret_unknown = look.unknown;
    return is_read;
}

void crowd_recovery_restart(struct crowd *crowd, const struct harness_server *server)
{
    crowd->state = server->state;
    crowd->ready_ns = dial_now_ns();
    crowd->open_ns = 0;
    crowd->reclaims = 0;
}

/* ---- notices and reclaims ---- */

void crowd_recovery_notified(void *context, uint32_t index, uint32_t state)
{
    struct crowd *crowd = context;
    struct crowd_host *host = &crowd->hosts[index];
    HARNESS_EXPECT(crowd->must_reclaim, "host %u was told of state %u by a server that resumed",
                   index, state);
    HARNESS_EXPECT(state % 2 == 1 && state >= crowd->state && state >= host->told,
                   "host %u was told of state %u after %u; the server has %u", index, state,
                   host->told, crowd->state);
    if (state <= host->told)
        return; /* another name */
    host->told = state;
    host->is_told = true;
    for (uint32_t i = 0; i < CROWD_PER_HOST; i++)
        reliance_restart(crowd->reliance, index * CROWD_PER_HOST + i, true);
}

static void post_reclaim(struct crowd *crowd, uint32_t index)
{
    static struct packet packet;
    struct crowd_host *host = &crowd->hosts[index];
    struct lock_call call = crowd_call(host->reclaimer, PEER_NLM_LOCK, &host->reclaimed);
    call.reclaim = true;
    call.block = false;
    lock_call_put(&packet, &call);
    host->is_reclaiming = load_post(crowd->load, index, RECLAIM_TAG, &packet);
}

void crowd_recovery_turn(struct crowd *crowd)
{
    for (uint32_t i = 0; i < CROWD_HOSTS && crowd->must_reclaim; i++) {
        struct crowd_host *host = &crowd->hosts[i];
        for (uint32_t k = 0; k < CROWD_PER_HOST && host->is_told && !host->is_reclaiming; k++) {
            host->reclaimer = i * CROWD_PER_HOST + k;
            if (reliance_ask(crowd->reliance, host->reclaimer, &host->reclaimed))
                post_reclaim(crowd, i);
        }
    }
}

void crowd_recovery_answered(struct crowd *crowd, uint32_t index, const struct packet_reply *reply)
{
    struct crowd_host *host = &crowd->hosts[index];
    struct lock_call call = crowd_call(host->reclaimer, PEER_NLM_LOCK, &host->reclaimed);
    int status = lock_call_status(&call, reply, NULL);
    host->is_reclaiming = false;
    if (HARNESS_EXPECT(status == PEER_NLM_IS_GRANTED,
                       "%s relied on file %u bytes %u-%u, and its reclaim was answered %s",
                       crowd_name(host->reclaimer), host->reclaimed.file, host->reclaimed.first,
                       host->reclaimed.last, lock_call_text(status))) {
        crowd->reclaims++;
        reliance_reclaimed(crowd->reliance, host->reclaimer, &host->reclaimed);
    } else {
        reliance_drop(crowd->reliance, host->reclaimer, &host->reclaimed);
    }
}

/* ---- the end of grace ---- */

/* A lock that nobody has tried to reclaim so far, or CROWD_PROCESSES. */
static uint32_t find_unreclaimed(const struct crowd *crowd)
{
    for (uint32_t i = 0; i < CROWD_PROCESSES; i++)
        if (reliance_has(crowd->reliance, i, RELIANCE_MUST_RECLAIM))
            return i;
    return CROWD_PROCESSES;
}

void crowd_recovery_lock_answered(struct crowd *crowd, uint32_t process, bool is_grace)
{
    const struct crowd_process *asked = &crowd->processes[process];
    if (is_grace) {
        HARNESS_EXPECT(crowd->must_reclaim, "%s: in grace, after a resume", crowd_name(process));
        HARNESS_EXPECT(crowd->open_ns == 0 || asked->posted_ns < crowd->open_ns,
                       "%s: in grace, which was over", crowd_name(process));
        return;
    }
    if (crowd->open_ns != 0)
        return;
    uint32_t left = find_unreclaimed(crowd);
    HARNESS_EXPECT(left == CROWD_PROCESSES, "a new LOCK was served, and %s had not reclaimed yet",
                   crowd_name(left));
    crowd->open_ns = dial_now_ns();
}

uint32_t crowd_recovery_concerned(const struct crowd *crowd, uint32_t *ret_told)
{
    uint32_t concerned = 0, told = 0;
    for (uint32_t i = 0; i < CROWD_HOSTS; i++) {
        concerned += crowd->hosts[i].relied;
        told += crowd->hosts[i].relied && crowd->hosts[i].is_told;
    }
    *ret_told = told;
    return concerned;
}

bool crowd_recovery_is_over(const struct crowd *crowd)
{
    uint32_t told, concerned = crowd_recovery_concerned(crowd, &told);
    if (crowd->open_ns == 0 || (crowd->must_reclaim && told < concerned))
        return false;
    for (uint32_t i = 0; i < CROWD_PROCESSES; i++)
        if (reliance_has(crowd->reliance, i, RELIANCE_MUST_RECLAIM) ||
            reliance_has(crowd->reliance, i, RELIANCE_IS_ASKED))
            return false;
    return true;
}
