#include "client/fleet/slurm_programs.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <utility>

#include "base/text/utf8.h"

namespace kiln::client {
namespace {

// A controller under load answers late; Slurm's own limit (MessageTimeout) is 10 s by default.
constexpr absl::Duration kPatience = absl::Minutes(2);
// Most bytes of a program's complaint that a message repeats.
constexpr size_t kLongestComplaint = 500;

struct Advice {
  // A part of what Slurm's programs print.
  std::string_view says;
  std::string_view advice;
};

constexpr Advice kAdvice[] = {
    {"nvalid partition", "`sinfo` lists the partitions; name one by --partition"},
    {"nvalid account",
     "`sacctmgr show associations user=$USER` lists your accounts; name one by --account"},
    {"nvalid qos", "`sacctmgr show qos` lists the classes of service; name one by --qos"},
    {"nvalid generic resource", "`sinfo -o '%P %G'` lists what --gres may name"},
    {"nvalid feature", "`sinfo -o '%P %f'` lists what --constraint may name"},
    {"node configuration is not available",
     "no node has all that is asked for; `sinfo -o '%P %c %m %G %f'` lists what nodes have"},
    {"time limit", "`sinfo -o '%P %l'` lists the longest --time of each partition"},
    {"nable to contact slurm controller",
     "`scontrol ping` says whether Slurm's controller answers"},
    {"configuration source", "this machine has no slurm.conf; run the command on a login node"},
    {"AssocMaxSubmitJobLimit", "you have as many jobs as Slurm allows; ask for fewer workers"},
    {"QOSMaxSubmitJob", "you have as many jobs as the QOS allows; ask for fewer workers"},
};

// Returns our environment without the variables that change what squeue and scancel print or take.
std::vector<std::string> CleanEnvironment() {
  std::vector<std::string> variables;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    const std::string_view text = *variable;
    if (!text.starts_with("SQUEUE_") && !text.starts_with("SCANCEL_")) variables.emplace_back(text);
  }
  return variables;
}

// Returns the state of a job by squeue's word for it. Unknown words are states that end.
SlurmJobState StateOf(std::string_view word) {
  constexpr std::array kPendingWords = {"PENDING", "REQUEUED", "REQUEUE_HOLD", "REQUEUE_FED",
                                        "SPECIAL_EXIT"};
  constexpr std::array kRunningWords = {"RUNNING", "CONFIGURING", "SUSPENDED",
                                        "STOPPED", "RESIZING",    "SIGNALING"};
  for (const std::string_view pending : kPendingWords) {
    if (word == pending) return SlurmJobState::kPending;
  }
  for (const std::string_view running : kRunningWords) {
    if (word == running) return SlurmJobState::kRunning;
  }
  return SlurmJobState::kEnding;
}

StatusOr<int64_t> ParseJobNumber(std::string_view text) {
  int64_t id = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), id);
  if (error != std::errc() || end != text.data() + text.size() || id <= 0) {
    return Internal("'{}' is no number of a Slurm job", OneLine(text));
  }
  return id;
}

// Takes the text before the next `separator` off `rest`.
std::string_view TakeField(std::string_view& rest, char separator) {
  const size_t end = rest.find(separator);
  const std::string_view field = rest.substr(0, end);
  rest = end == std::string_view::npos ? std::string_view() : rest.substr(end + 1);
  return field;
}

// Reads "17|RUNNING|node3|kiln-night-runner". A name may have any characters.
StatusOr<SlurmJob> ParseQueueLine(std::string_view line) {
  std::string_view rest = line;
  SlurmJob job;
  KILN_ASSIGN_OR_RETURN(job.id, ParseJobNumber(TakeField(rest, '|')));
  job.state = StateOf(TakeField(rest, '|'));
  job.detail = TakeField(rest, '|');
  // squeue puts the reason of a pending job into parentheses.
  if (job.detail.starts_with('(') && job.detail.ends_with(')')) {
    job.detail = job.detail.substr(1, job.detail.size() - 2);
  }
  job.name = rest;
  if (job.name.empty()) {
    return Internal("squeue printed '{}'; NUMBER|STATE|PLACE|NAME is expected", OneLine(line));
  }
  return job;
}

}  // namespace

