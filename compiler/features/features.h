// Extracts feature rows for cost models from a program: one row for each store, in the order of the
// program, as in Ansor (OSDI 2020, section 5.2).
//
// Rows are plain floats: models know columns by name, and never see the program. All programs and
// targets have the same columns; a column that a target does not have is zero. Deterministic; no
// state, any thread.
#pragma once

#include <span>
#include <string_view>

#include "base/numbers/float_matrix.h"
#include "base/status.h"
#include "compiler/ir/program.h"
#include "compiler/target/target.h"
#include "device/device_model.h"

namespace kiln::features {

// The name of each column, in order. A saved model depends on them.
std::span<const std::string_view> FeatureNames();
inline int NumFeatures() { return static_cast<int>(FeatureNames().size()); }

// Changes whenever the columns or their meaning change: models saved for another version are not
// loaded.
inline constexpr int kFeatureVersion = 8;

// `program` is a lowered one, before code generation. A program without a store has no rows.
// `device` must be a filled one for a GPU (device::FilledGpu). For a CPU only `hardware` counts.
FloatMatrix ExtractFeatures(const ir::Program& program, const target::Target& target,
                            const target::HardwareParams& hardware,
                            const device::DeviceModel& device);

}  // namespace kiln::features
