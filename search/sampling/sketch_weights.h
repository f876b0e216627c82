// How often a sample is of each sketch.
#pragma once

#include <span>
#include <vector>

#include "base/rng.h"
#include "search/space/sketch.h"
#include "search/space/task.h"

namespace kiln::search {

// Empty: each equally often. Else [sketch], mostly 1: sums that are split on a GPU (RF steps) are
// rarer where there are more results than fill the device without, down to a tenth, and a quarter of
// all is of an online softmax where there is one. Pure.
std::vector<double> SketchWeights(const Task& task, std::span<const Sketch> sketches);

// The number of the sketch that the next sample is of, by such weights. One draw.
int PickSketch(std::span<const Sketch> sketches, std::span<const double> weights, Rng& rng);

}  // namespace kiln::search
