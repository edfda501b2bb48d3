/*
 * list_sort.c -- see list_sort.h.
 *
 * A row is found again where it was seen. If its client is gone by then, or another one is there,
 * it is left out: the page is a row shorter.
 */
#include "admin/list_sort.h"

#include "admin/list.h"
#include "admin/sorter.h"
#include "base/text.h"

#include <stdlib.h>
#include <string.h>

enum {
    KEY_UNITS = 2,     /* what making and comparing a key costs beside looking at a slot */
    ADDRESS_UNITS = 4, /* to write one, as in list_match.c */
};

/* Of what a list is sorted by: a number, or a text. */
struct column {
    const char *name;
    unsigned of; /* lists, bits of enum list_sort_of */
    uint64_t (*number)(const struct view_client *view);
    struct bytes (*text)(struct paging *paging, const struct view_client *view, char *buffer);
};

struct sorted {
    const struct column *column;
    uint64_t cursor; /* of the slots; VIEW_END: all were seen */
    uint32_t at;     /* the next row of those kept */
    struct sorter sorter;
    struct sorter_key kept[PAGING_LIMIT_MAX];
};

/* ---- columns ---- */

static bool is_unreached(const struct view_client *view)
{
    return view->news == VIEW_GIVEN_UP ||
           ((view->news == VIEW_OWED || view->news == VIEW_CALLING) && view->attempt_count > 0);
}

uint32_t list_sort_trouble(const struct view_client *view)
{
    return view->is_crashed            ? 0
           : is_unreached(view)        ? 1
           : view->is_draining         ? LIST_SORT_NO_TROUBLE
           : view->unsettled_count > 0 ? 2
           : view->waiter_count > 0    ? 4
                                       : 5;
}

static uint64_t trouble_of(const struct view_client *view)
{
    return list_sort_trouble(view);
}

static uint64_t locks_of(const struct view_client *view)
{
    return view->lock_count;
}

static uint64_t waiters_of(const struct view_client *view)
{
    return view->waiter_count;
}

static uint64_t seen_of(const struct view_client *view)
{
    return view->seen_ns;
}

static uint64_t registered_of(const struct view_client *view)
{
    return view->registered_ns;
}

static uint64_t rebooted_of(const struct view_client *view)
{
    return view->rebooted_ns;
}

static uint64_t owed_of(const struct view_client *view)
{
    return (view->is_owed ? 2U : 0U) + (view->upcall != 0 ? 1U : 0U);
}

static uint64_t attempts_of(const struct view_client *view)
{
    return view->attempt_count;
}

/* Who was not told comes first. */
static uint64_t news_of(const struct view_client *view)
{
    static const uint64_t order[] = {[VIEW_GIVEN_UP] = 0,
                                     [VIEW_OWED] = 1,
                                     [VIEW_CALLING] = 2,
                                     [VIEW_TOLD] = 3,
                                     [VIEW_NOT_TOLD] = 4};
    return order[view->news];
}

static uint64_t next_try_of(const struct view_client *view)
{
    return view->next_try_ns != 0 ? view->next_try_ns : UINT64_MAX;
}

static struct bytes state_of(struct paging *paging, const struct view_client *view, char *buffer)
{
    (void)paging;
    (void)buffer;
    return bytes_of_text(list_word_of_client(view));
}

static struct bytes name_of(struct paging *paging, const struct view_client *view, char *buffer)
{
    (void)paging;
    (void)buffer;
    return view->name;
}

static struct bytes address_of(struct paging *paging, const struct view_client *view, char *buffer)
{
    (void)paging;
    if (view->address.family == 0)
        return (struct bytes){0};
    address_text(&view->address, buffer);
    return bytes_of_text(buffer);
}

static struct bytes name_used_of(struct paging *paging, const struct view_client *view,
                                 char *buffer)
{
    struct bytes used;
    (void)buffer;
    view_name_used(paging->admin->core, view, &used);
    return used;
}

enum { CLIENTS = LIST_SORT_CLIENTS, NEWS = LIST_SORT_NOTIFICATIONS };

static const struct column columns[] = {
    {.name = "trouble", .of = CLIENTS, .number = trouble_of},
    {.name = "name", .of = CLIENTS | NEWS, .text = name_of},
    {.name = "address", .of = CLIENTS | NEWS, .text = address_of},
    {.name = "state", .of = CLIENTS, .text = state_of},
    {.name = "locks", .of = CLIENTS, .number = locks_of},
    {.name = "waiters", .of = CLIENTS, .number = waiters_of},
    {.name = "last_seen", .of = CLIENTS, .number = seen_of},
    {.name = "registered_at", .of = CLIENTS, .number = registered_of},
    {.name = "rebooted_at", .of = CLIENTS, .number = rebooted_of},
    {.name = "owed", .of = CLIENTS, .number = owed_of},
    {.name = "notification", .of = CLIENTS, .number = news_of},
    {.name = "name_used", .of = NEWS, .text = name_used_of},
    {.name = "attempt", .of = NEWS, .number = attempts_of},
    {.name = "result", .of = NEWS, .number = news_of},
    {.name = "next_try_seconds", .of = NEWS, .number = next_try_of},
};

