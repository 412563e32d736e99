/* fuzz_parse.c: any bytes through parse, dump, diagnostics and format; a formatted text formats to itself.
 * Build: clang -fsanitize=fuzzer,address,undefined, linked with the language room (make fuzz). */
#include "ast.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The canonical form and the tree of a text; NULL when it has errors. */
static const char *formatted(Arena *arena, const char *text, size_t length, const char **tree)
{
    Sources sources = {0};
    Diags *diags = diags_new(arena, &sources);
    const SourceFile *file = source_add(arena, &sources, "fuzz.pnet", text, length);
    const Ast *ast = parse(arena, diags, file);
    Text dump = text_new(arena), out = text_new(arena);
    ast_dump(ast, &dump);
    *tree = dump.data;
    if (diag_errors(diags)) {
        char *rendered;
        size_t rendered_length;
        FILE *stream = open_memstream(&rendered, &rendered_length);
        if (!stream)
            abort();
        diags_render(diags, stream, (length & 1) != 0);
        if (fclose(stream) != 0)
            abort();
        free(rendered);
        return NULL;
    }
    format(ast, &out);
    return out.data;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    Arena *arena = arena_new();
    const char *tree, *again_tree;
    const char *once = formatted(arena, (const char *)data, size, &tree);
    if (once) {
        const char *twice = formatted(arena, once, strlen(once), &again_tree);
        if (!twice || strcmp(once, twice) != 0 || strcmp(tree, again_tree) != 0) {
            fprintf(stderr, "---- once\n%s---- twice\n%s", once, twice ? twice : "(errors)\n");
            abort();
        }
    }
    Sources sources = {0};
    Diags *diags = diags_new(arena, &sources);
    parse_expr(arena, diags, source_add(arena, &sources, "-D x", (const char *)data, size));
    arena_free(arena);
    return 0;
}
