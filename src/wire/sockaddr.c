/*
 * sockaddr.c -- conversions; see sockaddr.h.
 */
#include "wire/sockaddr.h"

#include <netinet/in.h>

struct address sockaddr_address(const struct sockaddr *from, uint16_t *ret_port)
{
    if (from->sa_family == AF_INET) {
        struct sockaddr_in in;
        memcpy(&in, from, sizeof in);
        uint8_t bytes[4];
        memcpy(bytes, &in.sin_addr, sizeof bytes);
        *ret_port = ntohs(in.sin_port);
        return address_v4(bytes);
    }
    if (from->sa_family == AF_INET6) {
        struct sockaddr_in6 in6;
        memcpy(&in6, from, sizeof in6);
        *ret_port = ntohs(in6.sin6_port);
        return address_v6(in6.sin6_addr.s6_addr, in6.sin6_scope_id);
    }
    *ret_port = 0;
    return (struct address){0};
}

socklen_t sockaddr_of(const struct address *address, uint16_t port, struct sockaddr_storage *ret)
{
    *ret = (struct sockaddr_storage){0};
    if (address->family == 4) {
        struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons(port)};
        memcpy(&in.sin_addr, address->bytes, 4);
        memcpy(ret, &in, sizeof in);
        return sizeof in;
    }
    struct sockaddr_in6 in6 = {
        .sin6_family = AF_INET6, .sin6_port = htons(port), .sin6_scope_id = address->scope};
    memcpy(&in6.sin6_addr, address->bytes, 16);
    memcpy(ret, &in6, sizeof in6);
    return sizeof in6;
}
