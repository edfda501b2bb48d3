/*
 * test_config.c -- shows that the option table is read the same way from defaults, file and command
 * line, that errors name the option, the value and what is allowed, and that the help and the
 * example file say what the table says.
 *
 * EXAMPLE_CONF is the path of contrib/holdfast.conf.
 */
#include "config_reader.h"
#include "daemon/config_file.h"
#include "daemon/config_print.h"
#include "daemon/config_value.h"
#include "unit/test.h"

#include <unistd.h>

static void assert_contains(const char *text, const char *part)
{
    if (strstr(text, part) == NULL)
        fail_msg("\"%s\" does not contain \"%s\"", text, part);
}

static struct address address_of(const char *text)
{
    struct address address;
    assert_true(address_parse(bytes_of_text(text), &address));
    return address;
}

TEST(test_config__defaults_are_those_of_the_manual)
{
    struct outcome outcome;
    READ(&outcome, NULL);
    config_reader_assert_read(&outcome);
    const struct config *config = &outcome.config;
    assert_false(config->show_help || config->show_version || config->check_only);
    assert_null(config->file);
    assert_int_equal(config->listen.count, 0);
    assert_int_equal(config->port, 12049);
    assert_int_equal(config->nlm_port, 12049);
    assert_int_equal(config->nsm_port, 12049);
    assert_int_equal(config->rpcbind, CONFIG_RPCBIND_AUTO);
    assert_false(config->force);
    assert_true(config->http.is_on);
    assert_int_equal(config->http.port, 12080);
    struct address loopback = address_of("127.0.0.1");
    assert_true(address_equal(&config->http.address, &loopback));
    assert_string_equal(config->store,
                        geteuid() == 0 ? "lmdb:/var/lib/holdfast" : "lmdb:holdfast-data");
    assert_int_equal(config->sync, CONFIG_SYNC_FULL);
    assert_int_equal(config->store_timeout_s, 30);
    assert_false(config->assume_lost);
    assert_int_equal(config->recovery_window_s, 90);
    assert_int_equal(config->grace_s, 90);
    assert_int_equal(config->shares.count, 0);
    assert_int_equal(config->clients_max, 10000);
    assert_int_equal(config->locks_max, 1000000);
    assert_int_equal(config->locks_per_client_max, 100000);
    assert_int_equal(config->waiters_max, 100000);
    assert_int_equal(config->connections_max, 4096);
    assert_int_equal(config->bytes_max, 512u << 20);
    assert_int_equal(config->mon_from, CONFIG_MON_FROM_ANY);
    assert_false(config->require_privileged_port);
    assert_null(config->user);
    assert_int_equal(config->log_level, LOG_LEVEL_INFO);
    assert_int_equal(config->log_format, LOG_FORMAT_TEXT);
    config_done(&outcome.config);
}

