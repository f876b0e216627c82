#include "tests/fuzz/spoil_database.h"

#include <fmt/format.h>
#include <sqlite3.h>

#include <memory>
#include <utility>
#include <vector>

#include "tests/fuzz/mutate.h"

namespace kiln::fuzz {
namespace {

struct Close {
  void operator()(sqlite3* handle) const { sqlite3_close_v2(handle); }
};
using Handle = std::unique_ptr<sqlite3, Close>;
using Row = std::vector<std::string>;

std::vector<Row> Query(sqlite3* database, const std::string& sql) {
  std::vector<Row> rows;
  const auto take = [](void* out, int columns, char** values, char**) {
    Row row;
    for (int i = 0; i < columns; ++i) row.emplace_back(values[i] == nullptr ? "" : values[i]);
    static_cast<std::vector<Row>*>(out)->push_back(std::move(row));
    return 0;
  };
  // If the spoiled file refuses the statement, the file is not spoiled further.
  sqlite3_exec(database, sql.c_str(), take, &rows, nullptr);
  return rows;
}

std::string Quoted(std::string_view text) {
  std::string quoted = "'";
  for (const char c : text) {
    if (c == '\0') break;
    quoted += c == '\'' ? "''" : std::string(1, c);
  }
  return quoted + "'";
}

std::string SpoiledValue(const std::string& now, Rng& rng) {
  constexpr std::string_view kWords[] = {"[\"SP\", 2, 0, 16, [4], 1]", "float32", "]", "import",
                                         "\x1b[31m"};
  switch (UniformInt(rng, 5)) {
    case 0:
      return "NULL";
    case 1:
      return Quoted(ExtremeNumber(rng));
    case 2:
      return fmt::format("{}", static_cast<int64_t>(rng()) >> UniformInt(rng, 64));
    case 3:
      return "CAST(" + Quoted(MutateText(now, now, kWords, 1 << 14, rng)) + " AS BLOB)";
    default:
      return Quoted(MutateText(now, now, kWords, 1 << 14, rng));
  }
}

void SpoilValue(sqlite3* database, const std::string& table, Rng& rng) {
  const auto columns =
      Query(database, fmt::format("SELECT name FROM pragma_table_info('{}')", table));
  if (columns.empty()) return;
  const std::string& column = PickFrom(rng, columns)[0];
  const auto rows =
      Query(database,
            fmt::format("SELECT rowid, CAST({} AS TEXT) FROM {} ORDER BY rowid", column, table));
  if (rows.empty()) return;
  const Row& row = PickFrom(rng, rows);
  const std::string where = Chance(rng, 0.2) ? "" : fmt::format(" WHERE rowid = {}", row[0]);
  Query(database, fmt::format("UPDATE OR IGNORE {} SET {} = {}{}", table, column,
                              SpoiledValue(row[1], rng), where));
}

void SpoilOnce(sqlite3* database, Rng& rng) {
  if (Chance(rng, 0.05)) {
    Query(database, "PRAGMA user_version = " + ExtremeNumber(rng));
    return;
  }
  const auto tables = Query(
      database, "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite%'");
  if (tables.empty()) return;
  const std::string& table = PickFrom(rng, tables)[0];
  if (Chance(rng, 0.05)) {
    Query(database, fmt::format("{} {}", Chance(rng, 0.5) ? "DROP TABLE" : "DELETE FROM", table));
    return;
  }
  SpoilValue(database, table, rng);
}

}  // namespace

Status SpoilDatabase(const std::string& path, Rng& rng) {
  sqlite3* raw = nullptr;
  const int code = sqlite3_open_v2(path.c_str(), &raw, SQLITE_OPEN_READWRITE, nullptr);
  const Handle database(raw);
  if (code != SQLITE_OK) return Internal("{}: {}", path, sqlite3_errstr(code));
  Query(raw, "PRAGMA foreign_keys = OFF; PRAGMA ignore_check_constraints = ON");
  for (int64_t changes = UniformIn(rng, 1, 3); changes > 0; --changes) SpoilOnce(raw, rng);
  return OkStatus();
}

}  // namespace kiln::fuzz
