/*
 * config_manual.c -- see config_manual.h.
 *
 * What the table does not know, such as signals, files and exit codes, is text here.
 */
#include "daemon/config_manual.h"

#include "daemon/config_print.h"

enum {
    MANUAL_WIDTH = 78,
    TEXT_MAX = 512, /* one option's sentence, or its default */
};

/* Lines of at most MANUAL_WIDTH columns; a sentence begins its own, as mdoc likes it. */
static void put_sentences(FILE *out, const char *text)
{
    size_t column = 0;
    while (*text != '\0') {
        size_t len = strcspn(text, " ");
        if (column > 0 && column + 1 + len > MANUAL_WIDTH) {
            (void)fputc('\n', out);
            column = 0;
        }
        (void)fputs(column > 0 ? " " : "", out);
        (void)fwrite(text, 1, len, out);
        column += len + (column > 0);
        bool ends_sentence = len > 0 && text[len - 1] == '.';
        text += len;
        text += strspn(text, " ");
        if (ends_sentence && *text != '\0') {
            (void)fputc('\n', out);
            column = 0;
        }
    }
    (void)fputc('\n', out);
}

/* What both pages say of an option, below its name. */
static void put_meaning(FILE *out, const struct config_option *option)
{
    put_sentences(out, option->help);
    if ((option->flags & CONFIG_REPEATABLE) != 0)
        (void)fputs("May be repeated.\n", out);
    if (config_print_reload(option)[0] != '\0')
        (void)fprintf(out, "%s\n", config_print_reload(option) + 1);
    const char *shown = option->default_text != NULL ? option->default_text : option->default_shown;
    if (shown == NULL)
        return;
    char buffer[TEXT_MAX];
    struct text text;
    text_init(&text, buffer, sizeof buffer);
    text_add(&text, "The default is ");
    text_add(&text, shown);
    text_add_char(&text, '.');
    put_sentences(out, buffer);
}

static void put_option(FILE *out, const struct config_option *option)
{
    char buffer[TEXT_MAX];
    struct text text;
    text_init(&text, buffer, sizeof buffer);
    config_print_argument(&text, option);
    (void)fprintf(out, ".It Fl Fl %s%s%s\n", option->name, text.len > 0 ? " Ar" : "", buffer);
    put_meaning(out, option);
}

static void put_key(FILE *out, const struct config_option *option)
{
    char buffer[TEXT_MAX];
    struct text text;
    text_init(&text, buffer, sizeof buffer);
    config_print_argument(&text, option);
    (void)fprintf(out, ".It Cm %s No = Ar%s\n", option->name, text.len > 0 ? buffer : " on|off");
    put_meaning(out, option);
}

/* All but those with one of the flags `without`. A group without any of them has no heading. */
static void put_options(FILE *out, uint32_t without,
                        void (*put)(FILE *out, const struct config_option *option))
{
    const char *group = NULL, *shown = NULL;
    for (uint32_t i = 0; i < config_option_count; i++) {
        const struct config_option *option = &config_options[i];
        group = option->group != NULL ? option->group : group;
        if ((option->flags & without) != 0)
            continue;
        if (group != shown)
            (void)fprintf(out, "%s.Ss %s\n.Bl -tag -width Ds\n", shown != NULL ? ".El\n" : "",
                          group);
        shown = group;
        put(out, option);
    }
    (void)fputs(".El\n", out);
}

/* groff would head the page with BSD. */
static void put_head(FILE *out, const char *title)
{
    (void)fprintf(out,
                  ".Dd $Mdocdate$\n.ds doc-volume-operating-system\n.Dt %s\n"
                  ".Os holdfast " HOLDFAST_VERSION "\n.Sh NAME\n",
                  title);
}

static const char server_opening[] =
    ".Nm holdfastd\n"
    ".Nd lock server for NFSv3 that keeps locks safe across crashes\n"
    ".Sh SYNOPSIS\n.Nm\n.Op Ar options\n.Sh DESCRIPTION\n.Nm\n"
    "serves the Network Lock Manager and the Network Status Monitor, RPC programs\n"
    "100021 and 100024, in the foreground; with \\-\\-export also files, NFS version 3\n"
    "and MOUNT, 100003 and 100005.\n"
    "Options can also be set in a file,\n.Xr holdfast.conf 5 .\n"
    "The command line overrides the file.\n";

static const char server_signals[] =
    ".Sh SIGNALS\n.Bl -tag -width Ds\n"
    ".It Dv SIGTERM , SIGINT\n"
    "Stop: replies that are ready leave, then the server exits with code 0, within a\n"
    "second.\nEvery lock is kept; the next start recovers as after a crash.\n"
    ".It Dv SIGHUP\n"
    "Reload, as\n.Ql holdfast reload\n"
    "does: read options and exports again, apply what may change, and log the rest.\n"
    "A wrong file changes nothing.\n"
    ".It Dv SIGKILL\nSafe at any time: what a reply said is on disk before it leaves.\n.El\n";

