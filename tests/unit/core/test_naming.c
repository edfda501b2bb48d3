/*
 * test_naming.c -- the names under which a client is told, for any mixture of what is known: each
 * once, in order, the address always among them; and what a resolver says is believed only when it
 * can be a name.
 */
#include "core/state.h"
#include "fixture.h"
#include "unit/test.h"

static struct core *core;
static struct bytes configured[CORE_NAMES_MAX];

/* A core that was told these names, separated by spaces. */
static void begin(const char *names)
{
    struct core_limits limits = fixture_limits;
    limits.names = configured;
    limits.name_count = 0;
    while (*names != '\0') {
        const char *end = strchr(names, ' ');
        uint32_t len = (uint32_t)(end == NULL ? strlen(names) : (size_t)(end - names));
        configured[limits.name_count++] = (struct bytes){(const uint8_t *)names, len};
        names += len + (end != NULL);
    }
    core = fixture_new(&limits);
}

/* The names for a client that uses this address of ours must be these. */
static void assert_names(const char *local, const char *expected)
{
    struct bytes names[CORE_CALL_NAMES_MAX];
    char text[CORE_CALL_NAMES_MAX * (NAMING_LEN_MAX + 1) + 1] = "";
    size_t at = 0;
    struct address address = {0};
    if (local != NULL)
        address = fixture_address(local);
    uint32_t count = naming_list(core, &address, names);
    for (uint32_t i = 0; i < count; i++) {
        memcpy(text + at, names[i].at, names[i].len);
        at += names[i].len;
        text[at++] = i + 1 < count ? ' ' : '\0';
    }
    assert_string_equal(text, expected);
}

static void learn(const char *local, const char *name)
{
    struct address address = {0};
    if (local != NULL)
        address = fixture_address(local);
    core_learn_name(core, local == NULL ? NULL : &address, bytes_of_text(name));
}

TEST(test_naming__order)
{
    begin("given srv");
    assert_names("10.0.0.1", "given srv 10.0.0.1");
    learn("10.0.0.1", "ptr.example");
    learn("2001:db8::1", "six.example");
    learn(NULL, "srv.example");
    assert_names("10.0.0.1", "given srv srv.example ptr.example 10.0.0.1");
    assert_names("2001:db8::1", "given srv srv.example six.example 2001:db8::1");
    assert_names("10.0.0.2", "given srv srv.example 10.0.0.2");
    core_free(core);
}

TEST(test_naming__duplicates_are_exact)
{
    begin("srv SRV srv 10.0.0.1");
    learn("10.0.0.1", "SRV");
    learn(NULL, "Srv");
    assert_names("10.0.0.1", "srv SRV 10.0.0.1 Srv");
    core_free(core);
}

/* A client has always something to hear: at the least what registrants hear. */
TEST(test_naming__never_none)
{
    begin("");
    assert_names("10.0.0.1", "10.0.0.1");
    assert_names(NULL, "holdfast.example");
    core_free(core);
}

TEST(test_naming__the_address_has_its_place)
{
    begin("a b c d e f");
    learn("10.0.0.1", "ptr");
    learn(NULL, "full"); /* one too many */
    assert_names("10.0.0.1", "a b c d e f ptr 10.0.0.1");
    core_free(core);
}

/* The number of our interface is not part of a name that others know. */
TEST(test_naming__no_scope)
{
    begin("srv");
    learn("fe80::1%3", "link.example");
    assert_names("fe80::1%3", "srv link.example fe80::1");
    assert_names("fe80::1%4", "srv fe80::1");
    core_free(core);
}

TEST(test_naming__what_is_no_name_is_not_learned)
{
    static const char *const bad[] = {"", ".srv", "a/b", "a b", "a\tb", "caf\xc3\xa9", "a\x7f"};
    char longest[NAMING_LEN_MAX + 2], expected[NAMING_LEN_MAX + 16];
    begin("srv");
    for (uint32_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        learn("10.0.0.1", bad[i]);
        learn(NULL, bad[i]);
    }
    memset(longest, 'x', sizeof longest);
    longest[NAMING_LEN_MAX + 1] = '\0';
    learn("10.0.0.1", longest);
    assert_names("10.0.0.1", "srv 10.0.0.1");
    longest[NAMING_LEN_MAX] = '\0';
    learn("10.0.0.1", longest);
    (void)snprintf(expected, sizeof expected, "srv %s 10.0.0.1", longest);
    assert_names("10.0.0.1", expected);
    core_free(core);
}

/* A full table forgets nobody, and the first name of an address stays. */
TEST(test_naming__the_table_is_bounded)
{
    char address[20], name[20], expected[48];
    begin("srv");
    for (uint32_t i = 0; i < CORE_LOCALS_MAX + 5; i++) {
        (void)snprintf(address, sizeof address, "10.0.1.%u", i);
        (void)snprintf(name, sizeof name, "n%u", i);
        learn(address, name);
        learn(address, "another");
    }
    for (uint32_t i = 0; i < CORE_LOCALS_MAX + 5; i++) {
        (void)snprintf(address, sizeof address, "10.0.1.%u", i);
        if (i < CORE_LOCALS_MAX)
            (void)snprintf(expected, sizeof expected, "srv n%u %s", i, address);
        else
            (void)snprintf(expected, sizeof expected, "srv %s", address);
        assert_names(address, expected);
    }
    core_free(core);
}

TEST(test_naming__other_names_from_now_on)
{
    static struct bytes fresh[1];
    begin("given srv");
    fresh[0] = bytes_of_text("new.example");
    struct core_changes changes = {.locks_per_client_max = UINT32_MAX,
                                   .per_address_percent = 100,
                                   .server_name = fresh[0],
                                   .names = fresh,
                                   .name_count = 1};
    core_change(core, &changes);
    assert_names("10.0.0.1", "new.example 10.0.0.1");
    core_free(core);
}

TEST_MAIN(NULL, NULL, NULL, NULL)
