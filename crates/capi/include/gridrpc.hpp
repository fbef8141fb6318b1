/*
 * gridrpc.hpp: the GridRPC API for C++17 and newer, on top of grpc.h. Nothing to link but the C
 * library.
 *
 *   gridrpc::Environment grid("client.conf");
 *   gridrpc::Function mmul("sample/mmul");
 *   mmul(n, a, b, c);                          // returns when c is there, or throws gridrpc::error
 *   gridrpc::Future call = mmul.async(n, a, b, c);
 *   call.get();
 *
 * Arguments are checked and converted by the interface when the call is made: numbers of any type
 * are stored as the type that the interface has, if they fit; arrays have to have elements of that
 * type already, since nothing is copied. One argument per parameter; WORK takes nullptr.
 *
 *   numbers          arithmetic types, enumerations, std::complex
 *   arrays           std::vector, std::array, std::span, gridrpc::view, C arrays, pointers; elements may be
 *                    structures whose fields all have the type of the parameter's elements
 *   one number back  also a variable of that type, or such a structure for its fields
 *   strings, files   const char *, std::string, std::string_view; a std::string & to get one back
 *   callbacks        functions, and lambdas that capture nothing
 *   several of them  a structure: its fields are the arguments, in their order
 *
 * How long an array has to be is up to the interface: the call compares it. gridrpc::TypedFunction has the compiler
 * check arguments.
 */
#ifndef GRIDRPC_GRIDRPC_HPP
#define GRIDRPC_GRIDRPC_HPP

#include <cmath>
#include <complex>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <iterator>
#include <limits>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>
#if defined(__has_include)
#if __has_include(<version>)
#include <version>
#endif
#endif
#if defined(__cpp_lib_span)
#include <span>
#endif

#include "grpc.h"

namespace gridrpc {

// ---- Errors -------------------------------------------------------------------------------------

// What went wrong, as a code of grpc.h, and all that is known about it.
class error : public std::runtime_error {
public:
    error(grpc_error_t code, std::string detail)
        : std::runtime_error(message(code, detail)), code_(code), detail_(std::move(detail))
    {
    }

    grpc_error_t code() const noexcept { return code_; }
    const std::string &detail() const noexcept { return detail_; }

private:
    static std::string message(grpc_error_t code, const std::string &detail)
    {
        std::string text = grpc_error_string(code);
        if (detail.empty() || detail == text) return text;
        // The text of this code only says that there are details.
        return code == GRPC_OTHER_ERROR_CODE ? detail : text + ": " + detail;
    }

