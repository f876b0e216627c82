// How quiet this machine is: how far readings of one piece of work differ, and what else runs.
#pragma once

#include <functional>
#include <span>
#include <string>

namespace kiln::client {

// How much longer nine in ten readings take than the shortest one, at most, as a share of it.
double SpreadOf(std::span<const double> readings_s);

// Readings of some milliseconds of arithmetic on one core, for a fifth of a second together.
double MeasureSpread();

// "readings of one loop differ by 3%; load 0.4 on 2 cores", with the GPUs where there are some, and
// what to do about it where the readings differ by much. Takes a quarter of a second.
std::string QuietText();

}  // namespace kiln::client
