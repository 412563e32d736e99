// cubin.cpp: reads from a cubin (an ELF file) what a launch must agree with: kernels by name, each parameter's offset and size, and the
// launch bound. Format: section .nv.info.<kernel> holds attributes of 4 bytes head (format, number, size or value); number 0x17
// describes a parameter, 0x05 the largest block. Seen in cubins of CUDA 13; an unknown attribute is skipped.
#include "sim.h"

#include <cstring>
#include <elf.h>

namespace sim
{
namespace
{
constexpr uint16_t machine_cuda = 190;
constexpr uint8_t with_data = 4, max_threads_attribute = 0x05, parameter_attribute = 0x17;

template <class T> T at(const unsigned char *p)
{
    T value;
    memcpy(&value, p, sizeof value);
    return value;
}

void read_attributes(const unsigned char *p, size_t bytes, CubinKernel &kernel)
{
    for (size_t i = 0; i + 4 <= bytes;) {
        uint8_t format = p[i], attribute = p[i + 1];
        uint16_t size = at<uint16_t>(p + i + 2);
        const unsigned char *data = p + i + 4;
        i += 4;
        if (format != with_data)
            continue;
        i += size;
        if (attribute == max_threads_attribute)
            kernel.max_threads = int(at<uint32_t>(data) * at<uint32_t>(data + 4) * at<uint32_t>(data + 8));
        if (attribute != parameter_attribute)
            continue;
        size_t ordinal = at<uint16_t>(data + 4);
        if (kernel.size.size() <= ordinal) {
            kernel.size.resize(ordinal + 1);
            kernel.offset.resize(ordinal + 1);
        }
        kernel.offset[ordinal] = at<uint16_t>(data + 6);
        kernel.size[ordinal] = int(at<uint32_t>(data + 8) >> 18);
    }
}
} // namespace

bool is_cubin(const void *image)
{
    const unsigned char *bytes = (const unsigned char *)image;
    return !memcmp(bytes, ELFMAG, SELFMAG) && at<uint16_t>(bytes + offsetof(Elf64_Ehdr, e_machine)) == machine_cuda;
}

bool is_ptx(const void *image)
{
    const char *characters = (const char *)image;
    return !strncmp(characters, "//", 2) || !strncmp(characters, ".version", 8) || characters[0] == '\n';
}

int cubin_arch(const void *image)
{
    uint32_t flags = at<Elf64_Ehdr>((const unsigned char *)image).e_flags;
    int low = int(flags & 0xff), high = int(flags >> 8 & 0xff);
    return high ? high : low; // since CUDA 12.8 (ABI 8) the number lies in the second byte
}

CubinKernel cubin_kernel(const void *image, const std::string &name)
{
    CubinKernel kernel;
    const unsigned char *bytes = (const unsigned char *)image;
    if (is_ptx(image)) {
        kernel.found = strstr((const char *)image, (".entry " + name + "(").c_str()) != nullptr;
        return kernel;
    }
    Elf64_Ehdr head = at<Elf64_Ehdr>(bytes);
    auto section = [&](size_t i) { return at<Elf64_Shdr>(bytes + head.e_shoff + i * head.e_shentsize); };
    const char *names = (const char *)bytes + section(head.e_shstrndx).sh_offset;
    for (size_t i = 0; i < head.e_shnum; i++) {
        Elf64_Shdr one = section(i);
        const char *is = names + one.sh_name;
        if (is == ".text." + name)
            kernel.found = true;
        if (is == ".nv.info." + name)
            read_attributes(bytes + one.sh_offset, one.sh_size, kernel);
    }
    return kernel;
}
} // namespace sim
