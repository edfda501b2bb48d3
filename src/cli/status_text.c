/*
 * status_text.c -- see status_text.h.
 */
#include "cli/status_text.h"

#include "cli/grid.h"
#include "cli/host.h"
#include "cli/print.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Cut with "…" as tables are (grid.h). */
static void print_name(FILE *out, const char *name, size_t max)
{
    char *copy = print_safe_copy(name);
    size_t width = copy == NULL ? 0 : print_width(copy), at = 0;
    bool is_cut = max > 0 && width > max;
    for (const char *c = copy == NULL ? "?" : copy; *c != '\0'; c++) {
        at += ((unsigned char)*c & 0xc0) != 0x80;
        if (!is_cut || at < max)
            (void)fputc(*c, out);
    }
    (void)fputs(is_cut ? "…" : "", out);
    free(copy);
}

/* "notified 12 s ago, 1 of 3 reclaimed", "unreachable, attempt 4, 3 locks" */
static void print_news(FILE *out, const json_t *client)
{
    long long left = print_integer(client, "unsettled_locks");
    long long reclaimed = print_integer(client, "reclaimed");
    long long attempts = print_integer(client, "attempts");
    const json_t *told = json_object_get(client, "told_seconds_ago");
    const json_t *reached = json_object_get(client, "reached_seconds_ago");
    if (json_is_integer(told) || json_is_integer(reached)) {
        bool is_told = json_is_integer(told);
        (void)fputs(is_told ? "notified " : "heard from ", out);
        print_duration(out, json_integer_value(is_told ? told : reached));
        (void)fprintf(out, " ago, %lld of %lld reclaimed", reclaimed, reclaimed + left);
        return;
    }
    if (attempts == 0)
        (void)fputs("being notified, ", out);
    else
        (void)fprintf(out, "unreachable, attempt %lld, ", attempts);
    print_plural(out, left, "lock");
}

/* How far a client has come: [######------] */
static void print_bar(FILE *out, long long done, long long all)
{
    enum { WIDTH = 20 };
    long long filled = all > 0 ? done * WIDTH / all : 0;
    (void)fputc('[', out);
    for (int i = 0; i < WIDTH; i++)
        (void)fputc(i < filled ? '#' : '-', out);
    (void)fputs("] ", out);
}

static void print_waiting(FILE *out, const json_t *client, const struct status_shape *shape)
{
    bool has_bar = shape->is_watched;
    long long done = print_integer(client, "reclaimed");
    (void)fprintf(out, "\n            %*s ", has_bar ? -5 : 0, print_string(client, "id"));
    if (has_bar)
        print_bar(out, done, done + print_integer(client, "unsettled_locks"));
    print_name(out, print_string(client, "name"), shape->name_max);
    (void)fputs(" (", out);
    print_news(out, client);
    (void)fputc(')', out);
}

static void print_grace(FILE *out, const json_t *grace, const struct status_shape *shape)
{
    const json_t *waiting = json_object_get(grace, "waiting_for");
    size_t count = json_array_size(waiting);
    size_t shown = count < shape->waiting_max ? count : shape->waiting_max;
    bool is_more = json_is_true(json_object_get(grace, "waiting_for_more"));
    bool is_on = json_is_true(json_object_get(grace, "active"));
    long long left = print_integer(grace, "unsettled_locks");
    if (!is_on && left == 0) {
        (void)fputs("grace     over\n", out);
        return;
    }
    if (is_on)
        (void)fprintf(out, "grace     %lld s left", print_integer(grace, "remaining_seconds"));
    else
        (void)fputs("grace     over, but some clients are still reclaiming", out);
    if (left > 0) {
        (void)fputs(", waiting for ", out);
        print_plural(out, left, "lock");
        (void)fputs(" of ", out);
        if (is_more)
            (void)fputs("more than ", out);
        print_plural(out, (long long)count, "client");
        (void)fputc(':', out);
    }
    for (size_t i = 0; i < shown; i++)
        print_waiting(out, json_array_get(waiting, i), shape);
    if (shown < count || is_more)
        (void)fprintf(out,
                      "\n"
                      "            %sholdfast clients lists them",
                      shown > 0 ? "and others: " : "");
    (void)fputc('\n', out);
}

