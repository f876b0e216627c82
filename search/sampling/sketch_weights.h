// Weights that decide how often each sketch is sampled.
#pragma once

#include <span>
#include <vector>

#include "base/numbers/rng.h"
#include "search/space/sketch.h"
#include "search/space/task.h"

namespace kiln::search {

// Returns a weight for each sketch, or an empty list if all are equal. Most weights are 1. On a
// GPU, sketches that split sums (RF steps) have a smaller weight, down to a tenth, if there are
// more results than fill the device without splits. An online softmax gets half of all
// samples. Pure.
std::vector<double> SketchWeights(const Task& task, std::span<const Sketch> sketches);

// Draws the number of the sketch for the next sample by these weights. Takes one draw.
int PickSketch(std::span<const Sketch> sketches, std::span<const double> weights, Rng& rng);

}  // namespace kiln::search
