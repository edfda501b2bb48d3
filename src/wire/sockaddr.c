/*
 * sockaddr.c -- conversions; see sockaddr.h.
 */
#include "wire/sockaddr.h"

#include <net/if.h>
#include <netinet/in.h>

_Static_assert(IF_NAMESIZE == ADDRESS_ZONE_LEN_MAX + 1, "every name of an interface fits");

struct address sockaddr_v6(const uint8_t bytes[static 16], uint32_t index)
{
    char name[IF_NAMESIZE];
    struct address address = address_v6(bytes, NULL);
    if (index == 0 || !address_is_link_local(&address))
        return address;
    if (if_indextoname(index, name) == NULL || !address_is_zone(bytes_of_text(name)))
        return (struct address){0};
    return address_v6(bytes, name);
}

struct address sockaddr_bare(const struct sockaddr *from)
{
    struct sockaddr_in6 in6;
    if (from->sa_family != AF_INET6)
        return (struct address){0};
    memcpy(&in6, from, sizeof in6);
    return address_v6(in6.sin6_addr.s6_addr, NULL);
}

uint32_t sockaddr_index(const struct address *address)
{
    return address->zone[0] == '\0' ? 0 : if_nametoindex(address->zone);
}

/* 0: the text is no number that an interface can have. */
static uint32_t number_of(const char *text)
{
    uint64_t number = 0;
    for (; *text != '\0'; text++) {
        if (*text < '0' || *text > '9' || number > UINT32_MAX)
            return 0;
        number = number * 10 + (uint64_t)(*text - '0');
    }
    return number <= UINT32_MAX ? (uint32_t)number : 0;
}

struct address sockaddr_typed(const struct address *address)
{
    uint32_t index = sockaddr_index(address) == 0 ? number_of(address->zone) : 0;
    struct address named = index == 0 ? *address : sockaddr_v6(address->bytes, index);
    return named.family != 0 ? named : *address;
}

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
        return sockaddr_v6(in6.sin6_addr.s6_addr, in6.sin6_scope_id);
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
    struct sockaddr_in6 in6 = {.sin6_family = AF_INET6,
                               .sin6_port = htons(port),
                               .sin6_scope_id = sockaddr_index(address)};
    memcpy(&in6.sin6_addr, address->bytes, 16);
    memcpy(ret, &in6, sizeof in6);
    return sizeof in6;
}
