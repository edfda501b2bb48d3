/*
 * rows_monitor.c -- rows of --role monitor, with as many watched hosts; see rows.h.
 *
 * The lock manager of this machine registers the hosts from 127.0.0.1; a reboot of the machine is
 * another boot id in a /proc of the bench's own. Hosts that answer and the lock manager that takes
 * upcalls are played by tests/bench/hosts.c. When everybody was notified, under both names, is what
 * the monitor says at the end of its first round; the hosts say whether that is so.
 */
#include "bench/rows.h"

#include "bench/disk.h"
#include "bench/peers.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CONNECTIONS 32
#define IN_FLIGHT   32
#define MON_ROUNDS  3
#define FILL_MS     60000
#define DRAIN_MS    5000
#define NAMES       2 /* server.bench, and server */
#define MON_GOAL    1000
#define MON_GOAL_US 2000.0
/* LMDB syncs the pages of a commit, then the one that makes them count. */
#define DISK_SYNCS_PER_COMMIT 2
#define TOLD_GOAL_MS          2000
#define SILENT_GOAL_MS        6000
#define START_GOAL_S          0.5
#define RESIDENT_GOAL_KB      (32 * 1024)
#define UPCALLS_GOAL          2000.0 /* per second: thousands */
#define ROUND_NS              UINT64_C(30000000000)
#define UPCALLS_NS            UINT64_C(60000000000)

struct scene {
    struct rows *rows;
    uint32_t count;
    struct peers_server monitor;
};

static double seconds_since(uint64_t from_ns)
{
    return (double)(process_now_ns() - from_ns) / 1e9;
}

/* A monitor that knows these hosts, in a boot of its own. */
static bool begin(struct scene *scene, const char *first)
{
    peers_remove("monitor");
    return peers_boot_machine() &&
           peers_start_monitor(&scene->monitor, "monitor", scene->count + 1000, NULL) &&
           peers_enroll(&scene->monitor, first, scene->count, "watch");
}

/* kill -9; the machine boots if `is_boot`; and a start that finds all of them. */
static bool start_again(struct scene *scene, bool is_boot)
{
    uint32_t state = scene->monitor.state;
    peers_stop(&scene->monitor, SIGKILL);
    if ((is_boot && !peers_boot_machine()) ||
        !peers_start_monitor(&scene->monitor, "monitor", scene->count + 1000, NULL))
        return false;
    if (scene->monitor.clients != scene->count)
        rows_fail(scene->rows, "%u hosts were registered, %u are there after kill -9", scene->count,
                  scene->monitor.clients);
    if (scene->monitor.state != state + (is_boot ? 2 : 0))
        rows_fail(scene->rows, "state %u after %u, %s", scene->monitor.state, state,
                  is_boot ? "after a reboot" : "in the same boot");
    return !scene->rows->has_failed;
}

static void end(struct scene *scene)
{
    peers_stop(&scene->monitor, SIGKILL);
    peers_remove("monitor");
}

/* ---- SM_MON ---- */

/* One row. Keys belong to connections, so each has its own hosts, and its own rpc.statd. */
struct load {
    const char *key, *title, *keys, *statd, *statd_keys;
    uint32_t connections, in_flight;
    struct report_line *line;
};

static struct peers_traffic churn_of(const struct scene *scene, const struct load *load)
{
    return (struct peers_traffic){.kind = "churn",
                                  .connections = load->connections,
                                  .in_flight = load->in_flight,
                                  .milliseconds = scene->rows->is_quick ? 150 : 1000,
                                  .drain_ms = DRAIN_MS,
                                  .registered = scene->count,
                                  .keys = load->keys};
}

