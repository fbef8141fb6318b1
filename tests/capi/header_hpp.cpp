// Does gridrpc.hpp stand alone, can two files of a program include it, and does it read well?
#include <gridrpc.hpp>

#include <array>
#include <iostream>

namespace {

double square(double x)
{
    return x * x;
}

void example()
{
    gridrpc::Environment grid("client.conf");

    gridrpc::Function mmul("sample/mmul");
    std::vector<double> a(4), b(4);
    gridrpc::SharedArray<double> c(4);
    mmul(2, a, b, c);

    std::vector<gridrpc::Future> calls;
    for (int i = 0; i < 10; i++)
        calls.push_back(mmul.async(2, a, b, c));
    gridrpc::wait_all(calls);
    for (gridrpc::Future &call : calls)
        call.get();

    gridrpc::Object counter("localhost", "sample/counter");
    std::array<int, 1> value{};
    counter.invoke("add", 5, value);
    counter.async("integrate", 0.0, 1.0, square).get();
}

} // namespace

int main()
{
    try {
        example();
    } catch (const gridrpc::error &error) {
        std::cout << error.code() << ": " << error.what() << '\n';
    }
}
