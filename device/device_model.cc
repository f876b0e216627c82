#include "device/device_model.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>

#include "base/text/units.h"

namespace kiln::device {
namespace {

constexpr size_t kMaxNameBytes = 256;
constexpr std::string_view kNameKey = "name=";

// Calls visit(name, number, largest) for each number of the table.
// clang-format off
template <typename Model, typename Visit>
void ForEachNumber(Model& model, const Visit& visit) {
#define KILN_VISIT(type, number, largest) \
  visit(std::string_view(#number), model.number, int64_t{largest});
  KILN_DEVICE_NUMBERS(KILN_VISIT)
#undef KILN_VISIT
}

// clang-format on

Status CheckName(std::string_view name) {
  if (name.empty()) return InvalidArgument("device model: it has no name");
  if (name.size() > kMaxNameBytes) {
    return InvalidArgument("device model: its name has {} bytes, at most {} are accepted",
                           name.size(), kMaxNameBytes);
  }
  for (const char c : name) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < ' ' || byte == 127)
      return InvalidArgument("device model: its name holds the byte {:#04x}", byte);
  }
  return OkStatus();
}

Status CheckNumbers(const DeviceModel& model) {
  Status status;
  ForEachNumber(model, [&](std::string_view name, int64_t number, int64_t largest) {
    if (!status.ok() || (number >= 0 && number <= largest)) return;
    status = InvalidArgument("device model: {} is {}, expected 0 to {}", name, number, largest);
  });
  return status;
}

// Checks the assumptions of divisions and limits.
Status CheckGpu(const DeviceModel& m) {
  if (m.multiprocessors == 0)
    return InvalidArgument("device model: a GPU of capability {} with no multiprocessors",
                           m.compute_capability);
  for (const int32_t filled :
       {m.multiprocessors_in_clusters_of_2, m.multiprocessors_in_clusters_of_4,
        m.multiprocessors_in_clusters_of_8, m.multiprocessors_in_clusters_of_16}) {
    if (filled > m.multiprocessors) {
      return InvalidArgument("device model: clusters fill {} multiprocessors of {}", filled,
                             m.multiprocessors);
    }
  }
  const int64_t block = std::max(m.shared_bytes_per_block, m.opt_in_shared_bytes_per_block);
  if (m.shared_bytes_per_multiprocessor > 0 && block > m.shared_bytes_per_multiprocessor) {
    return InvalidArgument(
        "device model: a block has {} bytes of shared memory, its multiprocessor {}", block,
        m.shared_bytes_per_multiprocessor);
  }
  return OkStatus();
}

template <typename Number>
Status TakeNumber(std::string_view key, std::string_view text, Number& number) {
  const char* end = text.data() + text.size();
  const auto [at, error] = std::from_chars(text.data(), end, number);
  if (error == std::errc() && at == end) return OkStatus();
  return InvalidArgument("device model: {} is '{}', expected a whole number", key, text);
}

Status TakeWord(std::string_view word, DeviceModel& model) {
  const size_t equals = std::min(word.find('='), word.size());
  const std::string_view key = word.substr(0, equals);
  const std::string_view text = equals < word.size() ? word.substr(equals + 1) : "";
  bool known = false;
  Status status;
  ForEachNumber(model, [&](std::string_view name, auto& number, int64_t) {
    if (name != key) return;
    known = true;
    status = number != 0 ? InvalidArgument("device model: {} is given twice", key)
                         : TakeNumber(key, text, number);
  });
  if (!known) return InvalidArgument("device model: there is no number '{}'", key);
  return status;
}

// The limits of a compute capability that differ, and the sizes of a common device.
struct Generation {
  int compute_capability;
  int32_t multiprocessors, clock_mhz, memory_clock_mhz, memory_bus_bits;
  int64_t l2_mib;
  int32_t threads, blocks;
  int64_t shared_kib, block_shared_kib, reserved_shared_kib;
};

// The rows are V100, T4, A100, RTX 3090, Jetson AGX Orin, RTX 4090, H200, B200, RTX 5090.
constexpr Generation kGenerations[] = {
    {70, 80, 1530, 877, 4096, 6, 2048, 32, 96, 96, 0},
    {75, 40, 1590, 5001, 256, 4, 1024, 16, 64, 64, 0},
    {80, 108, 1410, 1215, 5120, 40, 2048, 32, 164, 163, 1},
    {86, 82, 1695, 9751, 384, 6, 1536, 16, 100, 99, 1},
    {87, 16, 1300, 3200, 256, 4, 1536, 16, 164, 163, 1},
    {89, 128, 2520, 10501, 384, 72, 1536, 24, 100, 99, 1},
    {90, 132, 1980, 3201, 6016, 60, 2048, 32, 228, 227, 1},
    {100, 148, 1965, 3996, 8192, 126, 2048, 32, 228, 227, 1},
    {120, 170, 2407, 14001, 512, 96, 1536, 24, 100, 99, 1},
};

const Generation& GenerationOf(int compute_capability) {
  const Generation* found = &kGenerations[0];
  for (const Generation& generation : kGenerations) {
    if (generation.compute_capability <= compute_capability) found = &generation;
  }
  return *found;
}

constexpr int kUsualCapability = 90, kFirstCapabilityWithClusters = 90;

// Number of an H200's 132 multiprocessors that take blocks of clusters of 2, 4, 8 and 16, measured
// with cuOccupancyMaxActiveClusters. A cluster stays inside one group of multiprocessors, and no
// group is a multiple of every size.
constexpr int kMeasuredMultiprocessors = 132;
constexpr std::array<int, 4> kFilledByClusters = {132, 120, 120, 112};

int32_t ShareFilled(int multiprocessors, int filled) {
  return static_cast<int32_t>(int64_t{multiprocessors} * filled / kMeasuredMultiprocessors);
}

void AddClusters(DeviceModel& model) {
  model.max_cluster_blocks = 16;
  const auto filled = [&](size_t i) {
    return ShareFilled(model.multiprocessors, kFilledByClusters[i]);
  };
  model.multiprocessors_in_clusters_of_2 = filled(0);
  model.multiprocessors_in_clusters_of_4 = filled(1);
  model.multiprocessors_in_clusters_of_8 = filled(2);
  model.multiprocessors_in_clusters_of_16 = filled(3);
}

// Limits the shared memory figures of `usual` to the room that `said` has. They fill the gaps of
// `said`.
void FitShared(const DeviceModel& said, DeviceModel& usual) {
  const int64_t all = said.shared_bytes_per_multiprocessor;
  if (all == 0) {
    usual.shared_bytes_per_multiprocessor =
        std::max({usual.shared_bytes_per_multiprocessor, said.shared_bytes_per_block,
                  said.opt_in_shared_bytes_per_block});
    return;
  }
  usual.reserved_shared_bytes_per_block = 0;
  usual.shared_bytes_per_block = std::min(usual.shared_bytes_per_block, all);
  usual.opt_in_shared_bytes_per_block = std::min(usual.opt_in_shared_bytes_per_block, all);
}

}  // namespace

Status CheckDeviceModel(const DeviceModel& model) {
  KILN_RETURN_IF_ERROR(CheckName(model.name));
  KILN_RETURN_IF_ERROR(CheckNumbers(model));
  return model.is_gpu() ? CheckGpu(model) : OkStatus();
}

std::string PrintDeviceModel(const DeviceModel& model) {
  std::string text;
  ForEachNumber(model, [&](std::string_view name, int64_t number, int64_t) {
    if (number != 0) text += fmt::format("{}={} ", name, number);
  });
  return text + std::string(kNameKey) + model.name;
}

StatusOr<DeviceModel> ParseDeviceModel(std::string_view text) {
  DeviceModel model;
  while (!text.starts_with(kNameKey)) {
    const size_t space = text.find(' ');
    if (space == std::string_view::npos) {
      return InvalidArgument("device model: expected name=... at its end, found '{}'",
                             text.substr(0, kMaxNameBytes));
    }
    KILN_RETURN_IF_ERROR(TakeWord(text.substr(0, space), model));
    text.remove_prefix(space + 1);
  }
  model.name = text.substr(kNameKey.size());
  KILN_RETURN_IF_ERROR(CheckDeviceModel(model));
  return model;
}

std::string DeviceSummary(const DeviceModel& model) {
  std::vector<std::string> facts;
  const auto add = [&](int64_t number, std::string text) {
    if (number > 0) facts.push_back(std::move(text));
  };
  if (model.is_gpu()) {
    const int capability = model.compute_capability;
    add(capability, fmt::format("capability {}.{}", capability / 10, capability % 10));
    add(model.multiprocessors, fmt::format("{} multiprocessors", model.multiprocessors));
  }
  add(model.cores, fmt::format("{} cores", model.cores));
  add(model.clock_mhz, fmt::format("{} MHz", model.clock_mhz));
  add(model.gflops_per_core, fmt::format("{} GFLOP/s a core", model.gflops_per_core));
  add(model.vector_bytes, fmt::format("vectors of {} bytes", model.vector_bytes));
  add(model.l1_bytes, fmt::format("L1 {}", FormatBytes(model.l1_bytes)));
  add(model.l2_bytes, fmt::format("L2 {}", FormatBytes(model.l2_bytes)));
  add(model.l3_bytes, fmt::format("L3 {}", FormatBytes(model.l3_bytes)));
  const double bandwidth = MemoryBandwidth(model);
  if (bandwidth > 0) facts.push_back(fmt::format("memory {:.0f} GB/s", bandwidth / 1e9));
  const int64_t shared =
      std::max(model.shared_bytes_per_block, model.opt_in_shared_bytes_per_block);
  add(shared, fmt::format("{} of shared memory a block", FormatBytes(shared)));
  if (model.max_cluster_blocks > 1)
    facts.push_back(fmt::format("clusters of up to {}", model.max_cluster_blocks));
  const auto units = MatrixUnits(model);
  if (!units.empty()) facts.push_back(fmt::format("matrix units {}", fmt::join(units, " ")));
  return fmt::format("{}", fmt::join(facts, ", "));
}

DeviceModel UsualGpu(int compute_capability) {
  const Generation& g = GenerationOf(compute_capability);
  DeviceModel model;
  model.name =
      fmt::format("a GPU of capability {}.{}", compute_capability / 10, compute_capability % 10);
  model.compute_capability = compute_capability;
  model.multiprocessors = g.multiprocessors;
  model.clock_mhz = g.clock_mhz;
  model.memory_clock_mhz = g.memory_clock_mhz;
  model.memory_bus_bits = g.memory_bus_bits;
  model.l2_bytes = g.l2_mib << 20;
  model.registers_per_multiprocessor = model.registers_per_block = 65536;
  model.shared_bytes_per_multiprocessor = g.shared_kib << 10;
  model.threads_per_multiprocessor = g.threads;
  model.blocks_per_multiprocessor = g.blocks;
  model.shared_bytes_per_block = 48 << 10;
  model.opt_in_shared_bytes_per_block = g.block_shared_kib << 10;
  model.reserved_shared_bytes_per_block = g.reserved_shared_kib << 10;
  model.threads_per_block = 1024;
  model.warp_size = 32;
  model.max_cluster_blocks = 1;
  if (compute_capability >= kFirstCapabilityWithClusters) AddClusters(model);
  return model;
}

DeviceModel FilledGpu(DeviceModel model, int otherwise) {
  if (model.compute_capability == 0)
    model.compute_capability = otherwise > 0 ? otherwise : kUsualCapability;
  DeviceModel usual = UsualGpu(model.compute_capability);
  if (model.multiprocessors > 0 && usual.max_cluster_blocks > 1) {
    usual.multiprocessors = model.multiprocessors;
    AddClusters(usual);
  }
  if (model.max_cluster_blocks > 0) {
    // The device has said what clusters it holds, so it has none of the sizes that are 0.
    usual.multiprocessors_in_clusters_of_2 = usual.multiprocessors_in_clusters_of_4 = 0;
    usual.multiprocessors_in_clusters_of_8 = usual.multiprocessors_in_clusters_of_16 = 0;
  }
  FitShared(model, usual);
  const DeviceModel said = model;
  model = usual;
  if (!said.name.empty()) model.name = said.name;
#define KILN_TAKE(type, number, largest) \
  if (said.number > 0) model.number = said.number;
  KILN_DEVICE_NUMBERS(KILN_TAKE)
#undef KILN_TAKE
  return model;
}

double MemoryBandwidth(const DeviceModel& model) {
  constexpr double kEdges = 2, kBitsPerByte = 8;
  return kEdges * 1e6 * model.memory_clock_mhz * model.memory_bus_bits / kBitsPerByte;
}

double MultiprocessorsForClusters(const DeviceModel& model, int64_t cluster) {
  int32_t filled = model.multiprocessors;
  if (cluster > 8) {
    filled = model.multiprocessors_in_clusters_of_16;
  } else if (cluster > 4) {
    filled = model.multiprocessors_in_clusters_of_8;
  } else if (cluster > 2) {
    filled = model.multiprocessors_in_clusters_of_4;
  } else if (cluster > 1) {
    filled = model.multiprocessors_in_clusters_of_2;
  }
  return std::max(1, filled);
}

int Fp32Lanes(int compute_capability) { return compute_capability <= 80 ? 64 : 128; }

std::vector<std::string_view> MatrixUnits(const DeviceModel& model) {
  struct Unit {
    int first, last;
    std::string_view name;
  };
  constexpr int kEver = std::numeric_limits<int>::max();
  // Source: PTX ISA, "Target ISA Notes" of wmma, mma, wgmma and tcgen05.
  constexpr Unit kUnits[] = {
      {70, kEver, "fp16"}, {75, kEver, "int8"}, {80, kEver, "bf16"}, {80, kEver, "tf32"},
      {80, kEver, "fp64"}, {89, kEver, "fp8"},  {90, 90, "wgmma"},   {100, 110, "tcgen05"},
  };
  std::vector<std::string_view> names;
  for (const Unit& unit : kUnits) {
    if (model.compute_capability >= unit.first && model.compute_capability <= unit.last)
      names.push_back(unit.name);
  }
  return names;
}

}  // namespace kiln::device
