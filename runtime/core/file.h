/* file.h: a file that is replaced whole or not at all; and standard output. */
#ifndef PN_FILE_H
#define PN_FILE_H

#include <stdbool.h>
#include <stdio.h>

enum { FILE_PATH = 4096 };

/* A regular file is written beside its place under another name, flushed to the disk, then renamed over it: at any
 * moment the place holds the old file or the whole new one. What is no regular file (/dev/stdout, a pipe) is written
 * directly. */
typedef struct {
    const char *path;
    char written[FILE_PATH]; /* the name that is written */
    bool direct;
    int error; /* of the first write that failed; 0: none */
    FILE *stream;
} NewFile;

/* Each returns NULL, or says why not, valid until the next call; then nothing is left behind. */
const char *file_begin(NewFile *file, const char *path);
const char *file_end(NewFile *file); /* after the last write: their errors are found here */
/* Instead of fwrite to the stream: keeps the reason of the first failure for file_end. */
void file_write(NewFile *file, const void *bytes, size_t count);
/* Could the file be created? Asked before hours of work that end in it. */
const char *file_probe(const char *path);
/* All that was printed to standard output has arrived; else says on standard error why not. */
bool file_printed(void);

#endif
