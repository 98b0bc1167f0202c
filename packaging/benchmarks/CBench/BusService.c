// A message bus, and a service on it that answers with fixed text: the minimum cost of a request over D-Bus.
//
//     BusService BROKER SOCKET REPLY
//
// Starts dbus-broker, makes it listen on SOCKET, and serves `Get` of org.identityd.Bench at /. This program is the
// broker's controller itself, because dbus-broker-launch does not run without systemd's journal. Every client may do
// anything, as on the bus of a user's session, and the limits are those of that bus. The broker ends with this program.
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <systemd/sd-bus.h>
#include <unistd.h>

static const char name[] = "org.identityd.Bench";

/// The number of connection names (:1.N) that are used up before the first request. All later names have five digits,
/// so that all answers have the same length.
enum { names_before = 10000 };

static int listening(const char *path) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (strlen(path) >= sizeof address.sun_path) return -ENAMETOOLONG;
    strcpy(address.sun_path, path);
    int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (listener < 0 || bind(listener, (struct sockaddr *)&address, sizeof address) || listen(listener, 4096))
        return -errno;
    return listener;
}

/// Starts the broker, and returns the end of a socket pair that controls it.
static int start(const char *broker) {
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair)) return -errno;
    pid_t process = fork();
    if (process < 0) return -errno;
    if (process) return close(pair[1]), pair[0];
    char number[16];
    snprintf(number, sizeof number, "%d", pair[1]);
    fcntl(pair[1], F_SETFD, 0);
    execl(
        broker, broker, "--controller", number, "--machine-id", "00000000000000000000000000000001", "--max-bytes",
        "1000000000", "--max-fds", "250000000", "--max-matches", "50000000", "--max-objects", "50000000", (char *)NULL);
    _exit(127);
}

/// Everybody may connect, own any name, send and receive anything. Users, groups and SELinux have no further rules.
static int add_listener(sd_bus *controller, int listener) {
    sd_bus_message *request = NULL;
    int result = sd_bus_message_new_method_call(
        controller, &request, NULL, "/org/bus1/DBus/Broker", "org.bus1.DBus.Broker", "AddListener");
    if (result >= 0) result = sd_bus_message_append(request, "oh", "/org/bus1/DBus/Listener/0", listener);
    const uint64_t first = 1, any = UINT64_MAX, none = 0;
    if (result >= 0)
        result = sd_bus_message_append(
            request, "v",
            "(a(u(bta(btbs)a(btssssuutt)a(btssssuutt)))a(buu(bta(btbs)a(btssssuutt)a(btssssuutt)))a(ss)bs)",
            1, (uint32_t)-1, 1, first, 1, 1, first, 1, "",
            1, 1, first, "", "", "", "", 0, 0, none, any,
            1, 1, first, "", "", "", "", 0, 0, none, any, 0, 0, 0, "session");
    if (result >= 0) result = sd_bus_call(controller, request, 0, NULL, NULL);
    sd_bus_message_unref(request);
    return result;
}

static int control(sd_bus **controller, int connection, int listener) {
    int result = sd_bus_new(controller);
    if (result >= 0) result = sd_bus_set_fd(*controller, connection, connection);
    if (result >= 0) result = sd_bus_start(*controller);
    if (result >= 0) result = add_listener(*controller, listener);
    return result;
}

static int connected(sd_bus **bus, const char *address) {
    int result = sd_bus_new(bus);
    if (result >= 0) result = sd_bus_set_address(*bus, address);
    if (result >= 0) result = sd_bus_set_bus_client(*bus, 1);
    if (result >= 0) result = sd_bus_start(*bus);
    const char *unique;
    // Waits for the answer to Hello.
    if (result >= 0) result = sd_bus_get_unique_name(*bus, &unique);
    return result;
}

static int get(sd_bus_message *request, void *reply, sd_bus_error *error) {
    (void)error;
    return sd_bus_reply_method_return(request, "s", (const char *)reply);
}

static const sd_bus_vtable methods[] = {
    SD_BUS_VTABLE_START(0),
    SD_BUS_METHOD("Get", "", "s", get, SD_BUS_VTABLE_UNPRIVILEGED),
    SD_BUS_VTABLE_END,
};

static int serve(const char *broker, const char *path, char *reply) {
    // The path must not exist before the service does.
    char hidden[sizeof ((struct sockaddr_un *)0)->sun_path], address[sizeof hidden + 16];
    if ((size_t)snprintf(hidden, sizeof hidden, "%s.new", path) >= sizeof hidden) return -ENAMETOOLONG;
    snprintf(address, sizeof address, "unix:path=%s", hidden);
    int listener = listening(hidden);
    if (listener < 0) return listener;
    int connection = start(broker);
    if (connection < 0) return connection;
    sd_bus *controller = NULL, *bus = NULL;
    int result = control(&controller, connection, listener);
    for (int count = 0; result >= 0 && count < names_before; count++) {
        result = connected(&bus, address);
        sd_bus_flush_close_unref(bus);
        bus = NULL;
    }
    if (result >= 0) result = connected(&bus, address);
    if (result >= 0) result = sd_bus_add_object_vtable(bus, NULL, "/", name, methods, reply);
    if (result >= 0) result = sd_bus_request_name(bus, name, 0);
    if (result >= 0 && rename(hidden, path)) result = -errno;
    while (result >= 0) {
        result = sd_bus_process(bus, NULL);
        if (result == 0) result = sd_bus_wait(bus, UINT64_MAX);
    }
    return result;
}

int main(int count, char **arguments) {
    if (count != 4) return fprintf(stderr, "usage: BusService BROKER SOCKET REPLY\n"), 64;
    return fprintf(stderr, "BusService: %s\n", strerror(-serve(arguments[1], arguments[2], arguments[3]))), 1;
}