TEST(test_config__command_line_sets_every_option)
{
    struct outcome outcome;
    READ(&outcome, "--listen", "127.0.0.1", "--listen=::1", "--listen", "127.0.0.1", "--port", "0",
         "--nlm-port", "4045", "--nsm-port=40000", "--no-rpcbind", "--rpcbind", "system", "--force",
         "--http", "[::1]:0", "--store", "memory:", "--sync", "process", "--store-timeout", "7",
         "--assume-lost", "--recovery-window", "45", "--grace", "0", "--share", "home=01fF",
         "--max-clients", "10000000", "--max-locks", "8000000", "--max-locks-per-client", "1",
         "--max-waiters=5", "--max-connections", "12", "--max-bytes=3G", "--mon-from", "loopback",
         "--require-privileged-port", "--user", "nobody", "--log-level", "debug",
         "--log-format=json", "--check-config");
    config_reader_assert_read(&outcome);
    const struct config *config = &outcome.config;
    struct address first = address_of("127.0.0.1"), second = address_of("::1");
    assert_int_equal(config->listen.count, 2); /* the repeated address is one address */
    assert_true(address_equal(&config->listen.at[0], &first));
    assert_true(address_equal(&config->listen.at[1], &second));
    assert_int_equal(config->port, 0);
    assert_int_equal(config->nlm_port, 4045);
    assert_int_equal(config->nsm_port, 40000);
    assert_int_equal(config->rpcbind, CONFIG_RPCBIND_OFF); /* --no-rpcbind wins */
    assert_true(config->force);
    assert_true(config->http.is_on);
    assert_true(address_equal(&config->http.address, &second));
    assert_int_equal(config->http.port, 0);
    assert_string_equal(config->store, "memory:");
    assert_int_equal(config->sync, CONFIG_SYNC_PROCESS);
    assert_int_equal(config->store_timeout_s, 7);
    assert_true(config->assume_lost);
    assert_int_equal(config->recovery_window_s, 45);
    assert_int_equal(config->grace_s, 0);
    assert_int_equal(config->shares.count, 1);
    assert_int_equal(config->clients_max, 10000000);
    assert_int_equal(config->locks_max, 8000000);
    assert_int_equal(config->locks_per_client_max, 1);
    assert_int_equal(config->waiters_max, 5);
    assert_int_equal(config->connections_max, 12);
    assert_int_equal(config->bytes_max, UINT64_C(3) << 30);
    assert_int_equal(config->mon_from, CONFIG_MON_FROM_LOOPBACK);
    assert_true(config->require_privileged_port);
    assert_string_equal(config->user, "nobody");
    assert_int_equal(config->log_level, LOG_LEVEL_DEBUG);
    assert_int_equal(config->log_format, LOG_FORMAT_JSON);
    assert_true(config->check_only);
    config_done(&outcome.config);
}

TEST(test_config__derived_defaults_follow_their_source)
{
    struct outcome outcome;
    READ(&outcome, "--port", "2049", "--recovery-window", "17");
    config_reader_assert_read(&outcome);
    assert_int_equal(outcome.config.nlm_port, 2049);
    assert_int_equal(outcome.config.nsm_port, 2049);
    assert_int_equal(outcome.config.grace_s, 17);
    config_done(&outcome.config);
    READ(&outcome, "--nsm-port", "662");
    config_reader_assert_read(&outcome);
    assert_int_equal(outcome.config.nlm_port, 12049);
    assert_int_equal(outcome.config.nsm_port, 662);
    config_done(&outcome.config);
}

/* Names and prefixes as they are given, and what the core is told of them. */
TEST(test_config__shares)
{
    struct outcome outcome;
    char longest[131] = "x=";
    memset(longest + 2, '5', 128);
    READ(&outcome, "--share", "home=0100", "--share=Scratch_2.b-c=01000601", "--share", longest);
    config_reader_assert_read(&outcome);
    struct file_set shares[FILE_SETS_MAX];
    assert_int_equal(config_share_list(&outcome.config.shares, shares), 4);
    assert_true(bytes_equal(shares[0].name, bytes_of_text("default")));
    assert_int_equal(shares[0].prefix.len, 0);
    assert_true(bytes_equal(shares[1].name, bytes_of_text("home")));
    assert_int_equal(shares[1].prefix.len, 2);
    assert_memory_equal(shares[1].prefix.at, "\1\0", 2);
    assert_true(bytes_equal(shares[2].name, bytes_of_text("Scratch_2.b-c")));
    assert_memory_equal(shares[2].prefix.at, "\1\0\6\1", 4);
    assert_int_equal(shares[3].prefix.len, 64);
    config_done(&outcome.config);

    config_reader_write("[holdfast]\nshare = a=01\nshare = b=02\n");
    READ(&outcome, "--config", config_reader_file);
    config_reader_assert_read(&outcome);
    assert_int_equal(outcome.config.shares.count, 2);
    config_done(&outcome.config);
    READ(&outcome, "--config", config_reader_file, "--share",
         "c=03"); /* replaces those of the file */
    config_reader_assert_read(&outcome);
    assert_int_equal(outcome.config.shares.count, 1);
    config_done(&outcome.config);
}

