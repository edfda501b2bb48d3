/*
 * manual.c -- the manual page holdfast(1) and the completions for bash, both from the table of
 * commands: `holdfast manual`, `holdfast completion`. The build runs them.
 */
#include "cli/arguments.h"
#include "cli/command.h"

#include <stdio.h>
#include <string.h>

/* Words, broken into lines of at most 78 columns; a sentence begins its own, as mdoc likes it. */
static void put_text(const char *text)
{
    enum { LINE_MAX_LEN = 78 };
    size_t column = 0;
    while (*text != '\0') {
        size_t len = strcspn(text, " ");
        if (column > 0 && column + 1 + len > LINE_MAX_LEN) {
            (void)putchar('\n');
            column = 0;
        }
        if (column > 0)
            (void)putchar(' ');
        (void)fwrite(text, 1, len, stdout);
        column += len + (column > 0);
        bool ends_sentence = len > 0 && text[len - 1] == '.';
        text += len;
        text += strspn(text, " ");
        if (ends_sentence && *text != '\0') {
            (void)putchar('\n');
            column = 0;
        }
    }
    (void)putchar('\n');
}

static void put_options(const struct command_option *options)
{
    for (; options != NULL && options->name != NULL; options++) {
        (void)printf(".It Fl Fl %s%s%s\n", options->name, options->argument != NULL ? " Ar " : "",
                     options->argument != NULL ? options->argument : "");
        put_text(options->help);
    }
}

static void put_command(const struct command *command)
{
    (void)printf(".It Cm %s", command->name);
    if (command->words != NULL)
        (void)printf(" Ar %s", command->words);
    (void)putchar('\n');
    (void)printf("%c%s.\n",
                 command->help[0] >= 'a' && command->help[0] <= 'z' ? command->help[0] - 'a' + 'A'
                                                                    : command->help[0],
                 command->help + 1);
    if (command->more != NULL)
        put_text(command->more);
    if (command->options == NULL)
        return;
    (void)puts(".Bl -tag -width Ds");
    put_options(command->options);
    (void)puts(".El");
}

int manual_run(const struct command *command, int argc, char **argv)
{
    struct arguments arguments;
    int exit_code;
    if (!arguments_read(command, argc, argv, &arguments, &exit_code))
        return exit_code;
    (void)puts(".Dd $Mdocdate$\n.Dt HOLDFAST 1\n.Os\n.Sh NAME\n.Nm holdfast\n"
               ".Nd inspect and operate the lock server for NFSv3\n"
               ".Sh SYNOPSIS\n.Nm\n.Ar command\n.Op Ar options\n"
               ".Sh DESCRIPTION\n"
               "The server keeps NFSv3 locks safe when a client or the server crashes; see\n"
               ".Xr holdfastd 8 .\n"
               ".Nm\n"
               "talks to it over its control socket, as root or as the server's user.\n"
               "A client is named by its id (c17), its address or its name.\n"
               ".Pp\nThe commands are:\n.Bl -tag -width Ds");
    for (size_t i = 0; i < command_count; i++)
        put_command(&command_table[i]);
    (void)puts(".El\n.Pp\n"
               "Options of every command;\n.Fl Fl control\nonly of those that talk to the server:\n"
               ".Bl -tag -width Ds");
    put_options(command_common);
    (void)puts(
        ".El\n"
        ".Sh ENVIRONMENT\n.Bl -tag -width Ds\n"
        ".It Ev HOLDFAST_CONTROL\nThe control socket, unless\n.Fl Fl control\nis given.\n"
        ".It Ev NO_COLOR\nNo colours, even on a terminal.\n.El\n"
        ".Sh FILES\n.Bl -tag -width Ds\n"
        ".It Pa /var/lib/holdfast/control.sock\nThe control socket of a server with the "
        "default store.\n"
        ".It Pa /var/lib/holdfast-monitor/control.sock\nThe same of a status monitor.\n"
        ".It Pa holdfast-data/control.sock\nThe same of a server not run by root.\n"
        ".It Pa /run/holdfast/control.sock\nThe same of a server without a store on disk.\n.El\n"
        ".Sh EXIT STATUS\n.Bl -tag -width Ds\n"
        ".It 0\nDone, or the answer is yes.\n.It 1\nThe answer is no.\n"
        ".It 2\nUsage or configuration error.\n.It 75\nThe server cannot be reached.\n.El\n"
        ".Sh SEE ALSO\n.Xr holdfastd 8");
    return arguments_finish();
}

/* The words of "one|two", up to a blank, with a blank between. */
static void put_choices(const char *choices)
{
    for (; *choices != '\0' && *choices != ' '; choices++)
        (void)putchar(*choices == '|' ? ' ' : *choices);
}

/* After an option comes its value: one of its choices, or whatever bash completes by default. */
static void complete_values(const struct command_option *options)
{
    for (; options != NULL && options->name != NULL; options++) {
        if (options->argument == NULL)
            continue;
        (void)printf("                --%s)", options->name);
        if (strchr(options->argument, '|') != NULL) {
            (void)fputs(" words=\"", stdout);
            put_choices(options->argument);
            (void)puts("\" ;;");
        } else {
            (void)puts(" return ;;");
        }
    }
}

static void complete_command(const struct command *command)
{
    const struct command_option *common = command_common_of(command);
    if (strcmp(command->name, "serve") == 0) {
        (void)puts(
            "            words=$(holdfast serve --help 2> /dev/null | grep -o '^  --[a-z-]*')\n"
            "            case ${COMP_WORDS[COMP_CWORD - 1]} in\n"
            "                --config | --control) return ;;\n"
            "            esac");
        return;
    }
    (void)fputs("            words=\"", stdout);
    if (command->words != NULL && strchr(command->words, '|') != NULL) {
        put_choices(command->words);
        (void)putchar(' ');
    }
    for (size_t i = 0; strcmp(command->name, "help") == 0 && i < command_count; i++)
        (void)printf("%s ", command_table[i].name);
    for (const struct command_option *at = command->options; at != NULL && at->name != NULL; at++)
        (void)printf("--%s ", at->name);
    for (const struct command_option *at = common; at->name != NULL; at++)
        (void)printf("--%s%s", at->name, at[1].name != NULL ? " " : "");
    (void)puts("\"\n            case ${COMP_WORDS[COMP_CWORD - 1]} in");
    complete_values(command->options);
    complete_values(common);
    (void)puts("            esac");
}

int manual_completion(const struct command *command, int argc, char **argv)
{
    struct arguments arguments;
    int exit_code;
    if (!arguments_read(command, argc, argv, &arguments, &exit_code))
        return exit_code;
    (void)fputs("# bash completion for holdfast, made by `holdfast completion`.\n"
                "_holdfast()\n{\n"
                "    local word=${COMP_WORDS[COMP_CWORD]} words=\n"
                "    if [ \"$COMP_CWORD\" -eq 1 ]; then\n        words=\"",
                stdout);
    for (size_t i = 0; i < command_count; i++)
        (void)printf("%s%s", i > 0 ? " " : "", command_table[i].name);
    (void)puts("\"\n    else\n        case ${COMP_WORDS[1]} in");
    for (size_t i = 0; i < command_count; i++) {
        (void)printf("        %s)\n", command_table[i].name);
        complete_command(&command_table[i]);
        (void)puts("            ;;");
    }
    (void)puts("        esac\n    fi\n"
               "    mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$word\")\n"
               "}\n"
               "complete -o bashdefault -o default -F _holdfast holdfast");
    return arguments_finish();
}
