/*
 * datagram.c -- message headers and IP_PKTINFO; see datagram.h.
 */
#include "wire/datagram.h"

#include "wire/sockaddr.h"

void datagram_prepare(struct mmsghdr *message, struct datagram *datagram, uint8_t *bytes,
                      size_t len)
{
    datagram->content = (struct iovec){bytes, len};
    message->msg_hdr = (struct msghdr){
        .msg_name = &datagram->peer,
        .msg_namelen = sizeof datagram->peer,
        .msg_iov = &datagram->content,
        .msg_iovlen = 1,
        .msg_control = datagram->control,
        .msg_controllen = sizeof datagram->control,
    };
}

/* The one control message of a datagram that is sent. */
static void put_control(struct msghdr *message, int level, int type, const void *info, size_t len)
{
    struct cmsghdr *c = message->msg_control;
    message->msg_controllen = CMSG_SPACE(len);
    memset(c, 0, message->msg_controllen);
    *c = (struct cmsghdr){CMSG_LEN(len), level, type};
    memcpy(CMSG_DATA(c), info, len);
}

void datagram_send_to(struct mmsghdr *message, struct datagram *datagram, const struct address *to,
                      uint16_t port, const struct address *local)
{
    struct msghdr *header = &message->msg_hdr;
    header->msg_namelen = sockaddr_of(to, port, &datagram->peer);
    if (local->family == 4) {
        struct in_pktinfo info = {0};
        memcpy(&info.ipi_spec_dst, local->bytes, 4);
        put_control(header, IPPROTO_IP, IP_PKTINFO, &info, sizeof info);
    } else if (local->family == 6) {
        struct in6_pktinfo info = {.ipi6_ifindex = sockaddr_index(local)};
        memcpy(&info.ipi6_addr, local->bytes, 16);
        put_control(header, IPPROTO_IPV6, IPV6_PKTINFO, &info, sizeof info);
    } else {
        header->msg_control = NULL;
        header->msg_controllen = 0;
    }
}

struct address datagram_asked(const struct mmsghdr *message)
{
    struct msghdr header = message->msg_hdr; /* CMSG_NXTHDR takes no const one */
    for (struct cmsghdr *c = CMSG_FIRSTHDR(&header); c != NULL; c = CMSG_NXTHDR(&header, c)) {
        if (c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_PKTINFO) {
            struct in_pktinfo info;
            uint8_t bytes[4];
            memcpy(&info, CMSG_DATA(c), sizeof info);
            memcpy(bytes, &info.ipi_spec_dst, sizeof bytes);
            return address_v4(bytes);
        }
        if (c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_PKTINFO) {
            struct in6_pktinfo info;
            memcpy(&info, CMSG_DATA(c), sizeof info);
            return sockaddr_v6(info.ipi6_addr.s6_addr, info.ipi6_ifindex);
        }
    }
    return (struct address){0};
}
