#include "device/noise_mark.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

namespace kiln::device {
namespace {

constexpr std::string_view kMark = "busy machine: its readings differ by ";

}  // namespace

std::string PrintNoiseMark(double share) {
  if (!(share > kNoisyShare)) return {};
  return fmt::format("{}{:.0f}%", kMark, 100 * std::min(share, 1e6));
}

std::optional<double> ParseNoiseMark(std::string_view message) {
  if (!message.starts_with(kMark)) return std::nullopt;
  const std::string_view number = message.substr(kMark.size());
  int percent = 0;
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), percent);
  const bool is_percent =
      error == std::errc() && end != number.data() + number.size() && *end == '%';
  return is_percent ? std::optional(0.01 * percent) : std::nullopt;
}

}  // namespace kiln::device
