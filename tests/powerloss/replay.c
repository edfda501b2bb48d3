/*
 * replay.c -- cuts the power at many places, in many ways, and judges each restart; see replay.h.
 *
 * The tape is played once, event by event, into a disk and a history. At each chosen cut the disk
 * is rebuilt in every variant, a server is started on it (trial.c remembers images it has seen),
 * and the history says whether what the server found is right (R-PER-6).
 *
 * Which cuts: a change of what a disk may hold or of what was promised happens only at a sync, a
 * synced write, a name, or an answer. Cuts beside those are taken first, evenly, for at least three
 * quarters of the budget; the rest lies evenly between all others.
 */
#include "replay.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- the whole tape ---- */

const char *replay_check(const struct tape *tape, const char *path, struct replay_summary *ret)
{
    struct disk *disk = disk_new();
    struct history *history = history_new();
    struct replay_summary summary = {0};
    struct image image;
    const char *why = NULL;
    for (size_t i = 0; i < tape->count && !why; i++) {
        const struct tape_event *event = &tape->events[i];
        why = disk_note(disk, event);
        if (!why)
            why = history_note(history, event);
        summary.commits += disk_is_meta_write(event);
        summary.frames += disk_is_frame_write(event);
        summary.kills += event->head.type == TAPE_KILL;
        summary.zeros += event->head.type == TAPE_WRITE && !event->data;
    }
    uint32_t state_max;
    summary.acknowledged = history_acknowledged(history);
    summary.states = history_states(history, &state_max);
    if (!why && path) {
        disk_rebuild(disk, DISK_ALL_KEPT, 0, &image);
        why = image_compare(&image, path);
        image_free(&image);
    }
    disk_free(disk);
    history_free(history);
    *ret = summary;
    return why;
}

/* ---- which cuts ---- */

static bool is_turn(const struct tape *tape, size_t index)
{
    switch ((enum tape_type)tape->events[index].head.type) {
    case TAPE_WRITE:
        return disk_is_meta_write(&tape->events[index]);
    case TAPE_POST:
    case TAPE_START:
    case TAPE_KILL:
    case TAPE_RESIZE:
    case TAPE_SYNC_RANGE:
        return false;
    case TAPE_MKDIR:
    case TAPE_CREATE:
    case TAPE_RENAME:
    case TAPE_UNLINK:
    case TAPE_WRITE_SYNCED:
    case TAPE_SYNC_BEGIN:
    case TAPE_SYNC_END:
    case TAPE_SEND:
    case TAPE_TYPE_END:
        return true;
    }
    return true;
}

/* A cut beside such an event: just behind it or just before it. */
static bool is_near(const struct tape *tape, size_t cut)
{
    return (cut > 0 && is_turn(tape, cut - 1)) || (cut < tape->count && is_turn(tape, cut));
}

/* Chooses `wanted` of the `total` cuts that are near or not, evenly. */
static void choose(const struct tape *tape, const struct replay_plan *plan, bool near,
                   uint64_t wanted, uint64_t total, bool *ret_chosen)
{
    uint64_t seen = 0;
    for (size_t cut = plan->first_cut; cut <= plan->last_cut; cut++) {
        if (is_near(tape, cut) != near)
            continue;
        seen++;
        if (seen * wanted / total > (seen - 1) * wanted / total)
            ret_chosen[cut] = true;
    }
}

static void choose_cuts(const struct tape *tape, const struct replay_plan *plan, bool *ret_chosen)
{
    uint64_t total[2] = {0, 0};
    for (size_t cut = plan->first_cut; cut <= plan->last_cut; cut++)
        total[is_near(tape, cut)]++;
    uint64_t budget = plan->cuts_max, others = budget / 4 < total[0] ? budget / 4 : total[0];
    uint64_t near = budget - others < total[1] ? budget - others : total[1];
    others = budget - near < total[0] ? budget - near : total[0];
    if (plan->near_only)
        others = 0;
    if (total[1] > 0)
        choose(tape, plan, true, near, total[1], ret_chosen);
    if (total[0] > 0)
        choose(tape, plan, false, others, total[0], ret_chosen);
}

/* ---- one cut ---- */

struct replay {
    const struct tape *tape;
    const struct replay_plan *plan;
    struct trials *trials;
    struct disk *disk;
    struct history *history;
    replay_failed_fn failed;
    const void *context;
    struct replay_result result;
};

/*
 * A power cut ends with another boot of the kernel, and the mark of a run with --sync process is
 * how a server knows (D16). This kernel did not boot, so the mark must look as if it had.
 */
static enum history_loss pass_boot(struct image *image, enum disk_variant variant)
{
    if (!image_has(image, "unsynced"))
        return HISTORY_NOTHING;
    image_replace(image, "unsynced", "00000000-0000-4000-8000-000000000000\n");
    return variant == DISK_ALL_DROPPED ? HISTORY_UPDATES : HISTORY_UNSYNCED;
}

static void try_variant(struct replay *replay, size_t cut, enum disk_variant variant)
{
    struct image image;
    uint64_t seed = replay->plan->seed + cut * DISK_VARIANTS + variant;
    disk_rebuild(replay->disk, variant, seed, &image);
    enum history_loss loss =
        replay->plan->is_process ? pass_boot(&image, variant) : HISTORY_NOTHING;
    const struct history_found *found = trial_run(replay->trials, &image);
    const char *why = history_judge(replay->history, found, loss);
    replay->result.images++;
    image_free(&image);
    if (!why)
        return;
    struct replay_failure failure = {.cut = cut, .variant = variant};
    snprintf(failure.text, sizeof(failure.text), "%s", why);
    if (replay->result.failures++ == 0)
        replay->result.first = failure;
    if (replay->failed)
        replay->failed(replay->context, replay->tape, &failure);
}

static void try_cut(struct replay *replay, size_t cut)
{
    replay->result.cuts++;
    for (int variant = 0; variant < DISK_VARIANTS; variant++)
        if ((replay->plan->variant < 0 || replay->plan->variant == variant) &&
            replay->result.failures < replay->plan->failures_max)
            try_variant(replay, cut, (enum disk_variant)variant);
}

void replay_run(const struct tape *tape, struct trials *trials, const struct replay_plan *plan,
                replay_failed_fn failed, const void *context, struct replay_result *ret)
{
    struct replay replay = {.tape = tape,
                            .plan = plan,
                            .trials = trials,
                            .disk = disk_new(),
                            .history = history_new(),
                            .failed = failed,
                            .context = context};
    bool *is_chosen = calloc(tape->count + 1, sizeof(*is_chosen));
    if (!is_chosen)
        abort();
    choose_cuts(tape, plan, is_chosen);
    for (size_t cut = 0; replay.result.failures < plan->failures_max; cut++) {
        if (is_chosen[cut])
            try_cut(&replay, cut);
        if (cut == tape->count || cut >= plan->last_cut)
            break;
        const char *why = disk_note(replay.disk, &tape->events[cut]);
        if (!why)
            why = history_note(replay.history, &tape->events[cut]);
        if (why) {
            fprintf(stderr, "event %zu, %s: %s\n", cut, tape_event_text(&tape->events[cut]), why);
            exit(1);
        }
    }
    free(is_chosen);
    disk_free(replay.disk);
    history_free(replay.history);
    *ret = replay.result;
}
