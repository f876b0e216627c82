// A program with everything that it is run and checked with: its arguments on a device, and the
// outputs that are expected of it.
//
// Used by the thread of the device.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "runner/bench.h"
#include "runner/output_sample.h"
#include "runner/private_bytes.h"
#include "runner/program_input.h"

namespace kiln::runner {

// The outputs that are expected for one content of the inputs.
struct ExpectedOutputs {
  struct Kept {
    // Key in the cache.
    std::string key;
    std::shared_ptr<CachedBuffer> buffer;
  };
  // Buffers for each output.
  std::vector<Kept> whole;
  // Elements of each sample; used instead if the reference has samples of the outputs only.
  std::vector<PrivateBytes> sampled;
};

struct CheckedProgram {
  // Arguments in the order of the plan.
  std::vector<Buffer*> args;
  // Outputs and workspaces.
  std::vector<std::unique_ptr<Buffer>> owned;
  std::vector<ProgramInput> inputs;
  std::vector<Buffer*> outputs;
  ExpectedOutputs expected;
  // The same for the other content of the inputs.
  ExpectedOutputs other_expected;
  // Places of the samples; empty: the expected outputs are whole.
  std::vector<SampledOutput> samples;
  // The last member, so that the program is unloaded before its arguments go.
  std::unique_ptr<Program> program;
};

// Makes the arguments on the device. ResourceExhausted if there is no memory for them and for
// `copies` further copies of the outputs, with which the program is checked. Contents of the inputs
// that fit into the memory are made now and take no time of the program.
Status PrepareArguments(const Bench& bench, const std::vector<Argument>& arguments, uint64_t seed,
                        int copies, CheckedProgram& checked);

// Poisons outputs and workspaces.
Status PoisonAll(Device& device, const CheckedProgram& checked, Poison poison);

// Runs the program once on poisoned outputs, which are looked at next.
StatusOr<CheckedTime> RunOnce(Device& device, CheckedProgram& checked, Poison poison);

}  // namespace kiln::runner
