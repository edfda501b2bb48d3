/*
 * config.c -- the option table, and reading it from defaults, file and command line; see config.h.
 *
 * Defaults are text in the table and go through the same parser as everything else, so what the
 * help shows is what is in force. Five depend on something else and are filled in last: the store
 * (on who we are), --control (on the store), --nlm-port and --nsm-port (on --port) and --grace (on
 * --recovery-window).
 *
 * Always true:
 *  (1) An option that has no effect in this version has no row: it is refused like any unknown one,
 *      never accepted and ignored. Two are excepted: --grace bounds a time that never begins in
 *      this version, and nothing is counted yet by the sets of --share. The help says so.
 *  (2) A value is set only by an origin that is at least as strong as the one that set it before;
 *      a stronger one replaces a list, the same one adds to it.
 */
#include "daemon/config.h"

#include "base/check.h"
#include "base/suggest.h"
#include "daemon/config_file.h"
#include "daemon/config_value.h"
#include "store/store.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#define STORE_OF_ROOT   "lmdb:/var/lib/holdfast"
#define STORE_OF_OTHERS "lmdb:holdfast-data"

#define CONTROL_NAME          "control.sock"
#define CONTROL_WITHOUT_STORE "/run/holdfast/" CONTROL_NAME

#define SECONDS_MAX 86400   /* a day: longer windows are typing errors */
#define LOCKS_MAX   8000000 /* a quarter more slots must stay below RECORD_SLOT_MAX */
#define MIB         (UINT64_C(1) << 20)
#define GIB         (UINT64_C(1) << 30)

static const char *const sync_words[] = {"full", "process", NULL};
static const char *const recovery_words[] = {"reclaim", "resume", NULL};
static const char *const unreachable_words[] = {"release", "hold", NULL};
static const char *const switch_words[] = {"on", "off", NULL};
static const char *const verify_words[] = {"auto", "always", NULL};
static const char *const mon_from_words[] = {"any", "loopback", NULL};
static const char *const rpcbind_words[] = {"auto", "system", "embedded", "off", NULL};
#if HOLDFAST_POSTGRES
static const char *const store_words[] = {"lmdb:", "postgres:", "memory:", NULL};
#else
static const char *const store_words[] = {"lmdb:", "memory:", NULL};
#endif
static const char *const level_words[] = {"error", "warning", "info", "debug", NULL};
static const char *const format_words[] = {"text", "json", NULL};

#define FIELD(member) .offset = offsetof(struct config, member)