    grpc_error_t code_;
    std::string detail_;
};

// ---- Views --------------------------------------------------------------------------------------

#if defined(__cpp_lib_span)
template <class T> using view = std::span<T>;
#else
// Elements that belong to somebody else, as std::span, which C++17 does not have.
template <class T> class view {
public:
    using element_type = T;
    using value_type = std::remove_cv_t<T>;

    constexpr view() noexcept = default;
    constexpr view(T *data, std::size_t size) noexcept : data_(data), size_(size) {}
    template <class R,
              class = std::enable_if_t<
                  !std::is_same_v<std::decay_t<R>, view> &&
                  std::is_convertible_v<decltype(std::data(std::declval<R &>())), T *>>>
    constexpr view(R &&range) : data_(std::data(range)), size_(std::size(range))
    {
    }

    constexpr T *data() const noexcept { return data_; }
    constexpr std::size_t size() const noexcept { return size_; }
    constexpr bool empty() const noexcept { return size_ == 0; }
    constexpr T &operator[](std::size_t index) const { return data_[index]; }
    constexpr T *begin() const noexcept { return data_; }
    constexpr T *end() const noexcept { return data_ + size_; }

private:
    T *data_ = nullptr;
    std::size_t size_ = 0;
};
#endif

// An array in memory that calls need not copy.
template <class T> class SharedArray {
    static_assert(std::is_trivially_copyable_v<T>, "elements are plain data");

public:
    explicit SharedArray(std::size_t size) : size_(size)
    {
        if (size > std::numeric_limits<std::size_t>::max() / sizeof(T))
            throw std::bad_alloc();
        data_.reset(static_cast<T *>(grpc_malloc_np(size == 0 ? 1 : size * sizeof(T))));
        if (!data_)
            throw std::bad_alloc();
    }

    T *data() noexcept { return data_.get(); }
    const T *data() const noexcept { return data_.get(); }
    std::size_t size() const noexcept { return size_; }
    T &operator[](std::size_t index) { return data_.get()[index]; }
    const T &operator[](std::size_t index) const { return data_.get()[index]; }
    T *begin() noexcept { return data(); }
    T *end() noexcept { return data() + size_; }
    const T *begin() const noexcept { return data(); }
    const T *end() const noexcept { return data() + size_; }

private:
    struct Free {
        void operator()(T *memory) const noexcept { grpc_free_np(memory); }
    };
    std::unique_ptr<T, Free> data_;
    std::size_t size_;
};

// ---- Arguments ----------------------------------------------------------------------------------

// One parameter of an interface.
using Parameter = grpc_parameter_np;

namespace internal {

inline void check(grpc_error_t code)
{
    if (code != GRPC_NO_ERROR)
        throw error(code, grpc_error_detail_np(GRPC_SESSIONID_VOID));
}

// What a type is, so that types of different languages can be compared.
struct Kind {
    enum Family { none, whole, natural, real, complex, text } family;
    std::size_t size;
};

constexpr Kind kind_of(grpc_type_t_np type)
{
    switch (type) {
    case GRPC_TYPE_CHAR_NP: return {Kind::whole, sizeof(char)};
    case GRPC_TYPE_UNSIGNED_CHAR_NP: return {Kind::natural, sizeof(unsigned char)};
    case GRPC_TYPE_SHORT_NP: return {Kind::whole, sizeof(short)};
    case GRPC_TYPE_UNSIGNED_SHORT_NP: return {Kind::natural, sizeof(unsigned short)};
    case GRPC_TYPE_INT_NP: return {Kind::whole, sizeof(int)};
    case GRPC_TYPE_UNSIGNED_INT_NP: return {Kind::natural, sizeof(unsigned)};
    case GRPC_TYPE_LONG_NP: return {Kind::whole, sizeof(long)};
    case GRPC_TYPE_UNSIGNED_LONG_NP: return {Kind::natural, sizeof(unsigned long)};
    case GRPC_TYPE_LONG_LONG_NP: return {Kind::whole, sizeof(long long)};
    case GRPC_TYPE_UNSIGNED_LONG_LONG_NP: return {Kind::natural, sizeof(unsigned long long)};
    case GRPC_TYPE_FLOAT_NP: return {Kind::real, sizeof(float)};
    case GRPC_TYPE_DOUBLE_NP: return {Kind::real, sizeof(double)};
    case GRPC_TYPE_SCOMPLEX_NP: return {Kind::complex, 2 * sizeof(float)};
    case GRPC_TYPE_DCOMPLEX_NP: return {Kind::complex, 2 * sizeof(double)};
    case GRPC_TYPE_INT8_NP: return {Kind::whole, 1};
    case GRPC_TYPE_UINT8_NP: return {Kind::natural, 1};
    case GRPC_TYPE_INT16_NP: return {Kind::whole, 2};
    case GRPC_TYPE_UINT16_NP: return {Kind::natural, 2};
    case GRPC_TYPE_INT32_NP: return {Kind::whole, 4};
    case GRPC_TYPE_UINT32_NP: return {Kind::natural, 4};
    case GRPC_TYPE_INT64_NP: return {Kind::whole, 8};
    case GRPC_TYPE_UINT64_NP: return {Kind::natural, 8};
    case GRPC_TYPE_STRING_NP:
    case GRPC_TYPE_FILENAME_NP: return {Kind::text, sizeof(char *)};
    case GRPC_TYPE_NONE_NP: break;
    }
    return {Kind::none, 0};
}

template <class T> struct is_complex : std::false_type {};
template <class T> struct is_complex<std::complex<T>> : std::true_type {};

template <class T> constexpr Kind kind_of()
{
    using U = std::remove_cv_t<T>;
    if constexpr (std::is_enum_v<U>)
        return kind_of<std::underlying_type_t<U>>();
    else if constexpr (std::is_floating_point_v<U>)
        return {Kind::real, sizeof(U)};
    else if constexpr (std::is_integral_v<U>)
        return {std::is_signed_v<U> ? Kind::whole : Kind::natural, sizeof(U)};
    else if constexpr (is_complex<U>::value)
        return {Kind::complex, sizeof(U)};
    else if constexpr (std::is_same_v<U, char *> || std::is_same_v<U, const char *>)
        return {Kind::text, sizeof(U)};
    else
        return {Kind::none, 0};
}

// Bytes are bytes, signed or not.
constexpr bool same(Kind left, Kind right)
{
    bool bytes = left.size == 1 && right.size == 1;
    return left.size == right.size && left.family != Kind::none &&
           (left.family == right.family || bytes);
}

template <class T> constexpr bool is_negative(T value)
{
    if constexpr (std::is_signed_v<T>)
        return value < T{};
    else
        return (void)value, false;
}

// Whether a number can be stored as To without becoming another; reals may lose digits.
template <class To, class From> bool fits(From value)
{
    if constexpr (std::is_floating_point_v<To>) {
        if constexpr (std::is_floating_point_v<From> && sizeof(From) > sizeof(To))
            return !std::isfinite(value) ||
                   std::abs(value) <= static_cast<From>(std::numeric_limits<To>::max());
        else
            return true;
    } else if constexpr (std::is_floating_point_v<From>) {
        // The bounds are powers of two, which are exact; NaN fails all comparisons.
        const From above = std::ldexp(From(1), std::numeric_limits<To>::digits);
        const From least = std::is_signed_v<To> ? -above : From(0);
        return value >= least && value < above && value == std::trunc(value);
    } else {
        const To stored = static_cast<To>(value);
        return static_cast<From>(stored) == value && is_negative(stored) == is_negative(value);
    }
}

template <class T, class = void> struct is_range : std::false_type {};
template <class T>
struct is_range<T, std::void_t<decltype(std::data(std::declval<T &>())),
                               decltype(std::size(std::declval<T &>()))>> : std::true_type {};

template <class T, class = void> struct is_callback : std::false_type {};
template <class T>
struct is_callback<T, std::void_t<decltype(+std::declval<T>())>>
    : std::bool_constant<
          std::is_function_v<std::remove_pointer_t<decltype(+std::declval<T>())>> &&
          !std::is_arithmetic_v<T>> {};

template <class> inline constexpr bool never = false;

// Converts to all types, or to one.
struct Anything {
    template <class U> operator U() const;
};
template <class T> struct Exactly {
    template <class U, class = std::enable_if_t<std::is_same_v<U, T>>> operator U() const;
};

template <class S, class Field, std::size_t... I>
auto is_braced(int, std::index_sequence<I...>)
    -> decltype(S{((void)I, std::declval<Field>())...}, std::true_type());
template <class S, class Field, std::size_t... I>
std::false_type is_braced(long, std::index_sequence<I...>);
template <class S, class Field, std::size_t count>
inline constexpr bool has_fields =
    decltype(is_braced<S, Field>(0, std::make_index_sequence<count>()))::value;

template <class T>
inline constexpr bool is_structure =
    std::is_class_v<T> && std::is_aggregate_v<T> && !is_range<T>::value && !is_complex<T>::value;

// The kind of all fields of a structure, if it is the same.
template <class S, class T, class... Others> constexpr Kind kind_of_fields()
{
    if constexpr (sizeof(S) % sizeof(T) == 0) {
        if constexpr (has_fields<S, Exactly<T>, sizeof(S) / sizeof(T)>)
            return kind_of<T>();
    }
    if constexpr (sizeof...(Others) > 0)
        return kind_of_fields<S, Others...>();
    else
        return {Kind::none, 0};
}

// The kind of an array's elements; for structures that of their fields.
template <class T> constexpr Kind kind_of_elements()
{
    using U = std::remove_cv_t<T>;
    if constexpr (is_structure<U> && std::is_trivially_copyable_v<U>)
        return kind_of_fields<U, double, float, int, unsigned, long, unsigned long, long long,
                              unsigned long long, short, unsigned short, signed char,
                              unsigned char, char, std::complex<double>, std::complex<float>>();
    else
        return kind_of<U>();
}

inline constexpr std::size_t most_fields = 12;

template <class S, std::size_t count = most_fields> constexpr std::size_t number_of_fields()
{
    if constexpr (count == 0 || has_fields<S, Anything, count>)
        return count;
    else
        return number_of_fields<S, count - 1>();
}

// Calls f with the fields of a structure.
template <class S, class F> void with_fields(S &s, F &&f)
{
    using U = std::remove_cv_t<S>;
    constexpr std::size_t count = number_of_fields<U>();
    static_assert(count > 0 && !has_fields<U, Anything, most_fields + 1>,
                  "a structure as an argument has 1 to 12 fields");
    if constexpr (count == 1) {
        auto &[a] = s;
        f(a);
    } else if constexpr (count == 2) {
        auto &[a, b] = s;
        f(a, b);
    } else if constexpr (count == 3) {
        auto &[a, b, c] = s;
        f(a, b, c);
    } else if constexpr (count == 4) {
        auto &[a, b, c, d] = s;
        f(a, b, c, d);
    } else if constexpr (count == 5) {
        auto &[a, b, c, d, e] = s;
        f(a, b, c, d, e);
    } else if constexpr (count == 6) {
        auto &[a, b, c, d, e, g] = s;
        f(a, b, c, d, e, g);
    } else if constexpr (count == 7) {
        auto &[a, b, c, d, e, g, h] = s;
        f(a, b, c, d, e, g, h);
    } else if constexpr (count == 8) {
        auto &[a, b, c, d, e, g, h, i] = s;
        f(a, b, c, d, e, g, h, i);
    } else if constexpr (count == 9) {
        auto &[a, b, c, d, e, g, h, i, j] = s;
        f(a, b, c, d, e, g, h, i, j);
    } else if constexpr (count == 10) {
        auto &[a, b, c, d, e, g, h, i, j, k] = s;
        f(a, b, c, d, e, g, h, i, j, k);
    } else if constexpr (count == 11) {
        auto &[a, b, c, d, e, g, h, i, j, k, l] = s;
        f(a, b, c, d, e, g, h, i, j, k, l);
    } else {
        auto &[a, b, c, d, e, g, h, i, j, k, l, m] = s;
        f(a, b, c, d, e, g, h, i, j, k, l, m);
    }
}

// The arguments of one call, and what has to live as long as it.
class Arguments {
public:
    template <class... Args>
    Arguments(const std::string &function, const std::vector<Parameter> &parameters,
              Args &&...args)
        : function_(function), stack_(grpc_arg_stack_new(static_cast<int>(parameters.size())))
    {
        if (stack_ == nullptr)
            check(GRPC_OTHER_ERROR_CODE);
        std::size_t taken = 0;
        (take(parameters, taken, std::forward<Args>(args)), ...);
        if (taken != parameters.size())
            throw error(GRPC_OTHER_ERROR_CODE,
                        "`" + function + "` takes " + std::to_string(parameters.size()) +
                            " arguments, but " + std::to_string(taken) + " were given");
    }

