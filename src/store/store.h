/*
 * store.h -- the contract of a store back end.
 *
 * A few blocking operations and a little upkeep. A back end is used by one thread at a time: by the
 * starting thread until the worker takes it over, by the worker's thread afterwards.
 *
 *   open    locks the store against a second process (R-PER-7) and checks that it can be read
 *   load    hands every record to the caller: the server record first, then kind by kind in
 *           ascending slot order
 *   commit  makes one batch durable, whole or not at all, before it returns
 *   tend    does a bounded piece of upkeep while there is nothing to commit (reserving space)
 *   fold    brings what was committed to where walk finds it
 *   walk    hands over some of the records of a kind, between two commits (snapshot.h)
 *   close   releases the store; everything committed stays
 *
 * How to be wrong: a commit that failed may or may not have landed. The server must then stop
 * (D9); the next start reads which of the two it was. Nobody retries above a back end.
 *
 * Space is reserved ahead (R-PER-8): while store_has_room() says no, commits still work, for what
 * they remove and change, but the core takes no new registrations. A yes covers two more batches of
 * STORE_BATCH_PUTS_MAX new records, because one is filled while another commits.
 */
#ifndef STORE_STORE_H
#define STORE_STORE_H

#include "store/group.h"
#include "store/record.h"

/* The most records that one batch may add or change for the promise about space to hold. */
#define STORE_BATCH_PUTS_MAX 1024

struct store;

/*
 * What an opening may be told, and asks. A store on this machine opens at once or not at all; a
 * shared one may have to be waited for, so it reports what it waits for and asks whether to
 * continue.
 */
struct store_options {
    bool sync_process; /* --sync process: survives kill -9, not power loss */
    bool is_reader;    /* only loads: does not disturb a server that uses the store, if possible */
    bool is_server;  /* serves clients: takes over from the last server, with the next epoch (D6) */
    bool is_standby; /* --standby: waits as long as another server is active */
    uint64_t timeout_ns; /* --store-timeout: patience with a store that is away; 0: 30 s */
    /* Of a shared store: whose records these are, good names; 0: of no group. A standby may name
     * several, and gets the first that nobody serves; see struct store_summary. */
    uint32_t group_count;
    const char *groups[STORE_GROUPS_MAX];
    /* is_server: where clients find it with each of them, for people; without a group the first.
     * NULL: no clients are served. */
    const char *addresses[STORE_GROUPS_MAX];
    /* Both may be NULL, and run on the thread that opens or commits. */
    bool (*is_cancelled)(void *context);
    void (*say)(void *context, const char *sentence);
    void *context;
};

/* Why an operation failed: a sentence for the operator, and the exit code that goes with it. */
struct store_failure {
    int exit_code; /* 74 store, 76 replaced, 78 format newer, 2 for an invalid URL */
    char text[512];
    bool is_in_use; /* another process on this machine has it */
};

/* What is known of a store before its records are read. */
struct store_summary {
    bool may_have_lost;                   /* D16: an unsynced run ended with the machine */
    uint32_t slots_used[RECORD_KIND_END]; /* per kind, the highest slot of an intact record + 1 */
    uint32_t group;                       /* which of options.groups this is */
    char note[512]; /* what the operator should know of this open; empty when there is nothing */
};

/* Called for each record by store_load. Views die when it returns. Non-zero stops the load. */
typedef int (*store_visit_fn)(void *context, enum record_kind kind, uint32_t slot,
                              struct bytes value);

/* NULL with *ret_failure filled: unknown scheme, locked by another process, unreadable, ... */
struct store *store_open(const char *url, const struct store_options *options,
                         struct store_failure *ret_failure);
void store_summarize(const struct store *store, struct store_summary *ret);

/* 0; what the visitor returned; or -EIO with *ret_failure filled. */
__attribute__((warn_unused_result)) int store_load(struct store *store, store_visit_fn visit,
                                                   void *context,
                                                   struct store_failure *ret_failure);

