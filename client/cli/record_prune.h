// Which records a database keeps when it is pruned: of each computation and target the best ones.
//
// Pure; is shown each record more than once, and holds of each computation and target no more than is kept.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "proto/scheduler.pb.h"

namespace kiln::client {

struct PruneRule {
  uint32_t keep = 1;             // the best ones, of each computation and target
  int64_t before_s = INT64_MAX;  // only records that were measured before are deleted, unix time
  std::set<std::string> open_jobs = {};  // that have not ended: theirs stay
};

class Pruner {
 public:
  struct Row {
    std::string target;
    v1::Record example;  // for its name
    int64_t records = 0, failed = 0, deleted = 0;
    double best_s = 0;  // 0: none was right
  };

  explicit Pruner(PruneRule rule) : rule_(std::move(rule)) {}

  // First pass: all records, those with errors too.
  void See(const v1::Record& record);
  // After all of them: whether this one goes. Those that See did not see stay.
  bool Deletes(const v1::Record& record) const;
  // In its row.
  void CountDeleted(const v1::Record& record) { ++rows_[GroupOf(record)].deleted; }

  // By computation and target. Costs that are no comparison with others, of rewritten layouts, have
  // rows of their own.
  const std::map<std::vector<std::string>, Row>& rows() const { return rows_; }

 private:
  static std::vector<std::string> GroupOf(const v1::Record& record);

  const PruneRule rule_;
  std::map<std::vector<std::string>, Row> rows_;
  // By group: stopped early, cost and number of the best ones.
  std::map<std::vector<std::string>, std::set<std::tuple<bool, double, int64_t>>> best_;
  int64_t last_id_ = 0;
};

}  // namespace kiln::client