const struct config_option config_options[] = {
    {.group = "Configuration",
     .name = "config",
     .type = CONFIG_TEXT,
     .argument = "FILE",
     .default_shown = "none",
     .flags = CONFIG_NO_KEY,
     FIELD(file),
     .help = "Read options from this file, section [holdfast]; the command line wins over it."},
    {.name = "check-config",
     .type = CONFIG_FLAG,
     .flags = CONFIG_NO_KEY,
     FIELD(check_only),
     .help = "Check the configuration, print what is in force, and exit."},

    {.group = "Network",
     .name = "listen",
     .type = CONFIG_ADDRESSES,
     .argument = "ADDR",
     .default_shown = "all, IPv4 and IPv6",
     .flags = CONFIG_REPEATABLE,
     FIELD(listen),
     .help = "Listen on this literal IPv4 or IPv6 address only."},
    {.name = "port",
     .type = CONFIG_PORT,
     .argument = "N",
     .default_text = "12049",
     .high = UINT16_MAX,
     FIELD(port),
     .help = "Port of every service, TCP and UDP; 0: any free one, printed at start."},
    {.name = "nlm-port",
     .type = CONFIG_PORT,
     .argument = "N",
     .default_shown = "the value of --port",
     .high = UINT16_MAX,
     FIELD(nlm_port),
     .help = "Port of the Network Lock Manager, if it shall have its own."},
    {.name = "nsm-port",
     .type = CONFIG_PORT,
     .argument = "N",
     .default_shown = "the value of --port",
     .high = UINT16_MAX,
     FIELD(nsm_port),
     .help = "Port of the Network Status Monitor, if it shall have its own."},
    {.name = "rpcbind",
     .type = CONFIG_CHOICE,
     .default_text = "auto",
     .choices = rpcbind_words,
     FIELD(rpcbind),
     .help = "How clients find the port. system: through the rpcbind of this machine; embedded: we "
             "serve port 111 ourselves; auto: the one or the other; off: clients are told."},
    {.name = "no-rpcbind",
     .type = CONFIG_FLAG,
     .flags = CONFIG_NO_KEY,
     FIELD(no_rpcbind),
     .help = "The same as --rpcbind off."},
    {.name = "force",
     .type = CONFIG_FLAG,
     FIELD(force),
     .help = "Take over the registration of another server instead of ending with code 71."},
    {.name = "http",
     .type = CONFIG_ENDPOINT,
     .argument = "ADDR:PORT|off",
     .default_text = "127.0.0.1:12080",
     FIELD(http),
     .help =
         "Where HTTP is served, for reading only: /healthz, /readyz, /api/v1/status; [ADDR]:PORT "
         "for IPv6; port 0: any free one, printed at start."},
    {.name = "control",
     .type = CONFIG_TEXT,
     .argument = "PATH",
     .default_shown =
         CONTROL_NAME " in the store's directory; " CONTROL_WITHOUT_STORE " without one",
     FIELD(control),
     .help = "The socket for the command holdfast, mode 0600: the same HTTP, and changes."},

    {.group = "Store",
     .name = "store",
     .type = CONFIG_STORE,
     .argument = "URL",
     .default_shown = STORE_OF_ROOT " as root, " STORE_OF_OTHERS " otherwise",
     .choices = store_words,
     .cause = "this version has no such store",
     FIELD(store),
     .help = "Where clients and locks are kept: lmdb:DIR; postgres:CONNINFO, a database that other "
             "machines can reach; or memory: to forget them at exit."},
    {.name = "sync",
     .type = CONFIG_CHOICE,
     .default_text = "full",
     .choices = sync_words,
     FIELD(sync),
     .help = "full: what was answered survives power loss; process: it survives the end of the "
             "process, faster."},
    {.name = "store-timeout",
     .type = CONFIG_SECONDS,
     .argument = "S",
     .default_text = "30",
     .low = 1,
     .high = SECONDS_MAX,
     FIELD(store_timeout_s),
     .help = "Seconds that answers wait for a store that does not commit; then the server exits "
             "with code 74."},
    {.name = "standby",
     .type = CONFIG_FLAG,
     FIELD(standby),
     .help = "Wait while another server is active on the same store, then take over from it. For a "
             "store that both can reach."},
    {.name = "takeover-hook",
     .type = CONFIG_TEXT,
     .argument = "CMD",
     .default_shown = "none",
     FIELD(takeover_hook),
     .help =
         "Run this shell command when this server has become the active one, before it serves, "
         "for instance to move the service address here. When it fails the server ends, so that "
         "the next standby takes over."},
    {.name = "assume-lost",
     .type = CONFIG_FLAG,
     FIELD(assume_lost),
     .help = "Treat the store as incomplete in this start, for instance after restoring a backup."},

    {.group = "Recovery",
     .name = "recovery-window",
     .type = CONFIG_SECONDS,
     .argument = "S",
     .default_text = "90",
     .high = SECONDS_MAX,
     FIELD(recovery_window_s),
     .help = "Seconds that clients have to recover after a restart, for every protocol."},
    {.name = "grace",
     .type = CONFIG_SECONDS,
     .argument = "S",
     .default_shown = "the value of --recovery-window",
     .high = SECONDS_MAX,
     FIELD(grace_s),
     .help = "Seconds in which only reclaims are granted after a restart. Begins only when locks "
             "are stored, and ends as soon as every one of them is settled. 0: none; what was "
             "held is then lost."},
    {.name = "recovery",
     .type = CONFIG_CHOICE,
     .default_text = "reclaim",
     .choices = recovery_words,
     FIELD(recovery),
     .help = "After a restart: reclaim tells every client, which reclaims its locks in grace; "
             "resume goes on with locks and waiters as they were, and tells nobody."},
    {.name = "unreachable",
     .type = CONFIG_CHOICE,
     .default_text = "release",
     .choices = unreachable_words,
     FIELD(unreachable),
     .help = "Locks of a client that cannot be told of a restart: release gives them up when grace "
             "ends, hold keeps them until --give-up is over."},
    {.name = "trust-reclaim",
     .type = CONFIG_FLAG,
     FIELD(trust_reclaim),
     .help = "Grant reclaims that match nothing stored if nothing is in their way."},

    {.name = "notify-timeout",
     .type = CONFIG_SECONDS,
     .argument = "S",
     .default_text = "5",
     .low = 2,
     .high = 60,
     FIELD(notify_timeout_s),
     .help = "Seconds that one attempt to tell a client of a restart, or that its lock is granted, "
             "may take, all in all; a portmapper alone may need one to be found silent."},
    {.name = "give-up",
     .type = CONFIG_SECONDS,
     .argument = "S",
     .default_text = "900",
     .high = SECONDS_MAX,
     FIELD(give_up_s),
     .help =
         "Seconds after the recovery window until the next start takes over who was not reached."},
    {.name = "name",
     .type = CONFIG_NAMES,
     .argument = "NAME",
     .flags = CONFIG_REPEATABLE,
     .default_shown = "none beside the names of this host and its addresses",
     FIELD(names),
     .help = "A name that clients know this server by, beside the host name (full and short) and "
             "the address that they use, under which they are told of a restart anyway. The first "
             "one is told to registrants."},
    {.name = "source-ports",
     .type = CONFIG_PORTS,
     .argument = "LO-HI",
     .default_shown = "any",
     FIELD(source_ports),
     .help = "Local ports of all calls to clients, for firewalls."},

    {.group = "Files",
     .name = "share",
     .type = CONFIG_SHARES,
     .argument = "NAME=HEXPREFIX",
     .flags = CONFIG_REPEATABLE,
     .default_shown = "none: all files are in \"default\"",
     FIELD(shares),
     .help = "A named set of files: those whose handles begin with these bytes; the longest "
             "beginning wins. This version only checks it: a set has no counters or limits yet."},

    {.group = "Limits",
     .name = "max-clients",
     .type = CONFIG_NUMBER,
     .argument = "N",
     .default_text = "10000",
     .low = 1,
     .high = 10000000,
     FIELD(clients_max),
     .help = "Registered clients, and as many that lock; a new one above the limit is refused."},
    {.name = "max-locks",
     .type = CONFIG_NUMBER,
     .argument = "N",
     .default_text = "1000000",
     .low = 1,
     .high = LOCKS_MAX,
     FIELD(locks_max),
     .help = "Locks of all clients together; one more is refused."},
    {.name = "max-locks-per-client",
     .type = CONFIG_NUMBER,
     .argument = "N",
     .default_text = "100000",
     .low = 1,
     .high = LOCKS_MAX,
     FIELD(locks_per_client_max),
     .help = "Locks of one client; one more is refused."},
    {.name = "max-waiters",
     .type = CONFIG_NUMBER,
     .argument = "N",
     .default_text = "100000",
     .low = 1,
     .high = 10000000,
     FIELD(waiters_max),
     .help = "Requests that wait for a lock; one more is refused."},
    {.name = "max-connections",
     .type = CONFIG_NUMBER,
     .argument = "N",
     .default_text = "4096",
     .low = 1,
     .high = 1000000,
     FIELD(connections_max),
     .help = "TCP connections from clients at the same time."},
    {.name = "max-bytes",
     .type = CONFIG_SIZE,
     .argument = "SIZE",
     .default_text = "512M",
     .low = MIB,
     .high = 32 * GIB,
     FIELD(bytes_max),
     .help = "Memory for names and other variable data; K, M and G are understood."},

    {.group = "Security",
     .name = "mon-from",
     .type = CONFIG_CHOICE,
     .default_text = "any",
     .choices = mon_from_words,
     FIELD(mon_from),
     .help = "Who may register with SM_MON: any address, or only this machine."},
    {.name = "trust-state",
     .type = CONFIG_CHOICE,
     .default_text = "on",
     .choices = switch_words,
     FIELD(trust_state),
     .help = "A LOCK with a newer state number frees what its client held before it rebooted; off "
             "for clients whose number grows without a reboot, as in restarted containers."},
    {.name = "verify-notify",
     .type = CONFIG_CHOICE,
     .default_text = "auto",
     .choices = verify_words,
     FIELD(verify_notify),
     .help = "Ask a client's own status monitor before its SM_NOTIFY is believed: auto when in "
             "doubt, or always."},
    {.name = "require-privileged-port",
     .type = CONFIG_FLAG,
     FIELD(require_privileged_port),
     .help = "Refuse calls from source ports of 1024 and above."},
    {.name = "user",
     .type = CONFIG_TEXT,
     .argument = "NAME",
     .default_shown = "unchanged",
     FIELD(user),
     .help = "Become this user once the ports are bound; needs root."},

    {.group = "Measuring",
     .name = "metrics",
     .type = CONFIG_CHOICE,
     .default_text = "on",
     .choices = switch_words,
     FIELD(metrics),
     .help = "Count and time calls and commits, and serve /metrics; off measures nothing."},

    {.group = "Log, to standard error",
     .name = "log-level",
     .type = CONFIG_CHOICE,
     .default_text = "info",
     .choices = level_words,
     FIELD(log_level),
     .help = "The least important kind of message that is logged."},
    {.name = "log-format",
     .type = CONFIG_CHOICE,
     .default_text = "text",
     .choices = format_words,
     FIELD(log_format),
     .help = "Lines for people, or one JSON object per line."},

    {.group = "About",
     .name = "help",
     .type = CONFIG_FLAG,
     .flags = CONFIG_NO_KEY,
     FIELD(show_help),
     .help = "Print this text and exit."},
    {.name = "manual",
     .type = CONFIG_FLAG,
     .flags = CONFIG_NO_KEY,
     FIELD(show_manual),
     .help = "Print the manual page, for man -l -, and exit."},
    {.name = "version",
     .type = CONFIG_FLAG,
     .flags = CONFIG_NO_KEY,
     FIELD(show_version),
     .help = "Print the version and exit."},
};