/* blocked 4 min by 10.0.0.5 (c17, web3), silent for 3 h 2 min, does not answer */
static void print_silent(FILE *out, const json_t *holders, const struct status_shape *shape)
{
    size_t count = json_array_size(holders);
    size_t shown = count < shape->silent_max ? count : shape->silent_max;
    for (size_t i = 0; i < shown; i++) {
        const json_t *holder = json_array_get(holders, i);
        if (grid_has_colours())
            (void)fputs("\033[31m", out);
        (void)fputs("blocked   ", out);
        print_duration(out, print_integer(holder, "blocked_seconds"));
        (void)fprintf(out, " by %s (%s, ", print_string(holder, "address"),
                      print_string(holder, "id"));
        print_name(out, print_string(holder, "name"), shape->name_max);
        (void)fputs("), silent for ", out);
        print_duration(out, print_integer(holder, "silent_seconds"));
        (void)fprintf(out, ", does not answer; holdfast release %s", print_string(holder, "id"));
        (void)fputs(grid_has_colours() ? "\033[0m\n" : "\n", out);
    }
    if (shown < count)
        (void)fprintf(out, "blocked   by %s: holdfast locks --waiting lists them\n",
                      shown > 0 ? "other clients as well" : "clients that do not answer");
}

/*
 * conflict  web3 at 10.0.0.9, heard from 2 s ago, is refused what web3 holds
 *           at 10.0.0.5 (c17), heard from 3 h ago; if both are the same host:
 *           holdfast move c17 10.0.0.9
 */
static void print_conflicts(FILE *out, const json_t *conflicts, const struct status_shape *shape)
{
    size_t count = json_array_size(conflicts);
    size_t shown = count < shape->conflict_max ? count : shape->conflict_max;
    for (size_t i = 0; i < shown; i++) {
        const json_t *row = json_array_get(conflicts, i);
        const char *id = print_string(row, "id"), *other = print_string(row, "refused_address");
        const char *name = print_string(row, "name");
        bool can_move = json_is_true(json_object_get(row, "can_move"));
        char held[32], refused[32];
        print_ago(held, sizeof held, print_string(row, "last_seen"));
        print_ago(refused, sizeof refused, print_string(row, "refused_last_seen"));
        (void)fputs(grid_has_colours() ? "\033[33m" : "", out);
        (void)fputs("conflict  ", out);
        print_name(out, name, shape->name_max);
        (void)fprintf(out, " at %s, heard from %s, is refused what ", other, refused);
        print_name(out, name, shape->name_max);
        (void)fprintf(out,
                      " holds at\n"
                      "          %s (%s), heard from %s; %sif both are the same host:\n",
                      print_string(row, "address"), id, held, can_move ? "" : "both hold locks; ");
        (void)fprintf(out, "          holdfast %s %s%s%s", can_move ? "move" : "release", id,
                      can_move ? " " : "", can_move ? other : "");
        (void)fputs(grid_has_colours() ? "\033[0m\n" : "\n", out);
    }
    if (shown < count)
        (void)fprintf(out, "conflict  %sof names: holdfast status lists them\n",
                      shown > 0 ? "and others " : "");
}

static void print_store(FILE *out, const json_t *store, bool is_monitor)
{
    double seconds = json_real_value(json_object_get(store, "commit_seconds"));
    (void)fputs("store     ", out);
    print_safe(out, print_string(store, "url"));
    if (json_is_true(json_object_get(store, "stalled")))
        (void)fprintf(out, ", commit stalled for %.0f s", seconds);
    if (!json_is_true(json_object_get(store, "has_room")))
        (void)fprintf(out, ", full: new %s are refused", is_monitor ? "hosts" : "locks");
    if (json_is_true(json_object_get(store, "incomplete")))
        (void)fputs(", may have lost records", out);
    (void)fputc('\n', out);
}

