#include "client/jobs/calibration_job.h"

#include <iterator>
#include <utility>

#include "client/jobs/job_spec.h"

namespace kiln::client {
namespace {

// A product, a convolution with few channels and one with few pixels. They differ in their
// parallelism and in the memory where they keep their data.
constexpr std::pair<const char*, const char*> kWorkloads[] = {
    {"matmul", "512,512,512"},
    {"conv2d_nhwc", "1,28,28,128,128,3,3,1,1"},
    {"conv2d_nhwc", "1,7,7,512,512,3,3,1,1"},
};

// Half of the candidates are random: slow programs teach as well, and fast ones are still found.
constexpr const char* kParameters[] = {"eps_greedy=0.5", "prior_eps_greedy=0.5"};

v1::TuneOptions OptionsOf(const Calibration& calibration) {
  v1::TuneOptions options;
  options.set_calibrate(true);
  options.set_policy("sketch.xgb");
  options.set_task_strategy("round-robin");
  options.set_no_warm_start(true);
  options.set_finalists(-1);
  options.set_trials(calibration.trials);
  options.set_seed(calibration.seed);
  options.mutable_measure()->set_number(3);
  options.mutable_measure()->set_repeat(1);
  options.mutable_measure()->set_min_repeat_ms(10);
  return options;
}

}  // namespace

StatusOr<v1::JobSpec> MakeCalibrationSpec(const Calibration& calibration) {
  v1::JobSpec spec;
  for (const auto& [op, args] : kWorkloads) {
    JobDescription one;
    one.arguments.op = op;
    one.arguments.args = args;
    one.target = calibration.target;
    one.device = calibration.device;
    one.name = "calibrate";
    one.options = OptionsOf(calibration);
    one.parameters.assign(std::begin(kParameters), std::end(kParameters));
    KILN_ASSIGN_OR_RETURN(v1::JobSpec of_one, MakeJobSpec(one));
    if (spec.tasks().empty()) {
      spec = std::move(of_one);
    } else {
      spec.mutable_tasks()->MergeFrom(of_one.tasks());
    }
  }
  return spec;
}

}  // namespace kiln::client
