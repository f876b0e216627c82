#include "compiler/codegen/cuda/computed_factor.h"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <utility>

#include "base/numbers/float16.h"
#include "compiler/codegen/cuda/narrow_floats.h"
#include "compiler/codegen/cuda/types.h"
#include "compiler/codegen/cuda/vectors.h"
#include "compiler/instructions/computed_factor.h"
#include "compiler/instructions/filled.h"
#include "compiler/ir/traverse.h"

namespace kiln::codegen {
namespace {
using ir::Expr;
using ir::Op;
using ir::Type;

constexpr int kWordBytes = 4;

// $N: the type's name in PTX.
constexpr std::string_view kPairs =
    R"cuda(// a b + c of two floats each; -0 for c adds nothing.
__device__ __forceinline__ unsigned multiply_add_pairs_$N(unsigned a, unsigned b, unsigned c) {
#if defined(__CUDA_ARCH__)
  unsigned sum;
  asm("fma.rn.$Nx2 %0, %1, %2, %3;" : "=r"(sum) : "r"(a), "r"(b), "r"(c));
  return sum;
#else
  unsigned sum = 0;
  for (int i = 0; i < 32; i += 16) {
    const auto half = [i](unsigned x) {
      return $N_to_float({static_cast<unsigned short>(x >> i)});
    };
    sum |= static_cast<unsigned>(float_to_$N(half(a) * half(b) + half(c)).bits) << i;
  }
  return sum;
#endif
}
__device__ __forceinline__ unsigned multiply_pairs_$N(unsigned a, unsigned b) {
  return multiply_add_pairs_$N(a, b, 0x80008000u);
}
// Two bytes, which `bytes` chooses as of __byte_perm, or bits of them, as floats. With `exponent`
// they are the last bits of a number; `rest` is minus what it is without them.
__device__ __forceinline__ unsigned bytes_to_$N(unsigned x, unsigned y, unsigned bytes,
                                               unsigned mask, unsigned exponent,
                                               unsigned rest) {
  return multiply_add_pairs_$N((__byte_perm(x, y, bytes) & mask) ^ exponent, $O, rest);
}

)cuda";

// 1.0 twice.
std::string_view OnesOf(std::string_view type) {
  return type == "f16" ? "0x3c003c00u" : "0x3f803f80u";
}

// The bits of a mantissa that are in memory, and of the exponent under which the last one is 1.
struct Mantissa {
  int bits = 10;
  uint16_t exponent = 0x6400;
  int64_t ones() const { return int64_t{1} << bits; }
};
Mantissa MantissaOf(Type type) {
  return type == ir::kFloat16 ? Mantissa() : Mantissa{.bits = 7, .exponent = 0x4300};
}

std::string Twice(uint16_t bits) { return fmt::format("0x{0:04x}{0:04x}u", bits); }

// The type by which so many bytes are loaded.
std::string_view WordType(int64_t bytes) {
  switch (bytes) {
    case 1:
      return "unsigned char";
    case 2:
      return "unsigned short";
    case 4:
      return "unsigned";
    case 8:
      return "uint2";
    default:
      return "uint4";
  }
}

// The element of a word as it is in memory.
std::string AsInMemory(Type type, const std::string& word, int byte) {
  const std::string bits = byte == 0 ? word : fmt::format("({} >> {})", word, 8 * byte);
  if (!NarrowFloatName(type).empty()) {
    const std::string_view raw = type.bytes() == 2 ? "unsigned short" : "unsigned char";
    return fmt::format("{}{{static_cast<{}>({})}}", CudaTypeName(type), raw, bits);
  }
  if (type == ir::kFloat32) return fmt::format("__uint_as_float({})", bits);
  return fmt::format("static_cast<{}>({})", CudaTypeName(type), bits);
}

}  // namespace

CudaComputedFactor::CudaComputedFactor(const MatrixTile& tile, MatrixPlaces& places,
                                       CudaScope& scope, CudaExprs& exprs, CudaBlocks& blocks,
                                       CudaNames& names, CudaPreamble& preamble)
    : tile_(tile),
      operand_(tile.computed()),
      places_(places),
      scope_(scope),
      exprs_(exprs),
      blocks_(blocks),
      names_(names),
      preamble_(preamble),
      type_(tile.unit->factor),
      type_name_(NarrowFloatName(tile.unit->factor)),
      neighbours_(static_cast<int>(operand_.group) / (tile.is_first_computed() ? 1 : 2)),
      loads_(instructions::LoadsOf(operand_.computed)) {}

