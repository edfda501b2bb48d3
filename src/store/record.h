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

enum record_kind {
    RECORD_SERVER = 1,     /* slot 0 only: who we are, how often we started */
    RECORD_REGISTRANT = 2, /* an SM_MON registration */
    RECORD_NOTICE = 3,     /* "this monitored host rebooted", heard by SM_NOTIFY */
    RECORD_KIND_END,
};

/* The name of a kind as operators read it in messages: "server", "registrant", "notice". */
const char *record_kind_name(enum record_kind kind);

enum record_result {
    RECORD_GOOD,
    RECORD_CORRUPT, /* short, long, checksum wrong, or a value that no version ever wrote */
    RECORD_NEWER,   /* intact, but written by a newer format */
};

#define RECORD_FORMAT    1    /* raised by every change of any record's bytes */
#define RECORD_NAME_MAX  1024 /* mon_name and my_name */
#define RECORD_PRIV_LEN  16
#define RECORD_VALUE_MAX 2304     /* no record is longer */
#define RECORD_SLOT_MAX  10000000 /* no slot reaches it: the largest --max-clients */

enum record_server_flag {
    RECORD_SERVER_INCOMPLETE = 1, /* D16: locks or clients may be missing from this store */
};

struct record_server {
    uint64_t txn;     /* number of the batch that wrote this record */
    uint64_t epoch;   /* grows by one at every start (D6) */
    uint64_t next_id; /* the next client id; ids are never used again */
    uint32_t state;   /* our NSM state number: odd, strictly growing (R-PER-4) */
    uint32_t flags;
};

enum record_transport { RECORD_TCP = 6, RECORD_UDP = 17 };

struct record_registrant {
    uint64_t id;            /* shown as c17 */
    uint64_t registered_ns; /* wall clock, nanoseconds since 1970 */
    uint64_t server_epoch;  /* our epoch when it registered or last repeated its SM_MON */
    struct address address; /* where the SM_MON came from: the only place we ever call (R-SEC-2) */
    struct address local; /* our address it was sent to; callbacks leave from there (R-NOTIFY-1) */
    uint32_t port;        /* its source port, for the log */
    uint32_t transport;   /* enum record_transport */
    uint32_t my_prog, my_vers, my_proc;
    uint32_t told_state; /* our state when it was last told; another than ours: must be told (P3) */
    uint32_t relayed_state; /* state of mon_name that was last relayed to it (D7) */
    uint8_t priv[RECORD_PRIV_LEN];
    struct bytes mon_name, my_name;
};

struct record_notice {
    uint64_t heard_ns;      /* wall clock */
    struct address address; /* who sent it */
    uint32_t state;         /* the state it carried */
    struct bytes mon_name;
};

/* Encode into a buffer of RECORD_VALUE_MAX bytes; the length is returned. */
uint32_t record_put_server(uint8_t *buffer, const struct record_server *record);
uint32_t record_put_registrant(uint8_t *buffer, uint32_t slot,
                               const struct record_registrant *record);
uint32_t record_put_notice(uint8_t *buffer, uint32_t slot, const struct record_notice *record);

/* *ret is untouched unless the result is RECORD_GOOD. */
enum record_result record_get_server(struct bytes value, struct record_server *ret);
enum record_result record_get_registrant(struct bytes value, uint32_t slot,
                                         struct record_registrant *ret);
enum record_result record_get_notice(struct bytes value, uint32_t slot, struct record_notice *ret);

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

void batch_put(struct batch_writer *writer, enum record_kind kind, uint32_t slot,
               struct bytes value);
void batch_delete(struct batch_writer *writer, enum record_kind kind, uint32_t slot);

/* Walk the changes: *at starts at 0. False at the end. */
bool batch_next(const struct store_batch *batch, uint64_t *at, struct record_change *ret);

#endif
