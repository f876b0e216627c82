// The figures of a simulated fleet: counts since the start, and times since the last mark.
//
// Thread-safe.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>

namespace kiln::fleet {

// Times in buckets, each 9% longer than the one before it, from a microsecond to an hour.
class Times {
 public:
  void Add(std::chrono::nanoseconds time);
  void Clear();
  int64_t count() const;
  // Seconds that the share `q` of the times does not exceed; 0 if there are none.
  double Quantile(double q) const;

 private:
  static constexpr size_t kBuckets = 256;
  std::array<std::atomic<int64_t>, kBuckets> counts_{};
};

struct Figures {
  std::atomic<int64_t> announces{0}, refused_announces{0};
  std::atomic<int64_t> builds{0}, references{0};
  // Calls of Measure, and those among them that were answered with a result.
  std::atomic<int64_t> measures{0}, results{0};
  // Faults that were drawn.
  std::atomic<int64_t> unavailable{0}, hangs{0}, error_results{0};
  // Events of watched jobs: in all, and those with a record.
  std::atomic<int64_t> events{0}, records{0};
  std::atomic<int64_t> event_bytes{0};

  // From a Build's reply to the Measure of the same artifact.
  Times built_to_measure;
  // From a trial's Build to its record at a watcher.
  Times build_to_record;
  Times get_job, best;
};

}  // namespace kiln::fleet
