#include "runtime/manifest.h"

#include <charconv>
#include <limits>
#include <nlohmann/json.hpp>

namespace kiln::runtime {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kMaxDepth = 8;

std::string HashText(const Hash128& hash) {
  return fmt::format("{:016x}{:016x}", hash.high, hash.low);
}

Json SectionJson(const Section& section) {
  return {
      {"offset", section.offset}, {"bytes", section.bytes}, {"xxh3", HashText(section.checksum)}};
}

Json TargetJson(const NetworkTarget& target) {
  return {{"kind", target.kind},
          {"arch", target.arch},
          {"device", target.device},
          {"features", target.features},
          {"text", target.text}};
}

Json PackedDimsJson(const Packing& packing) {
  Json dims = Json::array();
  for (const PackedDim& dim : packing.dims)
    dims.push_back({{"axis", dim.axis}, {"extent", dim.extent}, {"step", dim.step}});
  return dims;
}

Json TensorsJson(const std::vector<NetworkTensor>& tensors) {
  Json list = Json::array();
  for (const NetworkTensor& tensor : tensors) {
    Json& json = list.emplace_back(Json{{"name", tensor.name},
                                        {"dtype", tensor.dtype},
                                        {"shape", tensor.shape},
                                        {"buffer", tensor.buffer}});
    if (tensor.packing) json["packed"] = PackedDimsJson(*tensor.packing);
  }
  return list;
}

Json BufferJson(const NetworkBuffer& buffer) {
  Json json = {{"place", PlaceName(buffer.place)},
               {"bytes", buffer.bytes},
               {"alignment", buffer.alignment_bytes},
               {"offset", buffer.offset}};
  if (buffer.place == Place::kView) json["of"] = buffer.viewed;
  return json;
}

Json LaunchJson(const NetworkLaunch& launch) {
  Json json = {{"symbol", launch.symbol},
               {"grid", launch.grid},
               {"block", launch.block},
               {"dynamic_shared_bytes", launch.dynamic_shared_bytes},
               {"cluster", launch.cluster},
               {"args", launch.args},
               {"waits_for_previous", launch.waits_for_previous}};
  for (const TensorMap& map : launch.tensor_maps) {
    json["tensor_maps"].push_back({{"arg", map.arg},
                                   {"element_bytes", map.element_bytes},
                                   {"extents", map.extents},
                                   {"strides", map.strides},
                                   {"box", map.box},
                                   {"swizzle_bytes", map.swizzle_bytes}});
  }
  return json;
}

Json KernelJson(const NetworkKernel& kernel) {
  Json reads_and_writes = Json::array(), launches = Json::array();
  for (const KernelArgument& arg : kernel.args) {
    reads_and_writes.push_back({{"buffer", arg.buffer}, {"written", arg.written}});
  }
  for (const NetworkLaunch& launch : kernel.launches) launches.push_back(LaunchJson(launch));
  return {{"name", kernel.name},
          {"binary", kernel.binary},
          {"args", std::move(reads_and_writes)},
          {"launches", std::move(launches)},
          {"workload", kernel.workload_key},
          {"computation", kernel.computation},
          {"record", kernel.record},
          {"source", SourceName(kernel.source)},
          {"expected_s", kernel.expected_s},
          {"flops", kernel.flops},
          {"bytes", kernel.bytes}};
}

// Reads the members of one object. The first error stays in the status that all readers share.
// Values that are read after an error are empty.
class Members {
 public:
  Members(const Json& json, std::string where, Status& status)
      : json_(json), where_(std::move(where)), status_(status) {
    if (status_.ok() && !json_.is_object()) status_ = InvalidArgument("{} is no object", where_);
  }

