// How well scores order programs.
#pragma once

#include <span>

namespace kiln::costmodel {

// Spearman's rank correlation of two lists of the same length, without regard to ties; 0 for fewer
// than two.
double Spearman(std::span<const double> a, std::span<const double> b);

}  // namespace kiln::costmodel
