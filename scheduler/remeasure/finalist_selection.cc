#include "scheduler/remeasure/finalist_selection.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "search/policies/first_candidates.h"
#include "search/tuning/final_race.h"

namespace kiln::scheduler {
namespace {

// Tells whether a race of these entries would have a round to run.
bool IsOpen(const std::vector<Finalist>& entries) {
  search::FinalRace race(static_cast<int>(entries.size()), {});
  for (size_t i = 0; i < entries.size(); ++i) {
    const store::Remeasurement& known = entries[i].known;
    race.Restore(static_cast<int>(i), known.costs_s, static_cast<int>(known.readings));
  }
  return !race.NextRound().empty();
}

// Trials of one task, measured on its device.
struct Field {
  int trials = 0;                          // number of trials, failed ones too
  std::vector<const store::Record*> able;  // trials that ran to their end
};

Field FieldOf(uint32_t task, const std::string& target, std::span<const store::Record> records) {
  Field field;
  for (const store::Record& record : records) {
    if (record.task_index != task || record.target != target) continue;
    ++field.trials;
    if (record.error == store::kNoError && !record.stopped_early) field.able.push_back(&record);
  }
  // If costs are equal, the smaller id goes first, as everywhere.
  std::ranges::sort(field.able, {}, &store::Record::id);
  return field;
}

// Returns the best record of an earlier race, or null if there was none.
const store::Record* WinnerOf(const Field& field, const std::set<int64_t>& raced) {
  const store::Record* winner = nullptr;
  for (const store::Record* record : field.able) {
    if (!raced.contains(record->id)) continue;
    if (winner == nullptr || store::BetterThan(*record, *winner)) winner = record;
  }
  return winner;
}

bool IsHeuristic(const store::Record& record) {
  return record.origin.starts_with(search::kHeuristicOrigin);
}

// Returns the factor by which an untuned schedule may be slower than the best candidate, as the
// trials' readings say. The user would have such a schedule without tuning, so that the winner must
// not be slower. `first_heuristic`: it is what a computation gets that was never measured.
double MarginOf(const store::Record& record, bool first_heuristic) {
  if (first_heuristic) return std::numeric_limits<double>::infinity();
  if (record.steps == store::kNoSteps) return kUnscheduledMargin;
  return IsHeuristic(record) ? search::kFinalistMargin : 0;
}

// Adds the untuned schedules that the winner is compared with, so that both are measured in the
// same race.
void AddUntuned(std::span<const store::Record* const> able, std::vector<int>& chosen) {
  if (chosen.empty()) return;
  const double least_s = store::Cost(*able[chosen[0]]);
  bool seen_heuristic = false;
  for (size_t i = 0; i < able.size(); ++i) {
    const auto entry = static_cast<int>(i);
    const bool first_heuristic = IsHeuristic(*able[i]) && !seen_heuristic;
    seen_heuristic |= first_heuristic;
    if (store::Cost(*able[i]) > MarginOf(*able[i], first_heuristic) * least_s) continue;
    if (std::ranges::find(chosen, entry) == chosen.end()) chosen.push_back(entry);
  }
}

std::vector<int> Choose(std::span<const store::Record* const> able, int most) {
  std::vector<double> costs_s;
  for (const store::Record* record : able) costs_s.push_back(store::Cost(*record));
  std::vector<int> chosen = search::ChooseFinalists(costs_s, most);
  AddUntuned(able, chosen);
  return chosen;
}

}  // namespace

StatusOr<std::vector<Finalists>> FinalistSelection::Next() {
  std::vector<Finalists> lists;
  if (job_.spec.options().finalists() <= 0) return lists;
  KILN_ASSIGN_OR_RETURN(const std::vector<store::Record> records, store_.RecordsOfJob(job_id_, 0));
  Best best;
  for (uint32_t task = 0; task < job_.tasks.size(); ++task) {
    KILN_ASSIGN_OR_RETURN(best.emplace_back(), store_.BestOfJob(job_id_, task));
  }
  for (uint32_t task = 0; task < job_.tasks.size(); ++task) {
    if (!best[task].has_value() || IsOutclassed(task, best)) continue;
    Finalists finalists = FinalistsOf(task, records, best);
    if (!finalists.entries.empty()) lists.push_back(std::move(finalists));
  }
  return lists;
}

bool FinalistSelection::IsOutclassed(uint32_t task, const Best& best) const {
  double fastest_s = store::Cost(*best[task]);
  for (size_t other = 0; other < best.size(); ++other) {
    if (!best[other].has_value() || GroupOf(job_, other) != GroupOf(job_, task)) continue;
    fastest_s = std::min(fastest_s, store::Cost(*best[other]));
  }
  return store::Cost(*best[task]) > search::kFinalistMargin * fastest_s;
}

Finalists FinalistSelection::FinalistsOf(uint32_t task, std::span<const store::Record> records,
                                         const Best& best) {
  Field field = FieldOf(task, best[task]->target, records);
  const store::Record* winner = WinnerOf(field, raced_);
  int most = search::MaxFinalists(job_.spec.options().finalists(), field.trials);
  if (winner != nullptr) {
    // After a race only its winner remains, and trials whose first reading is better than the
    // winner.
    std::erase_if(field.able, [&](const store::Record* record) {
      const bool before =
          !raced_.contains(record->id) && store::Cost(*record) < store::Cost(*winner);
      return record != winner && !before;
    });
    ++most;
  }
  Finalists finalists;
  finalists.task = static_cast<int>(task);
  for (const int i : Choose(field.able, most)) {
    const store::Record& record = *field.able[i];
    finalists.entries.push_back(
        {record.id, record.steps, KnownOf(record), store::MeanCost(record)});
    raced_.insert(record.id);
  }
  const bool rivals = winner == nullptr || finalists.entries.size() > 1;
  if (!rivals || !IsOpen(finalists.entries)) finalists.entries.clear();
  return finalists;
}

}  // namespace kiln::scheduler
