#include "client/check/doctor.h"

#include <dlfcn.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "base/file/file.h"
#include "base/keys/certificate.h"
#include "base/keys/identity.h"
#include "base/keys/role.h"
#include "base/process/containment_table.h"
#include "base/server/listen.h"
#include "base/text/counted.h"
#include "base/text/units.h"
#include "base/thread_pool.h"
#include "client/check/quiet.h"
#include "client/client.h"
#include "client/local_archive.h"
#include "client/local_devices.h"
#include "compiler/codegen/llvm/llvm.h"
#include "compiler/target/target.h"
#include "device/calibration.h"
#include "rpc/device_message.h"
#include "store/sqlite_store.h"

namespace kiln::client {
namespace {

constexpr int64_t kLowDiskBytes = int64_t{1} << 30;
constexpr int64_t kFewFiles = 256;
// Certificates begin an hour before they are made.
constexpr absl::Duration kClocksAgree = absl::Hours(1);
// LLVM's C interface, declared here since only compiler/codegen may include LLVM's header.
extern "C" void LLVMGetVersion(unsigned* major, unsigned* minor, unsigned* patch);

std::string CpuModel() {
  const auto cpuinfo = ReadFile("/proc/cpuinfo");
  if (!cpuinfo.ok()) return "unknown CPU";
  const size_t key = cpuinfo->find("model name");
  if (key == std::string::npos) return "unknown CPU";
  const size_t begin = cpuinfo->find(": ", key);
  const size_t end = cpuinfo->find('\n', key);
  if (begin == std::string::npos || begin > end) return "unknown CPU";
  return cpuinfo->substr(begin + 2, end - begin - 2);
}

std::string VectorUnits() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f")) return "AVX-512";
  if (__builtin_cpu_supports("avx2")) return "AVX2";
  return "SSE";
#else
  return "its own vector unit";
#endif
}

Finding Llvm() {
  unsigned major = 0, minor = 0, patch = 0;
  LLVMGetVersion(&major, &minor, &patch);
  const auto target = codegen::ResolveCpu({});
  Finding finding = {"LLVM", target.ok(), fmt::format("{}.{}.{}", major, minor, patch)};
  finding.detail += target.ok() ? ", tunes for " + target->Option("mcpu")
                                : fmt::format(", but {}", Message(target.status()));
  return finding;
}

Finding Cuda() {
  void* driver = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL);
  if (driver != nullptr) dlclose(driver);
  const char* home = std::getenv("CUDA_HOME");
  const std::string root = home != nullptr ? home : "/usr/local/cuda";
  const bool toolkit = FileExists(root + "/include/nvrtc.h");
  return {"CUDA", true,
          fmt::format("driver {}, toolkit {} (optional)", driver != nullptr ? "found" : "not found",
                      toolkit ? "at " + root : "not found")};
}

Finding Memory() {
  const int64_t bytes = int64_t{sysconf(_SC_PHYS_PAGES)} * sysconf(_SC_PAGE_SIZE);
  return {"memory", bytes >= (int64_t{2} << 30), FormatBytes(bytes)};
}

std::string LimitText(rlim_t limit) {
  return limit == RLIM_INFINITY ? "unlimited" : FormatCount(static_cast<int64_t>(limit));
}

Finding Limits() {
  rlimit files = {}, processes = {};
  getrlimit(RLIMIT_NOFILE, &files);
  getrlimit(RLIMIT_NPROC, &processes);
  return {"limits", files.rlim_cur >= kFewFiles,
          fmt::format("{} open files, {} processes", LimitText(files.rlim_cur),
                      LimitText(processes.rlim_cur))};
}

Finding Loopback() {
  const Status status = Listen({"127.0.0.1", 0}).status();
  return {"loopback", status.ok(),
          status.ok() ? "ports can be opened" : std::string(Message(status))};
}

Finding Disk(const std::string& db) {
  const size_t slash = db.rfind('/');
  const std::string folder = slash == std::string::npos ? "." : db.substr(0, slash + 1);
  struct statvfs stat = {};
  if (statvfs(folder.c_str(), &stat) != 0) return {"disk", false, folder + " is not there"};
  const auto bytes = static_cast<int64_t>(stat.f_bavail) * static_cast<int64_t>(stat.f_frsize);
  const bool writable = access(folder.c_str(), W_OK) == 0;
  return {"disk", writable && bytes >= kLowDiskBytes,
          fmt::format("{} free in {}{}", FormatBytes(bytes), folder,
                      writable ? "" : ", which is not writable")};
}

