// gridrpc.hpp with structures, vectors and strings as arguments, and real workers.
#include <gridrpc.hpp>

#undef NDEBUG
#include <cassert>
#include <cstdio>

namespace {

struct Option {
    double strike, expiry;
    int is_call;
};
struct Greeks {
    double price, delta, vega;
};
struct Position {
    Option option;
    std::string model;
};

template <class F> std::string message_of(F &&f)
{
    try {
        f();
    } catch (const gridrpc::error &error) {
        return error.what();
    }
    return "";
}

bool has(const std::string &text, const char *part) { return text.find(part) != std::string::npos; }

} // namespace

int main()
{
    gridrpc::Environment grid;
    const Option option{100, 1, 1};
    const std::vector<double> spots{90, 100, 110, 120};
    const auto n = spots.size();

    gridrpc::TypedFunction<double(const Option &, std::size_t, const std::vector<double> &, std::string)>
        price("pricing/price");
    assert(price(option, n, spots, "plain") == 7.5);
    gridrpc::TypedFunction<Greeks(Option, double)> greeks("pricing/greeks");
    assert(greeks(option, 103).price == 3);
    gridrpc::TypedFunction<std::string(Position)> title("pricing/title");
    assert(title({option, "heston"}) == "heston call");
    gridrpc::TypedFunction<void(Option, std::size_t, gridrpc::view<const double>, std::vector<Greeks> &)>
        ladder("pricing/ladder");
    std::vector<Greeks> values(n);
    gridrpc::Future call = ladder.async(option, n, spots, values);
    call.get();
    assert(values[3].price == 20 && values[3].delta == 1);

    gridrpc::Function delta("pricing/delta"), any("pricing/greeks"), join("pricing/join");
    double sum = 0;
    delta(3 * n, values, sum);
    assert(sum == 4);
    Greeks one;
    any(option, 103.0, one);
    assert(one.price == 3);
    gridrpc::Future kept = any.async(Option{100, 1, 0}, 97, one);
    kept.get();
    assert(one.price == 3 && one.delta == -1);
    std::string all;
    join(2, std::vector<std::string>{"a", "b"}, all);
    assert(all == "a;b;");

    // What only the interface knows is an error of the call.
    assert(has(message_of([&] { ladder(option, n - 1, spots, values); }), "spots"));
    assert(has(message_of([&] { any(option, 103.0); }), "takes 5 arguments, but 4 were given"));
    assert(has(message_of([&] { any(option, 103.0, one, 1, option); }), "but 9 were given"));
    assert(has(message_of([&] { any(Option{100, 1, 0}, 97, sum); }), "values"));
    struct Mixed {
        double a;
        long b, c;
    } mixed{};
    assert(!message_of([&] { any(option, 103.0, mixed); }).empty());
    std::vector<float> singles(3);
    assert(has(message_of([&] { any(option, 103.0, singles); }), "has elements of another type"));
    std::puts("all well");
}