static const struct column *find_column(enum list_sort_of of, const char *name)
{
    for (size_t i = 0; i < sizeof columns / sizeof columns[0]; i++)
        if ((columns[i].of & of) != 0 && strcmp(columns[i].name, name) == 0)
            return &columns[i];
    return NULL;
}

/* ---- as they are stored ---- */

static bool next_stored(struct paging *paging, uint64_t *cursor, uint32_t *budget)
{
    const struct list_rows *rows = paging->rows;
    struct view_client view;
    while (view_next_client(paging->admin->core, cursor, budget, &view)) {
        if (!rows->fits(paging, &view, budget))
            continue;
        writer_line(&paging->writer);
        rows->write(paging, &view);
        return true;
    }
    return false;
}

/* ---- sorted ---- */

/* The name decides among equal numbers. */
static void add(struct paging *paging, const struct view_client *view)
{
    struct sorted *sorted = paging->own;
    const struct column *column = sorted->column;
    struct sorter_key key = {.id = view->id, .place = sorted->cursor - 1};
    char buffer[ADDRESS_TEXT_MAX];
    if (column->number != NULL)
        key.number = column->number(view);
    sorter_set_text(&key, column->text != NULL ? column->text(paging, view, buffer) : view->name);
    sorter_add(&sorted->sorter, &key);
}

static void see_all(struct paging *paging, uint32_t *budget)
{
    struct sorted *sorted = paging->own;
    struct view_client view;
    uint32_t cost = KEY_UNITS + (sorted->column->text == address_of ? ADDRESS_UNITS : 0);
    while (view_next_client(paging->admin->core, &sorted->cursor, budget, &view)) {
        if (!paging->rows->fits(paging, &view, budget))
            continue;
        add(paging, &view);
        *budget -= cost < *budget ? cost : *budget;
    }
    if (sorted->cursor == VIEW_END)
        sorter_finish(&sorted->sorter);
}

/* The page's own cursor stays where it is until the last row, so that it does not end early. */
static bool next_sorted(struct paging *paging, uint64_t *cursor, uint32_t *budget)
{
    struct sorted *sorted = paging->own;
    sorted->sorter.max = paging->limit;
    if (sorted->cursor != VIEW_END)
        see_all(paging, budget);
    if (sorted->cursor != VIEW_END)
        return false;
    while (sorted->at < sorted->sorter.count) {
        const struct sorter_key *key = &sorted->kept[sorted->at++];
        uint64_t place = key->place;
        uint32_t one = 1;
        struct view_client view;
        if (!view_next_client(paging->admin->core, &place, &one, &view) || view.id != key->id)
            continue;
        writer_line(&paging->writer);
        paging->rows->write(paging, &view);
        return true;
    }
    *cursor = VIEW_END;
    return false;
}

static bool read_cursor(struct paging *paging, const char *text)
{
    struct sorter *sorter = &((struct sorted *)paging->own)->sorter;
    sorter->has_after = true;
    return sorter_parse_cursor(text, &sorter->after);
}

static void write_end(struct paging *paging)
{
    const struct sorter *sorter = &((struct sorted *)paging->own)->sorter;
    char cursor[SORTER_CURSOR_MAX];
    bool is_last = sorter->before + sorter->count == sorter->total;
    if (!is_last)
        sorter_put_cursor(&sorter->kept[sorter->count - 1], cursor);
    writer_text(&paging->writer, "next", is_last ? NULL : cursor);
    writer_number(&paging->writer, "total", sorter->total);
    writer_number(&paging->writer, "before", sorter->before);
}

/* A column, with "-" before it the largest first. False: already responded. */
static bool read_sort(struct exchange *exchange, const char *sort, struct paging *paging)
{
    bool is_down = sort[0] == '-';
    const struct column *column = find_column(paging->rows->of, sort + is_down);
    if (column == NULL) {
        exchange_error(
            exchange, MHD_HTTP_BAD_REQUEST, "nothing to sort by: ", bytes_of_text(sort),
            paging->rows->of == LIST_SORT_CLIENTS
                ? "allowed: trouble, name, address, state, locks, waiters, last_seen, "
                  "registered_at, rebooted_at, owed, notification; with - before it: largest first"
                : "allowed: name, address, name_used, attempt, result, next_try_seconds; with - "
                  "before it: largest first");
        return false;
    }
    struct sorted *sorted = malloc(sizeof *sorted);
    if (sorted == NULL) {
        exchange_error(exchange, MHD_HTTP_INTERNAL_SERVER_ERROR, "out of memory", (struct bytes){0},
                       "try again later");
        return false;
    }
    sorted->column = column;
    sorted->cursor = 0;
    sorted->at = 0;
    sorted->sorter =
        (struct sorter){.is_text = column->text != NULL, .is_down = is_down, .kept = sorted->kept};
    paging->own = sorted;
    paging->next = next_sorted;
    paging->read_cursor = read_cursor;
    paging->write_end = write_end;
    return true;
}

void list_sort_answer(struct exchange *exchange, const struct list_rows *rows, struct paging *first)
{
    const char *sort = exchange_parameter(exchange, "sort");
    first->rows = rows;
    first->next = next_stored;
    if (sort == NULL || read_sort(exchange, sort, first))
        paging_answer(exchange, first);
}
