/*
 * test_exports.c -- which client may use which export, what a reload changes, and MOUNT.
 */
#include "caller.h"

#include "../test.h"
#include "file/export_table.h"

#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

static struct caller c;
static const struct mac_key key = {{1, 2}};
static char why[1024];
static uint8_t host_address = 7;

static uint32_t resolve(const char *name, struct address *ret, uint32_t max)
{
    (void)max;
    const uint8_t bytes[4] = {10, 0, 0, host_address};
    if (strcasecmp(name, "known") != 0)
        return 0;
    ret[0] = address_v4(bytes);
    return 1;
}

static struct export_table *table_of(uint32_t count, const char *const *texts)
{
    struct export_line lines[4];
    struct text text;
    text_init(&text, why, sizeof why);
    for (uint32_t i = 0; i < count; i++)
        assert_int_equal(export_line_parse(texts[i], &lines[i], &text), 0);
    struct export_table *table = export_table_new(lines, count, &key, resolve, &text);
    for (uint32_t i = 0; i < count; i++)
        export_line_done(&lines[i]);
    return table;
}

static const struct export_rights *rights_of(const struct export_table *table, const char *address,
                                             uint16_t port)
{
    struct address from;
    assert_true(address_parse(bytes_of_text(address), &from));
    return export_rights_of(&table->exports[0], &from, port);
}

TEST_FIXTURE(start)
{
    caller_start(&c, "rw,no_root_squash");
    caller_be(&c, 0, 0);
}

TEST_FIXTURE(stop)
{
    caller_stop(&c);
}

static const char *line_of(const char *rest)
{
    static char line[256];
    (void)snprintf(line, sizeof line, "%s %s", c.directory, rest);
    return line;
}

TEST(test_exports__the_most_exact_client_decides)
{
    const char *texts[] = {
        line_of("*(ro) 10.0.0.0/8(rw) 10.0.0.0/24(ro,async) known(rw,async) 10.0.0.9(rw,secure)")};
    struct export_table *table = table_of(1, texts);
    assert_non_null(table);
    assert_false(rights_of(table, "192.0.2.1", 1)->is_writable);
    assert_true(rights_of(table, "10.9.9.9", 1)->is_writable);
    assert_false(rights_of(table, "10.0.0.1", 1)->is_writable);
    assert_true(rights_of(table, "10.0.0.1", 1)->is_async);
    assert_true(rights_of(table, "10.0.0.7", 1)->is_writable);
    assert_true(rights_of(table, "10.0.0.9", 1023)->is_secure);
    assert_null(rights_of(table, "10.0.0.9", 1024)); /* secure: not from there */
    export_table_drop(table);
}

TEST(test_exports__who_is_not_listed_has_no_rights)
{
    const char *texts[] = {line_of("10.0.0.0/255.255.255.252(rw) fd00::/63")};
    struct export_table *table = table_of(1, texts);
    assert_non_null(rights_of(table, "10.0.0.3", 1));
    assert_null(rights_of(table, "10.0.0.4", 1));
    assert_non_null(rights_of(table, "fd00:0:0:1::5", 1));
    assert_null(rights_of(table, "fd00:0:0:2::5", 1));
    export_table_drop(table);
}

TEST(test_exports__what_cannot_be_served_is_refused)
{
    char inner[160], other[160];
    (void)snprintf(inner, sizeof inner, "%s/inner *", c.directory);
    (void)snprintf(other, sizeof other, "%s/other *(fsid=5)", c.directory);
    const char *not_there[] = {inner};
    assert_null(table_of(1, not_there));
    assert_non_null(strstr(why, "inner"));
    assert_int_equal(mkdir(caller_path(&c, "inner"), 0755), 0);
    const char *nested[] = {line_of("*"), inner};
    assert_null(table_of(2, nested));
    assert_non_null(strstr(why, "inside"));
    const char *no_name[] = {line_of("unknown(rw)")};
    assert_null(table_of(1, no_name));
    assert_non_null(strstr(why, "unknown"));
    assert_int_equal(mkdir(caller_path(&c, "other"), 0755), 0);
    (void)snprintf(inner, sizeof inner, "%s/inner *(fsid=5)", c.directory);
    const char *same[] = {inner, other};
    assert_null(table_of(2, same));
    assert_non_null(strstr(why, "fsid"));
    const char *no_directory[] = {"/proc/self/status *"};
    assert_null(table_of(1, no_directory));
    assert_non_null(strstr(why, "Not a directory"));
    const char *no_handles[] = {"/proc *"};
    assert_null(table_of(1, no_handles));
    assert_non_null(strstr(why, "no file handles"));
}

