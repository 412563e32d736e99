/* commands_kernels.c: kernels.cu of a program to C: binaries as arrays, and what they say of their kernels. Called by
 * generated Makefiles; without -o it prints a table of the kernels. */
#include <stdlib.h>
#include <string.h>

#include "build.h"
#include "emit.h"
#include "session.h"
#include "toolkit.h"

enum { MOST_ARCHS = 16 };

/* "80,90,100"; usage errors end the process. */
static int archs_of(const char *text, int *sm)
{
    int count = 0;
    for (const char *at = text; *at;) {
        char *end;
        const long number = strtol(at, &end, 10);
        if (end == at || (*end && *end != ',') || number < 50 || number > 999 || count == MOST_ARCHS) {
            fprintf(stderr, "pnetc: --arch wants numbers as in sm_90, like 80,90,100, not '%s'\n", text);
            exit(2);
        }
        sm[count++] = (int)number;
        at = *end ? end + 1 : end;
    }
    return count;
}

/* A string of octal escapes: C compilers read it faster than a list of numbers. */
static void print_bytes(Text *out, const Binary *b)
{
    enum { A_LINE = 28 };
    static const char digit[] = "01234567";
    char line[4 * A_LINE];
    for (size_t i = 0; i < b->size; i += A_LINE) {
        size_t length = 0;
        for (size_t k = i; k < b->size && k < i + A_LINE; k++) {
            line[length++] = '\\';
            line[length++] = digit[b->bytes[k] >> 6];
            line[length++] = digit[b->bytes[k] >> 3 & 7];
            line[length++] = digit[b->bytes[k] & 7];
        }
        text_append(out, "    \"", 5);
        text_append(out, line, length);
        text_append(out, "\"\n", 2);
    }
}

static void print_c(Text *out, const KernelImage *image)
{
    text_printf(out, "/* kernels.cu, compiled by pnetc kernels. */\n#include \"pn.h\"\n");
    for (int i = 0; i < image->count; i++) {
        const Binary *b = &image->binary[i];
        text_printf(out, "\nstatic PN_BUFFER const unsigned char binary%d[%zu + 1] = /* %s */\n", i, b->size,
                    b->sm ? "a cubin" : "PTX");
        print_bytes(out, b);
        text_printf(out, "    ;\n");
    }
    text_printf(out, "\nstatic const pn_binary binaries[] = {\n");
    for (int i = 0; i < image->count; i++)
        text_printf(out, "    {%d, binary%d, %zu},\n", image->binary[i].sm, i, image->binary[i].size);
    text_printf(out, "};\n\n/* parameters, their bytes, registers */\nstatic const pn_kernel_fact facts[] = {\n");
    for (int i = 0; i < image->facts.count; i++) {
        const KernelFact *f = &image->facts.at[i];
        text_printf(out, "    {\"%s\", %d, %d, %d}, /* stack %d, spill %d */\n", f->name, f->parameters, f->bytes,
                    f->registers, f->stack, f->spill);
    }
    text_printf(out,
                "};\n\nconst pn_kernel_image pn_kernels = {binaries, PN_COUNT(binaries), facts, PN_COUNT(facts)};\n");
}

static void print_table(Text *out, const KernelImage *image)
{
    text_printf(out, "%-44s %10s %6s %9s %6s %6s\n", "kernel", "parameters", "bytes", "registers", "stack", "spill");
    for (int i = 0; i < image->facts.count; i++) {
        const KernelFact *f = &image->facts.at[i];
        text_printf(out, "%-44s %10d %6d %9d %6d %6d\n", f->name, f->parameters, f->bytes, f->registers, f->stack,
                    f->spill);
    }
}

/* A header of the runtime, and then what it includes. */
static void add_header(Session *s, KernelHeaders *headers, const char *folder, const char *name)
{
    static const char directive[] = "\n#include \"";
    const SourceFile *file = load_text(s->arena, s->diags, &s->sources, arena_printf(s->arena, "%s/%s", folder, name));
    if (!file)
        return;
    if (headers->count == MOST_HEADERS)
        ICE("kernels: more than %d headers", MOST_HEADERS);
    headers->name[headers->count] = name;
    headers->text[headers->count++] = file->text;
    for (const char *at = file->text; (at = strstr(at, directive));) {
        at += strlen(directive);
        add_header(s, headers, folder, arena_text(s->arena, at, strcspn(at, "\"\n")));
    }
}

int command_kernels(Session *s)
{
    const Options *o = &s->options;
    int sm[MOST_ARCHS];
    const int count = archs_of(o->arch ? o->arch : "80,90,100", sm);
    const Runtime runtime = runtime_find(s->arena, s->self);
    const SourceFile *source = load_text(s->arena, s->diags, &s->sources, o->file[0]);
    KernelHeaders headers = {.count = 0};
    add_header(s, &headers, runtime.include, "cuda/kernels.cuh");
    const KernelImage *image = source && headers.count
                                   ? nvrtc_compile(s->arena, s->diags, o->file[0], source->text, &headers, sm, count)
                                   : NULL;
    if (session_errors(s) || !image)
        return 1;
    Text out = text_new(s->arena);
    (o->out ? print_c : print_table)(&out, image);
    return session_deliver(s, &out);
}
