double accumulate(double sum, int n, double *x)
{
    while (n-- > 0)
        sum += *x++;
    return sum;
}
