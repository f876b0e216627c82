// The median of readings and how far it can be trusted. The cost is linear.
#pragma once

#include <span>

namespace kiln {

// Median and the half width of its 95% confidence interval, from the median absolute deviation and
// Student's t; 0 = not known (fewer than three readings).
struct MedianCost {
  double cost_s = 0;
  double confidence_s = 0;
};
MedianCost MedianOf(std::span<const double> costs_s);

// Estimates the standard deviation of a normal distribution from the median absolute deviation
// about `centre`, so that outliers hardly count. 0 if there are no values.
double ScaleOf(std::span<const double> values, double centre);

// Returns the 97.5% point of Student's t, within 2% from 3 degrees of freedom on.
double StudentT95(double freedom);

}  // namespace kiln
