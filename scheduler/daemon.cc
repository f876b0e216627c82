#include "scheduler/daemon.h"

#include <CLI/CLI.hpp>
#include <chrono>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "base/clock.h"
#include "base/hash/digest.h"
#include "base/log.h"
#include "base/process/stop_signal.h"
#include "base/server/daemon_program.h"
#include "base/server/grpc_server.h"
#include "base/server/grpc_status.h"
#include "base/server/net.h"
#include "base/version.h"
#include "device/exclusive_phases.h"
#include "proto/tracker.grpc.pb.h"
#include "rpc/artifact_signature.h"
#include "rpc/channel.h"
#include "rpc/daemon_access.h"
#include "rpc/http/daemon_pages.h"
#include "rpc/http/http_flags.h"
#include "rpc/otlp/http_post.h"
#include "rpc/refusal_note.h"
#include "scheduler/counted_store.h"
#include "scheduler/database_figures.h"
#include "scheduler/database_lock.h"
#include "scheduler/drift_marks.h"
#include "scheduler/fair_share/counted_leases.h"
#include "scheduler/fair_share/shared_leases.h"
#include "scheduler/jobs/jobs.h"
#include "scheduler/pages/door.h"
#include "scheduler/pages/routes.h"
#include "scheduler/service/service.h"
#include "scheduler/tracker_check.h"
#include "scheduler/tracker_watch.h"
#include "scheduler/trial_spans.h"
#include "scheduler/values/queue_figures.h"
#include "scheduler/version_service.h"
#include "scheduler/workers_view.h"
#include "store/sqlite_store.h"

namespace kiln::scheduler {
namespace {

constexpr absl::Duration kStopGrace = absl::Seconds(2);
constexpr std::chrono::seconds kTrackerTimeout{5};

struct Flags : DaemonFlags, HttpFlags {
  Flags() { listen = "127.0.0.1:9290"; }