    grpc_arg_stack_t *stack() const noexcept { return stack_.get(); }

    // The call has ended well: brings strings that came back to their places.
    void finish()
    {
        for (Returned &returned : returned_) {
            if (returned.came == nullptr)
                returned.place->clear();
            else
                *returned.place = returned.came;
            returned.release();
        }
    }

private:
    struct Free {
        void operator()(grpc_arg_stack_t *stack) const noexcept { grpc_arg_stack_destruct(stack); }
    };

    // A number as the interface has it.
    struct alignas(std::complex<double>) Number {
        unsigned char bytes[sizeof(std::complex<double>)];
    };

    // A string that goes in, perhaps, and comes back.
    struct Returned {
        char *came;
        std::string *place;
        const char *given;

        Returned(char *text, std::string *to, const char *in) : came(text), place(to), given(in) {}
        Returned(const Returned &) = delete;
        Returned &operator=(const Returned &) = delete;
        ~Returned() { release(); }

        void release()
        {
            if (came != given)
                std::free(came);
            came = nullptr;
            given = nullptr;
        }
    };

    [[noreturn]] void refuse(const Parameter &parameter, const std::string &why) const
    {
        throw error(GRPC_OTHER_ERROR_CODE,
                    "argument `" + std::string(parameter.name) + "` of `" + function_ + "` " + why);
    }

