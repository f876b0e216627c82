#include "client/cli/command_line.h"

#include <CLI/CLI.hpp>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "base/errno_status.h"
#include "base/log.h"
#include "base/usage.h"
#include "base/utf8.h"
#include "client/cli/choice_flag_table.h"
#include "client/cli/flag_table.h"
#include "client/cli/job_flag_table.h"
#include "client/cli/model_flag_table.h"
#include "client/cli/record_flag_table.h"
#include "client/cli/tool_flag_table.h"
#include "client/cli/version.h"

namespace kiln::client {
namespace {

constexpr char kFooter[] =
    "Start here:  kiln tune matmul --args 512,512,512\n"
    "             kiln ops            the operators and their arguments\n"
    "Environment: KILN_SCHEDULER, KILN_TRACKER (HOST:PORT), KILN_DB,\n"
    "             KILN_SECRET_FILE stand for the flags.";

class CommandLine {
 public:
  explicit CommandLine(std::string program) : flag_table_(std::move(program)) {
    PlainHelp(app_);
    app_.require_subcommand(1);
    app_.footer(kFooter);
    app_.set_version_flag("--version", VersionText, "print the version and those of libraries");
    jobs_.AddTo(app_);
    records_.AddTo(app_);
    choices_.AddTo(app_);
    models_.AddTo(app_);
    tools_.AddTo(app_);
    AddDaemons();
  }

  int Main(int argc, char** argv) {
    try {
      app_.parse(argc, argv);
    } catch (const CLI::Success& success) {
      // A command that does not exist gets no help: CLI11 sees the flag before it sees the word.
      const std::vector<std::string> words = app_.remaining();
      if (words.empty() || !app_.get_subcommands().empty()) return app_.exit(success);
      return Refuse(CLI::ExtrasError("kiln", words));
    } catch (const CLI::ParseError& error) {
      return Refuse(error);
    }
    const StatusOr<int> exit_status = GoUnlessOutputEnds();
    if (exit_status.ok()) return *exit_status;
    std::fflush(stdout);
    fmt::print(stderr, "kiln: {}\n", Printable(Message(exit_status.status())));
    return 1;
  }

 private:
  // `kiln` alone, or `kiln records`, prints the help.
  int Refuse(const CLI::ParseError& error) {
    if (BareCommand(app_, error) != nullptr) {
      fmt::print("{}", app_.help());
      return 0;
    }
    fmt::print(stderr, "kiln: {}\n", Printable(UsageError(app_, error)));
    return kUsageExit;
  }

  // Runs the command. fmt throws when output cannot be written. If the reader has read enough
  // (`kiln ...
  //  head`), that is no error for the user, and unwinding has stopped what was started here.
  StatusOr<int> GoUnlessOutputEnds() {
    constexpr int kBrokenPipeExit = 128 + SIGPIPE;
    int error = 0;
    try {
      StatusOr<int> exit_status = flag_table_.RunNamed();
      if (std::fflush(stdout) == 0 || !exit_status.ok()) return exit_status;
      error = errno;
    } catch (const std::system_error& thrown) {
      error = thrown.code().value();
    }
    if (error == EPIPE) return kBrokenPipeExit;
    return Unavailable("cannot write the output: {}", ErrnoText(error));
  }

  // Lists the daemons in the help. main runs them itself.
  void AddDaemons() {
    app_.add_subcommand("help", "this, or with a COMMAND its flags");
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
  FlagTable flag_table_;
  JobFlagTable jobs_{flag_table_};
  RecordFlagTable records_{flag_table_};
  ChoiceFlagTable choices_{flag_table_};
  ModelFlagTable models_{flag_table_};
  ToolFlagTable tools_{flag_table_};
};

}  // namespace

int RunCommandLine(int argc, char** argv) {
  InitLog("kiln");
  SetLogLevel(LogLevel::kWarn);
  CommandLine command_line(argv[0]);
  return command_line.Main(argc, argv);
}

}  // namespace kiln::client