#define OPTION_COUNT (sizeof config_options / sizeof config_options[0])
const uint32_t config_option_count = OPTION_COUNT;

_Static_assert(OPTION_COUNT <= CONFIG_OPTION_MAX, "struct config has an origin for every row");
_Static_assert(sizeof level_words / sizeof level_words[0] == LOG_LEVEL_END + 1, "a word per level");
_Static_assert(sizeof format_words / sizeof format_words[0] == LOG_FORMAT_END + 1,
               "and per format");

const struct config_option *config_find(const char *name)
{
    for (uint32_t i = 0; i < config_option_count; i++)
        if (strcmp(config_options[i].name, name) == 0)
            return &config_options[i];
    return NULL;
}

void config_add_suggestion(struct text *text, const char *name, bool keys_only)
{
    struct suggest suggest;
    suggest_init(&suggest, name);
    for (uint32_t i = 0; i < config_option_count; i++)
        if (!keys_only || (config_options[i].flags & CONFIG_NO_KEY) == 0)
            suggest_offer(&suggest, config_options[i].name);
    if (suggest.best == NULL)
        return;
    text_add(text, "; did you mean ");
    text_add(text, keys_only ? "" : "--");
    text_add(text, suggest.best);
    text_add(text, "?");
}

int config_set(struct config *config, const struct config_option *option, const char *value,
               enum config_origin origin, uint32_t line, struct text *ret_why)
{
    size_t index = (size_t)(option - config_options);
    CHECK(index < OPTION_COUNT);
    CHECK(origin >= config->origins[index]);
    bool adds = (option->flags & CONFIG_REPEATABLE) != 0 && origin == config->origins[index];
    if (origin == CONFIG_FROM_FILE && config->origins[index] == CONFIG_FROM_FILE && !adds) {
        text_add(ret_why, "given before, in line ");
        text_add_u64(ret_why, config->lines[index]);
        text_add(ret_why, "; keep one of the two");
        return -EINVAL;
    }
    if (!adds)
        config_value_clear(config, option);
    int result = config_value_parse(config, option, value, ret_why);
    if (result != 0)
        return result;
    config->origins[index] = origin;
    config->lines[index] = line;
    return 0;
}

