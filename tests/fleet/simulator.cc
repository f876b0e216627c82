// A fleet of workers that compile and run nothing, for a real tracker and a real scheduler: many
// builders and runners in one process, and the users who watch jobs.
//
// Commands come on the standard input, a line each: "watch JOB", "ask JOB", and "mark", from which
// on the times are counted. The figures go to the standard output, a line of JSON a second. The
// process ends with its input.
#include <CLI/CLI.hpp>
#include <condition_variable>
#include <iostream>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>
#include <string>
#include <thread>

#include "base/log.h"
#include "base/server/grpc_server.h"
#include "base/status.h"
#include "tests/fleet/announcements.h"
#include "tests/fleet/clients.h"
#include "tests/fleet/figures.h"
#include "tests/fleet/timers.h"
#include "tests/fleet/workers.h"

namespace kiln::fleet {
namespace {

using nlohmann::json;

struct Flags {
  std::string tracker, scheduler;
  std::string build = "0", run = "0";
  int ask_ms = 200;
  WorkerOptions workers;
};

void AddFlags(CLI::App& app, Flags& flags) {
  const CLI::Range share(0.0, 1.0);
  WorkerOptions& workers = flags.workers;
  app.add_option("--tracker", flags.tracker, "HOST:PORT")->required();
  app.add_option("--scheduler", flags.scheduler, "HOST:PORT")->required();
  app.add_option("--runners", workers.runners)->check(CLI::Range(1, 10'000));
  app.add_option("--builders", workers.builders)->check(CLI::Range(1, 10'000));
  app.add_option("--builder-slots", workers.builder_slots)->check(CLI::Range(1, 4'096));
  app.add_option("--build", flags.build, "time of a build: 0, P50:P90 in seconds, or a file");
  app.add_option("--run", flags.run, "time of a run, in the same form");
  app.add_option("--unavailable", workers.unavailable, "share of calls")->check(share);
  app.add_option("--hang", workers.hang, "share of calls that are never answered")->check(share);
  app.add_option("--error", workers.error, "share of runs whose program fails")->check(share);
  app.add_option("--artifact-bytes", workers.artifact_bytes)->check(CLI::Range(16, 64 << 20));
  app.add_option("--seed", workers.seed);
  app.add_option("--ask-ms", flags.ask_ms, "pause between the questions of the user who asks")
      ->check(CLI::Range(1, 3'600'000));
}

json Described(const Times& times) {
  return {{"count", times.count()},
          {"p50_s", times.Quantile(0.5)},
          {"p90_s", times.Quantile(0.9)},
          {"p99_s", times.Quantile(0.99)}};
}

json Described(const Figures& figures) {
  return {{"announces", figures.announces.load()},
          {"refused_announces", figures.refused_announces.load()},
          {"builds", figures.builds.load()},
          {"references", figures.references.load()},
          {"measures", figures.measures.load()},
          {"results", figures.results.load()},
          {"unavailable", figures.unavailable.load()},
          {"hangs", figures.hangs.load()},
          {"error_results", figures.error_results.load()},
          {"events", figures.events.load()},
          {"records", figures.records.load()},
          {"event_bytes", figures.event_bytes.load()},
          {"built_to_measure", Described(figures.built_to_measure)},
          {"build_to_record", Described(figures.build_to_record)},
          {"get_job", Described(figures.get_job)},
          {"best", Described(figures.best)}};
}

void Mark(Figures& figures) {
  for (Times* const times :
       {&figures.built_to_measure, &figures.build_to_record, &figures.get_job, &figures.best}) {
    times->Clear();
  }
}

// Prints the figures each second until a stop.
void Report(const Figures& figures, Clients& clients, const std::stop_token& stop) {
  std::mutex mutex;
  std::condition_variable_any changed;
  std::unique_lock lock(mutex);
  const auto never = [] { return false; };
  while (!stop.stop_requested()) {
    json described = Described(figures);
    described["fewest_records"] = clients.FewestRecords();
    std::cout << described.dump() << std::endl;
    changed.wait_for(lock, stop, std::chrono::seconds(1), never);
  }
}

void Obey(const std::string& line, const Flags& flags, Clients& clients, Figures& figures) {
  std::istringstream words(line);
  std::string command, job;
  words >> command >> job;
  if (command == "watch") {
    clients.Watch(job);
  } else if (command == "ask") {
    clients.Ask(job, std::chrono::milliseconds(flags.ask_ms));
  } else if (command == "mark") {
    Mark(figures);
  } else {
    LogError("'{}' is no command: expected watch JOB, ask JOB, or mark", line);
  }
}

Status Simulate(Flags& flags) {
  InitGrpc();
  KILN_ASSIGN_OR_RETURN(flags.workers.build, Latency::Parse(flags.build));
  KILN_ASSIGN_OR_RETURN(flags.workers.run, Latency::Parse(flags.run));
  Figures figures;
  Timers timers;
  Workers workers(flags.workers, figures, timers);
  KILN_RETURN_IF_ERROR(workers.Start());
  Announcements announcements(flags.tracker, workers.states(), figures, timers);
  announcements.WaitUntilAll();
  Clients clients(flags.scheduler, figures,
                  [&](const std::string& trial) { return workers.TakeBuildTime(trial); });
  const std::jthread reporter([&](const std::stop_token& stop) { Report(figures, clients, stop); });
  std::string line;
  while (std::getline(std::cin, line)) Obey(line, flags, clients, figures);
  return OkStatus();
}

}  // namespace
}  // namespace kiln::fleet

int main(int argc, char** argv) {
  kiln::fleet::Flags flags;
  CLI::App app("Simulates a fleet of builders and runners.");
  kiln::fleet::AddFlags(app, flags);
  CLI11_PARSE(app, argc, argv);
  const kiln::Status status = kiln::fleet::Simulate(flags);
  if (status.ok()) return 0;
  std::cerr << "error: " << kiln::Message(status) << "\n";
  return 1;
}
