#include "report/report.h"

#include <math.h>

double report_psnr(double mean_squared_error)
{
    if (isnan(mean_squared_error))
        return mean_squared_error;
    if (mean_squared_error <= 1e-10)
        return 100.0;
    return -10.0 * log10(mean_squared_error);
}
