#include "planted.h"
const plant dnn_plants[] = {{NULL, NULL}};
