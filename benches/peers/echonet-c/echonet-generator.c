// Asks a device for one property at a time, up to WINDOW requests under way, and checks every answer.
//   echonet-generator get LOCAL INTERFACE-ADDRESS DEVICE WINDOW SECONDS           property 80 of object 029001
//   echonet-generator count LOCAL INTERFACE-ADDRESS DEVICE WINDOW REQUESTS        the same, so many times: the floor as a controller
//   echonet-generator profile LOCAL INTERFACE-ADDRESS DEVICE ITERATIONS SECONDS   12 properties of the node profile, one by one,
//                                                                                 after a search by multicast, at most so long
// Prints at the end: requests seconds lost wrong cpu_us p50_us p99_us. With profile it prints "begin" when it has found the device,
// and ends when its input does, so that its CPU time can be read until then.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>

enum { PORT = 3610, WINDOW_MAX = 64, SIZE = 512, BUCKETS = 1 << 17 };

static const unsigned char LIGHT[3] = {0x02, 0x90, 0x01}, PROFILE[3] = {0x0e, 0xf0, 0x01};
static const unsigned char PROPERTIES[12] = {0x80, 0x82, 0x83, 0x8a, 0x9d, 0x9e, 0x9f, 0xd3, 0xd4, 0xd5, 0xd6, 0xd7};

static int s;
static struct sockaddr_in device;
static unsigned latencies[BUCKETS]; // by microsecond
static long lost, wrong, done;
static double sent_at[65536]; // by TID; 0 is not under way

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + t.tv_nsec * 1e-9;
}

static void die(const char *what) {
    perror(what);
    exit(1);
}

static int request(unsigned char *frame, unsigned tid, const unsigned char *eoj, int epc) {
    const unsigned char head[14] = {0x10, 0x81, tid >> 8, tid, 0x05, 0xff, 0x01, eoj[0], eoj[1], eoj[2], 0x62, 1, epc, 0};
    memcpy(frame, head, 14);
    return 14;
}

// Counts an answer; whether it belongs to a request under way.
static int took(const unsigned char *frame, int length, const unsigned char *eoj, int epc, double at) {
    if (length < 14 || frame[0] != 0x10 || frame[1] != 0x81) return wrong++, 0;
    if (frame[10] == 0x73 || frame[10] < 0x70) if (frame[10] != 0x52) return 0; // notifications, requests of others
    unsigned tid = frame[2] << 8 | frame[3];
    if (!sent_at[tid]) return wrong++, 0;
    // A refusal is an answer: not all read D5, which is there to be announced.
    int refused = frame[10] == 0x52 && epc == 0xd5;
    int right = refused || (frame[10] == 0x72 && frame[11] == 1 && frame[12] == epc && length == 14 + frame[13]);
    if (memcmp(frame + 4, eoj, 3) || !right) wrong++;
    long us = (at - sent_at[tid]) * 1e6;
    latencies[us < BUCKETS ? us : BUCKETS - 1]++;
    sent_at[tid] = 0;
    done++;
    return 1;
}

static void windowed(int window, double seconds, long limit) {
    static unsigned char out[WINDOW_MAX][16], in[WINDOW_MAX][SIZE];
    static struct iovec outs[WINDOW_MAX], ins[WINDOW_MAX];
    static struct mmsghdr received[WINDOW_MAX];
    struct msghdr sending = {&device, sizeof device, outs, 0, 0, 0, 0};
    int size = 14;
    // The kernel cuts a batch into requests, which leaves this side time to spare.
    if (window > 1 && setsockopt(s, IPPROTO_UDP, UDP_SEGMENT, &size, sizeof size)) die("UDP_SEGMENT");
    for (int i = 0; i < WINDOW_MAX; i++) {
        outs[i] = (struct iovec){out[i], 14}, ins[i] = (struct iovec){in[i], SIZE};
        received[i].msg_hdr = (struct msghdr){0, 0, &ins[i], 1, 0, 0, 0};
    }
    unsigned tid = 0;
    int under_way = 0;
    double at = now(), end = at + seconds;
    long left = limit;
    while ((at < end && left) || under_way) {
        int fresh = at < end ? window - under_way : 0;
        if (fresh > left) fresh = left;
        left -= fresh;
        for (int i = 0; i < fresh; i++) {
            tid = (tid + 1) & 0xffff;
            request(out[i], tid, LIGHT, 0x80);
            sent_at[tid] = at;
        }
        sending.msg_iovlen = fresh;
        if (fresh && sendmsg(s, &sending, 0) < 0) die("send");
        under_way += fresh;
        int count = window == 1 ? (received[0].msg_len = recv(s, in[0], SIZE, 0), received[0].msg_len == -1u ? -1 : 1)
                                : recvmmsg(s, received, window, MSG_WAITFORONE, 0);
        at = now();
        if (count < 0) {
            if (errno != EAGAIN) die("receive");
            lost += under_way, under_way = 0; // nothing for a second
            memset(sent_at, 0, sizeof sent_at);
        }
        for (int i = 0; i < count; i++) under_way -= took(in[i], received[i].msg_len, LIGHT, 0x80, at);
    }
}

