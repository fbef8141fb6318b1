// Functions as a library in C++ has them, for pricing.idl.
#pragma once
#include <algorithm>
#include <span>
#include <string>
#include <vector>

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

inline double payoff(const Option &option, double spot)
{
    return std::max(0.0, option.is_call ? spot - option.strike : option.strike - spot);
}

inline double price(const Option &option, const std::vector<double> &spots, std::string model)
{
    double sum = model == "doubled" ? 1 : 0;
    for (double spot : spots)
        sum += payoff(option, spot);
    return spots.empty() ? 0 : sum / static_cast<double>(spots.size());
}

inline std::vector<double> payoffs(Option option, std::span<const double> spots)
{
    std::vector<double> all;
    for (double spot : spots)
        all.push_back(payoff(option, spot));
    return all;
}

inline Greeks greeks(const Option &option, double spot)
{
    return {payoff(option, spot), option.is_call ? 1.0 : -1.0, option.expiry};
}

inline std::vector<Greeks> ladder(const Option &option, const std::vector<double> &spots)
{
    std::vector<Greeks> all;
    for (double spot : spots)
        all.push_back(greeks(option, spot));
    return all;
}

inline double delta(const std::vector<Greeks> &book)
{
    double sum = 0;
    for (const Greeks &greeks : book)
        sum += greeks.delta;
    return sum;
}

inline void shift(std::vector<double> &spots, double by)
{
    for (double &spot : spots)
        spot += by;
}

inline void steps(int n, std::vector<double> &out)
{
    out.clear();
    for (int i = 0; i < n; i++)
        out.push_back(i);
}

inline std::string join(const std::vector<std::string> &names)
{
    std::string all;
    for (const std::string &name : names)
        all += name + ";";
    return all;
}

inline void capitals(std::vector<std::string> &names, std::string &last)
{
    for (std::string &name : names)
        std::transform(name.begin(), name.end(), name.begin(),
                       [](char c) { return static_cast<char>(c & ~0x20); });
    last = names.empty() ? last + "?" : names.back();
}

inline std::string title(const Position &position)
{
    return position.model + (position.option.is_call ? " call" : " put");
}

// Pointers are passed as they are where there is a function for them.
inline double first(const double *x) { return x[0]; }
inline double first(const std::vector<double> &) { return -1; }

inline std::vector<double> too_many(int n) { return std::vector<double>(static_cast<size_t>(n) + 1); }
