#include "client/cli/config/daemon_apps.h"

#include <CLI/CLI.hpp>
#include <algorithm>

#include "base/console/config_file.h"
#include "base/server/daemon_program.h"
#include "base/status_testing.h"

namespace kiln::client {
namespace {

using testing::HasSubstr;

std::string AllDefaults() {
  std::string text;
  for (const DaemonApp& daemon : DaemonApps()) text += DefaultConfig(daemon.name, *daemon.app);
  return text;
}

// Returns all settings of a daemon with the values that they have now.
std::string ValuesNow(const DaemonApp& daemon) {
  std::string flags;
  for (CLI::Option* const option : daemon.app->get_options()) {
    option->capture_default_str();
    const bool is_flag = option->get_expected_min() == 0 && option->get_configurable();
    if (is_flag && option->count() > 0) {
      flags += fmt::format("{}={} ", option->get_name(), option->as<bool>());
    }
  }
  return flags + DefaultConfig(daemon.name, *daemon.app);
}

TEST(DaemonAppsTest, AreTheTablesOfAConfigurationFile) {
  std::vector<std::string_view> names;
  for (const DaemonApp& daemon : DaemonApps()) names.push_back(daemon.name);
  EXPECT_TRUE(std::ranges::equal(names, kDaemonNames));
}

TEST(DaemonAppsTest, AFileOfTheDefaultsIsLikeNone) {
  const ConfigFile file{"defaults.toml", AllDefaults()};
  const std::vector<DaemonApp> daemons = DaemonApps(), with_file = DaemonApps();
  for (size_t i = 0; i < daemons.size(); ++i) {
    const DaemonApp& daemon = daemons[i];
    const DaemonApp& configured = with_file[i];
    const std::string before = ValuesNow(daemon);
    ASSERT_OK(ApplyConfig(file, kDaemonNames, daemon.name, *configured.app));
    std::string after = ValuesNow(configured);
    // The file gives each flag the value that it has without the file.
    for (size_t at; (at = after.find("=false ")) != std::string::npos;) {
      after.erase(0, at + std::string_view("=false ").size());
    }
    EXPECT_EQ(before, after) << daemon.name;
  }
}

TEST(DaemonAppsTest, EachFlagOfADaemonIsAKeyUnlessItIsAnAction) {
  const std::string text = AllDefaults();
  for (const char* key : {"tracker = ", "db = ", "jobs = ", "device = ", "keys = ", "listen = ",
                          "http-port = ", "require-sandbox = ", "hours = "}) {
    EXPECT_THAT(text, HasSubstr(std::string("\n") + key)) << key;
  }
  for (const char* action : {"once", "output", "list", "help", "config"}) {
    EXPECT_EQ(text.find(fmt::format("\n{} = ", action)), std::string::npos) << action;
  }
}

}  // namespace
}  // namespace kiln::client
