#include "scheduler/pages/roofline.h"

#include "base/status_testing.h"
#include "store/record_testing.h"

namespace kiln::scheduler {
namespace {

using testing::HasSubstr;

// 2 * 512^3 operations over three arrays of 1 MiB.
store::Record Product(double cost_s) {
  store::Record record = store::TestRecord("j1", 0, cost_s);
  record.dag =
      "input A: float32[512, 512]\n"
      "input B: float32[512, 512]\n"
      "C[i: 512, j: 512] = sum(k: 512) A[i, k] * B[k, j]\n";
  record.flop_count = 2.0 * 512 * 512 * 512;
  record.device_model =
      "compute_capability=90 multiprocessors=132 clock_mhz=1980 memory_clock_mhz=3201 "
      "memory_bus_bits=6144 name=NVIDIA H200";
  return record;
}

TEST(RooflineTest, PlacesAProgramUnderTheLimitsOfAGpu) {
  const auto roof = RooflineOf(Product(1e-4));
  ASSERT_OK(roof);
  EXPECT_DOUBLE_EQ(roof->bytes, 3.0 * 512 * 512 * 4);
  EXPECT_NEAR(roof->intensity, 85.3, 0.1);
  EXPECT_NEAR(roof->flops, 2.68e12, 1e10);
  // 132 multiprocessors of 128 lanes at 1.98 GHz.
  EXPECT_NEAR(roof->peaks.peak_flops, 66.9e12, 1e11);
  EXPECT_NEAR(roof->peaks.bytes_per_s, 4.916e12, 1e10);
  EXPECT_FALSE(roof->is_memory_bound);
  EXPECT_DOUBLE_EQ(roof->limit, roof->peaks.peak_flops);
}

TEST(RooflineTest, TellsThatTheMemoryIsTheLimit) {
  store::Record sum = Product(1e-4);
  sum.dag = "input A: float32[512, 512]\nC[i: 512, j: 512] = A[i, j] + 1.0\n";
  sum.flop_count = 512 * 512;
  const auto roof = RooflineOf(sum);
  ASSERT_OK(roof);
  EXPECT_TRUE(roof->is_memory_bound);
  EXPECT_DOUBLE_EQ(roof->limit, roof->intensity * roof->peaks.bytes_per_s);
}

TEST(RooflineTest, KnowsTheLimitsOfACpu) {
  store::Record record = Product(1e-2);
  record.device_model = "clock_mhz=3000 cores=4 vector_bytes=32 gflops_per_core=90 name=some CPU";
  const auto roof = RooflineOf(record);
  ASSERT_OK(roof);
  EXPECT_DOUBLE_EQ(roof->peaks.peak_flops, 360e9);
  EXPECT_GT(roof->peaks.bytes_per_s, 1e9);
}

TEST(RooflineTest, SaysWhatIsNotKnown) {
  store::Record record = Product(1e-4);
  record.device_model = "cores=4 name=null device";
  EXPECT_THAT(RooflineOf(record), StatusIs(StatusCode::kNotFound, HasSubstr("null device")));
  record.device_model = "";
  EXPECT_THAT(RooflineOf(record), StatusIs(StatusCode::kNotFound, HasSubstr("imported")));
  EXPECT_THAT(RooflineOf(store::FailedRecord("j1", 0, 5)),
              StatusIs(StatusCode::kNotFound, HasSubstr("failed")));
  record = Product(1e-4);
  record.dag = "no computation";
  EXPECT_THAT(RooflineOf(record), StatusIs(StatusCode::kNotFound, HasSubstr("computation")));
}

}  // namespace
}  // namespace kiln::scheduler
