/*
 * once.c -- see once.h.
 *
 * A repeat is known by its client's address, xid, procedure, credential and arguments, as in
 * rpc/away.c, and as there a call from another port is one only as long as its client has changed
 * nothing else under the same name since.
 *
 * What was done and completed its intent is certain. Between the change and that there is a moment,
 * and in it the file system must say what happened:
 *
 *   REMOVE, RMDIR    the name means what it meant: not executed. Nothing, or another object: done,
 *                    unless a later call still found it: then that one, or one after it, took it
 *   RENAME           the same of its old name; and the new one is not what it was
 *   LINK             the new name is the object, and no later LINK found nothing there: done
 *   CREATE, MKDIR,   the object under the name is the caller's, of the type, was born after the
 *   SYMLINK, MKNOD   call began and before its run was over, and no other call has made it: ours.
 *                    All that time its directory was locked against other calls
 *   SETATTR          the last change of the object was in that time: ours, or a part of ours
 *
 * What failed has changed nothing, and its repeat fails in the same way, although it might succeed
 * now: what is there now may be another's, who was told that it is. Only failures that say nothing
 * of the names or of the caller are no answer, and such a call is executed.
 *
 * After a power loss an outcome may be on disk and its change not. Then it is judged like one that
 * was begun, but that the object made is known by its handle.
 */
#include "file/once.h"

#include "base/check.h"
#include "base/units.h"
#include "file/attributes.h"
#include "file/service.h"

#include <fcntl.h>
#include <string.h>

enum { HEAD_LEN = sizeof(struct address) + (6 + RPC_AUTH_GROUPS_MAX) * sizeof(uint32_t) + 8 };

static const struct handle_object no_object;

static bool is_same(const struct handle_object *a, const struct handle_object *b)
{
    return memcmp(a, b, sizeof *a) == 0;
}

/* ---- which call is it ---- */

static uint64_t key_of(const struct call *call, const struct mac_key *key)
{
    uint8_t head[HEAD_LEN] = {0}, *at = head;
    const struct rpc_credential *who = &call->credential;
    const uint32_t words[] = {call->xid, call->procedure, (uint32_t)who->flavor,
                              who->uid,  who->gid,        who->group_count};
    CHECK(who->group_count <= RPC_AUTH_GROUPS_MAX);
    memcpy(at, &call->from, sizeof call->from);
    at += sizeof call->from;
    memcpy(at, words, sizeof words);
    at += sizeof words;
    memcpy(at, who->groups, who->group_count * sizeof who->groups[0]);
    at += RPC_AUTH_GROUPS_MAX * sizeof who->groups[0];
    uint64_t args = mac_of(key, call->body);
    memcpy(at, &args, sizeof args);
    return mac_of(key, (struct bytes){head, sizeof head});
}

static uint64_t place_of(struct bytes fh, struct bytes name, const struct mac_key *key)
{
    uint8_t bytes[NFS_FH_MAX + CALL_NAME_MAX];
    uint32_t name_len = name.len < CALL_NAME_MAX ? name.len : CALL_NAME_MAX;
    memcpy(bytes, fh.at, fh.len);
    if (name_len > 0)
        memcpy(bytes + fh.len, name.at, name_len);
    return mac_of(key, (struct bytes){bytes, fh.len + name_len});
}

/* Who asks, and which name in which directory it changes; SETATTR: which object. */
static void identify(const struct call *call, const struct mac_key *key, struct intent *ret)
{
    const struct nfs_args *args = &call->args;
    bool is_link = call->procedure == NFS_LINK;
    *ret = (struct intent){
        .key = key_of(call, key),
        .client = mac_of(key, (struct bytes){(const uint8_t *)&call->from, sizeof call->from}),
        .place =
            place_of(is_link ? args->to_fh : args->fh, is_link ? args->to_name : args->name, key),
        .procedure = (uint16_t)call->procedure,
        .port = call->port,
    };
    if (call->procedure == NFS_RENAME)
        ret->to_place = (uint32_t)place_of(args->to_fh, args->to_name, key);
}

static struct intent_ring *ring_of(const struct call *call)
{
    return call->service->options.intents;
}

/* Does a failure say more than that there was no room, or an accident? */
static bool is_final(enum nfs_stat stat)
{
    return stat != NFS_OK && stat != NFS_JUKEBOX && stat != NFS_IO && stat != NFS_NOSPC &&
           stat != NFS_DQUOT && stat != NFS_SERVERFAULT;
}

