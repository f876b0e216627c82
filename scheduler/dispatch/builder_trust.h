// Chooses the programs whose signatures the scheduler checks itself.
//
// A runner checks each program, so nothing runs unchecked. The scheduler checks, too, because only
// it can tell whether the builder that signed a program or the runner that refuses it is at fault.
// Such a check costs as much as the rest of what the scheduler does for a small trial, so that it
// looks at the first programs of a builder, at a few later ones, and at all of them again once a
// runner has refused one.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>

namespace kiln::scheduler {

// Thread-safe.
class BuilderTrust {
 public:
  // The first programs of a builder that are checked, and then one of so many.
  static constexpr int64_t kFirst = 8, kOneOf = 32;

  // Counts a program of the builder with this id. Returns whether its signature is to be checked.
  bool IsDue(const std::string& builder);
  // Forgets what the builder has made so far.
  void Doubt(const std::string& builder);

 private:
  std::mutex mutex_;
  // Programs of each builder. Guarded by mutex_.
  std::map<std::string, int64_t> programs_;
};

}  // namespace kiln::scheduler
