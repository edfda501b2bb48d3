/*
 * test_export_line.c -- lines of exports(5): what is read, and what is refused by its name.
 */
#include "file/export_line.h"

#include "../test.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static char why[512];

static int parse(const char *line, struct export_line *ret)
{
    struct text text;
    text_init(&text, why, sizeof why);
    return export_line_parse(line, ret, &text);
}

static void refuse(const char *line, const char *word)
{
    struct export_line parsed;
    assert_int_equal(parse(line, &parsed), -EINVAL);
    if (strstr(why, word) == NULL)
        fail_msg("\"%s\" is refused with \"%s\", without \"%s\"", line, why, word);
}

TEST(test_export_line__no_client_means_everybody_read_only)
{
    struct export_line line;
    assert_int_equal(parse("/srv/files", &line), 0);
    assert_string_equal(line.directory, "/srv/files");
    assert_int_equal(line.client_count, 1);
    assert_int_equal(line.clients[0].kind, EXPORT_EVERYBODY);
    assert_false(line.clients[0].rights.is_writable);
    assert_int_equal(line.clients[0].rights.squash, EXPORT_SQUASH_ROOT);
    assert_false(line.clients[0].rights.is_secure);
    assert_false(line.clients[0].rights.is_async);
    assert_int_equal(line.clients[0].rights.anonymous_uid, 65534);
    export_line_done(&line);
}

TEST(test_export_line__clients_have_their_own_options)
{
    struct export_line line;
    assert_int_equal(parse("/srv/files/ 10.0.0.0/8(rw,async) host.example.org fd00::/64(secure) "
                           "192.168.0.0/255.255.0.0(no_root_squash) 10.1.1.1(all_squash,"
                           "anonuid=5,anongid=6) *(ro) # a comment",
                           &line),
                     0);
    assert_string_equal(line.directory, "/srv/files");
    assert_int_equal(line.client_count, 6);
    assert_true(line.clients[0].rights.is_writable && line.clients[0].rights.is_async);
    assert_int_equal(line.clients[0].network.prefix_len, 8);
    assert_int_equal(line.clients[1].kind, EXPORT_HOST);
    assert_false(line.clients[1].rights.is_writable);
    assert_int_equal(line.clients[2].network.prefix_len, 64);
    assert_true(line.clients[2].rights.is_secure);
    assert_int_equal(line.clients[3].network.prefix_len, 16);
    assert_int_equal(line.clients[3].rights.squash, EXPORT_SQUASH_NONE);
    assert_int_equal(line.clients[4].network.prefix_len, 32);
    assert_int_equal(line.clients[4].rights.anonymous_uid, 5);
    assert_int_equal(line.clients[4].rights.anonymous_gid, 6);
    export_line_done(&line);
}

TEST(test_export_line__a_dash_sets_the_options_of_later_clients)
{
    struct export_line line;
    assert_int_equal(parse("/a -rw,async h1 h2(ro)", &line), 0);
    assert_true(line.clients[0].rights.is_writable && line.clients[0].rights.is_async);
    assert_true(!line.clients[1].rights.is_writable && line.clients[1].rights.is_async);
    export_line_done(&line);
}

TEST(test_export_line__directories_may_have_spaces)
{
    struct export_line line;
    assert_int_equal(parse("\"/srv/two words\" *", &line), 0);
    assert_string_equal(line.directory, "/srv/two words");
    export_line_done(&line);
    assert_int_equal(parse("/srv/two\\040words *", &line), 0);
    assert_string_equal(line.directory, "/srv/two words");
    export_line_done(&line);
}

TEST(test_export_line__fsid)
{
    struct export_line line;
    assert_int_equal(parse("/a *(fsid=17)", &line), 0);
    assert_true(line.clients[0].rights.has_fsid);
    assert_int_equal(line.clients[0].rights.fsid, 17);
    export_line_done(&line);
    assert_int_equal(parse("/a *(fsid=root)", &line), 0);
    assert_int_equal(line.clients[0].rights.fsid, 0);
    export_line_done(&line);
}

TEST(test_export_line__what_is_unknown_is_refused_by_name)
{
    refuse("srv *", "absolute");
    refuse("/a @hosts(rw)", "netgroup");
    refuse("/a *.example.org(rw)", "pattern");
    refuse("/a *(nohide)", "nohide");
    refuse("/a *(crossmnt)", "crossmnt");
    refuse("/a *(subtree_check)", "subtree_check");
    refuse("/a *(sec=krb5)", "krb5");
    refuse("/a *(synk)", "did you mean sync");
    refuse("/a *(no_such)", "no_such");
    refuse("/a *(anonuid=x)", "anonuid");
    refuse("/a *(anonuid=4294967296)", "anonuid");
    refuse("/a *(anonuid=4294967295)", "no id to the kernel");
    refuse("/a *(anongid=4294967295)", "no id to the kernel");
    refuse("/a *(fsid=-1)", "fsid");
    refuse("/a *(rw", "not closed");
    refuse("/a *(rw, ro)", "spaces");
    refuse("/a host (rw)", "everybody");
    refuse("/a 10.0.0.0/33", "netmask");
    refuse("/a 10.0.0.0/255.0.255.0", "netmask");
    refuse("/a ho%st", "hostname");
    refuse("\"/a", "quotation");
}

/* So many times the same character between two texts. */
static void refuse_long(const char *before, char c, size_t count, const char *after,
                        const char *word)
{
    char line[4096];
    size_t len = strlen(before);
    memcpy(line, before, len);
    memset(line + len, c, count);
    memcpy(line + len + count, after, strlen(after) + 1);
    refuse(line, word);
}

TEST(test_export_line__each_mistake_has_its_own_sentence)
{
    refuse("/a\\000b *", "NUL");
    refuse("/a *(rw=1)", "takes no value");
    refuse("/a *(ro,sync=no)", "takes no value");
    refuse("/a host/24", "not an address in front of");
    refuse("/a 10.0.0.0/", "not a length or netmask behind");
    refuse("/a *(rw)b", "no space behind ')'");
    refuse("/a *(anongid=)", "anongid");
    refuse_long("/", 'd', 1023, " *", "longer than 1,023 bytes");
    refuse_long("/a ", 'h', 256, "", "longer than 255 bytes");
    refuse_long("/a *(", 'o', 600, ")", "too long");
    char line[4096] = "/a";
    for (int i = 0; i < 257; i++)
        (void)snprintf(line + strlen(line), sizeof line - strlen(line), " 10.0.%d.%d", i / 256,
                       i % 256);
    refuse(line, "more than 256 clients");
}

TEST(test_export_line__empty_lines_and_comments_are_none)
{
    struct export_line line;
    assert_int_equal(parse("", &line), -ENOENT);
    assert_int_equal(parse("  # nothing", &line), -ENOENT);
}

TEST_MAIN(NULL, NULL, NULL, NULL)
