// Pauses between the tries of a call that fails: the first is short, each further one is twice as
// long up to a limit, and each is cut by a random part, so that the clients of a server that comes
// back do not all call at once.
//
// A RetryPause belongs to one thread.
#pragma once

#include <functional>
#include <utility>

#include "absl/time/time.h"

namespace kiln {

// Returns a number in [0, 1). Any thread.
using Random = std::function<double()>;
// Takes numbers from the kernel.
Random RealRandom();

class RetryPause {
 public:
  static constexpr absl::Duration kFirst = absl::Milliseconds(100);
  static constexpr absl::Duration kLongest = absl::Seconds(1);

  explicit RetryPause(Random random) : random_(std::move(random)) {}

  // Returns the next pause: between a half and the whole of 100 ms, 200 ms, ... 1 s.
  absl::Duration Next();
  // Begins anew, after a success.
  void Reset() { whole_ = kFirst; }

 private:
  const Random random_;
  absl::Duration whole_ = kFirst;
};

// Returns a random length between a half and the whole.
absl::Duration Jittered(absl::Duration whole, const Random& random);

}  // namespace kiln
