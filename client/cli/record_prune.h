// Which records a database keeps when it is pruned: of each computation and target the best ones.
//
// Pure; is shown each record more than once, and holds of each computation and target no more than is kept.
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
  uint32_t keep = 1;             // the best ones, of each computation and target
  int64_t before_s = INT64_MAX;  // only records that were measured before are deleted, unix time
  std::set<std::string> open_jobs = {};  // that have not ended: theirs stay
};

// What a rule looks at of a record, of whatever kind.
struct PruneCandidate {
  std::vector<std::string> group = {};  // whose records compete
  int64_t id = 0;
  std::string job_id = {};  // "": of none
  double timestamp_s = 0;
  std::optional<std::pair<bool, double>> cost = {};  // stopped early, seconds; none: it failed
};

// By computation and target. Costs that are no comparison with others, of rewritten layouts, are
// groups of their own.
PruneCandidate CandidateOf(const v1::Record& record);
// By template, arguments and target.
PruneCandidate CandidateOf(const store::AutotvmRecord& record);

// Of records of one kind: each kind has numbers of its own.
class Pruner {
 public:
  struct Row {
    std::vector<std::string> cells;  // of the caller: what it is of
    int64_t records = 0, failed = 0, deleted = 0;
    double best_s = 0;  // 0: none was right
  };

  explicit Pruner(PruneRule rule) : rule_(std::move(rule)) {}

  // First pass: all records, those with errors too. Returns the row of its group.
  Row& See(const PruneCandidate& candidate);
  // After all of them: whether this one goes. Those that See did not see stay.
  bool Deletes(const PruneCandidate& candidate) const;
  // In its row.
  void CountDeleted(const PruneCandidate& candidate) { ++rows_[candidate.group].deleted; }

  const std::map<std::vector<std::string>, Row>& rows() const { return rows_; }
  // Of all rows.
  int64_t deleted() const;

 private:
  const PruneRule rule_;
  std::map<std::vector<std::string>, Row> rows_;  // by group
  // By group: stopped early, cost and number of the best ones.
  std::map<std::vector<std::string>, std::set<std::tuple<bool, double, int64_t>>> best_;
  int64_t last_id_ = 0;
};

}  // namespace kiln::client
