// The kinds of targets: a row for each says what differs between them. Who compiles, searches,
// builds or measures asks the row, and never which kind it is.
//
// A row is a constant that lives as long as the program; two kinds are one where their addresses
// are. What a row cannot say has a table of its own where it belongs, with an entry for each kind:
// code generators (compiler/codegen/backend.h), devices (runner/device_kinds.h).
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "device/hardware_params.h"

namespace kiln::target {

using kiln::HardwareParams;

struct Target;

// What executes a program, and so which loops there are. Lowering, features and search go by it.
enum class ExecutionModel : uint8_t {
  // Cores with caches and vector units: loops are parallel, vectorized or unrolled.
  kCpu,
  // Grids of blocks of threads with shared memory: every root stage is a kernel, and its loops are
  // bound to blocks, virtual threads and threads.
  kGpu,
};

// What it means when two targets differ in an option.
enum class OptionEffect : uint8_t {
  kNone,     // nothing: the option is kept because old logs have it
  kMachine,  // the machine has a value where the text says none; else the targets differ
  kCode,     // other code
};

struct TargetOption {
  std::string_view name;
  OptionEffect effect;
  // Null: any printable text. `expected` says for people what it accepts.
  bool (*is_valid)(std::string_view value) = nullptr;
  std::string_view expected = {};
};

struct TargetKind {
  // What the text of a target begins with, and a key that its builders and runners announce.
  std::string_view name;
  // What a text may say instead; empty: nothing.
  std::string_view other_name = {};
  ExecutionModel execution = ExecutionModel::kCpu;
  // The kind of device that runs its programs, as `kiln runner --device` calls it.
  std::string_view device;
  // Are programs run? Else the costs are made up.
  bool runs_programs = true;
  // Do programs run on cores of the host? Then builds and searches there must rest while one is
  // timed.
  bool uses_host_cores = false;
  // Operations per second of loops that nobody scheduled, roughly.
  double unscheduled_flops_per_s = 1e9;
  // The option that names the processor.
  std::string_view processor_option;
  // Ascending by name.
  std::span<const TargetOption> options;
  // The hardware of a device that says nothing of itself, as far as the target's text tells. A
  // device of the host has `host_cores`.
  HardwareParams (*default_hardware)(const Target& target, int host_cores);
  // 90 of -arch=sm_90a: the CUDA architecture that code may rely on. Null: there is none.
  int (*gpu_arch)(const Target& target) = nullptr;

  // Null: the kind has no such option.
  const TargetOption* FindOption(std::string_view option) const;
};

extern const TargetKind kLlvm;  // a CPU, by LLVM
extern const TargetKind kCuda;  // an NVIDIA GPU
extern const TargetKind kNull;  // runs nothing; for tests of everything around it

using TargetKinds = std::span<const TargetKind* const>;
// Those that this program knows.
TargetKinds AllTargetKinds();

}  // namespace kiln::target
