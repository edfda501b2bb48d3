/*
 * backend.h -- what a back end gives to store.c: a row of functions with the meanings of store.h.
 *
 * A new back end is a file that defines such a row, a line in the table of store.c, and a row in
 * tests/unit/store/test_contract.c.
 */
#ifndef STORE_BACKEND_H
#define STORE_BACKEND_H

#include "store/store.h"

enum {
    STORE_EXIT_USAGE = 2,     /* invalid URL */
    STORE_EXIT_STORE = 74,    /* the store cannot be used */
    STORE_EXIT_REPLACED = 76, /* another server has taken over */
    STORE_EXIT_NEWER = 78,    /* the store was written by a newer version */
};

struct store_backend {
    const char *scheme; /* "lmdb" for lmdb:DIR */
    const char *usage;  /* "lmdb:DIR": the URL as a message shows it */
    bool is_shared;     /* other machines can use it */
    bool keeps_nothing; /* when it is closed */
    bool is_directory;  /* what follows the colon is a path */
    /* `rest` is the URL after "scheme:". Returns the back end's own object, or NULL. *ret_summary
     * is zeroed before the call. */
    void *(*open)(const char *rest, const struct store_options *options,
                  struct store_summary *ret_summary, struct store_failure *ret_failure);
    int (*load)(void *self, store_visit_fn visit, void *context, struct store_failure *ret_failure);
    int (*commit)(void *self, const struct store_batch *batch, struct store_failure *ret_failure);
    int (*fold)(void *self, struct store_failure *ret_failure); /* NULL: nothing to do */
    int (*walk)(void *self, struct store_slots slots, store_visit_fn visit, void *context,
                struct store_failure *ret_failure); /* NULL: it cannot */
    bool (*tend)(void *self);
    bool (*has_room)(const void *self);
    void (*close)(void *self);
    uint64_t (*checked_ns)(const void *self); /* of a shared one, and so is the next */
    int (*confirm)(void *self, struct store_failure *ret_failure);
    int (*migrate)(const char *rest, const struct store_migration *how,
                   struct store_failure *ret_failure); /* NULL: has no tables to migrate */
    int (*list_groups)(const char *rest, uint64_t timeout_ns, store_group_fn visit, void *context,
                       struct store_failure *ret_failure); /* of a shared one */
};

extern const struct store_backend store_memory;
extern const struct store_backend store_lmdb;
extern const struct store_backend store_postgres; /* where libpq was there to build it */

/* Of postgres_migrate.c. */
int postgres_migrate(const char *rest, const struct store_migration *how,
                     struct store_failure *ret_failure);
int postgres_list_groups(const char *rest, uint64_t timeout_ns, store_group_fn visit, void *context,
                         struct store_failure *ret_failure);

/* Fill a failure with a formatted sentence. */
__attribute__((format(printf, 3, 4))) void store_fail(struct store_failure *failure, int exit_code,
                                                      const char *format, ...);

#endif
