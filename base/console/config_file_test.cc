#include "base/console/config_file.h"

#include <CLI/CLI.hpp>

#include "base/file/file.h"
#include "base/status_testing.h"

namespace kiln {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr std::string_view kTables[] = {"runner", "tracker"};

// A program with a flag of each type.
struct Program {
  Program() {
    app.add_option("--device", device, "what to measure on")->capture_default_str();
    app.add_option("--folder", folder, "where its files are");
    app.add_option("--threads", threads, "cores")->check(CLI::Range(0, 8))->capture_default_str();
    app.add_option("--seconds", seconds, "time")
        ->check(CLI::Range(0.0, 60.0))
        ->capture_default_str();
    app.add_option("--share", share, "a part")
        ->check([](const std::string& text) {
          return text.ends_with('%') ? "" : "found '" + text + "', expected a part, as in 25%";
        })
        ->type_name("PERCENT");
    app.add_flag("--careful", careful, "takes care");
    app.add_flag("--list", list, "prints a list")->configurable(false);
  }

  Status Apply(const std::string& text, std::vector<std::string> words = {}) {
    // CLI11 takes the words from the end.
    std::reverse(words.begin(), words.end());
    app.parse(words);
    return ApplyConfig({"k.toml", text}, kTables, "runner", app);
  }

