/*
 * enroll.c -- registers many hosts, each from its own address.
 *
 * usage: enroll PORT FIRST COUNT
 *
 * COUNT addresses from FIRST on call SM_MON over UDP, each with its address as my_name, a callback
 * to NLM's SM_NOTIFY procedure, and the address as the first bytes of its priv. They come in waves,
 * because a socket for each of them would be too many. Exit 1 unless every answer says STAT_SUCC.
 */
#include "peer/load.h"
#include "peer/peer_nsm.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WAVE        512
#define PATIENCE_NS UINT64_C(20000000000)

struct enrolment {
    uint32_t accepted, answered;
};

static void on_answer(void *context, uint32_t link, uint64_t tag, const struct packet_reply *reply)
{
    struct enrolment *enrolment = context;
    uint32_t res, state;
    (void)link;
    enrolment->answered++;
    if (peer_nsm_get_stat_res(reply, &res, &state) && res == PEER_NSM_STAT_SUCC)
        enrolment->accepted++;
    else if (enrolment->answered == enrolment->accepted + 1)
        fprintf(stderr, "enroll: host %llu was refused: %s\n", (unsigned long long)tag,
                packet_reply_text(reply));
}

static bool post(struct load *load, uint16_t port, uint32_t host)
{
    static struct packet call;
    char name[INET_ADDRSTRLEN];
    struct in_addr address = {htonl(host)};
    uint8_t priv[PEER_NSM_PRIV_LEN] = {0};
    struct dial_route route = {.is_udp = true,
                               .server = dial_endpoint_v4(INADDR_LOOPBACK, port),
                               .source = dial_endpoint_v4(host, 0)};
    inet_ntop(AF_INET, &address, name, sizeof(name));
    memcpy(priv, &address, sizeof(address));
    struct peer_nsm_id id = {"bench-server", name, 100021, 4, 16};
    peer_nsm_put_mon(&call, 0, &id, priv);
    int link = load_open(load, &route);
    return link >= 0 && load_post(load, (uint32_t)link, host, &call);
}

static bool enroll_wave(uint16_t port, uint32_t first, uint32_t count)
{
    struct enrolment enrolment = {0};
    struct load *load = load_new(count, on_answer, &enrolment);
    bool is_posted = load != NULL;
    for (uint32_t i = 0; is_posted && i < count; i++)
        is_posted = post(load, port, first + i);
    uint64_t end_ns = dial_now_ns() + PATIENCE_NS;
    while (is_posted && enrolment.answered < count && dial_now_ns() < end_ns)
        load_turn(load, 20);
    load_free(load);
    return is_posted && enrolment.accepted == count;
}

int main(int argument_count, char **arguments)
{
    struct in_addr address;
    if (argument_count != 4 || inet_pton(AF_INET, arguments[2], &address) != 1) {
        fprintf(stderr, "usage: enroll PORT FIRST-ADDRESS COUNT\n");
        return 2;
    }
    uint16_t port = (uint16_t)strtoul(arguments[1], NULL, 10);
    uint32_t first = ntohl(address.s_addr), count = (uint32_t)strtoul(arguments[3], NULL, 10);
    for (uint32_t done = 0; done < count; done += WAVE) {
        uint32_t wave = count - done < WAVE ? count - done : WAVE;
        if (!enroll_wave(port, first + done, wave)) {
            fprintf(stderr, "enroll: not all of the hosts %u to %u were registered\n", done,
                    done + wave - 1);
            return 1;
        }
    }
    printf("enroll: %u hosts registered\n", count);
    return 0;
}
