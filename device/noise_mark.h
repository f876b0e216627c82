// The mark of a measurement whose readings differ by more than a quiet machine's do: the message
// that a successful result has then. It goes where results go, and says the same to people.
//
//   busy machine: its readings differ by 38%, load 7.1 on 2 cores
//
// Pure functions.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace kiln::device {

// Readings of a quiet machine are nearer to each other, as a share of the smaller one.
inline constexpr double kNoisyShare = 0.25;

// "" where the readings do not differ by so much.
std::string PrintNoiseMark(double share);

// The share by which the readings differ, of a message that has the mark; none: it has none.
std::optional<double> ParseNoiseMark(std::string_view message);

}  // namespace kiln::device
