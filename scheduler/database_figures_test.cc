#include "scheduler/database_figures.h"

#include "base/file/file.h"
#include "base/status_testing.h"

namespace kiln::scheduler {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

std::string TextOf(const std::string& path) {
  Metrics metrics;
  const auto collector =
      metrics.AddCollector([&](MetricSheet& sheet) { CollectDatabase(path, sheet); });
  return metrics.Text();
}

TEST(DatabaseFiguresTest, SaysHowLargeTheFilesAre) {
  const TempDir folder = *TempDir::Make("database-figures");
  const std::string path = folder.Join("kiln.db");
  EXPECT_EQ(TextOf(path), "");
  ASSERT_OK(WriteFileAtomically(path, std::string(1'000, 'x')));
  EXPECT_THAT(
      TextOf(path),
      AllOf(HasSubstr("kiln_database_bytes{file=\"main\"} 1000\n"), Not(HasSubstr("file=\"wal\"")),
            HasSubstr("kiln_database_disk_bytes "), HasSubstr("kiln_database_disk_free_bytes ")));
  ASSERT_OK(WriteFileAtomically(path + "-wal", std::string(10, 'x')));
  EXPECT_THAT(TextOf(path), HasSubstr("kiln_database_bytes{file=\"wal\"} 10\n"));
}

}  // namespace
}  // namespace kiln::scheduler