    void push(const void *address)
    {
        if (grpc_arg_stack_push_arg(stack_.get(), const_cast<void *>(address)) != 0)
            check(GRPC_OTHER_ERROR_CODE);
    }

    static bool is_written(const Parameter &parameter)
    {
        return parameter.mode == GRPC_MODE_OUT_NP || parameter.mode == GRPC_MODE_INOUT_NP;
    }

    static bool is_text(const Parameter &parameter)
    {
        return kind_of(parameter.type).family == Kind::text;
    }

    static bool is_number(const Parameter &parameter)
    {
        return !parameter.is_array && !parameter.is_callback && !is_text(parameter);
    }

    // An argument for the next parameter, or a structure for the next ones. Those that are too many only count.
    template <class T>
    void take(const std::vector<Parameter> &parameters, std::size_t &taken, T &&argument)
    {
        using Plain = std::remove_cv_t<std::remove_reference_t<T>>;
        if constexpr (is_structure<Plain> && !is_callback<T>::value) {
            if constexpr (kind_of_elements<Plain>().family != Kind::none) {
                if (taken < parameters.size() && parameters[taken].is_array) {
                    single(parameters[taken++], std::forward<T>(argument));
                    return;
                }
            }
            const auto each = [&](auto &...fields) { (take(parameters, taken, fields), ...); };
            if constexpr (std::is_lvalue_reference_v<T>)
                with_fields(argument, each);
            else
                with_fields(keep(Plain(std::forward<T>(argument))), each);
        } else if (taken++ < parameters.size()) {
            add(parameters[taken - 1], std::forward<T>(argument));
        }
    }

    // One element, where the interface has an array.
    template <class T> void single(const Parameter &parameter, T &&element)
    {
        if constexpr (std::is_lvalue_reference_v<T>) {
            view<std::remove_reference_t<T>> range(&element, 1);
            counted<std::remove_reference_t<T>>(parameter, range);
        } else {
            single(parameter, keep(std::remove_cv_t<T>(std::forward<T>(element))));
        }
    }

