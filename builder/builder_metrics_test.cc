#include "builder/builder_metrics.h"

#include "base/status_testing.h"

namespace kiln::builder {
namespace {

using testing::HasSubstr;

TEST(BuilderMetricsTest, CountsBuildsByResult) {
  Metrics metrics;
  const BuilderMetrics builder(metrics);
  v1::BuildReply reply;
  reply.set_build_s(0.2);
  builder.Note(reply);
  reply.set_error(v1::COMPILE_HOST_ERROR);
  builder.Note(reply);
  // A build from the cache took no time.
  reply.set_cached(true);
  builder.Note(reply);
  // A number that a later version may send.
  reply.set_error(static_cast<v1::ErrorKind>(1'000));
  builder.Note(reply);
  const std::string text = metrics.Text();
  EXPECT_THAT(text, HasSubstr("kiln_builder_builds_total{error=\"NO_ERROR\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("kiln_builder_builds_total{error=\"COMPILE_HOST_ERROR\"} 2\n"));
  EXPECT_THAT(text, HasSubstr("kiln_builder_builds_total{error=\"BUILD_TIMEOUT_ERROR\"} 0\n"));
  EXPECT_THAT(text, HasSubstr("kiln_builder_build_seconds_count 2\n"));
  EXPECT_THAT(text, HasSubstr("kiln_builder_wait_seconds_count 2\n"));
}

TEST(BuilderMetricsTest, TheDefaultCountsNothing) { BuilderMetrics().Note({}); }

class NoBuilds : public BuildExecutor {
 public:
  StatusOr<BuildOutcome> Build(const v1::BuildRequest&, const std::function<bool()>&) override {
    return Unavailable("no builds");
  }
};

TEST(BuilderMetricsTest, ShowsTheCacheWhileItLives) {
  Metrics metrics;
  NoBuilds none;
  BuildCache cache(none, 1 << 20, "1");
  EXPECT_FALSE(cache.Build({}, [] { return false; }).ok());
  auto shown = ShowBuilder(cache, 4, metrics);
  const std::string text = metrics.Text();
  EXPECT_THAT(text, HasSubstr("kiln_builder_slots 4\n"));
  EXPECT_THAT(text, HasSubstr("kiln_builder_cache_answers_total{by=\"own build\"} 1\n"));
  shown.reset();
  EXPECT_EQ(metrics.Text(), "");
}

}  // namespace
}  // namespace kiln::builder