std::vector<std::string> SbatchCommand(const SlurmJobRequest& request) {
  std::vector<std::string> command = {"sbatch", "--parsable", "--job-name=" + request.name};
  command.insert(command.end(), request.arguments.begin(), request.arguments.end());
  return command;
}

StatusOr<int64_t> ParseSubmittedJob(std::string_view output) {
  std::string_view rest = output.substr(0, output.find('\n'));
  const auto id = ParseJobNumber(TakeField(rest, ';'));
  if (id.ok()) return id;
  return Internal("sbatch --parsable printed '{}'; the number of a job is expected",
                  OneLine(output.substr(0, kLongestComplaint)));
}

std::vector<std::string> SqueueCommand(const std::vector<std::string>& names) {
  return {"squeue", "--me", "--noheader", fmt::format("--name={}", fmt::join(names, ",")),
          "--format=%A|%T|%R|%j"};
}

StatusOr<std::vector<SlurmJob>> ParseQueue(std::string_view output) {
  std::vector<SlurmJob> jobs;
  while (!output.empty()) {
    const std::string_view line = TakeField(output, '\n');
    if (line.empty()) continue;
    KILN_ASSIGN_OR_RETURN(SlurmJob job, ParseQueueLine(line));
    jobs.push_back(std::move(job));
  }
  return jobs;
}

std::string_view SlurmAdvice(std::string_view error) {
  for (const Advice& row : kAdvice) {
    if (error.find(row.says) != std::string_view::npos) return row.advice;
  }
  return "`kiln fleet slurm --dry-run` prints the commands, to be tried by hand";
}

SlurmPrograms::SlurmPrograms()
    : run_([](SubprocessOptions options, std::string_view input) {
        return RunToEnd(std::move(options), input, kPatience);
      }) {}

StatusOr<std::string> SlurmPrograms::Run(std::vector<std::string> command, std::string_view input) {
  const std::string program = command.front();
  SubprocessOptions options;
  options.argv = std::move(command);
  options.env = CleanEnvironment();
  options.clear_env = true;
  options.input = SubprocessOptions::Stream::kPipe;
  options.output = options.error = SubprocessOptions::Stream::kPipe;
  const StatusOr<RunResult> result = run_(std::move(options), input);
  if (result.status().code() == StatusCode::kNotFound) {
    return NotFound(
        "there is no program {}; install Slurm's (Debian: slurm-client), or run the "
        "command on a login node of the cluster",
        program);
  }
  KILN_RETURN_IF_ERROR(Annotate(result.status(), program));
  if (result->exit.ok()) return result->output;
  const std::string_view complaint = std::string_view(result->error).substr(0, kLongestComplaint);
  return FailedPrecondition("{} ended with {}: {}; {}", program, result->exit.ToString(),
                            OneLine(complaint), SlurmAdvice(result->error));
}

StatusOr<int64_t> SlurmPrograms::Submit(const SlurmJobRequest& request) {
  KILN_ASSIGN_OR_RETURN(const std::string output, Run(SbatchCommand(request), request.script));
  return ParseSubmittedJob(output);
}

StatusOr<std::vector<SlurmJob>> SlurmPrograms::List(const std::vector<std::string>& names) {
  KILN_ASSIGN_OR_RETURN(const std::string output, Run(SqueueCommand(names)));
  return ParseQueue(output);
}

Status SlurmPrograms::Cancel(const std::vector<int64_t>& ids) {
  std::vector<std::string> command = {"scancel", "--quiet"};
  for (const int64_t id : ids) command.push_back(fmt::format("{}", id));
  return Run(std::move(command)).status();
}

}  // namespace kiln::client
