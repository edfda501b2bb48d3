/*
 * test_pool.c -- threads that execute calls (file/pool.h).
 *
 * One thread, and work that waits until all of it is queued. Passing shows that callers take turns,
 * that of one caller the first comes first, and that everything queued is done before the end.
 */
#include "file/pool.h"

#include "unit/test.h"

#include <sched.h>

struct work {
    struct list link;
    char name;
};

static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;
static char order[64];

static void begin(void *context)
{
    (void)context;
}

static void run(void *context, struct pool_lane *lane, struct list *link)
{
    (void)context;
    (void)lane;
    (void)pthread_mutex_lock(&gate);
    order[strlen(order)] = LIST_ELEMENT(link, struct work, link)->name;
    (void)pthread_mutex_unlock(&gate);
}

/* Upper case is caller 1, lower case caller 2, a digit our own. */
static uint32_t caller_of(char name)
{
    return name < 'A' ? POOL_OWN : name < 'a' ? 1 : 2;
}

static void assert_order(const char *queued, const char *done)
{
    struct work work[64];
    struct pool_lane lane;
    memset(order, 0, sizeof order);
    pool_lane_init(&lane);
    (void)pthread_mutex_lock(&gate);
    struct pool *pool = pool_new(1, begin, run, NULL);
    assert_non_null(pool);
    for (size_t i = 0; queued[i] != 0; i++) {
        work[i].name = queued[i];
        list_init(&work[i].link);
        pool_add(pool, &lane, caller_of(queued[i]), &work[i].link);
        while (i == 0 && pool_waiting(pool) > 0)
            (void)sched_yield(); /* the first one is taken, and waits at the gate */
    }
    (void)pthread_mutex_unlock(&gate);
    pool_free(pool);
    assert_string_equal(order, done);
}

TEST(test_pool__callers_take_turns)
{
    assert_order("ABCDEFab", "AaBbCDEF");
    assert_order("ABCab1", "Aa1BbC");
    assert_order("abcdABCD", "aAbBcCdD");
}

TEST(test_pool__of_one_caller_the_first_comes_first)
{
    assert_order("ABCDEF", "ABCDEF");
    assert_order("1", "1");
}

TEST_MAIN(NULL, NULL, NULL, NULL)
