/* json_text.c: see json_text.h. */
#include <stdlib.h>

#include "json_text.h"

json_t *json_made(json_t *value)
{
    if (!value) {
        fprintf(stderr, "pnetc: error: out of memory (JSON)\n");
        exit(1);
    }
    return value;
}

void json_push(json_t *array, json_t *value)
{
    if (json_array_append_new(array, json_made(value)))
        json_made(NULL);
}

void json_put(json_t *object, const char *key, json_t *value)
{
    if (json_object_set_new(object, key, json_made(value)))
        json_made(NULL);
}

void json_print(json_t *object, Text *out)
{
    char *text = json_dumps(object, JSON_INDENT(2) | JSON_PRESERVE_ORDER | JSON_REAL_PRECISION(12));
    if (!text)
        json_made(NULL);
    text_printf(out, "%s\n", text);
    free(text);
    json_decref(object);
}
