/* properties.c: writes what cuDNN knows of GPU 0, as the JSON that its checks without a device take (tests/cuda, one a
 * GPU).
 *   usage: properties FILE */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cudnn.h>

static int failed(const char *doing)
{
    char said[512] = "";
    cudnnGetLastErrorString(said, sizeof said);
    fprintf(stderr, "properties: %s: %s\n", doing, said);
    return 1;
}

int main(int argc, char **argv)
{
    cudnnBackendDescriptor_t device;
    const int32_t number = 0;
    int64_t length = 0;
    if (argc != 2) {
        fprintf(stderr, "usage: properties FILE\n");
        return 2;
    }
    if (cudnnBackendCreateDescriptor(CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR, &device) ||
        cudnnBackendSetAttribute(device, CUDNN_ATTR_DEVICEPROP_DEVICE_ID, CUDNN_TYPE_INT32, 1, &number) ||
        cudnnBackendFinalize(device) ||
        cudnnBackendGetAttribute(device, CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, CUDNN_TYPE_CHAR, 0, &length, NULL))
        return failed("the device's properties");
    char *text = malloc((size_t)length + 1);
    if (!text || cudnnBackendGetAttribute(device, CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, CUDNN_TYPE_CHAR, length,
                                          &length, text))
        return failed("the device's properties as text");
    FILE *file = fopen(argv[1], "wb");
    const bool good = file && fwrite(text, 1, (size_t)length, file) == (size_t)length;
    if (!file || fclose(file) || !good) {
        perror(argv[1]);
        return 1;
    }
    free(text);
    return 0;
}
