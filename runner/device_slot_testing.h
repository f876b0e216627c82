// Trials of the programs in runner/testdata, for tests of a device slot. The tests need the runner
// and these programs as data, and run where their runfiles are.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "proto/trial.pb.h"
#include "runner/device_slot.h"

namespace kiln::runner {

// Matches the message of a right program on a machine that may be busy.
testing::Matcher<std::string> IsEmptyOrNoiseMark();

inline bool NotCancelled() { return false; }

// Options of a slot whose child runs programs on the CPU with two threads.
DeviceSlotOptions TestOptions();

// Returns the program of runner/testdata of this name. All programs have the arguments a and b,
// which are inputs of 4 x 6 floats, an output alike, and a workspace of 16 floats.
v1::Artifact Program(const std::string& name);

// Returns the request to measure the program, with "correct" as its reference.
v1::MeasureRequest Request(const std::string& name);

class DeviceSlotTest : public testing::Test {
 protected:
  // Measures under the digest of the artifact's content.
  v1::MeasureReply Measure(v1::MeasureRequest request);
  // Expects that the next trial of a right program is measured.
  void ExpectRight();

  DeviceSlot slot_{TestOptions()};
};

}  // namespace kiln::runner
