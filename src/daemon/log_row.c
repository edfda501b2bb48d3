/*
 * log_row.c -- see log_row.h.
 */
#include "daemon/log_row.h"

#include "base/check.h"

/* What an event means to an operator: kind, level, sentence, and what name and value are called. */
#define EVENT_ROWS(ROW)                                                                            \
    ROW(EVENT_BAD_NAME, WARNING,                                                                   \
        "refused: a hostname must not be empty, begin with '.', or contain '/' or control bytes",  \
        "name", NULL)                                                                              \
    ROW(EVENT_LIMIT, WARNING,                                                                      \
        "refused a new registration: limit reached; raise --max-clients to allow more", "name",    \
        "max_clients")                                                                             \
    ROW(EVENT_NO_BYTES, WARNING,                                                                   \
        "refused: memory for names used up; raise --max-bytes to allow more", "name", "max_bytes") \
    ROW(EVENT_NO_ROOM, ERROR,                                                                      \
        "refused a new registration: the store cannot reserve more space; free space on its disk", \
        "name", NULL)                                                                              \
    ROW(EVENT_BAD_CALLBACK, WARNING,                                                               \
        "refused a registration whose callback is a system RPC program", "name", "program")        \
    ROW(EVENT_NOT_ALLOWED, WARNING, "refused a call from another machine, as --mon-from asks",     \
        NULL, NULL)                                                                                \
    ROW(EVENT_CRASH_REFUSED, WARNING,                                                              \
        "ignored SM_SIMU_CRASH: it must come from this machine and a port below 1024", NULL,       \
        "source_port")                                                                             \
    ROW(EVENT_CRASH_SIMULATED, WARNING, "SM_SIMU_CRASH: state number raised", NULL, "state")       \
    ROW(EVENT_NOTICE, INFO, "a client reported its reboot", "name", "state")                       \
    ROW(EVENT_NOTICE_IGNORED, INFO,                                                                \
        "ignored a reboot notification: no lock client or monitored host has that name at that "   \
        "address",                                                                                 \
        "name", "state")                                                                           \
    ROW(EVENT_NOTICE_AMBIGUOUS, WARNING,                                                           \
        "ignored a reboot notification: several clients at that address share that short name; "   \
        "only one with the full name counts",                                                      \
        "name", "state")                                                                           \
    ROW(EVENT_NOTICE_FOREIGN, WARNING,                                                             \
        "ignored a reboot notification: that name does not resolve to that address; its monitors " \
        "were not notified",                                                                       \
        "name", "state")                                                                           \
    ROW(EVENT_NOTICE_UNCONFIRMED, WARNING,                                                         \
        "ignored a reboot notification: the client's own status monitor does not confirm it; "     \
        "nothing was released",                                                                    \
        "name", "state")                                                                           \
    ROW(EVENT_TOLD, DEBUG, "notified a client", "name", "state")                                   \
    ROW(EVENT_NOT_REACHED, WARNING, "could not notify a client yet; retrying", "name", "state")    \
    ROW(EVENT_GIVEN_UP, WARNING,                                                                   \
        "could not notify a client within --give-up; the next start tries again", "name", "state") \
    ROW(EVENT_ROUND_OVER, INFO, "first round of notifications finished", "clients",                \
        "milliseconds")                                                                            \
    ROW(EVENT_CLIENT_REBOOTED, INFO, "a client rebooted", "name", "state")                         \
    ROW(EVENT_CLIENT_UNREACHED, WARNING,                                                           \
        "a client is unreachable; its locks are released when grace ends unless it returns",       \
        "name", "locks")                                                                           \
    ROW(EVENT_CLIENT_RENEWED, INFO, "a client rebooted or was released; releasing its old locks",  \
        "name", "client")                                                                          \
    ROW(EVENT_CLIENT_FREED, INFO, "released a client's old locks", "name", "freed")                \
    ROW(EVENT_NAMESAKE_REFUSED, WARNING,                                                           \
        "refused: a client of the same name holds it at another address; if both are the same "    \
        "host and its address changed: holdfast move c<client> ADDRESS",                           \
        "name", "client")                                                                          \
    ROW(EVENT_CLIENT_MOVED, WARNING, "an operator moved a client to another address", "name",      \
        "client")                                                                                  \
    ROW(EVENT_NOT_RESUMED, WARNING,                                                                \
        "--recovery resume is not possible this time: clients are notified and must reclaim",      \
        "because", NULL)                                                                           \
    ROW(EVENT_GRACE_OVER, WARNING, "grace period ended; releasing locks that were not reclaimed",  \
        NULL, "locks")                                                                             \
    ROW(EVENT_GRACE_SETTLED, INFO,                                                                 \
        "grace period ended: every stored lock was reclaimed or released", NULL, NULL)             \
    ROW(EVENT_CLIENT_RECLAIMED, INFO, "a client finished reclaiming its locks", "name",            \
        "reclaimed")                                                                               \
    ROW(EVENT_CLIENT_LOST, WARNING,                                                                \
        "a client did not reclaim all of its locks in time; released the others", "name",          \
        "reclaimed")                                                                               \
    ROW(EVENT_RECLAIM_DENIED, WARNING,                                                             \
        "refused a reclaim: no stored lock matches it, or another client reclaimed those bytes; "  \
        "see --trust-reclaim",                                                                     \
        "name", NULL)                                                                              \
    ROW(EVENT_HOLDER_SILENT, WARNING,                                                              \
        "requests are blocked by a client that does not answer; if it is gone: holdfast release "  \
        "c<client>",                                                                               \
        "name", "client")                                                                          \
    ROW(EVENT_FREE_ALL_IGNORED, INFO,                                                              \
        "ignored FREE_ALL: no lock client has that name at that address", "name", NULL)            \
    ROW(EVENT_LOCK_LIMIT, WARNING, "refused a lock: --max-locks reached", "name", "limit")         \
    ROW(EVENT_CLIENT_LOCK_LIMIT, WARNING,                                                          \
        "refused a lock: the client reached --max-locks-per-client", "name", "limit")              \
    ROW(EVENT_WAITER_LIMIT, WARNING, "refused a waiting request: --max-waiters reached", "name",   \
        "limit")                                                                                   \
    ROW(EVENT_ADDRESS_LIMIT, WARNING,                                                              \
        "refused: this address reached its limit; see --max-per-address", "name", "limit")         \
    ROW(EVENT_RECORD_EVICTED, INFO,                                                                \
        "forgot the longest idle or given-up client to make room for a new one; see "              \
        "--max-clients and --max-per-address",                                                     \
        "name", "client")                                                                          \
    ROW(EVENT_CORRUPT_RECORD, ERROR, "skipped a damaged record; the store counts as incomplete",   \
        "kind", "slot")                                                                            \
    ROW(EVENT_RPC_VERSION, INFO, "refused a call: its RPC version is not 2", NULL, NULL)           \
    ROW(EVENT_TOO_LONG, WARNING, "dropped a message that is too long to be a call", NULL, NULL)    \
    ROW(EVENT_SLOW_PEER, INFO,                                                                     \
        "closed a connection that stalled inside a call or did not read its replies", NULL, NULL)  \
    ROW(EVENT_EVICTED, WARNING,                                                                    \
        "closed the longest idle connection to make room for a new one; see --max-connections",    \
        NULL, NULL)                                                                                \
    ROW(EVENT_TURNED_AWAY, WARNING, "rejected a new connection; see --max-connections", NULL,      \
        NULL)                                                                                      \
    ROW(EVENT_NO_INTERFACE, WARNING,                                                               \
        "dropped a message or connection of a link-local client: its interface is gone, or its "   \
        "name is not printable ASCII; rename it",                                                  \
        NULL, NULL)                                                                                \
    ROW(EVENT_MALFORMED, WARNING, "dropped bytes that are not an RPC call", NULL, NULL)            \
    ROW(EVENT_BAD_ARGUMENTS, WARNING, "refused a call: cannot decode its arguments", NULL,         \
        "procedure")                                                                               \
    ROW(EVENT_UNKNOWN_CALL, INFO, "refused a call to a program or procedure not served here",      \
        "call", NULL)                                                                              \
    ROW(EVENT_BAD_CREDENTIAL, WARNING, "refused a call: credential not accepted", NULL, NULL)      \
    ROW(EVENT_UNPRIVILEGED, WARNING,                                                               \
        "refused a call from a port above 1023, as --require-privileged-port asks", NULL,          \
        "source_port")                                                                             \
    ROW(EVENT_LOCK_NOT_ALLOWED, WARNING, "refused a lock: --allow does not list this address",     \
        "name", NULL)                                                                              \
    ROW(EVENT_LOCK_NOT_EXPORTED, WARNING,                                                          \
        "refused a lock: the file's export does not list this client", "name", NULL)               \
    ROW(EVENT_LOCK_READ_ONLY, WARNING,                                                             \
        "refused an exclusive lock: this client may only read that export", "name", NULL)          \
    ROW(EVENT_LOCK_NO_ACCESS, WARNING, "refused a lock: its user may not read the file", "name",   \
        NULL)                                                                                      \
    ROW(EVENT_LOCK_STUCK, ERROR, "refused a lock: the file system does not answer", "name", NULL)  \
    ROW(EVENT_LOCAL_REFUSED, ERROR,                                                                \
        "a program on this machine has locked bytes that an NFS client holds: it took them while " \
        "holdfast was not running; stop it, or release the client",                                \
        NULL, NULL)                                                                                \
    ROW(EVENT_LOCAL_UNSEEN, ERROR,                                                                 \
        "programs on this machine do not see the locks of a file: it cannot be opened; tried "     \
        "again every second",                                                                      \
        NULL, NULL)                                                                                \
    ROW(EVENT_LOCAL_NO_ROOM, WARNING,                                                              \
        "too many files are locked for the limit of open files: a lock was refused, or programs "  \
        "on this machine do not see it; raise the limit (ulimit -n, LimitNOFILE=), or use "        \
        "--local-locks off",                                                                       \
        "name", NULL)                                                                              \
    ROW(EVENT_FILE_GONE, INFO, "freed the locks of a file that was removed", NULL, "locks")        \
    ROW(EVENT_OLD_CALL, INFO, "refused a repeat of an earlier call: its process has called since", \
        NULL, "procedure")                                                                         \
    ROW(EVENT_TOO_MANY_MESSAGES, WARNING,                                                          \
        "dropped a UDP message: its address sends them faster than allowed", NULL, NULL)           \
    ROW(EVENT_UNRESOLVED, WARNING,                                                                 \
        "a watched host cannot be notified or believed: its name does not resolve; retrying",      \
        "name", NULL)                                                                              \
    ROW(EVENT_RESOLVED, INFO, "the name of a watched host resolves again", "name", NULL)           \
    ROW(EVENT_UPCALL, INFO, "notified the lock manager of this machine that a host rebooted",      \
        "name", "state")                                                                           \
    ROW(EVENT_UPCALL_FAILED, WARNING,                                                              \
        "cannot tell the lock manager of this machine that a host rebooted; retrying", "name",     \
        "state")                                                                                   \
    ROW(EVENT_RESTART_NOTICE, WARNING, "notifying every watched host of a restart", NULL, "state") \
    ROW(EVENT_LOCKD_RESTARTED, ERROR,                                                              \
        "the lock manager of this machine seems to have lost its locks: it registers again a "     \
        "host that it did not unregister; to have every host reclaim, run holdfast "               \
        "restart-notice (or use --on-lockd-restart notify)",                                       \
        "name", NULL)                                                                              \
    ROW(EVENT_REGISTERED, DEBUG, "a client registered with SM_MON", "name", NULL)                  \
    ROW(EVENT_CLIENT_ADDED, DEBUG, "new lock client", "name", "client")                            \
    ROW(EVENT_BLOCKED, DEBUG, "a request is waiting for a lock", "name", "client")                 \
    ROW(EVENT_GRANTED, DEBUG, "a waiting request got its lock", "name", "client")                  \
    ROW(EVENT_TRACKED_EXPIRED, DEBUG,                                                              \
        "the time of a tracked client has run out; its protocol cleans up", "name", "client")

