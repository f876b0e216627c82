#include "compiler/target/target_kind.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <string>

#include "compiler/target/target.h"

namespace kiln::target {
namespace {

constexpr int32_t kWarpThreads = 32;
// Registers of a block, and the fewest registers that a compiled thread needs.
constexpr int32_t kUsualRegisters = 65536, kMinRegistersPerThread = 24;

// Returns a positive number of 32 bits, and 0 for any other text.
int32_t PositiveNumber(std::string_view text) {
  int32_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() && value > 0 ? value : 0;
}

bool IsPositive(std::string_view text) { return PositiveNumber(text) > 0; }

bool IsArch(std::string_view text) {
  // The text is like sm_90 or sm_90a.
  if (!text.starts_with("sm_")) return false;
  text.remove_prefix(3);
  if (!text.empty() && (text.back() == 'a' || text.back() == 'f')) text.remove_suffix(1);
  return text.size() >= 2 && text.size() <= 3 && PositiveNumber(text) > 0;
}

bool IsMath(std::string_view text) { return text == "tf32"; }

// The block must have enough registers for at least one warp.
bool IsRegisters(std::string_view text) {
  return PositiveNumber(text) >= kWarpThreads * kMinRegistersPerThread;
}

// Bytes that one instruction of a GPU loads or stores.
bool IsGpuVector(std::string_view text) { return text == "4" || text == "8" || text == "16"; }

// Registers that processors have, in bits.
bool IsVectorWidth(std::string_view text) {
  return text == "128" || text == "256" || text == "512";
}

constexpr TargetOption Text(std::string_view name, OptionEffect effect) { return {name, effect}; }
constexpr TargetOption Positive(std::string_view name, OptionEffect effect) {
  return {name, effect, IsPositive, "a positive whole number"};
}

bool IsNever(std::string_view) { return false; }

// An option of other compilers that Kiln lacks. A target with it is refused with the reason. In a
// record the option is left out (recorded.h).
constexpr TargetOption Foreign(std::string_view name, std::string_view expected) {
  return {name, OptionEffect::kNone, IsNever, expected};
}

// Options of every kind. Old logs have all but cache_line_bytes.
constexpr std::array kCommon = {
    Positive("cache_line_bytes", OptionEffect::kMachine),
    Text("device", OptionEffect::kNone),
    Text("host", OptionEffect::kNone),
    Text("keys", OptionEffect::kNone),
    Text("libs", OptionEffect::kNone),
    Text("model", OptionEffect::kNone),
    Text("tag", OptionEffect::kNone),
    Foreign("fast-math", "a target without it: Kiln keeps the order of sums; leave it out"),
    Foreign("link-params", "a target without it: Kiln keeps weights beside the code; leave it out"),
    Foreign("runtime", "a target without it: Kiln's programs have one runtime; leave it out"),
    Foreign("system-lib",
            "a target without it: Kiln's programs are loaded from files; leave it out"),
};
constexpr std::array kOfCpus = {
    Foreign("mabi", "a target without it: Kiln calls code as the processor does; leave it out"),
    Foreign("mfloat-abi",
            "a target without it: Kiln calls code as the processor does; leave it out"),
    Foreign("opt-level", "a target without it: Kiln optimizes as far as it can; leave it out"),
    Text("mattr", OptionEffect::kMachine),
    Text("mcpu", OptionEffect::kCode),
    Text("mtriple", OptionEffect::kMachine),
    Positive("num-cores", OptionEffect::kMachine),
    TargetOption{"vector-width", OptionEffect::kCode, IsVectorWidth,
                 "the bits of a vector register: 128, 256 or 512"},
};
constexpr std::array kOfCuda = {
    TargetOption{"arch", OptionEffect::kCode, IsArch, "a GPU architecture like sm_90"},
    TargetOption{"math", OptionEffect::kCode, IsMath, "tf32"},
    Positive("max_local_memory_per_block", OptionEffect::kMachine),
    Positive("max_num_threads", OptionEffect::kMachine),
    Positive("max_shared_memory_per_block", OptionEffect::kMachine),
    Positive("max_threads_per_block", OptionEffect::kMachine),
    Positive("max_vthread_extent", OptionEffect::kMachine),
    TargetOption{"registers_per_block", OptionEffect::kMachine, IsRegisters,
                 "a whole number of registers, 768 or more"},
    Positive("thread_warp_size", OptionEffect::kMachine),
    TargetOption{"vector_unit_bytes", OptionEffect::kMachine, IsGpuVector,
                 "the bytes of a load or store: 4, 8 or 16"},
};

template <size_t... kSizes>
constexpr auto Joined(const std::array<TargetOption, kSizes>&... parts) {
  std::array<TargetOption, (kSizes + ...)> all{};
  auto out = all.begin();
  ((out = std::copy(parts.begin(), parts.end(), out)), ...);
  std::ranges::sort(all, {}, &TargetOption::name);
  return all;
}

constexpr auto kLlvmOptions = Joined(kCommon, kOfCpus);
constexpr auto kCudaOptions = Joined(kCommon, kOfCuda);
constexpr auto kNullOptions = Joined(kCommon, kOfCpus, kOfCuda);

int32_t NumberOption(const Target& target, std::string_view name, int32_t otherwise) {
  const int32_t value = PositiveNumber(target.Option(name));
  return value > 0 ? value : otherwise;
}

HardwareParams CpuHardware(const Target& target, int host_cores) {
  HardwareParams hardware;
  hardware.num_cores = NumberOption(target, "num-cores", std::max(host_cores, 1));
  hardware.vector_unit_bytes =
      NumberOption(target, "vector-width", 8 * hardware.vector_unit_bytes) / 8;
  hardware.cache_line_bytes = NumberOption(target, "cache_line_bytes", hardware.cache_line_bytes);
  return hardware;
}

HardwareParams CudaHardware(const Target& target, int) {
  HardwareParams hardware;
  hardware.num_cores = -1;
  hardware.vector_unit_bytes = NumberOption(target, "vector_unit_bytes", 16);
  hardware.cache_line_bytes = NumberOption(target, "cache_line_bytes", hardware.cache_line_bytes);
  hardware.max_shared_memory_per_block_bytes =
      NumberOption(target, "max_shared_memory_per_block", 49152);
  hardware.max_local_memory_per_block_bytes =
      NumberOption(target, "max_local_memory_per_block", std::numeric_limits<int32_t>::max());
  hardware.max_threads_per_block =
      NumberOption(target, "max_threads_per_block", NumberOption(target, "max_num_threads", 1024));
  // A block may not have so many threads that they would get too few registers.
  const int32_t registers = NumberOption(target, "registers_per_block", kUsualRegisters);
  const int32_t with_registers = registers / kMinRegistersPerThread / kWarpThreads * kWarpThreads;
  hardware.max_threads_per_block = std::min(hardware.max_threads_per_block, with_registers);
  hardware.warp_size = NumberOption(target, "thread_warp_size", 32);
  hardware.max_vthread_extent =
      NumberOption(target, "max_vthread_extent", std::max(hardware.warp_size / 4, 1));
  return hardware;
}

int CudaArch(const Target& target) {
  const std::string arch = target.Option("arch");
  int number = 0;
  if (arch.starts_with("sm_")) std::from_chars(arch.data() + 3, arch.data() + arch.size(), number);
  return number;
}

}  // namespace

constinit const TargetKind kLlvm = {.name = "llvm",
                                    .other_name = "cpu",
                                    .execution = ExecutionModel::kCpu,
                                    .device = "cpu",
                                    .uses_host_cores = true,
                                    .unscheduled_flops_per_s = 1e9,
                                    .processor_option = "mcpu",
                                    .options = kLlvmOptions,
                                    .default_hardware = CpuHardware};

// Unscheduled loops run in many threads on a GPU.
constinit const TargetKind kCuda = {.name = "cuda",
                                    .execution = ExecutionModel::kGpu,
                                    .device = "cuda",
                                    .unscheduled_flops_per_s = 1e12,
                                    .processor_option = "arch",
                                    .options = kCudaOptions,
                                    .default_hardware = CudaHardware,
                                    .gpu_arch = CudaArch};

// Takes the options of both other kinds, so that a task for either of them can be sent here.
constinit const TargetKind kNull = {.name = "null",
                                    .execution = ExecutionModel::kCpu,
                                    .device = "null",
                                    .runs_programs = false,
                                    .processor_option = "mcpu",
                                    .options = kNullOptions,
                                    .default_hardware = CpuHardware};

TargetKinds AllTargetKinds() {
  static constexpr const TargetKind* kAll[] = {&kLlvm, &kCuda, &kNull};
  return kAll;
}

const TargetOption* TargetKind::FindOption(std::string_view option) const {
  const auto found = std::ranges::find(options, option, &TargetOption::name);
  return found == options.end() ? nullptr : &*found;
}

}  // namespace kiln::target
