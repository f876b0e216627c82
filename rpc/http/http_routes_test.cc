#include "rpc/http/http_routes.h"

#include "base/status_testing.h"

namespace kiln {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

HttpRoutes Routes(const std::vector<std::string>& patterns) {
  HttpRoutes routes;
  for (const std::string& pattern : patterns) {
    routes.Add({pattern, Role::kRead, HttpHandler([](const HttpRequest&) { return HttpReply(); })});
  }
  return routes;
}

// Returns the pattern of the path's route, or "".
std::string Found(const HttpRoutes& routes, std::string_view path,
                  std::vector<std::string>* stars = nullptr) {
  std::vector<std::string> found;
  const HttpRoute* const route = routes.Find(path, found);
  if (stars != nullptr) *stars = found;
  return route == nullptr ? "" : route->pattern;
}

TEST(HttpRoutesTest, StarsStandForOneSegmentEach) {
  const HttpRoutes routes = Routes({"/", "/api/jobs/*/tasks/*", "/api/jobs/*", "/api/jobs/all"});
  std::vector<std::string> stars;
  EXPECT_EQ(Found(routes, "/", &stars), "/");
  EXPECT_THAT(stars, IsEmpty());
  EXPECT_EQ(Found(routes, "/api/jobs/7", &stars), "/api/jobs/*");
  EXPECT_THAT(stars, ElementsAre("7"));
  EXPECT_EQ(Found(routes, "/api/jobs/7/tasks/x y", &stars), "/api/jobs/*/tasks/*");
  EXPECT_THAT(stars, ElementsAre("7", "x y"));
  EXPECT_EQ(Found(routes, "/api/jobs/all", &stars), "/api/jobs/all");
  EXPECT_THAT(stars, IsEmpty());
}

TEST(HttpRoutesTest, OtherPathsHaveNone) {
  const HttpRoutes routes = Routes({"/a", "/a/*/b"});
  std::vector<std::string> stars;
  for (const char* path : {"", "a", "/", "/a/", "/a//b", "/a/x", "/a/x/b/", "/a/x/c", "/A",
                           "/a/../a/x/b/c", "//a", "/a/x/y/b"}) {
    EXPECT_EQ(Found(routes, path, &stars), "") << path;
    EXPECT_THAT(stars, IsEmpty()) << path;
  }
}

TEST(HttpRoutesDeathTest, PatternsAreGoodAndNew) {
  EXPECT_DEATH(Routes({"a"}), "no slash in front");
  EXPECT_DEATH(Routes({"/a", "/a"}), "is there already");
}

}  // namespace
}  // namespace kiln
