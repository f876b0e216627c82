// kiln config, and the files that it prints and checks.
#include "base/file/file.h"
#include "client/cli/kiln_testing.h"

namespace kiln::client {
namespace {

using testing::HasSubstr;

class ConfigTest : public KilnTest {};

TEST_F(ConfigTest, TheDefaultsAreAFileWithoutMistakes) {
  const std::string defaults = KilnPrints({"config", "--defaults"});
  for (const char* table : {"[tracker]\n", "[scheduler]\n", "[builder]\n", "[runner]\n"}) {
    EXPECT_THAT(defaults, HasSubstr(table));
  }
  EXPECT_THAT(defaults, HasSubstr("\nmax-jobs = "));
  const std::string file = File("kiln.toml", defaults);
  EXPECT_EQ(KilnPrints({"config", "--check", file}),
            file + ": names, types and ranges are right\n");
  EXPECT_EQ(KilnPrints({"runner", "--config", file, "--device", "null", "--list"}),
            KilnPrints({"runner", "--device", "null", "--list"}));
}

TEST_F(ConfigTest, EachTableHasItsFirstMistakeTold) {
  const std::string file =
      File("kiln.toml", "[runner]\ndevise = \"cpu\"\n[scheduler]\nmax-jobs = 0\n");
  const RunResult result = RunKiln({"config", "--check", file});
  EXPECT_EQ(result.exit.code, 1);
  EXPECT_EQ(result.error,
            "kiln: " + file +
                ", line 4: [scheduler] max-jobs is 0, expected a whole number, 1 to " +
                "1000\nkiln: " + file +
                ", line 2: [runner] has no key \"devise\", did you mean device?\n");
  EXPECT_THAT(Refused({"config", "--check", File("x.toml", "[runer]\n")}),
              HasSubstr("did you mean runner?"));
  EXPECT_THAT(Refused({"config", "--check", folder_.Join("none.toml")}), HasSubstr("none.toml"));
}

TEST_F(ConfigTest, ADaemonTakesItsTable) {
  const std::string file = File("kiln.toml", "[runner]\ndevice = \"null\"\n");
  EXPECT_EQ(KilnPrints({"runner", "--config", file, "--list"}),
            KilnPrints({"runner", "--device", "null", "--list"}));
  const RunResult result = RunKiln({"runner", "--config", File("k.toml", "[runner]\nx =\n")});
  EXPECT_EQ(result.exit.code, 2);
  EXPECT_THAT(result.error, HasSubstr("k.toml, line 2: expected TOML"));
}

TEST_F(ConfigTest, OneOfBothIsAskedFor) {
  EXPECT_THAT(Refused({"config"}), HasSubstr("expected --defaults or --check FILE"));
  EXPECT_THAT(Refused({"config", "--defaults", "--check", "x"}), HasSubstr("expected --defaults"));
}

}  // namespace
}  // namespace kiln::client
