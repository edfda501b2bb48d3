/*
 * test_config_export.c -- lines of exports from options and from a file: what adds up, what is
 * skipped, and that an error names the file and the line that it is in.
 */
#include "daemon/config_export.h"

#include "config_reader.h"
#include "unit/test.h"

#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

static char why[512];
static struct config_exports exports;
static struct config_export_lines lines;

static int parse(const char *value)
{
    struct text text;
    text_init(&text, why, sizeof why);
    return config_export_parse(&exports, value, &text);
}

static int read_all(const char *path)
{
    struct text text;
    text_init(&text, why, sizeof why);
    return config_export_read(&exports, path, &lines, &text);
}

/* The file is refused, and the sentence has all of these words. */
static void refuse(const char *text, const char *place, const char *cause)
{
    char expected[128];
    config_reader_write(text);
    assert_int_equal(read_all(config_reader_file), -EINVAL);
    (void)snprintf(expected, sizeof expected, "%s, %s: ", config_reader_file, place);
    if (strncmp(why, expected, strlen(expected)) != 0 || strstr(why, cause) == NULL)
        fail_msg("\"%s\" does not say \"%s\" and \"%s\"", why, expected, cause);
}

TEST_FIXTURE(clear)
{
    config_export_clear(&exports);
    config_export_lines_done(&lines);
}

TEST(test_config_export__options_come_before_the_file)
{
    assert_int_equal(parse("/a *(rw)"), 0);
    assert_int_equal(parse("/b"), 0);
    config_reader_write("/c 10.0.0.0/8(rw)\n/d\n");
    assert_int_equal(read_all(config_reader_file), 0);
    assert_int_equal(lines.count, 4);
    static const char *const expected[] = {"/a", "/b", "/c", "/d"};
    for (uint32_t i = 0; i < 4; i++)
        assert_string_equal(lines.at[i].directory, expected[i]);
    assert_string_equal(why, "");
}

/* The end of this test is what it shows: nobody will ever write. */
TEST(test_config_export__a_pipe_is_not_waited_for)
{
    (void)unlink(config_reader_file);
    assert_int_equal(mkfifo(config_reader_file, 0600), 0);
    assert_int_equal(read_all(config_reader_file), -EINVAL);
    assert_non_null(strstr(why, "not a regular file"));
    assert_int_equal(unlink(config_reader_file), 0);
    assert_int_equal(read_all(config_reader_directory), -EINVAL);
    assert_non_null(strstr(why, "not a regular file"));
    assert_int_equal(read_all("/dev/zero"), -EINVAL);
    assert_int_equal(read_all("/dev/null"), 0);
    assert_int_equal(lines.count, 0);
}

TEST(test_config_export__options_alone)
{
    assert_int_equal(parse("/a *(rw)"), 0);
    assert_int_equal(read_all(NULL), 0);
    assert_int_equal(lines.count, 1);
}

TEST(test_config_export__comments_and_empty_lines_are_none)
{
    config_reader_write("# of this host\n\n   \n/a *(rw) # everybody\n\t# the end\n");
    assert_int_equal(read_all(config_reader_file), 0);
    assert_int_equal(lines.count, 1);
    assert_int_equal(lines.at[0].client_count, 1);
}

TEST(test_config_export__a_backslash_continues_a_line)
{
    config_reader_write("/a 10.0.0.1(rw) \\\n 10.0.0.2(ro) \\\n\t10.0.0.3\n/b\n/c *(rw)\\");
    assert_int_equal(read_all(config_reader_file), 0);
    assert_int_equal(lines.count, 3);
    assert_int_equal(lines.at[0].client_count, 3);
    assert_string_equal(lines.at[2].directory, "/c"); /* nothing follows, and no newline either */
}

TEST(test_config_export__an_error_names_file_and_line)
{
    refuse("/a *(rw)\n# two\n/b *(rv)\n", "line 3", "rv");
    refuse("b *(rw)", "line 1", "absolute");
    refuse("/a \\\n 10.0.0.1 \\\n 10.0.0.2(bogus)\n", "line 1", "bogus");
    refuse("/a \\\n 10.0.0.1\n/b *(bogus)\n", "line 3", "bogus"); /* lines are those of the file */
}

TEST(test_config_export__a_file_that_cannot_be_read_is_named)
{
    (void)unlink(config_reader_file);
    assert_int_equal(read_all(config_reader_file), -ENOENT);
    assert_non_null(strstr(why, config_reader_file));
    assert_non_null(strstr(why, "No such file"));
}

TEST(test_config_export__an_option_must_say_something)
{
    assert_int_equal(parse(""), -EINVAL);
    assert_non_null(strstr(why, "/srv/files *(rw)"));
    assert_int_equal(parse("# comment"), -EINVAL);
    assert_int_equal(parse("relative *"), -EINVAL);
    assert_non_null(strstr(why, "absolute"));
    assert_int_equal(exports.count, 0); /* what is refused is not added */
}

TEST(test_config_export__too_many_options_are_refused_with_the_way_out)
{
    for (uint32_t i = 0; i < CONFIG_EXPORT_MAX; i++)
        assert_int_equal(parse("/a *(rw)"), 0);
    assert_int_equal(parse("/a *(rw)"), -EINVAL);
    assert_non_null(strstr(why, "--exports"));
    assert_int_equal(exports.count, CONFIG_EXPORT_MAX);
}

TEST_MAIN(NULL, clear, config_reader_set_up, config_reader_tear_down)
