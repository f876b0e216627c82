// The conformance suite of Store: a test of the fixture runs with every implementation.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "base/status_testing.h"
#include "store/folder_testing.h"
#include "store/memory_store.h"
#include "store/record_testing.h"
#include "store/sqlite_store.h"
#include "store/store.h"

namespace kiln::store {

inline const WorkloadRef kTest = {.id = kTestId, .keys = {kTestKey}};

struct StoreImplementation {
  const char* name;
  StatusOr<std::unique_ptr<Store>> (*open)(const TestFolder& folder);
};

class StoreTest : public testing::TestWithParam<StoreImplementation> {
 protected:
  void SetUp() override { ASSERT_OK_AND_ASSIGN(store_, GetParam().open(folder_)); }

  void AddJob(const std::string& id) {
    JobRow job;
    job.id = id;
    ASSERT_OK(store_->AddJob(job));
  }
  int64_t Add(const Record& record) {
    StatusOr<int64_t> id = store_->AddRecord(record);
    EXPECT_OK(id);
    return id.ok() ? *id : -1;
  }
  // Returns the trial of a best-record answer, -1 if there is none.
  static int64_t Trial(const StatusOr<std::optional<Record>>& best) {
    EXPECT_OK(best);
    return best.ok() && best->has_value() ? int64_t{(*best)->trial} : -1;
  }
  int64_t Best(const WorkloadRef& workload, std::string_view target) {
    const auto best = store_->BestRecords(workload, target);
    EXPECT_OK(best);
    if (!best.ok() || best->empty()) return -1;
    EXPECT_EQ(best->size(), 1u);
    return best->front().trial;
  }
  static std::vector<uint32_t> Trials(const StatusOr<std::vector<Record>>& records) {
    EXPECT_OK(records);
    std::vector<uint32_t> trials;
    if (records.ok()) {
      for (const Record& record : *records) trials.push_back(record.trial);
    }
    return trials;
  }
  std::vector<uint32_t> Visited(const RecordFilter& filter) {
    std::vector<uint32_t> trials;
    EXPECT_OK(store_->ForEachRecord(filter, [&](const Record& record) {
      trials.push_back(record.trial);
      return OkStatus();
    }));
    return trials;
  }

  TestFolder folder_;
  std::unique_ptr<Store> store_;
};

INSTANTIATE_TEST_SUITE_P(
    All, StoreTest,
    testing::Values(StoreImplementation{"Memory",
                                        [](const TestFolder&) -> StatusOr<std::unique_ptr<Store>> {
                                          return NewMemoryStore();
                                        }},
                    StoreImplementation{"Sqlite",
                                        [](const TestFolder& folder) {
                                          return OpenSqliteStore(folder.File("kiln.db"));
                                        }}),
    [](const auto& info) { return std::string(info.param.name); });

}  // namespace kiln::store
