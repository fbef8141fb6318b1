// Does gridrpc.hpp convert, check and keep arguments as it says? The library is played here.

#include <gridrpc.hpp>

#undef NDEBUG
#include <array>
#include <cassert>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <functional>
#include <list>

struct grpc_arg_stack_s {
    std::vector<void *> arguments;
    std::size_t room;
};

namespace {

std::vector<grpc_parameter_np> interface;
std::function<void(const std::vector<void *> &)> body;
grpc_error_t outcome = GRPC_NO_ERROR;
int handles, stacks, cancelled, waited;
std::vector<std::pair<int, grpc_arg_stack_t *>> sessions;

grpc_parameter_np parameter(const char *name, grpc_mode_t_np mode, grpc_type_t_np type,
                            bool is_array = false, bool is_callback = false)
{
    return {name, mode, type, is_array, is_callback};
}

grpc_error_t run(grpc_arg_stack_t *stack)
{
    if (outcome == GRPC_NO_ERROR)
        body(stack->arguments);
    return outcome;
}

grpc_error_t describe(grpc_parameter_np *parameters, std::size_t capacity, std::size_t *count)
{
    *count = interface.size();
    for (std::size_t i = 0; i < capacity && i < interface.size(); i++)
        parameters[i] = interface[i];
    return GRPC_NO_ERROR;
}

} // namespace

extern "C" {
grpc_error_t grpc_initialize(const char *) { return GRPC_NO_ERROR; }
grpc_error_t grpc_finalize() { return GRPC_NO_ERROR; }
char *grpc_error_string(grpc_error_t code)
{
    static char text[] = "text of 18", other[] = "text";
    return code == 18 ? text : other;
}
const char *grpc_error_detail_np(grpc_sessionid_t session)
{
    return session == GRPC_SESSIONID_VOID ? "detail" : "detail of the session";
}
void *grpc_malloc_np(std::size_t size) { return std::calloc(1, size); }
grpc_error_t grpc_free_np(void *memory)
{
    std::free(memory);
    return GRPC_NO_ERROR;
}
grpc_error_t grpc_function_handle_default(grpc_function_handle_t *, const char *name)
{
    if (std::strcmp(name, "missing") == 0)
        return GRPC_FUNCTION_NOT_FOUND;
    handles++;
    return GRPC_NO_ERROR;
}
grpc_error_t grpc_function_handle_init(grpc_function_handle_t *, const char *, const char *)
{
    handles++;
    return GRPC_NO_ERROR;
}
grpc_error_t grpc_function_handle_destruct(grpc_function_handle_t *)
{
    handles--;
    return GRPC_NO_ERROR;
}
grpc_error_t grpc_object_handle_default_np(grpc_object_handle_t_np *, const char *)
{
    handles++;
    return GRPC_NO_ERROR;
}
grpc_error_t grpc_object_handle_init_np(grpc_object_handle_t_np *, const char *, const char *)
{
    handles++;
    return GRPC_NO_ERROR;
}
grpc_error_t grpc_object_handle_destruct_np(grpc_object_handle_t_np *)
{
    handles--;
    return GRPC_NO_ERROR;
}
grpc_error_t grpc_function_parameters_np(grpc_function_handle_t *, grpc_parameter_np *parameters,
                                         std::size_t capacity, std::size_t *count)
{
    return describe(parameters, capacity, count);
}
grpc_error_t grpc_method_parameters_np(grpc_object_handle_t_np *, const char *,
                                       grpc_parameter_np *parameters, std::size_t capacity,
                                       std::size_t *count)
{
    return describe(parameters, capacity, count);
}
grpc_arg_stack_t *grpc_arg_stack_new(int room)
{
    stacks++;
    return new grpc_arg_stack_s{{}, static_cast<std::size_t>(room)};
}
int grpc_arg_stack_push_arg(grpc_arg_stack_t *stack, void *argument)
{
    assert(stack->arguments.size() < stack->room);
    stack->arguments.push_back(argument);
    return 0;
}
int grpc_arg_stack_push_array_np(grpc_arg_stack_t *stack, void *array, std::size_t)
{
    return grpc_arg_stack_push_arg(stack, array);
}
int grpc_arg_stack_destruct(grpc_arg_stack_t *stack)
{
    stacks--;
    delete stack;
    return 0;
}
grpc_error_t grpc_call_arg_stack(grpc_function_handle_t *, grpc_arg_stack_t *stack)
{
    return run(stack);
}
grpc_error_t grpc_invoke_arg_stack_np(grpc_object_handle_t_np *, const char *,
                                      grpc_arg_stack_t *stack)
{
    return run(stack);
}
grpc_error_t grpc_call_argstack_async(grpc_function_handle_t *, grpc_sessionid_t *session,
                                      grpc_arg_stack_t *stack)
{
    *session = static_cast<int>(sessions.size());
    sessions.emplace_back(*session, stack);
    return GRPC_NO_ERROR;
}
grpc_error_t grpc_invoke_argstack_async_np(grpc_object_handle_t_np *, const char *,
                                           grpc_sessionid_t *session, grpc_arg_stack_t *stack)
{
    return grpc_call_argstack_async(nullptr, session, stack);
}
grpc_error_t grpc_probe(grpc_sessionid_t) { return GRPC_NOT_COMPLETED; }
grpc_error_t grpc_cancel(grpc_sessionid_t)
{
    cancelled++;
    return GRPC_NO_ERROR;
}
grpc_error_t grpc_wait(grpc_sessionid_t session)
{
    waited++;
    return run(sessions[static_cast<std::size_t>(session)].second) == GRPC_NO_ERROR
               ? GRPC_NO_ERROR
               : GRPC_SESSION_FAILED;
}
grpc_error_t grpc_wait_or(const grpc_sessionid_t *ids, std::size_t n, grpc_sessionid_t *done)
{
    *done = ids[n - 1];
    return GRPC_NO_ERROR;
}
grpc_error_t grpc_get_error(grpc_sessionid_t) { return outcome; }
}

