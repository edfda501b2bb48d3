/*
 * paging.h -- lists that are written while they are sent: {"clients": [...], "next": ...}.
 *
 * A page has at most `limit` rows (100 unless asked for, 1,000 at most). It is built in pieces as
 * large as a connection has room for, one piece per turn and connection, and each piece examines a
 * bounded number of slots: a list of a million locks delays nobody by more than that. While clients
 * call, pieces are short, and between two of them there is time for others (runner.h). A page that
 * finds few rows ends after some seconds with those, so that nobody waits for all of a long search.
 * `next` is the cursor of the next page, or null at the end; it stays valid while rows come and go.
 */
#ifndef ADMIN_PAGING_H
#define ADMIN_PAGING_H

#include "admin/exchange.h"
#include "admin/list_match.h"
#include "core/view.h"

#define PAGING_LIMIT_MAX 1000

struct list_rows;

/* Which clients to list; zeroed: all. Names as shown, ignoring case. */
struct paging_clients {
    const char *state;                            /* a constant; NULL: any */
    bool (*only)(const struct view_client *view); /* NULL: any */
    struct list_match words[LIST_WORDS_MAX];      /* each of them must match */
    uint32_t word_count;
    char protocol[RECORD_PROTOCOL_MAX + 1], name[RECORD_NAME_MAX + 1],
        mon_name[RECORD_NAME_MAX + 1];
    /* ?client: what people call one. */
    bool is_called;
    uint64_t called_id;            /* 0: it is no id, */
    struct address called_address; /* of no family: no address, */
    char called_name[RECORD_NAME_MAX + 1];
};

struct paging {
    const struct admin *admin;
    const char *name; /* of the list in the object */
    /* Writes the next row from *cursor on. False: the end, or the budget is used up, as *cursor
     * says. */
    bool (*next)(struct paging *paging, uint64_t *cursor, uint32_t *budget);
    /* Of a list whose cursors are its own; NULL: they are numbers. The first reads one, false: it
     * is none; the second writes all members behind the list. */
    bool (*read_cursor)(struct paging *paging, const char *text);
    void (*write_end)(struct paging *paging);
    /* What is wanted. */
    struct view_filter filter;
    uint8_t handle[RECORD_FH_MAX]; /* behind filter.fh */
    struct list_match match;
    uint64_t blocked_by; /* waiting requests: the id of the client that blocks them; 0: any */
    struct paging_clients clients;
    const struct list_rows *rows; /* of a list of clients (list_sort.h) */
    void *own;                    /* more that the row needs, of malloc; NULL: nothing */

    uint64_t cursor, first_cursor; /* the second: of the page */
    uint32_t limit, row_count;
    uint32_t unnamed_count;   /* rows left out because the name of the file is not known */
    uint64_t now_ns, wall_ns; /* when the piece began */
    uint64_t began_ns;        /* when the page did */
    struct writer writer;
    size_t read; /* of what the writer has */
    struct exchange *exchange;
    bool waits_for_name; /* the next row does, and nothing can be written meanwhile */
    bool has_begun, has_ended;
};

/* Answers with a list like `first`, whose `own` it takes over, with limit and cursor from the
 * request. */
void paging_answer(struct exchange *exchange, const struct paging *first);

#endif
