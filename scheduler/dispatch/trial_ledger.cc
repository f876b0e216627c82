#include "scheduler/dispatch/trial_ledger.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

#include "base/clock.h"
#include "search/policies/first_candidates.h"

namespace kiln::scheduler {
namespace {

void WaitUntil(double until_s, std::unique_lock<std::mutex>& lock, std::condition_variable& changed,
               const std::function<bool()>& done) {
  if (std::isinf(until_s)) return changed.wait(lock, done);
  const double left_s = std::max(0.0, until_s - Clock::Real().MonotonicSeconds());
  changed.wait_for(lock, std::chrono::duration<double>(left_s), done);
}

// Returns the time of the build if a device had waited for it: a program that a device is late for
// waits longer than it runs. None if there was no build, or no measurement.
std::optional<double> AwaitedBuildOf(const MeasuredTrial& measured) {
  const v1::TrialInstants& instants = measured.instants;
  if (measured.record.build_s <= 0 || instants.run_received_us() == 0) return std::nullopt;
  const int64_t waited_us = instants.run_sent_us() - instants.build_received_us();
  const int64_t run_us = instants.run_received_us() - instants.run_sent_us();
  if (waited_us > run_us) return std::nullopt;
  return measured.record.build_s;
}

search::Outcome OutcomeOf(MeasuredTrial& measured) {
  const bool valid = measured.record.error == store::kNoError;
  const std::optional<double> awaited_build_s = AwaitedBuildOf(measured);
  search::Outcome outcome{std::move(measured.trial), valid,
                          valid ? store::MeanCost(measured.record) : 0};
  // The reference of a sample of the outputs says nothing about the time of all outputs.
  if (!measured.record.sampled_outputs.has_value()) outcome.reference_s = measured.reference_cost_s;
  outcome.awaited_build_s = awaited_build_s;
  return outcome;
}

}  // namespace

Status TrialLedger::EndCause() const {
  if (!failure_.ok()) return failure_;
  return stopping_ ? Cancelled("stopped") : OkStatus();
}

// ---- the thread of the search ---------------------------------------------------------------

InFlightTrial TrialLedger::Begin(search::Trial trial) {
  std::lock_guard lock(mutex_);
  const uint64_t serial = ++serials_;
  InFlight& entry = in_hand_[serial];
  entry.task = trial.task;
  entry.number = trial.number;
  const bool is_first = begun_.insert(trial.task).second;
  if (is_first && trial.candidate.origin.starts_with(search::kHeuristicOrigin))
    first_[trial.task] = serial;
  return {std::move(trial), serial, entry.abandoned.get_token()};
}

StatusOr<std::optional<search::Outcome>> TrialLedger::Next(double until_s) {
  std::unique_lock lock(mutex_);
  WaitUntil(until_s, lock, to_search_,
            [this] { return HasEnded() || !finished_.empty() || woken_; });
  KILN_RETURN_IF_ERROR(EndCause());
  if (finished_.empty()) {
    woken_ = false;
    return std::optional<search::Outcome>();
  }
  search::Outcome outcome = std::move(finished_.front());
  finished_.pop_front();
  return std::optional<search::Outcome>(std::move(outcome));
}

std::vector<uint32_t> TrialLedger::Abandon(int task) {
  std::vector<uint32_t> numbers;
  std::vector<std::stop_source> calls;
  {
    std::lock_guard lock(mutex_);
    std::erase_if(in_hand_, [&](const auto& entry) {
      if (entry.second.task != task) return false;
      numbers.push_back(entry.second.number);
      calls.push_back(entry.second.abandoned);
      return true;
    });
    const auto give_up = [&](const MeasuredTrial& measured) {
      if (measured.trial.task != task) return false;
      numbers.push_back(measured.trial.number);
      return true;
    };
    std::erase_if(measured_, give_up);
    std::erase_if(held_back_, give_up);
    first_.erase(task);
  }
  // Requested outside of the lock, because calls end in threads of the dispatcher.
  for (std::stop_source& call : calls) call.request_stop();
  std::ranges::sort(numbers);
  return numbers;
}

bool TrialLedger::IsReturned(uint32_t number) const {
  return !being_written_.contains(number) &&
         std::ranges::none_of(finished_, [&](const search::Outcome& outcome) {
           return outcome.trial.number == number;
         });
}

std::vector<search::Correction> TrialLedger::Deliverable(
    std::vector<search::Correction> corrections) {
  std::lock_guard lock(mutex_);
  std::vector<search::Correction> all = std::exchange(kept_back_, {});
  all.insert(all.end(), corrections.begin(), corrections.end());
  const auto early = std::stable_partition(
      all.begin(), all.end(),
      [this](const search::Correction& correction) { return IsReturned(correction.trial); });
  kept_back_.assign(early, all.end());
  all.erase(early, all.end());
  return all;
}

void TrialLedger::BeginRaces(size_t count) {
  std::lock_guard lock(mutex_);
  open_races_ += count;
}

Status TrialLedger::WaitForRaces() {
  std::unique_lock lock(mutex_);
  to_search_.wait(lock, [this] { return HasEnded() || open_races_ == 0; });
  if (!failure_.ok() || open_races_ > 0) return EndCause();
  return OkStatus();
}

// ---- the work of workers --------------------------------------------------------------------

bool TrialLedger::IsInFlight(uint64_t serial) const {
  std::lock_guard lock(mutex_);
  return in_hand_.contains(serial);
}

void TrialLedger::AddResult(uint64_t serial, MeasuredTrial measured) {
  {
    std::lock_guard lock(mutex_);
    if (in_hand_.erase(serial) == 0) return;
    const int task = measured.trial.task;
    if (IsHeldBack(task, serial)) return held_back_.push_back(std::move(measured));
    measured_.push_back(std::move(measured));
    if (first_.erase(task) > 0) {
      const auto others = std::stable_partition(
          held_back_.begin(), held_back_.end(),
          [task](const MeasuredTrial& held) { return held.trial.task != task; });
      std::move(others, held_back_.end(), std::back_inserter(measured_));
      held_back_.erase(others, held_back_.end());
    }
  }
  // The writer would wait for the lock if it were woken within it.
  to_writer_.notify_one();
}

bool TrialLedger::IsHeldBack(int task, uint64_t serial) const {
  const auto first = first_.find(task);
  return first != first_.end() && first->second != serial;
}

void TrialLedger::EndRace() {
  std::lock_guard lock(mutex_);
  --open_races_;
  to_search_.notify_all();
}

bool TrialLedger::IsOpen() const {
  std::lock_guard lock(mutex_);
  return !HasEnded();
}

// ---- the writer -----------------------------------------------------------------------------

TrialLedger::Batch TrialLedger::TakeMeasured(const std::function<bool()>& due,
                                             std::optional<TimePoint> until) {
  std::unique_lock lock(mutex_);
  const auto ready = [&] { return closing_ || !measured_.empty() || due(); };
  if (until.has_value()) {
    to_writer_.wait_until(lock, *until, ready);
  } else {
    to_writer_.wait(lock, ready);
  }
  for (const MeasuredTrial& measured : measured_) being_written_.insert(measured.trial.number);
  return {std::exchange(measured_, {}), closing_};
}

void TrialLedger::PokeWriter() {
  std::lock_guard lock(mutex_);
  to_writer_.notify_all();
}

void TrialLedger::Finish(std::span<MeasuredTrial> written) {
  {
    std::lock_guard lock(mutex_);
    for (MeasuredTrial& measured : written) {
      being_written_.erase(measured.trial.number);
      finished_.push_back(OutcomeOf(measured));
    }
  }
  to_search_.notify_all();
}

// ---- any thread -----------------------------------------------------------------------------

void TrialLedger::Wake() {
  std::lock_guard lock(mutex_);
  woken_ = true;
  to_search_.notify_all();
}

void TrialLedger::Fail(Status status) {
  std::lock_guard lock(mutex_);
  if (failure_.ok()) failure_ = std::move(status);
  to_search_.notify_all();
}

void TrialLedger::Stop() {
  std::lock_guard lock(mutex_);
  stopping_ = true;
  to_search_.notify_all();
}

void TrialLedger::Close() {
  std::lock_guard lock(mutex_);
  closing_ = true;
  to_writer_.notify_all();
}

}  // namespace kiln::scheduler
