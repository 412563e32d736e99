/* target.c: what the runtime asks of a target; pn_target_prepare is in call.c, parameters in layout.c. */
#include "cpu.h"

const char *const pn_target_name = "cpu";

#define TEXT_OF(number)                   #number
#define VERSION_TEXT(major, minor, patch) TEXT_OF(major) "." TEXT_OF(minor) "." TEXT_OF(patch)

const char *pn_target_version(void)
{
    return "oneDNN " VERSION_TEXT(DNNL_VERSION_MAJOR, DNNL_VERSION_MINOR, DNNL_VERSION_PATCH);
}

const int pn_target_most_threads = TEAM_MOST;

void pn_target_thread(const pn_run *run)
{
    team_set(run->threads);
}

const char *pn_target_isa(const pn_run *run)
{
    (void)run;
    return dnn_isa();
}