    template <class T> void add(const Parameter &parameter, T &&argument)
    {
        using Plain = std::remove_cv_t<std::remove_reference_t<T>>;
        if (parameter.mode == GRPC_MODE_WORK_NP) {
            push(nullptr);
        } else if constexpr (std::is_null_pointer_v<Plain>) {
            if (is_number(parameter))
                refuse(parameter, "is a number, and nullptr is none");
            push(nullptr);
        } else if constexpr (std::is_arithmetic_v<Plain> || is_complex<Plain>::value) {
            if constexpr (std::is_lvalue_reference_v<T>) {
                if (parameter.is_array && is_written(parameter)) {
                    single(parameter, argument);
                    return;
                }
            }
            number(parameter, argument);
        } else if constexpr (std::is_enum_v<Plain>) {
            number(parameter, static_cast<std::underlying_type_t<Plain>>(argument));
        } else if constexpr (std::is_convertible_v<T, std::string_view>) {
            characters(parameter, std::forward<T>(argument));
        } else if constexpr (std::is_pointer_v<std::decay_t<T>> &&
                             !std::is_function_v<std::remove_pointer_t<std::decay_t<T>>> &&
                             !std::is_array_v<Plain>) {
            elements<std::remove_pointer_t<Plain>>(parameter, argument);
        } else if constexpr (is_range<Plain>::value) {
            range(parameter, std::forward<T>(argument));
        } else if constexpr (is_callback<T>::value) {
            if (!parameter.is_callback)
                refuse(parameter, "is not a callback");
            push(reinterpret_cast<const void *>(+argument));
        } else {
            static_assert(never<T>, "arguments are numbers, ranges in one piece, pointers, strings, "
                                    "structures, functions, or lambdas that capture nothing");
        }
    }

    template <class To, class From>
    void store(const Parameter &parameter, Number &number, From from)
    {
        if (!fits<To>(from))
            refuse(parameter, "does not fit: " + std::to_string(from));
        const To value = static_cast<To>(from);
        std::memcpy(number.bytes, &value, sizeof value);
    }

    template <class To, class From>
    void store_complex(const Parameter &parameter, Number &number, From from)
    {
        std::complex<To> value;
        if constexpr (is_complex<From>::value) {
            if (!fits<To>(from.real()) || !fits<To>(from.imag()))
                refuse(parameter, "does not fit");
            value = {static_cast<To>(from.real()), static_cast<To>(from.imag())};
        } else {
            value = static_cast<To>(from);
        }
        std::memcpy(number.bytes, &value, sizeof value);
    }

    template <class From> void number(const Parameter &parameter, From from)
    {
        if (!is_number(parameter))
            refuse(parameter, parameter.is_callback ? "is a callback, not a number"
                              : parameter.is_array  ? "is an array, not a number"
                                                    : "is a string, not a number");
        Number &number = numbers_.emplace_back();
        const Kind kind = kind_of(parameter.type);
        if (kind.family == Kind::complex) {
            if (kind.size == sizeof(std::complex<float>))
                store_complex<float>(parameter, number, from);
            else
                store_complex<double>(parameter, number, from);
        } else if constexpr (is_complex<From>::value) {
            refuse(parameter, "is real, not complex");
        } else if (kind.family == Kind::real) {
            if (kind.size == sizeof(float))
                store<float>(parameter, number, from);
            else
                store<double>(parameter, number, from);
        } else if (kind.family == Kind::whole) {
            switch (kind.size) {
            case 1: store<signed char>(parameter, number, from); break;
            case 2: store<short>(parameter, number, from); break;
            case 4: store<int>(parameter, number, from); break;
            default: store<long long>(parameter, number, from);
            }
        } else {
            switch (kind.size) {
            case 1: store<unsigned char>(parameter, number, from); break;
            case 2: store<unsigned short>(parameter, number, from); break;
            case 4: store<unsigned>(parameter, number, from); break;
            default: store<unsigned long long>(parameter, number, from);
            }
        }
        push(number.bytes);
    }

