#include <algorithm>
#include <array>
#include <limits>

#include "compute/conv/algorithms.hpp"
#include "compute/conv/tuning.hpp"
#include "core/parse.hpp"
#include "core/toml_table.hpp"

namespace tacc::conv {
namespace {

constexpr std::int64_t knownFormat = 1;
constexpr std::array<std::string_view, 3> passWords = {"forward", "backward-data", "backward-weights"};
constexpr std::array<std::string_view, 3> layoutNames = {"nchw16c", "nchw", "nhwc"};
constexpr std::array<std::string_view, 2> typeNames = {"float32", "bfloat16"};

/// What is asked for must be there.
template <class Value>
Value required(std::optional<Value> value, const TomlTable& table, std::string_view example) {
  if (!value) fail(taccInvalidArgument, "{}: a line like {} is missing", table.where(), example);
  return *std::move(value);
}

int sizeOf(TomlTable& table, std::string_view key, std::string_view example) {
  return static_cast<int>(required(table.number(key, 1, std::numeric_limits<int>::max()), table, example));
}

template <std::size_t count>
std::array<int, count> sizesOf(TomlTable& table, std::string_view key, std::int64_t least) {
  const std::vector<std::int64_t> values = table.numbers(key, least, std::numeric_limits<int>::max());
  if (values.size() != count) {
    fail(taccInvalidArgument, "{} has {} numbers; it must have {}", table.where(key), values.size(), count);
  }
  std::array<int, count> sizes{};
  std::transform(values.begin(), values.end(), sizes.begin(), [](std::int64_t v) { return static_cast<int>(v); });
  return sizes;
}

template <std::size_t count>
int choiceOf(TomlTable& table, std::string_view key, const std::array<std::string_view, count>& names) {
  const std::string text = required(table.text(key), table, fmt::format("{} = \"{}\"", key, names[0]));
  const auto found = std::find(names.begin(), names.end(), text);
  if (found == names.end()) {
    fail(taccInvalidArgument, "{} is \"{}\"; it must be one of {}", table.where(key), text, listOf(names));
  }
  return static_cast<int>(found - names.begin());
}

Description descriptionOf(TomlTable& table) {
  taccConvDesc_t desc = TACC_CONV_INITIALIZER;
  desc.pass = static_cast<taccConvPass_t>(choiceOf(table, "pass", passWords));
  const std::array input = sizesOf<4>(table, "input", 1);
  desc.batch = input[0];
  desc.inChannels = input[1];
  desc.height = input[2];
  desc.width = input[3];
  desc.outChannels = sizeOf(table, "output_channels", "output_channels = 64");
  const std::array kernel = sizesOf<2>(table, "kernel", 1);
  desc.kernelHeight = kernel[0];
  desc.kernelWidth = kernel[1];
  const std::array stride = sizesOf<2>(table, "stride", 1);
  desc.strideHeight = stride[0];
  desc.strideWidth = stride[1];
  const std::array pad = sizesOf<2>(table, "pad", 0);
  desc.padHeight = pad[0];
  desc.padWidth = pad[1];
  const std::array dilation = sizesOf<2>(table, "dilation", 1);
  desc.dilationHeight = dilation[0];
  desc.dilationWidth = dilation[1];
  desc.groups = sizeOf(table, "groups", "groups = 1");
  desc.inputLayout = static_cast<taccLayout_t>(choiceOf(table, "layout", layoutNames));
  desc.activationType = choiceOf(table, "type", typeNames) == 0 ? taccFloat32 : taccBfloat16;
  desc.winograd = static_cast<int>(required(table.number("winograd", 0, 1), table, "winograd = 0"));
  desc.maxWorkers = sizeOf(table, "workers", "workers = 1");
  try {
    return understand(desc);
  } catch (const Error& error) {
    fail(error.result(), "{}: {}", table.where(), error.what());
  }
}

void readLayer(const toml::table& raw, const std::string& origin, const ConvTuningPlace& here, ConvTuning& tuning) {
  TomlTable table(raw, "[[layer]]", origin);
  Description description = descriptionOf(table);
  description.splits = here.splits;
  description.algorithm = required(table.text("algorithm"), table, "algorithm = \"direct\"");
  if (const toml::table* times = table.table("microseconds")) {
    // For people: what each algorithm took.
    for (const auto& [name, time] : *times) {
      if (!time.is_number())
        fail(taccInvalidArgument, "{} of {} is no number", table.where("microseconds"), name.str());
    }
  }
  table.finish();
  Description reordered = description;  // as any algorithm gets a plain layout that it does not read itself
  reordered.inputLayout = reordered.outputLayout = taccLayoutNchw16c;
  const auto isIt = [&](const ConvAlgorithm& known) {
    return known.name == description.algorithm && (known.serves(description) || known.serves(reordered));
  };
  if (std::none_of(allAlgorithms().begin(), allAlgorithms().end(), isIt)) {
    fail(taccInvalidArgument, "{} is \"{}\", which this library does not have for {}; these it has: {}",
         table.where("algorithm"), description.algorithm, description.shape.text(), algorithmNames(&description));
  }
  if (!tuning.add(description, description.algorithm)) {
    fail(taccInvalidArgument, "{}: {} stands in the file a second time", table.where(), description.shape.text());
  }
}

ConvTuning readTuning(const toml::table& raw, const std::string& origin, const ConvTuningPlace& here) {
  TomlTable file(raw, "", origin);
  const std::int64_t format = required(file.number("format", 0, std::numeric_limits<int>::max()), file, "format = 1");
  if (format != knownFormat) {
    fail(taccInvalidArgument, "{} is {}, but this library knows {} alone; measure again with tacc_tune conv",
         file.where("format"), format, knownFormat);
  }
  const std::string cpu = required(file.text("cpu"), file, fmt::format("cpu = \"{}\"", here.cpu));
  if (cpu != here.cpu) {
    fail(taccInvalidUsage, "{}: measured on \"{}\", but this CPU is \"{}\"; measure here with tacc_tune conv", origin,
         cpu, here.cpu);
  }
  const std::string isa = required(file.text("isa"), file, fmt::format("isa = \"{}\"", here.isa));
  if (isa != here.isa) {
    fail(taccInvalidUsage, "{}: measured with {}, but this process runs {}; see TACC_ISA", origin, isa, here.isa);
  }
  ConvTuning tuning;
  for (const toml::table* layer : file.tables("layer")) readLayer(*layer, origin, here, tuning);
  file.finish();
  return tuning;
}

}  // namespace

ConvTuning tuningFromToml(std::string_view text, const std::string& origin, const ConvTuningPlace& here) {
  const toml::table file = parseToml(text, origin);
  return readTuning(file, origin, here);
}

}  // namespace tacc::conv
