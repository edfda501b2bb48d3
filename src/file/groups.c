/*
 * groups.c -- see groups.h.
 *
 * A uid that nobody here knows has no groups but the one in its call; that is kept as well.
 */
#include "file/groups.h"

#include "base/check.h"
#include "base/units.h"
#include "file/aside.h"

#include <grp.h>
#include <pwd.h>
#include <stdlib.h>
#include <time.h>

enum { SLOTS = 4096, WORK_MAX = 65536 };

#define KEPT_NS (UINT64_C(300) * SECOND_NS)

/* What is known of a uid. Slots are taken by uid; the newer one wins. */
struct known {
    bool is_known;
    uint32_t uid, count;
    uint64_t until_ns;
    uint32_t *list; /* owned */
};

struct question {
    uint32_t uid;
    struct list *work;
};

struct groups {
    void (*ready)(void *context, struct list *work);
    void *context;
    struct aside thread; /* guards what follows */
    struct known known[SLOTS];
    struct question *questions; /* a ring */
    uint32_t first, count;
};

static uint64_t now_ns(void)
{
    struct timespec now;
    CHECK(clock_gettime(CLOCK_MONOTONIC, &now) == 0);
    return (uint64_t)now.tv_sec * SECOND_NS + (uint64_t)now.tv_nsec;
}

/* By the books of this machine. NULL: nobody known. */
static uint32_t *look_up(uint32_t uid, uint32_t *ret_count)
{
    char buffer[16384];
    struct passwd entry, *found = NULL;
    *ret_count = 0;
    if (getpwuid_r(uid, &entry, buffer, sizeof buffer, &found) != 0 || found == NULL)
        return NULL;
    gid_t *list = calloc(IDENTITY_GROUPS_MAX, sizeof *list);
    int count = IDENTITY_GROUPS_MAX;
    if (list == NULL)
        return NULL;
    /* With more than there is room for, the first ones are there. */
    (void)getgrouplist(entry.pw_name, entry.pw_gid, list, &count);
    *ret_count = count < IDENTITY_GROUPS_MAX ? (uint32_t)count : IDENTITY_GROUPS_MAX;
    return list;
}

static bool is_current(const struct known *known, uint32_t uid)
{
    return known->is_known && known->uid == uid && known->until_ns > now_ns();
}

/* The mutex is held, but not over the look-up. */
static void answer(struct groups *groups, struct question question)
{
    struct known *known = &groups->known[question.uid % SLOTS];
    if (!is_current(known, question.uid)) {
        uint32_t count;
        aside_unlock(&groups->thread);
        uint32_t *list = look_up(question.uid, &count);
        aside_lock(&groups->thread);
        free(known->list);
        *known = (struct known){.is_known = true,
                                .uid = question.uid,
                                .count = count,
                                .until_ns = now_ns() + KEPT_NS,
                                .list = list};
    }
    aside_unlock(&groups->thread);
    groups->ready(groups->context, question.work);
    aside_lock(&groups->thread);
}

static void *run(void *argument)
{
    struct groups *groups = argument;
    aside_lock(&groups->thread);
    while (groups->count > 0 || !aside_is_stopping(&groups->thread)) {
        if (groups->count == 0) {
            aside_wait(&groups->thread);
            continue;
        }
        struct question question = groups->questions[groups->first];
        groups->first = (groups->first + 1) % WORK_MAX;
        groups->count--;
        answer(groups, question);
    }
    aside_unlock(&groups->thread);
    return NULL;
}

struct groups *groups_new(void (*ready)(void *context, struct list *work), void *context)
{
    struct groups *groups = calloc(1, sizeof *groups);
    if (groups == NULL)
        return NULL;
    groups->ready = ready;
    groups->context = context;
    groups->questions = calloc(WORK_MAX, sizeof groups->questions[0]);
    if (groups->questions != NULL && aside_start(&groups->thread, run, groups))
        return groups;
    free(groups->questions);
    free(groups);
    return NULL;
}

void groups_free(struct groups *groups)
{
    if (groups == NULL)
        return;
    aside_stop(&groups->thread);
    for (uint32_t i = 0; i < SLOTS; i++)
        free(groups->known[i].list);
    free(groups->questions);
    free(groups);
}

bool groups_are_known(struct groups *groups, uint32_t uid)
{
    aside_lock(&groups->thread);
    bool is_known = is_current(&groups->known[uid % SLOTS], uid);
    aside_unlock(&groups->thread);
    return is_known;
}

bool groups_get(struct groups *groups, const struct export_rights *rights, struct identity *ret)
{
    aside_lock(&groups->thread);
    const struct known *known = &groups->known[ret->uid % SLOTS];
    bool is_known = is_current(known, ret->uid);
    if (is_known)
        identity_set_groups(ret, rights, known->list, known->list == NULL ? 0 : known->count);
    aside_unlock(&groups->thread);
    return is_known;
}

void groups_ask(struct groups *groups, uint32_t uid, struct list *work)
{
    aside_lock(&groups->thread);
    CHECK(groups->count < WORK_MAX); /* no more calls are ever in flight */
    groups->questions[(groups->first + groups->count++) % WORK_MAX] =
        (struct question){.uid = uid, .work = work};
    aside_wake(&groups->thread);
    aside_unlock(&groups->thread);
}
