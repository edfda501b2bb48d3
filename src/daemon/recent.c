/*
 * recent.c -- see recent.h.
 */
#include "daemon/recent.h"

#include "base/units.h"

static struct recent_mark totals(uint64_t now_ns, const struct meter *meter,
                                 const struct histogram *commits)
{
    struct recent_mark mark = {.at_ns = now_ns};
    if (meter != NULL)
        mark.requests = meter_total(meter);
    if (commits != NULL) {
        mark.commits = histogram_total(commits);
        mark.commit_ns = commits->sum;
    }
    return mark;
}

void recent_tick(struct recent *recent, uint64_t now_ns, const struct meter *meter,
                 const struct histogram *commits)
{
    uint32_t last = (recent->count + RECENT_SECONDS - 1) % RECENT_SECONDS;
    if (recent->count > 0 && now_ns - recent->marks[last].at_ns < SECOND_NS)
        return;
    recent->marks[recent->count++ % RECENT_SECONDS] = totals(now_ns, meter, commits);
    if (recent->count == 2 * RECENT_SECONDS)
        recent->count = RECENT_SECONDS; /* the ring is full, and begins where it did */
}

void recent_get(const struct recent *recent, uint64_t now_ns, const struct meter *meter,
                const struct histogram *commits, struct admin_recent *ret)
{
    *ret = (struct admin_recent){0};
    if (recent->count == 0 || meter == NULL || commits == NULL)
        return;
    bool is_full = recent->count >= RECENT_SECONDS;
    const struct recent_mark *then = &recent->marks[is_full ? recent->count % RECENT_SECONDS : 0];
    struct recent_mark now = totals(now_ns, meter, commits);
    *ret = (struct admin_recent){
        .window_ns = now_ns - then->at_ns,
        .requests = now.requests - then->requests,
        .commits = now.commits - then->commits,
        .commit_ns = now.commit_ns - then->commit_ns,
    };
}
