/*
 * config_words.h -- words for the table of options: of those that are a choice, NULL at the end and
 * in the order of their enums; and why some mean nothing.
 */
#ifndef DAEMON_CONFIG_WORDS_H
#define DAEMON_CONFIG_WORDS_H

#include "daemon/config.h"

/* Why an option means nothing with --role monitor. */
#define NO_LOCKS     "a status monitor keeps no locks; the lock manager of this machine does"
#define NO_FILES     "a status monitor serves no files; the NFS server of this machine does"
#define ONE_PROGRAM  "a status monitor has a single port; use --port"
#define THIS_MACHINE "a status monitor belongs to its machine, and no other can take its place"
#define NO_TRACKER   "a status monitor tracks no clients; a server does"
#define OURS_ONLY    "a status monitor takes registrations from this machine alone"

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

_Static_assert(sizeof level_words / sizeof level_words[0] == LOG_LEVEL_END + 1, "a word per level");
_Static_assert(sizeof format_words / sizeof format_words[0] == LOG_FORMAT_END + 1,
               "and per format");

#endif
