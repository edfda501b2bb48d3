/*
 * status.c -- what operators see of the file service.
 */
#include "file/service.h"

#include <limits.h>

void file_get_status(struct file_service *service, struct file_status *ret)
{
    *ret = (struct file_status){
        .exports = service->exports->count,
        .open_files = descriptor_count(service->descriptors),
        .mirrored = service->ofd != NULL ? ofd_count(service->ofd) : 0,
        .calls = service->memory.calls,
        .queued = pool_waiting(service->pool),
        .mounts = mounts_count(service->mounts, NULL),
        .bytes = service->memory.bytes,
        .open_max = service->options.limits.files_max,
        .calls_max = service->options.limits.calls_max,
        .bytes_max = service->options.limits.bytes_max,
        .refused = atomic_load(&service->refused),
        .sync_errors = atomic_load(&service->errors),
        .sync_error_age_ns = file_error_age_ns(service),
        .repeats = atomic_load(&service->repeats),
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
        .is_stuck = atomic_load(&export->lane->is_stuck),
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

/* A file that is open already has its name at once. */
enum path_state file_get_path(struct file_service *service, struct bytes fh, struct bytes *ret)
{
    static char shown[PATH_MAX]; /* the server's thread alone asks */
    uint32_t export_id;
    struct handle_object object;
    if (!handle_read(&service->options.key, fh, &export_id, &object))
        return PATH_NONE;
    const struct export *export = export_table_find(service->exports, export_id);
    if (export == NULL)
        return PATH_NONE;
    struct descriptor *found = descriptor_find(service->descriptors, export, &object);
    bool is_known =
        found != NULL && paths_of_descriptor(found->path_fd, export, shown, sizeof shown, ret);
    if (found != NULL)
        descriptor_release(service->descriptors, found);
    return is_known ? PATH_KNOWN
                    : paths_get(service->paths, service->exports, export_id, &object, ret);
}
