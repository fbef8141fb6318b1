#if __cplusplus >= 201703L
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

/* Converts to T only, so that a structure which it initializes has fields of that type. */
template <class T> struct gridrpc_field {
    template <class U, class = std::enable_if_t<std::is_same_v<U, T>>> operator U() const;
};

template <class S, class T, std::size_t... I>
auto gridrpc_fields(int, std::index_sequence<I...>)
    -> decltype(S{((void)I, gridrpc_field<T>())...}, std::true_type());
template <class S, class T, std::size_t... I>
std::false_type gridrpc_fields(long, std::index_sequence<I...>);

/* Whether S is a structure whose fields all have the type T. */
template <class S, class T> constexpr bool gridrpc_is_made_of()
{
    if constexpr (std::is_class_v<S> && std::is_aggregate_v<S> && std::is_trivially_copyable_v<S> &&
                  sizeof(S) % sizeof(T) == 0)
        return decltype(gridrpc_fields<S, T>(
            0, std::make_index_sequence<sizeof(S) / sizeof(T)>()))::value;
    else
        return false;
}

template <class R, class = void> struct gridrpc_is_range : std::false_type {};
template <class R>
struct gridrpc_is_range<R, std::void_t<decltype(std::data(std::declval<const R &>())),
                                       decltype(std::size(std::declval<const R &>()))>>
    : std::true_type {};

/* An array of a call, which becomes what a function of C++ takes, and takes what that returns. */
template <class T, bool reads, bool writes> class gridrpc_array {
public:
    static constexpr bool is_text = std::is_same_v<T, char *>;

    gridrpc_array(void *array, std::size_t size, const char *name)
        : array_(static_cast<T *>(array)), size_(size), name_(name)
    {
    }
    gridrpc_array(const gridrpc_array &) = delete;
    gridrpc_array &operator=(const gridrpc_array &) = delete;

    /* A range, so that it becomes a std::span. */
    T *data() const { return array_; }
    std::size_t size() const { return size_; }
    T *begin() const { return array_; }
    T *end() const { return array_ + size_; }

    operator T *() const { return array_; }

    template <class S> operator std::vector<S> &()
    {
        static_assert(std::is_same_v<S, T> || (is_text && std::is_constructible_v<S, const char *>) ||
                          gridrpc_is_made_of<S, T>(),
                      "elements of the vector have the type of the parameter's, or are structures "
                      "whose fields all have that type");
        if (!copy_) {
            auto copy = std::make_shared<std::vector<S>>();
            fill(*copy);
            copy_ = copy;
            store_copy_ = [](gridrpc_array &array) {
                array.store(*static_cast<std::vector<S> *>(array.copy_.get()));
            };
        }
        return *static_cast<std::vector<S> *>(copy_.get());
    }

    /* A single string. */
    template <class S, class = std::enable_if_t<is_text && std::is_same_v<S, std::string>>>
    operator S &()
    {
        if (!copy_) {
            copy_ = std::make_shared<S>(reads && *array_ ? *array_ : "");
            store_copy_ = [](gridrpc_array &array) {
                array.store(*static_cast<S *>(array.copy_.get()));
            };
        }
        return *static_cast<S *>(copy_.get());
    }

    /* Stores what a function has returned or left. */
    template <class R> void store(const R &value)
    {
        using Plain = std::decay_t<R>;
        if constexpr (is_text && std::is_convertible_v<Plain, const char *>) {
            *array_ = const_cast<char *>(static_cast<const char *>(value));
        } else if constexpr (is_text && std::is_convertible_v<R, std::string_view>) {
            set(*array_, value);
        } else if constexpr (gridrpc_is_range<R>::value) {
            elements(std::data(value), std::size(value));
        } else if constexpr (std::is_convertible_v<R, T>) {
            expect(1);
            *array_ = value;
        } else {
            static_assert(gridrpc_is_made_of<R, T>(),
                          "a function returns numbers of the parameter's type, a range of them, or "
                          "structures whose fields all have that type");
            elements(&value, 1);
        }
    }

    /* The function has returned. */
    void finish()
    {
        if (writes && copy_)
            store_copy_(*this);
    }

private:
    void expect(std::size_t count) const
    {
        if (count != size_)
            throw std::length_error(std::string("`") + name_ + "` has " + std::to_string(size_) +
                                    " elements, and the function has made " +
                                    std::to_string(count));
    }

    template <class S> void fill(std::vector<S> &copy) const
    {
        if constexpr (std::is_same_v<S, T> && !is_text) {
            reads ? copy.assign(begin(), end()) : copy.resize(size_);
        } else if constexpr (is_text) {
            copy.resize(reads ? 0 : size_);
            for (std::size_t i = 0; reads && i < size_; i++)
                copy.emplace_back(array_[i] ? array_[i] : "");
        } else {
            if (size_ % (sizeof(S) / sizeof(T)))
                throw std::length_error(std::string("`") + name_ + "` has " +
                                        std::to_string(size_) +
                                        " elements, which is no whole number of structures of " +
                                        std::to_string(sizeof(S) / sizeof(T)));
            copy.resize(size_ / (sizeof(S) / sizeof(T)));
            if (reads && size_)
                std::memcpy(static_cast<void *>(copy.data()), array_, size_ * sizeof(T));
        }
    }

    template <class S> void elements(const S *values, std::size_t count)
    {
        if constexpr (is_text) {
            static_assert(std::is_convertible_v<S, std::string_view>, "the parameter has strings");
            expect(count);
            for (std::size_t i = 0; i < count; i++)
                set(array_[i], values[i]);
        } else {
            static_assert(std::is_same_v<S, T> || gridrpc_is_made_of<S, T>(),
                          "elements have the type of the parameter's, or are structures whose "
                          "fields all have that type");
            expect(count * (sizeof(S) / sizeof(T)));
            if (count)
                std::memcpy(static_cast<void *>(array_), values, count * sizeof(S));
        }
    }

    static void set(char *&place, std::string_view text)
    {
        char *copy = static_cast<char *>(std::malloc(text.size() + 1));
        if (!copy)
            throw std::bad_alloc();
        std::memcpy(copy, text.data(), text.size());
        copy[text.size()] = 0;
        if (reads)
            std::free(place);
        place = copy;
    }

    T *array_;
    std::size_t size_;
    const char *name_;
    std::shared_ptr<void> copy_;
    void (*store_copy_)(gridrpc_array &) = nullptr;
};

/* Calls a function with pointers if it takes those, as functions of C do, and else with arrays. The second way has no
 * declared result, so that a compiler says what is wrong with it. */
template <class Pointers, class Arrays, class... A>
auto gridrpc_call(int, Pointers &&call, Arrays &&, A &...arrays) -> decltype(call(arrays.data()...))
{
    return call(arrays.data()...);
}
template <class Pointers, class Arrays, class... A>
decltype(auto) gridrpc_call(long, Pointers &&, Arrays &&call, A &...arrays)
{
    return call(arrays...);
}
#endif
