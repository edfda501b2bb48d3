/*
 * lock_guard.c -- see lock_guard.h.
 *
 * As for knfsd, who may read a file may lock it, in either mode, and so may its owner: programs
 * lock files that they opened before they took their own right away, and take exclusive locks over
 * descriptors that only read (R-SEC-11).
 */
#include "file/lock_guard.h"

#include "base/check.h"
#include "base/hash.h"
#include "base/minmax.h"
#include "base/units.h"
#include "file/service.h"

#include <errno.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

/* Who asks about what: all that a verdict depends on, comparable byte by byte. */
struct question {
    struct address from;
    uint32_t flavor, uid, gid, group_count;
    uint32_t groups[RPC_AUTH_GROUPS_MAX];
    uint32_t export_id;
    uint16_t port_class; /* a privileged port may be what makes a client listed */
    uint16_t fh_len;
    uint8_t fh[HANDLE_MAX];
};
_Static_assert(sizeof(struct question) == sizeof(struct address) + HANDLE_MAX +
                                              sizeof(uint32_t) * (RPC_AUTH_GROUPS_MAX + 6),
               "no padding: questions are compared as bytes");

struct entry {
    enum { ENTRY_FREE, ENTRY_ASKED, ENTRY_KNOWN } state;
    enum guard_verdict verdict;
    uint64_t since_ns, hash;
    struct question question;
};

struct lock_guard {
    struct entry entries[LOCK_GUARD_MAX];
    uint32_t used_count; /* of them that are not free */
};

struct lock_guard *lock_guard_new(void)
{
    return calloc(1, sizeof(struct lock_guard));
}

void lock_guard_free(struct lock_guard *guard)
{
    free(guard);
}

static uint64_t now_ns(void)
{
    struct timespec now;
    CHECK(clock_gettime(CLOCK_MONOTONIC, &now) == 0);
    return (uint64_t)now.tv_sec * SECOND_NS + (uint64_t)now.tv_nsec;
}

static bool may_lock(const struct call *call, const struct stat *st, uint32_t granted)
{
    return (granted & R_OK) != 0 || st->st_uid == call->identity.uid;
}

/* Programs on this machine are to see its locks. */
static bool is_mirrored(const struct call *call, const struct stat *st)
{
    return call->service->ofd != NULL && S_ISREG(st->st_mode) && !call->export->is_elsewhere;
}

void lock_guard_execute(struct call *call)
{
    struct stat st;
    struct descriptor *descriptor = resolve_handle(call, call->args.fh, &st);
    if (descriptor == NULL)
        return;
    if (!may_lock(call, &st, resolve_access(call, descriptor, &st, R_OK))) {
        (void)call_fail(call, NFS_ACCES);
        return;
    }
    if (!is_mirrored(call, &st))
        return;
    /* A lock that programs do not see would be none. */
    identity_own();
    int fd = descriptor_for_locks(call_cache(call), descriptor);
    if (fd < 0)
        (void)call_fail(call, call_stat_of(fd) == NFS_JUKEBOX ? NFS_JUKEBOX : NFS_IO);
}

/* What is neither there, gone nor forbidden is a file system that fails. */
static enum guard_verdict verdict_of(enum nfs_stat stat)
{
    return stat == NFS_OK        ? GUARD_ALLOWED
           : stat == NFS_ACCES   ? GUARD_NO_ACCESS
           : stat == NFS_STALE   ? GUARD_STALE
           : stat == NFS_JUKEBOX ? GUARD_AGAIN
                                 : GUARD_STUCK;
}

void lock_guard_finish(struct lock_guard *guard, const struct call *call)
{
    struct entry *entry = &guard->entries[call->job.token];
    CHECK(call->job.token < LOCK_GUARD_MAX && entry->state == ENTRY_ASKED);
    entry->verdict = verdict_of(call->result.stat);
    entry->since_ns = now_ns();
    entry->state = ENTRY_KNOWN;
}

/* From what is open and known. GUARD_LATER: it must be looked at. */
static enum guard_verdict judge_cached(struct call *call)
{
    struct stat st;
    uint32_t granted = 0;
    struct descriptor *descriptor = resolve_cached(call, call->args.fh, &st);
    if (descriptor == NULL)
        return GUARD_LATER;
    uint32_t known = descriptor_get_access(descriptor, call->identity.mark, &st.st_ctim, &granted);
    bool is_open = !is_mirrored(call, &st) || atomic_load(&descriptor->lock_fd) >= 0;
    if (may_lock(call, &st, known & granted))
        return is_open ? GUARD_ALLOWED : GUARD_LATER;
    return (known & R_OK) != 0 ? GUARD_NO_ACCESS : GUARD_LATER;
}

/* Where this question stands, or could. */
struct search {
    struct entry *found, *room;
    uint32_t asked;     /* of the same export */
    uint64_t oldest_ns; /* of these */
};

static void end_entry(struct lock_guard *guard, struct entry *entry)
{
    entry->state = ENTRY_FREE;
    guard->used_count--;
}

static struct search search_entries(struct lock_guard *guard, const struct question *question,
                                    uint64_t hash, uint64_t now)
{
    struct search search = {.oldest_ns = now};
    for (uint32_t i = 0; i < LOCK_GUARD_MAX; i++) {
        struct entry *entry = &guard->entries[i];
        if (entry->state == ENTRY_KNOWN && now - entry->since_ns > SECOND_NS)
            end_entry(guard, entry); /* who asked has gone */
        if (entry->state == ENTRY_FREE) {
            search.room = entry;
            continue;
        }
        if (entry->hash == hash && memcmp(&entry->question, question, sizeof *question) == 0)
            search.found = entry;
        if (entry->state != ENTRY_ASKED || entry->question.export_id != question->export_id)
            continue;
        search.asked++;
        search.oldest_ns = min_u64(search.oldest_ns, entry->since_ns);
    }
    return search;
}

