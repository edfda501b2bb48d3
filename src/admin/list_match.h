/*
 * list_match.h -- which locks, waiting requests and clients a list is about: ?match and ?export.
 *
 * A text matches when it is part of what is known of the file or the client, ignoring ASCII case:
 * name, address and id of the client, path, handle (in hex or as it is) and file set of the file.
 * The id must be the whole text: c1 is not c17. Of a registration the host that it monitors counts
 * as a name, too.
 */
#ifndef ADMIN_LIST_MATCH_H
#define ADMIN_LIST_MATCH_H

#include "admin/exchange.h"
#include "core/view.h"

#define LIST_MATCH_MAX 255 /* bytes of a text that is looked for */
#define LIST_WORDS_MAX 8

/* Zeroed: everything. */
struct list_match {
    /* Of list_match_prepare: */
    char text[LIST_MATCH_MAX + 1]; /* in lower case */
    uint32_t len;                  /* 0: any */
    /* How much of the text's beginning also ends at this byte, without being all up to it. */
    uint8_t border[LIST_MATCH_MAX];
    bool is_hex;
    bool is_ascii;
    bool has_id; /* the text is one: */
    uint64_t id;

    bool has_export;
    uint32_t export; /* its fsid */
};

enum list_fit {
    LIST_FITS,
    LIST_FITS_NOT,
    LIST_FITS_LATER,   /* that is up to a name that is being asked for, */
    LIST_FITS_UNKNOWN, /* or to one that cannot be learned in time */
};

/* Reads the parameters. False: already responded. */
bool list_match_read(struct exchange *exchange, struct list_match *ret);

/* The words of ?words, separated by blanks, into zeroed matches; *ret_count stays 0 if it was not
 * given. False: already responded. */
bool list_match_read_words(struct exchange *exchange, struct list_match ret[static LIST_WORDS_MAX],
                           uint32_t *ret_count);

/* Makes `text` the one to look for: at most LIST_MATCH_MAX bytes, in a zeroed `match`. */
void list_match_prepare(struct list_match *match, const char *text);

/* Takes what looking cost from the budget (view.h), or all that is left of it: a slot that is
 * compared costs as much more than one that is not as it takes longer. */
enum list_fit list_match_claim(const struct admin *admin, const struct list_match *match,
                               const struct view_claim *claim, uint32_t *budget);
bool list_match_client(const struct list_match *match, const struct view_client *client,
                       uint32_t *budget);

#endif
