#include "compute/conv_chain.hpp"

#include <algorithm>

#include "support/turns.hpp"

namespace tacc::bench {
namespace {

/// A peer's two layers in turn.
struct PeerChain {
  std::string name;
  std::unique_ptr<ConvContestant> first, second;
  std::string implementation() const { return first->implementation() + ", " + second->implementation(); }
};

/// All pairs of a peer's ways whose second one can read what the first one writes.
void addPeer(const ConvPeer& peer, const ConvProblem& first, const ConvProblem& second, int threads,
             std::vector<PeerChain>& chains) {
  const std::size_t firsts = peer.make(first, threads, false).size();
  const std::size_t seconds = peer.make(second, threads, false).size();
  for (std::size_t i = 0; i < firsts; ++i) {
    for (std::size_t k = 0; k < seconds; ++k) {
      Contestants one = peer.make(first, threads, false), other = peer.make(second, threads, false);
      if (!other[k]->readsWhatIsWrittenBy(*one[i])) continue;
      chains.push_back({peer.name, std::move(one[i]), std::move(other[k])});
    }
  }
}

}  // namespace

tools::Layer LayerChain::both() const {
  tools::Layer layer = first;
  layer.outChannels = second.outChannels;
  return layer;
}

std::vector<LayerChain> findChains(const std::vector<tools::Layer>& layers) {
  std::vector<LayerChain> chains;
  for (std::size_t i = 1; i < layers.size(); ++i) {
    const tools::Layer& first = layers[i - 1];
    const tools::Layer& second = layers[i];
    const bool isChannelWise = first.groups == first.inChannels && first.groups == first.outChannels;
    const bool isProduct = second.kernel.isAll(1) && second.stride.isAll(1) && second.groups == 1;
    if (isChannelWise && isProduct && second.inChannels == first.outChannels && second.height == first.outHeight() &&
        second.width == first.outWidth()) {
      chains.push_back({first, second});
    }
  }
  return chains;
}

ConvResult measureChain(const ConvOptions& options, const std::string& network, const LayerChain& chain, int batch) {
  const ConvProblem first(chain.first, taccConvForward, batch);
  ConvProblem second(chain.second, taccConvForward, batch);
  {  // what the second layer is held against reads what the first one should write
    const auto alone = makeTaccContestant(first, options.threads, false);
    alone->run();
    const std::vector<float> between = alone->result();
    std::copy(between.begin(), between.end(), second.input.data());
  }
  std::vector<std::unique_ptr<ConvContestant>> own;
  for (const char* name : {"", "depthwise-product", "in-turn"}) {
    own.push_back(makeTaccChain(first, second, options.threads, name));
  }
  std::vector<PeerChain> peers;
  for (const ConvPeer& peer : convPeers()) {
    const bool isWanted = std::find(options.peers.begin(), options.peers.end(), peer.name) != options.peers.end();
    if (isWanted && peer.name != "tacc") addPeer(peer, first, second, options.threads, peers);
  }
  std::vector<tools::Timed> runners;
  for (const auto& contestant : own) runners.push_back({[run = contestant.get()] { run->run(); }});
  for (const PeerChain& peer : peers) {
    runners.push_back({[&peer] {
      peer.first->run();
      peer.second->run();
    }});
  }
  tools::timeInTurn(runners, options.seconds, options.processorTime);
  const double operations = first.operations() + second.operations();
  std::size_t wrong = 0;
  for (const auto& contestant : own) wrong += second.countWrong(contestant->result().data(), 0);
  ConvResult result{network,
                    chain.both(),
                    taccConvForward,
                    batch,
                    operations,
                    runners.front().seconds,
                    0,
                    own.front()->implementation(),
                    wrong,
                    {},
                    {}};
  const auto add = [&](const std::string& name, double seconds, const std::string& implementation, double predicted) {
    result.candidates.push_back({name, implementation, seconds, predicted});
    const auto known = result.peers.find(name);
    if (known == result.peers.end() || seconds < known->second.seconds) {
      result.peers[name] = {seconds, 0, implementation};
    }
  };
  for (std::size_t i = 1; i < own.size(); ++i) {
    const std::string implementation = own[i]->implementation();
    add(implementation.substr(0, implementation.find(' ')), runners[i].seconds, implementation,
        own[i]->predictedSeconds());
  }
  for (std::size_t i = 0; i < peers.size(); ++i) {
    add(peers[i].name, runners[own.size() + i].seconds, peers[i].implementation(), 0);
  }
  return result;
}

}  // namespace tacc::bench
