/* json_text.h: jansson with one way to run out of memory: the process ends. */
#ifndef PNETC_JSON_TEXT_H
#define PNETC_JSON_TEXT_H

#include <jansson.h>

#include "base.h"

json_t *json_made(json_t *value);                              /* `value`, which is not NULL */
void json_push(json_t *array, json_t *value);                  /* takes `value` */
void json_put(json_t *object, const char *key, json_t *value); /* takes `value` */
void json_print(json_t *object, Text *out);                    /* indented, keys in order; takes `object` */

#endif
