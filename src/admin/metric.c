/*
 * metric.c -- see metric.h.
 */
#include "admin/metric.h"

#include "base/units.h"

void metric_begin(struct text *out, const char *name, const char *type, const char *help)
{
    text_add(out, "# HELP ");
    text_add(out, name);
    text_add_char(out, ' ');
    text_add(out, help);
    text_add(out, "\n# TYPE ");
    text_add(out, name);
    text_add_char(out, ' ');
    text_add(out, type);
    text_add_char(out, '\n');
}

static void add_label(struct text *out, const struct metric_label *label, bool *is_open)
{
    if (label == NULL || label->key == NULL)
        return;
    text_add_char(out, *is_open ? ',' : '{');
    *is_open = true;
    text_add(out, label->key);
    text_add(out, "=\"");
    text_add(out, label->value);
    text_add_char(out, '"');
}

static void add_name(struct text *out, const char *name, const char *suffix,
                     const struct metric_label *first, const struct metric_label *second)
{
    bool is_open = false;
    text_add(out, name);
    text_add(out, suffix);
    add_label(out, first, &is_open);
    add_label(out, second, &is_open);
    text_add(out, is_open ? "} " : " ");
}

void metric_add(struct text *out, const char *name, const struct metric_label *first,
                const struct metric_label *second, uint64_t value)
{
    add_name(out, name, "", first, second);
    text_add_u64(out, value);
    text_add_char(out, '\n');
}

void metric_one(struct text *out, const char *name, const char *type, const char *help,
                uint64_t value)
{
    metric_begin(out, name, type, help);
    metric_add(out, name, NULL, NULL, value);
}

static void add_seconds(struct text *out, uint64_t ns)
{
    text_add_u64(out, ns / SECOND_NS);
    text_add_char(out, '.');
    for (uint64_t unit = SECOND_NS / 10; unit > 0; unit /= 10)
        text_add_char(out, (char)('0' + ns / unit % 10));
}

void metric_seconds(struct text *out, const char *name, const char *type, const char *help,
                    uint64_t ns)
{
    metric_begin(out, name, type, help);
    add_name(out, name, "", NULL, NULL);
    add_seconds(out, ns);
    text_add_char(out, '\n');
}

void metric_histogram(struct text *out, const char *name, const struct metric_label *label,
                      const struct histogram *histogram)
{
    const struct histogram_scale *scale = histogram->scale;
    uint64_t below = 0;
    for (uint32_t i = 0; i < scale->count; i++) {
        below += histogram->counts[i];
        struct metric_label le = {"le", scale->texts[i]};
        add_name(out, name, "_bucket", label, &le);
        text_add_u64(out, below);
        text_add_char(out, '\n');
    }
    below += histogram->counts[scale->count];
    add_name(out, name, "_bucket", label, &(struct metric_label){"le", "+Inf"});
    text_add_u64(out, below);
    text_add_char(out, '\n');
    add_name(out, name, "_sum", label, NULL);
    if (scale == &histogram_durations)
        add_seconds(out, histogram->sum);
    else
        text_add_u64(out, histogram->sum);
    text_add_char(out, '\n');
    add_name(out, name, "_count", label, NULL);
    text_add_u64(out, below);
    text_add_char(out, '\n');
}

void metric_results(struct text *out, const char *name, const char *help,
                    const char *const words[2], const uint64_t values[2])
{
    metric_begin(out, name, "counter", help);
    for (int i = 0; i < 2; i++)
        metric_add(out, name, &(struct metric_label){"result", words[i]}, NULL, values[i]);
}
