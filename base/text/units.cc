#include "base/text/units.h"

#include <fmt/format.h>

#include <cmath>
#include <iterator>

namespace kiln {
namespace {

// Writes four significant digits without an exponent, for 0 <= value < 10000 or so.
std::string FourDigits(double value) {
  const int before_point = value < 9.9995 ? 1 : value < 99.995 ? 2 : value < 999.95 ? 3 : 4;
  return fmt::format("{:.{}f}", value, 4 - before_point);
}

struct Unit {
  double scale;
  const char* name;
};

// Writes the value in the first unit (from the largest) in which it is at least 1.
template <size_t N>
std::string Scaled(double value, const Unit (&units)[N]) {
  if (!std::isfinite(value)) return fmt::format("{} {}", value, units[N - 1].name);
  if (value < 0) return "-" + Scaled(-value, units);
  if (value == 0) return fmt::format("0 {}", units[N - 1].name);
  for (const Unit& unit : units) {
    // A value that would be printed as 1000 of the smaller unit belongs to this unit.
    if (value >= 0.99995 * unit.scale) return FourDigits(value / unit.scale) + " " + unit.name;
  }
  return fmt::format("{:.3g} {}", value / units[N - 1].scale, units[N - 1].name);
}

}  // namespace

std::string FormatSeconds(double seconds) {
  constexpr Unit kUnits[] = {{1, "s"}, {1e-3, "ms"}, {1e-6, "us"}, {1e-9, "ns"}};
  if (!std::isfinite(seconds)) return fmt::format("{} s", seconds);
  if (seconds == 0) return "0 s";
  return Scaled(seconds, kUnits);
}

std::string FormatElapsed(double seconds) {
  if (!std::isfinite(seconds)) return fmt::format("{} s", seconds);
  if (seconds < 0) return "-" + FormatElapsed(-seconds);
  if (seconds < 59.95) return fmt::format("{:.1f} s", seconds);
  const int64_t whole = std::llround(seconds);
  if (whole < 3600) return fmt::format("{}m {:02}s", whole / 60, whole % 60);
  const int64_t minutes = std::llround(seconds / 60);
  return fmt::format("{}h {:02}m", minutes / 60, minutes % 60);
}

std::string FormatFlops(double flops_per_second) {
  constexpr Unit kUnits[] = {{1e15, "PFLOP/s"}, {1e12, "TFLOP/s"}, {1e9, "GFLOP/s"},
                             {1e6, "MFLOP/s"},  {1e3, "kFLOP/s"},  {1, "FLOP/s"}};
  return Scaled(flops_per_second, kUnits);
}

std::string FormatBytes(int64_t bytes) {
  constexpr const char* kNames[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  if (bytes > -1024 && bytes < 1024) return fmt::format("{} B", bytes);
  double value = static_cast<double>(bytes);
  size_t unit = 0;
  while (std::abs(value) >= 1023.995 && unit + 1 < std::size(kNames)) {
    value /= 1024;
    ++unit;
  }
  return fmt::format("{:.2f} {}", value, kNames[unit]);
}

std::string FormatCount(int64_t count) {
  std::string digits = fmt::format("{}", count);
  const size_t first = digits[0] == '-' ? 1 : 0;
  for (size_t at = digits.size(); at > first + 3;) {
    at -= 3;
    digits.insert(at, 1, ',');
  }
  return digits;
}

}  // namespace kiln
