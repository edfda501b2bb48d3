/*
 * disk.c -- the disk that loses power: certain and pending contents and names; see disk.h.
 *
 *   tape --> disk_note --> pending --- sync ---> certain
 *                             \                    /
 *                              +--- disk_rebuild -+---> image (image.c)
 *
 * Files are found by inode number. A number that is created again is a new file; the old one stays
 * for as long as a name that is certain leads to it.
 */
#include "disk.h"

#include "base/prng.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SECTOR_LEN = 512, SYNCS_MAX = 16, NAMES_PENDING_MAX = 64 };

/* A write, or (is_resize) a new length. */
struct change {
    uint64_t order;
    bool is_resize;
    uint64_t offset, len;
    uint8_t *data; /* owned; NULL: zeros */
};

struct file {
    uint64_t inode;
    bool is_old; /* its number has been given to another file */
    struct content certain;
    struct change *pending; /* in the order they were made */
    uint32_t pending_count, pending_max;
};

struct name {
    char text[IMAGE_NAME_MAX];
    uint32_t file;
};

struct names {
    uint32_t count;
    struct name at[IMAGE_FILES_MAX];
};

struct name_change {
    uint64_t order;
    enum tape_type type;
    uint32_t file;
    char from[IMAGE_NAME_MAX], to[IMAGE_NAME_MAX];
};

struct disk {
    uint64_t order; /* of the last event */
    bool is_made, is_certain;
    uint64_t made_order;
    struct file files[IMAGE_FILES_MAX];
    uint32_t file_count;
    struct names certain;
    struct name_change pending[NAMES_PENDING_MAX];
    uint32_t pending_count;
    struct sync {
        uint32_t pid;
        uint64_t number, begin_order;
    } syncs[SYNCS_MAX]; /* begun; zero pid: free */
};

struct disk *disk_new(void)
{
    struct disk *disk = calloc(1, sizeof(*disk));
    if (!disk)
        abort();
    return disk;
}

void disk_free(struct disk *disk)
{
    for (uint32_t i = 0; i < disk->file_count; i++) {
        struct file *file = &disk->files[i];
        for (uint32_t k = 0; k < file->pending_count; k++)
            free(file->pending[k].data);
        free(file->pending);
        content_free(&file->certain);
    }
    free(disk);
}

const char *disk_variant_text(enum disk_variant variant)
{
    static const char *const texts[DISK_VARIANTS] = {
        [DISK_ALL_KEPT] = "all kept",
        [DISK_ALL_DROPPED] = "all dropped",
        [DISK_NAMES_DROPPED] = "contents kept, names dropped",
        [DISK_NAMES_KEPT] = "names kept, contents dropped",
        [DISK_LENGTHS_KEPT] = "lengths kept, data dropped",
        [DISK_LAST_KEPT] = "only the last write kept",
        [DISK_FIRST_DROPPED] = "only the first write dropped",
        [DISK_SHUFFLED] = "shuffled",
        [DISK_SHUFFLED_AGAIN] = "shuffled again",
        [DISK_TORN] = "shuffled and torn",
        [DISK_TORN_AGAIN] = "shuffled and torn again",
    };
    return texts[variant];
}

/* ---- contents ---- */

static void apply_change(struct content *content, const struct change *change)
{
    if (change->is_resize)
        content_resize(content, change->len);
    else
        content_write(content, change->offset, change->data, change->len);
}

static struct file *find_file(struct disk *disk, uint64_t inode)
{
    for (uint32_t i = disk->file_count; i-- > 0;)
        if (disk->files[i].inode == inode && !disk->files[i].is_old)
            return &disk->files[i];
    return NULL;
}

static void add_change(struct file *file, struct change change, const uint8_t *data)
{
    if (file->pending_count == file->pending_max) {
        file->pending_max = file->pending_max * 2 + 64;
        struct change *grown = realloc(file->pending, file->pending_max * sizeof(*grown));
        if (!grown)
            abort();
        file->pending = grown;
    }
    if (data) {
        change.data = malloc(change.len);
        if (!change.data)
            abort();
        memcpy(change.data, data, change.len);
    }
    file->pending[file->pending_count++] = change;
}

