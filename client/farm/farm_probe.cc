#include "client/farm/farm_probe.h"

#include <algorithm>
#include <set>

#include "base/process/process_identity.h"
#include "client/client.h"
#include "client/farm/farm_folder.h"

namespace kiln::client {
namespace {

// Returns what keeps the process from answering, before anybody has asked it.
std::string ProcessTrouble(const FarmProcess& process) {
  if (process.phase != FarmProcess::Phase::kServing) return std::string(PhaseName(process.phase));
  if (!IsRunning(process.process)) return "ended";
  return "";
}

std::string Trouble(const Status& status) {
  return status.ok() ? "" : fmt::format("does not answer: {}", Message(status));
}

FarmAnswers Ask(const FarmState& state, const Session& session, bool with_jobs) {
  FarmAnswers answers;
  const auto access = session.Access();
  auto workers = access.ok() ? ListWorkers(state.AddressOf("tracker"), *access)
                             : StatusOr<v1::ListReply>(access.status());
  std::set<std::string> listed;
  if (workers.ok()) answers.workers = *std::move(workers);
  for (const v1::WorkerState& worker : answers.workers.workers()) listed.insert(worker.address());
  const auto ask_scheduler = [&]() -> Status {
    // The scheduler answers a call here.
    KILN_ASSIGN_OR_RETURN(const auto client, session.Connect());
    if (!with_jobs) return OkStatus();
    KILN_ASSIGN_OR_RETURN(answers.jobs, client->Jobs(std::nullopt));
    return OkStatus();
  };
  const Status scheduler = ask_scheduler();
  const auto worker_trouble = [&](const FarmProcess& process) -> std::string {
    if (!workers.ok()) return "not known without the tracker";
    for (const std::string& address : process.addresses) {
      if (!listed.contains(address)) return "not in the tracker's list";
    }
    return "";
  };
  for (const FarmProcess& process : state.processes) {
    std::string trouble = ProcessTrouble(process);
    if (trouble.empty()) {
      trouble = process.name == "tracker"     ? Trouble(workers.status())
                : process.name == "scheduler" ? Trouble(scheduler)
                                              : worker_trouble(process);
    }
    answers.trouble.push_back(std::move(trouble));
  }
  return answers;
}

}  // namespace

bool FarmAnswers::AllAnswer() const {
  return std::ranges::all_of(trouble, [](const std::string& text) { return text.empty(); });
}

bool FarmAnswers::ServingAnswer(const FarmState& state) const {
  for (size_t i = 0; i < trouble.size(); ++i) {
    const bool serves = state.processes[i].phase == FarmProcess::Phase::kServing;
    if (serves && !trouble[i].empty()) return false;
  }
  return true;
}

int FarmAnswers::CountJobs(v1::JobState state) const {
  return static_cast<int>(std::ranges::count_if(
      jobs, [state](const v1::JobStatus& job) { return job.state() == state; }));
}

int FarmAnswers::CountWorkers(v1::WorkerKind kind) const {
  return static_cast<int>(
      std::count_if(workers.workers().begin(), workers.workers().end(),
                    [kind](const v1::WorkerState& worker) { return worker.kind() == kind; }));
}

Session FarmSession(const FarmState& state, Session session) {
  session.scheduler = state.AddressOf("scheduler");
  session.keys_folder = state.user_keys;
  session.secret_file =
      state.user_keys.empty() ? FarmFolder(state.options.folder).SecretFile() : "";
  return session;
}

FarmAnswers AskDaemons(const FarmState& state, const Session& session) {
  return Ask(state, session, /*with_jobs=*/false);
}

FarmAnswers AskFarm(const FarmState& state, const Session& session) {
  return Ask(state, session, /*with_jobs=*/true);
}

}  // namespace kiln::client
