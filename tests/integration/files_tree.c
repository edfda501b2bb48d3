/*
 * files_tree.c -- a model of a directory tree; see files_tree.h. Which step comes next is in
 * files_tree_choose.c.
 *
 * The expected statuses are those of Linux's system calls, by the names that RFC 1813 gives them.
 */
#include "files_tree.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char wrong[256];

bool files_tree_init(struct files_tree *tree, const struct peer_nfs_fh *fh,
                     const struct peer_nfs_attr *attr)
{
    *tree = (struct files_tree){.uid = attr->uid, .gid = attr->gid};
    for (uint32_t i = 0; i < FILES_TREE_NODES; i++) {
        tree->nodes[i].bytes = calloc(1, FILES_TREE_SIZE);
        if (!tree->nodes[i].bytes)
            return false;
    }
    struct files_tree_node *root = &tree->nodes[0];
    root->is_used = root->has_mode = true;
    root->type = attr->type;
    root->mode = attr->mode;
    root->fileid = attr->fileid;
    root->fh = *fh;
    return true;
}

void files_tree_done(struct files_tree *tree)
{
    for (uint32_t i = 0; i < FILES_TREE_NODES; i++)
        free(tree->nodes[i].bytes);
}

const struct files_tree_name *files_tree_find(const struct files_tree *tree, uint32_t directory,
                                              const char *text)
{
    for (uint32_t i = 0; i < FILES_TREE_NAMES; i++)
        if (tree->names[i].text[0] && tree->names[i].directory == directory &&
            strcmp(tree->names[i].text, text) == 0)
            return &tree->names[i];
    return NULL;
}

static uint32_t links_of(const struct files_tree *tree, uint32_t node)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < FILES_TREE_NAMES; i++)
        count += tree->names[i].text[0] && tree->names[i].node == node;
    return count;
}

static bool is_empty(const struct files_tree *tree, uint32_t directory)
{
    for (uint32_t i = 0; i < FILES_TREE_NAMES; i++)
        if (tree->names[i].text[0] && tree->names[i].directory == directory)
            return false;
    return true;
}

/* Is `directory` the node, or below it? */
static bool is_within(const struct files_tree *tree, uint32_t directory, uint32_t node)
{
    while (directory != node && directory != 0) {
        uint32_t parent = 0;
        for (uint32_t i = 0; i < FILES_TREE_NAMES; i++)
            if (tree->names[i].text[0] && tree->names[i].node == directory)
                parent = tree->names[i].directory;
        directory = parent;
    }
    return directory == node;
}

const char *files_tree_compare(const struct files_tree *tree, uint32_t node,
                               const struct peer_nfs_attr *attr)
{
    const struct files_tree_node *at = &tree->nodes[node];
    bool is_directory = at->type == PEER_NFS_DIR;
    const char *what = NULL;
    if (attr->type != at->type)
        what = "type";
    else if (at->has_mode && attr->mode != at->mode)
        what = "mode";
    else if (attr->uid != tree->uid || attr->gid != tree->gid)
        what = "owner";
    else if (attr->fileid != at->fileid)
        what = "fileid";
    else if (!is_directory && attr->nlink != links_of(tree, node))
        what = "nlink";
    else if (at->type == PEER_NFS_REG && attr->size != at->size)
        what = "size";
    else if (at->has_mtime && (attr->mtime.seconds != at->mtime.seconds ||
                               attr->mtime.nanoseconds != at->mtime.nanoseconds))
        what = "mtime";
    if (!what)
        return NULL;
    snprintf(wrong, sizeof(wrong),
             "%s: type %u mode %04o nlink %u owner %u:%u size %llu, the model has type %u mode "
             "%04o nlink %u size %llu",
             what, attr->type, attr->mode, attr->nlink, attr->uid, attr->gid,
             (unsigned long long)attr->size, at->type, at->mode, links_of(tree, node),
             (unsigned long long)at->size);
    return wrong;
}

static uint32_t expected_create(const struct files_tree *tree, const struct files_tree_step *step)
{
    const struct files_tree_name *name = files_tree_find(tree, step->directory, step->name);
    if (!name)
        return PEER_NFS_IS_OK;
    const struct files_tree_node *node = &tree->nodes[name->node];
    if (step->procedure != PEER_NFS_CREATE || node->type != PEER_NFS_REG)
        return PEER_NFS_IS_EXIST;
    if (step->how == PEER_NFS_UNCHECKED)
        return PEER_NFS_IS_OK;
    bool is_repeat = step->how == PEER_NFS_EXCLUSIVE && node->has_verf &&
                     memcmp(node->verf, step->verf, sizeof(step->verf)) == 0;
    return is_repeat ? PEER_NFS_IS_OK : PEER_NFS_IS_EXIST;
}

