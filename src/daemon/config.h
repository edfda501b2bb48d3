/*
 * config.h -- the options of the server, and their values.
 *
 * config_options is the one table of options: the command line, `--help`, the configuration file,
 * `--check-config`, and whatever else lists options read it. Adding an option is adding a field to
 * struct config and a row to the table.
 *
 * An option is given as `--name VALUE` or `--name=VALUE`, or as `name = VALUE` in the section
 * [holdfast] of the file that `--config` names, or in the section of the group that is served. The
 * command line wins over the file, there the group's section over [holdfast], and the last of two
 * command-line values over the first; for a repeatable option the values of one source add up.
 */
#ifndef DAEMON_CONFIG_H
#define DAEMON_CONFIG_H

#include "base/network.h"
#include "base/text.h"
#include "daemon/config_export.h"
#include "daemon/config_group.h"
#include "daemon/config_share.h"
#include "daemon/config_window.h"
#include "daemon/log.h"

#define CONFIG_LISTEN_MAX 64 /* --listen on one command line or in one file */
#define CONFIG_ALLOW_MAX  64 /* --allow, likewise */
#define CONFIG_NAME_MAX   4  /* --name: all of them fit into one notification */
#define CONFIG_OPTION_MAX 64 /* rows of the table at most */
#define CONFIG_EXIT       2  /* exit code for usage and configuration errors */

/* Default places. */
#define CONFIG_STORE_OF_ROOT         "lmdb:/var/lib/holdfast"
#define CONFIG_STORE_OF_MONITOR      "lmdb:/var/lib/holdfast-monitor"
#define CONFIG_BYTES_OF_MONITOR      (UINT64_C(32) << 20) /* it also runs on small machines */
#define CONFIG_STORE_OF_OTHERS       "lmdb:holdfast-data"
#define CONFIG_CONTROL_NAME          "control.sock"  /* in the directory of the store */
#define CONFIG_RUN_DIRECTORY         "/run/holdfast" /* of the control socket, without a store */
#define CONFIG_CONTROL_WITHOUT_STORE CONFIG_RUN_DIRECTORY "/" CONFIG_CONTROL_NAME

enum config_type {
    CONFIG_FLAG,      /* bool; without a value on the command line it means "on" */
    CONFIG_NUMBER,    /* uint32_t, plain digits */
    CONFIG_PORT,      /* uint16_t */
    CONFIG_SECONDS,   /* uint32_t */
    CONFIG_SIZE,      /* uint64_t, bytes; K, M and G multiply by 1024 */
    CONFIG_CHOICE,    /* an enum: the index of the word among the row's choices */
    CONFIG_TEXT,      /* char *, owned; NULL: not given */
    CONFIG_STORE,     /* the same; begins with one of the row's choices */
    CONFIG_ADDRESSES, /* struct config_addresses */
    CONFIG_NAMES,     /* struct config_names, owned */
    CONFIG_PORTS,     /* struct config_ports */
    CONFIG_ENDPOINT,  /* struct config_endpoint */
    CONFIG_SHARES,    /* struct config_shares */
    CONFIG_EXPORTS,   /* struct config_exports, owned */
    CONFIG_NETWORKS,  /* struct config_networks */
    CONFIG_WINDOWS,   /* struct config_windows */
    CONFIG_GROUPS,    /* struct config_group_names */
};

enum config_flag {
    CONFIG_REPEATABLE = 1,
    CONFIG_NO_KEY = 2,         /* of the command line only */
    CONFIG_NOT_OF_MONITOR = 4, /* means nothing with --role monitor, and is refused there */
    CONFIG_NOT_OF_SERVER = 8,  /* the same with --role server */
    CONFIG_RELOADS = 16,       /* may change while the server runs: reload.h */
    CONFIG_RAISES = 32,        /* the same, but only upwards */
};

struct config_option {
    const char *name; /* without the dashes; also the key in the file */
    enum config_type type;
    uint32_t flags;             /* of enum config_flag */
    const char *argument;       /* what the value is called; NULL for flags */
    const char *default_text;   /* parsed at start; NULL: see default_shown */
    const char *default_shown;  /* the default in words, where it is not a plain value */
    uint64_t low, high;         /* of numbers */
    const char *const *choices; /* the words, NULL at the end */
    const char *why_not;        /* CONFIG_NOT_OF_MONITOR: why */
    const char *cause;          /* why other values than the choices are refused */
    size_t offset;              /* of the field in struct config */
    const char *group;          /* heading in the help above this row; NULL: same group */
    const char *help;
};

struct config_addresses {
    uint32_t count; /* 0: every address of the machine */
    struct address at[CONFIG_LISTEN_MAX];
};

struct config_networks {
    uint32_t count; /* 0: everybody */
    struct network at[CONFIG_ALLOW_MAX];
};

struct config_names {
    uint32_t count;
    char *at[CONFIG_NAME_MAX];
};

struct config_ports {
    uint16_t low, high; /* 0: any */
};

struct config_endpoint {
    bool is_on;
    struct address address;
    uint16_t port; /* 0: any free one */
};

