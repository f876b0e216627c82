// kiln bench: how fast a compiled network runs on this machine.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/median.h"
#include "base/terminal.h"
#include "base/units.h"
#include "client/cli/commands.h"
#include "client/view/json.h"
#include "runtime/executor.h"

namespace kiln::client {
namespace {

struct Statistics {
  double mean = 0, median = 0, max = 0, min = 0, deviation = 0;  // seconds
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
  fmt::print("{} kernels, by their records {}; memory {} of weights, {} between kernels, {} else\n",
             network.kernels.size(), FormatSeconds(ExpectedOf(network)),
             FormatBytes(memory.constants), FormatBytes(memory.arena), FormatBytes(memory.staging));
}

void PrintProfile(const runtime::Network& network, const std::vector<double>& seconds,
                  double median_s) {
  const double sum = std::accumulate(seconds.begin(), seconds.end(), 0.0);
  Table table({{"Kernel", Table::kLeft, 16},
               {"Share", Table::kRight},
               {"Latency", Table::kRight},
               {"Record", Table::kRight},
               {"Speed", Table::kRight},
               {"Schedule"}});
  for (size_t i = 0; i < seconds.size(); ++i) {
    const runtime::NetworkKernel& kernel = network.kernels[i];
    table.AddRow(
        {kernel.name, fmt::format("{:.1f}%", 100 * seconds[i] / sum), FormatSeconds(seconds[i]),
         kernel.expected_s > 0 ? FormatSeconds(kernel.expected_s) : "-",
         FormatFlops(kernel.flops / seconds[i]), std::string(runtime::SourceName(kernel.source))});
  }
  fmt::print("\n{}kernels by themselves {}, the network {}: {} {}\n",
             table.ToString(OutputColumns(STDOUT_FILENO)), FormatSeconds(sum),
             FormatSeconds(median_s), FormatSeconds(std::abs(median_s - sum)),
             median_s > sum ? "more, between kernels" : "less, beside each other");
}

std::string BenchJson(const Statistics& s, const runtime::Network& network,
                      const std::vector<double>& seconds) {
  std::string kernels;
  for (size_t i = 0; i < seconds.size(); ++i) {
    const runtime::NetworkKernel& kernel = network.kernels[i];
    kernels += fmt::format("{}{{\"kernel\":{},\"seconds\":{},\"expected_s\":{},\"flops\":{}}}",
                           i == 0 ? "" : ",", JsonString(kernel.name), seconds[i],
                           kernel.expected_s, kernel.flops);
  }
  return fmt::format(
      "{{\"mean_s\":{},\"median_s\":{},\"max_s\":{},\"min_s\":{},\"std_s\":{},\"expected_s\":{},"
      "\"kernels\":[{}]}}",
      s.mean, s.median, s.max, s.min, s.deviation, ExpectedOf(network), kernels);
}

}  // namespace

Status BenchCommand(const BenchFlags& flags, bool json) {
  runtime::ExecutorOptions options;
  options.threads = flags.threads;
  options.gpu = flags.gpu;
  KILN_ASSIGN_OR_RETURN(const auto executor, runtime::Executor::Load(flags.path, options));
  KILN_ASSIGN_OR_RETURN(
      const std::vector<double> samples,
      executor->Bench({.repeat = flags.repeat, .min_repeat_s = flags.min_repeat_ms / 1e3}));
  std::vector<double> kernels;
  if (flags.profile) {
    KILN_ASSIGN_OR_RETURN(kernels, executor->Profile());
  }
  const Statistics statistics = StatisticsOf(samples);
  if (json) {
    fmt::print("{}\n", BenchJson(statistics, executor->network(), kernels));
    return OkStatus();
  }
  PrintStatistics(statistics, *executor);
  if (flags.profile) PrintProfile(executor->network(), kernels, statistics.median);
  return OkStatus();
}

}  // namespace kiln::client
