#include "builder/daemon.h"

#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>

#include "base/hash/unique_id.h"
#include "base/log.h"
#include "base/process/sandbox.h"
#include "base/process/stop_signal.h"
#include "base/process/subprocess.h"
#include "base/server/daemon_program.h"
#include "base/thread_pool.h"
#include "base/version.h"
#include "builder/builder_metrics.h"
#include "builder/cache.h"
#include "builder/child_files.h"
#include "builder/once.h"
#include "builder/pool.h"
#include "builder/service.h"
#include "compiler/codegen/backends/backends.h"
#include "rpc/daemon_access.h"
#include "rpc/http/daemon_pages.h"
#include "rpc/http/http_flags.h"
#include "rpc/worker_flags.h"
#include "rpc/worker_modes.h"
#include "rpc/worker_server.h"

namespace kiln::builder {
namespace {

// Room for the texts of a computation and of its schedule.
constexpr int kRequestBytes = 40 << 20;

struct Flags : WorkerFlags, HttpFlags {
  int jobs = 0;
  int64_t cache_mib = 512;
  bool allow_faults = false;
  std::string once;
  std::string output;
};

void AddFlags(CLI::App& app, Flags& flags) {
  app.description("Turns candidates into compiled programs.");
  AddWorkerFlags(app, flags, "builder");
  AddHttpFlag(app, flags);
  app.add_option("--jobs", flags.jobs, "builds at a time; 0 = one per core")
      ->check(CLI::Range(0, 4096))
      ->capture_default_str();
  app.add_option("--cache-mib", flags.cache_mib, "memory of the cache of artifacts; 0 = no cache")
      ->check(CLI::Range(int64_t{0}, int64_t{1} << 30))
      ->capture_default_str();
  app.add_flag("--allow-faults", flags.allow_faults,
               "build deliberately broken programs on request, to test runners");
  AddDaemonFlags(app, flags);
  auto* once = app.add_option("--once", flags.once,
                              "build the BuildRequest in this file (*.txtpb: text, else binary) in "
                              "this process, print the reply and end")
                   ->configurable(false);
  app.add_option("-o,--output", flags.output, "with --once: write the binary to this file")
      ->needs(once)
      ->configurable(false);
}

int Jobs(const Flags& flags) { return flags.jobs > 0 ? flags.jobs : AvailableCpus(); }

StatusOr<PoolOptions> MakePoolOptions(const Flags& flags,
                                      const std::vector<std::string>& child_args) {
  PoolOptions options;
  options.jobs = Jobs(flags);
  KILN_ASSIGN_OR_RETURN(const std::string executable, CurrentExecutable());
  options.child_command = {executable};
  options.child_command.insert(options.child_command.end(), child_args.begin(), child_args.end());
  return options;
}

// Limits of all builds together: the memory of each, and of one more for compilers that start.
GroupLimits LimitsOf(const Flags& flags, const PoolOptions& options) {
  return {.memory_bytes = (Jobs(flags) + 1) * static_cast<int64_t>(options.memory_limit_bytes),
          .processes = 512 + 64 * Jobs(flags)};
}

// Finds the sandbox of children, and adds it to their command and to the worker's state.
Status PrepareSandbox(const Flags& flags, PoolOptions& options, v1::WorkerState& state) {
  const SandboxFound found =
      FindSandbox({.view = FilesOfBuilds(), .limits = LimitsOf(flags, options)});
  if (flags.require_sandbox) KILN_RETURN_IF_ERROR(RequireNoGaps(found));
  LogInfo("sandbox of builds: {}", fmt::join(found.applied, ", "));
  for (const std::string& gap : found.gaps) LogWarn("the sandbox has a gap: {}", gap);
  const std::vector<std::string> arguments = ArgumentsOf(found.sandbox);
  options.child_command.insert(options.child_command.end(), arguments.begin(), arguments.end());
  state.mutable_sandbox()->Assign(found.applied.begin(), found.applied.end());
  state.mutable_sandbox_gaps()->Assign(found.gaps.begin(), found.gaps.end());
  return OkStatus();
}

// Returns the worker's state that does not change while the daemon runs.
v1::WorkerState DescribeWorker(const Flags& flags) {
  v1::WorkerState state;
  state.set_id(NamedWorkerId(UniqueId(), flags));
  state.set_kind(v1::BUILDER);
  state.set_slots(static_cast<uint32_t>(Jobs(flags)));
  state.set_version(std::string(kVersion));
  for (const codegen::Backend* backend : codegen::AllBackends()) {
    const std::string_view name = backend->kind().name;
    if (const auto compiler = backend->Compiler(); compiler.ok()) {
      LogInfo("compiles for {} with {}", name, *compiler);
      state.add_keys(std::string(name));
    } else {
      LogInfo("does not compile for {}: {}", name, Message(compiler.status()));
    }
  }
  return state;
}

Status Serve(const Flags& flags, PoolOptions pool_options) {
  KILN_RETURN_IF_ERROR(CheckWorkerFlags(flags));
  StopSignal stop;
  WorkerServer::Options options;
  options.state = DescribeWorker(flags);
  KILN_RETURN_IF_ERROR(PrepareSandbox(flags, pool_options, options.state));
  KILN_ASSIGN_OR_RETURN(const FarmAccess access, OpenAccess(flags));
  options.access = access;
  options.admission = access.MakeAdmission("builder");
  options.max_request_bytes = kRequestBytes;
  options.listen = flags.listen;
  options.advertise = flags.advertise;
  WorkerModes modes;
  Pool pool(std::move(pool_options));
  BuildCache cache(pool, flags.cache_mib << 20, std::string(kVersion));
  KILN_ASSIGN_OR_RETURN(const auto pages, DaemonPages::Make({.flags = flags,
                                                             .listen = flags.listen,
                                                             .advertise = flags.advertise,
                                                             .service = "builder",
                                                             .access = access}));
  const auto shown = ShowBuilder(cache, Jobs(flags), pages->metrics());
  BuilderService service(cache, modes, flags.allow_faults, options.admission, access.keys(),
                         BuilderMetrics(pages->metrics()));
  options.service = &service;
  options.ended = pages->calls().Hook();
  KILN_RETURN_IF_ERROR(pages->Start());
  options.state.set_http_address(pages->address());
  KILN_ASSIGN_OR_RETURN(const auto worker, WorkerServer::Start(std::move(options)));
  KILN_RETURN_IF_ERROR(WritePortFile(flags, {worker->port()}));
  LogInfo("serving {} builds at a time on {}", Jobs(flags), worker->address());
  worker->Announce(flags.tracker, modes,
                   [&](v1::WorkerState& state) { state.set_trials_done(service.builds_done()); });
  const int signal = stop.Wait();
  LogInfo("stopping on signal {}", signal);
  worker->Leave();
  service.Stop();
  worker->Shutdown();
  return OkStatus();
}

Status Main(const Flags& flags, const std::vector<std::string>& child_args) {
  if (!flags.once.empty()) return BuildOnce(flags.once, flags.output);
  KILN_ASSIGN_OR_RETURN(PoolOptions options, MakePoolOptions(flags, child_args));
  return Serve(flags, std::move(options));
}

}  // namespace

std::shared_ptr<void> AddBuilderFlags(CLI::App& app) {
  auto flags = std::make_shared<Flags>();
  AddFlags(app, *flags);
  return flags;
}

int BuilderMain(int argc, char** argv, const std::vector<std::string>& child_args) {
  Flags flags;
  CLI::App app("", "kiln_builder");
  AddFlags(app, flags);
  return RunDaemon("builder", app, flags, argc, argv, [&] { return Main(flags, child_args); });
}

}  // namespace kiln::builder