    // Something made of characters: a string, or an array of them.
    template <class T> void characters(const Parameter &parameter, T &&argument)
    {
        using Plain = std::remove_cv_t<std::remove_reference_t<T>>;
        if (parameter.is_array) {
            if constexpr (is_range<Plain>::value)
                range(parameter, std::forward<T>(argument));
            else
                elements<std::remove_pointer_t<Plain>>(parameter, argument);
            return;
        }
        if (parameter.is_callback || !is_text(parameter))
            refuse(parameter, parameter.is_callback ? "is a callback, not a string"
                                                    : "is a number, not a string");
        if (parameter.type == GRPC_TYPE_FILENAME_NP || !is_written(parameter)) {
            // The name of a file is given even if the file is written.
            if constexpr (std::is_pointer_v<Plain>) {
                if (argument == nullptr) {
                    push(nullptr);
                    return;
                }
            }
            push(keep(std::string(std::string_view(argument))).c_str());
        } else if constexpr (std::is_same_v<T, std::string &>) {
            char *given = nullptr;
            if (parameter.mode == GRPC_MODE_INOUT_NP)
                given = keep(std::string(argument)).data();
            push(&returned_.emplace_back(given, &argument, given).came);
        } else {
            refuse(parameter, "comes back, and so needs a std::string variable");
        }
    }

    template <class T> void range(const Parameter &parameter, T &&argument)
    {
        using Plain = std::remove_cv_t<std::remove_reference_t<T>>;
        using Element = std::remove_reference_t<decltype(*std::data(argument))>;
        if constexpr (std::is_same_v<std::remove_cv_t<Element>, std::string>) {
            if (!parameter.is_array || !is_text(parameter) || is_written(parameter))
                refuse(parameter, "does not take strings");
            std::vector<char *> &addresses = keep(std::vector<char *>());
            for (const std::string &text : argument)
                addresses.push_back(keep(std::string(text)).data());
            push(addresses.data());
        } else if constexpr (std::is_lvalue_reference_v<T>) {
            counted<Element>(parameter, argument);
        } else {
            // It would be gone before the call.
            counted<Element>(parameter, keep(Plain(std::forward<T>(argument))));
        }
    }

    template <class Element, class T> void counted(const Parameter &parameter, T &range)
    {
        check_elements<Element>(parameter);
        void *address = const_cast<void *>(static_cast<const void *>(std::data(range)));
        const std::size_t nbytes = std::size(range) * sizeof(Element);
        if (grpc_arg_stack_push_array_np(stack_.get(), address, nbytes) != 0)
            check(GRPC_OTHER_ERROR_CODE);
    }

    template <class Element> void elements(const Parameter &parameter, const void *address)
    {
        check_elements<Element>(parameter);
        push(address);
    }

    template <class Element> void check_elements(const Parameter &parameter) const
    {
        if (!parameter.is_array)
            refuse(parameter, parameter.is_callback ? "is a callback, not an array"
                                                    : "is not an array");
        if constexpr (std::is_const_v<Element>) {
            if (is_written(parameter))
                refuse(parameter, "is written to, but the argument is const");
        }
        if constexpr (!std::is_void_v<Element>) {
            if (!same(kind_of(parameter.type), kind_of_elements<Element>()))
                refuse(parameter, "has elements of another type");
        }
    }

    // Keeps something as long as the call.
    template <class T> T &keep(T &&value)
    {
        auto kept = std::make_shared<T>(std::move(value));
        kept_.push_back(kept);
        return *kept;
    }

    std::string function_;
    std::unique_ptr<grpc_arg_stack_t, Free> stack_;
    // None of these moves its elements.
    std::deque<Number> numbers_;
    std::deque<Returned> returned_;
    std::deque<std::shared_ptr<void>> kept_;
};

} // namespace internal

// ---- The environment ----------------------------------------------------------------------------

// The library is initialised as long as one of these lives; there can be one at a time.
class Environment {
public:
    // Without a file: $NG_CONFIG_FILE, $HOME/.ngconf, or what is built in.
    Environment() { internal::check(grpc_initialize(nullptr)); }
    explicit Environment(const std::string &config_file)
    {
        internal::check(grpc_initialize(config_file.c_str()));
    }
    Environment(const Environment &) = delete;
    Environment &operator=(const Environment &) = delete;
    ~Environment() { grpc_finalize(); }
};

// ---- Calls that are under way -------------------------------------------------------------------

// A call that was begun. If it is dropped before its end, the call is cancelled and waited for,
// since its arrays may be gone afterwards.
class Future {
public:
    Future() = default;
    Future(grpc_sessionid_t session, std::unique_ptr<internal::Arguments> arguments)
        : session_(session), arguments_(std::move(arguments))
    {
    }
    Future(Future &&other) noexcept { swap(other); }
    Future &operator=(Future &&other) noexcept
    {
        Future(std::move(other)).swap(*this);
        return *this;
    }
    ~Future()
    {
        if (arguments_) {
            grpc_cancel(session_);
            grpc_wait(session_);
        }
    }

    // Whether there is, or was, a call.
    bool valid() const noexcept { return session_ != GRPC_SESSIONID_VOID; }
    grpc_sessionid_t session() const noexcept { return session_; }