TEST(test_config__shares_that_are_none)
{
    static const struct {
        const char *value, *part;
    } cases[] = {
        {"home", "not NAME=HEXPREFIX; for example home=01000601"},
        {"", "not NAME=HEXPREFIX"},
        {"=01", "not a name"},
        {"a b=01", "not a name; allowed: 1 to 63 letters"},
        {"a/b=01", "not a name"},
        {"a=", "not a file handle prefix; allowed: 1 to 64 bytes"},
        {"a=0", "not a file handle prefix"},
        {"a=0x01", "not a file handle prefix"},
        {"a=01=02", "not a file handle prefix"},
        {"default=01", "this name is reserved for"},
        {"first=ff", "this share is already defined"},
        {"second=0a", "another share has the same prefix"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct outcome outcome;
        READ(&outcome, "--share", "first=0A", "--share", cases[i].value);
        assert_int_not_equal(outcome.result, 0);
        assert_contains(outcome.why, cases[i].part);
        assert_contains(outcome.why, "--share ");
    }
    struct config_shares shares = {0};
    char buffer[256] = "", value[256] = "a=";
    struct text why;
    text_init(&why, buffer, sizeof buffer);
    memset(value + 2, '0', 130);
    assert_int_not_equal(config_share_parse(&shares, value, &why), 0); /* 65 bytes */
    memset(value, 'n', 64);
    memcpy(value + 64, "=01", 4);
    assert_int_not_equal(config_share_parse(&shares, value, &why), 0); /* 64 characters */
    assert_int_equal(config_share_parse(&shares, value + 1, &why), 0);
    for (int i = 1; i <= CONFIG_SHARE_MAX; i++) {
        (void)snprintf(value, sizeof value, "s%d=%04x", i, i + 512);
        int result = config_share_parse(&shares, value, &why);
        assert_int_equal(result == 0, i < CONFIG_SHARE_MAX);
    }
    assert_contains(buffer, "too many shares; allowed: 63");
    assert_int_equal(shares.count, CONFIG_SHARE_MAX);
}

TEST(test_config__windows)
{
    static const struct {
        const char *value, *part;
    } cases[] = {
        {"afp", "not PROTOCOL=S"},
        {"=5", "not a protocol name"},
        {"AFP=5", "not a protocol name"},
        {"nlm=5", "--grace"},
        {"nsm=5", "--recovery-window"},
        {"afp=", "not a number of seconds"},
        {"afp=-1", "not a number of seconds"},
        {"afp=86401", "0 to 86400"},
        {"afp=99999999999", "0 to 86400"},
        {"smb=5", "already has a window"},
    };
    struct core_window windows[CONFIG_WINDOW_MAX];
    struct outcome outcome;
    READ(&outcome, "--window", "smb=300", "--window=nfs4-0=0", "--window", "x=86400");
    config_reader_assert_read(&outcome);
    assert_int_equal(config_window_list(&outcome.config.windows, windows), 3);
    assert_true(bytes_equal(windows[0].protocol, bytes_of_text("smb")));
    assert_true(windows[0].ns == UINT64_C(300000000000));
    assert_true(bytes_equal(windows[1].protocol, bytes_of_text("nfs4-0")));
    assert_true(windows[1].ns == 0);
    config_done(&outcome.config);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        READ(&outcome, "--window", "smb=1", "--window", cases[i].value);
        assert_int_not_equal(outcome.result, 0);
        assert_contains(outcome.why, cases[i].part);
    }
    struct config_windows many = {0};
    char buffer[256] = "", value[16];
    struct text why;
    text_init(&why, buffer, sizeof buffer);
    for (int i = 0; i <= CONFIG_WINDOW_MAX; i++) {
        (void)snprintf(value, sizeof value, "p%d=%d", i, i);
        assert_int_equal(config_window_parse(&many, value, &why) == 0, i < CONFIG_WINDOW_MAX);
    }
    assert_contains(buffer, "too many windows");
}

TEST(test_config__last_word_of_the_command_line_wins)
{
    struct outcome outcome;
    READ(&outcome, "--port", "1", "--store", "lmdb:a", "--port", "2", "--store", "lmdb:b", "--http",
         "off", "--assume-lost", "--assume-lost=off");
    config_reader_assert_read(&outcome);
    assert_int_equal(outcome.config.port, 2);
    assert_string_equal(outcome.config.store, "lmdb:b");
    assert_false(outcome.config.http.is_on);
    assert_false(outcome.config.assume_lost);
    config_done(&outcome.config);
}

