#include "scheduler/remeasure/races.h"

#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "rpc/yield_reply.h"
#include "scheduler/values/messages.h"
#include "search/tuning/final_race.h"

namespace kiln::scheduler {
namespace {

// Readings of a race are so many times longer than those of trials, up to kFinalReadingMs.
constexpr uint32_t kFinalReadingMs = 100;
constexpr uint32_t kLongerReading = 3;
constexpr uint32_t kRaceReadings = 2;  // for each turn
// In a job of fewer trials, the final race would take longer than all trials.
constexpr uint32_t kTrialsForLongReadings = 32;
// A reading takes at most this part of the idle time, because a trial may have to wait for it.
constexpr uint32_t kPartOfIdleTime = 5;

bool IsDisqualified(const Race::Entry& entry) {
  return entry.artifact == nullptr || entry.failure.error() != v1::NO_ERROR;
}

// Tells whether the readings are, or may be, of this device.
bool IsOf(const store::Remeasurement& known, const std::string& device) {
  return known.device.empty() || known.device == device;
}

bool IsOver(const Race& race) { return Clock::Real().MonotonicSeconds() >= race.until_s; }

CallResult MeasureWithRetry(const v1::Artifact& artifact, const MeasureOnce& measure,
                            v1::MeasureReply* reply) {
  CallResult call = measure(artifact, reply);
  if (!call.status.ok() || !MayBeTransient(reply->result().error())) return call;
  reply->Clear();
  return measure(artifact, reply);
}

}  // namespace

void Race::Add(Finalist finalist, std::shared_ptr<const v1::Artifact> artifact) {
  if (artifact == nullptr) ++to_build_;
  entries.push_back({std::move(finalist), std::move(artifact), {}});
}

std::vector<size_t> Race::Missing() const {
  std::vector<size_t> missing;
  for (size_t i = 0; i < entries.size(); ++i) {
    if (entries[i].artifact == nullptr) missing.push_back(i);
  }
  return missing;
}

bool Race::SetBuilt(size_t number, v1::BuildReply reply) {
  std::lock_guard lock(mutex_);
  Entry& entry = entries[number];
  if (reply.has_artifact()) {
    entry.artifact = std::make_shared<const v1::Artifact>(std::move(*reply.mutable_artifact()));
  } else {
    entry.failure.set_error(reply.error());
    entry.failure.set_message(reply.message());
  }
  return --to_build_ == 0;
}

search::DeviceDrift& DeviceDrifts::Of(const std::string& device) {
  std::lock_guard lock(mutex_);
  return drifts_[device];
}

store::Remeasurement KnownOf(const store::Record& record) {
  store::Remeasurement known;
  known.id = record.id;
  known.costs_s = record.remeasured_costs_s;
  known.confidence_s = record.confidence_s;
  known.readings = record.remeasurements;
  known.run_s = record.remeasured_run_s;
  known.device = record.remeasured_device;
  return known;
}

void SetRemeasurement(uint32_t trials, v1::MeasureOptions& options) {
  const bool brief = trials < kTrialsForLongReadings;
  options.set_early_stop_ratio(0);
  options.set_repeat(brief ? kRaceReadings : std::max(kRaceReadings, options.repeat()));
  const uint32_t reading_ms = options.min_repeat_ms();
  uint32_t longer_ms = brief ? reading_ms : std::min(kLongerReading * reading_ms, kFinalReadingMs);
  if (options.idle_ms() > 0) {
    longer_ms = std::min(longer_ms, options.idle_ms() / kPartOfIdleTime);
    options.set_min_repeat_ms(longer_ms);
  } else {
    options.set_min_repeat_ms(std::max(reading_ms, longer_ms));
  }
  options.set_idle_ms(0);  // all turns have the same length
}

bool MayBeTransient(v1::ErrorKind error) {
  return error != v1::NO_ERROR && error != v1::WRONG_ANSWER_ERROR;
}

namespace {

// The turns of a race on one device.
class Turns {
 public:
  Turns(Race& race, const std::string& device)
      : race_(race),
        device_(device),
        result_(static_cast<int>(race.entries.size()), {}),
        run_s_(race.entries.size()) {
    for (size_t i = 0; i < race.entries.size(); ++i) {
      const Race::Entry& entry = race.entries[i];
      const store::Remeasurement& known = entry.finalist.known;
      run_s_[i] = known.run_s;
      const int number = static_cast<int>(i);
      if (IsOf(known, device)) {
        result_.Restore(number, known.costs_s, static_cast<int>(known.readings));
      }
      if (IsDisqualified(entry)) result_.Disqualify(number);
    }
  }

