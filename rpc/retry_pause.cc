#include "rpc/retry_pause.h"

#include <algorithm>
#include <random>

namespace kiln {

Random RealRandom() {
  return [] {
    std::random_device kernel;
    return static_cast<double>(kernel()) * 0x1.0p-32;
  };
}

absl::Duration Jittered(absl::Duration whole, const Random& random) {
  return whole * (0.5 + 0.5 * random());
}

absl::Duration RetryPause::Next() {
  const absl::Duration pause = Jittered(whole_, random_);
  whole_ = std::min(2 * whole_, kLongest);
  return pause;
}

}  // namespace kiln
