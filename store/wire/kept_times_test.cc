#include "store/wire/kept_times.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

namespace kiln::store {
namespace {

using testing::Lt;
using testing::SizeIs;

v1::TrialInstants Usual() {
  v1::TrialInstants instants;
  const int64_t begin_us = 1'795'972'383'123'456;
  instants.set_chosen_us(begin_us);
  instants.set_build_sent_us(begin_us + 1'250);
  instants.set_build_received_us(begin_us + 412'000);
  instants.set_run_sent_us(begin_us + 2'950'000);
  instants.set_run_received_us(begin_us + 4'100'000);
  instants.set_committed_us(begin_us + 4'102'000);
  return instants;
}

v1::TrialTimes Times() {
  v1::TrialTimes times;
  times.set_compile_s(0.25);
  times.set_release_s(0.5);
  return times;
}

v1::TrialResult Read(std::string_view bytes) {
  v1::TrialResult result;
  ReadTimes(bytes, result);
  return result;
}

TEST(KeptTimesTest, ReadsWhatItPrints) {
  const v1::TrialResult read = Read(PrintTimes(Times(), Usual()));
  EXPECT_EQ(read.times().SerializeAsString(), Times().SerializeAsString());
  EXPECT_EQ(read.instants().SerializeAsString(), Usual().SerializeAsString());
}

TEST(KeptTimesTest, InstantsTakeFewBytes) {
  EXPECT_THAT(PrintTimes({}, Usual()), SizeIs(Lt(32u)));
  EXPECT_EQ(PrintTimes({}, {}), "");
  EXPECT_EQ(PrintTimes(Times(), {}), Times().SerializeAsString());
}

TEST(KeptTimesTest, EachPartMayBeAlone) {
  EXPECT_FALSE(Read(PrintTimes({}, Usual())).has_times());
  EXPECT_TRUE(Read(PrintTimes({}, Usual())).has_instants());
  EXPECT_TRUE(Read(PrintTimes(Times(), {})).has_times());
  EXPECT_FALSE(Read(PrintTimes(Times(), {})).has_instants());
  EXPECT_FALSE(Read("").has_times());
}

TEST(KeptTimesTest, AnyInstantMayBeMissingOrBeforeTheOneBefore) {
  v1::TrialInstants instants;
  instants.set_build_sent_us(500);
  instants.set_run_received_us(-7);
  instants.set_committed_us(std::numeric_limits<int64_t>::max());
  EXPECT_EQ(Read(PrintTimes({}, instants)).instants().SerializeAsString(),
            instants.SerializeAsString());
  instants.set_committed_us(std::numeric_limits<int64_t>::min());
  EXPECT_EQ(Read(PrintTimes({}, instants)).instants().SerializeAsString(),
            instants.SerializeAsString());
}

// A TrialTimes with a field more would be read wrongly.
TEST(KeptTimesTest, TheFieldIsReserved) {
  const google::protobuf::Descriptor& times = *v1::TrialTimes::descriptor();
  EXPECT_TRUE(times.IsReservedNumber(15));
  EXPECT_EQ(times.field_count(), 14);
  for (int i = 0; i < times.field_count(); ++i) {
    EXPECT_EQ(times.field(i)->type(), google::protobuf::FieldDescriptor::TYPE_DOUBLE);
    EXPECT_LT(times.field(i)->number(), 15);
  }
}

TEST(KeptTimesTest, NoBytesOfStrangersDoHarm) {
  const std::string whole = PrintTimes(Times(), Usual());
  for (size_t i = 0; i < whole.size(); ++i) {
    Read(whole.substr(0, i));
    for (const int bit : {0, 3, 7}) {
      std::string changed = whole;
      changed[i] = static_cast<char>(changed[i] ^ (1 << bit));
      Read(changed);
    }
  }
  EXPECT_FALSE(Read("\xff").has_times());
  EXPECT_FALSE(Read(whole + "x").has_instants());
  EXPECT_FALSE(Read(std::string("z\x03\xff", 3)).has_instants());
}

}  // namespace
}  // namespace kiln::store
