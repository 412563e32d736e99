/* build_process.c: child processes without a shell: run and listen, run and wait. See build.h. */
#include "build.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CANNOT_RUN = 127, SIGNALLED = 128 };

const char *find_program(Arena *arena, const char *name)
{
    struct stat status;
    if (strchr(name, '/'))
        return !stat(name, &status) && S_ISREG(status.st_mode) && !access(name, X_OK) ? name : NULL;
    const char *path = getenv("PATH");
    while (path && *path) {
        const size_t length = strcspn(path, ":");
        const char *at = arena_printf(arena, "%.*s/%s", length ? (int)length : 1, length ? path : ".", name);
        if (!stat(at, &status) && S_ISREG(status.st_mode) && !access(at, X_OK))
            return at;
        path += length + (path[length] == ':');
    }
    return NULL;
}

static int exit_code(int status)
{
    return WIFEXITED(status) ? WEXITSTATUS(status) : SIGNALLED + WTERMSIG(status);
}

static sigset_t ending_signals(void)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGHUP);
    sigaddset(&set, SIGCHLD);
    return set;
}

_Noreturn static void become(char *const *argv, const sigset_t *mask)
{
    sigprocmask(SIG_SETMASK, mask, NULL);
    execvp(argv[0], argv);
    _exit(CANNOT_RUN);
}

int run_captured(char *const *argv, Text *said, FILE *echo)
{
    int ends[2];
    if (pipe(ends))
        return CANNOT_RUN;
    const sigset_t ending = ending_signals();
    sigset_t before;
    sigprocmask(SIG_BLOCK, &ending, &before); /* whoever called us cleans up before we go */
    const pid_t child = fork();
    if (child == 0) {
        const int nothing = open("/dev/null", O_RDONLY);
        if (nothing < 0 || dup2(nothing, 0) < 0 || dup2(ends[1], 1) < 0 || dup2(ends[1], 2) < 0)
            _exit(CANNOT_RUN);
        close(ends[0]);
        close(ends[1]);
        unsetenv("MAKEFLAGS"); /* ours is no part of a make that started us */
        unsetenv("MAKELEVEL");
        unsetenv("MFLAGS");
        become(argv, &before);
    }
    close(ends[1]);
    char part[4096];
    ssize_t n = 0;
    while (child > 0 && ((n = read(ends[0], part, sizeof part)) > 0 || (n < 0 && errno == EINTR))) {
        if (n < 0)
            continue;
        text_append(said, part, (size_t)n);
        if (echo)
            fwrite(part, 1, (size_t)n, echo);
    }
    close(ends[0]);
    int status = 0;
    bool waited = false;
    while (child > 0 && !(waited = waitpid(child, &status, 0) == child) && errno == EINTR)
        ;
    sigset_t pending;
    int code = waited ? exit_code(status) : CANNOT_RUN;
    if (!sigpending(&pending) && (sigismember(&pending, SIGINT) == 1 || sigismember(&pending, SIGTERM) == 1 ||
                                  sigismember(&pending, SIGHUP) == 1)) {
        const sigset_t some = ending_signals();
        const struct timespec now = {0, 0};
        for (int signal = 0; signal >= 0;) {
            signal = sigtimedwait(&some, NULL, &now);
            if (signal > 0 && signal != SIGCHLD)
                code = SIGNALLED + signal;
        }
    }
    sigprocmask(SIG_SETMASK, &before, NULL);
    return code;
}

int run_program(const char *folder, const char *program, char **options)
{
    Arena *arena = arena_new();
    VEC(char *) argv = {0};
    *vec_push(arena, &argv) = arena_printf(arena, "%s/%s", folder, program);
    for (int i = 0; options && options[i]; i++)
        *vec_push(arena, &argv) = options[i];
    *vec_push(arena, &argv) = NULL;

    const sigset_t ending = ending_signals();
    sigset_t before;
    sigprocmask(SIG_BLOCK, &ending, &before);
    fflush(stdout);
    const pid_t child = fork();
    if (child == 0)
        become(argv.at, &before);
    int status = 0, code = child < 0 ? CANNOT_RUN : -1;
    while (code < 0) {
        siginfo_t info;
        const int signal = sigwaitinfo(&ending, &info);
        if (signal == SIGCHLD && waitpid(child, &status, WNOHANG) == child)
            code = exit_code(status);
        else if (signal > 0 && signal != SIGCHLD && info.si_code <= 0)
            kill(child, signal); /* sent to us alone; a terminal's Ctrl-C reaches the child by itself */
    }
    sigprocmask(SIG_SETMASK, &before, NULL);
    if (code == CANNOT_RUN)
        fprintf(stderr, "pnetc: cannot run %s\n", argv.at[0]);
    arena_free(arena);
    return code;
}
