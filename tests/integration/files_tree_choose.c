/*
 * files_tree_choose.c -- which step comes next, and its arguments; see files_tree.h.
 *
 * Half of the steps change names, the others data and attributes. When the tree is nearly full,
 * what would make something removes something instead.
 */
#include "files_tree.h"
#include "harness.h"

#include <stdio.h>
#include <string.h>

static uint32_t dice(uint64_t *seed, uint32_t sides)
{
    return (uint32_t)(harness_random(seed) >> 20) % sides;
}

/* A node of this type; 0 for any. FILES_TREE_NODES: there is none. */
static uint32_t any_node(const struct files_tree *tree, uint64_t *seed, uint32_t type)
{
    uint32_t start = dice(seed, FILES_TREE_NODES);
    for (uint32_t i = 0; i < FILES_TREE_NODES; i++) {
        uint32_t at = (start + i) % FILES_TREE_NODES;
        if (tree->nodes[at].is_used && (type == 0 || tree->nodes[at].type == type))
            return at;
    }
    return FILES_TREE_NODES;
}

static bool is_nearly_full(const struct files_tree *tree)
{
    uint32_t nodes = 0, names = 0;
    for (uint32_t i = 0; i < FILES_TREE_NODES; i++)
        nodes += tree->nodes[i].is_used;
    for (uint32_t i = 0; i < FILES_TREE_NAMES; i++)
        names += tree->names[i].text[0] != '\0';
    return nodes + 2 > FILES_TREE_NODES || names + 3 > FILES_TREE_NAMES;
}

static void choose_place(const struct files_tree *tree, uint64_t *seed, uint32_t *ret_directory,
                         char *name)
{
    static const char *const names[] = {"a", "b", "c", "d", "e", ".nfs7", "x y"};
    *ret_directory = any_node(tree, seed, PEER_NFS_DIR);
    snprintf(name, FILES_TREE_NAME_MAX, "%s", names[dice(seed, 7)]);
}

static void choose_data(const struct files_tree *tree, uint64_t *seed, struct files_tree_step *step)
{
    static const uint32_t procedures[] = {PEER_NFS_WRITE,   PEER_NFS_WRITE,  PEER_NFS_WRITE,
                                          PEER_NFS_READ,    PEER_NFS_READ,   PEER_NFS_COMMIT,
                                          PEER_NFS_SETATTR, PEER_NFS_GETATTR};
    step->node = any_node(tree, seed, PEER_NFS_REG);
    if (step->node == FILES_TREE_NODES) {
        step->procedure = PEER_NFS_GETATTR;
        step->node = 0;
        return;
    }
    step->procedure = procedures[dice(seed, 8)];
    step->count = dice(seed, dice(seed, 4) == 0 ? sizeof(step->data) : 600);
    step->offset = dice(seed, FILES_TREE_SIZE - sizeof(step->data));
    step->stable = dice(seed, 3);
    for (uint32_t i = 0; i < step->count; i++)
        step->data[i] = (uint8_t)(harness_random(seed) >> 24);
    if (step->procedure == PEER_NFS_COMMIT)
        step->offset = step->count = 0;
    if (step->procedure != PEER_NFS_SETATTR)
        return;
    if (dice(seed, 2)) {
        step->sattr =
            (struct peer_nfs_sattr){.has_size = true, .size = dice(seed, FILES_TREE_SIZE)};
    } else {
        step->sattr = (struct peer_nfs_sattr){.has_mode = true, .mode = 0600 | dice(seed, 0100)};
        step->sattr.mtime_how = dice(seed, 3);
        if (step->sattr.mtime_how == PEER_NFS_CLIENT_TIME)
            step->sattr.mtime = (struct peer_nfs_time){dice(seed, 1 << 30), dice(seed, 1000000000)};
    }
}

