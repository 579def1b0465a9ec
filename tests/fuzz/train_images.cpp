// The images that tacc_train --data reads. What is read is written again, and has to be read as the same.
#include <fmt/format.h>

#include <cmath>
#include <sstream>
#include <stdexcept>

#include "dataset.hpp"
#include "fuzz/target.hpp"

namespace tacc::fuzz {
namespace {

constexpr int largest = 255;

std::string write(const train::Dataset& data) {
  std::string text =
      fmt::format("images {} side {} classes {} largest {}\n", data.size(), data.side, data.classes, largest);
  for (std::size_t i = 0; i < data.size(); ++i) {
    text += fmt::format("{}", data.labels[i]);
    for (std::size_t pixel = 0; pixel < data.pixelsEach(); ++pixel)
      text += fmt::format(" {}", std::lround(data.image(i)[pixel] * largest));
    text += '\n';
  }
  return text;
}

train::Dataset read(const std::string& text) {
  std::istringstream in(text);
  return train::readDataset(in, "fuzzed");
}

void readTwice(const std::string& text) {
  const train::Dataset data = read(text);
  for (const int label : data.labels) require(label >= 0 && label < data.classes, "a label beyond the classes");
  for (const float pixel : data.pixels) require(pixel >= 0 && pixel <= 1, "a pixel that is no share of the ink");
  require(data.pixels.size() == data.size() * data.pixelsEach(), "images without some of their pixels");
  const std::string again = write(data);
  require(write(read(again)) == again, "images that are written change");
}

}  // namespace

std::vector<Bytes> seeds() {
  std::string digits = "images 2 side 8 classes 10 largest 16\n";
  for (const int label : {3, 9}) {
    digits += fmt::format("{}", label);
    for (int pixel = 0; pixel < 64; ++pixel) digits += fmt::format(" {}", pixel * label % 17);
    digits += '\n';
  }
  return {bytesOf(digits), bytesOf("images 1 side 12 classes 2 largest 255\n0 255 0 0 17\n"),
          bytesOf("images 10000000 side 64 classes 1000 largest 65535\r\n")};
}

}  // namespace tacc::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    tacc::fuzz::readTwice({data, data + size});
  } catch (const std::runtime_error& error) {
    tacc::fuzz::require(*error.what() != '\0', "an error without a word");
  }
  return 0;
}
