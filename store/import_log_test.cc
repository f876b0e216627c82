#include "store/import_log.h"

#include <fstream>
#include <sstream>

#include "base/status_testing.h"
#include "store/memory_store.h"
#include "store/sqlite_store.h"
#include "store/test_folder.h"
#include "store/test_record.h"

namespace kiln::store {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

StatusOr<std::string> Export(Store& store, const RecordFilter& filter) {
  std::string text;
  KILN_RETURN_IF_ERROR(ExportLog(store, filter, [&](std::string_view line) {
                         text += line;
                         return OkStatus();
                       }).status());
  return text;
}

TEST(ImportLog, ARealLogComesOutAsItWentInAndASecondTimeAddsNothing) {
  const std::string text = ReadFile("store/testdata/resnet-18-NHWC-B1-cuda.json");
  TestFolder folder;
  ASSERT_OK_AND_ASSIGN(auto store, OpenSqliteStore(folder.File("kiln.db")));
  ASSERT_OK_AND_ASSIGN(const ImportResult first, ImportLog(*store, text, 123));
  EXPECT_EQ(first.imported, 24);
  EXPECT_EQ(first.duplicates, 0);
  EXPECT_THAT(first.errors, IsEmpty());
  ASSERT_OK_AND_ASSIGN(const ImportResult second, ImportLog(*store, text, 456, "other"));
  EXPECT_EQ(second.imported, 0);
  EXPECT_EQ(second.duplicates, 24);
  ASSERT_OK_AND_ASSIGN(const std::string exported, Export(*store, {}));
  EXPECT_EQ(exported, text);
  ASSERT_OK_AND_ASSIGN(const JobRow job, store->GetJob(kImportJob));
  EXPECT_EQ(job.state, JobState::kSucceeded);
  EXPECT_EQ(job.created_ms, 123);
  ASSERT_OK_AND_ASSIGN(const auto unfinished, store->LoadUnfinishedJobs());
  EXPECT_THAT(unfinished, IsEmpty());
}

TEST(ImportLog, BadLinesAreNumberedAndTheRestIsTaken) {
  auto store = NewMemoryStore();
  const std::string good =
      R"({"i": [["k", "t"], [[], [["CI", 1]]]], "r": [[1], 0, 1, 1], "v": "v0.2"})";
  const std::string free =
      R"({"i": [["k", "t"], [[], [["CI", 2]]]], "r": [[0], 0, 1, 1], "v": "v0.2"})";
  ASSERT_OK_AND_ASSIGN(
      const ImportResult result,
      ImportLog(*store, "# log\n" + good + "\nnonsense\n\n" + free + "\n" + good, 0));
  EXPECT_EQ(result.imported, 1);
  EXPECT_EQ(result.duplicates, 1);
  EXPECT_THAT(result.errors, ElementsAre(HasSubstr("line 3: column 1"), HasSubstr("line 5: ")));
}

TEST(ImportLog, ManyLinesKeepTheirNumbersAcrossBatchesAndImports) {
  auto store = NewMemoryStore();
  auto lines = [](int from, int to) {
    std::string text;
    for (int i = from; i < to; ++i) {
      text += fmt::format(
          R"({{"i": [["k", "t"], [[], [["CI", {}]]]], "r": [[1], 0, 1, 1], "v": "v0.2"}})", i);
      text += "\n";
    }
    return text;
  };
  ASSERT_OK_AND_ASSIGN(const ImportResult first, ImportLog(*store, lines(0, 600), 0));
  EXPECT_EQ(first.imported, 600);
  ASSERT_OK_AND_ASSIGN(const ImportResult second, ImportLog(*store, lines(500, 700), 0));
  EXPECT_EQ(second.imported, 100);
  EXPECT_EQ(second.duplicates, 100);
  ASSERT_OK_AND_ASSIGN(const auto records, store->RecordsOfJob(kImportJob, 0));
  ASSERT_EQ(records.size(), 700);
  for (uint32_t i = 0; i < 700; ++i) {
    EXPECT_EQ(records[i].trial, i);
    EXPECT_EQ(records[i].steps, fmt::format("[[\"CI\", {}]]", i));
  }
}

TEST(ImportLog, OurOwnRecordsAreKnownAgain) {
  auto store = NewMemoryStore();
  JobRow job;
  job.id = "j";
  ASSERT_OK(store->AddJob(job));
  ASSERT_OK(store->AddRecord(TestRecord("j", 0, 1.23456789e-4)));
  ASSERT_OK(store->AddRecord(FailedRecord("j", 1, 4)));
  ASSERT_OK_AND_ASSIGN(const std::string best, Export(*store, {}));
  EXPECT_THAT(best, HasSubstr("[[0.000123457], 0,"));
  ASSERT_OK_AND_ASSIGN(const std::string all, Export(*store, {.include_errors = true}));
  ASSERT_OK_AND_ASSIGN(const ImportResult result, ImportLog(*store, all, 0));
  EXPECT_EQ(result.duplicates, 2);
  EXPECT_EQ(result.imported, 0);
}

TEST(ImportLog, AFailingWriterStopsTheExport) {
  auto store = NewMemoryStore();
  ASSERT_OK(
      ImportLog(*store, R"({"i": [["k", "t"], [[], []]], "r": [[1], 0, 1, 1], "v": "v0.2"})", 0));
  EXPECT_THAT(
      ExportLog(*store, {}, [](std::string_view) { return ResourceExhausted("disk full"); }),
      StatusIs(StatusCode::kResourceExhausted, "disk full"));
}

}  // namespace
}  // namespace kiln::store
