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

// Share by which readings differ from which they are noisy. Readings of a quiet machine are nearer
// to each other. The share is relative to the smaller reading.
inline constexpr double kNoisyShare = 0.25;

// Returns "" if the readings differ by less than that.
std::string PrintNoiseMark(double share);

// Returns the share by which the readings differ, if the message has the mark.
std::optional<double> ParseNoiseMark(std::string_view message);

}  // namespace kiln::device
