/*
 * test_memory.c -- what tables and lists do without memory: they stop, say so and end with another
 * code than 0, and no cell ever stands in a column that is not its own.
 *
 * The server is played here: two pages of one list. Allocations fail when a test says so: those of
 * the grid by way of the linker (--wrap), those of the JSON library by its own hook. What is
 * printed goes to a file of its own.
 */
#include "cli/command.h"
#include "cli/find.h"
#include "cli/grid.h"
#include "cli/print.h"
#include "unit/test.h"

#include <sys/mman.h>
#include <unistd.h>

enum { OUTPUT_MAX = 4096, NEVER = -1 };

static int copies_left = NEVER; /* of cells, before there is no memory */
static int reallocs_left = NEVER;
static bool has_json_memory = true;
static int pages_asked;

char *__real_print_safe_copy(const char *text);
char *__wrap_print_safe_copy(const char *text);
void *__real_realloc(void *at, size_t size);
void *__wrap_realloc(void *at, size_t size);

char *__wrap_print_safe_copy(const char *text)
{
    if (copies_left == 0)
        return NULL;
    copies_left -= copies_left > 0;
    return __real_print_safe_copy(text);
}

void *__wrap_realloc(void *at, size_t size)
{
    if (reallocs_left == 0)
        return NULL;
    reallocs_left -= reallocs_left > 0;
    return __real_realloc(at, size);
}

static void *json_memory(size_t size)
{
    return has_json_memory ? malloc(size) : NULL;
}

json_t *http_client_get(struct http_client *http, const char *path, int *ret_exit_code)
{
    (void)http;
    (void)path;
    *ret_exit_code = EXIT_OK;
    bool is_first = pages_asked++ == 0;
    json_t *page = is_first ? json_pack("{s:[{s:f}, {s:i}], s:s}", "rows", "n",
                                        1.8446744073709552e19, "n", 2, "next", "7")
                            : json_pack("{s:[{s:i}], s:n}", "rows", "n", 3, "next");
    assert_non_null(page);
    return page;
}

/* What is printed between the two goes here instead of to the standard output. */
static int output_fd, stdout_fd;

static void begin_output(void)
{
    output_fd = memfd_create("output", MFD_CLOEXEC);
    (void)fflush(stdout);
    stdout_fd = dup(STDOUT_FILENO);
    assert_true(output_fd >= 0 && stdout_fd >= 0);
    assert_true(dup2(output_fd, STDOUT_FILENO) >= 0);
}

static const char *end_output(void)
{
    static char text[OUTPUT_MAX];
    (void)fflush(stdout);
    assert_true(dup2(stdout_fd, STDOUT_FILENO) >= 0);
    ssize_t len = pread(output_fd, text, sizeof text - 1, 0);
    assert_true(len >= 0);
    text[len] = '\0';
    assert_int_equal(close(stdout_fd), 0);
    assert_int_equal(close(output_fd), 0);
    return text;
}

static const struct grid_column columns[] = {{.title = "A"}, {.title = "B"}};

/* Two rows of two cells each; the exit code, and what was printed. */
static int print_grid(const char **ret_output)
{
    struct grid *grid = grid_new(columns, 2);
    assert_non_null(grid);
    static const char *const cells[] = {"a1", "b1", "a2", "b2"};
    for (size_t i = 0; i < sizeof cells / sizeof cells[0]; i++)
        grid_add(grid, cells[i]);
    begin_output();
    grid_print(grid);
    *ret_output = end_output();
    assert_int_equal(grid_has_failed(grid), copies_left == 0 || reallocs_left == 0);
    return grid_finish(grid);
}

TEST(test_memory__a_grid_that_lacks_a_cell_has_failed)
{
    const char *output;
    assert_int_equal(print_grid(&output), EXIT_OK);
    assert_string_equal(output, "A   B\na1  b1\na2  b2\n");
    copies_left = 2; /* a2 is missing, and b2 does not take its place */
    assert_int_equal(print_grid(&output), EXIT_NO);
    assert_string_equal(output, "A   B\na1  b1\n");
    copies_left = NEVER;
    reallocs_left = 0;
    assert_int_equal(print_grid(&output), EXIT_NO);
    assert_string_equal(output, "A  B\n");
    reallocs_left = NEVER;
    assert_int_equal(grid_finish(NULL), EXIT_NO);
}

static int rows_wanted;

/* Memory is there for so many rows. */
static bool print_row(void *context, const json_t *row)
{
    has_json_memory = rows_wanted-- > 0;
    return find_json_row(context, row);
}

static int print_list(int count, const char **ret_output)
{
    rows_wanted = count;
    pages_asked = 0;
    begin_output();
    struct find_json list = {.name = "rows"};
    int exit_code = find_rows(NULL, "/rows", "rows", print_row, NULL, &list);
    if (exit_code == EXIT_OK)
        exit_code = find_json_end(&list, -1);
    *ret_output = end_output();
    has_json_memory = true;
    return exit_code;
}

TEST(test_memory__a_list_that_lacks_a_row_has_no_end)
{
    const char *output;
    json_set_alloc_funcs(json_memory, free);
    assert_int_equal(print_list(3, &output), EXIT_OK);
    assert_string_equal(output, "{\"rows\": [\n  {\"n\":1.8446744073709552e19},\n  {\"n\":2},\n"
                                "  {\"n\":3}\n]}\n");
    assert_int_equal(print_list(1, &output), EXIT_NO);
    assert_string_equal(output, "{\"rows\": [\n  {\"n\":1.8446744073709552e19}");
    assert_int_equal(pages_asked, 1); /* it stopped */
    assert_int_equal(print_list(0, &output), EXIT_NO);
    assert_string_equal(output, "");
}

TEST_MAIN(NULL, NULL, NULL, NULL)
