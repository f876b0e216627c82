#include "client/check/reproduce.h"

#include <google/protobuf/text_format.h>

#include "base/file/file.h"
#include "base/process/subprocess.h"
#include "base/text/shell_word.h"
#include "client/local_cluster.h"
#include "compiler/dag/wide_sums.h"
#include "compiler/handwritten/kernel_text.h"
#include "proto/job_defaults.h"
#include "scheduler/values/answer_tolerance.h"
#include "scheduler/words/format.h"

namespace kiln::client {
namespace {

using google::protobuf::TextFormat;

constexpr absl::Duration kRunTimeout = absl::Minutes(10);

std::string CommandText(const std::vector<std::string>& argv) {
  std::string text;
  for (const std::string& word : argv) text += (text.empty() ? "" : " ") + ShellWord(word);
  return text;
}

// Parses what a Kiln program prints with --once: comments, then a message in text form.
template <typename Message>
StatusOr<Message> ParseReply(const std::string& output, std::string_view who) {
  Message reply;
  if (TextFormat::ParseFromString(output, &reply)) return reply;
  return Internal("the {} printed something that is not a reply: {}", who, FirstLine(output));
}

// Runs a Kiln command in a process that ends with this one.
StatusOr<RunResult> RunCommand(std::vector<std::string> argv, absl::Duration timeout) {
  argv.insert(argv.begin() + 1, {kClusterChild, "-", "-"});
  SubprocessOptions options;
  options.argv = std::move(argv);
  options.output = options.error = SubprocessOptions::Stream::kPipe;
  return RunToEnd(std::move(options), {}, timeout);
}

std::string ErrorText(const RunResult& result) {
  std::string text = result.error;
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text.substr(text.rfind('\n') + 1);
}

class Replayer {
 public:
  Replayer(const TrialRequest& request, std::string folder, std::string executable)
      : request_(request), folder_(std::move(folder)), executable_(std::move(executable)) {}

  StatusOr<TrialReplay> Run() {
    const std::string& dag = request_.record.dag();
    KILN_ASSIGN_OR_RETURN(replay_.build, Build("trial", dag, request_.record.steps(), Fault()));
    if (replay_.build.error() != v1::NO_ERROR) return std::move(replay_);
    const bool is_kernel = handwritten::HasReferenceKernel(request_.spec.options().kernel());
    KILN_ASSIGN_OR_RETURN(
        const v1::BuildReply reference,
        Build("reference", is_kernel ? dag : dag::ReferenceText(dag), "[]", v1::FAULT_NONE));
    if (reference.error() != v1::NO_ERROR) {
      replay_.reference_problem = reference.message();
      return std::move(replay_);
    }
    KILN_RETURN_IF_ERROR(Measure(reference.artifact()));
    return std::move(replay_);
  }

 private:
  v1::Fault Fault() const {
    const auto& faults = request_.spec.options().faults();
    const auto found = faults.find(request_.record.trial());
    return found == faults.end() ? v1::FAULT_NONE : static_cast<v1::Fault>(found->second);
  }

  std::string Path(const std::string& name) const { return JoinPath(folder_, name); }

  // Builds in a process of its own. A compiler that dies or hangs is an outcome, not an error.
  StatusOr<v1::BuildReply> Build(const std::string& name, const std::string& dag,
                                 const std::string& steps, v1::Fault fault) {
    v1::BuildRequest build;
    build.set_dag(dag);
    build.set_target(request_.record.target());
    build.set_steps(steps);
    build.set_kernel(request_.spec.options().kernel());
    build.set_fault(fault);
    *build.mutable_hardware() = request_.record.hardware();
    std::string text;
    TextFormat::PrintToString(build, &text);
    const std::string request_path = Path(name + ".build.txtpb"), binary_path = Path(name + ".bin");
    KILN_RETURN_IF_ERROR(WriteFile(request_path, text));
    KILN_RETURN_IF_ERROR(RemoveFile(binary_path));
    const std::vector<std::string> argv = {executable_,  "builder", "--once",
                                           request_path, "-o",      binary_path};
    if (name == "trial") replay_.build_command = CommandText(argv);
    const uint32_t timeout_ms = request_.spec.options().build_timeout_ms();
    const auto result =
        RunCommand(argv, absl::Milliseconds(timeout_ms > 0 ? timeout_ms : kDefaultBuildTimeoutMs));
    if (!result.ok()) return NotBuilt(result.status());
    if (result->exit.signal != 0) {
      v1::BuildReply reply;
      reply.set_error(v1::COMPILE_HOST_ERROR);
      reply.set_message(fmt::format("compiler process {}", result->exit.ToString()));
      return reply;
    }
    if (result->output.empty()) return Internal("{}", ErrorText(*result));
    KILN_ASSIGN_OR_RETURN(auto reply, ParseReply<v1::BuildReply>(result->output, "builder"));
    if (reply.error() == v1::NO_ERROR) {
      KILN_ASSIGN_OR_RETURN(*reply.mutable_artifact()->mutable_binary(), ReadFile(binary_path));
    }
    return reply;
  }

  static StatusOr<v1::BuildReply> NotBuilt(const Status& status) {
    if (status.code() != StatusCode::kDeadlineExceeded) return status;
    v1::BuildReply reply;
    reply.set_error(v1::BUILD_TIMEOUT_ERROR);
    reply.set_message("the compiler did not end in time");
    return reply;
  }

  Status Measure(const v1::Artifact& reference) {
    v1::MeasureRequest measure;
    *measure.mutable_artifact() = replay_.build.artifact();
    *measure.mutable_reference() = reference;
    measure.set_reference_digest(reference.digest());
    measure.set_seed(request_.spec.options().seed());
    *measure.mutable_tolerance() = scheduler::AnswerTolerance(
        request_.spec.options().tolerance(), request_.record.dag(), request_.record.target());
    *measure.mutable_options() = request_.spec.options().measure();
    // The trial is measured in full: it is not stopped early because of a better one.
    measure.mutable_options()->clear_best_cost_s();
    measure.mutable_options()->clear_early_stop_ratio();
    const std::string path = Path("trial.measure.bin");
    KILN_RETURN_IF_ERROR(WriteFile(path, measure.SerializeAsString()));
    const std::vector<std::string> argv = {
        executable_, "runner", "--device", replay_.build.artifact().device(), "--once", path};
    replay_.measure_command = CommandText(argv);
    KILN_ASSIGN_OR_RETURN(const RunResult result, RunCommand(argv, kRunTimeout));
    if (!result.exit.ok()) {
      return Internal("the runner ended ({}): {}", result.exit.ToString(), ErrorText(result));
    }
    KILN_ASSIGN_OR_RETURN(replay_.measure, ParseReply<v1::MeasureReply>(result.output, "runner"));
    return OkStatus();
  }

  const TrialRequest& request_;
  const std::string folder_, executable_;
  TrialReplay replay_;
};

}  // namespace

StatusOr<TrialReplay> ReplayTrial(const TrialRequest& request, const std::string& folder) {
  KILN_ASSIGN_OR_RETURN(std::string executable, CurrentExecutable());
  return Replayer(request, folder, std::move(executable)).Run();
}

}  // namespace kiln::client