void config_add_value(struct text *text, const struct config_option *option, const char *value)
{
    char shown[128];
    if (option->type == CONFIG_STORE) {
        store_show_url(value, shown, sizeof shown);
        value = shown;
    }
    text_add_escaped(text, bytes_of_text(value), 80);
}

/* One step through the command line. */
struct arguments {
    int argc;
    char *const *argv;
    int index;
    const struct config_option *option;
    const char *value; /* NULL: a flag without one */
};

static bool is_argument_of(const char *argument, const char *name, const char **ret_value)
{
    size_t len = strlen(name);
    if (strncmp(argument, name, len) != 0)
        return false;
    if (argument[len] == '=')
        *ret_value = argument + len + 1;
    return argument[len] == '\0' || argument[len] == '=';
}

static void refuse_argument(const char *argument, struct text *ret_why)
{
    text_add_escaped(ret_why, bytes_of_text(argument), 80);
    if (argument[0] != '-') {
        text_add(ret_why, ": not an option; options begin with --");
        return;
    }
    char name[64];
    struct text text;
    text_init(&text, name, sizeof name);
    for (const char *at = argument + strspn(argument, "-"); *at != '\0' && *at != '='; at++)
        text_add_char(&text, *at);
    text_add(ret_why, ": unknown option");
    config_add_suggestion(ret_why, name, false);
    text_add(ret_why, " (--help lists the options)");
}

