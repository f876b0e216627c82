#include "base/server/daemon_testing.h"

#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>

#include "base/clock.h"
#include "base/process/process_tree.h"

namespace kiln {
namespace {

constexpr size_t kShownLogBytes = 6000;

std::string Runfile(const std::string& path) {
  const char* root = std::getenv("TEST_SRCDIR");
  return root == nullptr ? path : fmt::format("{}/kiln/{}", root, path);
}

TempDir MakeFolder() {
  auto folder = TempDir::Make("kiln-daemon");
  KILN_CHECK(folder.ok(), "{}", Message(folder.status()));
  return *std::move(folder);
}

}  // namespace

DaemonProcess::DaemonProcess(std::string program, std::vector<std::string> flags)
    : name_(program.substr(program.rfind('/') + 1)),
      program_(Runfile(program)),
      flags_(std::move(flags)),
      folder_(MakeFolder()) {}

DaemonProcess::~DaemonProcess() {
  process_.reset();
  if (testing::Test::HasFailure()) fmt::print(stderr, "{}", Log());
}

Status DaemonProcess::Start() {
  const std::string port_file = folder_.Join("port");
  KILN_RETURN_IF_ERROR(RemoveFile(port_file));
  // Its stderr goes into a file, because somebody would have to read the other end of a pipe.
  SubprocessOptions options;
  options.argv = {"/bin/sh",           "-c",    "log=$1; shift; exec \"$@\" >>\"$log\" 2>&1", "sh",
                  folder_.Join("log"), program_};
  options.argv.insert(options.argv.end(), flags_.begin(), flags_.end());
  options.argv.insert(options.argv.end(), {"--listen", address(), "--port-file", port_file});
  KILN_ASSIGN_OR_RETURN(Subprocess process, Subprocess::Spawn(options));
  process_ = std::make_unique<Subprocess>(std::move(process));
  for (int i = 0; i < 3000; ++i) {
    const StatusOr<std::string> text = ReadFile(port_file);
    if (text.ok() && !text->empty()) {
      std::from_chars(text->data(), text->data() + text->size(), port_);
      return OkStatus();
    }
    if (!process_->Running()) return Internal("{} ended at its start:\n{}", name_, Log());
    Clock::Real().SleepFor(absl::Milliseconds(10));
  }
  return DeadlineExceeded("{} does not serve:\n{}", name_, Log());
}

void DaemonProcess::Kill() {
  process_->Kill(SIGKILL);
  (void)process_->Wait(absl::Seconds(10));
}

StatusOr<ExitStatus> DaemonProcess::Stop() {
  process_->Kill(SIGTERM);
  return process_->Wait(absl::Seconds(20));
}

std::string DaemonProcess::address() const { return fmt::format("127.0.0.1:{}", port_); }

std::string DaemonProcess::Log() const {
  const StatusOr<std::string> text = ReadFile(folder_.Join("log"));
  if (!text.ok()) return "";
  return fmt::format("---- {}\n{}", name_,
                     text->substr(text->size() - std::min(text->size(), kShownLogBytes)));
}

RunResult RunProgram(const std::string& program, const std::vector<std::string>& flags) {
  SubprocessOptions options;
  options.argv = {Runfile(program)};
  options.argv.insert(options.argv.end(), flags.begin(), flags.end());
  auto result = RunToEnd(options, {}, absl::Seconds(60));
  KILN_CHECK(result.ok(), "{}", Message(result.status()));
  return *std::move(result);
}

bool AllGone(const std::vector<pid_t>& pids) {
  for (int i = 0; i < 1000; ++i) {
    if (std::all_of(pids.begin(), pids.end(), HasEnded)) return true;
    Clock::Real().SleepFor(absl::Milliseconds(10));
  }
  return false;
}

}  // namespace kiln
