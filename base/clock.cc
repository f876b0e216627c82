#include "base/clock.h"

#include <time.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "absl/time/clock.h"

namespace kiln {
namespace {

// Upper limit of all waits. It keeps steady_clock arithmetic from overflowing.
constexpr absl::Duration kLongest = absl::Hours(24 * 365);

class RealClock : public Clock {
 public:
  absl::Time Now() override { return absl::Now(); }

  int64_t MonotonicNanos() override {
    timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return int64_t{1'000'000'000} * now.tv_sec + now.tv_nsec;
  }

  void SleepFor(absl::Duration duration) override {
    std::this_thread::sleep_for(absl::ToChronoNanoseconds(std::min(duration, kLongest)));
  }

  bool WaitFor(std::unique_lock<std::mutex>& lock, std::condition_variable& cv,
               absl::Duration timeout, const std::function<bool()>& done) override {
    const auto deadline =
        std::chrono::steady_clock::now() +
        absl::ToChronoNanoseconds(std::clamp(timeout, absl::ZeroDuration(), kLongest));
    return cv.wait_until(lock, deadline, done);
  }
};

}  // namespace

Clock& Clock::Real() {
  static RealClock* clock = new RealClock;
  return *clock;
}

absl::Duration FakeClock::Elapsed() {
  std::lock_guard<std::mutex> lock(mutex_);
  return elapsed_;
}

void FakeClock::AddSleeper(int delta) {
  std::lock_guard<std::mutex> lock(mutex_);
  sleepers_ += delta;
  changed_.notify_all();
}

absl::Time FakeClock::Now() { return start_ + Elapsed(); }

int64_t FakeClock::MonotonicNanos() { return absl::ToInt64Nanoseconds(Elapsed()); }

void FakeClock::SleepFor(absl::Duration duration) {
  std::unique_lock<std::mutex> lock(mutex_);
  const absl::Duration until = elapsed_ + duration;
  ++sleepers_;
  changed_.notify_all();
  changed_.wait(lock, [&] { return elapsed_ >= until; });
  --sleepers_;
}

bool FakeClock::WaitFor(std::unique_lock<std::mutex>& lock, std::condition_variable& cv,
                        absl::Duration timeout, const std::function<bool()>& done) {
  const absl::Duration until = Elapsed() + timeout;
  AddSleeper(1);
  bool result = done();
  while (!result && Elapsed() < until) {
    // Advance cannot take the caller's mutex, so a notification of its own might be lost: look
    // often.
    cv.wait_for(lock, std::chrono::milliseconds(1));
    result = done();
  }
  AddSleeper(-1);
  return result;
}

void FakeClock::Advance(absl::Duration duration) {
  std::lock_guard<std::mutex> lock(mutex_);
  elapsed_ += duration;
  changed_.notify_all();
}

void FakeClock::WaitForSleepers(int count) {
  std::unique_lock<std::mutex> lock(mutex_);
  changed_.wait(lock, [&] { return sleepers_ >= count; });
}

}  // namespace kiln
