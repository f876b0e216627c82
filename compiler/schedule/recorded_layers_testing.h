// The recorded GPU schedules of ResNet-18's 24 layers, with the computations that they belong to.
#pragma once

#include <string>
#include <vector>

#include "compiler/dag/dag.h"
#include "compiler/schedule/state.h"
#include "compiler/schedule/step.h"

namespace kiln::schedule {

struct RecordedLayer {
  int line;  // of testdata/resnet18_cuda_steps.txt, from 1
  std::string op, arguments, epilogue;
  dag::DagPtr dag;
  std::vector<StepPtr> steps;

  std::string Name() const { return op + " " + arguments + " " + epilogue; }
  State Replayed() const;  // checks that the steps apply
};

// In the order of the file. Checks that the file is there and reads.
const std::vector<RecordedLayer>& RecordedLayers();

}  // namespace kiln::schedule