  int64_t Int(const char* key, int64_t low = 0,
              int64_t high = std::numeric_limits<int64_t>::max()) {
    const Json* json = Find(key);
    return json == nullptr ? 0 : AsInt(*json, Path(key), low, high);
  }
  int32_t Int32(const char* key) {
    return static_cast<int32_t>(Int(key, 0, std::numeric_limits<int32_t>::max()));
  }
  uint32_t UInt32(const char* key) {
    return static_cast<uint32_t>(Int(key, 0, std::numeric_limits<uint32_t>::max()));
  }
  double Number(const char* key) {
    const Json* json = Find(key);
    if (json == nullptr) return 0;
    if (!json->is_number()) return Refuse(key, "a number"), 0;
    return json->get<double>();
  }
  bool Bool(const char* key) {
    const Json* json = Find(key);
    if (json == nullptr) return false;
    if (!json->is_boolean()) return Refuse(key, "true or false"), false;
    return json->get<bool>();
  }
  std::string Text(const char* key) {
    const Json* json = Find(key);
    if (json == nullptr) return "";
    if (!json->is_string()) return Refuse(key, "a string"), "";
    return json->get<std::string>();
  }
  // Reads one of these names and returns its number.
  template <typename Enum>
  Enum Name(const char* key, std::string_view (*name_of)(Enum), int count) {
    const std::string text = Text(key);
    for (int i = 0; i < count; ++i) {
      if (name_of(static_cast<Enum>(i)) == text) return static_cast<Enum>(i);
    }
    if (status_.ok()) status_ = InvalidArgument("{} is unknown: '{}'", Path(key), text);
    return Enum{};
  }
  template <typename T>
  std::vector<T> Ints(const char* key) {
    std::vector<T> ints;
    ForEach(key, [&](const Json& json, const std::string& where) {
      constexpr T kMax = std::numeric_limits<T>::max();
      ints.push_back(static_cast<T>(AsInt(json, where, 0, static_cast<int64_t>(kMax))));
    });
    return ints;
  }
  void Extents(const char* key, uint32_t (&extents)[3]) {
    const std::vector<uint32_t> ints = Ints<uint32_t>(key);
    if (ints.size() != 3) return Refuse(key, "three numbers");
    std::copy(ints.begin(), ints.end(), extents);
  }
  Hash128 Checksum(const char* key) {
    const std::string text = Text(key);
    Hash128 hash;
    const char* middle = text.data() + text.size() / 2;
    const char* end = text.data() + text.size();
    const auto high = std::from_chars(text.data(), middle, hash.high, 16);
    const auto low = std::from_chars(middle, end, hash.low, 16);
    if (text.size() != 32 || high.ptr != middle || low.ptr != end) Refuse(key, "32 hex digits");
    return hash;
  }
  // Calls f(element, where) for each element of the array.
  template <typename F>
  void ForEach(const char* key, const F& f) {
    const Json* json = Find(key);
    if (json == nullptr) return;
    if (!json->is_array()) return Refuse(key, "an array");
    for (size_t i = 0; i < json->size() && status_.ok(); ++i) {
      f((*json)[i], fmt::format("{}[{}]", Path(key), i));
    }
  }
  Members Object(const char* key) {
    static const Json kNone = Json::object();
    const Json* json = Find(key);
    return Members(json == nullptr ? kNone : *json, Path(key), status_);
  }
  bool Has(const char* key) const { return status_.ok() && json_.contains(key); }
  Status& status() { return status_; }

 private:
  std::string Path(const char* key) const {
    return where_.empty() ? key : fmt::format("{}.{}", where_, key);
  }
  const Json* Find(const char* key) {
    if (!status_.ok()) return nullptr;
    const auto found = json_.find(key);
    if (found != json_.end()) return &*found;
    status_ = InvalidArgument("{} is missing", Path(key));
    return nullptr;
  }
  void Refuse(const char* key, std::string_view expected) {
    if (status_.ok()) status_ = InvalidArgument("{} is not {}", Path(key), expected);
  }
  int64_t AsInt(const Json& json, const std::string& where, int64_t low, int64_t high) {
    const bool fits = json.is_number_integer() &&
                      (!json.is_number_unsigned() ||
                       json.get<uint64_t>() <= uint64_t{std::numeric_limits<int64_t>::max()});
    const int64_t value = fits ? json.get<int64_t>() : 0;
    if (fits && low <= value && value <= high) return value;
    if (status_.ok()) {
      status_ = InvalidArgument("{} is no whole number from {} to {}", where, low, high);
    }
    return low;
  }