static uint32_t expected_rename(const struct files_tree *tree, const struct files_tree_step *step)
{
    const struct files_tree_name *from = files_tree_find(tree, step->directory, step->name);
    const struct files_tree_name *to = files_tree_find(tree, step->to_directory, step->to_name);
    if (!from)
        return PEER_NFS_IS_NOENT;
    bool is_directory = tree->nodes[from->node].type == PEER_NFS_DIR;
    if (is_directory && is_within(tree, step->to_directory, from->node))
        return PEER_NFS_IS_INVAL;
    if (!to)
        return PEER_NFS_IS_OK;
    bool is_onto_directory = tree->nodes[to->node].type == PEER_NFS_DIR;
    if (is_onto_directory && to->node != from->node && is_within(tree, step->directory, to->node))
        return PEER_NFS_IS_NOTEMPTY;
    if (to->node == from->node)
        return PEER_NFS_IS_OK;
    if (is_directory != is_onto_directory)
        return is_directory ? PEER_NFS_IS_NOTDIR : PEER_NFS_IS_ISDIR;
    return is_onto_directory && !is_empty(tree, to->node) ? PEER_NFS_IS_NOTEMPTY : PEER_NFS_IS_OK;
}

static uint32_t expected_remove(const struct files_tree *tree, const struct files_tree_step *step)
{
    const struct files_tree_name *name = files_tree_find(tree, step->directory, step->name);
    if (!name)
        return PEER_NFS_IS_NOENT;
    bool is_directory = tree->nodes[name->node].type == PEER_NFS_DIR;
    if (step->procedure == PEER_NFS_REMOVE)
        return is_directory ? PEER_NFS_IS_ISDIR : PEER_NFS_IS_OK;
    if (!is_directory)
        return PEER_NFS_IS_NOTDIR;
    return is_empty(tree, name->node) ? PEER_NFS_IS_OK : PEER_NFS_IS_NOTEMPTY;
}

uint32_t files_tree_expected(const struct files_tree *tree, const struct files_tree_step *step)
{
    switch (step->procedure) {
    case PEER_NFS_LOOKUP:
        return files_tree_find(tree, step->directory, step->name) ? PEER_NFS_IS_OK
                                                                  : PEER_NFS_IS_NOENT;
    case PEER_NFS_CREATE:
    case PEER_NFS_MKDIR:
    case PEER_NFS_SYMLINK:
    case PEER_NFS_MKNOD:
        return expected_create(tree, step);
    case PEER_NFS_REMOVE:
    case PEER_NFS_RMDIR:
        return expected_remove(tree, step);
    case PEER_NFS_RENAME:
        return expected_rename(tree, step);
    case PEER_NFS_LINK:
        return files_tree_find(tree, step->to_directory, step->to_name) ? PEER_NFS_IS_EXIST
                                                                        : PEER_NFS_IS_OK;
    default:
        return PEER_NFS_IS_OK;
    }
}

static void add_name(struct files_tree *tree, uint32_t directory, const char *text, uint32_t node)
{
    for (uint32_t i = 0; i < FILES_TREE_NAMES; i++) {
        struct files_tree_name *name = &tree->names[i];
        if (name->text[0])
            continue;
        name->directory = directory;
        name->node = node;
        snprintf(name->text, sizeof(name->text), "%s", text);
        return;
    }
    abort(); /* files_tree_choose leaves room */
}

static void remove_name(struct files_tree *tree, const struct files_tree_name *name)
{
    uint32_t node = name->node;
    tree->names[name - tree->names].text[0] = '\0';
    if (links_of(tree, node) == 0)
        tree->nodes[node].is_used = false;
}

static void set_size(struct files_tree_node *node, uint64_t size)
{
    if (size < node->size)
        memset(node->bytes + size, 0, node->size - size);
    node->size = size;
    node->has_mtime = node->has_verf = false;
}

