#include "search/choice/record_or_heuristic.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

#include "compiler/handwritten/kernel_point.h"
#include "compiler/schedule/step.h"
#include "compiler/target/meaning.h"
#include "device/calibration.h"
#include "device/noise_mark.h"
#include "search/policies/first_candidates.h"
#include "search/policies/models.h"
#include "search/policies/samples.h"

namespace kiln::search {
namespace {

// A record with this trial number or a later one comes from a search that knew more than the
// heuristic schedule's choice does.
constexpr uint32_t kFewTrials = 16;
// Two first readings on a quiet machine differ by at most this share.
constexpr double kReadingNoise = 0.03;
// A record has to be slower than an unmeasured heuristic schedule by this factor, by its reading
// and by the model, so that the errors of both cannot explain the difference.
constexpr double kFarSlower = 4;
// The model may order two schedules wrongly if their times differ by less than this factor.
constexpr double kModelNoise = 1.1;

bool WasRemeasured(const store::Record& record) { return !record.remeasured_costs_s.empty(); }

bool IsUnscheduled(const store::Record& record) { return record.steps == store::kNoSteps; }

bool IsReliablyTuned(const store::Record& record) {
  // A record without a number is a shipped one, whose trial is not that of its search.
  const bool is_late = record.trial >= kFewTrials || record.id == 0;
  return WasRemeasured(record) && !IsUnscheduled(record) && is_late;
}

// Returns the spread of the readings of the record's trial, as a share of its cost.
double SpreadOf(const store::Record& record) {
  const double marked = device::ParseNoiseMark(record.message).value_or(0);
  if (record.costs_s.size() < 2) return marked;
  const auto [least, most] = std::ranges::minmax(record.costs_s);
  return std::max(marked, (most - least) / least);
}

bool IsFaster(const store::Record& best, const store::Record& heuristic) {
  if (best.id == heuristic.id || WasRemeasured(best)) return true;
  const double noise = std::max({kReadingNoise, SpreadOf(best), SpreadOf(heuristic)});
  return store::Cost(best) * (1 + noise) < store::Cost(heuristic);
}

Choice ChoiceOf(const Task& task, HeuristicChoice unmeasured) {
  return {.source = ChoiceSource::kSample,
          .steps = std::move(unmeasured.steps),
          .record = {},
          .hardware = task.hardware,
          .origin = std::move(unmeasured.origin),
          .predicted_s = unmeasured.predicted_s};
}

// Facts from other records that were measured in the same way, on the same device and for the same
// target.
struct HeuristicHistory {
  std::optional<store::Record> heuristic;  // the best record of the heuristic schedule
  bool heuristic_failed = false;
  bool scheduled_work = false;  // the best record of the first heuristic schedule
};

bool IsComparable(const store::Record& record, const store::Record& best) {
  const bool same_device =
      record.device.empty() || best.device.empty() || record.device == best.device;
  const bool same_way = record.measured_as == best.measured_as;
  return same_way && same_device &&
         target::MeanSame(record.target, HardwareParamsOf(record.hardware), best.target,
                          HardwareParamsOf(best.hardware));
}

// Orders records of heuristic schedules. The first schedule of a computation is the one that it
// gets without measuring. Later ones are guesses that were measured, like other trials.
bool IsBefore(const store::Record& record, const store::Record& other) {
  return record.steps == other.steps ? store::BetterThan(record, other) : record.id < other.id;
}

void Note(const store::Record& record, HeuristicHistory& others) {
  if (record.error == store::kUnknownError || store::HasRewrittenLayouts(record)) return;
  const bool works = record.error == store::kNoError;
  others.scheduled_work |= works && !IsUnscheduled(record);
  if (!record.origin.starts_with(kHeuristicOrigin)) return;
  others.heuristic_failed |= !works;
  if (works && (!others.heuristic || IsBefore(record, *others.heuristic)))
    others.heuristic = record;
}

}  // namespace

bool IsWorthReusing(const store::Record& record) {
  if (IsUnscheduled(record) || record.origin.starts_with(kHeuristicOrigin)) return false;
  return record.origin.empty() || WasRemeasured(record);
}

StatusOr<Choice> RecordOrHeuristic::Choose(const store::Record& best) {
  const bool has_schedules =
      task_.target.kind->runs_programs && !handwritten::IsKernelPoint(best.steps);
  if (!has_schedules || IsReliablyTuned(best)) return search::ChoiceOf(best);
  HeuristicHistory others;
  KILN_RETURN_IF_ERROR(records_.Visit(best.workload_id, [&](const store::Record& record) {
    if (IsComparable(record, best)) Note(record, others);
    return OkStatus();
  }));
  if (others.heuristic)
    return search::ChoiceOf(IsFaster(best, *others.heuristic) ? best : *others.heuristic);
  if (others.heuristic_failed) return search::ChoiceOf(best);
  return WithoutOther(best, others.scheduled_work);
}

StatusOr<Choice> RecordOrHeuristic::WithoutOther(const store::Record& best, bool others_work) {
  KILN_ASSIGN_OR_RETURN(HeuristicChoice heuristic, Heuristic());
  if (heuristic.predicted_s <= 0) return search::ChoiceOf(best);  // there was nothing to choose
  const bool loops_alone = IsUnscheduled(best) && !others_work;
  const double far_s = kFarSlower * heuristic.predicted_s;
  const bool is_far_slower = store::Cost(best) > far_s && PredictedSeconds(best.steps) > far_s;
  if (loops_alone || is_far_slower) return ChoiceOf(task_, std::move(heuristic));
  return search::ChoiceOf(best);
}

StatusOr<Choice> RecordOrHeuristic::ChooseCompatible(Choice choice) {
  if (!task_.target.kind->runs_programs) return choice;
  KILN_ASSIGN_OR_RETURN(HeuristicChoice heuristic, Heuristic());
  if (heuristic.predicted_s <= 0) return choice;
  const bool is_loops = choice.steps == store::kNoSteps;
  // At distance 1 the record was measured with these extents, but on another device or with its
  // inputs in another order.
  const double slack = choice.distance == 1 ? kFarSlower : kModelNoise;
  if (is_loops || PredictedSeconds(choice.steps) > slack * heuristic.predicted_s)
    return ChoiceOf(task_, std::move(heuristic));
  return choice;
}

StatusOr<HeuristicChoice> RecordOrHeuristic::Heuristic() const {
  return ChooseHeuristic(task_, device::CalibrationOf(task_.device).row, seed_);
}

double RecordOrHeuristic::PredictedSeconds(const std::string& steps) const {
  const auto seconds = [&]() -> StatusOr<double> {
    KILN_ASSIGN_OR_RETURN(const auto parsed, schedule::ParseSteps(steps));
    KILN_ASSIGN_OR_RETURN(const FloatMatrix rows, FeatureRows(task_, parsed));
    KILN_ASSIGN_OR_RETURN(
        const Models models,
        MakeModels("heuristic", seed_, device::CalibrationOf(task_.device).row, task_.stop));
    const FloatMatrix* const programs[] = {&rows};
    return -models.prior->Predict(programs)[0];
  }();
  return seconds.ok() ? *seconds : std::numeric_limits<double>::infinity();
}

}  // namespace kiln::search
