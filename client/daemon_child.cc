#include "client/daemon_child.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sched.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <sstream>

#include "absl/time/clock.h"
#include "base/errno_status.h"
#include "base/file/fd.h"
#include "base/file/file.h"
#include "client/core_list.h"

namespace kiln::client {
namespace {

constexpr absl::Duration kStartTimeout = absl::Seconds(60);
constexpr absl::Duration kPollPause = absl::Milliseconds(5);
// A line for each device of a machine.
constexpr size_t kPortFileBytes = 4096;

// Returns the last line that is not empty.
std::string LastLine(std::string text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.pop_back();
  return text.substr(text.rfind('\n') + 1);
}

std::string JoinAddress(const std::string& host, const std::string& port) {
  if (host.find(':') != std::string::npos) return fmt::format("[{}]:{}", host, port);
  return fmt::format("{}:{}", host, port);
}

Status PrintInto(const std::string& log_path) {
  if (log_path == "-") return OkStatus();
  const UniqueFd log(open(log_path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666));
  if (!log.valid()) return ErrnoStatus(errno, "cannot write {}", log_path);
  if (dup2(log.get(), STDOUT_FILENO) < 0 || dup2(log.get(), STDERR_FILENO) < 0) {
    return ErrnoStatus(errno, "dup2");
  }
  return OkStatus();
}

// Makes this process run on the cores, and the threads and processes that it starts.
Status StayOn(const std::string& list) {
  if (list == "-") return OkStatus();
  KILN_ASSIGN_OR_RETURN(const std::vector<int> cores, ParseCoreList(list));
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const int core : cores) {
    if (core < CPU_SETSIZE) CPU_SET(core, &set);
  }
  if (sched_setaffinity(0, sizeof(set), &set) != 0) {
    return ErrnoStatus(errno, "this process cannot stay on the cores {}", list);
  }
  return OkStatus();
}

}  // namespace

Status BecomeClusterChild(const std::string& log_path, const std::string& cores) {
  DieWithParent();
  KILN_RETURN_IF_ERROR(PrintInto(log_path));
  const Status stays = StayOn(cores);
  if (!stays.ok()) fmt::print(stderr, "kiln: {}; any core is used\n", Message(stays));
  return OkStatus();
}

Status DaemonChild::Launch() {
  // A runner whose GPUs got any free ports gets free ones again.
  if (ports_.size() == 1) options_.port = ports_.front();
  ports_.clear();
  SubprocessOptions options;
  const std::string cores = options_.cores.empty() ? "-" : CoreListText(options_.cores);
  options.argv = {options_.executable,
                  kClusterChild,
                  options_.log,
                  cores,
                  options_.daemon,
                  "--listen",
                  JoinAddress(options_.host, options_.port),
                  "--port-file",
                  options_.port_file};
  options.argv.insert(options.argv.end(), options_.flags.begin(), options_.flags.end());
  options.output = SubprocessOptions::Stream::kNull;
  KILN_RETURN_IF_ERROR(RemoveFile(options_.port_file));
  KILN_ASSIGN_OR_RETURN(Subprocess process, Subprocess::Spawn(options));
  process_ = std::make_unique<Subprocess>(std::move(process));
  is_asked_ = false;
  return OkStatus();
}

StatusOr<bool> DaemonChild::Serves() {
  if (!ports_.empty()) return true;
  if (!FileExists(options_.port_file)) {
    if (process_->Running()) return false;
    KILN_ASSIGN_OR_RETURN(const ExitStatus exit, process_->Wait());
    return Ended(exit);
  }
  KILN_ASSIGN_OR_RETURN(const std::string text, ReadFile(options_.port_file, kPortFileBytes));
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) ports_.push_back(line);
  return !ports_.empty();
}

Status DaemonChild::WaitUntilServes(const std::function<bool()>& interrupted) {
  const absl::Time deadline = absl::Now() + kStartTimeout;
  while (true) {
    KILN_ASSIGN_OR_RETURN(const bool serves, Serves());
    if (serves) return OkStatus();
    if (interrupted()) return Cancelled("interrupted before the {} was up", options_.daemon);
    if (absl::Now() > deadline) {
      return DeadlineExceeded("the {} did not start within {} s", options_.daemon,
                              absl::ToInt64Seconds(kStartTimeout));
    }
    absl::SleepFor(kPollPause);
  }
}

Status DaemonChild::Ended(const ExitStatus& exit) const {
  const auto log = ReadFile(options_.log);
  std::string said = log.ok() ? LastLine(*log) : std::string();
  if (said.starts_with(options_.daemon + ": ")) said.erase(0, options_.daemon.size() + 2);
  return Internal("the {} ended ({}){}{}", options_.daemon, exit.ToString(),
                  said.empty() ? "" : ": ", said);
}

std::vector<std::string> DaemonChild::Addresses() const {
  std::vector<std::string> addresses;
  for (const std::string& port : ports_) {
    addresses.push_back(JoinAddress(options_.host, port));
  }
  return addresses;
}

std::string DaemonChild::Address() const {
  return JoinAddress(options_.host, ports_.empty() ? options_.port : ports_.front());
}

void DaemonChild::AskToStop() {
  if (!launched() || is_asked_) return;
  process_->Kill(SIGTERM);
  is_asked_ = true;
}

void DaemonChild::Stop(absl::Duration grace) {
  if (!launched()) return;
  AskToStop();
  if (!process_->Wait(grace).ok()) {
    process_->Kill(SIGKILL);
    (void)process_->Wait();
  }
  process_.reset();
}

void StopInOrder(DaemonChild& scheduler, const std::vector<DaemonChild*>& workers,
                 DaemonChild& tracker, absl::Duration grace) {
  scheduler.Stop(grace);
  for (DaemonChild* worker : workers) worker->AskToStop();
  for (DaemonChild* worker : workers) worker->Stop(grace);
  tracker.Stop(grace);
}

}  // namespace kiln::client