static void remove_change(struct file *file, uint32_t index)
{
    free(file->pending[index].data);
    file->pending_count--;
    memmove(&file->pending[index], &file->pending[index + 1],
            (file->pending_count - index) * sizeof(file->pending[0]));
}

static void sync_file(struct file *file, uint64_t before_order)
{
    while (file->pending_count > 0 && file->pending[0].order < before_order) {
        apply_change(&file->certain, &file->pending[0]);
        remove_change(file, 0);
    }
}

/* Where an older pending write meets a synced one, its bytes are the newer ones from now on: both
 * are the same page in memory. */
static void overwrite(struct change *older, const struct change *newer)
{
    uint64_t begin = older->offset > newer->offset ? older->offset : newer->offset;
    uint64_t older_end = older->offset + older->len, newer_end = newer->offset + newer->len;
    uint64_t end = older_end < newer_end ? older_end : newer_end;
    if (older->is_resize || begin >= end)
        return;
    if (!older->data)
        older->data = calloc(1, older->len);
    if (!older->data)
        abort();
    uint8_t *to = older->data + (begin - older->offset);
    if (newer->data)
        memcpy(to, newer->data + (begin - newer->offset), end - begin);
    else
        memset(to, 0, end - begin);
}

static const char *sync_write(struct file *file, const struct tape_head *head)
{
    uint32_t last = file->pending_count - 1;
    if (file->pending_count == 0 || file->pending[last].is_resize ||
        file->pending[last].offset != head->offset || file->pending[last].len != head->len)
        return "a synced write that was not written just before";
    apply_change(&file->certain, &file->pending[last]);
    for (uint32_t i = 0; i < last; i++)
        overwrite(&file->pending[i], &file->pending[last]);
    remove_change(file, last);
    return NULL;
}

/* ---- names ---- */

static struct name *find_name(struct names *names, const char *text)
{
    for (uint32_t i = 0; i < names->count; i++)
        if (strcmp(names->at[i].text, text) == 0)
            return &names->at[i];
    return NULL;
}

static void set_name(struct names *names, const char *text, uint32_t file)
{
    struct name *name = find_name(names, text);
    if (!name && names->count == IMAGE_FILES_MAX)
        abort();
    if (!name)
        name = &names->at[names->count++];
    snprintf(name->text, sizeof(name->text), "%s", text);
    name->file = file;
}

static void drop_name(struct names *names, const char *text)
{
    struct name *name = find_name(names, text);
    if (name)
        *name = names->at[--names->count];
}

/* A rename whose file has no name on this disk yet gives it the new one: it carries its file. */
static void apply_name(struct names *names, const struct name_change *change)
{
    if (change->type == TAPE_CREATE) {
        set_name(names, change->to, change->file);
    } else if (change->type == TAPE_UNLINK) {
        drop_name(names, change->from);
    } else {
        struct name *from = find_name(names, change->from);
        if (from && from->file == change->file)
            drop_name(names, change->from);
        set_name(names, change->to, change->file);
    }
}

static void sync_names(struct disk *disk, uint64_t before_order)
{
    uint32_t done = 0;
    while (done < disk->pending_count && disk->pending[done].order < before_order)
        apply_name(&disk->certain, &disk->pending[done++]);
    disk->pending_count -= done;
    memmove(disk->pending, disk->pending + done, disk->pending_count * sizeof(disk->pending[0]));
}

/* The file that a name leads to for those who run now. */
static bool look_up(const struct disk *disk, const char *text, uint32_t *ret_file)
{
    struct names names = disk->certain;
    for (uint32_t i = 0; i < disk->pending_count; i++)
        apply_name(&names, &disk->pending[i]);
    struct name *name = find_name(&names, text);
    if (name)
        *ret_file = name->file;
    return name != NULL;
}

