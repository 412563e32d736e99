/* wire.c: connections between ranks, and frames on them. */
#define _DEFAULT_SOURCE
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "world/peers.h"

enum { MARK = 0x504e5731 }; /* "PNW1": another program that connects says something else */

static const char *send_bytes(int to, const char *data, int64_t bytes)
{
    while (bytes > 0) {
        const ssize_t sent = send(to, data, (size_t)bytes, MSG_NOSIGNAL);
        if (sent < 0 && errno == EINTR)
            continue;
        if (sent <= 0)
            return strerror(errno);
        data += sent;
        bytes -= sent;
    }
    return NULL;
}

const char *wire_send(int to, WorldKind kind, const void *data, int64_t bytes)
{
    const Frame frame = {MARK, kind, bytes};
    const char *error = send_bytes(to, (const char *)&frame, sizeof frame);
    return error ? error : send_bytes(to, data, bytes);
}

const char *wire_receive(int from, void *data, int64_t bytes, double seconds)
{
    const double until = pn_seconds() + seconds;
    char *at = data;
    while (bytes > 0) {
        struct pollfd wait = {.fd = from, .events = POLLIN};
        const double left = until - pn_seconds();
        const int found = poll(&wait, 1, left <= 0 ? 0 : left > 1000 ? 1000000 : (int)(left * 1000) + 1);
        if (found < 0 && errno == EINTR)
            continue;
        if (found == 0 && left <= 0)
            return "it says nothing";
        if (found <= 0)
            continue;
        const ssize_t got = recv(from, at, (size_t)bytes, 0);
        if (got < 0 && errno == EINTR)
            continue;
        if (got == 0 || errno == ECONNRESET)
            return "it is gone";
        if (got < 0)
            return strerror(errno);
        at += got;
        bytes -= got;
    }
    return NULL;
}

/* Small messages leave at once; a host that is gone without a word is found by the system. */
static void set_up(int at)
{
    const int on = 1;
    setsockopt(at, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    setsockopt(at, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
}

int wire_listen(int port)
{
    const int on = 1, at = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    if (at >= 0)
        setsockopt(at, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (at < 0 || bind(at, (struct sockaddr *)&address, sizeof address) != 0 || listen(at, SOMAXCONN) != 0)
        pn_fail(NULL, "rank 0 cannot listen on port %d: %s (MASTER_PORT chooses another one)", port, strerror(errno));
    return at;
}

int wire_accept(int listener, double seconds)
{
    struct pollfd wait = {.fd = listener, .events = POLLIN};
    if (poll(&wait, 1, (int)(seconds * 1000)) <= 0)
        return -1;
    const int at = accept(listener, NULL, NULL);
    if (at >= 0)
        set_up(at);
    return at;
}

static void limit_sending(int at, time_t seconds)
{
    const struct timeval limit = {.tv_sec = seconds};
    setsockopt(at, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
}

/* A host that answers nothing costs a few seconds a try, not the minutes of the system. */
static int try_to_connect(const struct addrinfo *list, int *error)
{
    for (const struct addrinfo *one = list; one; one = one->ai_next) {
        const int at = socket(one->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (at >= 0)
            limit_sending(at, 3);
        if (at >= 0 && connect(at, one->ai_addr, one->ai_addrlen) == 0) {
            limit_sending(at, 0);
            return at;
        }
        *error = errno;
        if (at >= 0)
            close(at);
    }
    return -1;
}

/* Rank 0 may be slower to come: again and again until the time is over. */
int wire_connect(const char *host, int port, double seconds)
{
    char number[16];
    snprintf(number, sizeof number, "%d", port);
    const struct addrinfo wanted = {.ai_family = AF_INET, .ai_socktype = SOCK_STREAM};
    struct addrinfo *list = NULL;
    const int unknown = getaddrinfo(host, number, &wanted, &list);
    if (unknown)
        pn_fail(NULL, "there is no host '%s' (MASTER_ADDR): %s", host, gai_strerror(unknown));
    const double until = pn_seconds() + seconds;
    const struct timespec pause = {.tv_nsec = 50000000};
    int error = 0, at = try_to_connect(list, &error);
    for (; at < 0 && pn_seconds() < until; at = try_to_connect(list, &error))
        nanosleep(&pause, NULL);
    freeaddrinfo(list);
    if (at < 0)
        pn_fail(NULL, "rank 0 was not found at %s, port %d, in %.3g seconds: %s (MASTER_ADDR, MASTER_PORT, PN_TIMEOUT)",
                host, port, seconds, strerror(error));
    set_up(at);
    return at;
}
