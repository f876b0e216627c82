// Checks that docs/operators.md lists the operators of the registry, and that the examples of
// docs/text-form.md are computations.
#include <fstream>
#include <sstream>

#include "base/status_testing.h"
#include "compiler/dag/ops/registry.h"
#include "compiler/dag/text.h"

namespace kiln::dag {
namespace {

std::string ReadDoc(const std::string& path) {
  // Tests run in the root of the runfiles.
  std::ifstream file(path);
  EXPECT_TRUE(file.good()) << path;
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

TEST(Documentation, OperatorTablesAreTheRegistry) {
  const std::string doc = ReadDoc("docs/operators.md");
  const std::string begin = "<!-- begin tables -->\n", end = "<!-- end tables -->";
  const size_t from = doc.find(begin), to = doc.find(end);
  ASSERT_NE(from, std::string::npos);
  ASSERT_NE(to, std::string::npos);
  EXPECT_EQ(doc.substr(from + begin.size(), to - from - begin.size()), OperatorTables())
      << "bazel run //compiler/dag/ops:print_tables shows what belongs between the markers";
}

TEST(Documentation, ExamplesParse) {
  const std::string doc = ReadDoc("docs/text-form.md");
  int examples = 0;
  for (size_t at = doc.find("```\n"); at != std::string::npos; at = doc.find("```\n", at)) {
    const size_t begin = at + 4, end = doc.find("```\n", begin);
    ASSERT_NE(end, std::string::npos);
    const std::string block = doc.substr(begin, end - begin);
    at = end + 4;
    if (block.find("input ") == std::string::npos || block.starts_with("file ") ||
        block.starts_with("line "))
      continue;
    ++examples;
    StatusOr<DagPtr> dag = ParseDag(block);
    ASSERT_TRUE(dag.ok()) << dag.status() << "\n" << block;
    ASSERT_OK_AND_ASSIGN(DagPtr again, ParseDag(PrintDag(**dag)));
    EXPECT_TRUE(Equal(*again, **dag));
  }
  EXPECT_EQ(examples, 5);
}

}  // namespace
}  // namespace kiln::dag
