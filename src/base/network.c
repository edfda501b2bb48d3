/*
 * network.c -- see network.h.
 */
#include "base/network.h"

#include <string.h>

static uint32_t bits_of(const struct address *address)
{
    return address->family == 4 ? 32 : 128;
}

/* A length, or for IPv4 a netmask: ones first, then zeros. */
static bool parse_length(const char *text, const struct address *address, uint32_t *ret)
{
    uint32_t bits = bits_of(address), number = 0;
    struct address mask;
    if (address->family == 4 && address_parse(bytes_of_text(text), &mask) && mask.family == 4) {
        uint32_t word = load_be32(mask.bytes);
        uint32_t len = word == 0 ? 0 : 32 - (uint32_t)__builtin_ctz(word);
        *ret = len;
        return len == 0 || word == UINT32_MAX << (32 - len);
    }
    const char *at = text;
    for (; *at >= '0' && *at <= '9' && number <= bits; at++)
        number = number * 10 + (uint32_t)(*at - '0');
    *ret = number;
    return at != text && *at == 0 && number <= bits;
}

enum network_result network_parse(const char *text, struct network *ret)
{
    const char *slash = strchr(text, '/');
    size_t len = slash != NULL ? (size_t)(slash - text) : strlen(text);
    struct network network;
    if (!address_parse((struct bytes){(const uint8_t *)text, (uint32_t)len}, &network.address))
        return NETWORK_BAD_ADDRESS;
    network.prefix_len = bits_of(&network.address);
    if (slash != NULL && !parse_length(slash + 1, &network.address, &network.prefix_len))
        return NETWORK_BAD_LENGTH;
    *ret = network;
    return NETWORK_OK;
}

bool network_is_address(const struct network *network)
{
    return network->prefix_len == bits_of(&network->address);
}

bool network_has(const struct network *network, const struct address *address)
{
    if (network->address.family != address->family)
        return false;
    uint32_t whole = network->prefix_len / 8, rest = network->prefix_len % 8;
    if (memcmp(network->address.bytes, address->bytes, whole) != 0)
        return false;
    return rest == 0 || (network->address.bytes[whole] ^ address->bytes[whole]) >> (8 - rest) == 0;
}