static const char *apply_create(struct files_tree *tree, const struct files_tree_step *step,
                                const struct peer_nfs_res *res)
{
    static const uint32_t types[] = {[PEER_NFS_CREATE] = PEER_NFS_REG,
                                     [PEER_NFS_MKDIR] = PEER_NFS_DIR,
                                     [PEER_NFS_SYMLINK] = PEER_NFS_LNK,
                                     [PEER_NFS_MKNOD] = PEER_NFS_FIFO};
    if (!res->has_fh || !res->has_attr)
        return "the new object has no handle or no attributes";
    const struct files_tree_name *old = files_tree_find(tree, step->directory, step->name);
    if (old) {
        if (step->how == PEER_NFS_UNCHECKED && step->sattr.has_size)
            set_size(&tree->nodes[old->node], step->sattr.size);
        if (!peer_nfs_same_fh(&tree->nodes[old->node].fh, &res->fh))
            return "another handle than before";
        return files_tree_compare(tree, old->node, &res->attr);
    }
    uint32_t slot = 0;
    for (uint32_t i = 0; i < FILES_TREE_NODES; i++) {
        if (!tree->nodes[i].is_used)
            slot = i;
        else if (peer_nfs_same_fh(&tree->nodes[i].fh, &res->fh))
            return "the handle of an object that is there";
    }
    struct files_tree_node *node = &tree->nodes[slot];
    uint8_t *bytes = node->bytes;
    memset(bytes, 0, FILES_TREE_SIZE);
    *node = (struct files_tree_node){.is_used = true,
                                     .type = types[step->procedure],
                                     .has_mode = step->sattr.has_mode,
                                     .mode = step->sattr.mode,
                                     .fileid = res->attr.fileid,
                                     .fh = res->fh,
                                     .bytes = bytes};
    if (step->procedure == PEER_NFS_CREATE && step->how != PEER_NFS_EXCLUSIVE)
        node->size = step->sattr.has_size ? step->sattr.size : 0;
    node->has_verf = step->procedure == PEER_NFS_CREATE && step->how == PEER_NFS_EXCLUSIVE;
    memcpy(node->verf, step->verf, sizeof(node->verf));
    memcpy(node->target, step->target, sizeof(node->target));
    if (node->type == PEER_NFS_LNK || node->has_verf)
        node->has_mode = false;
    add_name(tree, step->directory, step->name, slot);
    return files_tree_compare(tree, slot, &res->attr);
}

static const char *apply_rename(struct files_tree *tree, const struct files_tree_step *step)
{
    const struct files_tree_name *from = files_tree_find(tree, step->directory, step->name);
    const struct files_tree_name *to = files_tree_find(tree, step->to_directory, step->to_name);
    uint32_t node = from->node;
    if (to && to->node == node)
        return NULL;
    if (to)
        remove_name(tree, to);
    add_name(tree, step->to_directory, step->to_name, node);
    remove_name(tree, from);
    return NULL;
}

static const char *apply_write(struct files_tree *tree, const struct files_tree_step *step,
                               const struct peer_nfs_res *res)
{
    struct files_tree_node *node = &tree->nodes[step->node];
    if (res->count != step->count)
        return "WRITE took another number of bytes";
    if (res->committed < step->stable)
        return "WRITE reached less than was asked for";
    memcpy(node->bytes + step->offset, step->data, step->count);
    if (step->count > 0 && node->size < step->offset + step->count)
        node->size = step->offset + step->count;
    node->has_mtime = node->has_verf = false;
    return files_tree_compare(tree, step->node, &res->wcc.after);
}

static const char *apply_setattr(struct files_tree *tree, const struct files_tree_step *step,
                                 const struct peer_nfs_res *res)
{
    struct files_tree_node *node = &tree->nodes[step->node];
    const struct peer_nfs_sattr *sattr = &step->sattr;
    if (sattr->has_size)
        set_size(node, sattr->size);
    if (sattr->has_mode) {
        node->has_mode = true;
        node->mode = sattr->mode;
    }
    if (sattr->mtime_how != PEER_NFS_KEEP) {
        node->has_mtime = sattr->mtime_how == PEER_NFS_CLIENT_TIME && node->type == PEER_NFS_REG;
        node->mtime = sattr->mtime;
        node->has_verf = false;
    }
    return files_tree_compare(tree, step->node, &res->wcc.after);
}

static const char *check_read(const struct files_tree *tree, const struct files_tree_step *step,
                              const struct peer_nfs_res *res)
{
    const struct files_tree_node *node = &tree->nodes[step->node];
    uint64_t left = step->offset < node->size ? node->size - step->offset : 0;
    uint64_t len = left < step->count ? left : step->count;
    if (res->data.len != len)
        return "READ gives another number of bytes";
    if (len > 0 && memcmp(res->data.at, node->bytes + step->offset, len) != 0)
        return "READ gives other bytes";
    if (res->eof != (step->offset + len >= node->size))
        return "READ is wrong about the end";
    return NULL;
}

