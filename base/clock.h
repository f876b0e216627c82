// Time as an argument, so that time-outs are tested without waiting.
//
// Wall time (Now, UnixSeconds) is for people and records; it may jump. Monotonic time is for
// deadlines and durations; only its differences have a meaning. All functions are thread-safe. A
// Clock outlives its users; Clock::Real() lives for ever.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>

#include "absl/time/time.h"

namespace kiln {

class Clock {
 public:
  virtual ~Clock() = default;

  virtual absl::Time Now() = 0;
  virtual int64_t MonotonicNanos() = 0;
  virtual void SleepFor(absl::Duration duration) = 0;

  // Waits on `cv` until done(), or until `timeout` has gone by on this clock; returns done().
  // `lock` is held on entry, on return and whenever done is called, as with
  // std::condition_variable::wait_for. absl::InfiniteDuration() waits for ever.
  virtual bool WaitFor(std::unique_lock<std::mutex>& lock, std::condition_variable& cv,
                       absl::Duration timeout, const std::function<bool()>& done) = 0;

  double UnixSeconds() { return absl::ToDoubleSeconds(Now() - absl::UnixEpoch()); }
  double MonotonicSeconds() { return 1e-9 * static_cast<double>(MonotonicNanos()); }

  static Clock& Real();
};

// A clock that stands still until Advance. Sleepers wake when the time that they wait for has come.
// A test that starts a thread calls WaitForSleepers(1) before it advances. WaitFor notices an
// Advance within about a millisecond of real time.
class FakeClock : public Clock {
 public:
  explicit FakeClock(absl::Time start = absl::FromUnixSeconds(1'700'000'000)) : start_(start) {}

  absl::Time Now() override;
  int64_t MonotonicNanos() override;
  void SleepFor(absl::Duration duration) override;
  bool WaitFor(std::unique_lock<std::mutex>& lock, std::condition_variable& cv,
               absl::Duration timeout, const std::function<bool()>& done) override;

  void Advance(absl::Duration duration);
  // Blocks (in real time) until at least `count` threads are inside SleepFor or WaitFor.
  void WaitForSleepers(int count);

 private:
  absl::Duration Elapsed();
  void AddSleeper(int delta);

  const absl::Time start_;
  std::mutex mutex_;
  std::condition_variable changed_;
  absl::Duration elapsed_;
  int sleepers_ = 0;
};

}  // namespace kiln