static const char *add_name_change(struct disk *disk, const struct tape_event *event)
{
    struct name_change change = {.order = disk->order, .type = event->head.type};
    const char *second = event->name + strlen(event->name) + 1;
    bool is_rename = event->head.type == TAPE_RENAME;
    if (disk->pending_count == NAMES_PENDING_MAX || disk->file_count == IMAGE_FILES_MAX)
        return "more files than this test is made for";
    if (strlen(event->name) >= IMAGE_NAME_MAX || (is_rename && strlen(second) >= IMAGE_NAME_MAX))
        return "a name longer than this test is made for";
    snprintf(change.from, sizeof(change.from), "%s", event->name);
    snprintf(change.to, sizeof(change.to), "%s", is_rename ? second : event->name);
    if (event->head.type == TAPE_CREATE) {
        struct file *old = find_file(disk, event->head.file);
        if (old)
            old->is_old = true;
        change.file = disk->file_count;
        disk->files[disk->file_count++] = (struct file){.inode = event->head.file};
    } else if (!look_up(disk, event->name, &change.file)) {
        return "a name is renamed or removed that was not made";
    }
    disk->pending[disk->pending_count++] = change;
    return NULL;
}

/* ---- events ---- */

static const char *begin_sync(struct disk *disk, const struct tape_head *head)
{
    for (uint32_t i = 0; i < SYNCS_MAX; i++)
        if (disk->syncs[i].pid == 0) {
            disk->syncs[i] = (struct sync){head->pid, head->offset, disk->order};
            return NULL;
        }
    return "more syncs at once than this test is made for";
}

static const char *end_sync(struct disk *disk, const struct tape_event *event)
{
    const struct tape_head *head = &event->head;
    struct sync *sync = NULL;
    for (uint32_t i = 0; i < SYNCS_MAX; i++)
        if (disk->syncs[i].pid == head->pid && disk->syncs[i].number == head->offset)
            sync = &disk->syncs[i];
    if (!sync)
        return "a sync ends that did not begin";
    sync->pid = 0;
    struct file *file = find_file(disk, head->file);
    if (!(head->flags & TAPE_IS_DIRECTORY)) {
        if (file)
            sync_file(file, sync->begin_order);
        return file ? NULL : "a file is synced that was not made";
    }
    if (strcmp(event->name, "..") == 0)
        disk->is_certain |= disk->is_made && disk->made_order < sync->begin_order;
    else
        sync_names(disk, sync->begin_order);
    return NULL;
}

/* A process that was killed ends none of its syncs. */
static void forget_syncs(struct disk *disk)
{
    memset(disk->syncs, 0, sizeof(disk->syncs));
}

static const char *note_change(struct disk *disk, const struct tape_event *event)
{
    const struct tape_head *head = &event->head;
    struct file *file = find_file(disk, head->file);
    if (!file)
        return "a file is written that was not made";
    if (head->type == TAPE_WRITE_SYNCED)
        return sync_write(file, head);
    struct change change = {.order = disk->order,
                            .is_resize = head->type == TAPE_RESIZE,
                            .offset = head->offset,
                            .len = head->len};
    add_change(file, change, event->data);
    return NULL;
}

const char *disk_note(struct disk *disk, const struct tape_event *event)
{
    disk->order++;
    switch ((enum tape_type)event->head.type) {
    case TAPE_MKDIR:
        disk->is_made = true;
        disk->made_order = disk->order;
        return event->name[0] == '\0' ? NULL : "a directory inside the store";
    case TAPE_CREATE:
    case TAPE_RENAME:
    case TAPE_UNLINK:
        return add_name_change(disk, event);
    case TAPE_WRITE:
    case TAPE_WRITE_SYNCED:
    case TAPE_RESIZE:
        return note_change(disk, event);
    case TAPE_SYNC_BEGIN:
        return begin_sync(disk, &event->head);
    case TAPE_SYNC_END:
        return end_sync(disk, event);
    case TAPE_KILL:
        forget_syncs(disk);
        return NULL;
    case TAPE_SYNC_RANGE:
    case TAPE_SEND:
    case TAPE_POST:
    case TAPE_START:
    case TAPE_TYPE_END:
        return NULL;
    }
    return NULL;
}

bool disk_is_meta_write(const struct tape_event *event)
{
    const uint64_t page_len = (uint64_t)sysconf(_SC_PAGESIZE); /* LMDB takes the same */
    return event->head.type == TAPE_WRITE && event->data && event->head.len < 512 &&
           event->head.offset < 2 * page_len && event->head.offset % page_len < 512 &&
           event->head.offset % page_len > 0;
}

