#include "runtime/network_file.h"

#include <cstring>
#include <nlohmann/json.hpp>

#include "base/file/file.h"
#include "base/numbers/rng.h"
#include "base/status_testing.h"
#include "runtime/network_header.h"
#include "runtime/network_testing.h"
#include "runtime/place_buffers.h"

namespace kiln::runtime {
namespace {

using testing::AnyOf;
using testing::HasSubstr;
using testing::StartsWith;

class NetworkFileTest : public testing::Test {
 protected:
  NetworkFileTest() : network_(SmallNetwork()) {
    KILN_CHECK(PlaceBuffers(network_).ok());
    const auto file = FileOf(network_);
    KILN_CHECK(file.ok(), "{}", Message(file.status()));
    file_ = *file;
    const auto read = NetworkFile::FromBytes(AsBytes(file_));
    KILN_CHECK(read.ok(), "{}", Message(read.status()));
    const NetworkHeader header = Header();
    manifest_ = nlohmann::json::parse(file_.substr(header.manifest_offset, header.manifest_bytes));
    body_ = file_.substr(sizeof(header), header.manifest_offset - sizeof(header));
  }

  NetworkHeader Header() const {
    NetworkHeader header;
    std::memcpy(&header, file_.data(), sizeof(header));
    return header;
  }

  static std::string RefusalOf(std::string_view file) {
    const auto read = NetworkFile::FromBytes(AsBytes(file));
    return read.ok() ? "OK" : std::string(Message(read.status()));
  }
  // Returns the refusal of the file with this change in its manifest, and the right checksum of the
  // manifest.
  std::string RefusalOfManifest(const std::function<void(nlohmann::json&)>& change) const {
    nlohmann::json manifest = manifest_;
    change(manifest);
    return RefusalOf(SealedFile(manifest.dump(), body_));
  }

