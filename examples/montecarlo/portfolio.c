/* Values of options. It knows nothing of GridRPC. */
#include <math.h>

static double normal_distribution(double x)
{
    return 0.5 * erfc(-x * M_SQRT1_2);
}

/* A European call, by the formula of Black and Scholes. */
static double european(double spot, double strike, double rate, double volatility, double maturity)
{
    double deviation = volatility * sqrt(maturity);
    double d = log(spot / strike) / deviation + rate * maturity / deviation + 0.5 * deviation;
    return spot * normal_distribution(d) -
           strike * exp(-rate * maturity) * normal_distribution(d - deviation);
}

/* A call on the mean of the prices at equal intervals, by Monte Carlo. */
static double asian_call(double spot, double strike, double rate, double volatility,
                         double maturity, int paths, int steps, const double *normals)
{
    double interval = maturity / steps;
    double drift = (rate - 0.5 * volatility * volatility) * interval;
    double deviation = volatility * sqrt(interval);
    double sum = 0;
    for (int path = 0; path < paths; path++) {
        const double *own = normals + (long)path * steps;
        double logarithm = 0, prices = 0;
        for (int step = 0; step < steps; step++) {
            logarithm += drift + deviation * own[step];
            prices += exp(logarithm);
        }
        sum += fmax(spot * prices / steps - strike, 0);
    }
    return exp(-rate * maturity) * sum / paths;
}

void revalue(int options, int underlyings, int paths, int steps, const int *asian,
             const int *underlying, const double *strike, const double *maturity,
             const double *spot, const double *volatility, double rate, const double *normals,
             double spot_factor, double volatility_shift, double rate_shift, double *value)
{
    (void)underlyings;
    for (int i = 0; i < options; i++) {
        double price = spot[underlying[i]] * spot_factor;
        double deviation = volatility[underlying[i]] + volatility_shift;
        double interest = rate + rate_shift;
        value[i] = asian[i] ? asian_call(price, strike[i], interest, deviation, maturity[i], paths,
                                         steps, normals)
                            : european(price, strike[i], interest, deviation, maturity[i]);
    }
}
