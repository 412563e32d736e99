/* weights.h: all parameters of a program at once: their first values, and their way to and from a file. */
#ifndef PN_WEIGHTS_H
#define PN_WEIGHTS_H

#include "rt.h"

/* After the inits of all stages, which choose the layouts. */
void weights_initial(pn_run *run);
void weights_load(pn_run *run, const char *path);        /* ends the program when the file does not fit */
char *weights_save(const pn_run *run, const char *path); /* NULL, or a message */

#endif
