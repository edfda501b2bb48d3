/*
 * handle.c -- see handle.h.
 */
#include "file/handle.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>

enum {
    HEAD_LEN = 8,
    MAC_LEN = 8,
    /* While the inode of a handle that is stale is being made into another file, the kernel may say
     * that there is no memory (ext4). */
    TRIES_MAX = 16,
};

/* The kernel's struct with room behind it. */
union kernel_handle {
    struct file_handle handle;
    uint8_t room[sizeof(struct file_handle) + HANDLE_OBJECT_MAX];
};

static int object_of(int fd, const char *name, int flags, struct handle_object *ret,
                     int *ret_mount_id)
{
    union kernel_handle kernel;
    kernel.handle.handle_bytes = HANDLE_OBJECT_MAX;
    if (name_to_handle_at(fd, name, &kernel.handle, ret_mount_id, flags) != 0)
        return -errno;
    if (kernel.handle.handle_bytes > HANDLE_OBJECT_MAX || kernel.handle.handle_type < 0 ||
        kernel.handle.handle_type > UINT8_MAX)
        return -EOVERFLOW;
    *ret = (struct handle_object){.type = (uint8_t)kernel.handle.handle_type,
                                  .len = (uint8_t)kernel.handle.handle_bytes};
    memcpy(ret->bytes, kernel.room + offsetof(struct file_handle, f_handle), ret->len);
    return 0;
}

int handle_object_of(int fd, struct handle_object *ret)
{
    int ignored;
    return object_of(fd, "", AT_EMPTY_PATH, ret, &ignored);
}

int handle_object_at(int directory_fd, const char *name, struct handle_object *ret,
                     int *ret_mount_id)
{
    return object_of(directory_fd, name, 0, ret, ret_mount_id);
}

static uint32_t padded(uint32_t len)
{
    return (len + 3) & ~3u;
}

void handle_make(const struct mac_key *key, uint32_t export_id, const struct handle_object *object,
                 struct nfs_fh *ret)
{
    uint32_t len = HEAD_LEN + padded(object->len);
    memset(ret->data, 0, len);
    ret->data[0] = HANDLE_VERSION;
    ret->data[1] = object->type;
    ret->data[2] = object->len;
    store_be32(ret->data + 4, export_id);
    memcpy(ret->data + HEAD_LEN, object->bytes, object->len);
    store_be64(ret->data + len, mac_of(key, (struct bytes){ret->data, len}));
    ret->len = len + MAC_LEN;
}

bool handle_read(const struct mac_key *key, struct bytes fh, uint32_t *ret_export_id,
                 struct handle_object *ret)
{
    if (fh.len < HEAD_LEN + MAC_LEN || fh.at[0] != HANDLE_VERSION || fh.at[2] > HANDLE_OBJECT_MAX ||
        fh.len != HEAD_LEN + padded(fh.at[2]) + MAC_LEN)
        return false;
    uint32_t len = fh.len - MAC_LEN;
    if (mac_of(key, (struct bytes){fh.at, len}) != load_be64(fh.at + len))
        return false;
    *ret_export_id = load_be32(fh.at + 4);
    *ret = (struct handle_object){.type = fh.at[1], .len = fh.at[2]};
    memcpy(ret->bytes, fh.at + HEAD_LEN, ret->len);
    return true;
}

int handle_open(int root_fd, const struct handle_object *object)
{
    union kernel_handle kernel;
    kernel.handle.handle_bytes = object->len;
    kernel.handle.handle_type = object->type;
    memcpy(kernel.room + offsetof(struct file_handle, f_handle), object->bytes, object->len);
    for (int tries = 1;; tries++) {
        int fd = open_by_handle_at(root_fd, &kernel.handle, O_PATH | O_CLOEXEC | O_NOFOLLOW);
        if (fd >= 0)
            return fd;
        if (errno != ENOMEM || tries == TRIES_MAX)
            return -errno;
        (void)sched_yield();
    }
}
