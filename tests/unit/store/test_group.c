/*
 * test_group.c -- which names a group may have, and that a store of one machine has none.
 */
#include "store/group.h"
#include "store/store.h"
#include "unit/test.h"

TEST(test_group__good_names)
{
    static const char *const names[] = {"a",     "web", "nas-1",
                                        "nas_1", "a0",  "abcdefghijklmnopqrstuvwxyz012345"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (!store_group_is_name(names[i]))
            fail_msg("\"%s\" is refused", names[i]);
}

/* What SQL, a shell, JSON or a path could take for something else; what differs only in case. */
TEST(test_group__bad_names)
{
    static const char *const names[] = {
        "",     "Web", "1a",          "-a",
        "_a",   "a b", "a.b",         "a/b",
        "a\"b", "a'b", "a;b",         "a\\b",
        "a\n",  "a%",  "gr\xc3\xbcn", "abcdefghijklmnopqrstuvwxyz0123456"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (store_group_is_name(names[i]))
            fail_msg("\"%s\" is taken", names[i]);
}

static int visit(void *context, const struct store_group *group)
{
    (void)context;
    (void)group;
    return 1;
}

TEST(test_group__a_store_of_one_machine_has_none)
{
    struct store_failure failure = {0};
    const struct store_options options = {.group_count = 1, .groups = {"web"}};
    assert_null(store_open("memory:", &options, &failure));
    assert_int_equal(failure.exit_code, 2);
    assert_non_null(strstr(failure.text, "postgres:"));
    assert_true(store_list_groups("memory:", 1, visit, NULL, &failure) < 0);
    assert_int_equal(failure.exit_code, 2);
    const struct store_migration how = {.group = "web"};
    assert_true(store_migrate("memory:", &how, &failure) < 0);
    assert_int_equal(failure.exit_code, 2);
}

TEST_MAIN(NULL, NULL, NULL, NULL)
