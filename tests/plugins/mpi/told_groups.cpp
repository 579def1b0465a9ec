// Groups, and what is made of them or of parts of a communicator; topologies and their neighbours.
#include <algorithm>
#include <array>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "corners.hpp"
#include "told.hpp"

namespace tacc::test {
namespace {

void tellGroup(const char* what, MPI_Group group) {
  int size = -1, rank = -1;
  MPI_Group_size(group, &size);
  MPI_Group_rank(group, &rank);
  MPI_Group world = MPI_GROUP_NULL;
  MPI_Comm_group(MPI_COMM_WORLD, &world);
  std::vector<int> all(static_cast<std::size_t>(size)), places(all.size(), -1);
  std::iota(all.begin(), all.end(), 0);
  MPI_Group_translate_ranks(group, size, all.data(), world, places.data());
  MPI_Group_free(&world);
  tell(what, "has", size, "and is", rank);
  tellNumbers("its ranks", places);
}

MPI_Group drawGroup(MPI_Group world, Draws& draws) {
  const int ranks = ranksIn(MPI_COMM_WORLD);
  std::vector<int> members;
  for (int r = 0; r < ranks; ++r)
    if (draws.upTo(2) > 0) members.push_back(r);
  for (std::size_t i = members.size(); i > 1; --i)
    std::swap(members[i - 1], members[static_cast<std::size_t>(draws.upTo(static_cast<int>(i) - 1))]);
  MPI_Group made = MPI_GROUP_NULL;
  int range[1][3] = {{0, ranks - 1, 1 + draws.upTo(1)}};
  switch (draws.upTo(3)) {
    case 0:
      MPI_Group_range_incl(world, 1, range, &made);
      break;
    case 1:
      MPI_Group_excl(world, static_cast<int>(members.size()), members.data(), &made);
      break;
    default:
      MPI_Group_incl(world, static_cast<int>(members.size()), members.data(), &made);
      break;
  }
  return made;
}

MPI_Group combine(MPI_Group one, MPI_Group other, Draws& draws) {
  MPI_Group made = MPI_GROUP_NULL;
  switch (draws.upTo(2)) {
    case 0:
      MPI_Group_union(one, other, &made);
      break;
    case 1:
      MPI_Group_intersection(one, other, &made);
      break;
    default:
      MPI_Group_difference(one, other, &made);
      break;
  }
  int likeness = -1;
  MPI_Group_compare(one, made, &likeness);
  tell("groups are alike:", likeness);
  return made;
}

/// MPI_COMM_NULL on ranks that are no part.
MPI_Comm drawPart(MPI_Group group, Draws& draws) {
  const int rank = rankIn(MPI_COMM_WORLD);
  int place = MPI_UNDEFINED;
  MPI_Group_rank(group, &place);
  MPI_Comm made = MPI_COMM_NULL;
  const int colour = draws.upTo(1);
  switch (draws.upTo(4)) {
    case 0:
      MPI_Comm_create(MPI_COMM_WORLD, group, &made);
      break;
    case 1:
      if (place != MPI_UNDEFINED) MPI_Comm_create_group(MPI_COMM_WORLD, group, 11, &made);
      break;
    case 2:
      MPI_Comm_split(MPI_COMM_WORLD, rank % 2 == colour ? MPI_UNDEFINED : colour, -rank, &made);
      break;
    case 3:
      MPI_Comm_split_type(MPI_COMM_WORLD, rank % 2 == colour ? MPI_UNDEFINED : MPI_COMM_TYPE_SHARED, rank,
                          MPI_INFO_NULL, &made);
      break;
    default:
      MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, -rank, MPI_INFO_NULL, &made);
      break;
  }
  return made;
}

void tellLikeness(MPI_Comm comm) {
  MPI_Comm copy = MPI_COMM_NULL;
  int ofWorld = -1, ofCopy = -1;
  MPI_Comm_dup(comm, &copy);
  MPI_Comm_compare(comm, MPI_COMM_WORLD, &ofWorld);
  MPI_Comm_compare(comm, copy, &ofCopy);
  tell("alike:", ofWorld, ofCopy);
  std::array<char, MPI_MAX_OBJECT_NAME> name{};
  int length = 0;
  MPI_Comm_set_name(copy, "a copy");
  useTold(copy, "a copy with a name");
  MPI_Comm_get_name(copy, name.data(), &length);
  tell("it is called", std::string(name.data(), static_cast<std::size_t>(length)));
  MPI_Comm_free(&copy);
}

}  // namespace

void tellGroups(Draws& draws) {
  MPI_Group world = MPI_GROUP_NULL;
  MPI_Comm_group(MPI_COMM_WORLD, &world);
  for (int round = 0; round < 25; ++round) {
    MPI_Group one = drawGroup(world, draws), other = drawGroup(world, draws), both = combine(one, other, draws);
    tellGroup("one", one);
    tellGroup("both", both);
    MPI_Comm part = drawPart(both, draws);
    if (part != MPI_COMM_NULL) {
      useTold(part, "a part");
      MPI_Group of = MPI_GROUP_NULL;
      MPI_Comm_group(part, &of);
      tellGroup("a part", of);
      MPI_Group_free(&of);
      tellLikeness(part);
      MPI_Comm_free(&part);
    }
    for (MPI_Group* group : {&one, &other, &both}) MPI_Group_free(group);
  }
  MPI_Group_free(&world);
}

