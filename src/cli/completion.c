/*
 * completion.c -- `holdfast completion [bash|zsh|fish]`: what the shells complete, from the table
 * of commands. The build runs it and installs the results.
 *
 * Options of `serve` are the server's: each shell asks it for them when they are wanted.
 */
#include "cli/arguments.h"
#include "cli/command.h"

#include <stdio.h>
#include <string.h>

#define SERVE_OPTIONS "holdfast serve --help 2> /dev/null | sed -n 's/^  \\(--[a-z-]*\\).*/\\1/p'"

static bool is_serve(const struct command *command)
{
    return strcmp(command->name, "serve") == 0;
}

/* Does the name have words of which there are only some: "clear|export", or a command's name? */
static bool has_choices(const struct command *command)
{
    return (command->words != NULL && strchr(command->words, '|') != NULL) ||
           strcmp(command->name, "help") == 0;
}

/* The words of "one|two" or "[one|two]", up to a blank, with a blank between. */
static void put_choices(const char *choices)
{
    for (; *choices != '\0' && *choices != ' '; choices++) {
        if (*choices != '[' && *choices != ']')
            (void)putchar(*choices == '|' ? ' ' : *choices);
    }
}

static void put_command_names(void)
{
    for (size_t i = 0; i < command_count; i++)
        (void)printf("%s%s", i > 0 ? " " : "", command_table[i].name);
}

static void put_words(const struct command *command)
{
    if (strcmp(command->name, "help") == 0)
        put_command_names();
    else
        put_choices(command->words);
}

/* Text inside single quotes, with a backslash before every character of `special`. A quote ends and
 * begins them again (bash, zsh), or has a backslash, too (fish). */
static void put_quoted(const char *text, const char *special)
{
    for (; *text != '\0'; text++) {
        if (*text == '\'' && strchr(special, '\'') == NULL) {
            (void)fputs("'\\''", stdout);
            continue;
        }
        if (strchr(special, *text) != NULL)
            (void)putchar('\\');
        (void)putchar(*text);
    }
}

typedef void (*put_option_fn)(const struct command *command, const struct command_option *option);

/* Its own, and those of every command. */
static void each_option(const struct command *command, put_option_fn put)
{
    for (const struct command_option *at = command->options; at != NULL && at->name != NULL; at++)
        put(command, at);
    for (const struct command_option *at = command_common_of(command); at->name != NULL; at++)
        put(command, at);
}

/* ---- bash ---- */

static void bash_name(const struct command *command, const struct command_option *option)
{
    (void)command;
    (void)printf(" --%s", option->name);
}

/* After an option comes its value: one of its choices, or whatever bash completes by default. */
static void bash_value(const struct command *command, const struct command_option *option)
{
    (void)command;
    if (option->argument == NULL)
        return;
    (void)printf("                --%s)", option->name);
    if (strchr(option->argument, '|') != NULL) {
        (void)fputs(" words=\"", stdout);
        put_choices(option->argument);
        (void)puts("\" ;;");
    } else {
        (void)puts(" return ;;");
    }
}

static void bash_command(const struct command *command)
{
    (void)printf("        %s)\n", command->name);
    if (is_serve(command)) {
        (void)puts("            words=$(" SERVE_OPTIONS ")\n"
                   "            case ${COMP_WORDS[COMP_CWORD - 1]} in\n"
                   "                --config | --control) return ;;\n"
                   "            esac\n            ;;");
        return;
    }
    (void)fputs("            words=\"", stdout);
    if (has_choices(command))
        put_words(command);
    each_option(command, bash_name);
    (void)puts("\"\n            case ${COMP_WORDS[COMP_CWORD - 1]} in");
    each_option(command, bash_value);
    (void)puts("            esac\n            ;;");
}

static void put_bash(void)
{
    (void)fputs("# bash completion for holdfast, made by `holdfast completion bash`.\n"
                "_holdfast()\n{\n"
                "    local word=${COMP_WORDS[COMP_CWORD]} words=\n"
                "    if [ \"$COMP_CWORD\" -eq 1 ]; then\n        words=\"",
                stdout);
    put_command_names();
    (void)puts("\"\n    else\n        case ${COMP_WORDS[1]} in");
    for (size_t i = 0; i < command_count; i++)
        bash_command(&command_table[i]);
    (void)puts("        esac\n    fi\n"
               "    mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$word\")\n"
               "}\n"
               "complete -o bashdefault -o default -F _holdfast holdfast");
}

/* ---- zsh ---- */

