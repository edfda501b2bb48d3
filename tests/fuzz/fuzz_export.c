/*
 * fuzz_export.c -- any text as a line of exports(5): it is refused with a reason, or it names an
 * absolute directory and at least one client, and its rights mean the same when they are written
 * out and read again.
 *
 * Input: the line; it ends at the first NUL.
 */
#include "file/export_line.h"
#include "fuzz.h"

static void check_same(const struct export_rights *a, const struct export_rights *b)
{
    CHECK(a->is_writable == b->is_writable && a->is_secure == b->is_secure);
    CHECK(a->is_async == b->is_async && a->squash == b->squash);
    CHECK(a->anonymous_uid == b->anonymous_uid && a->anonymous_gid == b->anonymous_gid);
}

/* "/d *(RIGHTS)" gives the same rights. */
static void check_rights(const struct export_rights *rights)
{
    char line[512], why_text[512];
    struct text text, why;
    struct export_line again;
    text_init(&text, line, sizeof line);
    text_init(&why, why_text, sizeof why_text);
    text_add(&text, "/d *(");
    export_line_add_rights(&text, rights);
    text_add(&text, ")");
    CHECK(export_line_parse(line, &again, &why) == 0);
    CHECK(again.client_count == 1);
    check_same(&again.clients[0].rights, rights);
    export_line_done(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char why_text[512];
    struct text why;
    struct export_line line;
    char *copy = calloc(1, size + 1);
    CHECK(copy != NULL);
    if (size > 0)
        memcpy(copy, data, size);
    text_init(&why, why_text, sizeof why_text);
    int result = export_line_parse(copy, &line, &why);
    if (result == 0) {
        CHECK(line.directory[0] == '/');
        CHECK(line.client_count >= 1 && line.client_count <= EXPORT_CLIENTS_MAX);
        for (uint32_t i = 0; i < line.client_count; i++) {
            CHECK(line.clients[i].name[EXPORT_NAME_MAX] == '\0');
            CHECK(line.clients[i].network.prefix_len <= 128);
            check_rights(&line.clients[i].rights);
        }
        export_line_done(&line);
    } else {
        CHECK(why_text[0] != '\0' || strspn(copy, " \t\r\n") == strlen(copy) ||
              copy[strspn(copy, " \t\r\n")] == '#');
    }
    free(copy);
    return 0;
}
