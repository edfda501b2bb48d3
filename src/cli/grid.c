/*
 * grid.c -- see grid.h.
 */
#include "cli/grid.h"

#include "cli/print.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum { GAP = 2, CUT_MIN = 8 };

struct cell {
    char *text;
    const char *colour; /* of the first cell of a row: the row's */
};

struct grid {
    const struct grid_column *columns;
    size_t column_count;
    struct cell *cells;
    size_t cell_count, cell_max;
    size_t widths[GRID_COLUMNS_MAX];
    bool has_titles; /* they were printed */
};

struct grid *grid_new(const struct grid_column *columns, size_t count)
{
    struct grid *grid = calloc(1, sizeof *grid);
    if (grid == NULL || count > GRID_COLUMNS_MAX) {
        free(grid);
        return NULL;
    }
    grid->columns = columns;
    grid->column_count = count;
    for (size_t i = 0; i < count; i++)
        grid->widths[i] = strlen(columns[i].title);
    return grid;
}

static void forget(struct grid *grid)
{
    for (size_t i = 0; i < grid->cell_count; i++)
        free(grid->cells[i].text);
    grid->cell_count = 0;
}

void grid_free(struct grid *grid)
{
    if (grid == NULL)
        return;
    forget(grid);
    free(grid->cells);
    free(grid);
}

/* Characters of UTF-8, each one column wide. */
static size_t width_of(const char *text)
{
    size_t width = 0;
    for (; *text != '\0'; text++)
        width += ((unsigned char)*text & 0xc0) != 0x80;
    return width;
}

void grid_add(struct grid *grid, const char *text)
{
    if (grid->cell_count == grid->cell_max) {
        size_t max = grid->cell_max == 0 ? 256 : grid->cell_max * 2;
        struct cell *cells = realloc(grid->cells, max * sizeof *cells);
        if (cells == NULL)
            return; /* a table with less in it */
        grid->cells = cells;
        grid->cell_max = max;
    }
    size_t column = grid->cell_count % grid->column_count;
    struct cell cell = {.text = print_safe_copy(text != NULL ? text : "-")};
    if (cell.text == NULL)
        return;
    size_t width = width_of(cell.text);
    if (!grid->has_titles && width > grid->widths[column])
        grid->widths[column] = width;
    grid->cells[grid->cell_count++] = cell;
}

void grid_add_number(struct grid *grid, long long value)
{
    char text[32];
    (void)snprintf(text, sizeof text, "%lld", value);
    grid_add(grid, text);
}

void grid_colour(struct grid *grid, const char *code)
{
    if (grid->cell_count == 0)
        return;
    size_t row = (grid->cell_count - 1) / grid->column_count;
    grid->cells[row * grid->column_count].colour = code;
}

bool grid_has_colours(void)
{
    const char *none = getenv("NO_COLOR");
    return isatty(STDOUT_FILENO) && (none == NULL || none[0] == '\0');
}

size_t grid_terminal_width(void)
{
    struct winsize size;
    if (!isatty(STDOUT_FILENO))
        return 0;
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0)
        return 80;
    return size.ws_col;
}

/* Takes columns from the widest that may be cut until a line fits. */
static void fit(struct grid *grid)
{
    size_t room = grid_terminal_width();
    for (;;) {
        size_t total = 0, widest = grid->column_count;
        for (size_t i = 0; i < grid->column_count; i++) {
            total += grid->widths[i] + (i > 0 ? GAP : 0);
            if (grid->columns[i].may_be_cut && grid->widths[i] > CUT_MIN &&
                (widest == grid->column_count || grid->widths[i] > grid->widths[widest]))
                widest = i;
        }
        if (room == 0 || total <= room || widest == grid->column_count)
            return;
        grid->widths[widest]--;
    }
}

/* The text, cut with "…" if it is too wide and there is a terminal to be too wide for. */
static void print_cell(const struct grid *grid, size_t column, const char *text)
{
    size_t width = width_of(text), room = grid->widths[column];
    bool is_last = column + 1 == grid->column_count;
    bool is_cut = width > room && grid->columns[column].may_be_cut && grid_terminal_width() > 0;
    if (grid->columns[column].is_number)
        (void)printf("%*s", width < room ? (int)(room - width) : 0, "");
    for (size_t shown = 0; *text != '\0'; text++) {
        bool begins = ((unsigned char)*text & 0xc0) != 0x80;
        if (begins && is_cut && shown + 1 == room)
            break;
        shown += begins;
        (void)putchar(*text);
    }
    if (is_cut)
        (void)fputs("…", stdout);
    if (!grid->columns[column].is_number && !is_last)
        (void)printf("%*s", width < room ? (int)(room - width) : 0, "");
    (void)printf("%*s", is_last ? 0 : GAP, "");
}

void grid_print(struct grid *grid)
{
    bool has_colours = grid_has_colours();
    if (!grid->has_titles) {
        fit(grid);
        for (size_t i = 0; i < grid->column_count; i++)
            print_cell(grid, i, grid->columns[i].title);
        (void)putchar('\n');
        grid->has_titles = true;
    }
    for (size_t i = 0; i + grid->column_count <= grid->cell_count; i += grid->column_count) {
        const char *colour = has_colours ? grid->cells[i].colour : NULL;
        if (colour != NULL)
            (void)printf("\033[%sm", colour);
        for (size_t j = 0; j < grid->column_count; j++)
            print_cell(grid, j, grid->cells[i + j].text);
        (void)fputs(colour != NULL ? "\033[0m\n" : "\n", stdout);
    }
    forget(grid);
}
