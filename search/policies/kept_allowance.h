// Bounds what the searches of a process keep together.
//
// A search keeps some hundred schedules of each task from round to round (kept_schedules.h), and
// the model of a job keeps thousands of samples. Where a scheduler searches a thousand tasks of
// many jobs at once, that is most of its memory. The searches share an allowance in equal parts, so
// what they keep does not grow with their number. A few of them keep all that is of use to them.
//
// Thread-safe; outlives its shares.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <utility>

namespace kiln::search {

// A scheduler of this many tasks bounds no schedules, and one of this many jobs bounds no samples.
inline constexpr size_t kTasksWithoutLess = 32;
inline constexpr size_t kJobsWithoutLess = 4;
// A task keeps at least so many schedules of those that it wants, however many tasks there are, and
// a job so many samples.
inline constexpr size_t kLeastKept = 48;
inline constexpr size_t kLeastSamples = 256;

class KeptAllowance {
 public:
  // `without_less` shares get all that they want, and any share gets `least`.
  KeptAllowance(size_t without_less, size_t least) : without_less_(without_less), least_(least) {}

  // The part of one task, or of one job. An empty share has no bound.
  class Share {
   public:
    Share() = default;
    Share(Share&& other) noexcept : of_(std::exchange(other.of_, nullptr)) {}
    Share& operator=(Share&& other) noexcept {
      std::swap(of_, other.of_);
      return *this;
    }
    ~Share() {
      if (of_ != nullptr) --of_->shares_;
    }
    // Returns how many may be kept now, of those that are wanted.
    size_t Of(size_t wanted) const {
      if (of_ == nullptr) return wanted;
      const size_t shares = std::max(of_->shares_.load(), of_->without_less_);
      return std::clamp(wanted * of_->without_less_ / shares, std::min(wanted, of_->least_),
                        wanted);
    }

   private:
    friend class KeptAllowance;
    explicit Share(KeptAllowance* of) : of_(of) {}
    KeptAllowance* of_ = nullptr;
  };

  Share Take() {
    ++shares_;
    return Share(this);
  }

 private:
  const size_t without_less_;
  const size_t least_;
  std::atomic<size_t> shares_ = 0;
};

// All searches of a process share these two.
struct KeptAllowances {
  KeptAllowance schedules{kTasksWithoutLess, kLeastKept};  // a share for each task
  KeptAllowance samples{kJobsWithoutLess, kLeastSamples};  // a share for each job
};

}  // namespace kiln::search