static bool measure_statd(const struct scene *scene, const struct load *load,
                          struct report_sample *ret)
{
    struct peers_server statd = {0};
    struct peers_traffic churn = churn_of(scene, load);
    churn.keys = load->statd_keys;
    churn.milliseconds = scene->rows->is_quick ? 500 : 4000;
    churn.drain_ms = 0;
    bool is_measured =
        peers_start_statd(&statd, load->statd, scene->count) && peers_measure(&statd, &churn, ret);
    if (!is_measured)
        report_skip(load->line, "rpc.statd: %s", peers_why());
    peers_stop(&statd, SIGKILL);
    return is_measured;
}

/* One round; rpc.statd beside it. */
static bool measure_mon(struct scene *scene, const struct load *load)
{
    struct peers_traffic churn = churn_of(scene, load);
    struct report_sample ours, theirs;
    if (!peers_measure(&scene->monitor, &churn, &ours)) {
        rows_fail(scene->rows, "%s: %s", load->title, peers_why());
        return false;
    }
    if (!measure_statd(scene, load, &theirs))
        return false;
    report_add_round(load->line, &ours, &theirs);
    return true;
}

/* A monitor that knows the keys of this load. */
static bool fill(struct scene *scene, const struct load *load)
{
    struct report_sample ignored;
    struct peers_traffic fill = churn_of(scene, load);
    fill.kind = "fill";
    fill.in_flight = IN_FLIGHT;
    fill.drain_ms = FILL_MS;
    peers_remove("monitor");
    return peers_boot_machine() &&
           peers_start_monitor(&scene->monitor, "monitor", scene->count + 10000, NULL) &&
           peers_measure(&scene->monitor, &fill, &ignored);
}

static void measure_load(struct scene *scene, struct load *load, double goal)
{
    struct rows *rows = scene->rows;
    uint32_t rounds = rows->rounds < MON_ROUNDS ? rows->rounds : MON_ROUNDS;
    load->line = report_add_line(rows->report, load->key, load->title, "rpc.statd", goal);
    rows_say("%s with %u hosts", load->title, scene->count);
    if (!fill(scene, load))
        rows_fail(rows, "%s", peers_why());
    for (uint32_t round = 1; round <= rounds && !rows->has_failed; round++)
        if (!measure_mon(scene, load))
            break;
    if (!rows->has_failed && !start_again(scene, false))
        rows_fail(rows, "after kill -9: %s", peers_why());
    end(scene);
    peers_remove(load->statd);
}

/* Within 2 ms, or, on a disk that is slower than that itself, within what its two syncs take. */
static void judge_calm(struct rows *rows, struct report_line *line)
{
    struct disk_times disk;
    double ours_us = report_ours(line).p99_us;
    if (!disk_measure(peers_path("disk"), &disk)) {
        rows_fail(rows, "an fdatasync cannot be measured");
        return;
    }
    double syncs_us = disk.p99_us * DISK_SYNCS_PER_COMMIT;
    double goal_us = syncs_us > MON_GOAL_US ? syncs_us : MON_GOAL_US;
    line->verdict = ours_us <= goal_us ? REPORT_PASS : REPORT_FAIL;
    report_note(
        line,
        "goal: p99 within 2 ms, or two syncs of the disk; an fdatasync of 4 KiB takes %.2f ms, "
        "p99 %.2f ms; ours is %.1f times that p99",
        disk.p50_us / 1e3, disk.p99_us / 1e3, ours_us / disk.p99_us);
}

static void rows_mon(struct scene *scene)
{
    struct load loaded = {.key = "monitor-mon",
                          .title = "monitor SM_MON/UNMON",
                          .keys = "monitor-32.keys",
                          .statd = "statd-monitor-32",
                          .statd_keys = "statd-monitor-32.keys",
                          .connections = CONNECTIONS,
                          .in_flight = IN_FLIGHT};
    struct load calm = {.key = "monitor-mon-1x1",
                        .title = "monitor SM_MON/UNMON, 1 x 1",
                        .keys = "monitor-1.keys",
                        .statd = "statd-monitor-1",
                        .statd_keys = "statd-monitor-1.keys",
                        .connections = 1,
                        .in_flight = 1};
    measure_load(scene, &loaded, scene->rows->is_quick ? 0 : MON_GOAL);
    if (scene->rows->has_failed)
        return;
    measure_load(scene, &calm, 0);
    if (calm.line->rounds == 0)
        return;
    judge_calm(scene->rows, calm.line);
}

