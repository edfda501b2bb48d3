/*
 * host.h -- does a Host header name us?
 *
 * A browser on this machine can be lured into asking us under a name that its attacker controls
 * (DNS rebinding), so a request over TCP is answered only when its Host is a name or an address of
 * ours.
 */
#ifndef ADMIN_HOST_H
#define ADMIN_HOST_H

#include "base/address.h"

/* "0.0.0.0", "::": every address of the machine. */
bool host_is_any(const struct address *address);

/* `at` is where we listen; `own_name` is this machine's, "" when it is not to be accepted. */
bool host_is_ours(const char *header, const struct address *at, const char *own_name);

#endif
