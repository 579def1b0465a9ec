#include "dataset.hpp"

#include <charconv>
#include <fstream>
#include <numeric>
#include <string_view>

#include "errors.hpp"
#include "random.hpp"

namespace tacc::train {
namespace {

constexpr int mostImages = 10'000'000, mostClasses = 1000, largestValue = 65535;

/// The words of one line of a file.
class Line {
 public:
  Line(std::string_view text, const std::string& file, std::size_t number)
      : rest_(text), place_(fmt::format("{}:{}", file, number)) {}

  /// The next word, which has to be this one.
  void expect(std::string_view word) {
    if (const std::string_view found = next(); found != word)
      fail("{}: {} stands where \"{}\" has to; the first line is: images N side N classes N largest N", place_,
           shown(found), word);
  }
  /// The next word, a whole number.
  int number(std::string_view what, int least, int most) {
    const std::string_view word = next();
    int value = 0;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
    if (error != std::errc() || end != word.data() + word.size() || value < least || value > most)
      fail("{}: {} is {}; it has to be a whole number from {} to {}", place_, what, shown(word), least, most);
    return value;
  }
  void expectEnd(std::string_view what) {
    if (const std::string_view found = next(); !found.empty())
      fail("{}: {} stands after {}, with which the line has to end", place_, shown(found), what);
  }
  const std::string& place() const { return place_; }

 private:
  static constexpr std::string_view blanks = " \t\r";

  static std::string shown(std::string_view word) {
    constexpr std::size_t most = 20;
    if (word.empty()) return "nothing";
    std::string text(word.substr(0, most));
    for (char& c : text)
      if (c < ' ' || c > '~') c = '?';
    return fmt::format("\"{}{}\"", text, word.size() > most ? "..." : "");
  }
  std::string_view next() {
    rest_.remove_prefix(std::min(rest_.find_first_not_of(blanks), rest_.size()));
    const std::string_view word = rest_.substr(0, rest_.find_first_of(blanks));
    rest_.remove_prefix(word.size());
    return word;
  }

  std::string_view rest_;
  std::string place_;
};

}  // namespace

void Dataset::add(const float* image, int label) {
  pixels.insert(pixels.end(), image, image + pixelsEach());
  labels.push_back(label);
}

bool isSide(int side) { return side >= leastSide && side <= mostSide && side % 4 == 0; }

Dataset readDataset(std::istream& in, const std::string& name) {
  std::string text;
  std::getline(in, text);
  Line header(text, name, 1);
  Dataset data;
  header.expect("images");
  const int images = header.number("the number of images", 1, mostImages);
  header.expect("side");
  data.side = header.number("the side", leastSide, mostSide);
  if (!isSide(data.side)) fail("{}: the side is {}; it has to be a multiple of 4", header.place(), data.side);
  header.expect("classes");
  data.classes = header.number("the number of classes", 2, mostClasses);
  header.expect("largest");
  const int largest = header.number("the largest value of a pixel", 1, largestValue);
  header.expectEnd("the largest value of a pixel");

  std::vector<float> image(data.pixelsEach());
  for (int i = 0; i < images; ++i) {
    if (!std::getline(in, text)) fail("{}: ends after {} images; its first line promises {}", name, i, images);
    Line line(text, name, static_cast<std::size_t>(i) + 2);
    const int label = line.number("the label", 0, data.classes - 1);
    for (std::size_t pixel = 0; pixel < image.size(); ++pixel)
      image[pixel] =
          static_cast<float>(line.number(fmt::format("pixel {}", pixel), 0, largest)) / static_cast<float>(largest);
    line.expectEnd("the last pixel");
    data.add(image.data(), label);
  }
  while (std::getline(in, text))
    Line(text, name, data.size() + 2).expectEnd(fmt::format("the {} images that the first line promises", images));
  return data;
}

Dataset readDatasetFile(const std::string& path) {
  std::ifstream file(path);
  if (!file) fail("cannot read {}; examples/train/export_digits.py writes such a file", path);
  return readDataset(file, path);
}

Split splitDataset(const Dataset& all, std::uint64_t seed, int fold) {
  std::vector<std::size_t> order(all.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  Random({seed}).shuffle(order);
  Split split;
  for (Dataset* part : {&split.train, &split.test}) {
    part->side = all.side;
    part->classes = all.classes;
  }
  const auto begin = [&](int part) { return all.size() * static_cast<std::size_t>(part) / foldCount; };
  for (std::size_t i = 0; i < order.size(); ++i)
    (i >= begin(fold) && i < begin(fold + 1) ? split.test : split.train).add(all.image(order[i]), all.labels[order[i]]);
  if (all.size() < foldCount) fail("{} images are too few to test with a fifth of them; 5 is the least", all.size());
  return split;
}

}  // namespace tacc::train
