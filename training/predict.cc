#include "training/predict.h"

#include <algorithm>

#include "compiler/features/features.h"
#include "compiler/features/row_stages.h"
#include "compiler/lower/lower.h"
#include "compiler/schedule/state.h"

namespace kiln::training {

StatusOr<Prediction> Predict(const search::TrainedModel& model, const search::Task& task,
                             std::span<const schedule::StepPtr> steps) {
  KILN_ASSIGN_OR_RETURN(const schedule::State state, schedule::Replay(task.dag, steps, task.stop));
  KILN_ASSIGN_OR_RETURN(const ir::Program program,
                        lower::Lower(state, {.gpu = task.target.is_gpu(), .stop = task.stop}));
  const FloatMatrix features =
      features::ExtractFeatures(program, task.target, task.hardware, task.device);
  const std::vector<features::RowStage> stages = features::RowStages(program);
  KILN_CHECK(std::ssize(stages) == features.rows(), "{} stores, {} rows", stages.size(),
             features.rows());
  const FloatMatrix* const programs[] = {&features};
  Prediction prediction;
  prediction.score = model.model->Predict(programs)[0];
  const bool gives_seconds = model.gives_seconds();
  if (gives_seconds) prediction.seconds = -prediction.score;
  const std::vector<double> scores = model.model->PredictRows(features);
  double sum = 0;
  for (size_t i = 0; i < scores.size(); ++i) {
    prediction.rows.push_back({stages[i].kernel, stages[i].stage, stages[i].buffer, scores[i]});
    const auto same = std::ranges::find_if(prediction.stages, [&](const StagePrediction& s) {
      return s.kernel == stages[i].kernel && s.stage == stages[i].stage;
    });
    StagePrediction& stage =
        same != prediction.stages.end()
            ? *same
            : prediction.stages.emplace_back(stages[i].kernel, stages[i].stage, 0.0, std::nullopt);
    stage.score += scores[i];
    sum += scores[i];
  }
  for (StagePrediction& stage : prediction.stages) {
    if (gives_seconds && sum != 0) stage.share = stage.score / sum;
  }
  return prediction;
}

}  // namespace kiln::training
