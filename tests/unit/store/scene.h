/*
 * scene.h -- a private PostgreSQL, a proxy in front of it, and one database that is empty before
 * each test; for the tests of what is PostgreSQL's own.
 */
#ifndef TESTS_STORE_SCENE_H
#define TESTS_STORE_SCENE_H

#include "model.h"

#include "base/units.h"
#include "postgres/cluster.h"
#include "postgres/proxy.h"
#include "unit/test.h"

#include <pthread.h>

#define SCENE_DATABASE "postgres_test"

enum { SCENE_SLOTS = 200 };

extern struct cluster scene_cluster;
extern struct proxy *scene_proxy;

/* Runs the tests, or reports them as skipped where there is no PostgreSQL. The exit code. */
#define scene_main() scene_run_tests(test_all, test_count)
int scene_run_tests(const struct CMUnitTest *tests, size_t count);

/* Around each test: *state is a struct model, as empty as the database. */
int scene_set_up(void **state);
int scene_tear_down(void **state);
#define SCENE(test) TEST_WITH(test, scene_set_up, scene_tear_down)
#define SCENE_OF(test, model)                                                                      \
    static void test##_of(model);                                                                  \
    SCENE(test)                                                                                    \
    {                                                                                              \
        test##_of(*state);                                                                         \
    }                                                                                              \
    static void test##_of(model)

/* The store URL of the database. Valid until the next call. */
const char *scene_url(void);
/* Opens the store, or fails the test. */
struct store *scene_open(const char *url, const struct store_options *options);
struct store *scene_open_patient(const char *url);

/* The database has what the model has. */
void scene_expect(const struct model *model);
/* A commit that must fail, with this code and these words. */
void scene_refuses(struct store *store, const struct store_batch *batch, int exit_code,
                   const char *word);
/* The same of an opening. */
void scene_stays_shut(const char *url, const struct store_options *options, int exit_code,
                      const char *word);

void scene_run(const char *sql);
void scene_answers(const char *sql, const char *expected);
/* Ends the sessions of all stores. */
void scene_end_sessions(void);

/*
 * Something that takes its time, on a thread of its own: opens a store if it has none, then commits
 * if it has a batch. What it says meanwhile is listened to.
 */
struct job {
    char url[256];
    struct store_options options;
    struct store *store;
    const struct store_batch *batch;
    const char *awaited; /* the word in a sentence that sets has_heard */
    pthread_t thread;
    pthread_mutex_t mutex; /* guards what follows */
    bool has_heard, is_done, is_cancelled;
    int result;
    struct store_failure failure;
};

void job_init(struct job *job, const struct store_options *options, const char *awaited);
void job_start(struct job *job);
/* Until the flag is set: has_heard or is_done. */
void job_wait(struct job *job, const bool *flag);
bool job_is_done(struct job *job);
/* Tells it to stop. */
void job_cancel(struct job *job);
/* Until it is done, and it must have failed so. */
void job_fails(struct job *job, int exit_code);
/* Until it is done, and it must have succeeded. */
void job_end(struct job *job);

#endif