/* What an earlier run began for the same call; NULL: it is none that is repeated. */
static const struct intent *find(struct call *call)
{
    struct call_once *once = &call->once;
    struct intent_ring *ring = ring_of(call);
    if (ring == NULL || once->is_looked_for)
        return once->before;
    once->is_looked_for = true;
    identify(call, intent_ring_key(ring), &once->intent);
    const struct intent *found = intent_find(ring, once->intent.key);
    if (found == NULL || found->procedure != call->procedure ||
        (found->outcome == INTENT_FAILED && !is_final(found->stat)) ||
        (found->port != call->port && intent_is_superseded(ring, found)))
        return NULL;
    once->intent.clock_ms = found->clock_ms;
    return once->before = found;
}

static bool is_done(const struct intent *before)
{
    return before->outcome == INTENT_DONE || before->outcome == INTENT_FOUND;
}

static bool is_failed(const struct intent *before)
{
    return before->outcome == INTENT_FAILED;
}

static bool is_certain(const struct intent *before)
{
    return is_done(before) && before->is_same_boot;
}

/* ---- executing ---- */

void once_begin(struct call *call, const struct handle_object *first,
                const struct handle_object *second)
{
    (void)find(call);
    if (ring_of(call) == NULL)
        return;
    struct call_once *once = &call->once;
    once->intent.first = first != NULL ? *first : no_object;
    once->intent.second = second != NULL ? *second : no_object;
    once->intent.made = no_object;
    once->intent.outcome = INTENT_DONE;
    once->number = intent_begin(ring_of(call), &once->intent);
}

void once_note_object(struct call *call, const struct handle_object *object, bool is_found)
{
    call->once.intent.made = *object;
    if (is_found)
        call->once.intent.outcome = INTENT_FOUND;
}

void once_end(struct call *call)
{
    const struct call_once *once = &call->once;
    if (once->number != 0 && call->result.stat != NFS_OK)
        intent_fail(ring_of(call), once->number, call->result.stat);
    else if (once->number != 0)
        intent_end(ring_of(call), once->number, once->intent.outcome, &once->intent.made);
    call->once.number = 0;
}

void once_stay_begun(struct call *call)
{
    call->once.number = 0;
}

/* It was executed by an earlier run: so the next run must know, too, if this one does not live to
 * answer it. */
static void begin_copy(struct call *call)
{
    const struct intent *before = call->once.before;
    atomic_fetch_add(&call->service->repeats, 1);
    call->once.intent.begun_ns = before->begun_ns;
    call->once.intent.order = before->order;
    once_begin(call, &before->first, &before->second);
}

static enum once_verdict take_done(struct call *call)
{
    const struct intent *before = call->once.before;
    begin_copy(call);
    once_note_object(call, &before->made, before->outcome == INTENT_FOUND);
    CHECK(call->result.stat == NFS_OK);
    once_end(call);
    return ONCE_DONE;
}

static enum once_verdict take_failed(struct call *call)
{
    begin_copy(call);
    (void)call_fail(call, call->once.before->stat);
    once_end(call);
    return ONCE_DONE;
}

/* What the first execution changed is known by when that was: also to the next run. */
static enum once_verdict take_half(struct call *call)
{
    atomic_fetch_add(&call->service->repeats, 1);
    call->once.intent.begun_ns = call->once.before->begun_ns;
    return ONCE_HALF;
}

/* ---- names that go ---- */

enum once_verdict once_judge_remove(struct call *call, const struct handle_object *now)
{
    const struct intent *before = find(call);
    if (before != NULL && is_failed(before))
        return take_failed(call);
    if (before == NULL || before->first.len == 0)
        return ONCE_NEW;
    if (!is_certain(before) && is_same(now, &before->first))
        return ONCE_NEW;
    if (!is_certain(before) && intent_is_seen_by_another(ring_of(call), before))
        return ONCE_GONE;
    return take_done(call);
}

enum once_verdict once_judge_rename(struct call *call, const struct handle_object *from,
                                    const struct handle_object *to)
{
    const struct intent *before = find(call);
    if (before != NULL && is_failed(before))
        return take_failed(call);
    if (before == NULL || before->first.len == 0)
        return ONCE_NEW;
    if (is_certain(before))
        return take_done(call);
    if (is_same(from, &before->first))
        return ONCE_NEW;
    if (intent_is_seen_by_another(ring_of(call), before))
        return ONCE_GONE;
    bool has_target = before->second.len != 0 && !is_same(&before->second, &before->first);
    return has_target && is_same(to, &before->second) ? ONCE_GONE : take_done(call);
}

/* ---- names that come ---- */

