// The line format that slurm.conf and topology.conf share, and that `scontrol show topology` prints: key=value pairs,
// comments, lines that go on behind a backslash, other files that are included.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tacc {

struct SlurmLine {
  std::vector<std::pair<std::string, std::string>> pairs;  // in their order; keys as they are written
  std::string rest;                                        // from the first word on that is no key=value
  std::string where;                                       // "topology.conf:12"
  /// The value of a key, whatever its case; nothing if the line does not have it.
  std::optional<std::string> value(std::string_view key) const;
};

bool sameIgnoringCase(std::string_view a, std::string_view b) noexcept;

struct SlurmIncludes {
  std::string root;                          // stands before absolute paths; see Surroundings
  std::function<std::string()> clusterName;  // for %c where no line before says it; null or empty: not known
  std::vector<std::string>* missing;         // null: a file that cannot be read is an error; else it is noted here
};

/// Calls visit for each line that says something, in Slurm's order: an included file's stand where it is included.
/// Relative paths begin at the folder of the file that includes. Throws Error (taccInvalidArgument) that names file and
/// line: of a file that includes itself, with the whole chain; of more files than any site has.
void readSlurmLines(std::string_view text, const std::string& origin, const SlurmIncludes& includes,
                    const std::function<void(const SlurmLine&)>& visit);

/// The names of a list as Slurm reads it: like expandHosts(), but commas and blanks may stand too often.
std::vector<std::string> expandSlurmList(std::string_view list, std::size_t most);

/// The folder of a path, with the slash at its end; empty for a name alone.
std::string folderOf(std::string_view path);

}  // namespace tacc