TEST(test_config__help_and_version_come_first)
{
    struct outcome outcome;
    READ(&outcome, "--config", "/nonexistent", "--port", "nonsense", "--help", "--unknown");
    config_reader_assert_read(&outcome);
    assert_true(outcome.config.show_help);
    config_done(&outcome.config);
    READ(&outcome, "-h");
    config_reader_assert_read(&outcome);
    assert_true(outcome.config.show_help);
    config_done(&outcome.config);
    READ(&outcome, "--version");
    config_reader_assert_read(&outcome);
    assert_true(outcome.config.show_version);
    config_done(&outcome.config);
}

TEST(test_config__errors_name_option_value_and_remedy)
{
    static const struct {
        const char *words[3];
        const char *parts[3]; /* all of them are in the sentence */
    } cases[] = {
        {{"--port", "70000"}, {"--port 70000: out of range", "0 to 65535"}},
        {{"--port", "-1"}, {"--port -1: not a number", "plain digits"}},
        {{"--port", "0x10"}, {"--port 0x10: not a number"}},
        {{"--port", ""}, {"--port : not a number"}},
        {{"--port", "99999999999999999999999"}, {"not a number"}},
        {{"--port"}, {"--port: needs a value"}},
        {{"--port", "--store"}, {"--port: needs a value"}},
        {{"--max-clients", "10,000"}, {"--max-clients 10,000: not a number", "plain digits"}},
        {{"--max-clients", "0"}, {"out of range", "1 to 10000000"}},
        {{"--max-clients", "10000001"}, {"out of range", "1 to 10000000"}},
        {{"--max-locks", "0"}, {"out of range", "1 to 8000000"}},
        {{"--max-waiters", "10000001"}, {"out of range", "1 to 10000000"}},
        {{"--nlm-port", "65536"}, {"out of range", "0 to 65535"}},
        {{"--grace", "5s"}, {"--grace 5s: not a number", "seconds"}},
        {{"--grace", "86401"}, {"out of range", "0 to 86400 seconds"}},
        {{"--store-timeout", "0"}, {"out of range", "1 to 86400"}},
        {{"--max-bytes", "K"}, {"--max-bytes K: not a number", "K, M or G"}},
        {{"--max-bytes", "1T"}, {"not a number", "1M to 32G"}},
        {{"--max-bytes", "99999999999999999G"}, {"out of range"}},
        {{"--max-bytes", "1023K"}, {"out of range"}},
        {{"--sync", "none"}, {"--sync none: no such choice", "full, process"}},
        {{"--log-level", "INFO"}, {"error, warning, info, debug"}},
        {{"--rpcbind", "on"}, {"no such choice", "auto, system, embedded, off"}},
        {{"--store", "mysql:x"}, {"does not support it", "lmdb:"}},
        {{"--store", "mysql://me:secret@db"}, {"mysql://me:...@db: this version"}},
        {{"--standby"}, {"--standby: needs a store that two machines can reach", "postgres:"}},
        {{"--store", "lmdb:"}, {"the directory is missing"}},
        {{"--store", "holdfast-data"}, {"does not support it"}},
        {{"--listen", "localhost"}, {"--listen localhost: not an IPv4 or IPv6 address"}},
        {{"--listen", "10.0.0.0/8"}, {"not an IPv4 or IPv6 address"}},
        {{"--http", "12080"}, {"--http 12080: not an IP address with a port", "[::1]:12080"}},
        {{"--http", "::1:12080"}, {"not an IP address with a port"}},
        {{"--http", "[::1]"}, {"not an IP address with a port"}},
        {{"--http", "[::1:80"}, {"not an IP address with a port"}},
        {{"--http", "127.0.0.1:65536"}, {"not an IP address with a port"}},
        {{"--http", "localhost:80"}, {"not an IP address with a port"}},
        {{"--user", ""}, {"the value is empty"}},
        {{"--assume-lost=maybe"}, {"--assume-lost maybe: not a switch", "on, off"}},
        {{"--prot", "1"}, {"--prot: unknown option", "did you mean --port?", "--help"}},
        {{"--max-client=1"}, {"--max-client=1: unknown option", "did you mean --max-clients?"}},
        {{"-port"}, {"-port: unknown option", "did you mean --port?"}},
        {{"--unreachable", "keep"}, {"--unreachable keep: no such choice", "release, hold"}},
        {{"--recovery", "none"}, {"--recovery none: no such choice", "reclaim, resume"}},
        {{"--trust-state", "maybe"}, {"no such choice", "on, off"}},
        {{"--verify-notify", "never"}, {"no such choice", "auto, always"}},
        {{"--name", "a b"}, {"--name a b: not a hostname"}},
        {{"--"}, {"--: unknown option"}},
        {{"serve"}, {"serve: not an option"}},
        {{"--x\n%n"}, {"--x\\x0a%n: unknown option"}},
        {{"--config", "/nonexistent/file"}, {"cannot open /nonexistent/file: No such file"}},
        {{"--config", "/"}, {"cannot open /: is not a regular file"}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct outcome outcome;
        config_reader_read(&outcome, NULL,
                           (const char *const[]){cases[i].words[0], cases[i].words[1], NULL});
        if (outcome.result == 0)
            fail_msg("accepted %s %s", cases[i].words[0], cases[i].words[1]);
        for (size_t j = 0; j < 3 && cases[i].parts[j] != NULL; j++)
            assert_contains(outcome.why, cases[i].parts[j]);
    }
}

TEST(test_config__unknown_options_far_from_all_names_get_no_suggestion)
{
    struct outcome outcome;
    READ(&outcome, "--quality-of-life", "x");
    assert_int_not_equal(outcome.result, 0);
    assert_null(strstr(outcome.why, "did you mean"));
}

TEST(test_config__too_many_addresses_are_refused)
{
    struct config config = {0};
    char buffer[256], address[32];
    struct text why;
    text_init(&why, buffer, sizeof buffer);
    for (int i = 0; i <= CONFIG_LISTEN_MAX; i++) {
        (void)snprintf(address, sizeof address, "127.0.1.%d", i);
        int result =
            config_set(&config, config_find("listen"), address, CONFIG_FROM_COMMAND_LINE, 0, &why);
        assert_int_equal(result == 0, i < CONFIG_LISTEN_MAX);
    }
    assert_contains(buffer, "too many addresses; allowed: 64");
    assert_int_equal(config.listen.count, CONFIG_LISTEN_MAX);
}

/* As many as one notification has room for. */
TEST(test_config__names_are_few)
{
    struct config config = {0};
    char buffer[256], name[32];
    struct text why;
    text_init(&why, buffer, sizeof buffer);
    for (int i = 0; i <= CONFIG_NAME_MAX; i++) {
        (void)snprintf(name, sizeof name, "nas%d", i);
        int result =
            config_set(&config, config_find("name"), name, CONFIG_FROM_COMMAND_LINE, 0, &why);
        assert_int_equal(result == 0, i < CONFIG_NAME_MAX);
    }
    assert_contains(buffer, "too many names; allowed: 4");
    assert_int_equal(config.names.count, CONFIG_NAME_MAX);
    assert_string_equal(config.names.at[0], "nas0");
    config_done(&config);
}

TEST(test_config__file_sets_options_and_command_line_wins)
{
    config_reader_write("# a comment\n"
                        "[holdfast]\n"
                        "port = 1000\n"
                        "listen = 127.0.0.1   ; a comment behind a value\n"
                        "listen = ::1\n"
                        "assume-lost = yes\n"
                        "require-privileged-port = on\n"
                        "store = lmdb:/srv/a b\n"
                        "grace: 3\n"
                        "max-bytes = 64M");
    struct outcome outcome;
    READ(&outcome, "--port", "2000", "--config", config_reader_file,
         "--require-privileged-port=off");
    config_reader_assert_read(&outcome);
    assert_string_equal(outcome.config.file, config_reader_file);
    assert_int_equal(outcome.config.port, 2000);
    assert_int_equal(outcome.config.listen.count, 2);
    assert_true(outcome.config.assume_lost);
    assert_false(outcome.config.require_privileged_port);
    assert_string_equal(outcome.config.store, "lmdb:/srv/a b");
    assert_int_equal(outcome.config.grace_s, 3);
    assert_int_equal(outcome.config.bytes_max, 64u << 20);
    size_t port = (size_t)(config_find("port") - config_options);
    size_t grace = (size_t)(config_find("grace") - config_options);
    assert_int_equal(outcome.config.origins[port], CONFIG_FROM_COMMAND_LINE);
    assert_int_equal(outcome.config.origins[grace], CONFIG_FROM_FILE);
    assert_int_equal(outcome.config.lines[grace], 9);
    config_done(&outcome.config);

    /* --no-rpcbind is --rpcbind off: it shows where that came from. */
    READ(&outcome, "--no-rpcbind");
    config_reader_assert_read(&outcome);
    size_t rpcbind = (size_t)(config_find("rpcbind") - config_options);
    assert_int_equal(outcome.config.origins[rpcbind], CONFIG_FROM_COMMAND_LINE);
    config_done(&outcome.config);

    /* Addresses of the command line replace those of the file. */
    READ(&outcome, "--config", config_reader_file, "--listen", "127.0.0.9");
    config_reader_assert_read(&outcome);
    assert_int_equal(outcome.config.listen.count, 1);
    config_done(&outcome.config);
}

TEST(test_config__file_errors_name_line_and_key)
{
    static const struct {
        const char *content;
        const char *parts[2];
    } cases[] = {
        {"[holdfast]\nport = x\n", {", line 2: port = x: not a number", "0 to 65535"}},
        {"[holdfast]\n\nprot = 1\n", {", line 3: unknown key prot; did you mean port?"}},
        {"[holdfast]\ntakeover-hok = x\n", {", line 2: unknown key takeover-hok"}},
        {"[holdfast]\nconfig = other\n", {", line 2: not a key", "config"}},
        {"[holdfast]\nhelp = on\n", {", line 2: not a key", "help"}},
        {"[statd]\nport = 1\n",
         {", line 2: unknown section [statd]; only [holdfast] and [group NAME] are read"}},
        {"port = 1\n", {", line 1: the key port comes before any section"}},
        {"[holdfast]\nport = 1\ngrace = 1\nport = 2\n",
         {", line 4: port = 2: already given in line 2"}},
        {"[holdfast]\nport\n", {", line 2: neither a section like [holdfast], nor key = value"}},
        {"[holdfast\nport = 1\n", {", line 1: neither a section"}},
        {"[holdfast]\nnonsense\nport = x\n", {", line 2: neither a section"}},
        {"[holdfast]\nport = x\nnonsense\n", {", line 2: port = x"}},
        {"[holdfast]\nsync =\n", {", line 2: sync = : no such choice"}},
        {"[holdfast]\nport = \x1b[2J\n", {", line 2: port = \\x1b[2J: not a number"}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct outcome outcome;
        config_reader_write(cases[i].content);
        READ(&outcome, "--config", config_reader_file);
        if (outcome.result == 0)
            fail_msg("accepted: %s", cases[i].content);
        assert_memory_equal(outcome.why, config_reader_file, strlen(config_reader_file));
        for (size_t j = 0; j < 2 && cases[i].parts[j] != NULL; j++)
            assert_contains(outcome.why, cases[i].parts[j]);
    }
}

TEST(test_config__a_line_that_would_be_cut_is_refused)
{
    char content[400];
    for (int len = 150; len < 300; len++) {
        int used =
            snprintf(content, sizeof content, "[holdfast]\nstore = lmdb:%0*d\nport = 1\n", len, 0);
        assert_in_range(used, 1, sizeof content - 1);
        config_reader_write(content);
        struct outcome outcome;
        READ(&outcome, "--config", config_reader_file);
        if (outcome.result == 0) {
            assert_int_equal(strlen(outcome.config.store), strlen("lmdb:") + (size_t)len);
            assert_int_equal(outcome.config.port, 1);
            config_done(&outcome.config);
        } else {
            assert_contains(outcome.why, ", line 2: longer than 198 characters");
            assert_true(strlen("store = lmdb:") + (size_t)len > 198);
        }
    }
}

TEST(test_config__help_shows_every_option_within_100_columns)
{
    char *text = NULL;
    size_t len = 0;
    FILE *out = open_memstream(&text, &len);
    assert_non_null(out);
    config_print_help(out);
    assert_int_equal(fclose(out), 0);
    for (uint32_t i = 0; i < config_option_count; i++) {
        char name[64];
        (void)snprintf(name, sizeof name, "\n  --%s", config_options[i].name);
        assert_contains(text, name);
        if (config_options[i].default_text != NULL)
            assert_contains(text, config_options[i].default_text);
        assert_true(config_options[i].default_text != NULL ||
                    config_options[i].default_shown != NULL ||
                    config_options[i].type == CONFIG_FLAG);
    }
    for (const char *line = text; *line != '\0'; line += strcspn(line, "\n") + 1)
        assert_in_range(strcspn(line, "\n"), 0, 100);
    free(text);
}

/* What --check-config prints is a file that means the same. */
TEST(test_config__effective_configuration_reads_back)
{
    struct outcome first, second;
    READ(&first, "--listen", "fe80::1%3", "--listen", "10.0.0.1", "--http", "[::1]:81", "--port",
         "5", "--max-bytes", "1048577", "--user", "nobody", "--assume-lost", "--sync", "process");
    config_reader_assert_read(&first);
    FILE *out = fopen(config_reader_file, "w");
    assert_non_null(out);
    config_print_effective(&first.config, out);
    assert_int_equal(fclose(out), 0);
    READ(&second, "--config", config_reader_file);
    config_reader_assert_read(&second);
    for (uint32_t i = 0; i < config_option_count; i++) {
        const struct config_option *option = &config_options[i];
        if ((option->flags & CONFIG_NO_KEY) != 0)
            continue;
        uint32_t count = config_value_count(&first.config, option);
        assert_int_equal(config_value_count(&second.config, option), count);
        for (uint32_t j = 0; j < count; j++) {
            char buffers[2][256];
            struct text text;
            text_init(&text, buffers[0], sizeof buffers[0]);
            config_value_add(&text, &first.config, option, j);
            text_init(&text, buffers[1], sizeof buffers[1]);
            config_value_add(&text, &second.config, option, j);
            assert_string_equal(buffers[0], buffers[1]);
        }
    }
    config_done(&first.config);
    config_done(&second.config);
}

/* "--name=VALUE" with a value that the option takes. */
static void give(const struct config_option *option, char *ret, size_t size)
{
    static const char *const values[][2] = {{"nlm-port", "5"},
                                            {"nsm-port", "5"},
                                            {"takeover-hook", "true"},
                                            {"grace", "5"},
                                            {"export", "/srv *(ro)"},
                                            {"exports", "/file"},
                                            {"share", "a=01"},
                                            {"allow", "192.0.2.0/24"},
                                            {"window", "smb=5"},
                                            {"tracker-group", "smb"},
                                            {"group", "a"}};
    const char *value = option->default_text;
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++)
        if (strcmp(values[i][0], option->name) == 0)
            value = values[i][1];
    assert_true(option->type == CONFIG_FLAG || value != NULL);
    (void)snprintf(ret, size, option->type == CONFIG_FLAG ? "--%s" : "--%s=%s", option->name,
                   value);
}

TEST(test_config__a_monitor_refuses_each_by_name_and_says_why)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < config_option_count; i++) {
        const struct config_option *option = &config_options[i];
        char argument[128], sentence[256];
        struct outcome outcome;
        if (!(option->flags & CONFIG_NOT_OF_MONITOR))
            continue;
        assert_non_null(option->why_not);
        give(option, argument, sizeof argument);
        READ(&outcome, "--role", "monitor", argument);
        (void)snprintf(sentence, sizeof sentence, "--%s: means nothing with --role monitor: %s",
                       option->name, option->why_not);
        assert_string_equal(outcome.why, sentence);
        count++;
    }
    assert_int_equal(count, 25);
}