/* What the pool has found, once. */
static enum guard_verdict take_answer(struct lock_guard *guard, const struct search *search,
                                      uint64_t now)
{
    if (search->found != NULL && search->found->state == ENTRY_KNOWN) {
        end_entry(guard, search->found);
        return search->found->verdict;
    }
    uint64_t since_ns = search->found != NULL ? search->found->since_ns : search->oldest_ns;
    bool is_stuck = now - since_ns >= (uint64_t)LOCK_GUARD_PATIENCE_S * SECOND_NS;
    return is_stuck ? GUARD_STUCK : GUARD_LATER;
}

static struct question question_of(const struct guard_question *asked, uint32_t export_id)
{
    const struct rpc_credential *credential = asked->credential;
    struct question question;
    memset(&question, 0, sizeof question);
    question.from = asked->from->address;
    question.flavor = (uint32_t)credential->flavor;
    question.uid = credential->uid;
    question.gid = credential->gid;
    question.group_count = credential->group_count;
    memcpy(question.groups, credential->groups,
           credential->group_count * sizeof credential->groups[0]);
    question.export_id = export_id;
    question.port_class = asked->from->port < 1024;
    question.fh_len = (uint16_t)asked->fh.len;
    memcpy(question.fh, asked->fh.at, asked->fh.len);
    return question;
}

/* Has the pool look at the file, if there is room for that. */
static bool ask_pool(struct file_service *service, struct call *call, struct entry *room,
                     const struct entry *asked)
{
    uint8_t *copy = call_payload(call) + call->payload_max + 8;
    memcpy(copy, call->args.fh.at, call->args.fh.len);
    call->args.fh.at = copy;
    call->job.token = (uint64_t)(room - service->lock_guard->entries);
    *room = *asked;
    if (!file_begin(service, call)) {
        room->state = ENTRY_FREE;
        return false;
    }
    service->lock_guard->used_count++;
    return true;
}

static bool is_lane_stuck(const struct call *call)
{
    return call->export != NULL && atomic_load(&call->export->lane->is_stuck);
}

/* The file itself must be looked at. An answer of the pool comes before what is known of open
 * files, or it would wait for a later call of the same caller. */
static enum guard_verdict judge_file(struct file_service *service, struct call *call,
                                     const struct question *question, bool *ret_is_asked)
{
    struct lock_guard *guard = service->lock_guard;
    struct entry asked = {.state = ENTRY_ASKED, .question = *question};
    asked.hash = hash_bytes(0, (struct bytes){(const uint8_t *)question, sizeof *question});
    asked.since_ns = now_ns();
    struct search search = {.room = &guard->entries[0], .oldest_ns = asked.since_ns};
    if (guard->used_count > 0)
        search = search_entries(guard, question, asked.hash, asked.since_ns);
    if (search.found != NULL)
        return take_answer(guard, &search, asked.since_ns);
    enum guard_verdict verdict = judge_cached(call);
    call_release_objects(call);
    call->has_identity = false;
    if (verdict != GUARD_LATER)
        return verdict;
    verdict = take_answer(guard, &search, asked.since_ns);
    if (verdict == GUARD_LATER && search.room != NULL && search.asked < LOCK_GUARD_PER_EXPORT)
        *ret_is_asked = ask_pool(service, call, search.room, &asked);
    return !*ret_is_asked && is_lane_stuck(call) ? GUARD_STUCK : verdict;
}

static enum guard_verdict judge_call(struct file_service *service,
                                     const struct guard_question *asked, uint32_t export_id)
{
    const struct job_request request = {.program = LOCK_GUARD_PROGRAM,
                                        .from = asked->from,
                                        .credential = asked->credential,
                                        .args = asked->fh};
    struct call *call = file_take_call(service, &request, 0);
    if (call == NULL)
        return GUARD_LATER;
    call->args.fh = asked->fh;
    bool is_asked = false;
    const struct question question = question_of(asked, export_id);
    enum guard_verdict verdict = judge_file(service, call, &question, &is_asked);
    if (!is_asked)
        file_give_back(service, call);
    return verdict;
}

enum guard_verdict lock_guard_judge(struct file_service *service,
                                    const struct guard_question *question)
{
    uint32_t id;
    struct handle_object object;
    const struct export *export = NULL;
    if (question->fh.len <= HANDLE_MAX &&
        handle_read(&service->options.key, question->fh, &id, &object))
        export = export_table_find(service->exports, id);
    if (export == NULL)
        return GUARD_STALE;
    const struct export_rights *rights =
        export_rights_of(export, &question->from->address, question->from->port);
    if (rights == NULL)
        return GUARD_NOT_EXPORTED;
    if (question->exclusive && !question->is_stored && !rights->is_writable)
        return GUARD_READ_ONLY;
    enum guard_verdict verdict = judge_call(service, question, id);
    /* Such a reclaim waits for no thread: a client whose reclaim is refused loses the lock. */
    return question->is_stored && verdict != GUARD_STALE ? GUARD_ALLOWED : verdict;
}
