/*
 * grid.h -- tables that fit a terminal.
 *
 * Columns are as wide as what is in them. When a line would be wider than the terminal, columns
 * that may be cut give way, the widest first and none below what it needs; if that is not enough,
 * columns are left out, those with the lowest rank first, and only then the others are cut further.
 * Into a pipe or a file everything is printed in full. Names may hold anything: control
 * characters are shown as "?".
 */
#ifndef CLI_GRID_H
#define CLI_GRID_H

#include <stdbool.h>
#include <stddef.h>

enum { GRID_COLUMNS_MAX = 12 };

struct grid_column {
    const char *title;
    bool is_number; /* to the right */
    size_t cut_min; /* may be cut to so much; 0: never */
    bool has_tail;  /* what tells one from another may be at its end: it is cut in the middle */
    int rank;       /* left out when the terminal is too narrow, 1 before 2; 0: never */
};

struct grid;

/* NULL: no memory. The columns are borrowed. */
struct grid *grid_new(const struct grid_column *columns, size_t count);
/* Frees it. EXIT_OK, or EXIT_NO after saying that there was no memory for all of it; NULL is legal,
 * and that. */
int grid_finish(struct grid *grid);

/* One cell after another, row by row; what is NULL is shown as "-". Without memory it has failed:
 * it takes nothing more, so that no cell stands in a column that is not its own. */
void grid_add(struct grid *grid, const char *text);
void grid_add_number(struct grid *grid, long long value);
bool grid_has_failed(const struct grid *grid);
/* A colour for the row begun last, on a terminal: "31" is red. */
void grid_colour(struct grid *grid, const char *code);

/* Prints the rows there are, with titles the first time, and forgets them; the widths stay. */
void grid_print(struct grid *grid);

/* Colours are for people at a terminal, unless NO_COLOR is set. */
bool grid_has_colours(void);
/* Columns of the terminal; 0: it is none. */
size_t grid_terminal_width(void);
/* Its lines; 0: it is none. */
size_t grid_terminal_height(void);

#endif