static void print_rpcbind(FILE *out, const json_t *rpcbind, bool is_monitor)
{
    bool is_found = json_is_true(json_object_get(rpcbind, "registered"));
    bool is_off = strcmp(print_string(rpcbind, "mode"), "off") == 0;
    (void)fprintf(out, "rpcbind   %s: ", print_string(rpcbind, "mode"));
    const char *off = is_monitor ? "the lock manager of this machine cannot find the monitor"
                                 : "clients must know the port";
    const char *found = is_monitor ? "registered; the lock manager of this machine and other hosts "
                                     "can find the monitor"
                                   : "registered; clients can find the server";
    print_safe(out, is_off ? off : is_found ? found : print_string(rpcbind, "reason"));
    (void)fputc('\n', out);
}

/* programs  3 files locked for programs on this machine, too; 1 waiting for one of theirs */
static void print_local_locks(FILE *out, const json_t *locks)
{
    long long waiting = print_integer(locks, "waiting"), both = print_integer(locks, "conflicts");
    if (!json_is_true(json_object_get(locks, "on")))
        return;
    (void)fputs("programs  ", out);
    print_plural(out, print_integer(locks, "files"), "file");
    (void)fputs(" locked for programs on this machine, too", out);
    if (waiting > 0)
        (void)fprintf(out, "; %lld waiting for one of theirs", waiting);
    if (both > 0)
        (void)fprintf(out, "; %lld NOT KEPT FROM PROGRAMS, see the log", both);
    (void)fputc('\n', out);
}

/*
 * files     2 exports, 12 files open
 * async     /srv/scratch: answers before a change is on disk
 */
static void print_files(FILE *out, const json_t *files)
{
    const json_t *async = json_object_get(files, "async");
    long long errors = print_integer(files, "sync_errors");
    if (!json_is_object(files))
        return;
    (void)fputs("files     ", out);
    print_plural(out, print_integer(files, "exports"), "export");
    (void)fputs(", ", out);
    print_plural(out, print_integer(files, "open_files"), "file");
    (void)fputs(" open", out);
    if (errors > 0) {
        (void)fputs(", ", out);
        print_plural(out, errors, "failed sync");
    }
    (void)fputc('\n', out);
    print_local_locks(out, json_object_get(files, "local_locks"));
    if (json_array_size(async) == 0)
        return;
    (void)fputs("async     ", out);
    for (size_t i = 0; i < json_array_size(async); i++) {
        (void)fputs(i > 0 ? ", " : "", out);
        print_safe(out, json_string_value(json_array_get(async, i)));
    }
    if (print_integer(files, "async_exports") > (long long)json_array_size(async))
        (void)fputs(" and others", out);
    (void)fputs(": answers before a change is on disk\n", out);
}

/* c3 web1 (notice, unreachable, attempt 4) */
static void print_owed_host(FILE *out, const json_t *host, const struct status_shape *shape)
{
    long long attempts = print_integer(host, "attempts");
    bool is_resolved = json_is_string(json_object_get(host, "address"));
    bool is_tried = attempts > 0 && json_is_true(json_object_get(host, "owed"));
    (void)fprintf(out, "            %s ", print_string(host, "id"));
    print_name(out, print_string(host, "name"), shape->name_max);
    (void)fprintf(out, " (%s", is_resolved ? host_owed_words(host) : "name does not resolve");
    if (is_tried)
        (void)fprintf(out, ", unreachable, attempt %lld", attempts);
    (void)fputs(")\n", out);
}

/* "upcalls   2 reboots not yet reported", or that nothing is left. */
static void print_left(FILE *out, const char *label, long long count, const char *noun,
                       const char *left, const char *nothing)
{
    (void)fputs(label, out);
    if (count > 0)
        print_plural(out, count, noun);
    (void)fputs(count > 0 ? left : nothing, out);
}

