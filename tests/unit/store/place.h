/*
 * place.h -- a temporary directory for one test, and small helpers on files in it.
 */
#ifndef TESTS_STORE_PLACE_H
#define TESTS_STORE_PLACE_H

#include "model.h"

#include "store/store.h"

struct place {
    char base[256]; /* the temporary directory */
    char path[272]; /* base/store: what the store is told to use */
    char url[288];  /* lmdb:base/store */
};

void place_init(struct place *place);
/* Removes it with everything in it. */
void place_done(struct place *place);

/* What most tests work with: a place, and what should be there. */
struct fixture {
    struct place place;
    struct model model;
};

/* For set-up and tear-down functions: *state is a struct fixture. */
void place_fixture(void **state, uint32_t slots);
int place_fixture_done(void **state);

/* A file of the store directory: "data.mdb" and the like. */
const char *place_file(const struct place *place, const char *name);
bool place_has(const struct place *place, const char *name);
void place_write(const struct place *place, const char *name, const void *bytes, size_t len);
/* Reads at most len bytes and ends them by a NUL; the buffer has one byte more. */
size_t place_read(const struct place *place, const char *name, char *buffer, size_t len);
uint64_t place_len(const struct place *place, const char *name);

/* The length of journals that are made from here on: HOLDFAST_JOURNAL_LEN; NULL: the usual one. */
void place_set_journal(const char *len);

/* How often randomized tests repeat: HOLDFAST_CONTRACT_ROUNDS, or 10. */
unsigned place_rounds(void);

/* Opens a store that must open. */
struct store *place_open(const char *url, bool sync_process);
/* Opens a store that must not open: its exit code, and all of these words in its sentence. */
void place_refused(const char *url, bool sync_process, int exit_code, const char *word,
                   const char *other_word);

/* Runs a function in a child process; its exit code, or -signal. The function returns an exit code
 * and must not use cmocka's asserts. */
int place_in_child(int (*function)(void *context), void *context);

#endif
