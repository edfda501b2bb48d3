/*
 * backend.h -- what a back end gives to store.c: a row of functions with the meanings of store.h.
 */
#ifndef STORE_BACKEND_H
#define STORE_BACKEND_H

#include "store/store.h"

struct store_backend {
    const char *scheme; /* "lmdb" for lmdb:DIR */
    /* `rest` is the URL behind "scheme:". Returns the back end's own object, or NULL. */
    void *(*open)(const char *rest, const struct store_options *options,
                  struct store_summary *ret_summary, struct store_failure *ret_failure);
    int (*load)(void *self, store_visit_fn visit, void *context, struct store_failure *ret_failure);
    int (*commit)(void *self, const struct store_batch *batch, struct store_failure *ret_failure);
    bool (*tend)(void *self);
    bool (*has_room)(const void *self);
    const char *(*directory)(const void *self);
    void (*close)(void *self);
};

extern const struct store_backend store_memory;
extern const struct store_backend store_lmdb;

/* Fill a failure with a formatted sentence. */
__attribute__((format(printf, 3, 4))) void store_fail(struct store_failure *failure, int exit_code,
                                                      const char *format, ...);

#endif
