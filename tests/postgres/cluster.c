/*
 * cluster.c -- a private PostgreSQL; see cluster.h.
 */
#include "cluster.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <glob.h>
#include <grp.h>
#include <libpq-fe.h>
#include <pwd.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { PATIENCE_S = 60 };

static void pause_briefly(void)
{
    struct timespec pause = {.tv_nsec = 20000000};
    nanosleep(&pause, NULL);
}

static bool has_program(const char *directory)
{
    char path[256];
    snprintf(path, sizeof path, "%s/initdb", directory);
    return access(path, X_OK) == 0;
}

static bool find_in_path(struct cluster *cluster)
{
    const char *at = getenv("PATH");
    while (at && *at != '\0') {
        int len = (int)strcspn(at, ":");
        snprintf(cluster->programs, sizeof cluster->programs, "%.*s", len, at);
        if (has_program(cluster->programs))
            return true;
        at += len;
        at += *at == ':';
    }
    return false;
}

/* Debian keeps the programs of each version apart, and out of the path. */
static bool find_programs(struct cluster *cluster)
{
    glob_t found = {0};
    bool is_found = false;
    if (glob("/usr/lib/postgresql/*/bin", 0, NULL, &found) == 0) {
        for (size_t i = 0; i < found.gl_pathc; i++) {
            if (!has_program(found.gl_pathv[i]))
                continue;
            snprintf(cluster->programs, sizeof cluster->programs, "%s", found.gl_pathv[i]);
            is_found = true;
        }
        globfree(&found);
    }
    return is_found || find_in_path(cluster);
}

static bool choose_user(struct cluster *cluster)
{
    cluster->user = getuid();
    cluster->group = getgid();
    if (cluster->user != 0)
        return true;
    const struct passwd *user = getpwnam("postgres");
    if (user == NULL)
        user = getpwnam("nobody");
    if (user == NULL)
        return false;
    cluster->user = user->pw_uid;
    cluster->group = user->pw_gid;
    return true;
}

/* A program of PostgreSQL as the unprivileged user; it dies with us. */
static pid_t spawn(const struct cluster *cluster, const char *const *arguments)
{
    char program[192], log_path[192];
    snprintf(program, sizeof program, "%s/%s", cluster->programs, arguments[0]);
    snprintf(log_path, sizeof log_path, "%s/log", cluster->directory);
    pid_t parent = getpid();
    fflush(NULL);
    pid_t pid = fork();
    if (pid != 0)
        return pid;
    if (getuid() == 0 &&
        (setgroups(0, NULL) != 0 || setgid(cluster->group) != 0 || setuid(cluster->user) != 0))
        _exit(126);
    int log = open(log_path, O_WRONLY | O_CREAT | O_APPEND, 0600);
    int null = open("/dev/null", O_RDWR);
    dup2(null, 0);
    dup2(log, 1);
    dup2(log, 2);
    for (int fd = 3; fd < 1024; fd++)
        close(fd);
    if (chdir("/") != 0)
        _exit(126);
    prctl(PR_SET_PDEATHSIG, SIGQUIT); /* crash recovery is what the next start is for */
    if (getppid() != parent)
        _exit(126);
    execv(program, (char *const *)(uintptr_t)arguments);
    _exit(127);
}

static int remove_one(const char *path, const struct stat *status, int flag, struct FTW *walk)
{
    (void)status;
    (void)flag;
    (void)walk;
    return remove(path);
}

static void print_log(const struct cluster *cluster)
{
    char path[192], line[512];
    snprintf(path, sizeof path, "%s/log", cluster->directory);
    FILE *file = fopen(path, "re");
    while (file && fgets(line, sizeof line, file))
        fprintf(stderr, "# postgres: %s", line);
    if (file)
        fclose(file);
}

static bool make_directory(struct cluster *cluster)
{
    const char *parent = getenv("TMPDIR");
    snprintf(cluster->directory, sizeof cluster->directory, "%s/holdfast-pg-XXXXXX",
             parent && *parent ? parent : "/tmp");
    return mkdtemp(cluster->directory) != NULL &&
           chown(cluster->directory, cluster->user, cluster->group) == 0;
}

/* Runs a program of PostgreSQL to its end. False: it failed, and the directory is gone. */
static bool run_program(struct cluster *cluster, const char *const *arguments)
{
    int status = 0;
    pid_t pid = spawn(cluster, arguments);
    if (pid > 0 && waitpid(pid, &status, 0) == pid && status == 0)
        return true;
    print_log(cluster);
    cluster_done(cluster);
    return false;
}

/* Who reaches it may do everything: where it has a network, that is the test's own. */
static bool open_doors(const struct cluster *cluster)
{
    char path[192];
    snprintf(path, sizeof path, "%s/data/pg_hba.conf", cluster->directory);
    FILE *file = fopen(path, "ae");
    return file && fputs("host all all all trust\n", file) >= 0 && fclose(file) == 0;
}

