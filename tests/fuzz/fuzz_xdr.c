/*
 * fuzz_xdr.c -- any sequence of reads over any bytes, against a model of RFC 4506 that counts
 * positions; what was read is written again and must be the same bytes.
 *
 * Input: number of reads (1 byte), one byte for each (3 bits item, 5 bits length or limit), then
 * the bytes that are read.
 */
#include "codec/xdr.h"
#include "fuzz.h"

enum { READS_MAX = 48 };
enum item { ITEM_U32, ITEM_U64, ITEM_BOOL, ITEM_OPAQUE, ITEM_FIXED, ITEM_COUNT };

struct model {
    const uint8_t *bytes;
    size_t len, at;
    bool failed;
};

/* The next `len` bytes and `padding` behind them. */
static const uint8_t *model_take(struct model *model, uint64_t len, uint64_t padding)
{
    if (model->failed || model->at + len + padding > model->len) {
        model->failed = true;
        model->at = model->len;
        return NULL;
    }
    const uint8_t *item = model->bytes + model->at;
    model->at += len + padding;
    return item;
}

static uint64_t padding_of(uint64_t len)
{
    return len % 4 == 0 ? 0 : 4 - len % 4;
}

static struct bytes model_opaque(struct model *model, uint32_t len_max)
{
    const uint8_t *word = model_take(model, 4, 0);
    uint32_t len = word != NULL ? load_be32(word) : 0;
    if (len > len_max) {
        model->failed = true;
        model->at = model->len;
        return (struct bytes){0};
    }
    const uint8_t *item = model_take(model, len, padding_of(len));
    return item != NULL ? (struct bytes){item, len} : (struct bytes){0};
}

static void read_item(uint8_t choice, struct xdr_in *in, struct model *model, struct xdr_out *out)
{
    uint32_t len = choice >> 3;
    const uint8_t *item;
    struct bytes view, expected;
    switch ((enum item)(choice % 8 % ITEM_COUNT)) {
    case ITEM_U32:
        item = model_take(model, 4, 0);
        xdr_put_u32(out, item != NULL ? load_be32(item) : 0);
        CHECK(xdr_get_u32(in) == (item != NULL ? load_be32(item) : 0));
        break;
    case ITEM_U64:
        item = model_take(model, 8, 0);
        xdr_put_u64(out, item != NULL ? load_be64(item) : 0);
        CHECK(xdr_get_u64(in) == (item != NULL ? load_be64(item) : 0));
        break;
    case ITEM_BOOL:
        item = model_take(model, 4, 0);
        xdr_put_u32(out, item != NULL ? load_be32(item) : 0);
        CHECK(xdr_get_bool(in) == (item != NULL && load_be32(item) != 0));
        break;
    case ITEM_OPAQUE:
        len = len == 31 ? UINT32_MAX : len;
        view = xdr_get_opaque(in, len);
        expected = model_opaque(model, len);
        CHECK(view.at == expected.at);
        CHECK(view.len == expected.len);
        xdr_put_opaque(out, view);
        break;
    case ITEM_FIXED:
        view = xdr_get_fixed(in, len);
        item = model_take(model, len, padding_of(len));
        CHECK(view.len == (item != NULL ? len : 0));
        CHECK(view.len == 0 || view.at == item);
        xdr_put_fixed(out, view);
        break;
    case ITEM_COUNT:
        UNREACHABLE();
    }
}

/* Bytes that were read are written the same, but for padding, which is written as zeros. */
static void check_written(const struct xdr_out *out, const struct model *model)
{
    CHECK(!out->overflowed);
    CHECK(xdr_out_len(out) == model->at);
    struct bytes written = {out->start, xdr_out_len(out)};
    for (uint32_t i = 0; i < written.len; i++)
        CHECK(written.at[i] == model->bytes[i] || written.at[i] == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz fuzz = {data, size};
    struct bytes choices = fuzz_slice(&fuzz, fuzz_u8(&fuzz) % READS_MAX);
    struct bytes input = fuzz_slice(&fuzz, 1 << 16);
    uint8_t *copy = fuzz_copy(input), *memory = malloc(input.len + 1);
    CHECK(memory != NULL);
    struct xdr_in in = xdr_in_of((struct bytes){copy, input.len});
    struct model model = {copy, input.len, 0, false};
    struct xdr_out out = xdr_out_of(memory, input.len);
    for (uint32_t i = 0; i < choices.len; i++) {
        struct xdr_out before = out;
        read_item(choices.at[i], &in, &model, &out);
        if (model.failed)
            out = before;
        CHECK(xdr_in_ok(&in) == !model.failed);
        CHECK(xdr_in_rest(&in).len == model.len - model.at);
        CHECK(xdr_in_done(&in) == (!model.failed && model.at == model.len));
    }
    if (!model.failed)
        check_written(&out, &model);
    free(memory);
    free(copy);
    return 0;
}
