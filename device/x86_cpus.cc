#include "device/x86_cpus.h"

#include <algorithm>
#include <array>
#include <map>
#include <span>
#include <utility>
#include <vector>

namespace kiln::device {
namespace {

// Registers that the operating system has to save if a feature is to be usable.
enum Saved { kAny, kAvx, kAvx512, kAmx };

struct Feature {
  std::string_view name;
  uint32_t leaf, subleaf;
  uint32_t CpuidRegisters::* reg;
  int bit;
  Saved saved;
};

// The bits are those of Intel's and AMD's manuals. The rows are in ascending order of names.
// clang-format off
constexpr Feature kFeatures[] = {
    {"64bit", 0x80000001, 0, &CpuidRegisters::edx, 29, kAny},
    {"adx", 0x7, 0, &CpuidRegisters::ebx, 19, kAny},
    {"aes", 0x1, 0, &CpuidRegisters::ecx, 25, kAny},
    {"amx-bf16", 0x7, 0, &CpuidRegisters::edx, 22, kAmx},
    {"amx-complex", 0x7, 1, &CpuidRegisters::edx, 8, kAmx},
    {"amx-fp16", 0x7, 1, &CpuidRegisters::eax, 21, kAmx},
    {"amx-int8", 0x7, 0, &CpuidRegisters::edx, 25, kAmx},
    {"amx-tile", 0x7, 0, &CpuidRegisters::edx, 24, kAmx},
    {"avx", 0x1, 0, &CpuidRegisters::ecx, 28, kAvx},
    {"avx10.1-256", 0x7, 1, &CpuidRegisters::edx, 19, kAny},
    {"avx10.1-512", 0x24, 0, &CpuidRegisters::ebx, 18, kAny},
    {"avx2", 0x7, 0, &CpuidRegisters::ebx, 5, kAvx},
    {"avx512bf16", 0x7, 1, &CpuidRegisters::eax, 5, kAvx512},
    {"avx512bitalg", 0x7, 0, &CpuidRegisters::ecx, 12, kAvx512},
    {"avx512bw", 0x7, 0, &CpuidRegisters::ebx, 30, kAvx512},
    {"avx512cd", 0x7, 0, &CpuidRegisters::ebx, 28, kAvx512},
    {"avx512dq", 0x7, 0, &CpuidRegisters::ebx, 17, kAvx512},
    {"avx512f", 0x7, 0, &CpuidRegisters::ebx, 16, kAvx512},
    {"avx512fp16", 0x7, 0, &CpuidRegisters::edx, 23, kAvx512},
    {"avx512ifma", 0x7, 0, &CpuidRegisters::ebx, 21, kAvx512},
    {"avx512vbmi", 0x7, 0, &CpuidRegisters::ecx, 1, kAvx512},
    {"avx512vbmi2", 0x7, 0, &CpuidRegisters::ecx, 6, kAvx512},
    {"avx512vl", 0x7, 0, &CpuidRegisters::ebx, 31, kAvx512},
    {"avx512vnni", 0x7, 0, &CpuidRegisters::ecx, 11, kAvx512},
    {"avx512vp2intersect", 0x7, 0, &CpuidRegisters::edx, 8, kAvx512},
    {"avx512vpopcntdq", 0x7, 0, &CpuidRegisters::ecx, 14, kAvx512},
    {"avxifma", 0x7, 1, &CpuidRegisters::eax, 23, kAvx},
    {"avxneconvert", 0x7, 1, &CpuidRegisters::edx, 5, kAvx},
    {"avxvnni", 0x7, 1, &CpuidRegisters::eax, 4, kAvx},
    {"avxvnniint16", 0x7, 1, &CpuidRegisters::edx, 10, kAvx},
    {"avxvnniint8", 0x7, 1, &CpuidRegisters::edx, 4, kAvx},
    {"bmi", 0x7, 0, &CpuidRegisters::ebx, 3, kAny},
    {"bmi2", 0x7, 0, &CpuidRegisters::ebx, 8, kAny},
    {"ccmp", 0x7, 1, &CpuidRegisters::edx, 21, kAny},
    {"cf", 0x7, 1, &CpuidRegisters::edx, 21, kAny},
    {"cldemote", 0x7, 0, &CpuidRegisters::ecx, 25, kAny},
    {"clflushopt", 0x7, 0, &CpuidRegisters::ebx, 23, kAny},
    {"clwb", 0x7, 0, &CpuidRegisters::ebx, 24, kAny},
    {"clzero", 0x80000008, 0, &CpuidRegisters::ebx, 0, kAny},
    {"cmov", 0x1, 0, &CpuidRegisters::edx, 15, kAny},
    {"cmpccxadd", 0x7, 1, &CpuidRegisters::eax, 7, kAny},
    {"crc32", 0x1, 0, &CpuidRegisters::ecx, 20, kAny},
    {"cx16", 0x1, 0, &CpuidRegisters::ecx, 13, kAny},
    {"cx8", 0x1, 0, &CpuidRegisters::edx, 8, kAny},
    {"egpr", 0x7, 1, &CpuidRegisters::edx, 21, kAny},
    {"enqcmd", 0x7, 0, &CpuidRegisters::ecx, 29, kAny},
    {"evex512", 0x7, 0, &CpuidRegisters::ebx, 16, kAvx512},
    {"f16c", 0x1, 0, &CpuidRegisters::ecx, 29, kAvx},
    {"fma", 0x1, 0, &CpuidRegisters::ecx, 12, kAvx},
    {"fma4", 0x80000001, 0, &CpuidRegisters::ecx, 16, kAvx},
    {"fsgsbase", 0x7, 0, &CpuidRegisters::ebx, 0, kAny},
    {"fxsr", 0x1, 0, &CpuidRegisters::edx, 24, kAny},
    {"gfni", 0x7, 0, &CpuidRegisters::ecx, 8, kAny},
    {"hreset", 0x7, 1, &CpuidRegisters::eax, 22, kAny},
    {"invpcid", 0x7, 0, &CpuidRegisters::ebx, 10, kAny},
    {"kl", 0x7, 0, &CpuidRegisters::ecx, 23, kAny},
    {"lwp", 0x80000001, 0, &CpuidRegisters::ecx, 15, kAny},
    {"lzcnt", 0x80000001, 0, &CpuidRegisters::ecx, 5, kAny},
    {"mmx", 0x1, 0, &CpuidRegisters::edx, 23, kAny},
    {"movbe", 0x1, 0, &CpuidRegisters::ecx, 22, kAny},
    {"movdir64b", 0x7, 0, &CpuidRegisters::ecx, 28, kAny},
    {"movdiri", 0x7, 0, &CpuidRegisters::ecx, 27, kAny},
    {"mwaitx", 0x80000001, 0, &CpuidRegisters::ecx, 29, kAny},
    {"ndd", 0x7, 1, &CpuidRegisters::edx, 21, kAny},
    {"pclmul", 0x1, 0, &CpuidRegisters::ecx, 1, kAny},
    {"pconfig", 0x7, 0, &CpuidRegisters::edx, 18, kAny},
    {"pku", 0x7, 0, &CpuidRegisters::ecx, 4, kAny},
    {"popcnt", 0x1, 0, &CpuidRegisters::ecx, 23, kAny},
    {"ppx", 0x7, 1, &CpuidRegisters::edx, 21, kAny},
    {"prefetchi", 0x7, 1, &CpuidRegisters::edx, 14, kAny},
    {"prfchw", 0x80000001, 0, &CpuidRegisters::ecx, 8, kAny},
    {"ptwrite", 0x14, 0, &CpuidRegisters::ebx, 4, kAny},
    {"push2pop2", 0x7, 1, &CpuidRegisters::edx, 21, kAny},
    {"raoint", 0x7, 1, &CpuidRegisters::eax, 3, kAny},
    {"rdpid", 0x7, 0, &CpuidRegisters::ecx, 22, kAny},
    {"rdpru", 0x80000008, 0, &CpuidRegisters::ebx, 4, kAny},
    {"rdrnd", 0x1, 0, &CpuidRegisters::ecx, 30, kAny},
    {"rdseed", 0x7, 0, &CpuidRegisters::ebx, 18, kAny},
    {"rtm", 0x7, 0, &CpuidRegisters::ebx, 11, kAny},
    {"sahf", 0x80000001, 0, &CpuidRegisters::ecx, 0, kAny},
    {"serialize", 0x7, 0, &CpuidRegisters::edx, 14, kAny},
    {"sgx", 0x7, 0, &CpuidRegisters::ebx, 2, kAny},
    {"sha", 0x7, 0, &CpuidRegisters::ebx, 29, kAny},
    {"sha512", 0x7, 1, &CpuidRegisters::eax, 0, kAny},
    {"shstk", 0x7, 0, &CpuidRegisters::ecx, 7, kAny},
    {"sm3", 0x7, 1, &CpuidRegisters::eax, 1, kAny},
    {"sm4", 0x7, 1, &CpuidRegisters::eax, 2, kAny},
    {"sse", 0x1, 0, &CpuidRegisters::edx, 25, kAny},
    {"sse2", 0x1, 0, &CpuidRegisters::edx, 26, kAny},
    {"sse3", 0x1, 0, &CpuidRegisters::ecx, 0, kAny},
    {"sse4.1", 0x1, 0, &CpuidRegisters::ecx, 19, kAny},
    {"sse4.2", 0x1, 0, &CpuidRegisters::ecx, 20, kAny},
    {"sse4a", 0x80000001, 0, &CpuidRegisters::ecx, 6, kAny},
    {"ssse3", 0x1, 0, &CpuidRegisters::ecx, 9, kAny},
    {"tbm", 0x80000001, 0, &CpuidRegisters::ecx, 21, kAny},
    {"tsxldtrk", 0x7, 0, &CpuidRegisters::edx, 16, kAny},
    {"uintr", 0x7, 0, &CpuidRegisters::edx, 5, kAny},
    {"usermsr", 0x7, 1, &CpuidRegisters::edx, 15, kAny},
    {"vaes", 0x7, 0, &CpuidRegisters::ecx, 9, kAvx},
    {"vpclmulqdq", 0x7, 0, &CpuidRegisters::ecx, 10, kAvx},
    {"waitpkg", 0x7, 0, &CpuidRegisters::ecx, 5, kAny},
    {"wbnoinvd", 0x80000008, 0, &CpuidRegisters::ebx, 9, kAny},
    {"widekl", 0x19, 0, &CpuidRegisters::ebx, 2, kAny},
    {"xop", 0x80000001, 0, &CpuidRegisters::ecx, 11, kAvx},
    {"xsave", 0x1, 0, &CpuidRegisters::ecx, 26, kAvx},
    {"xsavec", 0xd, 1, &CpuidRegisters::eax, 1, kAvx},
    {"xsaveopt", 0xd, 1, &CpuidRegisters::eax, 0, kAvx},
    {"xsaves", 0xd, 1, &CpuidRegisters::eax, 3, kAvx},
};

// A processor has the features of another one, with some differences.
struct Model {
  std::string_view name, like, differences;
};
constexpr Model kModels[] = {
    {"x86-64", "",
     "+64bit +cmov +cx8 +fxsr +mmx +sse +sse2"},
    {"x86-64-v2", "x86-64",
     "+crc32 +cx16 +popcnt +sahf +sse3 +sse4.1 +sse4.2 +ssse3"},
    {"x86-64-v3", "x86-64-v2",
     "+avx +avx2 +bmi +bmi2 +f16c +fma +lzcnt +movbe +xsave"},
    {"x86-64-v4", "x86-64-v3",
     "+avx512bw +avx512cd +avx512dq +avx512f +avx512vl +evex512"},
    {"core2", "x86-64",
     "+cx16 +sahf +sse3 +ssse3"},
    {"penryn", "core2",
     "+sse4.1"},
    {"nehalem", "x86-64-v2",
     ""},
    {"westmere", "x86-64-v2",
     "+pclmul"},
    {"sandybridge", "westmere",
     "+avx +xsave +xsaveopt"},
    {"ivybridge", "sandybridge",
     "+f16c +fsgsbase +rdrnd"},
    {"haswell", "x86-64-v3",
     "+fsgsbase +invpcid +pclmul +rdrnd +xsaveopt"},
    {"broadwell", "haswell",
     "+adx +prfchw +rdseed"},
    {"skylake", "broadwell",
     "+aes +clflushopt +xsavec +xsaves"},
    {"skylake-avx512", "skylake",
     "+avx512bw +avx512cd +avx512dq +avx512f +avx512vl +clwb +evex512 +pku"},
    {"cascadelake", "skylake-avx512",
     "+avx512vnni"},
    {"cooperlake", "cascadelake",
     "+avx512bf16"},
    {"cannonlake", "skylake-avx512",
     "+avx512ifma +avx512vbmi +sha -clwb"},
    {"icelake-client", "cannonlake",
     "+avx512bitalg +avx512vbmi2 +avx512vnni +avx512vpopcntdq +gfni +rdpid +vaes "
     "+vpclmulqdq"},
    {"icelake-server", "icelake-client",
     "+clwb +pconfig +wbnoinvd"},
    {"rocketlake", "icelake-client",
     ""},
    {"tigerlake", "icelake-client",
     "+avx512vp2intersect +clwb +movdir64b +movdiri +shstk"},
    {"sapphirerapids", "icelake-server",
     "+amx-bf16 +amx-int8 +amx-tile +avx512bf16 +avx512fp16 +avxvnni +cldemote +enqcmd "
     "+movdir64b +movdiri +ptwrite +serialize +shstk +tsxldtrk +uintr +waitpkg"},
    {"graniterapids", "sapphirerapids",
     "+amx-fp16 +prefetchi"},
    {"graniterapids-d", "graniterapids",
     "+amx-complex"},
    {"bonnell", "core2",
     "+movbe"},
    {"silvermont", "westmere",
     "+movbe +prfchw +rdrnd"},
    {"goldmont", "silvermont",
     "+aes +clflushopt +fsgsbase +rdseed +sha +xsave +xsavec +xsaveopt +xsaves"},
    {"goldmont-plus", "goldmont",
     "+ptwrite +rdpid"},
    {"tremont", "goldmont-plus",
     "+clwb +gfni"},
    {"gracemont", "skylake",
     "+avxvnni +cldemote +clwb +gfni +hreset +kl +movdir64b +movdiri +pconfig +pku "
     "+ptwrite +rdpid +serialize +sha +shstk +vaes +vpclmulqdq +waitpkg +widekl"},
    {"alderlake", "gracemont",
     ""},
    {"sierraforest", "gracemont",
     "+avxifma +avxneconvert +avxvnniint8 +cmpccxadd +enqcmd +uintr"},
    {"grandridge", "sierraforest",
     ""},
    {"clearwaterforest", "sierraforest",
     "+avxvnniint16 +prefetchi +sha512 +sm3 +sm4 +usermsr"},
    {"arrowlake", "sierraforest",
     ""},
    {"arrowlake-s", "clearwaterforest",
     "-prefetchi -usermsr"},
    {"pantherlake", "clearwaterforest",
     "-usermsr"},
    {"knl", "broadwell",
     "+aes +avx512cd +avx512f +evex512 -invpcid"},
    {"knm", "knl",
     "+avx512vpopcntdq"},
    {"amdfam10", "core2",
     "+lzcnt +popcnt +prfchw +sse4a -mmx -ssse3"},
    {"btver1", "amdfam10",
     "+mmx +ssse3"},
    {"btver2", "sandybridge",
     "+aes +bmi +f16c +lzcnt +movbe +prfchw +sse4a"},
    {"bdver1", "btver2",
     "+fma4 +lwp +xop -bmi -f16c -movbe -xsaveopt"},
    {"bdver2", "bdver1",
     "+bmi +f16c +fma +tbm"},
    {"bdver3", "bdver2",
     "+fsgsbase +xsaveopt"},
    {"bdver4", "bdver3",
     "+avx2 +bmi2 +movbe +mwaitx +rdrnd"},
    {"znver1", "skylake",
     "+clzero +mwaitx +sha +sse4a -invpcid"},
    {"znver2", "znver1",
     "+clwb +rdpid +rdpru +wbnoinvd"},
    {"znver3", "znver2",
     "+invpcid +pku +vaes +vpclmulqdq"},
    {"znver4", "icelake-server",
     "+avx512bf16 +clzero +mwaitx +rdpru +shstk +sse4a -pconfig"},
    {"znver5", "znver4",
     "+avx512vp2intersect +avxvnni +movdir64b +movdiri +prefetchi"},
    {"generic", "x86-64",
     "-cmov -fxsr -mmx"},
};

// Model numbers of one family, from a first to a last one.
struct Numbers {
  uint32_t family, first, last;
  std::string_view name;
};
constexpr Numbers kIntel[] = {
    {6, 0x0f, 0x0f, "core2"}, {6, 0x16, 0x16, "core2"},
    {6, 0x17, 0x17, "penryn"}, {6, 0x1d, 0x1d, "penryn"},
    {6, 0x1a, 0x1a, "nehalem"}, {6, 0x1e, 0x1f, "nehalem"}, {6, 0x2e, 0x2e, "nehalem"},
    {6, 0x25, 0x25, "westmere"}, {6, 0x2c, 0x2c, "westmere"}, {6, 0x2f, 0x2f, "westmere"},
    {6, 0x2a, 0x2a, "sandybridge"}, {6, 0x2d, 0x2d, "sandybridge"},
    {6, 0x3a, 0x3a, "ivybridge"}, {6, 0x3e, 0x3e, "ivybridge"},
    {6, 0x3c, 0x3c, "haswell"}, {6, 0x3f, 0x3f, "haswell"}, {6, 0x45, 0x46, "haswell"},
    {6, 0x3d, 0x3d, "broadwell"}, {6, 0x47, 0x47, "broadwell"}, {6, 0x4f, 0x4f, "broadwell"},
    {6, 0x56, 0x56, "broadwell"},
    {6, 0x4e, 0x4e, "skylake"}, {6, 0x5e, 0x5e, "skylake"}, {6, 0x8e, 0x8e, "skylake"},
    {6, 0x9e, 0x9e, "skylake"}, {6, 0xa5, 0xa6, "skylake"},
    {6, 0xa7, 0xa7, "rocketlake"},
    // It may also be one of the two processors that follow this one.
    {6, 0x55, 0x55, "skylake-avx512"},
    {6, 0x66, 0x66, "cannonlake"},
    {6, 0x7d, 0x7e, "icelake-client"},
    {6, 0x8c, 0x8d, "tigerlake"},
    {6, 0x97, 0x97, "alderlake"}, {6, 0x9a, 0x9a, "alderlake"}, {6, 0xaa, 0xaa, "alderlake"},
    {6, 0xac, 0xac, "alderlake"}, {6, 0xb7, 0xb7, "alderlake"}, {6, 0xba, 0xba, "alderlake"},
    {6, 0xbe, 0xbf, "alderlake"},
    {6, 0xc5, 0xc5, "arrowlake"},
    {6, 0xbd, 0xbd, "arrowlake-s"}, {6, 0xc6, 0xc6, "arrowlake-s"},
    {6, 0xcc, 0xcc, "pantherlake"},
    {6, 0xad, 0xad, "graniterapids"}, {6, 0xae, 0xae, "graniterapids-d"},
    {6, 0x6a, 0x6a, "icelake-server"}, {6, 0x6c, 0x6c, "icelake-server"},
    {6, 0x8f, 0x8f, "sapphirerapids"}, {6, 0xcf, 0xcf, "sapphirerapids"},
    {6, 0x1c, 0x1c, "bonnell"}, {6, 0x26, 0x27, "bonnell"}, {6, 0x35, 0x36, "bonnell"},
    {6, 0x37, 0x37, "silvermont"}, {6, 0x4a, 0x4a, "silvermont"}, {6, 0x4c, 0x4d, "silvermont"},
    {6, 0x5a, 0x5a, "silvermont"}, {6, 0x5d, 0x5d, "silvermont"},
    {6, 0x5c, 0x5c, "goldmont"}, {6, 0x5f, 0x5f, "goldmont"},
    {6, 0x7a, 0x7a, "goldmont-plus"},
    {6, 0x86, 0x86, "tremont"}, {6, 0x8a, 0x8a, "tremont"}, {6, 0x96, 0x96, "tremont"},
    {6, 0x9c, 0x9c, "tremont"},
    {6, 0xaf, 0xaf, "sierraforest"}, {6, 0xb6, 0xb6, "grandridge"},
    {6, 0xdd, 0xdd, "clearwaterforest"},
    {6, 0x57, 0x57, "knl"}, {6, 0x85, 0x85, "knm"},
};
// The first row that fits counts.
constexpr Numbers kAmd[] = {
    {0x10, 0, 0xff, "amdfam10"}, {0x14, 0, 0xff, "btver1"}, {0x16, 0, 0xff, "btver2"},
    {0x15, 0x02, 0x02, "bdver2"}, {0x15, 0x10, 0x1f, "bdver2"}, {0x15, 0x30, 0x3f, "bdver3"},
    {0x15, 0x60, 0x7f, "bdver4"}, {0x15, 0, 0xff, "bdver1"},
    {0x17, 0x30, 0x3f, "znver2"}, {0x17, 0x47, 0x47, "znver2"}, {0x17, 0x60, 0x7f, "znver2"},
    {0x17, 0x84, 0x87, "znver2"}, {0x17, 0x90, 0xaf, "znver2"}, {0x17, 0, 0xff, "znver1"},
    {0x19, 0x10, 0x1f, "znver4"}, {0x19, 0x60, 0x7f, "znver4"}, {0x19, 0xa0, 0xaf, "znver4"},
    {0x19, 0, 0xff, "znver3"},
    {0x1a, 0, 0xff, "znver5"},
};
// clang-format on

// Names for processors of Intel that are newer than the table. The first row whose feature the
// processor has gives the name.
constexpr std::pair<std::string_view, std::string_view> kByFeature[] = {
    {"avx512vp2intersect", "tigerlake"},
    {"avx512vbmi2", "icelake-client"},
    {"avx512vbmi", "cannonlake"},
    {"avx512bf16", "cooperlake"},
    {"avx512vnni", "cascadelake"},
    {"avx512vl", "skylake-avx512"},
    // It may also be a small core.
    {"clflushopt", "skylake"},
    {"adx", "broadwell"},
    {"avx2", "haswell"},
    {"avx", "sandybridge"},
    // It may also be a small core.
    {"sse4.2", "nehalem"},
    {"sse4.1", "penryn"},
    // It may also be a small core.
    {"ssse3", "core2"},
    {"64bit", "core2"},
};

constexpr std::string_view kLevels[] = {"x86-64-v4", "x86-64-v3", "x86-64-v2", "x86-64"};
constexpr std::string_view kGeneric = "generic";

// Returns -1 if there is no such feature.
int NumberOf(std::string_view feature) {
  const auto found = std::ranges::find(kFeatures, feature, &Feature::name);
  return found == std::end(kFeatures) ? -1 : static_cast<int>(found - std::begin(kFeatures));
}

bool Has(const X86Features& features, std::string_view feature) {
  const int number = NumberOf(feature);
  return number >= 0 && features[static_cast<size_t>(number)];
}

void Set(X86Features& features, std::string_view feature, bool on) {
  if (const int number = NumberOf(feature); number >= 0) features[static_cast<size_t>(number)] = on;
}

const Model* FindModel(std::string_view name) {
  const auto found = std::ranges::find(kModels, name, &Model::name);
  return found == std::end(kModels) ? nullptr : &*found;
}

// Calls `visit` with each word between separators.
template <typename Visitor>
void ForEachWord(std::string_view text, char separator, Visitor&& visit) {
  while (!text.empty()) {
    const std::string_view word = text.substr(0, text.find(separator));
    text.remove_prefix(std::min(text.size(), word.size() + 1));
    if (!word.empty()) visit(word);
  }
}

X86Features Changed(X86Features features, std::string_view differences, char separator) {
  ForEachWord(differences, separator, [&](std::string_view word) {
    const int number = NumberOf(word.substr(1));
    if (number >= 0 && (word[0] == '+' || word[0] == '-'))
      features[static_cast<size_t>(number)] = word[0] == '+';
  });
  return features;
}

// Reads the leaves of a processor, each once.
class Leaves {
 public:
  explicit Leaves(const Cpuid& cpuid) : cpuid_(cpuid) {}

