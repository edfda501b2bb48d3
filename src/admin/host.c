/*
 * host.c -- which Host headers are accepted; see host.h.
 *
 * Rebinding needs a name, so only names that nobody else can own are accepted. An address cannot be
 * rebound; it must still be one of ours, as far as we know them.
 */
#include "admin/host.h"

bool host_is_any(const struct address *address)
{
    static const uint8_t zeros[16];
    return memcmp(address->bytes, zeros, sizeof zeros) == 0;
}

/* The host part of "name", "name:port", "1.2.3.4:port" or "[v6]:port"; the port may be any. */
static struct bytes host_of(const char *header)
{
    size_t len;
    if (header[0] == '[') {
        header++;
        len = strcspn(header, "]");
    } else {
        len = strcspn(header, ":");
    }
    return (struct bytes){(const uint8_t *)header, (uint32_t)len};
}

bool host_is_ours(const char *header, const struct address *at, const char *own_name)
{
    struct bytes host = host_of(header);
    struct address address;
    if (address_parse(host, &address))
        return address_is_loopback(&address) || address_equal(&address, at) || host_is_any(at);
    return bytes_equal_fold(host, bytes_of_text("localhost")) ||
           (own_name[0] != '\0' && bytes_equal_fold(host, bytes_of_text(own_name)));
}
