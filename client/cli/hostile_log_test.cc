// Logs that are too long, too large or no logs at all, by the real binary through a pipe: errors
// name the line, the rest is imported, and memory stays bounded.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <optional>
#include <random>

#include "base/file/file.h"
#include "client/cli/kiln_testing.h"

namespace kiln::client {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr int64_t kMiB = int64_t{1} << 20;

// The program with its libraries takes some 60 MiB, the database's pages take 64 MiB, and several
// copies of a line of 16 MiB exist while it is read and written.
constexpr int64_t kMaxBytes = 320 * kMiB;

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

// Runs an import whose log is written while it is made: a log that this process held would count as
// memory of its child.
class PipedImport {
 public:
  explicit PipedImport(const std::string& db) {
    SubprocessOptions options = KilnOptions({"records", "import", "-", "--db", db});
    options.input = SubprocessOptions::Stream::kPipe;
    auto kiln = Subprocess::Spawn(options);
    EXPECT_OK(kiln.status());
    kiln_.emplace(*std::move(kiln));
  }

  void Write(std::string_view text) { client::Write(kiln_->input().get(), text); }
  RunResult Finish() {
    kiln_->input().Reset();
    RunResult result;
    result.output = ReadAll(kiln_->output().get());
    result.error = ReadAll(kiln_->error().get());
    const auto exit = kiln_->Wait(absl::Minutes(1));
    EXPECT_OK(exit.status());
    if (exit.ok()) result.exit = *exit;
    return result;
  }

 private:
  std::optional<Subprocess> kiln_;
};

class HostileLogTest : public KilnTest {
 protected:
  Words Import() const { return {"records", "import", "-", "--db", db_}; }
  size_t Records() const {
    return JsonLines(KilnPrints({"records", "list", "--json", "--db", db_})).size();
  }
};

TEST_F(HostileLogTest, ALineOfAGigabyteIsRefusedAndTheRestIsTaken) {
  PipedImport import(db_);
  import.Write(GoodLine(1));
  import.Write(R"({"i": [["[\"k\"]", ")");
  const std::string part(kMiB, 'x');
  for (int i = 0; i < 1024; ++i) import.Write(part);
  import.Write("\n" + GoodLine(2) + GoodLine(3).substr(0, 50));
  const RunResult result = import.Finish();
  EXPECT_EQ(result.exit.code, 1);
  EXPECT_THAT(result.output, AllOf(HasSubstr("2 imported"), HasSubstr("2 refused")));
  EXPECT_THAT(result.error, AllOf(HasSubstr("line 2: it has more than 16777216 bytes"),
                                  HasSubstr("line 4: "), HasSubstr("found the end of the line")));
  EXPECT_LT(result.exit.max_rss_bytes, kMaxBytes);
  EXPECT_EQ(Records(), 2u);
}

TEST_F(HostileLogTest, LongLinesAreNotGatheredInMemory) {
  PipedImport import(db_);
  const std::string part(kMiB, ' ');
  constexpr int kLines = 36;
  for (int i = 0; i < kLines; ++i) {
    import.Write(R"({"input": ["llvm", "t", [")");
    for (int megabytes = 0; megabytes < 12; ++megabytes) import.Write(part);
    import.Write(
        fmt::format(R"("], {{}}], "config": {{"index": {}, "code_hash": null, "entity": []}}, )"
                    R"("result": [[0.5], 0, 1.0, 2.5], "version": 0.2}})"
                    "\n",
                    i));
  }
  const RunResult result = import.Finish();
  EXPECT_TRUE(result.exit.ok()) << result.error;
  EXPECT_THAT(result.output, HasSubstr(fmt::format("{} imported", kLines)));
  EXPECT_LT(result.exit.max_rss_bytes, kMaxBytes);
}

TEST_F(HostileLogTest, WhatIsNoLogIsRefusedLineByLine) {
  constexpr unsigned kSeed = 7;
  std::mt19937 rng(kSeed);
  PipedImport import(db_);
  std::string noise(kMiB, '\0');
  for (int i = 0; i < 8; ++i) {
    std::ranges::generate(noise, [&] { return static_cast<char>(rng()); });
    import.Write(noise);
  }
  import.Write("\n" + GoodLine(1));
  const RunResult result = import.Finish();
  EXPECT_EQ(result.exit.code, 1);
  EXPECT_THAT(result.output, HasSubstr("1 imported"));
  EXPECT_THAT(result.error, AllOf(HasSubstr("line 1: it is no valid UTF-8"), HasSubstr(" more")));
  EXPECT_LT(result.exit.max_rss_bytes, kMaxBytes);
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
