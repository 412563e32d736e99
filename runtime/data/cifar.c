/* The records of both CIFAR sets, images and labels apart. */
#include <string.h>

#include "data/cifar.h"

enum { IMAGE = 3 * 32 * 32, MOST_FILES = 8 };

int64_t pn_cifar_read(const char *folder, const char *const *files, int label_bytes, int64_t classes,
                      const uint8_t **pixels, const uint16_t **labels)
{
    char path[MOST_FILES][PN_PATH], hint[128];
    pn_file content[MOST_FILES];
    const int64_t record = label_bytes + IMAGE;
    int nfiles = 0;
    int64_t count = 0;
    snprintf(hint, sizeof hint, "the binary version of CIFAR-%lld is expected (.bin files)", (long long)classes);
    for (; nfiles < MOST_FILES && files[nfiles]; nfiles++) {
        const char *names[] = {files[nfiles], NULL};
        pn_file_need(path[nfiles], folder, names, hint);
        content[nfiles] = pn_file_read(path[nfiles]);
        if (content[nfiles].count % record != 0)
            pn_fail(NULL, "%s: truncated, or not CIFAR-%lld: %lld bytes are no whole number of records of %lld bytes",
                    path[nfiles], (long long)classes, (long long)content[nfiles].count, (long long)record);
        count += content[nfiles].count / record;
    }
    uint8_t *image = pn_alloc(count * IMAGE);
    uint16_t *label = pn_alloc(count * (int64_t)sizeof *label);
    int64_t at = 0;
    for (int f = 0; f < nfiles; f++) {
        int64_t records = content[f].count / record;
        pn_source_labels(path[f], content[f].bytes + label_bytes - 1, record, records, classes, label + at);
        for (int64_t i = 0; i < records; i++, at++)
            memcpy(image + at * IMAGE, content[f].bytes + i * record + label_bytes, IMAGE);
        pn_file_free(&content[f]);
    }
    *pixels = image;
    *labels = label;
    return count;
}
