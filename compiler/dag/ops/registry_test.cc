#include "compiler/dag/ops/registry.h"

#include <set>

#include "base/status_testing.h"
#include "compiler/dag/hash_text.h"
#include "compiler/dag/ops/op_cases_testing.h"
#include "compiler/dag/workload_key.h"

namespace kiln::dag {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(Registry, UnknownOperatorNamesTheClosest) {
  EXPECT_THAT(BuildOp("conv2d_nhcw", "1"),
              StatusIs(StatusCode::kNotFound,
                       AllOf(HasSubstr("unknown operator 'conv2d_nhcw', did you mean conv2d_n"),
                             HasSubstr("? `kiln ops` lists the "))));
  EXPECT_THAT(BuildOp("frobnicate", "1"),
              StatusIs(StatusCode::kNotFound,
                       HasSubstr("unknown operator 'frobnicate'; `kiln ops` lists the ")));
}

TEST(Registry, WrongArityPrintsTheParameters) {
  EXPECT_THAT(
      BuildOp("conv2d_nchw", "1,7,7,512,512"),
      StatusIs(
          StatusCode::kInvalidArgument,
          "conv2d_nchw takes N,H,W,CO,CI,KH,KW,stride,pad[,dilation[,groups]]: got 5 arguments"));
  EXPECT_THAT(BuildOp("matmul", "1,2,3,4"),
              StatusIs(StatusCode::kInvalidArgument, "matmul takes M,N,K: got 4 arguments"));
  EXPECT_THAT(BuildOp("relu", ""),
              StatusIs(StatusCode::kInvalidArgument, HasSubstr("extents of its input: got 0")));
  EXPECT_THAT(BuildOp("matmul", "1,2,L=3"),
              StatusIs(StatusCode::kInvalidArgument, HasSubstr("no parameter 'L'")));
  EXPECT_THAT(BuildOp("matmul", "1,2,M=3"),
              StatusIs(StatusCode::kInvalidArgument, HasSubstr("M is given twice")));
}

TEST(Registry, BadNumbersAreRefused) {
  EXPECT_THAT(BuildOp("matmul", "8,0,8"),
              StatusIs(StatusCode::kInvalidArgument, HasSubstr("matmul: N = 0, expected 1 to")));
  EXPECT_THAT(BuildOp("matmul", "8,-3,8"),
              StatusIs(StatusCode::kInvalidArgument, HasSubstr("N = -3")));
  EXPECT_THAT(BuildOp("matmul", "8,x,8"),
              StatusIs(StatusCode::kInvalidArgument, HasSubstr("argument 'x': expected a whole")));
  EXPECT_THAT(BuildOp("matmul", "8,,8"),
              StatusIs(StatusCode::kInvalidArgument, HasSubstr("argument ''")));
  EXPECT_THAT(BuildOp("matmul", "8,99999999999999999999,8"),
              StatusIs(StatusCode::kInvalidArgument, HasSubstr("64 bits")));
  EXPECT_THAT(BuildOp("matmul", "2000000000,2000000000,8"),
              StatusIs(StatusCode::kInvalidArgument, HasSubstr("more than 2^40 elements")));
  EXPECT_THAT(BuildOp("conv2d_nchw", "1,7,7,8,8,9,3,1,0"),
              StatusIs(StatusCode::kInvalidArgument, HasSubstr("the kernel spans 9 along H")));
  EXPECT_THAT(BuildOp("conv2d_nchw", "1,7,7,8,8,3,3,1,1,1,3"),
              StatusIs(StatusCode::kInvalidArgument, HasSubstr("groups = 3 must divide")));
  EXPECT_THAT(BuildOp("max_pool2d", "1,8,8,4,2,2,2,2"),
              StatusIs(StatusCode::kInvalidArgument, HasSubstr("pad = 2")));
  EXPECT_THAT(BuildOp("softmax", "3,7,axis=2"),
              StatusIs(StatusCode::kInvalidArgument, HasSubstr("axis = 2")));
  EXPECT_THAT(BuildOp("conv2d_nchw", "1,2147483648,2147483648,1,1,2147483648,1,1,2147483648"),
              StatusIs(StatusCode::kInvalidArgument, HasSubstr("2^40")));
}

TEST(Registry, UnknownEpilogue) {
  EXPECT_THAT(
      BuildOp("matmul", "4,4,4", {.epilogue = {"rellu"}}),
      StatusIs(StatusCode::kNotFound, HasSubstr("unknown epilogue 'rellu', did you mean relu")));
}

TEST(Registry, IntegersDoNotTakeFloatFunctions) {
  EXPECT_THAT(BuildOp("exp", "4", {.dtype = ir::kInt32}),
              StatusIs(StatusCode::kInvalidArgument, HasSubstr("exp of a value")));
}

TEST(Registry, Int8IsSummedInInt32) {
  ASSERT_OK_AND_ASSIGN(DagPtr dag, BuildOp("matmul", "4,5,6", {.dtype = ir::kInt8}));
  EXPECT_EQ(dag->op(2).type(), ir::kInt32);
}

TEST(Registry, OutputTypesThatAnOperatorDoesNotMakeAreRefused) {
  ASSERT_OK_AND_ASSIGN(
      DagPtr dag, BuildOp("softmax", "3,5", {.dtype = ir::kFloat16, .out_dtype = ir::kFloat32}));
  EXPECT_EQ(dag->type(dag->arguments().back()), ir::kFloat32);
  EXPECT_THAT(BuildOp("relu", "3", {.dtype = ir::kFloat16, .out_dtype = ir::kFloat32}),
              StatusIs(StatusCode::kInvalidArgument,
                       "relu makes float16 of float16: leave out the output type float32"));
  EXPECT_THAT(
      BuildOp("avg_pool2d", "1,4,4,2,2,2,2,0", {.dtype = ir::kInt8}),
      StatusIs(StatusCode::kInvalidArgument, "avg_pool2d_nchw: for float types only, got int8"));
}

TEST(Registry, BadArgumentsOfEachFamilyAreOneSentence) {
  const struct {
    const char *op, *args, *message;
  } cases[] = {
      {"conv1d_ncw", "1,3,4,4,9,1,0", "conv1d_ncw: the kernel spans 9 along W"},
      {"conv3d_ndhwc", "1,3,3,3,4,4,3,3,3,1,1,groups=3", "groups = 3 must divide CI = 4"},
      {"conv2d_transpose_nchw", "1,4,4,2,2,3,3,2,3", "pad = 3 must be smaller than the kernel 3x3"},
      {"conv2d_transpose_nhwc", "1,4,4,2,2,3,3,2,1,2",
       "output_pad = 2 must be smaller than stride"},
      {"conv2d_transpose_nchw", "1,1,1,2,2,3,3,1,2", "output rows or columns, expected 1 to"},
      {"conv2d_transpose_nchw", "1,2147483648,4,2,2,3,3,2147483648,1", "expected 1 to"},
      {"adaptive_avg_pool2d_nchw", "1,5,5,3,3", "got 5 arguments"},
      {"layer_norm", "3,5,axis=2", "axis = 2 of a tensor with 2 dimensions, expected -2 to 1"},
      {"layer_norm", "3,5,eps=0", "eps = 0, expected 1 to 12"},
      {"batch_norm", "3", "batch_norm takes the extents of its input"},
      {"reshape", "3,4", "reshape: needs its new extents"},
      {"reshape", "3,4,to=5", "[3, 4] has 12 elements, which do not fit [5]"},
      {"reshape", "3,4,to=-1,to=5", "[3, 4] has 12 elements, which do not fit [-1, 5]"},
      {"reshape", "3,4,to=-1,to=-1", "to = -1 is given twice"},
      {"reshape", "3,4,to=0", "to = 0, expected a positive extent"},
      {"reshape", "2147483648,2147483648,2147483648,2147483648,2147483648,to=1", "2^40"},
      {"transpose", "3,4,axis=1,axis=1", "axis = 1 is given twice"},
      {"transpose", "3,4,axis=1", "got 1 axes, expected all 2 of the input"},
      {"concat", "3,4", "concat: needs a second input"},
      {"slice", "3,4,begin=4", "begin = 4 along axis 0 with extent 3, expected -3 to 3"},
      {"slice", "3,4,begin=2,end=2", "nothing is left of axis 0"},
      {"slice", "3,4,stride=1,stride=1,stride=1", "stride is given 3 times, the input has 2 axes"},
      {"slice", "3,4,stride=0", "stride = 0, expected 1 to"},
      {"gather", "3,4", "gather: needs the extents of its indices"},
      {"gather", "3,4,axis=2,indices=1", "axis = 2 of a tensor with 2 dimensions"},
      {"gather", "2,2,2,2,2,2,2,2,indices=0", "indices = 0, expected 1 to"},
      {"resize_nearest_nchw", "1,3,3,2,5,5,3", "coordinates = 3, expected 0 to 2"},
  };
  for (const auto& c : cases) {
    EXPECT_THAT(BuildOp(c.op, c.args), StatusIs(StatusCode::kInvalidArgument, HasSubstr(c.message)))
        << c.op << " " << c.args;
  }
}

// The cases name every operator, and every operator with its epilogues can be made in every float
// type.
TEST(Registry, EveryOperatorBuilds) {
  std::set<std::string> names;
  for (const OpCase& c : SmallOpCases()) {
    SCOPED_TRACE(c.Name());
    names.insert(c.op);
    const DagPtr made = c.Build();
    EXPECT_GE(made->flop_count(), 0);
    if (c.dtype != ir::kFloat32) continue;
    for (ir::Type type :
         {ir::kFloat16, ir::kFloat64, ir::kBFloat16, ir::kFloat8E4M3, ir::kFloat8E5M2}) {
      EXPECT_OK(BuildOp(c.op, c.args, {.dtype = type}).status());
    }
    if (std::string_view(c.op).starts_with("arg")) continue;
    for (const std::string& epilogue : EpilogueNames()) {
      SCOPED_TRACE(epilogue);
      EXPECT_OK(BuildOp(c.op, c.args, {.epilogue = {"bias", epilogue}}).status());
    }
  }
  for (const OpInfo& op : AllOps()) EXPECT_TRUE(names.contains(op.name)) << op.name;
}

// Tests products and rearrangements of int8.
TEST(Registry, IntegerOperators) {
  const struct {
    const char *op, *args;
    ir::Type out;
  } cases[] = {{"conv1d_ncw", "1,5,2,2,3,1,1", ir::kInt32},
               {"conv3d_ndhwc", "1,3,3,3,2,2,2,2,2,1,0", ir::kInt32},
               {"conv2d_transpose_nhwc", "1,3,3,2,2,3,3,2,1", ir::kInt32},
               {"batch_matmul", "2,3,4,5", ir::kInt32},
               {"sum", "3,5", ir::kInt32},
               {"adaptive_max_pool2d", "1,5,5,2,2,2", ir::kInt8},
               {"resize_nearest", "1,3,3,2,5,5", ir::kInt8},
               {"reshape", "3,4,to=12", ir::kInt8},
               {"concat", "3,with=2", ir::kInt8},
               {"gather", "3,4,indices=2", ir::kInt8}};
  for (const auto& c : cases) {
    ASSERT_OK_AND_ASSIGN(DagPtr dag, BuildOp(c.op, c.args, {.dtype = ir::kInt8}));
    EXPECT_EQ(dag->type(dag->arguments().back()), c.out) << c.op;
  }
}

TEST(Registry, FlopsOfProducts) {
  const struct {
    const char *op, *args;
    double flops;
  } cases[] = {{"conv1d_ncw", "1,8,4,3,3,1,1", 2. * 8 * 4 * 3 * 3},
               {"conv1d_nwc", "1,8,4,6,3,1,1,groups=2", 2. * 8 * 4 * 3 * 3},
               {"conv3d_ncdhw", "1,4,4,4,5,3,3,3,3,1,1", 2. * 64 * 5 * 3 * 27},
               {"conv2d_transpose_nchw", "1,4,4,3,2,4,4,2,1", 2. * 64 * 3 * 2 * 4},
               {"conv2d_transpose_nchw", "1,4,4,3,2,4,4,2,1,dilate=1", 2. * 64 * 3 * 2 * 16},
               {"reshape", "3,4,to=12", 0},
               {"concat", "3,with=2", 0}};
  for (const auto& c : cases) {
    ASSERT_OK_AND_ASSIGN(DagPtr dag, BuildOp(c.op, c.args));
    EXPECT_EQ(dag->flop_count(), c.flops) << c.op;
  }
}

struct Task {
  int id;
  const char* name;
  const char* args;
  std::vector<std::string> epilogue;
  std::string key;
  double flops;
};

// The tasks of resnet-18, NHWC, with the keys that its records have.
std::vector<Task> Resnet18() {
  const char* strided = "07f9fcad27bdd3233f86fe35a5185d33";
  const char* shortcut = "0fad1b42d0d33418e0a8d15d3bbad3c9";
  auto key = [](const char* hash, const char* shapes) {
    return fmt::format("[\"{}\", {}]", hash, shapes);
  };
  return {
      {0,
       "conv2d_nhwc",
       "1,56,56,64,64,1,1,1,0",
       {},
       key("2d10de6646307f0e3e5cf4b31c20e69b", "[1, 56, 56, 64], [1, 1, 64, 64], [1, 56, 56, 64]"),
       25690112},
      {1,
       "conv2d_winograd_nhwc",
       "1,28,28,128,128",
       {"residual", "bias", "relu"},
       key("f19692ed81d032b1697c08adee62f9a5",
           "[1, 28, 28, 128], [4, 4, 128, 128], [1, 28, 28, 128], [1, 1, 1, 128], [1, 28, 28, "
           "128]"),
       127145984},
      {2,
       "conv2d_nhwc",
       "1,56,56,128,64,1,1,2,0",
       {},
       key(shortcut, "[1, 56, 56, 64], [1, 1, 64, 128], [1, 28, 28, 128]"),
       12845056},
      {3,
       "conv2d_winograd_nhwc",
       "1,14,14,256,256",
       {"bias", "relu"},
       key("1097323f3970e5c881ad3a0028ca79cb",
           "[1, 14, 14, 256], [4, 4, 256, 256], [1, 1, 1, 256], [1, 14, 14, 256]"),
       114903040},
      {4,
       "conv2d_winograd_nhwc",
       "1,28,28,128,128",
       {"bias", "relu"},
       key("0bcf718c0e6566bcd6c3b1437a3b6291",
           "[1, 28, 28, 128], [4, 4, 128, 128], [1, 1, 1, 128], [1, 28, 28, 128]"),
       127045632},
      {5,
       "conv2d_winograd_nhwc",
       "1,7,7,512,512",
       {"residual"},
       key("d78e8eb6021c4cdda0ad7775d10f751a",
           "[1, 7, 7, 512], [4, 4, 512, 512], [1, 7, 7, 512], [1, 7, 7, 512]"),
       142107136},
      {6,
       "conv2d_winograd_nhwc",
       "1,56,56,64,64",
       {"bias", "relu"},
       key("7c2a4f1f432f81c44985590780dfb52d",
           "[1, 56, 56, 64], [6, 6, 64, 64], [1, 1, 1, 64], [1, 56, 56, 64]"),
       128651264},
      {7,
       "conv2d_winograd_nhwc",
       "1,7,7,512,512",
       {"residual", "scale", "bias", "relu"},
       key("a3df19e5b88592ef5a9ce584a1ca3010",
           "[1, 7, 7, 512], [4, 4, 512, 512], [1, 7, 7, 512], [1, 1, 1, 512], [1, 1, 1, 512], [1, "
           "7, 7, 512]"),
       142182400},
      {8,
       "conv2d_winograd_nhwc",
       "1,14,14,256,256",
       {"residual", "bias", "relu"},
       key("64b7ce5264a64cb340d78b444b0325e6",
           "[1, 14, 14, 256], [4, 4, 256, 256], [1, 14, 14, 256], [1, 1, 1, 256], [1, 14, 14, "
           "256]"),
       114953216},
      {9,
       "softmax",
       "1,1000",
       {},
       key("7d79c516e212fe1d73f5dbb90eaca2cf", "[1, 1000], [1, 1000]"),
       4000},
      {10,
       "global_avg_pool2d_nhwc",
       "1,7,7,512",
       {},
       key("8c53ca2904398da2889aa7508082d7bb", "[1, 7, 7, 512], [1, 1, 1, 512]"),
       26112},
      {11,
       "conv2d_winograd_nhwc",
       "1,7,7,512,512",
       {"bias", "relu"},
       key("40b1cf1fd37b0ef111b3cc0247302508",
           "[1, 7, 7, 512], [4, 4, 512, 512], [1, 1, 1, 512], [1, 7, 7, 512]"),
       142132224},
      {12,
       "conv2d_nhwc",
       "1,28,28,256,128,1,1,2,0",
       {},
       key(shortcut, "[1, 28, 28, 128], [1, 1, 128, 256], [1, 14, 14, 256]"),
       12845056},
      {13,
       "conv2d_nhwc",
       "1,14,14,512,256,3,3,2,1",
       {"bias", "relu"},
       key(strided, "[1, 14, 14, 256], [3, 3, 256, 512], [1, 1, 1, 512], [1, 7, 7, 512]"),
       115655680},
      {14,
       "conv2d_winograd_nhwc",
       "1,28,28,128,128",
       {"residual"},
       key("25577781e50c611c2e45e73c1cb3a6ca",
           "[1, 28, 28, 128], [4, 4, 128, 128], [1, 28, 28, 128], [1, 28, 28, 128]"),
       126945280},
      {15,
       "conv2d_nhwc",
       "1,28,28,256,128,3,3,2,1",
       {"bias", "relu"},
       key(strided, "[1, 28, 28, 128], [3, 3, 128, 256], [1, 1, 1, 256], [1, 14, 14, 256]"),
       115705856},
      {16,
       "conv2d_winograd_nhwc",
       "1,56,56,64,64",
       {"residual", "bias", "relu"},
       key("6c4f6234946e16bcf9e48bdf289f9200",
           "[1, 56, 56, 64], [6, 6, 64, 64], [1, 56, 56, 64], [1, 1, 1, 64], [1, 56, 56, 64]"),
       128851968},
      {17,
       "conv2d_nhwc",
       "1,224,224,64,3,7,7,2,3",
       {"bias", "relu"},
       key(strided, "[1, 224, 224, 3], [7, 7, 3, 64], [1, 1, 1, 64], [1, 112, 112, 64]"),
       237633536},
      {18,
       "conv2d_winograd_nhwc",
       "1,56,56,64,64",
       {"residual"},
       key("10b8215aaf2e14d47d40b4093e6f41a0",
           "[1, 56, 56, 64], [6, 6, 64, 64], [1, 56, 56, 64], [1, 56, 56, 64]"),
       128450560},
      {19,
       "conv2d_winograd_nhwc",
       "1,14,14,256,256",
       {"residual"},
       key("7f3fee61bc3c2604395f5d343b840b7c",
           "[1, 14, 14, 256], [4, 4, 256, 256], [1, 14, 14, 256], [1, 14, 14, 256]"),
       114852864},
      {20,
       "max_pool2d_nhwc",
       "1,112,112,64,3,3,2,1",
       {"bias", "relu"},
       key("6d012ba18a086c11ee2b85c7324e16f2", "[1, 112, 112, 64], [1, 1, 1, 64], [1, 56, 56, 64]"),
       2207744},
      {21,
       "conv2d_nhwc",
       "1,14,14,512,256,1,1,2,0",
       {},
       key(shortcut, "[1, 14, 14, 256], [1, 1, 256, 512], [1, 7, 7, 512]"),
       12845056},
      {22,
       "dense",
       "1,1000,512",
       {"bias"},
       key("00a059b856ac30ac172b6252254479a6", "[1, 512], [1000, 512], [1, 1000], [1, 1000]"),
       1025000},
      {23,
       "conv2d_nhwc",
       "1,56,56,128,64,3,3,2,1",
       {"bias", "relu"},
       key(strided, "[1, 56, 56, 64], [3, 3, 64, 128], [1, 1, 1, 128], [1, 28, 28, 128]"),
       115806208},
  };
}

TEST(Registry, Resnet18KeysAndFlops) {
  const std::vector<Task> tasks = Resnet18();
  ASSERT_EQ(tasks.size(), 24u);
  for (const Task& task : tasks) {
    ASSERT_OK_AND_ASSIGN(DagPtr dag, BuildOp(task.name, task.args, {.epilogue = task.epilogue}));
    EXPECT_EQ(WorkloadKey(*dag), task.key) << "task " << task.id << "\n" << HashText(*dag);
    EXPECT_EQ(dag->flop_count(), task.flops) << "task " << task.id;
  }
}

}  // namespace
}  // namespace kiln::dag