Finding Temporary() {
  const auto folder = TempDir::Make("kiln-doctor");
  return {"temporary", folder.ok(),
          folder.ok() ? folder->path().substr(0, folder->path().rfind('/')) + " is writable"
                      : std::string(Message(folder.status()))};
}

Finding DatabaseFile(const std::string& db) {
  if (!FileExists(db)) return {"database", true, db + " is not there yet"};
  const auto archive = OpenLocalArchive(db);
  if (!archive.ok()) return {"database", false, std::string(Message(archive.status()))};
  const auto jobs = (*archive)->Jobs(std::nullopt);
  if (!jobs.ok()) return {"database", false, std::string(Message(jobs.status()))};
  return {"database", true, fmt::format("{}: {}", db, Counted(std::ssize(*jobs), "job"))};
}

// Returns the calibrations in the session's database. Those of a scheduler are not read.
std::vector<store::CalibrationRow> KeptCalibrations(const Session& session) {
  if (!session.scheduler.empty() || !FileExists(session.db)) return {};
  store::sqlite::OpenOptions options;
  options.mode = store::sqlite::OpenOptions::Mode::kReadOnly;
  const auto store = store::OpenSqliteStore(session.db, options);
  auto rows = store.ok() ? (*store)->Calibrations() : store.status();
  return rows.ok() ? *std::move(rows) : std::vector<store::CalibrationRow>();
}

std::string CalibrationText(const device::DeviceModel& model,
                            const std::vector<store::CalibrationRow>& rows) {
  for (const store::CalibrationRow& row : rows) {
    if (row.device == model.name && row.compute_capability == model.compute_capability) {
      return fmt::format("{}: {}", device::CalibrationNote(device::CalibrationSource::kMeasured),
                         row.report);
    }
  }
  return device::CalibrationNote(device::CalibrationOf(model).source);
}

// Adds the devices that a runner here would announce: the CPU, and each GPU if there is a driver.
void AddDevices(const Session& session, std::vector<Finding>& findings) {
  const std::vector<store::CalibrationRow> rows = KeptCalibrations(session);
  for (const target::TargetKind* kind : target::AllTargetKinds()) {
    if (!kind->runs_programs) continue;
    const auto there = LocalDevices(std::string(kind->device));
    // A missing GPU is reported elsewhere already.
    if (!there.ok() && kind->uses_host_cores)
      findings.push_back({"device", false, std::string(Message(there.status()))});
    if (!there.ok()) continue;
    for (const v1::WorkerState& runner : there->workers()) {
      const auto model = DeviceModelOf(runner);
      findings.push_back(
          {"device", model.ok(),
           model.ok() ? fmt::format("{}: {}; {}", model->name, device::DeviceSummary(*model),
                                    CalibrationText(*model, rows))
                      : std::string(Message(model.status()))});
    }
  }
}

// Adds the table of the limits that programs of this user's runners and builders have.
void AddContainment(std::vector<Finding>& findings) {
  for (const ContainmentLine& line : ContainmentTable(ContainmentFactsHere())) {
    const bool holds = line.why_not.empty();
    findings.push_back({.what = "contain",
                        .ok = holds,
                        .detail = fmt::format("{} {}: {}", NameOf(line.who), line.what,
                                              holds ? fmt::format("{} ({})", line.may, line.means)
                                                    : fmt::format("not limited, {}", line.why_not)),
                        .is_gap = !holds});
  }
}

