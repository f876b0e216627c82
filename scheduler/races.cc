#include "scheduler/races.h"

#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "scheduler/messages.h"
#include "search/final_race.h"

namespace kiln::scheduler {
namespace {

// Readings are longer than those of trials, up to this.
constexpr uint32_t kFinalReadingMs = 100;
constexpr uint32_t kLongerReading = 3;
constexpr uint32_t kFinalReadings = 2;  // at each turn
// The finals of a job of fewer trials would take longer than all of these.
constexpr uint32_t kTrialsForLongReadings = 32;
// Of the idle time, at most: so long a trial may have to wait.
constexpr uint32_t kPartOfIdleTime = 5;

bool IsOut(const Race::Entry& entry) {
  return entry.artifact == nullptr || entry.failure.error() != v1::NO_ERROR;
}

// Of a device whose readings these are, or may be.
bool IsOf(const store::Finals& known, const std::string& device) {
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

void SetFinalReading(uint32_t trials, v1::MeasureOptions& options) {
  const bool brief = trials < kTrialsForLongReadings;
  options.set_hopeless_ratio(0);
  options.set_repeat(brief ? kFinalReadings : std::max(kFinalReadings, options.repeat()));
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
                   search::DeviceDrift& drift, std::vector<store::Finals>* finals) {
  search::FinalRace result(static_cast<int>(race.entries.size()), {});
  std::vector<double> run_s(race.entries.size());
  for (size_t i = 0; i < race.entries.size(); ++i) {
    const Race::Entry& entry = race.entries[i];
    const store::Finals& known = entry.finalist.known;
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
    if (!IsOut(entry)) drift.Add(entry.finalist.first_s, result.values_s(static_cast<int>(i)));
  }
  const double drift_share = std::max(drift.Share(), result.drift_share());
  for (size_t i = 0; i < race.entries.size(); ++i) {
    const Race::Entry& entry = race.entries[i];
    const int number = static_cast<int>(i);
    store::Finals said = {.id = entry.finalist.record_id, .run_s = run_s[i]};
    if (entry.failure.error() != v1::NO_ERROR) {
      said.error = entry.failure.error();
      said.message = "when it was measured again: " + entry.failure.message();
    } else {
      said.costs_s = result.values_s(number);
      if (said.costs_s.empty()) continue;
      const MedianCost median = result.median(number);
      said.confidence_s = search::WithDrift(median.cost_s, median.confidence_s, drift_share);
      said.readings = static_cast<uint32_t>(result.readings(number));
      said.device = device;
    }
    finals->push_back(std::move(said));
  }
  return {OkStatus(), true};
}

}  // namespace kiln::scheduler