  const Json& json_;
  const std::string where_;
  Status& status_;
};

Section ReadSection(Members json) {
  return {json.Int("offset"), json.Int("bytes"), json.Checksum("xxh3")};
}

NetworkTarget ReadTarget(Members json) {
  NetworkTarget target{
      json.Text("kind"), json.Text("arch"), json.Text("device"), {}, json.Text("text")};
  json.ForEach("features", [&](const Json& feature, const std::string& where) {
    if (feature.is_string()) {
      target.features.push_back(feature.get<std::string>());
    } else {
      json.status() = InvalidArgument("{} is not a string", where);
    }
  });
  return target;
}

NetworkTensor ReadTensor(Members json) {
  NetworkTensor tensor{.name = json.Text("name"),
                       .dtype = json.Text("dtype"),
                       .shape = json.Ints<int64_t>("shape"),
                       .buffer = json.Int32("buffer")};
  if (!json.Has("packed")) return tensor;
  Packing& packing = tensor.packing.emplace(Packing{.shape = tensor.shape});
  json.ForEach("packed", [&](const Json& dim, std::string where) {
    Members members(dim, std::move(where), json.status());
    packing.dims.push_back({.axis = members.Int32("axis"),
                            .extent = members.Int("extent"),
                            .step = members.Int("step")});
  });
  return tensor;
}

NetworkBuffer ReadBuffer(Members json) {
  NetworkBuffer buffer{.place = json.Name("place", PlaceName, 5),
                       .bytes = json.Int("bytes"),
                       .alignment_bytes = json.Int("alignment"),
                       .offset = json.Int("offset")};
  if (buffer.place == Place::kView) buffer.viewed = json.Int32("of");
  return buffer;
}

NetworkLaunch ReadLaunch(Members json) {
  NetworkLaunch launch{.symbol = json.Text("symbol"),
                       .dynamic_shared_bytes = json.UInt32("dynamic_shared_bytes"),
                       .cluster = json.UInt32("cluster"),
                       .args = json.Ints<uint32_t>("args"),
                       .waits_for_previous = json.Bool("waits_for_previous")};
  json.Extents("grid", launch.grid);
  json.Extents("block", launch.block);
  if (!json.Has("tensor_maps")) return launch;
  json.ForEach("tensor_maps", [&](const Json& map, std::string where) {
    Members members(map, std::move(where), json.status());
    launch.tensor_maps.push_back({.arg = members.UInt32("arg"),
                                  .element_bytes = members.UInt32("element_bytes"),
                                  .extents = members.Ints<int64_t>("extents"),
                                  .strides = members.Ints<int64_t>("strides"),
                                  .box = members.Ints<int64_t>("box"),
                                  .swizzle_bytes = members.UInt32("swizzle_bytes")});
  });
  return launch;
}

NetworkKernel ReadKernel(Members json) {
  NetworkKernel kernel{.name = json.Text("name"),
                       .binary = json.Int32("binary"),
                       .args = {},
                       .launches = {},
                       .workload_key = json.Text("workload"),
                       .computation = json.Text("computation"),
                       .record = json.Text("record"),
                       .source = json.Name("source", SourceName, 3),
                       .expected_s = json.Number("expected_s"),
                       .flops = json.Number("flops"),
                       .bytes = json.Number("bytes")};
  json.ForEach("args", [&](const Json& arg, std::string where) {
    Members members(arg, std::move(where), json.status());
    kernel.args.push_back({members.Int32("buffer"), members.Bool("written")});
  });
  json.ForEach("launches", [&](const Json& launch, std::string where) {
    kernel.launches.push_back(ReadLaunch(Members(launch, std::move(where), json.status())));
  });
  return kernel;
}

template <typename T>
void ReadAll(Members& json, const char* key, T (*read)(Members), std::vector<T>& into) {
  json.ForEach(key, [&](const Json& element, std::string where) {
    into.push_back(read(Members(element, std::move(where), json.status())));
  });
}

Manifest ReadManifest(Members json) {
  Manifest manifest;
  Network& network = manifest.network;
  network.target = ReadTarget(json.Object("target"));
  ReadAll(json, "inputs", ReadTensor, network.inputs);
  ReadAll(json, "outputs", ReadTensor, network.outputs);
  ReadAll(json, "named_constants", ReadTensor, network.constants);
  ReadAll(json, "buffers", ReadBuffer, network.buffers);
  ReadAll(json, "kernels", ReadKernel, network.kernels);
  network.arena_bytes = json.Int("arena_bytes");
  network.constants_bytes = json.Int("constants_bytes");
  ReadAll(json, "binaries", ReadSection, manifest.binaries);
  manifest.constants = ReadSection(json.Object("constants"));
  manifest.graph_text = ReadSection(json.Object("graph"));
  manifest.options_text = ReadSection(json.Object("options"));
  network.binaries.resize(manifest.binaries.size());
  return manifest;
}

}  // namespace

std::string PrintManifest(const Manifest& manifest) {
  const Network& network = manifest.network;
  Json buffers = Json::array(), kernels = Json::array(), binaries = Json::array();
  for (const NetworkBuffer& buffer : network.buffers) buffers.push_back(BufferJson(buffer));
  for (const NetworkKernel& kernel : network.kernels) kernels.push_back(KernelJson(kernel));
  for (const Section& section : manifest.binaries) binaries.push_back(SectionJson(section));
  const Json json = {{"target", TargetJson(network.target)},
                     {"inputs", TensorsJson(network.inputs)},
                     {"outputs", TensorsJson(network.outputs)},
                     {"named_constants", TensorsJson(network.constants)},
                     {"arena_bytes", network.arena_bytes},
                     {"constants_bytes", network.constants_bytes},
                     {"buffers", std::move(buffers)},
                     {"kernels", std::move(kernels)},
                     {"binaries", std::move(binaries)},
                     {"constants", SectionJson(manifest.constants)},
                     {"graph", SectionJson(manifest.graph_text)},
                     {"options", SectionJson(manifest.options_text)}};
  // Bytes of names that are no UTF-8 become the replacement character.
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

StatusOr<Manifest> ParseManifest(std::string_view text) {
  if (static_cast<int64_t>(text.size()) > kMaxManifestBytes) {
    return InvalidArgument("the manifest has {} bytes, at most {} are allowed", text.size(),
                           kMaxManifestBytes);
  }
  // Values that are nested deeper are left out as they are parsed.
  const auto keep = [](int depth, Json::parse_event_t, Json&) { return depth <= kMaxDepth; };
  const Json json = Json::parse(text.begin(), text.end(), keep, /*allow_exceptions=*/false);
  if (json.is_discarded()) return InvalidArgument("the manifest is no JSON");
  Status status;
  Manifest manifest = ReadManifest(Members(json, "", status));
  KILN_RETURN_IF_ERROR(status);
  return manifest;
}

}  // namespace kiln::runtime
