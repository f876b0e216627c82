// Tests a scheduler whose disk is full, whose database is moved away, or which is killed without a
// result: a job's records stay exact, and the job continues by itself when it can.
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>

#include <filesystem>
#include <fstream>

#include "tests/faults/farm_testing.h"

namespace kiln {
namespace {

// A trial takes about a millisecond.
constexpr uint32_t kTrials = 60, kManyTrials = 200, kTrialsOfASecond = 1'000;

class DiskTest : public FarmTest {
 protected:
  // From now on no file of the scheduler grows: each write of its database fails.
  void SetDiskFull(bool full) {
    rlimit limit{};
    prlimit(farm_->scheduler().pid(), RLIMIT_FSIZE, nullptr, &limit);
    limit.rlim_cur = full ? 1 : limit.rlim_max;
    ASSERT_EQ(prlimit(farm_->scheduler().pid(), RLIMIT_FSIZE, &limit, nullptr), 0);
  }

  v1::JobSpec Job() {
    v1::JobSpec spec = MatmulJob(kTrials);
    spec.mutable_tasks(0)->set_target("null");
    spec.mutable_options()->set_policy("sketch.random");
    spec.mutable_options()->set_trials_per_round(8);
    spec.mutable_options()->set_finalists(2);
    spec.mutable_options()->mutable_measure()->set_cooldown_ms(5);
    return spec;
  }

  // Waits until the job's message contains the text. False if the job ends without it.
  bool IsWaitingWith(const std::string& job, const std::string& text) {
    v1::JobStatus status;
    for (int i = 0; i < 400; ++i) {
      const bool known = Get(job, &status);
      if (known && status.message().find(text) != std::string::npos) return true;
      if (known && Final(status)) return false;
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
    ADD_FAILURE() << status.ShortDebugString() << farm_->Logs();
    return false;
  }
  void ExpectMessageEventually(const std::string& job, const std::string& text) {
    EXPECT_TRUE(IsWaitingWith(job, text)) << "it ended without";
  }
};

TEST_F(DiskTest, AFullDiskIsWaitedOutWhereverTheJobIs) {
  StartFarm("null");
  v1::JobSpec spec = Job();
  spec.mutable_options()->set_trials(kTrialsOfASecond);
  const std::string job = Submit(spec);
  std::map<uint32_t, v1::Record> seen;
  int outages = 0;
  for (const uint32_t at : {0u, 1u, 8u, 200u, 500u, kTrialsOfASecond}) {
    if (Final(WaitFor(job, at))) break;
    for (const auto& [trial, record] : Records(job)) seen.emplace(trial, record);
    SetDiskFull(true);
    // The last write of a job may be done by then.
    outages += IsWaitingWith(job, "waits for the database: cannot read or write");
    SetDiskFull(false);
  }
  EXPECT_GE(outages, 4);
  ExpectWholeAtEnd(job, kTrialsOfASecond, seen);
}

TEST_F(DiskTest, ADatabaseThatIsMovedAwayIsNoticed) {
  StartFarm("null");
  const std::string job = Submit(Job());
  WaitFor(job, 10);
  const std::map<uint32_t, v1::Record> seen = Records(job);
  std::filesystem::rename(farm_->db(), farm_->db() + ".away");
  ExpectMessageEventually(job, "was deleted or replaced while it is in use");
  // Another job waits with the first one, and tunes the task by itself.
  std::string other;
  v1::JobSpec spec = Job();
  spec.mutable_options()->set_no_warm_start(true);
  std::thread client([&] { other = Submit(spec); });
  std::this_thread::sleep_for(std::chrono::seconds(2));
  std::filesystem::rename(farm_->db() + ".away", farm_->db());
  client.join();
  ExpectWholeAtEnd(job, kTrials, seen);
  ExpectWholeAtEnd(other, kTrials, {});
}

// Runs only if this process may mount a file system.
TEST_F(DiskTest, ATinyDisk) {
  ASSERT_OK_AND_ASSIGN(const TempDir folder, TempDir::Make("kiln-tiny-disk"));
  if (mount("tmpfs", folder.path().c_str(), "tmpfs", 0, "size=4m") != 0) {
    GTEST_SKIP() << "no file system can be mounted here";
  }
  StartFarm(Farm::Options{.device = "null", .db_folder = folder.path()});
  v1::JobSpec spec = Job();
  spec.mutable_options()->set_trials(kManyTrials);
  const std::string job = Submit(spec);
  WaitFor(job, 5);
  const std::map<uint32_t, v1::Record> seen = Records(job);
  // Another program takes all free space.
  std::ofstream(folder.Join("filler"), std::ios::binary) << std::string(8 << 20, 'x');
  ExpectMessageEventually(job, "waits for the database: no space left");
  std::filesystem::remove(folder.Join("filler"));
  // These are more records than the disk would hold if the log of the database kept all of them.
  ExpectWholeAtEnd(job, kManyTrials, seen);
  farm_.reset();
  umount2(folder.path().c_str(), MNT_DETACH);
}

// Each start runs the job, whose device never answers. The process dies before there is a result.
TEST_F(DiskTest, AJobThatRunsAtTwoSchedulerDeathsFails) {
  StartFarm("null");
  farm_->runner().Kill();
  const std::string job = Submit(Job());
  const auto runs = [&] {
    v1::JobStatus status;
    for (int i = 0; i < 400 && status.state() != v1::RUNNING; ++i) {
      Get(job, &status);
      std::this_thread::sleep_for(std::chrono::milliseconds(25));
    }
    EXPECT_EQ(status.state(), v1::RUNNING);
  };
  for (int deaths = 0; deaths < 2; ++deaths) {
    runs();
    farm_->scheduler().Kill();
    ASSERT_OK(farm_->scheduler().Start());
  }
  v1::JobStatus status;
  ASSERT_TRUE(Get(job, &status));
  EXPECT_EQ(status.state(), v1::FAILED);
  EXPECT_NE(status.message().find("the scheduler died 2 times in a row"), std::string::npos)
      << status.message();
  // The job continues after a Resume request.
  ASSERT_OK(farm_->runner().Start());
  v1::ResumeJobRequest resume;
  resume.set_job_id(job);
  v1::ResumeJobReply reply;
  grpc::ClientContext context;
  const grpc::Status resumed = farm_->Connect()->ResumeJob(&context, resume, &reply);
  ASSERT_TRUE(resumed.ok()) << resumed.error_message();
  ExpectWholeAtEnd(job, kTrials, {});
}

}  // namespace
}  // namespace kiln

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  kiln::InitGrpc();
  return RUN_ALL_TESTS();
}
