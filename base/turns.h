// Two kinds of work that must not overlap, such as timing programs and all that would use the cores
// meanwhile. Many of one kind may be at work at once, never both kinds.
//
// The kind that has the turn keeps it while more of it comes, until the other kind has waited for
// `length`; then who comes waits, and when the last one is done the other kind has its turn. Short
// gaps (`linger`) between one and the next of a kind do not end its turn. Neither kind starves, as
// long as every Hold comes to an end.
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

class Turns {
 public:
  enum class Kind { kWork, kMeasurement };

  struct Options {
    absl::Duration length = absl::Seconds(2);
    absl::Duration linger = absl::Milliseconds(10);
  };

  // Of one that is at work, until it is destroyed. Empty: of nothing.
  class Hold {
   public:
    Hold() = default;
    Hold(Hold&& other) noexcept : turns_(std::exchange(other.turns_, nullptr)) {}
    Hold& operator=(Hold&& other) noexcept {
      std::swap(turns_, other.turns_);
      return *this;
    }
    ~Hold() {
      if (turns_ != nullptr) turns_->Leave();
    }
    explicit operator bool() const { return turns_ != nullptr; }

   private:
    friend class Turns;
    explicit Hold(Turns* turns) : turns_(turns) {}
    Turns* turns_ = nullptr;
  };

  Turns() : Turns(Options(), Clock::Real()) {}
  Turns(const Options& options, Clock& clock);

  // Waits until its kind may work. Empty when `stop` is requested before.
  Hold Enter(Kind kind, std::stop_token stop = {});

 private:
  struct Waiting {
    int count = 0;
    absl::Duration since;  // the first of them
  };

  static size_t IndexOf(Kind kind) { return static_cast<size_t>(kind); }
  static Kind OtherThan(Kind kind) {
    return kind == Kind::kWork ? Kind::kMeasurement : Kind::kWork;
  }

  absl::Duration Now() const { return absl::Nanoseconds(clock_.MonotonicNanos()); }
  bool MayEnter(Kind kind) const;
  // Until it may enter if nobody comes or goes.
  absl::Duration Patience(Kind kind) const;
  void Leave();

  const Options options_;
  Clock& clock_;
  std::mutex mutex_;
  std::condition_variable changed_;
  Kind turn_ = Kind::kWork;
  absl::Duration turn_since_;
  int at_work_ = 0;
  absl::Duration free_since_ = -absl::InfiniteDuration();  // when nobody is at work
  std::array<Waiting, 2> waiting_;
};

}  // namespace kiln
