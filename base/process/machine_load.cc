#include "base/process/machine_load.h"

#include <fmt/format.h>

#include <cstdlib>
#include <sstream>
#include <vector>

#include "base/file/file.h"
#include "base/thread_pool.h"

namespace kiln {
namespace {

// Share of stolen time from which it is mentioned.
constexpr double kMuchStolen = 0.02;

double Share(double part, double all) { return all > 0 ? part / all : 0; }

}  // namespace

StatusOr<CpuTimes> ParseCpuTimes(std::string_view proc_stat) {
  std::istringstream line{std::string(proc_stat.substr(0, proc_stat.find('\n')))};
  std::string name;
  line >> name;
  std::vector<double> times;
  for (double ticks = 0; line >> ticks;) times.push_back(ticks);
  // Columns: user nice system idle iowait irq softirq steal
  if (name != "cpu" || times.size() < 8)
    return InvalidArgument("expected a line 'cpu' with eight numbers, found '{}'", line.str());
  CpuTimes cpu;
  cpu.busy = times[0] + times[1] + times[2] + times[5] + times[6];
  cpu.stolen = times[7];
  cpu.all = cpu.busy + cpu.stolen + times[3] + times[4];
  return cpu;
}

StatusOr<CpuTimes> ReadCpuTimes() {
  KILN_ASSIGN_OR_RETURN(const std::string text, ReadFile("/proc/stat"));
  return ParseCpuTimes(text);
}

double BusyShare(const CpuTimes& before, const CpuTimes& after) {
  return Share(after.busy - before.busy, after.all - before.all);
}

double StolenShare(const CpuTimes& before, const CpuTimes& after) {
  return Share(after.stolen - before.stolen, after.all - before.all);
}

std::string LoadText() {
  double load = 0;
  if (getloadavg(&load, 1) != 1) return {};
  std::string text = fmt::format("load {:.1f} on {} cores", load, AvailableCpus());
  const auto times = ReadCpuTimes();
  if (!times.ok()) return text;
  const double stolen = StolenShare({}, *times);
  if (stolen > kMuchStolen) text += fmt::format(", {:.0f}% of them stolen", 100 * stolen);
  return text;
}

}  // namespace kiln