  CallResult Run(const MeasureOnce& measure, const IsWanted& is_wanted) {
    for (auto round = result_.NextRound(); !round.empty() && !IsOver(race_);
         round = result_.NextRound()) {
      for (const int i : round) {
        if (IsOver(race_)) break;
        if (is_wanted()) return Yield();
        const CallResult call = Take(i, measure);
        if (call.status.ok()) continue;
        if (is_wanted()) return Yield();
        if (IsYield(call.status)) KeepReadings();
        return call;
      }
    }
    return {OkStatus(), true};
  }

  void Teach(search::DeviceDrift& drift) const {
    for (size_t i = 0; i < race_.entries.size(); ++i) {
      const Race::Entry& entry = race_.entries[i];
      const std::optional<double> first_s = entry.finalist.first_s;
      if (first_s && !IsDisqualified(entry))
        drift.Add(*first_s, result_.values_s(static_cast<int>(i)));
    }
  }

  std::vector<store::Remeasurement> CollectRemeasurements(const search::DeviceDrift& drift) const {
    const double drift_share = std::max(drift.Share(), result_.drift_share());
    std::vector<store::Remeasurement> all;
    for (size_t i = 0; i < race_.entries.size(); ++i) {
      const Race::Entry& entry = race_.entries[i];
      if (entry.failure.error() != v1::NO_ERROR) {
        all.push_back({.id = entry.finalist.record_id,
                       .run_s = run_s_[i],
                       .error = static_cast<int>(entry.failure.error()),
                       .message = "when it was measured again: " + entry.failure.message()});
        continue;
      }
      store::Remeasurement said = RemeasurementOfEntry(i);
      if (said.costs_s.empty()) continue;
      const MedianCost median = result_.median(static_cast<int>(i));
      const double confidence_s =
          search::WithDrift(median.cost_s, median.confidence_s, drift_share);
      if (confidence_s > 0) said.confidence_s = confidence_s;
      all.push_back(std::move(said));
    }
    return all;
  }

 private:
  CallResult Take(int i, const MeasureOnce& measure) {
    Race::Entry& entry = race_.entries[i];
    v1::MeasureReply reply;
    CallResult call = MeasureWithRetry(*entry.artifact, measure, &reply);
    if (!call.status.ok()) return call;
    store::Record reading;
    SetResult(reply.result(), reading);
    run_s_[i] += reading.run_s;
    if (reading.error == store::kNoError) {
      result_.Add(i, reading.costs_s);
      return call;
    }
    entry.failure.set_error(static_cast<v1::ErrorKind>(reading.error));
    entry.failure.set_message(reading.message);
    result_.Disqualify(i);
    return call;
  }

  store::Remeasurement RemeasurementOfEntry(size_t i) const {
    const int number = static_cast<int>(i);
    return {.id = race_.entries[i].finalist.record_id,
            .costs_s = result_.values_s(number),
            .readings = static_cast<uint32_t>(result_.readings(number)),
            .run_s = run_s_[i],
            .device = device_};
  }

  // Keeps the readings for the next turns.
  void KeepReadings() {
    for (size_t i = 0; i < race_.entries.size(); ++i) {
      store::Remeasurement said = RemeasurementOfEntry(i);
      if (!said.costs_s.empty()) race_.entries[i].finalist.known = std::move(said);
    }
  }

  CallResult Yield() {
    KeepReadings();
    return {Status(StatusCode::kAborted, "another job waits for the runner"), true};
  }

  Race& race_;
  const std::string& device_;
  search::FinalRace result_;
  std::vector<double> run_s_;
};

}  // namespace

CallResult RunRace(Race& race, const std::string& device, const MeasureOnce& measure,
                   const IsWanted& is_wanted, search::DeviceDrift& drift,
                   std::vector<store::Remeasurement>* remeasured) {
  Turns turns(race, device);
  const CallResult call = turns.Run(measure, is_wanted);
  if (!call.status.ok()) return call;
  turns.Teach(drift);
  *remeasured = turns.CollectRemeasurements(drift);
  return call;
}

}  // namespace kiln::scheduler
