/* Replaces gettimeofday in a server. The file `clock` in its directory has the microseconds that are added to the
   time; or, after `=`, the time at which the clock stands still. */
#include <fcntl.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

int gettimeofday(struct timeval *restrict now, void *restrict zone) {
    struct timespec real;
    char text[32] = {0};
    long long micros;
    int file = open("clock", O_RDONLY);
    (void)zone;
    if (file >= 0) {
        if (read(file, text, sizeof text - 1) < 0) {
            abort();
        }
        close(file);
    }
    /* A system call, because the C library may call the function that is replaced here. */
    syscall(SYS_clock_gettime, CLOCK_REALTIME, &real);
    micros = real.tv_sec * 1000000LL + real.tv_nsec / 1000;
    micros = text[0] == '=' ? atoll(text + 1) : micros + atoll(text);
    now->tv_sec = micros / 1000000;
    now->tv_usec = micros % 1000000;
    return 0;
}
