/*
 * resolver.c -- see resolver.h.
 */
#include "daemon/resolver.h"

#include "base/check.h"
#include "wire/sockaddr.h"

#include <stdlib.h>

struct question {
    uint64_t id;
    bool is_open;
    union {
        uv_req_t request;
        uv_getaddrinfo_t host;
        uv_getnameinfo_t address;
    };
};

struct resolver {
    uv_loop_t *loop;
    void *context;
    resolver_answer_fn on_answer; /* NULL: closed */
    uint32_t open_count, questions_max;
    struct question questions[];
};

struct resolver *resolver_new(uv_loop_t *loop, uint32_t questions_max, void *context,
                              resolver_answer_fn on_answer)
{
    struct resolver *resolver =
        calloc(1, sizeof *resolver + questions_max * sizeof resolver->questions[0]);
    if (resolver == NULL)
        return NULL;
    resolver->loop = loop;
    resolver->context = context;
    resolver->on_answer = on_answer;
    resolver->questions_max = questions_max;
    return resolver;
}

void resolver_free(struct resolver *resolver)
{
    free(resolver);
}

/* How many more queries fit now. */
static uint32_t room(const struct resolver *resolver)
{
    return resolver->questions_max - resolver->open_count;
}

uint32_t resolver_open_count(const struct resolver *resolver)
{
    return resolver->open_count;
}

static struct question *open_question(struct resolver *resolver, uint64_t id)
{
    CHECK(room(resolver) > 0 && resolver->on_answer != NULL);
    struct question *question = resolver->questions;
    while (question->is_open)
        question++;
    *question = (struct question){.id = id, .is_open = true};
    question->request.data = resolver;
    resolver->open_count++;
    return question;
}

static void close_question(struct resolver *resolver, struct question *question)
{
    question->is_open = false;
    resolver->open_count--;
}

/* The request of a question is inside it. */
static struct question *question_of(void *request)
{
    return (struct question *)(void *)((char *)request - offsetof(struct question, request));
}

static void end_question(struct question *question, const struct resolver_answer *answer)
{
    struct resolver *resolver = question->request.data;
    close_question(resolver, question);
    if (resolver->on_answer != NULL)
        resolver->on_answer(resolver->context, question->id, answer);
}

static void on_host(uv_getaddrinfo_t *request, int status, struct addrinfo *result)
{
    struct address addresses[RESOLVER_ADDRESSES_MAX];
    struct resolver_answer answer = {.addresses = addresses};
    const struct addrinfo *at = status == 0 ? result : NULL;
    if (at != NULL)
        answer.name = at->ai_canonname;
    for (; at != NULL && answer.address_count < RESOLVER_ADDRESSES_MAX; at = at->ai_next) {
        struct address address = {0};
        uint16_t port;
        if (at->ai_addr != NULL)
            address = sockaddr_address(at->ai_addr, &port);
        if (address.family != 0)
            addresses[answer.address_count++] = address;
    }
    end_question(question_of(request), &answer);
    uv_freeaddrinfo(result);
}

static void on_address(uv_getnameinfo_t *request, int status, const char *name, const char *service)
{
    (void)service;
    end_question(question_of(request),
                 &(struct resolver_answer){.name = status == 0 ? name : NULL});
}

bool resolver_ask_host(struct resolver *resolver, uint64_t id, struct bytes name)
{
    char text[NI_MAXHOST];
    const struct addrinfo hints = {.ai_flags = AI_CANONNAME, .ai_socktype = SOCK_DGRAM};
    if (name.len >= sizeof text)
        return false;
    memcpy(text, name.at, name.len);
    text[name.len] = '\0';
    struct question *question = open_question(resolver, id);
    if (uv_getaddrinfo(resolver->loop, &question->host, on_host, text, NULL, &hints) == 0)
        return true;
    close_question(resolver, question);
    return false;
}

bool resolver_ask_address(struct resolver *resolver, uint64_t id, const struct address *address)
{
    struct sockaddr_storage to;
    (void)sockaddr_of(address, 0, &to);
    struct question *question = open_question(resolver, id);
    if (uv_getnameinfo(resolver->loop, &question->address, on_address, (struct sockaddr *)&to,
                       NI_NAMEREQD) == 0)
        return true;
    close_question(resolver, question);
    return false;
}

bool resolver_close(struct resolver *resolver)
{
    bool is_idle = true;
    if (resolver == NULL)
        return true;
    resolver->on_answer = NULL;
    for (uint32_t i = 0; i < resolver->questions_max; i++)
        if (resolver->questions[i].is_open)
            is_idle &= uv_cancel(&resolver->questions[i].request) == 0;
    return is_idle;
}
