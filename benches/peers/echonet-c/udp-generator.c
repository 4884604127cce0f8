// The least that a UDP generator can do: one socket, WINDOW requests under way, one receive and one send for each.
//   udp-generator PORT WINDOW SECONDS        ECHONET Lite Get of one property, 127.0.0.1
// Prints: requests seconds lost cpu_us
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + t.tv_nsec * 1e-9;
}

static int s;

static void ask(unsigned tid) {
    unsigned char frame[14] = {0x10, 0x81, tid >> 8, tid, 0x05, 0xff, 0x01, 0x02, 0x90, 0x01, 0x62, 1, 0x80, 0};
    if (send(s, frame, sizeof frame, 0) < 0) perror("send"), exit(1);
}

int main(int count, char **argument) {
    if (count != 4) return 2;
    struct sockaddr_in server = {.sin_family = AF_INET, .sin_port = htons(atoi(argument[1])), .sin_addr.s_addr = inet_addr("127.0.0.1")};
    struct timeval patience = {1, 0};
    s = socket(AF_INET, SOCK_DGRAM, 0);
    setsockopt(s, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    if (connect(s, (struct sockaddr *)&server, sizeof server)) perror("connect"), exit(1);
    int window = atoi(argument[2]);
    double start = now(), at = start, end = start + atof(argument[3]);
    long done = 0, lost = 0;
    unsigned tid = 0;
    unsigned char frame[1500];
    for (int i = 0; i < window; i++) ask(tid++);
    while (at < end) {
        if (recv(s, frame, sizeof frame, 0) < 14) {
            // Nothing for a second: all are lost.
            lost += window;
            for (int i = 0; i < window; i++) ask(tid++);
        } else {
            if (frame[10] == 0x72) done++;
            ask(tid++);
        }
        at = now();
    }
    struct rusage used;
    getrusage(RUSAGE_SELF, &used);
    double cpu = used.ru_utime.tv_sec + used.ru_stime.tv_sec + (used.ru_utime.tv_usec + used.ru_stime.tv_usec) * 1e-6;
    printf("%ld %f %ld %f\n", done, at - start, lost, cpu * 1e6 / (done ? done : 1));
}
