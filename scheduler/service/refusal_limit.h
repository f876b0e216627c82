// Says which refused calls the audit keeps one by one, so that no caller fills it: the first few of
// each user in ten minutes. Further ones are counted.
//
// Pure. Not thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "absl/time/time.h"

namespace kiln::scheduler {

class RefusalLimit {
 public:
  static constexpr int kEach = 10;
  static constexpr absl::Duration kWindow = absl::Minutes(10);
  // Most users that have a window of their own. Where there are no certificates, a caller may name
  // any user; beyond this number, users share the window of "".
  static constexpr size_t kMostUsers = 100;

  // A user whose window is over, and his refusals that were not kept.
  struct Rest {
    std::string user;
    absl::Time since;
    int64_t refusals = 0;
  };

  // Counts a refusal of the user. Returns whether it is kept by itself.
  bool Count(std::string_view user, absl::Time now);
  // Returns the rests of windows that are over, and forgets these windows.
  std::vector<Rest> TakeEnded(absl::Time now);

 private:
  struct Window {
    absl::Time since;
    int64_t refusals = 0;
  };

  std::map<std::string, Window, std::less<>> windows_;
};

}  // namespace kiln::scheduler
