#include "store/sqlite_top_records.h"

#include <fmt/format.h>

#include <iterator>
#include <limits>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include "store/record.h"
#include "store/sqlite_rows.h"

namespace kiln::store {
namespace {

using sqlite::Database;
using sqlite::Statement;

struct Group {
  std::string workload, target;
};

// Returns the group after this one in the index; none: it is the last.
StatusOr<std::optional<Group>> GroupBehind(Database& database, const Group& group) {
  KILN_ASSIGN_OR_RETURN(
      Statement next,
      database.Prepare("SELECT workload, target FROM records WHERE error = 0 AND "
                       "(workload, target) > (?, ?) ORDER BY workload, target LIMIT 1"));
  KILN_RETURN_IF_ERROR(next.Bind(group.workload, group.target));
  KILN_ASSIGN_OR_RETURN(const bool found, next.Step());
  if (!found) return std::optional<Group>();
  return std::optional(Group{next.Text(0), next.Text(1)});
}

// The best records so far, at most `limit`.
class Best {
 public:
  explicit Best(uint32_t limit) : limit_(limit) {}

  // Returns false if the record is not among the best.
  bool Add(const Rank& rank) {
    if (best_.size() == limit_ && (limit_ == 0 || *best_.rbegin() < rank)) return false;
    best_.insert(rank);
    if (best_.size() > limit_) best_.erase(std::prev(best_.end()));
    return true;
  }

  std::vector<int64_t> ids() const {
    std::vector<int64_t> ids;
    for (const Rank& rank : best_) ids.push_back(rank.id);
    return ids;
  }

 private:
  const uint32_t limit_;
  std::set<Rank> best_;
};

// Adds records of the group until the rest of the group is worse than all of the best.
Status AddGroup(Database& database, const Group& group, int64_t after_id, Best& best) {
  KILN_ASSIGN_OR_RETURN(Statement query,
                        database.Prepare(fmt::format(
                            "SELECT measured_as, stopped_early, mean_cost_s, id FROM records r "
                            "WHERE error = 0 AND workload = ? AND target = ? AND id > ? "
                            "ORDER BY {}",
                            kBestFirst)));
  KILN_RETURN_IF_ERROR(query.Bind(group.workload, group.target, after_id));
  while (true) {
    KILN_ASSIGN_OR_RETURN(const bool found, query.Step());
    if (!found) return OkStatus();
    // A file that somebody else wrote to may lack a cost: such a row stands first in the index.
    const double cost_s =
        query.IsNull(2) ? -std::numeric_limits<double>::infinity() : query.Double(2);
    const Rank rank = {.measured_as = query.Text(0),
                       .stopped_early = query.Int(1) != 0,
                       .cost_s = cost_s,
                       .id = query.Int(3)};
    if (!best.Add(rank)) return OkStatus();
  }
}

}  // namespace

bool IsOfBestIndex(const RecordFilter& filter) {
  const RecordFilter any_time;
  return filter.job_id.empty() && filter.workload.empty() && filter.device.empty() &&
         filter.key_prefix.empty() && filter.since_s == any_time.since_s &&
         filter.until_s == any_time.until_s;
}

StatusOr<std::vector<int64_t>> TopRecords(Database& database, const RecordFilter& filter,
                                          uint32_t limit) {
  Best best(limit);
  Group last;
  while (true) {
    KILN_ASSIGN_OR_RETURN(std::optional<Group> next, GroupBehind(database, last));
    if (!next.has_value()) return best.ids();
    if (next->target.starts_with(filter.target)) {
      KILN_RETURN_IF_ERROR(AddGroup(database, *next, filter.after_id, best));
    }
    last = *std::move(next);
  }
}

}  // namespace kiln::store
