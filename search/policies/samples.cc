#include "search/policies/samples.h"

#include <memory>
#include <utility>

#include "base/hash/digest.h"
#include "compiler/features/features.h"
#include "compiler/lower/lower.h"
#include "compiler/schedule/state.h"

namespace kiln::search {

StatusOr<FloatMatrix> FeatureRows(const Task& task, std::span<const schedule::StepPtr> steps) {
  KILN_ASSIGN_OR_RETURN(const schedule::State state, schedule::Replay(task.dag, steps, task.stop));
  KILN_ASSIGN_OR_RETURN(const ir::Program program,
                        lower::Lower(state, {.gpu = task.target.is_gpu(), .stop = task.stop}));
  return features::ExtractFeatures(program, task.target, task.hardware, task.device);
}

uint64_t SampleTask(const Task& task, std::string_view device) {
  return Xxh3(device, Xxh3(target::PrintTarget(task.target), Xxh3(task.workload_key)));
}

std::vector<costmodel::Sample> MakeSamples(std::span<const Measured> measured, ThreadPool& pool) {
  std::vector<costmodel::Sample> samples(measured.size());
  pool.ParallelFor(static_cast<int64_t>(measured.size()), [&](int64_t i) {
    const Measured& m = measured[i];
    auto rows = FeatureRows(*m.task, m.steps);
    if (!rows.ok()) return;
    samples[i] = {.rows = std::make_shared<const FloatMatrix>(*std::move(rows)),
                  .task = m.sample_task,
                  .cost_s = m.cost_s};
  });
  std::erase_if(samples, [](const costmodel::Sample& sample) { return sample.rows == nullptr; });
  return samples;
}

}  // namespace kiln::search
