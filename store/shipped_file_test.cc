#include "store/shipped_file.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/hash/digest.h"
#include "base/status_testing.h"
#include "store/record_testing.h"

namespace kiln::store {
namespace {

using testing::HasSubstr;

std::vector<ShippedRecord> TwoRecords() {
  ShippedRecord first{.record = TestRecord("job", 7, 1.25e-3),
                      .description = "conv2d \"x\"",
                      .generator = 3,
                      .nvrtc = "12.4"};
  first.record.remeasured_costs_s = {1.1e-3, 1.2e-3, 1.3e-3};
  first.record.remeasurements = 90;
  first.record.confidence_s = 1e-6;
  first.record.layout_rewrite_option = 2;
  ShippedRecord second{.record = TestRecord("job", 8, 0.1), .description = "", .generator = 1};
  second.record.target = "llvm";
  return {first, second};
}

TEST(ShippedFileTest, GivesBackWhatCompilesAProgramAndWhereItsCostIsFrom) {
  const std::vector<ShippedRecord> records = TwoRecords();
  const std::string bytes = WriteShippedFile(records);
  EXPECT_TRUE(IsShippedFile(bytes));
  ASSERT_OK_AND_ASSIGN(const std::vector<ShippedRecord> read, ReadShippedFile(bytes));
  ASSERT_EQ(read.size(), 2U);
  for (size_t i = 0; i < read.size(); ++i) {
    const Record &found = read[i].record, &wanted = records[i].record;
    EXPECT_EQ(found.id, 0);
    EXPECT_EQ(found.job_id, kShippedJob);
    EXPECT_EQ(found.trial, i);
    EXPECT_EQ(found.workload_id, wanted.workload_id);
    EXPECT_EQ(found.workload_key, wanted.workload_key);
    EXPECT_EQ(found.dag, wanted.dag);
    EXPECT_EQ(found.target, wanted.target);
    EXPECT_EQ(found.hardware, wanted.hardware);
    EXPECT_EQ(found.steps, wanted.steps);
    EXPECT_EQ(Cost(found), Cost(wanted));
    EXPECT_EQ(found.remeasured_costs_s.empty(), wanted.remeasured_costs_s.empty());
    EXPECT_EQ(found.confidence_s, wanted.confidence_s);
    EXPECT_EQ(found.layout_rewrite_option, wanted.layout_rewrite_option);
    EXPECT_EQ(found.device, wanted.device);
    EXPECT_EQ(found.measured_as, wanted.measured_as);
    EXPECT_EQ(found.timestamp_s, wanted.timestamp_s);
    EXPECT_EQ(found.flop_count, wanted.flop_count);
    EXPECT_EQ(read[i].description, records[i].description);
    EXPECT_EQ(read[i].generator, records[i].generator);
    EXPECT_EQ(read[i].nvrtc, records[i].nvrtc);
  }
  EXPECT_EQ(WriteShippedFile(read), bytes);
}

TEST(ShippedFileTest, AFileOfNoBytesHasNoRecords) {
  ASSERT_OK_AND_ASSIGN(const std::vector<ShippedRecord> read, ReadShippedFile(""));
  EXPECT_TRUE(read.empty());
}

TEST(ShippedFileTest, RefusesAFileThatAnotherByteOrTheEndIsMissingOf) {
  const std::string bytes = WriteShippedFile(TwoRecords());
  for (size_t size = 1; size < bytes.size(); size += 7) {
    EXPECT_EQ(ReadShippedFile(bytes.substr(0, size)).status().code(), StatusCode::kInvalidArgument)
        << size;
  }
  for (size_t at = 0; at < bytes.size(); at += 11) {
    std::string changed = bytes;
    changed[at] = static_cast<char>(changed[at] ^ 1);
    EXPECT_FALSE(ReadShippedFile(changed).ok()) << at;
  }
  EXPECT_THAT(Message(ReadShippedFile("{}").status()), HasSubstr("kiln records ship"));
}

TEST(ShippedFileTest, RefusesAnotherVersionOfTheFormatByItsNumber) {
  std::string bytes = WriteShippedFile(TwoRecords());
  bytes.replace(bytes.find(" 1 "), 3, " 2 ");
  const Status refused = ReadShippedFile(bytes).status();
  EXPECT_EQ(refused.code(), StatusCode::kFailedPrecondition);
  EXPECT_THAT(Message(refused),
              HasSubstr("version 2 of the format, and this Kiln reads version 1"));
}

// The digest is right, so that the refusal is of what it protects.
TEST(ShippedFileTest, RefusesLinesThatAreNoRecords) {
  for (const std::string text : {"no JSON\n", "[1]\n", "{\"steps\": 1}\n", "{}\n",
                                 "{\"hardware\": [1, 2]}\n", "{\"cost_s\": \"1\"}\n"}) {
    const std::string bytes = fmt::format("kiln-records 1 {}\n{}", Sha256Hex(text), text);
    EXPECT_THAT(Message(ReadShippedFile(bytes).status()),
                testing::AllOf(HasSubstr("record 0 of the file"), HasSubstr("expected")))
        << text;
  }
}

TEST(ShippedFileTest, RefusesARecordThatCannotBe) {
  std::vector<ShippedRecord> records = TwoRecords();
  records[1].record.costs_s = {-1};
  EXPECT_THAT(Message(ReadShippedFile(WriteShippedFile(records)).status()),
              testing::AllOf(HasSubstr("record 1 of the file"), HasSubstr("positive")));
  records = TwoRecords();
  records[0].record.dag.clear();
  EXPECT_THAT(Message(ReadShippedFile(WriteShippedFile(records)).status()),
              HasSubstr("expected a computation"));
}

}  // namespace
}  // namespace kiln::store
