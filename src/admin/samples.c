/*
 * samples.c -- see samples.h.
 *
 * Counters begin at 0 with the process, so the first sample is of the time since then. A sample is
 * the difference between what the counters say and what they said at the one before.
 *
 * Always true: samples first to next - 1 are kept, at most SAMPLES_MAX; `at` is indexed by number.
 */
#include "admin/samples.h"

#include "base/check.h"
#include "base/programs.h"
#include "base/units.h"

#include <stdlib.h>

/* What is counted since the start. */
struct totals {
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
    uint64_t before_ns; /* when the last one was taken, */
    struct totals before;
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

static void count(struct totals *totals, const struct meter *meter,
                  const struct histogram *durations)
{
    for (uint32_t i = 0; i < meter->program_count; i++)
        for (uint32_t proc = 0; proc < METER_PROCEDURES_MAX; proc++)
            count_row(totals, meter->programs[i]->number, meter_name(meter, i, proc),
                      meter_at(meter, i, proc));
    if (durations != NULL)
        totals->durations = *durations;
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

void samples_take(struct samples *samples)
{
    const struct admin *admin = samples->admin;
    struct admin_facts facts = {0};
    struct totals totals = {0};
    struct core_status status;
    if (admin->meter == NULL)
        return;
    admin->facts(admin->context, &facts);
    if (admin->core == NULL) {
        samples->before_ns =
            facts.now_ns; /* the first one is not of the time before there is one */
        return;
    }
    core_status(admin->core, &status);
    count(&totals, admin->meter, facts.commit_durations);
    const struct totals *before = &samples->before;
    struct sample sample = {
        .wall_ns = facts.wall_ns,
        .duration_ns = facts.now_ns - samples->before_ns,
        .nlm = totals.nlm - before->nlm,
        .nsm = totals.nsm - before->nsm,
        .nfs = totals.nfs - before->nfs,
        .read = totals.read - before->read,
        .written = totals.written - before->written,
        .clients = status.clients + status.registrants,
        .locks = status.locks,
        .waiters = status.waiters,
    };
    if (totals.durations.scale != NULL)
        sample.commits =
            histogram_total(&totals.durations) -
            (before->durations.scale != NULL ? histogram_total(&before->durations) : 0);
    if (sample.commits > 0) {
        sample.median_ns = quantile(&before->durations, &totals.durations, sample.commits, 50);
        sample.p99_ns = quantile(&before->durations, &totals.durations, sample.commits, 99);
    }
    samples->before = totals;
    samples->before_ns = facts.now_ns;
    samples->at[samples->next++ % SAMPLES_MAX] = sample;
    if (samples->next - samples->first > SAMPLES_MAX)
        samples->first = samples->next - SAMPLES_MAX;
}

static void on_timer(uv_timer_t *timer)
{
    samples_take(timer->data);
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
    samples->before_ns = facts.now_ns;
    samples->first = samples->next = 1;
    CHECK(uv_timer_init(loop, &samples->timer) == 0); /* these only fill the struct */
    samples->timer.data = samples;
    uint64_t every_ms = SAMPLES_SECONDS * UINT64_C(1000);
    CHECK(uv_timer_start(&samples->timer, on_timer, every_ms, every_ms) == 0);
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
