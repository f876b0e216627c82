#include "base/console/usage.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <CLI/CLI.hpp>
#include <sstream>

namespace kiln {
namespace {

using testing::HasSubstr;
using testing::Not;

// Makes "kiln" with the commands tune and records import.
class UsageTest : public testing::Test {
 protected:
  UsageTest() {
    PlainHelp(app_);
    app_.require_subcommand(1);
    CLI::App* tune = app_.add_subcommand("tune", "tune an operator");
    tune->add_option("op", op_, "an operator");
    tune->add_option("--trials", trials_, "candidates to measure")
        ->check(CLI::Range(1u, 10'000'000u))
        ->capture_default_str();
    tune->add_option("--objective", objective_,
                     "of the tasks' latencies, what is to be small in the end, in so many words")
        ->check(CLI::IsMember({"sum", "max"}));
    tune->add_option("--rounds", trials_, "how many");
    tune->add_option("--tracker", op_, "where it is")->type_name("HOST:PORT");
    CLI::App* records = app_.add_subcommand("records", "records in and out");
    records->require_subcommand(1);
    records->add_subcommand("import", "add lines");
    records->add_subcommand("export", "print lines");
  }

  std::string Wrong(std::vector<const char*> words) {
    words.insert(words.begin(), "kiln");
    try {
      app_.parse(static_cast<int>(words.size()), words.data());
    } catch (const CLI::ParseError& error) {
      return UsageError(app_, error);
    }
    return "nothing is wrong";
  }

  CLI::App app_{"Kiln tunes.", "kiln"};
  std::string op_, objective_;
  uint32_t trials_ = 64;
};

TEST_F(UsageTest, HelpIsInPlainWordsAndFits) {
  const std::string help = app_.get_subcommand("tune")->help("kiln tune");
  EXPECT_THAT(help,
              HasSubstr("  --trials N                candidates to measure; 1 to 10000000 [64]\n"));
  EXPECT_THAT(help, HasSubstr("in so many words; one of: sum, max\n"));
  EXPECT_THAT(help, HasSubstr("  --tracker HOST:PORT       where it is\n"));
  for (const char* raw : {"UINT", "in [", "{", "}"}) EXPECT_THAT(help, Not(HasSubstr(raw)));
  std::istringstream lines(help + app_.help());
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 80u) << line;
}

TEST_F(UsageTest, TheOptionsThatMostPeopleNeedStandFirst) {
  CLI::App* tune = app_.get_subcommand("tune");
  tune->get_option("--tracker")->group(kMostUsed);
  const std::string help = tune->help("kiln tune");
  EXPECT_LT(help.find("Most used:"), help.find("--tracker"));
  EXPECT_LT(help.find("--tracker"), help.find("--help"));
  EXPECT_LT(help.find("--tracker"), help.find("--trials"));
  EXPECT_EQ(help.find("--tracker", help.find("--tracker") + 1), std::string::npos) << "once";
}

TEST_F(UsageTest, ACommandThatNeedsAnotherIsBare) {
  const auto bare = [&](std::vector<const char*> words) -> std::string {
    words.insert(words.begin(), "kiln");
    try {
      app_.parse(static_cast<int>(words.size()), words.data());
    } catch (const CLI::ParseError& error) {
      const CLI::App* at = BareCommand(app_, error);
      return at == nullptr ? "something else" : at->get_name();
    }
    return "nothing is wrong";
  };
  EXPECT_EQ(bare({}), "kiln");
  EXPECT_EQ(bare({"records"}), "records");
  EXPECT_EQ(bare({"records", "exprot"}), "something else");
  EXPECT_EQ(bare({"tune", "--trials", "0"}), "something else");
}

TEST_F(UsageTest, AMistypedFlagIsGuessed) {
  EXPECT_EQ(Wrong({"tune", "--trails", "5"}),
            "there is no flag --trails, did you mean --trials? See kiln tune --help");
  EXPECT_EQ(Wrong({"tune", "matmul", "-trials=5"}),
            "there is no flag -trials, did you mean --trials? See kiln tune --help");
  EXPECT_EQ(Wrong({"tune", "--frobnicate"}), "there is no flag --frobnicate; see kiln tune --help");
}

TEST_F(UsageTest, AMistypedCommandIsGuessed) {
  EXPECT_EQ(Wrong({"tnue", "--trials", "5"}),
            "there is no command 'tnue', did you mean tune? See kiln --help");
  EXPECT_EQ(Wrong({"records", "exprot"}),
            "there is no command 'exprot', did you mean export? See kiln records --help");
  EXPECT_EQ(Wrong({"xyzzy", "tune"}),
            "there is no command 'xyzzy'; there are: tune, records; see kiln --help");
}

TEST_F(UsageTest, WhatIsMissingOrTooMuchIsSaid) {
  EXPECT_EQ(Wrong({}), "a command is missing: tune, records; see kiln --help");
  EXPECT_EQ(Wrong({"records"}), "a command is missing: import, export; see kiln records --help");
  EXPECT_EQ(Wrong({"tune", "matmul", "8,8,8"}),
            "'8,8,8' is one word too many; see kiln tune --help");
  EXPECT_THAT(Wrong({"tune", "--trials", "0"}), HasSubstr("not in range 1 to 10000000"));
  EXPECT_THAT(Wrong({"tune", "--trials"}), HasSubstr("--trials"));
  EXPECT_EQ(Wrong({"tune", "--rounds", "x"}),
            "--rounds: found 'x', expected a number; see kiln tune --help");
}

}  // namespace
}  // namespace kiln
