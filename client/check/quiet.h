// Measures how quiet this machine is: how far readings of one piece of work differ, and what else
// runs.
#pragma once

#include <functional>
#include <span>
#include <string>

namespace kiln::client {

// Returns by what share of the shortest reading nine in ten readings exceed it at most.
double SpreadOf(std::span<const double> readings_s);

// Returns the spread of readings of some milliseconds of arithmetic on one core, which take a fifth
// of a second together.
double MeasureSpread();

// Returns "readings of one loop differ by 3%; load 0.4 on 2 cores", with the GPUs if there are
// some. If the readings differ much, the text says what to do. Takes a quarter of a second.
std::string QuietText();

}  // namespace kiln::client