/* Every name once, with the right fileid; and nothing else. */
static const char *check_listing(const struct files_tree *tree, const struct files_tree_step *step,
                                 const struct peer_nfs_res *res)
{
    bool is_plus = step->procedure == PEER_NFS_READDIRPLUS;
    struct packet_reader entries = res->entries;
    struct peer_nfs_entry entry;
    uint32_t found = 0, wanted = 0;
    for (uint32_t i = 0; i < FILES_TREE_NAMES; i++)
        wanted += tree->names[i].text[0] && tree->names[i].directory == step->directory;
    while (peer_nfs_next_entry(&entries, is_plus, &entry)) {
        char text[FILES_TREE_NAME_MAX];
        snprintf(text, sizeof(text), "%.*s", (int)entry.name.len, (const char *)entry.name.at);
        if (strcmp(text, ".") == 0 || strcmp(text, "..") == 0)
            continue;
        const struct files_tree_name *name = files_tree_find(tree, step->directory, text);
        if (!name || tree->nodes[name->node].fileid != entry.fileid)
            return name ? "an entry has another fileid" : "an entry that is not there";
        if (entry.has_fh && !peer_nfs_same_fh(&entry.fh, &tree->nodes[name->node].fh))
            return "an entry has another handle";
        const char *differs =
            entry.has_attr ? files_tree_compare(tree, name->node, &entry.attr) : NULL;
        if (differs)
            return differs;
        found++;
    }
    return res->eof && found == wanted ? NULL : "entries are missing, or there twice";
}

static const char *apply(struct files_tree *tree, const struct files_tree_step *step,
                         const struct peer_nfs_res *res)
{
    const struct files_tree_name *name = files_tree_find(tree, step->directory, step->name);
    switch (step->procedure) {
    case PEER_NFS_LOOKUP:
        if (!peer_nfs_same_fh(&tree->nodes[name->node].fh, &res->fh))
            return "another handle than before";
        return res->has_attr ? files_tree_compare(tree, name->node, &res->attr) : NULL;
    case PEER_NFS_CREATE:
    case PEER_NFS_MKDIR:
    case PEER_NFS_SYMLINK:
    case PEER_NFS_MKNOD:
        return apply_create(tree, step, res);
    case PEER_NFS_REMOVE:
    case PEER_NFS_RMDIR:
        remove_name(tree, name);
        return NULL;
    case PEER_NFS_RENAME:
        return apply_rename(tree, step);
    case PEER_NFS_LINK:
        add_name(tree, step->to_directory, step->to_name, step->node);
        return res->has_attr ? files_tree_compare(tree, step->node, &res->attr) : NULL;
    case PEER_NFS_WRITE:
        return apply_write(tree, step, res);
    case PEER_NFS_SETATTR:
        return apply_setattr(tree, step, res);
    case PEER_NFS_READ:
        return check_read(tree, step, res);
    case PEER_NFS_GETATTR:
        return files_tree_compare(tree, step->node, &res->attr);
    case PEER_NFS_READLINK:
        return peer_nfs_is_text(res->data, tree->nodes[step->node].target) ? NULL : "another path";
    case PEER_NFS_READDIR:
    case PEER_NFS_READDIRPLUS:
        return check_listing(tree, step, res);
    default:
        return NULL;
    }
}

const char *files_tree_judge(struct files_tree *tree, const struct files_tree_step *step,
                             const struct peer_nfs_res *res)
{
    uint32_t status = files_tree_expected(tree, step);
    bool is_change = step->procedure == PEER_NFS_SETATTR || step->procedure == PEER_NFS_WRITE ||
                     (step->procedure >= PEER_NFS_CREATE && step->procedure <= PEER_NFS_LINK);
    if (res->status != status) {
        snprintf(wrong, sizeof(wrong), "%s %s %s answered %s, expected %s",
                 peer_nfs_procedure_text(step->procedure), step->name, step->to_name,
                 peer_nfs_status_text(res->status), peer_nfs_status_text(status));
        return wrong;
    }
    if (status != PEER_NFS_IS_OK)
        return NULL;
    if (is_change && !res->wcc.has_after)
        return "no attributes of the directory or file after the change";
    return apply(tree, step, res);
}
