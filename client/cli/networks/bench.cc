// kiln bench times a compiled network on this machine.
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>
#include <string>
#include <string_view>
#include <vector>

#include "base/console/terminal.h"
#include "base/file/file.h"
#include "base/numbers/median.h"
#include "base/text/counted.h"
#include "base/text/units.h"
#include "client/cli/network_flags.h"
#include "client/cli/networks/commands.h"
#include "client/cli/session_flags.h"
#include "client/view/json.h"
#include "client/view/trace_events.h"
#include "runtime/executor.h"
#include "scheduler/words/format.h"

namespace kiln::client {
namespace {

struct BenchFlags {
  // Path of a compiled network.
  std::string path;
  int repeat = 10;
  // Least time of a reading.
  double min_repeat_ms = 100;
  // True: each kernel is timed by itself as well.
  bool profile = false;
  // File for the kernels of one run, for a viewer of traces; "": none.
  std::string trace;
  int threads = 0, gpu = 0;
};

struct Statistics {
  // Seconds.
  double mean = 0, median = 0, max = 0, min = 0, deviation = 0;
};

Statistics StatisticsOf(const std::vector<double>& samples) {
  const auto count = static_cast<double>(samples.size());
  const double mean = std::accumulate(samples.begin(), samples.end(), 0.0) / count;
  double squares = 0;
  for (double sample : samples) squares += (sample - mean) * (sample - mean);
  return {.mean = mean,
          .median = MedianOf(samples).cost_s,
          .max = *std::ranges::max_element(samples),
          .min = *std::ranges::min_element(samples),
          .deviation = std::sqrt(squares / count)};
}

double ExpectedOf(const runtime::Network& network) {
  double expected = 0;
  for (const runtime::NetworkKernel& kernel : network.kernels) expected += kernel.expected_s;
  return expected;
}

void PrintStatistics(const Statistics& s, const runtime::Executor& executor) {
  const runtime::Network& network = executor.network();
  const runtime::MemoryUse memory = executor.memory_use();
  fmt::print("mean {}  median {}  max {}  min {}  std {}\n", FormatSeconds(s.mean),
             FormatSeconds(s.median), FormatSeconds(s.max), FormatSeconds(s.min),
             FormatSeconds(s.deviation));
  const double expected_s = ExpectedOf(network);
  fmt::print("{}", Counted(std::ssize(network.kernels), "kernel"));
  if (expected_s > 0)
    fmt::print(": {} by {}", FormatSeconds(expected_s),
               network.kernels.size() == 1 ? "its record" : "their records");
  fmt::print(
      "\nmemory: {} of weights, {} of results between kernels, {} of copies of inputs and "
      "outputs\n",
      FormatBytes(memory.constants), FormatBytes(memory.arena), FormatBytes(memory.staging));
}

struct Profile {
  std::vector<double> alone_s;
  // Empty: not known.
  std::vector<double> in_network_s;
};

StatusOr<Profile> ProfileOf(runtime::Executor& executor) {
  Profile profile;
  KILN_ASSIGN_OR_RETURN(profile.alone_s, executor.Profile());
  auto in_network = executor.ProfileInNetwork();
  if (in_network.ok()) {
    profile.in_network_s = *std::move(in_network);
  } else if (in_network.status().code() != StatusCode::kUnimplemented) {
    return in_network.status();
  }
  return profile;
}

void PrintProfile(const runtime::Network& network, const Profile& profile, double median_s) {
  const std::vector<double>& seconds = profile.alone_s;
  const double sum = std::accumulate(seconds.begin(), seconds.end(), 0.0);
  const bool in_network = !profile.in_network_s.empty();
  std::vector<Table::Column> columns = {
      {"Kernel", Table::kLeft, 16}, {"Share", Table::kRight}, {"Latency", Table::kRight}};
  if (in_network) columns.push_back({"In network", Table::kRight});
  columns.insert(columns.end(),
                 {{"Record", Table::kRight}, {"Speed", Table::kRight}, {"Schedule"}});
  Table table(columns);
  for (size_t i = 0; i < seconds.size(); ++i) {
    const runtime::NetworkKernel& kernel = network.kernels[i];
    std::vector<std::string> row = {kernel.name, fmt::format("{:.1f}%", 100 * seconds[i] / sum),
                                    FormatSeconds(seconds[i])};
    if (in_network) row.push_back(FormatSeconds(profile.in_network_s[i]));
    row.push_back(kernel.expected_s > 0 ? FormatSeconds(kernel.expected_s) : "-");
    row.push_back(FormatFlops(kernel.flops / seconds[i]));
    row.emplace_back(runtime::SourceName(kernel.source));
    table.AddRow(row);
  }
  fmt::print("\n{}{:<42}{}\n", table.ToString(OutputColumns(STDOUT_FILENO)),
             "all kernels, each run again and again:", FormatSeconds(sum));
  if (in_network) {
    const double inside =
        std::accumulate(profile.in_network_s.begin(), profile.in_network_s.end(), 0.0);
    fmt::print("{:<42}{}\n", "all kernels, within runs of the network:", FormatSeconds(inside));
  }
  fmt::print("{:<42}{}\n", "a run of the network:", FormatSeconds(median_s));
  if (in_network) {
    fmt::print(
        "Within the network a kernel may be slower: other kernels ran in between, and its data are "
        "no longer in the cache.\n");
  } else if (median_s < sum) {
    fmt::print("A run takes less than all kernels do, as some of them run beside each other.\n");
  }
}

std::string BenchJson(const Statistics& s, const runtime::Network& network,
                      const Profile& profile) {
  std::string kernels;
  for (size_t i = 0; i < profile.alone_s.size(); ++i) {
    const runtime::NetworkKernel& kernel = network.kernels[i];
    kernels += fmt::format(
        "{}{{\"kernel\":{},\"seconds\":{},\"in_network_s\":{},\"expected_s\":{},"
        "\"flops\":{}}}",
        i == 0 ? "" : ",", JsonString(kernel.name), profile.alone_s[i],
        profile.in_network_s.empty() ? "null" : fmt::to_string(profile.in_network_s[i]),
        kernel.expected_s, kernel.flops);
  }
  return fmt::format(
      "{{\"mean_s\":{},\"median_s\":{},\"max_s\":{},\"min_s\":{},\"std_s\":{},\"expected_s\":{},"
      "\"kernels\":[{}]}}",
      s.mean, s.median, s.max, s.min, s.deviation, ExpectedOf(network), kernels);
}

// Writes each kernel of one run as a slice.
Status WriteTrace(const std::string& path, runtime::Executor& executor) {
  KILN_ASSIGN_OR_RETURN(const std::vector<runtime::KernelSpan> spans, executor.TraceRun());
  KILN_ASSIGN_OR_RETURN(AtomicFile file, AtomicFile::Create(path));
  TraceEvents events([&file](std::string_view bytes) { return file.Append(bytes); });
  const runtime::Network& network = executor.network();
  constexpr int kGroup = 1, kLane = 1;
  const runtime::NetworkTarget& target = network.target;
  const std::string& device = target.device.empty() ? target.text : target.device;
  events.NameGroup(kGroup, fmt::format("a run on {}", device), 0);
  events.NameLane(kGroup, kLane, "kernels");
  for (size_t k = 0; k < spans.size(); ++k) {
    const runtime::NetworkKernel& kernel = network.kernels[k];
    const double seconds = spans[k].end_s - spans[k].begin_s;
    events.Slice(kGroup, kLane, kernel.name, 1e6 * spans[k].begin_s, 1e6 * seconds,
                 {{"kernel", fmt::to_string(k)},
                  {"schedule", std::string(runtime::SourceName(kernel.source))},
                  {"by its record",
                   kernel.expected_s > 0 ? FormatSeconds(kernel.expected_s) : std::string()},
                  {"speed", seconds > 0 ? FormatFlops(kernel.flops / seconds) : std::string()}});
  }
  KILN_RETURN_IF_ERROR(events.Finish());
  KILN_RETURN_IF_ERROR(file.Commit());
  fmt::print(stderr,
             "one run of {} written to {}, for https://ui.perfetto.dev or chrome://tracing\n",
             Counted(std::ssize(spans), "kernel"), path);
  return OkStatus();
}

Status Bench(const BenchFlags& flags, bool json) {
  runtime::ExecutorOptions options;
  options.threads = flags.threads;
  options.gpu = flags.gpu;
  KILN_ASSIGN_OR_RETURN(const auto executor, runtime::Executor::Load(flags.path, options));
  KILN_ASSIGN_OR_RETURN(
      const std::vector<double> samples,
      executor->Bench({.repeat = flags.repeat, .min_repeat_s = flags.min_repeat_ms / 1e3}));
  Profile profile;
  if (flags.profile) {
    KILN_ASSIGN_OR_RETURN(profile, ProfileOf(*executor));
  }
  if (!flags.trace.empty()) KILN_RETURN_IF_ERROR(WriteTrace(flags.trace, *executor));
  const Statistics statistics = StatisticsOf(samples);
  if (json) {
    fmt::print("{}\n", BenchJson(statistics, executor->network(), profile));
    return OkStatus();
  }
  PrintStatistics(statistics, *executor);
  if (flags.profile) PrintProfile(executor->network(), profile, statistics.median);
  return OkStatus();
}

}  // namespace

Run AddBench(CLI::App& bench, SessionFlags& session) {
  const auto flags = std::make_shared<BenchFlags>();
  bench.description("how fast a compiled network runs here");
  bench.add_option("file", flags->path, "a compiled network (*.kiln)")->required();
  bench.add_option("--repeat", flags->repeat, "readings")
      ->check(CLI::Range(1, 1'000'000))
      ->capture_default_str();
  bench.add_option("--min-repeat-ms", flags->min_repeat_ms, "least time of a reading")
      ->check(CLI::Range(0.0, 3.6e6))
      ->capture_default_str();
  bench.add_flag("--profile", flags->profile, "each kernel by itself, too");
  bench
      .add_option("--trace", flags->trace,
                  "write the kernels of one run for Perfetto and chrome://tracing")
      ->type_name("FILE");
  AddExecutor(bench, flags->threads, flags->gpu);
  session.AddJson(bench);
  return Plain([flags](const Session& session) { return Bench(*flags, session.json); });
}

}  // namespace kiln::client