/* Watched hosts, and for whom something is left to be done. */
static void print_hosts(FILE *out, const json_t *hosts, bool is_found,
                        const struct status_shape *shape)
{
    const json_t *waiting = json_object_get(hosts, "waiting_for");
    size_t count = json_array_size(waiting);
    size_t shown = count < shape->waiting_max ? count : shape->waiting_max;
    long long owed = print_integer(hosts, "owed"), upcalls = print_integer(hosts, "upcalls_owed");
    long long unresolved = print_integer(hosts, "unresolved");
    bool is_notifying = json_is_true(json_object_get(hosts, "notifying"));
    (void)fputs("hosts     ", out);
    print_count(out, print_integer(hosts, "watched"));
    (void)fputs(" watched\n", out);
    print_left(out, "notices   ", owed, "host",
               is_notifying ? " not yet notified of the last reboot of this machine\n"
               : is_found   ? " to be notified when the NFS server of this machine is up\n"
                            : " to be notified when rpcbind knows this monitor\n",
               "every host knows of the last reboot of this machine\n");
    print_left(out, "upcalls   ", upcalls, "reboot", " not yet reported to the lock manager\n",
               "the lock manager knows of every reboot of a host\n");
    print_left(out, "names     ", unresolved, "name",
               " unresolved: such a host can be neither notified nor believed\n", "all resolved\n");
    for (size_t i = 0; i < shown; i++)
        print_owed_host(out, json_array_get(waiting, i), shape);
    if (shown < count || json_is_true(json_object_get(hosts, "waiting_for_more")))
        (void)fprintf(out, "            %sholdfast hosts lists them\n",
                      shown > 0 ? "and others: " : "");
}

static void print_standby(FILE *out, const json_t *status)
{
    (void)fputs("\nstandby   ", out);
    print_safe(out, print_string(status, "reason"));
    (void)fputs("\nstore     ", out);
    print_safe(out, print_string(json_object_get(status, "store"), "url"));
    (void)fputc('\n', out);
}

/* waiting   11 requests for what web3 holds (c17, 10.0.0.5), the first for 8 min */
static void print_blockers(FILE *out, const json_t *status, const struct status_shape *shape)
{
    const json_t *blockers = json_object_get(status, "blockers");
    size_t count = json_array_size(blockers);
    size_t shown = count < shape->blocker_max ? count : shape->blocker_max;
    for (size_t i = 0; i < shown; i++) {
        const json_t *blocker = json_array_get(blockers, i);
        (void)fputs("waiting   ", out);
        print_plural(out, print_integer(blocker, "waiters"), "request");
        (void)fputs(" for ", out);
        print_name(out, print_string(blocker, "name"), shape->name_max);
        (void)fprintf(out, " (%s, %s), the first for ", print_string(blocker, "id"),
                      print_string(blocker, "address"));
        print_duration(out, print_integer(blocker, "oldest_wait_seconds"));
        (void)fputc('\n', out);
    }
    if (shown < count || json_is_true(json_object_get(status, "blockers_more")))
        (void)fprintf(out, "waiting   %sholdfast locks --waiting lists them\n",
                      shown > 0 ? "and others: " : "");
}

static void print_locks(FILE *out, const json_t *status, const struct status_shape *shape)
{
    print_blockers(out, status, shape);
    print_silent(out, json_object_get(status, "silent_holders"), shape);
    print_conflicts(out, json_object_get(status, "name_conflicts"), shape);
    (void)fputs("clients   ", out);
    print_plural(out, print_integer(status, "clients"), "lock client");
    (void)fputs(", ", out);
    print_count(out, print_integer(status, "registrants"));
    (void)fputs(" monitor-only\n"
                "locks     ",
                out);
    print_count(out, print_integer(status, "locks"));
    (void)fputs(" held, ", out);
    print_plural(out, print_integer(status, "waiters"), "request");
    (void)fputs(" waiting\n", out);
    print_grace(out, json_object_get(status, "grace"), shape);
    if (shape->is_brief)
        return;
    (void)fprintf(out, "recovery  %s\n",
                  strcmp(print_string(status, "recovery"), "resume") == 0
                      ? "resume: after a restart clients carry on"
                      : "reclaim: after a restart clients are notified and reclaim");
}