TEST(test_config__a_role_refuses_what_means_nothing_in_it)
{
    static const char *const of_monitor[] = {"--notify-after=5", "--unmon-all=notify",
                                             "--on-lockd-restart=notify", "--callout=/bin/true"};
    struct outcome outcome;
    READ(&outcome, "--role", "monitor", "--verify-notify", "always");
    config_reader_assert_read(&outcome);
    config_done(&outcome.config);
    for (size_t i = 0; i < sizeof of_monitor / sizeof of_monitor[0]; i++) {
        READ(&outcome, of_monitor[i]);
        assert_contains(outcome.why, "only with --role monitor");
        READ(&outcome, "--role", "monitor", of_monitor[i]);
        config_reader_assert_read(&outcome);
        config_done(&outcome.config);
    }
    READ(&outcome, "--role", "monitor", "--rpcbind", "embedded");
    assert_contains(outcome.why, "--rpcbind embedded: with --role monitor");
    READ(&outcome, "--role", "monitor");
    config_reader_assert_read(&outcome);
    assert_string_equal(outcome.config.store, "lmdb:/var/lib/holdfast-monitor");
    assert_int_equal(outcome.config.mon_from, CONFIG_MON_FROM_LOOPBACK);
    assert_int_equal(outcome.config.bytes_max, 32 << 20);
    config_done(&outcome.config);
    READ(&outcome, "--role", "monitor", "--max-bytes", "64M");
    assert_int_equal(outcome.config.bytes_max, 64 << 20);
    config_done(&outcome.config);
}