enum once_verdict once_judge_link(struct call *call, const struct handle_object *object,
                                  const struct handle_object *now)
{
    const struct intent *before = find(call);
    if (before == NULL)
        return ONCE_NEW;
    if (is_failed(before))
        return take_failed(call);
    if (is_certain(before))
        return take_done(call);
    bool is_there = is_same(now, object) && before->first.len == 0 &&
                    !intent_is_missed_by_another(ring_of(call), before);
    return is_there ? take_done(call) : ONCE_NEW;
}

static bool is_within(const struct intent *before, uint64_t ns)
{
    return ns >= before->begun_ns && ns <= before->over_ns;
}

static uint64_t ns_of(int64_t seconds, uint32_t nanoseconds)
{
    return seconds < 0 ? 0 : (uint64_t)seconds * SECOND_NS + nanoseconds;
}

/* When it was born; where that is not kept, when it was last changed. */
static uint64_t birth_of(const struct statx *stx)
{
    bool is_kept = (stx->stx_mask & STATX_BTIME) != 0;
    const struct statx_timestamp *time = is_kept ? &stx->stx_btime : &stx->stx_ctime;
    return ns_of(time->tv_sec, time->tv_nsec);
}

/* A new object is the caller's, until it is given to whom the arguments say. */
static bool is_owner(const struct call *call, uint32_t uid)
{
    const struct nfs_sattr *sattr = &call->args.sattr;
    return uid == call->identity.uid ||
           (sattr->set_uid && uid == identity_squash_uid(call->rights, sattr->uid));
}

/* Has the first execution made what the name means now? */
static bool is_ours(const struct call *call, const struct directory *directory, mode_t type)
{
    const struct intent *before = call->once.before;
    struct intent wanted = *before;
    struct statx stx;
    int fd = directory->descriptor->path_fd, ignored;
    if (handle_object_at(fd, directory->name, &wanted.made, &ignored) != 0)
        return false;
    if (is_done(before))
        return is_same(&wanted.made, &before->made);
    if (statx(fd, directory->name, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT,
              STATX_BASIC_STATS | STATX_BTIME, &stx) != 0)
        return false;
    return (stx.stx_mode & S_IFMT) == type && is_owner(call, stx.stx_uid) &&
           is_within(before, birth_of(&stx)) && !intent_is_made_by_another(ring_of(call), &wanted);
}

/* The object, wherever it is by now. */
static struct descriptor *answer_made(struct call *call, const struct handle_object *made)
{
    if (made->len == 0)
        return NULL;
    struct descriptor *object = resolve_object(call, made);
    call->result.stat = NFS_OK; /* gone is not unmade */
    call->result.has_fh = true;
    handle_make(call_key(call), call->export->id, made, &call->result.fh);
    if (object != NULL)
        attributes_after(call, object->path_fd, &call->result.attr);
    return object;
}

enum once_verdict once_judge_make(struct call *call, const struct directory *directory, mode_t type,
                                  struct descriptor **ret_object)
{
    const struct intent *before = find(call);
    if (before == NULL)
        return ONCE_NEW;
    if (is_failed(before))
        return take_failed(call);
    if (is_certain(before)) {
        *ret_object = answer_made(call, &before->made);
        return take_done(call);
    }
    return is_ours(call, directory, type) ? take_half(call) : ONCE_NEW;
}

/* ---- attributes ---- */

enum once_verdict once_judge_set(struct call *call, const struct stat *now)
{
    const struct intent *before = find(call);
    if (before == NULL)
        return ONCE_NEW;
    if (is_failed(before))
        return take_failed(call);
    if (is_certain(before))
        return take_done(call);
    uint64_t changed_ns = ns_of(now->st_ctim.tv_sec, (uint32_t)now->st_ctim.tv_nsec);
    return is_within(before, changed_ns) ? take_half(call) : ONCE_NEW;
}

/* ---- what is gone ---- */

static bool is_once_only(uint32_t procedure)
{
    return procedure == NFS_SETATTR || (procedure >= NFS_CREATE && procedure <= NFS_LINK);
}

void once_finish(struct call *call)
{
    if (call->result.stat != NFS_STALE || call->program != NFS_PROGRAM ||
        !is_once_only(call->procedure) || call->export == NULL)
        return;
    const struct intent *before = find(call);
    if (before == NULL || !(is_certain(before) || is_failed(before)) || before->stat == NFS_STALE)
        return;
    call->result = (struct nfs_result){.stat = NFS_OK};
    call->sync_count = 0;
    if (is_failed(before)) {
        (void)take_failed(call);
        return;
    }
    if (call->procedure >= NFS_CREATE && call->procedure <= NFS_MKNOD && before->made.len != 0) {
        call->result.has_fh = true;
        handle_make(call_key(call), call->export->id, &before->made, &call->result.fh);
    }
    (void)take_done(call);
}
