#include "replay.hpp"

#include <algorithm>
#include <cmath>
#include <simgrid/s4u.hpp>
#include <string>
#include <utility>

#include "rank_actor.hpp"
#include "selection/cost/message_graph.hpp"

namespace tacc::sim {
namespace {

namespace sg = simgrid::s4u;

void configure() {
  // Flows share links evenly (CM02) and nothing else happens to them: no window, no acknowledgements on the way back.
  sg::Engine::set_config("network/model:CM02");
  sg::Engine::set_config("network/TCP-gamma:0");
  sg::Engine::set_config("network/crosstraffic:0");
  sg::Engine::set_config("surf/precision:1e-12");
  sg::Engine::set_config("maxmin/precision:1e-9");
  sg::Engine::set_config("contexts/stack-size:128");
}

/// Hosts, links and the routes of those pairs of ranks that exchange messages.
void build(const MessageGraph& traffic, const Stage& stage, Script& script) {
  sg::NetZone* zone = sg::create_full_zone("machine");
  for (std::size_t rank = 0; rank < stage.hosts.size(); ++rank)
    script.hosts.push_back(zone->create_host(std::to_string(rank), 1e9));
  Links links(stage.topology, stage.speed);
  script.pairs.resize(traffic.pairs);
  std::vector<Route> routes(traffic.pairs);
  const auto hostOf = [&stage](int rank) { return stage.hosts[static_cast<std::size_t>(rank)]; };
  for (const TrafficMessage& message : traffic.messages) {
    Pair& pair = script.pairs[static_cast<std::size_t>(message.pair)];
    if (++pair.messages > 1) continue;
    pair.sender = message.sender;
    pair.receiver = message.receiver;
    Route& route = routes[static_cast<std::size_t>(message.pair)];
    if (hostOf(message.sender) == hostOf(message.receiver)) {
      route.latency = stage.memory.latency;
      route.bytesPerSecond = stage.memory.bytesPerSecond;
    } else {
      route = links.route(hostOf(message.sender), hostOf(message.receiver));
    }
    pair.latency = route.latency;
    pair.bytesPerSecond = route.bytesPerSecond;
    pair.mailbox = sg::Mailbox::by_name(std::to_string(message.pair));
  }
  std::vector<sg::LinkInRoute> made;
  for (const Link& link : links.links()) {
    sg::Link* one = zone->create_link(std::to_string(made.size()), link.bytesPerSecond);
    made.emplace_back(one->set_latency(0)->seal());
  }
  std::vector<sg::LinkInRoute> ports;  // out of every rank, and in
  for (std::size_t n = 0; stage.port > 0 && n < 2 * stage.hosts.size(); ++n) {
    sg::Link* one = zone->create_link("port " + std::to_string(n), stage.port);
    ports.emplace_back(one->set_latency(0)->seal());
  }
  for (std::size_t p = 0; p < traffic.pairs; ++p) {
    const Pair& pair = script.pairs[p];
    std::vector<sg::LinkInRoute> route;
    for (const int link : routes[p].links) route.push_back(made[static_cast<std::size_t>(link)]);
    if (stage.port > 0) {
      route.push_back(ports[static_cast<std::size_t>(2 * pair.sender)]);
      route.push_back(ports[static_cast<std::size_t>(2 * pair.receiver + 1)]);
    }
    zone->add_route(script.hosts[static_cast<std::size_t>(pair.sender)]->get_netpoint(),
                    script.hosts[static_cast<std::size_t>(pair.receiver)]->get_netpoint(), nullptr, nullptr, route,
                    false);
  }
  zone->seal();
}

}  // namespace

double replay(const Plan& plan, const Stage& stage, const CostCall& call) {
  std::string name = "tacc_sim", quiet = "--log=root.thres:error";
  char* arguments[] = {name.data(), quiet.data(), nullptr};
  int count = 2;
  sg::Engine engine(&count, arguments);
  configure();
  Script script;
  script.chunks = chunksOf(call);
  script.window = std::max(1, call.window);
  const auto overhead = [&stage](int a, int b) {
    const bool isInside = stage.hosts[static_cast<std::size_t>(a)] == stage.hosts[static_cast<std::size_t>(b)];
    return isInside ? stage.memoryOverhead : stage.overhead;
  };
  const MessageGraph traffic(plan, call.bytes / script.chunks, overhead, stage.gamma);
  script.traffic = &traffic;
  build(traffic, stage, script);
  double end = 0;
  for (int rank = 0; rank < plan.request.ranks; ++rank) {
    sg::Actor::create(std::to_string(rank), script.hosts[static_cast<std::size_t>(rank)], [&script, &end, rank] {
      RankActor(script, rank).run();
      end = std::max(end, sg::Engine::get_clock());
    });
  }
  engine.run();
  return end;
}

}  // namespace tacc::sim
