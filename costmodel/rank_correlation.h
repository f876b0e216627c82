// Measures how well scores order programs.
#pragma once

#include <span>

namespace kiln::costmodel {

// Returns Spearman's rank correlation of two lists of the same length, ignoring ties. 0 for fewer
// than two values.
double Spearman(std::span<const double> a, std::span<const double> b);

}  // namespace kiln::costmodel
