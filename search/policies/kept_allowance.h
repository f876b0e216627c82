// Bounds the schedules that the searches of a process keep together.
//
// A search keeps some hundred schedules of each task from round to round (kept_schedules.h). Where
// a scheduler searches a thousand tasks at once, that is most of its memory. The searches share an
// allowance in equal parts, so what they keep does not grow with their number. Up to
// kTasksWithoutLess tasks keep all that is of use to them.
//
// Thread-safe; outlives its shares.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <utility>

namespace kiln::search {

inline constexpr size_t kTasksWithoutLess = 128;
// A task keeps at least so many of those that it wants, however many tasks there are.
inline constexpr size_t kLeastKept = 48;

class KeptAllowance {
 public:
  // One task's part. An empty share has no bound.
  class Share {
   public:
    Share() = default;
    Share(Share&& other) noexcept : of_(std::exchange(other.of_, nullptr)) {}
    Share& operator=(Share&& other) noexcept {
      std::swap(of_, other.of_);
      return *this;
    }
    ~Share() {
      if (of_ != nullptr) --of_->tasks_;
    }
    // Returns how many schedules the task may keep now, of those that it wants.
    size_t Of(size_t wanted) const {
      if (of_ == nullptr) return wanted;
      const size_t tasks = std::max(of_->tasks_.load(), kTasksWithoutLess);
      return std::clamp(wanted * kTasksWithoutLess / tasks, std::min(wanted, kLeastKept), wanted);
    }

   private:
    friend class KeptAllowance;
    explicit Share(KeptAllowance* of) : of_(of) {}
    KeptAllowance* of_ = nullptr;
  };

  Share Take() {
    ++tasks_;
    return Share(this);
  }

 private:
  std::atomic<size_t> tasks_ = 0;
};

}  // namespace kiln::search
