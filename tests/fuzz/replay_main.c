/*
 * replay_main.c -- runs a fuzz target over the files of its corpus, without libFuzzer.
 *
 * So that every machine, also one with gcc alone, repeats in each test run what fuzzing once found.
 * The name of a file is printed before it runs: if it aborts, the last line names it.
 *
 * usage: fuzz_x FILE-OR-DIRECTORY...
 */
#include "fuzz.h"

#include <dirent.h>
#include <stdio.h>
#include <sys/stat.h>

enum { INPUT_MAX = 1 << 20 };

static unsigned replayed;

static void replay_file(const char *path)
{
    static uint8_t input[INPUT_MAX];
    FILE *file = fopen(path, "rb");
    if (file == NULL) {
        fprintf(stderr, "cannot open %s\n", path);
        exit(1);
    }
    size_t len = fread(input, 1, sizeof input, file);
    bool whole = feof(file) && !ferror(file);
    fclose(file);
    if (!whole) {
        fprintf(stderr, "cannot read %s, or it is longer than %d bytes\n", path, INPUT_MAX);
        exit(1);
    }
    printf("%s\n", path);
    fflush(stdout);
    uint8_t *copy = fuzz_copy((struct bytes){input, (uint32_t)len});
    LLVMFuzzerTestOneInput(copy, len);
    free(copy);
    replayed++;
}

static int is_input(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

static void replay(const char *path)
{
    struct stat status;
    if (stat(path, &status) == 0 && !S_ISDIR(status.st_mode)) {
        replay_file(path);
        return;
    }
    struct dirent **entries;
    int count = scandir(path, &entries, is_input, alphasort);
    if (count < 0) {
        fprintf(stderr, "cannot read the directory %s\n", path);
        exit(1);
    }
    for (int i = 0; i < count; i++) {
        char name[4096];
        snprintf(name, sizeof name, "%s/%s", path, entries[i]->d_name);
        replay_file(name);
        free(entries[i]);
    }
    free(entries);
}

int main(int argc, char **argv)
{
    for (int i = 1; i < argc; i++)
        replay(argv[i]);
    if (replayed == 0) {
        fprintf(stderr, "no input was replayed: give files or a directory of them\n");
        return 1;
    }
    printf("%u inputs replayed\n", replayed);
    return 0;
}
