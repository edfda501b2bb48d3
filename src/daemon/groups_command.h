/*
 * groups_command.h -- `holdfast groups`: who serves which group of a shared store.
 */
#ifndef DAEMON_GROUPS_COMMAND_H
#define DAEMON_GROUPS_COMMAND_H

/* argv[0] is "groups". Returns the exit code. */
int groups_command_run(int argc, char **argv);

#endif
