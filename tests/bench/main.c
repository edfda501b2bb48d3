/*
 * main.c -- the bench: runs the rows, prints the table, writes the file, compares with another.
 *
 * usage: bench HOLDFASTD TOOLS WORK JSON [--compare FILE] [--rounds N] [--only ROW] [--quick]
 *
 * tests/bench/run starts it in namespaces of its own, as the first process there: network traffic
 * stays inside, ports are free, and everything that was started ends with it. Exit 1 when an answer
 * was wrong; speed fails nobody.
 */
#include "bench/peers.h"
#include "bench/rows.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#define ROUNDS 7

static const struct {
    const char *name;
    void (*measure)(struct rows *rows);
} table[] = {
    {"calls", rows_calls},         {"registrations", rows_registrations},
    {"reachable", rows_reachable}, {"silent", rows_silent},
    {"locks", rows_locks},         {"newcomers", rows_newcomers},
    {"file", rows_file},           {"postgres", rows_postgres},
    {"http", rows_http},           {"backup", rows_backup},
    {"storm", rows_storm},         {"files", rows_files},
    {"files", rows_files_durable}, {"mirror", rows_mirror},
    {"monitor", rows_monitor},
};

struct options {
    const char *compare, *only;
    uint32_t rounds;
    bool is_quick;
};

static bool parse(int count, char **arguments, struct options *ret)
{
    struct options options = {.rounds = ROUNDS};
    if (count < 5)
        return false;
    for (int i = 5; i < count; i++) {
        const char *value = i + 1 < count ? arguments[i + 1] : NULL;
        if (strcmp(arguments[i], "--quick") == 0) {
            options.is_quick = true;
            options.rounds = 1;
            continue;
        }
        if (!value)
            return false;
        if (strcmp(arguments[i], "--compare") == 0)
            options.compare = value;
        else if (strcmp(arguments[i], "--only") == 0)
            options.only = value;
        else if (strcmp(arguments[i], "--rounds") == 0)
            options.rounds = (uint32_t)strtoul(value, NULL, 10);
        else
            return false;
        i++;
    }
    *ret = options;
    return options.rounds > 0 && options.rounds <= REPORT_ROUNDS_MAX;
}

static void describe(char *ret, size_t size)
{
    struct utsname system;
    char when[32];
    time_t now = time(NULL);
    struct tm utc;
    uname(&system);
    strftime(when, sizeof(when), "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &utc));
    snprintf(ret, size, "%s, %s %s, %ld processors", when, system.sysname, system.release,
             sysconf(_SC_NPROCESSORS_ONLN));
}

/* By its name, or by the beginning of the keys of some of its lines: "files-read". */
static bool is_asked_for(const char *only, const char *name)
{
    size_t len = strlen(name);
    return !only || strcmp(only, name) == 0 || (strncmp(only, name, len) == 0 && only[len] == '-');
}

int main(int count, char **arguments)
{
    static struct report report;
    struct options options;
    char about[256];
    bool has_run = false;
    if (!parse(count, arguments, &options)) {
        fprintf(stderr,
                "usage: bench HOLDFASTD TOOLS WORK JSON [--compare FILE] [--rounds N]"
                " [--only calls|registrations|reachable|silent|locks|newcomers|file|postgres|http|"
                "backup|storm|files|files-KEY|mirror|monitor]"
                " [--quick]\n");
        return 2;
    }
    struct peers_paths paths = {arguments[1], arguments[2], arguments[3]};
    struct rows rows = {&report, options.only, options.rounds, options.is_quick, false};
    if (options.compare && access(options.compare, R_OK) < 0) {
        fprintf(stderr,
                "bench: cannot read %s: %s; give COMPARE a file that an earlier run wrote\n",
                options.compare, strerror(errno));
        return 2;
    }
    describe(about, sizeof(about));
    peers_init(&paths);
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]) && !rows.has_failed; i++) {
        if (!is_asked_for(options.only, table[i].name))
            continue;
        has_run = true;
        table[i].measure(&rows);
    }
    peers_stop_rpcbind();
    if (!has_run) {
        fprintf(stderr, "bench: there are no rows '%s'\n", options.only);
        return 2;
    }
    printf("%s\n\n", about);
    report_print(&report, stdout);
    if (!report_write(&report, about, arguments[4])) {
        fprintf(stderr, "bench: cannot write %s: %s\n", arguments[4], strerror(errno));
        return 1;
    }
    if (options.compare && !report_compare(&report, options.compare, stdout)) {
        fprintf(stderr, "bench: %s holds no line that this run has\n", options.compare);
        return 2;
    }
    return rows.has_failed ? 1 : 0;
}
