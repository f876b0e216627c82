#include "scheduler/fair_share/counted_leases.h"

#include "base/status_testing.h"
#include "rpc/lease_source_testing.h"

namespace kiln::scheduler {
namespace {

using testing::AllOf;
using testing::HasSubstr;

// Passes calls on to a source that outlives it.
class Passing : public LeaseSource {
 public:
  explicit Passing(LeaseSource& source) : source_(source) {}
  StatusOr<LeasedWorker> Acquire(absl::Duration timeout, std::stop_token stop,
                                 const std::vector<std::string>& avoid) override {
    return source_.Acquire(timeout, std::move(stop), avoid);
  }

 private:
  LeaseSource& source_;
};

TEST(CountedLeasesTest, CountsWhatIsHeldAndWhatIsLost) {
  Metrics metrics;
  FakeClock clock;
  FakeLeaseSource workers;
  for (const char* id : {"w0", "w1"}) {
    v1::WorkerState worker;
    worker.set_id(id);
    worker.set_slots(1);
    workers.AddWorker(worker);
  }
  const LeaseFactory leases = CountLeases(
      [&](const LeaseSpec&) { return Leases{.source = std::make_unique<Passing>(workers)}; },
      metrics, clock);
  LeaseSpec spec;
  spec.kind = v1::RUNNER;
  const auto source = leases(spec).source;
  const std::vector<std::string> none;
  EXPECT_THAT(metrics.Text(), AllOf(HasSubstr("kiln_leases_held{kind=\"builder\"} 0\n"),
                                    HasSubstr("kiln_leases_held{kind=\"runner\"} 0\n")));
  {
    ASSERT_OK_AND_ASSIGN(const LeasedWorker first, source->Acquire(absl::Seconds(10), {}, none));
    ASSERT_OK_AND_ASSIGN(const LeasedWorker second, source->Acquire(absl::Seconds(10), {}, none));
    EXPECT_THAT(metrics.Text(), HasSubstr("kiln_leases_held{kind=\"runner\"} 2\n"));
    EXPECT_FALSE(source->Acquire(absl::ZeroDuration(), {}, none).ok());
    workers.RemoveWorker(second.worker().id());
  }
  EXPECT_THAT(metrics.Text(), AllOf(HasSubstr("kiln_leases_held{kind=\"runner\"} 0\n"),
                                    HasSubstr("kiln_leases_asked{kind=\"runner\"} 0\n"),
                                    HasSubstr("kiln_leases_lost_total{kind=\"runner\"} 1\n"),
                                    HasSubstr("kiln_lease_wait_seconds_count{kind=\"runner\"} 2\n"),
                                    HasSubstr("kiln_leases_held{kind=\"builder\"} 0\n")));
}

}  // namespace
}  // namespace kiln::scheduler
