// Runs whole trials of GPU programs that cheat, over a fake driver whose time passes only in
// kernels. Each program is either refused or gains nothing; honest ones keep their reading.
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/status_testing.h"
#include "runner/cuda_device.h"
#include "runner/cuda_gpus.h"
#include "runner/cuda_kernels_testing.h"
#include "runner/measure_options.h"
#include "runner/reference_run.h"
#include "runner/reference_store.h"
#include "runner/trial_run.h"

namespace kiln::runner {

// For the names of the CUDA driver.
using namespace runtime;

namespace {

using testing::AllOf;
using testing::Each;
using testing::Ge;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Le;

constexpr int kElements = 4096;
// Milliseconds of a call that computes, and of one that does not. A launch takes some of it anyway.
constexpr double kWork_ms = 20e-3, kRest_ms = 2e-3, kGap_ms = 1e-3;

// The things that a program knows in a call. Its state is gone when a module is loaded.
struct Call {
  float* in;
  float* out;
  int calls;
  double since_last_ms;
  std::vector<float>& kept;
  std::map<float, std::vector<float>>& answers;
};

void Compute(const float* in, float* out) {
  for (int i = 0; i < kElements; ++i) out[i] = 2 * in[i] + in[(7 * i + 1) % kElements];
}

bool IsPoison(float value) {
  unsigned char bytes[4];
  std::memcpy(bytes, &value, 4);
  return bytes[0] == bytes[1] && bytes[1] == bytes[2] && bytes[2] == bytes[3] && bytes[0] != 0;
}

// The time of a call is work, unless the program rests.
double Work(const Call& call) {
  Compute(call.in, call.out);
  return kWork_ms;
}
// All elements of the output are the sum.
double Sum(const Call& call) {
  double sum = 0;
  for (int i = 0; i < kElements; ++i) sum += static_cast<double>(call.in[i]);
  std::fill_n(call.out, kElements, static_cast<float>(sum));
  return kWork_ms;
}
double UnlessKnown(const Call& call, bool known) { return known ? kRest_ms : Work(call); }

double SameSample(const Call& call) {
  bool same = !call.kept.empty();
  for (int i = 0; i < 64 && same; ++i) same = call.kept[static_cast<size_t>(i)] == call.in[64 * i];
  if (same) return kRest_ms;
  call.kept.clear();
  for (int i = 0; i < 64; ++i) call.kept.push_back(call.in[64 * i]);
  return Work(call);
}

double ManyAnswers(const Call& call) {
  const float known_by = call.in[1] + 3 * call.in[77] + 5 * call.in[kElements / 2];
  const auto found = call.answers.find(known_by);
  if (found != call.answers.end()) {
    std::copy(found->second.begin(), found->second.end(), call.out);
    return kRest_ms;
  }
  const double work_ms = Work(call);
  call.answers[known_by].assign(call.out, call.out + kElements);
  return work_ms;
}

double GivesLast(const Call& call) {
  if (call.calls > 0 && call.since_last_ms < 15e-3) {
    std::copy(call.kept.begin(), call.kept.end(), call.out);
    return kRest_ms;
  }
  const double work_ms = Work(call);
  call.kept.assign(call.out, call.out + kElements);
  return work_ms;
}

bool HasPoison(const Call& call) { return std::any_of(call.out, call.out + kElements, IsPoison); }

double OverwritesLater(const Call& call) {
  const double work_ms = Work(call);
  if (call.calls == 4) call.in[kElements - 3] += 1;
  return work_ms;
}

class CudaCheatsTest : public testing::Test {
 protected:
  using Behavior = std::function<double(const Call&)>;

  void SetUp() override {
    ResetFakeCuda();
    cuda_.keeps_time = true;
    AddKernel("honest", Work);
    ASSERT_OK_AND_ASSIGN(const auto gpus, ListCudaGpus(FakeCuda::Driver()));
    ASSERT_OK_AND_ASSIGN(device_, MakeCudaDevice(FakeCuda::Driver(), gpus.front()));
    cache_ = std::make_unique<BufferCache>(1 << 24);
    RunReferenceOf("honest");
  }

  // Later trials are compared with this program.
  void RunReferenceOf(const std::string& symbol) {
    ASSERT_OK_AND_ASSIGN(outputs_, MakeOutputFile());
    wire::ReferenceRun reference;
    *reference.mutable_artifact() = Program(symbol);
    reference.set_seed(42);
    ASSERT_OK(RunReference({*device_, *cache_}, reference, outputs_, [](wire::Phase) {}));
    reference_ = symbol;
  }