    // Whether the call has ended, however.
    bool ready() const
    {
        if (!arguments_)
            return true;
        const grpc_error_t code = grpc_probe(session_);
        if (code != GRPC_NOT_COMPLETED)
            internal::check(code);
        return code == GRPC_NO_ERROR;
    }

    // Waits for the end. Throws only if that cannot be done.
    void wait()
    {
        if (!arguments_)
            return;
        const grpc_error_t waited = grpc_wait(session_);
        if (waited == GRPC_NO_ERROR) {
            arguments_->finish();
        } else {
            code_ = waited == GRPC_SESSION_FAILED ? grpc_get_error(session_) : waited;
            detail_ = grpc_error_detail_np(session_);
        }
        arguments_.reset();
    }

    // Waits for the end, and throws if the call failed. May be called again.
    void get()
    {
        if (!valid())
            throw error(GRPC_INVALID_SESSION_ID, "there is no call to wait for");
        wait();
        if (code_ != GRPC_NO_ERROR)
            throw error(code_, detail_);
    }

    // Asks the call to end; get() then throws with GRPC_CANCELED_NP, if that was in time.
    void cancel()
    {
        if (arguments_)
            internal::check(grpc_cancel(session_));
    }

    void swap(Future &other) noexcept
    {
        std::swap(session_, other.session_);
        std::swap(code_, other.code_);
        detail_.swap(other.detail_);
        arguments_.swap(other.arguments_);
    }

private:
    friend std::size_t wait_any(view<Future> futures);

    grpc_sessionid_t session_ = GRPC_SESSIONID_VOID;
    grpc_error_t code_ = GRPC_NO_ERROR;
    std::string detail_;
    std::unique_ptr<internal::Arguments> arguments_;
};

// Waits for all, and does not throw if calls failed: get() does.
inline void wait_all(view<Future> futures)
{
    for (Future &future : futures)
        future.wait();
}

// Waits for one that was not waited for yet, and returns its index; the number of all if there is
// none.
inline std::size_t wait_any(view<Future> futures)
{
    std::vector<grpc_sessionid_t> sessions;
    std::vector<std::size_t> indices;
    for (std::size_t index = 0; index < futures.size(); index++) {
        if (futures[index].arguments_) {
            sessions.push_back(futures[index].session());
            indices.push_back(index);
        }
    }
    if (sessions.empty())
        return futures.size();
    grpc_sessionid_t done = GRPC_SESSIONID_VOID;
    const grpc_error_t code = grpc_wait_or(sessions.data(), sessions.size(), &done);
    if (code != GRPC_SESSION_FAILED)
        internal::check(code);
    for (std::size_t i = 0; i < sessions.size(); i++) {
        if (sessions[i] == done) {
            futures[indices[i]].wait();
            return indices[i];
        }
    }
    throw error(GRPC_OTHER_ERROR_CODE, "the session that ended is none of those waited for");
}

// ---- Functions ----------------------------------------------------------------------------------

// A remote function.
class Function {
public:
    // "module/function" on the default server.
    explicit Function(const std::string &name) : name_(name)
    {
        internal::check(grpc_function_handle_default(handle_.get(), name.c_str()));
        made_ = true;
        learn();
    }
    Function(const std::string &server, const std::string &name) : name_(name)
    {
        internal::check(grpc_function_handle_init(handle_.get(), server.c_str(), name.c_str()));
        made_ = true;
        learn();
    }
    Function(Function &&other) noexcept : handle_(nullptr) { swap(other); }
    Function &operator=(Function &&other) noexcept
    {
        Function(std::move(other)).swap(*this);
        return *this;
    }
    ~Function() { give_up(); }

    // Calls it and waits for its end.
    template <class... Args> void operator()(Args &&...args) const
    {
        internal::Arguments arguments(name_, parameters_, std::forward<Args>(args)...);
        internal::check(grpc_call_arg_stack(handle_.get(), arguments.stack()));
        arguments.finish();
    }
    template <class... Args> void call(Args &&...args) const
    {
        (*this)(std::forward<Args>(args)...);
    }

    // Begins a call. Arrays have to stay where they are, and be left alone, until its end.
    template <class... Args> Future async(Args &&...args) const
    {
        auto arguments = std::make_unique<internal::Arguments>(name_, parameters_,
                                                               std::forward<Args>(args)...);
        grpc_sessionid_t session = GRPC_SESSIONID_VOID;
        internal::check(grpc_call_argstack_async(handle_.get(), &session, arguments->stack()));
        return Future(session, std::move(arguments));
    }

