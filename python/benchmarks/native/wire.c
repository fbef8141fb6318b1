/*
 * What a network carries without gridrpc: round trips and arrays over TCP, bare or with TLS 1.3 and the
 * cipher that gridrpc uses (AES-128-GCM). Both ends sleep until something comes; nothing is delayed
 * (TCP_NODELAY). Times are medians.
 *
 *   wire serve ADDRESS                            prints its ports, for tcp and tls; ends with its input
 *   wire ping tcp|tls ADDRESS PORT BYTES COUNT    us for BYTES there and back
 *   wire spin tcp|tls ADDRESS PORT BYTES COUNT    the same while both ends spin instead of sleeping
 *   wire send tcp|tls ADDRESS PORT BYTES COUNT    s for BYTES there, into memory that exists, and one
 *                                                 byte back
 *   wire relay PROCESSES COUNT                    us for 64 bytes there and back through so many processes
 *                                                 in a row, over Unix sockets. None of them sleeps: all
 *                                                 poll, and yield their processor between two polls
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/evp.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "timing.h"

#define CIPHER "TLS_AES_128_GCM_SHA256"
#define PAGE 4096

/* A connection: bare if there is no TLS on it. */
typedef struct {
    int socket;
    SSL *tls;
    int spins;
} wire;

/* What a connection is for; its first bytes. */
typedef struct {
    uint64_t length;
    uint64_t echo; /* 0: one byte is the answer; 2: both ends spin */
} request;

static void die(const char *what) {
    perror(what);
    exit(1);
}

static void fail(const char *what) {
    fprintf(stderr, "%s\n", what);
    exit(1);
}

/* Whether what has failed is to be tried again at once. */
static int again(wire w, ssize_t result) {
    int would_wait = w.tls ? SSL_get_error(w.tls, (int)result) == SSL_ERROR_WANT_READ : errno == EAGAIN;
    if (w.spins && result < 0 && would_wait) sched_yield();
    return w.spins && result < 0 && would_wait;
}

static void write_all(wire w, const char *bytes, size_t length) {
    while (length > 0) {
        int most = length > 1 << 30 ? 1 << 30 : (int)length;
        ssize_t count = w.tls ? SSL_write(w.tls, bytes, most) : send(w.socket, bytes, length, MSG_NOSIGNAL);
        if (count <= 0) die("send");
        bytes += count;
        length -= (size_t)count;
    }
}

/* Returns 0 at the end of the stream. */
static int read_all(wire w, char *bytes, size_t length) {
    while (length > 0) {
        int most = length > 1 << 30 ? 1 << 30 : (int)length;
        ssize_t count = w.tls ? SSL_read(w.tls, bytes, most) : recv(w.socket, bytes, length, 0);
        if (again(w, count)) continue;
        if (count <= 0) return 0;
        bytes += count;
        length -= (size_t)count;
    }
    return 1;
}

/* Bytes that no compressor makes shorter. */
static void fill(char *bytes, size_t length) {
    uint64_t state = 88172645463325252u;
    for (size_t i = 0; i < length; i++) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        bytes[i] = (char)state;
    }
}

static char *memory(size_t length) {
    char *bytes = malloc(length ? length : 1);
    if (bytes == NULL) fail("not enough memory");
    fill(bytes, length);
    return bytes;
}

static SSL_CTX *context(int server) {
    SSL_CTX *made = SSL_CTX_new(server ? TLS_server_method() : TLS_client_method());
    SSL_CTX_set_min_proto_version(made, TLS1_3_VERSION);
    if (SSL_CTX_set_ciphersuites(made, CIPHER) != 1) fail("no " CIPHER);
    SSL_CTX_set_mode(made, SSL_MODE_AUTO_RETRY);
    SSL_CTX_set_read_ahead(made, 1);
    SSL_CTX_set_default_read_buffer_len(made, 256 << 10);
    if (!server) return made;
    EVP_PKEY *key = EVP_EC_gen("P-256");
    X509 *certificate = X509_new();
    ASN1_INTEGER_set(X509_get_serialNumber(certificate), 1);
    X509_gmtime_adj(X509_getm_notBefore(certificate), 0);
    X509_gmtime_adj(X509_getm_notAfter(certificate), 24 * 3600);
    X509_set_pubkey(certificate, key);
    if (X509_sign(certificate, key, EVP_sha256()) == 0) fail("X509_sign");
    if (SSL_CTX_use_certificate(made, certificate) != 1 || SSL_CTX_use_PrivateKey(made, key) != 1) {
        fail("no certificate");
    }
    return made;
}

static wire on(int socket, SSL_CTX *context, int server) {
    wire w = {socket, NULL, 0};
    int one = 1;
    setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    if (context != NULL) {
        w.tls = SSL_new(context);
        SSL_set_fd(w.tls, socket);
        if ((server ? SSL_accept(w.tls) : SSL_connect(w.tls)) != 1) fail("no TLS handshake");
    }
    return w;
}

static struct sockaddr_in at(const char *address, int port) {
    struct sockaddr_in place = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    if (inet_pton(AF_INET, address, &place.sin_addr) != 1) fail("not an address");
    return place;
}

static int listen_at(const char *address, int *port) {
    struct sockaddr_in place = at(address, 0);
    socklen_t size = sizeof place;
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    if (bind(listener, (struct sockaddr *)&place, size) < 0 || listen(listener, 64) < 0) die("bind");
    getsockname(listener, (struct sockaddr *)&place, &size);
    *port = ntohs(place.sin_port);
    return listener;
}