static void choose_new(uint64_t *seed, struct files_tree_step *step)
{
    static const uint32_t procedures[] = {PEER_NFS_CREATE, PEER_NFS_CREATE,  PEER_NFS_CREATE,
                                          PEER_NFS_MKDIR,  PEER_NFS_SYMLINK, PEER_NFS_MKNOD};
    step->procedure = procedures[dice(seed, 6)];
    step->sattr = (struct peer_nfs_sattr){.has_mode = true, .mode = 0700 | dice(seed, 0100)};
    if (step->procedure == PEER_NFS_CREATE) {
        step->how = dice(seed, 3);
        if (step->how == PEER_NFS_UNCHECKED && dice(seed, 2)) {
            step->sattr.has_size = true;
            step->sattr.size = dice(seed, 2) ? 0 : dice(seed, FILES_TREE_SIZE);
        }
        if (step->how == PEER_NFS_EXCLUSIVE)
            for (uint32_t i = 0; i < sizeof(step->verf); i++)
                step->verf[i] = (uint8_t)(harness_random(seed) >> 24);
    }
    if (step->procedure == PEER_NFS_SYMLINK)
        snprintf(step->target, sizeof(step->target), "../t%u", dice(seed, 100000));
}

void files_tree_choose(const struct files_tree *tree, uint64_t *seed, struct files_tree_step *ret)
{
    struct files_tree_step *step = ret;
    uint32_t what = dice(seed, 100);
    memset(step, 0, sizeof(*step));
    choose_place(tree, seed, &step->directory, step->name);
    choose_place(tree, seed, &step->to_directory, step->to_name);
    if (is_nearly_full(tree) && what < 45)
        what = 60;
    if (what < 30) {
        choose_new(seed, step);
    } else if (what < 40) {
        step->procedure = PEER_NFS_LINK;
        step->node = any_node(tree, seed, dice(seed, 4) ? PEER_NFS_REG : PEER_NFS_LNK);
        if (step->node == FILES_TREE_NODES)
            step->procedure = PEER_NFS_LOOKUP;
    } else if (what < 55) {
        step->procedure = PEER_NFS_RENAME;
    } else if (what < 70) {
        step->procedure = dice(seed, 3) ? PEER_NFS_REMOVE : PEER_NFS_RMDIR;
    } else if (what < 92) {
        choose_data(tree, seed, step);
    } else if (what < 95) {
        step->procedure = dice(seed, 2) ? PEER_NFS_READDIR : PEER_NFS_READDIRPLUS;
    } else if (what < 97) {
        step->node = any_node(tree, seed, PEER_NFS_LNK);
        step->procedure = step->node == FILES_TREE_NODES ? PEER_NFS_LOOKUP : PEER_NFS_READLINK;
    } else {
        step->procedure = PEER_NFS_LOOKUP;
    }
}

void files_tree_args(const struct files_tree *tree, const struct files_tree_step *step,
                     struct peer_nfs_args *ret)
{
    bool has_name = step->procedure == PEER_NFS_LOOKUP || step->procedure == PEER_NFS_RENAME ||
                    step->procedure == PEER_NFS_READDIR ||
                    step->procedure == PEER_NFS_READDIRPLUS ||
                    (step->procedure >= PEER_NFS_CREATE && step->procedure <= PEER_NFS_RMDIR);
    *ret = (struct peer_nfs_args){
        .fh = tree->nodes[has_name ? step->directory : step->node].fh,
        .to_fh = tree->nodes[step->to_directory].fh,
        .name = peer_nfs_text(step->name),
        .to_name = peer_nfs_text(step->to_name),
        .sattr = step->sattr,
        .offset = step->offset,
        .count = has_name ? 65536 : step->count,
        .dircount = 65536,
        .how = step->how,
        .type = PEER_NFS_FIFO,
        .stable = step->stable,
        .data = {step->data, step->count},
        .path = peer_nfs_text(step->target),
    };
    memcpy(ret->verf, step->verf, sizeof(ret->verf));
}