  // Returns zeros if the processor has no such leaf.
  CpuidRegisters At(uint32_t leaf, uint32_t subleaf) {
    const auto [known, is_new] = read_.try_emplace({leaf, subleaf});
    if (is_new && Exists(leaf, subleaf)) known->second = cpuid_.leaf(leaf, subleaf);
    return known->second;
  }

 private:
  bool Exists(uint32_t leaf, uint32_t subleaf) {
    const uint32_t first = leaf & 0x80000000u;
    if (leaf == first) return true;
    if (leaf > At(first, 0).eax) return false;
    // The leaf itself says how many parts it has.
    return leaf != 7 || subleaf == 0 || At(7, 0).eax >= subleaf;
  }

  const Cpuid& cpuid_;
  std::map<std::pair<uint32_t, uint32_t>, CpuidRegisters> read_;
};

bool Bit(uint32_t word, int bit) { return ((word >> bit) & 1) != 0; }

X86Features ReadFeatures(const Cpuid& cpuid, Leaves& leaves) {
  // Bits of leaf 1, ecx.
  constexpr int kXgetbv = 27, kAvxBit = 28;
  const uint32_t flags = leaves.At(1, 0).ecx;
  const uint64_t saved = Bit(flags, kXgetbv) ? cpuid.saved_registers() : 0;
  const auto saves = [&](uint64_t registers) { return (saved & registers) == registers; };
  std::array<bool, 4> is_saved = {};
  is_saved[kAny] = true;
  is_saved[kAvx] = Bit(flags, kAvxBit) && saves(0x6);
  is_saved[kAvx512] = is_saved[kAvx] && saves(0xe0);
  is_saved[kAmx] = saves(0x60000);
  X86Features features;
  for (size_t i = 0; i < std::size(kFeatures); ++i) {
    const Feature& feature = kFeatures[i];
    features[i] = is_saved[feature.saved] &&
                  Bit(leaves.At(feature.leaf, feature.subleaf).*feature.reg, feature.bit);
  }
  return features;
}

std::string_view NameIn(std::span<const Numbers> numbers, uint32_t family, uint32_t model) {
  const auto found = std::ranges::find_if(numbers, [&](const Numbers& row) {
    return row.family == family && row.first <= model && model <= row.last;
  });
  return found == numbers.end() ? std::string_view() : found->name;
}

std::string_view NameByFeatures(const X86Features& features) {
  const auto found =
      std::ranges::find_if(kByFeature, [&](const auto& row) { return Has(features, row.first); });
  if (found == std::end(kByFeature)) return kGeneric;
  if (found->first == "clflushopt" && Has(features, "sha")) return "goldmont";
  if (found->first == "sse4.2" && Has(features, "movbe")) return "silvermont";
  if (found->first == "ssse3" && Has(features, "movbe")) return "bonnell";
  return found->second;
}

std::string_view NameOfIntel(uint32_t family, uint32_t model, const X86Features& features) {
  constexpr uint32_t kFamily = 6;
  if (family != kFamily) return kGeneric;
  const std::string_view name = NameIn(kIntel, family, model);
  if (name.empty()) return NameByFeatures(features);
  if (name != "skylake-avx512") return name;
  if (Has(features, "avx512bf16")) return "cooperlake";
  return Has(features, "avx512vnni") ? "cascadelake" : name;
}

std::string_view NameOf(Leaves& leaves, const X86Features& features) {
  constexpr uint32_t kGenuineIntel = 0x756e6547, kAuthenticAmd = 0x68747541;
  const uint32_t vendor = leaves.At(0, 0).ebx, signature = leaves.At(1, 0).eax;
  uint32_t family = (signature >> 8) & 0xf, model = (signature >> 4) & 0xf;
  if (family == 6 || family == 0xf) model += ((signature >> 16) & 0xf) << 4;
  if (family == 0xf) family += (signature >> 20) & 0xff;
  if (vendor == kGenuineIntel) return NameOfIntel(family, model, features);
  const std::string_view name =
      vendor == kAuthenticAmd ? NameIn(kAmd, family, model) : std::string_view();
  return name.empty() ? kGeneric : name;
}

}  // namespace

X86Cpu ReadX86Cpu(const Cpuid& cpuid) {
  Leaves leaves(cpuid);
  X86Cpu cpu;
  cpu.features = ReadFeatures(cpuid, leaves);
  cpu.name = NameOf(leaves, cpu.features);
  if (!Has(cpu.features, "avx10.1-256")) Set(cpu.features, "avx10.1-512", false);
  // evex512 has a meaning only with AVX-512. Without that, the feature stays as the processor's
  // name has it.
  const X86Features named = FeaturesOfX86Cpu(cpu.name).value_or(X86Features());
  if (!Has(cpu.features, "avx512f")) Set(cpu.features, "evex512", Has(named, "evex512"));
  return cpu;
}

std::optional<X86Features> FeaturesOfX86Cpu(std::string_view name) {
  const Model* const model = FindModel(name);
  if (model == nullptr) return std::nullopt;
  const X86Features base =
      model->like.empty() ? X86Features() : FeaturesOfX86Cpu(model->like).value_or(X86Features());
  return Changed(base, model->differences, ' ');
}

std::string FeatureDifferences(const X86Cpu& cpu) {
  const X86Features named = FeaturesOfX86Cpu(cpu.name).value_or(X86Features());
  std::string text;
  for (size_t i = 0; i < std::size(kFeatures); ++i) {
    if (named[i] == cpu.features[i]) continue;
    text += text.empty() ? "" : ",";
    text += cpu.features[i] ? '+' : '-';
    text += kFeatures[i].name;
  }
  return text;
}

X86Features WithDifferences(X86Features features, std::string_view attributes) {
  return Changed(features, attributes, ',');
}

bool IsX86Level(std::string_view name) {
  return std::ranges::find(kLevels, name) != std::end(kLevels);
}

std::string_view X86LevelOf(const X86Features& features) {
  for (const std::string_view level : kLevels) {
    const X86Features wanted = FeaturesOfX86Cpu(level).value_or(X86Features());
    if ((wanted & ~features).none()) return level;
  }
  return {};
}

}  // namespace kiln::device
