/* build.h: from the files of a program to a running one: find the runtime, run make, run the program, look at the
 * machine.
 *
 * The runtime is found relative to the executable: in the source tree build/pnetc, runtime/pn.h and build/lib;
 * installed PREFIX/bin/pnetc, PREFIX/include/pnetc and PREFIX/lib/pnetc. No shell is used; children get argument
 * vectors. */
#ifndef PNETC_BUILD_H
#define PNETC_BUILD_H

#include "diag.h"

/* make in `folder`. A failure is P06xx with the command, its exit code and the end of what it said. */
bool build_program(Arena *arena, Diags *diags, const char *self, const char *folder, bool quiet);
/* Runs folder/program with `options` (NULL-terminated, may be NULL) in the present folder; its exit code, 128 + n after
 * a signal. SIGINT and SIGTERM reach the program; we wait for it. */
int run_program(const char *folder, const char *program, char **options);
/* pnetc flags: what "cflags", or the linker flags of a target by name; false after a message when there are none. */
bool flags_print(const char *self, const char *what, FILE *out);
/* pnetc doctor: a line a thing; 1 when a program cannot be built. */
int doctor(const char *self, FILE *out);

/* A fresh folder under $TMPDIR; NULL after an error. remove_folder deletes it with the files in it. */
char *temporary_folder(Arena *arena, Diags *diags);
void remove_folder(const char *folder);

/* ---- for build*.c and doctor.c ---- */
typedef struct {
    const char *include, *lib; /* folders of pn.h and of the libraries */
} Runtime;
Runtime runtime_find(Arena *arena, const char *self);
const char *runtime_library(Arena *arena, const Runtime *runtime, const char *library); /* "pn_cpu": its file */
const char *self_file(Arena *arena, const char *self);                                  /* of the running executable */
const char *find_program(Arena *arena, const char *name);                               /* in PATH; NULL: not there */
/* Runs argv without input. What it says on both outputs is appended to `said` and, if not NULL, printed on `echo`. Its
 * exit code; 127: cannot be run; 128 + n after a signal, also one that we got meanwhile. */
int run_captured(char *const *argv, Text *said, FILE *echo);

#endif
