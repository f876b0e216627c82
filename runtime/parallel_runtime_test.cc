#include "runtime/parallel_runtime.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pthread.h>

#include <atomic>
#include <chrono>
#include <mutex>
#include <set>
#include <thread>

#include "base/numbers/rng.h"

namespace kiln::runtime {
namespace {

// Records slices and counts the visits of each index.
struct Visits {
  explicit Visits(int64_t extent) : counts(static_cast<size_t>(extent)) {}
  // The counts are plain, so that TSan sees overlapping slices as a race.
  std::vector<int> counts;
  std::mutex mutex;
  std::vector<std::pair<int64_t, int64_t>> slices;
  std::set<pthread_t> threads;

  static void Task(void* closure, int64_t begin, int64_t end) {
    auto& visits = *static_cast<Visits*>(closure);
    for (int64_t i = begin; i < end; ++i) ++visits.counts[static_cast<size_t>(i)];
    std::lock_guard lock(visits.mutex);
    visits.slices.emplace_back(begin, end);
    visits.threads.insert(pthread_self());
  }
};

TEST(ParallelRuntimeTest, CutsEveryExtentIntoEqualSlices) {
  for (int threads : {1, 2, 3, 8}) {
    ParallelRuntime runtime({.threads = threads, .pin = false});
    for (int64_t extent : {0, 1, 2, 3, 7, 8, 9, 100}) {
      Visits visits(extent);
      runtime.Call([&] { runtime.ParallelFor(Visits::Task, &visits, extent); });
      EXPECT_THAT(visits.counts, testing::Each(1));
      EXPECT_EQ(visits.slices.size(), static_cast<size_t>(std::min<int64_t>(extent, threads)));
      EXPECT_EQ(visits.threads.size(), visits.slices.size());
      for (auto [begin, end] : visits.slices) {
        EXPECT_GE(end - begin, extent / threads);
        EXPECT_LE(end - begin, extent / threads + 1);
      }
    }
  }
}

TEST(ParallelRuntimeTest, NegativeExtentDoesNothing) {
  ParallelRuntime runtime({.threads = 2, .pin = false});
  Visits visits(0);
  runtime.Call([&] { runtime.ParallelFor(Visits::Task, &visits, -5); });
  EXPECT_TRUE(visits.slices.empty());
}

TEST(ParallelRuntimeTest, HugeExtentIsCutWithoutOverflow) {
  ParallelRuntime runtime({.threads = 3, .pin = false});
  std::atomic<int64_t> total{0};
  runtime.Call([&] {
    runtime.ParallelFor(
        [](void* closure, int64_t begin, int64_t end) {
          *static_cast<std::atomic<int64_t>*>(closure) += end - begin;
        },
        &total, INT64_MAX);
  });
  EXPECT_EQ(total, INT64_MAX);
}

TEST(ParallelRuntimeTest, NestedLoopsRunInline) {
  ParallelRuntime runtime({.threads = 3, .pin = false});
  struct Outer {
    ParallelRuntime* runtime;
    std::atomic<int> inner{0};
  } outer{&runtime};
  runtime.Call([&] {
    runtime.ParallelFor(
        [](void* closure, int64_t begin, int64_t end) {
          auto& outer = *static_cast<Outer*>(closure);
          for (int64_t i = begin; i < end; ++i) {
            outer.runtime->ParallelFor(
                [](void* inner, int64_t b, int64_t e) {
                  static_cast<Outer*>(inner)->inner += static_cast<int>(e - b);
                },
                closure, 10);
          }
        },
        &outer, 6);
  });
  EXPECT_EQ(outer.inner, 60);
}

TEST(ParallelRuntimeTest, EveryThreadHasThePromisedStack) {
  ParallelRuntime runtime({.threads = 3, .pin = false});
  runtime.Call([&] {
    runtime.ParallelFor(
        [](void*, int64_t, int64_t) {
          pthread_attr_t attributes;
          ASSERT_EQ(pthread_getattr_np(pthread_self(), &attributes), 0);
          size_t bytes = 0;
          pthread_attr_getstacksize(&attributes, &bytes);
          EXPECT_GE(bytes, static_cast<size_t>(KILN_CPU_STACK_BYTES));
          pthread_attr_destroy(&attributes);
        },
        nullptr, 3);
  });
}

TEST(ParallelRuntimeTest, ContextCallsThisRuntime) {
  ParallelRuntime runtime({.threads = 2, .pin = false});
  Visits visits(5);
  runtime.Call([&] {
    KilnCpuContext* context = runtime.context();
    context->parallel_for(context, Visits::Task, &visits, 5);
  });
  EXPECT_THAT(visits.counts, testing::Each(1));
}

// Makes launches that find workers spinning, falling asleep and asleep, on more threads than cores.
void Stress(const ParallelRuntime::Options& options, uint64_t seed, int rounds) {
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  Rng rng(seed);
  ParallelRuntime runtime(options);
  std::vector<int> data(64);
  for (int round = 0; round < rounds; ++round) {
    const int64_t extent = UniformIn(rng, 1, 64);
    const int pause_us = static_cast<int>(Chance(rng, 0.1) ? UniformIn(rng, 0, 300) : 0);
    std::fill(data.begin(), data.end(), 0);
    const int launches = static_cast<int>(UniformIn(rng, 1, 8));
    runtime.Call([&] {
      for (int i = 0; i < launches; ++i) {
        runtime.ParallelFor(
            [](void* closure, int64_t begin, int64_t end) {
              for (int64_t k = begin; k < end; ++k) ++static_cast<int*>(closure)[k];
            },
            data.data(), extent);
      }
    });
    for (int64_t k = 0; k < 64; ++k) {
      ASSERT_EQ(data[static_cast<size_t>(k)], k < extent ? launches : 0) << "round " << round;
    }
    if (pause_us > 0) std::this_thread::sleep_for(std::chrono::microseconds(pause_us));
  }
}

TEST(ParallelRuntimeStressTest, WorkersAlwaysAsleep) {
  Stress({.threads = 4, .pin = false, .spin_pauses = 0}, 1, 2000);
}
TEST(ParallelRuntimeStressTest, WorkersFallingAsleep) {
  Stress({.threads = 3, .pin = false, .spin_pauses = 20}, 2, 2000);
}
TEST(ParallelRuntimeStressTest, WorkersSpinning) {
  Stress({.threads = 2, .pin = true, .spin_pauses = 20000}, 3, 2000);
}

TEST(ParallelRuntimeStressTest, StartsAndStops) {
  for (int i = 0; i < 100; ++i) {
    ParallelRuntime runtime({.threads = 3, .pin = false, .spin_pauses = i});
    Visits visits(3);
    if (i % 2 == 0) runtime.Call([&] { runtime.ParallelFor(Visits::Task, &visits, 3); });
  }
}

TEST(ParallelRuntimeTest, ReportsLaunchLatency) {
  ParallelRuntime runtime({.threads = std::min<int>(4, static_cast<int>(AllowedCores().size()))});
  constexpr int kLaunches = 10000;
  double best_us = 1e9;
  runtime.Call([&] {
    for (int batch = 0; batch < 10; ++batch) {
      const auto start = std::chrono::steady_clock::now();
      for (int i = 0; i < kLaunches / 10; ++i) {
        runtime.ParallelFor([](void*, int64_t, int64_t) {}, nullptr, runtime.threads());
      }
      const std::chrono::duration<double, std::micro> took =
          std::chrono::steady_clock::now() - start;
      best_us = std::min(best_us, took.count() / (kLaunches / 10));
    }
  });
  RecordProperty("launch_and_join_ns", static_cast<int>(1000 * best_us));
  printf("launch and join on %d threads: %.2f us\n", runtime.threads(), best_us);
  // A loaded machine may be slow; a lost wake-up would never end.
  EXPECT_LT(best_us, 1000);
}

}  // namespace
}  // namespace kiln::runtime
