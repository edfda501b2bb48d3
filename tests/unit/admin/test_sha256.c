/*
 * test_sha256.c -- SHA-256 against the examples of FIPS 180-4 and every place where padding turns.
 *
 * The lengths around 56 and 64 are where the length of the message needs a block of its own. Their
 * hashes come from another program (sha256sum).
 */
#include "admin/sha256.h"
#include "unit/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void expect(const void *data, size_t len, const char *hex)
{
    uint8_t hash[SHA256_LEN];
    char text[2 * SHA256_LEN + 1];
    sha256(data, len, hash);
    for (int i = 0; i < SHA256_LEN; i++)
        snprintf(text + 2 * i, 3, "%02x", hash[i]);
    assert_string_equal(text, hex);
}

TEST(test_sha256__examples_of_the_standard)
{
    static const char two_blocks[] = "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq";
    expect("", 0, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    expect("abc", 3, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    expect(two_blocks, strlen(two_blocks),
           "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
}

TEST(test_sha256__a_million_letters)
{
    size_t len = 1000000;
    char *data = malloc(len);
    assert_non_null(data);
    memset(data, 'a', len);
    expect(data, len, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
    free(data);
}

TEST(test_sha256__where_padding_turns)
{
    static const struct {
        size_t len;
        const char *hex;
    } rows[] = {
        {55, "9f4390f8d30c2dd92ec9f095b65e2b9ae9b0a925a5258e241c9f1e910f734318"},
        {56, "b35439a4ac6f0948b6d6f9e3c6af0f5f590ce20f1bde7090ef7970686ec6738a"},
        {63, "7d3e74a05d7db15bce4ad9ec0658ea98e3f06eeecf16b4c6fff2da457ddc2f34"},
        {64, "ffe054fe7ae0cb6dc65c3af9b61d5209f439851db43d0ba5997337df154668eb"},
        {65, "635361c48bb9eab14198e76ea8ab7f1a41685d6ad62aa9146d301d4f17eb0ae0"},
        {119, "31eba51c313a5c08226adf18d4a359cfdfd8d2e816b13f4af952f7ea6584dcfb"},
        {120, "2f3d335432c70b580af0e8e1b3674a7c020d683aa5f73aaaedfdc55af904c21c"},
        {128, "6836cf13bac400e9105071cd6af47084dfacad4e5e302c94bfed24e013afb73e"},
    };
    char data[128];
    memset(data, 'a', sizeof data);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        expect(data, rows[i].len, rows[i].hex);
}

TEST_MAIN(NULL, NULL, NULL, NULL)
