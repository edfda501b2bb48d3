/*
 * test_config_group.c -- --group and the sections of groups: what counts where, and what is
 * refused, when.
 */
#include "config_reader.h"
#include "unit/test.h"

#define STORE "--store", "postgres:dbname=x"

TEST(test_config_group__a_server_is_of_one)
{
    struct outcome outcome;
    READ(&outcome, STORE, "--group", "web");
    config_reader_assert_read(&outcome);
    assert_string_equal(outcome.config.group, "web");
    config_done(&outcome.config);
    READ(&outcome, STORE);
    config_reader_assert_read(&outcome);
    assert_string_equal(outcome.config.group, "");
    config_done(&outcome.config);
    READ(&outcome, STORE, "--group", "a", "--group", "b");
    config_reader_assert_refused(&outcome, "--standby");
    READ(&outcome, "--store", "lmdb:x", "--group", "a");
    config_reader_assert_refused(&outcome, "postgres:CONNINFO");
    READ(&outcome, STORE, "--group", "Web");
    config_reader_assert_refused(&outcome, "not the name of a group; allowed: " STORE_GROUP_RULE);
}

TEST(test_config_group__a_standby_may_be_of_several)
{
    struct outcome outcome;
    READ(&outcome, STORE, "--standby", "--group", "b", "--group", "a", "--group", "b");
    config_reader_assert_read(&outcome);
    assert_int_equal(outcome.config.group_names.count, 2);
    assert_string_equal(outcome.config.group_names.at[0], "b");
    assert_string_equal(outcome.config.group_names.at[1], "a");
    assert_string_equal(outcome.config.group, ""); /* not known yet */
    config_done(&outcome.config);
}

/* The command line above the group's section above [holdfast], wherever they stand in the file. */
TEST(test_config_group__its_section_counts_above_the_common_one)
{
    struct outcome outcome;
    config_reader_write(
        "[group a]\nlisten = 192.0.2.1\nport = 1111\ngrace = 40\n"
        "[holdfast]\nstore = postgres:dbname=x\nlisten = 192.0.2.9\nlisten = 192.0.2.8\n"
        "port = 2222\nstandby = on\ngroup = a\ngroup = b\n"
        "[group b]\nname = b.example.com\n"
        "[group a]\nnlm-port = 3333\n");
    READ_GROUP(&outcome, "a", "--config", config_reader_file, "--grace", "50");
    config_reader_assert_read(&outcome);
    assert_string_equal(outcome.config.group, "a");
    assert_int_equal(outcome.config.listen.count, 1);
    assert_int_equal(outcome.config.port, 1111);
    assert_int_equal(outcome.config.nlm_port, 3333);
    assert_int_equal(outcome.config.grace_s, 50);
    assert_int_equal(outcome.config.names.count, 0);
    size_t port = (size_t)(config_find("port") - config_options);
    assert_int_equal(outcome.config.origins[port], CONFIG_FROM_GROUP);
    assert_int_equal(outcome.config.lines[port], 3);
    config_done(&outcome.config);

    READ_GROUP(&outcome, "b", "--config", config_reader_file);
    config_reader_assert_read(&outcome);
    assert_int_equal(outcome.config.listen.count, 2);
    assert_int_equal(outcome.config.port, 2222);
    assert_int_equal(outcome.config.names.count, 1);
    config_done(&outcome.config);

    /* Of several none counts before one is known; the only one counts at once. */
    READ(&outcome, "--config", config_reader_file);
    config_reader_assert_read(&outcome);
    assert_int_equal(outcome.config.port, 2222);
    config_done(&outcome.config);
    READ(&outcome, "--config", config_reader_file, "--group", "a");
    config_reader_assert_read(&outcome);
    assert_int_equal(outcome.config.port, 1111);
    config_done(&outcome.config);
}

TEST(test_config_group__what_is_wrong_in_a_section)
{
    static const struct {
        const char *content, *part;
    } rows[] = {
        {"[group A]\nport = 1\n", "line 2: unknown section [group A]; only [holdfast] and"},
        {"[group a b]\nport = 1\n", "unknown section"},
        {"[group]\nport = 1\n", "unknown section"},
        {"[group b]\nprot = 1\n", "line 2: unknown key prot; did you mean port?"},
        {"[group a]\nport = 1\nport = 2\n", "line 3: port = 2: already given in line 2"},
        {"[group a]\nport = x\n", "line 2: port = x: not a number"},
        {"[group b]\nstore = lmdb:x\n", "belongs into [holdfast]: store"},
        {"[group b]\nhttp = off\n", "belongs into [holdfast]: http"},
        {"[group b]\ngroup = c\n", "belongs into [holdfast]: group"},
        {"[group b]\nstandby = on\n", "belongs into [holdfast]: standby"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct outcome outcome;
        config_reader_write(rows[i].content);
        READ(&outcome, STORE, "--group", "a", "--config", config_reader_file);
        config_reader_assert_refused(&outcome, rows[i].part);
    }
}

TEST_MAIN(NULL, NULL, config_reader_set_up, config_reader_tear_down)