bool disk_is_frame_write(const struct tape_event *event)
{
    static const uint8_t magic[] = "HFJ1";
    return event->head.type == TAPE_WRITE && event->data && event->head.data_len > 40 &&
           memcmp(event->data, magic, sizeof(magic) - 1) == 0;
}

/* ---- rebuilding ---- */

static void apply_torn(struct content *content, const struct change *change, struct prng *prng)
{
    for (uint64_t at = 0; at < change->len;) {
        uint64_t len = SECTOR_LEN - (change->offset + at) % SECTOR_LEN;
        if (len > change->len - at)
            len = change->len - at;
        if (prng_chance(prng, 50))
            content_write(content, change->offset + at, change->data ? change->data + at : NULL,
                          len);
        at += len;
    }
}

static void rebuild_shuffled(const struct file *file, bool is_torn, struct prng *prng,
                             struct content *content)
{
    const uint32_t count = file->pending_count;
    const uint32_t percent = (uint32_t)prng_below(prng, 3) * 35 + 15; /* 15, 50, 85 */
    uint32_t *order = calloc(count + 1, sizeof(*order));
    if (!order)
        abort();
    for (uint32_t i = 0; i < count; i++) {
        uint32_t other = (uint32_t)prng_below(prng, i + 1);
        order[i] = order[other];
        order[other] = i;
    }
    for (uint32_t i = 0; i < count; i++) {
        const struct change *change = &file->pending[order[i]];
        if (!prng_chance(prng, percent))
            continue;
        if (is_torn && !change->is_resize && prng_chance(prng, 70))
            apply_torn(content, change, prng);
        else
            apply_change(content, change);
    }
    free(order);
}

static void rebuild_lengths(const struct file *file, struct content *content)
{
    for (uint32_t i = 0; i < file->pending_count; i++) {
        const struct change *change = &file->pending[i];
        uint64_t len = change->is_resize ? change->len : change->offset + change->len;
        if (change->is_resize || len > content->len)
            content_resize(content, len);
    }
}

static void rebuild_file(const struct file *file, enum disk_variant variant, struct prng *prng,
                         struct content *ret)
{
    const uint32_t count = file->pending_count;
    content_copy(&file->certain, ret);
    switch (variant) {
    case DISK_ALL_KEPT:
    case DISK_NAMES_DROPPED:
        for (uint32_t i = 0; i < count; i++)
            apply_change(ret, &file->pending[i]);
        break;
    case DISK_LENGTHS_KEPT:
        rebuild_lengths(file, ret);
        break;
    case DISK_LAST_KEPT:
        if (count > 0)
            apply_change(ret, &file->pending[count - 1]);
        break;
    case DISK_FIRST_DROPPED:
        for (uint32_t i = 1; i < count; i++)
            apply_change(ret, &file->pending[i]);
        break;
    case DISK_SHUFFLED:
    case DISK_SHUFFLED_AGAIN:
        rebuild_shuffled(file, false, prng, ret);
        break;
    case DISK_TORN:
    case DISK_TORN_AGAIN:
        rebuild_shuffled(file, true, prng, ret);
        break;
    case DISK_ALL_DROPPED:
    case DISK_NAMES_KEPT:
    case DISK_VARIANTS:
        break;
    }
}

void disk_rebuild(const struct disk *disk, enum disk_variant variant, uint64_t seed,
                  struct image *ret)
{
    struct prng prng = {seed};
    struct names names = disk->certain;
    const bool is_seeded = variant >= DISK_SHUFFLED;
    const bool drops_names = variant == DISK_ALL_DROPPED || variant == DISK_NAMES_DROPPED;
    *ret = (struct image){0};
    ret->has_directory = disk->is_certain ||
                         (disk->is_made && !drops_names && (!is_seeded || prng_chance(&prng, 50)));
    if (!ret->has_directory)
        return;
    for (uint32_t i = 0; i < disk->pending_count && !drops_names; i++)
        if (!is_seeded || prng_chance(&prng, 50))
            apply_name(&names, &disk->pending[i]);
    for (uint32_t i = 0; i < names.count; i++) {
        struct image_file *file = &ret->files[ret->count++];
        snprintf(file->name, sizeof(file->name), "%s", names.at[i].text);
        rebuild_file(&disk->files[names.at[i].file], variant, &prng, &file->content);
    }
}
