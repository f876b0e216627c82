#include <fmt/format.h>

#include <cstdlib>
#include <map>
#include <sstream>

#include "base/process/machine_load.h"
#include "device/device_state.h"

namespace kiln::device {
namespace {

// Parses a number at the start of the text. None: there is none.
std::optional<double> NumberIn(const std::string& text) {
  char* end = nullptr;
  const double number = std::strtod(text.c_str(), &end);
  if (end == text.c_str()) return std::nullopt;
  return number;
}

// Returns the MHz of each core that /proc/cpuinfo names.
std::map<int, double> FrequenciesIn(const std::string& cpuinfo) {
  std::map<int, double> mhz;
  std::istringstream lines(cpuinfo);
  int core = -1;
  for (std::string line; std::getline(lines, line);) {
    const size_t colon = line.find(':');
    if (colon == std::string::npos) continue;
    const std::optional<double> number = NumberIn(line.substr(colon + 1));
    if (!number) continue;
    if (line.starts_with("processor")) core = static_cast<int>(*number);
    if (line.starts_with("cpu MHz")) mhz[core] = *number;
  }
  return mhz;
}

class CpuStateReader : public DeviceStateReader {
 public:
  CpuStateReader(std::vector<int> cores, ReadText read)
      : cores_(std::move(cores)), read_(std::move(read)) {}

  DeviceState Read() override {
    DeviceState state;
    state.cpu_mhz = MeanMhz();
    NoteSteal();
    state.steal_share = steal_share_;
    if (const auto load = read_("/proc/loadavg"); load.ok()) state.load = NumberIn(*load);
    return state;
  }

 private:
  std::optional<uint32_t> MeanMhz() {
    std::map<int, double> in_cpuinfo;
    double sum_mhz = 0;
    int known = 0;
    for (const int core : cores_) {
      std::optional<double> mhz = Scaling(core);
      if (!mhz) {
        if (in_cpuinfo.empty()) in_cpuinfo = FrequenciesIn(read_("/proc/cpuinfo").value_or(""));
        const auto it = in_cpuinfo.find(core);
        if (it != in_cpuinfo.end()) mhz = it->second;
      }
      if (!mhz || *mhz <= 0) continue;
      sum_mhz += *mhz;
      ++known;
    }
    if (known == 0) return std::nullopt;
    return static_cast<uint32_t>(sum_mhz / known + 0.5);
  }

  std::optional<double> Scaling(int core) {
    const auto khz =
        read_(fmt::format("/sys/devices/system/cpu/cpu{}/cpufreq/scaling_cur_freq", core));
    if (!khz.ok()) return std::nullopt;
    const std::optional<double> number = NumberIn(*khz);
    if (!number) return std::nullopt;
    return 1e-3 * *number;
  }

  // Two readings within a tick of the kernel's clock say nothing, and the share before stays.
  void NoteSteal() {
    const auto text = read_("/proc/stat");
    if (!text.ok()) return;
    const auto now = ParseCpuTimes(*text);
    if (!now.ok()) return;
    if (last_.has_value() && now->all > last_->all) steal_share_ = StolenShare(*last_, *now);
    if (!last_.has_value() || now->all > last_->all) last_ = *now;
  }

  const std::vector<int> cores_;
  const ReadText read_;
  std::optional<CpuTimes> last_;
  std::optional<double> steal_share_;
};

}  // namespace

std::unique_ptr<DeviceStateReader> MakeCpuStateReader(std::vector<int> cores, ReadText read) {
  return std::make_unique<CpuStateReader>(std::move(cores), std::move(read));
}

}  // namespace kiln::device
