/*
 * grid.h -- tables that fit a terminal.
 *
 * Columns are as wide as their contents. When a line would be wider than the terminal, columns that
 * may be cut are narrowed, widest first, down to their minimum; if that is not enough, columns are
 * dropped, lowest rank first, and only then are the others cut further. A pipe or a file gets
 * everything in full. Names may contain anything: control characters are shown as "?".
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
    bool has_tail;  /* its end may be what distinguishes it: cut it in the middle */
    int rank;       /* dropped when the terminal is too narrow, 1 before 2; 0: never */
};

struct grid;

/* NULL: no memory. The columns are borrowed. */
struct grid *grid_new(const struct grid_column *columns, size_t count);
/* Frees it. EXIT_OK, or EXIT_NO after saying that memory ran out; NULL counts as that. */
int grid_finish(struct grid *grid);

/* Adds cell after cell, row by row; NULL is shown as "-". Once out of memory it takes nothing more,
 * so that no cell ends up in the wrong column. */
void grid_add(struct grid *grid, const char *text);
void grid_add_number(struct grid *grid, long long value);
bool grid_has_failed(const struct grid *grid);
/* A colour for the row begun last, on a terminal: "31" is red. */
void grid_colour(struct grid *grid, const char *code);

/* Prints and forgets the rows so far, with titles the first time; the widths stay. */
void grid_print(struct grid *grid);

/* Colours are for people at a terminal, unless NO_COLOR is set. */
bool grid_has_colours(void);
/* Columns of the terminal; 0: not a terminal. */
size_t grid_terminal_width(void);
/* Its lines; 0: not a terminal. */
size_t grid_terminal_height(void);

#endif
