/*
 * test.h -- unit tests with cmocka, without its ceremony.
 *
 *     TEST(test_module__does_that)
 *     {
 *         assert_int_equal(module_does(), 0);
 *     }
 *
 *     TEST_MAIN(NULL, NULL, NULL, NULL)
 *
 * A test is on the list because it is there, in the order of the file. TEST_MAIN names what is done
 * before and after every test, and before and after all of them; TEST_WITH what is done for one.
 */
#ifndef UNIT_TEST_H
#define UNIT_TEST_H

/* What nearly every test needs, and cmocka.h before it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { TEST_MAX = 256 };

static struct CMUnitTest test_all[TEST_MAX];
static size_t test_count;

static inline void test_add(struct CMUnitTest test)
{
    if (test_count == TEST_MAX)
        abort();
    test_all[test_count++] = test;
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define TEST_IS_SANITIZED 1
#elif defined(__has_feature)
#define TEST_IS_SANITIZED (__has_feature(address_sanitizer) || __has_feature(thread_sanitizer))
#else
#define TEST_IS_SANITIZED 0
#endif

/* How often something is done that goes wrong by chance only. Sanitizers look at what happens each
 * time, and threads are twenty times slower with them: an eighth is enough there. */
static inline uint32_t test_rounds(uint32_t count)
{
    return TEST_IS_SANITIZED ? count / 8 : count;
}

/* Something to be done before or after tests. */
#define TEST_FIXTURE(name)                                                                         \
    static void name##_do(void **state);                                                           \
    static int name(void **state)                                                                  \
    {                                                                                              \
        name##_do(state);                                                                          \
        return 0;                                                                                  \
    }                                                                                              \
    static void name##_do(__attribute__((unused)) void **state)

#define TEST_LISTED(name, before, after, mark)                                                     \
    static void name(void **state);                                                                \
    __attribute__((constructor)) static void name##_is_listed(void)                                \
    {                                                                                              \
        test_add((struct CMUnitTest){#name, name, before, after, mark});                           \
    }                                                                                              \
    static void name(__attribute__((unused)) void **state)

#define TEST_WITH(name, before, after) TEST_LISTED(name, before, after, NULL)
/* The mark: what TEST_MAIN names is for it. */
#define TEST(name) TEST_LISTED(name, NULL, NULL, &test_count)

/* The same with what the fixture left in *state, declared like this:
 * TEST_OF(test_module__does_that, struct world *world). */
#define TEST_OF(name, state_declared)                                                              \
    static void name##_of(state_declared);                                                         \
    TEST(name)                                                                                     \
    {                                                                                              \
        name##_of(*state);                                                                         \
    }                                                                                              \
    static void name##_of(__attribute__((unused)) state_declared)

/* For a main() that has more to do than TEST_MAIN. */
static inline int test_run(CMFixtureFunction before, CMFixtureFunction after,
                           CMFixtureFunction before_all, CMFixtureFunction after_all)
{
    for (size_t i = 0; i < test_count; i++)
        if (test_all[i].initial_state != NULL) {
            test_all[i].initial_state = NULL;
            test_all[i].setup_func = before;
            test_all[i].teardown_func = after;
        }
    return _cmocka_run_group_tests("tests", test_all, test_count, before_all, after_all);
}

#define TEST_MAIN(before, after, before_all, after_all)                                            \
    int main(void)                                                                                 \
    {                                                                                              \
        return test_run(before, after, before_all, after_all);                                     \
    }

#endif