static const char server_files[] =
    ".Sh ENVIRONMENT\n.Bl -tag -width Ds\n"
    ".It Ev NOTIFY_SOCKET , WATCHDOG_USEC , WATCHDOG_PID\n"
    "Set by systemd: it is notified when the server is ready, that it is responsive,\n"
    "and when it stops.\n.El\n"
    ".Sh FILES\n.Bl -tag -width Ds\n"
    ".It Pa /etc/holdfast.conf\nThe configuration that the systemd unit reads.\n"
    ".It Pa /var/lib/holdfast\nThe store of a server that root or systemd started.\n"
    ".It Pa /var/lib/holdfast-monitor\nThe same of a status monitor.\n"
    ".It Pa holdfast-data\nThe same of a server that another user started.\n"
    ".It Pa control.sock\nIn the store's directory: the control socket of\n.Xr holdfast 1 .\n"
    ".It Pa /run/holdfast/control.sock\nThe same of a server without a store on disk.\n.El\n";

static const char server_exit_codes[] =
    ".Sh EXIT STATUS\n.Bl -tag -width Ds\n"
    ".It 0\nStopped by a signal.\n"
    ".It 2\nUsage or configuration error.\n"
    ".It 69\nAn address, port or socket is in use.\n"
    ".It 70\nAn internal check failed.\n"
    ".It 71\nAnother server is registered with rpcbind.\n"
    ".It 74\nThe store failed or cannot be used.\n"
    ".It 75\nThe takeover hook failed.\n"
    ".It 76\nAnother server has taken over.\n"
    ".It 78\nThe store's format is newer than this program.\n.El\n";

static const char server_examples[] =
    ".Sh EXAMPLES\n"
    "Serve locks and a directory, as root, with the store in its usual place:\n"
    ".Dl holdfastd --export '/srv/files *(rw)'\n"
    "Try it as any user, without rpcbind:\n"
    ".Dl holdfastd --listen 127.0.0.1 --no-rpcbind --store lmdb:holdfast-data\n"
    "Check a configuration and print the settings in force:\n"
    ".Dl holdfastd --config /etc/holdfast.conf --check-config\n"
    "Be the status monitor of the kernel's lock manager:\n"
    ".Dl holdfastd --role monitor\n"
    ".Sh SEE ALSO\n.Xr holdfast 1 ,\n.Xr exports 5 ,\n.Xr holdfast.conf 5 ,\n.Xr rpcbind 8\n";

void config_manual_server(FILE *out)
{
    put_head(out, "HOLDFASTD 8");
    (void)fputs(server_opening, out);
    put_options(out, 0, put_option);
    (void)fputs(server_signals, out);
    (void)fputs(server_files, out);
    (void)fputs(server_exit_codes, out);
    (void)fputs(server_examples, out);
}

static const char file_opening[] =
    ".Nm holdfast.conf\n"
    ".Nd configuration of holdfastd\n"
    ".Sh DESCRIPTION\n"
    "The file that\n.Xr holdfastd 8\n"
    "reads if it is started with\n.Fl Fl config .\n"
    "It has a section, [holdfast], and a line for each setting:\n"
    ".Dl key = value\n"
    "A key is an option of the command line without its dashes; a switch is on or\noff.\n"
    "A line that begins with # or ; is a comment, and so is, in any other line, what\n"
    "follows a blank and a semicolon.\n"
    "With groups, a section [group NAME] has what differs in one of them, such as\n"
    "listen, name and takeover-hook: its settings count above those of [holdfast]\n"
    "while the server serves that group.\n"
    "Not in it: role, http, control, store, sync, store-timeout, group, standby,\n"
    "user, tracker-group, metrics, log-level and log-format: they are the process's.\n"
    "Lines have at most 198 characters.\n"
    "An unknown key or a wrong value is an error, which names its line.\n"
    "The command line overrides the file.\n"
    "SIGHUP, or\n.Ql holdfast reload ,\n"
    "reads the file again; what may change while the server runs says so below.\n";

static const char file_ending[] =
    ".Sh FILES\n.Bl -tag -width Ds\n"
    ".It Pa /etc/holdfast.conf\nThe configuration that the systemd unit reads.\n.El\n"
    ".Sh EXIT STATUS\n"
    "A server that cannot use its file exits with code 2 and starts nothing; so does\n"
    ".Ql holdfastd --config FILE --check-config .\n"
    ".Sh EXAMPLES\n"
    "A server of files on one address, with a longer grace period:\n"
    ".Bd -literal -offset indent\n"
    "[holdfast]\n"
    "store = lmdb:/var/lib/holdfast\n"
    "listen = 192.0.2.1\n"
    "export = /srv/files 192.0.2.0/24(rw)\n"
    "grace = 120\n"
    ".Ed\n"
    "A standby of two groups, each with an address of its own:\n"
    ".Bd -literal -offset indent\n"
    "[holdfast]\n"
    "store = postgres:host=db dbname=holdfast user=holdfast\n"
    "standby = on\n"
    "group = web\n"
    "group = home\n"
    "[group web]\n"
    "listen = 192.0.2.10\n"
    "[group home]\n"
    "listen = 192.0.2.20\n"
    ".Ed\n"
    ".Sh SEE ALSO\n.Xr holdfast 1 ,\n.Xr holdfastd 8\n";

void config_manual_file(FILE *out)
{
    put_head(out, "HOLDFAST.CONF 5");
    (void)fputs(file_opening, out);
    put_options(out, CONFIG_NO_KEY, put_key);
    (void)fputs(file_ending, out);
}
