// config.cpp: settings from the environment, reports, failures at the n-th call, statistics at exit.
#include "sim.h"

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <set>
#include <unistd.h>

namespace sim
{
Settings &settings = *new Settings; // as all that follows: never destroyed, threads may still run at exit
std::mutex lock;
std::condition_variable &changed = *new std::condition_variable;
thread_local bool in_host_function;

namespace
{
constexpr size_t shown_reports = 20;
uint64_t seed = 88172645463325252u;
// Made at first use and never destroyed: constructors and exit handlers of other files come in any order.
struct State {
    std::set<std::string> said;
    std::map<std::string, uint64_t> counts;
    std::map<std::string, std::vector<uint64_t>> to_fail, to_drop; // function -> numbers of the calls
    size_t reports = 0;
};
State &state()
{
    static State *one = new State;
    return *one;
}

const char *variable(const char *name, const char *otherwise)
{
    const char *value = getenv(name);
    return value && *value ? value : otherwise;
}

[[noreturn]] void bad_setting(const char *name, const char *value, const char *wanted)
{
    fprintf(stderr, "cudasim: %s=%s: wanted %s\n", name, value, wanted);
    _exit(2);
}

size_t bytes_of(const char *name, const char *value)
{
    char *end = nullptr;
    double number = strtod(value, &end);
    const char *units = "KMG", *unit = *end ? strchr(units, *end) : nullptr;
    if (number <= 0 || (*end && (!unit || end[1])))
        bad_setting(name, value, "bytes, or a number with K, M or G");
    return size_t(number * double(size_t(1) << (unit ? 10 * (unit - units + 1) : 0)));
}

void read_order(const char *value)
{
    if (!strcmp(value, "eager")) {
        settings.order = Order::eager;
    } else if (!strcmp(value, "lazy")) {
        settings.order = Order::lazy;
    } else if (!strncmp(value, "random:", 7) && value[7] >= '0' && value[7] <= '9') {
        settings.order = Order::random;
        seed ^= (strtoull(value + 7, nullptr, 10) + 1) * 0x9e3779b97f4a7c15u;
    } else {
        bad_setting("CUDASIM_ORDER", value, "eager, lazy or random:SEED");
    }
}

void read_calls(const char *variable_name, std::map<std::string, std::vector<uint64_t>> &calls)
{
    const char *value = variable(variable_name, "");
    for (std::string rest = value; !rest.empty();) {
        size_t comma = rest.find(','), colon = rest.find(':');
        std::string one = rest.substr(0, comma);
        if (colon == std::string::npos || atoll(rest.c_str() + colon + 1) < 1)
            bad_setting(variable_name, value, "FUNCTION:NUMBER, separated by commas");
        calls[one.substr(0, colon)].push_back(strtoull(rest.c_str() + colon + 1, nullptr, 10));
        rest = comma == std::string::npos ? "" : rest.substr(comma + 1);
    }
}

void write_stats()
{
    FILE *file = fopen(settings.stats.c_str(), "w");
    if (!file) {
        fprintf(stderr, "cudasim: cannot write %s\n", settings.stats.c_str());
        return;
    }
    for (int device = 0; device < settings.devices; device++)
        fprintf(file, "device %d peak_bytes %zu left_bytes %zu\n", device, peak(device), in_use(device));
    fprintf(file, "pinned peak_bytes %zu left_bytes %zu\n", peak(host_space), in_use(host_space));
    for (const auto &one : state().counts)
        fprintf(file, "%s %llu\n", one.first.c_str(), (unsigned long long)one.second);
    fprintf(file, "unfinished %zu\nreports %zu\n", unfinished(), state().reports);
    if (fclose(file))
        fprintf(stderr, "cudasim: cannot write %s\n", settings.stats.c_str());
}

// Runs at exit(): the program's own code is kept unless something was reported.
void stop()
{
    if (!settings.stats.empty())
        write_stats();
    if (state().reports) {
        fflush(nullptr);
        fprintf(stderr, "cudasim: %zu report%s\n", state().reports, state().reports == 1 ? "" : "s");
        _exit(99);
    }
}
bool planned(const std::map<std::string, std::vector<uint64_t>> &calls, const char *name, uint64_t number)
{
    auto found = calls.find(name);
    return found != calls.end() && std::count(found->second.begin(), found->second.end(), number) > 0;
}

void start()
{
    read_order(variable("CUDASIM_ORDER", "eager"));
    const char *devices = variable("CUDASIM_DEVICES", "1");
    settings.devices = atoi(devices);
    if (settings.devices < 0 || settings.devices > max_devices || !strchr("012345678", devices[0]))
        bad_setting("CUDASIM_DEVICES", devices, "0 to 8");
    settings.memory = bytes_of("CUDASIM_MEMORY", variable("CUDASIM_MEMORY", "8G"));
    if (settings.memory > span / 2)
        bad_setting("CUDASIM_MEMORY", variable("CUDASIM_MEMORY", ""), "at most 8G");
    settings.check = strcmp(variable("CUDASIM_CHECK", "1"), "0") != 0;
    settings.reverse_threads = !strcmp(variable("CUDASIM_THREADS", "forward"), "reverse");
    settings.patience = atof(variable("CUDASIM_PATIENCE", "10"));
    settings.gpu = variable("CUDASIM_GPU", "");
    settings.stats = variable("CUDASIM_STATS", "");
    settings.world = variable("CUDASIM_WORLD", "");
    read_calls("CUDASIM_FAIL", state().to_fail);
    read_calls("CUDASIM_DROP", state().to_drop);
    catch_faults();
    atexit(stop);
}

// Made after all of the above.
struct Session {
    Session() { start(); }
} session;
} // namespace

uint64_t random_number()
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return seed;
}

std::string text(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    char *made = nullptr;
    int length = vasprintf(&made, format, arguments);
    va_end(arguments);
    std::string result = length < 0 ? format : made;
    if (length >= 0)
        free(made);
    return result;
}

void report(const std::string &key, const std::string &message)
{
    if (!state().said.insert(key).second)
        return;
    if (++state().reports > shown_reports) {
        if (state().reports == shown_reports + 1)
            fprintf(stderr, "cudasim: further reports are only counted\n");
        return;
    }
    fprintf(stderr, "cudasim: error: %s\n", message.c_str());
    if (!current)
        return;
    std::string thread = in_kernel ? ", " + running_place() + source_line(running_code) : "";
    fprintf(stderr, "cudasim:        in %s%s, %s, GPU %d\n", current->work.label.c_str(), thread.c_str(),
            current->where.c_str(), current->device);
}

void end_now(int code)
{
    if (!settings.stats.empty())
        write_stats();
    fprintf(stderr, "cudasim: stopped\n");
    _exit(code);
}

void count(const std::string &what, uint64_t times)
{
    state().counts[what] += times;
}

Call::Call(const char *called) : name(called)
{
    lock.lock();
    if (in_host_function)
        report(std::string("host function ") + name, text("%s is called from a host function of a stream", name));
    uint64_t number = ++state().counts[std::string("call ") + name];
    fails = planned(state().to_fail, name, number);
    dropped = planned(state().to_drop, name, number);
    if (fails || dropped)
        fprintf(stderr, "cudasim: call %llu of %s %s, as asked\n", (unsigned long long)number, name,
                fails ? "fails" : "is left out");
}

Call::~Call()
{
    lock.unlock();
}
} // namespace sim
