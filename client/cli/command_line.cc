#include "client/cli/command_line.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <map>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "base/console/usage.h"
#include "base/errno_status.h"
#include "base/log.h"
#include "base/text/utf8.h"
#include "client/cli/command.h"
#include "client/cli/config/commands.h"
#include "client/cli/database/commands.h"
#include "client/cli/farm/commands.h"
#include "client/cli/fleet/commands.h"
#include "client/cli/jobs/commands.h"
#include "client/cli/keys/commands.h"
#include "client/cli/machine/commands.h"
#include "client/cli/models/commands.h"
#include "client/cli/networks/commands.h"
#include "client/cli/records/commands.h"
#include "client/cli/schedules/commands.h"
#include "client/cli/session_flags.h"
#include "client/cli/states/commands.h"
#include "client/cli/users/commands.h"
#include "client/cli/version.h"
#include "client/cli/workloads/commands.h"

namespace kiln::client {
namespace {

constexpr char kFooter[] =
    "Start here:  kiln tune matmul --args 512,512,512\n"
    "             kiln ops            the operators and their arguments\n"
    "Environment: KILN_SCHEDULER, KILN_TRACKER (HOST:PORT), KILN_DB,\n"
    "             KILN_KEYS, KILN_SECRET_FILE stand for the flags.";

struct Entry {
  // "tune"; in a group "records list".
  std::string_view name;
  Registration add;
};

// All commands, in the order of the help.
constexpr Entry kCommands[] = {
    {"tune", AddTune},
    {"submit", AddSubmit},
    {"jobs", AddJobs},
    {"why", AddWhy},
    {"watch", AddWatch},
    {"trace", AddTrace},
    {"cancel", AddCancel},
    {"calibrate", AddCalibrate},
    {"workers", AddWorkers},
    {"dashboard", AddDashboard},
    {"users list", AddUsersList},
    {"users set", AddUsersSet},
    {"audit", AddAudit},
    {"local", AddLocal},
    {"best", AddBest},
    {"show", AddShow},
    {"export-kernel", AddExportKernel},
    {"trial", AddTrial},
    {"records export", AddRecordsExport},
    {"records import", AddRecordsImport},
    {"records bind", AddRecordsBind},
    {"records distill", AddRecordsDistill},
    {"records ship", AddRecordsShip},
    {"records measure", AddRecordsMeasure},
    {"records stats", AddRecordsStats},
    {"records list", AddRecordsList},
    {"records curve", AddRecordsCurve},
    {"records delete", AddRecordsDelete},
    {"db backup", AddDbBackup},
    {"db check", AddDbCheck},
    {"db restore", AddDbRestore},
    {"db prune", AddDbPrune},
    {"choice query", AddChoiceQuery},
    {"choice pin", AddChoicePin},
    {"choice unpin", AddChoiceUnpin},
    {"choice list", AddChoiceList},
    {"model train", AddModelTrain},
    {"model show", AddModelShow},
    {"model test", AddModelTest},
    {"model predict", AddModelPredict},
    {"model list", AddModelList},
    {"model get", AddModelGet},
    {"model put", AddModelPut},
    {"model delete", AddModelDelete},
    {"farm up", AddFarmUp},
    {"farm status", AddFarmStatus},
    {"farm down", AddFarmDown},
    {"farm supervise", AddFarmSupervise},
    {"fleet slurm", AddFleetSlurm},
    {"keys init", AddKeysInit},
    {"keys issue", AddKeysIssue},
    {"keys list", AddKeysList},
    {"keys renew", AddKeysRenew},
    {"keys revoke", AddKeysRevoke},
    {"ops", AddOps},
    {"templates", AddTemplates},
    {"check", AddCheck},
    {"tasks", AddTasks},
    {"schedule", AddSchedule},
    {"states", AddStates},
    {"compile", AddCompile},
    {"run", AddRun},
    {"verify", AddVerify},
    {"bench", AddBench},
    {"doctor", AddDoctor},
    {"selftest", AddSelfTest},
    {"conformance", AddConformance},
    {"config", AddConfig},
    {"version", AddVersion},
};

// Groups of commands, and what they are for.
constexpr std::pair<std::string_view, std::string_view> kGroups[] = {
    {"records", "records of measurements: logs in and out, lists, curves"},
    {"db", "the database file: backups, checks, the way back, and what stays"},
    {"choice", "show or pin the schedule that a computation gets without a search"},
    {"model", "cost models: trained from records, looked at, tested, asked, and kept"},
    {"farm", "a farm on this machine: tracker, scheduler, builder, runners, in the background"},
    {"fleet", "workers of a farm on machines that Slurm gives out, as many as its queue needs"},
    {"users", "what the users of a farm have had of its devices, and may have"},
    {"keys", "certificates of a farm's machines and people, and its own authority"},
};

class CommandLine {
 public:
  explicit CommandLine(std::string program) : session_flags_(std::move(program)) {
    PlainHelp(app_);
    app_.require_subcommand(1);
    app_.footer(kFooter);
    app_.set_version_flag("--version", VersionText, "print the version and those of libraries");
    for (const Entry& entry : kCommands) Add(entry);
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
    const StatusOr<int> exit_status = RunUntilOutputCloses();
    if (exit_status.ok()) return *exit_status;
    std::fflush(stdout);
    fmt::print(stderr, "kiln: {}\n", Printable(Message(exit_status.status())));
    return 1;
  }

 private:
  void Add(const Entry& entry) {
    const size_t space = entry.name.find(' ');
    const bool in_group = space != std::string_view::npos;
    CLI::App& parent = in_group ? Group(entry.name.substr(0, space)) : app_;
    const std::string name(in_group ? entry.name.substr(space + 1) : entry.name);
    CLI::App* const command = parent.add_subcommand(name);
    command->callback([this, run = entry.add(*command, session_flags_)] { run_ = run; });
  }

  CLI::App& Group(std::string_view name) {
    CLI::App*& group = groups_[name];
    if (group != nullptr) return *group;
    const auto* const row =
        std::ranges::find(kGroups, name, &std::pair<std::string_view, std::string_view>::first);
    group = app_.add_subcommand(std::string(name), std::string(row->second));
    group->require_subcommand(1);
    return *group;
  }

  StatusOr<int> RunNamed() {
    KILN_ASSIGN_OR_RETURN(const Session session, session_flags_.Complete());
    if (run_ == nullptr) return InvalidArgument("incomplete command; see kiln --help");
    return run_(session);
  }

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
  StatusOr<int> RunUntilOutputCloses() {
    constexpr int kBrokenPipeExit = 128 + SIGPIPE;
    int error = 0;
    try {
      StatusOr<int> exit_status = RunNamed();
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
  // Groups of commands that were added, by name. `app_` owns them.
  std::map<std::string_view, CLI::App*> groups_;
  SessionFlags session_flags_;
  // Runs the command that was named.
  Run run_;
};

}  // namespace

int RunCommandLine(int argc, char** argv) {
  InitLog("kiln");
  SetLogLevel(LogLevel::kWarn);
  CommandLine command_line(argv[0]);
  return command_line.Main(argc, argv);
}

}  // namespace kiln::client
