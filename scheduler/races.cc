#include "scheduler/races.h"

#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "scheduler/messages.h"
#include "search/tuning/final_race.h"

namespace kiln::scheduler {
namespace {

// Readings are longer than those of trials, up to this.
constexpr uint32_t kFinalReadingMs = 100;
constexpr uint32_t kLongerReading = 3;
constexpr uint32_t kRaceReadings = 2;  // at each turn
// The final race of a job of fewer trials would take longer than all of these.
constexpr uint32_t kTrialsForLongReadings = 32;
// Of the idle time, at most: so long a trial may have to wait.
constexpr uint32_t kPartOfIdleTime = 5;

bool IsOut(const Race::Entry& entry) {
  return entry.artifact == nullptr || entry.failure.error() != v1::NO_ERROR;
}

// Of a device whose readings these are, or may be.
bool IsOf(const store::Remeasurement& known, const std::string& device) {
  return known.device.empty() || known.device == device;
}

bool IsOver(const Race& race) { return Clock::Real().MonotonicSeconds() >= race.until_s; }

CallResult MeasureTwiceIfItFails(const v1::Artifact& artifact, const MeasureOnce& measure,
                                 v1::MeasureReply* reply) {
  CallResult call = measure(artifact, reply);
  if (!call.status.ok() || !MayBeChance(reply->result().error())) return call;
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
  options.set_idle_ms(0);  // a turn is as long as any other
}

bool MayBeChance(v1::ErrorKind error) {
  return error != v1::NO_ERROR && error != v1::WRONG_ANSWER_ERROR;
}

CallResult RunRace(Race& race, const std::string& device, const MeasureOnce& measure,
                   search::DeviceDrift& drift, std::vector<store::Remeasurement>* remeasured) {
  search::FinalRace result(static_cast<int>(race.entries.size()), {});
  std::vector<double> run_s(race.entries.size());
  for (size_t i = 0; i < race.entries.size(); ++i) {
    const Race::Entry& entry = race.entries[i];
    const store::Remeasurement& known = entry.finalist.known;
    run_s[i] = known.run_s;
    const int number = static_cast<int>(i);
    if (IsOf(known, device)) {
      result.Restore(number, known.costs_s, static_cast<int>(known.readings));
    }
    if (IsOut(entry)) result.Disqualify(number);
  }
  for (auto round = result.NextRound(); !round.empty() && !IsOver(race);
       round = result.NextRound()) {
    for (const int i : round) {
      if (IsOver(race)) break;
      Race::Entry& entry = race.entries[i];
      v1::MeasureReply reply;
      const CallResult call = MeasureTwiceIfItFails(*entry.artifact, measure, &reply);
      if (!call.status.ok()) return call;
      store::Record reading;
      SetResult(reply.result(), reading);
      run_s[i] += reading.run_s;
      if (reading.error == store::kNoError) {
        result.Add(i, reading.costs_s);
        continue;
      }
      entry.failure.set_error(static_cast<v1::ErrorKind>(reading.error));
      entry.failure.set_message(reading.message);
      result.Disqualify(i);
    }
  }
  for (size_t i = 0; i < race.entries.size(); ++i) {
    const Race::Entry& entry = race.entries[i];
    const std::optional<double> first_s = entry.finalist.first_s;
    if (first_s && !IsOut(entry)) drift.Add(*first_s, result.values_s(static_cast<int>(i)));
  }
  const double drift_share = std::max(drift.Share(), result.drift_share());
  for (size_t i = 0; i < race.entries.size(); ++i) {
    const Race::Entry& entry = race.entries[i];
    const int number = static_cast<int>(i);
    store::Remeasurement said = {.id = entry.finalist.record_id, .run_s = run_s[i]};
    if (entry.failure.error() != v1::NO_ERROR) {
      said.error = entry.failure.error();
      said.message = "when it was measured again: " + entry.failure.message();
    } else {
      said.costs_s = result.values_s(number);
      if (said.costs_s.empty()) continue;
      const MedianCost median = result.median(number);
      const double confidence_s =
          search::WithDrift(median.cost_s, median.confidence_s, drift_share);
      if (confidence_s > 0) said.confidence_s = confidence_s;
      said.readings = static_cast<uint32_t>(result.readings(number));
      said.device = device;
    }
    remeasured->push_back(std::move(said));
  }
  return {OkStatus(), true};
}

}  // namespace kiln::scheduler
