// Counts the trials of a job whose readings differ by more than those of a quiet machine
// (device/noise_mark.h), and decides when the user should know.
//
// Thread-safe.
#pragma once

#include <mutex>
#include <string>

#include "store/record.h"

namespace kiln::scheduler {

class NoiseMeter {
 public:
  void Add(const store::Record& record);
  // Returns a sentence for people, or "" while the machine seems to be quiet. The sentence stays
  // the same once there is one.
  std::string notice() const;

 private:
  mutable std::mutex mutex_;
  int trials_ = 0;  // trials that ran to their end
  int noisy_ = 0;
  std::string notice_;
};

}  // namespace kiln::scheduler
