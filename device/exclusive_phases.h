// Phases of a machine that exclude each other: either programs are timed, or other work (building,
// searching) uses the cores. In a phase any number of threads of its kind are at work.
//
// A phase goes on while more threads of its kind come, until the other kind has waited for
// `length`. From then on newcomers wait, and when the last thread has left, the other phase begins.
// A gap shorter than `linger` between two threads of a kind does not end the phase. Neither kind
// starves, as long as every Hold comes to an end.
//
// Thread-safe; outlives its Holds. A thread that has a Hold must not Enter.
#pragma once

#include <array>
#include <condition_variable>
#include <mutex>
#include <stop_token>
#include <utility>

#include "absl/time/time.h"
#include "base/clock.h"

namespace kiln {

class ExclusivePhases {
 public:
  enum class Kind { kWork, kMeasurement };

  struct Options {
    absl::Duration length = absl::Seconds(2);
    absl::Duration linger = absl::Milliseconds(10);
  };

  // Keeps the phase open until it is destroyed. An empty Hold keeps no phase open.
  class Hold {
   public:
    Hold() = default;
    Hold(Hold&& other) noexcept : phases_(std::exchange(other.phases_, nullptr)) {}
    Hold& operator=(Hold&& other) noexcept {
      std::swap(phases_, other.phases_);
      return *this;
    }
    ~Hold() {
      if (phases_ != nullptr) phases_->Leave();
    }
    explicit operator bool() const { return phases_ != nullptr; }

   private:
    friend class ExclusivePhases;
    explicit Hold(ExclusivePhases* phases) : phases_(phases) {}
    ExclusivePhases* phases_ = nullptr;
  };

  ExclusivePhases() : ExclusivePhases(Options(), Clock::Real()) {}
  ExclusivePhases(const Options& options, Clock& clock);

  // Waits for the phase of that kind. Returns an empty Hold if `stop` is requested before.
  Hold Enter(Kind kind, std::stop_token stop = {});

 private:
  struct Waiting {
    int count = 0;
    // Time since which the first of them waits.
    absl::Duration since;
  };

  static size_t IndexOf(Kind kind) { return static_cast<size_t>(kind); }
  static Kind OtherThan(Kind kind) {
    return kind == Kind::kWork ? Kind::kMeasurement : Kind::kWork;
  }

  absl::Duration Now() const { return absl::Nanoseconds(clock_.MonotonicNanos()); }
  bool MayEnter(Kind kind) const;
  // Returns the time until the kind may enter, if no thread comes or goes.
  absl::Duration Patience(Kind kind) const;
  void Leave();

  const Options options_;
  Clock& clock_;
  std::mutex mutex_;
  std::condition_variable changed_;
  Kind turn_ = Kind::kWork;
  absl::Duration turn_since_;
  int at_work_ = 0;
  // Time since which no thread is at work.
  absl::Duration free_since_ = -absl::InfiniteDuration();
  std::array<Waiting, 2> waiting_;
};

}  // namespace kiln
