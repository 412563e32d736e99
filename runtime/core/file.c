#include "core/file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *because(int error)
{
    return strerror(error);
}

const char *file_begin(NewFile *file, const char *path)
{
    struct stat status;
    memset(file, 0, sizeof *file);
    file->path = path;
    if (stat(path, &status) == 0) {
        if (S_ISDIR(status.st_mode))
            return because(EISDIR);
        file->direct = !S_ISREG(status.st_mode);
    } else if (errno != ENOENT) {
        return because(errno);
    }
    int length =
        snprintf(file->written, sizeof file->written, file->direct ? "%s" : "%s.new-%ld", path, (long)getpid());
    if (length < 0 || (size_t)length >= sizeof file->written)
        return because(ENAMETOOLONG);
    int descriptor = open(file->written, file->direct ? O_WRONLY : O_WRONLY | O_CREAT | O_TRUNC, 0666);
    if (descriptor < 0)
        return because(errno);
    file->stream = fdopen(descriptor, "wb");
    if (!file->stream) {
        int error = errno;
        close(descriptor);
        if (!file->direct)
            unlink(file->written);
        return because(error);
    }
    return NULL;
}

/* A rename is on the disk once its folder is. Not every file system can say so: no error then. */
static void sync_folder(const char *path)
{
    char folder[FILE_PATH];
    const char *slash = strrchr(path, '/');
    int length = slash ? (int)(slash - path) + 1 : 1;
    snprintf(folder, sizeof folder, "%.*s", length, slash ? path : ".");
    int descriptor = open(folder, O_RDONLY);
    if (descriptor < 0)
        return;
    (void)fsync(descriptor);
    close(descriptor);
}

void file_write(NewFile *file, const void *bytes, size_t count)
{
    errno = 0;
    if (!file->error && fwrite(bytes, 1, count, file->stream) != count)
        file->error = errno ? errno : EIO;
}

const char *file_end(NewFile *file)
{
    int error = file->error;
    errno = 0;
    if ((fflush(file->stream) != 0 || ferror(file->stream)) && !error)
        error = errno ? errno : EIO;
    if (!error && !file->direct && fsync(fileno(file->stream)) != 0 && errno != EINVAL && errno != EROFS)
        error = errno;
    if (fclose(file->stream) != 0 && !error)
        error = errno;
    file->stream = NULL;
    if (!error && !file->direct && rename(file->written, file->path) != 0)
        error = errno;
    if (error && !file->direct)
        unlink(file->written);
    if (error)
        return because(error);
    if (!file->direct)
        sync_folder(file->path);
    return NULL;
}

const char *file_probe(const char *path)
{
    NewFile file;
    const char *error = file_begin(&file, path);
    if (error)
        return error;
    fclose(file.stream);
    if (!file.direct)
        unlink(file.written);
    return NULL;
}

bool file_printed(void)
{
    if (fflush(stdout) == 0 && !ferror(stdout))
        return true;
    fprintf(stderr, "error: cannot write to standard output: %s\n", strerror(errno ? errno : EIO));
    return false;
}