// Says whose keys the session has, and whether they are those of a person.
void AddKeys(const FarmAccess& access, std::vector<Finding>& findings) {
  if (access.keys() == nullptr) return;
  const StatusOr<Identity> self = access.Self();
  if (!self.ok()) {
    findings.push_back({"keys", false, std::string(Message(self.status()))});
    return;
  }
  const std::string whose =
      fmt::format("{} has the keys of {} with the role {}, until {}", access.keys()->path(),
                  self->name, RoleName(self->role), UtcText(self->expires));
  if (self->role == Role::kWork) {
    findings.push_back({"keys", false,
                        whose +
                            "; expected those of a person: a daemon's submit nothing, and `kiln "
                            "keys issue NAME --role submit` makes some"});
  } else if (self->role == Role::kRead) {
    findings.push_back({"keys", true,
                        fmt::format("{}; they look and submit nothing, and `kiln keys issue {} "
                                    "--role submit --replace` makes some that do",
                                    whose, self->name)});
  } else {
    findings.push_back({"keys", true, whose});
  }
}

// Says whether the clocks agree, by which certificates begin and end.
void AddClock(absl::Duration lead, std::vector<Finding>& findings) {
  if (absl::AbsDuration(lead) < kClocksAgree) return;
  findings.push_back(
      {"clock", false,
       fmt::format("the scheduler's clock is {} {} this machine's, expected clocks that agree, "
                   "because certificates begin and end by them: `timedatectl set-ntp true` on both "
                   "machines",
                   absl::FormatDuration(absl::Trunc(absl::AbsDuration(lead), absl::Seconds(1))),
                   lead > absl::ZeroDuration() ? "ahead of" : "behind")});
}

// Adds the keys, the clocks and the scheduler's state, and a row for each job that cannot proceed,
// with what it waits for.
void AddScheduler(const Session& session, std::vector<Finding>& findings) {
  const auto access = session.Access();
  if (!access.ok()) {
    findings.push_back({"keys", false, std::string(Message(access.status()))});
    return;
  }
  AddKeys(*access, findings);
  const auto client = SchedulerClient::Connect(session.scheduler, *access);
  if (client.ok()) AddClock((*client)->clock_lead(), findings);
  const auto jobs = client.ok() ? (*client)->Jobs(std::nullopt) : client.status();
  if (!jobs.ok()) {
    findings.push_back({"scheduler", false, std::string(Message(jobs.status()))});
    return;
  }
  const auto in = [&](v1::JobState state) {
    return std::count_if(jobs->begin(), jobs->end(),
                         [state](const v1::JobStatus& job) { return job.state() == state; });
  };
  findings.push_back(
      {"scheduler", true,
       fmt::format("{} answers: {}, {} running, {} queued", session.scheduler,
                   Counted(std::ssize(*jobs), "job"), in(v1::RUNNING), in(v1::QUEUED))});
  for (const v1::JobStatus& job : *jobs) {
    if (job.state() != v1::RUNNING || job.message().empty()) continue;
    findings.push_back({"job " + job.id(), false, job.message()});
  }
}

Finding TrackerThere(const std::string& tracker, const Session& session) {
  const auto access = session.Access();
  if (!access.ok()) return {"tracker", false, std::string(Message(access.status()))};
  const auto workers = ListWorkers(tracker, *access);
  if (!workers.ok()) return {"tracker", false, std::string(Message(workers.status()))};
  const auto of = [&](v1::WorkerKind kind) {
    return std::count_if(workers->workers().begin(), workers->workers().end(),
                         [kind](const v1::WorkerState& worker) { return worker.kind() == kind; });
  };
  const auto builders = of(v1::BUILDER), runners = of(v1::RUNNER);
  return {"tracker", builders > 0 && runners > 0,
          fmt::format("{} answers: {} builders, {} runners", tracker, builders, runners)};
}

}  // namespace

std::vector<Finding> Diagnose(const Session& session) {
  std::vector<Finding> findings = {
      {"CPU", true, fmt::format("{}, {} cores, {}", CpuModel(), AvailableCpus(), VectorUnits())},
      Memory(),
      Llvm(),
      Cuda(),
      Limits(),
      Loopback(),
      Temporary(),
      {"quiet", true, QuietText()}};
  AddContainment(findings);
  AddDevices(session, findings);
  if (session.scheduler.empty()) {
    findings.push_back(Disk(session.db));
    findings.push_back(DatabaseFile(session.db));
  } else {
    AddScheduler(session, findings);
  }
  const char* tracker = std::getenv("KILN_TRACKER");
  if (tracker != nullptr && *tracker != '\0') findings.push_back(TrackerThere(tracker, session));
  return findings;
}

}  // namespace kiln::client
