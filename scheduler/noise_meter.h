// How many of a job's trials had readings that differ by more than a quiet machine's do
// (device/noise_mark.h), and when that is worth a word.
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
  // For people, the same for ever once there is one; "": the machine seems to be quiet.
  std::string notice() const;

 private:
  mutable std::mutex mutex_;
  int trials_ = 0;  // that ran to their end
  int noisy_ = 0;
  std::string notice_;
};

}  // namespace kiln::scheduler