namespace {

/// Each sends its own number to all that it has, and what comes is told: blocking and not, with taken-over calls
/// between.
void useNeighbours(MPI_Comm comm, int sources, int targets, Draws& draws) {
  const int rank = rankIn(comm), count = 1 + draws.upTo(40);
  const auto size = static_cast<std::size_t>(count);
  std::vector<int> sent(size * static_cast<std::size_t>(targets) + size),
      received(size * static_cast<std::size_t>(sources) + 1, -1), later = received;
  std::iota(sent.begin(), sent.end(), 1000 * rank);
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Ineighbor_alltoall(sent.data(), count, MPI_INT, later.data(), count, MPI_INT, comm, &request);
  useTold(comm, "one with neighbours");
  MPI_Neighbor_allgather(sent.data(), count, MPI_INT, received.data(), count, MPI_INT, comm);
  tellNumbers("allgather of neighbours", received);
  std::vector<int> counts(static_cast<std::size_t>(sources) + 1, count), places(counts.size());  // never without memory
  for (std::size_t i = 0; i < places.size(); ++i) places[i] = static_cast<int>(i) * count;
  useTold(comm, "one with neighbours");
  received.assign(received.size(), -1);
  MPI_Neighbor_allgatherv(sent.data(), count, MPI_INT, received.data(), counts.data(), places.data(), MPI_INT, comm);
  tellNumbers("allgatherv of neighbours", received);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  tellNumbers("alltoall of neighbours", later);
}

void tellGrid(Draws& draws) {
  const int ranks = ranksIn(MPI_COMM_WORLD);
  std::array<int, 2> sizes{}, isRound{draws.upTo(1), draws.upTo(1)}, place{}, kept{draws.upTo(1), 1};
  MPI_Dims_create(ranks, 2, sizes.data());
  MPI_Comm grid = MPI_COMM_NULL, line = MPI_COMM_NULL, copy = MPI_COMM_NULL;
  MPI_Cart_create(MPI_COMM_WORLD, 2, sizes.data(), isRound.data(), draws.upTo(1), &grid);
  useTold(grid, "a grid");
  MPI_Cart_coords(grid, rankIn(grid), 2, place.data());
  tell("grid", sizes[0], sizes[1], "here", place[0], place[1]);
  for (int way = 0; way < 2; ++way) {
    int before = -1, after = -1;
    MPI_Cart_shift(grid, way, 1, &before, &after);
    tell("neighbours", before, after);
  }
  useNeighbours(grid, 4, 4, draws);
  MPI_Comm_dup(grid, &copy);
  int kind = -1, back = -1;
  MPI_Topo_test(copy, &kind);
  MPI_Cart_rank(copy, place.data(), &back);
  tell("a copy is a grid:", kind == MPI_CART, "rank", back);
  useTold(copy, "a copy of a grid");
  MPI_Cart_sub(copy, kept.data(), &line);
  useTold(line, "a part of a grid");
  tell("a part has", ranksIn(line), "and is", rankIn(line));
  for (MPI_Comm* comm : {&line, &copy, &grid}) MPI_Comm_free(comm);
}

/// Whose edges are drawn, each one way.
void tellGraph(Draws& draws) {
  const int rank = rankIn(MPI_COMM_WORLD), ranks = ranksIn(MPI_COMM_WORLD);
  std::vector<int> sources, targets;
  for (int from = 0; from < ranks; ++from)
    for (int to = 0; to < ranks; ++to) {
      if (draws.upTo(2) == 0) continue;
      if (to == rank) sources.push_back(from);
      if (from == rank) targets.push_back(to);
    }
  MPI_Comm graph = MPI_COMM_NULL;
  MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, static_cast<int>(sources.size()), sources.data(), MPI_UNWEIGHTED,
                                 static_cast<int>(targets.size()), targets.data(), MPI_UNWEIGHTED, MPI_INFO_NULL, 0,
                                 &graph);
  useTold(graph, "a graph");
  int in = -1, out = -1, isWeighted = -1;
  MPI_Dist_graph_neighbors_count(graph, &in, &out, &isWeighted);
  tell("graph", in, out, isWeighted);
  useNeighbours(graph, in, out, draws);
  useTold(graph, "a graph");
  MPI_Comm_free(&graph);
}

/// A ring as MPI 1 has graphs.
void tellOldGraph() {
  const int rank = rankIn(MPI_COMM_WORLD), ranks = ranksIn(MPI_COMM_WORLD);
  std::vector<int> ends, edges;
  for (int r = 0; r < ranks; ++r) {
    edges.push_back((r + 1) % ranks);
    edges.push_back((r + ranks - 1) % ranks);
    ends.push_back(2 * (r + 1));
  }
  MPI_Comm ring = MPI_COMM_NULL;
  MPI_Graph_create(MPI_COMM_WORLD, ranks, ends.data(), edges.data(), 0, &ring);
  useTold(ring, "a ring");
  std::array<int, 2> neighbours{-1, -1};
  MPI_Graph_neighbors(ring, rank, 2, neighbours.data());
  tell("ring", neighbours[0], neighbours[1]);
  MPI_Comm_free(&ring);
}

}  // namespace

void tellTopologies(Draws& draws) {
  for (int round = 0; round < 15; ++round) {
    tellGrid(draws);
    tellGraph(draws);
    tellOldGraph();
  }
}

}  // namespace tacc::test
