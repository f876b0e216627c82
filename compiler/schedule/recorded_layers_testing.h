// The recorded GPU schedules of ResNet-18's 24 layers, with their computations.
#pragma once

#include <string>
#include <vector>

#include "compiler/dag/dag.h"
#include "compiler/schedule/state.h"
#include "compiler/schedule/step.h"

namespace kiln::schedule {

struct RecordedLayer {
  // Line of testdata/resnet18_cuda_steps.txt, from 1.
  int line;
  std::string op, arguments, epilogue;
  dag::DagPtr dag;
  std::vector<StepPtr> steps;

  std::string Name() const { return op + " " + arguments + " " + epilogue; }
  // Checks that the steps apply.
  State Replayed() const;
};

// Returns the layers in the order of the file. Checks that the file exists and can be read.
const std::vector<RecordedLayer>& RecordedLayers();

}  // namespace kiln::schedule
