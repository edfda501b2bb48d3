/*
 * arguments.c -- parses a command line, and prints the help of one command; see arguments.h.
 */
#include "cli/arguments.h"

#include "base/hex.h"
#include "base/suggest.h"
#include "cli/print.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum {
    LEFT_MAX = 18,   /* columns of an option in the help, beside which there is room for text */
    HANDLE_MAX = 64, /* bytes of a file handle */
};

static const struct command_option *const no_options = &(const struct command_option){0};

static const struct command_option *lists_of(const struct command *command, int index)
{
    const struct command_option *own = command->options != NULL ? command->options : no_options;
    return index == 0 ? own : command_common_of(command);
}

static const struct command_option *find(const struct command *command, const char *name,
                                         size_t len)
{
    for (int i = 0; i < 2; i++)
        for (const struct command_option *at = lists_of(command, i); at->name != NULL; at++)
            if (strlen(at->name) == len && strncmp(at->name, name, len) == 0)
                return at;
    return NULL;
}

static void print_help(const struct command *command)
{
    (void)printf("Usage: holdfast %s%s%s [options]\n\n%s\n", command->name,
                 command->words != NULL ? " " : "", command->words != NULL ? command->words : "",
                 command->help);
    if (command->more != NULL) {
        (void)puts("");
        print_wrapped(stdout, command->more);
    }
    (void)puts("\nOptions:");
    for (int i = 0; i < 2; i++) {
        for (const struct command_option *at = lists_of(command, i); at->name != NULL; at++) {
            char left[64];
            (void)snprintf(left, sizeof left, "--%s %s", at->name,
                           at->argument != NULL ? at->argument : "");
            if (strlen(left) > LEFT_MAX)
                (void)printf("  %s\n%*s%s\n", left, LEFT_MAX + 3, "", at->help);
            else
                (void)printf("  %-*s %s\n", LEFT_MAX, left, at->help);
        }
    }
}

static int refuse(const struct command *command, const char *what, const char *word,
                  const char *advice)
{
    (void)fprintf(stderr, "holdfast %s: %s%s%s\n", command->name, what, word, advice);
    return EXIT_USAGE;
}

static int refuse_option(const struct command *command, const char *word)
{
    struct suggest suggest;
    suggest_init(&suggest, word + strspn(word, "-"));
    for (int i = 0; i < 2; i++)
        for (const struct command_option *at = lists_of(command, i); at->name != NULL; at++)
            suggest_offer(&suggest, at->name);
    (void)fprintf(stderr, "holdfast %s: unknown option %s", command->name, word);
    if (suggest.best != NULL)
        (void)fprintf(stderr, "; did you mean --%s?", suggest.best);
    (void)fprintf(stderr, " (holdfast %s --help lists the options)\n", command->name);
    return EXIT_USAGE;
}

/* One option at argv[*at]. -1: continue. */
static int read_option(const struct command *command, int argc, char **argv, int *at,
                       struct arguments *ret)
{
    const char *name = argv[*at] + 2;
    size_t len = strncmp(argv[*at], "--", 2) == 0 ? strcspn(name, "=") : 0;
    const struct command_option *option = find(command, name, len);
    if (option == NULL)
        return refuse_option(command, argv[*at]);
    if (strcmp(option->name, "help") == 0) {
        print_help(command);
        return arguments_finish();
    }
    const char *value = name[len] == '=' ? name + len + 1 : NULL;
    if (option->argument == NULL && value != NULL)
        return refuse(command, "option takes no value: --", option->name, "");
    if (option->argument != NULL && value == NULL) {
        if (*at + 1 >= argc)
            return refuse(command, "option needs a value: --", option->name, "");
        value = argv[++*at];
    }
    if (arguments_has(ret, option->name))
        return refuse(command, "option given twice: --", option->name, "");
    ret->names[ret->option_count] = option->name;
    ret->values[ret->option_count++] = value;
    return -1;
}

/* How many words follow the name, as its row says: in brackets those that may be missing. */
static void count_words(const char *words, int *ret_min, int *ret_max)
{
    *ret_min = *ret_max = 0;
    for (const char *word = words; word != NULL; word = strchr(word, ' ')) {
        word += *word == ' ';
        *ret_min += *word != '[';
        *ret_max += 1;
    }
}

bool arguments_read(const struct command *command, int argc, char **argv, struct arguments *ret,
                    int *ret_exit_code)
{
    int words_min, words_max;
    count_words(command->words, &words_min, &words_max);
    *ret = (struct arguments){.command = command};
    bool has_ended = false; /* after "--" everything is a word */
    for (int at = 1; at < argc; at++) {
        const char *word = argv[at];
        if (!has_ended && strcmp(word, "--") == 0) {
            has_ended = true;
            continue;
        }
        if (!has_ended && strcmp(word, "-h") == 0)
            argv[at] = "--help";
        if (!has_ended && argv[at][0] == '-' && argv[at][1] != '\0') {
            *ret_exit_code = read_option(command, argc, argv, &at, ret);
            if (*ret_exit_code >= 0)
                return false;
            continue;
        }
        if (ret->word_count == words_max) {
            *ret_exit_code = words_max == 0 ? refuse(command, "takes no arguments: \"", word, "\"")
                                            : refuse(command, "too many arguments: ", word, "");
            return false;
        }
        ret->words[ret->word_count++] = word;
    }
    if (ret->word_count >= words_min)
        return true;
    *ret_exit_code = refuse(command, "missing argument: ", command->words, "; see --help");
    return false;
}

bool arguments_has(const struct arguments *arguments, const char *name)
{
    for (int i = 0; i < arguments->option_count; i++)
        if (strcmp(arguments->names[i], name) == 0)
            return true;
    return false;
}

const char *arguments_value(const struct arguments *arguments, const char *name)
{
    for (int i = 0; i < arguments->option_count; i++)
        if (strcmp(arguments->names[i], name) == 0)
            return arguments->values[i];
    return NULL;
}

bool arguments_is_handle(const char *value)
{
    uint8_t handle[HANDLE_MAX];
    uint32_t len;
    return hex_parse(value, handle, sizeof handle, &len);
}

int arguments_finish(void)
{
    if (fflush(stdout) == 0 && !ferror(stdout))
        return EXIT_OK;
    (void)fprintf(stderr, "holdfast: cannot write to standard output: %s\n", strerror(errno));
    return EXIT_NO;
}
