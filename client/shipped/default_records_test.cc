#include "client/shipped/default_records.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file/file.h"
#include "base/status_testing.h"
#include "compiler/codegen/generator_version.h"
#include "compiler/schedule/fit.h"
#include "store/record_testing.h"

namespace kiln::client {
namespace {

using testing::HasSubstr;

// A change of the generator that makes all shipped records misses needs a new file.
TEST(DefaultRecordsTest, TheFileInTheProgramIsOfThisGeneratorAndItsStepsApply) {
  ASSERT_OK_AND_ASSIGN(const auto records, DefaultRecords().Read());
  for (const store::ShippedRecord& shipped : records) {
    EXPECT_EQ(shipped.generator, codegen::kGeneratorVersion);
    EXPECT_OK(schedule::CheckFit(shipped.record.dag, shipped.record.steps));
    EXPECT_NE(shipped.record.device, "");
  }
}

TEST(DefaultRecordsTest, AnotherFileTakesThePlaceOfTheOneInTheProgram) {
  const TempDir folder = *TempDir::Make("default-records-test");
  DefaultRecords defaults;
  defaults.path = folder.Join("x.records");
  EXPECT_EQ(defaults.Read().status().code(), StatusCode::kNotFound);
  store::ShippedRecord shipped{.record = store::TestRecord("job", 1), .generator = 1};
  std::string bytes = store::WriteShippedFile({&shipped, 1});
  ASSERT_OK(WriteFile(defaults.path, bytes));
  ASSERT_OK_AND_ASSIGN(const auto records, defaults.Read());
  EXPECT_EQ(records.size(), 1U);
  bytes.back() = static_cast<char>(bytes.back() + 1);
  ASSERT_OK(WriteFile(defaults.path, bytes));
  EXPECT_THAT(defaults.Read(), StatusIs(StatusCode::kInvalidArgument, HasSubstr(defaults.path)));
  defaults.left_out = true;
  ASSERT_OK_AND_ASSIGN(const auto none, defaults.Read());
  EXPECT_TRUE(none.empty());
}

TEST(DefaultRecordsTest, ADamagedFileIsAnErrorAndAnAbsentDatabaseIsNone) {
  const TempDir folder = *TempDir::Make("default-records-test");
  Session session;
  session.db = folder.Join("kiln.db");
  DefaultRecords defaults;
  defaults.left_out = true;
  EXPECT_THAT(OpenBestRecords(session, defaults),
              StatusIs(StatusCode::kNotFound, HasSubstr("no database")));
  defaults.left_out = false;
  defaults.path = folder.Join("x.records");
  ASSERT_OK(WriteFile(defaults.path, "kiln-records 1 "));
  EXPECT_THAT(OpenBestRecords(session, defaults),
              StatusIs(StatusCode::kInvalidArgument, HasSubstr("damaged")));
  const store::ShippedRecord shipped{.record = store::TestRecord("job", 1), .generator = 1};
  ASSERT_OK(WriteFile(defaults.path, store::WriteShippedFile({&shipped, 1})));
  ASSERT_OK_AND_ASSIGN(const auto archive, OpenBestRecords(session, defaults));
  EXPECT_THAT(archive->Name(), HasSubstr("the records of " + defaults.path));
}

}  // namespace
}  // namespace kiln::client
