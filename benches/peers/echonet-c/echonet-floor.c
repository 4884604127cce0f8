// The floor: the least that a device can do. It answers Get from a table of 128 values per object, of one property in place,
// one socket, one blocking recvmmsg and one send a batch; no rules, no checks beyond its own safety.
//   echonet-floor INTERFACE-ADDRESS        (where it joins the ECHONET group)
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <netinet/udp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

enum { BATCH = 32, SIZE = 1500, PORT = 3610, MOST = 16 };

static const unsigned char LIGHT[3] = {0x02, 0x90, 0x01};
static unsigned char profile[128][18], light[128][18]; // length, value

static void set(unsigned char table[128][18], int epc, int length, const char *value) {
    table[epc & 0x7f][0] = length;
    memcpy(table[epc & 0x7f] + 1, value, length);
}

static void fill(void) {
    set(profile, 0x80, 1, "\x30"), set(profile, 0x82, 4, "\x01\x0e\x01\x00");
    set(profile, 0x83, 17, "\xfe\x00\x00\x77\0\0\0\0\0\0\0\0\0\0\0\0\x01");
    set(profile, 0x8a, 3, "\0\0\x77"), set(profile, 0x9d, 3, "\x02\x80\xd5"), set(profile, 0x9e, 1, "\0");
    set(profile, 0x9f, 12, "\x0b\x80\x82\x83\x8a\x9d\x9e\x9f\xd3\xd4\xd6\xd7");
    set(profile, 0xd3, 3, "\0\0\x01"), set(profile, 0xd4, 2, "\0\x02"), set(profile, 0xd5, 4, "\x01\x02\x90\x01");
    set(profile, 0xd6, 4, "\x01\x02\x90\x01"), set(profile, 0xd7, 3, "\x01\x02\x90");
    set(light, 0x80, 1, "\x30"), set(light, 0xb0, 1, "\x64");
}

// The same for a request of several properties, which is what a search may be.
static int answer_several(unsigned char *frame, int length) {
    int count = length > 12 ? frame[11] : 0, end = 12;
    if (count < 2 || count > MOST || length != 12 + 2 * count || frame[10] != 0x62) return 0;
    unsigned char asked[2 * MOST], eoj[3];
    memcpy(asked, frame + 12, 2 * count);
    unsigned char(*table)[18] = memcmp(frame + 7, LIGHT, 3) ? profile : light;
    memcpy(eoj, frame + 4, 3), memcpy(frame + 4, frame + 7, 3), memcpy(frame + 7, eoj, 3);
    frame[10] = 0x72;
    for (int i = 0; i < count; i++) {
        const unsigned char *value = table[asked[2 * i] & 0x7f];
        if (asked[2 * i] < 0x80) return 0;
        if (!value[0]) frame[10] = 0x52;
        frame[end] = asked[2 * i], memcpy(frame + end + 1, value, value[0] + 1);
        end += 2 + value[0];
    }
    return end;
}

// Turns a request into its answer in place; its length, 0 for none.
static int answer(unsigned char *frame, int length) {
    if (length != 14) return answer_several(frame, length);
    if (frame[10] != 0x62 || frame[12] < 0x80) return 0;
    unsigned char(*table)[18] = memcmp(frame + 7, LIGHT, 3) ? profile : light, eoj[3];
    memcpy(eoj, frame + 4, 3), memcpy(frame + 4, frame + 7, 3), memcpy(frame + 7, eoj, 3);
    const unsigned char *value = table[frame[12] & 0x7f];
    frame[10] = value[0] ? 0x72 : 0x52;
    memcpy(frame + 13, value, value[0] + 1);
    return 14 + value[0];
}

// Sends answers; those of a batch to one peer, equally long, as one datagram that the kernel cuts up.
static void send_all(int s, struct mmsghdr *sent, struct iovec *out, int answers) {
    union { char space[CMSG_SPACE(2)]; struct cmsghdr align; } control = {0};
    struct sockaddr_in *first = sent[0].msg_hdr.msg_name;
    int alike = answers > 1;
    for (int i = 1; alike && i < answers; i++)
        alike = out[i].iov_len == out[0].iov_len && !memcmp(sent[i].msg_hdr.msg_name, first, sizeof *first);
    if (!alike) {
        sendmmsg(s, sent, answers, 0);
        return;
    }
    struct msghdr all = {first, sizeof *first, out, answers, &control, sizeof control.space, 0};
    struct cmsghdr *header = CMSG_FIRSTHDR(&all);
    header->cmsg_level = IPPROTO_UDP, header->cmsg_type = UDP_SEGMENT, header->cmsg_len = CMSG_LEN(2);
    *(unsigned short *)CMSG_DATA(header) = out[0].iov_len;
    sendmsg(s, &all, 0);
}

static void serve(int s) {
    static unsigned char frames[BATCH][SIZE];
    static struct sockaddr_in peers[BATCH];
    static struct iovec in[BATCH], out[BATCH];
    static struct mmsghdr received[BATCH], sent[BATCH];
    for (int i = 0; i < BATCH; i++) {
        in[i] = (struct iovec){frames[i], SIZE};
        received[i].msg_hdr = (struct msghdr){&peers[i], sizeof peers[i], &in[i], 1, 0, 0, 0};
    }
    for (;;) {
        int count = recvmmsg(s, received, BATCH, MSG_WAITFORONE, 0), answers = 0;
        for (int i = 0; i < count; i++) {
            int length = answer(frames[i], received[i].msg_len);
            if (!length) continue;
            peers[i].sin_port = htons(PORT);
            out[answers] = (struct iovec){frames[i], length};
            sent[answers].msg_hdr = (struct msghdr){&peers[i], sizeof peers[i], &out[answers], 1, 0, 0, 0};
            answers++;
        }
        if (answers) send_all(s, sent, out, answers);
    }
}

int main(int count, char **argument) {
    if (count != 2) return 2;
    int s = socket(AF_INET, SOCK_DGRAM, 0), on = 1;
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(PORT)};
    struct ip_mreq group = {.imr_multiaddr.s_addr = inet_addr("224.0.23.0"), .imr_interface.s_addr = inet_addr(argument[1])};
    setsockopt(s, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (bind(s, (struct sockaddr *)&at, sizeof at) || setsockopt(s, IPPROTO_IP, IP_ADD_MEMBERSHIP, &group, sizeof group)) {
        perror("port 3610");
        return 1;
    }
    fill();
    puts("ready"), fflush(stdout);
    serve(s);
}
