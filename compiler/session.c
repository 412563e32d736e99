/* session.c: what a session says: diagnostics to standard error, results to where they were asked for. See session.h.
 */
#include "session.h"

#include <stdlib.h>
#include <unistd.h>

#include "emit.h"

bool session_errors(Session *s)
{
    diags_render(s->diags, stderr, isatty(STDERR_FILENO) && !getenv("NO_COLOR"));
    return diag_errors(s->diags) > 0;
}

int session_finish(int status)
{
    if (fflush(stdout) || ferror(stdout)) {
        fprintf(stderr, "pnetc: cannot write to standard output\n");
        return 1;
    }
    return status;
}

int session_deliver(Session *s, const Text *result)
{
    const char *path = s->options.out;
    if (!path) {
        fwrite(result->data, 1, result->length, stdout);
        return session_finish(0);
    }
    s->diags = diags_new(s->arena, &s->sources);
    const bool written = write_text(s->arena, s->diags, path, result->data, result->length);
    return session_errors(s) || !written ? 1 : 0;
}