/* ---- a reboot of the machine ---- */

static bool wait_round(const struct scene *scene, struct peers_round *ret)
{
    while (process_now_ns() - scene->monitor.ready_ns < ROUND_NS) {
        if (peers_read_round(&scene->monitor, ret))
            return true;
        process_pause_ms(10);
    }
    return false;
}

/* The start and the memory are judged with it. */
static void judge_start(struct scene *scene, struct report_line *line)
{
    double took_s = (double)(scene->monitor.ready_ns - scene->monitor.started_ns) / 1e9;
    uint64_t resident = process_resident_kib(&scene->monitor.process);
    struct report_sample sample = {.rate = scene->count / took_s};
    report_add_round(line, &sample, NULL);
    report_note(line, "ready %.3f s after its start, %.1f MiB resident when all were notified",
                took_s, (double)resident / 1024);
    line->verdict =
        took_s <= START_GOAL_S && resident <= RESIDENT_GOAL_KB ? REPORT_PASS : REPORT_FAIL;
}

static void judge_told(struct scene *scene, struct report_line *line,
                       const struct peers_round *round, const struct peers_hosts *hosts)
{
    if (hosts->called != scene->count || hosts->calls < NAMES * scene->count)
        rows_fail(scene->rows, "%u of %u hosts were notified, %u calls", hosts->called,
                  scene->count, hosts->calls);
    if (hosts->state_low != scene->monitor.state || hosts->state_high != scene->monitor.state)
        rows_fail(scene->rows, "hosts were told states %u to %u, not %u", hosts->state_low,
                  hosts->state_high, scene->monitor.state);
    struct report_sample ours = {.rate = scene->count * 1e3 / (round->took_ms + 1),
                                 .cpu_us = (double)process_cpu_ns(&scene->monitor.process) / 1e3 /
                                           scene->count};
    report_add_round(line, &ours, NULL);
    line->verdict = round->reached == scene->count && round->took_ms <= TOLD_GOAL_MS ? REPORT_PASS
                                                                                     : REPORT_FAIL;
    report_note(line, "%u of %u notified under %u names within %.2f s of readiness", round->reached,
                scene->count, NAMES, round->took_ms / 1e3);
}

static void compare_sm_notify(const struct scene *scene, struct report_line *line)
{
    uint32_t limit_s = scene->rows->is_quick ? 10 : 60, told;
    size_t len = strlen(line->note);
    rows_say("the same hosts told by sm-notify, at most %u s", limit_s);
    if (!rows_sm_notify(scene->count, limit_s, &line->theirs[0], &told)) {
        snprintf(line->note + len, sizeof(line->note) - len,
                 "; sm-notify (Debian: nfs-common) could not be measured");
        return;
    }
    snprintf(line->other, sizeof(line->other), "sm-notify");
    snprintf(line->note + len, sizeof(line->note) - len, "; sm-notify: %u told in %.0f s", told,
             told / line->theirs[0].rate);
}

static void rows_reboot(struct scene *scene)
{
    struct rows *rows = scene->rows;
    struct process hosts = {0};
    struct peers_round round = {0};
    struct peers_hosts seen = {0};
    struct report_line *line =
        report_add_line(rows->report, "monitor-reboot", "monitor: hosts told of a reboot", NULL, 0);
    struct report_line *start =
        report_add_line(rows->report, "monitor-start", "monitor: hosts loaded at a start", NULL, 0);
    rows_say("%u hosts that answer are notified of a reboot", scene->count);
    peers_stop_rpcbind(); /* the fake hosts take port 111 */
    bool has_run = begin(scene, ROWS_HOSTS_FIRST) &&
                   peers_start_hosts(&hosts, ROWS_HOSTS_FIRST, scene->count) &&
                   start_again(scene, true) && wait_round(scene, &round);
    process_pause_ms(100); /* the hosts' last calls may not be in their line yet */
    if (!has_run || !peers_read_hosts(&hosts, &seen)) {
        rows_fail(rows, "hosts are not told of a reboot: %s", peers_why());
    } else {
        judge_start(scene, start);
        judge_told(scene, line, &round, &seen);
    }
    (void)process_stop(&hosts, SIGKILL);
    end(scene);
    if (!rows->has_failed)
        compare_sm_notify(scene, line);
}