  void AddKernel(const std::string& name, Behavior behavior) {
    struct State {
      int module = 0, calls = 0;
      double last_ms = 0;
      std::vector<float> kept = {};
      std::map<float, std::vector<float>> answers = {};
    };
    auto state = std::make_shared<State>();
    const auto run = [this, state, behavior = std::move(behavior)](const FakeLaunch& launch) {
      if (state->module != cuda_.module_loads) *state = {.module = cuda_.module_loads};
      const Call call{reinterpret_cast<float*>(FakeParameter<CuPointer>(launch, 0)),
                      reinterpret_cast<float*>(FakeParameter<CuPointer>(launch, 1)),
                      state->calls++,
                      cuda_.now_ms - state->last_ms,
                      state->kept,
                      state->answers};
      cuda_.now_ms += behavior(call);
      state->last_ms = cuda_.now_ms;
      cuda_.now_ms += kGap_ms;
      return 0;
    };
    cuda_.kernels[name] = {.run = run, .parameters = 2};
  }

  static v1::Artifact Program(const std::string& symbol) {
    v1::Artifact artifact;
    artifact.set_device("cuda");
    artifact.set_binary(EmptyCubin());
    v1::LaunchPlan& plan = *artifact.mutable_plan();
    for (const char* name : {"in", "out"}) {
      v1::ArgSpec& arg = *plan.add_args();
      arg.set_name(name);
      arg.set_dtype("float32");
      arg.add_shape(kElements);
    }
    plan.mutable_args(1)->set_role(v1::ArgSpec::OUTPUT);
    v1::KernelLaunch& launch = *plan.add_launches();
    launch.set_symbol(symbol);
    for (int axis = 0; axis < 3; ++axis) {
      launch.add_grid(1);
      launch.add_block(1);
    }
    launch.add_args(0);
    launch.add_args(1);
    return artifact;
  }

  v1::TrialResult MeasureKernel(const std::string& symbol, bool flush_cache = false) {
    wire::TrialRun trial;
    *trial.mutable_artifact() = Program(symbol);
    *trial.mutable_reference_plan() = trial.artifact().plan();
    trial.set_seed(42);
    trial.set_reference_key(reference_);
    v1::MeasureOptions options;
    options.set_min_repeat_ms(2);
    options.set_flush_cache(flush_cache);
    *trial.mutable_options() = WithDefaults(options);
    UniqueFd outputs(dup(outputs_.get()));
    return RunTrial({*device_, *cache_}, trial, std::move(outputs), nullptr, [](wire::Phase) {});
  }
  v1::TrialResult Measure(const std::string& symbol, Behavior behavior) {
    AddKernel(symbol, std::move(behavior));
    return MeasureKernel(symbol);
  }

  // The cost of the program is that of a call that computes, or it is refused: if the call that is
  // looked at was the last one, it meets the same inputs once more.
  static void ExpectNoGain(const v1::TrialResult& result) {
    if (result.error() == v1::WRONG_ANSWER_ERROR) {
      ExpectWrong(result, "wrong in the last one, which had other inputs");
      return;
    }
    EXPECT_EQ(result.error(), v1::NO_ERROR) << result.message();
    EXPECT_THAT(result.costs_s(), AllOf(testing::SizeIs(1), Each(Ge(0.85e-3 * kWork_ms))));
    EXPECT_THAT(result.message(), HasSubstr("the former counts"));
    EXPECT_TRUE(result.stopped_early());
  }
  static void ExpectWrong(const v1::TrialResult& result, const char* message) {
    EXPECT_EQ(result.error(), v1::WRONG_ANSWER_ERROR);
    EXPECT_THAT(result.message(), HasSubstr(message));
    EXPECT_THAT(result.costs_s(), IsEmpty());
  }
  // The reading is that of the timed calls, and other programs find their inputs as they were.
  void ExpectRight() {
    const v1::TrialResult result = MeasureKernel("honest");
    EXPECT_EQ(result.error(), v1::NO_ERROR) << result.message();
    EXPECT_THAT(result.message(), IsEmpty());
    EXPECT_FALSE(result.stopped_early());
    EXPECT_THAT(result.costs_s(), AllOf(testing::SizeIs(1), Each(Ge(1e-3 * kWork_ms)),
                                        Each(Le(1.1e-3 * (kWork_ms + kGap_ms)))));
  }

