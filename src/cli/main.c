/*
 * main.c -- the `holdfast` command: a table of subcommands.
 *
 * `holdfast serve` becomes holdfastd: the server is a program of its own, so that it links nothing
 * that only the command needs. It is looked for beside this program, then in ../sbin, where an
 * installation puts it, then in $PATH.
 */
#include "base/suggest.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { EXIT_USAGE = 2 };

#define SERVER "holdfastd"

typedef int (*command_fn)(int argc, char **argv);

static int run_serve(int argc, char **argv);
static int run_help(int argc, char **argv);
static int run_version(int argc, char **argv);

static const struct {
    const char *name;
    command_fn run; /* argv[0] is the name of the command */
    const char *help;
} commands[] = {
    {"serve", run_serve, "run the server in the foreground; serve --help lists its options"},
    {"help", run_help, "print this text"},
    {"version", run_version, "print the version"},
};

enum { COMMAND_COUNT = sizeof commands / sizeof commands[0] };

static void print_usage(FILE *out)
{
    (void)fputs("Usage: holdfast COMMAND [options]\n"
                "\n"
                "Keeps NFSv3 locks safe when a client or the server crashes.\n"
                "\n"
                "Commands:\n",
                out);
    for (size_t i = 0; i < COMMAND_COUNT; i++)
        (void)fprintf(out, "  %-10s %s\n", commands[i].name, commands[i].help);
    (void)fputs("\nExit codes: 0 ok, 2 usage or configuration; the server's: serve --help.\n", out);
}

/* 0 when everything that was printed has gone out. */
static int finish(void)
{
    if (fflush(stdout) == 0 && !ferror(stdout))
        return EXIT_SUCCESS;
    (void)fprintf(stderr, "holdfast: cannot write to standard output: %s\n", strerror(errno));
    return EXIT_FAILURE;
}

static int refuse_arguments(char **argv)
{
    (void)fprintf(stderr, "holdfast %s: takes no arguments, but was given \"%s\"\n", argv[0],
                  argv[1]);
    return EXIT_USAGE;
}

static int run_help(int argc, char **argv)
{
    if (argc > 1)
        return refuse_arguments(argv);
    print_usage(stdout);
    return finish();
}

static int run_version(int argc, char **argv)
{
    if (argc > 1)
        return refuse_arguments(argv);
    (void)puts("holdfast " HOLDFAST_VERSION);
    return finish();
}

/* Runs the server that lies at `beside` from the directory of this program, if there is one. */
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
    (void)execv(path, argv); /* returns only when it failed: then the next place is tried */
    argv[0] = SERVER;
}

static int run_serve(int argc, char **argv)
{
    (void)argc;
    try_server("", argv);
    try_server("../sbin/", argv);
    (void)execvp(SERVER, argv);
    (void)fprintf(stderr,
                  "holdfast serve: cannot run " SERVER ": %s; it belongs beside this program, in "
                  "../sbin, or in $PATH\n",
                  strerror(errno));
    return EXIT_USAGE;
}

static int refuse_command(const char *name)
{
    struct suggest suggest;
    suggest_init(&suggest, name);
    for (size_t i = 0; i < COMMAND_COUNT; i++)
        suggest_offer(&suggest, commands[i].name);
    (void)fprintf(stderr, "holdfast: unknown command \"%s\"", name);
    if (suggest.best != NULL)
        (void)fprintf(stderr, "; did you mean %s?", suggest.best);
    (void)fputs("\n\n", stderr);
    print_usage(stderr);
    return EXIT_USAGE;
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        print_usage(stderr);
        return EXIT_USAGE;
    }
    const char *name = argv[1];
    if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0)
        name = "help";
    if (strcmp(name, "--version") == 0)
        name = "version";
    for (size_t i = 0; i < COMMAND_COUNT; i++)
        if (strcmp(name, commands[i].name) == 0)
            return commands[i].run(argc - 1, argv + 1);
    return refuse_command(name);
}