static void rows_silent_hosts(struct scene *scene)
{
    struct rows *rows = scene->rows;
    struct peers_round round = {0};
    struct report_line *line =
        report_add_line(rows->report, "monitor-silent", "monitor: silent hosts tried", NULL, 0);
    rows_say("%u silent hosts are to be notified of a reboot", scene->count);
    if (!begin(scene, ROWS_SILENT_FIRST)) {
        rows_fail(rows, "%s", peers_why());
    } else if (!rows_silence()) {
        report_skip(line, "no way to make hosts silent (Debian: nftables): %s", peers_why());
    } else if (!start_again(scene, true) || !wait_round(scene, &round)) {
        rows_fail(rows, "the first round does not end: %s", peers_why());
    } else {
        struct report_sample ours = {.rate = scene->count * 1e3 / (round.took_ms + 1)};
        report_add_round(line, &ours, NULL);
        report_note(line, "%u of %u failed within %.2f s of readiness", round.failed, scene->count,
                    round.took_ms / 1e3);
        line->verdict = round.failed == scene->count && round.took_ms <= SILENT_GOAL_MS
                            ? REPORT_PASS
                            : REPORT_FAIL;
    }
    rows_end_silence();
    end(scene);
}

/* ---- reboots of the hosts ---- */

static void rows_upcalls(struct scene *scene)
{
    struct rows *rows = scene->rows;
    struct process lock_manager = {0};
    struct peers_hosts seen = {0};
    struct report_line *line =
        report_add_line(rows->report, "monitor-upcalls", "monitor: upcalls, all reboot", NULL, 0);
    rows_say("%u hosts reboot at once", scene->count);
    peers_stop_rpcbind();
    bool has_run =
        begin(scene, ROWS_HOSTS_FIRST) && peers_start_hosts(&lock_manager, "127.0.0.1", 1);
    uint64_t from_ns = process_now_ns();
    has_run = has_run && peers_enroll(&scene->monitor, ROWS_HOSTS_FIRST, scene->count, "reboot");
    while (has_run && seen.calls < scene->count && process_now_ns() - from_ns < UPCALLS_NS) {
        process_pause_ms(10);
        has_run = peers_read_hosts(&lock_manager, &seen);
    }
    double took_s = seconds_since(from_ns);
    if (!has_run || seen.calls < scene->count) {
        rows_fail(rows, "%u of %u upcalls were made: %s", seen.calls, scene->count, peers_why());
    } else {
        struct report_sample ours = {.rate = scene->count / took_s,
                                     .cpu_us = (double)process_cpu_ns(&scene->monitor.process) /
                                               1e3 / scene->count};
        report_add_round(line, &ours, NULL);
        report_note(line, "%u upcalls within %.2f s of the first SM_NOTIFY; goal %.0f per second",
                    seen.calls, took_s, UPCALLS_GOAL);
        line->verdict = rows->is_quick || ours.rate >= UPCALLS_GOAL ? REPORT_PASS : REPORT_FAIL;
    }
    (void)process_stop(&lock_manager, SIGKILL);
    end(scene);
}

void rows_monitor(struct rows *rows)
{
    struct scene scene = {.rows = rows, .count = rows->is_quick ? 100 : 10000};
    void (*const parts[])(struct scene *) = {rows_mon, rows_reboot, rows_silent_hosts,
                                             rows_upcalls};
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]) && !rows->has_failed; i++)
        parts[i](&scene);
}
