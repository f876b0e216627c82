#include "store/sqlite_snapshot.h"

#include <utility>

#include "store/sqlite_rows.h"
#include "store/sqlite_top_records.h"

namespace kiln::store {
namespace {

using sqlite::BorrowedText;
using sqlite::Statement;

// `names` is an SQL parameter that holds a JsonOf.
std::string IsNamed(std::string_view names) {
  return fmt::format("workload IN (SELECT value FROM json_each({}))", names);
}

}  // namespace

StatusOr<std::vector<int64_t>> SqliteSnapshot::Ids(const RecordFilter& filter, const Names& names,
                                                   uint32_t limit) {
  if (filter.top.has_value()) {
    KILN_ASSIGN_OR_RETURN(auto best, TopRecords(database_, filter, names, limit));
    // Failed records come after all others.
    if (best.has_value() && (!filter.include_errors || best->size() == limit)) {
      return *std::move(best);
    }
  }
  // The condition is spelled out by the members that are set, so that each form gets its index. The
  // other parameters are bound and unused.
  std::string where = "WHERE id > ?1";
  if (!filter.include_errors) where += " AND error = 0";
  where += filter.job_id.empty() ? " AND ?2 = ''" : " AND job_id = ?2";
  where += names.empty() ? " AND ?3 = ''" : " AND " + IsNamed("?3");
  where += filter.target.empty() ? " AND ?4 = ''" : " AND substr(target, 1, length(?4)) = ?4";
  where += filter.device.empty() ? " AND ?5 = ''" : " AND device = ?5";
  // An index of a job's trials has no times, so a row is read for each condition on them.
  const RecordFilter any_time;
  where += filter.since_s == any_time.since_s ? " AND ?6 IS NOT NULL" : " AND timestamp_s >= ?6";
  where += filter.until_s == any_time.until_s ? " AND ?8 IS NOT NULL" : " AND timestamp_s <= ?8";
  where +=
      filter.key_prefix.empty() ? " AND ?9 = ''" : " AND substr(workload_key, 1, length(?9)) = ?9";
  where += filter.top.has_value() ? fmt::format(" ORDER BY error != 0, {}", kBestFirst)
                                  : std::string(" ORDER BY id");
  where += " LIMIT ?7";
  return Select<int64_t>(
      database_, [](const Statement& row) { return StatusOr<int64_t>(row.Int(0)); },
      "SELECT id FROM records r ", where, filter.after_id, filter.job_id,
      names.empty() ? std::string() : JsonOf(names), filter.target, filter.device, filter.since_s,
      limit, filter.until_s, filter.key_prefix);
}

StatusOr<int64_t> SqliteSnapshot::IdBeforeTrial(std::string_view job_id, uint32_t from_trial,
                                                uint32_t most) {
  KILN_ASSIGN_OR_RETURN(
      Statement smallest,
      database_.Prepare("SELECT min(id) FROM (SELECT id FROM records WHERE job_id = ? AND "
                        "trial >= ? ORDER BY trial LIMIT ?)"));
  KILN_RETURN_IF_ERROR(smallest.Bind(job_id, from_trial, most));
  KILN_RETURN_IF_ERROR(smallest.Step().status());
  if (!smallest.IsNull(0)) return smallest.Int(0) - 1;
  KILN_ASSIGN_OR_RETURN(
      Statement largest,
      database_.Prepare("SELECT id FROM records WHERE job_id = ? ORDER BY id DESC LIMIT 1"));
  KILN_RETURN_IF_ERROR(largest.Bind(job_id));
  KILN_ASSIGN_OR_RETURN(const bool found, largest.Step());
  return found ? largest.Int(0) : 0;
}

StatusOr<std::vector<Record>> SqliteSnapshot::Records(std::span<const int64_t> ids) {
  std::vector<Record> records;
  for (const int64_t id : ids) {
    KILN_ASSIGN_OR_RETURN(std::optional<Record> record, SelectOne(database_, "WHERE r.id = ?", id));
    if (record) records.push_back(*std::move(record));
  }
  return records;
}

StatusOr<std::vector<Record>> SqliteSnapshot::RecordsNamed(const Names& names,
                                                           std::string_view target) {
  return SelectRecords(
      database_, fmt::format("WHERE {} AND (?2 = '' OR target = ?2) ORDER BY r.id", IsNamed("?1")),
      JsonOf(names), target);
}

StatusOr<std::vector<Record>> SqliteSnapshot::BestNamed(std::string_view name,
                                                        std::string_view target) {
  // Finds the first record of a part of the index. Each condition names all parameters: the last
  // target, the last way of measuring, and the target that is asked for.
  const auto first = [&](std::string_view condition, const Record& last) {
    return SelectOne(
        database_,
        fmt::format("WHERE workload = ?1 AND error = 0 AND {} ORDER BY target, {} LIMIT 1",
                    condition, kBestFirst),
        name, last.target, last.measured_as, target);
  };
  std::vector<Record> best;
  KILN_ASSIGN_OR_RETURN(std::optional<Record> next,
                        first(target.empty() ? "?2 = '' AND ?3 = '' AND ?4 = ''"
                                             : "target = ?4 AND ?2 = '' AND ?3 = ''",
                              Record()));
  while (next.has_value()) {
    // Copies: the record is moved from.
    const std::string of_target = next->target, way = next->measured_as;
    KILN_ASSIGN_OR_RETURN(
        best.emplace_back(),
        ChooseBeside(database_, *std::move(next),
                     "WHERE workload = ? AND error = 0 AND target = ? AND measured_as = ?", name,
                     of_target, way));
    KILN_ASSIGN_OR_RETURN(
        next, first("target = ?2 AND measured_as < ?3 AND ?4 IS NOT NULL", best.back()));
    if (next.has_value() || !target.empty()) continue;
    KILN_ASSIGN_OR_RETURN(next, first("target > ?2 AND ?3 IS NOT NULL AND ?4 = ''", best.back()));
  }
  return best;
}

StatusOr<bool> SqliteSnapshot::HasMeasurementNamed(std::string_view name, const Record& record) {
  // `+` keeps a column from choosing an index. An index is partial by errors and steps, and SQLite
  // would plan anew for each value of a parameter that such an index might be used for.
  KILN_ASSIGN_OR_RETURN(
      Statement query,
      database_.Prepare("SELECT 1 FROM records WHERE workload = ? AND timestamp_s = ? "
                        "AND +error = ? AND target = ? AND +steps = ? LIMIT 1"));
  KILN_RETURN_IF_ERROR(query.Bind(BorrowedText{name}, record.timestamp_s, record.error,
                                  BorrowedText{record.target}, BorrowedText{record.steps}));
  return query.Step();
}

StatusOr<Store::KeyBinding> SqliteSnapshot::KeyBindingOf(std::string_view key) {
  KeyBinding bearers;
  KILN_ASSIGN_OR_RETURN(
      bearers.ids,
      Select<std::string>(
          database_,
          [&](const Statement& row) {
            bearers.bound = row.Int(1) != 0;
            return ReadText(row);
          },
          "SELECT workload_id, EXISTS (SELECT 1 FROM bindings WHERE workload_key = ?1) "
          "FROM computations ",
          "WHERE workload_key = ?1 ORDER BY workload_id", key));
  return bearers;
}

StatusOr<std::vector<std::string>> SqliteSnapshot::KeysOfId(std::string_view workload_id) {
  return Select<std::string>(database_, ReadText, "SELECT workload_key FROM computations ",
                             "WHERE workload_id = ? ORDER BY workload_key", workload_id);
}

StatusOr<std::vector<AutotvmRecord>> SqliteSnapshot::AutotvmRecords(const AutotvmFilter& filter,
                                                                    int64_t after_id,
                                                                    uint32_t limit) {
  std::string where = "WHERE id > ?1";
  if (!filter.include_errors) where += " AND error = 0";
  where += filter.task.empty() ? " AND ?2 = ''" : " AND task = ?2";
  where += filter.target.empty() ? " AND ?3 = ''" : " AND substr(target, 1, length(?3)) = ?3";
  return Select<AutotvmRecord>(database_, ReadAutotvmRecord, kAutotvmColumns,
                               where + " ORDER BY id LIMIT ?4", after_id, filter.task,
                               filter.target, limit);
}

}  // namespace kiln::store
