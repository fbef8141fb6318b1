/*
 * What this machine allows: round trips over sockets, a copy in memory, bytes to and fro over TCP.
 * Prints one number; times are medians.
 *
 *   limits ping-pong COUNT     us per round trip of 64 bytes between two processes, Unix socket
 *   limits ping-pong-tcp COUNT the same over the loopback interface
 *   limits ping-pong-memory COUNT
 *                              the same through shared memory, where both look until something comes
 *   limits echo-window COUNT   round trips of 64 bytes per second, Unix socket, 64 outstanding;
 *                              each is sent and received by a system call of its own
 *   limits memcpy BYTES COUNT  s per copy into memory that is warm
 *   limits tcp BYTES COUNT     s for BYTES to another process and back, over the loopback interface
 */
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "timing.h"

#define FRAME 64
#define WINDOW 64
/* Looks at shared memory, after which another process may need the processor. */
#define LOOKS 20000

static void die(const char *what) {
    perror(what);
    exit(1);
}

static void write_all(int socket, const char *bytes, size_t length) {
    while (length > 0) {
        ssize_t count = send(socket, bytes, length, MSG_NOSIGNAL);
        if (count < 0) die("send");
        bytes += count;
        length -= (size_t)count;
    }
}

/* Returns 0 at the end of the stream. */
static int read_all(int socket, char *bytes, size_t length) {
    while (length > 0) {
        ssize_t count = recv(socket, bytes, length, 0);
        if (count < 0) die("recv");
        if (count == 0) return 0;
        bytes += count;
        length -= (size_t)count;
    }
    return 1;
}

/* A child that sends everything back, `length` bytes at a time. */
static void echo(int socket, size_t length) {
    char *bytes = malloc(length);
    while (read_all(socket, bytes, length)) write_all(socket, bytes, length);
    exit(0);
}

static double round_trips(int socket, size_t length, int count) {
    char *bytes = malloc(length);
    double *times = malloc((size_t)count * sizeof *times);
    memset(bytes, 1, length);
    for (int i = -count / 10 - 1; i < count; i++) {
        double begin = now();
        write_all(socket, bytes, length);
        if (!read_all(socket, bytes, length)) die("the other process ended");
        if (i >= 0) times[i] = now() - begin;
    }
    return median(times, count);
}

static void unix_pair(int pair[2]) {
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) < 0) die("socketpair");
}

static void tcp_pair(int pair[2]) {
    struct sockaddr_in address = {.sin_family = AF_INET};
    socklen_t size = sizeof address;
    int one = 1, listener = socket(AF_INET, SOCK_STREAM, 0);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (bind(listener, (struct sockaddr *)&address, size) < 0 || listen(listener, 1) < 0) die("bind");
    getsockname(listener, (struct sockaddr *)&address, &size);
    pair[0] = socket(AF_INET, SOCK_STREAM, 0);
    if (connect(pair[0], (struct sockaddr *)&address, size) < 0) die("connect");
    pair[1] = accept(listener, NULL, NULL);
    setsockopt(pair[0], IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    setsockopt(pair[1], IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    close(listener);
}

static double windowed(int socket, size_t length, int count) {
    char *bytes = malloc(length);
    memset(bytes, 1, length);
    double begin = now();
    for (int sent = 0; sent < count + WINDOW; sent++) {
        if (sent >= WINDOW && !read_all(socket, bytes, length)) die("the other process ended");
        if (sent < count) write_all(socket, bytes, length);
    }
    return count / (now() - begin);
}

typedef double measure(int socket, size_t length, int count);

/* What `measure` finds at one end, with an echo at the other. */
static double exchange(void (*make)(int[2]), measure *measure, size_t length, int count) {
    int pair[2];
    make(pair);
    pid_t child = fork();
    if (child < 0) die("fork");
    if (child == 0) {
        close(pair[0]);
        echo(pair[1], length);
    }
    close(pair[1]);
    double result = measure(pair[0], length, count);
    close(pair[0]);
    waitpid(child, NULL, 0);
    return result;
}

/* What two processes share: whose turn it is, in a cache line of its own, and the message. */
struct mailbox {
    _Alignas(64) atomic_int turn;
    _Alignas(64) char bytes[FRAME];
};

enum { ASK, ANSWER, END };

/* Returns whose turn it has become. */
static int wait_while(struct mailbox *box, int turn) {
    int now_turn;
    for (int looks = 1; (now_turn = atomic_load_explicit(&box->turn, memory_order_acquire)) == turn; looks++)
        if (looks % LOOKS == 0) sched_yield();
    return now_turn;
}

static double through_memory(int count) {
    struct mailbox *box =
        mmap(NULL, sizeof *box, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (box == MAP_FAILED) die("mmap");
    char bytes[FRAME];
    double *times = malloc((size_t)count * sizeof *times);
    memset(bytes, 1, FRAME);
    pid_t child = fork();
    if (child < 0) die("fork");
    if (child == 0) {
        while (wait_while(box, ASK) == ANSWER) {
            memcpy(bytes, box->bytes, FRAME);
            memcpy(box->bytes, bytes, FRAME);
            atomic_store_explicit(&box->turn, ASK, memory_order_release);
        }
        _exit(0);
    }
    for (int i = -count / 10 - 1; i < count; i++) {
        double begin = now();
        memcpy(box->bytes, bytes, FRAME);
        atomic_store_explicit(&box->turn, ANSWER, memory_order_release);
        wait_while(box, ANSWER);
        memcpy(bytes, box->bytes, FRAME);
        if (i >= 0) times[i] = now() - begin;
    }
    atomic_store(&box->turn, END);
    waitpid(child, NULL, 0);
    return median(times, count);
}

static double copies(size_t length, int count) {
    char *from = malloc(length), *to = malloc(length);
    double *times = malloc((size_t)count * sizeof *times);
    memset(from, 1, length);
    memset(to, 2, length);
    for (int i = 0; i < count; i++) {
        from[i] = (char)i; /* so that no copy can be left out */
        double begin = now();
        memcpy(to, from, length);
        times[i] = now() - begin;
        if (to[i] != (char)i) die("memcpy");
    }
    return median(times, count);
}

int main(int argc, char **argv) {
    if (argc == 3 && strcmp(argv[1], "ping-pong") == 0) {
        printf("%.9f\n", 1e6 * exchange(unix_pair, round_trips, FRAME, atoi(argv[2])));
    } else if (argc == 3 && strcmp(argv[1], "ping-pong-tcp") == 0) {
        printf("%.9f\n", 1e6 * exchange(tcp_pair, round_trips, FRAME, atoi(argv[2])));
    } else if (argc == 3 && strcmp(argv[1], "ping-pong-memory") == 0) {
        printf("%.9f\n", 1e6 * through_memory(atoi(argv[2])));
    } else if (argc == 3 && strcmp(argv[1], "echo-window") == 0) {
        printf("%.9f\n", exchange(unix_pair, windowed, FRAME, atoi(argv[2])));
    } else if (argc == 4 && strcmp(argv[1], "memcpy") == 0) {
        printf("%.9f\n", copies(strtoul(argv[2], NULL, 10), atoi(argv[3])));
    } else if (argc == 4 && strcmp(argv[1], "tcp") == 0) {
        printf("%.9f\n", exchange(tcp_pair, round_trips, strtoul(argv[2], NULL, 10), atoi(argv[3])));
    } else {
        fprintf(stderr, "usage: limits ping-pong|ping-pong-tcp|ping-pong-memory|echo-window COUNT\n"
                        "       limits memcpy|tcp BYTES COUNT\n");
        return 2;
    }
    return 0;
}
