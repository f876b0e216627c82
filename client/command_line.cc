#include "client/command_line.h"

#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "base/errno_status.h"
#include "base/log.h"
#include "client/job_syntax.h"
#include "client/record_syntax.h"
#include "client/syntax.h"
#include "client/tool_syntax.h"
#include "client/wording.h"
#include "compiler/dag/ops/epilogue.h"

namespace kiln::client {
namespace {

constexpr int kUsageExit = 2;

constexpr char kFooter[] =
    "Start here:  kiln tune matmul --args 512,512,512\n"
    "             kiln ops            the operators and their arguments\n"
    "Environment: KILN_SCHEDULER, KILN_TRACKER (HOST:PORT), KILN_DB stand for the flags.";

class CommandLine {
 public:
  explicit CommandLine(std::string program) : syntax_(std::move(program)) {
    app_.require_subcommand(1);
    app_.footer(kFooter);
    jobs_.AddTo(app_);
    records_.AddTo(app_);
    tools_.AddTo(app_);
    AddDaemons();
  }

  int Main(int argc, char** argv) {
    const std::vector<std::string> names = CommandNames();
    const std::string_view word = argc > 1 ? argv[1] : "-";
    if (!word.starts_with('-') && std::find(names.begin(), names.end(), word) == names.end()) {
      return UnknownCommand(std::string(word));
    }
    try {
      app_.parse(argc, argv);
    } catch (const CLI::Success& success) {
      return app_.exit(success);  // help
    } catch (const CLI::ParseError& error) {
      return WrongUsage(error);
    }
    const StatusOr<int> exit_status = GoUnlessOutputEnds();
    if (exit_status.ok()) return *exit_status;
    std::fflush(stdout);
    fmt::print(stderr, "kiln: {}\n", Message(exit_status.status()));
    return 1;
  }

 private:
  // fmt throws when output cannot be written. Whoever has read enough (`kiln ... | head`) has seen
  // no error; what was started here has been stopped on the way.
  StatusOr<int> GoUnlessOutputEnds() {
    constexpr int kBrokenPipeExit = 128 + SIGPIPE;
    int error = 0;
    try {
      StatusOr<int> exit_status = syntax_.RunNamed();
      if (std::fflush(stdout) == 0 || !exit_status.ok()) return exit_status;
      error = errno;
    } catch (const std::system_error& thrown) {
      error = thrown.code().value();
    }
    if (error == EPIPE) return kBrokenPipeExit;
    return Unavailable("cannot write the output: {}", ErrnoText(error));
  }

  std::vector<std::string> CommandNames() const {
    std::vector<std::string> names;
    for (const CLI::App* command : app_.get_subcommands([](const CLI::App*) { return true; })) {
      names.push_back(command->get_name());
    }
    return names;
  }

  int UnknownCommand(const std::string& word) const {
    const std::vector<std::string> names = CommandNames();
    const std::vector<std::string> closest = dag::ClosestNames(word, names);
    const std::string guess = closest.empty()
                                  ? std::string()
                                  : fmt::format(", did you mean {}?", fmt::join(closest, " or "));
    fmt::print(stderr, "kiln: there is no command '{}'{}{} commands: {}; see kiln --help\n", word,
               guess, guess.empty() ? ";" : "", fmt::join(names, ", "));
    return kUsageExit;
  }

  int WrongUsage(const CLI::ParseError& error) {
    std::string help = "kiln";
    const CLI::App* at = &app_;
    while (!at->get_subcommands().empty()) {
      at = at->get_subcommands()[0];
      help += " " + at->get_name();
    }
    std::string message = FirstLine(error.what());
    while (message.ends_with('.')) message.pop_back();
    fmt::print(stderr, "kiln: {}; see {} --help\n", message, help);
    return kUsageExit;
  }

  // For the help; main never gets here with them.
  void AddDaemons() {
    for (const auto& [name, what] :
         {std::pair{"tracker", "keeps the list of workers and leases them"},
          std::pair{"scheduler", "runs jobs and keeps the records"},
          std::pair{"builder", "compiles candidates"},
          std::pair{"runner", "checks and times programs on a device"}}) {
      app_.add_subcommand(name, what)->group("Daemons");
    }
  }

  CLI::App app_{
      "Kiln tunes tensor operators: it searches the schedules of a computation for the fastest "
      "correct program and keeps every measurement.",
      "kiln"};
  Syntax syntax_;
  JobSyntax jobs_{syntax_};
  RecordSyntax records_{syntax_};
  ToolSyntax tools_{syntax_};
};

}  // namespace

int RunCommandLine(int argc, char** argv) {
  InitLog("kiln");
  SetLogLevel(LogLevel::kWarn);
  CommandLine command_line(argv[0]);
  return command_line.Main(argc, argv);
}

}  // namespace kiln::client