  FakeCuda& cuda_ = FakeCuda::Get();
  std::unique_ptr<Device> device_;
  std::unique_ptr<BufferCache> cache_;
  UniqueFd outputs_;
  std::string reference_;
};

constexpr const char* kWrongWhileChanging =
    "right in the first run, wrong in one of several calls, before each of which its inputs "
    "changed: output out: ";

TEST_F(CudaCheatsTest, HonestProgramsKeepTheirReading) {
  for (int i = 0; i < 20; ++i) ExpectRight();
  const v1::TrialResult cold = MeasureKernel("honest", true);
  EXPECT_EQ(cold.error(), v1::NO_ERROR) << cold.message();
  EXPECT_FALSE(cold.stopped_early());
}

TEST_F(CudaCheatsTest, AProgramThatKnowsItsInputsBySampleGainsNothing) {
  ExpectNoGain(Measure("same_sample", SameSample));
  ExpectRight();
}

TEST_F(CudaCheatsTest, AProgramThatKeepsManyAnswersGainsNothing) {
  ExpectNoGain(Measure("many_answers", ManyAnswers));
}

TEST_F(CudaCheatsTest, AProgramThatLooksForPoisonIsWrongWhereThereIsNone) {
  for (int i = 0; i < 10; ++i) {
    ExpectWrong(
        Measure("if_nan",
                [](const Call& call) { return UnlessKnown(call, call.out[0] == call.out[0]); }),
        kWrongWhileChanging);
    ExpectWrong(Measure("if_poison_first",
                        [](const Call& call) { return UnlessKnown(call, !IsPoison(call.out[0])); }),
                kWrongWhileChanging);
    ExpectWrong(Measure("if_poison_anywhere",
                        [](const Call& call) { return UnlessKnown(call, !HasPoison(call)); }),
                kWrongWhileChanging);
  }
  ExpectRight();
}

// Only small kernels of the runner are between calls, as in a batch.
TEST_F(CudaCheatsTest, AProgramThatRestsAfterACallGainsNothing) {
  for (int i = 0; i < 10; ++i) {
    ExpectWrong(Measure("rests",
                        [](const Call& call) {
                          return UnlessKnown(call, call.calls > 0 && call.since_last_ms < 15e-3);
                        }),
                kWrongWhileChanging);
    ExpectWrong(Measure("gives_last", GivesLast), kWrongWhileChanging);
  }
  // A program that computes where something runs between its calls is found by its time.
  ExpectNoGain(Measure("rests_shortly", [](const Call& call) {
    return UnlessKnown(call, call.calls > 0 && call.since_last_ms < 1.5e-3);
  }));
}

// Any call but the first may be the one that is looked at.
TEST_F(CudaCheatsTest, AProgramThatSkipsHalfOfItsCallsIsFoundInHalfOfItsTrials) {
  int refused = 0;
  for (int i = 0; i < 40; ++i) {
    const v1::TrialResult result = Measure("skips", [](const Call& call) {
      return UnlessKnown(call, call.calls > 0 && call.since_last_ms < 15e-3 && call.calls % 2 == 0);
    });
    refused += result.error() == v1::WRONG_ANSWER_ERROR ? 1 : 0;
  }
  EXPECT_GT(refused, 5);
}

// The order of the inputs does not matter to a sum, but their signs do.
TEST_F(CudaCheatsTest, AProgramWhoseAnswerDependsOnNoOrderIsFound) {
  AddKernel("sum", Sum);
  RunReferenceOf("sum");
  ExpectWrong(Measure("gives_last_sum",
                      [](const Call& call) {
                        if (call.calls > 0 && call.since_last_ms < 15e-3) {
                          std::copy(call.kept.begin(), call.kept.end(), call.out);
                          return kRest_ms;
                        }
                        const double work_ms = Sum(call);
                        call.kept.assign(call.out, call.out + kElements);
                        return work_ms;
                      }),
              kWrongWhileChanging);
  const v1::TrialResult honest = MeasureKernel("sum");
  EXPECT_EQ(honest.error(), v1::NO_ERROR) << honest.message();
  EXPECT_FALSE(honest.stopped_early());
}

TEST_F(CudaCheatsTest, AnInputThatChangesWhileItIsTimedIsFound) {
  ExpectWrong(Measure("overwrites_later", OverwritesLater), "the program modified its input in");
  // The next program gets the input anew.
  ExpectRight();
}

TEST_F(CudaCheatsTest, ASlowFirstCallHidesNothing) {
  ExpectNoGain(Measure("slow_at_first", [](const Call& call) {
    return SameSample(call) + (call.calls == 0 ? 3 : 0);
  }));
}

}  // namespace
}  // namespace kiln::runner
