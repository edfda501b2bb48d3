/*
 * test_list_match.c -- what a text in ?match is found in: client, file and path, in any case; that
 * a path is asked for only where it decides; and that the budget pays for what is compared.
 */
#include "admin/list_match.h"

#include "../core/fixture.h"
#include "unit/test.h"

enum { BUDGET = 4000 };

struct world {
    enum admin_path answer;
    const char *path;
    uint32_t asked;
};

static enum admin_path path_of(void *context, struct bytes fh, struct bytes *ret)
{
    struct world *world = context;
    (void)fh;
    world->asked++;
    *ret = bytes_of_text(world->path);
    return world->answer;
}

static bool export_of(void *context, struct bytes fh, uint32_t *ret_id)
{
    (void)context;
    *ret_id = 5;
    return fh.len == 4;
}

static enum list_fit fit(struct world *world, const char *text)
{
    static const uint8_t handle[] = {0xab, 0xcd, 0xc1, 0x70};
    const struct admin admin = {.context = world, .path = path_of, .export_of = export_of};
    const struct view_claim claim = {.owner = {.client = 17,
                                               .name = bytes_of_text("Web1.example"),
                                               .address = fixture_address("10.0.0.7")},
                                     .fh = {handle, sizeof handle},
                                     .file_set = bytes_of_text("homes")};
    struct list_match match = {0};
    uint32_t budget = BUDGET;
    list_match_prepare(&match, text);
    return list_match_claim(&admin, &match, &claim, &budget);
}

TEST(test_list_match__client_handle_and_file_set)
{
    struct world world = {.answer = ADMIN_PATH_NONE, .path = ""};
    static const char *const found[] = {"",     "web1", "EXAMPLE",  "10.0.0", "c17",
                                        "ABCD", "bcdc", "abcdc170", "home"};
    for (size_t i = 0; i < sizeof found / sizeof found[0]; i++)
        assert_int_equal(fit(&world, found[i]), LIST_FITS);
    assert_int_equal(world.asked, 0);
    /* Neither another id nor an id that is a part of the handle. */
    static const char *const not_found[] = {"c1", "c170", "web2", "abcdc1700", "Web1.example2"};
    for (size_t i = 0; i < sizeof not_found / sizeof not_found[0]; i++)
        assert_int_equal(fit(&world, not_found[i]), LIST_FITS_NOT);
}

TEST(test_list_match__a_path_that_is_known_now_or_later)
{
    struct world world = {.answer = ADMIN_PATH_LATER, .path = "/srv/Mail/inbox"};
    assert_int_equal(fit(&world, "mail/"), LIST_FITS_LATER);
    world.answer = ADMIN_PATH_KNOWN;
    assert_int_equal(fit(&world, "mail/"), LIST_FITS);
    assert_int_equal(fit(&world, "outbox"), LIST_FITS_NOT);
    assert_int_equal(world.asked, 3);
}

/* No name is an answer; a name that nobody could say is none. */
TEST(test_list_match__a_path_that_cannot_be_learned)
{
    struct world world = {.answer = ADMIN_PATH_UNKNOWN, .path = ""};
    assert_int_equal(fit(&world, "mail/"), LIST_FITS_UNKNOWN);
    assert_int_equal(fit(&world, "web1"), LIST_FITS);
    world.answer = ADMIN_PATH_NONE;
    assert_int_equal(fit(&world, "mail/"), LIST_FITS_NOT);
}

/* Against the obvious way, with texts that begin again within themselves. */
TEST(test_list_match__finds_what_strstr_finds)
{
    static const char letters[] = "ab";
    char text[8] = "", of[16] = "";
    for (uint32_t t = 0; t < 1 << 6; t++)
        for (uint32_t o = 0; o < 1 << 10; o++) {
            for (uint32_t i = 0; i < 5; i++)
                text[i] = letters[t >> i & 1];
            text[5] = t >> 5 != 0 ? 'a' : '\0';
            for (uint32_t i = 0; i < 10; i++)
                of[i] = letters[o >> i & 1];
            struct list_match match = {0};
            const struct admin admin = {0};
            const struct view_claim claim = {.owner.name = bytes_of_text(of)};
            uint32_t budget = BUDGET;
            list_match_prepare(&match, text);
            assert_int_equal(list_match_claim(&admin, &match, &claim, &budget) == LIST_FITS,
                             strstr(of, text) != NULL);
        }
}

