/*
 * host.h -- does a Host header name us?
 *
 * A browser on this machine can be tricked into querying us under a name that an attacker controls
 * (DNS rebinding), so a request over TCP is served only if its Host is one of our names or
 * addresses.
 */
#ifndef ADMIN_HOST_H
#define ADMIN_HOST_H

#include "base/address.h"

/* "0.0.0.0", "::": every address of the machine. */
bool host_is_any(const struct address *address);

/* `at` is where we listen; `own_name` is this machine's, "" if not accepted. */
bool host_is_ours(const char *header, const struct address *at, const char *own_name);

#endif
