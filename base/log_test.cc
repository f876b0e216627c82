#include "base/log.h"

#include <unistd.h>

#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "base/log_format.h"
#include "base/log_scope.h"
#include "base/status_testing.h"

namespace kiln {
namespace {

using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;
using testing::MatchesRegex;

// Collects the lines of one test and restores the defaults.
class LogTest : public testing::Test {
 protected:
  void SetUp() override {
    SetLogSink([this](std::string_view line) { lines_.emplace_back(line); });
  }
  void TearDown() override {
    SetLogSink(nullptr);
    SetLogLevel(LogLevel::kInfo);
    SetLogFormat(LogFormat::kText);
  }
  std::vector<std::string> lines_;
};

TEST_F(LogTest, LineHasTimeProcessAndLevel) {
  InitLog("oven");
  LogInfo("{} loaves", 3);
  LogWarn("hot");
  LogError("burnt");
  ASSERT_EQ(lines_.size(), 3u);
  EXPECT_THAT(lines_[0],
              MatchesRegex("[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2}:[0-9]{2}[.][0-9]{3} "
                           "oven info: 3 loaves"));
  EXPECT_THAT(lines_[1], EndsWith("oven warn: hot"));
  EXPECT_THAT(lines_[2], EndsWith("oven error: burnt"));
}

TEST_F(LogTest, BracesInAMessageAreNotFormattedAgain) {
  LogInfo("{}", "{} {0} %v");
  ASSERT_EQ(lines_.size(), 1u);
  EXPECT_THAT(lines_[0], EndsWith("info: {} {0} %v"));
}

TEST_F(LogTest, LevelHidesWhatIsBelow) {
  LogDebug("hidden");
  ASSERT_OK(SetLogLevel("debug"));
  LogDebug("shown");
  ASSERT_OK(SetLogLevel("error"));
  LogWarn("hidden");
  LogError("shown too");
  EXPECT_THAT(lines_, ElementsAre(EndsWith("debug: shown"), EndsWith("error: shown too")));
}

TEST_F(LogTest, UnknownLevelIsRefused) {
  EXPECT_THAT(SetLogLevel("loud"),
              StatusIs(StatusCode::kInvalidArgument, HasSubstr("'loud', expected debug, info")));
  EXPECT_EQ(GetLogLevel(), LogLevel::kInfo);
}

TEST_F(LogTest, LinesOfThreadsDoNotMix) {
  constexpr int kThreads = 8, kLines = 200;
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < kThreads; ++t) {
      threads.emplace_back([t] {
        for (int i = 0; i < kLines; ++i) LogInfo("{}", std::string(50, static_cast<char>('a' + t)));
      });
    }
    // Renames while the others write.
    InitLog("renamed");
  }
  ASSERT_EQ(lines_.size(), size_t{kThreads * kLines});
  for (const std::string& line : lines_) {
    const std::string tail = line.substr(line.size() - 50);
    EXPECT_EQ(tail, std::string(50, tail[0]));
  }
}

TEST_F(LogTest, ALineOfJsonHasWhatTheTextHas) {
  InitLog("oven");
  ASSERT_OK(SetLogFormat("json"));
  LogWarn("{} \"loaves\"\n{}", 3, "{} \x1b[2J");
  ASSERT_EQ(lines_.size(), 1u);
  const auto line = nlohmann::json::parse(lines_[0]);
  EXPECT_THAT(line["time"].get<std::string>(),
              MatchesRegex("[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}[.][0-9]{3}Z"));
  EXPECT_EQ(line["level"].get<std::string>(), "warn");
  EXPECT_EQ(line["process"].get<std::string>(), "oven");
  EXPECT_EQ(line["pid"].get<int>(), getpid());
  EXPECT_EQ(line["message"].get<std::string>(), "3 \"loaves\"\n{} \x1b[2J");
  EXPECT_FALSE(line.contains("job"));
  EXPECT_FALSE(line.contains("trace_id"));
}

TEST_F(LogTest, LinesOfJsonNameWhatTheThreadWorksFor) {
  SetLogFormat(LogFormat::kJson);
  {
    const LogScope outer({.job = "3f2a"});
    {
      const LogScope inner({.job = "3f2a", .trial = "3f2a/17", .trace_id = "0af7"});
      LogInfo("inside");
      std::jthread([] { LogInfo("another thread"); });
    }
    LogInfo("around");
  }
  LogInfo("outside");
  ASSERT_EQ(lines_.size(), 4u);
  const auto of = [&](size_t i, const char* name) {
    return nlohmann::json::parse(lines_[i]).value(name, std::string());
  };
  EXPECT_EQ(of(0, "trial"), "3f2a/17");
  EXPECT_EQ(of(0, "trace_id"), "0af7");
  EXPECT_EQ(of(1, "trial"), "");
  EXPECT_EQ(of(2, "job"), "3f2a");
  EXPECT_EQ(of(2, "trial"), "");
  EXPECT_EQ(of(3, "job"), "");
}

TEST_F(LogTest, UnknownFormatIsRefused) {
  EXPECT_THAT(SetLogFormat("xml"),
              StatusIs(StatusCode::kInvalidArgument, HasSubstr("'xml', expected text or json")));
}

TEST(DebugLevelTest, ReadsTheListOfAreas) {
  EXPECT_EQ(DebugLevelIn("lower=2,search=1", "lower"), 2);
  EXPECT_EQ(DebugLevelIn("lower=2,search=1", "search"), 1);
  EXPECT_EQ(DebugLevelIn("lower=2,search=1", "low"), 0);
  EXPECT_EQ(DebugLevelIn("lower", "lower"), 1);
  EXPECT_EQ(DebugLevelIn("all=3,lower=1", "lower"), 3);
  EXPECT_EQ(DebugLevelIn("lower=x,,=,lower=-", "lower"), 0);
  EXPECT_EQ(DebugLevelIn("", "lower"), 0);
}

}  // namespace
}  // namespace kiln