  Network network_;
  std::string file_;
  nlohmann::json manifest_;
  std::string body_;
};

TEST_F(NetworkFileTest, ReadsWhatWasWritten) {
  ASSERT_OK_AND_ASSIGN(const auto file, NetworkFile::FromBytes(AsBytes(file_)));
  const Network& read = file->network();
  EXPECT_EQ(read.target.arch, "x86_64");
  EXPECT_EQ(read.inputs[0].name, "x");
  EXPECT_EQ(read.outputs[0].shape, (std::vector<int64_t>{2, 2}));
  EXPECT_EQ(read.buffers[5].viewed, 3);
  EXPECT_EQ(read.buffers[5].offset, 16);
  EXPECT_EQ(read.constants[0].name, "w");
  EXPECT_EQ(read.constants[0].buffer, 1);
  EXPECT_EQ(read.kernels[1].name, "mul");
  EXPECT_EQ(read.kernels[1].computation, "input x: float32[4]");
  EXPECT_EQ(read.kernels[0].source, KernelSource::kTuned);
  EXPECT_EQ(read.kernels[0].expected_s, 1e-6);
  EXPECT_EQ(read.kernels[0].launches[0].args, (std::vector<uint32_t>{0, 1, 2}));
  EXPECT_EQ(read.binaries[0], network_.binaries[0]);
  EXPECT_EQ(read.graph_text, network_.graph_text);
  EXPECT_EQ(read.options_text, network_.options_text);
  ASSERT_EQ(file->constants().size(), 21u);
  EXPECT_EQ(file->constants()[15], std::byte{15});
  EXPECT_EQ(file->constants()[20], std::byte{4});
  EXPECT_EQ(reinterpret_cast<uintptr_t>(file->constants().data()) % 4096, 0u);
  EXPECT_EQ(file->bytes(), static_cast<int64_t>(file_.size()));
  // The same network gives the same file.
  ASSERT_OK_AND_ASSIGN(const std::string again, FileOf(read));
  EXPECT_EQ(again, file_);
}

TEST_F(NetworkFileTest, AManifestPrintsAsItWasRead) {
  ASSERT_OK_AND_ASSIGN(const auto file, NetworkFile::FromBytes(AsBytes(file_)));
  const std::string text = PrintManifest(file->manifest());
  ASSERT_OK_AND_ASSIGN(const Manifest again, ParseManifest(text));
  EXPECT_EQ(PrintManifest(again), text);
}

TEST_F(NetworkFileTest, OpensFiles) {
  ASSERT_OK_AND_ASSIGN(const TempDir folder, TempDir::Make("kiln_test"));
  const std::string path = folder.Join("a.kiln");
  ASSERT_OK(WriteFile(path, file_));
  EXPECT_OK(NetworkFile::Open(path));
  EXPECT_THAT(NetworkFile::Open(folder.Join("none")),
              StatusIs(StatusCode::kNotFound, HasSubstr("none: cannot open it: No such file")));
  EXPECT_THAT(NetworkFile::Open(folder.path()).status().ToString(), HasSubstr("this is no file"));
  ASSERT_OK(WriteFile(path, ""));
  EXPECT_THAT(NetworkFile::Open(path).status().ToString(), HasSubstr("a.kiln: the file is empty"));
}

TEST_F(NetworkFileTest, EveryByteIsGuarded) {
  for (size_t at = 0; at < file_.size(); ++at) {
    std::string damaged = file_;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x10);
    const std::string refusal = RefusalOf(damaged);
    // Padding between sections is not checked.
    if (refusal == "OK") {
      EXPECT_EQ(file_[at], 0) << at;
    }
  }
}

TEST_F(NetworkFileTest, EveryCutIsRefused) {
  for (size_t bytes = 0; bytes < file_.size(); ++bytes) {
    EXPECT_NE(RefusalOf(file_.substr(0, bytes)), "OK") << bytes;
  }
  EXPECT_THAT(RefusalOf(file_ + "x"), HasSubstr("was written with"));
}

TEST_F(NetworkFileTest, DamagedConstantsAreFoundWhenAsked) {
  ASSERT_OK_AND_ASSIGN(const auto whole, NetworkFile::FromBytes(AsBytes(file_)));
  std::string damaged = file_;
  damaged[static_cast<size_t>(whole->manifest().constants.offset) + 3] ^= 1;
  EXPECT_THAT(NetworkFile::FromBytes(AsBytes(damaged)),
              StatusIs(StatusCode::kDataLoss, HasSubstr("the constants are damaged")));
  ASSERT_OK_AND_ASSIGN(const auto file,
                       NetworkFile::FromBytes(AsBytes(damaged), {.check_constants = false}));
  EXPECT_THAT(file->CheckConstants(), StatusIs(StatusCode::kDataLoss, testing::_));
}

TEST_F(NetworkFileTest, RefusesHeaders) {
  const auto with = [&](auto change) {
    NetworkHeader header = Header();
    change(header);
    std::string file = file_;
    std::memcpy(file.data(), &header, sizeof(header));
    return RefusalOf(file);
  };
  EXPECT_THAT(RefusalOf("\x7f"
                        "ELF"),
              HasSubstr("this is no compiled network"));
  EXPECT_THAT(with([](NetworkHeader& h) { h.version = 2; }),
              HasSubstr("version 2, and this Kiln reads version 3: compile the network again"));
  EXPECT_THAT(with([](NetworkHeader& h) { h.manifest_offset = ~uint64_t{0}; }),
              HasSubstr("outside of the file"));
  EXPECT_THAT(with([](NetworkHeader& h) { h.manifest_bytes = ~uint64_t{0} - 64; }),
              HasSubstr("outside of the file"));
  EXPECT_THAT(with([](NetworkHeader& h) { h.reserved = 1; }), HasSubstr("header is damaged"));
}

TEST_F(NetworkFileTest, RefusesManifests) {
  EXPECT_EQ(RefusalOfManifest([](auto&) {}), "OK");
  EXPECT_THAT(RefusalOf(SealedFile("{", body_)), HasSubstr("the manifest is no JSON"));
  EXPECT_THAT(RefusalOf(SealedFile("[]", body_)), HasSubstr("is no object"));
  EXPECT_THAT(RefusalOf(SealedFile(std::string(1 << 20, '['), body_)), HasSubstr("no JSON"));
  EXPECT_THAT(RefusalOf(SealedFile(std::string(17 << 20, ' '), body_)),
              HasSubstr("at most 16777216 are allowed"));
  EXPECT_EQ(RefusalOfManifest([](auto& m) { m.erase("kernels"); }), "kernels is missing");
  EXPECT_EQ(RefusalOfManifest([](auto& m) { m["kernels"] = 3; }), "kernels is not an array");
  EXPECT_EQ(RefusalOfManifest([](auto& m) { m["kernels"][1]["launches"][0]["grid"] = {1, 2}; }),
            "kernels[1].launches[0].grid is not three numbers");
  EXPECT_EQ(RefusalOfManifest([](auto& m) { m["kernels"][1]["launches"][0]["grid"][2] = -1; }),
            "kernels[1].launches[0].grid[2] is no whole number from 0 to 4294967295");
  EXPECT_EQ(RefusalOfManifest([](auto& m) { m["inputs"][0]["name"] = 1; }),
            "inputs[0].name is not a string");
  EXPECT_EQ(RefusalOfManifest([](auto& m) { m["inputs"][0]["shape"][0] = 4.5; }),
            "inputs[0].shape[0] is no whole number from 0 to 9223372036854775807");
  EXPECT_EQ(RefusalOfManifest([](auto& m) { m["inputs"][0]["buffer"] = uint64_t{1} << 63; }),
            "inputs[0].buffer is no whole number from 0 to 2147483647");
  EXPECT_EQ(RefusalOfManifest([](auto& m) { m["buffers"][0]["place"] = "moon"; }),
            "buffers[0].place is unknown: 'moon'");
  EXPECT_EQ(RefusalOfManifest([](auto& m) { m["binaries"][0]["xxh3"] = "12"; }),
            "binaries[0].xxh3 is not 32 hex digits");
  EXPECT_EQ(RefusalOfManifest([](auto& m) { m["kernels"][0]["args"][0]["written"] = 1; }),
            "kernels[0].args[0].written is not true or false");
  EXPECT_EQ(RefusalOfManifest([](auto& m) { m["kernels"][0]["flops"] = "x"; }),
            "kernels[0].flops is not a number");
}

TEST_F(NetworkFileTest, PackedConstants) {
  network_.constants[0].packing = Packing{.shape = {4}, .dims = {{0, 2, 1}, {0, 2, 2}}};
  ASSERT_OK_AND_ASSIGN(const std::string packed, FileOf(network_));
  ASSERT_OK_AND_ASSIGN(const auto file, NetworkFile::FromBytes(AsBytes(packed)));
  EXPECT_EQ(file->network().constants[0].packing, network_.constants[0].packing);
  ASSERT_NE(PackingOf(file->network(), 1), nullptr);
  EXPECT_EQ(*PackingOf(file->network(), 1), *network_.constants[0].packing);
  EXPECT_EQ(PackingOf(file->network(), 2), nullptr);

  const auto with = [&](nlohmann::json dims) {
    return RefusalOfManifest([&](auto& m) { m["named_constants"][0]["packed"] = dims; });
  };
  const auto dim = [](auto axis, auto extent, auto step) {
    return nlohmann::json{{"axis", axis}, {"extent", extent}, {"step", step}};
  };
  EXPECT_EQ(with({dim(0, 4, 1)}), "OK");
  EXPECT_EQ(with(nlohmann::json::object()), "named_constants[0].packed is not an array");
  EXPECT_EQ(with({3}), "named_constants[0].packed[0] is no object");
  EXPECT_EQ(with({{{"axis", 0}, {"step", 1}}}), "named_constants[0].packed[0].extent is missing");
  EXPECT_THAT(with({dim(-1, 4, 1)}), HasSubstr("packed[0].axis is no whole number from 0"));
  EXPECT_THAT(with({dim(1, 4, 1)}), HasSubstr("constant 'w': packed along axis 1"));
  EXPECT_THAT(with({dim(0, 0, 1)}), HasSubstr("extent 0 and step 1"));
  EXPECT_THAT(with({dim(0, 2, 1)}), HasSubstr("leaves out elements"));
  EXPECT_THAT(with({dim(0, 3, 2), dim(0, 2, 1)}),
              HasSubstr("it takes 24 bytes, its buffer 1 has 16"));
  EXPECT_THAT(with({dim(0, INT64_MAX, 1), dim(0, INT64_MAX, 1)}), HasSubstr("too many elements"));
  EXPECT_THAT(with(std::vector<nlohmann::json>(300, dim(0, 4, 1))),
              HasSubstr("300 packed dimensions, at most 256 are allowed"));
  for (const char* tensors : {"inputs", "outputs"}) {
    EXPECT_THAT(RefusalOfManifest([&](auto& m) { m[tensors][0]["packed"] = {dim(0, 4, 1)}; }),
                HasSubstr("is packed, expected that of constants alone"));
  }
}

TEST_F(NetworkFileTest, RefusesSections) {
  EXPECT_THAT(RefusalOfManifest([](auto& m) { m["constants"]["offset"] = 4097; }),
              AnyOf(HasSubstr("no multiple of 4096"), HasSubstr("outside of the file")));
  EXPECT_THAT(RefusalOfManifest([](auto& m) { m["constants"]["bytes"] = INT64_MAX; }),
              HasSubstr("outside of the file"));
  EXPECT_THAT(RefusalOfManifest([](auto& m) { m["binaries"][0]["offset"] = 0; }),
              HasSubstr("the header and the bytes of a binary overlap"));
  EXPECT_THAT(RefusalOfManifest([](auto& m) { m["binaries"].push_back(m["binaries"][0]); }),
              HasSubstr("the bytes of a binary and the bytes of a binary overlap"));
  EXPECT_THAT(RefusalOfManifest([](auto& m) { m["graph"]["bytes"] = 1; }),
              HasSubstr("the bytes of the graph are damaged"));
  EXPECT_THAT(RefusalOfManifest([](auto& m) { m["constants_bytes"] = 22; }),
              HasSubstr("21 bytes of constants, the network 22"));
  EXPECT_THAT(RefusalOfManifest([](auto& m) { m["buffers"][5]["of"] = 5; }),
              HasSubstr("a view itself"));
}

TEST_F(NetworkFileTest, WritesNothingThatIsWrong) {
  ASSERT_OK_AND_ASSIGN(const TempDir folder, TempDir::Make("kiln_test"));
  const std::string path = folder.Join("a.kiln");
  const auto short_constant = [](int32_t) -> StatusOr<std::span<const std::byte>> {
    static constexpr std::byte kByte{};
    return std::span(&kByte, 1);
  };
  EXPECT_THAT(WriteNetwork(path, network_, short_constant).status().ToString(),
              HasSubstr("constant 1 has 1 bytes, its buffer 16"));
  const auto no_constant = [](int32_t) -> StatusOr<std::span<const std::byte>> {
    return NotFound("weights.bin is gone");
  };
  EXPECT_THAT(WriteNetwork(path, network_, no_constant).status().ToString(),
              HasSubstr("weights.bin is gone"));
  network_.binaries[0] = "MZ";
  EXPECT_THAT(WriteNetwork(path, network_, no_constant).status().ToString(),
              HasSubstr("is no ELF file"));
  EXPECT_FALSE(FileExists(path));
}

}  // namespace
}  // namespace kiln::runtime