/* 1: option and value are filled in. 0: the end. -EINVAL: *ret_why says what is wrong. */
static int arguments_next(struct arguments *at, struct text *ret_why)
{
    if (at->index >= at->argc)
        return 0;
    const char *argument = at->argv[at->index++];
    at->option = NULL;
    at->value = NULL;
    if (strcmp(argument, "-h") == 0)
        argument = "--help";
    for (uint32_t i = 0; i < config_option_count && strncmp(argument, "--", 2) == 0; i++)
        if (is_argument_of(argument + 2, config_options[i].name, &at->value))
            at->option = &config_options[i];
    if (at->option == NULL) {
        refuse_argument(argument, ret_why);
        return -EINVAL;
    }
    if (at->value != NULL || at->option->type == CONFIG_FLAG)
        return 1;
    /* No value begins with two dashes: such a word is the next option, and the value is missing. */
    if (at->index >= at->argc || strncmp(at->argv[at->index], "--", 2) == 0) {
        text_add(ret_why, argument);
        text_add(ret_why, ": needs a value");
        return -EINVAL;
    }
    at->value = at->argv[at->index++];
    return 1;
}

static int set_from_arguments(struct config *config, struct arguments at, struct text *ret_why)
{
    int result;
    while ((result = arguments_next(&at, ret_why)) > 0) {
        struct text before = *ret_why;
        text_add(ret_why, "--");
        text_add(ret_why, at.option->name);
        if (at.value != NULL) {
            text_add_char(ret_why, ' ');
            config_add_value(ret_why, at.option, at.value);
        }
        text_add(ret_why, ": ");
        result = config_set(config, at.option, at.value != NULL ? at.value : "on",
                            CONFIG_FROM_COMMAND_LINE, 0, ret_why);
        if (result != 0)
            return result;
        *ret_why = before;
        ret_why->start[ret_why->len] = '\0';
    }
    return result;
}

