/* Whole files into memory, plain or gzip. zlib reads both through one interface and checks the length and CRC of gzip
 * data. */
#define _FILE_OFFSET_BITS 64
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <zlib.h>

#include "data/data.h"

static uint8_t *grow(const char *path, uint8_t *bytes, int64_t room)
{
    uint8_t *grown = realloc(bytes, (size_t)room);
    if (!grown)
        pn_fail(NULL, "%s: no memory for %lld bytes", path, (long long)room);
    return grown;
}

static int64_t size_of_file(const char *path)
{
    struct stat status;
    if (stat(path, &status) != 0)
        pn_fail(NULL, "%s: %s", path, strerror(errno));
    if (!S_ISREG(status.st_mode))
        pn_fail(NULL, "%s: not a file", path);
    if (status.st_size == 0)
        pn_fail(NULL, "%s: the file is empty", path);
    return (int64_t)status.st_size;
}

pn_file pn_file_read(const char *path)
{
    int64_t size = size_of_file(path);
    if (size > INT64_MAX / 8)
        pn_fail(NULL, "%s: no memory for %lld bytes", path, (long long)size);
    errno = 0;
    gzFile file = gzopen(path, "rb");
    if (!file)
        pn_fail(NULL, "%s: %s", path, errno ? strerror(errno) : "no memory to read it");
    /* One byte more than a plain file needs: the end is seen without growing. Gzip files grow by doubling. */
    int64_t room = size + 1;
    pn_file all = {grow(path, NULL, room), 0};
    for (;;) {
        if (all.count == room) {
            if (room > INT64_MAX / 2)
                pn_fail(NULL, "%s: too large", path);
            room *= 2;
            all.bytes = grow(path, all.bytes, room);
        }
        int64_t most = room - all.count < 1 << 28 ? room - all.count : 1 << 28;
        errno = 0;
        int got = gzread(file, all.bytes + all.count, (unsigned)most);
        int state = Z_OK;
        const char *message = gzerror(file, &state);
        if (got < 0 || (state != Z_OK && state != Z_STREAM_END)) {
            if (state == Z_BUF_ERROR)
                pn_fail(NULL, "%s: truncated: the gzip data end early, after %lld bytes", path,
                        (long long)(all.count + (got > 0 ? got : 0)));
            pn_fail(NULL, "%s: %s", path, state == Z_ERRNO && errno ? strerror(errno) : message);
        }
        if (got == 0)
            break;
        all.count += got;
    }
    int closed = gzclose(file);
    if (closed != Z_OK)
        pn_fail(NULL, "%s: %s", path, closed == Z_BUF_ERROR ? "truncated: the gzip data end early" : "read error");
    if (all.count == 0)
        pn_fail(NULL, "%s: nothing in it after decompression", path);
    return all;
}

void pn_file_free(pn_file *file)
{
    free(file->bytes);
    *file = (pn_file){0};
}

bool pn_file_find(char path[PN_PATH], const char *folder, const char *const *names)
{
    static const char *const ending[] = {"", ".gz"};
    for (; *names; names++)
        for (int i = 0; i < 2; i++) {
            struct stat status;
            int length = snprintf(path, PN_PATH, "%s/%s%s", folder, *names, ending[i]);
            if (length < 0 || length >= PN_PATH)
                pn_fail(NULL, "%.80s...: the name of the folder is too long", folder);
            if (stat(path, &status) == 0)
                return true;
            if (errno != ENOENT && errno != ENOTDIR)
                pn_fail(NULL, "%s: %s", path, strerror(errno));
        }
    return false;
}

void pn_file_need(char path[PN_PATH], const char *folder, const char *const *names, const char *hint)
{
    struct stat status;
    if (stat(folder, &status) != 0)
        pn_fail(NULL, "%s: %s; %s", folder, strerror(errno), hint);
    if (!S_ISDIR(status.st_mode))
        pn_fail(NULL, "%s: not a folder; %s", folder, hint);
    if (!pn_file_find(path, folder, names))
        pn_fail(NULL, "%s: no %s in it, nor %s.gz; %s", folder, names[0], names[0], hint);
}
