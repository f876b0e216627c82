#include "runner/null_program.h"

#include <cmath>
#include <cstdlib>

#include "base/file/file.h"
#include "base/hash/digest.h"

namespace kiln::runner {

double NullCost(const v1::Artifact& artifact) {
  const double unit = static_cast<double>(Xxh3(artifact.binary()) >> 11) * 0x1p-53;
  return 1e-5 * std::pow(10.0, 3 * unit);
}

StatusOr<double> NullCanary(const std::string& file) {
  constexpr double kUsual_s = 1e-3;
  constexpr size_t kMostBytes = 100;
  if (file.empty() || !FileExists(file)) return kUsual_s;
  KILN_ASSIGN_OR_RETURN(const std::string text, ReadFile(file, kMostBytes));
  char* end = nullptr;
  const double seconds = std::strtod(text.c_str(), &end);
  if (end != text.c_str() && seconds > 0 && std::isfinite(seconds)) return seconds;
  return InvalidArgument("{} has '{}', expected the seconds of the null device's canary", file,
                         text);
}

}  // namespace kiln::runner