/* Copies contrib/holdfast.conf with the # of "#key" lines removed; counts each option's lines, and
 * that of the store, which is set. */
static void uncomment_example(uint32_t *ret_counts)
{
    FILE *in = fopen(EXAMPLE_CONF, "r"), *out = fopen(config_reader_file, "w");
    assert_non_null(in);
    assert_non_null(out);
    char line[256];
    while (fgets(line, sizeof line, in) != NULL) {
        const char *key = line + (line[0] == '#');
        bool is_key = key[0] >= 'a' && key[0] <= 'z';
        char name[64] = "";
        memcpy(name, key, is_key ? strcspn(key, " ") : 0);
        const struct config_option *option = config_find(name);
        /* Those of the other role stay comments, and groups: this role and store refuse them. */
        bool is_set = is_key && option != NULL && (option->flags & CONFIG_NOT_OF_SERVER) == 0 &&
                      option->type != CONFIG_GROUPS;
        assert_true(fputs(is_set ? key : line, out) >= 0);
        if (!is_key)
            continue;
        if (option == NULL || (option->flags & CONFIG_NO_KEY) != 0)
            fail_msg("the example has a key that is none: %s", name);
        ret_counts[option - config_options]++;
    }
    assert_int_equal(fclose(in), 0);
    assert_int_equal(fclose(out), 0);
}

