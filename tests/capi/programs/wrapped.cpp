// gridrpc.hpp with real workers.
#include <gridrpc.hpp>

#undef NDEBUG
#include <array>
#include <cassert>
#include <string>
#include <thread>

namespace {

void half(double *x, double *y) { *y = *x / 2; }

template <class F> grpc_error_t code_of(F &&f)
{
    try {
        f();
    } catch (const gridrpc::error &error) {
        return error.code();
    }
    return GRPC_NO_ERROR;
}

} // namespace

int main()
{
    gridrpc::Environment grid;
    gridrpc::Function mmul("cases/mmul"), add("cases/add"), greet("cases/greet"),
        integrate("cases/integrate"), segfault("cases/segfault"), nap("cases/nap");
    std::vector<double> a{1, 2, 3, 4}, b{5, 6, 7, 8};
    gridrpc::SharedArray<double> c(4);
    mmul(2, a, b, c);
    assert(c.data()[0] == 19 && c.data()[3] == 50);
    std::array<int, 1> sum{};
    add(1L, short{2}, sum);
    assert(sum[0] == 3);
    std::string text;
    greet(std::string("you"), text);
    assert(text == "hello, you");
    double result[1];
    integrate(100, result, half);
    assert(result[0] > 0.2499 && result[0] < 0.2501);
    assert(code_of([&] { add(1.5, 2, sum); }) == GRPC_OTHER_ERROR_CODE);
    assert(code_of([&] { add(1, 2); }) == GRPC_OTHER_ERROR_CODE);
    assert(code_of([&] { segfault(); }) == GRPC_COMMUNICATION_FAILED);
    assert(code_of([&] { gridrpc::Function("cases/none"); }) == GRPC_FUNCTION_NOT_FOUND);

    std::vector<gridrpc::Future> calls;
    std::vector<std::array<int, 1>> sums(20);
    for (int i = 0; i < 20; i++)
        calls.push_back(add.async(i, i, sums[static_cast<std::size_t>(i)]));
    for (int i = 0; i < 20; i++)
        assert(gridrpc::wait_any(calls) < 20);
    assert(gridrpc::wait_any(calls) == 20);
    for (int i = 0; i < 20; i++) {
        calls[static_cast<std::size_t>(i)].get();
        assert(sums[static_cast<std::size_t>(i)][0] == 2 * i);
    }
    gridrpc::Future failing = segfault.async();
    assert(code_of([&] { failing.get(); }) == GRPC_COMMUNICATION_FAILED);
    {
        gridrpc::Future dropped = nap.async(60.0);
        assert(!dropped.ready());
    }
    gridrpc::Object counter("cases/Counter");
    counter.invoke("add", 5, sum);
    assert(sum[0] == 105);
    counter.async("add", 1, sum).get();
    assert(sum[0] == 106);
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; i++)
        threads.emplace_back([&add, i] {
            std::array<int, 1> own{};
            for (int j = 0; j < 200; j++) {
                add(i, j, own);
                assert(own[0] == i + j);
            }
        });
    for (std::thread &thread : threads)
        thread.join();
}
