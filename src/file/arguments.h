/*
 * arguments.h -- the arguments of a call: what they say, how long its result may be, and how they
 * become the call's own when it is executed later.
 */
#ifndef FILE_ARGUMENTS_H
#define FILE_ARGUMENTS_H

#include "file/call.h"

/* Views of the request, of NFS or MOUNT. False: they mean nothing. */
bool arguments_decode(const struct job_request *request, struct nfs_args *ret_args,
                      struct bytes *ret_path);
/* Bytes that the result has at most, behind its head. */
uint32_t arguments_payload(const struct job_request *request, const struct nfs_args *args);
/* They outlive submit: copied, or with the memory that they lie in, if that was lent. False: there
 * is no room for that. */
__attribute__((warn_unused_result)) bool arguments_keep(struct call *call,
                                                        const struct job_request *request);

#endif
