/*
 * transport.h -- how a call travels. The numbers are those of IP, as the portmapper and stored
 * records have them.
 */
#ifndef BASE_TRANSPORT_H
#define BASE_TRANSPORT_H

enum transport { TRANSPORT_TCP = 6, TRANSPORT_UDP = 17 };

#endif
