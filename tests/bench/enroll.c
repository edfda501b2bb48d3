/*
 * enroll.c -- calls of many hosts, each from its own address or about it.
 *
 * usage: enroll PORT FIRST COUNT [watch|reboot]
 *
 * COUNT addresses from FIRST on call SM_MON over UDP, each with its address as my_name, a callback
 * to NLM's SM_NOTIFY procedure, and the address as the first bytes of its priv. With `watch` it is
 * the lock manager of this machine that registers them: from 127.0.0.1, with their address as
 * mon_name. With `reboot` each of them sends SM_NOTIFY. They come in waves, because a socket for
 * each of them would be too many. Exit 1 unless every answer says STAT_SUCC, or that there is one.
 */
#include "peer/load.h"
#include "peer/peer_nsm.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WAVE        512
#define PATIENCE_NS UINT64_C(20000000000)

#define REBOOT_STATE 7

enum kind { KIND_REGISTER, KIND_WATCH, KIND_REBOOT };

struct enrolment {
    enum kind kind;
    uint32_t accepted, answered;
};

static void on_answer(void *context, uint32_t link, uint64_t tag, const struct packet_reply *reply)
{
    struct enrolment *enrolment = context;
    uint32_t res, state;
    (void)link;
    enrolment->answered++;
    if (enrolment->kind == KIND_REBOOT
            ? reply->accepted && reply->status == PACKET_SUCCESS
            : peer_nsm_get_stat_res(reply, &res, &state) && res == PEER_NSM_STAT_SUCC)
        enrolment->accepted++;
    else if (enrolment->answered == enrolment->accepted + 1)
        fprintf(stderr, "enroll: host %llu was refused: %s\n", (unsigned long long)tag,
                packet_reply_text(reply));
}

static bool post(struct load *load, enum kind kind, uint16_t port, uint32_t host)
{
    static struct packet call;
    char name[INET_ADDRSTRLEN];
    struct in_addr address = {htonl(host)};
    uint8_t priv[PEER_NSM_PRIV_LEN] = {0};
    struct dial_route route = {
        .is_udp = true,
        .server = dial_endpoint_v4(INADDR_LOOPBACK, port),
        .source = dial_endpoint_v4(kind == KIND_WATCH ? INADDR_LOOPBACK : host, 0)};
    inet_ntop(AF_INET, &address, name, sizeof(name));
    memcpy(priv, &address, sizeof(address));
    struct peer_nsm_id registrant = {"bench-server", name, 100021, 4, 16};
    struct peer_nsm_id watched = {name, "server.bench", 100021, 3, 16};
    if (kind == KIND_REBOOT)
        peer_nsm_put_notify(&call, 0, name, REBOOT_STATE);
    else
        peer_nsm_put_mon(&call, 0, kind == KIND_WATCH ? &watched : &registrant, priv);
    int link = load_open(load, &route);
    return link >= 0 && load_post(load, (uint32_t)link, host, &call);
}

static bool enroll_wave(enum kind kind, uint16_t port, uint32_t first, uint32_t count)
{
    struct enrolment enrolment = {.kind = kind};
    struct load *load = load_new(count, on_answer, &enrolment);
    bool is_posted = load != NULL;
    for (uint32_t i = 0; is_posted && i < count; i++)
        is_posted = post(load, kind, port, first + i);
    uint64_t end_ns = dial_now_ns() + PATIENCE_NS;
    while (is_posted && enrolment.answered < count && dial_now_ns() < end_ns)
        load_turn(load, 20);
    load_free(load);
    return is_posted && enrolment.accepted == count;
}

int main(int argument_count, char **arguments)
{
    struct in_addr address;
    const char *word = argument_count > 4 ? arguments[4] : "";
    enum kind kind = strcmp(word, "watch") == 0    ? KIND_WATCH
                     : strcmp(word, "reboot") == 0 ? KIND_REBOOT
                                                   : KIND_REGISTER;
    if (argument_count < 4 || argument_count > 5 || (*word != '\0' && kind == KIND_REGISTER) ||
        inet_pton(AF_INET, arguments[2], &address) != 1) {
        fprintf(stderr, "usage: enroll PORT FIRST-ADDRESS COUNT [watch|reboot]\n");
        return 2;
    }
    uint16_t port = (uint16_t)strtoul(arguments[1], NULL, 10);
    uint32_t first = ntohl(address.s_addr), count = (uint32_t)strtoul(arguments[3], NULL, 10);
    for (uint32_t done = 0; done < count; done += WAVE) {
        uint32_t wave = count - done < WAVE ? count - done : WAVE;
        if (!enroll_wave(kind, port, first + done, wave)) {
            fprintf(stderr, "enroll: not all calls of the hosts %u to %u were answered\n", done,
                    done + wave - 1);
            return 1;
        }
    }
    printf("enroll: %u hosts registered\n", count);
    return 0;
}
