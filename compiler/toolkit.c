/* toolkit.c: finding libraries of the CUDA toolkit. See toolkit.h. */
#include "toolkit.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The best of lib<name>.so, lib<name>.so.<number> in a folder. NULL: none. */
static const char *in_folder(Arena *arena, const char *folder, const char *name)
{
    const char *plain = arena_printf(arena, "lib%s.so", name);
    const size_t length = strlen(plain);
    const char *best = NULL;
    long highest = -1;
    DIR *list = opendir(folder);
    for (const struct dirent *entry; list && (entry = readdir(list));) {
        const char *rest = entry->d_name + length;
        if (strncmp(entry->d_name, plain, length) != 0 || (*rest && *rest != '.'))
            continue;
        char *end = NULL;
        const long number = *rest ? strtol(rest + 1, &end, 10) : 0;
        if ((*rest && (end == rest + 1 || (*end && *end != '.'))) || number <= highest)
            continue;
        highest = number;
        best = arena_printf(arena, "%s/%s", folder, entry->d_name);
    }
    if (list)
        closedir(list);
    return best;
}

const char *toolkit_library(Arena *arena, const char *name)
{
    static const char *const inner[] = {"lib64", "lib", "targets/x86_64-linux/lib", "targets/sbsa-linux/lib"};
    static const char *const system[] = {"/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu"};
    const char *home = getenv("CUDA_HOME");
    const char *const homes[] = {home && *home ? home : "/usr/local/cuda", "/usr/local/cuda"};
    for (int h = 0; h < COUNT(homes); h++)
        for (int i = 0; i < COUNT(inner); i++) {
            const char *found = in_folder(arena, arena_printf(arena, "%s/%s", homes[h], inner[i]), name);
            if (found)
                return found;
        }
    for (int i = 0; i < COUNT(system); i++) {
        const char *found = in_folder(arena, system[i], name);
        if (found)
            return found;
    }
    return NULL;
}
