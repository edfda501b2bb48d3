/*
 * main.c -- the `holdfast` command: finds the row of the table (command.h) to run.
 */
#include "base/suggest.h"
#include "cli/http_client.h"

#include <stdio.h>
#include <string.h>

static void print_usage(FILE *out)
{
    (void)fputs("Usage: holdfast COMMAND [options]\n"
                "\n"
                "Keeps NFSv3 locks safe when a client or the server crashes.\n"
                "\n"
                "Commands:\n",
                out);
    for (size_t i = 0; i < command_count; i++)
        (void)fprintf(out, "  %-13s %s\n", command_table[i].name, command_table[i].help);
    (void)fputs("\nSee COMMAND --help. Exit codes: 0 ok, 1 refused or negative result, 2 usage or\n"
                "configuration, 75 cannot reach the server; for the server's see serve --help.\n",
                out);
}

static const struct command *find(const char *name)
{
    for (size_t i = 0; i < command_count; i++)
        if (strcmp(name, command_table[i].name) == 0)
            return &command_table[i];
    return NULL;
}

int main_version(const struct command *command, int argc, char **argv)
{
    struct arguments arguments;
    int exit_code;
    if (!arguments_read(command, argc, argv, &arguments, &exit_code))
        return exit_code;
    (void)puts("holdfast " HOLDFAST_VERSION);
    return arguments_finish();
}

static int refuse_command(const char *name)
{
    struct suggest suggest;
    suggest_init(&suggest, name);
    for (size_t i = 0; i < command_count; i++)
        suggest_offer(&suggest, command_table[i].name);
    (void)fprintf(stderr, "holdfast: unknown command \"%s\"", name);
    if (suggest.best != NULL)
        (void)fprintf(stderr, "; did you mean %s?", suggest.best);
    (void)fputs("\n\n", stderr);
    print_usage(stderr);
    return EXIT_USAGE;
}

static int run(const struct command *command, int argc, char **argv)
{
    return command->ask != NULL ? http_client_run(command, argc, argv)
                                : command->run(command, argc, argv);
}

int main_help(const struct command *command, int argc, char **argv)
{
    struct arguments arguments;
    int exit_code;
    if (!arguments_read(command, argc, argv, &arguments, &exit_code))
        return exit_code;
    if (arguments.word_count > 0) {
        const struct command *other = find(arguments.words[0]);
        char option[] = "--help";
        char *words[] = {argv[0], argv[1], option, NULL}; /* as main would give them */
        return other != NULL ? run(other, 2, words + 1) : refuse_command(arguments.words[0]);
    }
    print_usage(stdout);
    return arguments_finish();
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
    const struct command *command = find(name);
    return command != NULL ? run(command, argc - 1, argv + 1) : refuse_command(name);
}
