// source.cpp: which line of the kernels' text an access came from: the return address of a hook, looked up by addr2line (binutils) in the
// CPU build of the kernels. Only reports pay for it. Without addr2line they simply have no line.
#include "sim.h"

#include <cstdio>
#include <cstring>
#include <dlfcn.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

namespace sim
{
std::string source_line(const void *return_address)
{
    Dl_info found;
    int ends[2];
    if (!return_address || !dladdr(return_address, &found) || pipe(ends) != 0)
        return "";
    std::string offset = text("%#lx", (unsigned long)(uintptr_t(return_address) - uintptr_t(found.dli_fbase) - 1));
    std::string file = found.dli_fname;
    char program[] = "addr2line", option[] = "-e";
    char *arguments[] = {program, option, &file[0], &offset[0], nullptr};
    char path[] = "PATH=/usr/local/bin:/usr/bin:/bin";
    char *environment[] = {path, nullptr}; // not the double: it would write its statistics there too
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
    posix_spawn_file_actions_addclose(&actions, ends[0]);
    posix_spawn_file_actions_addclose(&actions, STDERR_FILENO);
    pid_t child;
    bool started = posix_spawnp(&child, program, &actions, nullptr, arguments, environment) == 0;
    posix_spawn_file_actions_destroy(&actions);
    close(ends[1]);
    char line[512] = "";
    ssize_t bytes = started ? read(ends[0], line, sizeof line - 1) : 0;
    close(ends[0]);
    if (started)
        waitpid(child, nullptr, 0);
    std::string place(line, bytes > 0 ? size_t(bytes) : 0);
    place = place.substr(0, place.find_first_of(" \n")); // without "(discriminator n)"
    size_t slash = place.rfind('/');
    if (place.find(".cu") == std::string::npos) // not of the kernels' text
        return "";
    return ", " + (slash == std::string::npos ? place : place.substr(slash + 1));
}
} // namespace sim
