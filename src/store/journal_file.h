/*
 * journal_file.h -- the file of a journal, for journal.c; nobody else looks in here.
 */
#ifndef STORE_JOURNAL_FILE_H
#define STORE_JOURNAL_FILE_H

#include "store/journal.h"

#define JOURNAL_BLOCK 4096

/* Where the changes of a frame are. */
struct journal_frame {
    uint64_t at, len;
    uint32_t count;
};

/* Gives back the memory of what was read. Views stay, and are read from the file again. */
void journal_give_back(const struct journal *journal);

#endif
