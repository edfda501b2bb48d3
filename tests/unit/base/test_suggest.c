/*
 * test_suggest.c -- shows which slips of the finger find the name that was meant, that the closest
 * name wins whatever the order, and that a different word finds nothing.
 */
#include "base/suggest.h"
#include "unit/test.h"

static const char *const names[] = {"port",          "store",       "sync",
                                    "store-timeout", "max-clients", "user"};

static const char *nearest(const char *word)
{
    struct suggest forward, backward;
    size_t count = sizeof names / sizeof names[0];
    suggest_init(&forward, word);
    suggest_init(&backward, word);
    for (size_t i = 0; i < count; i++) {
        suggest_offer(&forward, names[i]);
        suggest_offer(&backward, names[count - 1 - i]);
    }
    assert_int_equal(forward.distance, backward.distance);
    return forward.best;
}

TEST(test_suggest__one_slip_of_each_kind)
{
    assert_string_equal(nearest("prt"), "port");     /* left out */
    assert_string_equal(nearest("sttore"), "store"); /* doubled */
    assert_string_equal(nearest("pork"), "port");    /* replaced */
    assert_string_equal(nearest("usre"), "user");    /* swapped */
    assert_string_equal(nearest("store-timout"), "store-timeout");
    assert_string_equal(nearest("max-client"), "max-clients");
    assert_string_equal(nearest("port"), "port");
}

TEST(test_suggest__other_words_find_nothing)
{
    assert_null(nearest("unreachable"));
    assert_null(nearest("x"));
    assert_null(nearest(""));
}

TEST(test_suggest__words_of_any_length_are_safe)
{
    char word[200], name[200];
    for (size_t word_len = 0; word_len < sizeof word; word_len += 13) {
        for (size_t name_len = 0; name_len < sizeof name; name_len += 13) {
            memset(word, 'a', word_len);
            memset(name, 'a', name_len);
            word[word_len] = name[name_len] = '\0';
            struct suggest suggest;
            suggest_init(&suggest, word);
            suggest_offer(&suggest, name);
            if (suggest.best != NULL)
                assert_int_equal(suggest.distance,
                                 word_len > name_len ? word_len - name_len : name_len - word_len);
        }
    }
}

TEST_MAIN(NULL, NULL, NULL, NULL)
