#include "store/sqlite_top_records.h"

#include <fmt/format.h>

#include <functional>
#include <iterator>
#include <limits>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "store/record.h"
#include "store/sqlite_rows.h"
#include "store/sqlite_writes.h"

namespace kiln::store {
namespace {

using sqlite::Database;
using sqlite::Statement;

constexpr int64_t kDay_s = 86'400;

// If a span of time holds fewer records of a computation than this, they are read and sorted.
constexpr int64_t kFewRecords = 500;

struct Group {
  std::string workload = {};
  std::string target = {};
};

// Returns the first target after this one of the workload; none: it is the last.
StatusOr<std::optional<std::string>> TargetBehind(Database& database, const Group& group) {
  KILN_ASSIGN_OR_RETURN(Statement next,
                        database.Prepare("SELECT target FROM records WHERE error = 0 AND "
                                         "workload = ? AND target > ? ORDER BY target LIMIT 1"));
  KILN_RETURN_IF_ERROR(next.Bind(group.workload, group.target));
  KILN_ASSIGN_OR_RETURN(const bool found, next.Step());
  return found ? std::optional(next.Text(0)) : std::nullopt;
}

// Returns the first group of the workloads after this one; none: it is the last.
StatusOr<std::optional<Group>> WorkloadBehind(Database& database, const std::string& workload) {
  KILN_ASSIGN_OR_RETURN(
      Statement next,
      database.Prepare("SELECT workload, target FROM records WHERE error = 0 AND workload > ? "
                       "ORDER BY workload, target LIMIT 1"));
  KILN_RETURN_IF_ERROR(next.Bind(workload));
  KILN_ASSIGN_OR_RETURN(const bool found, next.Step());
  if (!found) return std::optional<Group>();
  return std::optional(Group{next.Text(0), next.Text(1)});
}

// Returns the group after this one in the index; none: it is the last. These are two queries: of
// one that compares (workload, target) SQLite passes over all records of the group.
StatusOr<std::optional<Group>> GroupBehind(Database& database, const Group& group) {
  KILN_ASSIGN_OR_RETURN(std::optional<std::string> target, TargetBehind(database, group));
  if (!target.has_value()) return WorkloadBehind(database, group.workload);
  return std::optional(Group{group.workload, *std::move(target)});
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

// Adds the rows of the query, which come best first, until the rest is worse than all of the best.
Status AddRows(Statement& query, Best& best) {
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

bool HasTimes(const RecordFilter& filter) {
  const RecordFilter any_time;
  return filter.since_s != any_time.since_s || filter.until_s != any_time.until_s;
}

Status AddGroup(Database& database, const Group& group, const RecordFilter& filter, Best& best) {
  // `+` keeps the times from choosing another index.
  const std::string_view times = HasTimes(filter) ? "AND +timestamp_s BETWEEN ?4 AND ?5"
                                                  : "AND ?4 IS NOT NULL AND ?5 IS NOT NULL";
  KILN_ASSIGN_OR_RETURN(Statement query,
                        database.Prepare(fmt::format(
                            "SELECT measured_as, stopped_early, mean_cost_s, id FROM records r "
                            "WHERE error = 0 AND workload = ?1 AND target = ?2 AND id > ?3 {} "
                            "ORDER BY {}",
                            times, kBestFirst)));
  KILN_RETURN_IF_ERROR(
      query.Bind(group.workload, group.target, filter.after_id, filter.since_s, filter.until_s));
  return AddRows(query, best);
}

// Calls `add` for each group of the workload with this name ("" = of all workloads) whose target
// begins as the filter says.
Status ForEachGroup(Database& database, const std::string& name, const RecordFilter& filter,
                    const std::function<Status(const Group&)>& add) {
  Group last{name, ""};
  while (true) {
    KILN_ASSIGN_OR_RETURN(std::optional<Group> next, GroupBehind(database, last));
    const bool is_over = !next.has_value() || (!name.empty() && next->workload != name);
    if (is_over) return OkStatus();
    if (next->target.starts_with(filter.target)) KILN_RETURN_IF_ERROR(add(*next));
    last = *std::move(next);
  }
}

StatusOr<std::optional<int64_t>> DayBefore(Database& database, int64_t day) {
  KILN_ASSIGN_OR_RETURN(
      Statement query,
      database.Prepare("SELECT timestamp_s / 86400 FROM records WHERE error = 0 AND "
                       "timestamp_s / 86400 < ? ORDER BY timestamp_s / 86400 DESC LIMIT 1"));
  KILN_RETURN_IF_ERROR(query.Bind(day));
  KILN_ASSIGN_OR_RETURN(const bool found, query.Step());
  return found ? std::optional(query.Int(0)) : std::nullopt;
}

Status AddDay(Database& database, int64_t day, const RecordFilter& filter, Best& best) {
  KILN_ASSIGN_OR_RETURN(
      Statement query,
      database.Prepare(fmt::format("SELECT measured_as, stopped_early, mean_cost_s, id "
                                   "FROM records r WHERE error = 0 AND timestamp_s / 86400 = ? "
                                   "AND +timestamp_s BETWEEN ? AND ? AND +id > ? ORDER BY {}",
                                   kBestFirst)));
  KILN_RETURN_IF_ERROR(query.Bind(day, filter.since_s, filter.until_s, filter.after_id));
  return AddRows(query, best);
}

// The days are visited from the last one on.
Status AddDays(Database& database, const RecordFilter& filter, Best& best) {
  // One past the last day that is wanted.
  int64_t end = filter.until_s / kDay_s + 1;
  while (true) {
    KILN_ASSIGN_OR_RETURN(const std::optional<int64_t> day, DayBefore(database, end));
    if (!day.has_value() || *day < filter.since_s / kDay_s) return OkStatus();
    KILN_RETURN_IF_ERROR(AddDay(database, *day, filter, best));
    end = *day;
  }
}

// Returns the first task after this one of the job that has a record without an error; none: it is
// the last.
StatusOr<std::optional<int64_t>> TaskBehind(Database& database, const std::string& job_id,
                                            int64_t task_index) {
  KILN_ASSIGN_OR_RETURN(
      Statement query,
      database.Prepare("SELECT task_index FROM records WHERE error = 0 AND job_id = ? AND "
                       "job_id != 'import' AND task_index > ? ORDER BY task_index LIMIT 1"));
  KILN_RETURN_IF_ERROR(query.Bind(job_id, task_index));
  KILN_ASSIGN_OR_RETURN(const bool found, query.Step());
  return found ? std::optional(query.Int(0)) : std::nullopt;
}

// Adds the best records of a task. `+` keeps a condition from choosing another index.
Status AddTask(Database& database, int64_t task_index, const RecordFilter& filter, Best& best) {
  KILN_ASSIGN_OR_RETURN(
      Statement query,
      database.Prepare(fmt::format(
          "SELECT measured_as, stopped_early, mean_cost_s, id FROM records r WHERE error = 0 "
          "AND job_id = ?1 AND job_id != 'import' AND task_index = ?2 AND +id > ?3 "
          "AND +timestamp_s BETWEEN ?4 AND ?5 AND substr(target, 1, length(?6)) = ?6 "
          "AND (?7 = '' OR +device = ?7) ORDER BY {}",
          kBestFirst)));
  KILN_RETURN_IF_ERROR(query.Bind(filter.job_id, task_index, filter.after_id, filter.since_s,
                                  filter.until_s, filter.target, filter.device));
  return AddRows(query, best);
}

Status AddTasks(Database& database, const RecordFilter& filter, Best& best) {
  int64_t last = -1;
  while (true) {
    KILN_ASSIGN_OR_RETURN(const std::optional<int64_t> task,
                          TaskBehind(database, filter.job_id, last));
    if (!task.has_value()) return OkStatus();
    KILN_RETURN_IF_ERROR(AddTask(database, *task, filter, best));
    last = *task;
  }
}

StatusOr<bool> AreFew(Database& database, const Store::Names& names, const RecordFilter& filter) {
  int64_t count = 0;
  for (const std::string& name : names) {
    KILN_ASSIGN_OR_RETURN(
        Statement query,
        database.Prepare("SELECT count(*) FROM (SELECT 1 FROM records WHERE workload = ? AND "
                         "timestamp_s >= ? AND timestamp_s <= ? LIMIT ?)"));
    KILN_RETURN_IF_ERROR(query.Bind(name, filter.since_s, filter.until_s, kFewRecords));
    KILN_RETURN_IF_ERROR(query.Step().status());
    count += query.Int(0);
  }
  return count < kFewRecords;
}

}  // namespace

StatusOr<std::optional<std::vector<int64_t>>> TopRecords(Database& database,
                                                         const RecordFilter& filter,
                                                         const Store::Names& names,
                                                         uint32_t limit) {
  using Ids = std::optional<std::vector<int64_t>>;
  if (!filter.key_prefix.empty()) return Ids();
  Best best(limit);
  if (!filter.job_id.empty()) {
    if (!names.empty() || filter.job_id == kImport) return Ids();
    KILN_RETURN_IF_ERROR(AddTasks(database, filter, best));
    return Ids(best.ids());
  }
  if (!filter.device.empty()) return Ids();
  if (names.empty() && filter.target.empty()) {
    KILN_RETURN_IF_ERROR(AddDays(database, filter, best));
    return Ids(best.ids());
  }
  if (HasTimes(filter)) {
    if (names.empty()) return Ids();
    KILN_ASSIGN_OR_RETURN(const bool are_few, AreFew(database, names, filter));
    if (are_few) return Ids();
  }
  for (const std::string& name : names.empty() ? Store::Names{""} : names) {
    KILN_RETURN_IF_ERROR(ForEachGroup(database, name, filter, [&](const Group& group) {
      return AddGroup(database, group, filter, best);
    }));
  }
  return Ids(best.ids());
}

}  // namespace kiln::store