  std::string tracker = "127.0.0.1:9190";
  std::string db = "kiln.db";
  int max_jobs = Jobs::Options().max_running;
  bool exclusive_phases = false;
  std::string unfinished = Jobs::Options().unfinished;
  double half_life_hours = FairShares::Options().half_life_s / 3600;
  double head_start_s = FairShares::Options().head_start_s;
  std::string otlp;
};

void AddFlags(CLI::App& app, Flags& flags) {
  app.description("Runs tuning jobs on the workers of a tracker and keeps their records.");
  AddListenFlag(app, flags);
  AddHttpFlag(app, flags);
  app.add_option("--tracker", flags.tracker, "HOST:PORT of the tracker to lease workers from")
      ->capture_default_str();
  app.add_option("--db", flags.db, "the database of jobs and records; made if it is not there")
      ->capture_default_str();
  app.add_option("--max-jobs", flags.max_jobs, "jobs that run at once; others are queued")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  app.add_flag(
      "--exclusive-phases", flags.exclusive_phases,
      "builders and the CPU to tune for are this machine's: build and search in turns with "
      "measuring, never at once");
  app.add_option(
         "--unfinished", flags.unfinished,
         "which unfinished jobs of an earlier run go on by themselves: all, none, the one of this "
         "id, or all but those of not:ID,ID,...; `kiln tune --resume ID` goes on with another")
      ->capture_default_str();
  app.add_option("--half-life-hours", flags.half_life_hours,
                 "hours after which a device second that a user has had counts half")
      ->check(CLI::Range(0.01, 1e6))
      ->capture_default_str();
  app.add_option(
         "--head-start", flags.head_start_s,
         "most device seconds, divided by his weight, by which a user who has had less goes "
         "first")
      ->check(CLI::Range(0.0, 1e9))
      ->capture_default_str();
  app.add_option(
      "--otlp", flags.otlp,
      "HOST:PORT of a collector of OpenTelemetry that gets the spans of trials and jobs, "
      "over HTTP (usual port: 4318)");
  AddDaemonFlags(app, flags);
}

// Names the scheduler of this database in this place: a copy of the file gets another id.
std::string SchedulerId(const store::SchedulerIdentity& identity, const std::string& db) {
  std::error_code error;
  const std::filesystem::path path = std::filesystem::canonical(db, error);
  const std::string place = fmt::format("{}:{}", HostName(), error ? db : path.string());
  return fmt::format("{}-{:08x}", identity.id, static_cast<uint32_t>(Xxh3(place)));
}

WorkerList WorkersOf(const std::string& tracker, const FarmAccess& access) {
  return [tracker, access]() -> StatusOr<v1::ListReply> {
    const auto stub = v1::Tracker::NewStub(MakeChannel(tracker, access));
    grpc::ClientContext context;
    context.AddMetadata(kAskedBySchedulerKey, "");
    context.set_deadline(std::chrono::system_clock::now() + kTrackerTimeout);
    v1::ListReply reply;
    const grpc::Status status = stub->List(&context, {}, &reply);
    if (!status.ok()) {
      return Unavailable("the tracker at {} cannot say which devices there are: {}", tracker,
                         status.error_message());
    }
    return reply;
  };
}

Status CannotAsk(const std::string& tracker, const Status& status) {
  switch (status.code()) {
    case StatusCode::kUnavailable:
    case StatusCode::kDeadlineExceeded:
      return Unavailable("the tracker at {} cannot be asked, so the worker keeps its mode: {}",
                         tracker, Message(status));
    case StatusCode::kUnimplemented:
      return FailedPrecondition(
          "no tracker that sets modes answers at {}; expected one of this version in the "
          "scheduler's --tracker",
          tracker);
    default:
      return status;
  }
}

WorkerModeCall ModesOf(const std::string& tracker, const FarmAccess& access) {
  return [tracker,
          access](const v1::SetWorkerModeRequest& request) -> StatusOr<v1::SetWorkerModeReply> {
    const auto stub = v1::Tracker::NewStub(MakeChannel(tracker, access));
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + kTrackerTimeout);
    v1::SetWorkerModeReply reply;
    const grpc::Status status = stub->SetWorkerMode(&context, request, &reply);
    if (!status.ok()) return CannotAsk(tracker, FromGrpc(status));
    return reply;
  };
}

// Has the spans of trials and jobs sent to the collector. Returns null without one.
StatusOr<std::unique_ptr<TrialSpans>> SendSpans(const std::string& collector, store::Store& store,
                                                Jobs::Options& options) {
  if (collector.empty()) return std::unique_ptr<TrialSpans>();
  auto post = PostTo(collector);
  KILN_RETURN_IF_ERROR(Annotate(post.status(), "the address of the collector (--otlp)"));
  auto spans = std::make_unique<TrialSpans>(
      store, OtlpExporter::Options{.service = "kiln scheduler", .collector = collector},
      *std::move(post));
  options.dispatch.traced = [&spans = *spans](const store::Record& record) {
    spans.Committed(record);
  };
  options.ended = [&spans = *spans](const std::string& job_id) { spans.JobEnded(job_id); };
  return spans;
}

// Null without a port for pages.
DashboardDoor OpenDoor(const HttpPort* port, BrowserSessions& sessions) {
  return port == nullptr ? DashboardDoor() : DoorOf(*port, sessions);
}

Status Serve(const Flags& flags) {
  KILN_RETURN_IF_ERROR(Annotate(ParseHostPort(flags.tracker).status(), "the tracker's address"));
  StopSignal stop;
  KILN_ASSIGN_OR_RETURN(const FarmAccess access, OpenAccess(flags));
  KILN_ASSIGN_OR_RETURN(const DatabaseLock lock, DatabaseLock::Take(flags.db));
  KILN_ASSIGN_OR_RETURN(const auto database, store::OpenSqliteStore(flags.db));
  BrowserSessions sessions({});
  KILN_ASSIGN_OR_RETURN(const auto pages, DaemonPages::Make({.flags = flags,
                                                             .listen = flags.listen,
                                                             .service = "scheduler",
                                                             .access = access,
                                                             .sessions = &sessions}));
  const auto figures = pages->metrics().AddCollector(
      [&flags](MetricSheet& sheet) { CollectDatabase(flags.db, sheet); });
  CountedStore store(*database, pages->metrics());
  EventHub events;
  ExclusivePhases phases;
  Jobs::Options options;
  options.max_running = flags.max_jobs;
  options.unfinished = flags.unfinished;
  options.dispatch.access = access;
  QueueFigures queues;
  options.dispatch.queues = &queues;
  const auto queues_shown =
      pages->metrics().AddCollector([&queues](MetricSheet& sheet) { queues.Collect(sheet); });
  if (access.keys() != nullptr) {
    options.dispatch.signatures = std::make_shared<ArtifactCheck>(
        access.keys(), std::vector<std::string>{"llvm", "cuda"}, Clock::Real());
  }
  if (flags.exclusive_phases) options.dispatch.phases = &phases;
  KILN_ASSIGN_OR_RETURN(const store::SchedulerIdentity identity, store.NextIncarnation());
  FairShares shares(
      store, {.half_life_s = flags.half_life_hours * 3600, .head_start_s = flags.head_start_s});
  KILN_RETURN_IF_ERROR(shares.Start());
  options.shares = &shares;
  KILN_ASSIGN_OR_RETURN(const std::unique_ptr<TrialSpans> spans,
                        SendSpans(flags.otlp, store, options));
  const auto spans_shown = pages->metrics().AddCollector([&spans](MetricSheet& sheet) {
    if (spans != nullptr) spans->Collect(sheet);
  });
  Jobs jobs(
      store,
      CountLeases(ShareFairly(TrackerLeases(flags.tracker, SchedulerId(identity, flags.db),
                                            static_cast<uint64_t>(identity.incarnation), access),
                              shares),
                  pages->metrics()),
      events, options);
  // Sets jobs aside before any request can ask for them.
  KILN_RETURN_IF_ERROR(jobs.Start());
  const AdmissionControl admission = access.MakeAdmission("scheduler");
  SchedulerService service(store, jobs, events,
                           {.admission = admission,
                            .list_workers = WorkersOf(flags.tracker, access),
                            .set_worker_mode = ModesOf(flags.tracker, access),
                            .shares = &shares,
                            .open_dashboard = OpenDoor(pages->port(), sessions)});
  Pages dashboard(store,
                  {.read_status = [&](const store::JobRow& job) { return jobs.StatusOf(job); },
                   .list_workers = WorkersOf(flags.tracker, access),
                   .version = std::string(kVersion)});
  if (pages->port() != nullptr) AddPages(dashboard, events, *pages->port());
  GrpcServer::Options server_options;
  server_options.listen = flags.listen;
  WorkersView workers(admission, WorkersOf(flags.tracker, access));
  VersionService version(admission);
  server_options.services = {&service, &workers, &version};
  server_options.check_caller =
      NoteRefusals(admission.MakeCallerCheck(),
                   [&service](std::string_view user, std::string_view call, const Status& why) {
                     service.NoteRefused(user, call, why);
                   });
  server_options.check_certificate = admission.MakeCertificateCheck();
  server_options.keys = access.keys();
  server_options.ended = pages->calls().Hook();
  // Callers of gRPC may ask for the way into the pages at once.
  KILN_RETURN_IF_ERROR(pages->Start());
  const absl::Cleanup stop_pages = [&] { pages->Stop(); };
  KILN_ASSIGN_OR_RETURN(const std::unique_ptr<GrpcServer> server,
                        GrpcServer::Start(server_options));
  dashboard.SetSchedulerPort(server->port());
  KILN_RETURN_IF_ERROR(WritePortFile(flags, {server->port()}));
  LogInfo("serving {} on {}", flags.db, server->address());
  const TrackerCheck tracker_check(flags.tracker, access);
  DriftMarks marks(store, Clock::Real());
  const TrackerWatch tracker_watch(flags.tracker, SchedulerId(identity, flags.db), access, marks);
  const int signal = stop.Wait();
  LogInfo("stopping on signal {}; unfinished jobs go on with the next start", signal);
  // Ends the streams of the pages, too.
  service.Stop();
  pages->Stop();
  jobs.Stop();
  server->Shutdown(kStopGrace);
  return OkStatus();
}

}  // namespace

std::shared_ptr<void> AddSchedulerFlags(CLI::App& app) {
  auto flags = std::make_shared<Flags>();
  AddFlags(app, *flags);
  return flags;
}

int SchedulerMain(int argc, char** argv) {
  Flags flags;
  CLI::App app("", "kiln_scheduler");
  AddFlags(app, flags);
  return RunDaemon("scheduler", app, flags, argc, argv, [&] { return Serve(flags); });
}

}  // namespace kiln::scheduler
