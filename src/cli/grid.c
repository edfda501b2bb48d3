/*
 * grid.c -- see grid.h.
 */
#include "cli/grid.h"

#include "cli/command.h"
#include "cli/print.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum { GAP = 2, DESPERATE_MIN = 6 };

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
    bool is_left_out[GRID_COLUMNS_MAX];
    size_t last;     /* column that is shown */
    bool has_titles; /* they were printed */
    bool has_failed; /* out of memory for a cell */
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

int grid_finish(struct grid *grid)
{
    bool is_whole = grid != NULL && !grid->has_failed;
    if (grid != NULL) {
        forget(grid);
        free(grid->cells);
        free(grid);
    }
    if (is_whole)
        return EXIT_OK;
    (void)fputs("holdfast: out of memory; the table is incomplete\n", stderr);
    return EXIT_NO;
}

bool grid_has_failed(const struct grid *grid)
{
    return grid->has_failed;
}

void grid_add(struct grid *grid, const char *text)
{
    if (grid->has_failed)
        return;
    if (grid->cell_count == grid->cell_max) {
        size_t max = grid->cell_max == 0 ? 256 : grid->cell_max * 2;
        struct cell *cells = realloc(grid->cells, max * sizeof *cells);
        if (cells == NULL) {
            grid->has_failed = true;
            return;
        }
        grid->cells = cells;
        grid->cell_max = max;
    }
    size_t column = grid->cell_count % grid->column_count;
    struct cell cell = {.text = print_safe_copy(text != NULL ? text : "-")};
    if (cell.text == NULL) {
        grid->has_failed = true;
        return;
    }
    size_t width = print_width(cell.text);
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

static bool get_size(struct winsize *ret)
{
    if (!isatty(STDOUT_FILENO))
        return false;
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, ret) != 0)
        *ret = (struct winsize){0};
    ret->ws_col = ret->ws_col > 0 ? ret->ws_col : 80; /* serial lines do not know */
    ret->ws_row = ret->ws_row > 0 ? ret->ws_row : 24;
    return true;
}

size_t grid_terminal_width(void)
{
    struct winsize size;
    return get_size(&size) ? size.ws_col : 0;
}

size_t grid_terminal_height(void)
{
    struct winsize size;
    return get_size(&size) ? size.ws_row : 0;
}

/* The width of a line, or the least it can be cut to. */
static size_t line_width(const struct grid *grid, bool is_cut)
{
    size_t total = 0;
    for (size_t i = 0; i < grid->column_count; i++) {
        size_t least = grid->columns[i].cut_min, width = grid->widths[i];
        if (grid->is_left_out[i])
            continue;
        total += is_cut && least > 0 && least < width ? least : width;
        total += GAP;
    }
    return total > 0 ? total - GAP : 0;
}

/* False: every remaining column must stay. */
static bool leave_one_out(struct grid *grid)
{
    size_t first = grid->column_count;
    for (size_t i = 0; i < grid->column_count; i++)
        if (grid->columns[i].rank > 0 && !grid->is_left_out[i] &&
            (first == grid->column_count || grid->columns[i].rank < grid->columns[first].rank))
            first = i;
    if (first == grid->column_count)
        return false;
    grid->is_left_out[first] = true;
    return true;
}

/* Narrows the widest column that may be cut by one character. False: there is none. */
static bool cut_widest(struct grid *grid, bool is_desperate)
{
    size_t widest = grid->column_count;
    for (size_t i = 0; i < grid->column_count; i++) {
        size_t least = grid->columns[i].cut_min;
        if (is_desperate && least > DESPERATE_MIN)
            least = DESPERATE_MIN;
        if (!grid->is_left_out[i] && least > 0 && grid->widths[i] > least &&
            (widest == grid->column_count || grid->widths[i] > grid->widths[widest]))
            widest = i;
    }
    if (widest == grid->column_count)
        return false;
    grid->widths[widest]--;
    return true;
}

static void fit(struct grid *grid)
{
    size_t room = grid_terminal_width();
    if (room == 0)
        return;
    while (line_width(grid, true) > room && leave_one_out(grid))
        continue;
    while (line_width(grid, false) > room && cut_widest(grid, false))
        continue;
    while (line_width(grid, false) > room && cut_widest(grid, true))
        continue;
}

/* Characters from..to - 1 of the text. */
static void put_part(const char *text, size_t from, size_t to)
{
    size_t at = 0;
    for (; *text != '\0'; text++) {
        at += ((unsigned char)*text & 0xc0) != 0x80;
        if (at > from && at <= to)
            (void)putchar(*text);
    }
}

/* The text, cut with "…" if it is too wide and there is a terminal to be too wide for. */
static void print_cell(const struct grid *grid, size_t column, const char *text)
{
    const struct grid_column *shape = &grid->columns[column];
    size_t width = print_width(text), room = grid->widths[column];
    bool is_cut = width > room && shape->cut_min > 0 && grid_terminal_width() > 0;
    int blanks = width < room ? (int)(room - width) : 0;
    if (shape->is_number)
        (void)printf("%*s", blanks, "");
    if (is_cut) {
        size_t tail = shape->has_tail ? (room - 1) / 2 : 0;
        put_part(text, 0, room - 1 - tail);
        (void)fputs("…", stdout);
        put_part(text, width - tail, width);
    } else {
        (void)fputs(text, stdout);
    }
    if (!shape->is_number && column != grid->last)
        (void)printf("%*s", blanks, "");
    (void)printf("%*s", column == grid->last ? 0 : GAP, "");
}

static void print_line(struct grid *grid, const struct cell *cells)
{
    for (size_t i = 0; i < grid->column_count; i++)
        if (!grid->is_left_out[i])
            print_cell(grid, i, cells != NULL ? cells[i].text : grid->columns[i].title);
}

static void print_titles(struct grid *grid)
{
    fit(grid);
    for (size_t i = 0; i < grid->column_count; i++)
        if (!grid->is_left_out[i])
            grid->last = i;
    print_line(grid, NULL);
    (void)putchar('\n');
    grid->has_titles = true;
}

void grid_print(struct grid *grid)
{
    bool has_colours = grid_has_colours();
    if (!grid->has_titles)
        print_titles(grid);
    for (size_t i = 0; i + grid->column_count <= grid->cell_count; i += grid->column_count) {
        const char *colour = has_colours ? grid->cells[i].colour : NULL;
        if (colour != NULL)
            (void)printf("\033[%sm", colour);
        print_line(grid, grid->cells + i);
        (void)fputs(colour != NULL ? "\033[0m\n" : "\n", stdout);
    }
    forget(grid);
}
