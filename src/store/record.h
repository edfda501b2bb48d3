/*
 * record.h -- what is stored: the record kinds, their bytes, and batches of changes.
 *
 * A record is named by its kind and its slot in the core's table of that kind. Its value carries
 * kind, format version and checksum (R-PER-5); record.c describes the bytes. Decoded records are
 * views into the value they came from.
 *
 * A batch is the set of changes that becomes durable in one piece. The core fills it; a back end
 * applies it whole or not at all. Every batch carries the server record, and with it its own
 * number.
 */
#ifndef STORE_RECORD_H
#define STORE_RECORD_H

#include "base/address.h"
#include "base/bytes.h"
#include "base/transport.h"

enum record_kind {
    RECORD_SERVER = 1,     /* slot 0 only: who we are, how often we started */
    RECORD_REGISTRANT = 2, /* an SM_MON registration */
    RECORD_NOTICE = 3,     /* "this monitored host rebooted", heard by SM_NOTIFY */
    RECORD_CLIENT = 4,     /* a host that locks, under one of its names (R-ID-1) */
    RECORD_LOCK = 5,       /* a held byte range, or one offered to a waiter (R-BLK-19) */
    RECORD_WAITER = 6,     /* a blocked request; stored in resume mode only (D12, R-BLK-14) */
    RECORD_SHARE = 7,      /* a share reservation */
    RECORD_TRACKED = 8,    /* a client of another protocol (D15) */
    RECORD_KIND_END,
};

/* The name of a kind as operators read it in messages: "server", "registrant", ... */
const char *record_kind_name(enum record_kind kind);

enum record_result {
    RECORD_GOOD,
    RECORD_CORRUPT, /* short, long, checksum wrong, or a value that no version ever wrote */
    RECORD_NEWER,   /* intact, but written by a newer format */
};

#define RECORD_FORMAT       7 /* raised by every change of any record's bytes, and by new kinds */
#define RECORD_NAME_MAX     1024 /* mon_name, my_name, caller_name, oh */
#define RECORD_FH_MAX       64   /* a file handle (R-NLM-1) */
#define RECORD_PROTOCOL_MAX 16   /* the name of a protocol */
#define RECORD_KEY_MAX      64   /* what a protocol knows a client by */
#define RECORD_BYTES_MAX    1024 /* what a protocol keeps with it */
#define RECORD_PRIV_LEN     16
#define RECORD_HOSTS_MAX    4        /* addresses that are kept of a monitored name */
#define RECORD_VALUE_MAX    2560     /* no record is longer */
#define RECORD_SLOT_MAX     10000000 /* no slot of any kind reaches it */

enum record_server_flag {
    RECORD_SERVER_INCOMPLETE = 1, /* D16: locks or clients may be missing from this store */
    RECORD_SERVER_SETTLED = 2,    /* grace over, everything settled: a resume may follow (D12) */
    RECORD_SERVER_WAITERS = 4,    /* waiters are stored, too: this run can be resumed */
    RECORD_SERVER_MONITOR = 8,    /* of a status monitor (--role monitor), not of a lock server */
};

#define RECORD_BOOT_LEN 16

struct record_server {
    uint64_t txn;     /* number of the batch that wrote this record */
    uint64_t epoch;   /* grows by one at every start (D6) */
    uint64_t next_id; /* the next client id; ids are never used again */
    uint32_t state;   /* our NSM state number: odd, strictly growing (R-PER-4) */
    uint32_t flags;
    /* Of our last restart: what everybody must know. `state` is past it if single clients were
     * notified that they lost their locks. */
    uint32_t restart_state;
    /* Of a monitor: the boot of the machine and the network namespace that `restart_state` is of,
     * and our epoch when it began: a priv that was registered before is worth nothing. */
    uint8_t boot[RECORD_BOOT_LEN];
    uint64_t netns;
    uint64_t boot_epoch;
    /* Our epoch when the lock manager was last found to have lost its locks: another priv in place
     * of one that was registered before says nothing new. */
    uint64_t lockd_epoch;
};

struct record_registrant {
    uint64_t id;            /* shown as c17 */
    uint64_t registered_ns; /* wall clock, nanoseconds since 1970 */
    uint64_t server_epoch;  /* our epoch when it registered or last repeated its SM_MON */
    struct address address; /* where the SM_MON came from: the only place we ever call (R-SEC-2) */
    struct address local; /* our address it was sent to; callbacks leave from there (R-NOTIFY-1) */
    uint32_t port;        /* its source port, for the log */
    uint32_t transport;   /* enum transport */
    uint32_t my_prog, my_vers, my_proc;
    uint32_t told_state;    /* our state when it was last notified; not the current one: due (P3) */
    uint32_t relayed_state; /* state of mon_name that was last relayed to it (D7) */
    uint8_t priv[RECORD_PRIV_LEN];
    struct bytes mon_name, my_name;
    struct address hosts[RECORD_HOSTS_MAX]; /* of a monitor: what mon_name was resolved to */
};

