// Program -> feature rows for cost models: one row for each statement that stores (facts §4), in
// the order of the program.
//
// Plain floats: models know columns by name, never the program. Columns are the same for all
// programs and targets; what a target has not is zero. Deterministic; no state, any thread.
#pragma once

#include <span>
#include <string_view>

#include "base/float_matrix.h"
#include "base/status.h"
#include "compiler/ir/program.h"
#include "compiler/target/target.h"
#include "device/device_model.h"

namespace kiln::features {

// The meaning of each column, in order. Part of what a saved model depends on.
std::span<const std::string_view> FeatureNames();
inline int NumFeatures() { return static_cast<int>(FeatureNames().size()); }

// Changes whenever the columns or their meaning do; saved models of another version are not used.
inline constexpr int kFeatureVersion = 4;

// `program` is a lowered one, before code generation. A program without a store has no rows. A
// GPU's `device` is a filled one (device::FilledGpu); of a CPU `hardware` has all that counts.
FloatMatrix ExtractFeatures(const ir::Program& program, const target::Target& target,
                            const target::HardwareParams& hardware,
                            const device::DeviceModel& device);

}  // namespace kiln::features