namespace {

// Calls with one argument for a parameter, and returns what the function saw or why it was refused.
template <class T> std::string refused(grpc_parameter_np only, T &&argument)
{
    interface = {only};
    body = [](const std::vector<void *> &) { assert(false); };
    gridrpc::Function function("m/f");
    try {
        function(std::forward<T>(argument));
    } catch (const gridrpc::error &error) {
        assert(error.code() == GRPC_OTHER_ERROR_CODE);
        return error.detail();
    }
    return "taken";
}

template <class To, class From> void stored(grpc_type_t_np type, From from, To expected)
{
    interface = {parameter("x", GRPC_MODE_IN_NP, type)};
    bool called = false;
    body = [&](const std::vector<void *> &arguments) {
        assert(std::memcmp(arguments[0], &expected, sizeof expected) == 0);
        called = true;
    };
    gridrpc::Function("m/f")(from);
    assert(called);
}

enum class Colour : short { red = -3 };

void numbers()
{
    stored<signed char>(GRPC_TYPE_CHAR_NP, -5L, -5);
    stored<short>(GRPC_TYPE_SHORT_NP, Colour::red, -3);
    stored<int>(GRPC_TYPE_INT_NP, 7u, 7);
    stored<int>(GRPC_TYPE_INT_NP, true, 1);
    stored<int>(GRPC_TYPE_INT_NP, 4.0, 4);
    stored<long>(GRPC_TYPE_LONG_NP, -1, -1);
    stored<unsigned long long>(GRPC_TYPE_UINT64_NP, UINT64_MAX, UINT64_MAX);
    stored<std::int64_t>(GRPC_TYPE_INT64_NP, INT64_MIN, INT64_MIN);
    stored<float>(GRPC_TYPE_FLOAT_NP, 0.1, 0.1f);
    stored<double>(GRPC_TYPE_DOUBLE_NP, 3, 3.0);
    stored<double>(GRPC_TYPE_DOUBLE_NP, 0.5L, 0.5);
    stored<std::complex<float>>(GRPC_TYPE_SCOMPLEX_NP, std::complex<double>(1, 2), {1, 2});
    stored<std::complex<double>>(GRPC_TYPE_DCOMPLEX_NP, 2, {2, 0});

    auto in = [](grpc_type_t_np type) { return parameter("x", GRPC_MODE_IN_NP, type); };
    assert(refused(in(GRPC_TYPE_INT8_NP), 128) == "argument `x` of `m/f` does not fit: 128");
    assert(refused(in(GRPC_TYPE_UNSIGNED_INT_NP), -1) != "taken");
    assert(refused(in(GRPC_TYPE_INT_NP), 2147483648u) != "taken");
    assert(refused(in(GRPC_TYPE_INT64_NP), UINT64_MAX) != "taken");
    assert(refused(in(GRPC_TYPE_INT64_NP), 9223372036854775808.0) != "taken");
    assert(refused(in(GRPC_TYPE_INT_NP), 0.5) != "taken");
    assert(refused(in(GRPC_TYPE_INT_NP), std::nan("")) != "taken");
    assert(refused(in(GRPC_TYPE_FLOAT_NP), 1e300) != "taken");
    assert(refused(in(GRPC_TYPE_DOUBLE_NP), std::complex<double>(1, 2)) ==
           "argument `x` of `m/f` is real, not complex");
    assert(refused(in(GRPC_TYPE_INT_NP), nullptr) != "taken");
    assert(refused(in(GRPC_TYPE_INT_NP), "text") ==
           "argument `x` of `m/f` is a number, not a string");
    assert(refused(in(GRPC_TYPE_STRING_NP), 1) ==
           "argument `x` of `m/f` is a string, not a number");
}

template <class T> void passed(grpc_parameter_np only, T &&argument, const void *expected)
{
    interface = {only};
    bool called = false;
    body = [&](const std::vector<void *> &arguments) {
        assert(arguments[0] == expected);
        called = true;
    };
    gridrpc::Function("m/f")(std::forward<T>(argument));
    assert(called);
}

void arrays()
{
    const auto in = parameter("a", GRPC_MODE_IN_NP, GRPC_TYPE_DOUBLE_NP, true);
    const auto out = parameter("a", GRPC_MODE_OUT_NP, GRPC_TYPE_DOUBLE_NP, true);
    std::vector<double> vector{1, 2};
    const std::vector<double> constant{1, 2};
    std::array<double, 2> array{};
    double plain[3] = {};
    gridrpc::view<double> view(vector);
    gridrpc::SharedArray<double> shared(4);
    passed(out, vector, vector.data());
    passed(out, array, array.data());
    passed(out, plain, plain);
    passed(out, &plain[1], &plain[1]);
    passed(out, view, vector.data());
    passed(out, gridrpc::view<double>(vector), vector.data());
    passed(out, shared, shared.data());
    passed(out, static_cast<void *>(plain), plain);
    passed(in, constant, constant.data());
    passed(in, nullptr, nullptr);
    passed(parameter("w", GRPC_MODE_WORK_NP, GRPC_TYPE_DOUBLE_NP, true), vector, nullptr);
    std::vector<unsigned char> bytes(4);
    passed(parameter("b", GRPC_MODE_OUT_NP, GRPC_TYPE_CHAR_NP, true), bytes, bytes.data());
    std::string text = "text";
    passed(parameter("b", GRPC_MODE_INOUT_NP, GRPC_TYPE_CHAR_NP, true), text, text.data());

    std::vector<float> floats(2);
    std::vector<long> longs(2);
    std::vector<unsigned long> naturals(2);
    assert(refused(in, floats) == "argument `a` of `m/f` has elements of another type");
    assert(refused(in, longs) != "taken");
    assert(refused(parameter("l", GRPC_MODE_IN_NP, GRPC_TYPE_LONG_NP, true), naturals) != "taken");
    passed(parameter("l", GRPC_MODE_IN_NP, GRPC_TYPE_LONG_LONG_NP, true), longs, longs.data());
    assert(refused(out, constant) ==
           "argument `a` of `m/f` is written to, but the argument is const");
    assert(refused(in, 1.0) == "argument `a` of `m/f` is an array, not a number");
    assert(refused(parameter("n", GRPC_MODE_IN_NP, GRPC_TYPE_DOUBLE_NP), vector) ==
           "argument `n` of `m/f` is not an array");
}

void strings()
{
    interface = {parameter("i", GRPC_MODE_IN_NP, GRPC_TYPE_STRING_NP),
                 parameter("o", GRPC_MODE_OUT_NP, GRPC_TYPE_STRING_NP),
                 parameter("io", GRPC_MODE_INOUT_NP, GRPC_TYPE_STRING_NP),
                 parameter("f", GRPC_MODE_OUT_NP, GRPC_TYPE_FILENAME_NP),
                 parameter("l", GRPC_MODE_IN_NP, GRPC_TYPE_STRING_NP, true)};
    body = [](const std::vector<void *> &arguments) {
        assert(std::strcmp(static_cast<char *>(arguments[0]), "given") == 0);
        char **out = static_cast<char **>(arguments[1]);
        char **inout = static_cast<char **>(arguments[2]);
        assert(*out == nullptr && std::strcmp(*inout, "before") == 0);
        *out = strdup("came");
        *inout = strdup("after");
        assert(std::strcmp(static_cast<char *>(arguments[3]), "/file") == 0);
        char **list = static_cast<char **>(arguments[4]);
        assert(std::strcmp(list[0], "a") == 0 && std::strcmp(list[1], "b") == 0);
    };
    gridrpc::Function function("m/f");
    std::string out = "x", inout = "before";
    const std::vector<std::string> list{"a", "b"};
    function(std::string_view("given!").substr(0, 5), out, inout, "/file", list);
    assert(out == "came" && inout == "after");

    // What was not brought back is freed.
    body = [](const std::vector<void *> &arguments) {
        *static_cast<char **>(arguments[1]) = strdup("lost");
    };
    function(nullptr, out, inout, "/file", nullptr);
    assert(out == "lost" && inout == "after");
    assert(refused(interface[1], "literal").find("needs a std::string variable") !=
           std::string::npos);
}

double twice(double x)
{
    return 2 * x;
}

void callbacks()
{
    const auto callback = parameter("f", GRPC_MODE_IN_NP, GRPC_TYPE_NONE_NP, false, true);
    passed(callback, twice, reinterpret_cast<void *>(&twice));
    passed(callback, &twice, reinterpret_cast<void *>(&twice));
    interface = {callback};
    body = [](const std::vector<void *> &arguments) {
        int result = 0;
        reinterpret_cast<void (*)(int *)>(arguments[0])(&result);
        assert(result == 7);
    };
    gridrpc::Function("m/f")([](int *result) { *result = 7; });
    assert(refused(callback, 1) == "argument `f` of `m/f` is a callback, not a number");
    assert(refused(parameter("a", GRPC_MODE_IN_NP, GRPC_TYPE_INT_NP, true), twice) ==
           "argument `a` of `m/f` is not a callback");
}

void futures()
{
    interface = {parameter("n", GRPC_MODE_IN_NP, GRPC_TYPE_INT_NP),
                 parameter("a", GRPC_MODE_IN_NP, GRPC_TYPE_INT_NP, true)};
    int sum = 0;
    body = [&](const std::vector<void *> &arguments) {
        for (int i = 0; i < *static_cast<int *>(arguments[0]); i++)
            sum += static_cast<int *>(arguments[1])[i];
    };
    gridrpc::Function function("m/f");
    {
        // The vector lives as long as the call.
        gridrpc::Future call = function.async(3L, std::vector<int>{1, 2, 3});
        assert(call.valid() && !call.ready());
        gridrpc::Future moved = std::move(call);
        assert(!call.valid());
        moved.get();
        moved.get();
        assert(sum == 6 && moved.ready() && cancelled == 0 && waited == 1);
    }
    {
        gridrpc::Future dropped = function.async(0, nullptr);
    }
    assert(cancelled == 1 && waited == 2);

    outcome = GRPC_TIMEOUT_NP;
    gridrpc::Future failed = function.async(0, nullptr);
    for (int i = 0; i < 2; i++) {
        try {
            failed.get();
            assert(false);
        } catch (const gridrpc::error &error) {
            assert(error.code() == GRPC_TIMEOUT_NP && error.detail() == "detail of the session");
            assert(std::string(error.what()) == "text: detail of the session");
        }
    }
    outcome = GRPC_OTHER_ERROR_CODE;
    try {
        function.async(0, nullptr).get();
        assert(false);
    } catch (const gridrpc::error &error) {
        assert(std::string(error.what()) == "detail of the session");
    }
    outcome = GRPC_NO_ERROR;

    std::vector<gridrpc::Future> several(3);
    for (gridrpc::Future &call : several)
        call = function.async(0, nullptr);
    assert(gridrpc::wait_any(several) == 2 && gridrpc::wait_any(several) == 1);
    gridrpc::wait_all(several);
    assert(gridrpc::wait_any(several) == 3);
    try {
        gridrpc::Future().get();
        assert(false);
    } catch (const gridrpc::error &error) {
        assert(error.code() == GRPC_INVALID_SESSION_ID);
    }
}

void handles_and_objects()
{
    interface = {};
    body = [](const std::vector<void *> &) {};
    try {
        gridrpc::Function("missing");
        assert(false);
    } catch (const gridrpc::error &error) {
        assert(error.code() == GRPC_FUNCTION_NOT_FOUND && error.detail() == "detail");
    }
    gridrpc::Function first("here", "m/f"), second("m/g");
    grpc_function_handle_t *address = first.handle();
    second = std::move(first);
    assert(handles == 1 && second.handle() == address && second.name() == "m/f");
    second.call();
    try {
        second(1);
        assert(false);
    } catch (const gridrpc::error &error) {
        assert(error.detail() == "`m/f` takes 0 arguments, but 1 were given");
    }
    gridrpc::Object object("m/c");
    gridrpc::Object other("here", "m/c");
    object = std::move(other);
    object.invoke("method");
    object.async("method").get();
    assert(handles == 2);
}

} // namespace

int main()
{
    gridrpc::Environment grid;
    numbers();
    arrays();
    strings();
    callbacks();
    futures();
    handles_and_objects();
    assert(handles == 0 && stacks == 0);
    std::puts("ok");
}
