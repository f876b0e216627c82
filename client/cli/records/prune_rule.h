// Decides which records stay when a database is pruned: the best ones of each computation and
// target.
//
// Pure. It sees each record more than once, and holds for each computation and target no more
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
  // Number of best records to keep, of each computation and target.
  uint32_t keep = 1;
  // Only records that were measured before are deleted; unix time.
  int64_t before_s = INT64_MAX;
  // Jobs that have not ended. Their records stay.
  std::set<std::string> open_jobs = {};
};

// The parts of a record, of either kind, that a rule needs.
struct PruneCandidate {
  // Records of the same group compete.
  std::vector<std::string> group = {};
  int64_t id = 0;
  // "": the record has no job.
  std::string job_id = {};
  double timestamp_s = 0;
  // Whether it was stopped early, and seconds; none: it failed.
  std::optional<std::pair<bool, double>> cost = {};
};

// Groups by computation and target. Costs of rewritten layouts cannot be compared with others, so
// they have groups of their own.
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