enum config_role { CONFIG_SERVER, CONFIG_MONITOR };
enum config_unmon_all { CONFIG_UNMON_FORGET, CONFIG_UNMON_NOTIFY };
enum config_lockd_restart { CONFIG_LOCKD_LOG, CONFIG_LOCKD_NOTIFY };
enum config_sync { CONFIG_SYNC_FULL, CONFIG_SYNC_PROCESS };
enum config_recovery { CONFIG_RECLAIM, CONFIG_RESUME };
enum config_unreachable { CONFIG_RELEASE, CONFIG_HOLD };
enum config_switch { CONFIG_ON, CONFIG_OFF };
enum config_groups { CONFIG_GROUPS_WIRE, CONFIG_GROUPS_SERVER };
enum config_verify { CONFIG_VERIFY_AUTO, CONFIG_VERIFY_ALWAYS };
enum config_mon_from { CONFIG_MON_FROM_ANY, CONFIG_MON_FROM_LOOPBACK };
enum config_rpcbind {
    CONFIG_RPCBIND_AUTO,
    CONFIG_RPCBIND_SYSTEM,
    CONFIG_RPCBIND_EMBEDDED,
    CONFIG_RPCBIND_OFF,
};

/* The stronger one last. */
enum config_origin {
    CONFIG_FROM_DEFAULT,
    CONFIG_FROM_FILE,
    CONFIG_FROM_GROUP, /* its section of the file */
    CONFIG_FROM_COMMAND_LINE,
};

/* Defaults are filled in: every field can be used as it is. */
struct config {
    /* Do this instead of serving. */
    bool show_help, show_version, show_manual, show_manual_conf, check_only;
    char *file; /* --config; NULL: none */
    enum config_role role;

    struct config_addresses listen;
    uint16_t port;     /* 0: any free one */
    uint16_t nlm_port; /* the same as port unless set */
    uint16_t nsm_port; /* the same */
    enum config_rpcbind rpcbind;
    bool no_rpcbind; /* folded into rpcbind */
    bool force;      /* take over a foreign registration */
    struct config_endpoint http;
    char *control;           /* path of the control socket */
    bool control_is_default; /* the path is the default */

    char *store;
    enum config_sync sync;
    uint32_t store_timeout_s;
    bool assume_lost;
    bool standby;
    char *takeover_hook; /* NULL: none */
    struct config_group_names group_names;
    char group[STORE_GROUP_NAME_MAX + 1]; /* the one these values are for; empty: none, or one of
                                             several that is not known yet */

    uint32_t recovery_window_s;
    struct config_windows windows;
    uint32_t grace_s;
    enum config_recovery recovery;
    enum config_unreachable unreachable;
    bool trust_reclaim;
    uint32_t notify_timeout_s;
    uint32_t give_up_s;
    struct config_names names; /* none given: the hostname */
    struct config_ports source_ports;

    uint32_t notify_after_s;
    bool is_notify_after_given; /* an NFS server is waited for, whatever the machine looks like */
    enum config_unmon_all unmon_all;
    enum config_lockd_restart lockd_restart;
    char *callout; /* NULL: none */

    struct config_exports exports;
    char *exports_file; /* NULL: none */
    uint16_t nfs_port;  /* 0: any free one */
    enum config_groups groups;
    enum config_switch local_locks;
    struct config_shares shares;

    uint32_t clients_max;
    uint32_t locks_max;
    uint32_t locks_per_client_max;
    uint32_t waiters_max;
    uint32_t per_address_percent;
    uint32_t connections_max;
    uint64_t bytes_max;

    struct config_networks allow;
    enum config_mon_from mon_from;
    enum config_switch trust_state;
    enum config_verify verify_notify;
    bool require_privileged_port;
    char *user;          /* NULL: stay who we are */
    char *tracker_group; /* NULL: none */

    enum config_switch metrics;
    enum log_level log_level;
    enum log_format log_format;

    /* Where each row's value came from, in the order of the table, and the line of the file. */
    enum config_origin origins[CONFIG_OPTION_MAX];
    uint32_t lines[CONFIG_OPTION_MAX];
};

extern const struct config_option config_options[];
extern const uint32_t config_option_count;

/* The row of this name, or NULL. */
const struct config_option *config_find(const char *name);
/* "; did you mean X?" when a known name is close to this one; keys_only leaves out CONFIG_NO_KEY.
 */
void config_add_suggestion(struct text *text, const char *name, bool keys_only);
/* A value as it was given, for a message: not all of a long one, and no password. */
void config_add_value(struct text *text, const struct config_option *option, const char *value);

/*
 * Reads defaults, file and command line, in that order; argv[0] is skipped. Reading stops at --help
 * and --version. 0, or -EINVAL (-ENOMEM) with a sentence in *ret_why that names option, value,
 * cause and what is allowed: print it and exit with CONFIG_EXIT. On failure nothing is left to
 * free.
 */
__attribute__((warn_unused_result)) int config_read(int argc, char *const *argv, struct config *ret,
                                                    struct text *ret_why);
/* The same for one of several groups, with what its section says; NULL: for the only one, if there
 * is one. */
__attribute__((warn_unused_result)) int config_read_group(int argc, char *const *argv,
                                                          const char *group, struct config *ret,
                                                          struct text *ret_why);
void config_done(struct config *config);

/*
 * Sets one option from its text, for config_read and the file reader. `line` is the line of the
 * file, 0 for other origins. 0 or -EINVAL (-ENOMEM) with the cause alone in *ret_why.
 */
__attribute__((warn_unused_result)) int config_set(struct config *config,
                                                   const struct config_option *option,
                                                   const char *value, enum config_origin origin,
                                                   uint32_t line, struct text *ret_why);

#endif
