/*
 * list.h -- an intrusive, circular, doubly linked list.
 *
 * The node is embedded in the element; the head is a node of its own. A node that is on no list
 * points to itself, so list_remove may be called on it again.
 */
#ifndef BASE_LIST_H
#define BASE_LIST_H

#include <stdbool.h>
#include <stddef.h>

struct list {
    struct list *next, *prev;
};

#define LIST_ELEMENT(node, type, member) ((type *)(void *)((char *)(node)-offsetof(type, member)))

static inline void list_init(struct list *node)
{
    node->next = node->prev = node;
}

static inline bool list_is_empty(const struct list *head)
{
    return head->next == head;
}

/* Appends at the tail; the head's next is the oldest. */
static inline void list_append(struct list *head, struct list *node)
{
    node->next = head;
    node->prev = head->prev;
    head->prev->next = node;
    head->prev = node;
}

static inline void list_remove(struct list *node)
{
    node->next->prev = node->prev;
    node->prev->next = node->next;
    list_init(node);
}

#endif
