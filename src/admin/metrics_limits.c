/*
 * metrics_limits.c -- see metrics_limits.h.
 */
#include "admin/metrics_limits.h"

#include "admin/limit.h"
#include "admin/metric.h"
#include "core/view.h"

static void add_limits(struct text *out, const struct admin *admin)
{
    struct admin_limit limit;
    metric_begin(out, "holdfast_limit", "gauge", "The most there may be of something.");
    for (uint32_t i = 0; limit_get(admin, i, &limit); i++)
        metric_add(out, "holdfast_limit", &(struct metric_label){"resource", limit.name}, NULL,
                   limit.max);
    metric_begin(out, "holdfast_limit_used", "gauge",
                 "How much of a limit is used, with the same label.");
    for (uint32_t i = 0; limit_get(admin, i, &limit); i++)
        metric_add(out, "holdfast_limit_used", &(struct metric_label){"resource", limit.name}, NULL,
                   limit.used);
}

/* Of one address and one client: a scrape cannot list all of them. */
static void add_shares(struct text *out, const struct core *core)
{
    struct view_limit limit;
    uint32_t max, near = view_clients_near(core, &max);
    metric_begin(out, "holdfast_address_limit", "gauge",
                 "The most that one address may have, by --max-per-address.");
    for (uint32_t i = 0; view_limit(core, i, &limit); i++)
        if (limit.address_max > 0)
            metric_add(out, "holdfast_address_limit",
                       &(struct metric_label){"resource", limit.name}, NULL, limit.address_max);
    metric_begin(out, "holdfast_addresses_near_limit", "gauge",
                 "Addresses that use more than 80 % of what one may have.");
    for (uint32_t i = 0; view_limit(core, i, &limit); i++)
        if (limit.address_max > 0)
            metric_add(out, "holdfast_addresses_near_limit",
                       &(struct metric_label){"resource", limit.name}, NULL, limit.addresses_near);
    metric_one(out, "holdfast_client_lock_limit", "gauge",
               "The most locks that one client may have, by --max-locks-per-client.", max);
    metric_one(out, "holdfast_clients_near_lock_limit", "gauge",
               "Clients that hold more than 80 % of the locks that one may have.", near);
}

static void add_process(struct text *out, const struct admin_process *process)
{
    metric_seconds(out, "process_cpu_seconds_total", "counter",
                   "Processor time of the server, user and system.", process->cpu_ns);
    metric_seconds(out, "process_start_time_seconds", "gauge",
                   "When the server started, since the epoch.", process->start_wall_ns);
    metric_one(out, "process_resident_memory_bytes", "gauge", "Memory in use.",
               process->resident_bytes);
    metric_one(out, "process_virtual_memory_bytes", "gauge",
               "Address space in use; most of it is reserved and never touched.",
               process->virtual_bytes);
    metric_one(out, "process_open_fds", "gauge", "Open file descriptors.", process->open_fds);
    metric_one(out, "process_max_fds", "gauge", "The most file descriptors that may be open.",
               process->max_fds);
}

void metrics_limits_add(struct text *out, const struct admin *admin)
{
    struct core_status status;
    struct admin_process process = {0};
    core_status(admin->core, &status);
    add_limits(out, admin);
    if (!status.is_monitor)
        add_shares(out, admin->core);
    admin->process(admin->context, &process);
    add_process(out, &process);
}
