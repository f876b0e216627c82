#include "runner/canary.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/log.h"

namespace kiln::runner {

using device::DriftWatch;

Canary::Canary(CanaryOptions options, TakeReading take_reading, OnChange on_change, Clock& clock)
    : options_(std::move(options)),
      take_reading_(std::move(take_reading)),
      on_change_(std::move(on_change)),
      clock_(clock),
      watch_(options_.drift),
      probe_pause_(options_.first_probe),
      thread_([this] { Run(); }) {}

void Canary::Stop() {
  if (!thread_.joinable()) return;
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void Canary::ProbeNow() {
  {
    std::lock_guard lock(mutex_);
    now_ = true;
  }
  changed_.notify_all();
}

void Canary::Fill(v1::WorkerState& state) const {
  std::lock_guard lock(mutex_);
  state.set_canary_s(watch_.reading_s());
  state.clear_drifts();
  for (const device::Drift& drift : watch_.Spans(clock_.UnixSeconds())) {
    v1::DriftSpan& span = *state.add_drifts();
    span.set_device(state.device());
    span.set_worker(state.id());
    span.set_from_s(drift.from_s);
    span.set_to_s(drift.to_s);
    span.set_reason(drift.reason);
  }
}

void Canary::Run() {
  do {
    Read();
  } while (WaitUntilDue());
}

bool Canary::WaitUntilDue() {
  std::unique_lock lock(mutex_);
  clock_.WaitFor(lock, changed_, Pause(), [this] { return stopping_ || now_; });
  now_ = false;
  return !stopping_;
}

// The caller holds the lock.
absl::Duration Canary::Pause() const {
  const bool failing = failures_ > 0 && failures_ < options_.failures;
  if (failing || (failures_ == 0 && watch_.wants_more())) return options_.repeat;
  if (told_.empty()) return options_.period;
  return std::min(probe_pause_, options_.period);
}

void Canary::Read() {
  const StatusOr<double> reading = take_reading_([this] {
    std::lock_guard lock(mutex_);
    return stopping_;
  });
  {
    std::lock_guard lock(mutex_);
    if (stopping_) return;
    Note(reading);
  }
  Tell();
}

// The caller holds the lock.
void Canary::Note(const StatusOr<double>& reading) {
  // A queue that is full says nothing about the device, nor does a device that others have now.
  if (reading.status().code() == StatusCode::kResourceExhausted ||
      reading.status().code() == StatusCode::kFailedPrecondition) {
    return;
  }
  if (!reading.ok()) {
    ++failures_;
    failure_ = std::string(Message(reading.status()));
    return;
  }
  failures_ = 0;
  const bool was_learning = watch_.state() == DriftWatch::State::kLearning;
  watch_.Feed(clock_.UnixSeconds(), *reading);
  if (was_learning && watch_.state() == DriftWatch::State::kWell) {
    LogInfo("the canary usually takes {}", device::FormatInterval(watch_.low_s(), watch_.high_s()));
  }
}

void Canary::Tell() {
  std::string reason;
  bool is_new = false;
  {
    std::lock_guard lock(mutex_);
    reason = watch_.Sentence();
    if (failures_ >= options_.failures) {
      reason = fmt::format("the canary failed {} times in a row: {}", failures_, failure_);
    } else if (failures_ > 0) {
      return;
    }
    // A device that is not well is probed less often each time. A reading that is to be repeated
    // is no probe.
    if (reason.empty() || told_.empty()) {
      probe_pause_ = options_.first_probe;
    } else if (failures_ > 0 || !watch_.wants_more()) {
      probe_pause_ = std::min(2 * probe_pause_, options_.period);
    }
    is_new = reason != told_;
    if (!is_new) return;
    const bool was_well = told_.empty();
    told_ = reason;
    if (reason.empty()) {
      LogInfo("the device is well again");
    } else if (was_well) {
      LogWarn("the device is not well: {}", reason);
    }
  }
  on_change_(reason);
}

}  // namespace kiln::runner
