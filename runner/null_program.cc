#include "runner/null_program.h"

#include <cmath>

#include "base/hash/digest.h"

namespace kiln::runner {

double NullCost(const v1::Artifact& artifact) {
  const double unit = static_cast<double>(Xxh3(artifact.binary()) >> 11) * 0x1p-53;
  return 1e-5 * std::pow(10.0, 3 * unit);
}

}  // namespace kiln::runner
