#include "client/npy.h"

#include <fmt/format.h>

#include <tuple>
#include <utility>

#include "base/file/file.h"
#include "base/status_testing.h"

namespace kiln::client {
namespace {

using ::testing::HasSubstr;

class NpyTest : public testing::Test {
 protected:
  TempDir folder_ = *TempDir::Make("npy_test");
};

TEST_F(NpyTest, WhatIsWrittenIsRead) {
  for (const std::vector<int64_t>& shape :
       {std::vector<int64_t>{}, {5}, {2, 3}, {1, 224, 224, 3}}) {
    NpyArray array{.dtype = "float32", .shape = shape, .bytes = {}};
    int64_t elements = 1;
    for (int64_t extent : shape) elements *= extent;
    for (int64_t i = 0; i < elements * 4; ++i) array.bytes.push_back(static_cast<std::byte>(i * 7));
    const std::string path = folder_.Join("x.npy");
    ASSERT_OK(WriteNpy(path, array));
    ASSERT_OK_AND_ASSIGN(const NpyArray read, ReadNpy(path));
    EXPECT_EQ(read.dtype, array.dtype);
    EXPECT_EQ(read.shape, array.shape);
    EXPECT_EQ(read.bytes, array.bytes);
    ASSERT_OK_AND_ASSIGN(const std::string content, ReadFile(path));
    EXPECT_EQ((content.size() - array.bytes.size()) % 64, 0u);
  }
}

TEST_F(NpyTest, TypesKeepTheirNames) {
  const std::string path = folder_.Join("x.npy");
  for (const auto& [dtype, bytes] :
       {std::pair{"uint64", 8}, {"int64", 8}, {"uint32", 4}, {"int16", 2}, {"bool", 1}}) {
    NpyArray array{.dtype = dtype, .shape = {2}, .bytes = {}};
    for (int i = 0; i < 2 * bytes; ++i) array.bytes.push_back(std::byte{1});
    ASSERT_OK(WriteNpy(path, array));
    ASSERT_OK_AND_ASSIGN(const NpyArray read, ReadNpy(path));
    EXPECT_EQ(read.dtype, dtype);
    EXPECT_EQ(read.bytes, array.bytes);
  }
}

TEST_F(NpyTest, TypesThatNumpyLacksAreTheirBits) {
  const std::string path = folder_.Join("x.npy");
  for (const auto& [dtype, held_as, bytes] : {std::tuple{"bfloat16", "uint16", 2},
                                              {"float8_e4m3fn", "uint8", 1},
                                              {"float8_e5m2", "uint8", 1}}) {
    NpyArray array{.dtype = dtype, .shape = {3}, .bytes = {}};
    for (int i = 0; i < 3 * bytes; ++i) array.bytes.push_back(static_cast<std::byte>(0x7b + i));
    ASSERT_OK(WriteNpy(path, array));
    ASSERT_OK_AND_ASSIGN(const NpyArray read, ReadNpy(path));
    EXPECT_EQ(read.dtype, held_as);
    EXPECT_EQ(read.dtype, NpyDtype(dtype));
    EXPECT_EQ(read.bytes, array.bytes);
  }
  EXPECT_EQ(NpyDtype("float32"), "float32");
  EXPECT_THAT(WriteNpy(path, {.dtype = "float9", .shape = {}, .bytes = {}}),
              StatusIs(StatusCode::kInvalidArgument, HasSubstr("unknown type float9")));
}

// numpy describes elements of types that it lacks as void with their number of bytes.
TEST_F(NpyTest, FilesOfMlDtypesAreTheirTypes) {
  for (const auto& [descr, dtype, bytes] :
       {std::tuple{"<V2", "bfloat16", 2}, std::tuple{"|V2", "bfloat16", 2},
        std::tuple{"<V1", "float8_e4m3fn", 1}, std::tuple{"<f1", "float8_e5m2", 1}}) {
    const std::string header =
        fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': (3,), }}\n", descr);
    std::string content("\x93NUMPY\x01\x00", 8);
    content += static_cast<char>(header.size());
    content += '\0';
    content += header + std::string(static_cast<size_t>(3 * bytes), 'x');
    const std::string path = folder_.Join("ml.npy");
    ASSERT_OK(WriteFile(path, content));
    ASSERT_OK_AND_ASSIGN(const NpyArray read, ReadNpy(path));
    EXPECT_EQ(read.dtype, dtype);
    EXPECT_EQ(read.bytes.size(), static_cast<size_t>(3 * bytes));
  }
}

TEST_F(NpyTest, Refusals) {
  const auto refused = [&](std::string header, size_t bytes, std::string_view message) {
    std::string content("\x93NUMPY\x01\x00", 8);
    content += static_cast<char>(header.size() & 0xff);
    content += static_cast<char>(header.size() >> 8);
    content += header + std::string(bytes, 'x');
    const std::string path = folder_.Join("bad.npy");
    KILN_CHECK(WriteFile(path, content).ok(), "{}", path);
    EXPECT_THAT(ReadNpy(path),
                StatusIs(StatusCode::kInvalidArgument, HasSubstr(std::string(message))))
        << header;
  };
  refused("{'descr': '<f4', 'fortran_order': True, 'shape': (2,), }", 8, "Fortran order");
  refused("{'descr': '>f4', 'fortran_order': False, 'shape': (2,), }", 8, "'>f4'");
  refused("{'descr': '<f4', 'fortran_order': False, 'shape': (3,), }", 8,
          "has 8 bytes of elements, its shape [3] of float32 needs 12");
  refused("{'descr': '<f4', 'fortran_order': False, 'shape': (-3,), }", 8, "expected extents");
  refused("{'descr': '<f4', 'shape': (3,), }", 8, "header that cannot be parsed");
  refused("{'descr': '<f8', 'fortran_order': False, 'shape': (4611686018427387904, 8), }", 8,
          "needs 9223372036854775807");
  const std::string path = folder_.Join("short.npy");
  ASSERT_OK(WriteFile(path, "\x93NUMPY"));
  EXPECT_THAT(ReadNpy(path),
              StatusIs(StatusCode::kInvalidArgument, HasSubstr("is not a .npy file")));
}

}  // namespace
}  // namespace kiln::client
