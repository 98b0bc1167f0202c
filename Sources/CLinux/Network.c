#define _GNU_SOURCE
#include "CLinux.h"
#include <errno.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <sys/socket.h>
#include <unistd.h>

int clinux_network_socket(void) {
    int number = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_ROUTE);
    if (number < 0) return -1;
    struct sockaddr_nl address = {
        .nl_family = AF_NETLINK,
        .nl_groups = RTMGRP_IPV4_IFADDR | RTMGRP_IPV6_IFADDR | RTMGRP_IPV4_ROUTE | RTMGRP_IPV6_ROUTE,
    };
    if (bind(number, (struct sockaddr *)&address, sizeof address) == 0) return number;
    int code = errno;
    close(number);
    errno = code;
    return -1;
}

static int is_network(const struct nlmsghdr *message) {
    const void *data = NLMSG_DATA(message);
    if (message->nlmsg_type == RTM_NEWADDR && message->nlmsg_len >= NLMSG_LENGTH(sizeof(struct ifaddrmsg)))
        return ((const struct ifaddrmsg *)data)->ifa_scope == RT_SCOPE_UNIVERSE;
    if (message->nlmsg_type == RTM_NEWROUTE && message->nlmsg_len >= NLMSG_LENGTH(sizeof(struct rtmsg)))
        return ((const struct rtmsg *)data)->rtm_dst_len == 0;
    return 0;
}

int clinux_network_appeared(int socket) {
    _Alignas(struct nlmsghdr) char buffer[16384];
    int appeared = 0;
    for (;;) {
        struct sockaddr_nl sender;
        socklen_t room = sizeof sender;
        ssize_t count = recvfrom(socket, buffer, sizeof buffer, MSG_DONTWAIT, (struct sockaddr *)&sender, &room);
        if (count < 0 && errno == EINTR) continue;
        // The kernel had no room for everything. The error is told once.
        if (count < 0 && errno == ENOBUFS) {
            appeared = 1;
            continue;
        }
        if (count <= 0) return appeared;
        // Another process can send to this socket, too.
        if (sender.nl_pid != 0) continue;
        int left = (int)count;
        for (const struct nlmsghdr *next = (const struct nlmsghdr *)buffer; NLMSG_OK(next, left);
             next = NLMSG_NEXT(next, left))
            if (is_network(next)) appeared = 1;
    }
}