static void zsh_option(const struct command *command, const struct command_option *option)
{
    (void)command;
    (void)printf(" \\\n            '--%s[", option->name);
    put_quoted(option->help, "\\[]:");
    (void)putchar(']');
    if (option->argument != NULL && strchr(option->argument, '|') != NULL) {
        (void)fputs(":value:(", stdout);
        put_choices(option->argument);
        (void)putchar(')');
    } else if (option->argument != NULL) {
        (void)printf(":%s:_files", option->argument);
    }
    (void)putchar('\'');
}

static void zsh_command(const struct command *command)
{
    (void)printf("        %s)\n", command->name);
    if (is_serve(command)) {
        (void)puts("            values=(${(f)\"$(" SERVE_OPTIONS ")\"})\n"
                   "            compadd -- $values || _files\n            ;;");
        return;
    }
    (void)fputs("            _arguments", stdout);
    if (has_choices(command)) {
        (void)fputs(" \\\n            '1:word:(", stdout);
        put_words(command);
        (void)fputs(")'", stdout);
    }
    each_option(command, zsh_option);
    (void)puts("\n            ;;");
}

static void put_zsh(void)
{
    (void)puts("#compdef holdfast\n"
               "# zsh completion for holdfast, made by `holdfast completion zsh`.\n"
               "_holdfast()\n{\n"
               "    local state\n    local -a commands values\n"
               "    _arguments -C '1:command:->command' '*::word:->word'\n"
               "    if [[ $state = command ]]; then\n        commands=(");
    for (size_t i = 0; i < command_count; i++) {
        (void)printf("            '%s:", command_table[i].name);
        put_quoted(command_table[i].help, "\\");
        (void)puts("'");
    }
    (void)puts("        )\n        _describe command commands\n        return\n    fi\n"
               "    [[ $state = word ]] || return 0\n"
               "    case $words[1] in");
    for (size_t i = 0; i < command_count; i++)
        zsh_command(&command_table[i]);
    (void)puts("    esac\n}\n"
               "if [ \"$funcstack[1]\" = _holdfast ]; then\n    _holdfast \"$@\"\n"
               "else\n    compdef _holdfast holdfast\nfi");
}

/* ---- fish ---- */

#define FISH_SPECIAL "\\'"

static void fish_option(const struct command *command, const struct command_option *option)
{
    (void)printf("complete -c holdfast -n '__fish_seen_subcommand_from %s' -l %s", command->name,
                 option->name);
    if (option->argument != NULL && strchr(option->argument, '|') != NULL) {
        (void)fputs(" -x -a '", stdout);
        put_choices(option->argument);
        (void)putchar('\'');
    } else if (option->argument != NULL) {
        (void)fputs(" -r", stdout);
    }
    (void)fputs(" -d '", stdout);
    put_quoted(option->help, FISH_SPECIAL);
    (void)puts("'");
}

static void fish_command(const struct command *command)
{
    (void)printf("complete -c holdfast -n __fish_use_subcommand -a %s -d '", command->name);
    put_quoted(command->help, FISH_SPECIAL);
    (void)puts("'");
    if (is_serve(command)) {
        (void)puts("complete -c holdfast -n '__fish_seen_subcommand_from serve' -F -a "
                   "\"(" SERVE_OPTIONS ")\"");
        return;
    }
    if (has_choices(command)) {
        (void)printf("complete -c holdfast -n '__fish_seen_subcommand_from %s' -a '",
                     command->name);
        put_words(command);
        (void)puts("'");
    }
    each_option(command, fish_option);
}

static void put_fish(void)
{
    (void)puts("# fish completion for holdfast, made by `holdfast completion fish`.\n"
               "complete -c holdfast -f");
    for (size_t i = 0; i < command_count; i++)
        fish_command(&command_table[i]);
}

int completion_run(const struct command *command, int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*put)(void);
    } shells[] = {{"bash", put_bash}, {"zsh", put_zsh}, {"fish", put_fish}};
    struct arguments arguments;
    int exit_code;
    if (!arguments_read(command, argc, argv, &arguments, &exit_code))
        return exit_code;
    const char *shell = arguments.word_count > 0 ? arguments.words[0] : "bash";
    for (size_t i = 0; i < sizeof shells / sizeof shells[0]; i++) {
        if (strcmp(shell, shells[i].name) == 0) {
            shells[i].put();
            return arguments_finish();
        }
    }
    (void)fprintf(stderr,
                  "holdfast completion: no completions for \"%s\"; there are bash, zsh, fish\n",
                  shell);
    return EXIT_USAGE;
}