TEST(test_config__example_file_lists_every_key_with_its_default)
{
    uint32_t counts[CONFIG_OPTION_MAX] = {0};
    uncomment_example(counts);
    struct outcome example, defaults;
    READ(&example, "--config", config_reader_file);
    config_reader_assert_read(&example);
    READ(&defaults, NULL);
    config_reader_assert_read(&defaults);
    for (uint32_t i = 0; i < config_option_count; i++) {
        const struct config_option *option = &config_options[i];
        if ((option->flags & CONFIG_NO_KEY) != 0)
            continue;
        if (counts[i] == 0 || (counts[i] > 1 && (option->flags & CONFIG_REPEATABLE) == 0))
            fail_msg("the example has %s %u times", option->name, counts[i]);
        char buffers[2][256];
        struct text text;
        /* Where there is no value by default, the example has none to repeat. */
        if (config_value_count(&defaults.config, option) == 0 || strcmp(option->name, "store") == 0)
            continue;
        text_init(&text, buffers[0], sizeof buffers[0]);
        config_value_add(&text, &example.config, option, 0);
        text_init(&text, buffers[1], sizeof buffers[1]);
        config_value_add(&text, &defaults.config, option, 0);
        assert_string_equal(buffers[0], buffers[1]);
    }
    config_done(&example.config);
    config_done(&defaults.config);

    /* As it is shipped it sets nothing but the store, to root's. */
    READ(&example, "--config", EXAMPLE_CONF);
    config_reader_assert_read(&example);
    for (uint32_t i = 0; i < config_option_count; i++)
        assert_int_equal(example.config.origins[i] == CONFIG_FROM_FILE,
                         strcmp(config_options[i].name, "store") == 0);
    assert_string_equal(example.config.store, CONFIG_STORE_OF_ROOT);
    config_done(&example.config);
}

TEST_MAIN(NULL, NULL, config_reader_set_up, config_reader_tear_down)