// The device is alone on its network, so whoever answers is it.
static void search(void) {
    unsigned char frame[SIZE], answer[SIZE];
    struct sockaddr_in group = {.sin_family = AF_INET, .sin_port = htons(PORT), .sin_addr.s_addr = inet_addr("224.0.23.0")};
    int length = request(frame, 0, PROFILE, 0xd6);
    for (int tries = 0; tries < 5; tries++) {
        if (sendto(s, frame, length, 0, (struct sockaddr *)&group, sizeof group) < 0) die("search");
        while (recv(s, answer, SIZE, 0) > 0)
            if (answer[10] == 0x72 && answer[12] == 0xd6) return;
    }
    die("not found by multicast");
}

static void profile(int iterations, double end) {
    unsigned char frame[SIZE];
    for (int i = 0; i < iterations * 12 && now() < end; i++) {
        unsigned tid = i & 0xffff;
        int length = request(frame, tid, PROFILE, PROPERTIES[i % 12]);
        sent_at[tid] = now();
        if (sendto(s, frame, length, 0, (struct sockaddr *)&device, sizeof device) < 0) die("send");
        do {
            length = recv(s, frame, SIZE, 0);
            if (length < 0) lost++, sent_at[tid] = 0;
        } while (length >= 0 && !took(frame, length, PROFILE, PROPERTIES[i % 12], now()));
    }
}

static int percentile(double share) {
    long seen = 0;
    for (int us = 0; us < BUCKETS; us++)
        if ((seen += latencies[us]) >= share * done) return us;
    return BUCKETS;
}

int main(int count, char **argument) {
    if (count != 7) return 2;
    s = socket(AF_INET, SOCK_DGRAM, 0);
    int on = 1, space = 4 << 20;
    struct timeval patience = {1, 0};
    struct in_addr interface = {inet_addr(argument[3])};
    struct sockaddr_in local = {.sin_family = AF_INET, .sin_port = htons(PORT), .sin_addr.s_addr = inet_addr(argument[2])};
    device = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons(PORT), .sin_addr.s_addr = inet_addr(argument[4])};
    setsockopt(s, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    setsockopt(s, SOL_SOCKET, SO_RCVBUF, &space, sizeof space);
    setsockopt(s, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    setsockopt(s, IPPROTO_IP, IP_MULTICAST_IF, &interface, sizeof interface);
    if (bind(s, (struct sockaddr *)&local, sizeof local)) die("bind");
    int number = atoi(argument[5]);
    int is_profile = !strcmp(argument[1], "profile"), is_count = !strcmp(argument[1], "count");
    if (is_profile) search();
    if (is_profile) puts("begin"), fflush(stdout);
    double start = now();
    if (number < 1 || (!is_profile && number > WINDOW_MAX)) return 2;
    if (is_profile) profile(number, start + atof(argument[6]));
    else windowed(number, is_count ? 1e9 : atof(argument[6]), is_count ? atol(argument[6]) : 1L << 60);
    double seconds = now() - start;
    struct rusage used;
    getrusage(RUSAGE_SELF, &used);
    double cpu = used.ru_utime.tv_sec + used.ru_stime.tv_sec + (used.ru_utime.tv_usec + used.ru_stime.tv_usec) * 1e-6;
    printf("%ld %f %ld %ld %f %d %d\n", done, seconds, lost, wrong, cpu * 1e6 / (done ? done : 1), percentile(.5), percentile(.99));
    fflush(stdout);
    while (is_profile && getchar() != EOF);
}
