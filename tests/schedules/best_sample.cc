#include "tests/schedules/best_sample.h"

#include <algorithm>
#include <limits>
#include <vector>

#include "base/status.h"
#include "compiler/features/features.h"
#include "compiler/lower/lower.h"
#include "costmodel/analytic_model.h"
#include "device/calibration.h"
#include "search/sampling/sample_gpu.h"
#include "search/sampling/sketch_weights.h"
#include "search/space/sketch.h"

namespace kiln::search {

using schedule::State;

double BestSampleSeconds(const Task& task, int draws, Rng& rng) {
  const Parameters parameters;
  const auto model = costmodel::AnalyticModel::Make(features::FeatureNames(),
                                                    device::CalibrationOf(task.device).row);
  KILN_CHECK(model.ok(), "{}", Message(model.status()));
  const std::vector<Sketch> sketches = GenerateSketches({task, parameters});
  const std::vector<double> weights = SketchWeights(task, sketches);
  double best = std::numeric_limits<double>::infinity();
  for (int draw = 0; draw < draws; ++draw) {
    const Sketch& sketch = sketches[static_cast<size_t>(PickSketch(sketches, weights, rng))];
    const StatusOr<State> state = SampleGpu(sketch, task, parameters, rng);
    if (!state.ok()) continue;
    const StatusOr<ir::Program> program = lower::Lower(*state, {.gpu = true});
    if (!program.ok()) continue;
    const FloatMatrix rows =
        features::ExtractFeatures(*program, task.target, task.hardware, task.device);
    const FloatMatrix* const all[] = {&rows};
    best = std::min(best, -(*model)->Predict(all)[0]);
  }
  return best;
}

}  // namespace kiln::search
