#include "compiler/codegen/backends/backends.h"

#include <set>

#include "base/status_testing.h"

namespace kiln::codegen {
namespace {

TEST(Backends, ThereIsOneForEachKindOfTarget) {
  ASSERT_EQ(AllBackends().size(), target::AllTargetKinds().size());
  for (size_t i = 0; i < AllBackends().size(); ++i) {
    const target::TargetKind& kind = *target::AllTargetKinds()[i];
    EXPECT_EQ(&AllBackends()[i]->kind(), &kind) << kind.name;
    EXPECT_EQ(FindBackend(kind), AllBackends()[i]);
  }
  EXPECT_EQ(FindBackend(target::kCuda, {}), nullptr);
}

TEST(Backends, NoTwoFormsHaveOneName) {
  std::set<std::string_view> names;
  for (const Backend* backend : AllBackends()) {
    for (const CodeForm& form : backend->forms()) {
      EXPECT_TRUE(names.insert(form.name).second) << form.name;
      EXPECT_NE(form.title, "");
    }
  }
}

TEST(Backends, OnlyLlvmLooksAtThisMachine) {
  for (const Backend* backend : AllBackends()) {
    const target::Target target{.kind = &backend->kind()};
    ASSERT_OK_AND_ASSIGN(const target::Target resolved, backend->Resolve(target));
    EXPECT_EQ(resolved == target, !backend->kind().uses_host_cores) << backend->kind().name;
  }
}

}  // namespace
}  // namespace kiln::codegen