/* Otherwise "*(ro)" further down in a file would be ignored without a word. */
TEST(test_exports__a_client_that_is_listed_twice_is_refused)
{
    static const char *const twice[][2] = {{"*(rw)", "*(ro)"},
                                           {"10.0.0.0/8(rw)", "10.1.2.3/255.0.0.0(ro)"},
                                           {"10.0.0.1(rw)", "10.0.0.1/32(ro)"},
                                           {"known(rw)", "Known(ro)"}};
    char line[200];
    for (size_t i = 0; i < sizeof twice / sizeof twice[0]; i++) {
        (void)snprintf(line, sizeof line, "%s 10.0.0.0/9(rw) %s %s", c.directory, twice[i][0],
                       twice[i][1]);
        const char *one[] = {line};
        assert_null(table_of(1, one));
        assert_non_null(strstr(why, "listed twice"));
        char other[200];
        (void)snprintf(line, sizeof line, "%s %s", c.directory, twice[i][0]);
        (void)snprintf(other, sizeof other, "%s %s", c.directory, twice[i][1]);
        const char *two[] = {line, other};
        assert_null(table_of(2, two));
        assert_non_null(strstr(why, "listed twice"));
    }
}

TEST(test_exports__a_number_is_the_same_at_every_start)
{
    const char *texts[] = {line_of("*")};
    struct export_table *a = table_of(1, texts), *b = table_of(1, texts);
    assert_int_equal(a->exports[0].id, b->exports[0].id);
    export_table_drop(a);
    export_table_drop(b);
}

static bool reload(const char *rest)
{
    struct text text;
    text_init(&text, why, sizeof why);
    return caller_reload(&c, line_of(rest), &text);
}

TEST(test_exports__a_client_that_loses_its_export_gets_acces)
{
    struct nfs_fh file;
    assert_int_equal(caller_create(&c, &c.root, "f", 0644, &file), NFS_OK);
    assert_true(reload("192.0.2.0/24(rw)"));
    assert_int_equal(caller_getattr(&c, &file), NFS_ACCES);
    assert_int_equal(caller_mount(&c, c.directory, NULL), MOUNT_ACCES);
    assert_true(reload("127.0.0.1(ro)"));
    assert_int_equal(caller_getattr(&c, &file), NFS_OK);
    assert_int_equal(caller_write(&c, &file, 0, "x", NFS_UNSTABLE), NFS_ROFS);
    assert_true(reload("*(rw)"));
    assert_int_equal(caller_write(&c, &file, 0, "x", NFS_UNSTABLE), NFS_ACCES); /* squashed now */
}

TEST(test_exports__a_wrong_reload_changes_nothing)
{
    struct text text;
    text_init(&text, why, sizeof why);
    assert_false(caller_reload(&c, "/no/such/directory *", &text));
    assert_non_null(strstr(why, "/no/such/directory"));
    assert_int_equal(caller_getattr(&c, &c.root), NFS_OK);
}

/* The number stays, the root moves down: handles of before mean what they meant, and no way leads
 * above the new root. */
