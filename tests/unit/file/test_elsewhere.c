/*
 * test_elsewhere.c -- a file system whose answers come from another program, which may be silent.
 *
 * A FUSE file system of this test, with one file, answers everything anew. Passing shows: it can be
 * exported, and while it is silent no call waits on the server's thread. Skipped where FUSE cannot
 * be mounted.
 */
#include "caller.h"

#include "../test.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

enum { ROOT_NODE = 1, FILE_NODE = 2, REQUEST_MAX = 65536 + 4096, SILENCE_MS = 5000 };

static const char content[] = "hello";

static struct caller c;
static struct nfs_fh file;
static int device = -1;
static pthread_t answering;
static atomic_bool is_silent;

/* ---- the file system ---- */

static void answer(uint64_t unique, int error, const void *data, size_t len)
{
    struct {
        struct fuse_out_header head;
        char data[512];
    } out = {.head = {.unique = unique, .error = error, .len = (uint32_t)(sizeof out.head + len)}};
    if (len > 0)
        memcpy(out.data, data, len);
    ssize_t written = write(device, &out, out.head.len);
    (void)written; /* who asked may be gone */
}

static struct fuse_attr attr_of(uint64_t node)
{
    bool is_root = node == ROOT_NODE;
    return (struct fuse_attr){.ino = node,
                              .size = is_root ? 4096 : sizeof content - 1,
                              .mode = is_root ? S_IFDIR | 0777 : S_IFREG | 0666,
                              .nlink = is_root ? 2 : 1,
                              .blksize = 4096};
}

static void answer_lookup(const struct fuse_in_header *in, const char *name)
{
    uint64_t node = strcmp(name, "file") == 0 ? FILE_NODE
                    : strcmp(name, ".") == 0  ? in->nodeid
                    : strcmp(name, "..") == 0 ? ROOT_NODE
                                              : 0;
    struct fuse_entry_out out = {.nodeid = node, .generation = 1, .attr = attr_of(node)};
    answer(in->unique, node == 0 ? -ENOENT : 0, &out, node == 0 ? 0 : sizeof out);
}

static void wait_while_silent(void)
{
    for (int ms = 0; ms < SILENCE_MS && atomic_load(&is_silent); ms++)
        (void)usleep(1000);
}

static void serve(const struct fuse_in_header *in, const void *body)
{
    struct fuse_init_out init = {.major = FUSE_KERNEL_VERSION,
                                 .minor = 31,
                                 .max_readahead = 4096,
                                 .flags = FUSE_EXPORT_SUPPORT,
                                 .max_write = 4096};
    struct fuse_attr_out attr = {.attr = attr_of(in->nodeid)};
    struct fuse_open_out opened = {0};
    struct fuse_statfs_out fs = {.st = {.bsize = 4096, .namelen = 255}};
    switch (in->opcode) {
    case FUSE_INIT:
        answer(in->unique, 0, &init, sizeof init);
        break;
    case FUSE_LOOKUP:
        answer_lookup(in, body);
        break;
    case FUSE_GETATTR:
        wait_while_silent();
        answer(in->unique, 0, &attr, sizeof attr);
        break;
    case FUSE_OPEN:
    case FUSE_OPENDIR:
        answer(in->unique, 0, &opened, sizeof opened);
        break;
    case FUSE_READ:
        answer(in->unique, 0, content, sizeof content - 1);
        break;
    case FUSE_STATFS:
        answer(in->unique, 0, &fs, sizeof fs);
        break;
    case FUSE_RELEASE:
    case FUSE_RELEASEDIR:
        answer(in->unique, 0, NULL, 0);
        break;
    case FUSE_FORGET:
    case FUSE_BATCH_FORGET:
        break;
    default:
        answer(in->unique, -ENOSYS, NULL, 0);
    }
}

static void *run(void *argument)
{
    static _Alignas(struct fuse_in_header) char request[REQUEST_MAX];
    (void)argument;
    for (;;) {
        ssize_t len = read(device, request, sizeof request);
        if (len < 0 && (errno == EINTR || errno == ENOENT))
            continue;
        if (len < (ssize_t)sizeof(struct fuse_in_header))
            return NULL; /* it was unmounted */
        serve((const void *)request, request + sizeof(struct fuse_in_header));
    }
}

static bool mount_it(void)
{
    char options[96];
    device = open("/dev/fuse", O_RDWR | O_CLOEXEC);
    (void)snprintf(options, sizeof options, "fd=%d,rootmode=40000,user_id=0,group_id=0,allow_other",
                   device);
    return device >= 0 && unshare(CLONE_NEWNS) == 0 &&
           mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
           mount("holdfast-test", c.directory, "fuse", MS_NOSUID | MS_NODEV, options) == 0 &&
           pthread_create(&answering, NULL, run, NULL) == 0;
}

/* ---- its export ---- */

TEST_FIXTURE(start)
{
    caller_start(&c, "rw");
    if (!mount_it()) {
        caller_stop(&c);
        print_message("# skipped: FUSE cannot be mounted\n");
        skip();
    }
    caller_restart(&c, "rw");
    assert_int_equal(caller_lookup(&c, &c.root, "file", &file), NFS_OK);
}

TEST_FIXTURE(stop)
{
    atomic_store(&is_silent, false);
    file_free(c.service);
    c.service = NULL;
    (void)umount2(c.directory, MNT_DETACH);
    (void)pthread_join(answering, NULL);
    (void)close(device);
    caller_stop(&c);
}

TEST(test_elsewhere__it_can_be_exported)
{
    assert_int_equal(caller_getattr(&c, &file), NFS_OK);
    assert_int_equal(c.result.attr.attr.size, sizeof content - 1);
    assert_int_equal(caller_read(&c, &file, 0, 100), NFS_OK);
    assert_string_equal((char *)c.payload, content);
}

TEST(test_elsewhere__no_call_waits_for_it_on_the_servers_thread)
{
    assert_int_equal(caller_read(&c, &file, 0, 100), NFS_OK); /* everything is open and known */
    assert_int_equal(caller_getattr(&c, &file), NFS_OK);
    const enum nfs_procedure procedures[] = {NFS_GETATTR, NFS_ACCESS, NFS_READ, NFS_LOOKUP};
    atomic_store(&is_silent, true);
    for (int i = 0; i < 4; i++) {
        bool is_lookup = procedures[i] == NFS_LOOKUP;
        assert_null(
            caller_submit(&c, procedures[i],
                          &(struct nfs_args){.fh = caller_bytes(is_lookup ? &c.root : &file),
                                             .name = bytes_of_text("file"),
                                             .access = 63,
                                             .count = 5}));
    }
    atomic_store(&is_silent, false);
    const struct job_desk *desk = file_desk(c.service);
    for (int i = 0; i < 4; i++) {
        struct job *job = caller_wait(&c);
        assert_int_equal(job->status, NFS_OK);
        desk->release(desk->context, job);
    }
}

TEST_MAIN(start, stop, NULL, NULL)
