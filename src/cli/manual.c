/*
 * manual.c -- `holdfast manual`: the manual page holdfast(1), from the table of commands. The build
 * runs it and installs the result.
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

/* What the table does not know. */
static const char ending[] =
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
    ".It 0\nDone, or the answer is yes.\n.It 1\nThe answer is no; of\n.Cm status :\nsomething "
    "needs "
    "attention.\n"
    ".It 2\nUsage or configuration error.\n.It 75\nThe server cannot be reached.\n.El\n"
    ".Sh SIGNALS\n.Nm\nends with any signal, and changes nothing then that it has not reported.\n"
    "What the server does with signals is in\n.Xr holdfastd 8 .\n"
    ".Sh EXAMPLES\n"
    "Who waits for whom, and what a recovery is waiting for:\n"
    ".Dl holdfast status\n"
    "A check for a monitoring system, by its exit status:\n"
    ".Dl holdfast status > /dev/null\n"
    "The requests that wait, as JSON:\n"
    ".Dl holdfast locks --waiting --json\n"
    "The ten oldest locks:\n"
    ".Dl holdfast locks --sort age --limit 10\n"
    "Who could not be notified after a crash?\n"
    ".Dl holdfast drill\n"
    "Could this client be notified of a restart, and called back?\n"
    ".Dl holdfast check-client 192.0.2.7\n"
    "What would happen to its locks if something crashed now?\n"
    ".Dl holdfast explain web1\n"
    "A client is gone for good; release its locks without a question:\n"
    ".Dl holdfast release web1 --yes\n"
    "Read the configuration file and the exports again:\n"
    ".Dl holdfast reload\n"
    ".Sh SEE ALSO\n.Xr holdfast.conf 5 ,\n.Xr holdfastd 8\n";

int manual_run(const struct command *command, int argc, char **argv)
{
    struct arguments arguments;
    int exit_code;
    if (!arguments_read(command, argc, argv, &arguments, &exit_code))
        return exit_code;
    /* groff would head the page with BSD. */
    (void)puts(".Dd $Mdocdate$\n.ds doc-volume-operating-system\n.Dt HOLDFAST 1\n"
               ".Os holdfast " HOLDFAST_VERSION "\n.Sh NAME\n.Nm holdfast\n"
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
    (void)fputs(ending, stdout);
    return arguments_finish();
}
