/*
 * arguments.c -- see arguments.h.
 */
#include "file/arguments.h"

#include "base/check.h"
#include "base/minmax.h"
#include "file/inlet.h"
#include "file/service.h"

enum {
    LISTING_MAX = 131072, /* entries in one reply */
    LINK_MAX_LEN = 4096,
    MOUNT_LIST_MAX = 65536,
    MOUNT_LIST_UDP_MAX = 32768,
};

bool arguments_decode(const struct job_request *request, struct nfs_args *ret_args,
                      struct bytes *ret_path)
{
    struct xdr_in in = xdr_in_of(request->args);
    if (request->program == MOUNT_PROGRAM)
        return request->procedure < MOUNT_PROCEDURE_COUNT &&
               mount_xdr_get_args(&in, (enum mount_procedure)request->procedure, ret_path);
    return request->procedure < NFS_PROCEDURE_COUNT &&
           nfs_args_get(&in, (enum nfs_procedure)request->procedure, ret_args);
}

uint32_t arguments_payload(const struct job_request *request, const struct nfs_args *args)
{
    if (request->program == MOUNT_PROGRAM)
        return request->procedure != MOUNT_DUMP && request->procedure != MOUNT_EXPORT ? 0
               : request->from->transport == TRANSPORT_UDP ? MOUNT_LIST_UDP_MAX
                                                           : MOUNT_LIST_MAX;
    switch (request->procedure) {
    case NFS_READ:
        return min_u32(args->count, NFS_DATA_MAX);
    case NFS_READLINK:
        return LINK_MAX_LEN;
    case NFS_READDIR:
    case NFS_READDIRPLUS:
        return min_u32(args->count, LISTING_MAX);
    default:
        return 0;
    }
}

bool arguments_keep(struct call *call, const struct job_request *request)
{
    if (request->lent != NULL) {
        struct job_inlet *inlet = request->lent->inlet;
        if (!call_memory_keep(&call->service->memory, call, request->lent))
            return false;
        inlet_take(call, inlet);
        return true;
    }
    uint8_t *copy = call_payload(call) + call->payload_max + 8;
    memcpy(copy, request->args.at, request->args.len);
    struct job_request own = *request;
    own.args = (struct bytes){copy, request->args.len};
    call->body = own.args;
    CHECK(arguments_decode(&own, &call->args, &call->path));
    return true;
}