void CudaComputedFactor::Emit(const std::string& tiles) {
  preamble_.Use(type_);
  for (size_t first = 0; first < operand_.elements.size(); first += operand_.group) {
    for (const int part : {0, 1}) EmitRegisters(first, part, tiles);
  }
  exprs_.ForgetLoads();
  places_.Reset();
}

// A tile of the second factor has a register for each half of the terms, one of the first factor has
// two, for neighbouring rows.
void CudaComputedFactor::EmitRegisters(size_t first, int part, const std::string& tiles) {
  first_ = first;
  part_ = part;
  for (int term = 0; term < kTerms; ++term) LoadWords(first, part, term);
  for (neighbour_ = 0; neighbour_ < neighbours_; ++neighbour_) {
    const size_t row = first + static_cast<size_t>(neighbour_);
    const size_t of_tile = tile_.is_first_computed() ? row / 2 : first / 2 + row - first;
    const int number = tile_.is_first_computed() ? 2 * part + static_cast<int>(row % 2) : part;
    blocks_.Line(fmt::format("{}[{}][{}] = {};", tiles, of_tile, number, Pair(operand_.computed)));
  }
}

void CudaComputedFactor::LoadWords(size_t first, int part, int term) {
  places_.SetComputed(first, part, term);
  std::vector<std::optional<Words>>& words = words_[static_cast<size_t>(term)];
  words.clear();
  for (const Expr load : loads_) words.push_back(WordsOf(load));
}

// Nothing: each element is read by itself.
std::optional<CudaComputedFactor::Words> CudaComputedFactor::WordsOf(Expr load) {
  const Type type = exprs_.buffer(load->id).type;
  if (type.is_bool() || type.bytes() > kWordBytes || exprs_.HeldBufferOrNull(load->id) != nullptr)
    return std::nullopt;
  const int32_t var = operand_.neighbours->var;
  Words words = {.type = type, .is_uniform = !ir::UsesVar(load, var)};
  std::optional<Place> place;
  if (words.is_uniform) {
    place = exprs_.PlaceOf(load->id, load->args());
  } else {
    CudaVectors vectors(scope_, exprs_, preamble_);
    place = vectors.PlaceOf(load->id, load->args(),
                            {.var = var, .lanes = neighbours_, .base = places_.FirstOfComputed()});
  }
  if (!place) return std::nullopt;
  const int64_t bytes = type.bytes() * (words.is_uniform ? 1 : neighbours_);
  words.count = static_cast<int>(std::max<int64_t>(1, bytes / kWordBytes));
  const std::string text = fmt::format("*reinterpret_cast<const {}*>(&{})", WordType(bytes),
                                       exprs_.Element(load->id, *place));
  const auto [known, is_new] = known_.try_emplace(text);
  if (is_new) {
    known->second = names_.Unique(exprs_.buffer_name(load->id) + "_words");
    const std::string_view declared = words.count == 1 ? "unsigned" : WordType(bytes);
    blocks_.Line(fmt::format("const {} {} = {};", declared, known->second, text));
  }
  words.name = known->second;
  return words;
}

const CudaComputedFactor::Words* CudaComputedFactor::FindWords(Expr load, int term) const {
  const auto found = std::ranges::find(loads_, load);
  if (found == loads_.end()) return nullptr;
  const auto& words =
      words_[static_cast<size_t>(term)][static_cast<size_t>(found - loads_.begin())];
  return words ? &*words : nullptr;
}

CudaComputedFactor::Element CudaComputedFactor::ElementIn(const Words& words) const {
  const int byte = words.is_uniform ? 0 : neighbour_ * static_cast<int>(words.type.bytes());
  if (words.count == 1) return {words.name, byte};
  return {fmt::format("{}.{}", words.name, "xyzw"[byte / kWordBytes]), byte % kWordBytes};
}

void CudaComputedFactor::SetTerm(int term) {
  places_.SetComputed(first_, part_, term);
  scope_.SetValue(operand_.neighbours->var,
                  places_.FirstOfComputed() + arith::Constant(neighbour_));
  exprs_.ForgetLoads();
  for (const Expr load : loads_) {
    const Words* const words = FindWords(load, term);
    if (words == nullptr) continue;
    const auto [word, byte] = ElementIn(*words);
    exprs_.HoldLoad(load, AsInMemory(words->type, word, byte));
  }
}

