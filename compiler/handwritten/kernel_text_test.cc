#include "compiler/handwritten/kernel_text.h"

#include "base/status_testing.h"
#include "compiler/handwritten/kernel_point.h"

namespace kiln::handwritten {
namespace {

using testing::HasSubstr;

constexpr std::string_view kSource =
    "extern \"C\" __global__ void matmul(const float* A) {\n  // \\ and \"\"\"\n}\n";

// A text with every key.
constexpr std::string_view kEverything = R"toml(# a comment
kernel = "matmul"
arguments = ["A", "B", "C", { int32 = "N" }, { float32 = 1.5 }, { float64 = 2 }, { bool = 1 }]
grid = ["ceil_div(N, block_size_x * tile)", 4]
block = ["block_size_x", "block_size_y"]
shared_bytes = "block_size_x * 4 if_not"
options = ["--use_fast_math", "-DX=1"]
restrictions = ["32 <= block_size_x * block_size_y <= 1024", "use_padding == 0 or tile > 1"]
flops = "2 * N * N"

[constants]
N = 64
HALF = "N // 2"

[parameters]
block_size_x = [16, 32]
block_size_y = [2, 1]
tile = [1, 2, 4]
use_padding = [true, false]
vector = ["float", "float2"]

[tensors]
A = "input float32[N, 64]"
C = "output float32[N, HALF]"

[reference]
kernel = "naive"
options = []
grid = [1]
block = ["block_size_x"]

[reference.parameters]
block_size_x = 16
)toml";

StatusOr<KernelText> Parse(std::string text, Language language = Language::kCuda) {
  return ParseSpaceFile(text, language, language == Language::kC ? "m.c" : "m.cu",
                        std::string(kSource));
}

std::string Replaced(std::string_view what, std::string_view with) {
  std::string text(kEverything);
  text.replace(text.find(what), what.size(), with);
  return text;
}

std::string Everything() { return Replaced(" if_not", ""); }

// Returns a small text, with more lines at its top.
std::string Small(std::string_view more) {
  return fmt::format(
      "kernel = \"f\"\noperator = \"matmul\"\nargs = \"4,4,4\"\n{}\n[parameters]\na = [1, 2]\n",
      more);
}

TEST(KernelText, PrintsAndParsesBack) {
  ASSERT_OK_AND_ASSIGN(const KernelText text, Parse(Everything()));
  EXPECT_EQ(text.parameters.size(), 5u);
  EXPECT_EQ(text.parameters[4].name, "vector");
  EXPECT_EQ(text.code.block.size(), 2u);
  ASSERT_TRUE(text.reference.has_value());
  EXPECT_EQ(text.reference->code.source, kSource) << "the kernel's own file";
  EXPECT_EQ(text.reference->code.arguments, text.code.arguments);
  const std::string printed = PrintKernelText(text);
  ASSERT_OK_AND_ASSIGN(const KernelText again, ParseKernelText(printed));
  EXPECT_EQ(again, text) << printed;
  EXPECT_EQ(PrintKernelText(again), printed);
}

TEST(KernelText, TheDigestIsOfWhatAConfigurationMakesAProgramOf) {
  ASSERT_OK_AND_ASSIGN(const KernelText text, Parse(Everything()));
  ASSERT_OK_AND_ASSIGN(const KernelText more,
                       Parse(Replaced("* 4 if_not\"", "* 4\" # more").replace(0, 1, "\n#")));
  EXPECT_EQ(KernelDigest(more), KernelDigest(text));
  KernelText changed = text;
  changed.parameters[0].values.emplace_back(int64_t{64});
  changed.restrictions.clear();
  changed.code.file = "other.cu";
  EXPECT_EQ(KernelDigest(changed), KernelDigest(text));
  changed.code.source += " ";
  EXPECT_NE(KernelDigest(changed), KernelDigest(text));
  changed = text;
  changed.code.grid.pop_back();
  EXPECT_NE(KernelDigest(changed), KernelDigest(text));
}

TEST(KernelText, BlockSizesByNameAreTheBlock) {
  ASSERT_OK_AND_ASSIGN(const KernelText text, Parse(R"toml(
kernel = "f"
operator = "matmul"
grid = [1]
[parameters]
block_size_x = [1]
block_size_y = [2]
)toml"));
  ASSERT_EQ(text.code.block.size(), 2u);
  EXPECT_EQ(PrintExpression(text.code.block[1]), "block_size_y");
}

TEST(KernelText, SaysWhatIsWrongAndWhere) {
  const auto refusal = [](const std::string& text, Language language = Language::kCuda) {
    return std::string(Message(Parse(text, language).status()));
  };
  EXPECT_THAT(refusal(std::string(kEverything)),
              HasSubstr("line 6, column 16: shared_bytes 'block_size_x * 4 if_not': column 18: "
                        "expected the end"));
  EXPECT_THAT(refusal("kernel = "), HasSubstr("line 1, column"));
  EXPECT_THAT(refusal(Small("grid = [1]\nblock = [1]\nkernal = \"f\"")),
              HasSubstr("line 6, column 1: unknown key 'kernal'"));
  EXPECT_THAT(refusal(Small("grid = [1]\nblock = [1]\nkernal = \"f\"")),
              HasSubstr("did you mean kernel?"));
  EXPECT_THAT(refusal(Small("")), HasSubstr("there is no grid"));
  EXPECT_THAT(refusal(Small("grid = [1]")), HasSubstr("there is no block"));
  EXPECT_THAT(refusal(Small("grid = [1, 2, 3, 4]\nblock = [1]")), HasSubstr("4 extents"));
  EXPECT_THAT(refusal(Small("grid = [\"b\"]\nblock = [1]")),
              HasSubstr("line 4, column 8: grid: 'b' is no constant and no parameter"));
  EXPECT_THAT(refusal(Small("block = [1]"), Language::kC),
              HasSubstr("a block of threads is of CUDA"));
  EXPECT_THAT(refusal(Small("options = [\"-fplugin=x.so\"]"), Language::kC),
              HasSubstr("'-fplugin=x.so' is no option that a c kernel may have"));
  EXPECT_THAT(refusal(Small("arguments = [{ int33 = 1 }]"), Language::kC),
              HasSubstr("'int33' is no type of a number"));
  EXPECT_THAT(refusal(Small("arguments = [{ block = \"x\" }]"), Language::kC),
              HasSubstr("block x is of C, of a grid"));
  EXPECT_THAT(refusal(Replaced("[1, 2, 4]", "[1, 2, 1]")),
              HasSubstr("parameter tile has the value 1 twice"));
  EXPECT_THAT(refusal(Replaced("[1, 2, 4]", "[1, true]")), HasSubstr("several kinds"));
  EXPECT_THAT(refusal(Replaced("tile = ", "N = ")), HasSubstr("'N' is there twice"));
  EXPECT_THAT(refusal(Replaced("tile = ", "\"a b\" = ")),
              HasSubstr("cannot be the name of a macro"));
  EXPECT_THAT(refusal(Replaced("tile = ", "t\u016fle = ")),
              HasSubstr("may stand in strings and comments alone"));
  EXPECT_THAT(refusal("kernel = \"f\"\n"), HasSubstr("there is no table [parameters]"));
  EXPECT_THAT(refusal("kernel = \"f\"\n[parameters]\na = [1]\n", Language::kC),
              HasSubstr("nothing says what the kernel must compute"));
  EXPECT_THAT(refusal(Small("language = \"c\""), Language::kC), HasSubstr("leave it out"));
  EXPECT_THAT(Message(ParseKernelText(Small("")).status()), HasSubstr("the language is ''"));
}

TEST(KernelText, LettersOfAllLanguagesInStringsAndComments) {
  ASSERT_OK_AND_ASSIGN(const KernelText text, Parse(Everything() + "\n# ů, ж, 大\n"));
  EXPECT_EQ(text.language, Language::kCuda);
}

TEST(KernelPoint, PrintsAndParsesBack) {
  const KernelPoint point{.kernel = std::string(64, 'a'),
                          .function = "matmul",
                          .values = {{"block_size_x", int64_t{32}},
                                     {"use_padding", true},
                                     {"vector", std::string("float\"4")},
                                     {"less", int64_t{-1}}}};
  const std::string printed = PrintKernelPoint(point);
  EXPECT_TRUE(IsKernelPoint(printed));
  EXPECT_FALSE(IsKernelPoint("[]"));
  ASSERT_OK_AND_ASSIGN(const KernelPoint again, ParseKernelPoint(printed));
  EXPECT_EQ(again, point) << printed;
  EXPECT_EQ(HashKernelPoint(again), HashKernelPoint(point));
  KernelPoint other = point;
  other.values[0].second = int64_t{64};
  EXPECT_NE(HashKernelPoint(other), HashKernelPoint(point));
  EXPECT_EQ(ValuesText(point.values), "block_size_x=32 use_padding=true vector=float\"4 less=-1");
}

TEST(KernelPoint, RefusesWhatIsNone) {
  for (const char* const text :
       {"", "[]", "{", "{}", R"({"kernel":"ab","function":"f","parameters":{}})",
        R"({"kernel":1,"function":"f","parameters":{}})"}) {
    EXPECT_THAT(ParseKernelPoint(text).status(),
                StatusIs(StatusCode::kInvalidArgument, HasSubstr("expected")))
        << text;
  }
  const std::string digest(64, '0');
  for (const char* const value : {"1.5", "null", "[1]", "18446744073709551615"}) {
    EXPECT_FALSE(
        ParseKernelPoint(fmt::format(R"({{"kernel":"{}","function":"f","parameters":{{"a":{}}}}})",
                                     digest, value))
            .ok())
        << value;
  }
}

}  // namespace
}  // namespace kiln::handwritten
