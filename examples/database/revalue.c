/* Values of European calls by the formula of Black and Scholes, added up by day. */
#include <math.h>
#include <stdint.h>

static double normal(double x)
{
    return 0.5 * erfc(-x / sqrt(2));
}

/* Value of a call; NaN if `spot` is. */
static double call(double spot, double strike, double years, double volatility, double rate)
{
    if (years <= 0) {
        double payoff = spot - strike;
        return payoff < 0 ? 0 : payoff;
    }
    double deviation = volatility * sqrt(years);
    double d1 = (log(spot / strike) + rate * years) / deviation + deviation / 2;
    return spot * normal(d1) - strike * exp(-rate * years) * normal(d1 - deviation);
}

/* Adds the value of each row to that of its day. */
void revalue(int64_t rows, const int64_t *day, const double *quantity, const double *spot,
             const double *strike, const double *years, const double *volatility, double rate,
             double *value)
{
    for (int64_t i = 0; i < rows; i++)
        value[day[i]] += quantity[i] * call(spot[i], strike[i], years[i], volatility[i], rate);
}
