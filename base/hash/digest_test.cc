#include "base/hash/digest.h"

#include <gtest/gtest.h>

namespace kiln {
namespace {

TEST(DigestTest, KnownSha256) {
  EXPECT_EQ(Sha256Hex(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(Sha256Hex("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

TEST(DigestTest, KnownMd5) {
  EXPECT_EQ(Md5Hex(""), "d41d8cd98f00b204e9800998ecf8427e");
  EXPECT_EQ(Md5Hex("abc"), "900150983cd24fb0d6963f7d28e17f72");
}

TEST(DigestTest, KnownXxh3) {
  EXPECT_EQ(Xxh3(""), 0x2d06800538d394c2u);
  EXPECT_EQ(Xxh3Hex(""), "99aa06d3014798d86001c324468d497f");
  EXPECT_NE(Xxh3("a", 1), Xxh3("a", 2));
  EXPECT_EQ(Xxh3Hash128("a"), Xxh3Hash128("a"));
  EXPECT_NE(Xxh3Hash128("a"), Xxh3Hash128("b"));
}

TEST(DigestTest, PiecesEqualTheWhole) {
  std::string all;
  Sha256 pieces;
  for (int i = 0; i < 300; ++i) {
    const std::string piece(i, static_cast<char>(i));
    pieces.Update(piece);
    all += piece;
  }
  EXPECT_EQ(pieces.FinishHex(), Sha256Hex(all));
}

TEST(DigestTest, PiecesEqualTheWholeOfXxh3) {
  std::string all;
  Xxh3Stream pieces;
  EXPECT_EQ(pieces.Get(), Xxh3Hash128(""));
  for (int i = 0; i < 300; ++i) {
    const std::string piece(i, static_cast<char>(i));
    pieces.Update(piece);
    all += piece;
    ASSERT_EQ(pieces.Get(), Xxh3Hash128(all)) << i;
  }
}

TEST(DigestTest, Moves) {
  Sha256 a;
  a.Update("ab");
  Sha256 b = std::move(a);
  EXPECT_EQ(b.Update("c").FinishHex(), Sha256Hex("abc"));
}

TEST(DigestTest, HexOfAllBytes) {
  EXPECT_EQ(ToHex(std::string_view("\x00\x7f\x80\xff", 4)), "007f80ff");
}

}  // namespace
}  // namespace kiln
