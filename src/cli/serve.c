/*
 * serve.c -- `holdfast serve`, `store` and `groups` become holdfastd, which has the stores.
 *
 * The server is a separate program, so that it links nothing that only the command needs. It is
 * searched next to this program, then in ../sbin, where it is installed, then in $PATH.
 */
#include "cli/command.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define SERVER "holdfastd"

/* Runs the server at `beside`, relative to this program's directory, if there is one. */
static void try_server(const char *beside, char **argv)
{
    char path[PATH_MAX];
    ssize_t len = readlink("/proc/self/exe", path, sizeof path - 1);
    if (len <= 0)
        return;
    path[len] = '\0';
    char *slash = strrchr(path, '/');
    if (slash == NULL)
        return;
    size_t room = sizeof path - (size_t)(slash + 1 - path);
    if ((size_t)snprintf(slash + 1, room, "%s" SERVER, beside) >= room)
        return;
    argv[0] = path;
    (void)execv(path, argv); /* returns only on failure: then the next place is tried */
    argv[0] = SERVER;
}

int serve_run(const struct command *command, int argc, char **argv)
{
    (void)command;
    (void)argc;
    try_server("", argv);
    try_server("../sbin/", argv);
    (void)execvp(SERVER, argv);
    (void)fprintf(stderr,
                  "holdfast serve: cannot run " SERVER
                  ": %s; it must be next to this program, in ../sbin, or in $PATH\n",
                  strerror(errno));
    return EXIT_USAGE;
}

/* With all the words, "store" or "groups" among them. */
int serve_store(const struct command *command, int argc, char **argv)
{
    return serve_run(command, argc + 1, argv - 1);
}
