// The functions of the rows in source_registry.cpp; source_registry.hpp says what they promise.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "topology/sources/source_registry.hpp"

namespace tacc {

bool recognisesToml(std::string_view text);
Topology readTomlFile(std::string_view text, const std::string& origin);
std::optional<Finding> lookForTomlFile(const SourceContext& context);

bool recognisesSlurm(std::string_view text);
Topology readSlurmFile(std::string_view text, const std::string& origin);
std::optional<Finding> lookForSlurm(const SourceContext& context);

bool recognisesIbnet(std::string_view text);
Topology readIbnetFile(std::string_view text, const std::string& origin);
std::optional<Finding> lookForIbnet(const SourceContext& context);

bool recognisesCray(std::string_view text);
Topology readCrayFile(std::string_view text, const std::string& origin);
std::optional<Finding> lookForCray(const SourceContext& context);

bool recognisesSunway(std::string_view text);
Topology readSunwayFile(std::string_view text, const std::string& origin);
std::optional<Finding> lookForSunway(const SourceContext& context);

bool recognisesProbe(std::string_view text);
Topology readProbeFile(std::string_view text, const std::string& origin);

bool recognisesHwloc(std::string_view text);
Topology readHwlocFile(std::string_view text, const std::string& origin);
std::optional<Finding> lookForHwloc(const SourceContext& context);
bool namesHostInHwloc(std::string_view text);

}  // namespace tacc