std::string CudaComputedFactor::Pair(Expr value) {
  if (std::optional<std::string> ints = PairOfInts(value)) return *std::move(ints);
  if (std::optional<std::string> product = PairOfProduct(value)) return *std::move(product);
  const bool is_element = value->op == Op::kLoad && value->type == type_ &&
                          FindWords(value, 0) != nullptr && FindWords(value, 1) != nullptr;
  return is_element ? PairOfElements(value) : PairOfFloats(value);
}

std::string CudaComputedFactor::PairOfElements(Expr load) {
  const Element low = ElementIn(*FindWords(load, 0)), high = ElementIn(*FindWords(load, 1));
  return fmt::format("__byte_perm({}, {}, 0x{:x}{:x}{:x}{:x}u)", low.word, high.word, high.byte + 5,
                     high.byte + 4, low.byte + 1, low.byte);
}

// Returns nothing if a factor of the product is no exact value.
std::optional<std::string> CudaComputedFactor::PairOfProduct(Expr value) {
  if (value->type != type_ || value->op != Op::kMul) return std::nullopt;
  if (!IsExact(value->arg(0)) || !IsExact(value->arg(1))) return std::nullopt;
  preamble_.pairs.insert(type_name_);
  const std::string a = Pair(value->arg(0)), b = Pair(value->arg(1));
  return fmt::format("multiply_pairs_{}({}, {})", type_name_, a, b);
}

// Is the value one of the type before anything is rounded?
bool CudaComputedFactor::IsExact(Expr value) {
  if (value->type != type_) return false;
  if (value->op == Op::kLoad) return true;
  SetTerm(0);
  if (value->op != Op::kCast || !value->arg(0)->type.is_int()) return false;
  const std::optional<SmallInt> of = SmallIntOf(value->arg(0));
  const int64_t exact = 2 * MantissaOf(type_).ones();
  if (of) return of->least() >= -exact && of->most() <= exact;
  return PairOfInts(value).has_value();
}

// Bits of two bytes, or those bytes themselves, converted.
std::optional<std::string> CudaComputedFactor::PairOfInts(Expr value) {
  if (value->op != Op::kCast || value->type != type_ || !value->arg(0)->type.is_int())
    return std::nullopt;
  std::optional<std::string> bits = PairOfBits(value->arg(0));
  return bits ? bits : PairOfDifference(value->arg(0));
}

// The difference of two such numbers, a weight and its zero point say, in a type that has them all.
std::optional<std::string> CudaComputedFactor::PairOfDifference(Expr integer) {
  if (integer->op != Op::kSub || integer->type.is_unsigned() || integer->type.bits < 16)
    return std::nullopt;
  const std::optional<std::string> first = PairOfBits(integer->arg(0)),
                                   second = PairOfBits(integer->arg(1));
  if (!first || !second) return std::nullopt;
  return fmt::format("multiply_add_pairs_{}({}, {}, {})", type_name_, *second, Twice(BitsOf(-1)),
                     *first);
}

std::optional<std::string> CudaComputedFactor::PairOfBits(Expr integer) {
  std::array<SmallInt, kTerms> of;
  std::array<Element, kTerms> at;
  for (int term = 0; term < kTerms; ++term) {
    SetTerm(term);
    const std::optional<SmallInt> found = SmallIntOf(integer);
    const Words* const words = found ? FindWords(found->load, term) : nullptr;
    if (words == nullptr) return std::nullopt;
    of[static_cast<size_t>(term)] = *found;
    Element& element = at[static_cast<size_t>(term)] = ElementIn(*words);
    if (found->shift > 0) element.word = fmt::format("{} >> {}", element.word, found->shift);
  }
  const SmallInt &low = of[0], &high = of[1];
  if (low.load != high.load || low.mask != high.mask || low.offset != high.offset)
    return std::nullopt;
  // Signed bytes are unsigned ones that are larger by 128, if their sign is flipped.
  const Mantissa mantissa = MantissaOf(type_);
  const int64_t sign = low.is_signed ? 128 : 0, rest = mantissa.ones() + sign - low.offset;
  if (low.mask + 1 > mantissa.ones() || std::abs(rest) > 2 * mantissa.ones()) return std::nullopt;
  preamble_.pairs.insert(type_name_);
  return fmt::format("bytes_to_{}({}, {}, 0x{:x}{:x}{:x}{:x}u, {}, {}, {})", type_name_, at[0].word,
                     at[1].word, at[1].byte + 4, at[1].byte + 4, at[0].byte, at[0].byte,
                     Twice(static_cast<uint16_t>(low.mask)),
                     Twice(static_cast<uint16_t>(mantissa.exponent | sign)), Twice(BitsOf(-rest)));
}

