// Queries that see one state of the SQLite store. Lives within a transaction of its connection.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "store/sqlite.h"
#include "store/store.h"

namespace kiln::store {

class SqliteSnapshot final : public Store::Snapshot {
 public:
  using Names = Store::Names;
  using KeyBinding = Store::KeyBinding;

  explicit SqliteSnapshot(sqlite::Database& database) : database_(database) {}

  StatusOr<std::vector<int64_t>> Ids(const RecordFilter& filter, const Names& names,
                                     uint32_t limit) override;
  StatusOr<int64_t> IdBeforeTrial(std::string_view job_id, uint32_t from_trial,
                                  uint32_t most) override;
  StatusOr<std::vector<Record>> Records(std::span<const int64_t> ids) override;
  StatusOr<std::vector<Record>> RecordsNamed(const Names& names, std::string_view target) override;
  StatusOr<std::vector<Record>> BestNamed(std::string_view name, std::string_view target) override;
  StatusOr<bool> HasMeasurementNamed(std::string_view name, const Record& record) override;
  StatusOr<KeyBinding> KeyBindingOf(std::string_view key) override;
  StatusOr<std::vector<std::string>> KeysOfId(std::string_view workload_id) override;
  StatusOr<std::vector<AutotvmRecord>> AutotvmRecords(const AutotvmFilter& filter, int64_t after_id,
                                                      uint32_t limit) override;

 private:
  sqlite::Database& database_;
};

}  // namespace kiln::store
