#include "runner/hours_watch.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace kiln::runner {
namespace {

constexpr char kCondition[] = "hours";
constexpr absl::Duration kLongestPause = absl::Minutes(1);
// A clock that stands at the change itself is not looked at again and again.
constexpr absl::Duration kShortestPause = absl::Milliseconds(1);

}  // namespace

std::string OutsideSentence(const Hours& hours, absl::Time now) {
  const absl::TimeZone& zone = hours.zone();
  const std::string place = zone == absl::LocalTimeZone() ? "" : fmt::format(" ({})", zone.name());
  const absl::Time until = hours.NextChange(now);
  const std::string end =
      until == absl::InfiniteFuture() ? "" : ", until " + absl::FormatTime("%a %H:%M", until, zone);
  return fmt::format("outside of its hours {}{}{}", hours.text(), place, end);
}

HoursWatch::HoursWatch(Hours hours, WorkerModes& modes, Clock& clock)
    : hours_(std::move(hours)), modes_(modes), clock_(clock) {
  SetMode();
  thread_ = std::thread([this] { Run(); });
}

HoursWatch::~HoursWatch() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void HoursWatch::SetMode() {
  const absl::Time now = clock_.Now();
  if (hours_.Contains(now)) {
    modes_.Clear(kCondition);
  } else {
    modes_.Set(kCondition, v1::WORKER_PAUSED, OutsideSentence(hours_, now));
  }
}

absl::Duration HoursWatch::Pause() {
  const absl::Time now = clock_.Now();
  return std::clamp(hours_.NextChange(now) - now, kShortestPause, kLongestPause);
}

void HoursWatch::Run() {
  while (true) {
    {
      std::unique_lock lock(mutex_);
      if (clock_.WaitFor(lock, changed_, Pause(), [this] { return stopping_; })) return;
    }
    SetMode();
  }
}

}  // namespace kiln::runner
