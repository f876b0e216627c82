#include "client/farm/farm_state.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <nlohmann/json.hpp>

#include "base/file/file.h"
#include "base/status_testing.h"

namespace kiln::client {
namespace {

using testing::HasSubstr;
using Json = nlohmann::ordered_json;

FarmState SomeState() {
  FarmState state;
  state.options = {.folder = "/f",
                   .db = "/f/kiln.db",
                   .workers = 3,
                   .devices = {"cpu", "cuda"},
                   .gpus = "0,1",
                   .authority = "/f/keys"};
  state.machine = "box1";
  state.supervisor = {4711, 123456789012, "boot"};
  state.user_keys = "/f/keys/alice";
  state.started_s = 1.5;
  state.up = true;
  state.processes = {{.name = "tracker",
                      .phase = FarmProcess::Phase::kServing,
                      .process = {4712, 17, "boot"},
                      .addresses = {"127.0.0.1:9190"},
                      .pages = "127.0.0.1:9191",
                      .log = "/f/tracker.log",
                      .restarts = 2,
                      .last_end = "exit status 1"},
                     {.name = "runner cuda:1",
                      .device = "NVIDIA H200 (GPU-1f0c)",
                      .cores = "14-15",
                      .phase = FarmProcess::Phase::kGivenUp,
                      .addresses = {"127.0.0.1:9491", "127.0.0.1:9492"},
                      .log = "/f/runner-cuda-1.log"}};
  state.notes = {"port 9190 is taken"};
  return state;
}

TEST(FarmState, IsReadAsItWasWritten) {
  const FarmState state = SomeState();
  ASSERT_OK_AND_ASSIGN(const FarmState read, ParseFarmState(FarmStateText(state)));
  EXPECT_EQ(read, state);
  EXPECT_EQ(read.AddressOf("runner cuda:1"), "127.0.0.1:9491");
  EXPECT_EQ(read.AddressOf("scheduler"), "");
  ASSERT_OK_AND_ASSIGN(const FarmState empty, ParseFarmState(FarmStateText({})));
  EXPECT_EQ(empty, FarmState());
}

// Every member of every object is needed, and of one type.
TEST(FarmState, AnythingElseIsRefused) {
  const Json good = Json::parse(FarmStateText(SomeState()));
  const auto code = [](const Json& json) { return ParseFarmState(json.dump()).status().code(); };
  ASSERT_EQ(code(good), absl::StatusCode::kOk);
  int tried = 0;
  const Json flat = good.flatten();
  for (const auto& [path, value] : flat.items()) {
    Json wrong = good;
    // No member of a state is null.
    wrong[Json::json_pointer(path)] = nullptr;
    EXPECT_EQ(code(wrong), absl::StatusCode::kDataLoss) << path;
    ++tried;
  }
  EXPECT_GT(tried, 25);
  for (const auto& [key, value] : good.items()) {
    Json without = good;
    without.erase(key);
    EXPECT_EQ(code(without), absl::StatusCode::kDataLoss) << key;
  }
  for (const char* text : {"", "{", "[]", "3", "{}", "\xff"}) {
    EXPECT_EQ(ParseFarmState(text).status().code(), absl::StatusCode::kDataLoss) << text;
  }
  Json negative = good;
  negative["supervisor"]["pid"] = -1;
  EXPECT_THAT(Message(ParseFarmState(negative.dump()).status()), HasSubstr("'pid' is not"));
  Json later = good;
  later["format"] = 4;
  EXPECT_THAT(Message(ParseFarmState(later.dump()).status()), HasSubstr("'format' is not 3"));
}

TEST(FarmState, TheFileIsItsOwnersAlone) {
  ASSERT_OK_AND_ASSIGN(const TempDir folder, TempDir::Make("kiln-farm-state"));
  const std::string path = folder.Join("farm.json");
  EXPECT_EQ(ReadFarmState(path).status().code(), absl::StatusCode::kNotFound);
  ASSERT_OK(WriteFarmState(path, SomeState()));
  struct stat info = {};
  ASSERT_EQ(stat(path.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
  ASSERT_OK_AND_ASSIGN(const FarmState read, ReadFarmState(path));
  EXPECT_EQ(read, SomeState());
  ASSERT_OK(WriteFile(path, "{"));
  EXPECT_THAT(Message(ReadFarmState(path).status()),
              testing::AllOf(HasSubstr(path), HasSubstr("delete it")));
}

}  // namespace
}  // namespace kiln::client
