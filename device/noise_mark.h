// The noise mark: the message of a successful result whose readings differ by more than those of a
// quiet machine. The mark is kept wherever results are kept, and people can read it.
//
//   busy machine: its readings differ by 38%, load 7.1 on 2 cores
//
// Pure functions.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace kiln::device {

// Readings are noisy if they differ by more than this share of the smaller one. Readings of a quiet
// machine are nearer to each other.
inline constexpr double kNoisyShare = 0.25;

// Returns the mark, or "" if the readings are not noisy.
std::string PrintNoiseMark(double share);

// Returns the share by which the readings differ; none: the message has no mark.
std::optional<double> ParseNoiseMark(std::string_view message);

}  // namespace kiln::device
