/*
 * test_model.c -- random operations on the file service against a model of a tree.
 *
 * A few directories, a few names, and whatever may be done with them, in an order that a seed
 * makes. The model knows what must be there: every answer, every attribute that it can know, every
 * byte. Now and then the service starts anew; handles live on. HOLDFAST_MODEL_SEED and
 * HOLDFAST_MODEL_STEPS make other runs.
 */
#include "caller.h"

#include "../test.h"
#include "base/prng.h"

#include <stdio.h>
#include <string.h>

enum { NODES = 64, NAMES = 6, DATA_MAX = 4096, STEPS = 20000 };

struct node {
    bool is_there, is_directory;
    uint32_t links, size, mode;
    struct nfs_fh fh;
    uint8_t data[DATA_MAX];
};

/* Node 0 is the root. An entry is a node, or 0. Directories have one name. */
static struct node nodes[NODES];
static uint32_t entries[NODES][NAMES];
static struct caller c;
static struct prng prng;
static uint64_t seed;
static uint32_t step;

static const char *const names[NAMES] = {"a", "b", "c", "dd", ".nfs01", "with space"};

TEST_FIXTURE(start)
{
    caller_start(&c, "rw,async");
}

TEST_FIXTURE(stop)
{
    caller_stop(&c);
}

#define EXPECT(got, wanted)                                                                        \
    do {                                                                                           \
        uint64_t got_value = (uint64_t)(got), wanted_value = (uint64_t)(wanted);                   \
        if (got_value != wanted_value)                                                             \
            fail_msg("seed %llu step %u line %d: %s is %llu, not %llu", (unsigned long long)seed,  \
                     step, __LINE__, #got, (unsigned long long)got_value,                          \
                     (unsigned long long)wanted_value);                                            \
    } while (0)

static uint32_t pick(uint32_t below)
{
    return (uint32_t)prng_below(&prng, below);
}

/* Some directory that is there. */
static uint32_t pick_directory(void)
{
    uint32_t found[NODES], count = 0;
    for (uint32_t i = 0; i < NODES; i++)
        if (nodes[i].is_there && nodes[i].is_directory)
            found[count++] = i;
    return found[pick(count)];
}

static uint32_t free_node(void)
{
    for (uint32_t i = 1; i < NODES; i++)
        if (!nodes[i].is_there)
            return i;
    return 0;
}

static bool is_empty(uint32_t directory)
{
    for (uint32_t i = 0; i < NAMES; i++)
        if (entries[directory][i] != 0)
            return false;
    return true;
}

static bool is_inside(uint32_t directory, uint32_t ancestor)
{
    if (directory == ancestor)
        return true;
    for (uint32_t i = 0; i < NAMES; i++) {
        uint32_t node = entries[ancestor][i];
        if (node != 0 && nodes[node].is_directory && is_inside(directory, node))
            return true;
    }
    return false;
}

static void drop_link(uint32_t node)
{
    if (--nodes[node].links == 0 || nodes[node].is_directory) {
        nodes[node].is_there = false;
        /* Its handle is stale from now on. */
        EXPECT(caller_getattr(&c, &nodes[node].fh), NFS_STALE);
    }
}

static void step_create(void)
{
    uint32_t directory = pick_directory(), name = pick(NAMES), node = free_node();
    if (node == 0)
        return;
    enum nfs_stat stat = caller_create(&c, &nodes[directory].fh, names[name], 0600, NULL);
    EXPECT(stat, entries[directory][name] != 0 ? NFS_EXIST : NFS_OK);
    if (stat != NFS_OK)
        return;
    nodes[node] = (struct node){.is_there = true, .links = 1, .mode = 0600, .fh = c.result.fh};
    entries[directory][name] = node;
}

static void step_mkdir(void)
{
    uint32_t directory = pick_directory(), name = pick(NAMES), node = free_node();
    if (node == 0)
        return;
    enum nfs_stat stat = caller_mkdir(&c, &nodes[directory].fh, names[name], 0700, NULL);
    EXPECT(stat, entries[directory][name] != 0 ? NFS_EXIST : NFS_OK);
    if (stat != NFS_OK)
        return;
    nodes[node] = (struct node){
        .is_there = true, .is_directory = true, .links = 1, .mode = 0700, .fh = c.result.fh};
    memset(entries[node], 0, sizeof entries[node]);
    entries[directory][name] = node;
}