struct record_notice {
    uint64_t heard_ns;      /* wall clock */
    struct address address; /* who sent it */
    uint32_t state;         /* the state it carried */
    struct bytes mon_name;
};

enum record_client_flag {
    RECORD_CLIENT_MONITORED = 1, /* it took a monitored lock or share: it is notified of restarts */
    RECORD_CLIENT_CRASHED = 2,   /* D5: it was not reached after a restart */
    RECORD_CLIENT_UNUSED = 4,    /* in old records; means nothing any more */
    RECORD_CLIENT_RECOUNTED = 8, /* its counter was reset at free_below: any other is older */
    RECORD_CLIENT_WAITS = 16,    /* it waits for a lock, or did when this was written last */
    RECORD_CLIENT_CALIBRATED = 32, /* the status monitor at its address said state_seen (R-SEC-4) */
};

/*
 * A lock client. `incarnation` grows whenever the client is found to have rebooted (FREE_ALL,
 * SM_NOTIFY, a newer state, an operator): locks and shares of an older one are being freed, by the
 * next start if this one ends before that is done.
 */
struct record_client {
    uint64_t id;            /* shown as c17; never used again */
    uint64_t registered_ns; /* wall clock */
    uint64_t seen_ns;       /* wall clock, when something of it last changed */
    uint64_t rebooted_ns;   /* wall clock of its last SM_NOTIFY; 0: never (R-SEC-5: kept 24 h) */
    uint64_t
        untold_ns; /* wall clock of the first attempt to notify it of a restart; 0: none open */
    uint64_t server_epoch;  /* our epoch when it registered */
    struct address address; /* where its calls come from: the only place we ever call (R-SEC-2) */
    struct address local;   /* our address that it uses (R-NOTIFY-1) */
    uint32_t transport;     /* enum transport, of its last lock */
    uint32_t versions;      /* NLM versions it used: 1 << version for 1, 3, 4 */
    uint32_t grant_proc;    /* the procedure its GRANTED last worked with: 5, 10; 0: not known */
    uint32_t state_seen;    /* its newest NSM state; 0: not known (R-SEC-3) */
    uint32_t free_below;    /* locks stamped with an older state are being freed; 0: none */
    uint32_t told_state;    /* our state when it was last notified; not the current one: due (P3) */
    uint32_t incarnation;   /* from 1 */
    uint32_t flags;
    struct bytes caller_name; /* as first spelled */
};

enum record_lock_flag {
    RECORD_LOCK_EXCLUSIVE = 1,
    RECORD_LOCK_OFFER = 2,       /* taken for a waiter that has not acknowledged it (R-BLK-19) */
    RECORD_LOCK_UNMONITORED = 4, /* NM_LOCK (R-NM-1) */
    RECORD_LOCK_LINGERS = 8,     /* an offer without an owner, only kept from others (025) */
};

/* Whose a lock, waiter or share is: the slot of the client's record, and its id as a check. */
struct record_of {
    uint64_t client_id;
    uint32_t client;
    uint32_t incarnation;
    uint32_t state; /* the client's NSM state that it was granted under (R-SEC-3); 0: not known */
};

struct record_lock {
    struct record_of of;
    uint64_t granted_ns; /* wall clock */
    uint64_t start, end; /* inclusive; end UINT64_MAX: to the end of the file */
    uint64_t len;        /* as sent (R-RNG-2) */
    uint32_t svid;
    uint32_t flags;
    struct bytes fh, oh;
};

enum record_waiter_flag {
    RECORD_WAITER_EXCLUSIVE = 1,
    RECORD_WAITER_MESSAGE = 2, /* asked by LOCK_MSG (R-BLK-2) */
};

struct record_waiter {
    struct record_of of;
    uint64_t queued_ns;   /* wall clock */
    uint64_t order;       /* place in the queue */
    uint64_t cookie;      /* of its grant; 0: none yet (R-BLK-4) */
    uint64_t offset, len; /* as sent */
    struct address local;
    uint32_t offer; /* slot of its lock record with RECORD_LOCK_OFFER; UINT32_MAX: still queued */
    uint32_t svid;
    uint32_t version;   /* NLM: 1, 3, 4 */
    uint32_t transport; /* enum transport */
    uint32_t flags;
    struct bytes caller_name, fh, oh; /* as sent (R-BLK-1) */
};

struct record_share {
    struct record_of of;
    uint64_t granted_ns;   /* wall clock */
    uint32_t mode, access; /* 0..3: none, read, write, both; mode is what is denied to others */
    uint32_t flags;        /* RECORD_LOCK_UNMONITORED */
    struct bytes fh, oh;
};