TEST(test_exports__an_export_that_is_narrowed_has_another_top)
{
    struct nfs_fh top, sub, deep, side, found;
    char line[160];
    struct text text;
    assert_true(reload("*(rw,fsid=9)"));
    assert_int_equal(caller_mount(&c, c.directory, &top), MOUNT_OK);
    assert_int_equal(caller_mkdir(&c, &top, "sub", 0777, &sub), NFS_OK);
    assert_int_equal(caller_mkdir(&c, &sub, "deep", 0777, &deep), NFS_OK);
    assert_int_equal(caller_mkdir(&c, &top, "side", 0777, &side), NFS_OK);
    text_init(&text, why, sizeof why);
    (void)snprintf(line, sizeof line, "%s/sub *(rw,fsid=9)", c.directory);
    assert_true(caller_reload(&c, line, &text));
    assert_int_equal(caller_lookup(&c, &deep, "..", &found), NFS_OK);
    assert_memory_equal(&found, &sub, sizeof found.len + found.len);
    assert_int_equal(caller_lookup(&c, &sub, "..", &found), NFS_OK);
    assert_memory_equal(&found, &sub, sizeof found.len + found.len);
    assert_int_equal(caller_lookup(&c, &top, "..", NULL), NFS_STALE);
    assert_int_equal(caller_lookup(&c, &side, "..", NULL), NFS_STALE);
    assert_int_equal(caller_mount(&c, c.directory, NULL), MOUNT_ACCES);
    assert_int_equal(caller_mount(&c, caller_path(&c, "side"), NULL), MOUNT_ACCES);
    assert_true(reload("*(rw,fsid=9)"));
    assert_int_equal(caller_lookup(&c, &side, "..", &found), NFS_OK);
    assert_memory_equal(&found, &top, sizeof found.len + found.len);
}

TEST(test_exports__mnt_answers_what_is_there)
{
    struct nfs_fh fh;
    assert_int_equal(mkdir(caller_path(&c, "d"), 0755), 0);
    assert_int_equal(mknod(caller_path(&c, "f"), S_IFREG | 0644, 0), 0);
    assert_int_equal(symlink("d", caller_path(&c, "link")), 0);
    char path[128];
    (void)snprintf(path, sizeof path, "%s//d/", c.directory);
    assert_int_equal(caller_mount(&c, path, &fh), MOUNT_OK);
    assert_int_equal(caller_getattr(&c, &fh), NFS_OK);
    struct nfs_fh looked_up;
    assert_int_equal(caller_lookup(&c, &c.root, "d", &looked_up), NFS_OK);
    assert_int_equal(fh.len, looked_up.len); /* one file, one handle */
    assert_memory_equal(fh.data, looked_up.data, fh.len);
    assert_int_equal(caller_mount(&c, caller_path(&c, "f"), NULL), MOUNT_NOTDIR);
    assert_int_equal(caller_mount(&c, caller_path(&c, "none"), NULL), MOUNT_NOENT);
    assert_int_equal(caller_mount(&c, caller_path(&c, "link"), NULL), MOUNT_NOTDIR);
    assert_int_equal(caller_mount(&c, caller_path(&c, "../"), NULL), MOUNT_ACCES);
    assert_int_equal(caller_mount(&c, "/", NULL), MOUNT_ACCES);
    assert_int_equal(caller_mount(&c, "relative", NULL), MOUNT_ACCES);
}

TEST(test_exports__a_directory_that_was_removed_is_not_mounted)
{
    struct nfs_fh fh;
    assert_int_equal(rmdir(c.directory), 0);
    assert_int_equal(caller_mount(&c, c.directory, NULL), MOUNT_NOENT);
    assert_int_equal(caller_getattr(&c, &c.root), NFS_STALE);
    assert_int_equal(caller_create(&c, &c.root, "f", 0644, NULL), NFS_STALE);
    assert_false(reload("*(rw)"));
    assert_int_equal(mkdir(c.directory, 0777), 0);
    assert_true(reload("*(rw)"));
    assert_int_equal(caller_mount(&c, c.directory, &fh), MOUNT_OK);
    assert_int_equal(caller_getattr(&c, &fh), NFS_OK);
    assert_int_equal(caller_getattr(&c, &c.root), NFS_STALE); /* another directory */
}

TEST(test_exports__a_mount_inside_is_refused)
{
    struct nfs_fh fh;
    assert_int_equal(mkdir(caller_path(&c, "m"), 0755), 0);
    assert_int_equal(caller_lookup(&c, &c.root, "m", &fh), NFS_OK);
    char path[128];
    (void)snprintf(path, sizeof path, "%s/m", c.directory);
    if (mount("none", path, "tmpfs", 0, NULL) != 0) {
        print_message("# skipped: mount: no right\n");
        skip();
    }
    enum nfs_stat stat = caller_lookup(&c, &c.root, "m", &fh);
    enum mount_stat mounted = caller_mount(&c, path, &fh);
    assert_int_equal(umount(path), 0);
    assert_int_equal(stat, NFS_ACCES);
    assert_int_equal(mounted, MOUNT_ACCES);
}

TEST_MAIN(start, stop, NULL, NULL)
