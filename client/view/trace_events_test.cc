#include "client/view/trace_events.h"

#include <nlohmann/json.hpp>

#include "base/status_testing.h"

namespace kiln::client {
namespace {

class TraceEventsTest : public testing::Test {
 protected:
  nlohmann::json Finish() {
    EXPECT_OK(events_.Finish());
    return nlohmann::json::parse(text_);
  }

  std::string text_;
  TraceEvents events_{[this](std::string_view bytes) {
    text_ += bytes;
    return OkStatus();
  }};
};

TEST_F(TraceEventsTest, AFileWithoutEventsIsAFile) { EXPECT_TRUE(Finish()["traceEvents"].empty()); }

TEST_F(TraceEventsTest, EventsHaveTheFieldsOfTheFormat) {
  events_.NameGroup(2, "builder \"b1\"", 5);
  events_.NameLane(2, 1, "slot 1");
  events_.Slice(2, 1, "trial 17", 1'795'972'383'000'001, 2.5, {{"task", "3"}, {"error", ""}});
  events_.Slice(2, 1, "compile", 0.25, 1);
  events_.Counter(1, "trials", 10, {{"build", 3}, {"run", 1}});
  const nlohmann::json all = Finish()["traceEvents"];
  ASSERT_EQ(all.size(), 6u);
  EXPECT_EQ(all[0].dump(),
            R"({"args":{"name":"builder \"b1\""},"name":"process_name","ph":"M","pid":2})");
  EXPECT_EQ(all[1].dump(),
            R"({"args":{"sort_index":5},"name":"process_sort_index","ph":"M","pid":2})");
  EXPECT_EQ(all[2].dump(),
            R"({"args":{"name":"slot 1"},"name":"thread_name","ph":"M","pid":2,"tid":1})");
  EXPECT_EQ(all[3].dump(),
            R"({"args":{"task":"3"},"dur":2.5,"name":"trial 17","ph":"X","pid":2,"tid":1,)"
            R"("ts":1795972383000001})");
  EXPECT_EQ(all[4].dump(), R"({"dur":1,"name":"compile","ph":"X","pid":2,"tid":1,"ts":0.25})");
  EXPECT_EQ(all[5].dump(),
            R"({"args":{"build":3,"run":1},"name":"trials","ph":"C","pid":1,"ts":10})");
}

TEST_F(TraceEventsTest, AFileIsWrittenInPieces) {
  for (int i = 0; i < 2'000; ++i) events_.Slice(1, 1, std::string(100, 'x'), i, 1);
  EXPECT_GT(text_.size(), 200'000u);
  EXPECT_EQ(Finish()["traceEvents"].size(), 2'000u);
  EXPECT_EQ(events_.events(), 2'000);
}

TEST(TraceEventsErrorTest, TheFirstErrorOfTheSinkIsReturned) {
  int calls = 0;
  TraceEvents events([&](std::string_view) {
    ++calls;
    return Unavailable("the disk is full ({})", calls);
  });
  for (int i = 0; i < 2'000; ++i) events.Slice(1, 1, std::string(100, 'x'), i, 1);
  EXPECT_THAT(events.Finish(), StatusIs(StatusCode::kUnavailable, testing::HasSubstr("full (1)")));
  EXPECT_EQ(calls, 1);
}

}  // namespace
}  // namespace kiln::client
