/*
 * handle_of.c -- prints the kernel's handle of a file in hex; for tests of what is made from it.
 *
 * usage: handle_of PATH. Exit 1: there is none.
 */
#include <fcntl.h>
#include <stdio.h>

int main(int argc, char **argv)
{
    union {
        struct file_handle handle;
        char room[sizeof(struct file_handle) + MAX_HANDLE_SZ];
    } at;
    int mount;
    at.handle.handle_bytes = MAX_HANDLE_SZ;
    if (argc != 2 || name_to_handle_at(AT_FDCWD, argv[1], &at.handle, &mount, 0) != 0)
        return 1;
    for (unsigned i = 0; i < at.handle.handle_bytes; i++)
        printf("%02x", at.handle.f_handle[i]);
    printf("\n");
    return 0;
}
