#include "store/wire/record_message.h"

#include <gmock/gmock.h>
#include <google/protobuf/util/message_differencer.h>
#include <gtest/gtest.h>

#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "rpc/fields_testing.h"
#include "rpc/trace_context.h"

namespace kiln::store {
namespace {

using google::protobuf::util::MessageDifferencer;
using testing::ElementsAre;
using testing::IsEmpty;

// Returns a message with all fields that a store keeps.
v1::Record FullMessage() {
  v1::Record message;
  int next = 0;
  FillFields(message, next);
  message.mutable_result()->set_trace_id(TraceOfTrial(message.job_id(), message.trial()).trace_id);
  return message;
}

// Returns all fields of a record. A field that is added to the struct must be added here, or this
// does not compile; the tests below then ask that it is converted.
auto FieldsOf(const Record& record) {
  const auto& [id, job_id, task_index, trial, workload_id, workload_key, dag, target, hardware,
               device_model, steps, costs_s, error, message, build_s, run_s, timestamp_s, device,
               builder, runner, stopped_early, max_error, unchecked, flop_count, origin, score,
               remeasured_costs_s, confidence_s, remeasurements, remeasured_run_s,
               remeasured_device, sampled_outputs, times, measured_as, device_state, mark,
               target_host, layout_rewrite_option, input_names, equal_ids] = record;
  return std::make_tuple(
      id, job_id, task_index, trial, workload_id, workload_key, dag, target, hardware, device_model,
      steps, costs_s, error, message, build_s, run_s, timestamp_s, device, builder, runner,
      stopped_early, max_error, unchecked, flop_count, origin, score, remeasured_costs_s,
      confidence_s, remeasurements, remeasured_run_s, remeasured_device, sampled_outputs, times,
      measured_as, device_state, mark, target_host, layout_rewrite_option, input_names, equal_ids);
}

template <size_t... I>
std::vector<size_t> SameFields(const Record& a, const Record& b, std::index_sequence<I...>) {
  const auto of_a = FieldsOf(a);
  const auto of_b = FieldsOf(b);
  std::vector<size_t> same;
  (void)((std::get<I>(of_a) == std::get<I>(of_b) ? same.push_back(I) : void()), ...);
  return same;
}

// Returns the numbers of the equal fields, in the order of the struct.
std::vector<size_t> SameFields(const Record& a, const Record& b) {
  using Fields = decltype(FieldsOf(a));
  return SameFields(a, b, std::make_index_sequence<std::tuple_size_v<Fields>>());
}

TEST(RecordMessageTest, NoFieldOfTheMessageIsLost) {
  const v1::Record message = FullMessage();
  ASSERT_THAT(UnsetFields(message), IsEmpty());
  MessageDifferencer difference;
  std::string report;
  difference.ReportDifferencesToString(&report);
  EXPECT_TRUE(difference.Compare(message, RecordMessage(RecordOf(message)))) << report;
}

TEST(RecordMessageTest, EveryFieldOfTheRecordIsInTheMessage) {
  const Record record = RecordOf(FullMessage());
  EXPECT_THAT(SameFields(record, Record()), IsEmpty());
  EXPECT_EQ(FieldsOf(RecordOf(RecordMessage(record))), FieldsOf(record));
}

TEST(RecordMessageTest, AMessageHasTheRankOfItsRecord) {
  v1::Record message = FullMessage();
  for (const int error : {0, 4}) {
    message.mutable_result()->set_error(static_cast<v1::ErrorKind>(error));
    const Rank rank = RankOf(message), expected = RankOf(RecordOf(message));
    EXPECT_FALSE(rank < expected || expected < rank);
    EXPECT_EQ(rank.failed, error != 0);
    EXPECT_EQ(rank.id, message.id());
  }
}

TEST(RecordMessageTest, WhatIsNotSetStaysSo) {
  const Record record = RecordOf(RecordMessage(Record()));
  EXPECT_EQ(FieldsOf(record), FieldsOf(Record()));
  EXPECT_FALSE(RecordMessage(record).result().has_times());
  EXPECT_EQ(RecordMessage(record).result().trace_id(), "");
}

TEST(RecordMessageTest, TimesThatAreNoneAreNotKnown) {
  Record record;
  record.times = "\xff";
  EXPECT_FALSE(RecordMessage(record).result().has_times());
}

// A message that gains a field fails here until the filter has the field.
TEST(RecordMessage, EveryFieldOfARequestIsInTheFilter) {
  v1::ListRecordsRequest request;
  int next = 1;
  FillFields(request, next);
  EXPECT_EQ(request.GetDescriptor()->field_count(), 10);
  const RecordFilter filter = FilterOf(request);
  EXPECT_EQ(filter.job_id, request.job_id());
  EXPECT_EQ(filter.workload.id, request.workload_id());
  EXPECT_THAT(filter.workload.keys, testing::ElementsAreArray(request.workload_keys()));
  EXPECT_EQ(filter.target, request.target());
  EXPECT_EQ(filter.device, request.device());
  EXPECT_EQ(filter.since_s, request.since_s());
  EXPECT_EQ(filter.until_s, request.until_s());
  EXPECT_EQ(filter.key_prefix, request.key_prefix());
  EXPECT_EQ(filter.include_errors, request.include_errors());
  EXPECT_EQ(filter.top, request.top());
  EXPECT_GT(FilterOf(v1::ListRecordsRequest()).until_s, 1LL << 40) << "all";
  EXPECT_LT(FilterOf(v1::ListRecordsRequest()).since_s, 0) << "all";
}

}  // namespace
}  // namespace kiln::store