std::string CudaComputedFactor::PairOfFloats(Expr value) {
  preamble_.packed_types.insert(type_name_);
  std::array<std::string, kTerms> texts;
  for (int term = 0; term < kTerms; ++term) {
    SetTerm(term);
    texts[static_cast<size_t>(term)] = exprs_.Print(value).text;
  }
  return fmt::format("pack_{}({}, {})", type_name_, texts[0], texts[1]);
}

uint16_t CudaComputedFactor::BitsOf(int64_t number) const {
  const auto value = static_cast<float>(number);
  return type_ == ir::kFloat16 ? FloatToHalf(value) : FloatToBFloat16(value);
}

std::optional<int64_t> CudaComputedFactor::ConstantOf(Expr value) {
  const Expr simplified = scope_.simplifier().Simplify(value, &scope_.values());
  if (!simplified->is_const_int()) return std::nullopt;
  return simplified->int_value;
}

// Returns the number at the current term. Nothing: it is no byte, no bits of one, and no such
// number shifted by a constant.
std::optional<CudaComputedFactor::SmallInt> CudaComputedFactor::SmallIntOf(Expr value) {
  if (value->op == Op::kLoad) {
    if (value->type != ir::kInt8 && value->type != ir::kUInt8) return std::nullopt;
    return SmallInt{.load = value, .is_signed = value->type == ir::kInt8};
  }
  if (value->num_args == 0) return std::nullopt;
  const std::optional<SmallInt> of = SmallIntOf(value->arg(0));
  return of ? Changed(value, *of) : std::nullopt;
}

// The value of an operation on `of` and a constant. No operation leaves its type.
std::optional<CudaComputedFactor::SmallInt> CudaComputedFactor::Changed(Expr value, SmallInt of) {
  const Type type = value->type;
  if (!type.is_int()) return std::nullopt;
  if (value->op == Op::kCast) {
    if (!value->arg(0)->type.is_int()) return std::nullopt;
  } else {
    if (value->num_args != 2) return std::nullopt;
    const std::optional<int64_t> by = ConstantOf(value->arg(1));
    if (!by || std::abs(*by) > 0xffff) return std::nullopt;
    const bool has_bits = !of.is_signed && of.offset == 0 && *by >= 0;
    const bool is_power = *by > 0 && std::has_single_bit(static_cast<uint64_t>(*by));
    const int log = is_power ? std::countr_zero(static_cast<uint64_t>(*by)) : 0;
    if (value->op == Op::kAdd || value->op == Op::kSub) {
      of.offset += value->op == Op::kAdd ? *by : -*by;
    } else if (has_bits && value->op == Op::kBitAnd) {
      of.mask &= *by;
    } else if (has_bits && value->op == Op::kFloorMod && is_power) {
      of.mask &= *by - 1;
    } else if (has_bits && *by < 8 && value->op == Op::kShr) {
      of.shift += *by;
      of.mask >>= *by;
    } else if (has_bits && value->op == Op::kFloorDiv && is_power && log < 8) {
      of.shift += log;
      of.mask >>= log;
    } else {
      return std::nullopt;
    }
  }
  const int bits = std::min<int>(32, type.bits);
  const int64_t least = type.is_unsigned() ? 0 : -(int64_t{1} << (bits - 1)),
                most = (int64_t{1} << (type.is_unsigned() ? bits : bits - 1)) - 1;
  if (of.least() < least || of.most() > most || of.shift > 7) return std::nullopt;
  return of;
}

std::string PairDefinitions(const std::set<std::string_view>& types) {
  std::string text;
  for (const std::string_view type : types)
    text += instructions::Filled(kPairs, {{"$N", type}, {"$O", OnesOf(type)}});
  return text;
}

}  // namespace kiln::codegen