bool cluster_init(struct cluster *cluster, const char **ret_why)
{
    *cluster = (struct cluster){0};
    *ret_why = "PostgreSQL is not installed (Debian: postgresql)";
    if (!find_programs(cluster))
        return false;
    *ret_why = "there is no unprivileged user to run PostgreSQL as";
    if (!choose_user(cluster))
        return false;
    *ret_why = "its directory cannot be made";
    if (!make_directory(cluster))
        return false;
    char data[160];
    snprintf(data, sizeof data, "%s/data", cluster->directory);
    const char *const arguments[] = {"initdb", "-D", data,   "-U",          "holdfast",  "-A",
                                     "trust",  "-E", "UTF8", "--no-locale", "--no-sync", NULL};
    *ret_why = "initdb failed";
    return run_program(cluster, arguments) && open_doors(cluster);
}

bool cluster_copy(struct cluster *copy, const struct cluster *of)
{
    char data[160];
    *copy = *of;
    copy->pid = 0;
    copy->address = NULL;
    if (!make_directory(copy))
        return false;
    snprintf(data, sizeof data, "%s/data", copy->directory);
    const char *const arguments[] = {"pg_basebackup", "-D", data, "-h",     of->directory, "-U",
                                     "holdfast",      "-R", "-X", "stream", "-c",          "fast",
                                     "--no-sync",     NULL};
    return run_program(copy, arguments);
}

void cluster_done(struct cluster *cluster)
{
    cluster_stop(cluster, SIGQUIT);
    if (cluster->directory[0] != '\0')
        nftw(cluster->directory, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    cluster->directory[0] = '\0';
}

static PGconn *connect_to(const struct cluster *cluster, const char *database)
{
    const char *const keys[] = {"host", "dbname", "user", "connect_timeout", "options", NULL};
    const char *const values[] = {
        cluster->directory, database, "holdfast", "5", "-c client_min_messages=warning", NULL};
    PGconn *connection = PQconnectdbParams(keys, values, 0);
    if (PQstatus(connection) == CONNECTION_OK)
        return connection;
    PQfinish(connection);
    return NULL;
}

bool cluster_start(struct cluster *cluster)
{
    char data[160];
    snprintf(data, sizeof data, "%s/data", cluster->directory);
    const char *sync = cluster->is_synced ? "fsync=on" : "fsync=off";
    const char *const arguments[] = {"postgres",
                                     "-D",
                                     data,
                                     "-k",
                                     cluster->directory,
                                     "-h",
                                     cluster->address ? cluster->address : "",
                                     "-c",
                                     sync,
                                     "-c",
                                     "max_connections=50",
                                     "-c",
                                     "shared_buffers=32MB",
                                     "-c",
                                     "autovacuum_naptime=5s",
                                     NULL};
    time_t deadline = time(NULL) + PATIENCE_S;
    while (time(NULL) < deadline) {
        int status = 0;
        /* After a crash the processes of the old one may need a moment to go. */
        if (cluster->pid != 0 && waitpid(cluster->pid, &status, WNOHANG) == cluster->pid)
            cluster->pid = 0;
        if (cluster->pid == 0)
            cluster->pid = spawn(cluster, arguments);
        PGconn *connection = connect_to(cluster, "postgres");
        if (connection != NULL) {
            PQfinish(connection);
            return true;
        }
        pause_briefly();
    }
    print_log(cluster);
    return false;
}

void cluster_stop(struct cluster *cluster, int signal)
{
    if (cluster->pid <= 0)
        return;
    kill(cluster->pid, signal);
    while (waitpid(cluster->pid, NULL, 0) < 0 && errno == EINTR)
        continue;
    cluster->pid = 0;
}

const char *cluster_ask(const struct cluster *cluster, const char *database, const char *sql)
{
    static char answer[1024];
    PGconn *connection = connect_to(cluster, database);
    if (connection == NULL)
        return NULL;
    PGresult *result = PQexec(connection, sql);
    ExecStatusType status = PQresultStatus(result);
    bool is_good = status == PGRES_TUPLES_OK || status == PGRES_COMMAND_OK;
    if (!is_good)
        fprintf(stderr, "# %s: %s", sql, PQresultErrorMessage(result));
    snprintf(answer, sizeof answer, "%s",
             status == PGRES_TUPLES_OK && PQntuples(result) > 0 ? PQgetvalue(result, 0, 0) : "");
    PQclear(result);
    PQfinish(connection);
    return is_good ? answer : NULL;
}

bool cluster_run(const struct cluster *cluster, const char *database, const char *sql)
{
    return cluster_ask(cluster, database, sql) != NULL;
}

bool cluster_fresh(const struct cluster *cluster, const char *database)
{
    char sql[128];
    snprintf(sql, sizeof sql, "DROP DATABASE IF EXISTS %s WITH (FORCE)", database);
    if (!cluster_run(cluster, "postgres", sql))
        return false;
    snprintf(sql, sizeof sql, "CREATE DATABASE %s", database);
    return cluster_run(cluster, "postgres", sql);
}

const char *cluster_url(const struct cluster *cluster, const char *database)
{
    static char url[256];
    snprintf(url, sizeof url, "postgres:host=%s user=holdfast dbname=%s", cluster->directory,
             database);
    return url;
}