    const std::string &name() const noexcept { return name_; }
    const std::vector<Parameter> &parameters() const noexcept { return parameters_; }
    grpc_function_handle_t *handle() const noexcept { return handle_.get(); }

private:
    void learn()
    {
        // The destructor of what was not made whole does not run.
        try {
            std::size_t count = 0;
            internal::check(grpc_function_parameters_np(handle_.get(), nullptr, 0, &count));
            parameters_.resize(count);
            internal::check(
                grpc_function_parameters_np(handle_.get(), parameters_.data(), count, &count));
        } catch (...) {
            give_up();
            throw;
        }
    }

    void give_up() noexcept
    {
        if (made_)
            grpc_function_handle_destruct(handle_.get());
        made_ = false;
    }

    void swap(Function &other) noexcept
    {
        name_.swap(other.name_);
        handle_.swap(other.handle_);
        parameters_.swap(other.parameters_);
        std::swap(made_, other.made_);
    }

    std::string name_;
    // grpc_get_handle gives its address.
    std::unique_ptr<grpc_function_handle_t> handle_ = std::make_unique<grpc_function_handle_t>();
    std::vector<Parameter> parameters_;
    bool made_ = false;
};

// A remote function with the types of its arguments, which the compiler checks: one for each parameter, or a structure
// for several. What it returns is the last parameter: a number, a string, or a structure with fields of one type.
template <class Signature> class TypedFunction;
template <class Result, class... Args> class TypedFunction<Result(Args...)> : private Function {
public:
    using Function::Function;
    using Function::handle;
    using Function::name;
    using Function::parameters;

    // Calls it and waits for its end.
    Result operator()(Args... args) const
    {
        if constexpr (std::is_void_v<Result>) {
            call(std::forward<Args>(args)...);
        } else {
            Result result{};
            call(std::forward<Args>(args)..., result);
            return result;
        }
    }

    // Begins a call. Arrays that are passed by reference have to stay where they are, and be left alone, until its end.
    Future async(Args... args) const
    {
        static_assert(std::is_void_v<Result>,
                      "a call that has begun has no result yet: pass a variable for it");
        return Function::async(std::forward<Args>(args)...);
    }
};

// ---- Objects ------------------------------------------------------------------------------------

// A remote object, with a worker of its own. Its methods run one after the other.
class Object {
public:
    // "module/class" on the default server.
    explicit Object(const std::string &class_name) : name_(class_name)
    {
        internal::check(grpc_object_handle_default_np(handle_.get(), class_name.c_str()));
        made_ = true;
    }
    Object(const std::string &server, const std::string &class_name) : name_(class_name)
    {
        internal::check(
            grpc_object_handle_init_np(handle_.get(), server.c_str(), class_name.c_str()));
        made_ = true;
    }
    Object(Object &&other) noexcept : handle_(nullptr) { swap(other); }
    Object &operator=(Object &&other) noexcept
    {
        Object(std::move(other)).swap(*this);
        return *this;
    }
    ~Object()
    {
        if (made_)
            grpc_object_handle_destruct_np(handle_.get());
    }

    // Calls a method and waits for its end.
    template <class... Args> void invoke(const std::string &method, Args &&...args) const
    {
        internal::Arguments arguments(name_ + "." + method, parameters(method),
                                      std::forward<Args>(args)...);
        internal::check(
            grpc_invoke_arg_stack_np(handle_.get(), method.c_str(), arguments.stack()));
        arguments.finish();
    }

    // Begins a call of a method. Arrays have to stay, and be left alone, until its end.
    template <class... Args> Future async(const std::string &method, Args &&...args) const
    {
        auto arguments = std::make_unique<internal::Arguments>(
            name_ + "." + method, parameters(method), std::forward<Args>(args)...);
        grpc_sessionid_t session = GRPC_SESSIONID_VOID;
        internal::check(grpc_invoke_argstack_async_np(handle_.get(), method.c_str(), &session,
                                                      arguments->stack()));
        return Future(session, std::move(arguments));
    }

    const std::string &name() const noexcept { return name_; }
    grpc_object_handle_t_np *handle() const noexcept { return handle_.get(); }

    std::vector<Parameter> parameters(const std::string &method) const
    {
        std::size_t count = 0;
        internal::check(
            grpc_method_parameters_np(handle_.get(), method.c_str(), nullptr, 0, &count));
        std::vector<Parameter> parameters(count);
        internal::check(grpc_method_parameters_np(handle_.get(), method.c_str(),
                                                  parameters.data(), count, &count));
        return parameters;
    }

private:
    void swap(Object &other) noexcept
    {
        name_.swap(other.name_);
        handle_.swap(other.handle_);
        std::swap(made_, other.made_);
    }

    std::string name_;
    std::unique_ptr<grpc_object_handle_t_np> handle_ =
        std::make_unique<grpc_object_handle_t_np>();
    bool made_ = false;
};

} // namespace gridrpc

#endif // GRIDRPC_GRIDRPC_HPP