  std::string device = "cpu", folder, share;
  int threads = 2;
  double seconds = 1.5;
  bool careful = false, list = false;
  CLI::App app{"Measures.", "runner"};
};

// Returns the message for a file that is refused.
std::string Refused(const std::string& text) {
  Program program;
  const Status status = program.Apply(text);
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  return std::string(Message(status));
}

TEST(ConfigFileTest, KeysOfTheTableAreFlags) {
  Program program;
  ASSERT_OK(
      program.Apply("[tracker]\nanything = 1\n"
                    "[runner]\ndevice = \"cuda\"\nthreads = 4\nseconds = 2\n"
                    "share = \"25%\"\ncareful = true\n"));
  EXPECT_EQ(program.device, "cuda");
  EXPECT_EQ(program.threads, 4);
  EXPECT_EQ(program.seconds, 2);
  EXPECT_EQ(program.share, "25%");
  EXPECT_TRUE(program.careful);
}

TEST(ConfigFileTest, TheCommandLineGoesFirst) {
  Program program;
  ASSERT_OK(program.Apply("[runner]\ndevice = \"cuda\"\nthreads = 4\ncareful = true\n",
                          {"--threads", "1", "--careful=false"}));
  EXPECT_EQ(program.device, "cuda");
  EXPECT_EQ(program.threads, 1);
  EXPECT_FALSE(program.careful);
}

TEST(ConfigFileTest, AFileWithoutTheTableChangesNothing) {
  Program program;
  ASSERT_OK(program.Apply("# nothing\n"));
  ASSERT_OK(program.Apply("[tracker]\n"));
  EXPECT_EQ(program.device, "cpu");
}

TEST(ConfigFileTest, AnEmptyTextIsNoValueWhereThereIsNoDefault) {
  Program program;
  ASSERT_OK(program.Apply("[runner]\nshare = \"\"\nfolder = \"\"\n"));
  EXPECT_EQ(program.app.get_option("--share")->count(), 0u);
  ASSERT_OK(program.Apply("[runner]\ndevice = \"\"\n"));
  EXPECT_EQ(program.device, "");
}

TEST(ConfigFileTest, UnknownNamesAreRefusedWithTheNearest) {
  EXPECT_EQ(Refused("[runner]\nthreads = 2\n\ndevise = \"cpu\"\n"),
            "k.toml, line 4: [runner] has no key \"devise\", did you mean device?");
  EXPECT_EQ(Refused("[runner]\nzzzzzzzz = 1\n"),
            "k.toml, line 2: [runner] has no key \"zzzzzzzz\"; `kiln config --defaults` prints all "
            "keys");
  EXPECT_EQ(Refused("\n[runer]\n"),
            "k.toml, line 2: \"runer\" is no daemon, expected one of runner, tracker, did you mean "
            "runner?");
  EXPECT_EQ(Refused("runner = 1\n"), "k.toml, line 1: runner is 1, expected a table: [runner]");
}

TEST(ConfigFileTest, FlagsThatAreNoSettingsAreNoKeys) {
  EXPECT_THAT(Refused("[runner]\nlist = true\n"), HasSubstr("has no key \"list\""));
  EXPECT_THAT(Refused("[runner]\nhelp = true\n"), HasSubstr("has no key \"help\""));
}

TEST(ConfigFileTest, WrongTypesAreRefused) {
  const std::string at = "k.toml, line 2: [runner] ";
  EXPECT_EQ(Refused("[runner]\nthreads = \"4\"\n"),
            at + "threads is the text \"4\", expected a whole number, 0 to 8");
  EXPECT_EQ(Refused("[runner]\nthreads = 1.5\n"),
            at + "threads is 1.5, expected a whole number, 0 to 8");
  EXPECT_EQ(Refused("[runner]\ndevice = 1\n"), at + "device is 1, expected a text in quotes");
  EXPECT_EQ(Refused("[runner]\ncareful = 1\n"), at + "careful is 1, expected true or false");
  EXPECT_EQ(Refused("[runner]\ndevice = [\"cpu\"]\n"),
            at + "device is a list, expected a text in quotes");
  EXPECT_EQ(Refused("[runner]\ndevice.x = 1\n"),
            at + "device is a table, expected a text in quotes");
  EXPECT_EQ(Refused("[runner]\nseconds = 2026-11-29\n"),
            at + "seconds is a date or time, expected a number, 0 to 60");
  EXPECT_THAT(Refused("[runner]\nseconds = nan\n"), HasSubstr("is nan, expected a number"));
}

TEST(ConfigFileTest, ValuesAreCheckedAsThoseOfFlags) {
  EXPECT_EQ(Refused("[runner]\nthreads = 9\n"),
            "k.toml, line 2: [runner] threads is 9, expected a whole number, 0 to 8");
  EXPECT_THAT(Refused("[runner]\nthreads = 9223372036854775807\n"), HasSubstr("0 to 8"));
  EXPECT_THAT(Refused("[runner]\nshare = \"25\"\n"),
              AllOf(HasSubstr("k.toml, line 2: [runner] "), HasSubstr("share"),
                    HasSubstr("found '25', expected a part, as in 25%")));
}

TEST(ConfigFileTest, WhatIsNoTomlIsRefusedWithItsLine) {
  EXPECT_THAT(Refused("[runner]\nthreads = \n"), HasSubstr("k.toml, line 2: expected TOML: "));
  EXPECT_THAT(Refused("[runner]\nthreads = 1\nthreads = 2\n"), HasSubstr("k.toml, line 3: "));
  EXPECT_THAT(Refused("[runner]\n\u00e9 = 1\n"), HasSubstr("k.toml, line 2: "));
  EXPECT_THAT(Refused(std::string("\0\xff", 2)), HasSubstr("k.toml, line 1: "));
}

TEST(ConfigFileTest, TheDefaultsAreAFileThatChangesNothing) {
  const std::string defaults = DefaultConfig("runner", Program().app);
  EXPECT_EQ(defaults,
            "# Measures.\n[runner]\n"
            "\n# what to measure on\ndevice = \"cpu\"\n"
            "\n# where its files are\nfolder = \"\"\n"
            "\n# cores; 0 to 8\nthreads = 2\n"
            "\n# time; 0 to 60\nseconds = 1.5\n"
            "\n# a part\nshare = \"\"\n"
            "\n# takes care\ncareful = false\n");
  Program program;
  ASSERT_OK(program.Apply(defaults));
  EXPECT_EQ(program.device, "cpu");
  EXPECT_EQ(program.threads, 2);
  EXPECT_EQ(program.seconds, 1.5);
  EXPECT_EQ(program.share, "");
  EXPECT_FALSE(program.careful);
}

TEST(ConfigFileTest, AFileThatCannotBeReadIsNamed) {
  ASSERT_OK_AND_ASSIGN(const TempDir folder, TempDir::Make("config-file"));
  EXPECT_THAT(ReadConfigFile(folder.Join("none.toml")),
              StatusIs(StatusCode::kNotFound, HasSubstr("none.toml")));
  ASSERT_OK(WriteFile(folder.Join("k.toml"), "[runner]\n"));
  ASSERT_OK_AND_ASSIGN(const ConfigFile file, ReadConfigFile(folder.Join("k.toml")));
  EXPECT_EQ(file.text, "[runner]\n");
  ASSERT_OK(WriteFile(folder.Join("large.toml"), std::string((1 << 20) + 1, '#')));
  EXPECT_THAT(ReadConfigFile(folder.Join("large.toml")),
              StatusIs(StatusCode::kResourceExhausted, HasSubstr("large.toml")));
}

}  // namespace
}  // namespace kiln
