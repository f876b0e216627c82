#include "rpc/otlp/otlp_exporter.h"

#include <atomic>
#include <memory>
#include <string>

#include "absl/time/clock.h"
#include "base/status_testing.h"
#include "rpc/otlp/otlp_span.h"
#include "rpc/otlp/otlp_testing.h"

namespace kiln {
namespace {

// A collector that answers as the test says.
class OtlpExporterTest : public testing::Test {
 protected:
  OtlpExporter::Options Quick() {
    OtlpExporter::Options options;
    options.collector = "the test";
    options.most_waiting = 8;
    options.batch = 4;
    options.gather = absl::Milliseconds(1);
    options.patience = absl::Milliseconds(1);
    options.random = [] { return 0.0; };
    return options;
  }
  void Start(const OtlpExporter::Options& options) {
    exporter_ = std::make_unique<OtlpExporter>(options, [this](const std::string& body) {
      ++posts_;
      while (holds_) absl::SleepFor(absl::Milliseconds(1));
      if (answer_ == 200) spans_ += OtlpSpansIn(body).size();
      return answer_ == 0 ? StatusOr<int>(Unavailable("nobody listens")) : StatusOr<int>(answer_);
    });
  }
  void Add(int number) {
    const TraceContext ids = TraceOfTrial("j", 1);
    std::string both;
    for (int i = 0; i < 2; ++i) {
      AppendOtlp({.trace_id = ids.trace_id, .span_id = ids.span_id}, both);
    }
    for (int i = 0; i < number; ++i) exporter_->Add(both);
  }
  // Waits for ten seconds at most.
  template <typename Done>
  static bool Eventually(const Done& done) {
    for (int i = 0; i < 2'000 && !done(); ++i) absl::SleepFor(absl::Milliseconds(5));
    return done();
  }

  std::atomic<int> answer_ = 200, posts_ = 0;
  std::atomic<size_t> spans_ = 0;
  std::atomic<bool> holds_ = false;
  std::unique_ptr<OtlpExporter> exporter_;  // last: it uses the other members
};

TEST_F(OtlpExporterTest, AllThatIsAddedArrives) {
  Start(Quick());
  for (int i = 0; i < 5; ++i) {
    Add(6);
    ASSERT_TRUE(Eventually([&] { return exporter_->counts().sent == 6u * (i + 1u); }));
  }
  EXPECT_EQ(spans_, 60u);
  EXPECT_EQ(exporter_->counts().dropped, 0u);
}

TEST_F(OtlpExporterTest, WhatWaitsIsSentAtTheEnd) {
  OtlpExporter::Options options = Quick();
  options.gather = absl::Hours(1);
  Start(options);
  Add(3);
  exporter_.reset();
  EXPECT_EQ(spans_, 6u);
}

TEST_F(OtlpExporterTest, NobodyWaitsForASlowCollector) {
  holds_ = true;
  Start(Quick());
  Add(1);
  ASSERT_TRUE(Eventually([&] { return posts_ == 1; }));
  Add(20);
  EXPECT_EQ(exporter_->counts().dropped, 12u);
  holds_ = false;
  EXPECT_TRUE(Eventually([&] { return exporter_->counts().sent == 9; }));
}

TEST_F(OtlpExporterTest, ABatchIsSentAgainWhileTheCollectorHasNoTime) {
  OtlpExporter::Options options = Quick();
  options.patience = absl::Hours(1);
  answer_ = 503;
  Start(options);
  Add(2);
  ASSERT_TRUE(Eventually([&] { return posts_ >= 2; }));
  answer_ = 0;
  const int before = posts_;
  ASSERT_TRUE(Eventually([&] { return posts_ > before; }));
  answer_ = 200;
  EXPECT_TRUE(Eventually([&] { return exporter_->counts().sent == 2; }));
  EXPECT_EQ(exporter_->counts().dropped, 0u);
}

TEST_F(OtlpExporterTest, ABatchThatIsRefusedIsDropped) {
  OtlpExporter::Options options = Quick();
  options.patience = absl::Hours(1);
  answer_ = 400;
  Start(options);
  Add(2);
  EXPECT_TRUE(Eventually([&] { return exporter_->counts().dropped == 2; }));
  EXPECT_EQ(posts_, 1);
}

TEST_F(OtlpExporterTest, ItEndsThoughTheCollectorIsAway) {
  OtlpExporter::Options options = Quick();
  options.patience = absl::Hours(1);
  answer_ = 0;
  Start(options);
  Add(2);
  ASSERT_TRUE(Eventually([&] { return posts_ > 0; }));
  exporter_.reset();
  EXPECT_EQ(spans_, 0u);
}

}  // namespace
}  // namespace kiln
