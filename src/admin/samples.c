/*
 * samples.c -- see samples.h.
 *
 * Once a second a mark is set: what the counters say. Whatever was done in some time is the
 * difference between two of them: a sample between one mark and that of ten seconds before, the
 * last seconds between now and the oldest mark. Counters begin at 0 with the process, so the first
 * sample is of the time since then, and the first mark is one of zeros.
 *
 * Always true:
 *  (1) samples first to next - 1 are kept, at most SAMPLES_MAX; `at` is indexed by number;
 *  (2) there is at least one mark, and those of the last SAMPLES_SECONDS ticks are kept; the number
 *      of a mark is how many were set before it.
 */
#include "admin/samples.h"

#include "base/check.h"
#include "base/programs.h"
#include "base/units.h"

#include <stdlib.h>

/* What has been counted since the start. */
struct totals {
    uint64_t at_ns;
    uint64_t nlm, nsm, nfs;     /* calls answered; MOUNT counts with NFS */
    uint64_t read, written;     /* bytes of files */
    struct histogram durations; /* of commits */
};

struct sample {
    uint64_t wall_ns, duration_ns; /* when it was taken, and the time that it is of */
    uint64_t nlm, nsm, nfs, read, written;
    uint64_t commits, median_ns, p99_ns; /* the last two: 0 without commits */
    uint32_t clients, locks, waiters;    /* at that moment */
};

struct samples {
    const struct admin *admin;
    uv_timer_t timer;
    struct totals marks[SAMPLES_SECONDS];
    uint64_t mark_count; /* of all that were set */
    uint64_t first, next;
    struct sample at[SAMPLES_MAX];
};

static void count_row(struct totals *totals, uint32_t program, const char *name,
                      const struct meter_row *row)
{
    uint64_t calls = row->succeeded + row->failed;
    if (program == NLM_PROGRAM) {
        totals->nlm += calls;
    } else if (program == NSM_PROGRAM) {
        totals->nsm += calls;
    } else {
        totals->nfs += calls;
        if (name != NULL && strcmp(name, "READ") == 0)
            totals->read += row->bytes;
        if (name != NULL && strcmp(name, "WRITE") == 0)
            totals->written += row->bytes;
    }
}

static struct totals count(const struct meter *meter, const struct admin_facts *facts)
{
    struct totals totals = {.at_ns = facts->now_ns};
    for (uint32_t i = 0; i < meter->program_count; i++)
        for (uint32_t proc = 0; proc < METER_PROCEDURES_MAX; proc++)
            count_row(&totals, meter->programs[i]->number, meter_name(meter, i, proc),
                      meter_at(meter, i, proc));
    if (facts->commit_durations != NULL)
        totals.durations = *facts->commit_durations;
    return totals;
}

/* Commits between the two. */
static uint64_t commits_since(const struct totals *before, const struct totals *after)
{
    if (after->durations.scale == NULL)
        return 0;
    return histogram_total(&after->durations) -
           (before->durations.scale != NULL ? histogram_total(&before->durations) : 0);
}

/* The value below which this share (per cent) of what was added between the two lies: as far into
 * its bucket as the share reaches, as Prometheus' histogram_quantile. */
static uint64_t quantile(const struct histogram *before, const struct histogram *after,
                         uint64_t total, uint32_t percent)
{
    const struct histogram_scale *scale = after->scale;
    double wanted = (double)total * percent / 100, below = 0;
    uint64_t lower = 0;
    for (uint32_t i = 0; i < scale->count; i++) {
        double here = (double)(after->counts[i] - before->counts[i]);
        if (here > 0 && below + here >= wanted)
            return lower + (uint64_t)((wanted - below) / here * (double)(scale->bounds[i] - lower));
        below += here;
        lower = scale->bounds[i];
    }
    return lower;
}

/* The oldest that is kept: as old as a sample is long, once there are so many. */
static const struct totals *oldest_mark(const struct samples *samples)
{
    bool is_full = samples->mark_count >= SAMPLES_SECONDS;
    return &samples->marks[is_full ? samples->mark_count % SAMPLES_SECONDS : 0];
}

/* There is one mark, and it is of now. */
static void begin(struct samples *samples, uint64_t now_ns)
{
    samples->marks[0] = (struct totals){.at_ns = now_ns};
    samples->mark_count = 1;
}

static void take(struct samples *samples, const struct totals *totals, uint64_t wall_ns)
{
    const struct totals *before = oldest_mark(samples);
    struct core_status status;
    core_status(samples->admin->core, &status);
    struct sample sample = {
        .wall_ns = wall_ns,
        .duration_ns = totals->at_ns - before->at_ns,
        .nlm = totals->nlm - before->nlm,
        .nsm = totals->nsm - before->nsm,
        .nfs = totals->nfs - before->nfs,
        .read = totals->read - before->read,
        .written = totals->written - before->written,
        .commits = commits_since(before, totals),
        .clients = status.clients + status.registrants,
        .locks = status.locks,
        .waiters = status.waiters,
    };
    if (sample.commits > 0) {
        sample.median_ns = quantile(&before->durations, &totals->durations, sample.commits, 50);
        sample.p99_ns = quantile(&before->durations, &totals->durations, sample.commits, 99);
    }
    samples->at[samples->next++ % SAMPLES_MAX] = sample;
    if (samples->next - samples->first > SAMPLES_MAX)
        samples->first = samples->next - SAMPLES_MAX;
}

