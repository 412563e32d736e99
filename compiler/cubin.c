/* cubin.c: facts of kernels. A cubin is an ELF file: section .nv.info.<kernel> holds attributes, each with a head of
 * four bytes: format, number, and a size or a small value. Number 0x17 describes a parameter (ordinal, offset, size);
 * 0x2f, in .nv.info, the registers of a function (by its symbol). Seen in cubins of CUDA 13; others are passed over. */
#include "toolkit.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>

enum { MACHINE_CUDA = 190, WITH_DATA = 4, PARAMETER = 0x17, REGISTERS = 0x2f, SIZE_SHIFT = 18 };

typedef struct {
    const unsigned char *bytes;
    size_t size;
} View;

static bool view_section(const View *file, size_t i, Elf64_Shdr *section)
{
    Elf64_Ehdr head;
    memcpy(&head, file->bytes, sizeof head);
    const size_t at = (size_t)head.e_shoff + i * head.e_shentsize;
    if (i >= head.e_shnum || at + sizeof *section > file->size)
        return false;
    memcpy(section, file->bytes + at, sizeof *section);
    return section->sh_type == SHT_NOBITS || section->sh_offset + section->sh_size <= file->size;
}

static const char *view_name(const View *file, const Elf64_Shdr *section)
{
    Elf64_Ehdr head;
    Elf64_Shdr names;
    memcpy(&head, file->bytes, sizeof head);
    if (!view_section(file, head.e_shstrndx, &names) || section->sh_name >= names.sh_size)
        return "";
    return (const char *)file->bytes + names.sh_offset + section->sh_name;
}

/* The function of symbol number `index`. */
static const char *symbol_name(const View *file, uint32_t index)
{
    Elf64_Shdr table, strings;
    for (size_t i = 0; view_section(file, i, &table); i++) {
        if (table.sh_type != SHT_SYMTAB || (index + 1) * sizeof(Elf64_Sym) > table.sh_size)
            continue;
        Elf64_Sym symbol;
        memcpy(&symbol, file->bytes + table.sh_offset + index * sizeof symbol, sizeof symbol);
        if (view_section(file, table.sh_link, &strings) && symbol.st_name < strings.sh_size)
            return (const char *)file->bytes + strings.sh_offset + symbol.st_name;
    }
    return "";
}

static KernelFact *fact_of(KernelFacts *facts, const char *name)
{
    for (int i = 0; i < facts->count; i++)
        if (!strcmp(facts->at[i].name, name))
            return &facts->at[i];
    return NULL;
}

/* Attributes one after another; false at the end. */
typedef struct {
    const unsigned char *at, *end;
    int number;
    const unsigned char *data;
    size_t size;
} Attributes;

static bool next_attribute(Attributes *a)
{
    uint16_t size;
    if (a->end - a->at < 4)
        return false;
    memcpy(&size, a->at + 2, sizeof size);
    a->number = a->at[1];
    a->data = a->at + 4;
    a->size = a->at[0] == WITH_DATA ? size : 0;
    a->at += 4 + a->size;
    return a->at <= a->end;
}

static Attributes attributes_of(const View *file, const Elf64_Shdr *section)
{
    const unsigned char *begin = file->bytes + section->sh_offset;
    return (Attributes){.at = begin, .end = begin + section->sh_size};
}

static void read_parameters(const View *file, const Elf64_Shdr *section, KernelFact *fact)
{
    int count = 0, bytes = 0;
    for (Attributes a = attributes_of(file, section); next_attribute(&a);) {
        uint16_t offset;
        uint32_t packed;
        if (a.number != PARAMETER || a.size < 12)
            continue;
        memcpy(&offset, a.data + 6, sizeof offset);
        memcpy(&packed, a.data + 8, sizeof packed);
        const int end = offset + (int)(packed >> SIZE_SHIFT);
        count++;
        bytes = end > bytes ? end : bytes;
    }
    fact->parameters = count;
    fact->bytes = bytes;
}

static void read_registers(const View *file, const Elf64_Shdr *section, KernelFacts *facts)
{
    for (Attributes a = attributes_of(file, section); next_attribute(&a);) {
        uint32_t symbol, registers;
        if (a.number != REGISTERS || a.size < 8)
            continue;
        memcpy(&symbol, a.data, sizeof symbol);
        memcpy(&registers, a.data + 4, sizeof registers);
        KernelFact *fact = fact_of(facts, symbol_name(file, symbol));
        if (fact && (int)registers > fact->registers)
            fact->registers = (int)registers;
    }
}

bool cubin_facts(Arena *arena, const unsigned char *cubin, size_t size, KernelFacts *facts)
{
    static const char info[] = ".nv.info";
    const View file = {cubin, size};
    Elf64_Ehdr head;
    Elf64_Shdr section;
    if (size < sizeof head)
        return false;
    memcpy(&head, cubin, sizeof head);
    if (memcmp(head.e_ident, ELFMAG, SELFMAG) != 0 || head.e_machine != MACHINE_CUDA)
        return false;
    for (size_t i = 0; view_section(&file, i, &section); i++) {
        const char *name = view_name(&file, &section);
        if (strncmp(name, ".nv.info.", sizeof info) != 0)
            continue;
        const char *kernel = name + sizeof info;
        KernelFact *fact = fact_of(facts, kernel);
        if (!fact) {
            fact = vec_push(arena, facts);
            *fact = (KernelFact){.name = arena_text(arena, kernel, strlen(kernel))};
        }
        read_parameters(&file, &section, fact);
    }
    for (size_t i = 0; view_section(&file, i, &section); i++)
        if (!strcmp(view_name(&file, &section), info))
            read_registers(&file, &section, facts);
    return true;
}

/* "ptxas info    : Function properties for add_k", then
 * "    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads" */
void ptxas_facts(const char *log, KernelFacts *facts)
{
    static const char word[] = "Function properties for ";
    for (const char *at = strstr(log, word); at; at = strstr(at, word)) {
        at += strlen(word);
        const char *line = at + strcspn(at, "\n");
        char name[256];
        snprintf(name, sizeof name, "%.*s", (int)(line - at), at);
        KernelFact *fact = fact_of(facts, name);
        int stack = 0, stores = 0, loads = 0;
        if (!fact || sscanf(line, " %d bytes stack frame, %d bytes spill stores, %d bytes spill loads", &stack, &stores,
                            &loads) != 3)
            continue;
        fact->stack = stack > fact->stack ? stack : fact->stack;
        fact->spill = stores + loads > fact->spill ? stores + loads : fact->spill;
    }
}
