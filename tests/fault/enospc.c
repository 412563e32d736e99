/* enospc.c: a full disk, preloaded: LD_PRELOAD=enospc.so FAULT=write:3 makes the third and every later write to a
 * regular file fail with ENOSPC; FAULT=fsync:1 and FAULT=close:2 the same of these calls. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Whether this call, the n-th of its name on a regular file, is to fail. */
static int fails(const char *call, int file, int *calls)
{
    struct stat status;
    const char *fault = getenv("FAULT");
    const size_t length = strlen(call);
    if (!fault || strncmp(fault, call, length) || fault[length] != ':')
        return 0;
    if (fstat(file, &status) || !S_ISREG(status.st_mode) || !(status.st_mode & S_IWUSR))
        return 0;
    return ++*calls >= atoi(fault + length + 1);
}

ssize_t write(int file, const void *data, size_t length)
{
    static int calls;
    ssize_t (*next)(int, const void *, size_t);
    *(void **)&next = dlsym(RTLD_NEXT, "write");
    if (!fails("write", file, &calls))
        return next(file, data, length);
    errno = ENOSPC;
    return -1;
}

int fsync(int file)
{
    static int calls;
    int (*next)(int);
    *(void **)&next = dlsym(RTLD_NEXT, "fsync");
    if (!fails("fsync", file, &calls))
        return next(file);
    errno = ENOSPC;
    return -1;
}

int close(int file)
{
    static int calls;
    int (*next)(int);
    *(void **)&next = dlsym(RTLD_NEXT, "close");
    const int failing = fails("close", file, &calls);
    const int result = next(file);
    if (!failing)
        return result;
    errno = ENOSPC;
    return -1;
}
