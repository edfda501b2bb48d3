/*
 * scene.c -- see scene.h.
 */
#include "scene.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

struct cluster scene_cluster;
struct proxy *scene_proxy;

static const char *why_not;

const char *scene_url(void)
{
    return cluster_url(&scene_cluster, SCENE_DATABASE);
}

struct store *scene_open(const char *url, const struct store_options *options)
{
    struct store_failure failure = {0};
    struct store *store = store_open(url, options, &failure);
    if (store == NULL)
        fail_msg("%s does not open: %s", url, failure.text);
    return store;
}

struct store *scene_open_patient(const char *url)
{
    return scene_open(url, &(struct store_options){.timeout_ns = 20 * SECOND_NS});
}

void scene_expect(const struct model *model)
{
    struct store *store = scene_open_patient(scene_url());
    const char *difference = model_compare(model, store);
    store_close(store);
    if (difference != NULL)
        fail_msg("%s", difference);
}

void scene_refuses(struct store *store, const struct store_batch *batch, int exit_code,
                   const char *word)
{
    struct store_failure failure = {0};
    assert_int_equal(store_commit(store, batch, &failure), -EIO);
    if (failure.exit_code != exit_code || strstr(failure.text, word) == NULL ||
        strstr(failure.text, "; ") == NULL)
        fail_msg("exit code %d and \"%s\" expected; got %d: %s", exit_code, word, failure.exit_code,
                 failure.text);
}

void scene_stays_shut(const char *url, const struct store_options *options, int exit_code,
                      const char *word)
{
    struct store_failure failure = {0};
    struct store *store = store_open(url, options, &failure);
    if (store != NULL)
        fail_msg("%s opens", url);
    if (failure.exit_code != exit_code || strstr(failure.text, word) == NULL ||
        strstr(failure.text, "; ") == NULL)
        fail_msg("exit code %d and \"%s\" expected; got %d: %s", exit_code, word, failure.exit_code,
                 failure.text);
}

void scene_run(const char *sql)
{
    assert_true(cluster_run(&scene_cluster, SCENE_DATABASE, sql));
}

void scene_answers(const char *sql, const char *expected)
{
    const char *answer = cluster_ask(&scene_cluster, SCENE_DATABASE, sql);
    assert_non_null(answer);
    if (strcmp(answer, expected) != 0)
        fail_msg("%s: \"%s\", expected \"%s\"", sql, answer, expected);
}

void scene_end_sessions(void)
{
    scene_run("SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
              "WHERE application_name LIKE 'holdfast %'");
}

int scene_set_up(void **state)
{
    struct model *model = calloc(1, sizeof *model);
    assert_non_null(model);
    assert_true(cluster_fresh(&scene_cluster, SCENE_DATABASE));
    model_init(model, SCENE_SLOTS);
    *state = model;
    return 0;
}

int scene_tear_down(void **state)
{
    proxy_arm(scene_proxy, PROXY_HONEST);
    model_done(*state);
    free(*state);
    return 0;
}

static void listen_to(void *context, const char *sentence)
{
    struct job *job = context;
    (void)pthread_mutex_lock(&job->mutex);
    job->has_heard |= strstr(sentence, job->awaited) != NULL;
    (void)pthread_mutex_unlock(&job->mutex);
}

static bool is_cancelled(void *context)
{
    struct job *job = context;
    (void)pthread_mutex_lock(&job->mutex);
    bool answer = job->is_cancelled;
    (void)pthread_mutex_unlock(&job->mutex);
    return answer;
}

void job_init(struct job *job, const struct store_options *options, const char *awaited)
{
    *job =
        (struct job){.options = *options, .awaited = awaited, .mutex = PTHREAD_MUTEX_INITIALIZER};
    (void)snprintf(job->url, sizeof job->url, "%s", scene_url());
    job->options.say = listen_to;
    job->options.is_cancelled = is_cancelled;
    job->options.context = job;
}

static void *run_job(void *context)
{
    struct job *job = context;
    int result = 0;
    if (job->store == NULL)
        job->store = store_open(job->url, &job->options, &job->failure);
    if (job->store == NULL)
        result = -EIO;
    else if (job->batch != NULL)
        result = store_commit(job->store, job->batch, &job->failure);
    (void)pthread_mutex_lock(&job->mutex);
    job->is_done = true;
    job->result = result;
    (void)pthread_mutex_unlock(&job->mutex);
    return NULL;
}

void job_start(struct job *job)
{
    assert_int_equal(pthread_create(&job->thread, NULL, run_job, job), 0);
}

void job_wait(struct job *job, const bool *flag)
{
    for (int i = 0; i < 2000; i++) {
        struct timespec pause = {.tv_nsec = 10000000};
        (void)pthread_mutex_lock(&job->mutex);
        bool is_true = *flag;
        (void)pthread_mutex_unlock(&job->mutex);
        if (is_true)
            return;
        nanosleep(&pause, NULL);
    }
    fail_msg("it did not come that far in 20 s: %s", job->failure.text);
}

bool job_is_done(struct job *job)
{
    (void)pthread_mutex_lock(&job->mutex);
    bool is_done = job->is_done;
    (void)pthread_mutex_unlock(&job->mutex);
    return is_done;
}

void job_cancel(struct job *job)
{
    (void)pthread_mutex_lock(&job->mutex);
    job->is_cancelled = true;
    (void)pthread_mutex_unlock(&job->mutex);
}

void job_fails(struct job *job, int exit_code)
{
    job_wait(job, &job->is_done);
    assert_int_equal(pthread_join(job->thread, NULL), 0);
    assert_int_equal(job->result, -EIO);
    if (job->failure.exit_code != exit_code)
        fail_msg("exit code %d, expected %d: %s", job->failure.exit_code, exit_code,
                 job->failure.text);
}

void job_end(struct job *job)
{
    job_wait(job, &job->is_done);
    assert_int_equal(pthread_join(job->thread, NULL), 0);
    if (job->result != 0)
        fail_msg("%s", job->failure.text);
}

static void test_postgres__all(void **state)
{
    (void)state;
    print_message("skipped: %s\n", why_not);
    skip();
}

int scene_run_tests(const struct CMUnitTest *tests, size_t count)
{
    static const struct CMUnitTest instead[] = {cmocka_unit_test(test_postgres__all)};
    if (!cluster_init(&scene_cluster, &why_not))
        return cmocka_run_group_tests(instead, NULL, NULL);
    int failed = 1;
    if (cluster_start(&scene_cluster) && (scene_proxy = proxy_new(&scene_cluster)) != NULL) {
        failed = _cmocka_run_group_tests("tests", tests, count, NULL, NULL);
        proxy_free(scene_proxy);
    }
    cluster_done(&scene_cluster);
    return failed;
}