/* attention the store is full: new locks are refused */
static void print_attention(FILE *out, const json_t *sentences)
{
    for (size_t i = 0; i < json_array_size(sentences); i++) {
        (void)fputs(grid_has_colours() ? "\033[31mATTENTION " : "ATTENTION ", out);
        print_safe(out, json_string_value(json_array_get(sentences, i)));
        (void)fputs(grid_has_colours() ? "\033[0m\n" : "\n", out);
    }
}

/* address   *:12049; page http://127.0.0.1:12080/ */
static void print_places(FILE *out, const json_t *status)
{
    const json_t *listen = json_object_get(status, "listen");
    const char *page = json_string_value(json_object_get(status, "page"));
    (void)fputs("address   ", out);
    for (size_t i = 0; i < json_array_size(listen); i++)
        (void)fprintf(out, "%s%s", i > 0 ? ", " : "", json_string_value(json_array_get(listen, i)));
    (void)fprintf(out, "%s%s\n", page != NULL ? "; page " : "; no page", page != NULL ? page : "");
}

/* load      120 requests/s, 0.82 ms per commit */
static void print_load(FILE *out, const json_t *recent)
{
    const json_t *commit = json_object_get(recent, "commit_seconds");
    double ms = json_real_value(commit) * 1000;
    if (!json_is_integer(json_object_get(recent, "requests_per_second")))
        return;
    (void)fputs("load      ", out);
    print_count(out, print_integer(recent, "requests_per_second"));
    (void)fputs(" requests/s", out);
    if (json_is_real(commit))
        (void)fprintf(out, ", %.*f ms per commit", ms < 10 ? 2 : 0, ms);
    (void)fputc('\n', out);
}

void status_text_clock(FILE *out)
{
    char text[16] = "";
    time_t now = time(NULL);
    struct tm parts;
    if (localtime_r(&now, &parts) != NULL)
        (void)strftime(text, sizeof text, "%H:%M:%S", &parts);
    (void)fputs(text, out);
}

void status_text_print(FILE *out, const json_t *status, const struct status_shape *shape)
{
    (void)fprintf(out, "holdfast  %s on ", print_string(status, "version"));
    print_safe(out, print_string(status, "host"));
    const char *group = json_string_value(json_object_get(status, "group"));
    (void)fprintf(out, "%s%s, up ", group != NULL ? ", group " : "", group != NULL ? group : "");
    print_duration(out, print_integer(status, "uptime_seconds"));
    if (strcmp(print_string(status, "role"), "standby") == 0) {
        print_standby(out, status);
        return;
    }
    (void)fprintf(out, ", state %lld, start %lld", print_integer(status, "state"),
                  print_integer(status, "epoch"));
    if (shape->is_watched) {
        (void)fputs(", at ", out);
        status_text_clock(out);
    }
    (void)fputc('\n', out);
    print_attention(out, json_object_get(status, "attention"));
    bool is_monitor = strcmp(print_string(status, "role"), "monitor") == 0;
    const json_t *rpcbind = json_object_get(status, "rpcbind");
    bool is_found = json_is_true(json_object_get(rpcbind, "registered")) ||
                    strcmp(print_string(rpcbind, "mode"), "off") == 0;
    if (is_monitor)
        print_hosts(out, json_object_get(status, "hosts"), is_found, shape);
    else
        print_locks(out, status, shape);
    if (!shape->is_brief) {
        print_load(out, json_object_get(status, "recent"));
        print_places(out, status);
    }
    print_store(out, json_object_get(status, "store"), is_monitor);
    print_rpcbind(out, rpcbind, is_monitor);
    print_files(out, json_object_get(status, "files"));
}
