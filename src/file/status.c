/*
 * status.c -- what operators see of the file service.
 */
#include "file/service.h"

#include <stdio.h>
#include <unistd.h>

void file_get_status(struct file_service *service, struct file_status *ret)
{
    *ret = (struct file_status){
        .exports = service->exports->count,
        .open_files = descriptor_count(service->descriptors),
        .calls = service->memory.calls,
        .queued = pool_waiting(service->pool),
        .mounts = mounts_count(service->mounts, NULL),
        .bytes = service->memory.bytes,
        .refused = service->refused,
        .sync_errors = atomic_load(&service->errors),
    };
}

bool file_get_export(struct file_service *service, uint32_t index, struct file_export_view *ret)
{
    if (index >= service->exports->count)
        return false;
    const struct export *export = &service->exports->exports[index];
    *ret = (struct file_export_view){
        .directory = export->directory,
        .fsid = export->id,
        .open_files = descriptor_count_of(service->descriptors, export->id),
        .mounts = mounts_count(service->mounts, export->directory),
        .client_count = export->rule_count,
    };
    return true;
}

bool file_get_client(struct file_service *service, uint32_t index, uint32_t client,
                     const char **ret_name, const struct export_rights **ret_rights)
{
    if (index >= service->exports->count || client >= service->exports->exports[index].rule_count)
        return false;
    const struct export_client *found = &service->exports->exports[index].rules[client].client;
    *ret_name = found->name;
    *ret_rights = &found->rights;
    return true;
}

bool file_get_export_id(const struct file_service *service, struct bytes fh, uint32_t *ret)
{
    struct handle_object object;
    return handle_read(&service->options.key, fh, ret, &object);
}

bool file_get_path(struct file_service *service, struct bytes fh, struct text *ret)
{
    uint32_t export_id;
    struct handle_object object;
    if (!handle_read(&service->options.key, fh, &export_id, &object))
        return false;
    const struct export *export = export_table_find(service->exports, export_id);
    struct descriptor *found =
        export == NULL ? NULL : descriptor_find(service->descriptors, export, &object);
    if (found == NULL)
        return false;
    char link[32], path[4096];
    (void)snprintf(link, sizeof link, "/proc/self/fd/%d", found->path_fd);
    ssize_t len = readlink(link, path, sizeof path);
    descriptor_release(service->descriptors, found);
    if (len <= 0 || len == sizeof path)
        return false;
    text_add_escaped(ret, (struct bytes){(const uint8_t *)path, (uint32_t)len}, UINT32_MAX);
    return true;
}
