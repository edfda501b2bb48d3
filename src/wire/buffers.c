/*
 * buffers.c -- see buffers.h.
 */
#include "wire/buffers.h"

#include "base/check.h"

#include <stdlib.h>

void buffers_init(struct buffers *buffers, uint32_t record_max)
{
    *buffers = (struct buffers){.long_len = record_max};
}

void buffers_done(struct buffers *buffers)
{
    while (buffers->kept_count > 0)
        free(buffers->kept[--buffers->kept_count]);
}

bool buffers_lend(struct buffers *buffers, struct record_reader *reader)
{
    buffers_take_back(buffers, reader);
    uint32_t len = record_reader_need(reader);
    bool is_long = len >= BUFFERS_LONG_MIN;
    CHECK(len <= buffers->long_len);
    if (is_long)
        len = buffers->long_len;
    reader->buffer =
        is_long && buffers->kept_count > 0 ? buffers->kept[--buffers->kept_count] : malloc(len);
    reader->buffer_len = reader->buffer != NULL ? len : 0;
    return reader->buffer != NULL;
}

void buffers_take_back(struct buffers *buffers, struct record_reader *reader)
{
    bool is_long =
        reader->buffer_len == buffers->long_len && reader->buffer_len >= BUFFERS_LONG_MIN;
    if (reader->buffer != NULL && is_long && buffers->kept_count < BUFFERS_KEPT_MAX)
        buffers->kept[buffers->kept_count++] = reader->buffer;
    else
        free(reader->buffer);
    reader->buffer = NULL;
    reader->buffer_len = 0;
}