/* Finds what decides how to go on, and any word that is no option, before a file is opened. */
static int look_ahead(struct config *config, struct arguments at, const char **ret_file,
                      struct text *ret_why)
{
    int result;
    while ((result = arguments_next(&at, ret_why)) > 0) {
        if (at.option->offset == offsetof(struct config, show_help))
            config->show_help = true;
        if (at.option->offset == offsetof(struct config, show_version))
            config->show_version = true;
        if (at.option->offset == offsetof(struct config, show_manual))
            config->show_manual = true;
        if (config->show_help || config->show_version || config->show_manual)
            return 0;
        if (at.option->offset == offsetof(struct config, file))
            *ret_file = at.value;
    }
    return result;
}

static int set_defaults(struct config *config, struct text *ret_why)
{
    for (uint32_t i = 0; i < config_option_count; i++) {
        const struct config_option *option = &config_options[i];
        if (option->default_text == NULL)
            continue;
        int result =
            config_set(config, option, option->default_text, CONFIG_FROM_DEFAULT, 0, ret_why);
        CHECK(result == 0 || result == -ENOMEM); /* a default that is no value is a bug */
        if (result != 0)
            return result;
    }
    return 0;
}

static enum config_origin origin_of(const struct config *config, const char *name)
{
    const struct config_option *option = config_find(name);
    CHECK(option != NULL);
    return config->origins[option - config_options];
}

/* Beside the records if they are in a directory. */
static int derive_control(struct config *config, struct text *ret_why)
{
    static const char scheme[] = "lmdb:", name[] = "/" CONTROL_NAME;
    config->control_is_default = config->control == NULL;
    if (!config->control_is_default)
        return 0;
    const struct config_option *option = config_find("control");
    if (strncmp(config->store, scheme, sizeof scheme - 1) != 0)
        return config_set(config, option, CONTROL_WITHOUT_STORE, CONFIG_FROM_DEFAULT, 0, ret_why);
    const char *directory = config->store + sizeof scheme - 1;
    size_t size = strlen(directory) + sizeof name;
    config->control = malloc(size);
    if (config->control == NULL) {
        text_add(ret_why, "out of memory");
        return -ENOMEM;
    }
    struct text path;
    text_init(&path, config->control, (uint32_t)size);
    text_add(&path, directory);
    text_add(&path, name);
    return 0;
}

static int derive(struct config *config, struct text *ret_why)
{
    if (config->no_rpcbind)
        config->rpcbind = CONFIG_RPCBIND_OFF;
    if (origin_of(config, "nlm-port") == CONFIG_FROM_DEFAULT)
        config->nlm_port = config->port;
    if (origin_of(config, "nsm-port") == CONFIG_FROM_DEFAULT)
        config->nsm_port = config->port;
    if (origin_of(config, "grace") == CONFIG_FROM_DEFAULT)
        config->grace_s = config->recovery_window_s;
    const char *store = geteuid() == 0 ? STORE_OF_ROOT : STORE_OF_OTHERS;
    int result = config->store != NULL ? 0
                                       : config_set(config, config_find("store"), store,
                                                    CONFIG_FROM_DEFAULT, 0, ret_why);
    if (result != 0)
        return result;
    if (config->standby && !store_url_is_shared(config->store)) {
        text_add(ret_why, "--standby: needs a store that two machines can reach; use --store "
                          "postgres:CONNINFO");
        return -EINVAL;
    }
    return derive_control(config, ret_why);
}

int config_read(int argc, char *const *argv, struct config *ret, struct text *ret_why)
{
    struct config config = {0};
    struct arguments arguments = {.argc = argc, .argv = argv, .index = 1};
    const char *file = NULL;
    int result = look_ahead(&config, arguments, &file, ret_why);
    bool is_serving = !config.show_help && !config.show_version && !config.show_manual;
    if (result == 0)
        result = set_defaults(&config, ret_why);
    if (result == 0 && is_serving && file != NULL)
        result = config_file_read(&config, file, ret_why);
    if (result == 0 && is_serving)
        result = set_from_arguments(&config, arguments, ret_why);
    if (result == 0)
        result = derive(&config, ret_why);
    if (result != 0) {
        config_done(&config);
        return result;
    }
    *ret = config;
    return 0;
}

void config_done(struct config *config)
{
    for (uint32_t i = 0; i < config_option_count; i++)
        config_value_clear(config, &config_options[i]);
}