#define AS_ROW(event_kind, event_level, event_sentence, name, value)                               \
    [event_kind] = {LOG_LEVEL_##event_level, (event_sentence), (name), (value)},
#define AS_NUMBER(event_kind, event_level, event_sentence, name, value) ROW_OF_##event_kind,

/* One row more than there are kinds: what the ring lost. */
/* clang-format off */
static const struct log_row event_rows[EVENT_KIND_END + 1] = {
    EVENT_ROWS(AS_ROW)
    [EVENT_KIND_END] = {LOG_LEVEL_WARNING, "too many events at once to log", NULL, NULL},
};
/* clang-format on */

/* What differs in a status monitor, which has no clients: it watches hosts for its lock manager. */
static const struct log_row monitor_rows[EVENT_KIND_END + 1] = {
    [EVENT_BAD_CALLBACK] = {LOG_LEVEL_WARNING,
                            "refused a registration: its callback is not a lock manager's (program "
                            "100021, procedure 16 or 24)",
                            "name", "program"},
    [EVENT_NOT_ALLOWED] = {LOG_LEVEL_WARNING,
                           "refused a registration from another machine: a status monitor watches "
                           "hosts for its own one",
                           NULL, NULL},
    [EVENT_NOTICE] = {LOG_LEVEL_INFO, "a watched host reported its reboot", "name", "state"},
    [EVENT_NOTICE_IGNORED] = {LOG_LEVEL_INFO,
                              "ignored a reboot notification: no other host with that name or "
                              "address is watched",
                              "name", "state"},
    [EVENT_NOTICE_FOREIGN] = {LOG_LEVEL_WARNING,
                              "did not believe a reboot notification: that name does not resolve "
                              "to that address; the lock manager was not told",
                              "name", "state"},
    [EVENT_NOTICE_UNCONFIRMED] = {LOG_LEVEL_WARNING,
                                  "did not believe a reboot notification: the host's own status "
                                  "monitor does not confirm it; the lock manager was not told",
                                  "name", "state"},
    [EVENT_TOLD] = {LOG_LEVEL_DEBUG, "notified a host", "name", "state"},
    [EVENT_NOT_REACHED] = {LOG_LEVEL_WARNING, "could not notify a host yet; retrying", "name",
                           "state"},
    [EVENT_GIVEN_UP] = {LOG_LEVEL_WARNING,
                        "could not notify a host within --give-up; the next start tries again",
                        "name", "state"},
    [EVENT_ROUND_OVER] = {LOG_LEVEL_INFO, "first round of notifications finished", "hosts",
                          "milliseconds"},
    [EVENT_REGISTERED] = {LOG_LEVEL_DEBUG, "a host is watched", "name", NULL},
};

/* As many rows as kinds, and no kind twice: that would define a name twice. */
enum { EVENT_ROWS(AS_NUMBER) ROW_COUNT };
_Static_assert((int)ROW_COUNT == (int)EVENT_KIND_END, "every kind of event has a row");

const struct log_row *log_row_of(uint32_t kind, bool is_monitor)
{
    CHECK(kind <= EVENT_KIND_END);
    return is_monitor && monitor_rows[kind].sentence != NULL ? &monitor_rows[kind]
                                                             : &event_rows[kind];
}
