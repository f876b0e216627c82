// The one binary: client, daemons, and the children of both.
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include "base/process/process_guard.h"
#include "builder/child.h"
#include "builder/daemon.h"
#include "client/cli/command_line.h"
#include "client/daemon_child.h"
#include "runner/child.h"
#include "runner/daemon.h"
#include "scheduler/daemon.h"
#include "tracker/daemon.h"

namespace {

// "kiln help records import" means "kiln records import --help".
int Help(int argc, char** argv);

int Main(int argc, char** argv) {
  const std::string_view command = argc > 1 ? argv[1] : "";
  if (command == "help") return Help(argc, argv);
  if (command == "tracker") return kiln::tracker::TrackerMain(argc - 1, argv + 1);
  if (command == "scheduler") return kiln::scheduler::SchedulerMain(argc - 1, argv + 1);
  if (command == "builder")
    return kiln::builder::BuilderMain(argc - 1, argv + 1, {"builder-child"});
  if (command == "runner") return kiln::runner::RunnerMain(argc - 1, argv + 1, {"runner-child"});
  if (command == "builder-child") return kiln::builder::BuilderChildMain(argc - 1, argv + 1);
  if (command == "runner-child") return kiln::runner::RunnerChildMain(argc - 1, argv + 1);
  return kiln::client::RunCommandLine(argc, argv);
}

int Help(int argc, char** argv) {
  std::string help = "--help";
  std::vector<char*> words = {argv[0]};
  words.insert(words.end(), argv + 2, argv + argc);
  words.push_back(help.data());
  // "kiln help help" would otherwise never end.
  if (std::string_view(words[1]) == "help") words = {argv[0], help.data()};
  return Main(static_cast<int>(words.size()), words.data());
}

}  // namespace

int main(int argc, char** argv) {
  kiln::HideProcess();
  if (argc < 4 || std::string_view(argv[1]) != kiln::client::kClusterChild) {
    return Main(argc, argv);
  }
  const kiln::Status status = kiln::client::BecomeClusterChild(argv[2], argv[3]);
  if (!status.ok()) {
    fmt::print(stderr, "kiln: {}\n", kiln::Message(status));
    return 1;
  }
  argv[3] = argv[0];
  return Main(argc - 3, argv + 3);
}
