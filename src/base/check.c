/*
 * check.c -- the end of a process whose CHECK failed.
 *
 * This is the only file of the pure zone that talks to the world, and it does so once. It formats
 * by hand and writes with write(2): nothing else in the process can be trusted any more.
 */
#include "base/check.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void say(const char *text)
{
    size_t left = strlen(text);
    while (left > 0) {
        ssize_t written = write(STDERR_FILENO, text, left);
        if (written <= 0)
            return;
        text += written;
        left -= (size_t)written;
    }
}

_Noreturn void check_failed(const char *condition, const char *file, int line)
{
    char digits[12];
    size_t at = sizeof digits;
    digits[--at] = '\0';
    unsigned rest = line > 0 ? (unsigned)line : 0;
    do {
        digits[--at] = (char)('0' + rest % 10);
        rest /= 10;
    } while (rest > 0);

    say("holdfast: internal check failed: ");
    say(condition);
    say(" at ");
    say(file);
    say(":");
    say(digits + at);
    say("\n");
    abort();
}
