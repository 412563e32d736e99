#include "planted.h"
const plant nccl_plants[] = {{NULL, NULL}};
