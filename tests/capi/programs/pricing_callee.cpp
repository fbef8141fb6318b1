// Runs the functions of pricing.idl in this process, as a worker does: for sanitizers.
#include <cassert>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

// Named as in the stub: clang compares the types of functions that are called by pointers.
struct gridrpc_services {
    void (*callback)(unsigned, void **);
    int (*is_canceled)(void);
    void (*raised)(const char *, const char *);
    void (*ends)(const char *);
};
struct Entry {
    const char *name;
    int (*run)(void **);
};
struct Module {
    unsigned version, count;
    const Entry *entries;
    void (*bind)(const gridrpc_services *);
};
extern "C" const Module gridrpc_module_v1;

static std::string said;

template <class... A> static bool run(const char *name, A *...arguments)
{
    void *all[] = {const_cast<void *>(static_cast<const void *>(arguments))...};
    for (unsigned i = 0; i < gridrpc_module_v1.count; i++)
        if (!strcmp(gridrpc_module_v1.entries[i].name, name))
            return gridrpc_module_v1.entries[i].run(all) == 0;
    abort();
}

int main()
{
    static const gridrpc_services services = {
        nullptr, nullptr, [](const char *type, const char *what) { said = std::string(type) + ": " + what; },
        nullptr};
    gridrpc_module_v1.bind(&services);
    double strike = 100, expiry = 1, value = 0, spot = 103;
    int is_call = 1, n = 4, none = 0;
    std::vector<double> spots{90, 100, 110, 120}, four(4);
    assert(run("price", &strike, &expiry, &is_call, &n, spots.data(), "plain", &value) && value == 7.5);
    assert(run("price", &strike, &expiry, &is_call, &none, (double *)nullptr, "plain", &value) && value == 0);
    assert(run("payoffs", &strike, &expiry, &is_call, &n, spots.data(), four.data()));
    assert((four == std::vector<double>{0, 0, 10, 20}));
    double greeks[3];
    assert(run("greeks", &strike, &expiry, &is_call, &spot, greeks));
    assert(greeks[0] == 3 && greeks[1] == 1 && greeks[2] == 1);
    std::vector<double> ladder(12);
    assert(run("ladder", &strike, &expiry, &is_call, &n, spots.data(), ladder.data()));
    assert(ladder[9] == 20 && ladder[10] == 1 && ladder[11] == 1);
    int twelve = 12, eleven = 11, three = 3;
    assert(run("delta", &twelve, ladder.data(), &value) && value == 4);
    assert(!run("delta", &eleven, ladder.data(), &value));
    assert(said == "std::length_error: `book` has 11 elements, which is no whole number of structures of 3");
    double by = 0.5;
    assert(run("shift", &n, spots.data(), &by) && spots[3] == 120.5);
    assert(run("steps", &n, &n, four.data()) && four[3] == 3);
    assert(!run("steps", &three, &n, four.data()));
    assert(said == "std::length_error: `out` has 4 elements, and the function has made 3");
    char *names[2] = {strdup("a"), strdup("bc")}, *all = nullptr, *last = strdup("z");
    int two = 2;
    assert(run("join", &two, names, &all) && !strcmp(all, "a;bc;"));
    assert(run("capitals", &two, names, &last) && !strcmp(names[1], "BC") && !strcmp(last, "BC"));
    assert(run("capitals", &none, (char **)nullptr, &last) && !strcmp(last, "BC?"));
    char *text = nullptr;
    assert(run("title", &strike, &expiry, &is_call, "heston", &text) && !strcmp(text, "heston call"));
    assert(run("first", &n, spots.data(), &value) && value == 90.5);
    assert(!run("too_many", &n, four.data()));
    assert(said == "std::length_error: `values` has 4 elements, and the function has made 5");
    for (char *one : {names[0], names[1], all, last, text})
        free(one);
    puts("all well");
}
