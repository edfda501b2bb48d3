/*
 * client_text.h -- one client in words: who it is, what it holds, what happens when something
 * restarts.
 */
#ifndef CLI_CLIENT_TEXT_H
#define CLI_CLIENT_TEXT_H

#include <jansson.h>

void client_text_print(const json_t *client);

#endif
