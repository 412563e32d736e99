#include <string.h>

#include "rt.h"

#define TRANSPORT(name) extern const pn_transport pn_transport_##name;
#include "transport/transports.def"
#undef TRANSPORT

const pn_transport *const pn_transport_table[] = {
#define TRANSPORT(name) &pn_transport_##name,
#include "transport/transports.def"
#undef TRANSPORT
};
const int pn_transport_count = PN_COUNT(pn_transport_table);

const pn_transport *pn_transport_find(const char *name)
{
    for (int i = 0; i < pn_transport_count; i++)
        if (strcmp(pn_transport_table[i]->name, name) == 0)
            return pn_transport_table[i];
    return NULL;
}