/* 0: durable. -EIO with *ret_failure filled: unknown, the server must stop. */
__attribute__((warn_unused_result)) int store_commit(struct store *store,
                                                     const struct store_batch *batch,
                                                     struct store_failure *ret_failure);

/* Can it be read in pieces between commits? A shared store cannot, and needs not: it gives readers
 * a state of their own (store_options.is_reader). */
bool store_can_walk(const struct store *store);
/* Slots of one kind, from the first up to the end, which is not one of them. */
struct store_slots {
    enum record_kind kind;
    uint32_t from, end;
};
/* Of a store that can: what was committed up to now is there for walks. 0, or -EIO with
 * *ret_failure filled: the server must stop. */
__attribute__((warn_unused_result)) int store_fold(struct store *store,
                                                   struct store_failure *ret_failure);
/* As store_load, of these, as they were at the last store_fold or are after a later commit. */
__attribute__((warn_unused_result)) int store_walk(struct store *store, struct store_slots slots,
                                                   store_visit_fn visit, void *context,
                                                   struct store_failure *ret_failure);

/* True when there is more to tend; false when the store is content or cannot do more now. */
bool store_tend(struct store *store);

/* False when space ran low and no more could be reserved. */
bool store_has_room(const struct store *store);

/* Of a shared store: when its epoch was last known to be ours, by CLOCK_BOOTTIME; 0 of others. */
uint64_t store_checked_ns(const struct store *store);

/*
 * Is this server, which has not committed yet, still active? 0: yes, as of store_checked_ns, and
 * always with a store of this machine. -EAGAIN: cannot be confirmed now; -EIO: no, and the server
 * must stop. Both with *ret_failure filled. Takes at most two seconds.
 */
__attribute__((warn_unused_result)) int store_confirm(struct store *store,
                                                      struct store_failure *ret_failure);

void store_close(struct store *store);

/* How the tables of a store are brought to another version. */
struct store_migration {
    bool print_only;   /* says what it would do, and changes nothing */
    bool is_down;      /* one version back; otherwise up to this program's */
    const char *group; /* whose tables; NULL: of no group */
    void (*visit)(void *context, uint32_t from, uint32_t to,
                  const char *sql); /* before each step */
    void *context;
};

/* 0, also of a store that has no tables to migrate; -EIO with *ret_failure filled. */
__attribute__((warn_unused_result)) int store_migrate(const char *url,
                                                      const struct store_migration *how,
                                                      struct store_failure *ret_failure);

/* One of the groups of a shared store, or what it has without one. The strings die when the visitor
 * returns; NULL: not known. */
struct store_group {
    const char *name;    /* NULL: of no group */
    bool is_served;      /* a server is active */
    const char *host;    /* of that server, or of the last one */
    const char *address; /* where clients find, or found, it */
    const char *since;   /* when it took over, in UTC as ISO 8601 */
    uint64_t epoch;
    uint32_t waiting;         /* standbys that wait for it */
    const char *waiting_from; /* their hosts, with commas */
};
typedef int (*store_group_fn)(void *context, const struct store_group *group);

/* Every group of a shared store, by name, first what belongs to none. 0; what the visitor returned;
 * or -EIO with *ret_failure filled, also of a store that cannot have groups. */
__attribute__((warn_unused_result)) int store_list_groups(const char *url, uint64_t timeout_ns,
                                                          store_group_fn visit, void *context,
                                                          struct store_failure *ret_failure);

/* True: other machines can use this store too, and only its epoch decides who may reply
 * (docs/high-availability.md). Every reply then needs a commit that began after its request was
 * read. */
bool store_url_is_shared(const char *url);
/* A name that is the same for everybody on this machine who uses that store, however it was
 * written; of a store that is not in a directory only its kind. */
void store_url_identify(const char *url, char *ret_text, size_t size);
/* True: whatever is stored is gone when the store is closed. */
bool store_url_keeps_nothing(const char *url);

/* The URL without secrets: a password becomes three dots. */
void store_show_url(const char *url, char *ret_text, size_t size);

#endif
