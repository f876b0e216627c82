// Decides which records stay when a database is pruned: the best ones of each computation, target,
// device and way of measuring, and those that somebody relies on.
//
// Pure. It sees each record more than once, and holds for each of these groups no more
// records than are kept.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "proto/scheduler.pb.h"
#include "store/autotvm_record.h"

namespace kiln::client {

struct PruneRule {
  // Number of best records to keep, of each group.
  uint32_t keep = 1;
  // Only records that were measured before are deleted; unix time.
  int64_t before_s = INT64_MAX;
  // Jobs that have not ended. Their records stay.
  std::set<std::string> open_jobs = {};
  // Numbers of records that the status of a job names.
  std::set<int64_t> named = {};
  // Computation, target and steps of the schedules that somebody has set.
  std::set<std::vector<std::string>> pinned = {};
};

// The parts of a record, of either kind, that a rule needs.
struct PruneCandidate {
  // Records of the same group compete.
  std::vector<std::string> group = {};
  int64_t id = 0;
  // "": the record has no job.
  std::string job_id = {};
  // Computation, target and steps; empty for a record of autotvm.
  std::vector<std::string> schedule = {};
  double timestamp_s = 0;
  // Whether it was stopped early, and seconds; none: it failed.
  std::optional<std::pair<bool, double>> cost = {};
};

// Groups by computation, target, device and way of measuring. Costs of rewritten layouts cannot be
// compared with others, so they have groups of their own.
PruneCandidate CandidateOf(const v1::Record& record);
// Groups by template, arguments and target.
PruneCandidate CandidateOf(const store::AutotvmRecord& record);

// Prunes records of one kind: each kind has numbers of its own.
class Pruner {
 public:
  struct Row {
    // Set by the caller: a description of the group.
    std::vector<std::string> cells;
    int64_t records = 0, failed = 0, deleted = 0;
    // 0: no record succeeded.
    double best_s = 0;
  };

  explicit Pruner(PruneRule rule) : rule_(std::move(rule)) {}

  // First pass: takes all records, those with errors too. Returns the row of the record's group.
  Row& See(const PruneCandidate& candidate);
  // Second pass: returns whether the record is deleted. Records that See did not see stay.
  bool Deletes(const PruneCandidate& candidate) const;
  // Counts the record in its row.
  void CountDeleted(const PruneCandidate& candidate) { ++rows_[candidate.group].deleted; }

  const std::map<std::vector<std::string>, Row>& rows() const { return rows_; }
  // Sum over all rows.
  int64_t deleted() const;

 private:
  const PruneRule rule_;
  // Rows by group.
  std::map<std::vector<std::string>, Row> rows_;
  // The best records by group: stopped early, cost and number.
  std::map<std::vector<std::string>, std::set<std::tuple<bool, double, int64_t>>> best_;
  int64_t last_id_ = 0;
};

}  // namespace kiln::client
