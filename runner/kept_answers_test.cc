#include "runner/kept_answers.h"

#include <gtest/gtest.h>

#include <functional>
#include <random>

namespace kiln::runner {
namespace {

constexpr int kMostPairs = 100;

// The time of a call that computes for work_s on a machine with a load.
using Machine = std::function<double(double work_s)>;

// Returns what is said of a program whose fresh calls work for fresh_s and others for repeated_s.
Keeping Judge(double fresh_s, double repeated_s, const Machine& machine) {
  KeptAnswers kept(repeated_s);
  while (kept.keeping() == Keeping::kUndecided && kept.pairs() < kMostPairs) {
    const double fresh_wall_s = machine(fresh_s);
    kept.Add({{fresh_wall_s}, {machine(repeated_s)}});
  }
  return kept.keeping();
}

double Quiet(double work_s) { return 50e-6 + work_s; }

class LoadedMachine {
 public:
  // A call waits for a core with this probability, and again for each further wait. A wait is 3 ms
  // on average.
  explicit LoadedMachine(double waits) : waits_(waits) {}
  double operator()(double work_s) {
    double time_s = Quiet(work_s);
    std::exponential_distribution<double> wait_s(1 / 3e-3);
    while (std::bernoulli_distribution(waits_)(random_)) time_s += wait_s(random_);
    return time_s;
  }

 private:
  const double waits_;
  std::mt19937_64 random_{1};
};

TEST(KeptAnswersTest, OnePairTellsOnAQuietMachine) {
  for (const double work_s : {1e-6, 100e-6, 5e-3, 1.0}) {
    KeptAnswers kept(work_s);
    EXPECT_EQ(kept.keeping(), Keeping::kUndecided);
    kept.Add({{Quiet(work_s)}, {Quiet(work_s)}});
    EXPECT_EQ(kept.keeping(), Keeping::kComputes) << work_s;
  }
}

TEST(KeptAnswersTest, AProgramThatKeepsAnswersNeedsTwentyPairs) {
  for (const double work_s : {200e-6, 5e-3, 1.0}) {
    KeptAnswers kept(1e-6);
    for (int i = 0; i < 19; ++i) {
      kept.Add({{Quiet(work_s)}, {Quiet(1e-6)}});
      EXPECT_EQ(kept.keeping(), Keeping::kUndecided) << work_s;
    }
    EXPECT_FALSE(kept.MayCompute());
    kept.Add({{Quiet(work_s)}, {Quiet(1e-6)}});
    EXPECT_EQ(kept.keeping(), Keeping::kKeeps) << work_s;
    EXPECT_NEAR(kept.shortest().fresh.wall_s, Quiet(work_s), 1e-12);
    EXPECT_NEAR(kept.shortest().repeated.wall_s, Quiet(1e-6), 1e-12);
  }
}

// A gain of a factor of two is found.
TEST(KeptAnswersTest, APartOfTheWorkIsFoundToo) {
  EXPECT_EQ(Judge(2e-3, 1e-3, Quiet), Keeping::kKeeps);
  EXPECT_EQ(Judge(2e-3, 1.5e-3, Quiet), Keeping::kComputes);
}

TEST(KeptAnswersTest, NoLoadMakesAProgramThatComputesFail) {
  for (const double waits : {0.1, 0.5, 0.9, 0.99}) {
    LoadedMachine machine(waits);
    int decided = 0;
    constexpr int kPrograms = 2000;
    for (int i = 0; i < kPrograms; ++i) {
      const double work_s = i % 2 == 0 ? 10e-6 : 4e-3;
      const Keeping keeping = Judge(work_s, work_s, std::ref(machine));
      ASSERT_NE(keeping, Keeping::kKeeps) << waits;
      decided += keeping == Keeping::kComputes ? 1 : 0;
    }
    EXPECT_GT(decided, kPrograms * 9 / 10) << waits;
  }
}

TEST(KeptAnswersTest, FewWaitsHideNoKeptAnswer) {
  LoadedMachine machine(0.1);
  for (int i = 0; i < 500; ++i) {
    EXPECT_EQ(Judge(20e-3, 1e-6, std::ref(machine)), Keeping::kKeeps);
  }
}

// Half of the pairs fit, although the shortest calls do not.
TEST(KeptAnswersTest, AMachineThatIsTooBusyForACleanPairDecidesAfterAFewPairs) {
  KeptAnswers kept(1e-6);
  for (int i = 0; i < 6; ++i) {
    EXPECT_EQ(kept.keeping(), Keeping::kUndecided) << i;
    EXPECT_TRUE(kept.MayCompute());
    kept.Add(i % 2 == 0 ? CallPair{{1e-2}, {0.6e-2}} : CallPair{{1e-1}, {1e-1}});
  }
  EXPECT_EQ(kept.keeping(), Keeping::kComputes);
}

// A single wait in the first repeated call hides nothing.
TEST(KeptAnswersTest, ARepeatedCallThatWaitedIsNoEvidence) {
  KeptAnswers kept(1e-6);
  kept.Add({{20e-3}, {30e-3}});
  EXPECT_EQ(kept.keeping(), Keeping::kUndecided);
  kept.Add({{20e-3}, {60e-6}});
  EXPECT_EQ(kept.keeping(), Keeping::kUndecided);
  for (int i = 0; i < 30; ++i) kept.Add({{20e-3}, {60e-6}});
  EXPECT_EQ(kept.keeping(), Keeping::kKeeps);
}

TEST(KeptAnswersTest, ARepeatedCallOfALaterMomentEndsTheWait) {
  KeptAnswers kept(1e-6);
  kept.Add({{70e-6}, {3e-3}});
  EXPECT_EQ(kept.keeping(), Keeping::kUndecided);
  EXPECT_TRUE(kept.RepeatedAreLong());
  kept.AddRepeated({60e-6});
  EXPECT_FALSE(kept.RepeatedAreLong());
  EXPECT_EQ(kept.keeping(), Keeping::kComputes);
}

// The fresh call waited for a core, and the program computed as long in both.
TEST(KeptAnswersTest, TheTimeThatAProgramComputesHasNoWaitsInIt) {
  KeptAnswers kept(10e-6);
  kept.Add({{5e-3, 90e-6}, {60e-6, 80e-6}});
  EXPECT_EQ(kept.keeping(), Keeping::kComputes);
}

TEST(KeptAnswersTest, AProgramThatKeepsAnswersIsFoundByBothClocks) {
  KeptAnswers kept(1e-6);
  while (kept.keeping() == Keeping::kUndecided) kept.Add({{400e-6, 380e-6}, {60e-6, 80e-6}});
  EXPECT_EQ(kept.keeping(), Keeping::kKeeps);
  EXPECT_EQ(kept.pairs(), 20);
}

// Threads that look for work for long in the repeated call would hide the work of the fresh one.
TEST(KeptAnswersTest, ThreadsThatLookForWorkHideNoKeptAnswer) {
  KeptAnswers kept(1e-6);
  while (kept.keeping() == Keeping::kUndecided) kept.Add({{400e-6, 800e-6}, {60e-6, 1e-3}});
  EXPECT_EQ(kept.keeping(), Keeping::kKeeps);
}

}  // namespace
}  // namespace kiln::runner
