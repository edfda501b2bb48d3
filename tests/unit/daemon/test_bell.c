/*
 * test_bell.c -- the loop hears every ring of other threads, and what they did before it.
 */
#include "daemon/bell.h"
#include "unit/test.h"

#include <pthread.h>

enum { THREADS = 4, RINGS = 20000 };

static struct {
    struct bell bell;
    pthread_mutex_t mutex;
    uint64_t left, heard, rings_heard; /* the first under the mutex */
} scene = {.mutex = PTHREAD_MUTEX_INITIALIZER};

static void leave_and_ring(void)
{
    (void)pthread_mutex_lock(&scene.mutex);
    scene.left++;
    (void)pthread_mutex_unlock(&scene.mutex);
    bell_ring(&scene.bell);
}

static void collect(void *context)
{
    assert_ptr_equal(context, &scene);
    scene.rings_heard++;
    (void)pthread_mutex_lock(&scene.mutex);
    scene.heard += scene.left;
    scene.left = 0;
    (void)pthread_mutex_unlock(&scene.mutex);
    if (scene.heard == (uint64_t)THREADS * RINGS)
        bell_close(&scene.bell);
}

static void *ring_often(void *argument)
{
    for (int i = 0; i < RINGS; i++)
        leave_and_ring();
    return argument;
}

/* The loop ends when the bell is closed, which is when all of it was collected. */
TEST(test_bell__nothing_is_missed)
{
    uv_loop_t loop;
    pthread_t threads[THREADS];
    assert_int_equal(uv_loop_init(&loop), 0);
    assert_int_equal(bell_init(&scene.bell, &loop, collect, &scene), 0);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, ring_often, NULL), 0);
    assert_int_equal(uv_run(&loop, UV_RUN_DEFAULT), 0);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    bell_done(&scene.bell);
    assert_int_equal(uv_loop_close(&loop), 0);
}

TEST(test_bell__rings_before_the_first_is_heard_are_one)
{
    uv_loop_t loop;
    scene.heard = scene.rings_heard = 0;
    assert_int_equal(uv_loop_init(&loop), 0);
    assert_int_equal(bell_init(&scene.bell, &loop, collect, &scene), 0);
    for (uint32_t round = 1; round <= 2; round++) {
        leave_and_ring();
        leave_and_ring();
        (void)uv_run(&loop, UV_RUN_ONCE);
        (void)uv_run(&loop, UV_RUN_NOWAIT);
        assert_int_equal(scene.rings_heard, round);
        assert_int_equal(scene.heard, round * 2);
    }
    bell_close(&scene.bell);
    bell_ring(&scene.bell); /* legal, and not heard */
    (void)uv_run(&loop, UV_RUN_DEFAULT);
    assert_int_equal(scene.rings_heard, 2);
    bell_done(&scene.bell);
    assert_int_equal(uv_loop_close(&loop), 0);
}

TEST_MAIN(NULL, NULL, NULL, NULL)
