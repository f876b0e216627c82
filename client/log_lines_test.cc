#include "client/log_lines.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "base/file/file.h"
#include "base/status_testing.h"
#include "store/import_log.h"

namespace kiln::client {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class LogLinesTest : public testing::Test {
 protected:
  std::vector<std::string> Lines(const std::string& text) {
    const std::string path = folder_.Join("log");
    EXPECT_OK(WriteFile(path, text));
    auto lines = LogLines::Open(path);
    EXPECT_OK(lines.status());
    std::vector<std::string> all;
    std::string line;
    while (*lines->Next(line)) all.push_back(line);
    EXPECT_FALSE(*lines->Next(line)) << "the end stays the end";
    return all;
  }

  TempDir folder_ = *TempDir::Make("log-lines-test");
};

TEST_F(LogLinesTest, LinesAreThoseBetweenLineFeeds) {
  EXPECT_THAT(Lines(""), ElementsAre());
  EXPECT_THAT(Lines("a\n\nb\n"), ElementsAre("a", "", "b"));
  EXPECT_THAT(Lines("a\nno feed at the end"), ElementsAre("a", "no feed at the end"));
  const std::string bytes("\0\xff\r", 3);
  EXPECT_THAT(Lines(bytes + "\nx"), ElementsAre(bytes, "x"));
  EXPECT_THAT(Lines("\xef\xbb\xbf"
                    "a\n\xef\xbb\xbf"
                    "b"),
              ElementsAre("a",
                          "\xef\xbb\xbf"
                          "b"))
      << "the mark of UTF-8 is no part of the first line";
  EXPECT_THAT(Lines("\xef\xbb\xbf"
                    "a"),
              ElementsAre("a"));
  const std::string longer_than_a_read(100'000, 'x');
  EXPECT_THAT(Lines(longer_than_a_read + "\n" + longer_than_a_read),
              ElementsAre(longer_than_a_read, longer_than_a_read));
}

TEST_F(LogLinesTest, ALineThatIsTooLongIsCut) {
  const auto lines = Lines("a\n" + std::string(store::kMaxLineBytes + 5'000, 'x') + "\nb\n");
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_EQ(lines[1].size(), store::kMaxLineBytes + 1);
  EXPECT_EQ(lines[2], "b");
}

TEST_F(LogLinesTest, WhatHasNoLinesIsRefused) {
  ASSERT_OK_AND_ASSIGN(LogLines zeros, LogLines::Open("/dev/zero"));
  std::string line;
  EXPECT_THAT(zeros.Next(line).status(),
              StatusIs(StatusCode::kInvalidArgument,
                       HasSubstr("/dev/zero, line 1: no end of the line within")));
  EXPECT_THAT(LogLines::Open(folder_.Join("none")).status(),
              StatusIs(StatusCode::kNotFound, HasSubstr("none")));
  ASSERT_OK_AND_ASSIGN(LogLines folder, LogLines::Open(folder_.path()));
  EXPECT_THAT(folder.Next(line).status().message(), HasSubstr("cannot read"));
}

TEST_F(LogLinesTest, VersionsThatAreNotKnownAreSaid) {
  const std::string path = folder_.Join("log");
  constexpr std::string_view kLine =
      R"({{"i": [["k", "t"], [[], []]], "r": [[1], 0, 1, 1], "v": "{}"}})";
  const auto text = [&](const std::string& version) {
    return fmt::format(fmt::runtime(kLine), version) + "\n";
  };
  ASSERT_OK(WriteFile(path, "# v0.9\n" + text("v0.6") + text("v0.9") + text("v0.8")));
  std::string remark;
  const auto visit = [](const store::MeasureLogLine&) { return OkStatus(); };
  EXPECT_OK(VisitLog(path, visit, &remark));
  EXPECT_THAT(remark, testing::StartsWith(
                          "2 lines of a version that is not known, the first is line 3, of v0.9"));
  ASSERT_OK(WriteFile(path, text("v0.6")));
  EXPECT_OK(VisitLog(path, visit, &remark));
  EXPECT_EQ(remark, "");
}

TEST_F(LogLinesTest, RecordsAreVisitedInTurn) {
  constexpr std::string_view kLine =
      R"({"i": [["k", "t"], [[], []]], "r": [[1], 0, 1, 1], "v": "v0.2"})";
  const std::string path = folder_.Join("log");
  int visited = 0;
  const auto visit = [&](const store::MeasureLogLine& line) {
    EXPECT_EQ(line.workload_key, "k");
    return ++visited < 3 ? OkStatus() : ResourceExhausted("enough");
  };
  ASSERT_OK(WriteFile(path, fmt::format("# none\n{}\n{}\n", kLine, kLine)));
  EXPECT_OK(VisitLog(path, visit));
  EXPECT_EQ(visited, 2);
  EXPECT_THAT(VisitLog(path, visit),
              StatusIs(StatusCode::kResourceExhausted, HasSubstr("log: line 2: enough")));
  ASSERT_OK(WriteFile(path, "{}\n"));
  EXPECT_THAT(VisitLog(path, visit),
              StatusIs(StatusCode::kInvalidArgument, HasSubstr("log: line 1: ")));
  ASSERT_OK(WriteFile(path, std::string(store::kMaxLineBytes + 1, '[')));
  EXPECT_THAT(VisitLog(path, visit),
              StatusIs(StatusCode::kInvalidArgument, HasSubstr("line 1: has more than 16 MiB")));
  EXPECT_THAT(VisitLog("/dev/zero", visit),
              StatusIs(StatusCode::kInvalidArgument, HasSubstr("no end")));
}

}  // namespace
}  // namespace kiln::client
