// Logs that are too long, too large or no logs at all, by the real binary through a pipe: what is
// wrong is said by line number, the rest is imported, and memory stays bounded.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <random>

#include "base/file.h"
#include "client/cli/kiln_testing.h"

namespace kiln::client {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr int64_t kMiB = int64_t{1} << 20;

// A program with all its libraries takes some 60 MiB; a line may have 16.
constexpr int64_t kMostBytes = 256 * kMiB;

std::string GoodLine(int64_t timestamp_s) {
  return fmt::format(
      R"({{"i": [["[\"k\"]", "llvm"], [[], []]], "r": [[0.001], 0, 0.5, {}], "v": "v0.2"}})"
      "\n",
      timestamp_s);
}

std::string ReadAll(int fd) {
  std::string all;
  char buffer[4096];
  for (ssize_t size = 0; (size = read(fd, buffer, sizeof(buffer))) > 0;) {
    all.append(buffer, static_cast<size_t>(size));
  }
  return all;
}

void Write(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t size = write(fd, text.data(), text.size());
    ASSERT_GT(size, 0);
    text.remove_prefix(static_cast<size_t>(size));
  }
}

class HostileLogTest : public testing::Test {
 protected:
  std::vector<std::string> Import() const { return {"records", "import", "-", "--db", db_}; }
  size_t Records() const {
    return JsonLines(KilnPrints({"records", "list", "--json", "--db", db_})).size();
  }

  TempDir folder_ = *TempDir::Make("hostile-log-test");
  const std::string db_ = folder_.Join("kiln.db");
};

TEST_F(HostileLogTest, ALineOfAGigabyteIsRefusedAndTheRestIsTaken) {
  SubprocessOptions options = KilnOptions(Import());
  options.input = SubprocessOptions::Stream::kPipe;
  ASSERT_OK_AND_ASSIGN(Subprocess kiln, Subprocess::Spawn(options));
  const int input = kiln.input().get();
  Write(input, GoodLine(1));
  Write(input, R"({"i": [["[\"k\"]", ")");
  const std::string part(1 << 20, 'x');
  for (int i = 0; i < 1024; ++i) Write(input, part);
  Write(input, "\n" + GoodLine(2) + GoodLine(3).substr(0, 50));
  kiln.input().reset();
  const std::string output = ReadAll(kiln.output().get()), error = ReadAll(kiln.error().get());
  ASSERT_OK_AND_ASSIGN(const ExitStatus exit, kiln.Wait(absl::Minutes(1)));
  EXPECT_EQ(exit.code, 1);
  EXPECT_THAT(output, AllOf(HasSubstr("2 imported"), HasSubstr("2 refused")));
  EXPECT_THAT(error, AllOf(HasSubstr("line 2: it has more than 16777216 bytes"),
                           HasSubstr("line 4: "), HasSubstr("found the end of the line")));
  EXPECT_LT(exit.max_rss_bytes, kMostBytes);
  EXPECT_EQ(Records(), 2u);
}

TEST_F(HostileLogTest, LongLinesAreNotGatheredInMemory) {
  const std::string arguments(12 * kMiB, ' ');
  std::string log;
  constexpr int kLines = 24;
  for (int i = 0; i < kLines; ++i) {
    log += fmt::format(
        R"({{"input": ["llvm", "t", ["{}"], {{}}], "config": {{"index": {}, "code_hash": null, )"
        R"("entity": []}}, "result": [[0.5], 0, 1.0, 2.5], "version": 0.2}})"
        "\n",
        arguments, i);
  }
  const RunResult result = RunKiln(Import(), log);
  EXPECT_TRUE(result.exit.ok()) << result.error;
  EXPECT_THAT(result.output, HasSubstr(fmt::format("{} imported", kLines)));
  EXPECT_LT(result.exit.max_rss_bytes, kMostBytes);
}

TEST_F(HostileLogTest, WhatIsNoLogIsRefusedLineByLine) {
  constexpr unsigned kSeed = 7;
  std::mt19937 rng(kSeed);
  std::string noise(4 * kMiB, '\0');
  std::ranges::generate(noise, [&] { return static_cast<char>(rng()); });
  noise += "\n" + GoodLine(1);
  const RunResult result = RunKiln(Import(), noise);
  EXPECT_EQ(result.exit.code, 1);
  EXPECT_THAT(result.output, HasSubstr("1 imported"));
  EXPECT_THAT(result.error, AllOf(HasSubstr("line 1: it is no valid UTF-8"), HasSubstr(" more")));
  EXPECT_LT(result.exit.max_rss_bytes, kMostBytes);
}

TEST_F(HostileLogTest, OtherEncodingsAreSaidToBeThat) {
  std::string utf16 = "\xff\xfe";
  for (const char c : GoodLine(1)) utf16 += std::string(1, c) + '\0';
  const RunResult result = RunKiln(Import(), utf16);
  EXPECT_THAT(result.error, AllOf(HasSubstr("line 1: it is UTF-16"), HasSubstr("iconv")));
  // The mark that Windows puts in front of UTF-8 does no harm.
  EXPECT_THAT(KilnPrints(Import(), "\xef\xbb\xbf" + GoodLine(1)), HasSubstr("1 imported"));
}

}  // namespace
}  // namespace kiln::client
