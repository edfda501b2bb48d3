/*
 * lock_book.c -- see lock_book.h.
 */
#include "lock_book.h"

#include <string.h>
#include <time.h>

#define PATIENCE_MS 60000
#define PATIENCE_NS UINT64_C(60000000000)

static struct lock_call call_of(const struct lock_book *book, uint32_t file,
                                enum peer_nlm_procedure procedure)
{
    return (struct lock_call){.procedure = procedure,
                              .name = book->name,
                              .svid = 1,
                              .file = file,
                              .offset = 100,
                              .len = 10,
                              .exclusive = true,
                              .state = 3};
}

static int ask(uint32_t source, const struct lock_book_server *server, const struct lock_call *call,
               uint32_t timeout_ms)
{
    static struct packet packet, answer;
    struct packet_reply reply;
    struct dial_route route = {.server = dial_endpoint_v4(server->address, server->port),
                               .source = dial_endpoint_v4(source, 0)};
    lock_call_put(&packet, call);
    int result = dial_call(&route, &packet, timeout_ms, &answer, &reply);
    return result < 0 ? result : lock_call_status(call, &reply, NULL);
}

/* What an answer says of a file; none leaves it in doubt. */
static bool note(struct lock_book *book, uint32_t file, enum lock_book_state next, int status)
{
    if (status == PEER_NLM_IS_GRACE)
        return true;
    HARNESS_EXPECT(status < 0 || status == PEER_NLM_IS_GRANTED, "file %u of %s: %s", file,
                   book->name, lock_call_text(status));
    enum lock_book_state known = status == PEER_NLM_IS_GRANTED ? next : LOCK_BOOK_DOUBT;
    book->states[file] = (uint8_t)known;
    book->granted += status == PEER_NLM_IS_GRANTED && next == LOCK_BOOK_HELD;
    book->unanswered += status < 0;
    return status >= 0;
}

bool lock_book_step(struct lock_book *book, const struct lock_book_server *server,
                    uint32_t timeout_ms)
{
    uint32_t file = (uint32_t)(harness_random(&book->seed) % LOCK_BOOK_FILES);
    while (book->states[file] == LOCK_BOOK_DOUBT)
        file = (file + 1) % LOCK_BOOK_FILES; /* few are: each has cost a timeout */
    bool is_held = book->states[file] == LOCK_BOOK_HELD;
    struct lock_call call = call_of(book, file, is_held ? PEER_NLM_UNLOCK : PEER_NLM_LOCK);
    int status = ask(book->source, server, &call, timeout_ms);
    return note(book, file, is_held ? LOCK_BOOK_GONE : LOCK_BOOK_HELD, status);
}

uint32_t lock_book_held(const struct lock_book *book)
{
    uint32_t held = 0;
    for (uint32_t file = 0; file < LOCK_BOOK_FILES; file++)
        held += book->states[file] == LOCK_BOOK_HELD;
    return held;
}

static const char *text_of(int status)
{
    return status < 0 ? strerror(-status) : lock_call_text(status);
}

void lock_book_demand_refused(const struct lock_book *book, const struct lock_book_server *server)
{
    for (uint32_t file = 0; file < LOCK_BOOK_FILES; file++) {
        struct lock_call lock = call_of(book, file, PEER_NLM_LOCK);
        lock.name = "somebody";
        lock.svid = 2;
        if (book->states[file] != LOCK_BOOK_HELD)
            continue;
        int status = ask(book->other_source, server, &lock, PATIENCE_MS);
        HARNESS_EXPECT(status == PEER_NLM_IS_DENIED || status == PEER_NLM_IS_GRACE,
                       "somebody else asks for file %u of %s: %s", file, book->name,
                       text_of(status));
    }
}

static void give_back(struct lock_book *book, const struct lock_book_server *server, uint32_t file)
{
    struct lock_call unlock = call_of(book, file, PEER_NLM_UNLOCK);
    uint64_t deadline_ns = dial_now_ns() + PATIENCE_NS;
    int status = PEER_NLM_IS_GRACE;
    while (status == PEER_NLM_IS_GRACE && dial_now_ns() < deadline_ns)
        status = ask(book->source, server, &unlock, PATIENCE_MS);
    HARNESS_EXPECT(status == PEER_NLM_IS_GRANTED, "file %u of %s cannot be given back: %s", file,
                   book->name, text_of(status));
    book->states[file] = LOCK_BOOK_GONE;
}

void lock_book_verify(struct lock_book *book, const struct lock_book_server *server)
{
    for (uint32_t file = 0; file < LOCK_BOOK_FILES; file++) {
        struct lock_call reclaim = call_of(book, file, PEER_NLM_LOCK);
        reclaim.reclaim = true;
        if (book->states[file] == LOCK_BOOK_GONE)
            continue;
        int status = ask(book->source, server, &reclaim, PATIENCE_MS);
        if (book->states[file] == LOCK_BOOK_DOUBT)
            give_back(book, server, file);
        else
            HARNESS_EXPECT(status == PEER_NLM_IS_GRANTED, "file %u of %s is lost: %s", file,
                           book->name, text_of(status));
    }
    lock_book_demand_refused(book, server);
}
