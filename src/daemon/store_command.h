/*
 * store_command.h -- `holdfast store ...`: operations on a store that no server is using.
 */
#ifndef DAEMON_STORE_COMMAND_H
#define DAEMON_STORE_COMMAND_H

/* argv[0] is "store". Returns the exit code. */
int store_command_run(int argc, char **argv);

#endif
