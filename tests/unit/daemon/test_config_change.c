/*
 * test_config_change.c -- which options may change while the server runs: they are taken, limits
 * only upwards, and everything else stays and is named.
 */
#include "daemon/config_change.h"
#include "unit/test.h"

#include <unistd.h>

static struct config now, fresh;

static void read_into(struct config *config, const char *words)
{
    char *argv[16] = {strdup("holdfastd")}, *copy = strdup(words), *rest = copy, why[512];
    int argc = 1;
    struct text text;
    text_init(&text, why, sizeof why);
    for (char *word; (word = strsep(&rest, " ")) != NULL;)
        if (word[0] != '\0')
            argv[argc++] = word;
    assert_int_equal(config_read(argc, argv, config, &text), 0);
    free(argv[0]);
    free(copy);
}

static void begin(const char *old_words, const char *new_words)
{
    read_into(&now, old_words);
    read_into(&fresh, new_words);
}

static void end(void)
{
    config_done(&now);
    config_done(&fresh);
}

static enum config_change change_of(const char *name)
{
    return config_change_of(&now, &fresh, config_find(name));
}

/* Every option that is changed, or needs a restart: "name+ port!". */
static const char *all_changes(void)
{
    static char said[512];
    struct text text;
    text_init(&text, said, sizeof said);
    for (uint32_t i = 0; i < config_option_count; i++) {
        enum config_change change = config_change_of(&now, &fresh, &config_options[i]);
        if (change == CONFIG_UNCHANGED)
            continue;
        text_add(&text, text.len > 0 ? " " : "");
        text_add(&text, config_options[i].name);
        text_add_char(&text, change == CONFIG_CHANGED ? '+' : '!');
    }
    return said;
}

TEST(test_config_change__the_same_is_no_change)
{
    begin("--port 5 --name a", "--port 5 --name a");
    assert_string_equal(all_changes(), "");
    end();
}

TEST(test_config_change__what_needs_a_restart_is_named_once)
{
    begin("--recovery-window 90", "--port 5 --recovery-window 7 --store memory:");
    /* not the ports, the grace period and the socket that follow from these */
    assert_string_equal(all_changes(), "port! store! recovery-window!");
    end();
}

TEST(test_config_change__what_may_change_is_taken)
{
    begin("--name a --log-level info --port 5", "--name b --name c --log-level debug --port 6");
    assert_string_equal(all_changes(), "port! name+ log-level+");
    config_change_take(&now, &fresh);
    assert_int_equal(now.names.count, 2);
    assert_string_equal(now.names.at[1], "c");
    assert_int_equal(now.log_level, LOG_LEVEL_DEBUG);
    assert_int_equal(now.port, 5);
    assert_int_equal(fresh.names.count, 1); /* and frees the old ones */
    assert_string_equal(all_changes(), "port! name+ log-level+");
    end();
}

TEST(test_config_change__limits_only_go_up)
{
    begin("--max-locks-per-client 10 --max-per-address 20",
          "--max-locks-per-client 11 --max-per-address 19");
    assert_int_equal(change_of("max-locks-per-client"), CONFIG_CHANGED);
    assert_int_equal(change_of("max-per-address"), CONFIG_NEEDS_RESTART);
    config_change_take(&now, &fresh);
    assert_int_equal(now.locks_per_client_max, 11);
    assert_int_equal(now.per_address_percent, 20);
    end();
}

TEST(test_config_change__limits_that_reserve_memory_stay)
{
    begin("", "--max-locks 2000000 --max-clients 20000 --max-waiters 200000 --max-bytes 1G "
              "--max-connections 5000");
    assert_string_equal(all_changes(),
                        "max-clients! max-locks! max-waiters! max-connections! max-bytes!");
    end();
}

TEST(test_config_change__exports_change_where_there_are_some)
{
    begin("--export=/a", "--export=/b --exports /c");
    assert_string_equal(all_changes(), "export+ exports+");
    config_change_take(&now, &fresh);
    assert_string_equal(now.exports.at[0], "/b");
    assert_string_equal(now.exports_file, "/c");
    end();
    begin("--export=/a", "--exports /c"); /* one row at a time: none is the first export */
    config_change_take(&now, &fresh);
    assert_int_equal(now.exports.count, 0);
    assert_string_equal(now.exports_file, "/c");
    end();
}

TEST(test_config_change__the_first_export_needs_a_restart)
{
    begin("", "--export=/b");
    assert_string_equal(all_changes(), "export!");
    config_change_take(&now, &fresh);
    assert_int_equal(now.exports.count, 0);
    end();
}

TEST(test_config_change__an_origin_changes_with_its_value)
{
    const struct config_option *option = config_find("log-level");
    begin("--log-level debug", "");
    config_change_take(&now, &fresh);
    assert_int_equal(now.origins[option - config_options], CONFIG_FROM_DEFAULT);
    assert_int_equal(now.log_level, LOG_LEVEL_INFO);
    end();
}

TEST_MAIN(NULL, NULL, NULL, NULL)
