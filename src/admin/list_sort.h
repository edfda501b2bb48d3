/*
 * list_sort.h -- lists of clients: as they are stored, or sorted as ?sort says.
 *
 * A sorted page looks at every client, in pieces like any other list (paging.h), and has `total`
 * and `before` beside `next`: how many rows the list has, and how many come before this page.
 */
#ifndef ADMIN_LIST_SORT_H
#define ADMIN_LIST_SORT_H

#include "admin/paging.h"

enum list_sort_of { LIST_SORT_CLIENTS = 1, LIST_SORT_NOTIFICATIONS = 2 };

/* Which clients have a row, how it is written, and what it can be sorted by. */
struct list_rows {
    bool (*fits)(struct paging *paging, const struct view_client *view, uint32_t *budget);
    void (*write)(struct paging *paging, const struct view_client *view);
    enum list_sort_of of;
};

/* Answers with a list like `first`, which has no `next` yet. */
void list_sort_answer(struct exchange *exchange, const struct list_rows *rows,
                      struct paging *first);

/* How much a client needs somebody who looks at it: 0 is most. */
#define LIST_SORT_NO_TROUBLE 3
uint32_t list_sort_trouble(const struct view_client *view);

#endif