enum record_tracked_state {
    RECORD_TRACKED_CONNECTED = 1,
    RECORD_TRACKED_DISCONNECTED = 2, /* it has until deadline_ns to come back */
    RECORD_TRACKED_EXPIRED = 3,      /* it did not; its protocol has not cleaned up after it yet */
};

/* A client of a protocol that is neither NLM nor NSM, for instance an SMB session (D15). */
struct record_tracked {
    uint64_t id;            /* shown as c17; never used again */
    uint64_t registered_ns; /* wall clock */
    uint64_t server_epoch;  /* our epoch when it connected last */
    uint64_t deadline_ns;   /* wall clock; 0 while it is connected */
    struct address address; /* where it connected from; may be none */
    uint32_t window_s;      /* its own recovery window; 0: the shared one */
    uint32_t ttl_s;         /* how long it was to be kept when it was disconnected; else 0 */
    uint32_t generation;    /* of its connections, from 1 */
    uint32_t state;         /* enum record_tracked_state */
    struct bytes protocol, key, bytes;
    struct bytes name; /* for people; empty: its key */
};

/* A protocol is named by 1 to RECORD_PROTOCOL_MAX of a-z, 0-9 and '-'. */
bool record_is_protocol(struct bytes name);

/* Encode into a buffer of RECORD_VALUE_MAX bytes; the length is returned. */
uint32_t record_put_server(uint8_t *buffer, const struct record_server *record);
uint32_t record_put_registrant(uint8_t *buffer, uint32_t slot,
                               const struct record_registrant *record);
uint32_t record_put_notice(uint8_t *buffer, uint32_t slot, const struct record_notice *record);
uint32_t record_put_client(uint8_t *buffer, uint32_t slot, const struct record_client *record);
uint32_t record_put_lock(uint8_t *buffer, uint32_t slot, const struct record_lock *record);
uint32_t record_put_waiter(uint8_t *buffer, uint32_t slot, const struct record_waiter *record);
uint32_t record_put_share(uint8_t *buffer, uint32_t slot, const struct record_share *record);
uint32_t record_put_tracked(uint8_t *buffer, uint32_t slot, const struct record_tracked *record);

/* *ret is untouched unless the result is RECORD_GOOD. */
enum record_result record_get_server(struct bytes value, struct record_server *ret);
enum record_result record_get_registrant(struct bytes value, uint32_t slot,
                                         struct record_registrant *ret);
enum record_result record_get_notice(struct bytes value, uint32_t slot, struct record_notice *ret);
enum record_result record_get_client(struct bytes value, uint32_t slot, struct record_client *ret);
enum record_result record_get_lock(struct bytes value, uint32_t slot, struct record_lock *ret);
enum record_result record_get_waiter(struct bytes value, uint32_t slot, struct record_waiter *ret);
enum record_result record_get_share(struct bytes value, uint32_t slot, struct record_share *ret);
enum record_result record_get_tracked(struct bytes value, uint32_t slot,
                                      struct record_tracked *ret);

/* The same for a kind that is not known before. */
union record_any {
    struct record_server server;
    struct record_registrant registrant;
    struct record_notice notice;
    struct record_client client;
    struct record_lock lock;
    struct record_waiter waiter;
    struct record_share share;
    struct record_tracked tracked;
};

uint32_t record_put(uint8_t *buffer, enum record_kind kind, uint32_t slot,
                    const union record_any *record);
enum record_result record_get(struct bytes value, enum record_kind kind, uint32_t slot,
                              union record_any *ret);

/* One change: a new value, or (deleted) none any more. */
struct record_change {
    enum record_kind kind;
    uint32_t slot;
    bool deleted;
    struct bytes value;
};

struct store_batch {
    uint64_t txn;   /* one more than the batch before */
    uint64_t epoch; /* of the server that made it: the fence of a shared store */
    bool must_sync; /* adds a client or changes the server's state: synced even by --sync process */
    uint32_t count;
    /* Changes of lock records that it makes durable. A slot that one lock left and another took is
     * changed twice and written once. */
    uint32_t lock_change_count;
    struct bytes64 {
        const uint8_t *at;
        uint64_t len;
    } changes;
};

/* Builds the changes of a batch in the core's buffer. */
struct batch_writer {
    uint8_t *start;
    uint64_t len, max;
    uint32_t count;
};

/* The most that one change can add to a batch beyond its value. */
#define BATCH_CHANGE_OVERHEAD 12

void store_batch_put(struct batch_writer *writer, enum record_kind kind, uint32_t slot,
                     struct bytes value);
void store_batch_delete(struct batch_writer *writer, enum record_kind kind, uint32_t slot);

/* Can it be walked? Of one that was on a disk: all others can. */
bool store_batch_is_sound(const struct store_batch *batch);

/* Walk the changes: *at starts at 0. False at the end. */
bool store_batch_next(const struct store_batch *batch, uint64_t *at, struct record_change *ret);

#endif