/* What one comparison takes from the budget. */
static uint32_t cost_of(struct world *world, const char *text, const char *name)
{
    const struct admin admin = {.context = world, .path = path_of};
    const struct view_claim claim = {
        .owner = {.name = bytes_of_text(name), .address = fixture_address("10.0.0.7")}};
    struct list_match match = {0};
    uint32_t budget = BUDGET;
    list_match_prepare(&match, text);
    (void)list_match_claim(&admin, &match, &claim, &budget);
    return BUDGET - budget;
}

TEST(test_list_match__the_budget_pays_for_what_is_compared)
{
    struct world world = {.answer = ADMIN_PATH_NONE, .path = ""};
    char name[1025] = "", path[4097] = "";
    memset(name, 'a', sizeof name - 1);
    memset(path, 'a', sizeof path - 1);
    assert_int_equal(cost_of(&world, "", name), 0); /* a plain list */
    uint32_t little = cost_of(&world, "x", "web1");
    assert_in_range(little, 1, 32);
    assert_in_range(cost_of(&world, "x", name), little + 15, little + 16);
    world = (struct world){.answer = ADMIN_PATH_KNOWN, .path = path};
    assert_in_range(cost_of(&world, "x", "web1"), little + 63, little + 64);
    /* Found at once: the rest is not asked for. */
    assert_in_range(cost_of(&world, "web", "web1"), 1, 1);
    /* No more than is left. */
    const struct admin admin = {.context = &world, .path = path_of};
    const struct view_claim claim = {.owner.name = bytes_of_text(name)};
    struct list_match match = {0};
    uint32_t budget = 3;
    list_match_prepare(&match, "x");
    assert_int_equal(list_match_claim(&admin, &match, &claim, &budget), LIST_FITS_NOT);
    assert_int_equal(budget, 0);
}

static bool is_client(const char *text)
{
    const struct view_client client = {.id = 17,
                                       .name = bytes_of_text("Web1.example"),
                                       .mon_name = bytes_of_text("b\xfc"
                                                                 "cher"),
                                       .address = fixture_address("10.0.0.7")};
    struct list_match match = {0};
    uint32_t budget = BUDGET;
    list_match_prepare(&match, text);
    bool is_found = list_match_client(&match, &client, &budget);
    assert_true(budget < BUDGET || text[0] == '\0' || match.has_id);
    return is_found;
}

TEST(test_list_match__a_client_by_all_that_is_shown_of_it)
{
    static const char *const found[] = {"", "WEB1", "0.0.7", "c17", "cher", "B\xc3\xbc"};
    for (size_t i = 0; i < sizeof found / sizeof found[0]; i++)
        assert_true(is_client(found[i]));
    static const char *const not_found[] = {"c1", "c170", "web2", "10.0.0.70", "\xc3\xbd"};
    for (size_t i = 0; i < sizeof not_found / sizeof not_found[0]; i++)
        assert_false(is_client(not_found[i]));
}

TEST(test_list_match__files_of_one_export)
{
    static const uint8_t bytes[] = {1, 2, 3, 4, 5};
    const struct admin admin = {.export_of = export_of};
    struct view_claim claim = {.fh = {bytes, 4}, .owner.address = fixture_address("10.0.0.7")};
    struct list_match match = {.has_export = true, .export = 5};
    uint32_t budget = BUDGET;
    assert_int_equal(list_match_claim(&admin, &match, &claim, &budget), LIST_FITS);
    match.export = 6;
    assert_int_equal(list_match_claim(&admin, &match, &claim, &budget), LIST_FITS_NOT);
    match.export = 5;
    claim.fh.len = 5; /* of none */
    assert_int_equal(list_match_claim(&admin, &match, &claim, &budget), LIST_FITS_NOT);
    assert_true(budget < BUDGET);
}

TEST_MAIN(NULL, NULL, NULL, NULL)
