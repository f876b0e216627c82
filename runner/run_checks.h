// Checks of a program that has run: it wrote nothing outside of its arguments, it left its inputs
// alone, and its outputs are within the tolerance.
//
// An error of a check is the program's fault, unless its function says otherwise.
#pragma once

#include <span>
#include <vector>

#include "base/status.h"
#include "runner/checked_program.h"

namespace kiln::runner {

// Inspects the guards, the expected outputs, the inputs and the program's outputs in one call of
// the device. Errors are those of the device.
StatusOr<Findings> InspectRun(Device& device, const CheckedProgram& checked,
                              const v1::Tolerance& tolerance);

// Checks the guards and the expected outputs. An expected output that was written to leaves the
// cache.
Status CheckMemory(const Bench& bench, const CheckedProgram& checked, const Findings& findings);

// Checks the inputs alone, by their checksums, for a device on which all programs share them. An
// input that was written to leaves the cache.
StatusOr<std::vector<uint64_t>> SumsOfInputs(Device& device, const CheckedProgram& checked);
Status CheckInputs(const Bench& bench, const CheckedProgram& checked,
                   std::span<const uint64_t> sums);

// Checks the inputs and the outputs. An input that was written to leaves the cache. Raises
// `max_error` to the largest error of an output.
Status CheckOutputs(const Bench& bench, const CheckedProgram& checked, const Findings& findings,
                    double& max_error);

// Checks that all outputs were written since they got the poison, and that the elements of the
// samples are right. Raises `max_error`. May also return errors of the device.
Status CheckSamples(Device& device, const CheckedProgram& checked, const v1::Tolerance& tolerance,
                    Poison poison, double& max_error);

}  // namespace kiln::runner