static void step_remove(void)
{
    uint32_t directory = pick_directory(), name = pick(NAMES), node = entries[directory][name];
    bool is_rmdir = pick(2);
    enum nfs_stat expected = NFS_OK;
    if (node == 0)
        expected = NFS_NOENT;
    else if (is_rmdir && !nodes[node].is_directory)
        expected = NFS_NOTDIR;
    else if (!is_rmdir && nodes[node].is_directory)
        expected = NFS_ISDIR;
    else if (is_rmdir && !is_empty(node))
        expected = NFS_NOTEMPTY;
    EXPECT(caller_call(&c, is_rmdir ? NFS_RMDIR : NFS_REMOVE,
                       &(struct nfs_args){.fh = caller_bytes(&nodes[directory].fh),
                                          .name = bytes_of_text(names[name])}),
           expected);
    if (expected != NFS_OK)
        return;
    entries[directory][name] = 0;
    drop_link(node);
}

static enum nfs_stat expected_rename(uint32_t node, uint32_t to, uint32_t victim)
{
    if (node == 0)
        return NFS_NOENT;
    if (nodes[node].is_directory && is_inside(to, node))
        return NFS_INVAL;
    if (victim == 0 || victim == node)
        return NFS_OK;
    if (nodes[victim].is_directory && is_inside(node, victim))
        return NFS_NOTEMPTY;
    if (nodes[node].is_directory && !nodes[victim].is_directory)
        return NFS_NOTDIR;
    if (!nodes[node].is_directory && nodes[victim].is_directory)
        return NFS_ISDIR;
    return nodes[victim].is_directory && !is_empty(victim) ? NFS_NOTEMPTY : NFS_OK;
}

/* A file inside an ancestor of it cannot replace that: the kernel says so in its own order. */
static bool is_ancestor(uint32_t victim, uint32_t from)
{
    return victim != 0 && nodes[victim].is_directory && is_inside(from, victim);
}

static void step_rename(void)
{
    uint32_t from = pick_directory(), name = pick(NAMES);
    uint32_t to = pick_directory(), to_name = pick(NAMES);
    uint32_t node = entries[from][name], victim = entries[to][to_name];
    enum nfs_stat expected = expected_rename(node, to, victim);
    if (node != 0 && is_ancestor(victim, from) && expected != NFS_INVAL)
        expected = NFS_NOTEMPTY;
    EXPECT(caller_call(&c, NFS_RENAME,
                       &(struct nfs_args){.fh = caller_bytes(&nodes[from].fh),
                                          .name = bytes_of_text(names[name]),
                                          .to_fh = caller_bytes(&nodes[to].fh),
                                          .to_name = bytes_of_text(names[to_name])}),
           expected);
    if (expected != NFS_OK || victim == node)
        return; /* two names of one file: both stay */
    entries[from][name] = 0;
    entries[to][to_name] = node;
    if (victim != 0)
        drop_link(victim);
}

/* Some file that is there; 0: none. */
static uint32_t pick_file(void)
{
    uint32_t found[NODES], count = 0;
    for (uint32_t i = 1; i < NODES; i++)
        if (nodes[i].is_there && !nodes[i].is_directory)
            found[count++] = i;
    return count == 0 ? 0 : found[pick(count)];
}

static void step_link(void)
{
    uint32_t node = pick_file(), to = pick_directory(), name = pick(NAMES);
    if (node == 0)
        return;
    enum nfs_stat stat = caller_call(&c, NFS_LINK,
                                     &(struct nfs_args){.fh = caller_bytes(&nodes[node].fh),
                                                        .to_fh = caller_bytes(&nodes[to].fh),
                                                        .to_name = bytes_of_text(names[name])});
    EXPECT(stat, entries[to][name] != 0 ? NFS_EXIST : NFS_OK);
    if (stat != NFS_OK)
        return;
    entries[to][name] = node;
    nodes[node].links++;
    EXPECT(c.result.attr.attr.nlink, nodes[node].links);
}

static void step_write(void)
{
    uint32_t index = pick_file();
    struct node *node = &nodes[index];
    uint8_t data[256];
    uint32_t offset = pick(DATA_MAX - sizeof data), len = 1 + pick(sizeof data - 1);
    if (index == 0)
        return;
    for (uint32_t i = 0; i < len; i++)
        data[i] = (uint8_t)pick(256);
    EXPECT(caller_call(&c, NFS_WRITE,
                       &(struct nfs_args){.fh = caller_bytes(&node->fh),
                                          .offset = offset,
                                          .count = len,
                                          .stable = (enum nfs_stable)pick(2),
                                          .data = {data, len}}),
           NFS_OK);
    EXPECT(c.result.wcc.before.size, node->size);
    memcpy(node->data + offset, data, len);
    if (offset + len > node->size)
        node->size = offset + len;
    EXPECT(c.result.wcc.after.attr.size, node->size);
}

