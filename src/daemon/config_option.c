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

static const char *const role_words[] = {"server", "monitor", NULL};
static const char *const unmon_all_words[] = {"forget", "notify", NULL};
static const char *const lockd_restart_words[] = {"log", "notify", NULL};
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
static const char *const groups_words[] = {"wire", "server", NULL};
static const char *const level_words[] = {"error", "warning", "info", "debug", NULL};
static const char *const format_words[] = {"text", "json", NULL};

/* Why an option means nothing with --role monitor. */
#define NO_LOCKS     "a status monitor keeps no locks; the lock manager of this machine does"
#define NO_FILES     "a status monitor serves no files; the NFS server of this machine does"
#define ONE_PROGRAM  "a status monitor has a single port; use --port"
#define THIS_MACHINE "a status monitor belongs to its machine, and no other can take its place"
#define OURS_ONLY    "a status monitor takes registrations from this machine alone"

#define NOT_OF_MONITOR(why, more) .flags = CONFIG_NOT_OF_MONITOR | (more), .why_not = (why)
#define FIELD(member)             .offset = offsetof(struct config, member)

const struct config_option config_options[] = {
    {.group = "Configuration",
     .name = "config",
     .type = CONFIG_TEXT,
     .argument = "FILE",
     .default_shown = "none",
     .flags = CONFIG_NO_KEY,
     FIELD(file),
     .help = "Read options from this file, section [holdfast]; the command line overrides it."},
    {.name = "check-config",
     .type = CONFIG_FLAG,
     .flags = CONFIG_NO_KEY,
     FIELD(check_only),
     .help = "Check the configuration, print the settings in force, and exit."},

    {.name = "role",
     .type = CONFIG_CHOICE,
     .default_text = "server",
     .choices = role_words,
     FIELD(role),
     .help = "server: the lock manager and status monitor of an NFS server without its own; "
             "monitor: the status monitor of this machine's own lock manager (the kernel's, or "
             "nfs-ganesha's), in place of rpc.statd and sm-notify."},
    {.group = "Network",
     .name = "listen",
     .type = CONFIG_ADDRESSES,
     .argument = "ADDR",
     .default_shown = "all, IPv4 and IPv6",
     .flags = CONFIG_REPEATABLE,
     FIELD(listen),
     .help = "Listen only on this IPv4 or IPv6 address."},
    {.name = "port",
     .type = CONFIG_PORT,
     .argument = "N",
     .default_text = "12049",
     .high = UINT16_MAX,
     FIELD(port),
     .help = "Port of all services, TCP and UDP; 0: any free port, printed at start."},
    {.name = "nlm-port",
     .type = CONFIG_PORT,
     .argument = "N",
     .default_shown = "the value of --port",
     .high = UINT16_MAX,
     NOT_OF_MONITOR(ONE_PROGRAM, 0),
     FIELD(nlm_port),
     .help = "Port of the Network Lock Manager, if it should have its own."},
    {.name = "nsm-port",
     .type = CONFIG_PORT,
     .argument = "N",
     .default_shown = "the value of --port",
     .high = UINT16_MAX,
     NOT_OF_MONITOR(ONE_PROGRAM, 0),
     FIELD(nsm_port),
     .help = "Port of the Network Status Monitor, if it should have its own."},
    {.name = "rpcbind",
     .type = CONFIG_CHOICE,
     .default_text = "auto",
     .choices = rpcbind_words,
     FIELD(rpcbind),
     .help = "How clients find the port. system: register with this machine's rpcbind; embedded: "
             "serve port 111 ourselves; auto: system, else embedded; off: not registered."},
    {.name = "no-rpcbind",
     .type = CONFIG_FLAG,
     .flags = CONFIG_NO_KEY,
     FIELD(no_rpcbind),
     .help = "Same as --rpcbind off."},
    {.name = "force",
     .type = CONFIG_FLAG,
     FIELD(force),
     .help = "Replace another server's rpcbind registration instead of exiting with code 71."},
    {.name = "http",
     .type = CONFIG_ENDPOINT,
     .argument = "ADDR:PORT|off",
     .default_text = "127.0.0.1:12080",
     FIELD(http),
     .help = "Address of the web page, /metrics and the read-only API; [ADDR]:PORT for IPv6; port "
             "0: any free port, printed at start."},
    {.name = "control",
     .type = CONFIG_TEXT,
     .argument = "PATH",
     .default_shown = CONFIG_CONTROL_NAME " in the store's directory; " CONFIG_CONTROL_WITHOUT_STORE
                                          " without one",
     FIELD(control),
     .help =
         "Control socket for the holdfast command, mode 0600: the same HTTP API, plus changes."},
    {.group = "Store",
     .name = "store",
     .type = CONFIG_STORE,
     .argument = "URL",
     .default_shown =
         CONFIG_STORE_OF_ROOT " as root, " CONFIG_STORE_OF_OTHERS
                              " otherwise; " CONFIG_STORE_OF_MONITOR " with --role monitor",
     .choices = store_words,
     .cause = "this version does not support it",
     FIELD(store),
     .help = "Where to keep clients and locks: lmdb:DIR; postgres:CONNINFO, a database that other "
             "machines can reach; or memory:, which forgets them at exit."},
    {.name = "sync",
     .type = CONFIG_CHOICE,
     .default_text = "full",
     .choices = sync_words,
     FIELD(sync),
     .help = "full: acknowledged state survives power loss; process: only a crash of the server, "
             "but faster."},
    {.name = "store-timeout",
     .type = CONFIG_SECONDS,
     .argument = "S",
     .default_text = "30",
     .low = 1,
     .high = SECONDS_MAX,
     FIELD(store_timeout_s),
     .help =
         "Seconds that replies wait for a stalled commit before the server exits with code 74."},
    {.name = "standby",
     .type = CONFIG_FLAG,
     NOT_OF_MONITOR(THIS_MACHINE, 0),
     FIELD(standby),
     .help = "Wait while another server is active on the same store, then take over. Needs a store "
             "that both servers can reach."},
    {.name = "takeover-hook",
     .type = CONFIG_TEXT,
     .argument = "CMD",
     .default_shown = "none",
     NOT_OF_MONITOR(THIS_MACHINE, 0),
     FIELD(takeover_hook),
     .help = "Run this shell command after becoming active and before serving, for example to move "
             "the service address here. If it fails the server exits, so that the next standby "
             "takes over."},
    {.name = "assume-lost",
     .type = CONFIG_FLAG,
     NOT_OF_MONITOR(NO_LOCKS, 0),
     FIELD(assume_lost),
     .help = "Treat the store as incomplete for this start, for example after restoring a backup."},
    {.group = "Recovery",
     .name = "recovery-window",
     .type = CONFIG_SECONDS,
     .argument = "S",
     .default_text = "90",
     .high = SECONDS_MAX,
     FIELD(recovery_window_s),
     .help = "Seconds clients have to recover after a restart, for all protocols."},
    {.name = "grace",
     .type = CONFIG_SECONDS,
     .argument = "S",
     .default_shown = "the value of --recovery-window",
     .high = SECONDS_MAX,
     NOT_OF_MONITOR(NO_LOCKS, 0),
     FIELD(grace_s),
     .help = "Grace period after a restart: seconds in which only reclaims are granted. There is "
             "one only if locks were stored, and it ends early once all of them are reclaimed or "
             "released. 0: none, stored locks are lost."},
    {.name = "recovery",
     .type = CONFIG_CHOICE,
     .default_text = "reclaim",
     .choices = recovery_words,
     NOT_OF_MONITOR(NO_LOCKS, 0),
     FIELD(recovery),
     .help =
         "After a restart: reclaim notifies every client, which reclaims its locks in the grace "
         "period; resume carries on with locks and waiters unchanged and notifies nobody."},
    {.name = "unreachable",
     .type = CONFIG_CHOICE,
     .default_text = "release",
     .choices = unreachable_words,
     NOT_OF_MONITOR(NO_LOCKS, 0),
     FIELD(unreachable),
     .help = "Locks of a client that cannot be notified of a restart: release frees them when the "
             "grace period ends, hold keeps them until --give-up has passed."},
    {.name = "trust-reclaim",
     .type = CONFIG_FLAG,
     NOT_OF_MONITOR(NO_LOCKS, 0),
     FIELD(trust_reclaim),
     .help = "Grant reclaims that match no stored lock if nothing conflicts with them."},

    {.name = "notify-timeout",
     .type = CONFIG_SECONDS,
     .argument = "S",
     .default_text = "5",
     .low = 2,
     .high = 60,
     FIELD(notify_timeout_s),
     .help = "Total seconds for one attempt to call a client, to notify it of a restart or to "
             "grant its lock; a silent portmapper alone takes one."},
    {.name = "give-up",
     .type = CONFIG_SECONDS,
     .argument = "S",
     .default_text = "900",
     .high = SECONDS_MAX,
     FIELD(give_up_s),
     .help = "How long to keep retrying unreachable clients after the recovery window, in seconds; "
             "the next start tries again."},
    {.name = "name",
     .type = CONFIG_NAMES,
     .argument = "NAME",
     .flags = CONFIG_REPEATABLE | CONFIG_RELOADS,
     .default_shown = "none beyond this host's names and addresses",
     FIELD(names),
     .help = "Another name that clients mount this server by; they are notified under it as well "
             "as under the hostname (full and short) and the address they use. The first one is "
             "the name sent to SM_MON registrants."},
    {.name = "source-ports",
     .type = CONFIG_PORTS,
     .argument = "LO-HI",
     .default_shown = "any",
     FIELD(source_ports),
     .help = "Local ports for calls to clients, for firewalls."},
    {.group = "Monitor, with --role monitor",
     .name = "notify-after",
     .type = CONFIG_SECONDS,
     .argument = "S",
     .default_text = "30",
     .high = SECONDS_MAX,
     .flags = CONFIG_NOT_OF_SERVER,
     FIELD(notify_after_s),
     .help = "After a reboot, notify the watched hosts as soon as this machine's NFS server is "
             "registered with rpcbind, but after so many seconds at the latest; at once where no "
             "NFS server is set up, unless this option is given."},
    {.name = "unmon-all",
     .type = CONFIG_CHOICE,
     .default_text = "forget",
     .choices = unmon_all_words,
     .flags = CONFIG_NOT_OF_SERVER,
     FIELD(unmon_all),
     .help = "What SM_UNMON_ALL does to the hosts that are still watched: forget them, or notify "
             "them first. nfs-ganesha sends it when it starts, also after a crash."},
    {.name = "on-lockd-restart",
     .type = CONFIG_CHOICE,
     .default_text = "log",
     .choices = lockd_restart_words,
     .flags = CONFIG_NOT_OF_SERVER,
     FIELD(lockd_restart),
     .help = "When the lock manager seems to have been restarted without the machine, and so has "
             "lost its locks: log it, or notify every watched host so that it reclaims."},
    {.name = "callout",
     .type = CONFIG_TEXT,
     .argument = "PROG",
     .default_shown = "none",
     .flags = CONFIG_NOT_OF_SERVER,
     FIELD(callout),
     .help =
         "Run this program when a host is watched (add-client MON_NAME MY_NAME), when it is not "
         "any more (del-client MON_NAME MY_NAME), and when one has rebooted (sm-notify MON_NAME "
         "ADDRESS STATE), as rpc.statd does with -H; but nothing waits for it."},
    {.group = "Files",
     .name = "export",
     .type = CONFIG_EXPORTS,
     .argument = "LINE",
     NOT_OF_MONITOR(NO_FILES, CONFIG_REPEATABLE | CONFIG_RELOADS),
     .default_shown = "none: locks only, for files of another server",
     FIELD(exports),
     .help = "Serve a directory over NFSv3, one line of exports(5): '/srv/files *(rw)'. Needs "
             "root."},
    {.name = "exports",
     .type = CONFIG_TEXT,
     .argument = "FILE",
     .default_shown = "none",
     NOT_OF_MONITOR(NO_FILES, CONFIG_RELOADS),
     FIELD(exports_file),
     .help = "Read such lines from this file."},
    {.name = "nfs-port",
     .type = CONFIG_PORT,
     .argument = "N",
     .default_text = "2049",
     .high = UINT16_MAX,
     NOT_OF_MONITOR(NO_FILES, 0),
     FIELD(nfs_port),
     .help = "Port of NFS (TCP) and MOUNT (TCP and UDP) with --export; 0: any free port, printed "
             "at start."},
    {.name = "groups",
     .type = CONFIG_CHOICE,
     .default_text = "wire",
     .choices = groups_words,
     NOT_OF_MONITOR(NO_FILES, 0),
     FIELD(groups),
     .help = "The groups of a caller: those it sends, 16 at most, or those that this server knows "
             "its user has."},
    {.name = "local-locks",
     .type = CONFIG_CHOICE,
     .default_text = "on",
     .choices = switch_words,
     NOT_OF_MONITOR(NO_FILES, 0),
     FIELD(local_locks),
     .help = "With --export, programs on this machine (fcntl locks) and NFS clients exclude each "
             "other."},
    {.name = "share",
     .type = CONFIG_SHARES,
     .argument = "NAME=HEXPREFIX",
     NOT_OF_MONITOR(NO_LOCKS, CONFIG_REPEATABLE),
     .default_shown = "none: all files are in \"default\"",
     FIELD(shares),
     .help = "A named set of files: those whose handles start with these bytes; the longest prefix "
             "wins. Locks can be listed and counted by it."},
    {.group = "Limits",
     .name = "max-clients",
     .type = CONFIG_NUMBER,
     .argument = "N",
     .default_text = "10000",
     .low = 1,
     .high = 10000000,
     FIELD(clients_max),
     .help = "SM_MON registrations, and as many lock clients. One more replaces the longest idle "
             "or given-up one that holds nothing; if there is none, it is refused."},
    {.name = "max-locks",
     .type = CONFIG_NUMBER,
     .argument = "N",
     .default_text = "1000000",
     .low = 1,
     .high = LOCKS_MAX,
     NOT_OF_MONITOR(NO_LOCKS, 0),
     FIELD(locks_max),
     .help = "Locks of all clients together; beyond that, refused."},
    {.name = "max-locks-per-client",
     .type = CONFIG_NUMBER,
     .argument = "N",
     .default_text = "100000",
     .low = 1,
     .high = LOCKS_MAX,
     NOT_OF_MONITOR(NO_LOCKS, CONFIG_RAISES),
     FIELD(locks_per_client_max),
     .help = "Locks of one client; beyond that, refused."},
    {.name = "max-waiters",
     .type = CONFIG_NUMBER,
     .argument = "N",
     .default_text = "100000",
     .low = 1,
     .high = 10000000,
     NOT_OF_MONITOR(NO_LOCKS, 0),
     FIELD(waiters_max),
     .help = "Requests waiting for a lock; beyond that, refused."},
    {.name = "max-per-address",
     .type = CONFIG_NUMBER,
     .argument = "PERCENT",
     .default_text = "10",
     .low = 1,
     .high = 100,
     NOT_OF_MONITOR(OURS_ONLY, CONFIG_RAISES),
     FIELD(per_address_percent),
     .help = "Percentage of --max-clients, --max-locks and --max-waiters that one address may use, "
             "whatever names it uses; 100: no limit. Raise it for many clients behind one address "
             "(NAT)."},
    {.name = "max-connections",
     .type = CONFIG_NUMBER,
     .argument = "N",
     .default_text = "4096",
     .low = 1,
     .high = 1000000,
     FIELD(connections_max),
     .help = "Concurrent TCP connections from clients."},
    {.name = "max-bytes",
     .type = CONFIG_SIZE,
     .argument = "SIZE",
     .default_text = "512M",
     .low = MIB,
     .high = 32 * GIB,
     FIELD(bytes_max),
     .help = "Memory for names and other variable data; accepts K, M and G. With --role monitor, "
             "which stores only names, the default is 32M."},
    {.group = "Security",
     .name = "allow",
     .type = CONFIG_NETWORKS,
     .argument = "CIDR",
     .default_shown = "everybody",
     NOT_OF_MONITOR(OURS_ONLY, CONFIG_REPEATABLE | CONFIG_RELOADS),
     FIELD(allow),
     .help =
         "Only this address or network (192.0.2.0/24) may lock; what others hold they may free. "
         "Exports have their own lists of clients."},
    {.name = "mon-from",
     .type = CONFIG_CHOICE,
     .default_text = "any",
     .choices = mon_from_words,
     NOT_OF_MONITOR(OURS_ONLY, 0),
     FIELD(mon_from),
     .help = "Who may register with SM_MON: any address, or only this machine."},
    {.name = "trust-state",
     .type = CONFIG_CHOICE,
     .default_text = "on",
     .choices = switch_words,
     NOT_OF_MONITOR(NO_LOCKS, 0),
     FIELD(trust_state),
     .help = "A LOCK with a newer state number means that the client rebooted, and releases its "
             "old locks; use off for clients whose number grows without a reboot, such as "
             "restarted containers."},
    {.name = "verify-notify",
     .type = CONFIG_CHOICE,
     .default_text = "auto",
     .choices = verify_words,
     FIELD(verify_notify),
     .help = "Confirm an SM_NOTIFY with the client's own status monitor: auto (when in doubt) or "
             "always."},
    {.name = "require-privileged-port",
     .type = CONFIG_FLAG,
     FIELD(require_privileged_port),
     .help = "Refuse calls from source ports 1024 and above."},
    {.name = "user",
     .type = CONFIG_TEXT,
     .argument = "NAME",
     .default_shown = "unchanged",
     FIELD(user),
     .help = "Switch to this user once the ports are bound; needs root."},
    {.group = "Measuring",
     .name = "metrics",
     .type = CONFIG_CHOICE,
     .default_text = "on",
     .choices = switch_words,
     FIELD(metrics),
     .help = "Count and time calls and commits, and serve /metrics."},
    {.group = "Log, to standard error",
     .name = "log-level",
     .type = CONFIG_CHOICE,
     .default_text = "info",
     .choices = level_words,
     .flags = CONFIG_RELOADS,
     FIELD(log_level),
     .help = "Minimum level to log."},
    {.name = "log-format",
     .type = CONFIG_CHOICE,
     .default_text = "text",
     .choices = format_words,
     .flags = CONFIG_RELOADS,
     FIELD(log_format),
     .help = "Plain text, or one JSON object per line."},
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
