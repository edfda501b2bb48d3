/*
 * test_stress.c -- many calls of every kind at once, on few files, with few open and exports that
 * change: each comes out once, with a status that can be, and nothing is left behind.
 *
 * What it finds are crashes, deadlocks and races: it is run under the sanitizers, too.
 */
#include "caller.h"

#include "../test.h"
#include "base/prng.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>

enum { IN_FLIGHT = 96, FILES = 24, DIRECTORIES = 4 };

static struct caller c;
static struct nfs_fh directories[DIRECTORIES], files[FILES];
static struct prng prng = {7};
static char names[FILES][8];
static uint8_t data[70000];

TEST_FIXTURE(start)
{
    caller_start(&c, "rw,async");
    c.options.limits.files_max = 12;
    caller_restart(&c, "rw,async");
    directories[0] = c.root;
    for (uint32_t i = 1; i < DIRECTORIES; i++) {
        char name[8] = {'d', (char)('0' + i)};
        assert_int_equal(caller_mkdir(&c, &c.root, name, 0777, &directories[i]), NFS_OK);
    }
    for (uint32_t i = 0; i < FILES; i++) {
        (void)snprintf(names[i], sizeof names[i], "f%u", i);
        assert_int_equal(
            caller_create(&c, &directories[i % DIRECTORIES], names[i], 0666, &files[i]), NFS_OK);
    }
}

TEST_FIXTURE(stop)
{
    caller_stop(&c);
}

static uint32_t pick(uint32_t below)
{
    return (uint32_t)prng_below(&prng, below);
}

static struct bytes some_directory(void)
{
    return caller_bytes(&directories[pick(DIRECTORIES)]);
}

static struct bytes some_name(void)
{
    return bytes_of_text(names[pick(FILES)]);
}

static enum nfs_procedure make_args(struct nfs_args *args)
{
    static const enum nfs_procedure procedures[] = {
        NFS_GETATTR, NFS_SETATTR, NFS_LOOKUP, NFS_ACCESS, NFS_READ,    NFS_WRITE,      NFS_CREATE,
        NFS_REMOVE,  NFS_RENAME,  NFS_LINK,   NFS_COMMIT, NFS_READDIR, NFS_READDIRPLUS};
    enum nfs_procedure procedure = procedures[pick(sizeof procedures / sizeof procedures[0])];
    *args = (struct nfs_args){.fh = caller_bytes(&files[pick(FILES)]),
                              .to_fh = some_directory(),
                              .name = some_name(),
                              .to_name = some_name(),
                              .access = 0x3f,
                              .offset = pick(sizeof data),
                              .count = 1 + pick(sizeof data - 1),
                              .dircount = 4096,
                              .stable = (enum nfs_stable)pick(3)};
    args->data = (struct bytes){data, args->count};
    args->sattr = (struct nfs_sattr){.set_size = true, .size = pick(sizeof data)};
    if (procedure == NFS_LOOKUP || procedure == NFS_CREATE || procedure == NFS_REMOVE ||
        procedure == NFS_RENAME || procedure == NFS_READDIR || procedure == NFS_READDIRPLUS)
        args->fh = some_directory();
    return procedure;
}

static bool is_plausible(uint32_t status)
{
    bool is_it = status == NFS_OK || status == NFS_NOENT || status == NFS_EXIST ||
                 status == NFS_STALE || status == NFS_ACCES || status == NFS_JUKEBOX ||
                 status == NFS_ROFS || status == NFS_TOOSMALL ||
                 status == NFS_PERM; /* LINK of another's file: protected_hardlinks */
    if (!is_it)
        print_message("status %u\n", status);
    return is_it;
}

static void change_exports(void)
{
    char line[160], why[256];
    struct text text;
    static const char *const rights[] = {"*(rw,async)", "*(ro)", "192.0.2.1(rw)", "*(rw,sync)"};
    text_init(&text, why, sizeof why);
    (void)snprintf(line, sizeof line, "%s %s", c.directory, rights[pick(4)]);
    assert_true(caller_reload(&c, line, &text));
}

/* The handle of a new file takes the place of an old one. */
static void learn(const struct job *job, enum nfs_procedure procedure)
{
    struct xdr_in in = xdr_in_of((struct bytes){job->body, job->body_len});
    (void)xdr_get_u32(&in);
    if (procedure != NFS_LOOKUP || job->status != NFS_OK)
        return;
    struct bytes fh = xdr_get_opaque(&in, NFS_FH_MAX);
    struct nfs_fh *place = &files[pick(FILES)];
    place->len = fh.len;
    memcpy(place->data, fh.at, fh.len);
}

static uint32_t count_open_files(void)
{
    uint32_t count = 0;
    DIR *directory = opendir("/proc/self/fd");
    assert_non_null(directory);
    while (readdir(directory) != NULL)
        count++;
    assert_int_equal(closedir(directory), 0);
    return count;
}

TEST(test_stress__every_call_comes_out_once)
{
    const struct job_desk *desk = file_desk(c.service);
    const uint32_t calls = test_rounds(30000);
    uint32_t submitted = 0, finished = 0, ok = 0;
    while (finished < calls) {
        while (submitted < calls && submitted - finished < IN_FLIGHT) {
            struct nfs_args args;
            enum nfs_procedure procedure = make_args(&args);
            caller_be(&c, 1000 + pick(3), 1000);
            struct job *job = caller_submit(&c, procedure, &args);
            submitted++;
            if (pick(500) == 0)
                change_exports();
            if (job == NULL)
                continue;
            assert_true(is_plausible(job->status));
            ok += job->status == NFS_OK;
            learn(job, procedure);
            desk->release(desk->context, job);
            finished++;
        }
        if (finished == submitted)
            continue;
        struct job *job = caller_wait(&c);
        assert_true(is_plausible(job->status));
        ok += job->status == NFS_OK;
        desk->release(desk->context, job);
        finished++;
    }
    assert_null(desk->next(desk->context));
    struct file_status status;
    file_get_status(c.service, &status);
    assert_int_equal(status.calls, 0);
    assert_true(ok > calls / 10);
}

TEST(test_stress__no_descriptor_is_left_behind)
{
    uint32_t before = count_open_files();
    for (uint32_t i = 0; i < FILES; i++) {
        assert_int_equal(caller_write(&c, &files[i], 0, "x", NFS_UNSTABLE), NFS_OK);
        assert_int_equal(caller_read(&c, &files[i], 0, 1), NFS_OK);
    }
    caller_restart(&c, "rw,async");
    assert_true(count_open_files() <= before);
}

TEST_MAIN(start, stop, NULL, NULL)
