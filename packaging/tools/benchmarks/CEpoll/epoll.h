// epoll(7), which Swift's module of the C library lacks.
#include <sys/epoll.h>