void samples_tick(struct samples *samples)
{
    const struct admin *admin = samples->admin;
    struct admin_facts facts = {0};
    if (admin->core != NULL && admin->meter == NULL)
        return; /* nothing is measured */
    admin->facts(admin->context, &facts);
    if (admin->core == NULL) {
        begin(samples, facts.now_ns); /* the first one is not of the time before there is one */
        return;
    }
    struct totals totals = count(admin->meter, &facts);
    if (samples->mark_count % SAMPLES_SECONDS == 0)
        take(samples, &totals, facts.wall_ns);
    samples->marks[samples->mark_count++ % SAMPLES_SECONDS] = totals;
}

void samples_recent(const struct samples *samples, const struct admin_facts *facts,
                    struct samples_recent *ret)
{
    *ret = (struct samples_recent){0};
    if (samples == NULL || samples->admin->meter == NULL)
        return;
    const struct totals *then = oldest_mark(samples);
    struct totals now = count(samples->admin->meter, facts);
    *ret = (struct samples_recent){
        .window_ns = now.at_ns - then->at_ns,
        .requests = now.nlm + now.nsm + now.nfs - then->nlm - then->nsm - then->nfs,
        .commits = commits_since(then, &now),
        .commit_ns = now.durations.sum - then->durations.sum,
    };
}

static void on_timer(uv_timer_t *timer)
{
    samples_tick(timer->data);
}

static void write_sample(struct writer *out, const struct sample *sample)
{
    writer_line(out);
    writer_object(out, NULL);
    writer_time(out, "time", sample->wall_ns);
    writer_seconds(out, "seconds", sample->duration_ns);
    writer_number(out, "nlm_requests", sample->nlm);
    writer_number(out, "nsm_requests", sample->nsm);
    writer_number(out, "nfs_requests", sample->nfs);
    writer_number(out, "bytes_read", sample->read);
    writer_number(out, "bytes_written", sample->written);
    writer_number(out, "commits", sample->commits);
    if (sample->commits > 0) {
        writer_seconds(out, "commit_median_seconds", sample->median_ns);
        writer_seconds(out, "commit_p99_seconds", sample->p99_ns);
    } else {
        writer_null(out, "commit_median_seconds");
        writer_null(out, "commit_p99_seconds");
    }
    writer_number(out, "clients", sample->clients);
    writer_number(out, "locks", sample->locks);
    writer_number(out, "waiters", sample->waiters);
    writer_end_object(out);
}

/* The number of ?after; 0: not given. False: already responded. */
static bool read_after(struct exchange *exchange, uint64_t *ret)
{
    const char *text = exchange_parameter(exchange, "after");
    *ret = 0;
    if (text == NULL)
        return true;
    for (const char *at = text; *at != '\0'; at++)
        if (*at < '0' || *at > '9' || __builtin_mul_overflow(*ret, 10, ret) ||
            __builtin_add_overflow(*ret, (uint64_t)(*at - '0'), ret))
            break;
        else if (at[1] == '\0')
            return true;
    exchange_error(exchange, MHD_HTTP_BAD_REQUEST,
                   "not the number of a sample: ", bytes_of_text(text),
                   "use the value of last from an earlier response");
    return false;
}

void samples_answer(struct exchange *exchange)
{
    const struct samples *samples = exchange->admin->samples;
    struct writer out = {0};
    uint64_t after;
    if (exchange->admin->meter == NULL || samples == NULL) {
        exchange_error(exchange, MHD_HTTP_NOT_FOUND, "metrics are off", (struct bytes){0},
                       "the server was started with --metrics off");
        return;
    }
    if (!read_after(exchange, &after))
        return;
    /* A number that is still to come is of an earlier run. */
    uint64_t from = after >= samples->next ? 0 : after + 1;
    if (from < samples->first)
        from = samples->first;
    writer_object(&out, NULL);
    writer_number(&out, "interval_seconds", SAMPLES_SECONDS);
    writer_list(&out, "samples");
    for (uint64_t number = from; number < samples->next; number++)
        write_sample(&out, &samples->at[number % SAMPLES_MAX]);
    writer_end_list(&out);
    writer_number(&out, "last", samples->next - 1);
    writer_end_object(&out);
    exchange_json(exchange, MHD_HTTP_OK, &out);
}

struct samples *samples_new(uv_loop_t *loop, const struct admin *admin)
{
    struct samples *samples = calloc(1, sizeof *samples);
    struct admin_facts facts = {0};
    if (samples == NULL)
        return NULL;
    admin->facts(admin->context, &facts);
    samples->admin = admin;
    begin(samples, facts.now_ns);
    samples->first = samples->next = 1;
    CHECK(uv_timer_init(loop, &samples->timer) == 0); /* these only fill the struct */
    samples->timer.data = samples;
    CHECK(uv_timer_start(&samples->timer, on_timer, 1000, 1000) == 0);
    return samples;
}

static void on_close(uv_handle_t *handle)
{
    free(handle->data);
}

void samples_free(struct samples *samples)
{
    if (samples != NULL)
        uv_close((uv_handle_t *)&samples->timer, on_close);
}
