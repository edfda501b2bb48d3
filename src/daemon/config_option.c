/*
 * config_option.c -- the table of options; see config.h.
 *
 * Defaults are text and go through the same parser as everything else, so what the help shows is
 * what is in force. Those that depend on something else are in words here, and config.c fills them
 * in.
 *
 * Always true: an option that has no effect has no row. It is refused like any unknown one, never
 * accepted and ignored.
 */
#include "daemon/config.h"

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
         "Where the web page, /metrics and the API are served, for reading only; [ADDR]:PORT for "
         "IPv6; port 0: any free one, printed at start."},
    {.name = "control",
     .type = CONFIG_TEXT,
     .argument = "PATH",
     .default_shown = CONFIG_CONTROL_NAME " in the store's directory; " CONFIG_CONTROL_WITHOUT_STORE
                                          " without one",
     FIELD(control),
     .help = "The socket for the command holdfast, mode 0600: the same HTTP, and changes."},

    {.group = "Store",
     .name = "store",
     .type = CONFIG_STORE,
     .argument = "URL",
     .default_shown = CONFIG_STORE_OF_ROOT " as root, " CONFIG_STORE_OF_OTHERS " otherwise",
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
             "beginning wins. Locks are listed and counted by it."},

    {.group = "Limits",
     .name = "max-clients",
     .type = CONFIG_NUMBER,
     .argument = "N",
     .default_text = "10000",
     .low = 1,
     .high = 10000000,
     FIELD(clients_max),
     .help =
         "Registered clients, and as many that lock. One more takes the place of the longest idle "
         "or given-up one that holds nothing; without such a one it is refused."},
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
    {.name = "max-per-address",
     .type = CONFIG_NUMBER,
     .argument = "PERCENT",
     .default_text = "10",
     .low = 1,
     .high = 100,
     FIELD(per_address_percent),
     .help = "How many percent of --max-clients, --max-locks and --max-waiters one address may "
             "have, under however many names; 100: all. For many clients behind one address (NAT) "
             "raise it."},
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
