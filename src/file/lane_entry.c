/*
 * lane_entry.c -- a call enters the lane of its file system, if that has not too much already.
 *
 * One of several file systems has at most as much as is left for the others: the first that hangs
 * has half of all calls and bytes, a second one half of the rest.
 */
#include "base/check.h"
#include "base/minmax.h"
#include "file/service.h"

struct lane *lane_of_call(struct call *call)
{
    struct handle_object object;
    if (call->program == MOUNT_PROGRAM)
        call->export = op_mount_export(call);
    else if (call->export == NULL && resolve_export(call, call->args.fh, &object) != NFS_OK)
        call->export = NULL;
    return call->export != NULL ? call->export->lane : &call->service->common;
}

/* One of several file systems has at most as much as is left for the others. */
static bool has_room(const struct file_service *service, const struct lane *lane)
{
    const struct call_memory *memory = &service->memory;
    if (lane == &service->common || !atomic_load(&service->is_shared))
        return true;
    return !atomic_load(&lane->is_stuck) &&
           lane->call_count < memory->calls_max - min_u32(memory->calls, memory->calls_max) &&
           lane->bytes < memory->bytes_max - min_u64(memory->bytes, memory->bytes_max);
}

bool lane_enter(struct file_service *service, struct call *call)
{
    struct lane *lane = lane_of_call(call);
    if (!has_room(service, lane))
        return false;
    call->lane = lane;
    lane->call_count++;
    lane->bytes += call->memory_len;
    return true;
}

void lane_leave(const struct call *call)
{
    if (call->lane == NULL)
        return;
    CHECK(call->lane->call_count > 0);
    call->lane->call_count--;
    call->lane->bytes -= call->memory_len;
}