static void step_truncate(void)
{
    uint32_t index = pick_file(), size = pick(DATA_MAX);
    struct node *node = &nodes[index];
    if (index == 0)
        return;
    node->mode = 0400 | pick(0400);
    EXPECT(
        caller_call(
            &c, NFS_SETATTR,
            &(struct nfs_args){
                .fh = caller_bytes(&node->fh),
                .sattr = {.set_size = true, .size = size, .set_mode = true, .mode = node->mode}}),
        NFS_OK);
    if (size < node->size)
        memset(node->data + size, 0, node->size - size);
    node->size = size;
}

static void step_read(void)
{
    uint32_t index = pick_file(), offset = pick(DATA_MAX), count = pick(DATA_MAX);
    const struct node *node = &nodes[index];
    if (index == 0)
        return;
    EXPECT(caller_read(&c, &node->fh, offset, count), NFS_OK);
    uint32_t rest = offset < node->size ? node->size - offset : 0;
    uint32_t len = count < rest ? count : rest;
    EXPECT(c.payload_len, len);
    EXPECT(c.result.eof, offset + len >= node->size);
    if (len > 0)
        EXPECT(memcmp(c.payload, node->data + offset, len), 0);
    EXPECT(c.result.attr.attr.mode, node->mode);
    EXPECT(c.result.attr.attr.nlink, node->links);
}

static void step_lookup(void)
{
    uint32_t directory = pick_directory(), name = pick(NAMES), node = entries[directory][name];
    struct nfs_fh fh;
    enum nfs_stat stat = caller_lookup(&c, &nodes[directory].fh, names[name], &fh);
    EXPECT(stat, node == 0 ? NFS_NOENT : NFS_OK);
    if (stat != NFS_OK)
        return;
    EXPECT(fh.len, nodes[node].fh.len);
    EXPECT(memcmp(fh.data, nodes[node].fh.data, fh.len), 0);
    EXPECT(c.result.attr.attr.type, nodes[node].is_directory ? NFS_TYPE_DIR : NFS_TYPE_REG);
}

static void step_list(void)
{
    uint32_t directory = pick_directory(), expected = 2, count = 0;
    for (uint32_t i = 0; i < NAMES; i++)
        expected += entries[directory][i] != 0;
    EXPECT(caller_call(&c, NFS_READDIR,
                       &(struct nfs_args){.fh = caller_bytes(&nodes[directory].fh), .count = 8192}),
           NFS_OK);
    struct xdr_in in = xdr_in_of((struct bytes){c.payload, c.payload_len});
    for (; xdr_get_bool(&in); count++) {
        (void)xdr_get_u64(&in);
        (void)xdr_get_opaque(&in, 255);
        (void)xdr_get_u64(&in);
    }
    EXPECT(count, expected);
    EXPECT(xdr_get_bool(&in), true);
}

static void step_restart(void)
{
    if (pick(40) == 0)
        caller_restart(&c, pick(2) ? "rw,async" : "rw,async,secure");
}

static void (*const steps[])(void) = {step_create, step_create, step_mkdir,    step_remove,
                                      step_rename, step_link,   step_write,    step_write,
                                      step_read,   step_read,   step_truncate, step_lookup,
                                      step_lookup, step_list,   step_restart};

static uint64_t from_environment(const char *name, uint64_t otherwise)
{
    const char *value = getenv(name);
    return value == NULL ? otherwise : strtoull(value, NULL, 10);
}

TEST(test_model__random_operations_agree_with_the_model)
{
    seed = from_environment("HOLDFAST_MODEL_SEED", 1);
    uint32_t count = (uint32_t)from_environment("HOLDFAST_MODEL_STEPS", STEPS);
    prng = (struct prng){seed};
    nodes[0] = (struct node){.is_there = true, .is_directory = true, .links = 1, .fh = c.root};
    for (step = 0; step < count; step++)
        steps[pick(sizeof steps / sizeof steps[0])]();
}

TEST_MAIN(start, stop, NULL, NULL)
