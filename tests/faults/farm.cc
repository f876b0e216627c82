#include "tests/faults/farm.h"

#include <fcntl.h>

#include <charconv>
#include <chrono>
#include <cstdlib>
#include <thread>

#include "proto/channel.h"

namespace kiln {
namespace {

std::string Runfile(const std::string& path) {
  const char* root = std::getenv("TEST_SRCDIR");
  return root == nullptr ? path : fmt::format("{}/kiln/{}", root, path);
}

}  // namespace

Daemon::Daemon(std::string name, std::string program, std::vector<std::string> flags, std::string folder)
    : name_(std::move(name)), program_(Runfile(program)), flags_(std::move(flags)), folder_(std::move(folder)) {}

Status Daemon::Start() {
  const std::string port_file = fmt::format("{}/{}.port", folder_, name_);
  (void)RemoveFile(port_file);
  // The log goes through a shell-free redirection: the daemon's stderr is a pipe nobody reads otherwise.
  SubprocessOptions options;
  options.argv = {"/bin/sh", "-c", "log=$1; shift; exec \"$@\" >>\"$log\" 2>&1", "sh",
                  fmt::format("{}/{}.log", folder_, name_), program_};
  for (const std::string& flag : flags_) options.argv.push_back(flag);
  options.argv.push_back("--listen");
  options.argv.push_back(fmt::format("127.0.0.1:{}", port_));
  options.argv.push_back("--port-file");
  options.argv.push_back(port_file);
  KILN_ASSIGN_OR_RETURN(Subprocess process, Subprocess::Spawn(options));
  process_ = std::make_unique<Subprocess>(std::move(process));
  for (int i = 0; i < 1500; ++i) {
    const StatusOr<std::string> text = ReadFile(port_file);
    if (text.ok() && !text->empty()) {
      std::from_chars(text->data(), text->data() + text->size(), port_);
      return OkStatus();
    }
    if (!process_->Running()) return Internal("{} ended at its start:\n{}", name_, Log());
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  return DeadlineExceeded("{} does not serve:\n{}", name_, Log());
}

void Daemon::Kill() {
  process_->Kill(SIGKILL);
  (void)process_->Wait(absl::Seconds(10));
}

StatusOr<ExitStatus> Daemon::Stop() {
  process_->Kill(SIGTERM);
  return process_->Wait(absl::Seconds(20));
}

std::string Daemon::address() const { return fmt::format("127.0.0.1:{}", port_); }

std::string Daemon::Log() const {
  const StatusOr<std::string> text = ReadFile(fmt::format("{}/{}.log", folder_, name_));
  return text.ok() ? fmt::format("---- {}\n{}", name_, text->substr(text->size() > 6000 ? text->size() - 6000 : 0))
                   : std::string();
}

Farm::Farm(TempDir folder) : folder_(std::move(folder)) {}

StatusOr<std::unique_ptr<Farm>> Farm::Start(const std::string& device) {
  KILN_ASSIGN_OR_RETURN(TempDir folder, TempDir::Make("kiln-farm"));
  std::unique_ptr<Farm> farm(new Farm(std::move(folder)));
  const std::string path = farm->folder_.path();
  farm->tracker_ = std::make_unique<Daemon>("tracker", "tracker/kiln_tracker",
                                            std::vector<std::string>{"--deadline-ms", "3000"}, path);
  KILN_RETURN_IF_ERROR(farm->tracker_->Start());
  const std::string tracker = farm->tracker_->address();
  farm->scheduler_ = std::make_unique<Daemon>(
      "scheduler", "scheduler/kiln_scheduler", std::vector<std::string>{"--tracker", tracker, "--db", farm->db()}, path);
  farm->builder_ = std::make_unique<Daemon>(
      "builder", "builder/kiln_builder",
      std::vector<std::string>{"--tracker", tracker, "--jobs", "2", "--allow-faults"}, path);
  farm->runner_ = std::make_unique<Daemon>("runner", "runner/kiln_runner",
                                           std::vector<std::string>{"--tracker", tracker, "--threads", "1", "--device", device}, path);
  KILN_RETURN_IF_ERROR(farm->scheduler_->Start());
  KILN_RETURN_IF_ERROR(farm->builder_->Start());
  KILN_RETURN_IF_ERROR(farm->runner_->Start());
  return farm;
}

std::unique_ptr<v1::Scheduler::Stub> Farm::Connect() { return v1::Scheduler::NewStub(MakeChannel(scheduler_->address())); }

std::string Farm::Logs() const { return tracker_->Log() + scheduler_->Log() + builder_->Log() + runner_->Log(); }

}  // namespace kiln