static void spin(wire *w) {
    w->spins = 1;
    if (fcntl(w->socket, F_SETFL, O_NONBLOCK) < 0) die("fcntl");
}

/* A process for each connection: does what it asks for until its end. */
static void answer(wire w) {
    request wanted;
    if (!read_all(w, (char *)&wanted, sizeof wanted)) exit(0);
    char *bytes = memory(wanted.length);
    volatile char seen = 0;
    write_all(w, "!", 1);
    if (wanted.echo == 2) spin(&w);
    while (read_all(w, bytes, wanted.length)) {
        for (uint64_t i = 0; i < wanted.length; i += PAGE) seen += bytes[i];
        write_all(w, bytes, wanted.echo ? wanted.length : 1);
    }
    exit(0);
}

static void serve(const char *address) {
    int tcp, tls;
    struct pollfd watched[3] = {{0, POLLIN, 0}, {0, POLLIN, 0}, {0, POLLIN, 0}};
    watched[1].fd = listen_at(address, &tcp);
    watched[2].fd = listen_at(address, &tls);
    SSL_CTX *context_tls = context(1);
    printf("%d\n%d\n", tcp, tls);
    fflush(stdout);
    for (;;) {
        if (poll(watched, 3, -1) < 0) die("poll");
        if (watched[0].revents) {
            // What they used is on our account then, and so on that of who waits for us.
            while (wait(NULL) > 0) continue;
            exit(0);
        }
        for (int i = 1; i < 3; i++) {
            if (!watched[i].revents) continue;
            int accepted = accept(watched[i].fd, NULL, NULL);
            if (accepted < 0) die("accept");
            if (fork() == 0) answer(on(accepted, i == 2 ? context_tls : NULL, 1));
            close(accepted);
        }
    }
}

static double measure(wire w, request wanted, int count) {
    char *bytes = memory(wanted.length);
    double *times = malloc((size_t)count * sizeof *times);
    char ready;
    write_all(w, (const char *)&wanted, sizeof wanted);
    if (!read_all(w, &ready, 1)) fail("the other end ended");
    if (wanted.echo == 2) spin(&w);
    for (int i = -count / 10 - 1; i < count; i++) {
        double begin = now();
        write_all(w, bytes, wanted.length);
        if (!read_all(w, bytes, wanted.echo ? wanted.length : 1)) fail("the other end ended");
        if (i >= 0) times[i] = now() - begin;
    }
    return median(times, count);
}

static int poll_for(int socket, char *bytes, size_t length) {
    ssize_t count;
    while ((count = recv(socket, bytes, length, MSG_DONTWAIT)) < 0) sched_yield();
    return count > 0;
}

/* Passes messages on to so many more processes, and their answers back. */
static void pass_on(int before, int more) {
    char bytes[64];
    int next[2] = {-1, -1};
    if (more > 0) {
        if (socketpair(AF_UNIX, SOCK_STREAM, 0, next) < 0) die("socketpair");
        if (fork() == 0) {
            close(before);
            close(next[0]);
            pass_on(next[1], more - 1);
            exit(0);
        }
        close(next[1]);
    }
    while (poll_for(before, bytes, sizeof bytes)) {
        if (more > 0) {
            send(next[0], bytes, sizeof bytes, MSG_NOSIGNAL);
            poll_for(next[0], bytes, sizeof bytes);
        }
        send(before, bytes, sizeof bytes, MSG_NOSIGNAL);
    }
}

static double relay(int processes, int count) {
    char bytes[64] = {0};
    int ends[2];
    double *times = malloc((size_t)count * sizeof *times);
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) < 0) die("socketpair");
    if (fork() == 0) {
        close(ends[0]);
        pass_on(ends[1], processes - 2);
        exit(0);
    }
    close(ends[1]);
    for (int i = -count / 10 - 1; i < count; i++) {
        double begin = now();
        send(ends[0], bytes, sizeof bytes, MSG_NOSIGNAL);
        if (!poll_for(ends[0], bytes, sizeof bytes)) fail("the other end ended");
        if (i >= 0) times[i] = now() - begin;
    }
    close(ends[0]);
    while (wait(NULL) > 0) continue;
    return median(times, count);
}

int main(int argc, char **argv) {
    signal(SIGPIPE, SIG_IGN);
    if (argc == 4 && strcmp(argv[1], "relay") == 0 && atoi(argv[2]) >= 2 && atoi(argv[3]) >= 1) {
        printf("%.9f\n", 1e6 * relay(atoi(argv[2]), atoi(argv[3])));
        return 0;
    }
    if (argc == 3 && strcmp(argv[1], "serve") == 0) serve(argv[2]);
    if (argc != 7 || atoi(argv[6]) < 1) {
        fprintf(stderr, "usage: wire serve ADDRESS\n"
                        "       wire ping|spin|send tcp|tls ADDRESS PORT BYTES COUNT\n"
                        "       wire relay PROCESSES COUNT\n");
        return 2;
    }
    int echo = strcmp(argv[1], "spin") == 0 ? 2 : strcmp(argv[1], "ping") == 0, connected = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in place = at(argv[3], atoi(argv[4]));
    if (connect(connected, (struct sockaddr *)&place, sizeof place) < 0) die("connect");
    wire w = on(connected, strcmp(argv[2], "tls") == 0 ? context(0) : NULL, 0);
    request wanted = {strtoull(argv[5], NULL, 10), (uint64_t)echo};
    printf("%.9f\n", (echo ? 1e6 : 1) * measure(w, wanted, atoi(argv[6])));
    return 0;
}
