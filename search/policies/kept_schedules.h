// The schedules that a search keeps from round to round: those that it has measured, and those that
// it has ranked and not proposed.
//
// Their feature rows are packed (base/numbers/packed_rows.h), because a search of hundreds of tasks
// keeps hundreds of schedules for each. Of measured schedules only the fastest are kept, and counts
// of all of them, so a search takes no more memory for them however long it goes on. How many are
// kept of each task is less where many tasks are searched at once (kept_allowance.h).
//
// Values, not synchronised.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/numbers/packed_rows.h"
#include "search/evolution/individual.h"

namespace kiln::search {

struct KeptSchedule {
  Individual individual;  // without rows
  PackedRows rows;
};

// Packs the rows of schedules of one task.
class SchedulePacker {
 public:
  // The individual has rows.
  KeptSchedule Pack(Individual individual);
  // Returns the individual with rows.
  Individual Unpack(const KeptSchedule& kept) const;
  // The same for rows alone, which are not empty.
  PackedRows PackRows(const FloatMatrix& rows) { return rows_.Pack(rows); }
  std::shared_ptr<const FloatMatrix> UnpackRows(const PackedRows& rows) const;

 private:
  RowsPacker rows_;
};

// The fastest measured schedules of a task, and counts of all.
class MeasuredSchedules {
 public:
  // So many schedules are kept, and besides them the fastest one of each niche.
  MeasuredSchedules(size_t most, int niches);

  // Adds a schedule that has a cost and rows. Cost: a search by bisection, and a move of those that
  // are slower.
  void Add(Individual individual);
  // Removes the schedule with that hash and returns it, with rows. Returns nothing if it is not
  // kept.
  std::optional<Individual> Take(uint64_t hash);
  // Keeps no more than so many from now on. What was dropped does not come back.
  void SetMost(size_t most);

  bool empty() const { return kept_.empty(); }
  // Returns the number of schedules that were added, less those that were taken.
  int64_t count() const { return count_; }
  int count_of_niche(int niche) const { return niches_[static_cast<size_t>(niche)]; }
  // The fastest first.
  std::span<const KeptSchedule> fastest() const { return kept_; }
  double best_s() const { return *kept_.front().individual.cost_s; }
  // Returns the times of the fastest kept schedules of each niche; 0 for a niche without any.
  std::vector<double> BestOfNiches() const;
  // Returns up to `most` schedules, the fastest first, with rows if these are wanted.
  std::vector<Individual> Fastest(size_t most, bool with_rows) const;

 private:
  // Drops the slowest schedules, but for the fastest one of each niche, until there are not too
  // many.
  void Drop();

  size_t most_;
  std::vector<int> niches_;  // number of schedules of each niche that were added, less taken
  int64_t count_ = 0;
  std::vector<KeptSchedule> kept_;  // the fastest first
  SchedulePacker packer_;
};

}  // namespace kiln::search
