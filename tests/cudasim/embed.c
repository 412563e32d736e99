/* embed.c: for the double's own tests: compiles CUDA C with NVRTC to a cubin and prints it as a C array.
 *   usage: embed KERNELS.cu sm_90 NAME [-DX...] > NAME.h */
#include <nvrtc.h>
#include <stdio.h>
#include <stdlib.h>

static char *text_of(const char *path)
{
    FILE *file = fopen(path, "rb");
    if (!file || fseek(file, 0, SEEK_END) != 0)
        return NULL;
    long bytes = ftell(file);
    char *text = bytes < 0 ? NULL : calloc((size_t)bytes + 1, 1);
    rewind(file);
    if (text && fread(text, 1, (size_t)bytes, file) != (size_t)bytes) {
        free(text);
        text = NULL;
    }
    fclose(file);
    return text;
}

static int failed(nvrtcResult result, const char *what)
{
    if (result != NVRTC_SUCCESS)
        fprintf(stderr, "embed: %s: %s\n", what, nvrtcGetErrorString(result));
    return result != NVRTC_SUCCESS;
}

int main(int count, char **argument)
{
    char arch[64];
    const char *options[16] = {arch};
    nvrtcProgram program;
    size_t bytes, log_bytes;
    if (count < 4 || count > 16)
        return 2;
    char *text = text_of(argument[1]);
    if (!text) {
        fprintf(stderr, "embed: cannot read %s\n", argument[1]);
        return 2;
    }
    snprintf(arch, sizeof arch, "--gpu-architecture=%s", argument[2]);
    for (int i = 4; i < count; i++)
        options[i - 3] = argument[i];
    if (failed(nvrtcCreateProgram(&program, text, "kernels.cu", 0, NULL, NULL), "create"))
        return 1;
    if (failed(nvrtcCompileProgram(program, count - 3, options), "compile")) {
        if (failed(nvrtcGetProgramLogSize(program, &log_bytes), "log size"))
            return 1;
        char *log = calloc(log_bytes + 1, 1);
        if (log && !failed(nvrtcGetProgramLog(program, log), "log"))
            fputs(log, stderr);
        return 1;
    }
    if (failed(nvrtcGetCUBINSize(program, &bytes), "size"))
        return 1;
    unsigned char *cubin = malloc(bytes);
    if (!cubin || failed(nvrtcGetCUBIN(program, (char *)cubin), "cubin"))
        return 1;
    printf("static const _Alignas(16) unsigned char %s[] = {", argument[3]);
    for (size_t i = 0; i < bytes; i++)
        printf("%s%u,", i % 24 ? "" : "\n", cubin[i]);
    printf("\n};\n");
    return ferror(stdout) || fflush(stdout) ? 1 : 0;
}
