// The kinds of targets. A row for each holds the differences between them. Code that compiles,
// searches, builds or measures asks the row, and never which kind it is.
//
// A row is a constant that lives as long as the program, so kinds are compared by address. Tables
// with an entry for each kind stand where they belong if a row cannot hold the difference: code
// generators (compiler/codegen/backend.h), devices (runner/device_kinds.h).
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "device/hardware_params.h"

namespace kiln::target {

using kiln::HardwareParams;

struct Target;

// The way in which programs are executed, which decides the kinds of loops. Lowering, features and
// search depend on it.
enum class ExecutionModel : uint8_t {
  // Cores with caches and vector units: loops are parallel, vectorized or unrolled.
  kCpu,
  // Grids of blocks of threads with shared memory: every root stage is a kernel, and its loops are
  // bound to blocks, virtual threads and threads.
  kGpu,
};

// The meaning of a difference between two targets in an option.
enum class OptionEffect : uint8_t {
  // No difference: the option is only kept because old logs have it.
  kNone,
  // A text without the option takes the machine's value. Two different values are different
  // targets.
  kMachine,
  // The code differs.
  kCode,
};

struct TargetOption {
  std::string_view name;
  OptionEffect effect;
  // Null: any printable text. `expected` tells people which values are valid.
  bool (*is_valid)(std::string_view value) = nullptr;
  std::string_view expected = {};
};

struct TargetKind {
  // The first word of the text of a target, and a key that its builders and runners announce.
  std::string_view name;
  // Another first word that a text may have. Empty: there is none.
  std::string_view other_name = {};
  ExecutionModel execution = ExecutionModel::kCpu;
  // The kind of device that runs its programs, as `kiln runner --device` calls it.
  std::string_view device;
  // True if programs are run. Otherwise the costs are made up.
  bool runs_programs = true;
  // True if programs run on cores of the host. Builds and searches on that host must then rest
  // while a program is timed.
  bool uses_host_cores = false;
  // Approximate number of operations per second of loops that nobody scheduled.
  double unscheduled_flops_per_s = 1e9;
  // The option that names the processor.
  std::string_view processor_option;
  // Ascending by name.
  std::span<const TargetOption> options;
  // The hardware of a device that reports nothing about itself, as far as the target's text gives
  // it. A device of the host has `host_cores`.
  HardwareParams (*default_hardware)(const Target& target, int host_cores);
  // Returns the CUDA architecture that code may rely on: 90 for -arch=sm_90a. Null: there is none.
  int (*gpu_arch)(const Target& target) = nullptr;

  // Returns null if the kind has no such option.
  const TargetOption* FindOption(std::string_view option) const;
};

// A CPU, with code by LLVM.
extern const TargetKind kLlvm;
// An NVIDIA GPU.
extern const TargetKind kCuda;
// Runs nothing. For tests of everything around it.
extern const TargetKind kNull;

using TargetKinds = std::span<const TargetKind* const>;
// Returns the kinds that this program knows.
TargetKinds AllTargetKinds();

}  // namespace kiln::target
