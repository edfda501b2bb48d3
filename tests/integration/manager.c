/*
 * manager.c -- a service manager as far as notifications go: prints what arrives on its socket.
 *
 * usage: manager SOCKET      one line for each datagram, its lines separated by blanks, until it is
 * ended. "listening" is its first line.
 */
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

int main(int argc, char **argv)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (argc != 2 || strlen(argv[1]) >= sizeof address.sun_path) {
        (void)fprintf(stderr, "usage: manager SOCKET\n");
        return 2;
    }
    memcpy(address.sun_path, argv[1], strlen(argv[1]));
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || bind(fd, (struct sockaddr *)&address, sizeof address) != 0) {
        perror(argv[1]);
        return 1;
    }
    (void)puts("listening");
    for (;;) {
        char message[1024];
        (void)fflush(stdout);
        ssize_t len = recv(fd, message, sizeof message - 1, 0);
        if (len < 0)
            return 1;
        message[len] = '\0';
        for (char *at = message; *at != '\0'; at++)
            *at = *at == '\n' ? ' ' : *at;
        (void)puts(message);
    }
}
